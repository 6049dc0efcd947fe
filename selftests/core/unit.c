// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of the decision core: one behaviour a test. The clock is the test's. */
#include "world.h"

#define SMS	132
#define ALL	GSCHED_WINDOW(0, SMS * SM)

static struct gsc_device dev;
static struct gsc_group group[8];
static struct gsc_client client[8];
static u64 clock_ns;
static bool good;		/* of the test that runs */
static u32 n_done, n_evict, n_grow, n_grant, n_lease, n_timer;

#define EXPECT(x) do { \
	if (!(x)) { \
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #x); \
		good = false; \
	} \
} while (0)

#define EXPECT_WINDOW(t, b, l) do { \
	u64 w_ = (t)->window; \
	if ((t)->state != GSC_TASK_RUNNING || w_ != GSCHED_WINDOW((b) * SM, (l) * SM)) { \
		printf("# %s:%d: state %d, window %g+%g, not %g+%g\n", __FILE__, __LINE__, (t)->state, \
		       GSCHED_WINDOW_BASE(w_) / 1024., GSCHED_WINDOW_LIMIT(w_) / 1024., (double)(b), (double)(l)); \
		good = false; \
	} \
} while (0)

static void op_set_window(struct gsc_task *task, enum gsc_change why)
{
	n_grant += why == GSC_GRANT;
	n_evict += why == GSC_EVICT;
	n_grow += why == GSC_GROW;
}

static void op_set_lease(struct gsc_client *c, u32 lease)
{
	EXPECT(c->lease == lease);
	n_lease++;
}

static void op_arm_timer(struct gsc_device *d, u64 when)
{
	n_timer++;
}

static void op_done(struct gsc_task *task)
{
	EXPECT(task->state == GSC_TASK_NONE);
	n_done++;
}

static const struct gsc_ops ops = { op_set_window, op_set_lease, op_arm_timer, op_done };

/* group[i] all below the root, client[i] in group[i], clients attached by hand */
static void setup(void)
{
	memset(&dev, 0, sizeof(dev));
	memset(group, 0, sizeof(group));
	memset(client, 0, sizeof(client));
	n_done = n_evict = n_grow = n_grant = n_lease = n_timer = 0;
	clock_ns = 1000 * MS;
	EXPECT(!gsc_device_init(&dev, &ops, SMS));
	for (int i = 0; i < 8; i++)
		EXPECT(!gsc_group_init(&group[i], &dev.root));
}

static void checked(void)
{
	int ret = gsc_check(&dev);

	if (ret) {
		printf("# invariant %d\n", ret);
		good = false;
	}
}

static void attach(int n)
{
	for (int i = 0; i < n; i++)
		EXPECT(!gsc_client_attach(&client[i], &group[i], GSCHED_ATTACH_MPS, clock_ns));
	checked();
}

static int submit_block_ns(int c, u32 slot, u32 tier, u64 blocks, u64 predicted, u64 block_ns)
{
	struct gsched_submit req = make_submit(slot, 1, tier, blocks);
	int ret;

	req.predicted_ns = predicted;
	req.block_ns = block_ns;
	ret = gsc_submit(&client[c], &req, clock_ns);
	checked();
	return ret;
}

static int submit(int c, u32 slot, u32 tier, u64 blocks)
{
	return submit_block_ns(c, slot, tier, blocks, 0, 0);
}

static int complete(int c, u32 slot)
{
	struct gsched_complete req = make_complete(slot, 1);
	int ret = gsc_complete(&client[c], &req, clock_ns);

	checked();
	return ret;
}

static int store(struct gsc_group *g, enum gsc_file file, const char *text)
{
	int ret = gsc_group_store(g, file, text, clock_ns);

	checked();
	return ret;
}

static bool shows(const struct gsc_group *g, enum gsc_file file, const char *text)
{
	char buf[512];
	int len = gsc_group_show(g, file, buf, sizeof(buf));

	if (len == (int)strlen(text) && !strcmp(buf, text))
		return true;
	printf("# shows \"%s\", not \"%s\"\n", buf, text);
	return false;
}

static struct gsc_task *task(int c, u32 slot)
{
	return &client[c].task[slot];
}

enum { BLOCK = GSCHED_TIER_BLOCK, SLICE = GSCHED_TIER_SLICE, LAUNCH = GSCHED_TIER_LAUNCH };

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
	EXPECT_WINDOW(task(0, 0), 0, 8);
}

