// SPDX-License-Identifier: GPL-2.0-only
/* How long evictions take, as the core finds out from the pages of clients. */
#include "unit.h"

static struct gsched_arb_page arb[8];
static struct gsched_cl_page cl[8];
static struct gsc_delays delays[8];

/* @n clients with pages in one band; the last one is the most important */
static void begin(int n)
{
	setup();
	memset(arb, 0, sizeof(arb));
	memset(cl, 0, sizeof(cl));
	memset(delays, 0, sizeof(delays));
	for (int c = 0; c < n; c++) {
		group[c].delays = &delays[c];
		client[c].arb_page = &arb[c];
		client[c].cl_page = &cl[c];
	}
	attach(n);
	EXPECT(!store(&group[n - 1], GSC_FILE_GPU_PRIORITY, "10"));
	clock_ns += MS;
}

static struct gsched_cl_slot *hint(int c)
{
	return &cl[c].slot[0];
}

/* A kernel of @blocks with as many workers as fit its window, eight an SM, that has begun */
static void launch(int c, u64 blocks)
{
	u64 workers = min(blocks, (u64)8 * SMS);

	EXPECT(submit(c, 0, BLOCK, blocks) != -EINVAL);
	*hint(c) = (struct gsched_cl_slot){
		.seq = 1, .launched = (u32)workers, .blocks = blocks, .start_ns = 1,
		.seen_limit = task(c, 0)->window,
	};
}

static void pass(u64 ns)
{
	clock_ns += ns;
	gsc_tick(&dev, clock_ns);
	gsc_commit(&dev, clock_ns);
	checked();
}

static void sees(int c, u32 left)
{
	hint(c)->seen_limit = task(c, 0)->window;
	hint(c)->left = left;
}

/* One eviction that took @ns */
static bool took(const struct gsc_delays *d, u64 ns)
{
	u64 limit = 16 * US;
	u32 i = 0;

	for (; i < GSC_DELAY_BUCKETS - 1 && ns > limit; i++)
		limit *= 2;
	if (gsc_delay_count(d) == 1 && d->n[i] == 1 && NS(d->sum) == ns)
		return true;
	printf("# %llu measured, %llu ns\n", gsc_delay_count(d), NS(d->sum));
	return false;
}

/* Half of the device goes to an equal: the timer looks when as much time has passed again */
static void measured_by_the_timer(void)
{
	begin(3);
	launch(0, 100000);
	launch(1, 100000);
	EXPECT_WINDOW(task(0, 0), 66);
	EXPECT(dev.armed == clock_ns + 24 * US);
	pass(24 * US);
	EXPECT(dev.armed == clock_ns + 24 * US && !gsc_delay_count(&dev.delays));
	/* seen, but not all have left, and the other way round */
	sees(0, 527);
	pass(24 * US);
	hint(0)->seen_limit++;
	hint(0)->left = 528;
	EXPECT(dev.armed == clock_ns + 48 * US);
	pass(48 * US);
	EXPECT(dev.armed == clock_ns + 96 * US && !gsc_delay_count(&dev.delays));
	sees(0, 528);
	pass(96 * US);
	EXPECT(dev.armed == dev.timer);
	EXPECT(took(&client[0].delays, 192 * US) && took(&delays[0], 192 * US) &&
	       took(&dev.delays, 192 * US));
	EXPECT(!gsc_delay_count(&delays[1]) && !gsc_delay_count(&client[1].delays));
	/* the group keeps it, as all that it counts */
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(took(&delays[0], 192 * US));
}

/* Any commit looks, too */
static void measured_by_events(void)
{
	begin(2);
	launch(0, 100000);
	launch(1, 100000);
	EXPECT(!task(0, 0)->window);
	sees(0, 8 * SMS);
	clock_ns += 15 * US;
	EXPECT(!complete(1, 0));
	EXPECT(took(&delays[0], 15 * US) && dev.armed == dev.timer);
	EXPECT_WINDOW(task(0, 0), SMS);
}

/* A bucket's limit belongs to it */
static void limits_of_buckets(void)
{
	for (int late = 0; late < 2; late++) {
		begin(2);
		launch(0, 100000);
		launch(1, 100000);
		sees(0, 8 * SMS);
		clock_ns += 16 * US + (u64)late;
		EXPECT(!complete(1, 0));
		EXPECT(delays[0].n[late] == 1 && !delays[0].n[!late]);
	}
}

