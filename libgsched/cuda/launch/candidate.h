/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is known about a launch before it claims a slot */
#ifndef GI_CANDIDATE_H
#define GI_CANDIDATE_H

#include "launch/launch.h"

struct gi_candidate {
	struct gi_func *fn;
	struct gi_graph *graph;
	struct gi_shape *shape;
	const struct gi_form *form;	/* NULL: the original */
	struct gi_bound *bound;
	unsigned int m;
	uint64_t blocks, leased;
};

/* ---- choose.c ---- */

/*
 * Fills *@k. The caller puts its function and graph; its texture references are released by
 * gi_launch_task(), or with the slot.
 */
void gi_choose(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
	       struct gi_candidate *k);

/*
 * A launch that needs no window, of a client that is alone in its band or whose launches nobody
 * there depends on. It passes without the arbiter and costs nothing. A kernel that has a twin, but
 * is too short or too small for it, may pass too.
 */
bool gi_may_pass(const struct gi_client *c, const struct gi_launch *l,
		 const struct gi_candidate *k);

/* Its GPU time is worth learning: it is a graph, or a kernel that has a twin. */
bool gi_learns_time(const struct gi_launch *l, const struct gi_candidate *k);

/* Time of a block-task in a full launch, as measured before; 0: unknown. */
static inline uint64_t gi_block_ns(struct gi_shape *shape)
{
	return shape ? atomic_load_explicit(&shape->block_ns, memory_order_relaxed) : 0;
}

/* ---- short.c ---- */

/* A launch of so many blocks was looked up and is short; its stream needed no other priority. */
void gi_short_note(const struct gi_launch *l, const struct gi_ctx *cx, struct gi_shape *shape,
		   uint64_t blocks);

/* ---- submit.c ---- */

/* Makes the driver's own call, never between the calls of another thread's twin launch. */
CUresult gi_forward(const struct gi_launch *l);

/* The same for a launch that gsched does not govern. @cx may be NULL. */
CUresult gi_launch_unmanaged(const struct gi_launch *l, struct gi_ctx *cx);

/*
 * Launches a task of its own: slot, then lease or grant, then launch. *@refused: it cannot be a
 * twin now, and nothing was launched; the candidate's texture references have been released.
 */
CUresult gi_launch_task(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
			const struct gi_candidate *k, bool *refused);

#endif /* GI_CANDIDATE_H */
