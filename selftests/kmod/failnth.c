// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation fails once: the nth one of each operation, for n = 1, 2, ... until it succeeds.
 * An operation that fails says ENOMEM and leaves nothing behind. One that succeeds is told to all
 * listeners of the netlink events, or a listener is told that it missed something. Needs a kernel
 * with fault injection.
 */
#include <sys/syscall.h>

#include "common.h"
#include "kselftest_harness.h"
#include "netlink.h"

#define FAIL_NTH	"/proc/self/task/%d/fail-nth"
#define NTH_MAX		500

/* For a second listener the message is cloned */
#define LISTENERS	2

FIXTURE(failnth) {
	int admin, nth, listener[LISTENERS];
};

static int join(int nl, int mcgrp)
{
	return setsockopt(nl, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &mcgrp, sizeof(mcgrp)) ?
	       -errno : 0;
}

/* A socket in both multicast groups, or -errno */
static int listen_to_all(void)
{
	static int events, tasks;
	int nl = nl_open(), ret = 0;

	if (nl < 0)
		return -ENOMEM;
	if (!events)
		ret = nl_family(nl, GSCHED_MCGRP_EVENTS, &events);
	if (ret >= 0 && !tasks)
		ret = nl_family(nl, GSCHED_MCGRP_TASKS, &tasks);
	if (ret >= 0)
		ret = join(nl, events) ?: join(nl, tasks);
	if (ret >= 0)
		return nl;
	close(nl);
	return ret;
}

FIXTURE_SETUP(failnth)
{
	char path[64];
	int i;

	snprintf(path, sizeof(path), FAIL_NTH, (int)syscall(SYS_gettid));
	self->nth = open(path, O_RDWR | O_CLOEXEC);
	if (self->nth < 0)
		SKIP(return, "no fault injection in this kernel");
	put("N", "/sys/kernel/debug/failslab/ignore-gfp-wait");
	put("N", "/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait");
	put("0", "/sys/kernel/debug/fail_page_alloc/min-order");
	put("0", "/sys/kernel/debug/failslab/verbose");
	put("0", "/sys/kernel/debug/fail_page_alloc/verbose");
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	for (i = 0; i < LISTENERS; i++) {
		self->listener[i] = listen_to_all();
		ASSERT_LE(0, self->listener[i]);
	}
}

FIXTURE_TEARDOWN(failnth)
{
	int i;

	RETURN_IF_SKIPPED();
	for (i = 0; i < LISTENERS; i++)
		close(self->listener[i]);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

static void arm(int fd, int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(fd, text, len, 0) != len)
		abort();
}

/* Did the nth allocation happen, and fail? */
static bool disarm(int fd)
{
	char text[16] = "";
	bool fired;

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		abort();
	fired = atoi(text) == 0;
	arm(fd, 0);
	return fired;
}

static int op_open_attach(void)
{
	int fd = gopen(), ret;

	if (fd < 0)
		return -errno;
	ret = attach(fd, 0);
	if (!ret)
		ret = submit(fd, 0, 1, 0);
	if (!ret)
		ret = report_activity(fd, GSCHED_ACTIVITY_BUSY);
	if (!ret)
		ret = report_slice(fd, 2048, 0);
	close(fd);
	return ret;
}

/* To unmap takes memory, too */
static void unmap(void *at, size_t size)
{
	while (at != MAP_FAILED && munmap(at, size) && errno == ENOMEM)
		;
}

static int op_map(void)
{
	struct gsched_attach req;
	int fd = gopen(), ret;
	void *arb, *cl;

	if (fd < 0)
		return -errno;
	ret = attach_as(fd, 0, &req);
	if (!ret) {
		arb = (void *)map_arb(fd, &req);
		ret = arb == MAP_FAILED ? -errno : 0;
		cl = (void *)map_cl(fd, &req);
		if (cl == MAP_FAILED)
			ret = -errno;
		unmap(cl, req.cl_size);
		unmap(arb, req.arb_size);
	}
	close(fd);
	return ret;
}

static int op_device(void)
{
	static const unsigned char other[GSCHED_UUID_SIZE] = "another-device!";
	int fd = gopen(), ret;

	if (fd < 0)
		return -errno;
	ret = add_device(fd, "other", other, 4);
	if (!ret)
		ret = del_device(fd, other);
	close(fd);
	return ret;
}

