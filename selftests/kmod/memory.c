// SPDX-License-Identifier: GPL-2.0-only
/* Device memory: what clients report, memory.max of their group and those above, who asks. */
#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME
#define MIB	(1ULL << 20)

FIXTURE(memory) {
	int admin, fd;
	struct gsched_attach req;
	const volatile struct gsched_arb_page *arb;
	char text[4096];
};

FIXTURE_SETUP(memory)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/a/b", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/a/c", 0755));
	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	self->fd = gopen();
	ASSERT_EQ(0, attach_as(self->fd, 0, &self->req));
	self->arb = map_arb(self->fd, &self->req);
	ASSERT_NE(MAP_FAILED, self->arb);
}

FIXTURE_TEARDOWN(memory)
{
	munmap((void *)self->arb, self->req.arb_size);
	close(self->fd);
	rmdir(ROOT "/a/c");
	rmdir(ROOT "/a/b");
	rmdir(ROOT "/a");
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

static struct gsched_report holds(unsigned long long bytes, unsigned int flags)
{
	return (struct gsched_report) {
		.size = sizeof(struct gsched_report), .flags = GSCHED_REPORT_MEMORY | flags,
		.memory = bytes, .memory_max = 1, .memory_room = 1,
	};
}

static int asks(int fd, unsigned long long bytes)
{
	return report_memory(fd, bytes, true);
}

static unsigned long long number_of(const char *file)
{
	char text[64];

	if (slurp(text, sizeof(text), ROOT "/%s", file) < 0)
		return ~0ULL - 1;
	return strtoull(text, NULL, 10);
}

static long long refusals(const char *group)
{
	char text[4096];

	slurp(text, sizeof(text), ROOT "/%s/gpu.events", group);
	return stat_of(text, "memory_max");
}

TEST_F(memory, counted)
{
	struct gsched_report req = holds(100 * MIB, 0);
	int other = gopen();

	ASSERT_EQ(0, attach(other, 0));
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_REPORT, &req));
	EXPECT_EQ(~0ULL, req.memory_max);
	EXPECT_EQ(~0ULL, req.memory_room);
	EXPECT_EQ(100 * MIB, req.memory);
	EXPECT_EQ(0, asks(other, 50 * MIB));
	EXPECT_EQ(150 * MIB, number_of("a/b/memory.current"));
	EXPECT_EQ(150 * MIB, number_of("a/memory.current"));
	EXPECT_EQ(150 * MIB, number_of("memory.current"));
	EXPECT_EQ(0, number_of("a/c/memory.current"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/tasks/%d/usage", getpid());
	EXPECT_EQ(100 * MIB, stat_of(self->text, "memory"));
	/* moved together: the process is in another group */
	ASSERT_EQ(0, put("0", ROOT "/a/c/procs"));
	EXPECT_EQ(0, number_of("a/b/memory.current"));
	EXPECT_EQ(150 * MIB, number_of("a/b/memory.peak"));
	EXPECT_EQ(150 * MIB, number_of("a/c/memory.current"));
	EXPECT_EQ(150 * MIB, number_of("a/memory.current"));
	close(other);
	EXPECT_EQ(100 * MIB, number_of("a/c/memory.current"));
	EXPECT_EQ(0, asks(self->fd, 0));
	EXPECT_EQ(0, number_of("memory.current"));
	EXPECT_EQ(150 * MIB, number_of("memory.peak"));
}

TEST_F(memory, refused)
{
	struct gsched_report req = holds(6 * MIB, GSCHED_REPORT_ASKS);
	struct pollfd p = { .events = POLLPRI };

	EXPECT_EQ(0, self->arb->header.flags & GSCHED_ARB_LIMITED);
	ASSERT_EQ(0, put("8M", ROOT "/a/b/memory.max"));
	EXPECT_NE(0, self->arb->header.flags & GSCHED_ARB_LIMITED);
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_REPORT, &req));
	EXPECT_EQ(8 * MIB, req.memory_max);
	EXPECT_EQ(2 * MIB, req.memory_room);
	p.fd = open(SYSFS "/" DEV_NAME "/events", O_RDONLY | O_CLOEXEC);
	ASSERT_LT(0, read(p.fd, self->text, sizeof(self->text)));
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(-EDQUOT, asks(self->fd, 8 * MIB + 1));
	EXPECT_EQ(1, poll(&p, 1, 10000));
	EXPECT_NE(0, p.revents & POLLPRI);
	close(p.fd);
	EXPECT_EQ(1, refusals("a/b"));
	EXPECT_EQ(1, refusals("."));
	EXPECT_EQ(0, refusals("a/c"));
	EXPECT_EQ(6 * MIB, number_of("a/b/memory.current"));
	EXPECT_EQ(0, asks(self->fd, 8 * MIB));
	/* a lower limit frees nothing; who does not ask is counted */
	ASSERT_EQ(0, put("1M", ROOT "/a/b/memory.max"));
	EXPECT_EQ(8 * MIB, number_of("a/b/memory.current"));
	EXPECT_EQ(-EDQUOT, asks(self->fd, 8 * MIB + 1));
	req = holds(7 * MIB, GSCHED_REPORT_ASKS);
	EXPECT_EQ(0, xioctl(self->fd, GSCHED_IOC_REPORT, &req));
	EXPECT_EQ(MIB, req.memory_max);
	EXPECT_EQ(0, req.memory_room);
	req = holds(9 * MIB, 0);
	EXPECT_EQ(0, xioctl(self->fd, GSCHED_IOC_REPORT, &req));
	EXPECT_EQ(9 * MIB, number_of("a/b/memory.current"));
	EXPECT_EQ(2, refusals("a/b"));
	ASSERT_EQ(0, put("max", ROOT "/a/b/memory.max"));
	EXPECT_EQ(0, self->arb->header.flags & GSCHED_ARB_LIMITED);
	EXPECT_EQ(0, asks(self->fd, GSCHED_MEMORY_MAX));
	EXPECT_EQ(0, asks(self->fd, 0));
}

