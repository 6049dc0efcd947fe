// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kernels that are known to be short. A kernel that could be rewritten may have to run as a twin,
 * so its launches are looked up, unless the program competes in time only. But most kernels never
 * have to, as they are too short. Each thread keeps a table of what it has launched of these, a
 * cache line each, with which further launches of the same shape are direct (launch/direct.h).
 */
#include "launch/candidate.h"
#include "launch/direct.h"

/*
 * Launches before a kernel is looked up again, as its time may have changed. With those of
 * GI_NOTE_EVERY it is 0.4 %, well below what a p99 shows.
 */
#define LAUNCHES	512

static struct gi_short *place_of(struct gi_caches *caches, const struct gi_shape_of *of)
{
	uint64_t h = (uint64_t)(uintptr_t)of->fn ^ (uint64_t)of->grid[0] << 32 ^ of->block[0];

	return &caches->shorts[(h * 0x9e3779b97f4a7c15ull) >> 32 & (GI_SHORTS - 1)];
}

static bool same_shape(const struct gi_shape_of *a, const struct gi_shape_of *b)
{
	return a->fn == b->fn && a->grid[0] == b->grid[0] && a->grid[1] == b->grid[1] &&
	       a->grid[2] == b->grid[2] && a->block[0] == b->block[0] &&
	       a->block[1] == b->block[1] && a->block[2] == b->block[2] && a->shared == b->shared;
}

const struct gi_short *gi_short_find(const struct gi_shape_of *of)
{
	struct gi_short *s;

	if (!gi_caches)
		return NULL;
	s = place_of(gi_caches, of);
	if (!s->left || s->cx != gi_last.cx || !same_shape(&s->of, of) ||
	    s->generation != gi_last.generation)
		return NULL;
	s->left--;
	return s;
}

/*
 * The number of launches since the kernel was looked up last is added to its shape's, which tells
 * when it is to be timed again.
 */
void gi_short_note(const struct gi_launch *l, const struct gi_ctx *cx, struct gi_shape *shape,
		   uint64_t blocks)
{
	const struct gi_shape_of of = {
		.fn = l->fn, .shared = l->shared,
		.grid = { l->grid[0], l->grid[1], l->grid[2] },
		.block = { l->block[0], l->block[1], l->block[2] },
	};
	const uint64_t ns = atomic_load_explicit(&shape->predicted_ns, memory_order_relaxed);
	struct gi_caches *caches = gi_caches_get();
	struct gi_short *s;

	if (!caches)
		return;
	s = place_of(caches, &of);
	if (s->cx == cx && same_shape(&s->of, &of) && s->generation == gi_last.generation)
		atomic_fetch_add_explicit(&shape->launches, LAUNCHES - 1 - s->left,
					  memory_order_relaxed);
	*s = (struct gi_short){
		.of = of, .cx = cx, .generation = gi_last.generation, .left = LAUNCHES - 1,
		.ns = (uint32_t)ns,
		.usage = gi_usage(cx->client, ns, blocks, shape->original_m),
	};
}
