// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns among lower bands: first one behaviour a test, on a clock that the test moves, then bands
 * that behave at random, where every band that waits must have its turn in time.
 */
#include "unit.h"

#define IDLE	GSCHED_ACTIVITY_IDLE
#define WAITING	GSCHED_ACTIVITY_WAITING
#define BUSY	GSCHED_ACTIVITY_BUSY
#define CLOSED	GSCHED_ARB_CLOSED
#define PACED	GSCHED_ARB_PACED
#define ALONE	(GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE)
#define LOWER	(ALONE | GSCHED_ARB_REPORT | GSCHED_ARB_TIMED)
#define REPORT	GSCHED_ARB_REPORT

static void join(int c, const char *priority)
{
	EXPECT(!store(&group[c], GSC_FILE_GPU_PRIORITY, priority));
	EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_SLICE, 0, clock_ns));
	checked();
}

/* Client 0 is the top band, 1 to @n are lower ones */
static void lower(int n)
{
	join(0, "50");
	for (int c = 1; c <= n; c++)
		join(c, "0");
}

static void report(int c, u32 activity)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY,
				     .activity = activity };

	EXPECT(!gsc_client_report(&client[c], &req, clock_ns));
	checked();
}

static bool open_for(int c)
{
	return !(client[c].arb.flags & CLOSED);
}

/* The timer comes when it was asked for, which has to be @after from now */
static void timer_after(u64 after)
{
	if (dev.timer != clock_ns + after) {
		printf("# the timer is %lld us away, not %llu\n",
		       ((long long)dev.timer - (long long)clock_ns) / 1000, after / US);
		good = false;
	}
	clock_ns += after;
	gsc_tick(&dev, clock_ns);
	checked();
}

static void one_lower_band_has_no_turns(void)
{
	lower(1);
	EXPECT(client[0].arb.flags == ALONE && client[1].arb.flags == LOWER);
	report(1, BUSY);
	EXPECT(client[1].arb.flags == LOWER && client[1].activity == BUSY && !dev.turn);
	report(1, IDLE);
	join(2, "0");
	for (int c = 0; c < 3; c++)
		EXPECT(client[c].arb.flags == (c ? LOWER : ALONE) && !client[c].arb.in_flight_us);
	EXPECT(!dev.timer);
	gsc_client_detach(&client[2], clock_ns);
	checked();
	EXPECT(client[0].arb.flags == ALONE && client[1].arb.flags == LOWER);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(client[0].arb.flags == ALONE && client[1].arb.flags == ALONE);
}

/* What the first one launched while it was alone counts as soon as a second one comes */
static void work_of_the_first_lower_band_is_known(void)
{
	lower(1);
	report(1, BUSY);
	join(2, "0");
	EXPECT(open_for(1) && !open_for(2) && dev.turn == client[1].band);
	report(2, WAITING);
	timer_after(30 * MS);
	EXPECT(!open_for(1) && !open_for(2) && dev.drain == client[1].band);
}

static void who_has_work_first_has_the_turn(void)
{
	lower(3);
	report(2, BUSY);
	EXPECT(!open_for(1) && open_for(2) && !open_for(3) && open_for(0));
	EXPECT(!dev.timer && !(client[2].arb.flags & PACED));
	report(1, WAITING);
	EXPECT(!open_for(1) && open_for(2) && dev.timer == clock_ns + 30 * MS);
	for (int c = 1; c <= 3; c++)
		EXPECT(client[c].arb.flags & PACED && client[c].arb.in_flight_us == 2000);
	EXPECT(!(client[0].arb.flags & PACED) && !client[0].arb.in_flight_us);
	report(2, IDLE);
	EXPECT(open_for(1) && !open_for(2));
	report(1, IDLE);
	EXPECT(open_for(1) && open_for(2) && open_for(3) && !dev.timer);
}

