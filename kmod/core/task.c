// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks: submit and complete, what they are charged, and how a new allocation becomes their
 * windows.
 */
#include "decide.h"

#define SIZES	4	/* tasks that end between two looks at what is the largest */
#define GAP_FADES	64	/* submits in which the longest gap loses most of its weight */
#define PAUSE_FACTOR	8	/* the longest pause counts for so many times the usual one */
#define INTERVAL_NS_MIN	1000ULL
/* an hour is as good as never, and cannot overflow */
#define INTERVAL_NS_MAX	3600000000000ULL

/*
 * What the task would occupy alone. The hardware spreads blocks over the SMs, one each as long as
 * there are SMs: a kernel of 8 blocks runs on 8 SMs, and is as fast as that only there.
 */
static u32 spread(const struct gsc_device *dev, u64 blocks)
{
	return (blocks < dev->sms ? (u32)blocks : dev->sms) * GSCHED_CAPSM;
}

/*
 * The least that holds all its blocks at once, ceil(blocks / M) CapSM (SMGuard 4.1; "only as many
 * SMs as needed", FLEP 4.3), or more than there is. Usage is counted by it, the demand is not:
 * packed M to an SM the blocks of a short kernel slow each other down.
 */
static u32 packed(const struct gsc_device *dev, const struct gsc_task *task)
{
	/* blocks may be any 64-bit number */
	if (task->blocks >= (u64)dev->sms * task->blocks_per_sm)
		return U32_MAX;
	return (u32)task->blocks * gsc_weight(task);
}

#define UNIT_NS_PER_US	(1000 * GSCHED_CAPSM)

void gsc_sum_add(struct gsc_sum *sum, u64 ns, u32 units)
{
	u64 whole = div_u64(ns, UNIT_NS_PER_US);
	u64 part = (ns - whole * UNIT_NS_PER_US) * units + sum->rest;
	u64 us = div_u64(part, UNIT_NS_PER_US);

	sum->us += whole * units + us;
	sum->rest = (u32)(part - us * UNIT_NS_PER_US);
}

void gsc_sum_add_units(struct gsc_sum *sum, u64 unit_ns)
{
	u64 us = div_u64(unit_ns, UNIT_NS_PER_US);

	sum->us += us;
	gsc_sum_add(sum, unit_ns - us * UNIT_NS_PER_US, 1);
}

static void sum_add_ns(struct gsc_sum *sum, u64 ns)
{
	if (ns)
		gsc_sum_add(sum, ns, GSCHED_CAPSM);
}

/* @ns times @units more, where that fits */
static u64 saturated(u64 usage, u64 ns, u32 units)
{
	u64 more;

	return check_mul_overflow(ns, (u64)units, &more) ||
	       check_add_overflow(usage, more, &usage) ? U64_MAX : usage;
}

/*
 * Charge what was used in the last @ns. A client is charged for its capacity once, however many of
 * its tasks share it: for the largest of them, and each of them for what it adds to those before
 * it.
 */
void gsc_client_charge_ns(struct gsc_client *client, u64 ns)
{
	u32 units, most = 0;
	struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer) {
		/* 0 for those that wait */
		units = gsc_packed(task, min(task->window, client->current_units));
		if (units <= most)
			continue;
		task->usage = saturated(task->usage, ns, units - most);
		most = units;
	}
	if (!most)
		return;
	if (client->dev->policy->charge)
		client->dev->policy->charge(client, ns * most);
	if (ns < GSC_DEMAND_NS_MAX && client->used < GSC_DEMANDED_MAX) {
		client->used += ns * most;
		client->granted_ns += ns;
	} else {
		gsc_used_charge_long(client, ns, most);
	}
}

