// SPDX-License-Identifier: GPL-2.0-only
/* What the core stores in a client's pages, and what it makes of what the client stores there. */
#include "unit.h"

static struct gsched_arb_page arb[8];
static struct gsched_cl_page cl[8];
static bool gone;

static bool is_gone(const struct gsc_client *c)
{
	return gone && c == &client[0];
}

static void evicted(struct gsc_task *task, enum gsc_change why)
{
	op_set_window(task, why);
}

static bool no_memory;

static struct gsc_task *new_task(struct gsc_client *c, u32 slot)
{
	return no_memory ? NULL : op_new_task(c, slot);
}

static const struct gsc_ops paged_ops = {
	.new_task = new_task,
	.set_window = evicted, .arm_timer = op_arm_timer, .done = op_done, .is_gone = is_gone,
};

static void come_as(int c, u32 flags, u64 channel_group)
{
	memset(&client[c], 0, sizeof(client[c]));
	memset(&arb[c], 0, sizeof(arb[c]));
	memset(&cl[c], 0, sizeof(cl[c]));
	client[c].arb_page = &arb[c];
	client[c].cl_page = &cl[c];
	EXPECT(!gsc_client_attach(&client[c], &group[c], flags, channel_group, clock_ns));
	checked();
}

/* A client with pages, in a band of its own or, with @mps, in the one that all of them share */
static void come(int c, bool mps)
{
	come_as(c, mps ? GSCHED_ATTACH_MPS : 0, mps ? 7 : 0);
}

static void begin(void)
{
	setup();
	gone = no_memory = false;
	dev.ops = &paged_ops;
}

/* The client launches in @slot under its lease, just now */
static void launch(int c, u32 slot, u32 seq, u32 tier, u64 blocks, u32 per_sm)
{
	struct gsched_cl_slot *hint = &cl[c].slot[slot];

	EXPECT(arb[c].header.lease == GSCHED_LEASE_FREE);
	hint->blocks = blocks;
	hint->tier = tier;
	hint->blocks_per_sm = per_sm;
	hint->launch_ns = clock_ns;
	hint->launched = per_sm * SMS;
	hint->seq = seq;
}

static u64 shown(int c, u32 slot)
{
	return arb[c].slot[slot].window;
}

static void alone_may_launch(void)
{
	begin();
	come(0, true);
	EXPECT(arb[0].header.lease == GSCHED_LEASE_FREE && arb[0].header.sms == SMS);
	for (u32 slot = 0; slot < GSCHED_SLOTS; slot++)
		EXPECT(shown(0, slot) == ALL);
	EXPECT(arb[0].slot[0].generation == 1);
}

/* Somebody comes: what runs is adopted, with all that its client has stated of it */
static void adopted_at_the_end_of_a_lease(void)
{
	begin();
	come(0, true);
	launch(0, 3, 5, GSCHED_TIER_BLOCK, 10000, 4);
	cl[0].slot[3].intensity = GSCHED_INTENSITY_H_M;
	cl[0].slot[3].block_ns = 7 * US;
	cl[0].slot[3].predicted_ns = 9 * MS;
	cl[0].slot[3].stream = 77;
	clock_ns += MS;
	EXPECT(gsc_page_leased(&client[0], 3) && !gsc_page_leased(&client[0], 4));
	come(1, true);
	EXPECT(client[0].task[3]->state == GSC_TASK_RUNNING && client[0].task[3]->seq == 5);
	EXPECT(client[0].task[3]->blocks_per_sm == 4 && client[0].task[3]->adopted);
	EXPECT(client[0].task[3]->intensity == GSCHED_INTENSITY_H_M &&
	       client[0].task[3]->block_ns == 7 * US && client[0].task[3]->stream == 77 &&
	       client[0].task[3]->predicted_ns == 9 * MS);
	/* it has had the device for a millisecond */
	EXPECT(client[0].task[3]->granted == clock_ns - MS &&
	       client[0].task[3]->before_ns == MS);
	EXPECT(dev.n_adopted == 1 && !gsc_page_leased(&client[0], 3));
	EXPECT(arb[0].header.lease == GSCHED_LEASE_NONE && shown(0, 0) == 0 && shown(0, 3) == ALL);
	EXPECT(dev.armed == clock_ns + MS);
}

/* Of many tasks the pages are looked at less often: each look has the lock */
static void many_are_looked_at_less_often(void)
{
	begin();
	for (int c = 0; c < 7; c++)
		come_as(c, GSCHED_ATTACH_SLICE, 0);
	for (int c = 0; c < 7; c++)
		for (u32 slot = 0; slot < GSCHED_SLOTS; slot++)
			launch(c, slot, 1, GSCHED_TIER_BLOCK, 10000, 1);
	for (int c = 0; c < 7; c++)
		EXPECT(!store(&group[c], GSC_FILE_CAPSM_MAX, "100"));
	EXPECT(dev.n_adopted == 7 * GSCHED_SLOTS);
	clock_ns = dev.poll_at;
	gsc_tick(&dev, clock_ns);
	gsc_commit(&dev, clock_ns);
	EXPECT(dev.n_adopted == 7 * GSCHED_SLOTS);
	EXPECT(dev.poll_at == clock_ns + 7 * GSCHED_SLOTS * 4 * US);
}

