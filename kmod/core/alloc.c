// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator: apportions the device's SMs among the active tasks, under every group's max and min.
 *
 * Ranks are served from the highest down. Within one rank capacity is divided at each group, from the root down, among
 * those below it (child groups by gpu.weight, clients with the default weight) by weighted max-min: everyone gets the same
 * level times its weight, but no less than it must and no more than it can use. A client's share goes to its tasks in
 * the order of their arrival: kernels of one stream cannot run side by side, so to divide it would leave SMs idle.
 *
 * The unit here is the whole SM; slots freed here and there are of no use to a kernel with another shared-memory carve-out.
 * Only a max that is no whole number of SMs leads to less, at the very end.
 *
 * An opaque task that runs keeps what it has. It counts for its own rank and those below; higher ranks are served as if it
 * were gone, since their kernels are launched at once and get its SMs as it ends.
 */
#include "decide.h"

#define LEVEL_SHIFT	16

/* The groups with active tasks or holds below, by depth */
struct tree {
	struct gsc_group *first[GSC_DEPTH_MAX], *last[GSC_DEPTH_MAX];
	int depth;		/* deepest level with a group */
};

static void enter(struct gsc_contest *contest, struct gsc_share *share)
{
	share->next = NULL;
	share->got = 0;
	if (contest->first)
		contest->last->next = share;
	else
		contest->first = share;
	contest->last = share;
}

static u32 at_level(const struct gsc_share *share, u64 level)
{
	u64 part = (level * share->weight) >> LEVEL_SHIFT;

	if (part > share->hi)
		part = share->hi;
	return part < share->lo ? share->lo : (u32)part;
}

static u64 sum_at_level(const struct gsc_contest *contest, u64 level)
{
	const struct gsc_share *share;
	u64 sum = 0;

	for (share = contest->first; share; share = share->next)
		sum += at_level(share, level);
	return sum;
}

/* Weighted max-min; what is left by rounding goes to the first in the list */
static void divide(struct gsc_contest *contest, u32 amount)
{
	u64 low = 0, high = (u64)GSCHED_SMS_MAX << LEVEL_SHIFT, sum = 0;
	struct gsc_share *share;

	for (share = contest->first; share; share = share->next) {
		share->got = share->hi;
		sum += share->hi;
	}
	if (sum <= amount)
		return;
	while (high - low > 1) {
		u64 mid = (low + high) / 2;

		if (sum_at_level(contest, mid) <= amount)
			low = mid;
		else
			high = mid;
	}
	sum = sum_at_level(contest, low);
	for (share = contest->first; share; share = share->next) {
		share->got = at_level(share, low);
		if (sum < amount && at_level(share, low + 1) > share->got) {
			share->got++;
			sum++;
		}
	}
}

static void tree_add(struct tree *tree, struct gsc_group *group, u64 stamp)
{
	struct gsc_device *dev = group->dev;

	for (; group && group->seen != stamp; group = group->parent) {
		group->seen = stamp;
		group->used = 0;
		group->held = 0;
		group->demand = 0;
		group->reserve = 0;
		group->cap = group->max == GSC_MAX_UNLIMITED ? dev->sms : min(gsc_sms(group->max), dev->sms);
		if (group->max != GSC_MAX_UNLIMITED && group->max % GSCHED_CAPSM)
			dev->fractional = true;
		if (group->min)
			dev->guarantees = true;
		group->next_level = NULL;
		if (tree->first[group->depth])
			tree->last[group->depth]->next_level = group;
		else
			tree->first[group->depth] = group;
		tree->last[group->depth] = group;
		if ((int)group->depth > tree->depth)
			tree->depth = group->depth;
	}
}

/* Less than one worker is of no use */
static bool can_run(const struct gsc_task *task)
{
	const struct gsc_group *group;

	for (group = task->client->group; group; group = group->parent)
		if (gsc_is_block(task) && group->max < gsc_weight(task))
			return false;
	return true;
}

static void prepare(struct gsc_device *dev, struct tree *tree, bool holds)
{
	u64 stamp = ++dev->stamp;
	struct gsc_client *client;
	struct gsc_group *group;
	struct gsc_task *task;

	memset(tree, 0, sizeof(*tree));
	dev->fractional = false;
	dev->guarantees = false;
	list_for_each_entry(task, &dev->tasks, node) {
		group = task->client->group;
		tree_add(tree, group, stamp);
		task->alloc = 0;
		task->want = min(task->want, dev->sms * GSCHED_CAPSM);
		if (gsc_is_fixed(task) && task->want)
			task->want = gsc_limit(task);
		if (task->want && !can_run(task))
			task->want = 0;
		task->sms = gsc_sms(task->want);
		group->demand = min(group->demand + task->sms, dev->sms);
	}
	if (!dev->n_holds)
		return;
	list_for_each_entry(client, &dev->clients, node) {
		client->hold_got = 0;
		if (holds && client->hold_units)
			tree_add(tree, client->group, stamp);
	}
}

