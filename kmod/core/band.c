// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bands: which clients share a hardware channel group, what their groups ask for it, the mode that
 * follows, and what each client is told. Slices are in slice.c, turns in turn.c. All of it is
 * decided anew only when dev->bands_stale is set: submitting and completing tasks changes nothing
 * here.
 */
#include "decide.h"

static bool in_space(const struct gsc_client *client)
{
	return client->flags & (GSCHED_ATTACH_MPS | GSCHED_ATTACH_SERVER);
}

bool gsc_same_band(const struct gsc_client *a, const struct gsc_client *b)
{
	if (a == b || a->dev->mode_set == GSCHED_MODE_SPATIAL)
		return true;
	if (a->dev->mode_set == GSCHED_MODE_TEMPORAL)
		return false;
	if (a->channel_group || b->channel_group)
		/* a number is what its client says: nobody gets into another user's band by it */
		return a->channel_group == b->channel_group && a->user == b->user;
	return in_space(a) && in_space(b);
}

static struct gsc_client *first_member(const struct gsc_band *band)
{
	return list_first_entry(&band->members, struct gsc_client, member);
}

static u64 client_nr(const struct list_head *active)
{
	return list_entry(active, struct gsc_client, active)->nr;
}

static u64 band_nr(const struct list_head *busy)
{
	return list_entry(busy, struct gsc_band, busy)->nr;
}

static void activate_band(struct gsc_device *dev, struct gsc_band *band)
{
	struct list_head *after = dev->busy.prev;

	if (!list_empty(&band->busy))
		return;
	while (after != &dev->busy && band_nr(after) > band->nr)
		after = after->prev;
	list_add(&band->busy, after);
}

void gsc_client_activate(struct gsc_client *client)
{
	struct gsc_band *band = client->band;
	struct list_head *after = band->active.prev;

	if (!list_empty(&client->active))
		return;
	activate_band(client->dev, band);
	while (after != &band->active && client_nr(after) > client->nr)
		after = after->prev;
	list_add(&client->active, after);
}

void gsc_client_deactivate(struct gsc_client *client)
{
	if (list_empty(&client->active))
		return;
	list_del_init(&client->active);
	if (!list_empty(&client->band->active))
		return;
	/* no order() will say so */
	client->band->again = 0;
	client->band->watch = 0;
	client->band->late = NULL;
	list_del_init(&client->band->busy);
}

static void open_band(struct gsc_device *dev, struct gsc_band *band)
{
	memset(band, 0, sizeof(*band));
	INIT_LIST_HEAD(&band->busy);
	INIT_LIST_HEAD(&band->members);
	INIT_LIST_HEAD(&band->active);
	INIT_LIST_HEAD(&band->tasks);
	/* behind all that have waited for a turn so far */
	band->served = dev->turns;
	band->vtime = dev->vtime;
	band->nr = dev->next_nr++;
	list_add_tail(&band->node, &dev->bands);
}

/* @band is its own, which is opened, or that of a client that came before */
static void enter_band(struct gsc_client *client, struct gsc_band *band)
{
	struct gsc_task *task;

	if (band == &client->own_band)
		open_band(client->dev, band);
	client->band = band;
	gsc_policy_moved(client);
	list_add_tail(&client->member, &band->members);
	list_for_each_entry(task, &client->tasks, peer) {
		list_add_tail(&task->node, &band->tasks);
		band->n_running += task->state == GSC_TASK_RUNNING;
	}
	band->n_active += client->n_tasks != 0;
	band->n_tasks += client->n_tasks;
	band->n_opaque += client->n_opaque;
	gsc_pass_join(client);
	client->dev->bands_stale = true;
}

static bool is_active(const struct gsc_client *client)
{
	return client->n_tasks || client->current_units;
}

void gsc_band_join(struct gsc_client *client)
{
	struct gsc_device *dev = client->dev;
	struct gsc_band *band, *found = &client->own_band;

	list_for_each_entry(band, &dev->bands, node)
		if (gsc_same_band(client, first_member(band))) {
			found = band;
			break;
		}
	enter_band(client, found);
	if (is_active(client))
		gsc_client_activate(client);
}

/* As a node of a list, or as the head of one */
static void replace(struct list_head *from, struct list_head *to)
{
	list_add(to, from);
	list_del_init(from);
}

static struct gsc_client *middle_member(const struct gsc_band *band)
{
	struct gsc_client *middle = first_member(band), *client;
	bool odd = false;

	list_for_each_entry(client, &band->members, member) {
		if (odd)
			middle = list_next_entry(middle, member);
		odd = !odd;
	}
	return middle;
}