static int op_group(void)
{
	int ret = mkdir(CONFIG "/" DEV_NAME "/a", 0755) ? -errno : 0;

	if (ret)
		return ret;
	ret = put("0", CONFIG "/" DEV_NAME "/a/procs");
	if (!ret)
		ret = put("/", CONFIG "/" DEV_NAME "/a/cgroup");
	if (!ret)
		ret = put("red", CONFIG "/" DEV_NAME "/a/gpu.band");
	if (!ret)
		ret = put("1000", CONFIG "/" DEV_NAME "/a/gpu.latency_target_us");
	if (!ret)
		ret = put("65534", CONFIG "/" DEV_NAME "/a/owner");
	while (rmdir(CONFIG "/" DEV_NAME "/a") && errno == ENOMEM)
		;
	return ret;
}

/* Undoes what an operation wrote, also while allocations fail */
static void reset(const char *text, const char *path)
{
	while (put(text, "%s", path) == -ENOMEM)
		;
}

static int op_complete(void)
{
	struct gsched_event event;
	int fd = gopen(), ret;

	if (fd < 0)
		return -errno;
	ret = attach(fd, 0);
	if (!ret)
		ret = submit(fd, 0, 1, 0);
	if (!ret)
		ret = put("4", CONFIG "/" DEV_NAME "/capsm.max");
	/* what the new quota brought: one of the task, and of its band */
	while (!ret && read(fd, &event, sizeof(event)) < 0)
		ret = -errno;
	if (!ret)
		ret = put("8", CONFIG "/" DEV_NAME "/capsm.max");
	if (!ret)
		ret = complete(fd, 0, 1);
	if (!ret)
		ret = submit(fd, 0, 2, 0);
	close(fd);
	reset("max", CONFIG "/" DEV_NAME "/capsm.max");
	return ret;
}

static int op_trigger(void)
{
	int pressure = open(CONFIG "/" DEV_NAME "/gpu.pressure", O_RDONLY | O_CLOEXEC), fd, ret = 0;
	struct pollfd p = { .events = POLLPRI };
	char text[64];

	if (pressure < 0)
		return -errno;
	fd = gopen();
	snprintf(text, sizeof(text), "%d some 100000 500000", pressure);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ret = -errno;
	p.fd = fd;
	if (!ret && poll(&p, 1, 0))
		ret = -EIO;
	close(pressure);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* The second band has the first one report, and set a time slice */
static int op_bands(void)
{
	struct gsched_attach req;
	int fd = gopen(), other, ret;

	if (fd < 0)
		return -errno;
	ret = attach_band(fd, GSCHED_ATTACH_SLICE, 1, &req);
	other = ret ? -1 : gopen();
	if (!ret && other < 0)
		ret = -errno;
	if (!ret)
		ret = attach_band(other, GSCHED_ATTACH_SLICE, 2, &req);
	if (other >= 0)
		close(other);
	close(fd);
	return ret;
}

/* The files of this process's client */
static int op_client_files(void)
{
	static const char *const write[][2] = { { "capsm.max", "4" },
						{ "gpu.weight", "50" },
						{ "gpu.priority", "0" } };
	static const char *const read[] = { "usage", "group", "band", "comm" };
	char text[4096];
	int fd = gopen(), ret;
	unsigned int i;

	if (fd < 0)
		return -errno;
	ret = attach(fd, 0);
	for (i = 0; !ret && i < ARRAY_SIZE(write); i++)
		ret = put(write[i][1], SYSFS "/" DEV_NAME "/tasks/%d/%s", getpid(), write[i][0]);
	for (i = 0; ret >= 0 && i < ARRAY_SIZE(read); i++)
		ret = slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%d/%s", getpid(),
			    read[i]);
	close(fd);
	return ret < 0 ? ret : 0;
}

/* Group a is there */
static int op_device_files(void)
{
	static const char *const files[][3] = {
		{ "policy", "wfq", "hpf" }, { "mode", "spatial", "auto" },
		{ "switch_us", "200", "137" }, { "max_overhead", "50", "100" },
		{ "max_slowdown", "150", "130" }, { "clients_max", "64", "512" },
		{ "plan", "1000 a=4", "none" }, { "unmanaged_busy", "1", "0" },
	};
	char path[128];
	int ret = 0;
	unsigned int i;

	for (i = 0; !ret && i < ARRAY_SIZE(files); i++)
		ret = put(files[i][1], SYSFS "/" DEV_NAME "/%s", files[i][0]);
	for (i = ARRAY_SIZE(files); i--;) {
		snprintf(path, sizeof(path), SYSFS "/" DEV_NAME "/%s", files[i][0]);
		reset(files[i][2], path);
	}
	return ret;
}

