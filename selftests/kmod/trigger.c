// SPDX-License-Identifier: GPL-2.0-only
/* Triggers on gpu.pressure: write them to /dev/gsched, poll that for POLLPRI. */
#include <time.h>

#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME

FIXTURE(trigger) {
	int admin, holds, waits;
};

FIXTURE_SETUP(trigger)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->holds = gopen();
	self->waits = gopen();
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/b", 0755));
}

FIXTURE_TEARDOWN(trigger)
{
	close(self->waits);
	close(self->holds);
	rmdir(ROOT "/a");
	rmdir(ROOT "/b");
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

static int write_text(int fd, const char *text)
{
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* A file that has @what ("some 1 2") of @group's pressure as its trigger; -errno */
static int trigger(const char *group, const char *what)
{
	char path[256], text[128];
	int fd, pressure, ret;

	snprintf(path, sizeof(path), ROOT "/%s/gpu.pressure", group);
	pressure = open(path, O_RDONLY | O_CLOEXEC);
	if (pressure < 0)
		return -errno;
	fd = gopen();
	snprintf(text, sizeof(text), "%d %s\n", pressure, what);
	ret = fd < 0 ? -errno : write_text(fd, text);
	/* it is not needed any more */
	close(pressure);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int polled(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };

	return poll(&p, 1, ms) == 1 ? p.revents : 0;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* One that cannot be evicted has the device, and a client of group a waits for it */
static int begin_to_wait(int holds, int waits)
{
	struct gsched_submit whole = task(0, 1, GSCHED_SUBMIT_NOWAIT);

	whole.tier = GSCHED_TIER_LAUNCH;
	if (attach(holds, GSCHED_ATTACH_MPS) || put("0", ROOT "/a/procs") ||
	    attach(waits, GSCHED_ATTACH_MPS) || xioctl(holds, GSCHED_IOC_SUBMIT, &whole))
		return -1;
	submit(waits, 0, 1, GSCHED_SUBMIT_NOWAIT);
	return 0;
}

TEST_F(trigger, fires)
{
	int some = trigger("a", "some 100000 500000"), other = trigger("b", "some 1 500000");
	int root = trigger(".", "some 400000 500000"), full = trigger("a", "full 500000 500000");
	double first;

	ASSERT_LE(0, some);
	ASSERT_LE(0, other);
	ASSERT_LE(0, root);
	ASSERT_LE(0, full);
	EXPECT_EQ(0, polled(some, 700));
	first = now();
	ASSERT_EQ(0, begin_to_wait(self->holds, self->waits));
	EXPECT_EQ(POLLPRI, polled(some, 10000));
	EXPECT_LE(0.1, now() - first);
	first = now();
	/* told once, and once a window */
	EXPECT_EQ(0, polled(some, 0));
	EXPECT_EQ(POLLPRI, polled(root, 10000));
	EXPECT_EQ(POLLPRI, polled(some, 10000));
	EXPECT_LE(0.4, now() - first);
	/* one of the group runs all the time */
	EXPECT_EQ(0, polled(full, 0));
	EXPECT_EQ(0, polled(other, 0));
	/* nobody waits any more: what was waited is forgotten with the windows */
	EXPECT_EQ(0, complete(self->holds, 0, 1));
	EXPECT_EQ(0, complete(self->waits, 0, 1));
	usleep(1100000);
	polled(some, 0);
	EXPECT_EQ(0, polled(some, 1100));
	/* and it begins anew */
	ASSERT_EQ(0, xioctl(self->holds, GSCHED_IOC_SUBMIT, &(struct gsched_submit) {
		.size = sizeof(struct gsched_submit), .flags = GSCHED_SUBMIT_NOWAIT, .seq = 2,
		.tier = GSCHED_TIER_LAUNCH, .blocks_per_sm = 1, .blocks = 1000 }));
	submit(self->waits, 0, 2, GSCHED_SUBMIT_NOWAIT);
	EXPECT_EQ(POLLPRI, polled(some, 10000));
	close(some);
	close(other);
	close(root);
	close(full);
}

/* The only client of the group waits for one of another group */
TEST_F(trigger, full)
{
	int fd = trigger("a", "full 300000 500000"), go[2];
	struct gsched_submit whole = task(0, 1, GSCHED_SUBMIT_NOWAIT);
	pid_t pid;
	char c;

	ASSERT_LE(0, fd);
	whole.tier = GSCHED_TIER_LAUNCH;
	ASSERT_EQ(0, attach(self->holds, GSCHED_ATTACH_MPS));
	ASSERT_EQ(0, xioctl(self->holds, GSCHED_IOC_SUBMIT, &whole));
	ASSERT_EQ(0, pipe(go));
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (put("0", ROOT "/a/procs") || attach(self->waits, GSCHED_ATTACH_MPS))
			_exit(1);
		submit(self->waits, 0, 1, GSCHED_SUBMIT_NOWAIT);
		_exit(read(go[0], &c, 1) != 0);
	}
	close(go[0]);
	EXPECT_EQ(POLLPRI, polled(fd, 10000));
	close(go[1]);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	close(fd);
}

/* Seldom and short waits are not what was asked for */
TEST_F(trigger, not_below_the_threshold)
{
	int fd = trigger("a", "some 400000 500000");
	struct gsched_submit whole = task(0, 1, GSCHED_SUBMIT_NOWAIT);
	unsigned int i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, attach(self->holds, GSCHED_ATTACH_MPS));
	ASSERT_EQ(0, put("0", ROOT "/a/procs"));
	ASSERT_EQ(0, attach(self->waits, GSCHED_ATTACH_MPS));
	whole.tier = GSCHED_TIER_LAUNCH;
	for (i = 1; i <= 5; i++) {
		whole.seq = i;
		ASSERT_EQ(0, xioctl(self->holds, GSCHED_IOC_SUBMIT, &whole));
		submit(self->waits, 0, i, GSCHED_SUBMIT_NOWAIT);
		usleep(20000);
		EXPECT_EQ(0, complete(self->holds, 0, i));
		EXPECT_EQ(0, complete(self->waits, 0, i));
		EXPECT_EQ(0, polled(fd, 200));
	}
	close(fd);
}

TEST_F(trigger, wrong)
{
	static const char *const bad[] = {
		"", "some", "some 1", "some 100000 499999", "some 100000 10000001", "some 0 500000",
		"some 500001 500000", "any 100000 500000", "some 100000 500000 1", "some -1 500000",
		"some 99999999999999999999 500000", "some 1e5 500000", "some  100000 500000",
		"Some 100000 500000",
	};
	static const char embedded[] = "0 some 100000\0 500000";
	int fd, other, pressure = open(ROOT "/a/gpu.pressure", O_RDONLY | O_CLOEXEC);
	char text[128];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, trigger("a", bad[i])) TH_LOG("%s", bad[i]);
	}
	fd = gopen();
	EXPECT_EQ(-1, write(fd, embedded, sizeof(embedded)));
	EXPECT_EQ(EINVAL, errno);
	memset(text, ' ', sizeof(text));
	EXPECT_EQ(-1, write(fd, text, 64));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1,
		  write(fd, mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 20));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-EINVAL, write_text(fd, "some 100000 500000"));
	EXPECT_EQ(-EINVAL, write_text(fd, "-1 some 100000 500000"));
	EXPECT_EQ(-EBADF, write_text(fd, "999 some 100000 500000"));
	/* another file, and one that is no group's */
	snprintf(text, sizeof(text), "%d some 100000 500000", fd);
	EXPECT_EQ(-EINVAL, write_text(fd, text));
	other = open(ROOT "/a/gpu.stat", O_RDONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "%d some 100000 500000", other);
	EXPECT_EQ(-EINVAL, write_text(fd, text));
	close(other);
	other = open("/tmp/gpu.pressure", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_LE(0, other);
	snprintf(text, sizeof(text), "%d some 100000 500000", other);
	EXPECT_EQ(-EINVAL, write_text(fd, text));
	close(other);
	unlink("/tmp/gpu.pressure");
	/* a path gives no right to read */
	other = open(ROOT "/a/gpu.pressure", O_PATH | O_CLOEXEC);
	snprintf(text, sizeof(text), "%d some 100000 500000", other);
	EXPECT_EQ(-EBADF, write_text(fd, text));
	close(other);
	/*
	 * after all that the file is what it was: one trigger, then no client; and the other way
	 * round
	 */
	snprintf(text, sizeof(text), "%d some 100000 500000", pressure);
	EXPECT_EQ(0, write_text(fd, text));
	EXPECT_EQ(-EBUSY, write_text(fd, text));
	EXPECT_EQ(-EBUSY, attach(fd, 0));
	EXPECT_EQ(-1, read(fd, text, sizeof(text)));
	EXPECT_EQ(ENOTCONN, errno);
	close(fd);
	ASSERT_EQ(0, attach(self->waits, 0));
	EXPECT_EQ(-EBUSY, write_text(self->waits, text));
	close(pressure);
}

