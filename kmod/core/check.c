// SPDX-License-Identifier: GPL-2.0-only
/* The invariants, as they hold after a commit. For tests and debug builds: all is looked at. */
#include "decide.h"

static bool is_below(const struct gsc_group *group, const struct gsc_group *top)
{
	while (group && group != top)
		group = group->parent;
	return group == top;
}

/* Between a client and its group are its own and, if the user has several there, the user's */
static bool check_seat(const struct gsc_client *client)
{
	const struct gsc_group *own = client->group, *user = own->parent;
	const struct gsc_client *other;
	u32 n = 0, weight = 0;

	if (own != &client->own || !own->weight || own->priority > client->home->priority ||
	    own->latency_us != client->home->latency_us)
		return false;
	if (!gsc_is_server(client) && client->seat != own &&
	    (client->seat != client->home || user != client->home ||
	     own->max != GSC_MAX_UNLIMITED || own->weight != GSC_WEIGHT_DEFAULT))
		return false;
	list_for_each_entry(other, &client->dev->clients, node) {
		if (other->home != client->home || other->user != client->user ||
		    gsc_is_server(other))
			continue;
		if (user != other->own.parent && !gsc_is_server(client))
			return false;
		weight = max(weight, other->own.weight);
		n++;
	}
	if (user == client->home)
		return n <= 1 || gsc_is_server(client);
	return n > 1 && user->parent == client->home && user->weight == weight &&
	       own->depth < GSC_DEPTH_MAX;
}

/* gpu.pressure counts it as what it is */
static bool check_state(const struct gsc_client *client)
{
	bool waits = client->activity == GSCHED_ACTIVITY_WAITING;
	const struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer)
		waits |= task->state == GSC_TASK_WAITING || !client->current_units;
	return client->waits == waits &&
	       client->runs == (client->activity == GSCHED_ACTIVITY_BUSY || client->current_units);
}

static bool check_demand(const struct gsc_client *client)
{
	const struct gsc_task *task;
	u32 largest = 0;

	list_for_each_entry(task, &client->tasks, peer)
		largest = max(largest, task->demand);
	return client->demand == largest;
}

static int check_clients(const struct gsc_device *dev)
{
	const struct gsc_client *client;
	u32 clients = 0, tasks, opaque, slot;

	list_for_each_entry(client, &dev->clients, node) {
		if (client->dev != dev || client->group->dev != dev || client->home->dev != dev)
			return 1;
		if (!check_seat(client))
			return 120;
		for (tasks = 0, opaque = 0, slot = 0; slot < GSCHED_SLOTS; slot++) {
			const struct gsc_task *task = client->task[slot];

			if (!task)
				continue;
			if (task->client != client || task->slot != slot)
				return 2;
			if (list_empty(&task->node) ? task->state != GSC_TASK_NONE :
						      task->state == GSC_TASK_NONE)
				return 3;
			if (list_empty(&task->peer) != list_empty(&task->node))
				return 4;
			tasks += task->state != GSC_TASK_NONE;
			opaque += task->state != GSC_TASK_NONE && !gsc_is_block(task);
		}
		if (tasks != client->n_tasks || opaque != client->n_opaque)
			return 5;
		if (!check_demand(client))
			return 143;
		if (!check_state(client))
			return 130;
		if (!client->hold_units && (client->hold_got || client->hold_until))
			return 6;
		if (client->hold_units &&
		    (client->hold_until <= dev->now || dev->mode == GSCHED_MODE_TEMPORAL))
			return 7;
		if (client->hold_units && !gsc_standby_is_auto(client))
			return 7;
		if (client->hold_units > dev->sms * GSCHED_CAPSM || client->sizes.whole > dev->sms)
			return 19;
		if (max(client->evict_ns[0], client->evict_ns[1]) > GSC_EVICT_NS_MAX)
			return 142;
		if (client->sizes.tried >= GSC_SIZE_CLASSES ||
		    client->sizes.tried < client->sizes.chosen)
			return 19;
		clients++;
	}
	return clients == dev->n_clients ? 0 : 8;
}