/* A device that is taken from a client which has a task on it */
static int op_forced_delete(void)
{
	static const unsigned char other[GSCHED_UUID_SIZE] = "another-device!";
	struct gsched_device_del del = { .size = sizeof(del), .flags = GSCHED_DEVICE_DEL_FORCE };
	struct gsched_attach req = { .size = sizeof(req) };
	int admin = gopen(), fd = gopen(), ret;
	struct gsched_event event;

	memcpy(del.uuid, other, sizeof(other));
	memcpy(req.uuid, other, sizeof(other));
	ret = admin < 0 || fd < 0 ? -ENOMEM : add_device(admin, "other", other, 4);
	if (!ret)
		ret = xioctl(fd, GSCHED_IOC_ATTACH, &req);
	if (!ret)
		ret = submit(fd, 0, 1, 0);
	if (!ret)
		ret = xioctl(admin, GSCHED_IOC_DEVICE_DEL, &del);
	if (!ret &&
	    (read(fd, &event, sizeof(event)) != sizeof(event) || event.type != GSCHED_EVENT_GONE))
		ret = -EPROTO;
	if (!ret && submit(fd, 1, 1, 0) != -ENODEV)
		ret = -EPROTO;
	while (admin >= 0 && xioctl(admin, GSCHED_IOC_DEVICE_DEL, &del) == -ENOMEM)
		;
	close(fd);
	close(admin);
	return ret;
}

static int nl_id;	/* of the family */

/* A socket that has no memory for a part of a dump says ENOBUFS */
static int op_dump(void)
{
	static const int cmds[] = { GSCHED_CMD_DEVICE_GET, GSCHED_CMD_GROUP_GET,
				    GSCHED_CMD_CLIENT_GET, GSCHED_CMD_TASK_GET,
				    GSCHED_CMD_BAND_GET };
	unsigned int i;
	int ret = 0, nl = nl_open();

	if (nl < 0)
		return -ENOMEM;
	for (i = 0; ret >= 0 && i < ARRAY_SIZE(cmds); i++) {
		struct nl_request req = nl_request(nl_id, cmds[i], NLM_F_DUMP);

		ret = nl_send(nl, &req, req.head.nlmsg_len);
		if (!ret)
			ret = nl_answers(nl, NULL, NULL, NULL);
	}
	close(nl);
	return ret == -ENOBUFS ? -ENOMEM : ret < 0 ? ret : 0;
}

static int op_listen(void)
{
	int nl = listen_to_all();

	if (nl < 0)
		return nl == -ENOBUFS ? -ENOMEM : nl;
	close(nl);
	return 0;
}

/*
 * What a listener heard of an operation, a letter for each event: devices, groups and clients that
 * come and go, bands, policies; a task's grant, evict, grow and done
 */
static const char letter[__GSCHED_NL_MAX] = {
	[GSCHED_NL_DEVICE_ADD] = 'D', [GSCHED_NL_DEVICE_DEL] = 'd',
	[GSCHED_NL_GROUP_ADD] = 'G', [GSCHED_NL_GROUP_DEL] = 'g',
	[GSCHED_NL_CLIENT_ADD] = 'C', [GSCHED_NL_CLIENT_DEL] = 'c',
	[GSCHED_NL_BAND] = 'b', [GSCHED_NL_POLICY] = 'P',
	[GSCHED_NL_GRANT] = '(', [GSCHED_NL_EVICT] = '-',
	[GSCHED_NL_GROW] = '+', [GSCHED_NL_DONE] = ')',
};

struct heard {
	char events[64];
	bool lost;	/* ENOBUFS: some are missing */
};

static struct heard hear(int nl)
{
	static char buf[NL_BUF];
	struct nlmsghdr *msg = (struct nlmsghdr *)buf;
	struct heard h = { .lost = false };
	struct nl_attrs attrs;
	unsigned int n = 0, event;
	ssize_t got;

