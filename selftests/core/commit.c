// SPDX-License-Identifier: GPL-2.0-only
/* Events mark, one commit decides: how many decisions there are, and that one for many will do. */
#include "unit.h"

static u64 decisions;

static void begin(void)
{
	later = true;
	decisions = dev.decisions;
}

/* Returns how many decisions there were */
static u64 commit(void)
{
	gsc_commit(&dev, clock_ns);
	later = false;
	checked();
	return dev.decisions - decisions;
}

static void submit_all(int clients, u32 slots, u32 tier)
{
	struct gsched_submit req;

	for (int c = 0; c < clients; c++)
		for (u32 slot = 0; slot < slots; slot++) {
			req = make_submit(slot, 1, tier, 100000);
			EXPECT(gsc_submit(&client[c], &req, clock_ns) == QUEUED);
		}
}

static void complete_all(int clients, u32 slots)
{
	struct gsched_complete req;

	for (int c = 0; c < clients; c++)
		for (u32 slot = 0; slot < slots; slot++) {
			req = make_complete(slot, 1);
			EXPECT(gsc_complete(&client[c], &req, clock_ns) == 0);
		}
}

static void many_tasks_one_decision(void)
{
	for (int n = 1; n <= 8; n *= 2) {
		setup();
		attach(n);
		begin();
		submit_all(n, GSCHED_SLOTS, BLOCK);
		EXPECT(!n_grant);
		EXPECT(commit() == 1);
		EXPECT(n_grant == (u32)n * GSCHED_SLOTS && !n_evict && !n_grow);
		for (int c = 0; c < n; c++)
			EXPECT(task(c, 63)->window >= SMS / 8 * SM);
		begin();
		complete_all(n, GSCHED_SLOTS);
		EXPECT(n_done == (u32)n * GSCHED_SLOTS);
		EXPECT(commit() == 1);
		EXPECT(dev.root.current_units == 0);
	}
}

static void no_event_no_decision(void)
{
	struct gsched_submit wrong = make_submit(0, 0, BLOCK, 1);
	struct gsched_complete unknown = make_complete(5, 1);

	attach(2);
	begin();
	EXPECT(commit() == 0);
	begin();
	EXPECT(gsc_submit(&client[0], &wrong, clock_ns) == -EINVAL);
	EXPECT(gsc_complete(&client[0], &unknown, clock_ns) == -ENOENT);
	EXPECT(gsc_group_store(&group[0], GSC_FILE_CAPSM_MAX, "no", clock_ns) == -EINVAL);
	gsc_tick(&dev, clock_ns += MS);
	EXPECT(commit() == 0);
}

/* What was never granted was not run, and what comes and goes is seen by nobody */
static void between_two_commits(void)
{
	struct gsched_submit req = make_submit(0, 1, BLOCK, 8);
	struct gsched_complete end = make_complete(0, 1);

	attach(2);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	begin();
	EXPECT(!gsc_group_store(&group[1], GSC_FILE_GPU_PRIORITY, "10", clock_ns));
	EXPECT(gsc_submit(&client[1], &req, clock_ns) == QUEUED);
	EXPECT(gsc_complete(&client[1], &end, clock_ns) == 0);
	EXPECT(commit() == 1);
	EXPECT(n_grant == 1 && !n_evict && task(0, 0)->window == ALL);
	gsc_device_count(&dev, clock_ns);
	EXPECT(group[1].stats.counts.cancelled == 1 && !group[1].stats.counts.tasks);
}

