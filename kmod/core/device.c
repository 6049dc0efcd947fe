// SPDX-License-Identifier: GPL-2.0-only
/* The device: its clients, the mode, and the sequence of one decision. */
#include "decide.h"

#define SCAN_ROUNDS	4

static_assert(sizeof(struct gsc_client) < 4096,
	      "how many clients a device takes follows from this, and some decisions visit all");
static_assert(sizeof(struct gsc_task) <= 256, "each is a block of kmalloc's, which doubles next");

/* Time that goes back stands still */
void gsc_advance(struct gsc_device *dev, u64 now)
{
	if (now > dev->now)
		dev->now = now;
}

void gsc_mark(struct gsc_device *dev, u64 now)
{
	gsc_advance(dev, now);
	dev->marked = true;
}

void gsc_hold_drop(struct gsc_client *client)
{
	client->ended = NULL;
	if (client->hold_units)
		client->band->n_holds--;
	client->hold_units = 0;
	client->hold_got = 0;
	client->hold_until = 0;
}

static void expire_holds(struct gsc_device *dev, struct gsc_band *band)
{
	struct gsc_client *client;

	list_for_each_entry(client, &band->active, active)
		if (client->hold_units &&
		    (client->hold_until <= dev->now || dev->mode == GSCHED_MODE_TEMPORAL))
			gsc_hold_drop(client);
}

static bool whole_device(const struct gsc_group *group)
{
	for (; group; group = group->parent)
		if (gsc_group_max(group) < group->dev->sms * GSCHED_CAPSM)
			return false;
	return true;
}

/*
 * Among whom a lease is decided: the clients of a band, or in temporal mode all, for they take the
 * device from each other
 */
struct scope {
	u32 clients, priority, n_top;
};

static struct scope scope_of(const struct gsc_device *dev, const struct gsc_band *band)
{
	if (dev->mode == GSCHED_MODE_TEMPORAL)
		return (struct scope){ dev->n_programs, dev->top_priority, dev->n_top };
	return (struct scope){ band->n_clients, band->priority, band->n_top };
}

static u32 lease_for(const struct gsc_client *client, const struct scope *scope)
{
	const struct gsc_policy *policy = client->dev->policy;

	if (policy->no_leases || gsc_is_server(client) || gsc_band_closed(client->band))
		return GSCHED_LEASE_NONE;
	if (scope->clients > 1 && scope->n_top == 1 && client->group->priority == scope->priority &&
	    !policy->equals)
		return GSCHED_LEASE_NOTIFY;
	if (scope->clients == 1 && whole_device(client->group))
		return GSCHED_LEASE_FREE;
	return GSCHED_LEASE_NONE;
}

static void update_lease(struct gsc_client *client, const struct scope *scope)
{
	u32 old = client->lease;

	client->lease = lease_for(client, scope);
	gsc_page_lease(client);
	if (client->lease != old && client->dev->ops->set_lease)
		client->dev->ops->set_lease(client, old);
}

static void update_leases(struct gsc_device *dev)
{
	struct gsc_client *client;
	struct gsc_band *band;
	struct scope scope;

	list_for_each_entry(band, &dev->bands, node) {
		scope = scope_of(dev, band);
		list_for_each_entry(client, &band->members, member) {
			update_lease(client, &scope);
			gsc_page_quota(client);
		}
	}
}

/* When @band has to be looked at again, 0 never */
static u64 timer_of(const struct gsc_band *band)
{
	u64 when = gsc_earlier(band->again, band->watch);
	const struct gsc_client *client;

	if (band->n_holds)
		list_for_each_entry(client, &band->active, active)
			when = gsc_earlier(client->hold_until, when);
	return when;
}

/* @when: that of all bands */
static void update_timer(struct gsc_device *dev, u64 when)
{
	const struct gsc_client *client;

	when = gsc_earlier(gsc_earlier(dev->turn_timer, dev->pass_timer), when);
	if (dev->policy == &gsc_policy_plan)
		when = gsc_earlier(when, dev->data.plan.until);
	list_for_each_entry(client, &dev->resuming, resuming)
		when = gsc_earlier(client->resumes_until, when);
	dev->timer = when;
}

static void arm_timer(struct gsc_device *dev)
{
	u64 when = gsc_earlier(dev->timer, gsc_page_poll(dev));

	if (!list_empty(&dev->leaving))
		when = gsc_earlier(gsc_delay_poll(dev), when);
	if (when == dev->armed)
		return;
	dev->armed = when;
	if (dev->ops->arm_timer)
		dev->ops->arm_timer(dev, when);
}

