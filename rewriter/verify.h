/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What must hold of a kernel between two passes, for gsr_options.verify */
#ifndef GSR_VERIFY_H
#define GSR_VERIFY_H

#include "rewriter/analysis/analysis.h"

/* What passes have brought about; the rest holds from the parser on */
struct gsr_promises {
	bool flat;			/* the kernel has no inner scopes */
	bool sites;			/* it has no plain barriers: all became meetings */
	bool ids;			/* only inserted code reads %ctaid and %nctaid */
	bool variables;			/* no .global or .const variable of the input is named */
	bool returns;			/* the kernel's body has one way out: its end */
	bool loop;			/* the worker's loop is around the body, and returns once */
	bool whole;			/* nothing remains to be declared */
};

/*
 * Checks the functions of @c against what @m declares. NULL: nothing is wrong; else
 * "FUNCTION:LINE: what", with the line of the input, 0 or 1 in inserted code; in @p's arena.
 * Changes nothing, marks of names included.
 */
const char *gsr_verify(struct gsr_pass *p, const struct gsr_module *m, const struct gsr_closure *c,
		       const struct gsr_promises *promises);

#endif /* GSR_VERIFY_H */
