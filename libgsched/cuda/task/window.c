// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How a program's tasks are dispatched (rewriter/abi.h: GSR_LAUNCH_*, struct gsr_ranges), and how many workers a window then
 * holds.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "state.h"

#define WORKERS_MAX	32u	/* blocks that an SM holds */

/* $NAME as one of @words, by number; the first if it is not set, or is none of them, which the client's page then says */
static unsigned int choice(struct gi_client *c, const char *name, const char *const *words, unsigned int n)
{
	const char *text = getenv(name);
	unsigned int i;

	if (!text || !*text)
		return 0;
	for (i = 0; i < n; i++)
		if (!strcmp(text, words[i]))
			return i;
	gi_why(c, "%s=%s: neither %s%s%s nor %s; taken for %s", name, text, words[0], n > 2 ? ", " : "", n > 2 ? words[1] : "",
	       words[n - 1], words[0]);
	return 0;
}

void gi_dispatch(struct gi_client *c)
{
	static const char *const limits[] = { "sm", "rank", "worker" }, *const sources[] = { "queue", "static" };
	static const uint32_t flags[] = { 0, GSR_LAUNCH_BY_RANK, GSR_LAUNCH_BY_INDEX };
	const char *workers = getenv("GSCHED_WORKERS");

	c->dispatch = flags[choice(c, "GSCHED_LIMIT_BY", limits, 3)];
	c->ranges = choice(c, "GSCHED_DISPATCH", sources, 2);
	c->workers = gi_env("GSCHED_WORKERS", 0);
	if (workers && *workers && (!c->workers || c->workers > WORKERS_MAX)) {
		gi_why(c, "GSCHED_WORKERS=%s: not a number from 1 to %u; as many as are fastest are taken", workers, WORKERS_MAX);
		c->workers = 0;
	}
}

/* ---- static ranges: one area a slot, made with the context ---- */

static size_t ranges_size(const struct gi_client *c)
{
	return (sizeof(struct gsr_ranges) + sizeof(uint64_t) * 32 * c->sms + 127) / 128 * 128;
}

bool gi_ranges_new(struct gi_ctx *cx)
{
	if (!cx->client->ranges || !gi_real.cuMemAlloc_v2(&cx->ranges, GSCHED_SLOTS * ranges_size(cx->client)))
		return true;
	cx->ranges = 0;
	return false;
}

void gi_ranges_use(struct gi_slot *s, unsigned int slot)
{
	/* a block-task that waits for lower ones may be in front of them, if nobody runs their range */
	if (!s->cx->ranges || !s->form || s->form->kernel.waits)
		return;
	s->arg.ranges = s->cx->ranges + slot * ranges_size(s->cx->client);
	if (s->arg.workers > s->blocks)
		s->arg.workers = s->blocks;
}

CUresult gi_ranges_zero(const struct gi_slot *s, CUstream stream)
{
	_Static_assert(sizeof(struct gsr_ranges) <= sizeof(struct gsr_save), "zeroes are copied from a clean one");

	return s->arg.ranges ? gi_real.cuMemcpyHtoDAsync_v2(s->arg.ranges, s->cx->blank + GSCHED_SLOTS, sizeof(struct gsr_ranges),
							    stream) : CUDA_SUCCESS;
}

/* ---- windows ---- */

/* As the workers themselves reckon, SM by SM */
unsigned int gi_places(const struct gi_client *c, uint64_t window, unsigned int m)
{
	uint64_t base = c->dispatch & (GSR_LAUNCH_BY_RANK | GSR_LAUNCH_BY_INDEX) ? 0 : GSCHED_WINDOW_BASE(window);
	uint64_t end = base + GSCHED_WINDOW_LIMIT(window), whole = (uint64_t)c->sms * GSCHED_CAPSM;
	unsigned int weight = GSCHED_CAPSM / m, first, last, sm, bit, n = 0;

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
