// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hold or eviction in the middle of block-tasks: a batch client that never ends, whose next kernel
 * takes the resumable form as it is told, and requests of a more important client.
 */
#include "unit.h"

#define BATCH		0
#define REQUEST		1
/* of a kernel of the batch client, SM-ns in the plain form */
#define WORK		(40 * MS * SMS)
#define RESUMABLE	GSCHED_ARB_RESUMABLE

static u64 batch_left, batch_block_ns, batch_blocks;
static u32 form_cost;			/* per mille that the resumable form is slower by */
static bool batch_has_form, batch_midway;
static u32 n_changes, told;

static u64 rng;

static u32 below(u32 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (u32)((rng * 0x2545F4914F6CDD1DULL >> 11) % n);
}

static u32 batch_sms(void)
{
	return max(client[BATCH].current_units / SM, (u32)1);
}

/* As the interposer does: only where block-tasks are long, and the kernel has the form */
static void launch_batch(void)
{
	batch_midway = batch_has_form && client[BATCH].arb.flags & RESUMABLE &&
		       batch_block_ns >= 400 * US;
	batch_left = WORK / 1000 * (1000 + (batch_midway ? form_cost : 0));
	EXPECT(submit_block_ns(BATCH, 0, BLOCK, batch_blocks, 0, batch_midway ? 20 * US :
			       batch_block_ns) != -EBUSY);
}

/* Time passes: kernels of the batch client end and the next one begins, timers come */
static void pass(u64 ns)
{
	u64 step;

	while (ns) {
		step = min(ns, batch_left / batch_sms() + 1);
		if (dev.timer > clock_ns)
			step = min(step, dev.timer - clock_ns);
		clock_ns += step;
		ns -= step;
		batch_left -= min(batch_left, step * batch_sms());
		if (dev.timer && dev.timer <= clock_ns) {
			gsc_tick(&dev, clock_ns);
			checked();
		}
		if (!batch_left) {
			EXPECT(complete(BATCH, 0) == 0);
			launch_batch();
		}
		n_changes += told != (client[BATCH].arb.flags & RESUMABLE);
		told = client[BATCH].arb.flags & RESUMABLE;
	}
}

/* A kernel of 13 us on 10 SMs and more, one each @period */
static void requests(u32 n, u64 period)
{
	struct gsched_complete req = make_complete(0, 1);

	while (n--) {
		EXPECT(submit_small(REQUEST, 0, LAUNCH, 132, 16) != -EBUSY);
		req.ran_ns = 13 * US * (SMS - batch_sms() >= 10 ? 1 : 5);
		pass(50 * US);
		EXPECT(!gsc_complete(&client[REQUEST], &req, clock_ns));
		checked();
		pass(period - 50 * US);
	}
}

static void start(u64 block_ns)
{
	attach(2);
	EXPECT(!store(&group[REQUEST], GSC_FILE_GPU_PRIORITY, "10"));
	batch_block_ns = block_ns;
	batch_blocks = 100000;
	batch_has_form = true;
	form_cost = 40;
	n_changes = told = 0;
	launch_batch();
}

static bool says(int c, const char *part)
{
	char text[384];
	int len = gsc_client_why(&client[c], text, sizeof(text));

	if (len == (int)strlen(text) && strstr(text, part) && (*part || !len))
		return true;
	printf("# \"%s\" does not say \"%s\"\n", text, part);
	return false;
}

static void frequent_requests_are_held_for(void)
{
	start(5 * MS);
	requests(3000, MS);
	EXPECT(!told && !n_changes && client[REQUEST].hold_units == 10 * SM);
	EXPECT(says(REQUEST, "holds 10 of 132 SMs"));
	EXPECT(says(REQUEST,
		    "; block-tasks below are not left in their middle: that costs 13.6 %, a hold 7.5 %"));
	EXPECT(says(BATCH, ""));
	/* a tenth less is not worth it: 7.1 % */
	requests(3000, 3 * MS);
	EXPECT(!told && !n_changes && client[REQUEST].hold_units == 10 * SM);
}

static void rare_requests_evict_in_the_middle(void)
{
	start(5 * MS);
	requests(1000, 10 * MS);
	EXPECT(told && batch_midway && n_changes == 1);
	EXPECT(!(client[REQUEST].arb.flags & RESUMABLE));
	EXPECT(!client[REQUEST].hold_units && task(BATCH, 0)->window == ALL);
	EXPECT(says(REQUEST, "block-tasks below may be left in their middle: that costs 4."));
	EXPECT(says(BATCH,
		    "leaves long block-tasks in their middle for kernels of somebody more important"));
}