	for (;;) {
		got = recv(nl, buf, sizeof(buf), MSG_DONTWAIT);
		if (got < 0 && errno == ENOBUFS) {
			h.lost = true;
			continue;
		}
		if (got < 0 && errno == EAGAIN)
			break;
		event = 0;
		if (got > 0) {
			nl_attrs(msg, &attrs);
			event = nl_u32(attrs.at[GSCHED_A_EVENT]);
		}
		h.events[n] = event < __GSCHED_NL_MAX && letter[event] ? letter[event] : '?';
		n += n < sizeof(h.events) - 2;
	}
	return h;
}

/* Those of bands and windows come at other times as well: it takes so long here */
static bool heard_all(const char *events, const char *expected)
{
	for (; *events; events++) {
		if (*events == *expected)
			expected++;
		else if (!strchr("b-+", *events))
			return false;
	}
	return !*expected;
}

static int count(const char *text, char c)
{
	int n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

/* Of an operation that failed in its middle: whatever came has gone */
static bool heard_pairs(const char *events)
{
	static const char *const pairs[] = { "Dd", "Gg", "Cc", "()" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pairs); i++)
		if (count(events, pairs[i][0]) != count(events, pairs[i][1]))
			return false;
	return !count(events, '?');
}

/*
 * @expected: the events of @op. An event that cannot be sent is no reason for the operation to
 * fail: where one is lost, that was the allocation which failed.
 */
static void sweep(struct __test_metadata *_metadata, const FIXTURE_DATA(failnth) *self,
		  const char *what, const char *expected, int (*op)(void))
{
	bool fired = true;
	int n, i, ret, lost = 0;

	for (i = 0; i < LISTENERS; i++)
		hear(self->listener[i]);
	for (n = 1; n < NTH_MAX && fired; n++) {
		arm(self->nth, n);
		ret = op();
		fired = disarm(self->nth);
		/* some allocations are tried again, or done without */
		EXPECT_TRUE(ret == 0 || (fired && ret == -ENOMEM)) {
			TH_LOG("%s: allocation %d failed, the operation returned %d", what, n, ret);
		}
		for (i = 0; i < LISTENERS; i++) {
			struct heard h = hear(self->listener[i]);

			lost += h.lost;
			EXPECT_TRUE(h.lost ? fired && !ret :
				    ret ? heard_pairs(h.events) : heard_all(h.events, expected)) {
				TH_LOG("%s: allocation %d, returned %d: listener %d heard \"%s\"%s",
				       what, n, ret, i, h.events, h.lost ? " and ENOBUFS" : "");
			}
		}
	}
	EXPECT_FALSE(fired);
	EXPECT_GT(n, 2);
	EXPECT_EQ(*expected != '\0', lost > 0);
	printf("# %s: %d allocations, %d times a listener missed an event\n", what, n - 2, lost);
	fflush(stdout);
}

TEST_F_TIMEOUT(failnth, open_attach_submit, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "open, attach, submit", "C()c", op_open_attach);
}

/*
 * An attach that failed may be tried again on the same file, and finds its page in the state of a
 * new one
 */
TEST_F_TIMEOUT(failnth, attach_again, 600)
{
	const volatile struct gsched_arb_page *arb;
	struct gsched_attach req;
	bool fired = true;
	int fd, n, ret;

	RETURN_IF_SKIPPED();
	for (n = 1; n < NTH_MAX && fired; n++) {
		fd = gopen();
		ASSERT_GE(fd, 0);
		arm(self->nth, n);
		ret = attach(fd, 0);
		fired = disarm(self->nth);
		if (ret) {
			EXPECT_EQ(-ENOMEM, ret);
			ret = attach_as(fd, 0, &req);
			ASSERT_EQ(0, ret);
			arb = map_arb(fd, &req);
			ASSERT_NE(MAP_FAILED, arb);
			EXPECT_EQ(1, arb->header.bands) TH_LOG("allocation %d", n);
			EXPECT_EQ(GSCHED_SHARE_ALL, arb->header.share) TH_LOG("allocation %d", n);
			EXPECT_EQ(GSCHED_LEASE_FREE, arb->header.lease) TH_LOG("allocation %d", n);
			munmap((void *)arb, req.arb_size);
		}
		close(fd);
	}
	EXPECT_FALSE(fired);
	EXPECT_GT(n, 2);
}

