// SPDX-License-Identifier: GPL-2.0-only
/*
 * capsm.reserve: SMGuard's standby. A group's number of CapSM is kept for it while it has nothing
 * to run, against tasks of others that would not be gone in time when it has: those whose eviction
 * takes longer than half of the group's gpu.latency_target_us, the other half being for its own
 * kernels (size.c), or than DELAY_NS without a target. What can be evicted in time is lent the
 * reserve until then, so it costs nothing where all block-tasks are short.
 *
 * A task's eviction delay is that of one block-task, as its client measured it (SMGuard 6.5), and
 * what the core has measured beside that (gsc_evict_ns()). Where the former is unknown, and for an
 * opaque kernel, it has no bound. The hardware puts the blocks of opaque kernels wherever it finds
 * room: what others have of the reserve then, it has only in the books.
 *
 * This is Algorithm 1 of SMGuard with R_request = capsm.reserve: as long as the reserve stands,
 * R_request <= R_remain and R_gap = 0; where it is lent, R_gap is what the allocator evicts.
 *
 * The reserve stands in each band that has clients of the group: bands share in time, and in mode
 * temporal nobody is evicted in part. The allocator treats it as a demand of the group that no task
 * has, of which it guarantees all, as with capsm.min: sums above the device, or above a group's
 * max, are scaled down, and one SM is left for the others. When the group has tasks, its reserve is
 * a capsm.min: whoever it was lent to is evicted.
 *
 * A plan can give a group such a reserve, too.
 *
 * "auto", the default, is the hold of hpf.c: for so long and of such a size as recurring kernels
 * need. With a latency target it depends on that instead of the kernels' own time, and lasts up to
 * GSC_STANDBY_NS_MAX.
 */
#include "decide.h"

#define DELAY_NS	100000ULL

void gsc_standby_set(struct gsc_group *group, u32 units)
{
	u32 had = gsc_standby_units(group) != 0, has;
	struct gsc_device *dev = group->dev;
	struct gsc_client *client;

	group->standby = units;
	has = gsc_standby_units(group) != 0;
	dev->n_standby += has - had;
	dev->n_limits += has - had;
	list_for_each_entry(client, &dev->clients, node)
		if (client->hold_units && !gsc_standby_is_auto(client))
			gsc_hold_drop(client);
}

bool gsc_standby_is_auto(const struct gsc_client *client)
{
	const struct gsc_group *group;

	for (group = client->home; group; group = group->parent)
		if (group->standby != GSC_STANDBY_AUTO)
			return false;
	return true;
}

u64 gsc_eviction_ns(const struct gsc_task *task)
{
	if (!gsc_is_block(task) || !task->block_ns)
		return U64_MAX;
	/*
	 * the resumable form tells the time to leave, of which there is more than that of one
	 * worker
	 */
	return gsc_evict_ns(task) + min(task->block_ns, U64_MAX / 2);
}

u64 gsc_standby_limit_ns(const struct gsc_group *group)
{
	if (gsc_is_planned(group) && group->data.plan.keeps)
		return 0;
	return group->latency_us ? (u64)group->latency_us * 1000 / 2 : DELAY_NS;
}

static bool is_below(const struct gsc_group *group, const struct gsc_group *top)
{
	while (group && group != top)
		group = group->parent;
	return group == top;
}

/* Is there a task of others in @band that would be evicted too late? */
static bool stands(const struct gsc_band *band, const struct gsc_group *group)
{
	u64 limit = gsc_standby_limit_ns(group);
	const struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node)
		if (task->want && gsc_eviction_ns(task) > limit &&
		    !is_below(task->client->group, group))
			return true;
	return false;
}

u32 gsc_standby_claim(const struct gsc_band *band, const struct gsc_group *group)
{
	u32 units = gsc_standby_units(group);

	if (gsc_is_planned(group) && group->data.plan.keeps)
		units = max(units, group->data.plan.min);
	return units && stands(band, group) ? gsc_sms(units) : 0;
}

bool gsc_standby_may_borrow(const struct gsc_band *band, const struct gsc_client *client)
{
	const struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer)
		if (task->want && gsc_eviction_ns(task) > band->lend_ns)
			return false;
	return true;
}