/* Rarer than the longest hold: without the form each would wait for block-tasks to end */
static void requests_too_rare_for_a_hold(void)
{
	start(5 * MS);
	requests(100, 100 * MS);
	EXPECT(told && batch_midway && n_changes == 1);
	EXPECT(says(REQUEST,
		    "its kernels are too rare for a hold; block-tasks below may be left in their middle"));
	/* nobody comes for a while: the timer ends it, and the next kernel is a plain one */
	pass(1100 * MS);
	EXPECT(!told && !batch_midway);
	/* less than one a second is not worth the form */
	requests(20, 3000 * MS);
	EXPECT(!told);
}

/* As a program that has started and prepares its work, or that nobody asks for a while */
static void one_pause_says_nothing(void)
{
	start(5 * MS);
	requests(1, 1100 * MS);
	requests(700, MS);
	EXPECT(!n_changes && client[REQUEST].hold_units == 10 * SM);
	requests(1, 10000 * MS);
	requests(100, MS);
	EXPECT(!n_changes && client[REQUEST].hold_units == 10 * SM);
}

static void without_the_form_the_hold_goes_on(void)
{
	start(5 * MS);
	batch_has_form = false;
	requests(1000, 10 * MS);
	EXPECT(told && client[REQUEST].hold_units == 10 * SM &&
	       says(REQUEST, "holds 10 of 132 SMs"));
}

static void short_block_tasks_need_no_form(void)
{
	start(100 * US);
	requests(600, 10 * MS);
	EXPECT(!n_changes && says(BATCH, ""));
	requests(100, 100 * MS);
	EXPECT(!n_changes);
}

