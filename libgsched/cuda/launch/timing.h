/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures how long originals take, by shape. This decides whether a kernel is worth a twin, and is
 * the estimate that the arbiter gets with a launch. The first launches of a shape, and later one in
 * GI_TIMED_EVERY, are bracketed by two events. Of launches that the arbiter is told about it is one
 * in GI_TIMED_ASKED, and the arbiter is told their times, too: it learns from them how many SMs
 * recurring kernels need. Once it has (GSCHED_ARB_HELD), it is one in GI_TIMED_HELD.
 */
#ifndef GI_TIMING_H
#define GI_TIMING_H

#include "launch/launch.h"

#define GI_TIMED_FIRST	3	/* launches of a shape that are timed */
#define GI_TIMED_EVERY	256	/* then one in so many: well below the 1% that a p99 shows */
#define GI_TIMED_ASKED	8	/* ... of those that the arbiter is told about */
#define GI_TIMED_HELD	128	/* ... once it has learnt: below 1%, as above */

bool gi_timings_new(struct gi_client *c);	/* makes c->timings */

/* Whether the shape's next launch is to be timed, one of @every. */
static inline bool gi_timing_due(struct gi_shape *shape, unsigned int every)
{
	uint32_t n = atomic_load_explicit(&shape->launches, memory_order_relaxed);

	if (atomic_load_explicit(&shape->samples, memory_order_relaxed) >= GI_TIMED_FIRST &&
	    n - atomic_load_explicit(&shape->timed_at, memory_order_relaxed) < every)
		return false;
	atomic_store_explicit(&shape->timed_at, n, memory_order_relaxed);
	return true;
}

/* What a timed launch is about */
struct gi_timed {
	struct gi_func *fn;		/* the owner of @shape, either a kernel */
	struct gi_graph *graph;		/* ... or a graph */
	struct gi_shape *shape;
	uint64_t blocks;
	struct gi_slot *slot;		/* the task's, for as long as its seq is @seq; NULL: none */
	uint32_t seq;
};

/* Makes the launch by @forward, and times it if possible now. The stream is not being captured. */
CUresult gi_timing_launch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
			  CUresult (*forward)(const struct gi_launch *l),
			  const struct gi_timed *of);

/* Takes the times of launches that have ended. Leaves the calling thread's context as it was. */
void gi_timings_poll(struct gi_client *c);

/* Drops all references, before code is unloaded or a context destroyed. */
void gi_timings_drop(struct gi_client *c);

#endif /* GI_TIMING_H */
