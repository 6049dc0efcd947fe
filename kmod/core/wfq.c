// SPDX-License-Identifier: GPL-2.0-only
/*
 * Weighted fair queueing (GLoop 5.3): priorities mean nothing. Each group with active clients in a
 * band is a queue with a virtual time, which advances by the capacity that its clients use divided
 * by the group's share; the queue with the smallest one takes all that it wants first, and what it
 * leaves goes to the others in order. The clients of a queue share by the allocator.
 *
 * A share is what gpu.weight gives a group among all active ones: at each level of the tree its
 * part of its parent's, and clients beside child groups have the default weight each. Virtual time
 * is scaled so that it passes like real time for a queue that has its share of the device. A change
 * of shares changes its pace, not what has passed.
 *
 * A queue is overtaken only by one that is a quantum of device time behind it, so that the overhead
 * of switching stays below max_overhead; the queue has then run for about two quanta. Two kinds
 * need no such distance, for they take little or are about to wait anyway: one that becomes active,
 * and one that is content, wanting no more than its share. A content queue is never behind the
 * others: what it does not use is no credit.
 *
 * A queue that becomes active begins at the virtual time of those that contend, or at its own if
 * that is later. (GLoop resets it in any case: a program that goes idle for a moment would be rid
 * of what it used too much.) After a pause of less than a quantum it also keeps a smaller one: a
 * program whose kernels come one at a time would lose its turn at the end of each.
 *
 * Bands have time slices by weight, as under ffs. Where only one at a time can have the device
 * (temporal mode), the band with the smallest virtual time has it, by the same rules. While it has
 * the device nobody else does, so it is charged for that time, however little of it is used.
 */
#include "decide.h"

#define PACE_SHIFT	16	/* of PACE_ONE */
#define PACE_ONE	(65536ULL)		/* alone */
#define PACE_MAX	(PACE_ONE << 17)	/* a share of 1/131072 */
#define QUANTUM_NS_MAX	100000000ULL
#define BLOCK_NS_MAX	20000000ULL
#define LAG_NS		1000000000ULL		/* device time */

struct queues {
	struct gsc_group *first, *last;
	u32 n;
};

static struct gsc_wfq_queue *queue_of(struct gsc_group *group)
{
	return &group->data.wfq;
}

/* Virtual time of @ns of real time at @pace; no product overflows for 18 minutes of device time */
static u64 virtual_ns(u64 ns, u64 pace)
{
	return (ns >> PACE_SHIFT) * pace + (((ns & (PACE_ONE - 1)) * pace) >> PACE_SHIFT);
}

static u32 device_units(const struct gsc_device *dev)
{
	return dev->sms * GSCHED_CAPSM;
}

static void charge(struct gsc_client *client, u64 unit_ns)
{
	client->data.wfq.used += unit_ns;
	client->band->data.wfq.used += unit_ns;
}

/* What is in @used as time of the whole device; the rest stays there */
static u64 take_used(u64 *used, u32 units)
{
	u64 ns = div_u64(*used, units);

	*used -= ns * units;
	return ns;
}

/* Time that a switch costs is bounded by block-tasks that have to end */
static u64 quantum_of(const struct gsc_device *dev, u64 block_ns)
{
	u64 cost = (u64)dev->param[GSC_PARAM_SWITCH_US] * 1000 + min(block_ns, BLOCK_NS_MAX);

	return min(div_u64(cost * 1000, dev->param[GSC_PARAM_MAX_OVERHEAD]), QUANTUM_NS_MAX);
}

/* The scratch of a decision begins; what is known of the group in this band stays */
static struct gsc_wfq_queue *visit(struct gsc_group *group, u64 band, u64 stamp)
{
	struct gsc_wfq_queue *queue = queue_of(group);

