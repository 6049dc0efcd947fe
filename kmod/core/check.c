// SPDX-License-Identifier: GPL-2.0-only
/* The invariants, as they hold between two events. For tests and debug builds: it looks at everything. */
#include "decide.h"

static bool is_below(const struct gsc_group *group, const struct gsc_group *top)
{
	while (group && group != top)
		group = group->parent;
	return group == top;
}

static int check_clients(const struct gsc_device *dev)
{
	u32 clients = 0, holds = 0, tasks, slot;
	const struct gsc_client *client;
	u64 timer = 0;

	list_for_each_entry(client, &dev->clients, node) {
		if (client->dev != dev || client->group->dev != dev)
			return 1;
		for (tasks = 0, slot = 0; slot < GSCHED_SLOTS; slot++) {
			const struct gsc_task *task = &client->task[slot];

			if (task->client != client || task->slot != slot)
				return 2;
			if (list_empty(&task->node) ? task->state != GSC_TASK_NONE : task->state == GSC_TASK_NONE)
				return 3;
			if (task->state == GSC_TASK_NONE && !list_empty(&task->place))
				return 4;
			tasks += task->state != GSC_TASK_NONE;
		}
		if (tasks != client->n_tasks)
			return 5;
		if (!client->hold_units && (client->hold_got || client->hold_until))
			return 6;
		if (client->hold_units) {
			holds++;
			if (client->hold_until <= dev->now || dev->mode != GSCHED_MODE_SPATIAL)
				return 7;
			timer = timer ? min(timer, client->hold_until) : client->hold_until;
		}
		clients++;
	}
	if (clients != dev->n_clients || holds != dev->n_holds)
		return 8;
	return timer == dev->timer ? 0 : 9;
}

static int check_windows(const struct gsc_device *dev)
{
	const struct gsc_task *task, *owner = NULL;
	u64 base, end = 0;
	u32 placed = 0;

	list_for_each_entry(task, &dev->placed, place) {
		base = GSCHED_WINDOW_BASE(task->window);
		if (base % GSCHED_CAPSM || base < end || !gsc_limit(task))
			return 20;
		end = base + (u64)gsc_sms(gsc_limit(task)) * GSCHED_CAPSM;
		if (end > (u64)dev->sms * GSCHED_CAPSM)
			return 21;
		if (!gsc_is_block(task) || task->state != GSC_TASK_RUNNING || gsc_limit(task) < gsc_weight(task))
			return 22;
		if (dev->mode == GSCHED_MODE_TEMPORAL) {
			if (owner && owner->client != task->client)
				return 23;
			owner = task;
		}
		placed++;
	}
	list_for_each_entry(task, &dev->tasks, node) {
		if (task->state == GSC_TASK_NONE)
			return 24;
		if (task->state == GSC_TASK_WAITING && task->window)
			return 25;
		if (task->state == GSC_TASK_RUNNING && !gsc_is_block(task) && !gsc_limit(task))
			return 26;
		if (gsc_is_block(task) && gsc_limit(task)) {
			if (list_empty(&task->place) || !placed--)
				return 27;
		}
	}
	return placed ? 28 : 0;
}

/* What is out never is more than the device, but for opaque tasks that a more important client overtook */
static int check_device(const struct gsc_device *dev)
{
	const struct gsc_client *client;
	const struct gsc_task *task;
	u64 block = 0, held = 0;

	list_for_each_entry(task, &dev->tasks, node)
		if (gsc_is_block(task))
			block += gsc_sms(gsc_limit(task));
	list_for_each_entry(client, &dev->clients, node)
		held += gsc_sms(client->hold_got);
	return block + held <= dev->sms ? 0 : 30;
}

/*
 * A group's sum is at most its max; opaque tasks that run are excepted, since a lower max cannot take back what they have.
 * It is at least what the allocator guaranteed, up to one SM for a max that is no whole number of SMs.
 */
static int check_group(const struct gsc_device *dev, const struct gsc_group *group)
{
	u64 sum = 0, fixed = 0, footprint = 0;
	const struct gsc_client *client;
	const struct gsc_task *task;
	u32 clients = 0;

	list_for_each_entry(client, &dev->clients, node)
		clients += client->group == group;
	if (clients != group->clients)
		return 40;
	list_for_each_entry(task, &dev->tasks, node) {
		if (task->state != GSC_TASK_RUNNING || !is_below(task->client->group, group))
			continue;
		sum += gsc_limit(task);
		footprint += gsc_sms(gsc_limit(task));
		if (!gsc_is_block(task))
			fixed += gsc_limit(task);
	}
	if (sum != group->current_units)
		return 41;
	if (sum - fixed > group->max)
		return 42;
	if (group->seen && dev->guarantees && !dev->fractional && dev->mode == GSCHED_MODE_SPATIAL && sum &&
	    group->demand && footprint < group->reserve)
		return 43;
	return 0;
}

/* Nobody waits while there is room for it all the way up */
static int check_waiting(const struct gsc_device *dev)
{
	const struct gsc_client *client;
	const struct gsc_group *group;
	const struct gsc_task *task;
	u64 out = 0;

	if (dev->mode != GSCHED_MODE_SPATIAL || dev->fractional)
		return 0;
	list_for_each_entry(task, &dev->tasks, node)
		out += gsc_sms(gsc_limit(task));
	list_for_each_entry(client, &dev->clients, node)
		out += gsc_sms(client->hold_got);
	if (out >= dev->sms)
		return 0;
	list_for_each_entry(task, &dev->tasks, node) {
		if (gsc_limit(task))
			continue;
		for (group = task->client->group; group; group = group->parent)
			if (group->max <= group->current_units + (u64)group->held * GSCHED_CAPSM)
				break;
		if (!group)
			return 50;
	}
	return 0;
}

int gsc_check(const struct gsc_device *dev)
{
	const struct gsc_group *group = &dev->root;
	int ret;

	ret = check_clients(dev);
	if (!ret)
		ret = check_windows(dev);
	if (!ret)
		ret = check_device(dev);
	/* every group, parents first; no recursion, for this runs in the kernel too */
	while (!ret) {
		ret = check_group(dev, group);
		if (!list_empty(&group->children)) {
			group = list_first_entry(&group->children, struct gsc_group, sibling);
			continue;
		}
		while (group->parent && group->sibling.next == &group->parent->children)
			group = group->parent;
		if (!group->parent)
			break;
		group = list_next_entry(group, sibling);
	}
	return ret ? ret : check_waiting(dev);
}