/* The task is over before its workers leave, by its page or its client's word */
static void over_before_they_leave(void)
{
	for (int way = 0; way < 4; way++) {
		begin(2);
		launch(0, 100000);
		launch(1, 100000);
		clock_ns += 300 * US;
		if (way == 0)
			hint(0)->finished = 1;
		else if (way == 1)
			hint(0)->seq = 2;
		if (way == 2)
			EXPECT(!complete(0, 0));
		else if (way == 3)
			gsc_client_detach(&client[0], clock_ns);
		else
			pass(0);
		EXPECT(took(&delays[0], 300 * US));
		EXPECT(list_empty(&dev.leaving));
	}
}

/* A second one that comes before they left counts with the first */
static void evicted_again(void)
{
	begin(3);
	launch(0, 100000);
	launch(1, 100000);
	clock_ns += 10 * US;
	launch(2, 100000);
	EXPECT(!task(0, 0)->window && !task(1, 0)->window);
	sees(0, 528);
	pass(24 * US);
	EXPECT(!gsc_delay_count(&delays[0]));
	sees(0, 1056);
	sees(1, 1056);
	pass(66 * US);
	EXPECT(took(&delays[0], 100 * US) && took(&delays[1], 90 * US));
	EXPECT(gsc_delay_count(&dev.delays) == 2 && NS(dev.delays.sum) == 190 * US);
}

/* A window that grows before they left: nobody knows how long it would have taken */
static void taken_back(void)
{
	begin(2);
	launch(0, 100000);
	launch(1, 100000);
	sees(0, 1055);
	pass(50 * US);
	complete(1, 0);
	EXPECT_WINDOW(task(0, 0), SMS);
	EXPECT(!gsc_delay_count(&delays[0]) && list_empty(&dev.leaving) && dev.armed == dev.timer);
}

/* Without workers there is nothing to measure: not begun, another task's page, or no page */
static void nothing_to_measure(void)
{
	for (int way = 0; way < 3; way++) {
		begin(2);
		launch(0, 100000);
		if (way == 0)
			hint(0)->start_ns = 0;
		else if (way == 1)
			hint(0)->seq = 7;
		else
			client[0].cl_page = NULL;
		launch(1, 100000);
		EXPECT(!task(0, 0)->window && n_evict == 1);
		EXPECT(list_empty(&dev.leaving) && dev.armed == dev.timer);
	}
}

/* A block on each of 100 SMs fits into half of the device, where it is not */
static void small_grid(void)
{
	begin(3);
	launch(0, 100);
	EXPECT_WINDOW(task(0, 0), 100);
	launch(1, 100000);
	EXPECT_WINDOW(task(0, 0), 66);
	/* half of the 34 on other SMs */
	sees(0, 16);
	pass(30 * US);
	EXPECT(!gsc_delay_count(&delays[0]));
	sees(0, 17);
	pass(30 * US);
	EXPECT(took(&delays[0], 60 * US));
	begin(3);
	launch(0, 60);
	launch(1, 100000);
	EXPECT(task(0, 0)->window < ALL && list_empty(&dev.leaving));
}

/* What it says may be anything: its own numbers are wrong, and no more than what has passed */
static void lies(void)
{
	begin(3);
	launch(0, 100000);
	hint(0)->launched = 0xffffffff;
	hint(0)->left = 5;
	launch(1, 100000);
	hint(0)->left = 0;
	hint(0)->seen_limit = task(0, 0)->window;
	pass(24 * US);
	EXPECT(took(&delays[0], 24 * US));
	hint(0)->left = 0;
	clock_ns += MS;
	launch(2, 100000);
	for (int i = 0; i < 100; i++)
		pass(1000 * MS);
	/* it never leaves: some twenty looks later nothing is known yet */
	EXPECT(gsc_delay_count(&delays[0]) == 1);
	complete(0, 0);
	EXPECT(gsc_delay_count(&delays[0]) == 2 && delays[0].n[GSC_DELAY_BUCKETS - 1] == 1 &&
	       NS(delays[0].sum) == 24 * US + 100000 * MS);
}

