// SPDX-License-Identifier: GPL-2.0-only
/* Who gets what: sharing, windows, quotas, priorities, holds. One behaviour a test. */
#include "unit.h"

static void alone_gets_the_device(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(task(0, 0)->window == ALL);
	EXPECT(n_grant == 1);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "132\n"));
	EXPECT(shows(&dev.root, GSC_FILE_CAPSM_CURRENT, "132\n"));
}

static void demand_is_one_block_an_sm(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 8);
}

static void newcomer_takes_only_what_it_needs(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 124);
	EXPECT_WINDOW(task(1, 0), 8);
	EXPECT(n_evict == 1);
	EXPECT(complete(1, 0) == 0);
	EXPECT(task(0, 0)->window == ALL);
	EXPECT(n_grow == 1 && n_done == 1);
}

static void opaque_newcomer_takes_from_all(void)
{
	attach(3);
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 66);
	EXPECT_WINDOW(task(1, 0), 66);
	EXPECT(submit(2, 0, LAUNCH, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 62);
	EXPECT_WINDOW(task(1, 0), 62);
	EXPECT(complete(2, 0) == 0);
	EXPECT_WINDOW(task(0, 0), 66);
	EXPECT_WINDOW(task(1, 0), 66);
}

static void growth_evicts_nobody(void)
{
	attach(2);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	n_evict = 0;
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(1, 0)->window == ALL);
	EXPECT(n_evict == 0 && n_grow == 1);
}

static void evicted_wholly_comes_back(void)
{
	attach(3);
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT(task(2, 0)->window == ALL);
	EXPECT_WINDOW(task(0, 0), 0);
	EXPECT_WINDOW(task(1, 0), 0);
	EXPECT(complete(2, 0) == 0);
	EXPECT_WINDOW(task(0, 0), 66);
	EXPECT_WINDOW(task(1, 0), 66);
}

static void lower_priority_waits_for_what_is_left(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	EXPECT(task(1, 0)->state == GSC_TASK_WAITING);
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(1, 0)->window == ALL);
	EXPECT(n_grant == 2);
}

static void equals_share_by_weight(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_WEIGHT, "300"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 33);
	EXPECT_WINDOW(task(1, 0), 99);
}

static void who_wants_little_leaves_the_rest(void)
{
	attach(3);
	EXPECT(submit(0, 0, BLOCK, 10) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 10);
	EXPECT(task(1, 0)->window == 61 * SM);
	EXPECT(task(2, 0)->window == 61 * SM);
}

static void tasks_of_a_client_share_its_window(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100) == 0);
	EXPECT_WINDOW(task(0, 0), 100);
	EXPECT(submit(0, 1, BLOCK, 100000) == 0);
	EXPECT(submit(0, 2, BLOCK, 8) == 0);
	for (u32 slot = 0; slot < 3; slot++)
		EXPECT(task(0, slot)->window == ALL);
	EXPECT(n_grant == 3 && n_grow == 1);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "132\n"));
	EXPECT(complete(0, 0) == 0);
	EXPECT(complete(0, 1) == 0);
	EXPECT(task(0, 2)->window == ALL && n_evict == 0);
}

/* two device-filling kernels of one client beside one of an equal */
static void two_queued(void)
{
	attach(3);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	n_grant = n_evict = n_grow = 0;
	EXPECT(submit(0, 1, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 66);
	EXPECT_WINDOW(task(0, 1), 66);
	EXPECT_WINDOW(task(1, 0), 66);
	EXPECT(n_grant == 1 && n_evict == 0 && n_grow == 0);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "66\n"));
	EXPECT(shows(&dev.root, GSC_FILE_CAPSM_CURRENT, "132\n"));
}

static void queued_task_is_granted_at_once(void)
{
	two_queued();
	for (int i = 0; i < 5; i++) {
		EXPECT(complete(0, (u32)i & 1) == 0);
		EXPECT_WINDOW(task(0, (u32)~i & 1), 66);
		EXPECT(submit(0, (u32)i & 1, BLOCK, 100000) == 0);
		EXPECT_WINDOW(task(0, (u32)i & 1), 66);
	}
	EXPECT(n_evict == 0 && n_grow == 0 && n_grant == 6);
}

