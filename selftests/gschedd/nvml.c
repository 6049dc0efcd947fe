// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs on the GPU that have no gsched in them, by a library that stands in for NVML
 * (fakenvml.c).
 */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"

static char library[4096], list[96];

static void set_list(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void set_list(const char *fmt, ...)
{
	char fresh[128];
	va_list ap;
	FILE *f;

	snprintf(fresh, sizeof(fresh), "%s.new", list);
	f = fopen(fresh, "w");
	if (!f)
		return;
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fclose(f);
	rename(fresh, list);
}

static bool has(const char *what)
{
	char *text = status_text();
	bool found = strstr(text, what);

	if (!found)
		printf("# %.400s\n", text);
	free(text);
	return found;
}

/* An answer serves for a second: what changed meanwhile shows within two. */
static bool soon(const char *what)
{
	struct timespec ms = { .tv_nsec = 50000000 };
	bool found = false;

	for (int i = 0; !found && i < 100; i++) {
		char *text = status_text();

		found = strstr(text, what);
		free(text);
		if (!found)
			nanosleep(&ms, NULL);
	}
	return found;
}

static void children(char *text, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)daemon_pid, (int)daemon_pid);
	f = fopen(path, "r");
	if (!f || !fgets(text, (int)size, f))
		text[0] = '\0';
	if (f)
		fclose(f);
}

/* NVML keeps the GPU's driver busy, so the process that asks it ends when nobody asks any more */
static bool become(const char *wanted)
{
	struct timespec ms = { .tv_nsec = 100000000 };
	char text[64] = "";

	for (int i = 0; i < 200; i++, nanosleep(&ms, NULL)) {
		children(text, sizeof(text));
		if (!strcmp(text, wanted))
			return true;
	}
	printf("# %s, not %s\n", text, wanted);
	return false;
}

/* The library hangs from the next question on, which comes when the last answer is a second old. */
static void hang(void)
{
	bool went_on = false, there = true, came = true;
	struct timespec begun, from, to = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &begun);
	while (there && to.tv_sec < begun.tv_sec + 10) {
		struct pollfd pfd = { .fd = peer(), .events = POLLIN };
		struct reply r;
		char text[8192];
		ssize_t n;

		clock_gettime(CLOCK_MONOTONIC, &from);
		send_req(pfd.fd, GSP_STATUS, 0, 1, NULL, 0, -1);
		went_on = !strcmp(group_file("", "gpu.weight"), "100\n") && poll(&pfd, 1, 20) == 0;
		came &= receive(pfd.fd, &r, 10000) && !r.h.err && r.n_fds == 1;
		clock_gettime(CLOCK_MONOTONIC, &to);
		came &= to.tv_sec - from.tv_sec < 4;
		n = came ? pread(r.fd[0], text, sizeof(text) - 1, 0) : 0;
		text[n > 0 ? n : 0] = '\0';
		there = strstr(text, "\"unmanaged\":[");
		reply_free(&r);
		close(pfd.fd);
	}
	ok(!there && went_on, "a driver that hangs: other calls go on");
	ok(came, "the status comes all the same, in bounded time");
}

int main(void)
{
	char *text;
	struct gsched_attach other = { .size = sizeof(other) };
	struct peer_client c;
	int s;
	char want[256], without[64];
	unsigned int tries = 5000;
	pid_t stranger;
	ssize_t n = readlink("/proc/self/exe", library, sizeof(library) - 32);

	library[n > 0 ? n : 0] = '\0';
	strcpy(strrchr(library, '/') + 1, "fakenvml.so");
	test_dir();
	snprintf(list, sizeof(list), "%s/pids", dir);
	setenv("FAKENVML_PIDS", list, 1);

	daemon_start("--device", DEVICE, "--nvml", "/nowhere/libnvidia-ml.so.1", NULL);
	text = status_text();
	ok(!strstr(text, "\"unmanaged\":["),
	   "no library: nothing is said of programs that are not managed");
	free(text);
	is(daemon_stop(SIGTERM), 0, "ends cleanly");

	stranger = fork();
	if (!stranger)
		for (;;)
			pause();
	set_list("%d 17\n%d 5\n4194303 8 mps\n", (int)stranger, (int)getpid());
	daemon_start("--device", DEVICE, "--device", "gpu1:101112131415161718191a1b1c1d1e1f:8",
		     "--nvml", library, NULL);
	/* the one that has looked for the library goes */
	children(want, sizeof(want));
	do {
		usleep(1000);
		children(without, sizeof(without));
	} while (!strcmp(want, without) && tries--);
	attach(&c, 0);
	snprintf(want, sizeof(want), "\"unmanaged\":[{\"pid\":%d,\"comm\":\"nvml\",\"mib\":17,\"busy_percent\":0},"
		 "{\"pid\":4194303,\"comm\":\"away3\",\"mib\":8,\"busy_percent\":0}]", (int)stranger);
	ok(has(want), "a process that is not attached, by its own name, and one that only NVML can "
	   "name; not the client");
	text = status_text();
	ok(strstr(text, "\"name\":\"gpu1\"") && !strstr(strstr(text, "\"name\":\"gpu1\""),
							"\"unmanaged\":["),
	   "nothing of a device that NVML does not know");
	free(text);
	set_list("%s", "");
	ok(soon("\"unmanaged\":[]"), "it is gone from the GPU: gone from the status");
	detach(&c);
	set_list("%d 5\n%d 5 mps\n", (int)getpid(), (int)getpid());
	snprintf(want, sizeof(want), "\"unmanaged\":[{\"pid\":%d,", (int)getpid());
	ok(soon(want), "a client that has detached is not managed");
	snprintf(want, sizeof(want), "\"comm\":\"nvml\",\"mib\":5,\"busy_percent\":0}]");
	ok(soon(want), "and listed once");
	/* an MPS server's client is named on all GPUs */
	for (unsigned int i = 0; i < GSCHED_UUID_SIZE; i++)
		other.uuid[i] = (uint8_t)(0x10 + i);
	s = peer();
	ok(!call(s, GSP_ATTACH, &other, sizeof(other)) && soon("\"unmanaged\":[]"),
	   "but not as a client of another device");
	close(s);
	children(want, sizeof(want));
	ok(strcmp(want, without) && become(without),
	   "the process that asks is there, and gone when nobody asks");

	unlink(list);
	hang();
	text = status_text();
	ok(!strstr(text, "\"unmanaged\":["), "and says nothing of such programs");
	free(text);
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	return done_testing();
}