static void set_window(struct gsc_task *task, u32 window, enum gsc_change why)
{
	struct gsc_device *dev = task->client->dev;
	struct gsc_group *group;
	u64 waited;
	u32 old;

	gsc_client_charge(task->client);
	if (why == GSC_GRANT) {
		task->state = GSC_TASK_RUNNING;
		task->client->band->n_running++;
		task->granted = dev->now;
		/* adopted in this commit: it did not wait, but has run since its launch */
		if (task->is_new && task->before_ns) {
			task->granted -= task->before_ns;
			task->submitted = task->granted;
		}
		waited = task->granted - task->submitted;
		for (group = waited ? task->client->group : NULL; group; group = group->parent)
			gsc_sum_add(&group->stats.wait, waited, GSCHED_CAPSM);
	}
	if (gsc_delay_is_measured(task) && why == GSC_GROW)
		gsc_delay_grow(task);
	old = task->window;
	task->window = window;
	task->client->counts.changes[why]++;
	gsc_page_window(task);
	if (why == GSC_EVICT) {
		task->evictions++;
		dev->n_events++;
		if (task->client->cl_page)
			gsc_delay_begin(task, old);
	}
	if (dev->ops->set_window)
		dev->ops->set_window(task, why);
}

static void settle_client(struct gsc_client *client, u32 window, u32 units)
{
	u32 old = client->current_units;
	struct gsc_group *group;

	client->window = window;
	if (units == old)
		return;
	gsc_client_charge(client);
	client->current_units = units;
	for (group = client->home; group; group = group->parent)
		group->current_units += units - old;
}

void gsc_tasks_evict(struct gsc_band *band)
{
	struct gsc_task *task;
	u32 window;

	list_for_each_entry(task, &band->tasks, node) {
		window = gsc_new_window(task);
		if (task->state == GSC_TASK_RUNNING && window < task->window)
			set_window(task, window, GSC_EVICT);
	}
}

void gsc_tasks_grant(struct gsc_band *band)
{
	struct gsc_client *client, *next;
	struct gsc_task *task;
	u32 window;

	list_for_each_entry(task, &band->tasks, node) {
		if (task->state == GSC_TASK_WAITING) {
			if (task->alloc)
				set_window(task, task->alloc, GSC_GRANT);
			continue;
		}
		window = gsc_new_window(task);
		if (window != task->window)
			set_window(task, window, GSC_GROW);
	}
	list_for_each_entry_safe(client, next, &band->active, active) {
		if (client->n_tasks)
			settle_client(client, client->run.window, client->run.units);
		else
			settle_client(client, 0, 0);
		gsc_pressure_update(client);
		/* whoever has nothing any more costs the next decisions nothing */
		if (!client->n_tasks && !client->current_units && !client->hold_units)
			gsc_client_deactivate(client);
	}
}

static u32 taken_by_all(const struct gsc_band *band)
{
	const struct gsc_client *client;
	u32 taken = 0;

	list_for_each_entry(client, &band->active, active)
		taken += gsc_sms(client->current_units);
	return taken;
}

/*
 * SMs that a task can use: its window, or for an opaque one what no other client of its band has.
 * @taken: what all clients have, U32_MAX not yet known
 */
static u32 room_of(const struct gsc_task *task, u32 *taken)
{
	u32 sms = task->client->dev->sms, others;

	if (gsc_is_block(task))
		return gsc_sms(task->window);
	if (*taken == U32_MAX)
		*taken = taken_by_all(task->client->band);
	others = *taken - gsc_sms(task->client->current_units);
	return sms - min(others, sms);
}

void gsc_tasks_measure(struct gsc_band *band)
{
	u32 taken = U32_MAX;
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node) {
		if (!task->is_new)
			continue;
		if (task->state == GSC_TASK_RUNNING && gsc_is_recurring(task->client))
			task->room = room_of(task, &taken);
		if (task->state == GSC_TASK_WAITING) {
			gsc_event(task->client->group, GSC_EVENT_THROTTLED);
			gsc_page_waits(task);
		}
		task->is_new = false;
	}
}

/* Its page is looked at for its end */
static bool is_polled(const struct gsc_task *task)
{
	return task->adopted && task->client->cl_page;
}

