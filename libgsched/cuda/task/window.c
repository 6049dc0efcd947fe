// SPDX-License-Identifier: LGPL-2.1-or-later
/* How many workers a window holds under each dispatch mode (device/dispatch.c); static ranges. */
#include "task/task.h"

/* Counts positions SM by SM, exactly as the workers do. */
unsigned int gi_window_workers(const struct gi_client *c, uint64_t window, unsigned int m)
{
	uint64_t base = c->dispatch & (GSR_LAUNCH_BY_RANK | GSR_LAUNCH_BY_INDEX) ? 0 : GSCHED_WINDOW_BASE(window);
	uint64_t end = base + GSCHED_WINDOW_LIMIT(window), whole = (uint64_t)c->sms * GSCHED_CAPSM;
	unsigned int weight = GSCHED_CAPSM / m, first, last, sm, bit, n = 0;

	if (!base && end >= whole)
		return c->sms * m;
	if (end > whole)
		end = whole;
	if (base >= end)
		return 0;
	if (c->dispatch & GSR_LAUNCH_BY_INDEX)
		return end / weight < c->sms * m ? end / weight : c->sms * m;
	first = base / GSCHED_CAPSM;
	last = (end - 1) / GSCHED_CAPSM;
	for (sm = first; sm <= last; sm++) {
		if (sm > first && sm < last) {
			n += m * (last - first - 1);
			sm = last - 1;
			continue;
		}
		for (bit = 0; bit < m; bit++) {
			uint64_t p = (uint64_t)sm * GSCHED_CAPSM + bit * weight;

			n += base <= p && p + weight <= end;
		}
	}
	return n;
}

/* ---- static ranges ---- */

void gi_ranges_use(struct gi_slot *s, unsigned int slot)
{
	/* a block-task that waits for lower ones could run while no worker has their range */
	if (!s->cx->ranges || !s->form || s->form->kernel.waits)
		return;
	s->arg.ranges = s->cx->ranges + slot * gi_ranges_size(s->cx->client);
	if (s->arg.workers > s->blocks)
		s->arg.workers = s->blocks;
}

CUresult gi_ranges_zero(const struct gi_slot *s, CUstream stream)
{
	_Static_assert(sizeof(struct gsr_ranges) <= sizeof(struct gsr_save), "zeroes are copied from a clean one");

	return s->arg.ranges ? gi_real.cuMemcpyHtoDAsync_v2(s->arg.ranges, s->cx->blank + GSCHED_SLOTS, sizeof(struct gsr_ranges),
							    stream) : CUDA_SUCCESS;
}