/*
 * Until it fails, an attach may have come so far that a dump meets the client. When that goes, all
 * behind it move up, of which the dump has to tell.
 */
TEST_F_TIMEOUT(failnth, attach_interrupts_a_dump, 600)
{
	enum { N = 2 };
	int fd[N], i, n, asks = nl_open(), nl = nl_open(), failing, ret, failed = 0,
			 interrupted = 0;
	/*
	 * of another socket: the parts of a dump are as large as the largest buffer that was read
	 * into
	 */
	struct nl_request req =
		nl_request(nl_family(asks, NULL, NULL), GSCHED_CMD_TASK_GET, NLM_F_DUMP);
	bool fired = true;
	char small[2048];

	RETURN_IF_SKIPPED();
	for (i = 0; i < N; i++) {
		fd[i] = gopen();
		ASSERT_EQ(0, attach(fd[i], GSCHED_ATTACH_MPS));
		for (n = 0; n < GSCHED_SLOTS; n++)
			submit(fd[i], n, 1, GSCHED_SUBMIT_NOWAIT);
	}
	for (n = 1; n < NTH_MAX && fired; n++) {
		bool intr = false;

		failing = gopen();
		ASSERT_EQ(0, nl_send(nl, &req, req.head.nlmsg_len));
		ASSERT_LT(0, recv(nl, small, sizeof(small), 0));
		arm(self->nth, n);
		ret = attach(failing, 0);
		fired = disarm(self->nth);
		ASSERT_LT(0, nl_answers(nl, &intr, NULL, NULL));
		EXPECT_TRUE(ret || intr);
		failed += ret != 0;
		interrupted += ret && intr;
		close(failing);
		close(nl);
		nl = nl_open();
	}
	EXPECT_FALSE(fired);
	EXPECT_LT(0, interrupted);
	printf("# of %d attaches that failed a dump may have met %d\n", failed, interrupted);
	fflush(stdout);
	for (i = 0; i < N; i++)
		close(fd[i]);
	close(asks);
	close(nl);
}

TEST_F_TIMEOUT(failnth, map, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "map", "Cc", op_map);
}

TEST_F_TIMEOUT(failnth, device_add, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "add and delete a device", "Dd", op_device);
}

TEST_F_TIMEOUT(failnth, groups, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "make, bind and remove a group", "Gg", op_group);
}

TEST_F_TIMEOUT(failnth, complete_and_read, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "quotas, read of an event, complete", "C(-+)()c", op_complete);
}

TEST_F_TIMEOUT(failnth, bands, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "two bands", "CbCcbc", op_bands);
}

TEST_F_TIMEOUT(failnth, client_files, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "files of a client", "Cc", op_client_files);
}

TEST_F_TIMEOUT(failnth, device_files, 600)
{
	RETURN_IF_SKIPPED();
	ASSERT_EQ(0, mkdir(CONFIG "/" DEV_NAME "/a", 0755));
	sweep(_metadata, self, "files of a device", "PPPP", op_device_files);
	EXPECT_EQ(0, rmdir(CONFIG "/" DEV_NAME "/a"));
}

TEST_F_TIMEOUT(failnth, trigger, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "trigger on pressure", "", op_trigger);
}

TEST_F_TIMEOUT(failnth, forced_delete, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "take a device from its client", "DC()cd", op_forced_delete);
}

TEST_F_TIMEOUT(failnth, listen, 600)
{
	RETURN_IF_SKIPPED();
	sweep(_metadata, self, "join the netlink groups", "", op_listen);
}

TEST_F_TIMEOUT(failnth, dump, 600)
{
	int nl = nl_open(), fd = gopen(), slot;

	RETURN_IF_SKIPPED();
	nl_id = nl_family(nl, NULL, NULL);
	ASSERT_LT(0, nl_id);
	close(nl);
	ASSERT_EQ(0, attach(fd, 0));
	/* more of them than one part of a dump has room for */
	for (slot = 0; slot < GSCHED_SLOTS; slot++)
		ASSERT_LE(0, submit(fd, slot, 1, GSCHED_SUBMIT_NOWAIT));
	sweep(_metadata, self, "netlink dumps", "", op_dump);
	close(fd);
}

TEST_HARNESS_MAIN
