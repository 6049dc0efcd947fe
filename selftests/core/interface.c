// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core's calls and files: leases, what is rejected, lifetimes, statistics, formats. One
 * behaviour a test.
 */
#include "unit.h"

static void leases(void)
{
	attach(1);
	EXPECT(client[0].lease == GSCHED_LEASE_FREE && n_lease == 1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4"));
	EXPECT(client[0].lease == GSCHED_LEASE_NONE);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "132"));
	EXPECT(client[0].lease == GSCHED_LEASE_FREE);
	EXPECT(!gsc_client_attach(&client[1], &group[1], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(client[0].lease == GSCHED_LEASE_NONE && client[1].lease == GSCHED_LEASE_NONE);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(client[0].lease == GSCHED_LEASE_NONE && client[1].lease == GSCHED_LEASE_NOTIFY);
	EXPECT(dev.top_priority == 10);
	n_lease = 0;
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	EXPECT(!n_lease);
	gsc_client_detach(&client[1], clock_ns);
	EXPECT(client[0].lease == GSCHED_LEASE_FREE && n_lease == 1);
}

static void submit_rejects(void)
{
	struct gsched_submit ok = make_submit(0, 1, BLOCK, 1), req;

	attach(1);
#define REJECT(field, value) do { \
	req = ok; \
	req.field = value; \
	EXPECT(gsc_submit(&client[0], &req, clock_ns) == -EINVAL); \
} while (0)
	REJECT(slot, GSCHED_SLOTS);
	REJECT(slot, U32_MAX);
	REJECT(seq, 0);
	REJECT(tier, 3);
	REJECT(blocks_per_sm, 0);
	REJECT(blocks_per_sm, 33);
	REJECT(blocks, 0);
	req = make_submit(0, 1, SLICE, 1);
	EXPECT(gsc_submit(&client[0], &req, clock_ns) == -EOPNOTSUPP);
	EXPECT(!client[0].n_tasks && list_empty(&client[0].band->tasks));
	EXPECT(gsc_submit(&client[0], &ok, clock_ns) == 0);
	EXPECT(gsc_submit(&client[0], &ok, clock_ns) == -EBUSY);
	EXPECT(client[0].n_tasks == 1);
	req = make_submit(1, 1, BLOCK, U64_MAX);
	req.predicted_ns = U64_MAX;
	req.block_ns = U64_MAX;
	EXPECT(gsc_submit(&client[0], &req, clock_ns) == 0);
	checked();
}

static void complete_rejects(void)
{
	struct gsched_complete req = make_complete(GSCHED_SLOTS, 1);

	attach(1);
	EXPECT(gsc_complete(&client[0], &req, clock_ns) == -EINVAL);
	EXPECT(complete(0, 0) == -ENOENT);
	EXPECT(submit(0, 0, BLOCK, 1) == 0);
	req = make_complete(0, 2);
	EXPECT(gsc_complete(&client[0], &req, clock_ns) == -ENOENT);
	EXPECT(complete(0, 0) == 0);
	EXPECT(complete(0, 0) == -ENOENT);
}

static void detach_gives_all_back(void)
{
	attach(2);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 1, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(task(1, 0)->window == 66 * SM);
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(n_done == 2);
	EXPECT(task(1, 0)->window == ALL);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "0\n"));
	gsc_client_detach(&client[0], clock_ns);
	checked();
}

static void move_takes_the_quota_of_the_new_group(void)
{
	attach(1);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "9"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	clock_ns += 100 * US;
	gsc_client_move(&client[0], &group[1], clock_ns);
	EXPECT_WINDOW(task(0, 0), 9);
	EXPECT(NS(group[0].stats.capsm) == 100 * US * SMS && !NS(group[1].stats.capsm));
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "0\n"));
	EXPECT(shows(&group[1], GSC_FILE_CAPSM_CURRENT, "9\n"));
	EXPECT(gsc_group_exit(&group[1]) == -EBUSY);
	EXPECT(gsc_group_exit(&group[0]) == 0);
	checked();
}

