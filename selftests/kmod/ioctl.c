// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every call of /dev/gsched, with good and with bad input: one fault at a time, and its exact
 * errno.
 */
#include "common.h"
#include "kselftest_harness.h"

FIXTURE(call) {
	int admin, a, b;
};

FIXTURE_SETUP(call)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->a = gopen();
	self->b = gopen();
	ASSERT_GE(self->a, 0);
	ASSERT_GE(self->b, 0);
}

FIXTURE_TEARDOWN(call)
{
	close(self->a);
	close(self->b);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

TEST_F(call, unknown_numbers)
{
	struct gsched_info req = { .size = sizeof(req) };

	EXPECT_EQ(-ENOTTY, xioctl(self->a, _IO(GSCHED_IOC_TYPE, 0x07), &req));
	EXPECT_EQ(-ENOTTY, xioctl(self->a, _IO(GSCHED_IOC_TYPE, 0xff), &req));
	EXPECT_EQ(-ENOTTY, xioctl(self->a, _IO(0xE6, 0x00), &req));
	EXPECT_EQ(-ENOTTY, xioctl(self->a, _IOWR(GSCHED_IOC_TYPE, 0x00, struct gsched_info), &req));
}

/* The structure ends where the memory ends */
TEST_F(call, fault_in_the_middle)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *page =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gsched_submit *req = (void *)(page + size - 8);

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, munmap(page + size, size));
	req->size = sizeof(*req);
	EXPECT_EQ(-EFAULT, xioctl(self->a, GSCHED_IOC_SUBMIT, req));
}

TEST_F(call, info)
{
	struct gsched_info req = { .size = sizeof(req) };
	union {
		unsigned int size;
		unsigned char bytes[256];
	} big = { .size = sizeof(req) + 16 };
	struct gsched_info *fixed =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, fixed);
	ASSERT_EQ(0, xioctl(self->a, GSCHED_IOC_INFO, &req));
	EXPECT_EQ(1, req.devices);
	EXPECT_EQ(GSCHED_FEATURE_LEASE | GSCHED_FEATURE_FORCE | GSCHED_FEATURE_BANDS |
		  GSCHED_FEATURE_MEMORY, req.features);
	req.flags = 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_INFO, &req));
	req.flags = 0;
	req.__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_INFO, &req));
	/* a caller from the future, with nothing new asked for */
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_INFO, &big));
	fixed->size = sizeof(*fixed);
	ASSERT_EQ(0, mprotect(fixed, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, xioctl(self->a, GSCHED_IOC_INFO, fixed));
}

TEST_F(call, device_add_bad_input)
{
	static const unsigned char other[GSCHED_UUID_SIZE] = "another-device!";
	struct gsched_device_add req = { .size = sizeof(req), .sms = 4, .name = "other" };

	memcpy(req.uuid, other, sizeof(other));
	req.flags = 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_DEVICE_ADD, &req));
	req.flags = 0;
	req.__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_DEVICE_ADD, &req));
	req.__reserved = 0;
	memset(req.name, 'x', sizeof(req.name));
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_DEVICE_ADD, &req));

	EXPECT_EQ(-EINVAL, add_device(self->a, "other", other, 0));
	EXPECT_EQ(-EINVAL, add_device(self->a, "other", other, GSCHED_SMS_MAX + 1));
	EXPECT_EQ(-EINVAL, add_device(self->a, "", other, 4));
	EXPECT_EQ(-EINVAL, add_device(self->a, "a/b", other, 4));
	EXPECT_EQ(-EINVAL, add_device(self->a, "..", other, 4));
	EXPECT_EQ(-EINVAL, add_device(self->a, "UP", other, 4));
	EXPECT_EQ(-EEXIST, add_device(self->a, DEV_NAME, dev_uuid, DEV_SMS));
	EXPECT_EQ(-EEXIST, add_device(self->a, DEV_NAME, other, DEV_SMS));
	EXPECT_EQ(-EEXIST, add_device(self->a, "other", dev_uuid, DEV_SMS));
	EXPECT_EQ(0, add_device(self->a, "other", other, GSCHED_SMS_MAX));
	EXPECT_EQ(0, access(SYSFS "/other/sms", R_OK));
	EXPECT_EQ(0, access(CONFIG "/other/procs", R_OK));
	EXPECT_EQ(0, del_device(self->a, other));
	EXPECT_NE(0, access(SYSFS "/other", F_OK));
	EXPECT_NE(0, access(CONFIG "/other", F_OK));
}