/* The timer is armed for the first time at which anything has to be decided anew */
static int check_timer(const struct gsc_device *dev)
{
	const struct gsc_client *client;
	const struct gsc_band *band;
	u64 timer = U64_MAX;
	u32 holds;

	list_for_each_entry(band, &dev->bands, node) {
		if (band->again)
			timer = min(timer, band->again);
		if (band->watch)
			timer = min(timer, band->watch);
		holds = 0;
		list_for_each_entry(client, &band->members, member) {
			if (!client->hold_units)
				continue;
			holds++;
			timer = min(timer, client->hold_until);
		}
		if (holds != band->n_holds)
			return 6;
	}
	if (dev->turn_timer)
		timer = min(timer, dev->turn_timer);
	if (dev->pass_timer)
		timer = min(timer, dev->pass_timer);
	if (dev->policy == &gsc_policy_plan)
		timer = min(timer, dev->data.plan.until);
	list_for_each_entry(client, &dev->clients, node) {
		if (client->resumes)
			timer = min(timer, client->resumes_until);
		if (client->has_windows && client->band->n_clients > 1 && !dev->pass_timer)
			return 7;
	}
	return dev->timer == (timer == U64_MAX ? 0 : timer) ? 0 : 9;
}

/*
 * Every client is in one band, which is that of its equals only, and which lives in one of its
 * members
 */
static int check_members(const struct gsc_device *dev)
{
	const struct gsc_client *client, *first;
	const struct gsc_band *band, *other;
	u32 members = 0, bands = 0, clients;
	bool home;

	list_for_each_entry(band, &dev->bands, node) {
		if (list_empty(&band->members))
			return 60;
		first = list_first_entry(&band->members, struct gsc_client, member);
		clients = 0;
		home = false;
		list_for_each_entry(client, &band->members, member) {
			if (client->band != band || !gsc_same_band(client, first))
				return 61;
			home |= band == &client->own_band;
			clients += !gsc_is_server(client);
			members++;
			if (gsc_is_server(client) && client->n_tasks)
				return 62;
		}
		if (!home || clients != band->n_clients)
			return 63;
		bands += clients != 0;
		list_for_each_entry(other, &dev->bands, node)
			if (other != band &&
			    gsc_same_band(first, list_first_entry(&other->members,
								  struct gsc_client, member)))
				return 64;
	}
	return members == dev->n_clients && bands == dev->n_bands ? 0 : 65;
}

/* The lists that decisions walk hold what they are about, by arrival, and nothing else */
static int check_active(const struct gsc_device *dev)
{
	const struct gsc_client *client, *last_client;
	const struct gsc_band *band, *last = NULL;
	u32 clients, with_tasks = 0, n;

	list_for_each_entry(band, &dev->bands, node) {
		n = 0;
		clients = 0;
		list_for_each_entry(client, &band->members, member) {
			bool active = client->n_tasks || client->hold_units ||
				      client->current_units;

			if (active == list_empty(&client->active) || client->ended)
				return 100;
			if (client->resumes == list_empty(&client->resuming))
				return 101;
			n += client->n_tasks != 0;
			clients += active;
		}
		if (n != band->n_active || list_empty(&band->busy) != list_empty(&band->active))
			return 102;
		with_tasks += n;
		last_client = NULL;
		list_for_each_entry(client, &band->active, active) {
			if (client->band != band || (last_client && client->nr <= last_client->nr))
				return 103;
			last_client = client;
			clients--;
		}
		if (clients)
			return 104;
	}
	list_for_each_entry(band, &dev->busy, busy) {
		if (last && band->nr <= last->nr)
			return 105;
		last = band;
	}
	return with_tasks == dev->n_active && !dev->marked ? 0 : 106;
}

/*
 * Only in sliced mode, only the owner; what progresses slowly is never so short that it does not
 * progress at all
 */
static int check_slices(const struct gsc_device *dev)
{
	const struct gsc_client *client;
	const struct gsc_band *band;
	u32 tiny = 0;

	list_for_each_entry(band, &dev->bands, node) {
		bool slice = dev->mode == GSCHED_MODE_SLICED && band->n_clients;

		if (!band->slice_us == slice || (slice && dev->n_bands < 2))
			return 70;
		if (slice &&
		    (band->slice_us < GSC_SLICE_LEAST_US || band->slice_us > GSC_SLICE_WHOLE_US) &&
		    !(band->lower && band->slice_us == GSC_SLICE_TINY_US))
			return 71;
		tiny += band->slice_us == GSC_SLICE_TINY_US &&
			band->activity == GSCHED_ACTIVITY_BUSY;
		list_for_each_entry(client, &band->members, member) {
			if (client->arb.slice_us !=
			    (gsc_band_owner(band) == client ? band->slice_us : 0))
				return 72;
			if (client->arb.bands != dev->n_bands || !client->arb.share ||
			    client->arb.share > GSCHED_SHARE_ALL)
				return 73;
		}
	}
	return tiny > 1 && dev->n_lower > 1 ? 74 : 0;
}

