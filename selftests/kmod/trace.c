// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints gsched:*, as the trace buffer shows them, and as perf(1) counts them. */
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "common.h"
#include "kselftest_harness.h"

#define TRACING	"/sys/kernel/tracing"

FIXTURE(trace) {
	int admin, fd;
	char *text;
};

FIXTURE_SETUP(trace)
{
	if (access(TRACING "/trace", R_OK))
		SKIP(return, "no tracefs");
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->fd = gopen();
	self->text = malloc(1 << 16);
	ASSERT_NE(NULL, self->text);
	ASSERT_EQ(0, put("1", TRACING "/events/gsched/enable"));
	close(open(TRACING "/trace", O_WRONLY | O_TRUNC));
	ASSERT_EQ(0, put("1", TRACING "/tracing_on"));
}

FIXTURE_TEARDOWN(trace)
{
	RETURN_IF_SKIPPED();
	put("0", TRACING "/events/gsched/enable");
	close(self->fd);
	del_device(self->admin, dev_uuid);
	close(self->admin);
	free(self->text);
}

static int seen(char *text, const char *event, unsigned int slot, unsigned int seq,
		unsigned int limit)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "%s: device=" DEV_NAME " pid=%d slot=%u seq=%u limit=%u wait_ns=", event, getpid(),
		 slot, seq, limit);
	return strstr(text, line) != NULL;
}

