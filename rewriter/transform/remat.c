// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rematerialisation in counted loops: a register that is live at a resume point is recomputed
 * instead of being saved in the record, if its value is the same throughout the block-task. That
 * holds if exactly one instruction writes it, from parameters, thread and block ids, constants and
 * other such registers. It is recomputed each time in front of the loop, not only when a block-task
 * is resumed: the assembler then knows as much about it inside the loop as it does in the original
 * kernel, that an address is a multiple of 16, or that a value can be an operand in constant
 * memory. Not so what comes from ids and is not used in the loop, as that would only cost
 * instructions.
 *
 * In: a register and a point. Out: the instructions that recompute it. Assumes that the names of
 * the kernel's def-use index are entered.
 */
#include <string.h>
#include "resume.h"

#define EACH_MAX	8	/* instructions to recompute one register */

static bool is_parameter(const struct gsr_fn *fn, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind != GSR_OPND_ADDR || o->n_items != 1 || o->items[0].kind != GSR_OPND_SYM)
		return false;
	for (i = 0; i < fn->f->n_params; i++)
		if (!strcmp(fn->f->params[i].name, o->items[0].name))
			return true;
	return false;
}

static bool is_shared(const struct gsr_closure *c, const char *name)
{
	const struct gsr_stmt *s;
	unsigned int i, k;

	for (s = c->fns[0]->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_VAR && !strcmp(s->var->space, "shared") &&
		    !strcmp(s->var->name, name))
			return true;
	for (i = 0; i < c->n; i++)
		for (k = 0; k < c->fns[i]->has.vars.n; k++)
			if (!strcmp(c->fns[i]->has.vars.at[k]->name, name))
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

/* @name is recomputed already */
static bool comes_from_ids(const struct gsr_point *pt, const struct gsr_defuse *d, const char *name)
{
	const struct gsr_insn *insn = d->regs[gsr_reg_number(d, name)].def;
	unsigned int i;

	for (i = 0; i < pt->n_remat; i++)
		if (pt->remat[i].insn == insn)
			return pt->remat[i].ids;
	return false;
}

/* Appends to @pt->remat what recomputes @name, operands first; false: it cannot be recomputed */
static bool collect_instructions(const struct gsr_closure *c, const char *name,
				 struct gsr_point *pt, unsigned int depth)
{
	const struct gsr_defuse *d = c->fns[0]->graph.defuse;
	unsigned int reg = gsr_reg_number(d, name), i;
	const struct gsr_insn *insn;
	bool ids = false;

	if (reg == GSR_NO_REG || d->regs[reg].n_defs != 1 || depth == EACH_MAX)
		return false;
	insn = d->regs[reg].def;
	if (!is_pure(insn))
		return false;
	for (i = 0; i < pt->n_remat; i++)
		if (pt->remat[i].insn == insn)
			return true;
	for (i = 1; i < insn->n_opnds; i++) {
		const struct gsr_operand *o = &insn->opnds[i];

		switch (o->kind) {
		case GSR_OPND_INT:
		case GSR_OPND_F32:
		case GSR_OPND_F64:
			break;
		case GSR_OPND_REG:
			if (is_id(o))
				ids = true;
			else if (o->component || o->selector ||
				 !collect_instructions(c, o->name, pt, depth + 1))
				return false;
			else
				ids = ids || comes_from_ids(pt, d, o->name);
			break;
		case GSR_OPND_SYM:
			if (!is_shared(c, o->name))
				return false;
			break;
		case GSR_OPND_ADDR:
			if (!is_parameter(c->fns[0], o))
				return false;
			break;
		default:
			return false;
		}
	}
	if (pt->n_remat == GSR_REMAT_MAX)
		return false;
	pt->remat[pt->n_remat++] = (struct gsr_remat){ insn, ids };
	return true;
}

bool gsr_remat(const struct gsr_closure *c, const char *name, struct gsr_point *pt)
{
	unsigned int before = pt->n_remat;

	if (collect_instructions(c, name, pt, 0) && pt->n_remat - before <= EACH_MAX)
		return true;
	pt->n_remat = before;
	return false;
}

/* Does the loop use what instruction @i computes, or what is recomputed in front of it? */
static bool is_used(const struct gsr_point *pt, const bool *in_front, unsigned int i)
{
	const char *name = pt->remat[i].insn->opnds[0].name;
	const struct gsr_stmt *s;
	unsigned int k;

	for (k = i + 1; k < pt->n_remat; k++)
		if (in_front[k] && gsr_insn_names(pt->remat[k].insn, name))
			return true;
	for (s = pt->head; s != pt->last->next; s = s->next)
		if (s->kind == GSR_STMT_INSN && gsr_insn_names(s->insn, name))
			return true;
	return false;
}

static struct gsr_stmt *copy_of(struct gsr_pass *p, const struct gsr_remat *r)
{
	struct gsr_stmt *s = gsr_alloc(p->arena, sizeof(*s));

	s->kind = GSR_STMT_INSN;
	s->insn = gsr_insn_copy(p->arena, r->insn);
	return s;
}

unsigned int gsr_remat_insert(struct gsr_pass *p, struct gsr_function *f,
			      const struct gsr_point *pt)
{
	bool in_front[GSR_REMAT_MAX] = { false };
	struct gsr_stmt *at = pt->at, *s;
	unsigned int i, n = 0;

	for (i = pt->n_remat; i--;)
		in_front[i] = !pt->remat[i].ids || is_used(pt, in_front, i);
	for (i = 0; i < pt->n_remat; i++)
		if (in_front[i]) {
			s = copy_of(p, &pt->remat[i]);
			gsr_insert_behind(f, at, s);
			at = s;
			n++;
		}
	return n;
}

unsigned int gsr_remat_redo(struct gsr_pass *p, struct gsr_function *f, const struct gsr_point *pt)
{
	unsigned int i;

	for (i = 0; i < pt->n_remat; i++)
		gsr_insert_behind(f, f->last, copy_of(p, &pt->remat[i]));
	return i;
}
