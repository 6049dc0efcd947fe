/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Live registers of a function without inner scopes: those that may be live at the start of a block
 * or in front of a barrier. The others, which are written and read between two such places only,
 * are not looked at.
 */
#ifndef GSR_LIVENESS_H
#define GSR_LIVENESS_H

#include "analysis.h"

struct gsr_live {
	const struct gsr_defuse *d;
	unsigned int *index;			/* by register number, of .regs; or GSR_NO_REG */
	struct {
		const char *name;
		const struct gsr_var *var;	/* its declaration */
		unsigned int written;		/* while they are looked for: the stretch of code
						 * that wrote it last */
		bool crosses;			/* it is read in another */
	} *regs;
	unsigned int n;
	unsigned int words;			/* of 64 bits, a set */
	uint64_t *in;				/* by block */
	const struct gsr_var **ranges;		/* declarations of many at once */
	unsigned int n_ranges;
};

/*
 * A reason why it cannot be told, or NULL. Enters the names of @fn->defuse: valid until the marks
 * are used for something else.
 */
const char *gsr_liveness(struct gsr_live *l, struct gsr_arena *a, const struct gsr_fn *fn);

/* What is live before statement @at of @block, as a set of l->words words */
void gsr_live_before(struct gsr_live *l, const struct gsr_cfg *cfg, unsigned int block,
		     const struct gsr_stmt *at, uint64_t *live);

#endif /* GSR_LIVENESS_H */