static void newcomer_takes_only_what_it_needs(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 124);
	EXPECT_WINDOW(task(1, 0), 124, 8);
	EXPECT(n_evict == 1);
	EXPECT(complete(1, 0) == 0);
	EXPECT(task(0, 0)->window == ALL);
	EXPECT(n_grow == 1 && n_done == 1);
}

static void opaque_newcomer_moves_no_base(void)
{
	attach(3);
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 66);
	EXPECT_WINDOW(task(1, 0), 66, 66);
	EXPECT(submit(2, 0, LAUNCH, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 62);
	EXPECT_WINDOW(task(1, 0), 66, 62);
	EXPECT(complete(2, 0) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 66);
	EXPECT_WINDOW(task(1, 0), 66, 66);
}

static void growth_downwards_is_growth(void)
{
	attach(2);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	n_evict = 0;
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(1, 0)->window == ALL);
	EXPECT(n_evict == 0 && n_grow == 1);
}

static void evicted_wholly_comes_back_to_its_base(void)
{
	attach(3);
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT(task(2, 0)->window == ALL);
	EXPECT_WINDOW(task(0, 0), 0, 0);
	EXPECT_WINDOW(task(1, 0), 66, 0);
	EXPECT(complete(2, 0) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 66);
	EXPECT_WINDOW(task(1, 0), 66, 66);
}

static void evicted_wholly_prefers_its_base_to_a_lower_one(void)
{
	attach(3);
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 66) == 0);
	EXPECT(submit(1, 0, BLOCK, 66) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT(complete(0, 0) == 0);
	EXPECT(complete(2, 0) == 0);
	EXPECT_WINDOW(task(1, 0), 66, 66);
}

static void growth_goes_down_before_it_pushes(void)
{
	attach(3);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "40"));
	EXPECT(submit(0, 0, BLOCK, 40) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 40) == 0);
	EXPECT(complete(0, 0) == 0);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "60"));
	EXPECT_WINDOW(task(1, 0), 20, 60);
	EXPECT_WINDOW(task(2, 0), 80, 40);
	EXPECT(n_evict == 0 && n_grow == 1);
}

static void no_gap_large_enough_moves_the_least(void)
{
	attach(4);
	for (int i = 0; i < 3; i++)
		EXPECT(submit(i, 0, BLOCK, 40) == 0);
	/* 0 40 80, 12 free at the end; the middle leaves */
	EXPECT(complete(1, 0) == 0);
	EXPECT(submit(3, 0, BLOCK, 52) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 40);
	EXPECT_WINDOW(task(3, 0), 40, 52);
	EXPECT_WINDOW(task(2, 0), 92, 40);
}

static void lower_priority_waits_for_what_is_left(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == -EAGAIN);
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
	EXPECT_WINDOW(task(0, 0), 0, 33);
	EXPECT_WINDOW(task(1, 0), 33, 99);
}

static void who_wants_little_leaves_the_rest(void)
{
	attach(3);
	EXPECT(submit(0, 0, BLOCK, 10) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 10);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 61 * SM);
	EXPECT(GSCHED_WINDOW_LIMIT(task(2, 0)->window) == 61 * SM);
}

static void tasks_of_a_client_share_its_window(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 100);
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
	EXPECT_WINDOW(task(0, 0), 66, 66);
	EXPECT_WINDOW(task(0, 1), 66, 66);
	EXPECT_WINDOW(task(1, 0), 0, 66);
	EXPECT(n_grant == 1 && n_evict == 0 && n_grow == 0);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "66\n"));
	EXPECT(shows(&dev.root, GSC_FILE_CAPSM_CURRENT, "132\n"));
}

static void queued_task_is_granted_at_once(void)
{
	two_queued();
	for (int i = 0; i < 5; i++) {
		EXPECT(complete(0, (u32)i & 1) == 0);
		EXPECT_WINDOW(task(0, (u32)~i & 1), 66, 66);
		EXPECT(submit(0, (u32)i & 1, BLOCK, 100000) == 0);
		EXPECT_WINDOW(task(0, (u32)i & 1), 66, 66);
	}
	EXPECT(n_evict == 0 && n_grow == 0 && n_grant == 6);
}

