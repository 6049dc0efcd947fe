// SPDX-License-Identifier: GPL-2.0-only
/*
 * capsm.reserve: what is kept for a group that has nothing to run, from whom, and for how long. The
 * last test draws events at random and compares with what must hold whatever the allocator does.
 */
#include "unit.h"

#define OWNER	0
#define LONG	1		/* its block-tasks take 5 ms */
#define QUICK	2		/* 20 us */

static u32 limit_of(int c)
{
	return client[c].dev ? client[c].window / SM : 0;
}

static void start(void)
{
	attach(3);
	EXPECT(!store(&group[OWNER], GSC_FILE_CAPSM_RESERVE, "20"));
}

static bool says(int c, const char *part)
{
	char text[384];

	gsc_client_why(&client[c], text, sizeof(text));
	if (strstr(text, part))
		return true;
	printf("# \"%s\" does not say \"%s\"\n", text, part);
	return false;
}

static void values(void)
{
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_RESERVE, "auto\n"));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "1.5\n"));
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_RESERVE, "1.5\n") && dev.n_standby == 1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "132") && dev.n_standby == 1);
	EXPECT(store(&group[0], GSC_FILE_CAPSM_RESERVE, "132.5") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_CAPSM_RESERVE, "max") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_CAPSM_RESERVE, "automatic") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_CAPSM_RESERVE, "") == -EINVAL);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_RESERVE, "132\n"));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "0"));
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_RESERVE, "0\n") && !dev.n_standby);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "7"));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "auto\n") && !dev.n_standby);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_RESERVE, "7") && !gsc_group_exit(&group[1]) &&
	       !dev.n_standby);
}

