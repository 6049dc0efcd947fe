/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reaching definitions, by register and instruction. Compilers use one register for several values,
 * so that what some definition writes need not concern a use. Valid as long as the graph.
 */
#ifndef GSR_REACH_H
#define GSR_REACH_H

#include "analysis.h"

#define GSR_REACHING_MAX	64u

struct gsr_reach {
	const struct gsr_defuse *d;
	unsigned int *block;		/* by instruction */
	unsigned int *first_insn;	/* by block; one more, which is the end */
	unsigned int *first_def, *defs;	/* by register; in the order of the text */
	struct gsr_preds preds;
	unsigned int *todo;
	unsigned long *seen;		/* by block: the last walk that came there */
	unsigned long walks;
	size_t budget;			/* blocks that may still be walked through */
};

/* In @a. Assumes gsr_defuse_enter() */
struct gsr_reach *gsr_reach(struct gsr_arena *a, const struct gsr_cfg *cfg,
			    const struct gsr_defuse *d);

/*
 * Which definitions of the register may have written what instruction @insn reads: their numbers to
 * @defs, which has room for GSR_REACHING_MAX, and how many. false: too many, or too far away.
 * Those that were never executed count, too, and what nothing has written does not.
 */
bool gsr_reaching(struct gsr_reach *r, unsigned int insn, unsigned int reg, unsigned int *defs,
		  unsigned int *n);

#endif /* GSR_REACH_H */