static void eviction_and_growth_reach_all_tasks(void)
{
	two_queued();
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(2, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 62);
	EXPECT_WINDOW(task(0, 1), 62);
	EXPECT(n_evict == 3);
	EXPECT(complete(2, 0) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 0);
	EXPECT_WINDOW(task(0, 1), 0);
	EXPECT(submit(0, 2, BLOCK, 8) == QUEUED);
	n_grow = 0;
	EXPECT(complete(2, 0) == 0);
	EXPECT_WINDOW(task(0, 0), 66);
	EXPECT_WINDOW(task(0, 1), 66);
	EXPECT_WINDOW(task(0, 2), 66);
	EXPECT(n_grow == 3);
	EXPECT(complete(1, 0) == 0);
	for (u32 slot = 0; slot < 3; slot++)
		EXPECT(task(0, slot)->window == ALL);
	EXPECT(n_grow == 6);
}

static void shared_window_is_charged_once(void)
{
	two_queued();
	clock_ns += 100 * US;
	EXPECT(complete(0, 0) == 0);
	clock_ns += 100 * US;
	EXPECT(complete(0, 1) == 0);
	gsc_device_count(&dev, clock_ns);
	EXPECT(NS(group[0].stats.capsm) == 200 * US * 66 && NS(group[0].stats.granted) == 200 * US);
	EXPECT(task(0, 0)->usage + task(0, 1)->usage == 200 * US * 66 * SM);
	/* of two small ones the larger: 8 blocks fill one SM, 24 three */
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	EXPECT(submit(0, 1, BLOCK, 24) == 0);
	clock_ns += 100 * US;
	gsc_tick(&dev, clock_ns);
	gsc_device_count(&dev, clock_ns);
	EXPECT(NS(group[0].stats.capsm) == 200 * US * 66 + 100 * US * 3);
}

static void max_binds_all_tasks_of_a_client(void)
{
	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "10"));
	for (u32 slot = 0; slot < 3; slot++) {
		EXPECT(submit(0, slot, BLOCK, 100000) == 0);
		EXPECT_WINDOW(task(0, slot), 10);
	}
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "10\n"));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4"));
	for (u32 slot = 0; slot < 3; slot++)
		EXPECT_WINDOW(task(0, slot), 4);
	EXPECT(n_evict == 3);
}

/* What it needs is what its largest task needs; more only where it would be idle */
static void queue_of_small_ones_evicts_nobody_else(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT(submit(1, 1, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(1, 0), 8);
	EXPECT_WINDOW(task(1, 1), 8);
	EXPECT(n_evict == 1);
	EXPECT(complete(0, 0) == 0);
	EXPECT(submit(1, 2, BLOCK, 8) == 0);
	EXPECT(task(1, 0)->window == 24 * SM);
	/* nobody wants it: it stays, for its workers may be anywhere in it */
	EXPECT(complete(1, 0) == 0);
	EXPECT(task(1, 1)->window == 24 * SM);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(task(1, 1)->window == 8 * SM);
	EXPECT(task(0, 0)->window == 124 * SM);
}

static void later_task_never_overtakes(void)
{
	struct gsched_submit wide = make_submit(1, 1, BLOCK, 1000);

	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.5"));
	EXPECT(submit(0, 0, BLOCK, 1000) == 0);
	wide.blocks_per_sm = 1;		/* no room for one worker */
	EXPECT(gsc_submit(&client[0], &wide, clock_ns) == QUEUED);
	EXPECT(submit(0, 2, BLOCK, 1000) == QUEUED);
	EXPECT(submit(0, 3, LAUNCH, 1) == QUEUED);
	EXPECT_WINDOW(task(0, 0), 0.5);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "1"));
	for (u32 slot = 0; slot < 4; slot++)
		EXPECT_WINDOW(task(0, slot), 1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.5"));
	EXPECT_WINDOW(task(0, 0), 0.5);
	EXPECT_WINDOW(task(0, 1), 0);
	EXPECT_WINDOW(task(0, 2), 0);
	EXPECT_WINDOW(task(0, 3), 1);
}