/*
 * What each group's subtree is guaranteed: its min, or what its children are guaranteed if that is more, as far as it has a
 * use for it. Where the sum is more than there is, all are scaled down alike.
 */
static void guarantee(struct tree *tree)
{
	struct gsc_share *share;
	struct gsc_group *group;
	int depth;

	for (depth = tree->depth; depth >= 0; depth--)
		for (group = tree->first[depth]; group; group = group->next_level)
			group->contest.first = NULL;
	for (depth = tree->depth; depth >= 0; depth--) {
		for (group = tree->first[depth]; group; group = group->next_level) {
			u32 need = gsc_sms(group->min);

			/* its direct tasks are in demand already; its children were added by themselves */
			group->demand = min(group->demand, group->cap);
			for (share = group->contest.first; share; share = share->next)
				group->reserve += share->hi;
			group->reserve = min(max(group->reserve, need), group->demand);
			group->share.lo = 0;
			group->share.hi = group->reserve;
			group->share.weight = group->reserve;
			if (!group->parent)
				continue;
			group->parent->demand = min(group->parent->demand + group->demand, group->dev->sms);
			if (group->reserve)
				enter(&group->parent->contest, &group->share);
		}
	}
	for (depth = 0; depth <= tree->depth; depth++) {
		for (group = tree->first[depth]; group; group = group->next_level) {
			if (group->parent)
				group->reserve = group->reserve ? group->share.got : 0;
			divide(&group->contest, group->reserve);
		}
	}
}

static struct gsc_task *next_task(const struct gsc_device *dev, struct gsc_task *task)
{
	task = list_next_entry(task, node);
	return list_entry_is_head(task, &dev->tasks, node) ? NULL : task;
}

static void take(struct gsc_client *client, u32 sms, bool hold)
{
	struct gsc_group *group;

	client->share.got -= min(client->share.got, sms);
	for (group = client->group; group; group = group->parent) {
		group->used += sms;
		group->held += hold ? sms : 0;
	}
}

static u32 unfilled(const struct gsc_group *group)
{
	return group->reserve - min(group->reserve, group->used - group->held);
}

/* What lower ranks may have to take inside @group for some guarantee, its own or one above it, to be met */
static u32 owed(const struct gsc_group *group)
{
	u32 served = group->used - group->held, most = 0;
	const struct gsc_group *up;

	for (up = group; up; up = up->parent)
		most = max(most, unfilled(up));
	return min(most, group->demand - min(group->demand, served));
}

/*
 * With the clients entered at their groups: find what each group can take, then divide it from the root down. A hold uses
 * up a max, but fills no guarantee: it gets what is left beside them.
 */
static void contend(struct gsc_device *dev, struct tree *tree, bool hold)
{
	struct gsc_share *share;
	struct gsc_group *group;
	int depth;

	for (depth = tree->depth; depth >= 0; depth--) {
		for (group = tree->first[depth]; group; group = group->next_level) {
			u32 room = group->cap - min(group->cap, group->used);
			u32 lo = 0, hi = 0, beside;

			for (share = group->contest.first; share; share = share->next) {
				share->hi = max(share->lo, min(share->hi, dev->sms));
				lo += share->lo;
				hi += share->hi;
			}
			/* what lower ranks are guaranteed is claimed here too, though only they will take it */
			group->share.lo = max(lo, hold && dev->guarantees ? owed(group) : unfilled(group));
			beside = hold ? group->share.lo - lo : 0;
			group->share.hi = max(group->share.lo, min(room, hi + beside));
			group->beside = beside;
			group->share.weight = group->weight;
			group->share.got = 0;
			if (group->parent && group->share.hi)
				enter(&group->parent->contest, &group->share);
		}
	}
	dev->root.share.got = dev->root.share.hi;
	for (depth = 0; depth <= tree->depth; depth++)
		for (group = tree->first[depth]; group; group = group->next_level)
			divide(&group->contest, group->share.got - min(group->share.got, group->beside));
}

static void new_contest(struct tree *tree)
{
	struct gsc_group *group;
	int depth;

	for (depth = 0; depth <= tree->depth; depth++)
		for (group = tree->first[depth]; group; group = group->next_level)
			group->contest.first = NULL;
}

static void enter_client(struct gsc_client *client, u64 stamp)
{
	if (client->seen == stamp)
		return;
	client->seen = stamp;
	client->share.lo = 0;
	client->share.hi = 0;
	client->share.weight = GSC_WEIGHT_DEFAULT;
	enter(&client->group->contest, &client->share);
}

/* Serve the tasks of one rank, @from being the first. Returns the first of the next rank */
static struct gsc_task *serve_tasks(struct gsc_device *dev, struct tree *tree, struct gsc_task *from)
{
	u64 stamp = ++dev->stamp;
	struct gsc_task *task, *end;
	u32 sms;

