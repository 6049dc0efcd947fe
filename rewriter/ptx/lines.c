// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Removal of statements and of line information.
 *
 * In: a function or a directive. Out: the function without the statement, or without its .loc;
 * whether the directive is line information. Assumes nothing.
 */
#include <string.h>
#include "ptx.h"

void gsr_remove(struct gsr_function *f, struct gsr_stmt *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		f->first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	else
		f->last = s->prev;
}

void gsr_drop_lines(struct gsr_function *f)
{
	struct gsr_stmt *s;

	/* a removed statement keeps its next pointer, so the walk can go on from it */
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_DIRECTIVE && !strncmp(s->text, ".loc", 4))
			gsr_remove(f, s);
}

bool gsr_is_line_info(const char *text)
{
	return !strncmp(text, ".file", 5) || !strncmp(text, ".loc", 4) ||
	       !strncmp(text, ".section", 8);
}