/* A queue of them gets no more than its client's share, as soon as somebody waits for it */
static void opaque_queue_starves_nobody(void)
{
	attach(2);
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	EXPECT(submit(0, 1, LAUNCH, 100000) == 0);
	EXPECT(submit(0, 2, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 1), 66);
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(1, 0)->state == GSC_TASK_RUNNING && task(1, 0)->window == 66 * SM);
	EXPECT(task(0, 2)->window == 66 * SM);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "66\n"));
}

/* Nothing is set aside for tasks that have to wait for one that cannot run */
static void who_cannot_run_takes_nothing(void)
{
	struct gsched_submit wide = make_submit(0, 1, BLOCK, 1000);

	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.5"));
	wide.blocks_per_sm = 1;
	EXPECT(gsc_submit(&client[0], &wide, clock_ns) == QUEUED);
	EXPECT(submit(0, 1, BLOCK, 1000) == QUEUED);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(task(1, 0)->window == ALL);
}

/*
 * Of an opaque queue only what runs first counts, and what was used before that changed is charged
 * as it was
 */
static void opaque_queue_counts_for_its_first(void)
{
	attach(2);
	EXPECT(submit(0, 0, LAUNCH, 8) == 0);
	EXPECT(submit(0, 1, LAUNCH, 100000) == 0);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "132\n"));
	clock_ns += 100 * US;
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(1, 0), 124);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "8\n"));
	gsc_device_count(&dev, clock_ns);
	EXPECT(NS(group[0].stats.capsm) == 100 * US * SMS);
}

static void temporal_evicts_the_whole_client(void)
{
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 1, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT(submit(0, 2, BLOCK, 8) == QUEUED);
	EXPECT_WINDOW(task(0, 0), 0);
	EXPECT_WINDOW(task(0, 1), 0);
	EXPECT(complete(1, 0) == 0);
	for (u32 slot = 0; slot < 3; slot++)
		EXPECT(task(0, slot)->window == ALL);
}

static void more_equals_than_sms(void)
{
	struct gsched_submit req;

	setup();
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	dev.sms = 4;
	attach(8);
	for (int i = 0; i < 8; i++) {
		req = make_submit(0, 1, BLOCK, 1000);
		EXPECT(gsc_submit(&client[i], &req, clock_ns) == (i < 4 ? 0 : QUEUED));
		checked();
	}
	for (int i = 0; i < 4; i++)
		EXPECT(task(i, 0)->window == SM);
}

static void max_shrinks_the_running_kernel(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4\n"));
	EXPECT_WINDOW(task(0, 0), 4);
	EXPECT(n_evict == 1);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "4\n"));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "max\n"));
	EXPECT(task(0, 0)->window == ALL);
	EXPECT(n_grow == 1);
}

static void max_of_the_parent_binds_the_sum(void)
{
	static struct gsc_group sub[2];

	memset(sub, 0, sizeof(sub));
	EXPECT(!gsc_group_init(&sub[0], &group[0]) && !gsc_group_init(&sub[1], &group[0]));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "10"));
	EXPECT(!gsc_client_attach(&client[0], &sub[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[1], &sub[1], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 5);
	EXPECT(task(1, 0)->window == 5 * SM);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "10\n"));
	EXPECT(gsc_group_exit(&group[0]) == -EBUSY);
	gsc_client_detach(&client[0], clock_ns);
	gsc_client_detach(&client[1], clock_ns);
	EXPECT(!gsc_group_exit(&sub[0]) && !gsc_group_exit(&sub[1]) && !gsc_group_exit(&group[0]));
}

static void min_is_kept_from_the_more_important(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "20"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(task(1, 0)->window == ALL);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(1, 0), 112);
	EXPECT_WINDOW(task(0, 0), 20);
}

static void min_without_demand_is_lent(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "20"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 3) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 3);
	EXPECT_WINDOW(task(1, 0), 129);
}