/* A task leaves the device */
void gsc_task_end(struct gsc_task *task)
{
	struct gsc_client *client = task->client;
	struct gsc_device *dev = client->dev;
	struct gsc_band *band = client->band;

	gsc_client_charge(client);
	if (gsc_delay_is_measured(task))
		gsc_delay_end(task, true);
	list_del_init(&task->node);
	list_del_init(&task->peer);
	band->n_tasks--;
	band->n_running -= task->state == GSC_TASK_RUNNING;
	if (!--client->n_tasks) {
		client->demand = 0;
		band->n_active--;
		dev->n_active--;
		gsc_promise_end(client);
	} else if (task->demand == client->demand) {
		gsc_demand_shrink(client);
	}
	client->last_end = dev->now;
	if (gsc_is_block(task)) {
		client->window_seen = dev->now;
	} else {
		client->n_opaque--;
		band->n_opaque--;
	}
	task->state = GSC_TASK_NONE;
	dev->n_adopted -= is_polled(task);
	gsc_page_empty(client, task->slot);
	if (dev->ops->done)
		dev->ops->done(task);
}

/*
 * The pause between a program's first kernel and its work says nothing of when its kernels come,
 * and one among many kernels little: it counts for so much at most.
 */
static void note_pause(struct gsc_client *client, u64 passed)
{
	u64 had = client->interval;

	if (client->has_paused) {
		if (had)
			passed = (7 * had + min(passed, PAUSE_FACTOR * had)) / 8;
		client->interval = min(max(passed, INTERVAL_NS_MIN), INTERVAL_NS_MAX);
	}
	client->has_paused = true;
}

/* GSCHED_ARB_HELD, by what the first task of a client that was idle has found */
static void note_held(struct gsc_client *client)
{
	bool held = client->hold_units && client->hold_got >= client->hold_units &&
		    gsc_size_is_known(client);

	if (client->held != held)
		client->dev->bands_stale = true;
	client->held = held;
}

static void note_submit(struct gsc_client *client, u32 demand)
{
	u64 now = client->dev->now, passed = now - client->last_submit;

	if (client->last_submit) {
		note_pause(client, passed);
		client->gap -= client->gap / GAP_FADES;
		if (passed <= gsc_hold_ns_max(client))
			client->gap = max(client->gap, passed);
		if (passed > client->gap / 2) {
			client->burst_before = client->burst;
			client->burst = 0;
		}
	}
	client->burst = min_t(u32, client->burst + 1, 1 << 20);
	client->last_submit = now;
	if (client->n_tasks == 1)
		note_held(client);
	/*
	 * this is what the capacity was kept free for; for a smaller one it goes on making up what
	 * is missing
	 */
	if (client->hold_units && client->hold_units <= demand)
		gsc_hold_drop(client);
}

/* The memory of the slot's tasks; NULL: there is none */
static struct gsc_task *task_of(struct gsc_client *client, u32 slot)
{
	struct gsc_task *task = client->task[slot];

	if (task || !client->dev->ops->new_task)
		return task;
	task = client->dev->ops->new_task(client, slot);
	if (!task)
		return NULL;
	task->client = client;
	task->slot = slot;
	INIT_LIST_HEAD(&task->node);
	INIT_LIST_HEAD(&task->peer);
	INIT_LIST_HEAD(&task->leaving);
	WRITE_ONCE(client->task[slot], task);
	return task;
}

