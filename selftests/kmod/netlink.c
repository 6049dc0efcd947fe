// SPDX-License-Identifier: GPL-2.0-only
/* The generic netlink family: dumps, events, who may have them, and requests that are wrong. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "common.h"
#include "kselftest_harness.h"
#include "netlink.h"

#define ROOT	CONFIG "/" DEV_NAME

FIXTURE(netlink) {
	int admin, nl, family, events, tasks, strangers;
};

FIXTURE_SETUP(netlink)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->nl = nl_open();
	ASSERT_GE(self->nl, 0);
	self->family = nl_family(self->nl, GSCHED_MCGRP_EVENTS, &self->events);
	ASSERT_GT(self->family, 0);
	ASSERT_EQ(self->family, nl_family(self->nl, GSCHED_MCGRP_TASKS, &self->tasks));
}

FIXTURE_TEARDOWN(netlink)
{
	static const char *const made[] = { "a/b/c", "a/b", "a", "b" };
	unsigned int i;

	close(self->nl);
	for (i = 0; i < ARRAY_SIZE(made); i++) {
		char path[256];

		snprintf(path, sizeof(path), ROOT "/%s", made[i]);
		rmdir(path);
	}
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

/* The object of a dump of our device that a test looks for, copied out */
struct found {
	const char *key;		/* of this group, or of this pid and slot; NULL any */
	uint32_t slot;
	unsigned int n;
	uint32_t word[GSCHED_A_MAX + 1];
	uint64_t number[GSCHED_A_MAX + 1], stat[GSCHED_STAT_MAX + 1];
	uint64_t preempted, preempted_us;	/* sum of the buckets */
	char string[GSCHED_A_MAX + 1][64];
	bool is_there[GSCHED_A_MAX + 1];
};

static void keep_preemption(struct found *f, const struct nlattr *nest)
{
	const struct nlattr *at[GSCHED_PREEMPTION_MAX + 1], *buckets;
	uint64_t bucket;
	size_t i;

	nl_parse(nl_data(nest), nest->nla_len - NLA_HDRLEN, at, GSCHED_PREEMPTION_MAX);
	f->preempted_us = nl_u64(at[GSCHED_PREEMPTION_USEC]);
	f->preempted = 0;
	buckets = at[GSCHED_PREEMPTION_BUCKETS];
	for (i = 0; buckets && (i + 1) * sizeof(bucket) <= buckets->nla_len - NLA_HDRLEN; i++) {
		memcpy(&bucket, (const char *)nl_data(buckets) + i * sizeof(bucket),
		       sizeof(bucket));
		f->preempted += bucket;
	}
}

static void keep(void *arg, const struct nlmsghdr *msg, const struct nl_attrs *attrs)
{
	const struct nlattr *stat[GSCHED_STAT_MAX + 1];
	struct found *f = arg;
	unsigned int i;

	if (strcmp(nl_string(attrs->at[GSCHED_A_DEVICE]), DEV_NAME))
		return;
	if (f->key && strcmp(nl_string(attrs->at[GSCHED_A_GROUP]), f->key))
		return;
	if (attrs->at[GSCHED_A_SLOT] && nl_u32(attrs->at[GSCHED_A_SLOT]) != f->slot)
		return;
	f->n++;
	for (i = 0; i <= GSCHED_A_MAX; i++) {
		const struct nlattr *at = attrs->at[i];

		f->is_there[i] = at;
		f->word[i] = nl_u32(at);
		f->number[i] = nl_u64(at);
		if (at && at->nla_len - NLA_HDRLEN <= 64)
			memcpy(f->string[i], nl_data(at), at->nla_len - NLA_HDRLEN);
	}
	if (attrs->at[GSCHED_A_PREEMPTION])
		keep_preemption(f, attrs->at[GSCHED_A_PREEMPTION]);
	if (!attrs->at[GSCHED_A_STAT])
		return;
	nl_parse(nl_data(attrs->at[GSCHED_A_STAT]), attrs->at[GSCHED_A_STAT]->nla_len - NLA_HDRLEN,
		 stat, GSCHED_STAT_MAX);
	for (i = 0; i <= GSCHED_STAT_MAX; i++)
		f->stat[i] = nl_u64(stat[i]);
}

