// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the passes insert is written as PTX text and parsed: '#' stands for the prefix of all names we make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewrite.h"

const char *gsr_expand(struct gsr_pass *p, const char *text)
{
	size_t n = strlen(p->prefix), room = strlen(text) + 1;
	const char *s;
	char *out, *o;

	for (s = text; *s; s++)
		room += *s == '#' ? n : 0;
	out = o = gsr_alloc(p->arena, room);
	for (s = text; *s; s++) {
		if (*s == '#') {
			memcpy(o, p->prefix, n);
			o += n;
		} else {
			*o++ = *s;
		}
	}
	return out;
}

unsigned int gsr_insert(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *text)
{
	struct gsr_error err;
	struct gsr_function *body = gsr_parse_body(p->arena, gsr_sprintf(p->arena, "{%s}", gsr_expand(p, text)), &err);
	struct gsr_stmt *s, *before = at ? at->prev : f->last;
	unsigned int n = 0;

	if (!body)
		abort();	/* our own text: the tests insert every piece of it */
	if (!body->first)
		return 0;
	for (s = body->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN;
	body->first->prev = before;
	if (before)
		before->next = body->first;
	else
		f->first = body->first;
	body->last->next = at;
	if (at)
		at->prev = body->last;
	else
		f->last = body->last;
	return n;
}

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