static int nobody_add(void *arg)
{
	static const unsigned char other[GSCHED_UUID_SIZE] = "another-device!";

	return add_device(gopen(), "other", other, 4);
}

static int nobody_del(void *arg)
{
	return del_device(gopen(), dev_uuid);
}

static int nobody_submit(void *arg)
{
	int fd = gopen(), ret;

	ret = attach(fd, 0);
	if (!ret)
		ret = submit(fd, 0, 1, 0);
	return ret;
}

TEST_F(call, unprivileged)
{
	EXPECT_EQ(-EPERM, as_nobody(nobody_add, NULL));
	EXPECT_EQ(-EPERM, as_nobody(nobody_del, NULL));
	EXPECT_EQ(0, as_nobody(nobody_submit, NULL));
}

TEST_F(call, device_del_bad_input)
{
	static const unsigned char none[GSCHED_UUID_SIZE] = "no such device!";
	struct gsched_device_del req = { .size = sizeof(req), .flags = GSCHED_DEVICE_DEL__ALL + 1 };

	memcpy(req.uuid, dev_uuid, sizeof(req.uuid));
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_DEVICE_DEL, &req));
	EXPECT_EQ(-ENOENT, del_device(self->a, none));
}

TEST_F(call, device_del_while_used)
{
	ASSERT_EQ(0, attach(self->a, 0));
	EXPECT_EQ(-EBUSY, del_device(self->admin, dev_uuid));
	close(self->a);
	ASSERT_EQ(0, mkdir(CONFIG "/" DEV_NAME "/a", 0755));
	EXPECT_EQ(-EBUSY, del_device(self->admin, dev_uuid));
	EXPECT_EQ(0, rmdir(CONFIG "/" DEV_NAME "/a"));
	self->a = gopen();
}

static int force_device(int fd)
{
	struct gsched_device_del req = { .size = sizeof(req), .flags = GSCHED_DEVICE_DEL_FORCE };

	memcpy(req.uuid, dev_uuid, sizeof(req.uuid));
	return xioctl(fd, GSCHED_IOC_DEVICE_DEL, &req);
}

static int nobody_force(void *arg)
{
	return force_device(gopen());
}

TEST_F(call, device_del_by_force_bad_input)
{
	ASSERT_EQ(0, attach(self->a, 0));
	EXPECT_EQ(-EPERM, as_nobody(nobody_force, NULL));
	ASSERT_EQ(0, mkdir(CONFIG "/" DEV_NAME "/a", 0755));
	EXPECT_EQ(-EBUSY, force_device(self->admin));
	/* and nobody was sent away for that */
	EXPECT_EQ(0, submit(self->a, 0, 1, 0));
	EXPECT_EQ(0, rmdir(CONFIG "/" DEV_NAME "/a"));
	ASSERT_EQ(0, attach(self->b, 0));
	close(self->a);
	self->a = gopen();
	close(self->b);
	self->b = gopen();
}