TEST_F(trigger, group_goes)
{
	int fd = trigger("b", "some 100000 500000"), device = trigger(".", "some 100000 500000");

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, polled(fd, 0));
	EXPECT_EQ(0, rmdir(ROOT "/b"));
	EXPECT_EQ(POLLERR | POLLPRI, polled(fd, 0));
	EXPECT_EQ(POLLERR | POLLPRI, polled(fd, 0));
	EXPECT_EQ(0, rmdir(ROOT "/a"));
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	EXPECT_EQ(POLLERR | POLLPRI, polled(device, 0));
	close(fd);
	close(device);
	ASSERT_EQ(0, add_device(self->admin, DEV_NAME, dev_uuid, DEV_SMS));
}

static int as_owner(void *arg)
{
	int fd = trigger("a", "some 100000 500000");

	return fd < 0 ? fd : 0;
}

static int of_root_group(void *arg)
{
	int fd = trigger(".", "some 100000 500000");

	return fd < 0 ? fd : 0;
}

static int too_many(void *arg)
{
	int fd, n;

	for (n = 0; n < 1000; n++) {
		fd = trigger("a", "some 100000 500000");
		if (fd < 0)
			break;
	}
	/* the first one is root's */
	return n == 255 ? fd : -n;
}

/* Who may read a group's pressure may wait for it, and nobody without end */
TEST_F(trigger, rights)
{
	int fd;

	EXPECT_EQ(-EACCES, as_nobody(as_owner, NULL));
	ASSERT_EQ(0, put("65534", ROOT "/a/owner"));
	EXPECT_EQ(0, as_nobody(as_owner, NULL));
	EXPECT_EQ(-EACCES, as_nobody(of_root_group, NULL));
	fd = trigger("a", "some 100000 500000");
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOSPC, as_nobody(too_many, NULL));
	/* those are closed */
	EXPECT_EQ(0, as_nobody(as_owner, NULL));
	close(fd);
}

TEST_HARNESS_MAIN
