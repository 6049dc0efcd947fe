// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Removes inner scopes. A label in an inner scope is no target for branches from outside, and an
 * inlined function may use the same names as its caller: so whatever a scope declares is renamed to
 * a unique name, in all its uses, and the braces are removed.
 *
 * In: a function. Out: the same without braces, all names unique. Assumes nothing; the graph must
 * be rebuilt.
 */
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/lex.h"
#include "transform.h"

#define NEST_MAX	256	/* as in the parser */

struct entry {
	const char *name, *to;
	unsigned int range;		/* %r<range>; 0 a single name */
	unsigned int outer;		/* entry of the same name further out, from 1; 0 none */
	unsigned long mark;		/* the name's before the first entry */
};

struct scopes {
	struct gsr_pass *p;
	struct entry *entries;
	unsigned int n;
	unsigned int base[NEST_MAX + 2];
	unsigned int depth;
	bool all;
};

static struct entry *entry_of(struct scopes *st, const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	return m && m <= st->n && st->entries[m - 1].name == name ? &st->entries[m - 1] : NULL;
}

/* A prefix and a number keep what nothing else is called; the rest is for the reader */
static const char *new_name(struct scopes *st, const char *name)
{
	const char *head = *name == '%' ? "%" : *name == '$' ? "$" : "";

	return gsr_intern_str(st->p->arena,
			      gsr_expand(st->p, gsr_sprintf(st->p->arena, "%s#%u_%s", head,
							    ++st->p->unique, name + strlen(head))));
}

static void declare(struct scopes *st, const char *name, unsigned int range)
{
	struct entry *outer = entry_of(st, name), *e;

	/* said twice in one scope: a forward declaration */
	if ((!st->depth && !st->all) ||
	    (outer && (unsigned int)(outer - st->entries) >= st->base[st->depth] &&
	     outer->range == range))
		return;
	e = &st->entries[st->n++];
	e->name = name;
	e->to = new_name(st, name);
	e->range = range;
	e->outer = outer ? (unsigned int)(outer - st->entries) + 1 : 0;
	e->mark = outer ? outer->mark : *gsr_intern_mark(name);
	*gsr_intern_mark(name) = st->n;
}

static void leave_scope(struct scopes *st, unsigned int base)
{
	while (st->n > base) {
		struct entry *e = &st->entries[st->n - 1];

		*gsr_intern_mark(e->name) = e->outer ? e->outer : e->mark;
		st->n--;
	}
}

/* The innermost declaration that covers the name: itself, or as one of a range */
static const char *meant(struct scopes *st, const char *name)
{
	struct entry *single = entry_of(st, name), *range = NULL;
	size_t n = strlen(name), d = n;
	unsigned long number;

	while (single && single->range)
		single = single->outer ? &st->entries[single->outer - 1] : NULL;
	while (d && name[d - 1] >= '0' && name[d - 1] <= '9')
		d--;
	if (d && d < n && n - d <= 9 && (name[d] != '0' || n - d == 1)) {
		number = strtoul(name + d, NULL, 10);
		range = entry_of(st, gsr_intern(st->p->arena, name, d));
		while (range && range->range <= number)
			range = range->outer ? &st->entries[range->outer - 1] : NULL;
	}
	if (range && (!single || range > single))
		return gsr_intern_str(st->p->arena,
				      gsr_sprintf(st->p->arena, "%s%s", range->to, name + d));
	return single ? single->to : name;
}

static void operand(struct scopes *st, struct gsr_operand *o)
{
	unsigned int i;

	if (o->name)
		o->name = meant(st, o->name);
	for (i = 0; i < o->n_items; i++)
		operand(st, &o->items[i]);
}

static void instruction(struct scopes *st, struct gsr_insn *insn)
{
	unsigned int i;

	if (insn->guard)
		insn->guard = meant(st, insn->guard);
	for (i = 0; i < insn->n_opnds; i++)
		operand(st, &insn->opnds[i]);
}