static void the_next_waits_for_work_in_flight(void)
{
	lower(2);
	report(1, BUSY);
	report(2, WAITING);
	timer_after(30 * MS);
	EXPECT(!open_for(1) && !open_for(2) && dev.drain == client[1].band);
	clock_ns += 3 * MS;
	report(1, WAITING);
	EXPECT(!open_for(1) && open_for(2) && !dev.drain);
	report(2, BUSY);
	timer_after(30 * MS);
	/* one whose work does not end is not waited for longer than this */
	timer_after(200 * MS);
	EXPECT(open_for(1) && !open_for(2));
	report(1, BUSY);
	EXPECT(client[1].arb.slice_us == 2048 && client[2].arb.slice_us == 2048);
	report(2, IDLE);
	EXPECT(client[1].arb.slice_us == 1 && client[2].arb.slice_us == 1);
}

static void a_turn_goes_on_while_nobody_else_has_work(void)
{
	lower(2);
	report(1, BUSY);
	clock_ns += 500 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(open_for(1) && !dev.timer);
	report(2, WAITING);
	EXPECT(!open_for(1) && !open_for(2) && dev.timer == clock_ns + 200 * MS);
	report(1, IDLE);
	EXPECT(open_for(2));
}

static void equals_take_turns_in_order(void)
{
	int order[6];

	lower(3);
	for (int c = 1; c <= 3; c++)
		report(c, WAITING);
	for (int i = 0; i < 6; i++) {
		order[i] = 0;
		for (int c = 1; c <= 3; c++)
			if (open_for(c))
				order[i] = order[i] ? -1 : c;
		timer_after(30 * MS);
	}
	EXPECT(order[0] == 1 && order[1] == 2 && order[2] == 3 && order[3] == 1 && order[4] == 2 &&
	       order[5] == 3);
}

static void length_goes_by_weight(void)
{
	lower(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_WEIGHT, "300"));
	report(1, WAITING);
	report(2, WAITING);
	/* the first turn began when nobody else had work */
	timer_after(30 * MS);
	EXPECT(open_for(2));
	timer_after(15 * MS);
	EXPECT(open_for(1));
	timer_after(45 * MS);
	EXPECT(!store(&group[1], GSC_FILE_GPU_WEIGHT, "10000"));
	timer_after(15 * MS);
	EXPECT(open_for(1));
	/*
	 * never shorter than 10 ms, nor longer than 100: so it has several for one of the other's
	 */
	for (int turns = 0; turns < 8; turns++) {
		EXPECT(open_for(1));
		timer_after(59405 * US);
	}
	EXPECT(open_for(2));
	timer_after(10 * MS);
}

/* One whose kernels take 150 ms, and one whose kernels take no time, have as much of the time */
static void draining_counts_as_a_turn(void)
{
	u64 had[3] = { 0 };

	lower(2);
	report(1, WAITING);
	report(2, WAITING);
	for (int i = 0; i < 1000 && good; i++) {
		int c = open_for(1) ? 1 : 2;
		u64 since = clock_ns;

		EXPECT(open_for(1) != open_for(2));
		report(c, BUSY);
		timer_after(dev.timer - clock_ns);
		if (!open_for(c)) {
			clock_ns += c == 1 ? 150 * MS : 0;
			report(c, WAITING);
		}
		had[c] += clock_ns - since;
	}
	EXPECT(had[1] < had[2] * 5 / 4 && had[2] < had[1] * 5 / 4);
}

static void higher_priority_comes_first(void)
{
	lower(2);
	join(3, "10");
	report(1, WAITING);
	report(2, WAITING);
	EXPECT(open_for(1));
	report(3, WAITING);
	EXPECT(!open_for(1) && !open_for(2) && open_for(3) && !dev.timer);
	report(3, BUSY);
	clock_ns += 5000 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(open_for(3) && !open_for(1) && !open_for(2));
	report(3, IDLE);
	EXPECT(open_for(2) && !open_for(1));
	report(2, BUSY);
	/*
	 * the more important one takes the turn at once, but not before what is in flight has
	 * drained
	 */
	report(3, WAITING);
	EXPECT(!open_for(2) && !open_for(3));
	report(2, WAITING);
	EXPECT(open_for(3));
}