static void statistics(void)
{
	struct gsched_complete req = make_complete(0, 1);

	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	clock_ns += 10 * US;
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	clock_ns += 90 * US;
	req.ran_ns = U64_MAX;	/* a hint: bounded by the wall time */
	EXPECT(gsc_complete(&client[0], &req, clock_ns) == 0);
	clock_ns += 10 * US;
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "66"));
	clock_ns += 10 * US;
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "max"));
	gsc_device_count(&dev, clock_ns);
	EXPECT(shows(&group[0], GSC_FILE_GPU_STAT, "usage_usec 100\ncapsm_usec 13200\n"
		     "ran_usec 100\npaced_usec 0\ntasks 1\ngrants 1\nevictions 0\ngrowths 0\n"
		     "wait_usec 0\ncancelled 0\ndemanded_usec 13200\npromised_usec 0\n"));
	EXPECT(shows(&group[1], GSC_FILE_GPU_STAT, "usage_usec 20\ncapsm_usec 1980\n"
		     "ran_usec 0\npaced_usec 0\ntasks 0\ngrants 1\nevictions 1\ngrowths 1\n"
		     "wait_usec 90\ncancelled 0\ndemanded_usec 14520\npromised_usec 0\n"));
	req.flags = GSCHED_COMPLETE_CANCEL;
	EXPECT(gsc_complete(&client[1], &req, clock_ns) == 0);
	EXPECT(shows(&dev.root, GSC_FILE_GPU_STAT, "usage_usec 120\ncapsm_usec 15180\n"
		     "ran_usec 100\npaced_usec 0\ntasks 1\ngrants 2\nevictions 1\ngrowths 1\n"
		     "wait_usec 90\ncancelled 1\ndemanded_usec 27720\npromised_usec 0\n"));
}

static u64 stat_of(const struct gsc_group *g, const char *key)
{
	char buf[512], word[32];
	const char *at;

	gsc_device_count(&dev, clock_ns);
	snprintf(word, sizeof(word), "\n%s ", key);
	buf[0] = '\n';
	gsc_group_show(g, GSC_FILE_GPU_STAT, buf + 1, sizeof(buf) - 1);
	at = strstr(buf, word);
	return at ? strtoull(at + strlen(word), NULL, 10) : U64_MAX;
}

#define DAY_US	(86400 * 1000 * 1000ULL)

/* Three years on the largest device, whether somebody looks each day or only at the end */
static void years_of_usage(void)
{
	u64 last = 0, now;
	u32 days = 0;

	for (int looks = 0; looks < 2; looks++) {
		setup();
		memset(&dev, 0, sizeof(dev));
		memset(group, 0, sizeof(group));
		EXPECT(!gsc_device_init(&dev, &ops, GSCHED_SMS_MAX));
		for (int i = 0; i < 8; i++)
			EXPECT(!gsc_group_init(&group[i], &dev.root));
		/* eight bands, which have the device each */
		for (int i = 0; i < 8; i++) {
			EXPECT(!gsc_client_attach(&client[i], &group[i], GSCHED_ATTACH_SLICE,
						  0, clock_ns));
			EXPECT(submit(i, 0, BLOCK, 100000) == 0);
		}
		for (last = 0, days = 0; days < 3 * 365; days++) {
			clock_ns += DAY_US * 1000;
			if (looks)
				continue;
			gsc_tick(&dev, clock_ns);
			now = stat_of(&dev.root, "capsm_usec");
			EXPECT(now - last == DAY_US * 8 * GSCHED_SMS_MAX);
			last = now;
		}
		gsc_tick(&dev, clock_ns);
		for (int i = 0; i < 8; i++) {
			struct gsched_complete req = make_complete(0, 1);

			req.ran_ns = U64_MAX;
			EXPECT(gsc_complete(&client[i], &req, clock_ns) == 0);
			gsc_client_detach(&client[i], clock_ns);
		}
		EXPECT(task(0, 0)->usage == U64_MAX);
		EXPECT(stat_of(&dev.root, "capsm_usec") == days * DAY_US * 8 * GSCHED_SMS_MAX);
		EXPECT(stat_of(&dev.root, "usage_usec") == days * DAY_US * 8);
		EXPECT(stat_of(&dev.root, "ran_usec") == days * DAY_US * 8);
		EXPECT(stat_of(&group[0], "capsm_usec") == days * DAY_US * GSCHED_SMS_MAX);
		checked();
	}
}