/* Dumps @cmd's objects, of our device only; how many, or -errno */
static int dump(int nl, int family, int cmd, struct found *f)
{
	struct nl_request req = nl_request(family, cmd, NLM_F_DUMP);
	bool intr = false;
	int ret;

	nl_add(&req, GSCHED_A_DEVICE, DEV_NAME, sizeof(DEV_NAME));
	ret = nl_send(nl, &req, req.head.nlmsg_len) ?: nl_answers(nl, &intr, keep, f);
	return intr ? -EINTR : ret;
}

TEST_F(netlink, devices)
{
	struct nl_request req = nl_request(self->family, GSCHED_CMD_DEVICE_GET, NLM_F_DUMP);
	static const unsigned char other[GSCHED_UUID_SIZE] = "netlink-other-gp";
	struct found f = { 0 };
	struct gsched_attach a;
	int fd = gopen();

	ASSERT_EQ(0, attach_as(fd, GSCHED_ATTACH_MPS, &a));
	ASSERT_EQ(1, dump(self->nl, self->family, GSCHED_CMD_DEVICE_GET, &f));
	EXPECT_EQ(0, memcmp(f.string[GSCHED_A_UUID], dev_uuid, sizeof(dev_uuid)));
	EXPECT_EQ(DEV_SMS, f.word[GSCHED_A_SMS]);
	EXPECT_EQ(a.mode, f.word[GSCHED_A_MODE]);
	EXPECT_STREQ("hpf", f.string[GSCHED_A_POLICY]);
	EXPECT_FALSE(f.is_there[GSCHED_A_FAULT]);
	EXPECT_EQ(1, f.word[GSCHED_A_CLIENTS]);
	EXPECT_LT(0, f.number[GSCHED_A_DECISIONS]);

	/* of all devices, and each by its name */
	ASSERT_EQ(0, add_device(self->admin, "other0", other, 3));
	ASSERT_EQ(0, nl_send(self->nl, &req, req.head.nlmsg_len));
	EXPECT_LE(2, nl_answers(self->nl, NULL, NULL, NULL));
	EXPECT_EQ(1, dump(self->nl, self->family, GSCHED_CMD_DEVICE_GET, &f));
	EXPECT_EQ(0, del_device(self->admin, other));
	close(fd);
}

/* The longest that there can be: seven names, of which each directory has one */
TEST_F(netlink, group_of_a_long_path)
{
	char path[2048] = ROOT;
	struct found f = { .key = path + strlen(ROOT "/") };
	size_t len = strlen(path);
	int i;

	for (i = 0; i < 7; i++) {
		len += snprintf(path + len, sizeof(path) - len, "/%0255d", i);
		ASSERT_EQ(0, mkdir(path, 0755));
	}
	EXPECT_EQ(8, dump(self->nl, self->family, GSCHED_CMD_GROUP_GET, &f));
	EXPECT_EQ(1, f.n);
	for (i = 0; i < 7; i++) {
		EXPECT_EQ(0, rmdir(path));
		*strrchr(path, '/') = '\0';
	}
}

TEST_F(netlink, groups)
{
	struct found f = { .key = "/" };

	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/a/b", 0755));
	ASSERT_EQ(0, put("1.5", ROOT "/a/b/capsm.max"));
	ASSERT_EQ(0, put("0.25", ROOT "/a/b/capsm.min"));
	ASSERT_EQ(0, put("7", ROOT "/a/b/gpu.priority"));
	ASSERT_EQ(0, put("300", ROOT "/a/b/gpu.weight"));
	ASSERT_EQ(0, put("red", ROOT "/a/gpu.band"));
	ASSERT_EQ(0, put("5000", ROOT "/a/b/gpu.latency_target_us"));
	ASSERT_EQ(0, put("5T", ROOT "/a/b/memory.max"));
	ASSERT_EQ(3, dump(self->nl, self->family, GSCHED_CMD_GROUP_GET, &f));
	EXPECT_EQ(1, f.n);
	EXPECT_FALSE(f.is_there[GSCHED_A_CAPSM_MAX]);
	EXPECT_FALSE(f.is_there[GSCHED_A_MEMORY_MAX]);
	EXPECT_TRUE(f.is_there[GSCHED_A_MEMORY]);
	EXPECT_FALSE(f.is_there[GSCHED_A_BAND]);
	EXPECT_EQ(0, f.word[GSCHED_A_CAPSM_MIN]);

	f = (struct found) { .key = "a/b" };
	ASSERT_EQ(3, dump(self->nl, self->family, GSCHED_CMD_GROUP_GET, &f));
	EXPECT_EQ(1, f.n);
	EXPECT_EQ(1536, f.word[GSCHED_A_CAPSM_MAX]);
	EXPECT_EQ(256, f.word[GSCHED_A_CAPSM_MIN]);
	EXPECT_EQ(7, f.word[GSCHED_A_PRIORITY]);
	EXPECT_EQ(300, f.word[GSCHED_A_WEIGHT]);
	EXPECT_EQ(5000, f.word[GSCHED_A_LATENCY_US]);
	EXPECT_EQ(5ULL << 40, f.number[GSCHED_A_MEMORY_MAX]);
	EXPECT_STREQ("red", f.string[GSCHED_A_BAND]);
	EXPECT_EQ(0, f.stat[GSCHED_STAT_GRANTS]);
}

