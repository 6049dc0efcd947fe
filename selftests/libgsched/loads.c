// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each way to load a kernel, under the interposer on vgpu: the result is that of the program alone, and a twin ran. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "arbiter.h"
#include "tap.h"

#ifndef BUILD
#define BUILD "build"
#endif

static struct fake f;
static char file[64];

/* What load-app says, or "" */
static void run(bool preload, const char *way, char *text, size_t size)
{
	char path[512], cwd[400];
	size_t len = 0;
	int pipes[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) || !getcwd(cwd, sizeof(cwd)))
		abort();
	pid = fork();
	if (!pid) {
		dup2(pipes[1], 1);
		setenv("LD_LIBRARY_PATH", BUILD "/vgpu", 1);
		snprintf(path, sizeof(path), "%s/" BUILD "/lib/gsched/libcuda.so.1:%s", cwd, getenv("LD_PRELOAD") ? : "");
		if (preload)
			setenv("LD_PRELOAD", path, 1);
		alarm(120);
		execl(BUILD "/test/libgsched/load-app", "load-app", way, file, NULL);
		_exit(127);
	}
	close(pipes[1]);
	while (len < size - 1 && (n = read(pipes[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(pipes[0]);
	waitpid(pid, &status, 0);
	if (status) {
		printf("# %s%s: status %x\n", way, preload ? " under the interposer" : "", status);
		text[0] = 0;
	}
}

int main(void)
{
	static const char *const ways[] = {
		"data", "data-ex", "fat", "fat-binary", "wrapper", "file", "fat-file", "library", "library-file", "units", "link",
		"link-mixed", "link-file", "early-library", "early-library-file", "early-units",
	};
	char alone[64], text[64], shm[64];

	snprintf(file, sizeof(file), "/tmp/gsched-loads-%d", getpid());
	snprintf(shm, sizeof(shm), "/dev/shm/gsched-loads-%d", getpid());
	setenv("VGPU_NAME", shm + strlen("/dev/shm/"), 1);
	setenv("VGPU_SMS", "4", 1);
	run(false, "data", alone, sizeof(alone));
	ok(alone[0], "the program alone: %.16s", alone);
	for (unsigned int i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		run(false, ways[i], text, sizeof(text));
		ok(!strcmp(text, alone), "%s: alone", ways[i]);
		fake_start(&f);
		f.rewrite_err = ENOTCONN;
		f.sms = 4;
		f.lease = GSCHED_LEASE_NONE;
		run(true, ways[i], text, sizeof(text));
		fake_wait(&f, &f.detached, 1);
		ok(!strcmp(text, alone), "%s: results as alone", ways[i]);
		if (!ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 3, "%s: launches of tier block", ways[i]))
			printf("# %s\n", f.cl ? f.cl->header.why : "no page");
		fake_stop(&f);
	}
	unlink(file);
	unlink(shm);
	return done();
}