/* One holds the device, one waits in SUBMIT: both are told, and nothing of theirs is left */
TEST_F(call, device_del_by_force)
{
	struct gsched_attach req;
	const volatile struct gsched_arb_page *arb;
	struct gsched_event event[2];
	struct pollfd p = { .fd = self->a, .events = POLLIN };
	char text[256];
	int status;
	pid_t pid;

	ASSERT_EQ(0, attach_as(self->a, 0, &req));
	arb = map_arb(self->a, &req);
	ASSERT_NE(MAP_FAILED, arb);
	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	pid = fork();
	if (!pid) {
		int fd = gopen();

		_exit(attach(fd, 0) ? 1 : -submit(fd, 0, 1, 0));
	}
	do {
		usleep(1000);
		slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/events");
	} while (stat_of(text, "throttled") < 1);
	EXPECT_EQ(0, force_device(self->admin));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(ENODEV, WEXITSTATUS(status));
	EXPECT_NE(0, access(SYSFS "/" DEV_NAME, F_OK));
	EXPECT_NE(0, access(CONFIG "/" DEV_NAME, F_OK));
	EXPECT_EQ(GSCHED_LEASE_NONE, arb->header.lease);
	EXPECT_EQ(WHOLE, arb->slot[0].window);
	EXPECT_EQ(-ENODEV, submit(self->a, 1, 1, 0));
	EXPECT_EQ(-ENODEV, complete(self->a, 0, 1));
	EXPECT_EQ(-ENODEV, report_activity(self->a, GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 8192, PROT_READ, MAP_SHARED, self->a, 0));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLIN | POLLHUP, p.revents);
	EXPECT_EQ(sizeof(event[0]), read(self->a, event, sizeof(event)));
	EXPECT_EQ(GSCHED_EVENT_GONE, event[0].type);
	EXPECT_NE(0, event[0].time_ns);
	EXPECT_EQ(-1, read(self->a, event, sizeof(event)));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLERR | POLLHUP, p.revents);
	EXPECT_EQ(-EBUSY, attach(self->a, 0));
	EXPECT_EQ(-ENOENT, attach(self->b, 0));
	EXPECT_EQ(-ENOENT, force_device(self->admin));
	munmap((void *)arb, req.arb_size);
	/* the device can come again while the old one's file is open */
	ASSERT_EQ(0, add_device(self->admin, DEV_NAME, dev_uuid, DEV_SMS));
	EXPECT_EQ(0, attach(self->b, 0));
	EXPECT_EQ(0, submit(self->b, 0, 1, 0));
	close(self->b);
	self->b = gopen();
}

/* Places for clients of @kib KiB each in 1/1024 of the memory, within bounds */
static long long places(long long mem_kib, long long kib)
{
	long long n = mem_kib / 1024 / kib;

	return n < 64 ? 64 : n > 512 ? 512 : n;
}

TEST_F(call, too_many_clients)
{
	char text[32], meminfo[4096];
	long long mem_kib, n;
	int c = gopen();

	ASSERT_EQ(0, slurp(meminfo, sizeof(meminfo), "/proc/meminfo") < 0);
	mem_kib = stat_of(meminfo, "MemTotal:");
	ASSERT_LT(0, mem_kib);
	ASSERT_EQ(0, slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/clients_max") < 0);
	/* a client has 16 KiB of pages, and as much again in the arbiter */
	n = atoll(text);
	EXPECT_LE(places(mem_kib, 48), n);
	EXPECT_GE(places(mem_kib, 32), n);
	EXPECT_EQ(-EINVAL, put("many", SYSFS "/" DEV_NAME "/clients_max"));
	EXPECT_EQ(-EINVAL, put("-1", SYSFS "/" DEV_NAME "/clients_max"));
	EXPECT_EQ(-ERANGE, put("4294967296", SYSFS "/" DEV_NAME "/clients_max"));
	ASSERT_EQ(0, put("2", SYSFS "/" DEV_NAME "/clients_max"));
	ASSERT_EQ(0, attach(self->a, 0));
	ASSERT_EQ(0, attach(self->b, 0));
	EXPECT_EQ(-ENOSPC, attach(c, 0));
	/* what is refused may be tried again */
	close(self->b);
	self->b = gopen();
	EXPECT_EQ(0, attach(c, 0));
	/* a lower bound sends nobody away */
	ASSERT_EQ(0, put("0", SYSFS "/" DEV_NAME "/clients_max"));
	EXPECT_EQ(0, submit(c, 0, 1, 0));
	EXPECT_EQ(-ENOSPC, attach(self->b, 0));
	close(c);
	close(self->a);
	self->a = gopen();
}

TEST_F(call, attach)
{
	struct gsched_attach req;

	ASSERT_EQ(0, attach_as(self->a, GSCHED_ATTACH_MPS, &req));
	EXPECT_EQ(DEV_SMS, req.sms);
	EXPECT_EQ(sizeof(struct gsched_arb_page), req.arb_size);
	EXPECT_EQ(sizeof(struct gsched_cl_page), req.cl_size);
	EXPECT_NE(0, req.client_id);
	EXPECT_EQ(GSCHED_MODE_SPATIAL, req.mode);
	EXPECT_EQ(-EBUSY, attach(self->a, 0));
}

TEST_F(call, attach_of_a_server)
{
	struct gsched_attach req;

	ASSERT_EQ(0, attach_band(self->a, GSCHED_ATTACH_SERVER | GSCHED_ATTACH_SLICE, 5, &req));
	EXPECT_EQ(-EINVAL, submit(self->a, 0, 1, 0));
	EXPECT_EQ(-EINVAL, submit(self->a, 0, 1, GSCHED_SUBMIT_NOWAIT));
	EXPECT_EQ(0, report_slice(self->a, 2048, 0));
}

TEST_F(call, report_bad_input)
{
	struct gsched_report good = {
		.size = sizeof(good),
		.flags = GSCHED_REPORT__ALL,
		.activity = GSCHED_ACTIVITY_BUSY,
		.slice_us = 2048,
	};
	struct gsched_report req = good;

	ASSERT_EQ(0, attach(self->a, 0));
	req.flags = GSCHED_REPORT__ALL + 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req = good;
	req.prioritised = 2;
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req = good;
	req.activity = GSCHED_ACTIVITY_BUSY + 1;
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req.activity = ~0u;
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req = good;
	req.slice_error = 4096;
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req = good;
	req.__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req = good;
	req.flags = GSCHED_REPORT_ASKS;
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req = good;
	req.memory = GSCHED_MEMORY_MAX + 1;
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req = good;
	req.size = offsetof(struct gsched_report, block_us);
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	/* an older one ends with block_us; what lies behind it is neither read nor written */
	req.__reserved = 1;
	req.memory = GSCHED_MEMORY_MAX + 1;
	req.size = offsetof(struct gsched_report, __reserved);
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	EXPECT_EQ(GSCHED_MEMORY_MAX + 1, req.memory);
	/* and the good one still goes, also with the largest numbers there are */
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_REPORT, &good));
	req = good;
	req.slice_us = ~0u;
	req.slice_error = 4095;
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_REPORT, &req));
	req.flags = 0;
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_REPORT, &req));
}

