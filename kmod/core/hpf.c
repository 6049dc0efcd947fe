// SPDX-License-Identifier: GPL-2.0-only
/*
 * Highest priority first (FLEP 5.2.1, figure 6). Everyone more important takes all it can use
 * before anyone less important gets something; equals share. FLEP orders equals by shortest
 * remaining time: that is policy srt.
 */
#include "decide.h"

#define HOLD_FRACTION	4
/*
 * Times between two kernels that a hold lasts. With 2, a program that sleeps too long comes when it
 * is over: requests each ms beside block-tasks of 5 ms had a p99 of 0.4 ms, at random times 2.3 ms,
 * with 8 of 0.13 and 0.24 ms (H200)
 */
#define LATE_PERIODS	8

static struct gsc_task *next_task(const struct gsc_band *band, struct gsc_task *task)
{
	task = list_next_entry(task, node);
	return list_entry_is_head(task, &band->tasks, node) ? NULL : task;
}

static u32 priority_of(const struct gsc_task *task)
{
	return task->client->group->priority;
}

void gsc_limit_needs(struct gsc_band *band)
{
	struct gsc_task *task = list_first_entry(&band->tasks, struct gsc_task, node), *first;
	u32 lowest = priority_of(list_last_entry(&band->tasks, struct gsc_task, node));
	u32 opaque = U32_MAX, units, priority;
	bool single;

	for (first = task; first; first = next_task(band, first))
		if (!gsc_is_block(first))
			opaque = priority_of(first);
	while (task && priority_of(task) > lowest) {
		priority = priority_of(task);
		single = priority <= opaque;
		for (first = task; task && priority_of(task) == priority;
		     task = next_task(band, task))
			single &= task->client == first->client;
		units = gsc_protect_units(first->client, gsc_size_units(first->client));
		for (; single && units && first != task; first = next_task(band, first))
			first->need = min(first->want, max(units, first->window));
	}
}

static void order(struct gsc_band *band, u64 now)
{
	struct gsc_task *task;
	bool sized = false;

	list_for_each_entry(task, &band->tasks, node) {
		gsc_ask(task, priority_of(task));
		sized |= task->client->sizes.tried != 0;
	}
	gsc_sort(band);
	if (sized)
		gsc_limit_needs(band);
	gsc_make_way(band, now);
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
	u64 time = gsc_size_ns(client), longest = 0, delay = 0, tolerated;
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
		if (task->client == client || !gsc_is_block(task) ||
		    task->client->group->priority >= client->group->priority)
			continue;
		/* it gives way soon enough, and pays for that already */
		if (task->midway && gsc_is_resumable(task->client, top_resuming))
			continue;
		below = true;
		longest = max(longest, task->block_ns);
		delay = max(delay, gsc_evict_ns(task) + min(task->block_ns, U64_MAX / 2));
	}
	if (client->group->latency_us)
		tolerated = gsc_standby_limit_ns(client->group);
	if (!below || delay <= tolerated)
		return 0;
	client->hold_block_ns = longest;
	/* programs are late now and then, and kernels that come in bursts have longer gaps */
	return min(max(LATE_PERIODS * client->interval, 2 * client->gap), gsc_hold_ns_max(client));
}

const struct gsc_policy gsc_policy_hpf = {
	.name = "hpf",
	.order = order,
	.granted = gsc_late_watch,
	.hold = hold,
	.passes = true,
};