/* "ts: .branchtargets A, B;": all identifiers */
static const char *directive(struct scopes *st, const char *text)
{
	struct gsr_arena *a = st->p->arena;
	const char *out = "", *from = text;
	struct gsr_lexer lx;
	struct gsr_token t;

	gsr_lex_init(&lx, text, strlen(text));
	while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END && t.kind != GSR_TOK_BAD) {
		if (t.kind != GSR_TOK_IDENT)
			continue;
		out = gsr_sprintf(a, "%s%.*s%s", out, (int)(t.text - from), from,
				  meant(st, gsr_intern(a, t.text, t.len)));
		from = t.text + t.len;
	}
	return gsr_sprintf(a, "%s%s", out, from);
}

static bool labelled(const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_DIRECTIVE && s->text[0] != '.';
}

/* Labels are known in the whole of their scope, before they are reached */
static void labels(struct scopes *st, const struct gsr_stmt *s)
{
	unsigned int depth = 0;

	for (; s; s = s->next) {
		if (s->kind == GSR_STMT_OPEN)
			depth++;
		else if (s->kind == GSR_STMT_CLOSE && !depth--)
			return;
		if (depth)
			continue;
		if (s->kind == GSR_STMT_LABEL)
			declare(st, s->label, 0);
		else if (labelled(s))
			declare(st, gsr_intern(st->p->arena, s->text, strcspn(s->text, " \t\r\n:")),
				0);
	}
}

static unsigned int declarations(const struct gsr_function *f)
{
	const struct gsr_stmt *s;
	unsigned int n = 0;

	for (s = f->first; s; s = s->next)
		n += s->kind == GSR_STMT_VAR || s->kind == GSR_STMT_LABEL ||
		     s->kind == GSR_STMT_DIRECTIVE;
	return n;
}

/* The analyses go by names, so they would take one for the other */
bool gsr_hides_names(struct gsr_pass *p, const struct gsr_function *f)
{
	struct scopes st = { .p = p, .all = true };
	const struct gsr_stmt *s;
	bool hides = false;

	for (s = f->first; s && s->kind != GSR_STMT_OPEN; s = s->next)
		;
	if (!s)
		return false;
	st.entries = gsr_alloc_array(p->arena, declarations(f) + 1, sizeof(*st.entries));
	for (s = f->first; s && !hides; s = s->next) {
		if (s->kind == GSR_STMT_OPEN) {
			st.base[++st.depth] = st.n;
		} else if (s->kind == GSR_STMT_CLOSE) {
			leave_scope(&st, st.base[st.depth--]);
		} else if (s->kind == GSR_STMT_VAR) {
			hides = st.depth && (entry_of(&st, s->var->name) ||
					     meant(&st, s->var->name) != s->var->name);
			declare(&st, s->var->name, s->var->range);
		}
	}
	leave_scope(&st, 0);
	return hides;
}

void gsr_flatten(struct gsr_pass *p, struct gsr_function *f, bool all)
{
	struct scopes st = { .p = p, .all = all };
	struct gsr_stmt *s, *next;

	st.entries = gsr_alloc_array(p->arena, declarations(f) + 1, sizeof(*st.entries));
	labels(&st, f->first);
	for (s = f->first; s; s = next) {
		next = s->next;
		switch (s->kind) {
		case GSR_STMT_OPEN:
			st.base[++st.depth] = st.n;
			labels(&st, next);
			gsr_remove(f, s);
			break;
		case GSR_STMT_CLOSE:
			leave_scope(&st, st.base[st.depth--]);
			gsr_remove(f, s);
			break;
		case GSR_STMT_VAR:
			declare(&st, s->var->name, s->var->range);
			if (st.depth || all) {
				struct entry *e = entry_of(&st, s->var->name);

				s->var->name = e->to;
			}
			break;
		case GSR_STMT_LABEL:
			s->label = meant(&st, s->label);
			break;
		case GSR_STMT_DIRECTIVE:
			if (labelled(s))
				s->text = directive(&st, s->text);
			break;
		case GSR_STMT_INSN:
			instruction(&st, s->insn);
			break;
		}
	}
	leave_scope(&st, 0);
}
