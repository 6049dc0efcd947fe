/* SPDX-License-Identifier: GPL-2.0-only */
/* A device, groups, clients and a clock that the test moves; what the core asks for is counted. */
#ifndef UNIT_H
#define UNIT_H

#include "world.h"

#define SMS	132
#define ALL	(SMS * SM)

static struct gsc_device dev;
static struct gsc_group group[8];
static struct gsc_client client[8];
static u64 clock_ns;
static bool good;		/* of the test that runs */
static u32 n_done, n_evict, n_grow, n_grant, n_lease, n_timer, n_band, n_replaced, n_policies;

#define EXPECT(x) do { \
	if (!(x)) { \
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #x); \
		good = false; \
	} \
} while (0)

#define EXPECT_WINDOW(t, l) do { \
	if ((t)->state != GSC_TASK_RUNNING || (t)->window != (l) * SM) { \
		printf("# %s:%d: state %d, window %g, not %g\n", __FILE__, __LINE__, (t)->state, \
		       (t)->window / 1024., (double)(l)); \
		good = false; \
	} \
} while (0)

static inline void op_set_window(struct gsc_task *task, enum gsc_change why)
{
	n_grant += why == GSC_GRANT;
	n_evict += why == GSC_EVICT;
	n_grow += why == GSC_GROW;
}

static inline void op_set_lease(struct gsc_client *c, u32 old)
{
	n_lease++;
}

static inline void op_arm_timer(struct gsc_device *d, u64 when)
{
	n_timer++;
}

static inline void op_done(struct gsc_task *task)
{
	EXPECT(task->state == GSC_TASK_NONE);
	n_done++;
}

static inline void op_set_band(struct gsc_client *c, const struct gsc_arb *old)
{
	n_band++;
}

static inline void op_policy_changed(struct gsc_device *d)
{
	EXPECT(!d->faulty || d->policy == &gsc_policy_hpf);
	n_replaced += d->faulty != NULL;
	n_policies++;
}

static const struct gsc_ops ops = {
	.new_task = op_new_task,
	.set_window = op_set_window, .set_lease = op_set_lease, .arm_timer = op_arm_timer,
	.done = op_done, .set_band = op_set_band, .policy_changed = op_policy_changed,
};

/* A sum of times, rounded down */
#define NS(sum)	((sum).us * 1000 + (sum).rest / GSCHED_CAPSM)

/* group[i] all below the root, client[i] in group[i], clients attached by hand */
static inline void setup(void)
{
	memset(&dev, 0, sizeof(dev));
	memset(group, 0, sizeof(group));
	memset(client, 0, sizeof(client));
	n_done = n_evict = n_grow = n_grant = n_lease = n_timer = n_band = n_replaced =
		n_policies = 0;
	clock_ns = 1000 * MS;
	EXPECT(!gsc_device_init(&dev, &ops, SMS));
	for (int i = 0; i < 8; i++)
		EXPECT(!gsc_group_init(&group[i], &dev.root));
}

static inline void checked(void)
{
	int ret = gsc_check(&dev);

	if (ret) {
		printf("# invariant %d\n", ret);
		good = false;
	}
}

static inline void attach(int n)
{
	for (int i = 0; i < n; i++)
		EXPECT(!gsc_client_attach(&client[i], &group[i], GSCHED_ATTACH_MPS, 0, clock_ns));
	checked();
}

static inline int submit_this(int c, const struct gsched_submit *req)
{
	int ret = gsc_submit(&client[c], req, clock_ns);

	checked();
	return ret;
}

static inline int submit_block_ns(int c, u32 slot, u32 tier, u64 blocks, u64 predicted,
				  u64 block_ns)
{
	struct gsched_submit req = make_submit(slot, 1, tier, blocks);

	req.predicted_ns = predicted;
	req.block_ns = block_ns;
	return submit_this(c, &req);
}

/* Of a kernel of which @per_sm blocks fit on an SM */
static inline int submit_small(int c, u32 slot, u32 tier, u64 blocks, u32 per_sm)
{
	struct gsched_submit req = make_submit(slot, 1, tier, blocks);

	req.blocks_per_sm = per_sm;
	return submit_this(c, &req);
}

static inline int submit(int c, u32 slot, u32 tier, u64 blocks)
{
	return submit_block_ns(c, slot, tier, blocks, 0, 0);
}

static inline int complete(int c, u32 slot)
{
	struct gsched_complete req = make_complete(slot, 1);
	int ret = gsc_complete(&client[c], &req, clock_ns);

	checked();
	return ret;
}

static inline int store(struct gsc_group *g, enum gsc_file file, const char *text)
{
	int ret = gsc_group_store(g, file, text, clock_ns);

	checked();
	return ret;
}

static inline bool shows(const struct gsc_group *g, enum gsc_file file, const char *text)
{
	char buf[512];
	int len;

	/* as the arbiters do */
	gsc_device_count(&dev, clock_ns);
	len = gsc_group_show(g, file, buf, sizeof(buf));
	if (len == (int)strlen(text) && !strcmp(buf, text))
		return true;
	printf("# shows \"%s\", not \"%s\"\n", buf, text);
	return false;
}

static inline struct gsc_task *task(int c, u32 slot)
{
	return task_at(&client[c], slot);
}

enum { BLOCK = GSCHED_TIER_BLOCK, SLICE = GSCHED_TIER_SLICE, LAUNCH = GSCHED_TIER_LAUNCH };

/* What each test program ends with */
#define TEST(name) { #name, name }

#endif