/* Kept while the owner idles, also from what is more important, and there at once when it comes */
static void kept_from_long_block_tasks(void)
{
	start();
	EXPECT(!store(&group[LONG], GSC_FILE_GPU_PRIORITY, "20"));
	EXPECT(!submit_block_ns(LONG, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(LONG) == 112);
	EXPECT(says(OWNER,
		    "capsm.reserve keeps 20 of 20 SMs free now: block-tasks of others take longer than 100 us"));
	n_evict = 0;
	EXPECT(!submit_block_ns(OWNER, 0, BLOCK, 15, 0, 5 * MS));
	EXPECT(limit_of(OWNER) == 15 && limit_of(LONG) == 112 && !n_evict);
	EXPECT(says(OWNER, "keeps 5 of 20 SMs free"));
	EXPECT(!submit_block_ns(OWNER, 1, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(OWNER) == 20 && limit_of(LONG) == 112 && !n_evict);
	EXPECT(!complete(OWNER, 0) && !complete(OWNER, 1));
	EXPECT(limit_of(LONG) == 112);
	EXPECT(!store(&group[OWNER], GSC_FILE_CAPSM_RESERVE, "0"));
	EXPECT(limit_of(LONG) == 132);
	EXPECT(!store(&group[OWNER], GSC_FILE_CAPSM_RESERVE, "40"));
	EXPECT(limit_of(LONG) == 92);
	/* nobody is there to keep it for */
	gsc_client_detach(&client[OWNER], clock_ns);
	checked();
	EXPECT(limit_of(LONG) == 132);
}

static void unknown_and_opaque_count_as_long(void)
{
	start();
	EXPECT(!submit(LONG, 0, BLOCK, 100000));
	EXPECT(limit_of(LONG) == 112);
	EXPECT(!complete(LONG, 0));
	EXPECT(!submit(LONG, 0, LAUNCH, 100000));
	EXPECT(client[LONG].current_units == 112 * SM);
}

/* Block-tasks that end in time may have it until then */
static void lent_to_short_block_tasks(void)
{
	start();
	EXPECT(!submit_block_ns(QUICK, 0, BLOCK, 100000, 0, 20 * US));
	EXPECT(limit_of(QUICK) == 132 && says(OWNER, "capsm.reserve of 20 SMs is lent"));
	/* both: equals share what is not in reserve, and only the short ones have that */
	EXPECT(!submit_block_ns(LONG, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(LONG) == 56 && limit_of(QUICK) == 76);
	EXPECT(says(OWNER, "keeps 0 of 20 SMs free"));
	EXPECT(!submit_block_ns(OWNER, 0, BLOCK, 20, 0, 0));
	EXPECT(limit_of(OWNER) == 20 && limit_of(LONG) == 56 && limit_of(QUICK) == 56);
	/* a program that has both is as slow to leave as the longest */
	EXPECT(!complete(OWNER, 0) && !complete(LONG, 0));
	EXPECT(limit_of(QUICK) == 132);
	EXPECT(!submit_block_ns(QUICK, 1, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(QUICK) == 112);
}

/* Half of the target is for eviction */
static void the_target_says_what_is_long(void)
{
	start();
	EXPECT(!store(&group[OWNER], GSC_FILE_GPU_LATENCY, "1000"));
	EXPECT(!submit_block_ns(LONG, 0, BLOCK, 100000, 0, 480 * US));
	EXPECT(limit_of(LONG) == 132);
	EXPECT(!store(&group[OWNER], GSC_FILE_GPU_LATENCY, "999"));
	EXPECT(limit_of(LONG) == 112);
	EXPECT(!store(&group[OWNER], GSC_FILE_GPU_LATENCY, "20000"));
	EXPECT(limit_of(LONG) == 132);
	EXPECT(!complete(LONG, 0));
	EXPECT(!submit_block_ns(LONG, 0, BLOCK, 100000, 0, 10 * MS));
	EXPECT(limit_of(LONG) == 112);
}

/* Sums above the device are scaled down, as those of capsm.min, and leave somebody else one SM */
static void sums_are_scaled(void)
{
	attach(4);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "132") &&
	       !store(&group[3], GSC_FILE_CAPSM_RESERVE, "132"));
	EXPECT(!submit_block_ns(LONG, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(LONG) == 1);
	EXPECT(!submit_block_ns(0, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(0) >= 65 && limit_of(0) + limit_of(LONG) <= 67);
	EXPECT(!submit_block_ns(3, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(0) >= 65 && limit_of(3) >= 65);
}

/* A child's reserve inside its parent's max; the parent's for whoever is below it */
static void nested(void)
{
	static struct gsc_group sub[2];

	memset(sub, 0, sizeof(sub));
	EXPECT(!gsc_group_init(&sub[0], &group[5]) && !gsc_group_init(&sub[1], &group[5]));
	EXPECT(!gsc_client_attach(&client[0], &sub[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[1], &sub[1], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!store(&group[5], GSC_FILE_CAPSM_MAX, "10") &&
	       !store(&sub[0], GSC_FILE_CAPSM_RESERVE, "30"));
	EXPECT(!submit_block_ns(2, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(2) == 123);
	/* in a group whose whole max is in reserve the sibling has one SM */
	EXPECT(!submit_block_ns(1, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(1) == 1 && limit_of(2) == 122);
	EXPECT(!store(&sub[0], GSC_FILE_CAPSM_RESERVE, "auto") &&
	       !store(&group[5], GSC_FILE_CAPSM_RESERVE, "30"));
	EXPECT(limit_of(1) == 10 && limit_of(2) == 122);
	EXPECT(!complete(1, 0));
	EXPECT(limit_of(2) == 122);
	EXPECT(!store(&group[5], GSC_FILE_CAPSM_MAX, "max"));
	EXPECT(limit_of(2) == 102);
	gsc_client_detach(&client[0], clock_ns);
	gsc_client_detach(&client[1], clock_ns);
	EXPECT(limit_of(2) == 132 && !gsc_group_exit(&sub[0]) && !gsc_group_exit(&sub[1]));
}

/* Bands share in time, and in mode temporal nobody is evicted in part */
static void only_in_its_band(void)
{
	attach(2);
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_SLICE, 7, clock_ns));
	EXPECT(!store(&group[OWNER], GSC_FILE_CAPSM_RESERVE, "20"));
	EXPECT(!submit_block_ns(2, 0, BLOCK, 100000, 0, 5 * MS));
	EXPECT(limit_of(2) == 132);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	EXPECT(limit_of(2) == 132);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	EXPECT(limit_of(2) == 112);
}

/* Without a window, in a band with a reserve, every launch is submitted */
static void nobody_passes(void)
{
	attach(2);
	EXPECT(client[0].arb.flags & GSCHED_ARB_PASS);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "20"));
	EXPECT(!(client[0].arb.flags & GSCHED_ARB_PASS) &&
	       !(client[1].arb.flags & GSCHED_ARB_PASS));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_RESERVE, "auto"));
	EXPECT(client[0].arb.flags & GSCHED_ARB_PASS);
}

/* A kernel of 13 us on 132 SMs each @period: returns what is held at the end */
static u32 held_after_requests(u32 n, u64 period)
{
	struct gsched_complete req = make_complete(0, 1);

	while (n--) {
		EXPECT(submit(OWNER, 0, LAUNCH, 30) != -EBUSY);
		clock_ns += 50 * US;
		req.ran_ns = 13 * US;
		EXPECT(!gsc_complete(&client[OWNER], &req, clock_ns));
		checked();
		clock_ns += period - 50 * US;
		if (n && dev.timer && dev.timer <= clock_ns)
			gsc_tick(&dev, clock_ns);
	}
	return client[OWNER].hold_units / SM;
}

/* auto: the eviction delay of what runs, and the target */
static void auto_goes_by_the_target(void)
{
	attach(2);
	EXPECT(!store(&group[OWNER], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!submit_block_ns(LONG, 0, BLOCK, 100000, 0, 400 * US));
	/* too rare for a hold without a target */
	EXPECT(!held_after_requests(8, 100 * MS));
	EXPECT(!store(&group[OWNER], GSC_FILE_GPU_LATENCY, "500"));
	EXPECT(held_after_requests(8, 100 * MS) == 30);
	EXPECT(limit_of(LONG) == 102);
	/* evicted in time: nothing is kept */
	EXPECT(!store(&group[OWNER], GSC_FILE_GPU_LATENCY, "1000"));
	EXPECT(!held_after_requests(8, 100 * MS));
	/* as long as the requests come; then the timer ends it */
	EXPECT(!store(&group[OWNER], GSC_FILE_GPU_LATENCY, "500"));
	EXPECT(held_after_requests(8, 100 * MS));
	clock_ns = dev.timer;
	EXPECT(clock_ns && clock_ns <= client[OWNER].last_end + 1000 * MS);
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(!client[OWNER].hold_units && limit_of(LONG) == 132);
	/* a number ends it at once and takes its place */
	EXPECT(held_after_requests(8, 100 * MS));
	EXPECT(!store(&group[OWNER], GSC_FILE_CAPSM_RESERVE, "0"));
	EXPECT(!client[OWNER].hold_units && limit_of(LONG) == 132);
	EXPECT(!held_after_requests(8, MS));
}

static u64 rng = 88172645463325252ULL;

static u32 below(u32 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (u32)((rng * 0x2545F4914F6CDD1DULL >> 11) % n);
}

static const u64 block_times[] = { 0, 10 * US, 60 * US, 200 * US, 3 * MS, 50 * MS };

static u64 delay_of(int c)
{
	u64 longest = 0;

	for (int s = 0; s < 2; s++) {
		if (task(c, (u32)s)->state == GSC_TASK_NONE)
			continue;
		if (task(c, (u32)s)->tier != BLOCK || !task(c, (u32)s)->block_ns)
			return U64_MAX;
		/* in the resumable form it takes until all are gone: protect.c */
		longest = max(longest, task(c, (u32)s)->block_ns +
			      (task(c, (u32)s)->midway ? 80 : 20) * US);
	}
	return longest;
}

/* By the words of the man page, from windows alone. False: something does not hold */
static bool reserve_holds(int owner, u32 reserve, u64 target_us)
{
	u64 tolerated = target_us ? target_us * US / 2 : 100 * US;
	u32 slow = 0, all = 0, most, wants = 0;
	bool quick_waits = false, slow_here = false;

	if (!client[owner].dev)
		return true;
	for (int c = 0; c < 6; c++) {
		u32 full = 0;

		if (!client[c].dev)
			continue;
		all += limit_of(c) + client[c].hold_got / SM;
		for (u32 s = 0; s < 2; s++)
			if (task(c, s)->state != GSC_TASK_NONE)
				full = max(full, task(c, s)->demand / SM);
		if (c == owner) {
			wants = full;
			continue;
		}
		if (delay_of(c) > tolerated) {
			slow_here = true;
			slow += limit_of(c);
		} else if (full > limit_of(c)) {
			quick_waits = true;
		}
	}
	most = SMS - min(reserve, (u32)SMS - 1);
	if (slow_here && slow > most)
		return false;
	/* the owner has its part of it at once */
	if (limit_of(owner) < min(wants, min(reserve, (u32)SMS - 1)))
		return false;
	/* nothing is lost, but for holds, while somebody may use it */
	return !quick_waits || all == SMS;
}

static void whatever_happens(void)
{
	static const char *const policies[] = { "hpf", "ffs", "wfq", "srt", "corun" };
	u32 reserve = 0, target = 0, seq = 1;
	int owner = 3;
	char text[32];

	attach(6);
	for (u32 step = 0; step < 60000 && good; step++) {
		int c = (int)below(6);
		u32 slot = below(2);

		clock_ns += below(400 * US);
		switch (below(12)) {
		case 0:
			reserve = below(4) ? below(SMS + 1) : 0;
			snprintf(text, sizeof(text), "%u", reserve);
			EXPECT(!store(&group[owner], GSC_FILE_CAPSM_RESERVE, text));
			break;
		case 1:
			target = below(2) ? below(8000) : 0;
			snprintf(text, sizeof(text), "%u", target);
			EXPECT(!store(&group[owner], GSC_FILE_GPU_LATENCY, text));
			break;
		case 2:
			snprintf(text, sizeof(text), "%u", below(3) * 10);
			EXPECT(!store(&group[c], GSC_FILE_GPU_PRIORITY, text));
			break;
		case 3:
			if (!below(8))
				EXPECT(!gsc_device_set_policy(&dev, policies[below(5)], clock_ns));
			break;
		case 4:
			if (!below(6) && client[c].dev) {
				gsc_client_detach(&client[c], clock_ns);
				memset(&client[c], 0, sizeof(client[c]));
			}
			break;
		case 5:
			if (!client[c].dev)
				EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_MPS,
							  0, clock_ns));
			break;
		case 6:
			gsc_tick(&dev, dev.timer && below(2) ? dev.timer : clock_ns);
			break;
		default:
			if (!client[c].dev)
				break;
			if (task(c, slot)->state == GSC_TASK_NONE) {
				struct gsched_submit req = make_submit(slot, seq++, BLOCK,
								       below(3) ? 100000 :
								       1 + below(60));

				req.block_ns = block_times[below(6)];
				EXPECT(gsc_submit(&client[c], &req, clock_ns) != -EBUSY);
			} else {
				struct gsched_complete req =
					make_complete(slot, task(c, slot)->seq);

				EXPECT(!gsc_complete(&client[c], &req, clock_ns));
			}
		}
		checked();
		EXPECT(!dev.faulty);
		/* who makes way for a late kernel waits beside SMs that are kept free */
		if (client[owner].dev && client[owner].band->late)
			continue;
		if (!reserve_holds(owner, reserve, target)) {
			printf("# step %u: reserve %u, target %u us\n", step, reserve, target);
			for (c = 0; c < 6; c++)
				printf("# %d: %u SMs, %u tasks, delay %llu\n", c, limit_of(c),
				       client[c].n_tasks, client[c].dev ? delay_of(c) : 0);
			EXPECT(false);
		}
	}
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(values), TEST(kept_from_long_block_tasks),
		TEST(unknown_and_opaque_count_as_long),
		TEST(lent_to_short_block_tasks), TEST(the_target_says_what_is_long),
		TEST(sums_are_scaled), TEST(nested),
		TEST(only_in_its_band), TEST(nobody_passes), TEST(auto_goes_by_the_target),
		TEST(whatever_happens),
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
