// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the passes insert is written as PTX text: '#' stands for the prefix of all names we make. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "rewrite.h"

static size_t count(const char *text, char c)
{
	size_t n = 0;

	while ((text = strchr(text, c))) {
		text++;
		n++;
	}
	return n;
}

const char *gsr_expand(struct gsr_pass *p, const char *text)
{
	size_t n = strlen(p->prefix), k;
	char *out = gsr_alloc_text(p->arena, strlen(text) + count(text, '#') * n), *o = out;

	for (;; text += k + 1) {
		k = strcspn(text, "#");
		memcpy(o, text, k);
		o += k;
		if (!text[k])
			break;
		memcpy(o, p->prefix, n);
		o += n;
	}
	*o = 0;
	return out;
}

static void link_in(struct gsr_function *f, struct gsr_stmt *at, struct gsr_stmt *first, struct gsr_stmt *last)
{
	first->prev = at ? at->prev : f->last;
	last->next = at;
	if (first->prev)
		first->prev->next = first;
	else
		f->first = first;
	if (at)
		at->prev = last;
	else
		f->last = last;
}

unsigned int gsr_insert(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *text)
{
	struct gsr_error err;
	struct gsr_function *body = gsr_parse_body(p->arena, gsr_sprintf(p->arena, "{%s}", gsr_expand(p, text)), &err);
	struct gsr_stmt *s;
	unsigned int n = 0;

	if (!body)
		abort();	/* our own text: the tests insert every piece of it */
	if (!body->first)
		return 0;
	for (s = body->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN;
	link_in(f, at, body->first, body->last);
	return n;
}

struct gsr_text {
	const char *text, *expanded;
	unsigned int insns;
};

static bool declares(const char *text)
{
	while (*text == ' ')
		text++;
	return *text == '.';
}

/* As the printer would write it: names expanded, a tab before what is no label, no empty last line; instructions are counted */
static struct gsr_text lay_out(struct gsr_pass *p, const char *text)
{
	size_t n = strlen(p->prefix), room = strlen(text) + count(text, '#') * n + count(text, '\n');
	struct gsr_text t = { .text = text };
	char *out = gsr_alloc_text(p->arena, room), *o = out;
	bool declaration = declares(text);
	const char *c;

	for (; *text && (*text != '\n' || text[1]); text++) {
		if (*text == '#') {
			for (c = p->prefix; *c; c++)
				*o++ = *c;
			continue;
		}
		*o++ = *text;
		if (*text != ';' && *text != '\n')
			continue;
		if (*text == '\n' && text[1] != '$')
			*o++ = '\t';
		t.insns += *text == ';' && !declaration;
		declaration = declares(text + 1);
	}
	*o = 0;
	t.expanded = out;
	return t;
}

/* Its place in the table, or the free one for it */
static struct gsr_text *place(const struct gsr_pass *p, const char *text)
{
	uintptr_t at = (uintptr_t)text;

	for (at = at / 16 ^ at / 4096;; at++) {
		struct gsr_text *t = &p->texts[at & (p->room_texts - 1)];

		if (!t->text || t->text == text)
			return t;
	}
}

/* By its address: all kernels get much the same texts, which are constants */
static const struct gsr_text *text_of(struct gsr_pass *p, const char *text)
{
	struct gsr_text *old = p->texts, *t;
	unsigned int i, n = p->room_texts;

	if (2 * p->n_texts >= n) {
		p->room_texts = n ? n * 2 : 128;
		p->texts = gsr_alloc_array(p->arena, p->room_texts, sizeof(*t));
		for (i = 0; i < n; i++)
			if (old[i].text)
				*place(p, old[i].text) = old[i];
	}
	t = place(p, text);
	if (!t->text) {
		*t = lay_out(p, text);
		p->n_texts++;
	}
	return t;
}

static unsigned int insert_laid_out(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const struct gsr_text *t)
{
	struct gsr_stmt *s = gsr_alloc(p->arena, sizeof(*s));

	s->kind = GSR_STMT_DIRECTIVE;
	s->text = t->expanded;
	link_in(f, at, s, s);
	return t->insns;
}

unsigned int gsr_insert_text(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *text)
{
	return insert_laid_out(p, f, at, text_of(p, text));
}

unsigned int gsr_insert_format(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *fmt, ...)
{
	struct gsr_text t;
	va_list ap;

	va_start(ap, fmt);
	t = lay_out(p, gsr_vsprintf(p->arena, fmt, ap));
	va_end(ap);
	return insert_laid_out(p, f, at, &t);
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

struct gsr_stmt *gsr_stmt_copy(struct gsr_arena *a, const struct gsr_stmt *s)
{
	struct gsr_stmt *out = gsr_alloc(a, sizeof(*out));

	*out = *s;
	if (s->kind == GSR_STMT_INSN) {
		out->insn = gsr_insn_copy(a, s->insn);
	} else if (s->kind == GSR_STMT_VAR) {
		out->var = gsr_alloc(a, sizeof(*out->var));
		*out->var = *s->var;
	}
	return out;
}

void gsr_insert_behind(struct gsr_function *f, struct gsr_stmt *at, struct gsr_stmt *s)
{
	s->prev = at;
	s->next = at->next;
	if (at->next)
		at->next->prev = s;
	else
		f->last = s;
	at->next = s;
}
