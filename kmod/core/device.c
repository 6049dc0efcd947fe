// SPDX-License-Identifier: GPL-2.0-only
/* The device: its clients, the mode, and the sequence of one decision. */
#include "decide.h"

/* Time that goes back stands still */
void gsc_advance(struct gsc_device *dev, u64 now)
{
	if (now > dev->now)
		dev->now = now;
}

void gsc_hold_drop(struct gsc_client *client)
{
	if (client->hold_units)
		client->dev->n_holds--;
	client->hold_units = 0;
	client->hold_got = 0;
	client->hold_until = 0;
}

static void expire_holds(struct gsc_device *dev)
{
	struct gsc_client *client;

	if (!dev->n_holds)
		return;
	list_for_each_entry(client, &dev->clients, node)
		if (client->hold_units && (client->hold_until <= dev->now || dev->mode == GSCHED_MODE_TEMPORAL))
			gsc_hold_drop(client);
}

/* Without MPS two processes cannot be on the device at once */
static void choose_mode(struct gsc_device *dev)
{
	const struct gsc_client *client;

	if (dev->mode_set >= 0) {
		dev->mode = (u32)dev->mode_set;
		return;
	}
	dev->mode = dev->n_clients ? GSCHED_MODE_SPATIAL : GSCHED_MODE_TEMPORAL;
	if (dev->n_clients < 2)
		return;
	list_for_each_entry(client, &dev->clients, node)
		if (!(client->flags & GSCHED_ATTACH_MPS))
			dev->mode = GSCHED_MODE_TEMPORAL;
}

/*
 * Temporal mode: one client at a time, the most important; among equals who is at it already, then who came first. A task
 * that came after one of an equal client does not prolong the turn, so a long queue of kernels starves nobody.
 */
static void choose_turn(struct gsc_device *dev)
{
	struct gsc_client *owner = NULL;
	const struct gsc_task *fence = NULL;
	struct gsc_task *task, *top;
	bool at_it = false;

	if (list_empty(&dev->tasks)) {
		dev->turn = NULL;
		return;
	}
	top = list_first_entry(&dev->tasks, struct gsc_task, node);
	list_for_each_entry(task, &dev->tasks, node) {
		if (task->rank != top->rank)
			break;
		if (task->state != GSC_TASK_RUNNING || at_it)
			continue;
		if (!owner)
			owner = task->client;
		if (task->client == dev->turn) {
			owner = dev->turn;
			at_it = true;
		}
	}
	if (!owner)
		owner = top->client;
	dev->turn = owner;
	list_for_each_entry(task, &dev->tasks, node) {
		if (task->rank == top->rank && task->client != owner && !fence)
			fence = task;
		if (task->client != owner || task->rank != top->rank ||
		    (fence && task->state == GSC_TASK_WAITING))
			task->want = 0;
	}
}

static bool whole_device(const struct gsc_group *group)
{
	for (; group; group = group->parent)
		if (group->max < group->dev->sms * GSCHED_CAPSM)
			return false;
	return true;
}

static void update_leases(struct gsc_device *dev)
{
	u32 top = 0, n_top = 0, active = 0, contended, lease, priority;
	struct gsc_client *client;

	list_for_each_entry(client, &dev->clients, node) {
		priority = client->group->priority;
		if (priority > top)
			n_top = 0;
		top = max(top, priority);
		n_top += priority == top;
		active += client->n_tasks != 0;
	}
	dev->top_priority = top;
	list_for_each_entry(client, &dev->clients, node) {
		priority = client->group->priority;
		contended = active - (client->n_tasks != 0);
		lease = GSCHED_LEASE_NONE;
		if (dev->policy->no_leases)
			lease = GSCHED_LEASE_NONE;
		else if (dev->n_clients > 1 && n_top == 1 && priority == top)
			lease = GSCHED_LEASE_NOTIFY;
		else if (dev->n_clients == 1 && whole_device(client->group))
			lease = GSCHED_LEASE_FREE;
		if (client->lease == lease && client->contended == contended && client->told_mode == dev->mode &&
		    client->told_priority == priority && client->told_top == top)
			continue;
		client->lease = lease;
		client->contended = contended;
		client->told_mode = dev->mode;
		client->told_priority = priority;
		client->told_top = top;
		if (dev->ops->set_lease)
			dev->ops->set_lease(client, lease);
	}
}

