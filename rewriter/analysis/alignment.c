// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kernels whose results depend on the low bits of shared addresses. PTX promises only the declared
 * alignment, but the assembler lays variables out in the order of their declarations, from a
 * multiple of 1024 on, so code may rely on more: swizzled tensor copies and wgmma on 1024 bytes,
 * exclusive-or swizzles on 128. A twin's own variables would move all of them. In the twin of such
 * a kernel they stand first and take a multiple of 1024 bytes: every other address grows by that.
 *
 * The analysis marks names that may hold a shared address, one function at a time; what is stored
 * or passed may come back from any load. Addition, subtraction and copying keep the mark; an
 * instruction that is neither one of these nor a memory access at the address looks at its bits.
 *
 * In: a kernel with all that it calls, and their graphs. Out: whether its results may depend on the
 * alignment. Assumes nothing: what is not known counts as dependent.
 */
#include <string.h>
#include "analysis.h"

struct trace {
	const struct gsr_defuse *d;
	bool *shared;			/* by register: it may hold a shared address */
	bool changed;
	bool escapes;			/* an address was stored, or passed to a function */
	bool bits;			/* somebody looks at the bits of one */
};

static bool marked(const struct trace *t, const struct gsr_operand *o)
{
	unsigned int i;

	/* the address that is accessed, not a value */
	if (o->kind == GSR_OPND_ADDR)
		return false;
	if (gsr_names_register(o) && t->shared[gsr_reg_slot(t->d, o->name)])
		return true;
	for (i = 0; i < o->n_items; i++)
		if (marked(t, &o->items[i]))
			return true;
	return false;
}

static void mark_shared(struct trace *t, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG) {
		bool *shared = &t->shared[gsr_reg_slot(t->d, o->name)];

		t->changed |= !*shared;
		*shared = true;
	}
	for (i = 0; i < o->n_items; i++)
		mark_shared(t, &o->items[i]);
}

static void store(struct trace *t)
{
	t->changed |= !t->escapes;
	t->escapes = true;
}

/*
 * A load that may bring back an address that was stored or passed. Parameters of kernels hold none.
 */
static bool brings_back(const struct trace *t, const struct gsr_function *f,
			const struct gsr_insn *insn)
{
	return t->escapes && !gsr_insn_has(insn, "global") && !gsr_insn_has(insn, "const") &&
	       !(f->entry && gsr_insn_has(insn, "param") && insn->n_opnds > 1 &&
		 gsr_result_uniform(f, insn) == GSR_UNIFORM_OPERANDS);
}

static void follow(struct trace *t, const struct gsr_function *f, const struct gsr_insn *insn)
{
	bool any = false;
	unsigned int i;

	if (insn->op == GSR_OP_LD && insn->n_opnds && brings_back(t, f, insn))
		mark_shared(t, &insn->opnds[0]);
	for (i = gsr_has_result(insn); i < insn->n_opnds; i++)
		any |= marked(t, &insn->opnds[i]);
	if (!any)
		return;
	switch (insn->op) {
	case GSR_OP_MOV:
	case GSR_OP_ADD:
	case GSR_OP_SUB:
	case GSR_OP_ADDC:
	case GSR_OP_SUBC:
	case GSR_OP_MAD:
	case GSR_OP_MIN:
	case GSR_OP_MAX:
	case GSR_OP_SELP:
	case GSR_OP_CVT:
	case GSR_OP_CVTA:
	case GSR_OP_MAPA:
	case GSR_OP_SHFL:
		mark_shared(t, &insn->opnds[0]);
		break;
	case GSR_OP_SETP:
	case GSR_OP_SET:
	case GSR_OP_ISSPACEP:
	case GSR_OP_GETCTARANK:
		break;
	case GSR_OP_ST:
	case GSR_OP_CALL:
		store(t);
		break;
	default:
		t->bits = true;
	}
}

static void trace_function(struct gsr_arena *scratch, struct trace *t, const struct gsr_fn *fn)
{
	const struct gsr_stmt *s;
	unsigned int i;

	t->d = fn->graph.defuse;
	t->shared = gsr_alloc_array(scratch, t->d->n_regs + 1, sizeof(*t->shared));
	gsr_defuse_enter(t->d);
	for (i = 0; i < fn->has.vars.n; i++)
		t->shared[gsr_reg_slot(t->d, fn->has.vars.at[i]->name)] = true;
	for (s = fn->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_VAR && !strcmp(s->var->space, "shared"))
			t->shared[gsr_reg_slot(t->d, s->var->name)] = true;
	do {
		t->changed = false;
		for (i = 0; i < t->d->n_insns && !t->bits; i++)
			follow(t, fn->f, t->d->insns[i]);
	} while (t->changed && !t->bits);
	gsr_arena_reset(scratch);
}

static bool by_hardware(const struct gsr_fn *fn)
{
	const struct gsr_stmt *s;

	for (s = fn->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN &&
		    (s->insn->op == GSR_OP_WGMMA ||
		     (s->insn->op == GSR_OP_CP && gsr_insn_has(s->insn, "tensor"))))
			return true;
	return false;
}

bool gsr_shared_by_number(const struct gsr_closure *c)
{
	bool access = false;
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		if (c->fns[i]->has.vars.n || c->fns[i]->has.keeps_shared)
			return false;
		access |= c->fns[i]->has.shared_access;
	}
	return access;
}

bool gsr_alignment_matters(struct gsr_arena *scratch, const struct gsr_closure *c)
{
	struct trace t = { 0 };
	unsigned int i;
	bool escaped;

	do {
		escaped = t.escapes;
		for (i = 0; i < c->n && !t.bits; i++)
			if (c->fns[i]->f->body &&
			    (c->fns[i]->has.shared || c->fns[i]->has.vars.n || escaped))
				trace_function(scratch, &t, c->fns[i]);
	} while (t.escapes && !escaped && !t.bits);
	for (i = 0; i < c->n && !t.bits; i++)
		t.bits = (c->fns[i]->has.shared || c->fns[i]->has.vars.n || c->fns[i]->has.bulk) &&
			 by_hardware(c->fns[i]);
	return t.bits;
}
