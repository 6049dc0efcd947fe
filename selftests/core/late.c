// SPDX-License-Identifier: GPL-2.0-only
/* Kernels that take far longer than they should, and who makes way for them. */
#include "unit.h"

#define WORKERS		0	/* a client with one long rewritten kernel */
#define VICTIM		1	/* whose kernels should take 400 us */
#define OTHER		2

static struct gsc_group *find(void *arg, const char *path, size_t len)
{
	return len == 1 && *path >= '0' && *path < '8' ? &group[*path - '0'] : NULL;
}

static void plan(const char *text)
{
	EXPECT(gsc_device_plan(&dev, text, find, &dev, clock_ns) == 0);
	gsc_commit(&dev, clock_ns);
	checked();
}

static void pass(u64 ns)
{
	u64 end = clock_ns + ns;

	while (dev.timer && dev.timer <= end) {
		clock_ns = max(clock_ns, dev.timer);
		gsc_tick(&dev, clock_ns);
		checked();
	}
	clock_ns = end;
}

static void start(const char *policy)
{
	EXPECT(!gsc_device_set_policy(&dev, policy, clock_ns));
	attach(3);
	EXPECT(!submit_block_ns(WORKERS, 0, BLOCK, 1000000, 0, 100 * US));
}

static void launch_victim(u32 tier)
{
	EXPECT(submit_block_ns(VICTIM, 0, tier, 1056, 400 * US, 0) != -EBUSY);
}

static bool has_workers(void)
{
	return task(WORKERS, 0)->window != 0;
}

/*
 * It has had three times what it should take, and 200 us: twice that time on half of the device.
 * Workers with block-tasks of 100 us have left after 300 us, and come back
 */
static void equals_make_way(void)
{
	static const char *const policy[] = { "ffs", "hpf" };

	for (size_t i = 0; i < ARRAY_SIZE(policy); i++) {
		setup();
		start(policy[i]);
		launch_victim(BLOCK);
		EXPECT_WINDOW(task(VICTIM, 0), 66);
		pass(2800 * US - 1);
		EXPECT(has_workers());
		pass(1);
		EXPECT(!has_workers() && task(VICTIM, 0)->window == ALL);
		pass(300 * US - 1);
		EXPECT(!has_workers());
		pass(1);
		EXPECT(has_workers() && task(VICTIM, 0)->window == 66 * SM);
		EXPECT(task(VICTIM, 0)->late);
		EXPECT(!complete(VICTIM, 0));
		EXPECT(task(WORKERS, 0)->window == ALL);
		/* they were away for 300 us: not again before 32 times as long have passed */
		launch_victim(BLOCK);
		pass(9600 * US - 1);
		EXPECT(has_workers());
		pass(1);
		EXPECT(!has_workers());
	}
}

/* Not before it has taken twice as long: few times, however long it takes */
static void one_that_never_ends(void)
{
	u64 began = clock_ns, last = 0;
	u32 n = 0;

	start("ffs");
	launch_victim(BLOCK);
	while (clock_ns < began + 3000 * MS) {
		pass(100 * US);
		if (has_workers())
			continue;
		n++;
		EXPECT(clock_ns - began >= 2 * last);
		pass(300 * US);
		EXPECT(has_workers());
		last = clock_ns - began;
	}
	EXPECT(n >= 8 && n <= 11);
}

/*
 * A client that says that its kernels are short, launches one after another and never lets one end
 * in time: the others keep nearly all that is theirs. So they do if it comes and goes.
 */
static void nobody_gains_by_a_lie(void)
{
	u64 lost, end;

	for (int leaves = 0; leaves < 2; leaves++) {
		setup();
		start("ffs");
		lost = 0;
		for (end = clock_ns + 4000 * MS; clock_ns < end; clock_ns += 100 * US) {
			if (dev.timer && dev.timer <= clock_ns)
				gsc_tick(&dev, clock_ns);
			if (task(VICTIM, 0)->state == GSC_TASK_NONE) {
				EXPECT(submit_block_ns(VICTIM, 0, LAUNCH, 1056, US, 0) != -EBUSY);
			} else if (clock_ns - task(VICTIM, 0)->submitted >= 15 * MS) {
				EXPECT(!complete(VICTIM, 0));
				if (leaves) {
					gsc_client_detach(&client[VICTIM], clock_ns);
					EXPECT(!gsc_client_attach(&client[VICTIM], &group[VICTIM],
								  GSCHED_ATTACH_MPS, 0, clock_ns));
				}
			}
			checked();
			lost += has_workers() ? 0 : 100 * US;
		}
		EXPECT(lost && lost < 4000 * MS / 32);
	}
}