TEST_F(netlink, clients_and_tasks)
{
	struct gsched_complete done = { .size = sizeof(done), .slot = 3, .seq = 9, .ran_ns = 1000 };
	struct found f = { 0 };
	struct gsched_attach a;
	volatile struct gsched_cl_page *cl;
	int fd = gopen(), low;

	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, put("4", ROOT "/a/gpu.priority"));
	ASSERT_EQ(0, put_pid(getpid(), ROOT "/a/procs"));
	ASSERT_EQ(0, attach_as(fd, GSCHED_ATTACH_MPS, &a));
	ASSERT_EQ(0, submit(fd, 3, 9, GSCHED_SUBMIT_NOWAIT));
	ASSERT_EQ(0, report_memory(fd, 5ULL << 32, false));
	cl = map_cl(fd, &a);
	ASSERT_NE(MAP_FAILED, cl);
	cl->slot[3].seen_limit = 5;
	cl->slot[3].launched = 6;
	cl->slot[3].left = 7;
	cl->slot[3].start_ns = 8;

	f.slot = 3;
	ASSERT_EQ(1, dump(self->nl, self->family, GSCHED_CMD_TASK_GET, &f));
	EXPECT_EQ(a.client_id, f.number[GSCHED_A_CLIENT]);
	EXPECT_EQ(getpid(), f.word[GSCHED_A_PID]);
	EXPECT_EQ(9, f.word[GSCHED_A_SEQ]);
	EXPECT_EQ(GSCHED_STATE_GRANTED, f.word[GSCHED_A_STATE]);
	EXPECT_EQ(GSCHED_TIER_BLOCK, f.word[GSCHED_A_TIER]);
	EXPECT_EQ(1000000, f.number[GSCHED_A_BLOCKS]);
	EXPECT_EQ(WHOLE, f.word[GSCHED_A_LIMIT]);
	EXPECT_LT(0, f.number[GSCHED_A_RUN_NS]);
	EXPECT_LT(0, f.number[GSCHED_A_USED_NS]);
	EXPECT_EQ(0, f.word[GSCHED_A_EVICTIONS]);
	EXPECT_EQ(0, f.number[GSCHED_A_STREAM]);
	EXPECT_TRUE(f.is_there[GSCHED_A_STREAM]);
	EXPECT_EQ(5, f.word[GSCHED_A_SEEN]);
	EXPECT_EQ(6, f.word[GSCHED_A_LAUNCHED]);
	EXPECT_EQ(7, f.word[GSCHED_A_LEFT]);
	EXPECT_EQ(8, f.number[GSCHED_A_START_NS]);
	munmap((void *)cl, a.cl_size);

	ASSERT_EQ(1, dump(self->nl, self->family, GSCHED_CMD_CLIENT_GET, &f));
	EXPECT_EQ(a.client_id, f.number[GSCHED_A_CLIENT]);
	EXPECT_EQ(getuid(), f.word[GSCHED_A_UID]);
	EXPECT_STREQ("a", f.string[GSCHED_A_GROUP]);
	EXPECT_EQ(4, f.word[GSCHED_A_PRIORITY]);
	EXPECT_EQ(WHOLE, f.word[GSCHED_A_CAPSM_CURRENT]);
	EXPECT_EQ(5ULL << 32, f.number[GSCHED_A_MEMORY]);
	EXPECT_EQ(1, f.stat[GSCHED_STAT_GRANTS]);
	EXPECT_EQ(0, f.stat[GSCHED_STAT_TASKS]);
	EXPECT_LT(0, f.stat[GSCHED_STAT_DEMANDED_USEC]);
	EXPECT_EQ(0, f.stat[GSCHED_STAT_PROMISED_USEC]);
	EXPECT_TRUE(f.is_there[GSCHED_A_SHARE]);
	EXPECT_STREQ("mps", f.string[GSCHED_A_BAND]);

	/* one that waits: it is the first one's turn */
	ASSERT_EQ(0, put("temporal", SYSFS "/" DEV_NAME "/mode"));
	low = gopen();
	ASSERT_EQ(0, attach(low, GSCHED_ATTACH_MPS));
	ASSERT_EQ(QUEUED, submit(low, 5, 1, GSCHED_SUBMIT_NOWAIT));
	f.slot = 5;
	ASSERT_EQ(2, dump(self->nl, self->family, GSCHED_CMD_TASK_GET, &f));
	EXPECT_EQ(GSCHED_STATE_QUEUED, f.word[GSCHED_A_STATE]);
	EXPECT_EQ(0, f.word[GSCHED_A_LIMIT]);
	EXPECT_LT(0, f.number[GSCHED_A_WAIT_NS]);
	EXPECT_EQ(0, f.number[GSCHED_A_RUN_NS]);

	ASSERT_EQ(0, xioctl(fd, GSCHED_IOC_COMPLETE, &done));
	close(low);
	f = (struct found) { .key = "a" };
	ASSERT_EQ(1, dump(self->nl, self->family, GSCHED_CMD_CLIENT_GET, &f));
	EXPECT_EQ(1, f.n);
	EXPECT_EQ(1, f.stat[GSCHED_STAT_TASKS]);
	close(fd);
}