static void mps_band_is_as_its_clients(void)
{
	lower(1);
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_MPS, 7, clock_ns));
	EXPECT(!gsc_client_attach(&client[3], &group[3], GSCHED_ATTACH_MPS, 7, clock_ns));
	EXPECT(!gsc_client_attach(&client[4], &group[4], GSCHED_ATTACH_MPS | GSCHED_ATTACH_SLICE |
				  GSCHED_ATTACH_SERVER, 7, clock_ns));
	checked();
	EXPECT(client[4].arb.slice_us == 1 && !client[4].arb.flags && !client[2].arb.slice_us);
	report(1, WAITING);
	EXPECT(!open_for(2) && !open_for(3));
	report(3, WAITING);
	timer_after(30 * MS);
	EXPECT(!open_for(1) && open_for(2) && open_for(3) && !client[4].arb.flags);
	report(3, BUSY);
	report(2, BUSY);
	report(3, IDLE);
	EXPECT(client[2].band->activity == BUSY);
	/* with the weight of two groups */
	timer_after(40 * MS);
	EXPECT(!open_for(2) && !open_for(1));
	report(3, WAITING);
	EXPECT(!open_for(1));
	report(2, WAITING);
	EXPECT(open_for(1));
	/* the band moves from the one that leaves, with its place in the order */
	gsc_client_detach(&client[2], clock_ns);
	EXPECT(client[4].band == client[3].band && open_for(1));
	report(1, IDLE);
	EXPECT(open_for(3));
	gsc_client_detach(&client[3], clock_ns);
	/* the server alone is no band that anyone waits for */
	EXPECT(dev.n_lower == 1 && open_for(1) && !client[4].arb.slice_us);
	checked();
}

static void holder_that_leaves_passes_the_turn_on(void)
{
	lower(3);
	report(1, BUSY);
	report(2, WAITING);
	report(3, WAITING);
	gsc_client_detach(&client[1], clock_ns);
	checked();
	EXPECT(open_for(2) && !open_for(3));
	/* so does one that drains */
	report(2, BUSY);
	timer_after(30 * MS);
	EXPECT(!open_for(3));
	gsc_client_detach(&client[2], clock_ns);
	checked();
	EXPECT(open_for(3) && !dev.timer);
}

static void one_that_waits_may_leave(void)
{
	lower(3);
	report(1, BUSY);
	report(2, WAITING);
	EXPECT(dev.timer);
	gsc_client_detach(&client[2], clock_ns);
	checked();
	EXPECT(open_for(1) && !dev.timer && !(client[1].arb.flags & PACED));
}

static void holder_that_becomes_important_has_no_turn(void)
{
	lower(3);
	report(1, BUSY);
	report(2, WAITING);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(open_for(1) && open_for(2) && !open_for(3));
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "0"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "0"));
	/* all are equal: nobody is lower */
	for (int c = 0; c <= 3; c++)
		EXPECT(open_for(c) && client[c].arb.flags == ALONE && client[c].activity == IDLE);
	EXPECT(!dev.timer && !dev.turn);
}

static void a_refused_slice_ends_turns(void)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_SLICE,
				     .slice_error = EIO };

	lower(2);
	report(1, BUSY);
	report(2, WAITING);
	EXPECT(!gsc_client_report(&client[0], &req, clock_ns));
	checked();
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL && open_for(1) && open_for(2) && !dev.timer);
}

#define EXPECT_LEASES(first, second) EXPECT(client[1].lease == GSCHED_LEASE_##first && \
					    client[2].lease == GSCHED_LEASE_##second)

/*
 * A rewritten kernel of a band whose gate is closed leaves at the end of its block-tasks, and comes
 * back with the turn
 */