static void nobody_is_told_by_equals_or_ffs(void)
{
	start(5 * MS);
	requests(1000, 10 * MS);
	EXPECT(told);
	EXPECT(!store(&group[BATCH], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!(client[BATCH].arb.flags & RESUMABLE));
	EXPECT(!store(&group[BATCH], GSC_FILE_GPU_PRIORITY, "0"));
	EXPECT(client[BATCH].arb.flags & RESUMABLE);
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	EXPECT(!(client[BATCH].arb.flags & RESUMABLE));
	EXPECT(!gsc_device_set_policy(&dev, "hpf", clock_ns));
	EXPECT(client[BATCH].arb.flags & RESUMABLE);
	gsc_client_detach(&client[REQUEST], clock_ns);
	checked();
	EXPECT(!client[BATCH].arb.flags || client[BATCH].arb.flags == GSCHED_ARB_ALONE);
}

static void it_changes_both_ways(void)
{
	start(5 * MS);
	requests(2000, MS);
	EXPECT(!told);
	requests(300, 10 * MS);
	EXPECT(told && n_changes == 1);
	requests(2000, MS);
	EXPECT(!told && n_changes == 2 && client[REQUEST].hold_units == 10 * SM);
	requests(300, 15 * MS);
	EXPECT(told && n_changes == 3);
}

/* A form that costs a quarter is measured and not used again */
static void a_form_that_is_slow_is_given_up(void)
{
	start(5 * MS);
	form_cost = 250;
	requests(2000, 10 * MS);
	EXPECT(!told && n_changes == 2 && client[REQUEST].hold_units == 10 * SM);
	EXPECT(client[REQUEST].resume_cost > 200 && client[REQUEST].resume_cost < 320);
}

/* Eight block-tasks an SM: with 10 SMs less nine rounds */
static void rounds_count(void)
{
	start(5 * MS);
	batch_blocks = 8ull * SMS;
	requests(3000, MS);
	EXPECT(client[REQUEST].hold_units == 10 * SM && client[REQUEST].hold_cost == 111);
	EXPECT(!told);
	/* 9 rounds on 123 SMs, 10 on 122; fewer than 9 do not host its 132 blocks at once */
	setup();
	start(5 * MS);
	batch_blocks = 9ull * 123;
	requests(3000, MS);
	EXPECT(client[REQUEST].hold_units == 9 * SM);
	EXPECT(says(REQUEST, "holds 9 of 132 SMs"));
	/* who asks for a latency gets what he needs */
	EXPECT(!store(&group[REQUEST], GSC_FILE_GPU_LATENCY, "30"));
	requests(100, MS);
	EXPECT(client[REQUEST].hold_units == 10 * SM);
	setup();
	start(5 * MS);
	batch_blocks = 9ull * 124;
	requests(3000, MS);
	EXPECT(client[REQUEST].hold_units == 10 * SM);
	/* 69 on 123 SMs, 70 on 122 */
	setup();
	start(5 * MS);
	batch_blocks = 64ull * SMS;
	requests(3000, MS);
	EXPECT(client[REQUEST].hold_units == 9 * SM && client[REQUEST].hold_cost == 72);
}

/*
 * Where the hold's SMs would be idle anyway in the last round it costs nothing; of one round half
 */
static void one_round(void)
{
	start(5 * MS);
	batch_blocks = 8 * (SMS - 10);
	requests(3000, MS);
	EXPECT(client[REQUEST].hold_units == 10 * SM && !client[REQUEST].hold_cost && !told);
	setup();
	start(5 * MS);
	batch_blocks = SMS;
	requests(3000, MS);
	EXPECT(client[REQUEST].hold_cost == 500 && told && batch_midway);
}

/*
 * Its blocks came among workers that never wait: it gets the device until it is done, no longer
 * than 20 ms
 */
static void others_make_way_for_a_late_kernel(void)
{
	struct gsched_complete req = make_complete(0, 1);

	start(100 * US);
	requests(600, MS);
	EXPECT(client[REQUEST].hold_units == 10 * SM);
	EXPECT(submit_small(REQUEST, 0, LAUNCH, 132, 16) != -EBUSY);
	pass(200 * US);
	EXPECT(task(BATCH, 0)->window);
	pass(40 * US);
	EXPECT(!task(BATCH, 0)->window);
	req.ran_ns = 600 * US;
	EXPECT(!gsc_complete(&client[REQUEST], &req, clock_ns));
	checked();
	EXPECT(task(BATCH, 0)->window >= 122 * SM);
	EXPECT(client[REQUEST].hold_units == 10 * SM);
	/* one that never ends takes it for so long only */
	EXPECT(submit_small(REQUEST, 0, LAUNCH, 132, 16) != -EBUSY);
	pass(10 * MS);
	EXPECT(!task(BATCH, 0)->window);
	pass(11 * MS);
	EXPECT(task(BATCH, 0)->window);
	EXPECT(!gsc_complete(&client[REQUEST], &req, clock_ns));
	/* what is promised stays */
	EXPECT(!store(&group[BATCH], GSC_FILE_CAPSM_MIN, "50"));
	requests(1, MS);
	EXPECT(submit_small(REQUEST, 0, LAUNCH, 132, 16) != -EBUSY);
	pass(MS);
	EXPECT(task(BATCH, 0)->window >= 50 * SM);
	EXPECT(!gsc_complete(&client[REQUEST], &req, clock_ns));
}

/*
 * Whatever the requests do, a change each second at most, and hardly any while they keep their pace
 */
static void it_does_not_flap(void)
{
	u32 told_at_all = 0, n;
	u64 begin;

	for (u64 seed = 1; seed <= 12; seed++) {
		setup();
		rng = seed * 0x9E3779B97F4A7C15ULL + 1;
		start(5 * MS);
		begin = clock_ns;
		for (int i = 0; i < 40; i++) {
			u64 period = (1 + below(seed % 2 ? 5 : 40)) * MS;

			batch_block_ns = below(8) ? 5 * MS : 100 * US;
			for (int k = 0; k < 100; k++)
				requests(1, period / 2 + below((u32)period));
		}
		told_at_all += n_changes;
		EXPECT(n_changes <= (clock_ns - begin) / (1000 * MS) + 1);
		/* around the period at which both cost the same */
		batch_block_ns = 5 * MS;
		requests(1200, 2500 * US);
		n = n_changes;
		for (int k = 0; k < 4000; k++)
			requests(1, 2 * MS + below(MS));
		if (n_changes > n + 2)
			printf("# seed %llu: %u changes in 10 s\n", seed, n_changes - n);
		EXPECT(n_changes <= n + 2);
	}
	EXPECT(told_at_all > 12);
	printf("# %u changes\n", told_at_all);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(frequent_requests_are_held_for), TEST(rare_requests_evict_in_the_middle),
	TEST(requests_too_rare_for_a_hold), TEST(one_pause_says_nothing),
	TEST(without_the_form_the_hold_goes_on), TEST(short_block_tasks_need_no_form),
	TEST(nobody_is_told_by_equals_or_ffs),
	TEST(it_changes_both_ways), TEST(rounds_count), TEST(one_round),
	TEST(others_make_way_for_a_late_kernel), TEST(a_form_that_is_slow_is_given_up),
	TEST(it_does_not_flap),
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
