// SPDX-License-Identifier: GPL-2.0-only
/*
 * The two mappings: what may be mapped how, what they say, and that a GPU's driver can pin them for
 * long.
 */
#include "common.h"
#include "kselftest_harness.h"
#include "pin/gsched_pin.h"

FIXTURE(page) {
	int admin, fd;
	struct gsched_attach req;
};

FIXTURE_SETUP(page)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->fd = gopen();
	ASSERT_EQ(0, attach_as(self->fd, 0, &self->req));
}

FIXTURE_TEARDOWN(page)
{
	close(self->fd);
	del_device(self->admin, dev_uuid);
	close(self->admin);
}

#define REFUSES(err, size, prot, flags, fd, offset) do { \
		EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot, flags, fd, offset)); \
		EXPECT_EQ(err, errno); \
	} while (0)

TEST_F(page, bad_mappings)
{
	const size_t arb = self->req.arb_size, cl = self->req.cl_size;
	const off_t arb_at = self->req.arb_offset, cl_at = self->req.cl_offset;
	const size_t page = sysconf(_SC_PAGESIZE);
	int ro = open(GSCHED_DEVICE_NODE, O_RDONLY);

	REFUSES(EACCES, arb, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, arb_at);
	REFUSES(EINVAL, arb, PROT_READ, MAP_PRIVATE, self->fd, arb_at);
	REFUSES(EINVAL, cl, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, cl_at);
	REFUSES(EINVAL, arb + page, PROT_READ, MAP_SHARED, self->fd, arb_at);
	/* which is a page, or more */
	if (arb > page)
		REFUSES(EINVAL, page, PROT_READ, MAP_SHARED, self->fd, arb_at);
	if (cl > page)
		REFUSES(EINVAL, cl - page, PROT_READ, MAP_SHARED, self->fd, cl_at);
	REFUSES(EINVAL, arb, PROT_READ, MAP_SHARED, self->fd, arb_at + page);
	REFUSES(EINVAL, cl, PROT_READ, MAP_SHARED, self->fd, cl_at + cl);
	REFUSES(EINVAL, cl, PROT_READ, MAP_SHARED, self->fd, (off_t)1 << 40);
	ASSERT_GE(ro, 0);
	ASSERT_EQ(0, attach(ro, 0));
	REFUSES(EACCES, cl, PROT_READ | PROT_WRITE, MAP_SHARED, ro, cl_at);
	close(ro);
}

TEST_F(page, arbiter_page_cannot_become_writable)
{
	void *arb = (void *)map_arb(self->fd, &self->req);

	ASSERT_NE(MAP_FAILED, arb);
	EXPECT_EQ(-1, mprotect(arb, self->req.arb_size, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

/* /proc/self/mem writes where the mapping does not allow it, if it can */
TEST_F(page, arbiter_page_is_not_forced)
{
	void *arb = (void *)map_arb(self->fd, &self->req);
	int mem = open("/proc/self/mem", O_RDWR);
	unsigned int word = 77;

	ASSERT_NE(MAP_FAILED, arb);
	ASSERT_GE(mem, 0);
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)(uintptr_t)arb));
	close(mem);
}

TEST_F(page, header)
{
	const volatile struct gsched_arb_page *arb = map_arb(self->fd, &self->req);
	int other = gopen();

	ASSERT_NE(MAP_FAILED, arb);
	EXPECT_EQ(DEV_SMS, arb->header.sms);
	EXPECT_EQ(self->req.mode, arb->header.mode);
	EXPECT_EQ(self->req.priority, arb->header.priority);
	EXPECT_EQ(GSCHED_LEASE_FREE, arb->header.lease);
	EXPECT_EQ(WHOLE, arb->slot[5].window);
	EXPECT_EQ(GSCHED_MODE_SPATIAL, arb->header.mode);
	EXPECT_EQ(1, arb->header.bands);
	EXPECT_EQ(GSCHED_SHARE_ALL, arb->header.share);
	EXPECT_EQ(GSCHED_ARB_ALONE, arb->header.flags);
	EXPECT_EQ(0, arb->header.slice_us);
	EXPECT_EQ(0, arb->header.in_flight_us);
	ASSERT_EQ(0, attach(other, 0));
	EXPECT_EQ(GSCHED_MODE_TEMPORAL, arb->header.mode);
	EXPECT_EQ(2, arb->header.bands);
	ASSERT_EQ(0, submit(other, 0, 1, 0));
	EXPECT_NE(GSCHED_LEASE_FREE, arb->header.lease);
	close(other);
	EXPECT_EQ(GSCHED_LEASE_FREE, arb->header.lease);
}

