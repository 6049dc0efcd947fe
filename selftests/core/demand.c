// SPDX-License-Identifier: GPL-2.0-only
/* gpu.stat: what was demanded and promised, beside what was used. */
#include "unit.h"

static void count(void)
{
	gsc_tick(&dev, clock_ns);
	gsc_device_count(&dev, clock_ns);
	checked();
}

static void pass(u64 ns)
{
	clock_ns += ns;
	count();
}

#define DEMANDED(g)	NS((g)->stats.demanded)
#define PROMISED(g)	NS((g)->stats.promised)

/* It demands the whole device, has half of it, and is charged for that */
static void more_than_it_gets(void)
{
	setup();
	attach(2);
	submit(0, 0, BLOCK, 100000);
	submit(1, 0, BLOCK, 100000);
	pass(100 * US);
	EXPECT(DEMANDED(&group[0]) == 100 * US * SMS && NS(group[0].stats.capsm) == 100 * US * 66);
	EXPECT(DEMANDED(&client[1].own) == 100 * US * SMS);
	EXPECT(DEMANDED(&dev.root) == 200 * US * SMS);
	/* a quota changes nothing, nor does waiting */
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "1"));
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	pass(100 * US);
	EXPECT(DEMANDED(&group[1]) == 200 * US * SMS);
	complete(1, 0);
	pass(100 * US);
	EXPECT(DEMANDED(&group[1]) == 200 * US * SMS && DEMANDED(&group[0]) == 300 * US * SMS);
}

/* Of several at once the largest, until it ends */
static void largest_of_several(void)
{
	setup();
	attach(1);
	submit(0, 0, BLOCK, 10);
	submit(0, 1, BLOCK, 30);
	submit(0, 2, BLOCK, 20);
	pass(US);
	complete(0, 1);
	pass(US);
	submit(0, 1, BLOCK, 20);
	complete(0, 2);
	pass(US);
	complete(0, 1);
	pass(US);
	complete(0, 0);
	pass(US);
	EXPECT(DEMANDED(&group[0]) == (30 + 20 + 20 + 10) * US);
}

/* A task has its own part of what was used, and the number of its evictions */
static void of_a_task(void)
{
	setup();
	attach(2);
	submit(0, 0, BLOCK, 100000);
	pass(US);
	submit(1, 0, BLOCK, 100000);
	pass(US);
	EXPECT(task(0, 0)->evictions == 1 && !task(1, 0)->evictions);
	EXPECT(task(0, 0)->usage == (SMS + 66) * SM * US && task(1, 0)->usage == 66 * SM * US);
	complete(0, 0);
	complete(1, 0);
	submit(0, 0, BLOCK, 100000);
	EXPECT(!task(0, 0)->evictions && !task(0, 0)->usage);
}

/* It stays with the group where it was demanded, and when the client goes */
static void goes_elsewhere(void)
{
	setup();
	attach(1);
	submit(0, 0, BLOCK, 10);
	clock_ns += US;
	gsc_client_move(&client[0], &group[1], clock_ns);
	checked();
	clock_ns += US;
	gsc_client_detach(&client[0], clock_ns);
	checked();
	EXPECT(DEMANDED(&group[0]) == 10 * US && DEMANDED(&group[1]) == 10 * US);
	EXPECT(DEMANDED(&dev.root) == 20 * US);
}

/* Years at once, or in steps, neither wrap nor lose anything */
static void years(void)
{
	const u64 year = 365ULL * 86400 * 1000 * MS;

	for (int steps = 1; steps <= 365; steps += 364) {
		u64 last = 0;

		setup();
		attach(8);
		EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "132"));
		for (int c = 0; c < 8; c++)
			submit(c, 0, BLOCK, 100000);
		for (int i = 0; i < steps; i++) {
			clock_ns += year / (u64)steps;
			gsc_tick(&dev, clock_ns);
			if (i % 7 == 0)
				gsc_device_count(&dev, clock_ns);
			EXPECT(dev.root.stats.demanded.us >= last);
			last = dev.root.stats.demanded.us;
		}
		count();
		EXPECT(dev.root.stats.demanded.us == year / 1000 * 8 * SMS);
		EXPECT(dev.root.stats.promised.us == year / 1000 * SMS);
	}
}

/* capsm.min counts while somebody in the group or below it has a task */
static void promised(void)
{
	static struct gsc_group below;

	setup();
	memset(&below, 0, sizeof(below));
	EXPECT(!gsc_group_init(&below, &group[0]));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "20"));
	EXPECT(!store(&below, GSC_FILE_CAPSM_MIN, "30"));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "5"));
	attach(2);
	EXPECT(!gsc_client_attach(&client[2], &below, GSCHED_ATTACH_MPS, 0, clock_ns));
	pass(US);
	EXPECT(!PROMISED(&dev.root));
	/* also a small kernel, and one that waits */
	submit(0, 0, BLOCK, 1);
	pass(US);
	EXPECT(PROMISED(&group[0]) == 20 * US && PROMISED(&dev.root) == 20 * US &&
	       !PROMISED(&below));
	submit(2, 0, BLOCK, 1);
	submit(1, 0, BLOCK, 1);
	pass(US);
	EXPECT(PROMISED(&below) == 30 * US && PROMISED(&group[0]) == 50 * US);
	EXPECT(PROMISED(&group[1]) == 5 * US && PROMISED(&dev.root) == 55 * US);
	/* a max above it, a min that goes, a client that goes */
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "25"));
	pass(US);
	EXPECT(PROMISED(&group[0]) == 75 * US && PROMISED(&dev.root) == 85 * US);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "0"));
	gsc_client_detach(&client[2], clock_ns);
	pass(US);
	EXPECT(PROMISED(&below) == 60 * US && PROMISED(&group[0]) == 95 * US);
	EXPECT(PROMISED(&dev.root) == 105 * US && PROMISED(&group[1]) == 10 * US);
	complete(0, 0);
	pass(US);
	EXPECT(PROMISED(&group[0]) == 95 * US && !PROMISED(&client[0].own));
	EXPECT(!gsc_group_exit(&below));
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(more_than_it_gets), TEST(largest_of_several), TEST(of_a_task), TEST(goes_elsewhere),
		TEST(years), TEST(promised),
	};

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