/* What was over before anyone looked, and what was submitted before, is not adopted */
static void over_is_not_adopted(void)
{
	begin();
	come(0, true);
	launch(0, 0, 1, GSCHED_TIER_BLOCK, 10, 1);
	cl[0].slot[0].retired = 1;
	launch(0, 1, 2, GSCHED_TIER_BLOCK, 10, 1);
	cl[0].slot[1].finished = 2;
	EXPECT(!submit(0, 2, GSCHED_TIER_BLOCK, 10) && !complete(0, 2));
	launch(0, 2, 1, GSCHED_TIER_BLOCK, 10, 1);
	come(1, true);
	EXPECT(client[0].n_tasks == 0 && dev.n_adopted == 0 && dev.armed == dev.timer);
}

/* The page tells the end, at the next event or when the timer comes */
static void ends_by_its_page(void)
{
	for (int way = 0; way < 3; way++) {
		struct gsched_cl_slot *hint = &cl[0].slot[0];

		begin();
		come(0, true);
		launch(0, 0, 1, GSCHED_TIER_BLOCK, 10000, 1);
		come(1, true);
		hint->start_ns = 5;
		hint->end_ns = 5 + 700 * US;
		if (way == 0)
			hint->retired = 1;
		else if (way == 1)
			hint->finished = 1;
		else
			hint->seq = 2;
		EXPECT(client[0].n_tasks == 1);
		clock_ns += MS;
		gsc_tick(&dev, clock_ns);
		gsc_commit(&dev, clock_ns);
		EXPECT(client[0].n_tasks == 0);
		/* the stamps are of whoever has the slot */
		EXPECT(client[0].task[0]->ran == (way == 2 ? 0 : 700 * US));
		checked();
	}
}

/* Its client's own call says more of a task than the page */
static void submitted_after_it_was_adopted(void)
{
	begin();
	come(0, true);
	launch(0, 0, 1, GSCHED_TIER_BLOCK, 10000, 1);
	come(1, true);
	EXPECT(client[0].task[0]->blocks_per_sm == 1);
	EXPECT(submit(0, 0, GSCHED_TIER_BLOCK, 10000) == 0);
	EXPECT(client[0].task[0]->blocks_per_sm == 8 && !client[0].task[0]->adopted &&
	       dev.n_adopted == 0);
	EXPECT(submit(0, 0, GSCHED_TIER_BLOCK, 10000) == -EBUSY);
}

/* The slot is used again before anybody saw its end */
static void submitted_into_the_slot_of_one_that_is_over(void)
{
	struct gsched_submit req = make_submit(0, 9, GSCHED_TIER_BLOCK, 10);

	begin();
	come(0, true);
	launch(0, 0, 1, GSCHED_TIER_BLOCK, 10000, 1);
	come(1, true);
	cl[0].slot[0].seq = 9;
	EXPECT(gsc_submit(&client[0], &req, clock_ns) == 0 && client[0].task[0]->seq == 9);
	checked();
}

/* A lower one that was launched under the lease gives way at once, and is told */
static void adopted_has_to_wait(void)
{
	begin();
	EXPECT(!gsc_group_store(&group[1], GSC_FILE_GPU_PRIORITY, "9", clock_ns));
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	come(0, false);
	launch(0, 0, 1, GSCHED_TIER_BLOCK, 10000, 1);
	later = true;
	client[1].arb_page = NULL;
	EXPECT(!gsc_client_attach(&client[1], &group[1], 0, 0, clock_ns));
	EXPECT(!gsc_submit(&client[1], &(struct gsched_submit)
			   { .size = sizeof(struct gsched_submit), .seq = 1, .blocks = 10000,
			     .blocks_per_sm = 1 }, clock_ns) ||
	       client[1].n_tasks == 1);
	later = false;
	gsc_commit(&dev, clock_ns);
	EXPECT(client[0].n_tasks == 1 && client[0].task[0]->state == GSC_TASK_WAITING);
	EXPECT(shown(0, 0) == 0 && n_evict == 1);
	checked();
}

/* Who keeps the right to launch at once sees a quota in the windows of its empty slots */
static void quota_reaches_empty_slots(void)
{
	begin();
	EXPECT(!gsc_group_store(&group[0], GSC_FILE_GPU_PRIORITY, "9", clock_ns));
	come(0, true);
	come(1, true);
	EXPECT(arb[0].header.lease == GSCHED_LEASE_NOTIFY && shown(0, 5) == ALL);
	EXPECT(!gsc_group_store(&group[0], GSC_FILE_CAPSM_MAX, "10", clock_ns));
	EXPECT(arb[0].header.lease == GSCHED_LEASE_NOTIFY && shown(0, 5) == 10 * SM);
	EXPECT(!gsc_client_store(&client[0], GSC_FILE_CAPSM_MAX, "4", true, clock_ns));
	gsc_commit(&dev, clock_ns);
	EXPECT(shown(0, 5) == 4 * SM);
	checked();
}

