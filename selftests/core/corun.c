// SPDX-License-Identifier: GPL-2.0-only
/* Policy corun: the pairs of table I, turns, and what holds whatever comes. */
#include "unit.h"

enum { U, LC, MC, HC, MM, HM };

/* Slate's table I as printed: what runs, what comes */
static const char *const table[6] = {
	/*	   U LC MC HC MM HM */
	[U]	= "......",
	[LC]	= ".++.++",
	[MC]	= ".++..+",
	[HC]	= ".....+",
	[MM]	= ".+.+..",
	[HM]	= ".++...",
};

static u32 sms_of(int c)
{
	return client[c].dev ? client[c].window / SM : 0;
}

static int submit_class(int c, u32 slot, u32 seq, u32 class, u64 blocks)
{
	struct gsched_submit req = make_submit(slot, seq, BLOCK, blocks);
	int ret;

	req.intensity = class;
	req.block_ns = 100 * US;
	ret = gsc_submit(&client[c], &req, clock_ns);
	checked();
	return ret;
}

static void start(int n)
{
	EXPECT(!gsc_device_set_policy(&dev, "corun", clock_ns));
	attach(n);
}

static void every_pair(void)
{
	for (u32 first = 0; first < 6; first++) {
		for (u32 second = 0; second < 6; second++) {
			bool pair = table[first][second] == '+';

			setup();
			start(2);
			EXPECT(!submit_class(0, 0, 1, first, 100000));
			EXPECT(sms_of(0) == SMS);
			EXPECT(submit_class(1, 0, 1, second, 100000) == (pair ? 0 : QUEUED));
			EXPECT(sms_of(0) == (pair ? SMS / 2 : SMS) &&
			       sms_of(1) == (pair ? SMS / 2 : 0));
			EXPECT(!complete(0, 0));
			EXPECT(sms_of(1) == SMS);
		}
	}
	EXPECT(submit_class(0, 0, 1, 6, 1) == -EINVAL);
}

/* The first that pairs, not the first that comes; priorities mean nothing, weights do */
static void the_first_complement(void)
{
	start(4);
	EXPECT(!store(&group[3], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(!submit_class(0, 0, 1, MM, 100000));
	EXPECT(submit_class(3, 0, 1, HM, 100000) == QUEUED);
	EXPECT(!submit_class(1, 0, 1, LC, 100000));
	EXPECT(submit_class(2, 0, 1, LC, 100000) == QUEUED);
	EXPECT(sms_of(0) == 66 && sms_of(1) == 66);
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "300"));
	EXPECT(sms_of(0) == 99 && sms_of(1) == 33);
	EXPECT(!complete(1, 0));
	EXPECT(sms_of(0) == 99 && sms_of(2) == 33);
	/* nobody is first behind the end: the one that came first is */
	EXPECT(!complete(0, 0));
	EXPECT(sms_of(3) == 66 && sms_of(2) == 66);
}

/* What a pair of small kernels leaves is not lost */
static void small_kernels_leave_room(void)
{
	start(3);
	EXPECT(!submit_class(0, 0, 1, HM, 30) && !submit_class(1, 0, 1, HM, 100000));
	EXPECT(sms_of(0) == 30 && sms_of(1) == 102);
	EXPECT(!submit_class(2, 0, 1, LC, 40));
	EXPECT(sms_of(0) == 30 && sms_of(2) == 40 && sms_of(1) == 62);
}

/* Whoever comes to another group does not bring the place in the line along */
static void place_ends_with_the_group(void)
{
	start(2);
	EXPECT(!submit_class(0, 0, 1, HC, 100000));
	EXPECT(submit_class(1, 0, 1, HC, 100000) == QUEUED);
	gsc_client_move(&client[0], &group[2], clock_ns);
	gsc_commit(&dev, clock_ns);
	checked();
	EXPECT(sms_of(0) == 0 && sms_of(1) == SMS);
}

/* A kernel that never ends gives the device up for a turn */
static void turns(void)
{
	u64 turn = (190 + 100) * US * 1000 / 50, had[3] = { 0 }, began;

	start(3);
	EXPECT(!submit_class(0, 0, 1, HM, 100000));
	EXPECT(!client[0].band->again);
	EXPECT(submit_class(1, 0, 1, HM, 100000) == QUEUED &&
	       submit_class(2, 0, 1, HC, 100000) == QUEUED);
	EXPECT(client[0].band->again == clock_ns + turn);
	began = clock_ns;
	while (clock_ns < began + 30 * turn) {
		for (int c = 0; c < 3; c++)
			had[c] += sms_of(c) * (dev.timer - clock_ns);
		EXPECT(dev.timer > clock_ns && dev.timer <= clock_ns + turn);
		clock_ns = dev.timer;
		gsc_tick(&dev, clock_ns);
		checked();
	}
	/* HC runs beside HM when it is first, so the second HM has it twice */
	for (int c = 0; c < 3; c++)
		EXPECT(had[c] >= 5 * turn * SMS);
	EXPECT(had[0] + had[1] + had[2] == (clock_ns - began) * SMS);
	/* alone there are no turns */
	EXPECT(!complete(0, 0) && !complete(1, 0) && !client[2].band->again && sms_of(2) == SMS);
}