static void overcommitted_min_is_scaled(void)
{
	attach(3);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "132"));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "66"));
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == QUEUED);
	EXPECT(task(0, 0)->window == 88 * SM);
	EXPECT(task(1, 0)->window == 44 * SM);
}

static void min_deep_below_is_kept(void)
{
	static struct gsc_group sub[2];

	memset(sub, 0, sizeof(sub));
	EXPECT(!gsc_group_init(&sub[0], &group[0]) && !gsc_group_init(&sub[1], &group[0]));
	EXPECT(!store(&sub[0], GSC_FILE_CAPSM_MIN, "6"));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "10"));
	EXPECT(!store(&sub[1], GSC_FILE_GPU_PRIORITY, "5"));
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!gsc_client_attach(&client[0], &sub[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[1], &sub[1], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(task(0, 0)->window == 6 * SM);
	EXPECT(task(1, 0)->window == 4 * SM);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT(task(0, 0)->window == 6 * SM);
	EXPECT(task(2, 0)->window == 126 * SM);
}

static void fractional_max(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "1.5"));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "0.5"));
	EXPECT(submit(0, 0, BLOCK, 1000) == 0);
	EXPECT(submit(1, 0, BLOCK, 1000) == 0);
	EXPECT_WINDOW(task(0, 0), 1.5);
	EXPECT_WINDOW(task(1, 0), 0.5);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "1.5\n"));
}

static void less_than_a_worker_waits(void)
{
	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.1"));
	EXPECT(submit(0, 0, BLOCK, 1000) == QUEUED);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.125"));
	EXPECT_WINDOW(task(0, 0), 0.125);
}

/* A running task, found in its client's page, is treated like one that was submitted */
static void adopted_runs_in_a_window_for_its_workers(void)
{
	struct gsched_submit req = make_submit(0, 1, BLOCK, 1000);

	attach(1);
	req.blocks_per_sm = 2;
	EXPECT(gsc_adopt(&client[0], &req, clock_ns, clock_ns) == 0);
	checked();
	EXPECT(task(0, 0)->window == ALL);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.5"));
	EXPECT_WINDOW(task(0, 0), 0.5);
	clock_ns += MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(task(0, 0)->usage == MS * SM / 2);
	/* none of its workers could run */
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.4"));
	EXPECT(task(0, 0)->window == 0);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "max"));
	EXPECT(task(0, 0)->window == ALL);
	checked();
}

/* It has run since it was launched, if its client tells a time that can be true */
static void adopted_has_run_since_its_launch(void)
{
	struct gsched_submit req = make_submit(0, 1, BLOCK, 1000);
	const u64 since[] = { 1, 2 * MS, 5 * MS, 5 * MS + 1, U64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(since); i++) {
		setup();
		clock_ns = 2 * MS;
		attach(1);
		clock_ns = 5 * MS;
		EXPECT(gsc_adopt(&client[0], &req, since[i], clock_ns) == 0);
		EXPECT(task(0, 0)->granted == (i == 1 ? 2 * MS : 5 * MS));
		EXPECT(dev.root.stats.wait.us == 0);
		EXPECT(gsc_complete(&client[0], &(struct gsched_complete){
			.size = sizeof(struct gsched_complete), .seq = 1, .ran_ns = U64_MAX },
			clock_ns) == 0);
		EXPECT(task(0, 0)->ran == (i == 1 ? 3 * MS : 0));
	}
}

static void adopted_shares_a_fraction(void)
{
	struct gsched_submit req = make_submit(0, 1, BLOCK, 1000);

	attach(1);
	req.blocks_per_sm = 2;
	EXPECT(!gsc_client_attach(&client[1], &group[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(gsc_adopt(&client[0], &req, clock_ns, clock_ns) == 0);
	EXPECT(gsc_adopt(&client[1], &req, clock_ns, clock_ns) == 0);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "1.5"));
	EXPECT_WINDOW(task(0, 0), 1);
	EXPECT(task(1, 0)->window == SM / 2);
}

static void running_opaque_keeps_what_it_has(void)
{
	attach(2);
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4"));
	EXPECT(task(0, 0)->window == SMS * SM);
	EXPECT(n_evict == 0);
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(1, 0)->window == ALL);
}

