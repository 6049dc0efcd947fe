// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Libraries with variables that are named as the driver's functions (entry/variables.c): they are
 * known from their files, damaged ones too, and work under the interposer.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "entry/open.h"
#include "run.h"
#include "selftests/tap.h"

#define LIBRARY		BUILD "/test/libgsched/libnamed.so"
#define NEEDS		BUILD "/test/libgsched/libneeds-named.so"
#define DAMAGED		4000

void gi_debug(const char *fmt, ...)
{
}

static void files(void)
{
	ok(gi_has_driver_variables(LIBRARY), "a library with such variables");
	ok(gi_has_driver_variables(NEEDS), "one that brings it along");
	ok(!gi_has_driver_variables(BUILD "/vgpu/libcuda.so.1"), "functions are no variables");
	ok(!gi_has_driver_variables(BUILD "/bin/gschedctl"), "a program without either");
	ok(!gi_has_driver_variables("selftests/libgsched/opened.c"), "text");
	ok(!gi_has_driver_variables("/dev/null") && !gi_has_driver_variables("/tmp") &&
	   !gi_has_driver_variables("/nowhere/libx.so"), "a device, a directory, nothing");
}

static size_t read_library(unsigned char *to, size_t room)
{
	int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, to, room);

	close(fd);
	return n > 0 ? n : 0;
}

/* Any answer is right that comes: the C library refuses such files, or also reads what is there */
static void damaged(void)
{
	static unsigned char whole[1 << 20], copy[1 << 20];
	char path[] = "/tmp/opened-XXXXXX";
	unsigned int i, k, found = 0;
	int fd = mkstemp(path);
	size_t size = read_library(whole, sizeof(whole)), n;

	srandom(1);
	for (i = 0; fd >= 0 && size && i < DAMAGED; i++) {
		memcpy(copy, whole, size);
		n = i % 2 ? size : (size_t)random() % size;
		/* the headers and what they lead to lie in front */
		for (k = random() % 8; k; k--)
			copy[random() % (k % 2 ? 1024 : size)] = (unsigned char)random();
		if (ftruncate(fd, 0) || pwrite(fd, copy, n, 0) != (ssize_t)n)
			break;
		found += gi_has_driver_variables(path);
	}
	ok(i == DAMAGED && found && found < DAMAGED, "damaged files: %u of %u still have them",
	   found, i);
	close(fd);
	unlink(path);
}

static void runs(char *library, char *function, const char *what)
{
	char *const argv[] = { library ? BUILD "/test/libgsched/named-app" :
			       BUILD "/test/libgsched/named-exports", library, function, NULL };
	struct run r;
	bool good;

#ifdef __SANITIZE_ADDRESS__
	if (library) {
		skip(what, "AddressSanitizer refuses RTLD_DEEPBIND");
		return;
	}
#endif
	start(&r, true, argv);
	finish(&r);
	good = !strcmp(r.text, "1\n");
	r.text[strcspn(r.text, "\n")] = '\0';
	ok(good, "%s runs under the interposer: %s device", what, r.text);
}

int main(void)
{
	char dir[] = "/tmp/opened-XXXXXX", sock[64], shm[64];

	if (!mkdtemp(dir))
		abort();
	snprintf(sock, sizeof(sock), "%s/none", dir);
	setenv("GSCHED_SOCKET", sock, 1);
	setenv("VGPU_NAME", dir + strlen("/tmp/"), 1);
	files();
	damaged();
	runs(NULL, NULL, "a program that exports such variables");
	runs(LIBRARY, "named_devices", "such a library");
	runs(NEEDS, "needs_named_devices", "one that needs it");
	rmdir(dir);
	snprintf(shm, sizeof(shm), "/dev/shm/%s", dir + strlen("/tmp/"));
	unlink(shm);
	return done();
}
