// SPDX-License-Identifier: GPL-2.0-only
/*
 * Highest priority first (FLEP 5.2.1, figure 6). Everyone more important takes all it can use before anyone less
 * important gets something; equals share. FLEP orders equals by shortest remaining time, T_r: the place is compare() in
 * policy.c.
 */
#include "decide.h"

#define HOLD_NS_MAX	20000000ULL
#define EVICT_NS	20000ULL	/* from the store of a window until workers act on it, measured */
#define HOLD_FRACTION	4

static void order(struct gsc_device *dev, u64 now)
{
	struct gsc_task *task;

	list_for_each_entry(task, &dev->tasks, node) {
		task->rank = task->client->group->priority;
		task->want = task->demand;
	}
	gsc_sort(dev);
}

/*
 * Standing capacity, after SMGuard's standby: the next kernel of a more important client would have to wait until block-tasks
 * end. Where that is more than a fraction of the kernel's own time, its capacity is not lent out between two of its kernels:
 * for short kernels that recur, evicting and growing each time costs the others more than the few SMs do.
 */
static u64 hold(struct gsc_device *dev, const struct gsc_task *ended, u64 now)
{
	const struct gsc_client *client = ended->client;
	u64 time = ended->predicted_ns;
	const struct gsc_task *task;

	if (!time)
		time = ended->ran ? ended->ran : now - ended->granted;
	/* rarer than the longest hold: it would be over before the next kernel comes */
	if (!client->interval || client->interval > HOLD_NS_MAX)
		return 0;
	list_for_each_entry(task, &dev->tasks, node) {
		if (task->client != client && task->state == GSC_TASK_RUNNING && gsc_is_block(task) &&
		    task->client->group->priority < client->group->priority && task->block_ns + EVICT_NS > time / HOLD_FRACTION)
			return min(2 * client->interval, (u64)HOLD_NS_MAX);
	}
	return 0;
}

const struct gsc_policy gsc_policy_hpf = {
	.name = "hpf",
	.order = order,
	.hold = hold,
};