/* An eviction whose last look but one is at @before, and the last one at @at */
static void evict_once(u64 block_ns, u64 before, u64 at)
{
	begin(2);
	EXPECT(!submit_block_ns(0, 0, BLOCK, 100000, 0, block_ns));
	*hint(0) = (struct gsched_cl_slot){
		.seq = 1, .launched = 8 * SMS, .blocks = 100000, .start_ns = 1,
	};
	launch(1, 100000);
	pass(before);
	sees(0, 8 * SMS);
	pass(at - before);
	EXPECT(gsc_delay_count(&delays[0]) == 1);
}

/* What it took beside a block-task takes the place of the constant, in the middle of two looks */
static void learnt(void)
{
	evict_once(50 * US, 85 * US, 95 * US);
	EXPECT(client[0].evict_ns[0] == 40 * US && gsc_evict_ns(task(0, 0)) == 40 * US);
	EXPECT(gsc_eviction_ns(task(0, 0)) == 90 * US);
	/* as if the block-task had been shorter; bounded */
	evict_once(200 * US, 95 * US, 100 * US);
	EXPECT(client[0].evict_ns[0] == US);
	evict_once(US, 1000 * MS, 1000 * MS + US);
	EXPECT(client[0].evict_ns[0] == GSC_EVICT_NS_MAX);
	/* nobody knows when it was in between, or what part of it was a block-task */
	evict_once(50 * US, 60 * US, 120 * US);
	EXPECT(!client[0].evict_ns[0] && gsc_evict_ns(task(0, 0)) == GSC_EVICT_NS);
	evict_once(0, 85 * US, 95 * US);
	EXPECT(!client[0].evict_ns[0]);
}

/* One in eight counts */
static void smoothed(void)
{
	begin(2);
	client[0].evict_ns[0] = 40 * US;
	EXPECT(!submit_block_ns(0, 0, BLOCK, 100000, 0, 50 * US));
	*hint(0) = (struct gsched_cl_slot){
		.seq = 1, .launched = 8 * SMS, .blocks = 100000, .start_ns = 1,
	};
	launch(1, 100000);
	pass(125 * US);
	sees(0, 8 * SMS);
	pass(10 * US);
	EXPECT(client[0].evict_ns[0] == 45 * US);
}

/* A kernel that ends says nothing of how long an eviction takes */
static void ends_teach_nothing(void)
{
	begin(2);
	EXPECT(!submit_block_ns(0, 0, BLOCK, 100000, 0, 50 * US));
	*hint(0) = (struct gsched_cl_slot){
		.seq = 1, .launched = 8 * SMS, .blocks = 100000, .start_ns = 1,
	};
	launch(1, 100000);
	pass(20 * US);
	hint(0)->finished = 1;
	pass(US);
	EXPECT(took(&delays[0], 21 * US) && !client[0].evict_ns[0]);
}

static void shown(void)
{
	char buf[512], *end = buf;

	begin(2);
	end += sprintf(end, "count 0\ntotal_usec 0\n");
	for (int i = 4; i <= 20; i++)
		end += sprintf(end, "le_%d 0\n", 1 << i);
	EXPECT(shows(&group[0], GSC_FILE_GPU_PREEMPTION, buf));
	EXPECT(shows(&group[5], GSC_FILE_GPU_PREEMPTION, buf));
	delays[0] = (struct gsc_delays){ .sum.us = 1234567, .n = { 1, 2, [17] = 3 } };
	end = buf + sprintf(buf, "count 6\ntotal_usec 1234567\nle_16 1\n");
	for (int i = 5; i <= 20; i++)
		end += sprintf(end, "le_%d 3\n", 1 << i);
	EXPECT(shows(&group[0], GSC_FILE_GPU_PREEMPTION, buf));
	EXPECT(gsc_group_show(&group[0], GSC_FILE_GPU_PREEMPTION, buf, 4) == 3);
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(measured_by_the_timer), TEST(measured_by_events),
		TEST(limits_of_buckets), TEST(over_before_they_leave), TEST(evicted_again),
		TEST(taken_back),
		TEST(nothing_to_measure), TEST(small_grid), TEST(lies), TEST(learnt),
		TEST(smoothed), TEST(ends_teach_nothing), TEST(shown),
	};

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