/* Of unknown length, usually long, or behind another one of its client */
static void unknown_and_long(void)
{
	start("ffs");
	EXPECT(submit_block_ns(WORKERS, 0, BLOCK, 1000000, 0, 0) == -EBUSY);
	EXPECT(submit(VICTIM, 0, LAUNCH, 1056) != -EBUSY);
	EXPECT(submit_block_ns(VICTIM, 1, LAUNCH, 1056, 400 * US, 0) != -EBUSY);
	pass(20 * MS - 1);
	EXPECT(has_workers());
	pass(1);
	EXPECT(!has_workers() && task(VICTIM, 0)->late && !task(VICTIM, 1)->late);
	pass(300 * US);
	EXPECT(has_workers());
	EXPECT(!complete(VICTIM, 0) && !complete(VICTIM, 1));
	EXPECT(submit_block_ns(VICTIM, 0, LAUNCH, 1056, 369 * MS, 0) != -EBUSY);
	pass(20 * MS - 1);
	EXPECT(has_workers());
	pass(1);
	EXPECT(!has_workers());
}

/* There are no workers that it could stand behind: opaque kernels end by themselves */
static void opaque_equals(void)
{
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	attach(3);
	EXPECT(submit(OTHER, 0, LAUNCH, 60) != -EBUSY);
	EXPECT(submit_block_ns(VICTIM, 0, LAUNCH, 60, 400 * US, 0) != -EBUSY);
	pass(500 * MS);
	EXPECT(task(OTHER, 0)->window && !task(VICTIM, 0)->late);
}

static void what_is_promised_stays(void)
{
	start("ffs");
	EXPECT(!store(&group[WORKERS], GSC_FILE_CAPSM_MIN, "20"));
	launch_victim(BLOCK);
	pass(500 * MS);
	EXPECT(has_workers() && !task(VICTIM, 0)->late);
}

/*
 * Under a plan whoever has a target comes first, each time: when its kernel has had half of what
 * that leaves
 */
static void targets_of_a_plan(void)
{
	start("ffs");
	EXPECT(!store(&group[VICTIM], GSC_FILE_GPU_LATENCY, "900"));
	plan("60000 0=12 1=120");
	for (int i = 0; i < 5; i++) {
		launch_victim(BLOCK);
		EXPECT_WINDOW(task(VICTIM, 0), 120);
		pass(715 * US - 1);
		EXPECT(has_workers());
		pass(1);
		EXPECT(!has_workers());
		pass(MS);
		EXPECT(!complete(VICTIM, 0));
		EXPECT_WINDOW(task(WORKERS, 0), 12);
	}
	/* without a plan it is an equal, as anybody can write such a file */
	plan("none");
	launch_victim(BLOCK);
	pass(2 * MS);
	EXPECT(has_workers());
}

/* A batch program that is slow never evicts one with a target */
static void targets_make_no_way(void)
{
	start("ffs");
	EXPECT(!store(&group[WORKERS], GSC_FILE_GPU_LATENCY, "900"));
	plan("60000 0=66 1=66");
	launch_victim(BLOCK);
	pass(500 * MS);
	EXPECT(has_workers() && !task(VICTIM, 0)->late);
	/* with a target of its own it is an equal of it */
	EXPECT(!complete(VICTIM, 0) && !store(&group[VICTIM], GSC_FILE_GPU_LATENCY, "900"));
	launch_victim(BLOCK);
	pass(2800 * US);
	EXPECT(!has_workers());
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(equals_make_way), TEST(one_that_never_ends), TEST(nobody_gains_by_a_lie),
	TEST(unknown_and_long), TEST(opaque_equals), TEST(what_is_promised_stays),
	TEST(targets_of_a_plan), TEST(targets_make_no_way),
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
