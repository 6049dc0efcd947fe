// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who holds the module, and what is left of a client that ends anywhere: unloading is refused while
 * anything of it is in use; a client is killed after each step of its life; the machine is
 * suspended with clients that run and wait.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "common.h"
#include "kselftest_harness.h"
#include "pin/gsched_pin.h"

#define ROOT	CONFIG "/" DEV_NAME
#define MODULE	"/sys/module/gsched"

FIXTURE(lifetime) {
	int admin, keep;
	char text[4096];
};

FIXTURE_SETUP(lifetime)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	self->keep = gopen();
	ASSERT_EQ(0, attach(self->keep, 0));
}

FIXTURE_TEARDOWN(lifetime)
{
	close(self->keep);
	rmdir(ROOT "/a");
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

static int users(void)
{
	char text[32];

	return slurp(text, sizeof(text), MODULE "/refcnt") < 0 ? -1 : atoi(text);
}

/* As rmmod(8). It is never let go here, since the test's own descriptors are open */
static int unload(void)
{
	return syscall(SYS_delete_module, "gsched", O_NONBLOCK) ? -errno : 0;
}

#define EXPECT_IN_USE_BY(n) do { \
		EXPECT_EQ(n, users()); \
		EXPECT_EQ(-EWOULDBLOCK, unload()); \
		slurp(self->text, sizeof(self->text), MODULE "/initstate"); \
		EXPECT_STREQ("live", self->text); \
		EXPECT_EQ(0, submit(self->keep, 0, 1, GSCHED_SUBMIT_NOWAIT)); \
		EXPECT_EQ(0, complete(self->keep, 0, 1)); \
	} while (0)

TEST_F(lifetime, unloading_is_refused)
{
	struct gsched_pin_range range = { .pages = 2, .write = 1 };
	struct gsched_pin_word word = { 0 };
	struct gsched_attach req;
	int n = users(), p, fd;
	void *cl;

	EXPECT_GT(n, 0);
	fd = gopen();
	EXPECT_IN_USE_BY(n + 1);
	ASSERT_EQ(0, attach_as(fd, GSCHED_ATTACH_MPS, &req));
	cl = (void *)map_cl(fd, &req);
	ASSERT_NE(MAP_FAILED, cl);
	close(fd);
	/* the mapping has the file */
	EXPECT_IN_USE_BY(n + 1);
	p = open("/dev/gsched_pin", O_RDWR | O_CLOEXEC);
	range.address = (uintptr_t)cl;
	if (p >= 0) {
		ASSERT_EQ(0, xioctl(p, GSCHED_PIN_PIN, &range));
	}
	EXPECT_IN_USE_BY(n + 1);
	ASSERT_EQ(0, munmap(cl, req.cl_size));
	/* a pin has its pages, which are not the module's */
	EXPECT_IN_USE_BY(n);
	EXPECT_EQ(0, p < 0 ? 0 : xioctl(p, GSCHED_PIN_READ, &word));
	close(p);
	ASSERT_EQ(0, mkdir(ROOT "/b", 0755));
	EXPECT_LT(n, users());
	EXPECT_EQ(-EWOULDBLOCK, unload());
	ASSERT_EQ(0, rmdir(ROOT "/b"));
	EXPECT_IN_USE_BY(n);
}

/* ---- a client's life ---- */

static int client_fd;
static struct gsched_attach client_req;

static int step_open(void)
{
	client_fd = gopen();
	return client_fd < 0;
}

/* Of a file of its own */
static int step_trigger(void)
{
	int pressure = open(ROOT "/a/gpu.pressure", O_RDONLY | O_CLOEXEC), fd = gopen();
	char text[64];

	snprintf(text, sizeof(text), "%d some 1 500000", pressure);
	return write(fd, text, strlen(text)) < 0;
}

static int step_attach(void)
{
	return attach_as(client_fd, 0, &client_req);
}

static int step_map(void)
{
	return map_arb(client_fd, &client_req) == MAP_FAILED ||
	       map_cl(client_fd, &client_req) == MAP_FAILED;
}

static int step_bind(void)
{
	return put("0", ROOT "/a/procs");
}

static int step_report(void)
{
	return report_activity(client_fd, GSCHED_ACTIVITY_BUSY);
}

static int step_submit(void)
{
	return submit(client_fd, 0, 1, 0);
}

static int step_event(void)
{
	struct pollfd p = { .fd = client_fd, .events = POLLIN };

	return put("4", ROOT "/a/capsm.max") || poll(&p, 1, 10000) != 1;
}