/* Two bands, of which the one of an MPS server is told by its process */
TEST_F(netlink, bands)
{
	int fd = gopen(), server = gopen();
	struct found f = { 0 };
	struct gsched_attach a;
	char name[32];

	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, put("7", ROOT "/a/gpu.priority"));
	ASSERT_EQ(0, put("150", ROOT "/a/gpu.weight"));
	ASSERT_EQ(0, attach_band(server, GSCHED_ATTACH_SERVER | GSCHED_ATTACH_SLICE, 3, &a));
	ASSERT_EQ(1, dump(self->nl, self->family, GSCHED_CMD_BAND_GET, &f));
	EXPECT_EQ(getpid(), f.word[GSCHED_A_PID]);
	close(server);
	ASSERT_EQ(0, put_pid(getpid(), ROOT "/a/procs"));
	ASSERT_EQ(0, attach_band(fd, GSCHED_ATTACH_SLICE, 1, &a));
	ASSERT_EQ(0, report_slice(fd, 35, 5));
	ASSERT_EQ(1, dump(self->nl, self->family, GSCHED_CMD_BAND_GET, &f));
	snprintf(name, sizeof(name), "pid-%d", getpid());
	EXPECT_STREQ(name, f.string[GSCHED_A_BAND]);
	EXPECT_FALSE(f.is_there[GSCHED_A_PID]);
	EXPECT_EQ(7, f.word[GSCHED_A_PRIORITY]);
	EXPECT_EQ(150000, f.number[GSCHED_A_BAND_WEIGHT]);
	EXPECT_EQ(0, f.word[GSCHED_A_SLICE_US]);
	EXPECT_EQ(35, f.word[GSCHED_A_APPLIED_US]);
	EXPECT_EQ(5, f.word[GSCHED_A_SLICE_ERROR]);
	EXPECT_EQ(0, f.word[GSCHED_A_BLOCK_END]);
	EXPECT_EQ(GSCHED_ACTIVITY_IDLE, f.word[GSCHED_A_ACTIVITY]);
	EXPECT_EQ(0, f.word[GSCHED_A_TURN]);
	EXPECT_STREQ("the only band: nothing to share the time with", f.string[GSCHED_A_WHY]);
	close(fd);
}

