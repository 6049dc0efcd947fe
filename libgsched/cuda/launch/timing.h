/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long originals take, by shape: whether the kernel is worth a twin, and what is told to the
 * arbiter of a launch. The first launches of a shape and one in so many later are between two
 * events, whether the arbiter is asked about them or not.
 */
#ifndef GI_TIMING_H
#define GI_TIMING_H

#include "launch/launch.h"

#define GI_TIMED_FIRST	3	/* launches of a shape that are timed ... */
#define GI_TIMED_EVERY	256	/* ... and then one in so many: well below the hundredth part that a p99 shows */

bool gi_timings_new(struct gi_client *c);	/* makes c->timings */

/* Is the shape's next launch to be timed? */
static inline bool gi_timing_due(const struct gi_shape *shape)
{
	return atomic_load_explicit(&shape->samples, memory_order_relaxed) < GI_TIMED_FIRST ||
	       atomic_load_explicit(&shape->launches, memory_order_relaxed) % GI_TIMED_EVERY == 0;
}

/* What is launched */
struct gi_timed {
	struct gi_func *fn;		/* whose shape it is, or */
	struct gi_graph *graph;
	struct gi_shape *shape;
	uint64_t blocks;
};

/* Makes the launch by @forward, and times it if that is possible now. No capture goes on. */
CUresult gi_timing_launch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
			  CUresult (*forward)(const struct gi_launch *l), const struct gi_timed *of);

/* Learns from those that have ended. */
void gi_timings_look(struct gi_client *c);

/* Code is about to be unloaded or a context to be destroyed: nothing of them is held. */
void gi_timings_drop(struct gi_client *c);

#endif /* GI_TIMING_H */
