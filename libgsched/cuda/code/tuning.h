/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The constants of launching twins, shared with the benchmarks that measure twins. */
#ifndef GI_TUNING_H
#define GI_TUNING_H

#include "rewriter/gsr.h"
#include "rewriter/abi.h"

#define GI_LONG_NS		200000	/* shorter kernels are not worth preempting */
/*
 * Block-tasks this short make room for streams of greater priority as fast as windows do, at no
 * cost (H200: a 13 us kernel of 132 blocks beside blocks of 20 us has 38/43 us median/p99 by
 * priority, 55/140 by windows).
 */
#define GI_SHORT_BLOCK_NS	100000
/* consecutive launches that show that a client uses such streams */
#define GI_PRIORITISED		32
#define GI_POLL_NS		2000
/*
 * Clocks between two polls by a worker in the middle of a block-task, 18 us (H200). With 20000 the
 * last worker is gone 7 to 10 us sooner, and kernels with a loop of few instructions are 1 to 5
 * percent slower.
 */
#define GI_POLL_CLOCKS		36000
/* A fetch costs a worker about 0.7 us (H200), and eviction waits until its block-tasks end */
#define GI_FETCH_NS		25000
#define GI_FETCH_MAX		256
/*
 * More workers than this contend for one counter (1.1 cycles an addition, H200). Together, or with
 * fetches of more than GI_STRICT_FETCH, they spread over so much of the grid that caches and DRAM
 * pages suffer. Then fetches are dealt in stripes. A strict order has the shorter fetch, which
 * gains up to 3 percent where neither applies (H200).
 */
#define GI_STRICT_WORKERS	3000
#define GI_STRICT_FETCH		12
/*
 * In temporal mode, kernels with longer block-tasks are worth the resumable form, since eviction
 * waits for the end of a block-task. The form costs several percent (H200), and shorter block-tasks
 * end nearly as soon as they are saved.
 */
#define GI_RESUME_NS		400000
/*
 * The time that a resumable worker needs to leave, estimated: GI_POLL_NS until one worker sees the
 * window, half of GI_POLL_CLOCKS, 9 us, until the others see it in their copies, and writing the
 * registers and shared memory of a full SM to memory, 300 KB at an SM's share of the bandwidth:
 * about 10 us, doubled as a margin. Measured medians are 16 to 62 us (H100).
 */
#define GI_LEAVE_NS		30000

/*
 * The register limit for a twin that would have a lower occupancy than its original: the SM's
 * registers divided by the threads that it can hold, or what the original uses, rounded to the
 * allocation unit.
 */
static inline unsigned int gi_register_cap(unsigned int original, unsigned int sm_registers,
					   unsigned int sm_threads)
{
	unsigned int even = sm_threads ? sm_registers / sm_threads / 8 * 8 : 0,
		used = (original + 7) / 8 * 8;

	return even > used ? even : used;
}

/*
 * Chooses the order of block-tasks, once the grid is set. @in_order: block-tasks may wait for lower
 * ones, or lie in ranges. @block_ns: time of a block-task in a full launch, as measured before; 0:
 * unknown.
 */
static inline void gi_order(struct gsr_launch *a, bool in_order, uint64_t block_ns)
{
	enum gsr_order order = GSR_ORDER_STRIPES;
	uint64_t depth = block_ns ? (uint64_t)a->fetch_ns / block_ns : 0;

	if (block_ns && !depth)
		depth = 1;
	if (depth > (unsigned int)a->fetch_max)
		depth = (unsigned int)a->fetch_max;
	if (in_order || (a->workers <= GI_STRICT_WORKERS && depth <= GI_STRICT_FETCH))
		order = GSR_ORDER_STRICT;
	gsr_launch_order(a, order, a->workers, depth);
}

#endif /* GI_TUNING_H */