	if (queue->seen == stamp)
		return queue;
	queue->seen = stamp;
	queue->sum = 0;
	queue->want = 0;
	queue->n = 0;
	queue->fresh = true;
	if (queue->band != band) {
		queue->vtime = 0;
		queue->ended = 0;
	}
	queue->band = band;
	return queue;
}

/* Usage up to now, of those too that ended their last task since the last decision */
static void collect_usage(struct gsc_band *band, u64 stamp)
{
	u32 units = device_units(gsc_band_device(band));
	struct gsc_wfq_band *state = &band->data.wfq;
	struct gsc_wfq_client *data;
	struct gsc_wfq_queue *queue;
	struct gsc_client *client;

	list_for_each_entry(client, &band->active, active) {
		gsc_client_charge(client);
		queue = visit(client->home, state->id, stamp);
		data = &client->data.wfq;
		if (!data->round)
			continue;
		queue->vtime = max(queue->vtime, data->vtime) +
			       virtual_ns(take_used(&data->used, units), data->pace);
		/* for when it comes back */
		data->vtime = queue->vtime;
		queue->ended = max(queue->ended, client->last_end);
		if (data->round == state->round)
			queue->fresh = false;
	}
}

/* @weight counts for @group; if it is the first there, that of @group for its parent, and so on */
static void add_weight(struct gsc_group *group, u32 weight, u64 band, u64 stamp)
{
	struct gsc_wfq_queue *queue;
	bool first = true;

	for (; group && first; group = group->parent) {
		queue = visit(group, band, stamp);
		first = !queue->sum;
		queue->sum += weight;
		weight = group->weight;
	}
}

static void add_client(struct queues *queues, const struct gsc_client *client, u64 band, u64 stamp)
{
	struct gsc_group *group = client->home;
	struct gsc_wfq_queue *queue = queue_of(group);

	if (!queue->n) {
		queue->next = NULL;
		queue->prev = queues->last;
		if (queues->last)
			queue_of(queues->last)->next = group;
		else
			queues->first = group;
		queues->last = group;
		queues->n++;
	}
	queue->n++;
	queue->want += min(client->demand, client->own.max);
	add_weight(group, GSC_WEIGHT_DEFAULT, band, stamp);
}

static u64 part_of(u32 units, u64 pace)
{
	return div64_u64((u64)units << PACE_SHIFT, pace);
}

/*
 * Its share of the device, and its part of each max above it, which those below the same max divide
 * in the same way
 */
static void find_share(struct gsc_group *group)
{
	struct gsc_wfq_queue *queue = queue_of(group);
	u64 pace, within = U64_MAX;
	u32 most = device_units(group->dev);

	pace = min(div_u64(PACE_ONE * queue->sum, queue->n * GSC_WEIGHT_DEFAULT), PACE_MAX);
	for (;; group = group->parent) {
		if (group->max != GSC_MAX_UNLIMITED) {
			most = min(most, group->max);
			within = min(within, part_of(group->max, pace));
		}
		if (!group->parent)
			break;
		pace = max(min(div_u64(pace * queue_of(group->parent)->sum, group->weight),
			       PACE_MAX),
			   PACE_ONE);
	}
	queue->pace = pace;
	queue->want = min_t(u64, queue->want, most);
	queue->share = part_of(device_units(group->dev), pace);
	queue->bounded = within < queue->share;
	queue->share = min(queue->share, within);
}

/*
 * Returns the virtual time of those that contend; if nobody does, the latest one there is. Those
 * below one max contend for that, and may be far behind the others.
 */
static u64 prepare_queues(struct gsc_band *band, const struct queues *queues)
{
	struct gsc_device *dev = gsc_band_device(band);
	u64 wanted = 0, least = U64_MAX, latest = 0;
	struct gsc_wfq_queue *queue;
	struct gsc_group *group;

	for (group = queues->first; group; group = queue_of(group)->next) {
		queue = queue_of(group);
		find_share(group);
		wanted += queue->want;
	}
	for (group = queues->first; group; group = queue_of(group)->next) {
		queue = queue_of(group);
		queue->content = queue->want <= queue->share ||
				 (wanted <= device_units(dev) && !queue->bounded);
		if (queue->fresh)
			continue;
		latest = max(latest, queue->vtime);
		if (!queue->content && !queue->bounded)
			least = min(least, queue->vtime);
	}
	return max(band->data.wfq.vtime, least == U64_MAX ? latest : least);
}