static void newcomer_overtakes_a_running_opaque(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(1, 0), 8);
	EXPECT(task(0, 0)->window == SMS * SM);
}

static void temporal_one_client_at_a_time(void)
{
	EXPECT(!gsc_client_attach(&client[0], &group[0], 0, 0, clock_ns));
	EXPECT(dev.mode == GSCHED_MODE_SPATIAL);
	EXPECT(!gsc_client_attach(&client[1], &group[1], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == QUEUED);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT_WINDOW(task(1, 0), 8);
	EXPECT_WINDOW(task(0, 0), 0);
	EXPECT(complete(1, 0) == 0);
	EXPECT(task(0, 0)->window == ALL);
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(dev.mode == GSCHED_MODE_SPATIAL);
	checked();
}

static void temporal_queue_starves_nobody(void)
{
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	attach(2);
	EXPECT(submit(0, 0, BLOCK, 100) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == QUEUED);
	EXPECT(submit(0, 1, BLOCK, 8) == QUEUED);
	EXPECT(complete(0, 0) == 0);
	EXPECT_WINDOW(task(1, 0), 8);
	EXPECT(task(0, 1)->state == GSC_TASK_WAITING);
	EXPECT(complete(1, 0) == 0);
	EXPECT_WINDOW(task(0, 1), 8);
}

static void temporal_max_applies(void)
{
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "7"));
	EXPECT(submit(0, 0, BLOCK, 100) == 0);
	EXPECT_WINDOW(task(0, 0), 7);
	EXPECT(gsc_device_set_mode(&dev, 2, clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_mode(&dev, -2, clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_policy(&dev, "none", clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_policy(&dev, "hpf", clock_ns) == 0);
}

static void limit(int c, const char *max)
{
	EXPECT(!gsc_client_store(&client[c], GSC_FILE_CAPSM_MAX, max, true, clock_ns));
	gsc_commit(&dev, clock_ns);
	checked();
}

/*
 * A max that no worker of a kernel fits into, which any user may write for an own program: others
 * have the device meanwhile, whatever the policy and however important it is
 */
static void temporal_what_cannot_run_has_no_turn(void)
{
	static const char *const policy[] = { "hpf", "srt", "ffs", "wfq", "corun" };

	for (u32 i = 0; i < 2 * ARRAY_SIZE(policy) && good; i++) {
		setup();
		EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
		EXPECT(!gsc_device_set_policy(&dev, policy[i / 2], clock_ns));
		EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, i % 2 ? "10" : "0"));
		attach(2);
		limit(1, "0.1");
		EXPECT(submit(1, 0, BLOCK, 8) == QUEUED);
		EXPECT(submit(0, 0, BLOCK, 100000) == 0);
		/* nor does what is queued behind it */
		EXPECT(submit(1, 1, LAUNCH, 8) == QUEUED);
		for (int n = 0; n < 20; n++) {
			EXPECT(task(0, 0)->window == ALL);
			clock_ns += 100 * MS;
			gsc_tick(&dev, clock_ns);
			checked();
		}
		limit(1, "max");
		for (int n = 0; n < 200 && task(1, 0)->state == GSC_TASK_WAITING; n++) {
			clock_ns += 10 * MS;
			gsc_tick(&dev, clock_ns);
			checked();
		}
		EXPECT(task(1, 0)->state == GSC_TASK_RUNNING);
		/* it runs, and then again it cannot */
		limit(1, "0.1");
		EXPECT_WINDOW(task(1, 0), 0);
		EXPECT(task(0, 0)->window == ALL);
		if (!good)
			printf("# policy %s\n", policy[i / 2]);
	}
}

/* Nor is an opaque kernel overdue for it */
static void what_cannot_run_waits_for_nobody(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "0.1"));
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == QUEUED);
	clock_ns += 600 * MS;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(!task(0, 0)->overdue && !dev.root.stats.events[GSC_EVENT_OVERDUE]);
}