/*
 * Somebody in its band is more important, and everybody who is has streams of the greatest priority
 */
static bool may_yield(const struct gsc_client *client)
{
	u32 above = 0, prioritised = 0;
	const struct gsc_client *other;

	list_for_each_entry(other, &client->band->members, member) {
		if (gsc_is_server(other) || other->group->priority <= client->group->priority)
			continue;
		above++;
		prioritised += other->prioritised;
	}
	return above && above == prioritised && !client->dev->policy->equals &&
	       !client->dev->policy->no_leases;
}

/*
 * One client in a band of its own, in time slices that it can set, under a policy that leaves it
 * alone
 */
static bool is_private(const struct gsc_client *client)
{
	const struct gsc_device *dev = client->dev;

	if (client->flags & (GSCHED_ATTACH_MPS | GSCHED_ATTACH_SERVER) || client->channel_group ||
	    dev->policy->no_leases)
		return false;
	return dev->mode_set == -1 && dev->mode != GSCHED_MODE_TEMPORAL &&
	       client->band->n_clients == 1 && client->flags & GSCHED_ATTACH_SLICE &&
	       !client->slice_error;
}

static bool leaves_midway(const struct gsc_client *client)
{
	const struct gsc_client *other;
	bool found = false;

	list_for_each_entry(other, &client->dev->clients, node)
		found |= other->resumes && other->band == client->band &&
			 other->group->priority > client->group->priority;
	return found && !client->dev->policy->equals;
}

/* The GPU leaves the band at once, and none of its clients' thread blocks keeps it long */
static bool all_short(const struct gsc_band *band)
{
	const struct gsc_client *client;
	u32 longest = 1, n = 0;

	if (!band->lower || band->slice_us != GSC_SLICE_TINY_US)
		return false;
	list_for_each_entry(client, &band->members, member) {
		n += !gsc_is_server(client);
		if (!gsc_is_server(client))
			longest = max(longest, client->block_us ? client->block_us : U32_MAX);
	}
	return n && longest <= GSC_BLOCK_END_US;
}

/* Clients without promises, among whom nobody has to wait for @client nor it for them */
static bool nobody_waits(const struct gsc_client *client)
{
	const struct gsc_device *dev = client->dev;
	const struct gsc_client *other;
	const struct gsc_group *group;

	if (dev->mode == GSCHED_MODE_TEMPORAL || !dev->policy->passes ||
	    client->band->n_clients < 2)
		return false;
	list_for_each_entry(other, &client->band->members, member) {
		if (gsc_is_server(other))
			continue;
		if (!dev->policy->equals &&
		    ((other->group->priority > client->group->priority && !other->prioritised) ||
		     (other->group->priority < client->group->priority && !client->prioritised)))
			return false;
		for (group = other->group; group->parent; group = group->parent)
			if (group->min || gsc_standby_units(group))
				return false;
	}
	return true;
}

static int check_pass(const struct gsc_client *client)
{
	const struct gsc_client *other;
	const struct gsc_task *task;
	bool kept = false, pass = client->arb.flags & GSCHED_ARB_PASS;
	u32 n = 0;

	list_for_each_entry(other, &client->band->members, member) {
		n += other->has_windows;
		kept |= other->has_windows && other != client;
		list_for_each_entry(task, &other->tasks, peer)
			if (gsc_is_block(task) && !other->has_windows)
				return 120;
	}
	if (n != client->band->n_windows)
		return 121;
	return pass == (!gsc_is_server(client) && !kept && nobody_waits(client)) ? 0 : 122;
}

/*
 * The header words of a client follow from its band, and it is never trusted to launch while its
 * gate is closed
 */
