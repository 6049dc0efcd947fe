/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long the thread blocks of a program's kernels take, where the arbiter asks for it
 * (GSCHED_ARB_TIMED): some of the launches that nobody is asked about are between two events, and
 * their time is divided by the waves of blocks that they have. The least time of a kernel counts,
 * for while other bands have the GPU its clock goes on. A launch that cannot be measured so (a
 * graph, a twin, whose workers stay) makes the answer unknown until some hundred samples later. A
 * sample that may overlap its predecessor waits for that one's end.
 */
#ifndef GI_BLOCKS_H
#define GI_BLOCKS_H

#include <stdbool.h>
#include "device/device.h"

struct gi_launch;

bool gi_blocks_new(struct gi_client *c);		/* makes c->blocks */

/* The arbiter wants to know */
static inline bool gi_blocks_asked(const struct gi_client *c)
{
	return gi_load(&c->arb->header.flags) & GSCHED_ARB_TIMED;
}

/* Makes the launch, perhaps as a sample. No capture goes on. */
CUresult gi_blocks_launch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l);

/* The next launch that comes here is a sample. How many others may pass before it */
unsigned int gi_blocks_stride(struct gi_client *c);

/* A launch that is not measured */
void gi_blocks_other(struct gi_client *c);

/* For struct gsched_report.block_us. The agent. */
uint32_t gi_blocks_us(struct gi_client *c);

/* The context is about to be destroyed, and its events. */
void gi_blocks_drop(struct gi_client *c, struct gi_ctx *cx);

#endif /* GI_BLOCKS_H */