static int begin_task(struct gsc_client *client, const struct gsched_submit *req, bool adopted,
		      u64 now)
{
	struct gsc_device *dev = client->dev;
	struct gsc_task *task;

	if (!dev || gsc_is_server(client) || req->slot >= GSCHED_SLOTS || !req->seq ||
	    req->tier > GSCHED_TIER_LAUNCH || req->intensity > GSCHED_INTENSITY__MAX ||
	    !req->blocks_per_sm || req->blocks_per_sm > GSC_BLOCKS_PER_SM_MAX || !req->blocks)
		return -EINVAL;
	if (req->tier == GSCHED_TIER_SLICE)
		return -EOPNOTSUPP;
	task = task_of(client, req->slot);
	if (!task)
		return -ENOMEM;
	if (!adopted)
		gsc_page_submit(task, req->seq, now);
	if (task->state != GSC_TASK_NONE)
		return -EBUSY;
	gsc_mark(dev, now);
	/* @ended may be this slot's task, and the hold is for this one */
	if (client->ended)
		gsc_hold_start(client);
	task->state = GSC_TASK_WAITING;
	task->seq = req->seq;
	task->tier = req->tier;
	task->blocks_per_sm = req->blocks_per_sm;
	task->intensity = req->intensity;
	task->adopted = adopted;
	dev->n_adopted += is_polled(task);
	task->blocks = req->blocks;
	task->predicted_ns = req->predicted_ns;
	task->block_ns = req->block_ns;
	task->stream = req->stream;
	task->window = 0;
	task->submitted = dev->now;
	task->granted = 0;
	task->ran = 0;
	task->usage = 0;
	task->before_ns = 0;
	task->evictions = 0;
	task->id = dev->next_id++;
	task->demand = spread(dev, req->blocks);
	task->packed = packed(dev, task);
	task->room = 0;
	task->overdue = false;
	task->chained = false;
	task->late = false;
	task->late_again = 0;
	task->late_from = 0;
	task->is_new = true;
	dev->submitted = true;
	gsc_protect_submitted(task);
	if (gsc_is_block(task)) {
		gsc_pass_window(client);
	} else {
		client->n_opaque++;
		client->band->n_opaque++;
	}
	gsc_client_charge(client);
	list_add_tail(&task->node, &client->band->tasks);
	list_add_tail(&task->peer, &client->tasks);
	client->band->n_tasks++;
	client->demand = max(client->demand, task->demand);
	if (!client->n_tasks++) {
		client->band->n_active++;
		dev->n_active++;
		gsc_promise_begin(client);
	}
	if (list_empty(&client->active))
		gsc_client_activate(client);
	note_submit(client, task->demand);
	return 0;
}

int gsc_submit(struct gsc_client *client, const struct gsched_submit *req, u64 now)
{
	return begin_task(client, req, false, now);
}

int gsc_adopt(struct gsc_client *client, const struct gsched_submit *req, u64 since, u64 now)
{
	int ret = begin_task(client, req, true, now);

	if (!ret && since >= client->attached_at && since < client->dev->now)
		client->task[req->slot]->before_ns = client->dev->now - since;
	return ret;
}

/*
 * What a task could fill: what it had, but neither what others left it beyond its demand nor less
 * because it needs no more
 */
static u32 fillable(const struct gsc_client *client, const struct gsc_task *ended)
{
	u32 units = min(ended->window, ended->demand), whole;
	const struct gsc_group *group;

	if (!client->sizes.tried)
		return units;
	whole = min(client->sizes.whole * GSCHED_CAPSM, ended->demand);
	for (group = client->group; group; group = group->parent)
		whole = min(whole, group->max);
	return max(units, whole);
}

/*
 * Notes a task that ended. The largest of the last SIZES to 2 * SIZES - 1 is what the next one is
 * likely to fill at most
 */
static void note_size(struct gsc_client *client, const struct gsc_task *ended)
{
	if (client->n_recent == SIZES) {
		client->size_before = client->size_recent;
		client->size_recent = 0;
		client->blocks_before = client->blocks_recent;
		client->blocks_recent = 0;
		client->n_recent = 0;
	}
	client->n_recent++;
	client->size_recent = max(client->size_recent, fillable(client, ended));
	client->blocks_recent = max(client->blocks_recent, ended->blocks);
}

static bool may_hold(const struct gsc_device *dev)
{
	return dev->policy->hold && dev->mode != GSCHED_MODE_TEMPORAL;
}