static void eviction_and_growth_reach_all_tasks(void)
{
	two_queued();
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(2, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 70, 62);
	EXPECT_WINDOW(task(0, 1), 70, 62);
	EXPECT(n_evict == 3);
	EXPECT(complete(2, 0) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 66, 0);
	EXPECT_WINDOW(task(0, 1), 66, 0);
	EXPECT(submit(0, 2, BLOCK, 8) == -EAGAIN);
	n_grow = 0;
	EXPECT(complete(2, 0) == 0);
	EXPECT_WINDOW(task(0, 0), 66, 66);
	EXPECT_WINDOW(task(0, 1), 66, 66);
	EXPECT_WINDOW(task(0, 2), 66, 66);
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
	EXPECT(group[0].stats.usage == 200 * US * 66 && group[0].stats.granted_ns == 200 * US);
	EXPECT(task(0, 0)->usage + task(0, 1)->usage == 200 * US * 66 * SM);
	/* of two small ones the larger: 8 blocks fill one SM, 24 three */
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	EXPECT(submit(0, 1, BLOCK, 24) == 0);
	clock_ns += 100 * US;
	gsc_tick(&dev, clock_ns);
	EXPECT(group[0].stats.usage == 200 * US * 66 + 100 * US * 3);
}

static void max_binds_all_tasks_of_a_client(void)
{
	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "10"));
	for (u32 slot = 0; slot < 3; slot++) {
		EXPECT(submit(0, slot, BLOCK, 100000) == 0);
		EXPECT_WINDOW(task(0, slot), 0, 10);
	}
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "10\n"));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4"));
	for (u32 slot = 0; slot < 3; slot++)
		EXPECT_WINDOW(task(0, slot), 0, 4);
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
	EXPECT_WINDOW(task(1, 0), 124, 8);
	EXPECT_WINDOW(task(1, 1), 124, 8);
	EXPECT(n_evict == 1);
	EXPECT(complete(0, 0) == 0);
	EXPECT(submit(1, 2, BLOCK, 8) == 0);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 24 * SM);
	/* nobody wants it: it stays, for its workers may be anywhere in it */
	EXPECT(complete(1, 0) == 0);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 1)->window) == 24 * SM);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 1)->window) == 8 * SM);
	EXPECT(GSCHED_WINDOW_LIMIT(task(0, 0)->window) == 124 * SM);
}

static void later_task_never_overtakes(void)
{
	struct gsched_submit wide = make_submit(1, 1, BLOCK, 1000);

	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.5"));
	EXPECT(submit(0, 0, BLOCK, 1000) == 0);
	wide.blocks_per_sm = 1;		/* no room for one worker */
	EXPECT(gsc_submit(&client[0], &wide, clock_ns) == -EAGAIN);
	EXPECT(submit(0, 2, BLOCK, 1000) == -EAGAIN);
	EXPECT(submit(0, 3, LAUNCH, 1) == -EAGAIN);
	EXPECT_WINDOW(task(0, 0), 0, 0.5);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "1"));
	for (u32 slot = 0; slot < 4; slot++)
		EXPECT_WINDOW(task(0, slot), 0, 1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.5"));
	EXPECT_WINDOW(task(0, 0), 0, 0.5);
	EXPECT_WINDOW(task(0, 1), 0, 0);
	EXPECT_WINDOW(task(0, 2), 0, 0);
	EXPECT_WINDOW(task(0, 3), 0, 1);
}

/* A queue of them gets no more than its client's share, as soon as somebody waits for it */
static void opaque_queue_starves_nobody(void)
{
	attach(2);
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == -EAGAIN);
	EXPECT(submit(0, 1, LAUNCH, 100000) == 0);
	EXPECT(submit(0, 2, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 1), 0, 66);
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(1, 0)->state == GSC_TASK_RUNNING && GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 66 * SM);
	EXPECT(GSCHED_WINDOW_LIMIT(task(0, 2)->window) == 66 * SM);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "66\n"));
}

/* Nothing is set aside for tasks that have to wait for one that cannot run */
static void who_cannot_run_takes_nothing(void)
{
	struct gsched_submit wide = make_submit(0, 1, BLOCK, 1000);

	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.5"));
	wide.blocks_per_sm = 1;
	EXPECT(gsc_submit(&client[0], &wide, clock_ns) == -EAGAIN);
	EXPECT(submit(0, 1, BLOCK, 1000) == -EAGAIN);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(task(1, 0)->window == ALL);
}

/* Of an opaque queue only what runs first counts, and what was used before that changed is charged as it was */
static void opaque_queue_counts_for_its_first(void)
{
	attach(2);
	EXPECT(submit(0, 0, LAUNCH, 8) == 0);
	EXPECT(submit(0, 1, LAUNCH, 100000) == 0);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "132\n"));
	clock_ns += 100 * US;
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(1, 0), 0, 124);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "8\n"));
	EXPECT(group[0].stats.usage == 100 * US * SMS);
}