TEST_F(call, attach_bad_input)
{
	struct gsched_attach req = { .size = sizeof(req) };

	EXPECT_EQ(-ENOENT, xioctl(self->a, GSCHED_IOC_ATTACH, &req));
	EXPECT_EQ(-EOPNOTSUPP, attach(self->a, GSCHED_ATTACH__ALL + 1));
	memcpy(req.uuid, dev_uuid, sizeof(req.uuid));
	req.__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_ATTACH, &req));
	/* none of it left the file attached */
	EXPECT_EQ(-ENOTCONN, submit(self->a, 0, 1, 0));
	EXPECT_EQ(0, attach(self->a, 0));
}

TEST_F(call, not_attached)
{
	struct gsched_event event;
	struct pollfd p = { .fd = self->a, .events = POLLIN };

	EXPECT_EQ(-ENOTCONN, submit(self->a, 0, 1, 0));
	EXPECT_EQ(-ENOTCONN, complete(self->a, 0, 1));
	EXPECT_EQ(-ENOTCONN, report_activity(self->a, GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 8192, PROT_READ, MAP_SHARED, self->a, 0));
	EXPECT_EQ(ENOTCONN, errno);
	EXPECT_EQ(-1, read(self->a, &event, sizeof(event)));
	EXPECT_EQ(ENOTCONN, errno);
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLERR, p.revents);
}

TEST_F(call, submit_and_complete)
{
	struct gsched_submit req = task(0, 7, 0);

	ASSERT_EQ(0, attach(self->a, 0));
	ASSERT_EQ(0, xioctl(self->a, GSCHED_IOC_SUBMIT, &req));
	EXPECT_EQ(WHOLE, req.window);
	EXPECT_EQ(-EBUSY, submit(self->a, 0, 8, 0));
	EXPECT_EQ(-ENOENT, complete(self->a, 0, 8));
	EXPECT_EQ(-ENOENT, complete(self->a, 1, 7));
	EXPECT_EQ(0, complete(self->a, 0, 7));
	EXPECT_EQ(-ENOENT, complete(self->a, 0, 7));
}

TEST_F(call, submit_stream)
{
	struct gsched_submit req = task(0, 7, 0);
	char text[4096];

	ASSERT_EQ(0, attach(self->a, 0));
	req.stream = 987654321987654321ULL;
	ASSERT_EQ(0, xioctl(self->a, GSCHED_IOC_SUBMIT, &req));
	ASSERT_EQ(0, submit(self->a, 1, 8, 0));
	slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/slots");
	EXPECT_NE(NULL, strstr(text, " stream 987654321987654321\n"));
	EXPECT_NE(NULL, strstr(text, "slot 1 seq 8 "));
	EXPECT_NE(NULL, strstr(strstr(text, "slot 1 "), " stream 0"));
}