	new_contest(tree);
	for (task = from; task && task->rank == from->rank; task = next_task(dev, task)) {
		if (!task->want)
			continue;
		enter_client(task->client, stamp);
		task->client->share.hi += task->sms;
		if (gsc_is_fixed(task))
			task->client->share.lo += task->sms;
	}
	end = task;
	contend(dev, tree, false);
	for (task = from; task != end; task = next_task(dev, task)) {
		if (!task->want || !gsc_is_fixed(task))
			continue;
		task->alloc = task->want;
		take(task->client, task->sms, false);
	}
	for (task = from; task != end; task = next_task(dev, task)) {
		if (!task->want || gsc_is_fixed(task))
			continue;
		sms = min(task->sms, task->client->share.got);
		task->alloc = min(sms * GSCHED_CAPSM, task->want);
		take(task->client, sms, false);
	}
	return end;
}

static void serve_holds(struct gsc_device *dev, struct tree *tree, u32 rank)
{
	u64 stamp = ++dev->stamp;
	struct gsc_client *client;
	u32 sms;

	new_contest(tree);
	list_for_each_entry(client, &dev->clients, node) {
		if (!client->hold_units || client->hold_rank != rank)
			continue;
		enter_client(client, stamp);
		client->share.hi = gsc_sms(client->hold_units);
	}
	contend(dev, tree, true);
	list_for_each_entry(client, &dev->clients, node) {
		if (client->seen != stamp)
			continue;
		sms = min(gsc_sms(client->hold_units), client->share.got);
		client->hold_got = sms * GSCHED_CAPSM;
		take(client, sms, true);
	}
}

/* The highest rank of a hold below @below */
static s64 next_hold(const struct gsc_device *dev, s64 below)
{
	const struct gsc_client *client;
	s64 rank = -1;

	list_for_each_entry(client, &dev->clients, node)
		if (client->hold_units && client->hold_rank < below)
			rank = max(rank, (s64)client->hold_rank);
	return rank;
}

static bool is_below(const struct gsc_group *group, const struct gsc_group *top)
{
	while (group && group != top)
		group = group->parent;
	return group == top;
}

/* A max of 1.5: the last of the group that stays useful gives up the half */
static void trim(struct gsc_device *dev, const struct gsc_group *group)
{
	struct gsc_task *task, *last = NULL;
	u32 sum = 0, excess;

	list_for_each_entry(task, &dev->tasks, node)
		if (is_below(task->client->group, group))
			sum += task->alloc;
	if (sum <= group->max)
		return;
	excess = sum - group->max;
	list_for_each_entry_reverse(task, &dev->tasks, node) {
		if (gsc_is_fixed(task) || !task->alloc || !is_below(task->client->group, group))
			continue;
		if (task->alloc >= excess + (gsc_is_block(task) ? gsc_weight(task) : 1)) {
			task->alloc -= excess;
			return;
		}
		if (!last)
			last = task;
	}
	/* nobody stays useful with less: the last ones wait */
	list_for_each_entry_reverse(task, &dev->tasks, node) {
		if (gsc_is_fixed(task) || !task->alloc || !is_below(task->client->group, group))
			continue;
		if (!excess)
			return;
		excess -= min(excess, task->alloc);
		task->alloc = 0;
	}
}

static void share_out(struct gsc_device *dev, bool holds)
{
	struct gsc_task *task = NULL;
	struct gsc_group *group;
	s64 hold = -1, below = (s64)U32_MAX + 1;
	struct tree tree;
	int depth;

	prepare(dev, &tree, holds);
	if (dev->guarantees)
		guarantee(&tree);
	if (!list_empty(&dev->tasks))
		task = list_first_entry(&dev->tasks, struct gsc_task, node);
	for (;;) {
		if (holds && dev->n_holds)
			hold = next_hold(dev, below);
		if (!task && hold < 0)
			break;
		below = max(hold, task ? (s64)task->rank : -1);
		if (task && task->rank == below)
			task = serve_tasks(dev, &tree, task);
		if (hold == below)
			serve_holds(dev, &tree, (u32)hold);
	}
	if (!dev->fractional)
		return;
	for (depth = tree.depth; depth >= 0; depth--)
		for (group = tree.first[depth]; group; group = group->next_level)
			if (group->max % GSCHED_CAPSM && group->max != GSC_MAX_UNLIMITED)
				trim(dev, group);
}

/* Clients that have tasks and got nothing */
static u32 starving(struct gsc_device *dev)
{
	u64 stamp = ++dev->stamp;
	struct gsc_client *client;
	struct gsc_task *task;
	u32 n = 0;

	list_for_each_entry(task, &dev->tasks, node)
		if (task->alloc)
			task->client->fed = stamp;
	list_for_each_entry(client, &dev->clients, node)
		if (client->n_tasks && client->fed != stamp)
			n++;
	return n;
}

void gsc_allocate(struct gsc_device *dev)
{
	struct gsc_client *client;
	u32 n;

	share_out(dev, true);
	if (!dev->n_holds)
		return;
	/* nobody waits for what is only kept free */
	n = starving(dev);
	if (!n)
		return;
	share_out(dev, false);
	if (starving(dev) < n) {
		list_for_each_entry(client, &dev->clients, node)
			gsc_hold_drop(client);
	} else {
		share_out(dev, true);
	}
}
