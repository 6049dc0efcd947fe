// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the core demands of a policy: one that breaks its contract is replaced by hpf, and says why.
 */
#include "unit.h"
#include "kmod/core/decide.h"

static struct gsc_policy broken;
static struct list_head away;	/* where a task is put that order() loses */
static bool armed;		/* the next call breaks the contract */
static u32 n_order;

/* What hpf gives them, then one thing wrong */
static void right(struct gsc_band *band, u64 now)
{
	n_order++;
	gsc_policy_hpf.order(band, now);
}

static struct gsc_task *first(struct gsc_band *band)
{
	return list_first_entry(&band->tasks, struct gsc_task, node);
}

static void wants_too_much(struct gsc_band *band, u64 now)
{
	right(band, now);
	first(band)->want = first(band)->demand + 1;
}

static void needs_too_much(struct gsc_band *band, u64 now)
{
	right(band, now);
	first(band)->want = first(band)->need - 1;
}

static void splits_client(struct gsc_band *band, u64 now)
{
	struct gsc_task *task;

	right(band, now);
	list_for_each_entry(task, &band->tasks, node)
		task->rank = 1000 - task->id;
}

static void unsorted(struct gsc_band *band, u64 now)
{
	right(band, now);
	list_move_tail(&first(band)->node, &band->tasks);
}

static void equal_ranks(void)
{
	for (int c = 0; c < 2; c++)
		for (u32 slot = 0; slot < 2; slot++)
			task(c, slot)->rank = 7;
}

static void late_before_early(struct gsc_band *band, u64 now)
{
	right(band, now);
	list_move_tail(&first(band)->node, &band->tasks);
	equal_ranks();
}

static void loses_task(struct gsc_band *band, u64 now)
{
	right(band, now);
	INIT_LIST_HEAD(&away);
	list_move_tail(&first(band)->node, &away);
}

static void loses_all(struct gsc_band *band, u64 now)
{
	right(band, now);
	INIT_LIST_HEAD(&band->tasks);
}

/*
 * The order in a circle is wrong somewhere, and is seen there; a task that is its own next one is
 * not out of order
 */
static void runs_in_circle(struct gsc_band *band, u64 now)
{
	right(band, now);
	first(band)->node.next = &first(band)->node;
}

static void takes_foreign_task(struct gsc_band *band, u64 now)
{
	right(band, now);
	if (band == client[2].band)
		list_move_tail(&task(0, 0)->node, &band->tasks);
}

static void decides_in_past(struct gsc_band *band, u64 now)
{
	right(band, now);
	band->again = now;
}

static void decides_in_past_again(struct gsc_band *band, u64 now)
{
	if (armed)
		band->again = now;
}

static u64 holds_for_ever(struct gsc_device *d, const struct gsc_task *ended, u64 now)
{
	return armed ? GSC_HOLD_NS_MAX + 1 : 0;
}

static void start(void)
{
	gsc_policy_start(&dev, &broken);
	gsc_mark(&dev, clock_ns);
	gsc_commit(&dev, clock_ns);
}

/*
 * Two clients in one band, the first one more important, each with two kernels that fill the
 * device; a third one in a band of its own.
 */
static void prepare(bool two_bands)
{
	setup();
	memset(&broken, 0, sizeof(broken));
	broken = (struct gsc_policy){ .name = "broken", .order = right, .equals = true,
				      .no_leases = true };
	armed = false;
	for (int c = 0; c < 2 + two_bands; c++)
		EXPECT(!gsc_client_attach(&client[c], &group[c], c < 2 ? GSCHED_ATTACH_MPS :
					  GSCHED_ATTACH_SLICE, 0, clock_ns));
	EXPECT(!gsc_group_store(&group[0], GSC_FILE_GPU_PRIORITY, "10", clock_ns));
	for (int c = 1 + two_bands; c >= 0; c--)
		for (u32 slot = 0; slot < 2; slot++)
			submit(c, slot, BLOCK, 100000);
	start();
	EXPECT(dev.policy == &broken && !dev.faulty);
}

/* hpf decided in the same commit: all is as it is under hpf alone */
static void is_replaced(const char *what)
{
	char text[160];

	EXPECT(dev.policy == &gsc_policy_hpf && dev.faulty == &broken && !dev.marked &&
	       n_replaced == 1);
	EXPECT(gsc_policy_why(&dev, text, sizeof(text)) > 0);
	EXPECT(strstr(text, "broken was replaced by hpf, since its ") == text);
	if (!strstr(text, what)) {
		printf("# %s\n", text);
		good = false;
	}
	for (u32 slot = 0; slot < 2; slot++) {
		EXPECT_WINDOW(task(0, slot), SMS);
		EXPECT(!task(1, slot)->window);
	}
	/* priorities count again */
	EXPECT(client[0].lease == GSCHED_LEASE_NOTIFY);
	checked();
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	EXPECT(!dev.faulty && !gsc_policy_why(&dev, text, sizeof(text)) && !*text);
	checked();
}