static void a_closed_band_drains_by_its_windows(void)
{
	lower(2);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 8) == 0);
	EXPECT(task(1, 0)->window == ALL);
	EXPECT_WINDOW(task(2, 0), 8);
	EXPECT_LEASES(FREE, FREE);
	report(1, BUSY);
	EXPECT(task(1, 0)->window == ALL && n_evict == 1);
	EXPECT_WINDOW(task(2, 0), 0);
	EXPECT_LEASES(FREE, NONE);
	report(2, BUSY);
	/* what is submitted while the gate is closed waits for the turn */
	EXPECT(submit(2, 1, BLOCK, 16) == QUEUED);
	timer_after(30 * MS);
	EXPECT_WINDOW(task(1, 0), 0);
	EXPECT_WINDOW(task(2, 0), 0);
	EXPECT_LEASES(NONE, NONE);
	EXPECT(shows(&dev.root, GSC_FILE_CAPSM_CURRENT, "132\n"));
	n_grant = n_evict = n_grow = 0;
	report(1, WAITING);
	EXPECT_WINDOW(task(1, 0), 0);
	EXPECT_WINDOW(task(2, 0), 24);
	EXPECT_WINDOW(task(2, 1), 24);
	EXPECT_LEASES(NONE, FREE);
	EXPECT(n_grant == 1 && n_grow == 1 && n_evict == 0);
	/* it may end while its gate is closed */
	EXPECT(complete(1, 0) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == QUEUED);
	gsc_client_detach(&client[2], clock_ns);
	checked();
	EXPECT_WINDOW(task(1, 0), 8);
	EXPECT(client[1].lease == GSCHED_LEASE_FREE);
	/* the top band never closes */
	EXPECT(task(0, 0)->window == ALL && client[0].lease == GSCHED_LEASE_FREE);
}

/* What cannot be taken back is not, but nothing behind it is granted */
static void a_running_opaque_task_keeps_its_capacity(void)
{
	lower(2);
	EXPECT(submit(1, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 1, BLOCK, 100000) == 0);
	report(1, BUSY);
	report(2, WAITING);
	timer_after(30 * MS);
	EXPECT(!open_for(1) && task(1, 0)->window == ALL);
	EXPECT_WINDOW(task(1, 1), 0);
	EXPECT(submit(1, 2, LAUNCH, 8) == QUEUED);
	EXPECT(n_evict == 1);
	EXPECT(complete(1, 0) == 0);
	EXPECT_WINDOW(task(1, 1), 0);
	EXPECT(task(1, 2)->state == GSC_TASK_WAITING);
	report(1, WAITING);
	EXPECT(open_for(2) && task(1, 2)->state == GSC_TASK_WAITING);
	report(2, IDLE);
	EXPECT(open_for(1) && task(1, 1)->window == ALL && task(1, 2)->state == GSC_TASK_RUNNING);
}

/* All clients of an MPS band drain, and its important one is no exception */
static void all_windows_of_an_mps_band_close(void)
{
	lower(1);
	EXPECT(!store(&group[3], GSC_FILE_GPU_PRIORITY, "10"));
	for (int c = 2; c <= 3; c++)
		EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_MPS, 7, clock_ns));
	checked();
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT(submit(3, 0, BLOCK, 8) == 0);
	EXPECT(client[3].lease == GSCHED_LEASE_NOTIFY);
	report(1, BUSY);
	EXPECT_WINDOW(task(2, 0), 0);
	EXPECT_WINDOW(task(3, 0), 0);
	EXPECT(client[2].lease == GSCHED_LEASE_NONE && client[3].lease == GSCHED_LEASE_NONE);
	report(1, IDLE);
	EXPECT_WINDOW(task(2, 0), 124);
	EXPECT_WINDOW(task(3, 0), 8);
	EXPECT(client[3].lease == GSCHED_LEASE_NOTIFY);
}

/* ---- at random ---- */

#define AGENTS	7	/* lower ones; client 0 is the top */

static u64 rng, waits_since[AGENTS + 1], drains_at[AGENTS + 1];
static u32 n_turns, n_late;

