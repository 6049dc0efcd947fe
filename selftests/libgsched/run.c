// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs of a test: started, told, heard. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "run.h"

void start(struct run *r, bool preload, char *const *what)
{
	char *argv[32] = { BUILD "/test/libgsched/app", "selftests/libgsched/kernels.ptx" },
		path[512], cwd[400];
	int pipes[2], in[2], n = strchr(*what, '/') ? 0 : 2;

	while (*what)
		argv[n++] = *what++;
	argv[n] = NULL;
	if (pipe2(pipes, O_CLOEXEC) || pipe2(in, O_CLOEXEC) || !getcwd(cwd, sizeof(cwd)))
		abort();
	signal(SIGPIPE, SIG_IGN);
	*r = (struct run){ .out = pipes[0], .in = in[1] };
	r->pid = fork();
	if (!r->pid) {
		signal(SIGPIPE, SIG_DFL);
		dup2(pipes[1], 1);
		dup2(in[0], 0);
		setenv("LD_LIBRARY_PATH", BUILD "/vgpu", 1);
		/* behind it, what the test itself runs under: a sanitizer */
		snprintf(path, sizeof(path), "%s/" BUILD "/lib/gsched/libcuda.so.1:%s", cwd,
			 getenv("LD_PRELOAD") ? : "");
		if (preload)
			setenv("LD_PRELOAD", path, 1);
		alarm(300);
		execv(argv[0], argv);
		_exit(127);
	}
	close(pipes[1]);
	close(in[0]);
}

static bool hear(struct run *r)
{
	ssize_t n = -1;

	if (r->len < sizeof(r->text) - 1)
		do
			n = read(r->out, r->text + r->len, sizeof(r->text) - 1 - r->len);
		while (n < 0 && errno == EINTR);
	r->len += n > 0 ? n : 0;
	return n > 0;
}

void finish(struct run *r)
{
	while (hear(r))
		;
	close(r->out);
	close(r->in);
	waitpid(r->pid, &r->status, 0);
}

const char *run(bool preload, char *const *what, struct run *r)
{
	start(r, preload, what);
	finish(r);
	return r->text;
}

void tell(struct run *r, const char *bytes)
{
	/* one that has died is found out by what it does not say */
	if (write(r->in, bytes, strlen(bytes)) != (ssize_t)strlen(bytes) && errno != EPIPE)
		abort();
}

bool answers(struct run *r, size_t from, const char *text)
{
	struct pollfd out = { .fd = r->out, .events = POLLIN };

	while (!strstr(r->text + from, text))
		if (poll(&out, 1, PATIENCE_MS) <= 0 || !hear(r))
			return false;
	return true;
}

bool says(struct run *r, const char *text)
{
	return answers(r, 0, text);
}