static void windows_of_those_who_left(void)
{
	begin();
	come(0, false);
	come(1, false);
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(shown(0, 0) == 0 && arb[0].header.lease == GSCHED_LEASE_NONE);
	gsc_client_expel(&client[1], clock_ns);
	gsc_commit(&dev, clock_ns);
	EXPECT(shown(1, 0) == ALL && arb[1].header.lease == GSCHED_LEASE_NONE &&
	       arb[1].header.share == GSCHED_SHARE_ALL && !arb[1].header.slice_us);
}

/* Opaque, of a process that is gone while somebody has its descriptor: equals wait half a second */
static void process_is_gone(void)
{
	begin();
	come(0, true);
	come(1, true);
	EXPECT(!submit(0, 0, GSCHED_TIER_LAUNCH, 100000));
	EXPECT(submit(1, 0, GSCHED_TIER_BLOCK, 100000) == QUEUED);
	gone = true;
	clock_ns += GSC_PATIENCE_NS;
	gsc_tick(&dev, clock_ns);
	EXPECT(client[0].n_tasks == 0 && client[1].task[0]->state == GSC_TASK_RUNNING);
	checked();
}

/* Whatever a client writes counts for what can be true, and only against itself */
static void lies(void)
{
	begin();
	come(0, true);
	launch(0, 0, 1, 77, ~0ULL, ~0U);
	cl[0].slot[0].predicted_ns = ~0ULL;
	cl[0].slot[0].block_ns = ~0ULL;
	cl[0].slot[0].launch_ns = ~0ULL;
	cl[0].slot[0].intensity = GSCHED_INTENSITY__MAX + 1;
	launch(0, 1, 1, GSCHED_TIER_BLOCK, 0, 0);
	launch(0, 2, 1, GSCHED_TIER_SLICE, 8, 8);
	come(1, true);
	EXPECT(client[0].task[0]->tier == GSCHED_TIER_LAUNCH &&
	       client[0].task[0]->blocks_per_sm == GSC_BLOCKS_PER_SM_MAX);
	EXPECT(client[0].task[0]->blocks == 1000000000000ULL &&
	       client[0].task[0]->predicted_ns == 3600ULL * 1000 * MS &&
	       client[0].task[0]->block_ns == 3600ULL * 1000 * MS &&
	       client[0].task[0]->granted == clock_ns &&
	       client[0].task[0]->intensity == GSCHED_INTENSITY_UNKNOWN);
	EXPECT(client[0].task[1]->blocks == 1 && client[0].task[1]->blocks_per_sm == 1);
	EXPECT(client[0].task[2]->tier == GSCHED_TIER_LAUNCH);
	checked();
}

static u64 hash_of(const void *object, size_t size)
{
	const unsigned char *byte = object;
	u64 hash = 0;

	while (size--)
		hash = (hash ^ *byte++) * 0x100000001B3ULL;
	return hash;
}

static void no_memory_for_a_submit(void)
{
	u64 before;

	begin();
	come(0, true);
	come(1, true);
	no_memory = true;
	before = hash_of(&client[0], sizeof(client[0])) ^ hash_of(&dev, sizeof(dev));
	EXPECT(submit(0, 3, BLOCK, 100) == -ENOMEM);
	EXPECT(before == (hash_of(&client[0], sizeof(client[0])) ^ hash_of(&dev, sizeof(dev))));
	no_memory = false;
	EXPECT(submit(0, 3, BLOCK, 100) == 0 && complete(0, 3) == 0);
	no_memory = true;
	EXPECT(submit(0, 3, BLOCK, 100) == 0);
}

/* What cannot be adopted keeps the window of its lease, and is adopted once there is memory */
static void no_memory_for_what_is_adopted(void)
{
	begin();
	come(0, true);
	launch(0, 3, 5, GSCHED_TIER_BLOCK, 10000, 4);
	no_memory = true;
	come(1, true);
	for (int i = 0; i < 3; i++) {
		EXPECT(arb[0].header.lease == GSCHED_LEASE_NONE && shown(0, 3) == ALL);
		EXPECT(!client[0].n_tasks && dev.armed == clock_ns + MS);
		clock_ns += MS;
		no_memory = i < 2;
		gsc_tick(&dev, clock_ns);
		gsc_commit(&dev, clock_ns);
		checked();
	}
	EXPECT(client[0].task[3]->state == GSC_TASK_RUNNING && client[0].task[3]->adopted);
	EXPECT(shown(0, 0) == 0 && shown(0, 3) == ALL && n_grant == 1 && !n_evict);
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(alone_may_launch), TEST(adopted_at_the_end_of_a_lease),
		TEST(many_are_looked_at_less_often), TEST(over_is_not_adopted),
		TEST(ends_by_its_page), TEST(submitted_after_it_was_adopted),
		TEST(submitted_into_the_slot_of_one_that_is_over), TEST(adopted_has_to_wait),
		TEST(quota_reaches_empty_slots), TEST(windows_of_those_who_left),
		TEST(process_is_gone),
		TEST(lies), TEST(no_memory_for_a_submit), TEST(no_memory_for_what_is_adopted),
	};

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
