// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rematerialisation in front of counted loops: a register that is live at a resume point is
 * recomputed there instead of being saved in the record, if its value is the same throughout the
 * block-task. That holds if exactly one instruction writes it, from parameters, thread and block
 * ids, constants and other such registers. The assembler then knows as much about the register
 * inside the loop as it does in the original kernel: that an address is a multiple of 16, or that
 * a value can be an operand in constant memory. It knows nothing about a value loaded from a
 * record, and needs a register to hold it.
 *
 * In: a register and a point. Out: the instructions that recompute it. Assumes that the function
 * has not changed since gsr_remat_table().
 */
#include <stdint.h>
#include <string.h>
#include "resume.h"

#define EACH_MAX	8	/* instructions to recompute one register */

struct writer {
	const char *name;
	const struct gsr_insn *insn;
	unsigned int times;
};

struct gsr_remat {
	const struct gsr_function *f;
	const struct gsr_closure *c;
	unsigned int mask;
	struct writer slots[];
};

static struct writer *slot_of(struct gsr_remat *t, const char *name)
{
	unsigned int i = (unsigned int)((uintptr_t)name >> 4) & t->mask;

	while (t->slots[i].name && t->slots[i].name != name)
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

static void note_writers(struct gsr_remat *t, const struct gsr_operand *o,
			 const struct gsr_insn *insn)
{
	struct writer *w;
	unsigned int i;

	if (o->kind == GSR_OPND_REG || o->kind == GSR_OPND_SYM) {
		w = slot_of(t, o->name);
		w->name = o->name;
		w->insn = insn;
		w->times++;
	}
	for (i = 0; i < o->n_items; i++)
		note_writers(t, &o->items[i], insn);
}

static unsigned int count_operands(const struct gsr_operand *o)
{
	unsigned int i, n = 1;

	for (i = 0; i < o->n_items; i++)
		n += count_operands(&o->items[i]);
	return n;
}

struct gsr_remat *gsr_remat_table(struct gsr_arena *a, const struct gsr_function *f,
				  const struct gsr_closure *c)
{
	unsigned int n = 0, room = 4;
	const struct gsr_stmt *s;
	struct gsr_remat *t;

	/* an instruction may write its first operand, unless that is an address */
	for (s = f->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN && s->insn->n_opnds ?
			     count_operands(&s->insn->opnds[0]) :
			     0;
	while (room < 2 * n)
		room *= 2;
	t = gsr_alloc(a, sizeof(*t) + room * sizeof(t->slots[0]));
	t->f = f;
	t->c = c;
	t->mask = room - 1;
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN && s->insn->n_opnds &&
		    s->insn->opnds[0].kind != GSR_OPND_ADDR)
			note_writers(t, &s->insn->opnds[0], s->insn);
	return t;
}

static bool is_parameter(const struct gsr_remat *t, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind != GSR_OPND_ADDR || o->n_items != 1 || o->items[0].kind != GSR_OPND_SYM)
		return false;
	for (i = 0; i < t->f->n_params; i++)
		if (!strcmp(t->f->params[i].name, o->items[0].name))
			return true;
	return false;
}

static bool is_shared(const struct gsr_remat *t, const char *name)
{
	const struct gsr_stmt *s;
	unsigned int i, k;

	for (s = t->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_VAR && !strcmp(s->var->space, "shared") &&
		    !strcmp(s->var->name, name))
			return true;
	for (i = 0; i < t->c->n; i++)
		for (k = 0; k < t->c->fns[i]->n_vars; k++)
			if (!strcmp(t->c->fns[i]->vars[k]->name, name))
				return true;
	return false;
}

/* Special registers that do not depend on which worker runs the block-task */
static bool is_id(const struct gsr_operand *o)
{
	static const char *const ids[] = { "%tid", "%ntid", "%ctaid", "%nctaid" };
	unsigned int i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (!strcmp(o->name, ids[i]))
			return o->component && !o->negated;
	return !strcmp(o->name, "%laneid") && !o->negated;
}

/* Does the result depend on the explicit operands only? */
static bool is_pure(const struct gsr_insn *insn)
{
	if (insn->guard || insn->n_opnds < 2 || insn->opnds[0].kind != GSR_OPND_REG ||
	    insn->opnds[0].component || insn->opnds[0].selector || gsr_insn_has(insn, "cc"))
		return false;
	switch (insn->op) {
	case GSR_OP_MOV:
	case GSR_OP_ADD:
	case GSR_OP_SUB:
	case GSR_OP_MUL:
	case GSR_OP_MAD:
	case GSR_OP_SHL:
	case GSR_OP_SHR:
	case GSR_OP_AND:
	case GSR_OP_OR:
	case GSR_OP_XOR:
	case GSR_OP_NOT:
	case GSR_OP_NEG:
	case GSR_OP_MIN:
	case GSR_OP_MAX:
	case GSR_OP_CVT:
	case GSR_OP_CVTA:
		return true;
	case GSR_OP_LD:
		return gsr_insn_has(insn, "param") && !gsr_insn_has(insn, "volatile");
	default:
		return false;
	}
}

/* Appends to @pt->remat what recomputes @name, operands first; false: it cannot be recomputed */
static bool collect_instructions(struct gsr_remat *t, const char *name, struct gsr_point *pt,
				 unsigned int depth)
{
	const struct writer *w = slot_of(t, name);
	const struct gsr_insn *insn = w->insn;
	unsigned int i;

	if (!w->name || w->times != 1 || depth == EACH_MAX || !is_pure(insn))
		return false;
	for (i = 0; i < pt->n_remat; i++)
		if (pt->remat[i] == insn)
			return true;
	for (i = 1; i < insn->n_opnds; i++) {
		const struct gsr_operand *o = &insn->opnds[i];

		switch (o->kind) {
		case GSR_OPND_INT:
		case GSR_OPND_F32:
		case GSR_OPND_F64:
			break;
		case GSR_OPND_REG:
			if (!is_id(o) && (o->component || o->selector ||
					  !collect_instructions(t, o->name, pt, depth + 1)))
				return false;
			break;
		case GSR_OPND_SYM:
			if (!is_shared(t, o->name))
				return false;
			break;
		case GSR_OPND_ADDR:
			if (!is_parameter(t, o))
				return false;
			break;
		default:
			return false;
		}
	}
	if (pt->n_remat == GSR_REMAT_MAX)
		return false;
	pt->remat[pt->n_remat++] = insn;
	return true;
}

bool gsr_remat(struct gsr_remat *t, const char *name, struct gsr_point *pt)
{
	unsigned int before = pt->n_remat;

	if (collect_instructions(t, name, pt, 0) && pt->n_remat - before <= EACH_MAX)
		return true;
	pt->n_remat = before;
	return false;
}

unsigned int gsr_remat_insert(struct gsr_pass *p, struct gsr_function *f,
			      const struct gsr_point *pt)
{
	struct gsr_stmt *at = pt->at;
	unsigned int i;

	for (i = 0; i < pt->n_remat; i++) {
		struct gsr_stmt *s = gsr_alloc(p->arena, sizeof(*s));

		s->kind = GSR_STMT_INSN;
		s->insn = gsr_insn_copy(p->arena, pt->remat[i]);
		gsr_insert_behind(f, at, s);
		at = s;
	}
	return i;
}
