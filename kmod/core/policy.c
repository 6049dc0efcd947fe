// SPDX-License-Identifier: GPL-2.0-only
/* The policies there are, what they share, and what happens to one that breaks its contract. */
#include "decide.h"

static int compare(void *priv, const struct list_head *a, const struct list_head *b)
{
	const struct gsc_task *x = list_entry(a, struct gsc_task, node);
	const struct gsc_task *y = list_entry(b, struct gsc_task, node);

	if (x->rank != y->rank)
		return x->rank < y->rank ? 1 : -1;
	/* among equals by arrival; the number wraps around */
	return (s32)(x->id - y->id) > 0 ? 1 : -1;
}

#define STEPS	2	/* for each task, by which few tasks are put in place */

/*
 * From one decision to the next few tasks get out of order: each goes back to where it belongs.
 * Where that takes many steps the list is sorted as a whole.
 */
void gsc_sort_tasks(struct gsc_band *band)
{
	struct list_head *head = &band->tasks, *node, *next, *before;
	u64 steps = (u64)band->n_tasks * STEPS;

	for (node = head->next->next; node != head; node = next) {
		next = node->next;
		before = node->prev;
		if (compare(NULL, before, node) < 0)
			continue;
		do {
			if (!steps--) {
				list_sort(NULL, head, compare);
				return;
			}
			before = before->prev;
		} while (before != head && compare(NULL, before, node) > 0);
		list_del_init(node);
		list_add(node, before);
	}
}

void gsc_policy_start(struct gsc_device *dev, const struct gsc_policy *policy)
{
	struct gsc_client *client;
	struct gsc_band *band;

	dev->policy = policy;
	memset(&dev->data, 0, sizeof(dev->data));
	list_for_each_entry(client, &dev->clients, node)
		memset(&client->data, 0, sizeof(client->data));
	list_for_each_entry(band, &dev->bands, node) {
		memset(&band->data, 0, sizeof(band->data));
		band->again = 0;
		band->late = NULL;
	}
	dev->bands_stale = true;
	if (dev->ops->policy_changed)
		dev->ops->policy_changed(dev);
}

void gsc_policy_replace(struct gsc_device *dev, const char *what)
{
	dev->faulty = dev->policy;
	dev->fault = what;
	dev->marked = true;
	gsc_policy_start(dev, &gsc_policy_hpf);
}

/* What order() must not have left behind; NULL it has not */
static const char *find_fault(const struct gsc_band *band)
{
	const struct gsc_task *task, *last = NULL;
	u32 left = band->n_tasks;

	list_for_each_entry(task, &band->tasks, node) {
		/* also the end of a list that runs in a circle */
		if (!left--)
			return "order() has more tasks in the list than there are";
		if (task->client->band != band)
			return "order() has a task of another band in the list";
		if (task->want > task->demand)
			return "order() wants more for a task than it demands";
		if (task->need > task->want)
			return "order() needs more than it wants";
		if (task->rank !=
		    list_first_entry(&task->client->tasks, struct gsc_task, peer)->rank)
			return "order() gives tasks of one client different ranks";
		if (last && last->rank <= task->rank &&
		    (last->rank != task->rank || (s32)(task->id - last->id) < 0))
			return "order() left the list unsorted";
		last = task;
	}
	return left ? "order() lost a task" : NULL;
}

/* The lists may be damaged: they are made anew from those of the clients */
static void rebuild_lists(struct gsc_device *dev)
{
	struct gsc_client *client;
	struct gsc_band *band;
	struct gsc_task *task;

	list_for_each_entry(band, &dev->bands, node)
		INIT_LIST_HEAD(&band->tasks);
	list_for_each_entry(client, &dev->clients, node)
		list_for_each_entry(task, &client->tasks, peer)
			list_add_tail(&task->node, &client->band->tasks);
}

bool gsc_policy_check(const struct gsc_band *band)
{
	struct gsc_device *dev = gsc_band_device(band);
	const char *what = find_fault(band);

	if (!what)
		return true;
	rebuild_lists(dev);
	gsc_policy_replace(dev, what);
	return false;
}

/*
 * FLEP 5.2.2: with T * W_i for each, sum(O_i) / (T * sum(W_i)) <= max_overhead; every switch costs
 * the same
 */
u64 gsc_fair_epoch_us(const struct gsc_device *dev, u32 n)
{
	return div_u64((u64)n * dev->param[GSC_PARAM_SWITCH_US] * 1000,
		       dev->param[GSC_PARAM_MAX_OVERHEAD]);
}

const struct gsc_policy *const gsc_policies[] = {
	&gsc_policy_hpf,
	&gsc_policy_srt,
	&gsc_policy_ffs,
	&gsc_policy_wfq,
	&gsc_policy_corun,
	&gsc_policy_plan,
#ifdef GSC_CHAOS
	&gsc_policy_chaos,
#endif
	NULL
};

const struct gsc_policy *gsc_policy_find(const char *name)
{
	const struct gsc_policy *const *policy;

	for (policy = gsc_policies; *policy; policy++)
		if (!strcmp((*policy)->name, name))
			break;
	return *policy;
}