static int step_read(void)
{
	struct gsched_event event;

	if (drain(client_fd) < 0 || fcntl(client_fd, F_SETFL, 0))
		return 1;
	return read(client_fd, &event, sizeof(event)) != sizeof(event);
}

static int step_complete(void)
{
	return complete(client_fd, 0, 1);
}

static const struct step {
	const char *name;
	int (*fn)(void);
	bool waits; /* the client's last one: somebody else has the device, or there is no event */
} steps[] = {
	{ "open", step_open, false },
	{ "trigger", step_trigger, false },
	{ "attach", step_attach, false },
	{ "map", step_map, false },
	{ "write of procs", step_bind, false },
	{ "report", step_report, false },
	{ "submit that waits", step_submit, true },
	{ "submit", step_submit, false },
	{ "event", step_event, false },
	{ "read that waits", step_read, true },
	{ "complete", step_complete, false },
};

/* Up to the last of so many steps; tells before that */
static pid_t live(unsigned int last, int ready)
{
	pid_t pid = fork();
	unsigned int i;

	if (pid)
		return pid;
	for (i = 0; i <= last; i++) {
		if (i == last && write(ready, "", 1) != 1)
			_exit(254);
		if ((i == last || !steps[i].waits) && steps[i].fn())
			_exit((int)i + 1);
	}
	for (;;)
		pause();
}

/* In a wait that a signal ends, for at most ten seconds; false: it did not come so far */
static bool sleeps(pid_t pid)
{
	char text[512], *state;
	int i;

	for (i = 0; i < 10000; i++) {
		slurp(text, sizeof(text), "/proc/%d/stat", pid);
		state = strrchr(text, ')');
		if (!state || state[2] == 'Z')
			return false;
		if (state[2] == 'S')
			return true;
		usleep(1000);
	}
	return false;
}

static int count_tasks(void)
{
	DIR *dir = opendir(SYSFS "/" DEV_NAME "/tasks");
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

TEST_F(lifetime, killed_after_each_step)
{
	int ready[2], status, before = users();
	unsigned int n;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	for (n = 0; n < ARRAY_SIZE(steps); n++) {
		bool held = steps[n].waits && steps[n].fn == step_submit;

		if (held) {
			ASSERT_EQ(0, submit(self->keep, 0, 1, 0));
		}
		pid = live(n, ready[1]);
		ASSERT_EQ(1, read(ready[0], &c, 1));
		EXPECT_TRUE(sleeps(pid)) TH_LOG("after %s", steps[n].name);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status))
			TH_LOG("%s: it failed at step %d", steps[n].name, WEXITSTATUS(status));
		if (held) {
			EXPECT_EQ(0, complete(self->keep, 0, 1));
		}
		slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/stat");
		EXPECT_EQ(1, stat_of(self->text, "clients")) TH_LOG("after %s", steps[n].name);
		EXPECT_EQ(0, stat_of(self->text, "adopted")) TH_LOG("after %s", steps[n].name);
		EXPECT_EQ(1, count_tasks()) TH_LOG("after %s", steps[n].name);
		slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
		EXPECT_STREQ("0", self->text) TH_LOG("after %s", steps[n].name);
		slurp(self->text, sizeof(self->text), ROOT "/a/procs");
		EXPECT_STREQ("", self->text) TH_LOG("after %s", steps[n].name);
		EXPECT_EQ(before, users()) TH_LOG("after %s", steps[n].name);
		/* and all of the device is there for others */
		EXPECT_EQ(0, submit(self->keep, 1, 1, GSCHED_SUBMIT_NOWAIT))
			TH_LOG("after %s", steps[n].name);
		slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
		EXPECT_STREQ("16", self->text) TH_LOG("after %s", steps[n].name);
		EXPECT_EQ(0, complete(self->keep, 1, 1));
		ASSERT_EQ(0, rmdir(ROOT "/a"));
		ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	}
	close(ready[0]);
	close(ready[1]);
}

/* ---- threads with descriptors of their own ---- */

static void *with_own_descriptors(void *tid)
{
	*(pid_t *)tid = unshare(CLONE_FILES) ? 0 : (pid_t)syscall(SYS_gettid);
	return NULL;
}

/* Until it has closed them: it can be joined before that. For ten seconds at most */
static bool thread_is_gone(pid_t tid)
{
	char path[64];
	int i;

	snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	for (i = 0; i < 10000 && !access(path, F_OK); i++)
		usleep(1000);
	return i < 10000;
}

/* The process goes on, and so does its client */
TEST_F(lifetime, a_thread_ends)
{
	pthread_t thread;
	pid_t tid = 0;

	ASSERT_EQ(0, submit(self->keep, 0, 1, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, with_own_descriptors, &tid));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_NE(0, tid);
	ASSERT_TRUE(thread_is_gone(tid));
	EXPECT_EQ(0, complete(self->keep, 0, 1));
	EXPECT_EQ(1, count_tasks());
}