static void temporal_evicts_the_whole_client(void)
{
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 1, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT(submit(0, 2, BLOCK, 8) == -EAGAIN);
	EXPECT_WINDOW(task(0, 0), 0, 0);
	EXPECT_WINDOW(task(0, 1), 0, 0);
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
		EXPECT(gsc_submit(&client[i], &req, clock_ns) == (i < 4 ? 0 : -EAGAIN));
		checked();
	}
	for (int i = 0; i < 4; i++)
		EXPECT(GSCHED_WINDOW_LIMIT(task(i, 0)->window) == SM);
}

static void max_shrinks_the_running_kernel(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4\n"));
	EXPECT_WINDOW(task(0, 0), 0, 4);
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
	EXPECT(!gsc_client_attach(&client[0], &sub[0], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(!gsc_client_attach(&client[1], &sub[1], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 5);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 5 * SM);
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
	EXPECT_WINDOW(task(1, 0), 0, 112);
	EXPECT_WINDOW(task(0, 0), 112, 20);
}

static void min_without_demand_is_lent(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "20"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 3) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 3);
	EXPECT_WINDOW(task(1, 0), 3, 129);
}

static void overcommitted_min_is_scaled(void)
{
	attach(3);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "132"));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "66"));
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == -EAGAIN);
	EXPECT(GSCHED_WINDOW_LIMIT(task(0, 0)->window) == 88 * SM);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 44 * SM);
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
	EXPECT(!gsc_client_attach(&client[0], &sub[0], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(!gsc_client_attach(&client[1], &sub[1], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(GSCHED_WINDOW_LIMIT(task(0, 0)->window) == 6 * SM);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 4 * SM);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT(GSCHED_WINDOW_LIMIT(task(0, 0)->window) == 6 * SM);
	EXPECT(GSCHED_WINDOW_LIMIT(task(2, 0)->window) == 126 * SM);
}

static void fractional_max(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "1.5"));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "0.5"));
	EXPECT(submit(0, 0, BLOCK, 1000) == 0);
	EXPECT(submit(1, 0, BLOCK, 1000) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 1.5);
	EXPECT_WINDOW(task(1, 0), 2, 0.5);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "1.5\n"));
}

static void less_than_a_worker_waits(void)
{
	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.1"));
	EXPECT(submit(0, 0, BLOCK, 1000) == -EAGAIN);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "0.125"));
	EXPECT_WINDOW(task(0, 0), 0, 0.125);
}

static void running_opaque_keeps_what_it_has(void)
{
	attach(2);
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == -EAGAIN);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4"));
	EXPECT(GSCHED_WINDOW_LIMIT(task(0, 0)->window) == SMS * SM);
	EXPECT(n_evict == 0);
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(1, 0)->window == ALL);
}

static void newcomer_overtakes_a_running_opaque(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, SLICE, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(1, 0), 0, 8);
	EXPECT(GSCHED_WINDOW_LIMIT(task(0, 0)->window) == SMS * SM);
}

