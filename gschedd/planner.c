// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * --qos: runs the QoS planner, gschedctl qos from this program's directory, as a child process. It
 * is an ordinary client, so it can neither delay nor crash the arbiter. If it ends, it is
 * restarted.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gschedd.h"

#define RESTART_S	2
#define PATIENCE_MS	3000	/* from SIGTERM to SIGKILL */

static struct source child = { .fd = -1 }, restart = { .fd = -1 };
static pid_t child_pid;
static char program[4096];

static void planner_exec(void)
{
	const char *argv[] = {
		"gschedctl", "--backend", opt.arbiter == ARBITER_MODULE ? "module" : "daemon",
		"--socket", opt.socket, "qos", NULL,
	};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execv(program, (char **)argv);
	_exit(127);
}

static void planner_ended(struct source *src, uint32_t events);

static int start_child(void)
{
	int err;

	child_pid = fork();
	if (child_pid < 0)
		return -errno;
	if (!child_pid)
		planner_exec();
	child.fd = (int)syscall(SYS_pidfd_open, child_pid, 0);
	child.ready = planner_ended;
	err = child.fd < 0 ? -errno : loop_add(&child, EPOLLIN);
	if (!err)
		return 0;
	kill(child_pid, SIGKILL);
	waitpid(child_pid, NULL, 0);
	child_pid = 0;
	loop_del(&child);
	return err;
}

static void start_later(void)
{
	const struct itimerspec its = { .it_value.tv_sec = RESTART_S };

	timerfd_settime(restart.fd, 0, &its, NULL);
}

static void planner_ended(struct source *src, uint32_t events)
{
	int status = 0;

	waitpid(child_pid, &status, 0);
	child_pid = 0;
	loop_del(&child);
	if (WIFSIGNALED(status))
		say(LOG_WARN, "--qos: the planner was ended by signal %d: starting it again",
		    WTERMSIG(status));
	else
		say(LOG_WARN, "--qos: the planner ended with status %d: starting it again",
		    WEXITSTATUS(status));
	start_later();
}

static void restart_ready(struct source *src, uint32_t events)
{
	uint64_t n;
	int err;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n) || child_pid)
		return;
	err = start_child();
	if (!err)
		return;
	say(LOG_WARN, "--qos: %s: %s", program, strerror(-err));
	start_later();
}

static int find_program(void)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - sizeof("gschedctl"));
	char *slash;

	if (n < 0)
		return -errno;
	program[n] = '\0';
	slash = strrchr(program, '/');
	if (!slash)
		return -ENOENT;
	strcpy(slash + 1, "gschedctl");
	return access(program, X_OK) ? -errno : 0;
}

int planner_init(void)
{
	int err;

	if (!opt.qos)
		return 0;
	err = find_program();
	if (!err) {
		restart.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		restart.ready = restart_ready;
		err = restart.fd < 0 ? -errno : loop_add(&restart, EPOLLIN);
	}
	if (!err)
		err = start_child();
	if (err)
		say(LOG_ERROR, "--qos: %s: %s", program, strerror(-err));
	return err;
}

void planner_stop(void)
{
	loop_del(&restart);
	if (child_pid)
		kill(child_pid, SIGTERM);
}

void planner_exit(void)
{
	struct pollfd ended = { .fd = child.fd, .events = POLLIN };

	if (!child_pid)
		return;
	if (poll(&ended, 1, PATIENCE_MS) <= 0)
		kill(child_pid, SIGKILL);
	waitpid(child_pid, NULL, 0);
	child_pid = 0;
	loop_del(&child);
}