/*
 * a batch kernel with blocks of @block_ns, an important kernel of @kernel_ns every ms; afterwards
 * the important one just ended
 */
static void periodic_among(const char *priority, u64 block_ns, u64 kernel_ns)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, priority));
	EXPECT(submit_block_ns(0, 0, BLOCK, 100000, 0, block_ns) == 0);
	for (int i = 0; i < 3; i++) {
		clock_ns += MS - kernel_ns;
		EXPECT(submit_block_ns(1, 0, LAUNCH, 8, kernel_ns, 0) == 0);
		clock_ns += kernel_ns;
		EXPECT(complete(1, 0) == 0);
	}
}

static void periodic(u64 block_ns)
{
	periodic_among("10", block_ns, 50 * US);
}

static void hold_while_blocks_are_long(void)
{
	periodic(MS);
	EXPECT_WINDOW(task(0, 0), 124);
	EXPECT(client[1].hold_got == 8 * SM && dev.timer == clock_ns + 8 * MS);
	n_evict = 0;
	clock_ns += 950 * US;
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	EXPECT(n_evict == 0 && dev.timer == clock_ns + 20 * MS);
}

/* The next submit comes before the completion of the kernel before it is seen */
static void overlap(u64 blocks, u32 slot)
{
	EXPECT(submit(1, slot, LAUNCH, blocks) == 0);
	clock_ns += 20 * US;
	EXPECT(complete(1, !slot) == 0);
	EXPECT(client[1].hold_units <= 8 * SM);
	clock_ns += 30 * US;
}

static void hold_is_for_one_kernel(void)
{
	periodic(MS);
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	for (u32 i = 1; i < 20; i++) {
		overlap(8, i & 1);
		EXPECT_WINDOW(task(0, 0), 124);
	}
	EXPECT(complete(1, 1) == 0);
	EXPECT(client[1].hold_units == 8 * SM && client[1].hold_got == 8 * SM);
	EXPECT_WINDOW(task(0, 0), 124);
	EXPECT(n_evict <= 3);
}

static void hold_is_no_larger_than_the_kernel(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit_block_ns(0, 0, BLOCK, 8, 0, MS) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0 && complete(1, 0) == 0);
	for (u32 slot = 0; slot < 2; slot++) {
		clock_ns += 50 * US;
		EXPECT(submit(1, slot, BLOCK, 8) == 0);
	}
	EXPECT(task(1, 0)->window == 16 * SM);
	clock_ns += 50 * US;
	EXPECT(complete(1, 0) == 0 && complete(1, 1) == 0);
	EXPECT(client[1].hold_units == 8 * SM && client[1].hold_got == 8 * SM);
}

static void hold_follows_the_size_of_the_kernels(void)
{
	periodic(MS);
	EXPECT(submit(1, 0, LAUNCH, 40) == 0);
	EXPECT(complete(1, 0) == 0);
	EXPECT(client[1].hold_units == 40 * SM);
	EXPECT_WINDOW(task(0, 0), 92);
	/* a smaller one does not use it up: the one after it may be large again */
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 92);
	EXPECT(client[1].hold_got == 32 * SM);
	EXPECT(complete(1, 0) == 0);
	EXPECT(client[1].hold_units == 40 * SM && client[1].hold_got == 40 * SM);
	for (int i = 0; i < 8; i++) {
		EXPECT(submit(1, 0, LAUNCH, 8) == 0);
		EXPECT(complete(1, 0) == 0);
	}
	EXPECT(client[1].hold_units == 8 * SM);
	EXPECT_WINDOW(task(0, 0), 124);
}

static void hold_ends_by_the_timer(void)
{
	periodic(MS);
	clock_ns = dev.timer - 1;
	gsc_tick(&dev, clock_ns);
	EXPECT_WINDOW(task(0, 0), 124);
	gsc_tick(&dev, ++clock_ns);
	EXPECT(task(0, 0)->window == ALL && dev.timer == dev.pass_timer &&
	       !client[0].band->n_holds);
	checked();
}