TEST_F(trace, grant_evict_grow_done)
{
	RETURN_IF_SKIPPED();
	ASSERT_EQ(0, attach(self->fd, 0));
	ASSERT_EQ(0, submit(self->fd, 3, 42, 0));
	ASSERT_EQ(0, put("4", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_EQ(0, put("6", CONFIG "/" DEV_NAME "/capsm.max"));
	ASSERT_EQ(0, complete(self->fd, 3, 42));
	ASSERT_GT(slurp(self->text, 1 << 16, TRACING "/trace"), 0);
	EXPECT_TRUE(seen(self->text, "gsched_grant", 3, 42, WHOLE));
	EXPECT_TRUE(seen(self->text, "gsched_evict", 3, 42, 4 * GSCHED_CAPSM));
	EXPECT_TRUE(seen(self->text, "gsched_grow", 3, 42, 6 * GSCHED_CAPSM));
	EXPECT_NE(NULL, strstr(self->text, "gsched_done: device=" DEV_NAME))
		TH_LOG("%s", self->text);
}

/* Who comes, asks and goes, and what the device does about it */
TEST_F(trace, attach_submit_policy)
{
	char line[256];

	RETURN_IF_SKIPPED();
	ASSERT_EQ(0, attach(self->fd, GSCHED_ATTACH_MPS));
	ASSERT_EQ(0, submit(self->fd, 5, 7, GSCHED_SUBMIT_NOWAIT));
	ASSERT_EQ(-EBUSY, submit(self->fd, 5, 8, GSCHED_SUBMIT_NOWAIT));
	ASSERT_EQ(0, put("wfq", SYSFS "/" DEV_NAME "/policy"));
	close(self->fd);
	self->fd = -1;
	ASSERT_GT(slurp(self->text, 1 << 16, TRACING "/trace"), 0);
	snprintf(line, sizeof(line), "gsched_attach: device=" DEV_NAME " pid=%d id=", getpid());
	EXPECT_NE(NULL, strstr(self->text, line)) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strstr(self->text, " flags=mps clients=1"));
	snprintf(line, sizeof(line), "gsched_submit: device=" DEV_NAME " pid=%d slot=5 seq=7 tier=0 blocks=1000000 "
		 "blocks_per_sm=1 predicted_ns=1000000000 state=granted ret=0", getpid());
	EXPECT_NE(NULL, strstr(self->text, line)) TH_LOG("%s", self->text);
	snprintf(line, sizeof(line), "state=none ret=%d", -EBUSY);
	EXPECT_NE(NULL, strstr(self->text, line));
	snprintf(line, sizeof(line), "gsched_lease: device=" DEV_NAME " pid=%d old=", getpid());
	EXPECT_NE(NULL, strstr(self->text, line)) TH_LOG("%s", self->text);
	EXPECT_NE(NULL,
		  strstr(self->text, "gsched_policy: device=" DEV_NAME " policy=wfq why=\"\""));
	EXPECT_NE(NULL, strstr(self->text, "gsched_decision: device=" DEV_NAME " decisions="));
	EXPECT_NE(NULL, strstr(self->text, "clients=1 active=1 ns="));
	snprintf(line, sizeof(line), "gsched_detach: device=" DEV_NAME " pid=%d id=", getpid());
	EXPECT_NE(NULL, strstr(self->text, line)) TH_LOG("%s", self->text);
}

/* The slice of a band, told to its owner */
TEST_F(trace, band)
{
	struct gsched_attach req;
	int other = gopen();
	char line[256];

	RETURN_IF_SKIPPED();
	ASSERT_EQ(0, attach_band(self->fd, GSCHED_ATTACH_SLICE, 1, &req));
	ASSERT_EQ(0, attach_band(other, GSCHED_ATTACH_SLICE, 2, &req));
	ASSERT_EQ(0, put("8", CONFIG "/" DEV_NAME "/capsm.max"));
	close(other);
	ASSERT_GT(slurp(self->text, 1 << 16, TRACING "/trace"), 0);
	/* two bands of equal weight: what the driver would give them */
	snprintf(line, sizeof(line),
		 "gsched_band: device=" DEV_NAME
		 " pid=%d slice_us=2048 flags=alone bands=2 share=%u in_flight_us=0",
		 getpid(), GSCHED_SHARE_ALL);
	EXPECT_NE(NULL, strstr(self->text, line)) TH_LOG("%s", self->text);
	snprintf(line, sizeof(line),
		 "gsched_band: device=" DEV_NAME
		 " pid=%d slice_us=2048 flags=report|alone bands=2 share=%u in_flight_us=0",
		 getpid(), GSCHED_SHARE_ALL / 2);
	EXPECT_NE(NULL, strstr(self->text, line)) TH_LOG("%s", self->text);
	snprintf(line, sizeof(line),
		 "gsched_band: device=" DEV_NAME
		 " pid=%d slice_us=0 flags=report|alone bands=1 share=%u in_flight_us=0",
		 getpid(), GSCHED_SHARE_ALL / 2);
	EXPECT_NE(NULL, strstr(self->text, line)) TH_LOG("%s", self->text);
}

/* Counts a tracepoint in this process, as `perf stat -e gsched:NAME` does */
static int counter(const char *name)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	char id[32];

	if (slurp(id, sizeof(id), TRACING "/events/gsched/%s/id", name) <= 0)
		return -1;
	attr.config = strtoull(id, NULL, 10);
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

TEST_F(trace, perf)
{
	static const struct { const char *name; unsigned long long n; } events[] = {
		{ "gsched_attach", 1 }, { "gsched_submit", 2 }, { "gsched_grant", 2 },
		{ "gsched_done", 2 }, { "gsched_detach", 1 },
	};
	int fd[ARRAY_SIZE(events)];
	unsigned long long n;
	unsigned int i;

	RETURN_IF_SKIPPED();
	if (access("/proc/sys/kernel/perf_event_paranoid", F_OK))
		SKIP(return, "no perf events in this kernel");
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		fd[i] = counter(events[i].name);
		ASSERT_LE(0, fd[i]) TH_LOG("%s: %s", events[i].name, strerror(errno));
	}
	ASSERT_EQ(0, attach(self->fd, 0));
	for (i = 1; i <= 2; i++) {
		ASSERT_EQ(0, submit(self->fd, 0, i, 0));
		ASSERT_EQ(0, complete(self->fd, 0, i));
	}
	close(self->fd);
	self->fd = -1;
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		ASSERT_EQ(sizeof(n), read(fd[i], &n, sizeof(n)));
		EXPECT_EQ(events[i].n, n) TH_LOG("%s", events[i].name);
		close(fd[i]);
	}
}

TEST_F(trace, formats)
{
	static const char *const events[] = { "gsched_grant", "gsched_evict", "gsched_grow",
					      "gsched_done" };
	unsigned int i;

	RETURN_IF_SKIPPED();
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		ASSERT_GT(slurp(self->text, 1 << 16, TRACING "/events/gsched/%s/format", events[i]),
			  0);
		EXPECT_NE(NULL, strstr(self->text, "limit"));
	}
	ASSERT_GT(slurp(self->text, 1 << 16, TRACING "/events/gsched/gsched_band/format"), 0);
	EXPECT_NE(NULL, strstr(self->text, "slice_us"));
}

TEST_HARNESS_MAIN