static bool says(int c, const char *part)
{
	char text[256];

	gsc_client_why(&client[c], text, sizeof(text));
	if (strstr(text, part))
		return true;
	printf("# \"%s\" does not say \"%s\"\n", text, part);
	return false;
}

static void words(void)
{
	start(3);
	client[1].pid = 77;
	EXPECT(!submit_class(0, 0, 1, MC, 100000));
	EXPECT(says(0, "its kernel (M_C) runs alone"));
	EXPECT(!submit_class(1, 0, 1, HM, 100000) && submit_class(2, 0, 1, U, 100000) == QUEUED);
	EXPECT(says(0, "its kernel (M_C) runs beside one of 77 (H_M)") &&
	       says(2, "its kernel (unknown) waits for its turn"));
}

static u64 rng = 777;

static u32 below(u32 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (u32)((rng * 0x2545F4914F6CDD1DULL >> 11) % n);
}

static u32 class_of(int c)
{
	return list_first_entry(&client[c].tasks, struct gsc_task, peer)->intensity;
}

#define N	6

/* From windows alone, where every kernel fills the device */
static bool follows_the_table(void)
{
	int with[N], n = 0, waiting = 0;
	u32 sum = 0;

	for (int c = 0; c < N; c++) {
		if (!client[c].dev || !client[c].n_tasks)
			continue;
		sum += sms_of(c);
		if (sms_of(c))
			with[n++] = c;
		else
			waiting++;
	}
	if (!n)
		return !waiting;
	if (sum != SMS || n > 2)
		return false;
	if (n == 2)
		return table[class_of(with[0])][class_of(with[1])] == '+' ||
		       table[class_of(with[1])][class_of(with[0])] == '+';
	/* alone: nobody who waits could run beside it */
	for (int c = 0; c < N; c++)
		if (client[c].dev && client[c].n_tasks && !sms_of(c) &&
		    table[class_of(with[0])][class_of(c)] == '+')
			return false;
	return true;
}

static void run(bool limits)
{
	u64 waits_since[N] = { 0 }, longest = 0;
	u32 min = 0, max = SMS, seq = 1, pairs = 0;
	char text[16];

	start(N);
	for (u32 step = 0; step < 40000 && good; step++) {
		int c = (int)below(N);
		u32 slot = below(3);

		clock_ns += below(2 * MS);
		if (dev.timer && dev.timer < clock_ns)
			clock_ns = dev.timer;
		if (dev.timer && dev.timer <= clock_ns)
			gsc_tick(&dev, clock_ns);
		else if (!below(30)) {
			gsc_client_detach(&client[c], clock_ns);
			memset(&client[c], 0, sizeof(client[c]));
		} else if (!client[c].dev)
			EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_MPS,
						  0, clock_ns));
		else if (limits && !below(20)) {
			min = below(20);
			max = 40 + below(90);
			snprintf(text, sizeof(text), "%u", min);
			EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, text));
			snprintf(text, sizeof(text), "%u", max);
			EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, text));
		} else if (task(c, slot)->state == GSC_TASK_NONE)
			submit_class(c, slot, seq++, below(6), 100000);
		else if (below(4)) {
			struct gsched_complete req = make_complete(slot, task(c, slot)->seq);

			EXPECT(!gsc_complete(&client[c], &req, clock_ns));
		}
		checked();
		EXPECT(!dev.faulty && dev.policy == &gsc_policy_corun);
		if (!limits)
			EXPECT(follows_the_table());
		EXPECT(sms_of(1) <= max && (!client[0].dev || !client[0].n_tasks ||
					    sms_of(0) >= min));
		for (c = 0; c < N; c++) {
			if (!client[c].dev || !client[c].n_tasks || sms_of(c))
				waits_since[c] = clock_ns;
			longest = max(longest, clock_ns - waits_since[c]);
			pairs += sms_of(c) && sms_of(c) < SMS;
		}
	}
	printf("# %u times one of a pair, longest wait %llu us\n", pairs, longest / US);
	/* a turn of each other one, with 100 us of block-task, and the step of this loop */
	EXPECT(pairs > 1000 && longest <= N * 6 * MS);
}

static void whatever_comes(void)
{
	run(false);
}

static void limits_hold(void)
{
	run(true);
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(every_pair), TEST(the_first_complement), TEST(small_kernels_leave_room),
		TEST(place_ends_with_the_group),
		TEST(turns), TEST(words), TEST(whatever_comes), TEST(limits_hold),
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