/* What is less than a microsecond is not lost: nine of 1.7 us */
static void short_times_add_up(void)
{
	attach(1);
	for (int i = 0; i < 9; i++) {
		EXPECT(submit(0, 0, BLOCK, 8) == 0);
		clock_ns += 1700;
		EXPECT(complete(0, 0) == 0);
	}
	EXPECT(stat_of(&group[0], "usage_usec") == 15 && stat_of(&group[0], "capsm_usec") == 15);
	EXPECT(NS(group[0].stats.granted) == 9 * 1700);
}

static void usage_counts_no_more_than_the_blocks_fill(void)
{
	attach(1);
	/* 8 blocks, 8 an SM: one CapSM, though spread over 8 SMs */
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	clock_ns += 100 * US;
	gsc_tick(&dev, clock_ns);
	gsc_device_count(&dev, clock_ns);
	EXPECT(NS(group[0].stats.capsm) == 100 * US && NS(group[0].stats.granted) == 100 * US);
}

static void a_week_does_not_overflow(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	clock_ns += 7 * 86400 * 1000 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(NS(group[0].stats.capsm) == 7 * 86400 * 1000 * MS * SMS);
}

static void time_never_goes_back(void)
{
	struct gsched_complete req = make_complete(0, 1);

	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(gsc_complete(&client[0], &req, clock_ns - MS) == 0);
	EXPECT(dev.now == clock_ns && NS(group[0].stats.capsm) == 0);
}

static void quota_formats(void)
{
	static const char *const bad[] = { "", "\n", "abc", "-1", "+1", "4x", "0", "0.0", "133",
					   "132.0009765625", "1.",
		".5", "1..5", "1.5.2", " 4", "4 ", "4\n\n", "0x10", "1e2", "maximum", "max ",
		"Max", "0.0001",
		"99999999999999999999999999999999999999", "4294967297", "18446744073709551617",
		"1.x", "1,5" };
	static const struct { const char *in, *out; } ok[] = { { "4", "4\n" }, { "4\n", "4\n" },
							       { "max", "max\n" },
		{ "max\n", "max\n" }, { "1.5", "1.5\n" }, { "1.0009765625", "1.0009765625\n" },
		{ "132", "132\n" },
		{ "132.000", "132\n" }, { "007", "7\n" }, { "0.0009765625", "0.0009765625\n" },
		{ "1.99999999999999999999999999999", "2\n" }, { "0.25\n", "0.25\n" },
		{ "0.1", "0.099609375\n" } };

	EXPECT(shows(&group[0], GSC_FILE_CAPSM_MAX, "max\n"));
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_MIN, "0\n"));
	for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
		EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, ok[i].in));
		EXPECT(shows(&group[0], GSC_FILE_CAPSM_MAX, ok[i].out));
		EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, ok[i].in));
		EXPECT(shows(&group[0], GSC_FILE_CAPSM_MIN, ok[i].out));
	}
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "5"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (store(&group[0], GSC_FILE_CAPSM_MAX, bad[i]) != -EINVAL) {
			printf("# accepted \"%s\"\n", bad[i]);
			good = false;
		}
		EXPECT(shows(&group[0], GSC_FILE_CAPSM_MAX, "5\n"));
	}
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "0"));
	EXPECT(store(&group[0], GSC_FILE_CAPSM_MIN, "-1") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_CAPSM_MIN, "132.5") == -EINVAL);
}

