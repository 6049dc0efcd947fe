/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures how long the thread blocks of a program's kernels take, while the arbiter asks for it
 * (GSCHED_ARB_TIMED). Some of the launches that pass without the arbiter are bracketed by two
 * events; the time between them is divided by the number of waves of blocks in the launch. The
 * minimum per kernel counts, because the event clock goes on while the GPU runs other bands. A
 * launch that cannot be measured this way (a graph, or a twin, whose workers stay resident) makes
 * the answer unknown until a second without one is over (gi_client.untimed) and some hundred
 * samples more are there. The event in front of a sample makes it wait for its predecessor, even
 * where the two might have overlapped. A sample costs the program some 10 us, so once the answer is
 * known there is one in 10 ms.
 */
#ifndef GI_BLOCKS_H
#define GI_BLOCKS_H

#include <stdbool.h>
#include "device/device.h"

struct gi_launch;

bool gi_blocks_new(struct gi_client *c);		/* makes c->blocks */

/* Whether the arbiter asks for block times. */
static inline bool gi_blocks_asked(const struct gi_client *c)
{
	return gi_load(&c->arb->header.flags) & GSCHED_ARB_TIMED;
}

/* Makes the launch by @forward, possibly as a sample. The stream is not being captured. */
CUresult gi_blocks_launch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
			  CUresult (*forward)(const struct gi_launch *l));

/* How many launches may pass before the next sample. */
uint32_t gi_blocks_left(const struct gi_client *c);

/* Whether the next launch is to be a sample, as the last one was long ago. Called by the agent. */
bool gi_blocks_look(struct gi_client *c, uint64_t now);

/* Records that a launch was not measured. */
void gi_blocks_unmeasured(struct gi_client *c);

/* The answer, for struct gsched_report.block_us. Called by the agent. */
uint32_t gi_blocks_us(struct gi_client *c);

/* Destroys the events of a context that is about to be destroyed. */
void gi_blocks_drop(struct gi_client *c, struct gi_ctx *cx);

#endif /* GI_BLOCKS_H */
