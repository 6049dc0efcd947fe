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
		client->band->n_holds--;
	client->hold_units = 0;
	client->hold_got = 0;
	client->hold_until = 0;
}

static void expire_holds(struct gsc_device *dev)
{
	struct gsc_client *client;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->bands, node) {
		if (!band->n_holds)
			continue;
		list_for_each_entry(client, &band->members, member)
			if (client->hold_units && (client->hold_until <= dev->now || dev->mode == GSCHED_MODE_TEMPORAL))
				gsc_hold_drop(client);
	}
}

static bool whole_device(const struct gsc_group *group)
{
	for (; group; group = group->parent)
		if (group->max < group->dev->sms * GSCHED_CAPSM)
			return false;
	return true;
}

/* Among whom a lease is decided: the clients of a band, or in temporal mode all, for they take the device from each other */
struct scope {
	u32 clients, active, priority, n_top;
};

static void scope_add(struct scope *scope, const struct gsc_client *client)
{
	u32 priority = client->group->priority;

	if (gsc_is_server(client))
		return;
	if (priority > scope->priority)
		scope->n_top = 0;
	scope->priority = max(scope->priority, priority);
	scope->n_top += priority == scope->priority;
	scope->active += client->n_tasks != 0;
	scope->clients++;
}

static u32 lease_for(const struct gsc_client *client, const struct scope *scope)
{
	const struct gsc_policy *policy = client->dev->policy;

	if (policy->no_leases || gsc_is_server(client) || gsc_band_closed(client->band))
		return GSCHED_LEASE_NONE;
	if (scope->clients > 1 && scope->n_top == 1 && client->group->priority == scope->priority && !policy->flat)
		return GSCHED_LEASE_NOTIFY;
	if (scope->clients == 1 && whole_device(client->group))
		return GSCHED_LEASE_FREE;
	return GSCHED_LEASE_NONE;
}

static void update_lease(struct gsc_client *client, const struct scope *scope)
{
	u32 lease = lease_for(client, scope), contended = scope->active - (client->n_tasks != 0);
	struct gsc_device *dev = client->dev;
	u32 priority = client->group->priority;

	if (client->lease == lease && client->contended == contended && client->told_mode == dev->mode &&
	    client->told_priority == priority && client->told_top == dev->top_priority)
		return;
	client->lease = lease;
	client->contended = contended;
	client->told_mode = dev->mode;
	client->told_priority = priority;
	client->told_top = dev->top_priority;
	if (dev->ops->set_lease)
		dev->ops->set_lease(client, lease);
}

static void update_leases(struct gsc_device *dev)
{
	struct scope all = { 0 }, in_band;
	struct gsc_client *client;
	struct gsc_band *band;

	list_for_each_entry(client, &dev->clients, node)
		scope_add(&all, client);
	dev->top_priority = all.priority;
	list_for_each_entry(band, &dev->bands, node) {
		in_band = (struct scope){ 0 };
		list_for_each_entry(client, &band->members, member)
			scope_add(&in_band, client);
		list_for_each_entry(client, &band->members, member)
			update_lease(client, dev->mode == GSCHED_MODE_TEMPORAL ? &all : &in_band);
	}
}

static void update_timer(struct gsc_device *dev)
{
	const struct gsc_client *client;
	const struct gsc_band *band;
	u64 when = dev->turn_timer;

	list_for_each_entry(band, &dev->bands, node) {
		when = gsc_earlier(band->again, when);
		if (!band->n_holds)
			continue;
		list_for_each_entry(client, &band->members, member)
			when = gsc_earlier(client->hold_until, when);
	}
	list_for_each_entry(client, &dev->clients, node)
		if (client->resumes)
			when = gsc_earlier(client->resumes_until, when);
	if (when == dev->timer)
		return;
	dev->timer = when;
	if (dev->ops->arm_timer)
		dev->ops->arm_timer(dev, when);
}

void gsc_decide(struct gsc_device *dev)
{
	struct gsc_band *band;
	bool stale;

	gsc_protect_expire(dev);
	stale = dev->bands_stale || (dev->turn_timer && dev->turn_timer <= dev->now);
	dev->decisions++;
	dev->bands_stale = false;
	if (stale)
		gsc_bands_update(dev);
	expire_holds(dev);
	list_for_each_entry(band, &dev->bands, node)
		dev->policy->order(band, dev->now);
	if (dev->mode == GSCHED_MODE_TEMPORAL)
		gsc_turn_temporal(dev);
	else if (dev->n_lower > 1)
		gsc_turn_sliced(dev);
	list_for_each_entry(band, &dev->bands, node) {
		gsc_allocate(band);
		gsc_place(band);
		gsc_tasks_evict(band);
	}
	list_for_each_entry(band, &dev->bands, node)
		gsc_tasks_grant(band);
	update_leases(dev);
	if (stale)
		gsc_bands_publish(dev);
	update_timer(dev);
}

int gsc_client_attach(struct gsc_client *client, struct gsc_group *group, u32 flags, u64 channel_group, u64 now)
{
	struct gsc_device *dev = group->dev;
	u32 slot;

	if (!dev || client->dev || (flags & ~GSCHED_ATTACH__ALL))
		return -EINVAL;
	gsc_advance(dev, now);
	client->dev = dev;
	client->group = group;
	client->flags = flags;
	client->channel_group = channel_group;
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
	gsc_band_join(client);
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
	gsc_band_leave(client);
	add_current(client->group, -client->current_units);
	client->current_units = 0;
	client->window = 0;
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
	dev->bands_stale = true;
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
	gsc_bands_rebuild(dev);
	dev->bands_stale = true;
	gsc_decide(dev);
	return 0;
}

int gsc_device_set_policy(struct gsc_device *dev, const char *name, u64 now)
{
	const struct gsc_policy *policy = gsc_policy_find(name);
	struct gsc_band *band;

	if (!policy)
		return -EINVAL;
	gsc_advance(dev, now);
	dev->policy = policy;
	list_for_each_entry(band, &dev->bands, node) {
		band->again = 0;
		band->late = NULL;
	}
	dev->bands_stale = true;
	gsc_decide(dev);
	return 0;
}
