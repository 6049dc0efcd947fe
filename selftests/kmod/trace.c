// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints gsched:*, as the trace buffer shows them. */
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

static int seen(char *text, const char *event, unsigned int slot, unsigned int seq, unsigned int limit)
{
	char line[256];

	snprintf(line, sizeof(line), "%s: device=" DEV_NAME " pid=%d slot=%u seq=%u base=0 limit=%u\n",
		 event, getpid(), slot, seq, limit);
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
	EXPECT_NE(NULL, strstr(self->text, "gsched_done: device=" DEV_NAME)) TH_LOG("%s", self->text);
}

TEST_F(trace, formats)
{
	static const char *const events[] = { "gsched_grant", "gsched_evict", "gsched_grow", "gsched_done" };
	unsigned int i;

	RETURN_IF_SKIPPED();
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		ASSERT_GT(slurp(self->text, 1 << 16, TRACING "/events/gsched/%s/format", events[i]), 0);
		EXPECT_NE(NULL, strstr(self->text, "limit"));
	}
}

TEST_HARNESS_MAIN