/* Where it begins, if it was not active at the last decision; no credit for what is content */
static void set_vtime(const struct gsc_wfq_band *state, struct gsc_wfq_queue *queue, u64 now)
{
	if (queue->content ||
	    (queue->fresh && (!queue->ended || now - queue->ended > state->quantum)))
		queue->vtime = max(queue->vtime, state->vtime);
}

/* Does @queue come before @before, which came first at the last decision? */
static bool overtakes(const struct gsc_wfq_queue *queue, const struct gsc_wfq_queue *before)
{
	if (queue->content || before->content)
		return !before->content;
	return queue->vtime < (queue->fresh ? before->vtime : before->bar);
}

/* Nobody from @before on to the front is overtaken */
static bool is_behind_all(const struct gsc_wfq_queue *queue, const struct gsc_wfq_queue *before)
{
	return before->content ||
	       (!queue->fresh && !queue->content && queue->vtime >= before->top_bar);
}

static void note_bar(struct gsc_wfq_queue *queue)
{
	const struct gsc_wfq_queue *before = queue->prev ? queue_of(queue->prev) : NULL;

	queue->top_bar = before && !before->content ? max(before->top_bar, queue->bar) : queue->bar;
}

/* @group from its place to the one before @before */
static void move_before(struct queues *queues, struct gsc_group *group, struct gsc_group *before)
{
	struct gsc_wfq_queue *queue = queue_of(group);

	queue_of(queue->prev)->next = queue->next;
	if (queue->next)
		queue_of(queue->next)->prev = queue->prev;
	else
		queues->last = queue->prev;
	queue->next = before;
	queue->prev = queue_of(before)->prev;
	queue_of(before)->prev = group;
	if (queue->prev)
		queue_of(queue->prev)->next = group;
	else
		queues->first = group;
}

/*
 * Nearly in order already. Each goes before the first one that it overtakes, which need not be its
 * neighbour
 */
static void sort_queues(const struct gsc_wfq_band *state, struct queues *queues, u64 now)
{
	struct gsc_group *group, *next, *before, *target;
	struct gsc_wfq_queue *queue;
	u64 ahead;

	for (group = queues->first; group; group = next) {
		queue = queue_of(group);
		next = queue->next;
		set_vtime(state, queue, now);
		ahead = virtual_ns(state->quantum, queue->pace);
		queue->bar = queue->vtime - min(ahead, queue->vtime);
		target = NULL;
		for (before = queue->prev; before && !is_behind_all(queue, queue_of(before));
		     before = queue_of(before)->prev)
			if (overtakes(queue, queue_of(before)))
				target = before;
		if (target)
			move_before(queues, group, target);
		for (; group != next; group = queue_of(group)->next)
			note_bar(queue_of(group));
	}
}

/*
 * By place. Queues that share a max of a group above them get less than their share, and fall
 * behind for ever. When the max goes they would starve the others for as long: no queue is further
 * behind the next one than by so much.
 */
static void set_ranks(struct queues *queues)
{
	u64 last = U64_MAX, surplus = 0, most;
	struct gsc_wfq_queue *queue;
	struct gsc_group *group;
	u32 rank = queues->n;

	for (group = queues->first; group; group = queue->next) {
		queue = queue_of(group);
		queue->rank = --rank;
		if (queue->content)
			continue;
		queue->vtime -= min(surplus, queue->vtime);
		if (queue->vtime > last) {
			most = virtual_ns(LAG_NS, queue->pace);
			if (queue->vtime - last > most) {
				surplus += queue->vtime - last - most;
				queue->vtime = last + most;
			}
		}
		last = queue->vtime;
	}
}