/*
 * The member that the band lives in leaves: it moves to the one in the middle. Whether all members
 * leave in the order in which they came or the other way round, it moves a logarithmic number of
 * times, so that all of them together take time linear in their number.
 */
static void rehome(struct gsc_band *band)
{
	struct gsc_band *heir = &middle_member(band)->own_band;
	struct gsc_device *dev = gsc_band_device(band);
	struct gsc_client *client;

	*heir = *band;
	replace(&band->node, &heir->node);
	replace(&band->busy, &heir->busy);
	replace(&band->members, &heir->members);
	replace(&band->active, &heir->active);
	replace(&band->tasks, &heir->tasks);
	list_for_each_entry(client, &heir->members, member)
		client->band = heir;
	gsc_turn_forget(dev, band, heir);
}

/* All but that the band itself stays where it is, even if that is in @client */
static void leave_band(struct gsc_client *client)
{
	struct gsc_device *dev = client->dev;
	struct gsc_band *band = client->band;
	struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer) {
		list_del_init(&task->node);
		band->n_running -= task->state == GSC_TASK_RUNNING;
	}
	band->n_active -= client->n_tasks != 0;
	band->n_tasks -= client->n_tasks;
	band->n_opaque -= client->n_opaque;
	gsc_pass_leave(client);
	gsc_client_deactivate(client);
	list_del_init(&client->member);
	client->band = NULL;
	dev->bands_stale = true;
	if (list_empty(&band->members)) {
		list_del_init(&band->node);
		gsc_turn_forget(dev, band, NULL);
	}
}

/* The caller dropped its hold */
void gsc_band_leave(struct gsc_client *client)
{
	struct gsc_band *band = client->band;

	leave_band(client);
	if (band == &client->own_band && !list_empty(&band->members))
		rehome(band);
}

static int compare_channel_groups(void *priv, const struct list_head *a, const struct list_head *b)
{
	const struct gsc_client *x = list_entry(a, struct gsc_client, member);
	const struct gsc_client *y = list_entry(b, struct gsc_client, member);

	if (x->channel_group != y->channel_group)
		return x->channel_group > y->channel_group;
	return x->channel_group && x->user > y->user;
}

/* Those for whom gsc_same_band() may hold: equals are neighbours then, by arrival */
static void sort_equals(struct gsc_device *dev, struct list_head *sorted)
{
	struct gsc_client *client;

	INIT_LIST_HEAD(sorted);
	if (dev->mode_set == GSCHED_MODE_TEMPORAL)
		return;
	list_for_each_entry(client, &dev->clients, node)
		if (dev->mode_set == GSCHED_MODE_SPATIAL || client->channel_group ||
		    in_space(client))
			list_add_tail(&client->member, sorted);
	if (dev->mode_set != GSCHED_MODE_SPATIAL)
		list_sort(NULL, sorted, compare_channel_groups);
}

/* The same bands as if all clients attached one after the other, but without a search for each */
void gsc_bands_rebuild(struct gsc_device *dev)
{
	struct gsc_client *client, *next, *first = NULL;
	struct list_head sorted;
	struct gsc_band *band;

	list_for_each_entry(client, &dev->clients, node) {
		gsc_hold_drop(client);
		leave_band(client);
		client->band = &client->own_band;
	}
	sort_equals(dev, &sorted);
	list_for_each_entry_safe(client, next, &sorted, member) {
		if (!first || !gsc_same_band(first, client))
			first = client;
		client->band = &first->own_band;
		list_del_init(&client->member);
	}
	list_for_each_entry(client, &dev->clients, node)
		enter_band(client, client->band);
	/* in the order of both lists: nothing is searched for in them */
	list_for_each_entry(band, &dev->bands, node)
		list_for_each_entry(client, &band->members, member)
			if (is_active(client))
				gsc_client_activate(client);
}

struct gsc_client *gsc_band_owner(const struct gsc_band *band)
{
	struct gsc_client *client, *owner = NULL;

	list_for_each_entry(client, &band->members, member) {
		if (gsc_is_server(client))
			return client;
		if (!owner ||
		    (!(owner->flags & GSCHED_ATTACH_SLICE) && client->flags & GSCHED_ATTACH_SLICE))
			owner = client;
	}
	/* the channel group of MPS clients is their server's */
	return band->mps ? NULL : owner;
}

bool gsc_band_can_slice(const struct gsc_band *band)
{
	const struct gsc_client *owner = gsc_band_owner(band);

	return !owner || (owner->flags & GSCHED_ATTACH_SLICE && !owner->slice_error);
}