/* How long an eviction took, by what the page says of the workers */
TEST_F(netlink, preemption)
{
	const volatile struct gsched_arb_page *arb;
	volatile struct gsched_cl_page *cl;
	struct found f = { .key = "a" };
	int fd = gopen(), high = gopen();
	struct gsched_attach a;
	char text[1024];

	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, put("9", ROOT "/a/gpu.priority"));
	ASSERT_EQ(0, put_pid(getpid(), ROOT "/a/procs"));
	ASSERT_EQ(0, attach_as(fd, GSCHED_ATTACH_MPS, &a));
	ASSERT_EQ(0, put("0", SYSFS "/" DEV_NAME "/tasks/%d/gpu.priority", getpid()));
	ASSERT_EQ(0, attach(high, GSCHED_ATTACH_MPS));
	arb = map_arb(fd, &a);
	cl = map_cl(fd, &a);
	ASSERT_NE(MAP_FAILED, arb);
	ASSERT_NE(MAP_FAILED, cl);
	ASSERT_EQ(0, submit(fd, 0, 1, GSCHED_SUBMIT_NOWAIT));
	cl->slot[0].launched = DEV_SMS;
	cl->slot[0].start_ns = 1;
	cl->slot[0].seq = 1;
	ASSERT_EQ(0, submit(high, 0, 1, GSCHED_SUBMIT_NOWAIT));
	ASSERT_EQ(0, arb->slot[0].window);
	f.slot = 0;
	f.key = NULL;
	ASSERT_EQ(2, dump(self->nl, self->family, GSCHED_CMD_TASK_GET, &f));
	/* the last one found is the other one's, which has not been evicted */
	EXPECT_EQ(0, f.word[GSCHED_A_EVICTIONS]);
	f.key = "a";
	ASSERT_EQ(2, dump(self->nl, self->family, GSCHED_CMD_GROUP_GET, &f));
	EXPECT_EQ(0, f.preempted);
	usleep(2000);
	cl->slot[0].left = DEV_SMS;
	cl->slot[0].seen_limit = arb->slot[0].window;
	ASSERT_EQ(2, dump(self->nl, self->family, GSCHED_CMD_GROUP_GET, &f));
	EXPECT_EQ(1, f.preempted);
	EXPECT_LE(2000, f.preempted_us);
	slurp(text, sizeof(text), ROOT "/a/gpu.preemption");
	EXPECT_EQ(1, stat_of(text, "count"));
	EXPECT_EQ(f.preempted_us, stat_of(text, "total_usec"));
	EXPECT_EQ(0, stat_of(text, "le_1024"));
	EXPECT_EQ(stat_of(text, "le_1048576"), f.preempted_us <= 1048576);
	slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%d/preemption", getpid());
	EXPECT_EQ(1, stat_of(text, "count"));
	munmap((void *)arb, a.arb_size);
	munmap((void *)cl, a.cl_size);
	close(high);
	close(fd);
}

/* More than fits into one message; and the same while something comes */
TEST_F_TIMEOUT(netlink, parts, 600)
{
	enum { N = 4 };
	struct nl_request req = nl_request(self->family, GSCHED_CMD_TASK_GET, NLM_F_DUMP);
	int fd[N], i, slot, nl = nl_open(), n;
	char small[2048];
	bool intr = false;

	for (i = 0; i < N; i++) {
		fd[i] = gopen();
		ASSERT_EQ(0, attach(fd[i], GSCHED_ATTACH_MPS));
		for (slot = 0; slot < GSCHED_SLOTS; slot++)
			submit(fd[i], slot, 1, GSCHED_SUBMIT_NOWAIT);
	}
	ASSERT_EQ(0, nl_send(self->nl, &req, req.head.nlmsg_len));
	EXPECT_EQ(N * GSCHED_SLOTS, nl_answers(self->nl, &intr, NULL, NULL));
	EXPECT_FALSE(intr);

	/* the rest of a dump is made as its reader reads */
	ASSERT_EQ(0, nl_send(nl, &req, req.head.nlmsg_len));
	ASSERT_LT(0, recv(nl, small, sizeof(small), 0));
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	n = nl_answers(nl, &intr, NULL, NULL);
	EXPECT_LT(0, n);
	EXPECT_TRUE(intr);
	/* a reader that goes away in the middle */
	ASSERT_EQ(0, nl_send(nl, &req, req.head.nlmsg_len));
	close(nl);
	for (i = 0; i < N; i++)
		close(fd[i]);
}

static bool next_of(int nl, struct found *f)
{
	static char buf[NL_BUF];
	struct nlmsghdr *msg = (struct nlmsghdr *)buf;
	struct nl_attrs attrs;
	ssize_t got;

	do {
		got = recv(nl, buf, sizeof(buf), 0);
		if (got < (ssize_t)sizeof(*msg))
			return false;
		nl_attrs(msg, &attrs);
		*f = (struct found) { .slot = nl_u32(attrs.at[GSCHED_A_SLOT]) };
		keep(f, msg, &attrs);
	} while (!f->n || f->word[GSCHED_A_EVENT] == GSCHED_NL_BAND);
	return true;
}

#define EXPECT_NEXT(_nl, _event) do { \
	ASSERT_TRUE(next_of(_nl, &f)); \
	ASSERT_EQ(_event, f.word[GSCHED_A_EVENT]); \
	EXPECT_LE(_nl##_ns, f.number[GSCHED_A_TIME_NS]); \
	_nl##_ns = f.number[GSCHED_A_TIME_NS]; \
} while (0)

