// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * parse(print(x)) = x: two trees compared, field by field. Strings are interned per module, so by
 * their text.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "same.h"

struct where {
	char *why;
	size_t size;
	const char *function;
	unsigned int line;
};

__attribute__((format(printf, 2, 3))) static bool differ(const struct where *w,
							 const char *fmt, ...)
{
	char what[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(w->why, w->size, "%s, line %u: %s", w->function ? w->function : "module scope",
		 w->line, what);
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

#define TEXT(field) do { \
	if (!same_text(a->field, b->field)) \
		return differ(w, "%s '%.40s' and '%.40s'", #field, a->field ? a->field : "(none)", \
			      b->field ? b->field : "(none)"); \
} while (0)

#define NUMBER(field) do { \
	if (a->field != b->field) \
		return differ(w, "%s %lld and %lld", #field, (long long)a->field, \
			      (long long)b->field); \
} while (0)

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the parser lets operands nest */
static bool same_operand(const struct where *w, const struct gsr_operand *a,
			 const struct gsr_operand *b)
{
	unsigned int i;

	NUMBER(kind);
	NUMBER(negated);
	NUMBER(minus);
	NUMBER(indexed);
	NUMBER(component);
	TEXT(name);
	TEXT(selector);
	TEXT(text);
	NUMBER(ival);
	NUMBER(bits);
	NUMBER(n_items);
	for (i = 0; i < a->n_items; i++)
		if (!same_operand(w, &a->items[i], &b->items[i]))
			return false;
	return true;
}

static bool same_insn(const struct where *w, const struct gsr_insn *a, const struct gsr_insn *b)
{
	unsigned int i;

	NUMBER(op);
	TEXT(name);
	NUMBER(n_mods);
	for (i = 0; i < a->n_mods; i++)
		TEXT(mods[i]);
	TEXT(guard);
	NUMBER(guard_negated);
	NUMBER(n_opnds);
	for (i = 0; i < a->n_opnds; i++)
		if (!same_operand(w, &a->opnds[i], &b->opnds[i]))
			return false;
	return true;
}

static bool same_var(struct where *w, const struct gsr_var *a, const struct gsr_var *b)
{
	unsigned int i;

	w->line = a->line;
	TEXT(space);
	TEXT(linkage);
	NUMBER(align);
	NUMBER(vec);
	TEXT(type);
	TEXT(attrs);
	TEXT(name);
	NUMBER(range);
	NUMBER(n_dims);
	for (i = 0; i < a->n_dims; i++)
		NUMBER(dims[i]);
	TEXT(init);
	return true;
}

static bool same_stmt(struct where *w, const struct gsr_stmt *a, const struct gsr_stmt *b)
{
	w->line = a->line;
	NUMBER(kind);
	switch (a->kind) {
	case GSR_STMT_INSN:
		return same_insn(w, a->insn, b->insn);
	case GSR_STMT_VAR:
		return same_var(w, a->var, b->var);
	case GSR_STMT_LABEL:
		TEXT(label);
		return true;
	case GSR_STMT_DIRECTIVE:
		TEXT(text);
		return true;
	case GSR_STMT_OPEN:
	case GSR_STMT_CLOSE:
		return true;
	}
	return true;
}

static bool same_function(struct where *w, const struct gsr_function *a,
			  const struct gsr_function *b)
{
	const struct gsr_stmt *s, *t;
	unsigned int i;

	w->function = a->name;
	w->line = a->line;
	NUMBER(entry);
	TEXT(linkage);
	TEXT(attrs);
	TEXT(name);
	NUMBER(n_rets);
	NUMBER(n_params);
	for (i = 0; i < a->n_rets; i++)
		if (!same_var(w, &a->rets[i], &b->rets[i]))
			return false;
	for (i = 0; i < a->n_params; i++)
		if (!same_var(w, &a->params[i], &b->params[i]))
			return false;
	NUMBER(n_perf);
	for (i = 0; i < a->n_perf; i++)
		TEXT(perf[i]);
	NUMBER(body);
	for (s = a->first, t = b->first; s && t; s = s->next, t = t->next)
		if (!same_stmt(w, s, t))
			return false;
	return !s && !t ? true : differ(w, "a statement more");
}

bool same_module(const struct gsr_module *a, const struct gsr_module *b, char *why, size_t size)
{
	struct where where = { .why = why, .size = size }, *w = &where;
	const struct gsr_item *i, *j;

	why[0] = 0;
	TEXT(version);
	TEXT(target);
	NUMBER(arch);
	NUMBER(address_size);
	for (i = a->first, j = b->first; i && j; i = i->next, j = j->next) {
		bool same = i->kind == j->kind;

		w->function = NULL;
		if (same && i->kind == GSR_ITEM_FUNCTION)
			same = same_function(w, i->function, j->function);
		else if (same && i->kind == GSR_ITEM_VAR)
			same = same_var(w, i->var, j->var);
		else if (same)
			same = same_text(i->text, j->text) ||
			       differ(w, "'%.40s' and '%.40s'", i->text, j->text);
		else
			differ(w, "items of two kinds");
		if (!same)
			return false;
	}
	w->function = NULL;
	return !i && !j ? true : differ(w, "an item more");
}
