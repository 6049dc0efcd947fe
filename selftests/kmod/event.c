// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting and being told: events, blocked submits, signals, and processes that die while they hold
 * capacity.
 */
#include <dirent.h>
#include <pthread.h>
#include <time.h>

#include "common.h"
#include "kselftest_harness.h"

FIXTURE(event) {
	int admin, a, b;
};

FIXTURE_SETUP(event)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->a = gopen();
	self->b = gopen();
	ASSERT_EQ(0, attach(self->a, 0));
	ASSERT_EQ(0, attach(self->b, 0));
	/* the first is told that there are two bands now */
	ASSERT_EQ(0, drain(self->a));
}

FIXTURE_TEARDOWN(event)
{
	close(self->a);
	close(self->b);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

TEST_F(event, nothing_to_read)
{
	struct pollfd p = { .fd = self->a, .events = POLLIN };
	struct gsched_event event;

	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(-1, read(self->a, &event, sizeof(event)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, read(self->a, &event, sizeof(event) - 1));
	EXPECT_EQ(EINVAL, errno);
	/* a grant at once is told by the call itself */
	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	EXPECT_EQ(0, poll(&p, 1, 0));
}

TEST_F(event, quota_lowered_and_raised)
{
	struct gsched_event event, two[2];

	ASSERT_EQ(0, submit(self->a, 6, 1, 0));
	ASSERT_EQ(0, put("5", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_TRUE(next_event(self->a, &event));
	EXPECT_EQ(GSCHED_EVENT_EVICT, event.type);
	EXPECT_EQ(6, event.slot);
	EXPECT_EQ(1, event.seq);
	EXPECT_EQ(5 * GSCHED_CAPSM, event.window);
	EXPECT_NE(0, event.time_ns);
	/* two changes before it is read: one event, the last state */
	ASSERT_EQ(0, put("7", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_EQ(0, put("9", CONFIG "/" DEV_NAME "/capsm.max"));
	/* only whole ones, each with its size */
	EXPECT_EQ(-1, read(self->a, two, sizeof(two[0]) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(sizeof(two[0]), read(self->a, two, sizeof(two) - 1));
	EXPECT_EQ(sizeof(two[0]), two[0].size);
	EXPECT_EQ(sizeof(two[1]), read(self->a, &two[1], sizeof(two[1])));
	EXPECT_EQ(sizeof(two[1]), two[1].size);
	EXPECT_EQ(GSCHED_EVENT_GROW, two[0].type);
	EXPECT_EQ(9 * GSCHED_CAPSM, two[0].window);
	/* behind the slots comes the share of time that goes with the quota */
	EXPECT_EQ(GSCHED_EVENT_BAND, two[1].type);
	/* up and down again, but still more than was known: workers are missing */
	ASSERT_EQ(0, put("max", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_EQ(0, put("10", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_TRUE(next_event(self->a, &event));
	EXPECT_EQ(GSCHED_EVENT_GROW, event.type);
	EXPECT_EQ(10 * GSCHED_CAPSM, event.window);
	/* down and up again, but still less */
	ASSERT_EQ(0, put("3", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_EQ(0, put("8", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_TRUE(next_event(self->a, &event));
	EXPECT_EQ(GSCHED_EVENT_EVICT, event.type);
	EXPECT_EQ(8 * GSCHED_CAPSM, event.window);
	/* what is over is not told of */
	ASSERT_EQ(0, put("2", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_EQ(0, complete(self->a, 6, 1));
	EXPECT_EQ(0, drain(self->a));
}

/*
 * The words of the page that concern the band: one event, however often they changed; nothing in
 * attach itself
 */
TEST_F(event, band)
{
	struct gsched_event event, two[2];
	struct pollfd p = { .fd = self->b, .events = POLLIN };
	const volatile struct gsched_arb_page *arb;
	struct gsched_attach req;
	int other = gopen();

	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, attach_band(other, 0, 0, &req));
	arb = map_arb(other, &req);
	EXPECT_EQ(3, arb->header.bands);
	EXPECT_EQ(GSCHED_SHARE_ALL, arb->header.share);
	p.fd = other;
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, put("8", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_EQ(0, put("4", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLIN, p.revents);
	EXPECT_EQ(sizeof(event), read(other, two, sizeof(two)));
	EXPECT_EQ(GSCHED_EVENT_BAND, two[0].type);
	EXPECT_EQ(0, two[0].slot);
	EXPECT_EQ(0, two[0].seq);
	EXPECT_EQ(0, two[0].window);
	EXPECT_NE(0, two[0].time_ns);
	EXPECT_EQ(GSCHED_SHARE_ALL / 4, arb->header.share);
	EXPECT_EQ(GSCHED_ARB_REPORT | GSCHED_ARB_ALONE, arb->header.flags);
	EXPECT_EQ(0, poll(&p, 1, 0));
	/* the same quota once more changes nothing */
	ASSERT_EQ(0, put("4", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(0, poll(&p, 1, 0));
	munmap((void *)arb, req.arb_size);
	ASSERT_EQ(0, drain(self->a));
	close(other);
	/* one band less */
	ASSERT_TRUE(any_event(self->a, &event));
	EXPECT_EQ(GSCHED_EVENT_BAND, event.type);
}

TEST_F(event, band_read_faults)
{
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gsched_event event;

	ASSERT_EQ(0, put("4", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(-1, read(self->a, hole, sizeof(event)));
	EXPECT_EQ(EFAULT, errno);
	ASSERT_TRUE(any_event(self->a, &event));
	EXPECT_EQ(GSCHED_EVENT_BAND, event.type);
	EXPECT_EQ(-1, read(self->a, &event, sizeof(event)));
	EXPECT_EQ(EAGAIN, errno);
}

/* An event that could not be stored is still there */
TEST_F(event, read_faults)
{
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gsched_event event;

	ASSERT_EQ(0, submit(self->a, 6, 1, 0));
	ASSERT_EQ(0, put("5", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(-1, read(self->a, hole, sizeof(event)));
	EXPECT_EQ(EFAULT, errno);
	ASSERT_TRUE(next_event(self->a, &event));
	EXPECT_EQ(GSCHED_EVENT_EVICT, event.type);
}

struct waiter {
	int fd, ret;
	unsigned int slot, seq;
};

static void *wait_for_grant(void *arg)
{
	struct waiter *w = arg;

	w->ret = submit(w->fd, w->slot, w->seq, 0);
	return NULL;
}

/* Until @count tasks wait for the device */
static void wait_until_waiting(int count)
{
	char text[512];
	struct dirent *entry;
	int waiting;
	DIR *dir;

	do {
		sched_yield();
		waiting = 0;
		dir = opendir(SYSFS "/" DEV_NAME "/tasks");
		while (dir && (entry = readdir(dir)))
			if (slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%s/usage",
				  entry->d_name) > 0)
				waiting += stat_of(text, "waiting");
		if (dir)
			closedir(dir);
	} while (waiting < count);
}

TEST_F(event, blocked_submit_is_granted)
{
	struct waiter w = { .fd = self->b, .slot = 1, .seq = 2, .ret = 1 };
	struct gsched_event event;
	pthread_t thread;

	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_grant, &w));
	wait_until_waiting(1);
	ASSERT_EQ(0, complete(self->a, 0, 1));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, w.ret);
	/* the call told of it: no event as well */
	EXPECT_EQ(-1, read(self->b, &event, sizeof(event)));
	EXPECT_EQ(0, complete(self->b, 1, 2));
}

TEST_F(event, blocked_submit_is_withdrawn_by_another_thread)
{
	struct waiter w = { .fd = self->b, .slot = 1, .seq = 2, .ret = 1 };
	struct gsched_complete cancel = {
		.size = sizeof(cancel), .flags = GSCHED_COMPLETE_CANCEL, .slot = 1, .seq = 2,
	};
	pthread_t thread;

	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_grant, &w));
	wait_until_waiting(1);
	EXPECT_EQ(-EBUSY, submit(self->b, 1, 3, GSCHED_SUBMIT_NOWAIT));
	ASSERT_EQ(0, xioctl(self->b, GSCHED_IOC_COMPLETE, &cancel));
	pthread_join(thread, NULL);
	EXPECT_EQ(-ENOENT, w.ret);
}

static void on_signal(int nr)
{
}

static int interrupted_submit(int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int fd = gopen();

		sigaction(SIGUSR1, &action, NULL);
		if (attach(fd, 0))
			_exit(1);
		if (submit(fd, 0, 1, 0) != -EINTR)
			_exit(2);
		/* withdrawn: the slot is free */
		if (complete(fd, 0, 1) != -ENOENT)
			_exit(3);
		_exit(submit(fd, 0, 2, GSCHED_SUBMIT_NOWAIT) == QUEUED ? 0 : 4);
	}
	wait_until_waiting(1);
	kill(pid, SIGUSR1);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(event, signal_withdraws)
{
	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	EXPECT_EQ(0, interrupted_submit(0));
	/* also where the handler would have the call restarted */
	EXPECT_EQ(0, interrupted_submit(SA_RESTART));
}

TEST_F(event, blocking_read_is_interrupted)
{
	struct itimerspec soon = { .it_value = { .tv_nsec = 20000000 },
				   .it_interval = { .tv_nsec = 20000000 } };
	struct sigaction action = { .sa_handler = on_signal };
	struct sigevent sev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct gsched_event event;
	timer_t timer;

	sigaction(SIGUSR1, &action, NULL);
	ASSERT_EQ(0, fcntl(self->a, F_SETFL, 0));
	ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, &sev, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &soon, NULL));
	EXPECT_EQ(-1, read(self->a, &event, sizeof(event)));
	EXPECT_EQ(EINTR, errno);
	timer_delete(timer);
}

/* A process that holds the device and dies */
static pid_t holder(int ready)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd = gopen();
		char ok = attach(fd, 0) == 0 && submit(fd, 0, 1, 0) == 0;

		if (write(ready, &ok, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	return pid;
}

TEST_F(event, killed_while_holding)
{
	struct gsched_event event;
	char ok = 0, text[512];
	int fds[2], status;
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	pid = holder(fds[1]);
	ASSERT_EQ(1, read(fds[0], &ok, 1));
	ASSERT_EQ(1, ok);
	EXPECT_EQ(QUEUED, submit(self->b, 0, 1, GSCHED_SUBMIT_NOWAIT));
	ASSERT_GT(slurp(text, sizeof(text), CONFIG "/" DEV_NAME "/capsm.current"), 0);
	EXPECT_STREQ("16", text);
	kill(pid, SIGKILL);
	ASSERT_TRUE(next_event(self->b, &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, complete(self->b, 0, 1));
	snprintf(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%d", pid);
	EXPECT_NE(0, access(text, F_OK));
}

/* The same with a child that inherited the descriptor and lives on */
TEST_F(event, killed_while_a_child_has_the_descriptor)
{
	struct gsched_event event;
	int fds[2], status;
	pid_t pid, child = 0;

	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (pid == 0) {
		int fd = gopen();

		if (attach(fd, 0) || submit(fd, 0, 1, 0))
			_exit(1);
		child = fork();
		if (child == 0) {
			pause();
			_exit(0);
		}
		if (write(fds[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		pause();
	}
	ASSERT_EQ(sizeof(child), read(fds[0], &child, sizeof(child)));
	EXPECT_EQ(QUEUED, submit(self->b, 0, 1, GSCHED_SUBMIT_NOWAIT));
	kill(pid, SIGKILL);
	EXPECT_TRUE(next_event(self->b, &event));
	/* it inherited the other descriptors, too: wait until it is gone, which the pipe tells */
	kill(child, SIGKILL);
	waitpid(pid, &status, 0);
	close(fds[1]);
	EXPECT_EQ(0, read(fds[0], &child, sizeof(child)));
	EXPECT_EQ(0, complete(self->b, 0, 1));
}

/* A waiter that dies leaves no trace either */
TEST_F(event, killed_while_waiting)
{
	int status;
	pid_t pid;

	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	pid = fork();
	if (pid == 0) {
		int fd = gopen();

		attach(fd, 0);
		submit(fd, 0, 1, 0);
		_exit(0);
	}
	wait_until_waiting(1);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, complete(self->a, 0, 1));
	EXPECT_EQ(0, submit(self->b, 0, 1, GSCHED_SUBMIT_NOWAIT));
}

TEST_HARNESS_MAIN