static void no_hold_while_blocks_are_short(void)
{
	periodic_among("10", 20 * US, 400 * US);
	EXPECT(task(0, 0)->window == ALL && dev.timer == dev.pass_timer);
}

static void no_hold_for_rare_kernels(void)
{
	periodic(MS);
	for (int i = 0; i < 40; i++) {
		clock_ns += 30 * MS;
		EXPECT(submit_block_ns(1, 0, LAUNCH, 8, 50 * US, 0) == 0);
		clock_ns += 50 * US;
		EXPECT(complete(1, 0) == 0);
	}
	EXPECT(task(0, 0)->window == ALL && !client[1].hold_units);
}

/* Where one band at a time has the device nobody else could have what is kept free */
static void no_hold_in_temporal_mode(void)
{
	periodic(MS);
	EXPECT(client[1].hold_units == 8 * SM);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	checked();
	for (int i = 0; i < 4; i++) {
		clock_ns += 950 * US;
		gsc_tick(&dev, clock_ns);
		EXPECT(submit(1, 0, LAUNCH, 8) == 0);
		clock_ns += 50 * US;
		EXPECT(complete(1, 0) == 0);
		EXPECT(!client[1].hold_units);
	}
	EXPECT(task(0, 0)->window == ALL);
}

static void no_hold_from_equals(void)
{
	periodic_among("0", MS, 50 * US);
	EXPECT(task(0, 0)->window == ALL && dev.timer == dev.pass_timer);
}

static void hold_lets_nobody_starve(void)
{
	periodic(MS);
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(complete(0, 0) == 0);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "5"));
	EXPECT(submit_block_ns(0, 0, BLOCK, 124, 0, MS) == 0);
	EXPECT_WINDOW(task(0, 0), 124);
	EXPECT(client[0].band->n_holds == 1);
	EXPECT(submit(2, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(2, 0), 8);
	EXPECT(!client[0].band->n_holds);
}

/* A page's word is believed as far as time and device allow, and counted in every group above */
static void leased_is_bounded(void)
{
	struct gsc_leased says = { .tasks = 10, .ns = 5 * MS, .usage = 50 * MS };

	attach(1);
	clock_ns += 10 * MS;
	gsc_client_leased(&client[0], &says, clock_ns);
	EXPECT(group[0].stats.counts.tasks == 10 && NS(group[0].stats.ran) == 5 * MS &&
	       NS(group[0].stats.capsm) == 50 * MS);
	EXPECT(dev.root.stats.counts.tasks == 10 && NS(dev.root.stats.granted) == 5 * MS &&
	       !group[1].stats.counts.tasks);
	/* the same again says nothing new */
	gsc_client_leased(&client[0], &says, clock_ns + MS);
	EXPECT(group[0].stats.counts.tasks == 10 && NS(group[0].stats.ran) == 5 * MS);
	says = (struct gsc_leased){ .tasks = ~0ull, .ns = ~0ull, .usage = ~0ull };
	gsc_client_leased(&client[0], &says, clock_ns + 2 * MS);
	EXPECT(group[0].stats.counts.tasks == 1010 && NS(group[0].stats.ran) == 6 * MS);
	EXPECT(NS(group[0].stats.capsm) == 50 * MS + SMS * MS);
	says = (struct gsc_leased){ 0 };
	gsc_client_leased(&client[0], &says, clock_ns + 3 * MS);
	EXPECT(group[0].stats.counts.tasks == 1010 && NS(group[0].stats.ran) == 6 * MS);
	says.tasks = 2;
	gsc_client_leased(&client[0], &says, clock_ns + 4 * MS);
	EXPECT(group[0].stats.counts.tasks == 1012);
}