static int check_flags(const struct gsc_client *client)
{
	const struct gsc_band *band = client->band;
	u32 flags = band->flags;
	int ret;

	if (client->arb.share < GSCHED_SHARE_ALL)
		flags |= GSCHED_ARB_REPORT;
	if (band->n_clients == 1)
		flags |= GSCHED_ARB_ALONE;
	if (may_yield(client))
		flags |= GSCHED_ARB_YIELDS;
	if (is_private(client))
		flags |= GSCHED_ARB_PRIVATE;
	if (leaves_midway(client))
		flags |= GSCHED_ARB_RESUMABLE;
	if (band->lower && band->slice_us == GSC_SLICE_TINY_US)
		flags |= GSCHED_ARB_TIMED;
	if (client->held)
		flags |= GSCHED_ARB_HELD;
	if (gsc_memory_limited(client->home))
		flags |= GSCHED_ARB_LIMITED;
	if (gsc_is_server(client))
		flags = 0;
	if (gsc_band_owner(band) == client && all_short(band))
		flags |= GSCHED_ARB_BLOCK_END;
	if ((client->arb.flags & ~GSCHED_ARB_PASS) != flags)
		return 82;
	/* policy hpf looks for it in the list of those that resume */
	if (gsc_is_resumable(client, gsc_top_resuming(band)) != leaves_midway(client))
		return 123;
	ret = check_pass(client);
	if (ret)
		return ret;
	if (client->block_us && !(client->arb.flags & GSCHED_ARB_TIMED))
		return 89;
	if (client->activity != GSCHED_ACTIVITY_IDLE && !(client->arb.flags & GSCHED_ARB_REPORT))
		return 83;
	return gsc_band_closed(band) && client->lease != GSCHED_LEASE_NONE ? 88 : 0;
}

/* Of the lower bands that have work at most one may launch; all may while none has work */
static int check_turns(const struct gsc_device *dev)
{
	u32 contenders = 0, open = 0, lower = 0;
	const struct gsc_client *client;
	const struct gsc_band *band;
	int ret;

	list_for_each_entry(band, &dev->bands, node) {
		lower += band->lower;
		contenders += gsc_contends(band);
		open += band->lower && !(band->flags & GSCHED_ARB_CLOSED);
		if (!band->lower && band->flags & (GSCHED_ARB_CLOSED | GSCHED_ARB_PACED))
			return 80;
		if (!(band->flags & GSCHED_ARB_REPORT) == band->lower)
			return 89;
		if (dev->mode == GSCHED_MODE_SLICED && band == dev->turn &&
		    (!gsc_contends(band) || gsc_band_closed(band)))
			return 81;
		list_for_each_entry(client, &band->members, member) {
			ret = check_flags(client);
			if (ret)
				return ret;
		}
	}
	if (lower != dev->n_lower ||
	    (dev->drain && (lower < 2 || dev->turn || !gsc_contends(dev->drain))))
		return 84;
	if (lower < 2)
		return 0;
	if (contenders && open > 1)
		return 85;
	if (!contenders && open != lower)
		return 86;
	/* one of them has the turn, or a band that drains gives it to one */
	return contenders && !dev->turn && !dev->drain ? 87 : 0;
}

/*
 * A client's tasks share its window, in the order of their arrival up to the first that has nothing
 */
static int check_tasks(const struct gsc_client *client)
{
	const struct gsc_task *task, *last = NULL;
	bool open = true, waits = false, has = false;
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
			if (!task->window)
				return 14;
			continue;
		}
		if (task->window &&
		    (!open || task->window != client->window || task->window < gsc_weight(task)))
			return 16;
		open = open && task->window;
		has |= task->window != 0;
	}
	if (n != client->n_tasks)
		return 17;
	return (client->window != 0) == has ? 0 : 18;
}

static int check_windows(const struct gsc_device *dev, const struct gsc_band *band,
			 const struct gsc_band **owner)
{
	const struct gsc_client *client;
	const struct gsc_task *task;
	u32 tasks = 0, running = 0, opaque = 0;
	int ret;

	list_for_each_entry(client, &band->members, member) {
		ret = check_tasks(client);
		if (ret)
			return ret;
		tasks += client->n_tasks;
		opaque += client->n_opaque;
		if (!client->window)
			continue;
		if (dev->mode == GSCHED_MODE_TEMPORAL && *owner && *owner != band)
			return 23;
		if (gsc_band_closed(band))
			return 25;
		*owner = band;
	}
	list_for_each_entry(task, &band->tasks, node) {
		if (task->client->band != band)
			return 22;
		tasks--;
		running += task->state == GSC_TASK_RUNNING;
	}
	return tasks || running != band->n_running || opaque != band->n_opaque ? 24 : 0;
}

/*
 * Windows and holds never exceed the device. Opaque tasks that a more important client overtook are
 * not counted.
 */