static void temporal_one_client_at_a_time(void)
{
	EXPECT(!gsc_client_attach(&client[0], &group[0], 0, clock_ns));
	EXPECT(dev.mode == GSCHED_MODE_SPATIAL);
	EXPECT(!gsc_client_attach(&client[1], &group[1], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == -EAGAIN);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT_WINDOW(task(1, 0), 0, 8);
	EXPECT_WINDOW(task(0, 0), 0, 0);
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
	EXPECT(submit(1, 0, BLOCK, 8) == -EAGAIN);
	EXPECT(submit(0, 1, BLOCK, 8) == -EAGAIN);
	EXPECT(complete(0, 0) == 0);
	EXPECT_WINDOW(task(1, 0), 0, 8);
	EXPECT(task(0, 1)->state == GSC_TASK_WAITING);
	EXPECT(complete(1, 0) == 0);
	EXPECT_WINDOW(task(0, 1), 0, 8);
}

static void temporal_max_applies(void)
{
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	attach(1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "7"));
	EXPECT(submit(0, 0, BLOCK, 100) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 7);
	EXPECT(gsc_device_set_mode(&dev, 2, clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_mode(&dev, -2, clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_policy(&dev, "none", clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_policy(&dev, "hpf", clock_ns) == 0);
}

/* a batch kernel with blocks of @block_ns, an important kernel of @kernel_ns every ms; afterwards the important one just ended */
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
	EXPECT_WINDOW(task(0, 0), 0, 124);
	EXPECT(client[1].hold_got == 8 * SM && dev.timer == clock_ns + 2 * MS);
	n_evict = 0;
	clock_ns += 950 * US;
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	EXPECT(n_evict == 0 && dev.timer == 0);
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
		EXPECT_WINDOW(task(0, 0), 0, 124);
	}
	EXPECT(complete(1, 1) == 0);
	EXPECT(client[1].hold_units == 8 * SM && client[1].hold_got == 8 * SM);
	EXPECT_WINDOW(task(0, 0), 0, 124);
	EXPECT(n_evict <= 3);
}

static void hold_is_no_larger_than_the_kernel(void)
{
	attach(2);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit_block_ns(0, 0, BLOCK, 8, 0, MS) == 0);
	for (u32 slot = 0; slot < 2; slot++) {
		clock_ns += 50 * US;
		EXPECT(submit(1, slot, BLOCK, 8) == 0);
	}
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 16 * SM);
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
	EXPECT_WINDOW(task(0, 0), 0, 92);
	/* a smaller one does not use it up: the one after it may be large again */
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 92);
	EXPECT(client[1].hold_got == 32 * SM);
	EXPECT(complete(1, 0) == 0);
	EXPECT(client[1].hold_units == 40 * SM && client[1].hold_got == 40 * SM);
	for (int i = 0; i < 8; i++) {
		EXPECT(submit(1, 0, LAUNCH, 8) == 0);
		EXPECT(complete(1, 0) == 0);
	}
	EXPECT(client[1].hold_units == 8 * SM);
	EXPECT_WINDOW(task(0, 0), 0, 124);
}

static void hold_ends_by_the_timer(void)
{
	periodic(MS);
	clock_ns = dev.timer - 1;
	gsc_tick(&dev, clock_ns);
	EXPECT_WINDOW(task(0, 0), 0, 124);
	gsc_tick(&dev, ++clock_ns);
	EXPECT(task(0, 0)->window == ALL && dev.timer == 0 && !dev.n_holds);
	checked();
}

static void no_hold_while_blocks_are_short(void)
{
	periodic_among("10", 20 * US, 400 * US);
	EXPECT(task(0, 0)->window == ALL && !dev.timer);
}

static void no_hold_from_equals(void)
{
	periodic_among("0", MS, 50 * US);
	EXPECT(task(0, 0)->window == ALL && !dev.timer);
}

static void hold_lets_nobody_starve(void)
{
	periodic(MS);
	EXPECT(!gsc_client_attach(&client[2], &group[2], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(complete(0, 0) == 0);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "5"));
	EXPECT(submit_block_ns(0, 0, BLOCK, 124, 0, MS) == 0);
	EXPECT_WINDOW(task(0, 0), 0, 124);
	EXPECT(dev.n_holds == 1);
	EXPECT(submit(2, 0, BLOCK, 8) == 0);
	EXPECT_WINDOW(task(2, 0), 124, 8);
	EXPECT(!dev.n_holds);
}

static void leases(void)
{
	attach(1);
	EXPECT(client[0].lease == GSCHED_LEASE_FREE && n_lease == 1);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "4"));
	EXPECT(client[0].lease == GSCHED_LEASE_NONE);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "132"));
	EXPECT(client[0].lease == GSCHED_LEASE_FREE);
	EXPECT(!gsc_client_attach(&client[1], &group[1], GSCHED_ATTACH_MPS, clock_ns));
	EXPECT(client[0].lease == GSCHED_LEASE_NONE && client[1].lease == GSCHED_LEASE_NONE);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(client[0].lease == GSCHED_LEASE_NONE && client[1].lease == GSCHED_LEASE_NOTIFY);
	EXPECT(dev.top_priority == 10);
	n_lease = 0;
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	EXPECT(client[0].contended == 1 && client[1].contended == 0 && n_lease == 1);
	gsc_client_detach(&client[1], clock_ns);
	EXPECT(client[0].lease == GSCHED_LEASE_FREE && client[0].contended == 0);
}