static void order(struct gsc_band *band, u64 now)
{
	struct gsc_device *dev = gsc_band_device(band);
	struct gsc_wfq_band *state = &band->data.wfq;
	struct queues queues = { NULL, NULL, 0 };
	struct gsc_wfq_client *data;
	struct gsc_wfq_queue *queue;
	u64 stamp = ++dev->stamp;
	struct gsc_task *task;
	u64 longest = 0;

	band->again = 0;
	if (!state->id)
		state->id = stamp;
	collect_usage(band, stamp);
	/* in the order of the last decision, new ones last */
	list_for_each_entry(task, &band->tasks, node) {
		if (gsc_is_head(task))
			add_client(&queues, task->client, state->id, stamp);
		if (gsc_is_block(task))
			longest = max(longest, task->block_ns);
	}
	state->quantum = quantum_of(dev, longest);
	state->vtime = prepare_queues(band, &queues);
	sort_queues(state, &queues, now);
	set_ranks(&queues);
	state->round = stamp;
	list_for_each_entry(task, &band->tasks, node) {
		queue = queue_of(task->client->home);
		data = &task->client->data.wfq;
		data->round = stamp;
		data->vtime = queue->vtime;
		data->pace = queue->pace;
		data->content = queue->content;
		gsc_ask(task, queue->rank);
	}
	gsc_sort(band);
}

/* A run of tasks of one rank is a queue. Returns the first task behind it */
static const struct gsc_task *count_units(const struct gsc_band *band, const struct gsc_task *task,
					  u64 *units)
{
	u32 rank = task->rank;

	*units = 0;
	for (; !list_entry_is_head(task, &band->tasks, node) && task->rank == rank;
	     task = list_next_entry(task, node))
		if (gsc_is_head(task))
			*units += task->client->current_units;
	return task;
}

/* When @before, of which @gap of virtual time is left, will be overtaken */
static u64 overtaken_at(const struct gsc_wfq_band *state, u64 gap, u64 fast, u64 slow, u64 now)
{
	if (fast <= slow)
		return 0;
	/* most of them use less than they could: no more often than that */
	return now + max(div64_u64(gap << PACE_SHIFT, fast - slow) + 1, state->quantum / 8);
}

static void granted(struct gsc_band *band, u64 now)
{
	const struct gsc_wfq_client *data, *before = NULL;
	const struct gsc_wfq_band *state = &band->data.wfq;
	u32 all = device_units(gsc_band_device(band));
	u64 units, speed, last_speed = 0, limit;
	const struct gsc_task *task;

	/* nobody is overtaken */
	if (band->n_tasks < 2)
		return;
	task = list_first_entry(&band->tasks, struct gsc_task, node);
	while (!list_entry_is_head(task, &band->tasks, node)) {
		data = &task->client->data.wfq;
		task = count_units(band, task, &units);
		speed = div_u64(units * data->pace, all);
		if (before && !before->content && !data->content) {
			limit = data->vtime + virtual_ns(state->quantum, before->pace);
			band->again = gsc_earlier(
				band->again, overtaken_at(state, limit - min(limit, before->vtime),
							  last_speed, speed, now));
		}
		before = data;
		last_speed = speed;
	}
}

/* A band's virtual time to real time while it has the device, 16 binary digits behind the point */
static u64 band_pace(const struct gsc_band *band, u64 weights)
{
	/* a weight is less than 2^30 for each of its clients */
	return min(div64_u64(min(weights, 1ULL << 47) << PACE_SHIFT, band->weight), PACE_MAX);
}

