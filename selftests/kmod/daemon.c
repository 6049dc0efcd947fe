// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which group a daemon is in: a process that forked twice, is in a session of its own, executed a
 * program, and attaches when nobody is left of those that it comes from.
 */
#include <dirent.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME
#define TASKS	SYSFS "/" DEV_NAME "/tasks"
#define CG	"/sys/fs/cgroup/gsched-test"

FIXTURE(daemon) {
	int admin;
	char text[4096];
};

FIXTURE_SETUP(daemon)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/b", 0755));
	mkdir(CG, 0755);
}

FIXTURE_TEARDOWN(daemon)
{
	rmdir(ROOT "/b");
	rmdir(ROOT "/a");
	rmdir(CG);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

/*
 * The daemon's program: attaches when it is told to, says as whom, and is there until it is told
 * again
 */
__attribute__((constructor)) static void daemon_main(void)
{
	const char *pipes = getenv("KMOD_DAEMON");
	struct gsched_attach req = { 0 };
	long long id;
	int from, to;
	char c;

	if (!pipes || sscanf(pipes, "%d %d", &from, &to) != 2)
		return;
	if (read(from, &c, 1) != 1)
		_exit(1);
	id = attach_as(gopen(), 0, &req);
	if (!id)
		id = req.client_id;
	if (write(to, &id, sizeof(id)) != sizeof(id) || read(from, &c, 1) != 0)
		_exit(2);
	_exit(0);
}

enum way { FORK_TWICE, FORK_IN_SESSION };

struct daemon {
	pid_t first, second;		/* those that it comes from */
	int to, from;
};

static void become_daemon(int from, int to)
{
	char pipes[32], *argv[] = { "daemon", NULL }, *env[] = { pipes, NULL };

	snprintf(pipes, sizeof(pipes), "KMOD_DAEMON=%d %d", from, to);
	execve("/proc/self/exe", argv, env);
	_exit(127);
}

/* @prepare runs in the first process, a child of this one. All but the daemon are gone at the end.
 */
static struct daemon start(int (*prepare)(void), enum way way)
{
	struct daemon d = { .to = -1 };
	int down[2], up[2], status;

	if (pipe(down) || pipe(up))
		return d;
	d.first = fork();
	if (d.first == 0) {
		close(down[1]);
		close(up[0]);
		if ((way == FORK_IN_SESSION && setsid() < 0) || prepare())
			_exit(1);
		d.second = fork();
		if (d.second == 0) {
			if (way == FORK_TWICE && setsid() < 0)
				_exit(1);
			if (fork() == 0)
				become_daemon(down[0], up[1]);
			_exit(0);
		}
		if (waitpid(d.second, &status, 0) != d.second || status ||
		    write(up[1], &d.second, sizeof(d.second)) != sizeof(d.second))
			_exit(1);
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	d.to = down[1];
	d.from = up[0];
	if (waitpid(d.first, &status, 0) != d.first || status ||
	    read(d.from, &d.second, sizeof(d.second)) != sizeof(d.second))
		d.to = -1;
	return d;
}

/* The group that the module has it in, once it has attached; "" it failed */
static void group_of(struct daemon *d, char *group, size_t size)
{
	struct dirent *entry;
	long long id = -1;
	char text[4096];
	DIR *tasks;

	*group = '\0';
	if (write(d->to, "g", 1) != 1 || read(d->from, &id, sizeof(id)) != sizeof(id) || id < 0)
		return;
	tasks = opendir(TASKS);
	while (tasks && (entry = readdir(tasks)))
		if (slurp(text, sizeof(text), TASKS "/%s/usage", entry->d_name) > 0 &&
		    stat_of(text, "id") == id)
			slurp(group, size, TASKS "/%s/group", entry->d_name);
	if (tasks)
		closedir(tasks);
}

static void end(struct daemon *d)
{
	char c;

	close(d->to);
	/* until it is gone */
	if (read(d->from, &c, 1) > 0)
		abort();
	close(d->from);
}

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

/*
 * A new process of this number, which somebody is about to reap if @retry; the group that it is in;
 * -errno
 */
static int group_of_number(pid_t nr, bool retry, char *group, size_t size)
{
	int status, i;
	pid_t pid;

	for (i = 0; (pid = fork_as(nr)) < 0 && retry && i < 1000; i++)
		usleep(10000);
	if (pid == 0) {
		char text[64];

		if (attach(gopen(), 0))
			_exit(1);
		slurp(text, sizeof(text), TASKS "/%d/group", getpid());
		_exit(!strcmp(text, "/") ? 3 : !strcmp(text, "a") ? 4 : 5);
	}
	if (pid < 0)
		return -errno;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -EIO;
	snprintf(group, size, "%s",
		 WEXITSTATUS(status) == 3 ? "/" :
		 WEXITSTATUS(status) == 4 ? "a" :
					    "?");
	return 0;
}

static int into_cgroup(void)
{
	return put("0", CG "/cgroup.procs");
}

TEST_F(daemon, in_its_cgroup)
{
	struct daemon d;

	ASSERT_EQ(0, put("/gsched-test", ROOT "/a/cgroup"));
	d = start(into_cgroup, FORK_TWICE);
	ASSERT_LE(0, d.to);
	/* others may have the numbers now that its ancestors had */
	ASSERT_EQ(0, group_of_number(d.first, true, self->text, sizeof(self->text)));
	EXPECT_STREQ("/", self->text);
	/* but for the session's, which is in use */
	EXPECT_EQ(-EEXIST, group_of_number(d.second, false, self->text, sizeof(self->text)));
	group_of(&d, self->text, sizeof(self->text));
	EXPECT_STREQ("a", self->text);
	end(&d);
}

static int into_cgroup_and_namespaces(void)
{
	return put("0", CG "/cgroup.procs") ||
	       unshare(CLONE_NEWCGROUP | CLONE_NEWPID | CLONE_NEWNS);
}

/* Returns in the first process of a new pid namespace; outside nothing is left open */
static int become_init(void)
{
	pid_t pid;
	int status;

	if (into_cgroup_and_namespaces())
		return 1;
	pid = fork();
	if (pid == 0)
		return 0;
	close_range(3, ~0U, 0);
	_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* A container: its init forks twice and stays, as the reaper of the daemon */
TEST_F(daemon, in_namespaces)
{
	struct daemon d = { 0 };
	int down[2], up[2], hold[2], status;
	char c;

	ASSERT_EQ(0, put("/gsched-test", ROOT "/a/cgroup"));
	ASSERT_EQ(0, pipe(down) | pipe(up) | pipe(hold));
	d.first = fork();
	if (d.first == 0) {
		close(down[1]);
		close(up[0]);
		close(hold[1]);
		if (become_init())
			_exit(1);
		/* number 1 of its namespace */
		if (getpid() != 1)
			_exit(2);
		d.second = fork();
		if (d.second == 0) {
			close(hold[0]);
			if (setsid() < 0)
				_exit(1);
			if (fork() == 0)
				become_daemon(down[0], up[1]);
			_exit(0);
		}
		if (waitpid(d.second, &status, 0) != d.second || status ||
		    write(up[1], &d.second, sizeof(d.second)) != sizeof(d.second))
			_exit(1);
		close(up[1]);
		_exit(read(hold[0], &c, 1) != 0);
	}
	close(down[0]);
	close(up[1]);
	close(hold[0]);
	d.to = down[1];
	d.from = up[0];
	ASSERT_EQ(sizeof(d.second), read(d.from, &d.second, sizeof(d.second)));
	group_of(&d, self->text, sizeof(self->text));
	EXPECT_STREQ("a", self->text);
	end(&d);
	close(hold[1]);
	ASSERT_EQ(d.first, waitpid(d.first, &status, 0));
	EXPECT_EQ(0, status);
}

static int into_group(void)
{
	return put("0", ROOT "/a/procs");
}

/*
 * By procs: what a bound process started is in the group as long as it is in the session that the
 * process led
 */
TEST_F(daemon, in_the_session_of_the_bound_process)
{
	struct daemon d = start(into_group, FORK_IN_SESSION);

	ASSERT_LE(0, d.to);
	/* the number is the session's, as long as there is somebody in it */
	EXPECT_EQ(-EEXIST, group_of_number(d.first, false, self->text, sizeof(self->text)));
	/* it is no process to list */
	EXPECT_EQ(0, slurp(self->text, sizeof(self->text), ROOT "/a/procs"));
	/* which another binding does not forget either */
	ASSERT_EQ(0, put("0", ROOT "/b/procs"));
	group_of(&d, self->text, sizeof(self->text));
	EXPECT_STREQ("a", self->text);
	end(&d);
	/* the session is over, and the number is somebody else's, who is this one's child */
	ASSERT_EQ(0, put("0", ROOT "/procs"));
	ASSERT_EQ(0, group_of_number(d.first, true, self->text, sizeof(self->text)));
	EXPECT_STREQ("/", self->text);
}

/* In a session of its own nothing tells where it comes from: this is what cgroups are for */
TEST_F(daemon, procs_knows_no_strangers)
{
	struct daemon d = start(into_group, FORK_TWICE);

	ASSERT_LE(0, d.to);
	group_of(&d, self->text, sizeof(self->text));
	EXPECT_STREQ("/", self->text);
	end(&d);
	ASSERT_EQ(0, group_of_number(d.first, true, self->text, sizeof(self->text)));
	EXPECT_STREQ("/", self->text);
}

static int run_gschedctl(int from, int to)
{
	char pipes[64];

	/* after a double fork, in a session of its own, as a daemon's script would have it */
	snprintf(pipes, sizeof(pipes), "export KMOD_DAEMON='%d %d'", from, to);
	setenv("PIPES", pipes, 1);
	execlp(BUILD "/bin/gschedctl", "gschedctl", "-b", "module", "run", "-g", "a", "--", "sh",
	       "-c", "eval \"$PIPES\"; setsid sh -c \"$SELF daemon &\" &", NULL);
	return 127;
}

/* gschedctl run, on a system without systemd: it makes a cgroup for the group */
TEST_F(daemon, of_gschedctl_run)
{
	int down[2], up[2], status, i;
	struct daemon d = { 0 };
	char exe[256] = "";

	ASSERT_LT(0, readlink("/proc/self/exe", exe, sizeof(exe) - 1));
	ASSERT_EQ(0, pipe(down) | pipe(up));
	d.first = fork();
	if (d.first == 0) {
		close(down[1]);
		close(up[0]);
		setenv("SELF", exe, 1);
		_exit(run_gschedctl(down[0], up[1]));
	}
	close(down[0]);
	close(up[1]);
	d.to = down[1];
	d.from = up[0];
	ASSERT_EQ(d.first, waitpid(d.first, &status, 0));
	EXPECT_EQ(0, status);
	slurp(self->text, sizeof(self->text), ROOT "/a/cgroup");
	EXPECT_STREQ("/gsched-a", self->text);
	/* the shells in between are gone when nobody but the daemon is in the cgroup */
	do {
		ASSERT_LT(0, slurp(self->text, sizeof(self->text),
				   "/sys/fs/cgroup/gsched-a/cgroup.procs"));
	} while (strchr(self->text, '\n'));
	group_of(&d, self->text, sizeof(self->text));
	EXPECT_STREQ("a", self->text);
	end(&d);
	/* it is init's to reap */
	for (i = 0; i < 1000 && rmdir("/sys/fs/cgroup/gsched-a"); i++)
		usleep(10000);
	EXPECT_GT(1000, i);
}

TEST_HARNESS_MAIN