static void start_holds(struct gsc_device *dev)
{
	struct gsc_client *client;
	struct gsc_band *band;

	dev->ended = false;
	list_for_each_entry(band, &dev->busy, busy)
		list_for_each_entry(client, &band->active, active)
			if (client->ended)
				gsc_hold_start(client);
}

/* False: the policy was replaced */
static bool order_tasks(struct gsc_device *dev)
{
	const struct gsc_policy *policy = dev->policy;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->busy, busy) {
		if (band->n_holds)
			expire_holds(dev, band);
		policy->order(band, dev->now);
		if (policy != &gsc_policy_hpf && !gsc_policy_check(band))
			return false;
		if (gsc_is_limited(dev))
			gsc_exclude(band);
	}
	return true;
}

/* The policy's last operation of a decision, which says when the next one has to be */
static void note_granted(struct gsc_device *dev, struct gsc_band *band)
{
	const struct gsc_policy *policy = dev->policy;

	if (policy->granted)
		policy->granted(band, dev->now);
	/* hpf takes the place of others: tests check it, nothing could replace it */
	if (policy != &gsc_policy_hpf && band->again && band->again <= dev->now)
		gsc_policy_replace(dev, "band->again asks for a decision in the past");
}

static void decide(struct gsc_device *dev)
{
	struct gsc_band *band, *next;
	u64 when = 0;
	bool stale;

	dev->marked = false;
	if (dev->ended)
		start_holds(dev);
	if (!list_empty(&dev->resuming))
		gsc_protect_expire(dev);
	if (dev->pass_timer && dev->pass_timer <= dev->now)
		gsc_pass_expire(dev);
	if (gsc_has_plan(dev))
		gsc_plan_expire(dev);
	stale = dev->bands_stale || (dev->turn_timer && dev->turn_timer <= dev->now);
	dev->decisions++;
	dev->bands_stale = false;
	if (stale)
		gsc_bands_update(dev);
	if (!order_tasks(dev))
		return;
	if (dev->mode == GSCHED_MODE_TEMPORAL && !gsc_turn_temporal(dev))
		return;
	if (dev->n_lower > 1)
		gsc_turn_sliced(dev);
	list_for_each_entry(band, &dev->busy, busy) {
		gsc_watch(band);
		gsc_allocate(band);
		if (band->evicts)
			gsc_tasks_evict(band);
	}
	list_for_each_entry_safe(band, next, &dev->busy, busy) {
		gsc_tasks_grant(band);
		note_granted(dev, band);
		if (dev->submitted)
			gsc_tasks_measure(band);
		when = gsc_earlier(timer_of(band), when);
	}
	dev->submitted = false;
	if (stale) {
		update_leases(dev);
		gsc_bands_publish(dev);
	}
	update_timer(dev, when);
}

/* Once more where the policy was replaced */
static void decide_all(struct gsc_device *dev)
{
	while (dev->marked)
		decide(dev);
}

void gsc_commit(struct gsc_device *dev, u64 now)
{
	int round;

	if (!dev->marked && !dev->n_adopted && !dev->scan && list_empty(&dev->leaving))
		return;
	gsc_advance(dev, now);
	/* the time that pages are looked at may be past the timer's, which has not come yet */
	if (dev->timer && dev->timer <= dev->now)
		dev->marked = true;
	if (dev->n_adopted)
		gsc_page_reap(dev);
	if (!list_empty(&dev->leaving))
		gsc_delay_look(dev);
	decide_all(dev);
	/*
	 * What is adopted may end further leases. The rounds are bounded, as a client can go on
	 * changing its page; the timer does the rest.
	 */
	for (round = 0; dev->scan && round < SCAN_ROUNDS; round++) {
		gsc_page_scan(dev);
		decide_all(dev);
	}
	if (dev->stale)
		gsc_page_refresh(dev);
	arm_timer(dev);
}

u32 gsc_clients_default(u64 memory, u32 each)
{
	u64 n = div_u64(memory >> 10, each);

	return min_t(u64, max_t(u64, n, GSC_CLIENTS_LEAST), GSC_CLIENTS_MOST);
}

bool gsc_share_has_room(u32 mine, u32 all, u32 max)
{
	u32 others = all - mine;

	return others < max && mine < (max - others + 1) / 2;
}

int gsc_group_room(struct gsc_group *group, u32 user, bool all, u32 max)
{
	const struct gsc_device *dev = group->dev;
	const struct gsc_client *client;
	u32 mine = 0;
	int ret = 0;

	list_for_each_entry(client, &dev->clients, node)
		mine += client->user == user;
	if (dev->n_clients >= max)
		ret = -ENOSPC;
	else if (!all && !gsc_share_has_room(mine, dev->n_clients, max))
		ret = -EDQUOT;
	if (ret)
		gsc_event(group, GSC_EVENT_REFUSED);
	return ret;
}

