// SPDX-License-Identifier: LGPL-2.1-or-later
/* How many workers a window holds, by what it counts (device/dispatch.c); static ranges. */
#include "task/task.h"

/* Counts as the workers do: whole SMs, and on the last one places that end within the limit. */
unsigned int gi_window_workers(const struct gi_client *c, uint64_t window, unsigned int m)
{
	unsigned int limit = (unsigned int)window, weight = GSCHED_CAPSM / m, last, n;

	if (c->dispatch & GSR_LAUNCH_BY_INDEX) {
		n = limit / weight;
	} else {
		last = limit % GSCHED_CAPSM / weight;
		n = limit / GSCHED_CAPSM * m + (last < m ? last : m);
	}
	return n < c->sms * m ? n : c->sms * m;
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
	_Static_assert(sizeof(struct gsr_ranges) <= sizeof(struct gsr_save),
		       "zeroes are copied from a clean one");

	return s->arg.ranges ?
	       gi_real.cuMemcpyHtoDAsync_v2(s->arg.ranges, s->cx->blank + GSCHED_SLOTS,
					    sizeof(struct gsr_ranges), stream) : CUDA_SUCCESS;
}