/* A hold is for the next kernel: none is left when that came with the end of the one before it */
static void next_kernel_with_the_end_of_the_last(void)
{
	struct gsched_submit next = make_submit(0, 1, LAUNCH, 8);
	struct gsched_complete last = make_complete(0, 1);

	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit_block_ns(0, 0, BLOCK, 100000, 0, MS) == 0);
	for (int i = 0; i < 3; i++) {
		clock_ns += MS;
		EXPECT(submit_block_ns(1, 0, LAUNCH, 8, 50 * US, 0) == 0);
		clock_ns += 50 * US;
		EXPECT(complete(1, 0) == 0);
	}
	EXPECT(client[1].hold_units == 8 * SM);
	clock_ns += MS;
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	clock_ns += 50 * US;
	n_evict = 0;
	begin();
	EXPECT(gsc_complete(&client[1], &last, clock_ns) == 0);
	EXPECT(gsc_submit(&client[1], &next, clock_ns) == QUEUED);
	EXPECT(commit() == 1);
	EXPECT(task(1, 0)->state == GSC_TASK_RUNNING && !client[1].hold_units && !n_evict);
	EXPECT_WINDOW(task(0, 0), 124);
	/* only the end: the capacity is held */
	begin();
	EXPECT(gsc_complete(&client[1], &last, clock_ns) == 0);
	EXPECT(commit() == 1);
	EXPECT(client[1].hold_units == 8 * SM && client[1].hold_got == 8 * SM);
	/* with a smaller one: what is missing to the larger one before it goes on being held */
	EXPECT(submit(1, 0, LAUNCH, 40) == 0);
	begin();
	EXPECT(gsc_complete(&client[1], &last, clock_ns) == 0);
	EXPECT(gsc_submit(&client[1], &next, clock_ns) == QUEUED);
	EXPECT(commit() == 1);
	EXPECT(client[1].hold_units == 40 * SM && client[1].hold_got == 32 * SM);
	EXPECT(complete(1, 0) == 0);
	/* it moves to another group before the commit: nothing is held there */
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(1, 0, LAUNCH, 40) == 0);
	begin();
	EXPECT(gsc_complete(&client[1], &last, clock_ns) == 0);
	gsc_client_move(&client[1], &group[2], clock_ns);
	EXPECT(commit() == 1);
	EXPECT(!client[1].hold_units);
}

static void all_clients_leave_at_once(void)
{
	attach(8);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	for (int c = 1; c < 8; c++)
		EXPECT(submit(c, 0, BLOCK, 100000) == 0);
	begin();
	for (int c = 0; c < 7; c++)
		gsc_client_detach(&client[c], clock_ns);
	EXPECT(commit() == 1);
	EXPECT(task(7, 0)->window == ALL && client[7].lease == GSCHED_LEASE_FREE);
	begin();
	gsc_client_detach(&client[7], clock_ns);
	EXPECT(commit() == 1 && list_empty(&dev.bands));
}

/* ---- one commit or many ---- */

#define PEERS	10
#define TREE	7

/* Two devices that are told the same: one decides after every event, the other once for some */
struct world {
	struct gsc_device dev;
	struct gsc_group group[TREE];
	struct gsc_client client[PEERS];
};

static struct world each, once;
static u64 rng;

static u32 below(u32 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (u32)((rng * 0x2545F4914F6CDD1DULL >> 11) % n);
}

static void world_init(struct world *w, const char *policy)
{
	memset(w, 0, sizeof(*w));
	EXPECT(!gsc_device_init(&w->dev, &ops, SMS));
	EXPECT(!gsc_device_set_policy(&w->dev, policy, clock_ns));
	for (int g = 0; g < TREE; g++)
		EXPECT(!gsc_group_init(&w->group[g], g < 4 ? &w->dev.root : &w->group[g - 4]));
}

/* The same on both: @dice was drawn for it. One task a client, which recurs too rarely for holds */
static void event(struct world *w, const u32 *dice, u32 attach_flags)
{
	static const char *const max[] = { "max", "100", "40", "7", "1" };
	static const char *const min[] = { "0", "0", "5", "30" };
	static const u64 blocks[] = { 1, 8, 40, 100, 100000 };
	struct gsc_client *c = &w->client[dice[1] % PEERS];
	struct gsc_group *g = &w->group[dice[2] % TREE];
	struct gsched_submit req = make_submit(0, 1, BLOCK, blocks[dice[3] % 5]);
	struct gsched_complete end = make_complete(0, 1);
	char text[16];

	snprintf(text, sizeof(text), "%u",
		 dice[0] % 12 == 9 ? dice[3] % 4 * 10 : 1 + dice[3] % 300);
	if (!c->dev) {
		memset(c, 0, sizeof(*c));
		c->user = (u32)(c - w->client) % 2;
		gsc_client_attach(c, g, attach_flags, 0, clock_ns);
		return;
	}
	switch (dice[0] % 12) {
	case 0:
		gsc_client_detach(c, clock_ns);
		break;
	case 1:
		gsc_client_move(c, g, clock_ns);
		break;
	case 2:
	case 3:
		gsc_complete(c, &end, clock_ns);
		break;
	case 6:
		gsc_group_store(g, GSC_FILE_CAPSM_MAX, max[dice[3] % 5], clock_ns);
		break;
	case 7:
		gsc_group_store(g, GSC_FILE_CAPSM_MIN, min[dice[3] % 4], clock_ns);
		break;
	case 8:
		gsc_group_store(g, GSC_FILE_GPU_WEIGHT, text, clock_ns);
		break;
	case 9:
		gsc_group_store(g, GSC_FILE_GPU_PRIORITY, text, clock_ns);
		break;
	default:
		gsc_submit(c, &req, clock_ns);
	}
}