static int join(int nl, int mcgrp)
{
	return setsockopt(nl, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &mcgrp, sizeof(mcgrp)) ?
	       -errno : 0;
}

TEST_F(netlink, events)
{
	int events = nl_open(), tasks = nl_open(), fd = gopen(), high;
	struct gsched_submit req = task(0, 1, GSCHED_SUBMIT_NOWAIT);
	struct gsched_attach a;
	uint64_t events_ns = 0, tasks_ns = 0;
	struct found f;

	ASSERT_EQ(0, del_device(self->admin, dev_uuid));
	ASSERT_EQ(0, join(events, self->events));
	ASSERT_EQ(0, join(tasks, self->tasks));
	ASSERT_EQ(0, add_device(self->admin, DEV_NAME, dev_uuid, DEV_SMS));
	EXPECT_NEXT(events, GSCHED_NL_DEVICE_ADD);
	EXPECT_EQ(DEV_SMS, f.word[GSCHED_A_SMS]);
	EXPECT_EQ(0, memcmp(f.string[GSCHED_A_UUID], dev_uuid, sizeof(dev_uuid)));
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	EXPECT_NEXT(events, GSCHED_NL_GROUP_ADD);
	EXPECT_STREQ("a", f.string[GSCHED_A_GROUP]);
	ASSERT_EQ(0, put_pid(getpid(), ROOT "/a/procs"));
	ASSERT_EQ(0, attach_as(fd, GSCHED_ATTACH_MPS, &a));
	EXPECT_NEXT(events, GSCHED_NL_CLIENT_ADD);
	EXPECT_EQ(a.client_id, f.number[GSCHED_A_CLIENT]);
	EXPECT_EQ(getpid(), f.word[GSCHED_A_PID]);
	EXPECT_STREQ("a", f.string[GSCHED_A_GROUP]);

	ASSERT_EQ(0, submit(fd, 2, 5, GSCHED_SUBMIT_NOWAIT));
	EXPECT_NEXT(tasks, GSCHED_NL_GRANT);
	EXPECT_EQ(2, f.word[GSCHED_A_SLOT]);
	EXPECT_EQ(5, f.word[GSCHED_A_SEQ]);
	EXPECT_EQ(WHOLE, f.word[GSCHED_A_LIMIT]);
	EXPECT_TRUE(f.is_there[GSCHED_A_WAIT_NS]);
	EXPECT_FALSE(f.is_there[GSCHED_A_INTENSITY]);

	/* somebody more important comes and goes */
	ASSERT_EQ(0, mkdir(ROOT "/b", 0755));
	EXPECT_NEXT(events, GSCHED_NL_GROUP_ADD);
	ASSERT_EQ(0, put("9", ROOT "/b/gpu.priority"));
	ASSERT_EQ(0, put_pid(getpid(), ROOT "/b/procs"));
	high = gopen();
	ASSERT_EQ(0, attach(high, GSCHED_ATTACH_MPS));
	EXPECT_NEXT(events, GSCHED_NL_CLIENT_ADD);
	req.intensity = GSCHED_INTENSITY_H_M;
	ASSERT_EQ(0, xioctl(high, GSCHED_IOC_SUBMIT, &req));
	EXPECT_NEXT(tasks, GSCHED_NL_EVICT);
	EXPECT_EQ(2, f.word[GSCHED_A_SLOT]);
	EXPECT_NEXT(tasks, GSCHED_NL_GRANT);
	EXPECT_EQ(0, f.word[GSCHED_A_SLOT]);
	EXPECT_EQ(GSCHED_INTENSITY_H_M, f.word[GSCHED_A_INTENSITY]);
	ASSERT_EQ(0, complete(high, 0, 1));
	/* where all of this takes 20 ms it was late, and others made way */
	do {
		ASSERT_TRUE(next_of(tasks, &f));
	} while (f.word[GSCHED_A_EVENT] == GSCHED_NL_EVICT ||
		 f.word[GSCHED_A_EVENT] == GSCHED_NL_GROW);
	EXPECT_EQ(GSCHED_NL_DONE, f.word[GSCHED_A_EVENT]);
	EXPECT_TRUE(f.is_there[GSCHED_A_RUN_NS]);
	close(high);
	do {
		EXPECT_NEXT(tasks, GSCHED_NL_GROW);
	} while (f.word[GSCHED_A_LIMIT] != WHOLE);

	ASSERT_EQ(0, put("wfq", SYSFS "/" DEV_NAME "/policy"));
	EXPECT_NEXT(events, GSCHED_NL_CLIENT_DEL);
	EXPECT_NEXT(events, GSCHED_NL_POLICY);
	EXPECT_STREQ("wfq", f.string[GSCHED_A_POLICY]);
	EXPECT_FALSE(f.is_there[GSCHED_A_FAULT]);

	/* what a client leaves ends before it does */
	close(fd);
	EXPECT_NEXT(tasks, GSCHED_NL_DONE);
	EXPECT_EQ(5, f.word[GSCHED_A_SEQ]);
	EXPECT_LT(0, f.number[GSCHED_A_USED_NS]);
	EXPECT_LE(1, f.word[GSCHED_A_EVICTIONS]);
	EXPECT_NEXT(events, GSCHED_NL_CLIENT_DEL);
	EXPECT_EQ(a.client_id, f.number[GSCHED_A_CLIENT]);
	EXPECT_EQ(1, f.stat[GSCHED_STAT_GRANTS]);
	ASSERT_EQ(0, rmdir(ROOT "/a"));
	EXPECT_NEXT(events, GSCHED_NL_GROUP_DEL);
	ASSERT_EQ(0, rmdir(ROOT "/b"));
	EXPECT_NEXT(events, GSCHED_NL_GROUP_DEL);
	ASSERT_EQ(0, del_device(self->admin, dev_uuid));
	EXPECT_NEXT(events, GSCHED_NL_DEVICE_DEL);
	ASSERT_EQ(0, add_device(self->admin, DEV_NAME, dev_uuid, DEV_SMS));
	close(events);
	close(tasks);
}

