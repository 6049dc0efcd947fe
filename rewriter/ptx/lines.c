// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Taking out a statement; line information.
 *
 * In: a function or a directive. Out: the function without the statement, or without .loc;
 * whether the directive is of that kind. Assumes nothing.
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

	/* what was taken out still knows who came after it */
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_DIRECTIVE && !strncmp(s->text, ".loc", 4))
			gsr_remove(f, s);
}

bool gsr_is_line_info(const char *text)
{
	return !strncmp(text, ".file", 5) || !strncmp(text, ".loc", 4) ||
	       !strncmp(text, ".section", 8);
}