static void submit_rejects(void)
{
	struct gsched_submit ok = make_submit(0, 1, BLOCK, 1), req;

	attach(1);
#define REJECT(field, value) do { \
	req = ok; \
	req.field = value; \
	EXPECT(gsc_submit(&client[0], &req, clock_ns) == -EINVAL); \
} while (0)
	REJECT(slot, GSCHED_SLOTS);
	REJECT(slot, U32_MAX);
	REJECT(seq, 0);
	REJECT(tier, 3);
	REJECT(blocks_per_sm, 0);
	REJECT(blocks_per_sm, 33);
	REJECT(blocks, 0);
	EXPECT(!client[0].n_tasks && list_empty(&dev.tasks));
	EXPECT(gsc_submit(&client[0], &ok, clock_ns) == 0);
	EXPECT(gsc_submit(&client[0], &ok, clock_ns) == -EBUSY);
	EXPECT(client[0].n_tasks == 1);
	req = make_submit(1, 1, BLOCK, U64_MAX);
	req.predicted_ns = U64_MAX;
	req.block_ns = U64_MAX;
	EXPECT(gsc_submit(&client[0], &req, clock_ns) == 0);
	checked();
}

static void complete_rejects(void)
{
	struct gsched_complete req = make_complete(GSCHED_SLOTS, 1);

	attach(1);
	EXPECT(gsc_complete(&client[0], &req, clock_ns) == -EINVAL);
	EXPECT(complete(0, 0) == -ENOENT);
	EXPECT(submit(0, 0, BLOCK, 1) == 0);
	req = make_complete(0, 2);
	EXPECT(gsc_complete(&client[0], &req, clock_ns) == -ENOENT);
	EXPECT(complete(0, 0) == 0);
	EXPECT(complete(0, 0) == -ENOENT);
}

static void detach_gives_all_back(void)
{
	attach(2);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 1, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(GSCHED_WINDOW_LIMIT(task(1, 0)->window) == 66 * SM);
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(n_done == 2);
	EXPECT(task(1, 0)->window == ALL);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "0\n"));
	gsc_client_detach(&client[0], clock_ns);
	checked();
}

static void move_takes_the_quota_of_the_new_group(void)
{
	attach(1);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "9"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	clock_ns += 100 * US;
	gsc_client_move(&client[0], &group[1], clock_ns);
	EXPECT_WINDOW(task(0, 0), 0, 9);
	EXPECT(group[0].stats.usage == 100 * US * SMS && !group[1].stats.usage);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "0\n"));
	EXPECT(shows(&group[1], GSC_FILE_CAPSM_CURRENT, "9\n"));
	EXPECT(gsc_group_exit(&group[1]) == -EBUSY);
	EXPECT(gsc_group_exit(&group[0]) == 0);
	checked();
}

static void statistics(void)
{
	struct gsched_complete req = make_complete(0, 1);

	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	clock_ns += 10 * US;
	EXPECT(submit(1, 0, BLOCK, 100000) == -EAGAIN);
	clock_ns += 90 * US;
	req.ran_ns = U64_MAX;	/* a hint: bounded by the wall time */
	EXPECT(gsc_complete(&client[0], &req, clock_ns) == 0);
	clock_ns += 10 * US;
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "66"));
	clock_ns += 10 * US;
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MAX, "max"));
	EXPECT(shows(&group[0], GSC_FILE_GPU_STAT, "usage_usec 100\ncapsm_usec 13200\nran_usec 100\ntasks 1\ngrants 1\n"
		     "evictions 0\ngrowths 0\nwait_usec 0\ncancelled 0\n"));
	EXPECT(shows(&group[1], GSC_FILE_GPU_STAT, "usage_usec 20\ncapsm_usec 1980\nran_usec 0\ntasks 0\ngrants 1\n"
		     "evictions 1\ngrowths 1\nwait_usec 90\ncancelled 0\n"));
	req.flags = GSCHED_COMPLETE_CANCEL;
	EXPECT(gsc_complete(&client[1], &req, clock_ns) == 0);
	EXPECT(shows(&dev.root, GSC_FILE_GPU_STAT, "usage_usec 120\ncapsm_usec 15180\nran_usec 100\ntasks 1\ngrants 2\n"
		     "evictions 1\ngrowths 1\nwait_usec 90\ncancelled 1\n"));
}

static void usage_counts_no_more_than_the_blocks_fill(void)
{
	attach(1);
	/* 8 blocks, 8 an SM: one CapSM, though spread over 8 SMs */
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	clock_ns += 100 * US;
	gsc_tick(&dev, clock_ns);
	EXPECT(group[0].stats.usage == 100 * US && group[0].stats.granted_ns == 100 * US);
}