TEST_F(call, submit_bad_numbers)
{
	struct gsched_submit good = task(0, 1, GSCHED_SUBMIT_NOWAIT), req;

	ASSERT_EQ(0, attach(self->a, 0));
#define REFUSED(field, value) do { \
		req = good; \
		req.field = value; \
		EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_SUBMIT, &req)) TH_LOG(#field " = " #value); \
	} while (0)
	REFUSED(slot, GSCHED_SLOTS);
	REFUSED(slot, ~0u);
	REFUSED(seq, 0);
	REFUSED(tier, GSCHED_TIER_LAUNCH + 1);
	REFUSED(intensity, GSCHED_INTENSITY__MAX + 1);
	REFUSED(blocks_per_sm, 0);
	REFUSED(blocks_per_sm, 33);
	REFUSED(blocks, 0);
	req = good;
	req.flags = GSCHED_SUBMIT__ALL + 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_SUBMIT, &req));
	/* reserved: there is nothing yet that would confine it */
	req = good;
	req.tier = GSCHED_TIER_SLICE;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_SUBMIT, &req));
	/* and the good one still goes, whatever is in the words of the answer */
	good.state = ~0u;
	good.window = ~0ULL;
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_SUBMIT, &good));
	EXPECT_EQ(GSCHED_STATE_GRANTED, good.state);
	EXPECT_EQ(WHOLE, good.window);
}

TEST_F(call, submit_extremes)
{
	struct gsched_submit req = task(GSCHED_SLOTS - 1, ~0u, GSCHED_SUBMIT_NOWAIT);

	ASSERT_EQ(0, attach(self->a, 0));
	req.blocks = req.predicted_ns = req.block_ns = ~0ULL;
	req.blocks_per_sm = 32;
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_SUBMIT, &req));
	EXPECT_GE(WHOLE, req.window);
	EXPECT_EQ(0, complete(self->a, GSCHED_SLOTS - 1, ~0u));
}

TEST_F(call, complete_bad_numbers)
{
	struct gsched_complete req = { .size = sizeof(req), .slot = GSCHED_SLOTS, .seq = 1 };

	ASSERT_EQ(0, attach(self->a, 0));
	EXPECT_EQ(-EINVAL, xioctl(self->a, GSCHED_IOC_COMPLETE, &req));
	req.slot = 0;
	req.flags = GSCHED_COMPLETE__ALL + 1;
	EXPECT_EQ(-EOPNOTSUPP, xioctl(self->a, GSCHED_IOC_COMPLETE, &req));
	req.flags = 0;
	EXPECT_EQ(-ENOENT, xioctl(self->a, GSCHED_IOC_COMPLETE, &req));
	/* a lie about the time is bounded, not refused */
	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	req.ran_ns = ~0ULL;
	EXPECT_EQ(0, xioctl(self->a, GSCHED_IOC_COMPLETE, &req));
}

TEST_F(call, nowait_is_queued_and_keeps_its_place)
{
	struct gsched_event event;

	ASSERT_EQ(0, attach(self->a, 0));
	ASSERT_EQ(0, attach(self->b, 0));
	ASSERT_EQ(0, submit(self->a, 0, 1, 0));
	EXPECT_EQ(QUEUED, submit(self->b, 3, 9, GSCHED_SUBMIT_NOWAIT));
	EXPECT_EQ(-EBUSY, submit(self->b, 3, 10, GSCHED_SUBMIT_NOWAIT));
	EXPECT_EQ(0, complete(self->a, 0, 1));
	ASSERT_TRUE(next_event(self->b, &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	EXPECT_EQ(3, event.slot);
	EXPECT_EQ(9, event.seq);
	EXPECT_EQ(WHOLE, event.window);
	EXPECT_EQ(0, complete(self->b, 3, 9));
}

/* A grant that cannot be told is taken back */
TEST_F(call, submit_answer_faults)
{
	struct gsched_submit *req =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_EQ(0, attach(self->a, 0));
	*req = task(0, 1, 0);
	ASSERT_EQ(0, mprotect(req, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, xioctl(self->a, GSCHED_IOC_SUBMIT, req));
	EXPECT_EQ(0, submit(self->a, 0, 2, 0));
}

TEST_HARNESS_MAIN
