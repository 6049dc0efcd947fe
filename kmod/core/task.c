// SPDX-License-Identifier: GPL-2.0-only
/* Tasks: submit and complete, what they are charged, and how a new allocation becomes their windows. */
#include "decide.h"

/*
 * What the task would occupy alone. The hardware spreads blocks over the SMs, one each as long as there are SMs: a kernel of
 * 8 blocks runs on 8 SMs, and is as fast as that only there.
 */
static u32 spread(const struct gsc_device *dev, u64 blocks)
{
	return (blocks < dev->sms ? (u32)blocks : dev->sms) * GSCHED_CAPSM;
}

/*
 * The least that holds all its blocks at once, ceil(blocks / M) CapSM (SMGuard 4.1; "only as many SMs as needed", FLEP 4.3).
 * Usage is counted by it, the demand is not: packed M to an SM the blocks of a short kernel slow each other down.
 */
static u32 packed(const struct gsc_task *task, u32 limit)
{
	u32 weight = gsc_weight(task);

	/* blocks may be any 64-bit number */
	return task->blocks < limit / weight ? (u32)task->blocks * weight : limit;
}

/* Charge what was used since the last change */
void gsc_task_charge(struct gsc_task *task)
{
	u64 now = task->client->dev->now, ns, capsm_ns;
	u32 limit = gsc_limit(task), units;
	struct gsc_group *group;

	if (task->state != GSC_TASK_RUNNING || now <= task->changed)
		return;
	ns = now - task->changed;
	task->changed = now;
	if (!limit)
		return;
	units = packed(task, limit);
	capsm_ns = (ns / GSCHED_CAPSM) * units + (ns % GSCHED_CAPSM) * units / GSCHED_CAPSM;
	task->usage += ns * units;
	for (group = task->client->group; group; group = group->parent) {
		group->stats.usage += capsm_ns;
		group->stats.granted_ns += ns;
	}
}

static void set_window(struct gsc_task *task, u64 window, enum gsc_change why)
{
	struct gsc_device *dev = task->client->dev;
	u32 old = task->state == GSC_TASK_RUNNING ? gsc_limit(task) : 0;
	struct gsc_group *group;
	u64 waited = 0;

	gsc_task_charge(task);
	if (why == GSC_GRANT) {
		task->state = GSC_TASK_RUNNING;
		task->granted = dev->now;
		task->changed = dev->now;
		waited = dev->now - task->submitted;
	}
	task->window = window;
	for (group = task->client->group; group; group = group->parent) {
		group->current_units += gsc_limit(task) - old;
		group->stats.grants += why == GSC_GRANT;
		group->stats.evictions += why == GSC_EVICT;
		group->stats.growths += why == GSC_GROW;
		group->stats.wait_ns += waited;
	}
	if (dev->ops->set_window)
		dev->ops->set_window(task, why);
}

static u64 new_window(const struct gsc_task *task)
{
	if (gsc_is_fixed(task))
		return task->window;
	if (!gsc_is_block(task))
		return GSCHED_WINDOW(0, task->alloc);
	/* with nothing left it keeps its base, to come back there */
	return GSCHED_WINDOW(task->base * GSCHED_CAPSM, task->alloc);
}

/* Does some worker have to leave? */
static bool is_eviction(u64 old, u64 new)
{
	u64 old_end = (u64)GSCHED_WINDOW_BASE(old) + GSCHED_WINDOW_LIMIT(old);
	u64 new_end = (u64)GSCHED_WINDOW_BASE(new) + GSCHED_WINDOW_LIMIT(new);

	return GSCHED_WINDOW_LIMIT(old) &&
	       (GSCHED_WINDOW_BASE(new) > GSCHED_WINDOW_BASE(old) || new_end < old_end);
}

/* First those who must give way, then those who gain by it */
void gsc_tasks_apply(struct gsc_device *dev)
{
	struct gsc_task *task;
	u64 window;

	list_for_each_entry(task, &dev->tasks, node) {
		window = new_window(task);
		if (task->state == GSC_TASK_RUNNING && window != task->window && is_eviction(task->window, window))
			set_window(task, window, GSC_EVICT);
	}
	list_for_each_entry(task, &dev->tasks, node) {
		window = new_window(task);
		if (task->state == GSC_TASK_WAITING && task->alloc)
			set_window(task, window, GSC_GRANT);
		else if (task->state == GSC_TASK_RUNNING && window != task->window)
			set_window(task, window, GSC_GROW);
	}
}