/* Time of paced launches comes when they end: up to as much as passed since the client attached */
static void paced_is_bounded(void)
{
	struct gsc_leased says = { .paced_ns = 4 * MS };

	attach(1);
	clock_ns += 2 * MS;
	gsc_client_leased(&client[0], &says, clock_ns);
	EXPECT(NS(group[0].stats.paced) == 2 * MS && !NS(group[0].stats.ran));
	clock_ns += 20 * MS;
	gsc_client_leased(&client[0], &says, clock_ns);
	EXPECT(NS(group[0].stats.paced) == 4 * MS && NS(dev.root.stats.paced) == 4 * MS);
	/* one launch may take longer than it is since somebody looked */
	says.paced_ns = 20 * MS;
	gsc_client_leased(&client[0], &says, clock_ns + US);
	EXPECT(NS(group[0].stats.paced) == 20 * MS);
	says.paced_ns = 3 * MS;
	gsc_client_leased(&client[0], &says, clock_ns + MS);
	EXPECT(NS(group[0].stats.paced) == 20 * MS);
	says.paced_ns = ~0ull;
	gsc_client_leased(&client[0], &says, clock_ns + MS);
	EXPECT(NS(group[0].stats.paced) == 23 * MS);
	/* more than 2^32 us, and what the group has stays when the client goes */
	clock_ns += 5000000 * MS;
	gsc_client_leased(&client[0], &says, clock_ns);
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(shows(&group[0], GSC_FILE_GPU_STAT, "usage_usec 0\ncapsm_usec 0\nran_usec 0\n"
		     "paced_usec 5000022000\ntasks 0\ngrants 0\nevictions 0\ngrowths 0\n"
		     "wait_usec 0\ncancelled 0\ndemanded_usec 0\npromised_usec 0\n"));
	EXPECT(NS(dev.root.stats.paced) == NS(group[0].stats.paced) && !NS(group[1].stats.paced));
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(alone_gets_the_device), TEST(demand_is_one_block_an_sm),
	TEST(newcomer_takes_only_what_it_needs),
	TEST(opaque_newcomer_takes_from_all), TEST(growth_evicts_nobody),
	TEST(evicted_wholly_comes_back),
	TEST(lower_priority_waits_for_what_is_left), TEST(equals_share_by_weight),
	TEST(who_wants_little_leaves_the_rest), TEST(tasks_of_a_client_share_its_window),
	TEST(queued_task_is_granted_at_once),
	TEST(eviction_and_growth_reach_all_tasks), TEST(shared_window_is_charged_once),
	TEST(max_binds_all_tasks_of_a_client),
	TEST(queue_of_small_ones_evicts_nobody_else), TEST(later_task_never_overtakes),
	TEST(opaque_queue_starves_nobody),
	TEST(who_cannot_run_takes_nothing), TEST(opaque_queue_counts_for_its_first),
	TEST(temporal_evicts_the_whole_client),
	TEST(more_equals_than_sms), TEST(max_shrinks_the_running_kernel),
	TEST(max_of_the_parent_binds_the_sum),
	TEST(min_is_kept_from_the_more_important), TEST(min_without_demand_is_lent),
	TEST(overcommitted_min_is_scaled),
	TEST(min_deep_below_is_kept), TEST(fractional_max), TEST(less_than_a_worker_waits),
	TEST(adopted_runs_in_a_window_for_its_workers),
		TEST(adopted_has_run_since_its_launch), TEST(adopted_shares_a_fraction),
	TEST(running_opaque_keeps_what_it_has), TEST(newcomer_overtakes_a_running_opaque),
	TEST(temporal_one_client_at_a_time),
	TEST(temporal_queue_starves_nobody), TEST(temporal_max_applies),
	TEST(temporal_what_cannot_run_has_no_turn), TEST(what_cannot_run_waits_for_nobody),
	TEST(hold_while_blocks_are_long),
	TEST(hold_is_for_one_kernel), TEST(hold_follows_the_size_of_the_kernels),
	TEST(hold_is_no_larger_than_the_kernel),
	TEST(hold_ends_by_the_timer), TEST(no_hold_while_blocks_are_short),
	TEST(no_hold_in_temporal_mode), TEST(no_hold_from_equals), TEST(no_hold_for_rare_kernels),
	TEST(hold_lets_nobody_starve), TEST(leased_is_bounded), TEST(paced_is_bounded),
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