static u32 below(u32 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (u32)((rng * 0x2545F4914F6CDD1DULL >> 11) % n);
}

static bool more_important_contends(int c)
{
	for (int i = 1; i <= AGENTS; i++)
		if (client[i].dev && client[i].group->priority > client[c].group->priority &&
		    client[i].activity != IDLE)
			return true;
	return false;
}

/*
 * Where a gate is open work goes to the GPU; behind a closed one it drains, in its own time, and
 * then waits or is over
 */
static void act(int c)
{
	u32 activity = client[c].activity;

	if (activity == IDLE && !below(4))
		report(c, open_for(c) ? BUSY : WAITING);
	else if (activity == WAITING && open_for(c))
		report(c, below(20) ? BUSY : IDLE);
	else if (activity == BUSY && open_for(c) && !below(50))
		report(c, IDLE);
	if (activity == BUSY && !open_for(c) && !drains_at[c])
		drains_at[c] = clock_ns + below(10) * MS * (below(10) ? 1 : 60);
	if (drains_at[c] && drains_at[c] <= clock_ns) {
		drains_at[c] = 0;
		if (client[c].activity == BUSY && !open_for(c))
			report(c, below(3) ? WAITING : IDLE);
	}
}

static void watch(void)
{
	u64 bound = AGENTS * 300 * MS;

	for (int c = 1; c <= AGENTS; c++) {
		if (!client[c].dev || client[c].activity != WAITING || open_for(c) ||
		    more_important_contends(c))
			waits_since[c] = clock_ns;
		else if (clock_ns - waits_since[c] > bound)
			n_late++;
	}
}

static void run(u64 seed)
{
	static const char *const priority[] = { "0", "0", "0", "20" };

	setup();
	rng = seed * 0x9E3779B97F4A7C15ULL + 1;
	memset(drains_at, 0, sizeof(drains_at));
	join(0, "50");
	for (int step = 0; step < 3000 && good; step++) {
		u64 next = clock_ns + below(2000) * US;
		int c = 1 + (int)below(AGENTS);

		/* the timer is never late, and asked for anew each time it comes */
		while (dev.timer && dev.timer <= next) {
			EXPECT(dev.timer > clock_ns);
			clock_ns = dev.timer;
			gsc_tick(&dev, clock_ns);
			checked();
			watch();
		}
		clock_ns = next;
		if (!client[c].dev) {
			memset(&client[c], 0, sizeof(client[c]));
			join(c, priority[below(4)]);
			waits_since[c] = clock_ns;
		} else if (!below(200)) {
			gsc_client_detach(&client[c], clock_ns);
			checked();
			drains_at[c] = 0;
		} else {
			act(c);
		}
		watch();
	}
	n_turns += (u32)dev.turns;
}

static void everyone_has_its_turn_in_time(void)
{
	for (u64 seed = 1; seed <= 60 && good; seed++) {
		run(seed);
		if (!good || n_late)
			printf("# seed %llu\n", seed);
		EXPECT(!n_late);
	}
	EXPECT(n_turns > 1000);
	printf("# %u turns\n", n_turns);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(one_lower_band_has_no_turns), TEST(who_has_work_first_has_the_turn),
	TEST(the_next_waits_for_work_in_flight),
	TEST(a_turn_goes_on_while_nobody_else_has_work), TEST(equals_take_turns_in_order),
	TEST(length_goes_by_weight), TEST(draining_counts_as_a_turn),
	TEST(higher_priority_comes_first), TEST(mps_band_is_as_its_clients),
	TEST(holder_that_leaves_passes_the_turn_on),
	TEST(one_that_waits_may_leave), TEST(holder_that_becomes_important_has_no_turn),
	TEST(a_refused_slice_ends_turns),
	TEST(work_of_the_first_lower_band_is_known), TEST(a_closed_band_drains_by_its_windows),
	TEST(a_running_opaque_task_keeps_its_capacity), TEST(all_windows_of_an_mps_band_close),
	TEST(everyone_has_its_turn_in_time),
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