/* A process in another group, which holds 6 MiB until it is killed */
static pid_t holder(const char *group)
{
	char done = 0;
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		int other = gopen();

		if (put("0", ROOT "/%s/procs", group) || attach(other, 0) ||
		    asks(other, 6 * MIB) || write(fd[1], "y", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(fd[1]);
	if (read(fd[0], &done, 1) != 1)
		printf("# no program in %s\n", group);
	close(fd[0]);
	return pid;
}

TEST_F(memory, of_the_group_above)
{
	struct gsched_report req = holds(4 * MIB, GSCHED_REPORT_ASKS);
	pid_t other;

	ASSERT_EQ(0, put("10M", ROOT "/a/memory.max"));
	EXPECT_NE(0, self->arb->header.flags & GSCHED_ARB_LIMITED);
	other = holder("a/c");
	ASSERT_LT(0, other);
	EXPECT_EQ(6 * MIB, number_of("a/memory.current"));
	EXPECT_EQ(-EDQUOT, asks(self->fd, 4 * MIB + 1));
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_REPORT, &req));
	EXPECT_EQ(10 * MIB, req.memory_max);
	EXPECT_EQ(0, req.memory_room);
	/* the least of all limits */
	ASSERT_EQ(0, put("20M", ROOT "/a/b/memory.max"));
	EXPECT_EQ(-EDQUOT, asks(self->fd, 5 * MIB));
	ASSERT_EQ(0, put("3M", ROOT "/a/b/memory.max"));
	req = holds(2 * MIB, GSCHED_REPORT_ASKS);
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_REPORT, &req));
	EXPECT_EQ(3 * MIB, req.memory_max);
	EXPECT_EQ(MIB, req.memory_room);
	ASSERT_EQ(0, put("max", ROOT "/a/b/memory.max"));
	kill(other, SIGKILL);
	ASSERT_EQ(other, waitpid(other, NULL, 0));
	EXPECT_EQ(0, number_of("a/c/memory.current"));
	EXPECT_EQ(0, asks(self->fd, 10 * MIB));
	EXPECT_EQ(-EDQUOT, asks(self->fd, 10 * MIB + 1));
	/* where there is no limit */
	ASSERT_EQ(0, put("0", ROOT "/procs"));
	EXPECT_EQ(0, self->arb->header.flags & GSCHED_ARB_LIMITED);
	EXPECT_EQ(0, asks(self->fd, 20 * MIB));
	EXPECT_EQ(0, number_of("a/memory.current"));
	EXPECT_EQ(20 * MIB, number_of("memory.current"));
}

TEST_HARNESS_MAIN