static void update_timer(struct gsc_device *dev)
{
	const struct gsc_client *client;
	u64 when = dev->again;

	if (dev->n_holds) {
		list_for_each_entry(client, &dev->clients, node)
			if (client->hold_units && (!when || client->hold_until < when))
				when = client->hold_until;
	}
	if (when == dev->timer)
		return;
	dev->timer = when;
	if (dev->ops->arm_timer)
		dev->ops->arm_timer(dev, when);
}

void gsc_decide(struct gsc_device *dev)
{
	dev->decisions++;
	choose_mode(dev);
	expire_holds(dev);
	dev->policy->order(dev, dev->now);
	if (dev->mode == GSCHED_MODE_TEMPORAL)
		choose_turn(dev);
	else
		dev->turn = NULL;
	gsc_allocate(dev);
	gsc_place(dev);
	gsc_tasks_apply(dev);
	update_leases(dev);
	update_timer(dev);
}

int gsc_client_attach(struct gsc_client *client, struct gsc_group *group, u32 flags, u64 now)
{
	struct gsc_device *dev = group->dev;
	u32 slot;

	if (!dev || client->dev || (flags & ~GSCHED_ATTACH__ALL))
		return -EINVAL;
	gsc_advance(dev, now);
	client->dev = dev;
	client->group = group;
	client->flags = flags;
	client->lease = U32_MAX;	/* nothing told yet */
	for (slot = 0; slot < GSCHED_SLOTS; slot++) {
		client->task[slot].client = client;
		client->task[slot].slot = slot;
		INIT_LIST_HEAD(&client->task[slot].node);
		INIT_LIST_HEAD(&client->task[slot].peer);
	}
	INIT_LIST_HEAD(&client->tasks);
	INIT_LIST_HEAD(&client->place);
	client->charged = dev->now;
	client->leased_at = dev->now;
	list_add_tail(&client->node, &dev->clients);
	dev->n_clients++;
	group->clients++;
	gsc_decide(dev);
	return 0;
}

static void add_current(struct gsc_group *group, u32 units)
{
	for (; group; group = group->parent)
		group->current_units += units;
}

void gsc_client_detach(struct gsc_client *client, u64 now)
{
	struct gsc_device *dev = client->dev;
	u32 slot;

	if (!dev)
		return;
	gsc_advance(dev, now);
	for (slot = 0; slot < GSCHED_SLOTS; slot++)
		if (client->task[slot].state != GSC_TASK_NONE)
			gsc_task_end(&client->task[slot]);
	gsc_hold_drop(client);
	if (dev->turn == client)
		dev->turn = NULL;
	add_current(client->group, -client->current_units);
	client->current_units = 0;
	client->window = 0;
	list_del_init(&client->place);
	list_del_init(&client->node);
	dev->n_clients--;
	client->group->clients--;
	client->dev = NULL;
	gsc_decide(dev);
}

void gsc_client_move(struct gsc_client *client, struct gsc_group *group, u64 now)
{
	struct gsc_device *dev = client->dev;

	if (!dev || group->dev != dev || group == client->group)
		return;
	gsc_advance(dev, now);
	/* what it used so far was the old group's */
	gsc_client_charge(client);
	add_current(client->group, -client->current_units);
	add_current(group, client->current_units);
	client->group->clients--;
	group->clients++;
	client->group = group;
	gsc_hold_drop(client);
	gsc_decide(dev);
}

void gsc_tick(struct gsc_device *dev, u64 now)
{
	struct gsc_client *client;

	gsc_advance(dev, now);
	list_for_each_entry(client, &dev->clients, node)
		gsc_client_charge(client);
	if (dev->timer && dev->timer <= dev->now)
		gsc_decide(dev);
}

int gsc_device_set_mode(struct gsc_device *dev, s32 mode, u64 now)
{
	if (mode < -1 || mode > GSCHED_MODE_SPATIAL)
		return -EINVAL;
	gsc_advance(dev, now);
	dev->mode_set = mode;
	gsc_decide(dev);
	return 0;
}

int gsc_device_set_policy(struct gsc_device *dev, const char *name, u64 now)
{
	const struct gsc_policy *policy = gsc_policy_find(name);

	if (!policy)
		return -EINVAL;
	gsc_advance(dev, now);
	dev->policy = policy;
	dev->again = 0;
	gsc_decide(dev);
	return 0;
}