int gsc_client_attach(struct gsc_client *client, struct gsc_group *group, u32 flags,
		      u64 channel_group, u64 now)
{
	struct gsc_device *dev = group->dev;

	if (!dev || client->dev || (flags & ~GSCHED_ATTACH__ALL))
		return -EINVAL;
	gsc_mark(dev, now);
	client->dev = dev;
	client->flags = flags;
	client->channel_group = channel_group;
	client->lease = U32_MAX;	/* nothing told yet */
	INIT_LIST_HEAD(&client->tasks);
	INIT_LIST_HEAD(&client->active);
	INIT_LIST_HEAD(&client->resuming);
	client->nr = dev->next_nr++;
	client->charged = dev->now;
	client->leased_at = dev->now;
	client->attached_at = dev->now;
	gsc_page_attach(client);
	list_add_tail(&client->node, &dev->clients);
	dev->n_clients++;
	client->group = NULL;
	client->memory = 0;
	gsc_client_seat(client, group);
	gsc_band_join(client);
	return 0;
}

static void add_current(struct gsc_group *group, u32 units)
{
	for (; group; group = group->parent)
		group->current_units += units;
}

static void leave(struct gsc_client *client, u32 window, u64 now)
{
	struct gsc_device *dev = client->dev;
	struct gsc_task *task, *next;

	gsc_mark(dev, now);
	gsc_client_count(client, now);
	list_for_each_entry_safe(task, next, &client->tasks, peer)
		gsc_task_end(task);
	gsc_client_flush(client);
	gsc_hold_drop(client);
	gsc_band_leave(client);
	add_current(client->home, -client->current_units);
	client->current_units = 0;
	client->window = 0;
	gsc_pressure_leave(client);
	list_del_init(&client->resuming);
	list_del_init(&client->node);
	dev->n_clients--;
	gsc_client_unseat(client);
	gsc_group_set_max(&client->own, GSC_MAX_UNLIMITED);
	gsc_page_detach(client, window);
	client->dev = NULL;
}

void gsc_client_detach(struct gsc_client *client, u64 now)
{
	if (client->dev)
		leave(client, 0, now);
}

void gsc_client_expel(struct gsc_client *client, u64 now)
{
	if (client->dev)
		leave(client, client->dev->sms * GSCHED_CAPSM, now);
}

void gsc_client_move(struct gsc_client *client, struct gsc_group *group, u64 now)
{
	struct gsc_device *dev = client->dev;

	if (!dev || group->dev != dev || group == client->home)
		return;
	gsc_mark(dev, now);
	/* what it used so far was the old group's */
	gsc_client_charge(client);
	gsc_client_count(client, now);
	add_current(client->home, -client->current_units);
	gsc_pressure_leave(client);
	if (client->n_tasks)
		gsc_promise_end(client);
	gsc_client_unseat(client);
	gsc_client_seat(client, group);
	if (client->n_tasks)
		gsc_promise_begin(client);
	add_current(client->home, client->current_units);
	gsc_pressure_update(client);
	gsc_policy_moved(client);
	gsc_hold_drop(client);
	dev->bands_stale = true;
}

void gsc_tick(struct gsc_device *dev, u64 now)
{
	struct gsc_client *client;
	struct gsc_band *band;

	gsc_advance(dev, now);
	list_for_each_entry(band, &dev->busy, busy)
		list_for_each_entry(client, &band->active, active)
			gsc_client_charge(client);
	if (dev->timer && dev->timer <= dev->now) {
		dev->marked = true;
		/* so that others do not wait for what is over */
		gsc_page_reap_old(dev);
	}
}

int gsc_device_set_mode(struct gsc_device *dev, s32 mode, u64 now)
{
	if (mode < -1 || mode > GSCHED_MODE_SPATIAL)
		return -EINVAL;
	gsc_mark(dev, now);
	dev->mode_set = mode;
	gsc_bands_rebuild(dev);
	dev->bands_stale = true;
	return 0;
}

int gsc_device_set_policy(struct gsc_device *dev, const char *name, u64 now)
{
	const struct gsc_policy *policy = gsc_policy_find(name);

	if (!policy || policy == &gsc_policy_plan)
		return -EINVAL;
	gsc_mark(dev, now);
	dev->faulty = NULL;
	dev->plan_expired = false;
	gsc_policy_start(dev, policy);
	return 0;
}