static void *paused_with_own_descriptors(void *ready)
{
	if (unshare(CLONE_FILES) || write(*(int *)ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Killed with such a thread, a process gives all back, although its child has the descriptor */
TEST_F(lifetime, killed_with_such_a_thread)
{
	int ready[2], status;
	pid_t pid, child;
	char c;

	ASSERT_EQ(0, pipe(ready));
	/* the child, which has the test's descriptors, too, becomes ours: to be waited for */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid = fork();
	if (!pid) {
		int fd = gopen(), to = ready[1];
		pthread_t thread;

		if (attach(fd, 0) || submit(fd, 0, 1, 0))
			_exit(1);
		child = fork();
		for (; !child;)
			pause();
		if (write(to, &child, sizeof(child)) != sizeof(child) ||
		    pthread_create(&thread, NULL, paused_with_own_descriptors, &to))
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(sizeof(child), read(ready[0], &child, sizeof(child)));
	ASSERT_EQ(1, read(ready[0], &c, 1));
	EXPECT_EQ(2, count_tasks());
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(1, count_tasks());
	kill(child, SIGKILL);
	EXPECT_EQ(child, waitpid(child, &status, 0));
	close(ready[0]);
	close(ready[1]);
}

/* ---- suspend ---- */

/*
 * Up to where processes are frozen and back, which is what the module has to do with: the root file
 * system of the guests does not survive its device's suspend.
 */
static int suspend(void)
{
	put("0", "/sys/module/suspend/parameters/pm_test_delay");
	return put("freezer", "/sys/power/pm_test") ?: put("mem", "/sys/power/state");
}

/* Tells what a submit that waits returns, and again when it waits no longer */
static pid_t waiter(int to)
{
	pid_t pid = fork();
	int fd, ret;

	if (pid)
		return pid;
	fd = gopen();
	ret = attach(fd, 0) ?: submit(fd, 0, 1, 0);
	if (write(to, &ret, sizeof(ret)) != sizeof(ret))
		_exit(1);
	ret = submit(fd, 0, 1, 0);
	if (write(to, &ret, sizeof(ret)) != sizeof(ret))
		_exit(1);
	_exit(0);
}

/* Blocks in read until there is an event of the task it runs; its type, or 0 */
static pid_t reader(int to)
{
	struct gsched_event event = { 0 };
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	fd = gopen();
	if (put("0", ROOT "/a/procs") || attach(fd, 0) || submit(fd, 0, 1, 0) || drain(fd) < 0 ||
	    fcntl(fd, F_SETFL, 0))
		_exit(1);
	if (read(fd, &event, sizeof(event)) < 0)
		event.type = 0;
	if (write(to, &event.type, sizeof(event.type)) != sizeof(event.type))
		_exit(1);
	pause();
	_exit(0);
}

TEST_F(lifetime, suspend)
{
	int up[2], answer, status;
	pid_t pid;

	if (access("/sys/power/pm_test", W_OK))
		SKIP(return, "no suspend, or no tests of it, in this kernel");
	ASSERT_EQ(0, pipe(up));
	ASSERT_EQ(0, submit(self->keep, 0, 1, 0));
	pid = waiter(up[1]);
	ASSERT_TRUE(sleeps(pid));
	ASSERT_EQ(0, suspend());
	/*
	 * freezing is a signal that nobody handles: the task is withdrawn, and may be asked for
	 * again
	 */
	ASSERT_EQ(sizeof(answer), read(up[0], &answer, sizeof(answer)));
	EXPECT_EQ(-EINTR, answer);
	ASSERT_TRUE(sleeps(pid));
	/* who ran goes on */
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("16", self->text);
	EXPECT_EQ(0, complete(self->keep, 0, 1));
	ASSERT_EQ(sizeof(answer), read(up[0], &answer, sizeof(answer)));
	EXPECT_EQ(0, answer);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);

	/* a read goes on by itself */
	pid = reader(up[1]);
	ASSERT_TRUE(sleeps(pid));
	ASSERT_EQ(0, suspend());
	ASSERT_EQ(0, put("4", ROOT "/a/capsm.max"));
	ASSERT_EQ(sizeof(answer), read(up[0], &answer, sizeof(answer)));
	EXPECT_EQ(GSCHED_EVENT_EVICT, answer);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	close(up[0]);
	close(up[1]);
	put("none", "/sys/power/pm_test");
}

TEST_HARNESS_MAIN