/* Bands that want the device are queues, too: virtual times up to now */
static void prepare_turns(struct gsc_device *dev, u64 quantum)
{
	struct gsc_wfq_device *turns = &dev->data.wfq;
	u64 least = U64_MAX, weights = 0, last = turns->round, ns;
	const struct gsc_task *first;
	struct gsc_wfq_band *state;
	struct gsc_band *band;

	turns->round = ++dev->stamp;
	list_for_each_entry(band, &dev->busy, busy)
		if (gsc_first_wanting(band))
			weights += band->weight;
	list_for_each_entry(band, &dev->busy, busy) {
		state = &band->data.wfq;
		ns = take_used(&state->used, device_units(dev));
		if (last && band == dev->turn)
			ns = max(ns, dev->now - turns->at);
		state->turn_vtime += virtual_ns(ns, state->pace);
		state->fresh = !last || state->turn_round != last;
		if (!state->fresh && gsc_first_wanting(band))
			least = min(least, state->turn_vtime);
	}
	turns->at = dev->now;
	if (least != U64_MAX)
		turns->vtime = max(turns->vtime, least);
	list_for_each_entry(band, &dev->busy, busy) {
		state = &band->data.wfq;
		first = gsc_first_wanting(band);
		if (!first)
			continue;
		if (state->fresh &&
		    (!state->turn_round || dev->now - first->client->last_end > quantum))
			state->turn_vtime = max(state->turn_vtime, turns->vtime);
		state->turn_round = turns->round;
		state->pace = band_pace(band, weights);
	}
}

static struct gsc_band *turn(struct gsc_device *dev, u64 now)
{
	struct gsc_band *band, *owner = NULL, *next = NULL;
	u64 quantum = 0, gap, limit, ahead, pace;

	list_for_each_entry(band, &dev->busy, busy)
		if (gsc_first_wanting(band))
			quantum = max(quantum, band->data.wfq.quantum);
	prepare_turns(dev, quantum);
	list_for_each_entry(band, &dev->busy, busy) {
		if (!gsc_first_wanting(band))
			continue;
		if (band == dev->turn)
			owner = band;
		else if (!next || band->data.wfq.turn_vtime < next->data.wfq.turn_vtime)
			next = band;
	}
	if (!owner || !next)
		return owner ? owner : next;
	pace = max(owner->data.wfq.pace, PACE_ONE);
	ahead = virtual_ns(quantum, pace);
	limit = next->data.wfq.turn_vtime + (next->data.wfq.fresh ? 0 : ahead);
	if (limit < owner->data.wfq.turn_vtime)
		return next;
	gap = next->data.wfq.turn_vtime + ahead - owner->data.wfq.turn_vtime;
	owner->again = now + max(div64_u64(gap << PACE_SHIFT, pace) + 1, quantum / 8);
	return owner;
}

/* Its virtual time was that of another queue */
static void moved(struct gsc_client *client)
{
	client->data.wfq = (struct gsc_wfq_client){ 0 };
}

static int why(const struct gsc_client *client, char *buf, size_t size)
{
	const struct gsc_wfq_client *data = &client->data.wfq;
	u64 base = client->band->data.wfq.vtime, us;
	u32 share;
	bool ahead = data->vtime >= base;

	if (!client->n_tasks || !data->pace)
		return scnprintf(buf, size, "%s", "");
	share = (u32)div64_u64(1000 * PACE_ONE, data->pace);
	us = div_u64(ahead ? data->vtime - base : base - data->vtime, 1000);
	return scnprintf(buf, size,
			 "its group's share of the band is %u.%u %%%s: %llu us %s in virtual time",
			 share / 10, share % 10, data->content ? ", and it wants no more" : "",
			 (unsigned long long)us, ahead ? "ahead" : "behind");
}

const struct gsc_policy gsc_policy_wfq = {
	.name = "wfq",
	.order = order,
	.moved = moved,
	.charge = charge,
	.granted = granted,
	.turn = turn,
	.epoch_us = gsc_fair_epoch_us,
	.why = why,
	.equals = true,
};