/* One that does not read loses messages, and nobody else does anything */
TEST_F(netlink, slow_reader)
{
	int slow = nl_open(), fd = gopen(), size = 1, i;
	char buf[256];
	ssize_t got;

	ASSERT_EQ(0, setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)));
	ASSERT_EQ(0, join(slow, self->tasks));
	ASSERT_EQ(0, attach(fd, GSCHED_ATTACH_MPS));
	for (i = 1; i < 200; i++) {
		ASSERT_EQ(0, submit(fd, 0, i, GSCHED_SUBMIT_NOWAIT));
		ASSERT_EQ(0, complete(fd, 0, i));
	}
	for (i = 0; i < 400; i++) {
		got = recv(slow, buf, sizeof(buf), MSG_DONTWAIT);
		if (got < 0)
			break;
	}
	EXPECT_EQ(-1, got);
	EXPECT_EQ(ENOBUFS, errno);
	close(slow);
	close(fd);
}

/* A stranger is shown the device, and @own objects of each other kind. 0, or -errno */
static int dump_as(FIXTURE_DATA(netlink) *self, int own)
{
	static const int cmds[] = { GSCHED_CMD_GROUP_GET, GSCHED_CMD_CLIENT_GET,
				    GSCHED_CMD_TASK_GET, GSCHED_CMD_BAND_GET };
	struct found f = { 0 };
	int nl = nl_open(), n;
	unsigned int i;

	n = dump(nl, self->family, GSCHED_CMD_DEVICE_GET, &f);
	if (n != 1)
		return n < 0 ? n : -ENODEV;
	/* of others nothing is told */
	if (f.is_there[GSCHED_A_DECISIONS] || f.is_there[GSCHED_A_CLIENTS])
		return -EACCES;
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		f = (struct found) { 0 };
		n = dump(nl, self->family, cmds[i], &f);
		if (n < 0)
			return n;
		if (n != own)
			return -EBADMSG;
		if (cmds[i] == GSCHED_CMD_GROUP_GET && (f.is_there[GSCHED_A_STAT] ||
							f.is_there[GSCHED_A_MEMORY] ||
							f.is_there[GSCHED_A_CAPSM_CURRENT]))
			return -EACCES;
		if (own && cmds[i] == GSCHED_CMD_CLIENT_GET &&
		    f.word[GSCHED_A_PID] != (uint32_t)getpid())
			return -ESRCH;
	}
	close(nl);
	return 0;
}

static int dump_as_nobody(void *arg)
{
	return dump_as(arg, 0);
}

/* Beside root's a client of its own, whose descriptor root has opened */
static int dump_with_client(void *arg)
{
	FIXTURE_DATA(netlink) *self = arg;
	int ret = attach(self->strangers, GSCHED_ATTACH_SLICE);

	if (ret >= 0)
		ret = submit(self->strangers, 0, 1, GSCHED_SUBMIT_NOWAIT);
	return ret < 0 ? ret : dump_as(self, 1);
}