/* What the clients of each group weigh, by users, and how many at or below it are active */
static void count_groups(struct gsc_device *dev)
{
	struct gsc_client *client;
	struct gsc_group *group, *user;

	list_for_each_entry(client, &dev->clients, node)
		for (group = client->group; group; group = group->parent) {
			group->tally.weights = 0;
			group->tally.active = 0;
		}
	list_for_each_entry(client, &dev->clients, node) {
		if (gsc_is_server(client))
			continue;
		user = client->own.parent;
		if (user == client->home) {
			user->tally.weights += client->own.weight;
		} else {
			if (!user->tally.weights)
				client->home->tally.weights += user->weight;
			user->tally.weights += client->own.weight;
		}
		for (group = client->group; group; group = group->parent)
			group->tally.active += client->activity != GSCHED_ACTIVITY_IDLE;
	}
}

/* The client's part of its group's weight */
static u64 weight_of(const struct gsc_client *client)
{
	const struct gsc_group *home = client->home, *user = client->own.parent;
	u64 weight = (u64)home->weight * GSC_BAND_WEIGHT_SCALE;
	u32 of_user = user == home ? client->own.weight : user->weight;

	/* below the root every user counts like a group; weights are 10^4 at most */
	weight = div64_u64(weight * of_user,
			   home->parent ? home->tally.weights : GSC_WEIGHT_DEFAULT);
	return user == home ? weight : div64_u64(weight * client->own.weight, user->tally.weights);
}

/*
 * The group whose capsm.min holds for clients of @group: the uppermost one below the root that has
 * one
 */
static struct gsc_group *promising(struct gsc_group *group)
{
	struct gsc_group *found = NULL;

	for (; group->parent; group = group->parent)
		if (group->min)
			found = group;
	return found;
}

static void add_group(struct gsc_band *band, struct gsc_group *group, u64 stamp)
{
	struct gsc_group *promise = promising(group);

	if (group->latency_us && (!band->latency_us || group->latency_us < band->latency_us))
		band->latency_us = group->latency_us;
	for (; group->parent; group = group->parent)
		band->standby |= gsc_standby_units(group) != 0;
	if (promise && promise->tally.seen != stamp) {
		promise->tally.seen = stamp;
		band->promised += min(promise->min, U32_MAX - band->promised);
	}
}

static void update_attributes(struct gsc_band *band)
{
	u64 stamp = ++gsc_band_device(band)->stamp;
	struct gsc_client *client;

	band->n_clients = 0;
	band->priority = 0;
	band->n_top = 0;
	band->latency_us = 0;
	band->promised = 0;
	band->weight = 0;
	band->mps = false;
	band->standby = false;
	band->activity = GSCHED_ACTIVITY_IDLE;
	list_for_each_entry(client, &band->members, member) {
		band->mps |= in_space(client);
		if (gsc_is_server(client))
			continue;
		band->n_clients++;
		if (client->group->priority > band->priority)
			band->n_top = 0;
		band->priority = max(band->priority, client->group->priority);
		band->n_top += client->group->priority == band->priority;
		/*
		 * BUSY is the larger number: work on the GPU counts for more than work that waits
		 */
		band->activity = max(band->activity, client->activity);
		band->weight += weight_of(client);
		add_group(band, client->home, stamp);
	}
	/* one part of a small weight in many bands still counts */
	band->weight = max(band->weight, (u64)1);
}

/*
 * Time slices need a band of the most important ones that can set its own. Any other band without
 * has the driver's, and is as good or bad a neighbour as without gsched: it does not cost the
 * others theirs.
 */
static bool has_slices(const struct gsc_device *dev)
{
	const struct gsc_band *band;
	bool without = false;

	list_for_each_entry(band, &dev->bands, node) {
		if (!band->n_clients)
			continue;
		if (!gsc_band_can_slice(band))
			without = true;
		else if (gsc_band_owner(band) &&
			 (band->priority == dev->top_priority || dev->policy->equals))
			return true;
	}
	return !without;
}

static void choose_mode(struct gsc_device *dev)
{
	u32 mode = GSCHED_MODE_SPATIAL;

	if (dev->mode_set >= 0)
		mode = (u32)dev->mode_set;
	else if (!dev->n_bands)
		mode = GSCHED_MODE_TEMPORAL;
	else if (dev->n_bands > 1)
		mode = has_slices(dev) ? GSCHED_MODE_SLICED : GSCHED_MODE_TEMPORAL;
	if (mode != dev->mode) {
		dev->turn = NULL;
		dev->drain = NULL;
	}
	dev->mode = mode;
}