static const struct {
	const char *what;
	void (*order)(struct gsc_band *band, u64 now);
} orders[] = {
	{ "wants more for a task than it demands", wants_too_much },
	{ "needs more than it wants", needs_too_much },
	{ "gives tasks of one client different ranks", splits_client },
	{ "left the list unsorted", unsorted },
	{ "left the list unsorted", late_before_early },
	{ "lost a task", loses_task },
	{ "lost a task", loses_all },
	{ "more tasks in the list than there are", runs_in_circle },
	{ "a decision in the past", decides_in_past },
};

static void wrong_orders(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		prepare(false);
		broken.order = orders[i].order;
		gsc_mark(&dev, clock_ns);
		gsc_commit(&dev, clock_ns);
		is_replaced(orders[i].what);
		if (!good)
			printf("# %s\n", orders[i].what);
	}
	prepare(true);
	broken.order = takes_foreign_task;
	gsc_mark(&dev, clock_ns);
	gsc_commit(&dev, clock_ns);
	is_replaced("order()");
	EXPECT(client[2].band->n_tasks == 2);
}

static void wrong_holds(void)
{
	prepare(false);
	broken.hold = holds_for_ever;
	armed = true;
	clock_ns += MS;
	complete(1, 0);
	EXPECT(dev.policy == &broken);
	complete(0, 0);
	submit(0, 0, BLOCK, 100000);
	is_replaced("keeps capacity free for too long");
	EXPECT(!client[0].hold_units);
}

static struct gsc_band *nobodys_turn(struct gsc_device *d, u64 now)
{
	return armed ? NULL : client[0].band;
}

static struct gsc_band *turn_of_idle_band(struct gsc_device *d, u64 now)
{
	return armed ? client[2].band : client[0].band;
}

/* Once all is granted, too */
static void wrong_granted(void)
{
	prepare(false);
	broken.granted = decides_in_past_again;
	gsc_mark(&dev, clock_ns);
	gsc_commit(&dev, clock_ns);
	EXPECT(dev.policy == &broken);
	armed = true;
	gsc_mark(&dev, clock_ns);
	gsc_commit(&dev, clock_ns);
	is_replaced("a decision in the past");
}

/* Temporal mode: the device is for a band that has a use for it */
static void wrong_turns(void)
{
	struct gsc_band *(*const turn[])(struct gsc_device *, u64) =
		{ nobodys_turn, turn_of_idle_band };

	for (size_t i = 0; i < ARRAY_SIZE(turn); i++) {
		prepare(false);
		EXPECT(!gsc_client_attach(&client[2], &group[2], 0, 0, clock_ns));
		broken.turn = turn[i];
		EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
		EXPECT(dev.policy == &broken);
		EXPECT_WINDOW(task(0, 0), SMS);
		armed = true;
		gsc_mark(&dev, clock_ns);
		gsc_commit(&dev, clock_ns);
		is_replaced("turn() gave the device to no band that wants it");
	}
}

/* The fallback keeps the contract: as another policy, it is checked, and is not replaced */
static void right_order(void)
{
	struct gsched_submit req;
	u32 before;

	prepare(true);
	broken = gsc_policy_hpf;
	broken.name = "checked";
	start();
	before = n_order;
	broken.order = right;
	for (u32 i = 0; i < 2000; i++) {
		/* kernels that are late: the others make way */
		clock_ns += 40 * US;
		req = make_submit(2, i + 1, BLOCK, 8);
		req.predicted_ns = 20 * US;
		gsc_submit(&client[0], &req, clock_ns);
		clock_ns += i % 8 ? 20 * US : MS;
		gsc_tick(&dev, clock_ns);
		gsc_complete(&client[0], &(struct gsched_complete){ .slot = 2, .seq = i + 1,
								    .ran_ns = 20 * US }, clock_ns);
		EXPECT(dev.policy == &broken && !dev.faulty && !n_replaced);
		checked();
	}
	EXPECT(n_order > before + 2000);
}

static u64 long_epoch(const struct gsc_device *d, u32 n)
{
	return 10000ULL * n;
}

static u64 no_epoch(const struct gsc_device *d, u32 n)
{
	return 0;
}

static u64 endless_epoch(const struct gsc_device *d, u32 n)
{
	return U64_MAX;
}

/* Slices of bands are a part each of what the policy says, within what slices may be */
static void epochs(void)
{
	static const struct {
		u64 (*epoch)(const struct gsc_device *, u32);
		u32 slice;
	} cases[] = { { NULL, 2048 }, { long_epoch, 10000 }, { no_epoch, GSC_SLICE_LEAST_US },
	{ endless_epoch, GSC_SLICE_WHOLE_US } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setup();
		broken = (struct gsc_policy){ .name = "epoch", .order = right,
					      .epoch_us = cases[i].epoch, .equals = true };
		for (int c = 0; c < 2; c++)
			EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_SLICE,
						  0, clock_ns));
		EXPECT(!gsc_group_store(&group[0], GSC_FILE_GPU_PRIORITY, "10", clock_ns));
		start();
		EXPECT(client[0].arb.slice_us == cases[i].slice &&
		       client[1].arb.slice_us == cases[i].slice);
		checked();
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(wrong_orders), TEST(wrong_holds), TEST(wrong_granted), TEST(wrong_turns),
	TEST(right_order), TEST(epochs),
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