/* A task leaves the device; the caller decides anew */
void gsc_task_end(struct gsc_task *task)
{
	struct gsc_device *dev = task->client->dev;
	struct gsc_group *group;

	gsc_task_charge(task);
	if (task->state == GSC_TASK_RUNNING)
		for (group = task->client->group; group; group = group->parent)
			group->current_units -= gsc_limit(task);
	list_del_init(&task->node);
	if (!list_empty(&task->place))
		list_del_init(&task->place);
	task->client->n_tasks--;
	task->state = GSC_TASK_NONE;
	if (dev->ops->done)
		dev->ops->done(task);
}

static void note_submit(struct gsc_client *client, u32 demand)
{
	u64 now = client->dev->now, passed = now - client->last_submit;

	if (client->last_submit) {
		/* an hour is as good as never, and cannot overflow */
		passed = min(passed, (u64)3600 * 1000000000);
		client->interval = client->interval ? (7 * client->interval + passed) / 8 : passed;
	}
	client->last_submit = now;
	/* this is what the capacity was kept free for */
	if (client->hold_units <= demand)
		gsc_hold_drop(client);
	else
		client->hold_units -= demand;
}

int gsc_submit(struct gsc_client *client, const struct gsched_submit *req, u64 now)
{
	struct gsc_device *dev = client->dev;
	struct gsc_task *task;

	if (!dev || req->slot >= GSCHED_SLOTS || !req->seq || req->tier > GSCHED_TIER_LAUNCH ||
	    !req->blocks_per_sm || req->blocks_per_sm > 32 || !req->blocks)
		return -EINVAL;
	task = &client->task[req->slot];
	if (task->state != GSC_TASK_NONE)
		return -EBUSY;
	gsc_advance(dev, now);
	task->state = GSC_TASK_WAITING;
	task->seq = req->seq;
	task->tier = req->tier;
	task->blocks_per_sm = req->blocks_per_sm;
	task->blocks = req->blocks;
	task->predicted_ns = req->predicted_ns;
	task->block_ns = req->block_ns;
	task->window = 0;
	task->submitted = dev->now;
	task->granted = 0;
	task->changed = dev->now;
	task->ran = 0;
	task->usage = 0;
	task->id = dev->next_id++;
	task->demand = spread(dev, req->blocks);
	list_add_tail(&task->node, &dev->tasks);
	client->n_tasks++;
	note_submit(client, task->demand);
	gsc_decide(dev);
	return task->state == GSC_TASK_RUNNING ? 0 : -EAGAIN;
}

static void start_hold(struct gsc_client *client, const struct gsc_task *ended)
{
	struct gsc_device *dev = client->dev;
	u64 ns = 0;

	if (dev->policy->hold && dev->mode == GSCHED_MODE_SPATIAL)
		ns = dev->policy->hold(dev, ended, dev->now);
	if (!ns)
		return;
	if (!client->hold_units)
		dev->n_holds++;
	client->hold_units = min(client->hold_units + gsc_limit(ended), dev->sms * GSCHED_CAPSM);
	client->hold_until = dev->now + ns;
	client->hold_rank = ended->rank;
}

int gsc_complete(struct gsc_client *client, const struct gsched_complete *req, u64 now)
{
	struct gsc_device *dev = client->dev;
	struct gsc_group *group;
	struct gsc_task *task;
	bool ran;

	if (!dev || req->slot >= GSCHED_SLOTS)
		return -EINVAL;
	task = &client->task[req->slot];
	if (task->state == GSC_TASK_NONE || task->seq != req->seq)
		return -ENOENT;
	gsc_advance(dev, now);
	ran = task->state == GSC_TASK_RUNNING && !(req->flags & GSCHED_COMPLETE_CANCEL);
	if (ran)
		task->ran = min((u64)req->ran_ns, dev->now - task->granted);
	for (group = client->group; group; group = group->parent) {
		group->stats.tasks += ran;
		group->stats.cancelled += !ran;
		group->stats.ran_ns += task->ran;
	}
	gsc_task_end(task);
	if (ran && gsc_limit(task))
		start_hold(client, task);
	gsc_decide(dev);
	return 0;
}