void gsc_bands_update(struct gsc_device *dev)
{
	struct gsc_band *band;
	u32 top = 0;

	count_groups(dev);
	dev->n_bands = 0;
	dev->n_lower = 0;
	dev->n_programs = 0;
	dev->n_top = 0;
	list_for_each_entry(band, &dev->bands, node) {
		update_attributes(band);
		dev->n_bands += band->n_clients != 0;
		dev->n_programs += band->n_clients;
		top = max(top, band->priority);
	}
	dev->top_priority = top;
	choose_mode(dev);
	list_for_each_entry(band, &dev->bands, node) {
		band->lower = dev->mode == GSCHED_MODE_SLICED && !dev->policy->equals &&
			      band->n_clients && band->priority < top;
		dev->n_lower += band->lower;
		dev->n_top += band->priority == top ? band->n_top : 0;
	}
	gsc_turns_update(dev);
	gsc_slices_update(dev);
}

/*
 * A max is a share of the device's time too, for work that no window can hold; those of a group who
 * are active divide it
 */
static u32 share_of(const struct gsc_client *client)
{
	u32 whole = client->dev->sms * GSCHED_CAPSM, share = GSCHED_SHARE_ALL;
	const struct gsc_group *group;
	u64 part;

	for (group = client->group; group; group = group->parent) {
		if (group->max >= whole)
			continue;
		part = div_u64(div_u64((u64)group->max * GSCHED_SHARE_ALL, whole),
			       max_t(u32, group->tally.active, 1));
		share = min_t(u32, share, part);
	}
	return max_t(u32, share, 1);
}

/*
 * The hardware serves streams of greater priority first, as soon as blocks end. So kernels with
 * short blocks need no windows beside more important clients that use such streams.
 */
static bool yields(const struct gsc_client *client, const struct gsc_ranks *ranks)
{
	const struct gsc_policy *policy = client->dev->policy;

	return client->group->priority < client->band->priority &&
	       gsc_is_below_ordered(client, ranks) && !policy->equals && !policy->no_leases;
}

/*
 * No other client can come into its band, and the GPU's slices keep the bands apart: where nothing
 * limits it, no launch needs a window.
 */
static bool private_band(const struct gsc_client *client)
{
	const struct gsc_device *dev = client->dev;

	return dev->mode_set < 0 && dev->mode != GSCHED_MODE_TEMPORAL && !dev->policy->no_leases &&
	       !in_space(client) && !client->channel_group && gsc_band_can_slice(client->band);
}

/* The GPU leaves it as soon as a band above has work */
static bool is_left_early(const struct gsc_band *band)
{
	return band->lower && band->slice_us == GSC_SLICE_TINY_US;
}

/*
 * A switch in the middle of thread blocks saves all that they have; where all of them are short,
 * the band above has the GPU as soon at their ends, and less is lost: on an H200 training kept 89 %
 * for 84 beside a request of 0.8 ms each 5 ms (docs/measurements/2026-11-23-programs-h200.md).
 * Where one client's are long, or not known, the band above would wait for them.
 */
bool gsc_band_ends_blocks(const struct gsc_band *band)
{
	const struct gsc_client *client;

	if (!is_left_early(band) || !band->n_clients)
		return false;
	list_for_each_entry(client, &band->members, member)
		if (!gsc_is_server(client) &&
		    (!client->block_us || client->block_us > GSC_BLOCK_END_US))
			return false;
	return true;
}

static struct gsc_ranks ranks_of(const struct gsc_band *band)
{
	struct gsc_ranks ranks = { .least = GSC_PRIORITY_MAX };
	const struct gsc_client *client;
	u32 priority;

	list_for_each_entry(client, &band->members, member) {
		if (gsc_is_server(client))
			continue;
		priority = client->group->priority;
		ranks.least = min(ranks.least, priority);
		if (!client->prioritised)
			ranks.top_unordered = max(ranks.top_unordered, priority);
		if (client->resumes)
			ranks.top_resuming = max(ranks.top_resuming, priority);
	}
	return ranks;
}

