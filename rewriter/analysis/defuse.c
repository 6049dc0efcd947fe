// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The def-use index: registers get numbers in the order of their first mention, by the marks of
 * their names. Flow-insensitive: it tells which instructions name a register, not which of them
 * reaches which.
 *
 * In: a function. Out: struct gsr_defuse. Assumes that no name means two registers.
 */
#include "defuse.h"

struct builder {
	struct gsr_defuse *d;
	unsigned int now;		/* number of the instruction */
	unsigned int n_mentions;
};

typedef void (*name_fn)(struct builder *b, const char *name);

static void visit_operand(struct builder *b, const struct gsr_operand *o, name_fn fn)
{
	unsigned int i;

	if (gsr_names_register(o))
		fn(b, o->name);
	for (i = 0; i < o->n_items; i++)
		visit_operand(b, &o->items[i], fn);
}

static void visit_all(struct builder *b, name_fn fn)
{
	for (b->now = 0; b->now < b->d->n_insns; b->now++) {
		const struct gsr_insn *insn = b->d->insns[b->now];
		unsigned int i;

		for (i = 0; i < insn->n_opnds; i++)
			visit_operand(b, &insn->opnds[i], fn);
		if (insn->guard)
			fn(b, insn->guard);
	}
}

static void forget(struct builder *b, const char *name)
{
	*gsr_intern_mark(name) = 0;
	b->n_mentions++;
}

static void number(struct builder *b, const char *name)
{
	unsigned long *m = gsr_intern_mark(name);

	if (!*m)
		*m = ++b->d->n_regs;
}

static void count(struct builder *b, const char *name)
{
	struct gsr_reg *r = &b->d->regs[*gsr_intern_mark(name) - 1];

	r->name = name;
	r->end++;
}

static void enter(struct builder *b, const char *name)
{
	struct gsr_reg *r = &b->d->regs[*gsr_intern_mark(name) - 1];

	b->d->mentions[r->end++] = b->now;
}

static void define(struct builder *b, const char *name)
{
	struct gsr_reg *r = &b->d->regs[*gsr_intern_mark(name) - 1];

	r->def = b->d->insns[b->now];
	r->n_defs++;
}

struct gsr_defuse *gsr_defuse_build(struct gsr_arena *a, const struct gsr_function *f)
{
	struct gsr_defuse *d = gsr_alloc(a, sizeof(*d));
	struct builder b = { .d = d };
	unsigned int n = 0, i, k;
	const struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN;
	d->insns = gsr_alloc_array(a, n + 1, sizeof(struct gsr_insn *));
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN)
			d->insns[d->n_insns++] = s->insn;
	visit_all(&b, forget);
	visit_all(&b, number);
	d->regs = gsr_alloc_array(a, d->n_regs + 1, sizeof(*d->regs));
	d->mentions = gsr_alloc_array(a, b.n_mentions + 1, sizeof(*d->mentions));
	visit_all(&b, count);
	for (i = n = 0; i < d->n_regs; i++) {
		k = d->regs[i].end;
		d->regs[i].first = d->regs[i].end = n;
		n += k;
	}
	visit_all(&b, enter);
	for (b.now = 0; b.now < d->n_insns; b.now++)
		if (gsr_defined_by(d->insns[b.now]))
			visit_operand(&b, gsr_defined_by(d->insns[b.now]), define);
	return d;
}

void gsr_defuse_enter(const struct gsr_defuse *d)
{
	unsigned int i;

	for (i = 0; i < d->n_regs; i++)
		*gsr_intern_mark(d->regs[i].name) = i + 1;
}