static void a_week_does_not_overflow(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	clock_ns += 7 * 86400 * 1000 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(group[0].stats.usage == 7 * 86400 * 1000 * MS * SMS);
}

static void time_never_goes_back(void)
{
	struct gsched_complete req = make_complete(0, 1);

	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(gsc_complete(&client[0], &req, clock_ns - MS) == 0);
	EXPECT(dev.now == clock_ns && group[0].stats.usage == 0);
}

static void quota_formats(void)
{
	static const char *const bad[] = { "", "\n", "abc", "-1", "+1", "4x", "0", "0.0", "133", "132.0009765625", "1.",
		".5", "1..5", "1.5.2", " 4", "4 ", "4\n\n", "0x10", "1e2", "maximum", "max ", "Max", "0.0001",
		"99999999999999999999999999999999999999", "4294967297", "18446744073709551617", "1.x", "1,5" };
	static const struct { const char *in, *out; } ok[] = { { "4", "4\n" }, { "4\n", "4\n" }, { "max", "max\n" },
		{ "max\n", "max\n" }, { "1.5", "1.5\n" }, { "1.0009765625", "1.0009765625\n" }, { "132", "132\n" },
		{ "132.000", "132\n" }, { "007", "7\n" }, { "0.0009765625", "0.0009765625\n" },
		{ "1.99999999999999999999999999999", "2\n" }, { "0.25\n", "0.25\n" }, { "0.1", "0.099609375\n" } };

	EXPECT(shows(&group[0], GSC_FILE_CAPSM_MAX, "max\n"));
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_MIN, "0\n"));
	for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
		EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, ok[i].in));
		EXPECT(shows(&group[0], GSC_FILE_CAPSM_MAX, ok[i].out));
		EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, ok[i].in));
		EXPECT(shows(&group[0], GSC_FILE_CAPSM_MIN, ok[i].out));
	}
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "5"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (store(&group[0], GSC_FILE_CAPSM_MAX, bad[i]) != -EINVAL) {
			printf("# accepted \"%s\"\n", bad[i]);
			good = false;
		}
		EXPECT(shows(&group[0], GSC_FILE_CAPSM_MAX, "5\n"));
	}
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "0"));
	EXPECT(store(&group[0], GSC_FILE_CAPSM_MIN, "-1") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_CAPSM_MIN, "132.5") == -EINVAL);
}

static void number_formats(void)
{
	static const char *const bad[] = { "", "abc", "-1", "4x", "1.5", "max", "10001", "99999999999999999999", " 1" };

	EXPECT(shows(&group[0], GSC_FILE_GPU_WEIGHT, "100\n") && shows(&group[0], GSC_FILE_GPU_PRIORITY, "0\n"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT(store(&group[0], GSC_FILE_GPU_WEIGHT, bad[i]) == -EINVAL);
		EXPECT(store(&group[0], GSC_FILE_GPU_PRIORITY, bad[i]) == -EINVAL);
	}
	EXPECT(store(&group[0], GSC_FILE_GPU_WEIGHT, "0") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_GPU_PRIORITY, "100") == -EINVAL);
	EXPECT(shows(&group[0], GSC_FILE_GPU_WEIGHT, "100\n") && shows(&group[0], GSC_FILE_GPU_PRIORITY, "0\n"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "10000\n") && !store(&group[0], GSC_FILE_GPU_PRIORITY, "99\n"));
	EXPECT(shows(&group[0], GSC_FILE_GPU_WEIGHT, "10000\n") && shows(&group[0], GSC_FILE_GPU_PRIORITY, "99\n"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "1") && !store(&group[0], GSC_FILE_GPU_PRIORITY, "0"));
}

static void file_names(void)
{
	static const char *const name[] = { "capsm.max", "capsm.min", "gpu.weight", "gpu.priority", "capsm.current", "gpu.stat" };

	for (int i = 0; i < GSC_FILE_COUNT; i++) {
		EXPECT(!strcmp(gsc_file_name[i], name[i]));
		EXPECT(gsc_file_find(name[i]) == i);
		EXPECT(gsc_file_writable(i) == (i < 4));
		if (i >= 4)
			EXPECT(store(&group[0], i, "1") == -EINVAL);
	}
	EXPECT(gsc_file_find("capsm") == -ENOENT && gsc_file_find("") == -ENOENT);
	EXPECT(store(&group[0], GSC_FILE_COUNT, "1") == -EINVAL);
}

