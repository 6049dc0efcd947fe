// SPDX-License-Identifier: GPL-2.0-only
/* memory.max: what clients hold, what they may hold, and what is told to them. */
#include "unit.h"

#define MIB	(1ULL << 20)

static int report(int c, u64 bytes, u32 flags)
{
	struct gsched_report req = {
		.size = sizeof(req), .flags = GSCHED_REPORT_MEMORY | flags, .memory = bytes,
	};
	int ret = gsc_client_report(&client[c], &req, clock_ns);

	gsc_commit(&dev, clock_ns);
	checked();
	return ret;
}

static int ask(int c, u64 bytes)
{
	return report(c, bytes, GSCHED_REPORT_ASKS);
}

/* What the answer to a report says */
static bool answers(int c, u64 max, u64 room)
{
	struct gsched_report req = {
		.size = sizeof(req), .flags = GSCHED_REPORT_MEMORY, .memory = client[c].memory,
	};

	EXPECT(!gsc_client_report(&client[c], &req, clock_ns));
	return req.memory_max == max && req.memory_room == room;
}

static void without_a_limit(void)
{
	setup();
	attach(2);
	EXPECT(!ask(0, 3 * MIB) && !report(1, 5 * MIB, 0));
	EXPECT(shows(&group[0], GSC_FILE_MEMORY_MAX, "max\n"));
	EXPECT(shows(&group[0], GSC_FILE_MEMORY_CURRENT, "3145728\n"));
	EXPECT(shows(&dev.root, GSC_FILE_MEMORY_CURRENT, "8388608\n"));
	EXPECT(answers(0, U64_MAX, U64_MAX) && !(client[0].arb.flags & GSCHED_ARB_LIMITED));
	EXPECT(!report(0, MIB, 0));
	EXPECT(shows(&dev.root, GSC_FILE_MEMORY_CURRENT, "6291456\n"));
	EXPECT(shows(&dev.root, GSC_FILE_MEMORY_PEAK, "8388608\n"));
	gsc_client_detach(&client[1], clock_ns);
	checked();
	EXPECT(shows(&group[1], GSC_FILE_MEMORY_CURRENT, "0\n"));
	EXPECT(shows(&group[1], GSC_FILE_MEMORY_PEAK, "5242880\n"));
}