/* Of what a client has, that for which it has a use */
static u32 useful(const struct gsc_client *c)
{
	return min(task_at(c, 0)->window, task_at(c, 0)->demand);
}

static bool same_client(const struct gsc_client *a, const struct gsc_client *b)
{
	if (!a->dev || !b->dev)
		return !a->dev == !b->dev;
	if (a->lease != b->lease || memcmp(&a->arb, &b->arb, sizeof(a->arb)))
		return false;
	if (!a->n_tasks || !b->n_tasks)
		return a->n_tasks == b->n_tasks;
	return task_at(a, 0)->demand == task_at(b, 0)->demand && useful(a) == useful(b);
}

static void never_late(struct gsc_client *c)
{
	if (c->dev && c->n_tasks)
		task_at(c, 0)->late_again = U64_MAX;
}

/*
 * What is published is the same, whether a decision followed each event or only the last one, but
 * for what remembers the decisions between:
 *  - where windows are, and what a window keeps beyond its demand because nobody had a use for it;
 *  - a task that one of those decisions granted and a later one evicted wholly: here it was not
 *    granted at all. So what cannot be evicted, an opaque task, is granted to the most important of
 *    those who ask at once;
 *  - turns, holds and kernels that are late, which are about time;
 *  - timers: of holds, of who has had no window for long, and of who is late.
 */
static bool one_for_many(u64 seed, const char *policy, u32 attach_flags)
{
	u32 dice[4], n;

	rng = seed * 0x9E3779B97F4A7C15ULL + 1;
	later = false;
	clock_ns = 1000 * MS;
	world_init(&each, policy);
	world_init(&once, policy);
	for (int batch = 0; batch < 60; batch++) {
		clock_ns += 100 * MS;
		for (n = 1 + below(8); n; n--) {
			for (int i = 0; i < 4; i++)
				dice[i] = below(1 << 20);
			later = false;
			event(&each, dice, attach_flags);
			later = true;
			event(&once, dice, attach_flags);
		}
		gsc_commit(&once.dev, clock_ns);
		for (int c = 0; c < PEERS; c++) {
			never_late(&each.client[c]);
			never_late(&once.client[c]);
		}
		later = false;
		if (gsc_check(&each.dev) || gsc_check(&once.dev)) {
			printf("# seed %" PRIu64 ": invariants %d and %d\n", (uint64_t)seed,
			       gsc_check(&each.dev), gsc_check(&once.dev));
			return false;
		}
		for (int c = 0; c < PEERS; c++)
			if (!same_client(&each.client[c], &once.client[c])) {
				printf("# seed %" PRIu64 ", batch %d, client %d: %u and %u units\n",
				       (uint64_t)seed, batch, c, useful(&each.client[c]),
				       useful(&once.client[c]));
				return false;
			}
		if (each.dev.mode != once.dev.mode)
			return false;
	}
	return true;
}

static void one_commit_for_many_events(const char *policy, u32 attach_flags)
{
	for (u64 seed = 1; seed <= 200 && good; seed++)
		EXPECT(one_for_many(seed, policy, attach_flags));
}

static void same_in_space_by_priority(void)
{
	one_commit_for_many_events("hpf", GSCHED_ATTACH_MPS);
}

static void same_in_space_by_weight(void)
{
	one_commit_for_many_events("ffs", GSCHED_ATTACH_MPS);
}

static void same_in_bands_by_priority(void)
{
	one_commit_for_many_events("hpf", GSCHED_ATTACH_SLICE);
}

static void same_in_bands_by_weight(void)
{
	one_commit_for_many_events("ffs", GSCHED_ATTACH_SLICE);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(many_tasks_one_decision), TEST(no_event_no_decision), TEST(between_two_commits),
	TEST(next_kernel_with_the_end_of_the_last), TEST(all_clients_leave_at_once),
	TEST(same_in_space_by_priority), TEST(same_in_space_by_weight),
	TEST(same_in_bands_by_priority), TEST(same_in_bands_by_weight),
};

int main(void)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		later = false;
		ok(good, "%s", tests[i].name);
	}
	return done();
}