static int check_capacity(const struct gsc_device *dev, const struct gsc_band *band)
{
	const struct gsc_client *client;
	u64 block = 0, held = 0;

	list_for_each_entry(client, &band->members, member) {
		block += gsc_sms(client->window);
		held += gsc_sms(client->hold_got);
	}
	return block + held <= dev->sms ? 0 : 30;
}

/*
 * In each band a group's sum is at most its max; opaque tasks that run are excepted, since a lower
 * max cannot take back what they have. It is at least what the allocator guaranteed, up to one SM
 * for a max that is no whole number of SMs.
 */
static int check_band_group(const struct gsc_device *dev, const struct gsc_band *band,
			    const struct gsc_group *group)
{
	const struct gsc_group_run *run = &group->run;
	u64 sum = 0, block = 0, footprint = 0;
	const struct gsc_client *client;

	list_for_each_entry(client, &band->members, member) {
		if (!is_below(client->group, group))
			continue;
		sum += client->current_units;
		footprint += gsc_sms(client->current_units);
		block += client->window;
	}
	if (block > gsc_group_max(group))
		return 42;
	if (run->seen == band->stamp && band->guarantees && !band->fractional &&
	    dev->mode != GSCHED_MODE_TEMPORAL && sum && !run->claimed_below && run->asked &&
	    footprint < min(run->reserve, run->asked))
		return 43;
	return 0;
}

/* What is counted for a group is counted for those above it */
static bool check_delays(const struct gsc_group *group)
{
	const struct gsc_group *up = group->parent;
	u32 i;

	for (i = 0; up && group->delays && up->delays && i < GSC_DELAY_BUCKETS; i++)
		if (group->delays->n[i] > up->delays->n[i])
			return false;
	return true;
}

static bool check_promise(const struct gsc_device *dev, const struct gsc_group *group)
{
	u64 promise = 0, most = min(dev->sms * GSCHED_CAPSM, group->max);
	const struct gsc_client *client;
	const struct gsc_group *below;
	u32 n = 0;

	list_for_each_entry(below, &group->children, sibling)
		promise += below->promise;
	if (promise != group->promised_below)
		return false;
	list_for_each_entry(client, &dev->clients, node)
		n += client->n_tasks && is_below(client->group, group);
	promise = n ? min(max(promise, (u64)group->min), most) : 0;
	return n == group->n_demanding && promise == group->promise;
}

static int check_group(const struct gsc_device *dev, const struct gsc_group *group)
{
	const struct gsc_client *client;
	const struct gsc_band *band;
	u32 clients = 0, waiting = 0, running = 0;
	u64 sum = 0, memory = 0;
	int ret;

	list_for_each_entry(client, &dev->clients, node) {
		clients += client->home == group;
		waiting += client->waits && is_below(client->group, group);
		running += client->runs && is_below(client->group, group);
		if (is_below(client->group, group)) {
			sum += client->current_units;
			memory += client->memory;
		}
	}
	if (clients != group->clients)
		return 40;
	if (sum != group->current_units)
		return 41;
	if (waiting != group->pressure.waiting || running != group->pressure.running)
		return 44;
	if (memory != group->memory.current_bytes || memory > group->memory.peak)
		return 47;
	if (!check_delays(group))
		return 45;
	if (!check_promise(dev, group))
		return 46;
	list_for_each_entry(band, &dev->bands, node) {
		ret = check_band_group(dev, band, group);
		if (ret)
			return ret;
	}
	return 0;
}

/* A client may be allotted its whole old window out of what it has in reserve */
static u32 held(const struct gsc_band *band, const struct gsc_client *client)
{
	u32 units = client->current_units;

	return band->claims && client->n_tasks ? max(client->alloc, units) : units;
}

/*
 * Capacity of the band's clients at or below @group, holds and what capsm.reserve keeps included.
 * Of the latter nothing is known where another band has used the group's scratch since.
 */
static u64 taken(const struct gsc_band *band, const struct gsc_group *group)
{
	const struct gsc_client *client;
	u64 sum = band->kept_free * GSCHED_CAPSM;

	if (band->claims && group->parent)
		sum = group->run.seen == band->stamp ? group->run.kept_free * GSCHED_CAPSM :
						   gsc_group_max(group);

	list_for_each_entry(client, &band->members, member)
		if (is_below(client->group, group))
			sum += held(band, client) +
			       (u64)gsc_sms(client->hold_got) * GSCHED_CAPSM;
	return sum;
}