TEST_F(page, window_of_a_task)
{
	const volatile struct gsched_arb_page *arb = map_arb(self->fd, &self->req);
	struct gsched_submit req = task(2, 1, 0);
	unsigned int generation;

	ASSERT_NE(MAP_FAILED, arb);
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &req));
	EXPECT_EQ(req.window, arb->slot[2].window);
	generation = arb->slot[2].generation;
	ASSERT_EQ(0, put("4", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(4 * GSCHED_CAPSM, arb->slot[2].window);
	EXPECT_LT(generation, arb->slot[2].generation);
	/* an empty slot may use no more */
	EXPECT_GE(4 * GSCHED_CAPSM, arb->slot[3].window);
}

/*
 * A launch under a lease that the arbiter was not told of is found when the lease ends, and goes by
 * its own page
 */
TEST_F(page, leased_launch_is_found)
{
	const volatile struct gsched_arb_page *arb = map_arb(self->fd, &self->req);
	volatile struct gsched_cl_page *cl = map_cl(self->fd, &self->req);
	struct gsched_event event;
	char text[4096];
	int other = gopen();

	ASSERT_EQ(GSCHED_LEASE_FREE, arb->header.lease);
	cl->slot[4].blocks = 1000;
	cl->slot[4].predicted_ns = 1000000;
	cl->slot[4].tier = GSCHED_TIER_BLOCK;
	cl->slot[4].blocks_per_sm = 4;
	cl->slot[4].stream = 4711;
	cl->slot[4].seq = 11;
	ASSERT_EQ(0, attach(other, 0));
	slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/slots");
	EXPECT_NE(NULL, strstr(text, "slot 4 seq 11 tier 0 blocks 1000 ")) TH_LOG("%s", text);
	EXPECT_NE(NULL, strstr(text, " stream 4711"));
	/* a worker of a quarter of an SM fits, one of the whole SM would not */
	ASSERT_EQ(0, put("0.5", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(GSCHED_CAPSM / 2, arb->slot[4].window);
	ASSERT_EQ(0, put("max", CONFIG "/" DEV_NAME "/capsm.max"));
	/* temporal mode: the found task holds the device */
	EXPECT_EQ(QUEUED, submit(other, 0, 1, GSCHED_SUBMIT_NOWAIT));
	ASSERT_TRUE(next_event(self->fd, &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	EXPECT_EQ(4, event.slot);
	EXPECT_EQ(11, event.seq);
	/* its stream says that it is over: no call of the client needed */
	cl->slot[4].retired = 11;
	ASSERT_TRUE(next_event(other, &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	close(other);
}

/*
 * The same, but the client notices that its lease was withdrawn and submits what the arbiter found
 * already
 */
TEST_F(page, leased_launch_is_submitted_too)
{
	volatile struct gsched_cl_page *cl = map_cl(self->fd, &self->req);
	int other = gopen();

	cl->slot[0].blocks = 1000;
	cl->slot[0].seq = 5;
	ASSERT_EQ(0, attach(other, 0));
	EXPECT_EQ(QUEUED, submit(other, 0, 1, GSCHED_SUBMIT_NOWAIT));
	EXPECT_NE(-EBUSY, submit(self->fd, 0, 5, GSCHED_SUBMIT_NOWAIT));
	EXPECT_EQ(0, complete(self->fd, 0, 5));
	close(other);
}

/* Nonsense in the client's page hurts nobody */
TEST_F(page, garbage_in_the_client_page)
{
	volatile struct gsched_cl_page *cl = map_cl(self->fd, &self->req);
	char text[4096];
	int other = gopen();
	unsigned int i;

	ASSERT_NE(MAP_FAILED, cl);
	memset((void *)cl, 0xff, self->req.cl_size);
	EXPECT_GT(slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%d/why", getpid()), 0);
	EXPECT_EQ(255, strlen(text));
	/* everything is retired, says the page: nothing to find */
	ASSERT_EQ(0, attach(other, 0));
	EXPECT_EQ(0, submit(other, 0, 1, GSCHED_SUBMIT_NOWAIT));
	close(other);
	/* now nothing is */
	for (i = 0; i < GSCHED_SLOTS; i++)
		cl->slot[i].retired = cl->slot[i].finished = 0;
	EXPECT_GT(slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/slots"), 0);
	other = gopen();
	ASSERT_EQ(0, attach(other, 0));
	EXPECT_EQ(QUEUED, submit(other, 0, 1, GSCHED_SUBMIT_NOWAIT));
	slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/stat");
	EXPECT_EQ(GSCHED_SLOTS, stat_of(text, "adopted"));
	EXPECT_GT(slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/slots"), 0);
	close(other);
}

FIXTURE(pin) {
	int admin, fd, pin;
	struct gsched_attach req;
	const volatile struct gsched_arb_page *arb;
	volatile struct gsched_cl_page *cl;
};

FIXTURE_SETUP(pin)
{
	self->pin = open("/dev/gsched_pin", O_RDWR | O_CLOEXEC);
	if (self->pin < 0)
		SKIP(return, "gsched_pin.ko is not loaded");
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->fd = gopen();
	ASSERT_EQ(0, attach_as(self->fd, 0, &self->req));
	self->arb = map_arb(self->fd, &self->req);
	self->cl = map_cl(self->fd, &self->req);
	ASSERT_NE(MAP_FAILED, self->arb);
	ASSERT_NE(MAP_FAILED, self->cl);
}

FIXTURE_TEARDOWN(pin)
{
	RETURN_IF_SKIPPED();
	close(self->pin);
	close(self->fd);
	del_device(self->admin, dev_uuid);
	close(self->admin);
}

static int pin(int fd, const volatile void *address, size_t size, bool write)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct gsched_pin_range range = { .address = (uintptr_t)address,
					  .pages = (size + page - 1) / page,
					  .write = write };

	return xioctl(fd, GSCHED_PIN_PIN, &range);
}

static unsigned long long peek(int fd, size_t offset)
{
	struct gsched_pin_word word = { .offset = offset };

	return xioctl(fd, GSCHED_PIN_READ, &word) ? ~0ULL : word.value;
}

TEST_F(pin, client_page_both_ways)
{
	struct gsched_pin_word word = { .offset = offsetof(struct gsched_cl_page, slot[3].start_ns),
					.value = 12345 };

	RETURN_IF_SKIPPED();
	ASSERT_EQ(0, pin(self->pin, self->cl, self->req.cl_size, true));
	ASSERT_EQ(0, xioctl(self->pin, GSCHED_PIN_WRITE, &word));
	EXPECT_EQ(12345, self->cl->slot[3].start_ns);
	self->cl->slot[3].end_ns = 99;
	EXPECT_EQ(99, peek(self->pin, offsetof(struct gsched_cl_page, slot[3].end_ns)));
	EXPECT_EQ(0, xioctl(self->pin, GSCHED_PIN_UNPIN, NULL));
}

TEST_F(pin, arbiter_page_read_only)
{
	RETURN_IF_SKIPPED();
	EXPECT_EQ(-EFAULT, pin(self->pin, self->arb, self->req.arb_size, true));
	ASSERT_EQ(0, pin(self->pin, self->arb, self->req.arb_size, false));
}

/* What the arbiter decides is seen through the pin: no process is woken for it */
TEST_F(pin, limit_is_seen_through_the_pin)
{
	const size_t window = offsetof(struct gsched_arb_page, slot[1].window);

	RETURN_IF_SKIPPED();
	ASSERT_EQ(0, pin(self->pin, self->arb, self->req.arb_size, false));
	ASSERT_EQ(0, submit(self->fd, 1, 1, 0));
	EXPECT_EQ(WHOLE, peek(self->pin, window));
	ASSERT_EQ(0, put("3", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(3 * GSCHED_CAPSM, peek(self->pin, window));
	ASSERT_EQ(0, put("max", CONFIG "/" DEV_NAME "/capsm.max"));
	EXPECT_EQ(WHOLE, peek(self->pin, window));
}

/*
 * Unmapped, closed, and still pinned: the pin keeps its pages, and the GPU that reads them finds no
 * capacity
 */
TEST_F(pin, outlives_mapping_and_file)
{
	const size_t window = offsetof(struct gsched_arb_page, slot[1].window);

	RETURN_IF_SKIPPED();
	ASSERT_EQ(0, submit(self->fd, 1, 1, 0));
	ASSERT_EQ(0, pin(self->pin, self->arb, self->req.arb_size, false));
	ASSERT_EQ(0, munmap((void *)self->arb, self->req.arb_size));
	ASSERT_EQ(0, munmap((void *)self->cl, self->req.cl_size));
	ASSERT_EQ(0, close(self->fd));
	EXPECT_EQ(0, peek(self->pin, window));
	ASSERT_EQ(0, del_device(self->admin, dev_uuid));
	EXPECT_EQ(0, peek(self->pin, window));
	EXPECT_EQ(0, xioctl(self->pin, GSCHED_PIN_UNPIN, NULL));
	self->fd = -1;
}

/* A process with a pin is killed */
TEST_F(pin, killed_with_a_pin)
{
	pid_t pid = fork();

	RETURN_IF_SKIPPED();
	if (pid == 0) {
		struct gsched_attach req;
		int fd = gopen(), p = open("/dev/gsched_pin", O_RDWR);
		volatile struct gsched_cl_page *cl;

		if (attach_as(fd, 0, &req) == 0) {
			cl = map_cl(fd, &req);
			if (pin(p, cl, req.cl_size, true) == 0)
				raise(SIGKILL);
		}
		_exit(1);
	}
	ASSERT_EQ(pid, waitpid(pid, &pid, 0));
	EXPECT_TRUE(WIFSIGNALED(pid));
}

/* A child has neither the mappings nor, once the parent is gone, the client */
TEST_F(page, mappings_are_not_inherited)
{
	const volatile struct gsched_arb_page *arb = map_arb(self->fd, &self->req);
	int status;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, arb);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(arb->header.sms != 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_HARNESS_MAIN
