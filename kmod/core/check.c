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
	u64 timer = dev->again;

	list_for_each_entry(client, &dev->clients, node) {
		if (client->dev != dev || client->group->dev != dev)
			return 1;
		for (tasks = 0, slot = 0; slot < GSCHED_SLOTS; slot++) {
			const struct gsc_task *task = &client->task[slot];

			if (task->client != client || task->slot != slot)
				return 2;
			if (list_empty(&task->node) ? task->state != GSC_TASK_NONE : task->state == GSC_TASK_NONE)
				return 3;
			if (list_empty(&task->peer) != list_empty(&task->node))
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

/* A client's tasks share its window, in the order of their arrival up to the first that has nothing */
static int check_tasks(const struct gsc_client *client)
{
	const struct gsc_task *task, *last = NULL;
	bool open = true, waits = false;
	u32 n = 0;

	list_for_each_entry(task, &client->tasks, peer) {
		if (task->client != client || task->state == GSC_TASK_NONE)
			return 10;
		if (last && (s32)(task->id - last->id) <= 0)
			return 11;
		last = task;
		n++;
		if (task->state == GSC_TASK_WAITING) {
			if (task->window)
				return 12;
			waits = true;
			continue;
		}
		if (waits)
			return 13;
		if (!gsc_is_block(task)) {
			if (!gsc_limit(task))
				return 14;
			continue;
		}
		if (GSCHED_WINDOW_BASE(task->window) != GSCHED_WINDOW_BASE(client->window))
			return 15;
		if (gsc_limit(task) && (!open || task->window != client->window || gsc_limit(task) < gsc_weight(task)))
			return 16;
		open = open && gsc_limit(task);
	}
	if (n != client->n_tasks)
		return 17;
	return (GSCHED_WINDOW_LIMIT(client->window) != 0) == !list_empty(&client->place) ? 0 : 18;
}

static int check_windows(const struct gsc_device *dev)
{
	const struct gsc_client *client, *owner = NULL;
	const struct gsc_task *task;
	u32 tasks = 0;
	u64 base, end = 0;
	int ret;

	list_for_each_entry(client, &dev->placed, place) {
		base = GSCHED_WINDOW_BASE(client->window);
		if (client->dev != dev || base % GSCHED_CAPSM || base < end)
			return 20;
		end = base + (u64)gsc_sms(GSCHED_WINDOW_LIMIT(client->window)) * GSCHED_CAPSM;
		if (end > (u64)dev->sms * GSCHED_CAPSM)
			return 21;
		if (dev->mode == GSCHED_MODE_TEMPORAL && owner)
			return 23;
		owner = client;
	}
	list_for_each_entry(client, &dev->clients, node) {
		ret = check_tasks(client);
		if (ret)
			return ret;
		tasks += client->n_tasks;
	}
	list_for_each_entry(task, &dev->tasks, node)
		tasks--;
	return tasks ? 24 : 0;
}

/* What is out never is more than the device, but for opaque tasks that a more important client overtook */
static int check_device(const struct gsc_device *dev)
{
	const struct gsc_client *client;
	u64 block = 0, held = 0;

	list_for_each_entry(client, &dev->clients, node) {
		block += gsc_sms(GSCHED_WINDOW_LIMIT(client->window));
		held += gsc_sms(client->hold_got);
	}
	return block + held <= dev->sms ? 0 : 30;
}

/*
 * A group's sum is at most its max; opaque tasks that run are excepted, since a lower max cannot take back what they have.
 * It is at least what the allocator guaranteed, up to one SM for a max that is no whole number of SMs.
 */
static int check_group(const struct gsc_device *dev, const struct gsc_group *group)
{
	u64 sum = 0, block = 0, footprint = 0;
	const struct gsc_client *client;
	u32 clients = 0;

	list_for_each_entry(client, &dev->clients, node) {
		clients += client->group == group;
		if (!is_below(client->group, group))
			continue;
		sum += client->current_units;
		footprint += gsc_sms(client->current_units);
		block += GSCHED_WINDOW_LIMIT(client->window);
	}
	if (clients != group->clients)
		return 40;
	if (sum != group->current_units)
		return 41;
	if (block > group->max)
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

	if (dev->mode != GSCHED_MODE_SPATIAL || dev->fractional || dev->policy->idles)
		return 0;
	list_for_each_entry(client, &dev->clients, node)
		out += gsc_sms(client->current_units) + gsc_sms(client->hold_got);
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