/* A task ended that had capacity */
static void learn(struct gsc_client *client, struct gsc_task *ended)
{
	u32 size;

	note_size(client, ended);
	if (!may_hold(client->dev))
		return;
	size = max(client->size_recent, client->size_before);
	gsc_size_learn(client, ended, gsc_sms(size),
		       max(client->blocks_recent, client->blocks_before));
	client->ended = ended;
	client->dev->ended = true;
}

/* Of several tasks of a client that ended since the last commit the last one counts */
void gsc_hold_start(struct gsc_client *client)
{
	u32 size = max(client->size_recent, client->size_before), part = gsc_size_units(client);
	const struct gsc_task *ended = client->ended;
	struct gsc_device *dev = client->dev;
	u64 ns, ran;

	client->ended = NULL;
	if (!may_hold(dev) || !gsc_standby_is_auto(client))
		return;
	size = part ? min(size, part) : size;
	ran = gsc_size_ns(client);
	if (!ran)
		ran = ended->ran ? ended->ran : dev->now - ended->granted;
	gsc_protect(client, ran, size);
	ns = dev->policy->hold(dev, ended, dev->now);
	if (ns > gsc_hold_ns_max(client))
		gsc_policy_replace(dev, "hold() keeps capacity free for too long");
	if (!ns || ns > gsc_hold_ns_max(client))
		return;
	if (!client->hold_units)
		client->band->n_holds++;
	client->hold_units = gsc_protect_units(client, size);
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
	task = gsc_task_in(client, req->slot);
	if (!task || task->seq != req->seq)
		return -ENOENT;
	gsc_mark(dev, now);
	ran = task->state == GSC_TASK_RUNNING && !(req->flags & GSCHED_COMPLETE_CANCEL);
	if (ran)
		task->ran = min((u64)req->ran_ns, dev->now - task->granted);
	client->counts.tasks += ran;
	client->counts.cancelled += !ran;
	for (group = task->ran ? client->group : NULL; group; group = group->parent)
		gsc_sum_add(&group->stats.ran, task->ran, GSCHED_CAPSM);
	/* what is cancelled may go on, under what its client then submits */
	if (gsc_delay_is_measured(task))
		gsc_delay_end(task, ran);
	gsc_task_end(task);
	if (dev->policy->ended)
		dev->policy->ended(task, ran);
	if (ran)
		gsc_protect_measure(task);
	if (ran && task->window)
		learn(client, task);
	return 0;
}

/* The words may go back or jump: they are written by a stranger */
static u64 growth(u64 from, u64 to, u64 most)
{
	return to > from ? min(to - from, most) : 0;
}

void gsc_client_leased(struct gsc_client *client, const struct gsc_leased *now_says, u64 now)
{
	struct gsc_device *dev = client->dev;
	u64 wall, tasks, ns, usage, paced;
	struct gsc_group *group;

	if (!dev)
		return;
	gsc_advance(dev, now);
	wall = dev->now - client->leased_at;
	tasks = growth(client->leased.tasks, now_says->tasks, div_u64(wall, 1000));
	ns = growth(client->leased.ns, now_says->ns, wall);
	usage = growth(client->leased.usage, now_says->usage,
		       ns <= div_u64(U64_MAX, dev->sms) ? ns * dev->sms : U64_MAX);
	paced = growth(client->paced_ns, min(now_says->paced_ns, dev->now - client->attached_at),
		       U64_MAX);
	client->paced_ns += paced;
	client->leased = *now_says;
	client->leased_at = dev->now;
	for (group = client->group; group; group = group->parent) {
		group->stats.counts.tasks += tasks;
		sum_add_ns(&group->stats.granted, ns);
		sum_add_ns(&group->stats.ran, ns);
		sum_add_ns(&group->stats.capsm, usage);
		/* nobody kept it from having what it could use */
		sum_add_ns(&group->stats.demanded, usage);
		sum_add_ns(&group->stats.paced, paced);
	}
}
