// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The def-use index: registers get numbers in the order of their first mention, by the marks of
 * their names. Flow-insensitive: it tells which instructions name a register, not which of them
 * reaches which.
 *
 * In: a function. Out: struct gsr_defuse. Assumes that no name means two registers.
 */
#include "defuse.h"

/* A register named by an instruction */
struct mention {
	unsigned int reg, insn;
};

struct builder {
	struct gsr_arena *a;
	struct gsr_defuse *d;
	unsigned int insn;		/* number of the instruction */
	struct mention *list;		/* in the order of the text */
	unsigned int n, list_room, regs_room;
};

/* Marks of other functions' names are still set: that of a register here is its own number */
static unsigned int number_of(struct builder *b, const char *name)
{
	struct gsr_defuse *d = b->d;
	unsigned int reg = gsr_reg_number(d, name);

	if (reg != GSR_NO_REG)
		return reg;
	d->regs = gsr_grow(b->a, d->regs, d->n_regs, &b->regs_room, sizeof(*d->regs));
	d->regs[d->n_regs].name = name;
	*gsr_intern_mark(name) = d->n_regs + 1;
	return d->n_regs++;
}

static void note(struct builder *b, const char *name, bool defines)
{
	unsigned int reg = number_of(b, name);
	struct gsr_reg *r = &b->d->regs[reg];

	b->list = gsr_grow(b->a, b->list, b->n, &b->list_room, sizeof(*b->list));
	b->list[b->n++] = (struct mention){ reg, b->insn };
	r->end++;
	if (defines) {
		r->def = b->d->insns[b->insn];
		r->n_defs++;
	}
}

static void visit_operand(struct builder *b, const struct gsr_operand *o, bool defines)
{
	unsigned int i;

	if (gsr_names_register(o))
		note(b, o->name, defines);
	for (i = 0; i < o->n_items; i++)
		visit_operand(b, &o->items[i], defines);
}

struct gsr_defuse *gsr_defuse_build(struct gsr_arena *a, const struct gsr_function *f)
{
	struct gsr_defuse *d = gsr_alloc(a, sizeof(*d));
	struct builder b = { .a = a, .d = d };
	unsigned int n = 0, i, k;
	const struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN;
	d->insns = gsr_alloc_array(a, n + 1, sizeof(struct gsr_insn *));
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN)
			d->insns[d->n_insns++] = s->insn;
	for (b.insn = 0; b.insn < d->n_insns; b.insn++) {
		const struct gsr_insn *insn = d->insns[b.insn];
		const struct gsr_operand *result = gsr_defined_by(insn);

		for (i = 0; i < insn->n_opnds; i++)
			visit_operand(&b, &insn->opnds[i], &insn->opnds[i] == result);
		if (insn->guard)
			note(&b, insn->guard, false);
	}
	for (i = n = 0; i < d->n_regs; i++) {
		k = d->regs[i].end;
		d->regs[i].first = d->regs[i].end = n;
		n += k;
	}
	d->mentions = gsr_alloc_array(a, b.n + 1, sizeof(*d->mentions));
	for (i = 0; i < b.n; i++)
		d->mentions[d->regs[b.list[i].reg].end++] = b.list[i].insn;
	return d;
}

void gsr_defuse_enter(const struct gsr_defuse *d)
{
	unsigned int i;

	for (i = 0; i < d->n_regs; i++)
		*gsr_intern_mark(d->regs[i].name) = i + 1;
}
