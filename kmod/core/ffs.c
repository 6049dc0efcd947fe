// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fair sharing (FFS, FLEP 5.2.2): nobody is more important. Bands have time slices in proportion to
 * gpu.weight, in the shortest epoch that keeps the overhead of switching below max_overhead
 * (slice.c); inside a band clients have SMs by gpu.weight.
 */
#include "decide.h"

static void order(struct gsc_band *band, u64 now)
{
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node)
		gsc_ask(task, 0);
	gsc_sort(band);
	gsc_make_way(band, now);
}

const struct gsc_policy gsc_policy_ffs = {
	.name = "ffs",
	.order = order,
	.granted = gsc_late_watch,
	.epoch_us = gsc_fair_epoch_us,
	.passes = true,
	.equals = true,
};
