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

struct gsr_text {
	const char *text, *expanded;
	unsigned int insns;
};

/* As the printer would write it: a tab before what is no label, no empty last line */
static const char *laid_out(struct gsr_arena *a, const char *text)
{
	char *out = gsr_alloc(a, 2 * strlen(text) + 1), *o = out;

	for (; *text; text++) {
		if (*text == '\n' && !text[1])
			break;
		*o++ = *text;
		if (*text == '\n' && text[1] != '$')
			*o++ = '\t';
	}
	*o = 0;
	return out;
}

static const struct gsr_text *text_of(struct gsr_pass *p, const char *text)
{
	struct gsr_function f = { 0 };
	struct gsr_text *t;
	unsigned int i;

	for (i = 0; i < p->n_texts; i++)
		if (p->texts[i].text == text)
			return &p->texts[i];
	for (i = 0; i < p->n_texts; i++)
		if (!strcmp(p->texts[i].text, text))
			return &p->texts[i];
	if (p->n_texts == p->room_texts) {
		p->room_texts = p->room_texts ? p->room_texts * 2 : 32;
		t = gsr_alloc_array(p->arena, p->room_texts, sizeof(*t));
		if (p->n_texts)
			memcpy(t, p->texts, p->n_texts * sizeof(*t));
		p->texts = t;
	}
	t = &p->texts[p->n_texts++];
	t->text = text;
	t->expanded = laid_out(p->arena, gsr_expand(p, text));
	t->insns = gsr_insert(p, &f, NULL, text);
	return t;
}

unsigned int gsr_insert_text(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *text)
{
	const struct gsr_text *t = text_of(p, text);
	struct gsr_stmt *s = gsr_alloc(p->arena, sizeof(*s));

	s->kind = GSR_STMT_DIRECTIVE;
	s->text = t->expanded;
	s->prev = at ? at->prev : f->last;
	s->next = at;
	if (s->prev)
		s->prev->next = s;
	else
		f->first = s;
	if (at)
		at->prev = s;
	else
		f->last = s;
	return t->insns;
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