static void number_formats(void)
{
	static const char *const bad[] = { "", "abc", "-1", "4x", "1.5", "max", "10001",
					   "99999999999999999999", " 1" };

	EXPECT(shows(&group[0], GSC_FILE_GPU_WEIGHT, "100\n") &&
	       shows(&group[0], GSC_FILE_GPU_PRIORITY, "0\n"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT(store(&group[0], GSC_FILE_GPU_WEIGHT, bad[i]) == -EINVAL);
		EXPECT(store(&group[0], GSC_FILE_GPU_PRIORITY, bad[i]) == -EINVAL);
	}
	EXPECT(store(&group[0], GSC_FILE_GPU_WEIGHT, "0") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_GPU_PRIORITY, "100") == -EINVAL);
	EXPECT(shows(&group[0], GSC_FILE_GPU_WEIGHT, "100\n") &&
	       shows(&group[0], GSC_FILE_GPU_PRIORITY, "0\n"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "10000\n") &&
	       !store(&group[0], GSC_FILE_GPU_PRIORITY, "99\n"));
	EXPECT(shows(&group[0], GSC_FILE_GPU_WEIGHT, "10000\n") &&
	       shows(&group[0], GSC_FILE_GPU_PRIORITY, "99\n"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "1") &&
	       !store(&group[0], GSC_FILE_GPU_PRIORITY, "0"));
}

static void file_names(void)
{
	static const char *const name[] = { "capsm.max", "capsm.min", "capsm.reserve", "gpu.weight",
					    "gpu.priority", "gpu.band",
		"gpu.latency_target_us", "memory.max", "capsm.current", "capsm.plan", "gpu.stat",
		"gpu.pressure", "gpu.events", "gpu.preemption", "memory.current", "memory.peak" };

	for (int i = 0; i < GSC_FILE_COUNT; i++) {
		EXPECT(!strcmp(gsc_file_name[i], name[i]));
		EXPECT(gsc_file_find(name[i]) == i);
		EXPECT(gsc_file_writable(i) == (i < 8));
		if (i >= 8)
			EXPECT(store(&group[0], i, "1") == -EINVAL);
	}
	EXPECT(gsc_file_find("capsm") == -ENOENT && gsc_file_find("") == -ENOENT);
	EXPECT(store(&group[0], GSC_FILE_COUNT, "1") == -EINVAL);
}

static void show_is_bounded(void)
{
	char buf[8] = "xxxxxxx";

	EXPECT(gsc_group_show(&group[0], GSC_FILE_GPU_STAT, buf, 4) == 3);
	EXPECT(!strcmp(buf, "usa") && buf[4] == 'x');
}

static void lifetime_rejects(void)
{
	static struct gsc_group deep[GSC_GROUP_DEPTH_MAX];
	static struct gsc_device other;
	struct gsc_group *parent = &dev.root;

	memset(deep, 0, sizeof(deep));
	EXPECT(gsc_device_init(&other, &ops, 0) == -EINVAL);
	EXPECT(gsc_device_init(&other, &ops, GSCHED_SMS_MAX + 1) == -EINVAL);
	for (int i = 0; i < GSC_GROUP_DEPTH_MAX - 1; i++) {
		EXPECT(!gsc_group_init(&deep[i], parent));
		parent = &deep[i];
	}
	EXPECT(gsc_group_init(&deep[GSC_GROUP_DEPTH_MAX - 1], parent) == -EINVAL);
	EXPECT(gsc_group_exit(&deep[GSC_GROUP_DEPTH_MAX - 1]) == 0);
	EXPECT(gsc_group_exit(&dev.root) == -EBUSY);
	EXPECT(gsc_client_attach(&client[0], &group[0], 1U << 31, 0, clock_ns) == -EINVAL);
	attach(1);
	EXPECT(gsc_client_attach(&client[0], &group[0], 0, 0, clock_ns) == -EINVAL);
	for (int i = GSC_GROUP_DEPTH_MAX - 2; i >= 0; i--)
		EXPECT(!gsc_group_exit(&deep[i]));
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(leases), TEST(submit_rejects), TEST(complete_rejects), TEST(detach_gives_all_back),
	TEST(move_takes_the_quota_of_the_new_group), TEST(statistics), TEST(years_of_usage),
	TEST(short_times_add_up), TEST(usage_counts_no_more_than_the_blocks_fill),
	TEST(a_week_does_not_overflow), TEST(time_never_goes_back), TEST(quota_formats),
	TEST(number_formats), TEST(file_names), TEST(show_is_bounded), TEST(lifetime_rejects),
};

int main(void)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
