// SPDX-License-Identifier: GPL-2.0-only
/*
 * Highest priority first (FLEP 5.2.1, figure 6). Everyone more important takes all it can use
 * before anyone less important gets something; equals share. FLEP orders equals by shortest
 * remaining time: that is policy srt.
 */
#include "decide.h"

#define HOLD_FRACTION	4
#define LATE_FACTOR	3		/* of its usual time, and */
#define LATE_NS		200000ULL	/* that: a kernel is late */
#define LATE_NS_MAX	20000000ULL	/* for so long the others make way for it */

static struct gsc_task *next_task(const struct gsc_band *band, struct gsc_task *task)
{
	task = list_next_entry(task, node);
	return list_entry_is_head(task, &band->tasks, node) ? NULL : task;
}

/*
 * A client whose kernels are nearly as fast on a part of the device takes no more than that from
 * less important block-tasks. A kernel that runs keeps what it has. Among equals nothing changes,
 * and above opaque tasks: what those have cannot be taken back.
 */
static void limit_needs(struct gsc_band *band)
{
	struct gsc_task *task = list_first_entry(&band->tasks, struct gsc_task, node), *first;
	u32 lowest = list_last_entry(&band->tasks, struct gsc_task, node)->rank, opaque = U32_MAX, units;
	bool single;

	for (first = task; first; first = next_task(band, first))
		if (!gsc_is_block(first))
			opaque = first->rank;
	while (task && task->rank > lowest) {
		single = task->rank <= opaque;
		for (first = task; task && task->rank == first->rank; task = next_task(band, task))
			single &= task->client == first->client;
		units = gsc_protect_units(first->client, gsc_size_units(first->client));
		for (; single && units && first != task; first = next_task(band, first))
			first->need = min(first->want, max(units, first->window));
	}
}

/* When it is late; 0: it may take any time, or waits behind another one of its client */
static u64 late_at(const struct gsc_task *task, u64 now)
{
	u64 usual = max(gsc_size_ns(task->client), task->predicted_ns), from = now;

	if (!usual || usual > LATE_NS_MAX || !gsc_is_head(task))
		return 0;
	/* one that waits is about to be granted */
	if (task->state == GSC_TASK_RUNNING)
		from = max(task->granted, task->client->last_end);
	return from + LATE_FACTOR * usual + LATE_NS;
}

static bool is_promised(const struct gsc_group *group)
{
	while (group && !group->min)
		group = group->parent;
	return group;
}

/*
 * Blocks of a more important kernel that came to SMs among less important workers, as those were
 * launched, may stand still until those have left (seen on an H200; presumably an SM prefers its
 * oldest warps, and workers that only compute never wait). What takes far longer than it should
 * gets the device for itself.
 */
static void make_way(struct gsc_band *band, u64 now)
{
	struct gsc_task *last, *task;
	u64 late;

	if (band->n_tasks < 2 || gsc_band_device(band)->mode == GSCHED_MODE_TEMPORAL)
		return;
	last = list_last_entry(&band->tasks, struct gsc_task, node);
	list_for_each_entry(task, &band->tasks, node) {
		if (task->rank == last->rank)
			return;
		late = late_at(task, now);
		if (!late || now >= late + LATE_NS_MAX)
			continue;
		band->again = gsc_earlier(band->again, now < late ? late : late + LATE_NS_MAX);
		if (now < late)
			continue;
		/* the time says nothing about the size that it had */
		task->room = 0;
		band->late = task;
		if (!task->late)
			gsc_event(task->client->group, GSC_EVENT_LATE);
		task->late = true;
		for (; last->rank < task->rank; last = list_prev_entry(last, node)) {
			if (is_promised(last->client->group))
				continue;
			last->want = 0;
			last->need = 0;
		}
		return;
	}
}

static void order(struct gsc_band *band, u64 now)
{
	struct gsc_task *task;
	bool sized = false;

	band->again = 0;
	band->late = NULL;
	list_for_each_entry(task, &band->tasks, node) {
		task->rank = task->client->group->priority;
		task->want = task->demand;
		task->need = task->want;
		sized |= task->client->sizes.tried != 0;
	}
	gsc_sort(band);
	if (sized)
		limit_needs(band);
	make_way(band, now);
}

/*
 * Standing capacity, after SMGuard's standby: evicted at its arrival, the next kernel of a more
 * important client would have to wait until block-tasks end. Where that is more than a fraction of
 * the kernel's own time, what it needs is not lent out between two of its kernels: for short
 * kernels that recur, evicting and growing each time costs the others more than the few SMs do.
 *
 * With a latency target that decides, not the kernel's time: what can be evicted in half of it is
 * evicted, and for anything longer capacity is kept free however long the kernel takes.
 */
static u64 hold(struct gsc_device *dev, const struct gsc_task *ended, u64 now)
{
	struct gsc_client *client = ended->client;
	u64 time = gsc_size_ns(client), longest = 0, tolerated;
	u32 top_resuming;
	const struct gsc_task *task;
	bool below = false;

	if (!time)
		time = ended->predicted_ns;
	if (!time)
		time = ended->ran ? ended->ran : now - ended->granted;
	tolerated = time / HOLD_FRACTION;
	/* rarer than the longest hold: it would be over before the next kernel comes */
	if (!gsc_is_recurring(client))
		return 0;
	top_resuming = gsc_top_resuming(client->band);
	list_for_each_entry(task, &client->band->tasks, node) {
		/* one that waits is about to be granted */
		if (task->client == client || !gsc_is_block(task) || task->client->group->priority >= client->group->priority)
			continue;
		/* it gives way soon enough, and pays for that already */
		if (task->midway && gsc_is_resumable(task->client, top_resuming))
			continue;
		below = true;
		longest = max(longest, min(task->block_ns, U64_MAX - GSC_EVICT_NS));
	}
	if (client->group->latency_us)
		tolerated = gsc_standby_limit_ns(client->group);
	if (!below || longest + GSC_EVICT_NS <= tolerated)
		return 0;
	client->hold_block_ns = longest;
	/* kernels that come in bursts: it has to last until the next burst */
	return min(2 * max(client->interval, client->gap), gsc_hold_ns_max(client));
}

const struct gsc_policy gsc_policy_hpf = {
	.name = "hpf",
	.order = order,
	.hold = hold,
	.passes = true,
};