static void what_is_asked_for(void)
{
	setup();
	attach(1);
	EXPECT(!gsc_client_attach(&client[1], &group[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!store(&group[0], GSC_FILE_MEMORY_MAX, "10M"));
	EXPECT(client[0].arb.flags & GSCHED_ARB_LIMITED && client[1].arb.flags & GSCHED_ARB_LIMITED);
	EXPECT(!ask(0, 4 * MIB) && !ask(1, 6 * MIB));
	EXPECT(answers(0, 10 * MIB, 0));
	EXPECT(ask(0, 4 * MIB + 1) == -EDQUOT && client[0].memory == 4 * MIB);
	EXPECT(group[0].stats.events[GSC_EVENT_MEMORY] == 1 &&
	       dev.root.stats.events[GSC_EVENT_MEMORY] == 1);
	/* less, or the same, is always right; so is what is there already, however much */
	EXPECT(!ask(1, 6 * MIB) && !ask(1, 2 * MIB) && !ask(0, 8 * MIB));
	EXPECT(!report(1, 20 * MIB, 0) && group[0].memory.current_bytes == 28 * MIB);
	EXPECT(answers(1, 10 * MIB, 0) && ask(0, 9 * MIB) == -EDQUOT);
	EXPECT(!ask(1, 19 * MIB) && ask(1, 19 * MIB + 1) == -EDQUOT);
	/* a new limit takes effect at once */
	EXPECT(!store(&group[0], GSC_FILE_MEMORY_MAX, "max"));
	EXPECT(!(client[0].arb.flags & GSCHED_ARB_LIMITED) && !ask(0, 900 * MIB));
	EXPECT(!store(&group[0], GSC_FILE_MEMORY_MAX, "0") && answers(0, 0, 0));
	EXPECT(ask(0, 901 * MIB) == -EDQUOT && !ask(0, 899 * MIB));
}

static void limits_above(void)
{
	struct gsc_group below = { 0 };

	setup();
	EXPECT(!gsc_group_init(&below, &group[0]));
	EXPECT(!gsc_client_attach(&client[0], &below, GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[1], &group[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!store(&below, GSC_FILE_MEMORY_MAX, "8M"));
	EXPECT(!store(&group[0], GSC_FILE_MEMORY_MAX, "10M"));
	EXPECT(!ask(1, 5 * MIB));
	EXPECT(answers(0, 8 * MIB, 5 * MIB) && answers(1, 10 * MIB, 5 * MIB));
	EXPECT(ask(0, 6 * MIB) == -EDQUOT && !ask(0, 5 * MIB));
	EXPECT(!(client[2].arb.flags & GSCHED_ARB_LIMITED) && !ask(2, 100 * MIB));
	EXPECT(!store(&dev.root, GSC_FILE_MEMORY_MAX, "1G"));
	EXPECT(client[2].arb.flags & GSCHED_ARB_LIMITED);
	EXPECT(answers(2, 1024 * MIB, (1024 - 110) * MIB) && answers(0, 8 * MIB, 0));
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(!gsc_group_exit(&below));
	checked();
}

static void goes_with_its_client(void)
{
	setup();
	attach(2);
	EXPECT(!report(0, 7 * MIB, 0) && !store(&group[3], GSC_FILE_MEMORY_MAX, "4M"));
	/* as in cgroup v2 a move is not refused */
	gsc_client_move(&client[0], &group[3], clock_ns);
	gsc_commit(&dev, clock_ns);
	checked();
	EXPECT(!group[0].memory.current_bytes && group[3].memory.current_bytes == 7 * MIB);
	EXPECT(client[0].arb.flags & GSCHED_ARB_LIMITED && answers(0, 4 * MIB, 0));
	EXPECT(dev.root.memory.current_bytes == 7 * MIB);
	gsc_client_detach(&client[0], clock_ns);
	checked();
	EXPECT(!dev.root.memory.current_bytes && !group[3].memory.current_bytes);
	EXPECT(!gsc_client_attach(&client[0], &group[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	checked();
	EXPECT(!group[0].memory.current_bytes);
}

static void formats(void)
{
	static const struct { const char *text, *shown; } good_ones[] = {
		{ "0", "0\n" }, { "1\n", "1\n" }, { "4096", "4096\n" }, { "2K", "2048\n" },
		{ "2k", "2048\n" }, { "1t", "1099511627776\n" },
		{ "5m", "5242880\n" }, { "1g", "1073741824\n" },
		{ "3M\n", "3145728\n" }, { "40G", "42949672960\n" }, { "1T", "1099511627776\n" },
		{ "1024T", "1125899906842624\n" }, { "1125899906842624", "1125899906842624\n" },
		{ "max\n", "max\n" },
	};
	static const char *const bad_ones[] = {
		"", "\n", "-1", "x", "1x", "1.5G", "1GG", "1P", "G", " 1", "1 ", "1G\n\n", "maxx",
		"1125899906842625", "1025T", "18446744073709551616", "0x10", "1G max",
	};

	setup();
	for (size_t i = 0; i < ARRAY_SIZE(good_ones); i++) {
		EXPECT(!store(&group[0], GSC_FILE_MEMORY_MAX, good_ones[i].text));
		EXPECT(shows(&group[0], GSC_FILE_MEMORY_MAX, good_ones[i].shown));
	}
	EXPECT(!store(&group[0], GSC_FILE_MEMORY_MAX, "5M"));
	for (size_t i = 0; i < ARRAY_SIZE(bad_ones); i++) {
		EXPECT(store(&group[0], GSC_FILE_MEMORY_MAX, bad_ones[i]) == -EINVAL);
		EXPECT(shows(&group[0], GSC_FILE_MEMORY_MAX, "5242880\n"));
	}
	EXPECT(store(&group[0], GSC_FILE_MEMORY_CURRENT, "1") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_MEMORY_PEAK, "1") == -EINVAL);
}

static void bad_reports(void)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_ASKS };

	setup();
	attach(1);
	EXPECT(gsc_client_report(&client[0], &req, clock_ns) == -EINVAL);
	EXPECT(report(0, GSCHED_MEMORY_MAX + 1, 0) == -EINVAL);
	EXPECT(report(0, U64_MAX, GSCHED_REPORT_ASKS) == -EINVAL);
	EXPECT(!report(0, GSCHED_MEMORY_MAX, 0) && !report(0, 0, 0));
	EXPECT(!dev.root.memory.current_bytes);
	/* beside others in one report; of one that is refused nothing counts */
	req.flags = GSCHED_REPORT_MEMORY | GSCHED_REPORT_ASKS | GSCHED_REPORT_STREAMS;
	req.memory = 2 * MIB;
	req.prioritised = 1;
	EXPECT(!store(&group[0], GSC_FILE_MEMORY_MAX, "1M"));
	EXPECT(gsc_client_report(&client[0], &req, clock_ns) == -EDQUOT && !client[0].prioritised);
	req.memory = MIB;
	EXPECT(!gsc_client_report(&client[0], &req, clock_ns) && client[0].prioritised);
	EXPECT(client[0].memory == MIB && !req.memory_room && req.memory_max == MIB);
}

/* An allocation is no event that anybody's windows depend on */
static void decides_nothing(void)
{
	u64 before;

	setup();
	attach(2);
	submit(0, 0, BLOCK, 1000);
	before = dev.decisions;
	EXPECT(!ask(0, MIB) && !report(1, 2 * MIB, 0) && !report(0, 0, 0));
	EXPECT(dev.decisions == before);
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(without_a_limit), TEST(what_is_asked_for), TEST(limits_above),
		TEST(goes_with_its_client), TEST(formats), TEST(bad_reports), TEST(decides_nothing),
	};

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