/* No task waits while every group above it has room, unless its band's gate is closed */
static int check_waiting(const struct gsc_device *dev, const struct gsc_band *band)
{
	const struct gsc_client *client;
	const struct gsc_group *group;
	const struct gsc_task *task;
	u64 out = band->kept_free;

	if (dev->mode == GSCHED_MODE_TEMPORAL || band->fractional || dev->policy->idles ||
	    gsc_band_closed(band))
		return 0;
	list_for_each_entry(client, &band->members, member)
		out += gsc_sms(held(band, client)) + gsc_sms(client->hold_got);
	if (out >= dev->sms)
		return 0;
	list_for_each_entry(task, &band->tasks, node) {
		if (task->window || (band->late && !task->want))
			continue;
		if (list_first_entry(&task->client->tasks, struct gsc_task, peer)->overdue)
			continue;
		for (group = task->client->seat; group; group = group->parent)
			if (gsc_group_max(group) <= taken(band, group))
				break;
		if (!group)
			return 50;
	}
	return 0;
}

static int check_bands(const struct gsc_device *dev)
{
	const struct gsc_band *band, *owner = NULL;
	int ret = 0;

	list_for_each_entry(band, &dev->bands, node) {
		if (!ret)
			ret = check_windows(dev, band, &owner);
		if (!ret)
			ret = check_capacity(dev, band);
		if (!ret)
			ret = check_waiting(dev, band);
	}
	return ret;
}

/* Evictions that are measured: of tasks that run, and the timer comes for the next look */
static int check_leaving(const struct gsc_device *dev)
{
	const struct gsc_task *task;

	list_for_each_entry(task, &dev->leaving, leaving) {
		if (task->state != GSC_TASK_RUNNING || task->window >= task->evicted_from ||
		    !task->client->cl_page || task->evicted_at > dev->now)
			return 140;
		if (task->client->dev != dev || !dev->armed || dev->armed > task->look_at)
			return 141;
	}
	return 0;
}

static int check_page(const struct gsc_client *client)
{
	const struct gsched_arb_header *header = &client->arb_page->header;
	const struct gsc_task *task;
	u32 slot;

	if (header->lease != client->lease || header->mode != client->dev->mode ||
	    header->flags != client->arb.flags ||
	    header->slice_us != client->arb.slice_us || header->share != client->arb.share)
		return 131;
	/* the window of the old lease stays while launches under it are not yet known */
	if (!client->scan && !client->lease != !client->leased_window)
		return 132;
	for (slot = 0; slot < GSCHED_SLOTS; slot++) {
		u32 window = client->leased_window;

		task = gsc_task_in(client, slot);
		if (task)
			window = task->state == GSC_TASK_RUNNING ? task->window : 0;
		if (client->arb_page->slot[slot].window != window)
			return 133;
	}
	return 0;
}

/* What the GPU and the client read is what was decided */
static int check_pages(const struct gsc_device *dev)
{
	const struct gsc_client *client;
	const struct gsc_task *task;
	u32 n = 0;
	int ret;

	list_for_each_entry(client, &dev->clients, node) {
		list_for_each_entry(task, &client->tasks, peer)
			n += task->adopted && client->cl_page;
		/*
		 * with more launches to adopt than the commit had rounds for, the next one does the
		 * rest
		 */
		ret = client->arb_page && !dev->scan ? check_page(client) : 0;
		if (ret)
			return ret;
	}
	return n == dev->n_adopted ? 0 : 134;
}

static u32 n_limits(const struct gsc_group *group)
{
	return (group->max != GSC_MAX_UNLIMITED) + (group->min != 0) +
	       (gsc_standby_units(group) != 0);
}

int gsc_check(const struct gsc_device *dev)
{
	static int (*const checks[])(const struct gsc_device *dev) = {
		check_clients, check_members, check_active,
		check_timer, check_slices, check_turns, check_bands, check_pages, check_leaving,
	};
	const struct gsc_group *group = &dev->root;
	const struct gsc_client *client;
	u32 i, limits = 0;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(checks) && !ret; i++)
		ret = checks[i](dev);
	/* every group, parents first; no recursion, for this runs in the kernel too */
	while (!ret) {
		ret = check_group(dev, group);
		limits += n_limits(group);
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
	if (ret)
		return ret;
	list_for_each_entry(client, &dev->clients, node)
		limits += n_limits(&client->own);
	return limits == dev->n_limits ? 0 : 135;
}