static void show_is_bounded(void)
{
	char buf[8] = "xxxxxxx";

	EXPECT(gsc_group_show(&group[0], GSC_FILE_GPU_STAT, buf, 4) == 3);
	EXPECT(!strcmp(buf, "usa") && buf[4] == 'x');
}

static void lifetime_rejects(void)
{
	static struct gsc_group deep[GSC_DEPTH_MAX];
	static struct gsc_device other;
	struct gsc_group *parent = &dev.root;

	memset(deep, 0, sizeof(deep));
	EXPECT(gsc_device_init(&other, &ops, 0) == -EINVAL);
	EXPECT(gsc_device_init(&other, &ops, GSCHED_SMS_MAX + 1) == -EINVAL);
	for (int i = 0; i < GSC_DEPTH_MAX - 1; i++) {
		EXPECT(!gsc_group_init(&deep[i], parent));
		parent = &deep[i];
	}
	EXPECT(gsc_group_init(&deep[GSC_DEPTH_MAX - 1], parent) == -EINVAL);
	EXPECT(gsc_group_exit(&deep[GSC_DEPTH_MAX - 1]) == 0);
	EXPECT(gsc_group_exit(&dev.root) == -EBUSY);
	EXPECT(gsc_client_attach(&client[0], &group[0], 1U << 31, clock_ns) == -EINVAL);
	attach(1);
	EXPECT(gsc_client_attach(&client[0], &group[0], 0, clock_ns) == -EINVAL);
	for (int i = GSC_DEPTH_MAX - 2; i >= 0; i--)
		EXPECT(!gsc_group_exit(&deep[i]));
}

#define TEST(name) { #name, name }
static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(alone_gets_the_device), TEST(demand_is_one_block_an_sm), TEST(newcomer_takes_only_what_it_needs),
	TEST(opaque_newcomer_moves_no_base), TEST(growth_downwards_is_growth), TEST(evicted_wholly_comes_back_to_its_base),
	TEST(evicted_wholly_prefers_its_base_to_a_lower_one), TEST(growth_goes_down_before_it_pushes),
	TEST(no_gap_large_enough_moves_the_least), TEST(lower_priority_waits_for_what_is_left),
	TEST(equals_share_by_weight), TEST(who_wants_little_leaves_the_rest), TEST(tasks_of_a_client_share_its_window),
	TEST(queued_task_is_granted_at_once), TEST(eviction_and_growth_reach_all_tasks), TEST(shared_window_is_charged_once),
	TEST(max_binds_all_tasks_of_a_client), TEST(queue_of_small_ones_evicts_nobody_else), TEST(later_task_never_overtakes),
	TEST(opaque_queue_starves_nobody), TEST(who_cannot_run_takes_nothing), TEST(opaque_queue_counts_for_its_first),
	TEST(temporal_evicts_the_whole_client),
	TEST(more_equals_than_sms), TEST(max_shrinks_the_running_kernel), TEST(max_of_the_parent_binds_the_sum),
	TEST(min_is_kept_from_the_more_important), TEST(min_without_demand_is_lent), TEST(overcommitted_min_is_scaled),
	TEST(min_deep_below_is_kept), TEST(fractional_max), TEST(less_than_a_worker_waits),
	TEST(running_opaque_keeps_what_it_has), TEST(newcomer_overtakes_a_running_opaque),
	TEST(temporal_one_client_at_a_time), TEST(temporal_queue_starves_nobody), TEST(temporal_max_applies),
	TEST(hold_while_blocks_are_long), TEST(hold_is_for_one_kernel), TEST(hold_follows_the_size_of_the_kernels),
	TEST(hold_is_no_larger_than_the_kernel), TEST(hold_ends_by_the_timer), TEST(no_hold_while_blocks_are_short),
	TEST(no_hold_from_equals), TEST(hold_lets_nobody_starve), TEST(leases), TEST(submit_rejects), TEST(complete_rejects),
	TEST(detach_gives_all_back), TEST(move_takes_the_quota_of_the_new_group), TEST(statistics),
	TEST(usage_counts_no_more_than_the_blocks_fill), TEST(a_week_does_not_overflow), TEST(time_never_goes_back),
	TEST(quota_formats), TEST(number_formats), TEST(file_names), TEST(show_is_bounded), TEST(lifetime_rejects),
};

int main(void)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		tap(good, tests[i].name);
	}
	return tap_end();
}
