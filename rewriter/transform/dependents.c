// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programmatic dependent launches. A kernel may let the next one in its stream begin early, which
 * then waits for this one's end before it uses its results. The end of a twin's first launch is not
 * that of its task, and evicted workers would have to let the next one begin, too; a trigger is a
 * permission only, so twins have none. griddepcontrol.wait stays: twins are not launched as
 * dependents, so it returns at once.
 *
 * In: a function. Out: the same without triggers. Assumes that its graph has not been built.
 */
#include "transform.h"

void gsr_drop_triggers(struct gsr_function *f)
{
	struct gsr_stmt *s, *next;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_GRIDDEPCONTROL &&
		    gsr_insn_has(s->insn, "launch_dependents"))
			gsr_remove(f, s);
	}
}