static int join_as_nobody(void *arg)
{
	return join(nl_open(), *(int *)arg);
}

/* A socket that root made, handed to somebody else: neither alone is enough */
static int dump_by_roots_socket(void *arg)
{
	FIXTURE_DATA(netlink) *self = arg;

	return dump(self->nl, self->family, GSCHED_CMD_DEVICE_GET, &(struct found) { 0 });
}

TEST_F(netlink, rights)
{
	int roots = gopen();

	self->strangers = gopen();
	ASSERT_EQ(0, attach(roots, GSCHED_ATTACH_SLICE));
	ASSERT_EQ(0, submit(roots, 0, 1, GSCHED_SUBMIT_NOWAIT));
	EXPECT_EQ(0, as_nobody(dump_as_nobody, self));
	EXPECT_EQ(0, as_nobody(dump_with_client, self));
	close(self->strangers);
	close(roots);
	EXPECT_EQ(-EPERM, as_nobody(dump_by_roots_socket, self));
	EXPECT_EQ(-EPERM, as_nobody(join_as_nobody, &self->events));
	EXPECT_EQ(-EPERM, as_nobody(join_as_nobody, &self->tasks));
}

TEST_F(netlink, another_net_namespace)
{
	int status, nl;
	pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWNET))
			_exit(77);
		nl = nl_open();
		_exit(-nl_family(nl, NULL, NULL));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP(return, "no network namespaces");
	EXPECT_EQ(ENOENT, WEXITSTATUS(status));
}

static int answer(int nl, const struct nl_request *req)
{
	return nl_send(nl, req, req->head.nlmsg_len) ?: nl_answers(nl, NULL, NULL, NULL);
}

TEST_F(netlink, wrong)
{
	static const char long_name[GSCHED_NAME_SIZE + 1] = "gpu012345678901234567890123456789";
	const uint32_t word = 1;
	struct nl_request req;
	int cmd;

	for (cmd = GSCHED_CMD_DEVICE_GET; cmd <= GSCHED_CMD_BAND_GET; cmd++) {
		req = nl_request(self->family, cmd, NLM_F_DUMP);
		nl_add(&req, GSCHED_A_DEVICE, "nothing", sizeof("nothing"));
		EXPECT_EQ(-ENODEV, answer(self->nl, &req));
		req = nl_request(self->family, cmd, NLM_F_DUMP);
		nl_add(&req, GSCHED_A_DEVICE, "", 0);
		EXPECT_EQ(-EINVAL, answer(self->nl, &req));
		req = nl_request(self->family, cmd, NLM_F_DUMP);
		nl_add(&req, GSCHED_A_DEVICE, DEV_NAME, sizeof(DEV_NAME) - 1);
		EXPECT_EQ(-EINVAL, answer(self->nl, &req));
		req = nl_request(self->family, cmd, NLM_F_DUMP);
		nl_add(&req, GSCHED_A_DEVICE, long_name, sizeof(long_name));
		EXPECT_EQ(-EINVAL, answer(self->nl, &req));
		req = nl_request(self->family, cmd, NLM_F_DUMP);
		nl_add(&req, GSCHED_A_PID, &word, sizeof(word));
		EXPECT_EQ(-EINVAL, answer(self->nl, &req));
		req = nl_request(self->family, cmd, NLM_F_DUMP);
		nl_add(&req, GSCHED_A_MAX + 1, &word, sizeof(word));
		EXPECT_EQ(-EINVAL, answer(self->nl, &req));
		req = nl_request(self->family, cmd, 0);
		EXPECT_EQ(-EOPNOTSUPP, answer(self->nl, &req));
	}
	for (cmd = GSCHED_CMD_EVENT; cmd < 256; cmd += 50) {
		req = nl_request(self->family, cmd, NLM_F_DUMP);
		EXPECT_EQ(-EOPNOTSUPP, answer(self->nl, &req));
	}
	req = nl_request(self->family, GSCHED_CMD_UNSPEC, NLM_F_DUMP);
	EXPECT_EQ(-EOPNOTSUPP, answer(self->nl, &req));
	req = nl_request(self->family, GSCHED_CMD_DEVICE_GET, NLM_F_DUMP);
	req.head.nlmsg_len -= 2;
	EXPECT_EQ(-EINVAL, answer(self->nl, &req));
}

TEST_HARNESS_MAIN
