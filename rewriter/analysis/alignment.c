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
 * In: a kernel with all that it calls. Out: whether its results may depend on the alignment.
 * Assumes nothing: what is not known counts as dependent.
 */
#include <string.h>
#include "analysis.h"

#define MARK_SHARED	(8UL << 40)

struct trace {
	bool changed;
	bool escapes;			/* an address was stored, or passed to a function */
	bool bits;			/* somebody looks at the bits of one */
};

static bool marked(const struct gsr_operand *o)
{
	unsigned int i;

	/* the address that is accessed, not a value */
	if (o->kind == GSR_OPND_ADDR)
		return false;
	if ((o->kind == GSR_OPND_REG || o->kind == GSR_OPND_SYM) &&
	    *gsr_intern_mark(o->name) == MARK_SHARED)
		return true;
	for (i = 0; i < o->n_items; i++)
		if (marked(&o->items[i]))
			return true;
	return false;
}

static void mark_shared(struct trace *t, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG && *gsr_intern_mark(o->name) != MARK_SHARED) {
		*gsr_intern_mark(o->name) = MARK_SHARED;
		t->changed = true;
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
		any |= marked(&insn->opnds[i]);
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

static void unmark(const struct gsr_operand *o)
{
	unsigned int i;

	if (o->name && *gsr_intern_mark(o->name) == MARK_SHARED)
		*gsr_intern_mark(o->name) = 0;
	for (i = 0; i < o->n_items; i++)
		unmark(&o->items[i]);
}

static void mark_variables(const struct gsr_fn *fn, unsigned long to)
{
	const struct gsr_stmt *s;
	unsigned int i;

	for (i = 0; i < fn->n_vars; i++)
		*gsr_intern_mark(fn->vars[i]->name) = to;
	for (s = fn->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_VAR && !strcmp(s->var->space, "shared"))
			*gsr_intern_mark(s->var->name) = to;
}

static void trace_function(struct trace *t, const struct gsr_fn *fn)
{
	const struct gsr_stmt *s;
	unsigned int i;

	mark_variables(fn, MARK_SHARED);
	do {
		t->changed = false;
		for (s = fn->f->first; s && !t->bits; s = s->next)
			if (s->kind == GSR_STMT_INSN)
				follow(t, fn->f, s->insn);
	} while (t->changed && !t->bits);
	for (s = fn->f->first; s; s = s->next)
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++)
			unmark(&s->insn->opnds[i]);
	mark_variables(fn, 0);
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

bool gsr_alignment_matters(const struct gsr_closure *c)
{
	struct trace t = { 0 };
	unsigned int i;
	bool escaped;

	do {
		escaped = t.escapes;
		for (i = 0; i < c->n && !t.bits; i++)
			if (c->fns[i]->shared || c->fns[i]->n_vars || escaped)
				trace_function(&t, c->fns[i]);
	} while (t.escapes && !escaped && !t.bits);
	for (i = 0; i < c->n && !t.bits; i++)
		t.bits = (c->fns[i]->shared || c->fns[i]->n_vars || c->fns[i]->bulk) &&
			 by_hardware(c->fns[i]);
	return t.bits;
}
