// SPDX-License-Identifier: GPL-2.0-only
/*
 * At random: who is important, how much each gets, and for how long nobody else may have it. For
 * tests: whatever an arbiter does, programs must compute the same. All follows from dev->seed
 * and the events, so a run can be repeated.
 *
 * A draw holds for a while, some events apart; the timer brings the next one, so whoever has
 * nothing now gets something later. Quotas hold as under any policy.
 */
#include "decide.h"

#define DRAW_NS_MIN	50000ULL
#define DRAW_NS_SPAN	2000000U
#define HOLD_NS		1000000ULL

static u64 draw(struct gsc_device *dev)
{
	u64 z = dev->seed += 0x9e3779b97f4a7c15ULL;

	/* splitmix64: any seed is a good one */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u32 whim(const struct gsc_client *client, u32 shift, u32 below)
{
	return (u32)(client->data.whim >> shift & 0xffff) % below;
}

static u32 wish(const struct gsc_device *dev, const struct gsc_task *task)
{
	/* what cannot be taken back is not asked about */
	if (gsc_is_fixed(task))
		return task->demand;
	switch (whim(task->client, 0, 8)) {
	case 0:
	case 1:
		return 0;
	case 2:
	case 3:
		return task->demand;
	default:
		return min(task->demand, (1 + whim(task->client, 16, dev->sms)) * GSCHED_CAPSM);
	}
}

static void order(struct gsc_band *band, u64 now)
{
	struct gsc_device *dev = gsc_band_device(band);
	struct gsc_client *client;
	struct gsc_task *task;
	u64 dice = draw(dev);

	/* the time of the last draw's end is still there: gsc_commit() leaves it to us */
	if (!band->again || band->again <= now || dice % 2) {
		list_for_each_entry(client, &band->members, member)
			client->data.whim = draw(dev);
		band->again = now + DRAW_NS_MIN + (u32)(dice >> 32) % DRAW_NS_SPAN;
	}
	list_for_each_entry(task, &band->tasks, node) {
		task->rank = whim(task->client, 32, 4);
		task->want = wish(dev, task);
		task->need = task->want;
	}
	gsc_sort(band);
	if (list_empty(&band->tasks))
		band->again = 0;
}

static u64 hold(struct gsc_device *dev, const struct gsc_task *task, u64 now)
{
	return whim(task->client, 48, 4) ? 0 : HOLD_NS;
}

const struct gsc_policy gsc_policy_chaos = {
	.name = "chaos",
	.order = order,
	.hold = hold,
	.idles = true,
	.no_leases = true,
};