static struct gsc_arb words_for(const struct gsc_client *client, const struct gsc_client *owner,
				const struct gsc_ranks *ranks)
{
	const struct gsc_band *band = client->band;
	struct gsc_arb arb = { .bands = client->dev->n_bands, .share = GSCHED_SHARE_ALL };

	if (owner == client) {
		arb.slice_us = band->slice_us;
		arb.flags = gsc_band_ends_blocks(band) ? GSCHED_ARB_BLOCK_END : 0;
	}
	if (gsc_is_server(client))
		return arb;
	arb.flags |= band->flags | (band->n_clients == 1 ? GSCHED_ARB_ALONE : 0);
	if (is_left_early(band))
		arb.flags |= GSCHED_ARB_TIMED;
	if (yields(client, ranks))
		arb.flags |= GSCHED_ARB_YIELDS;
	if (private_band(client))
		arb.flags |= GSCHED_ARB_PRIVATE;
	if (gsc_may_pass(client, ranks))
		arb.flags |= GSCHED_ARB_PASS;
	if (gsc_is_resumable(client, ranks->top_resuming))
		arb.flags |= GSCHED_ARB_RESUMABLE;
	if (client->held)
		arb.flags |= GSCHED_ARB_HELD;
	if (gsc_memory_limited(client->home))
		arb.flags |= GSCHED_ARB_LIMITED;
	arb.in_flight_us = band->flags & GSCHED_ARB_PACED ? GSC_IN_FLIGHT_US : 0;
	arb.share = share_of(client);
	if (arb.share < GSCHED_SHARE_ALL)
		arb.flags |= GSCHED_ARB_REPORT;
	return arb;
}

static void publish(struct gsc_client *client, struct gsc_arb arb)
{
	const struct gsc_ops *ops = client->dev->ops;
	struct gsc_arb old = client->arb;

	if (!(arb.flags & GSCHED_ARB_REPORT))
		client->activity = GSCHED_ACTIVITY_IDLE;
	gsc_pressure_update(client);
	if (!(arb.flags & GSCHED_ARB_TIMED))
		client->block_us = 0;
	if (arb.flags == old.flags && arb.slice_us == old.slice_us && arb.bands == old.bands &&
	    arb.share == old.share && arb.in_flight_us == old.in_flight_us)
		return;
	if (arb.flags & ~old.flags & GSCHED_ARB_CLOSED)
		gsc_event(client->group, GSC_EVENT_GATED);
	client->arb = arb;
	if (arb.flags & ~old.flags & GSCHED_ARB_YIELDS)
		gsc_pass_yields(client);
	gsc_page_band(client);
	if (ops->set_band)
		ops->set_band(client, &old);
}

/* Under the device's lock, for every attach: linear in the clients, whatever bands they are in */
void gsc_bands_publish(struct gsc_device *dev)
{
	const struct gsc_client *owner;
	struct gsc_client *client;
	struct gsc_ranks ranks;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->bands, node) {
		owner = gsc_band_owner(band);
		ranks = ranks_of(band);
		list_for_each_entry(client, &band->members, member)
			publish(client, words_for(client, owner, &ranks));
	}
}

int gsc_client_report(struct gsc_client *client, struct gsched_report *req, u64 now)
{
	const u32 memory = GSCHED_REPORT_MEMORY | GSCHED_REPORT_ASKS;
	struct gsc_device *dev = client->dev;
	int ret;

	if (!dev || req->activity > GSCHED_ACTIVITY_BUSY || req->slice_error > GSC_ERRNO_MAX ||
	    req->prioritised > 1 || req->memory > GSCHED_MEMORY_MAX ||
	    (req->flags & memory) == GSCHED_REPORT_ASKS)
		return -EINVAL;
	if (req->flags & GSCHED_REPORT_MEMORY) {
		ret = gsc_memory_set(client, req->memory, req->flags & GSCHED_REPORT_ASKS);
		gsc_memory_room(client->home, &req->memory_max, &req->memory_room);
		/* no decision depends on it */
		if (ret || !(req->flags & ~memory))
			return ret;
	}
	gsc_mark(dev, now);
	if (req->flags & GSCHED_REPORT_SLICE) {
		client->slice_us = req->slice_us;
		/*
		 * setting the driver's own slice again, in temporal mode, says nothing of one that
		 * it refused
		 */
		if (req->slice_error || client->arb.slice_us || client->slice_error == EOPNOTSUPP)
			client->slice_error = req->slice_error;
	}
	if (req->flags & GSCHED_REPORT_ACTIVITY && client->arb.flags & GSCHED_ARB_REPORT)
		client->activity = req->activity;
	if (req->flags & GSCHED_REPORT_STREAMS)
		client->prioritised = req->prioritised;
	if (req->flags & GSCHED_REPORT_BLOCKS && client->arb.flags & GSCHED_ARB_TIMED)
		client->block_us = req->block_us;
	dev->bands_stale = true;
	return 0;
}
