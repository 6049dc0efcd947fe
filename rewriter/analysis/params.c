// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Generic addresses of parameters. Each launch has its parameters elsewhere, so what is saved in
 * one and restored in another must not hold such an address as it is. A register is either free of
 * them, or it is based: the launch's address of parameters plus something that is the same in every
 * launch. Then the difference is saved, and the other launch's address is added to it.
 *
 * This holds only where each write of a register agrees, and where no value that depends on the
 * address goes anywhere else: to memory, to a function, into a computation other than an offset.
 * Two addresses may be compared or subtracted; memory is only read through one.
 *
 * In: a kernel without inner scopes, with its graph. Out: which registers are based, or a refusal.
 * Flow-insensitive: a register that holds an address here and another
 * value there is refused.
 */
#include <string.h>
#include "analysis.h"

enum state {
	UNKNOWN,			/* no write has been looked at */
	FREE,
	BASED,
};

struct gsr_based {
	struct gsr_arena *arena;
	const struct gsr_defuse *d;
	const char *refusal;
	bool changed;
	enum state states[];		/* by register */
};

/* Where the state of what the operand names is kept; NULL: it is FREE, as nothing writes it */
static enum state *kept(struct gsr_based *t, const char *name)
{
	unsigned int reg = gsr_reg_number(t->d, name);

	return reg != GSR_NO_REG && t->d->regs[reg].n_defs ? &t->states[reg] : NULL;
}

bool gsr_is_based(struct gsr_based *t, const char *name)
{
	enum state *s = t ? kept(t, name) : NULL;

	return s && *s == BASED;
}

static bool makes_address(const struct gsr_insn *insn)
{
	return insn->op == GSR_OP_CVTA && gsr_insn_has(insn, "param") && !gsr_insn_has(insn, "to");
}

static void refuse(struct gsr_based *t, const char *fmt, const char *what)
{
	if (!t->refusal)
		t->refusal = gsr_sprintf(t->arena, fmt, what);
}

static enum state state_of(struct gsr_based *t, const struct gsr_operand *o)
{
	enum state *s = o->kind == GSR_OPND_REG ? kept(t, o->name) : NULL;

	return s ? *s : FREE;
}

static bool any_based(struct gsr_based *t, const struct gsr_operand *o)
{
	unsigned int i;

	if (state_of(t, o) == BASED)
		return true;
	for (i = 0; i < o->n_items; i++)
		if (any_based(t, &o->items[i]))
			return true;
	return false;
}

static void set_state(struct gsr_based *t, const struct gsr_operand *o, enum state state)
{
	enum state *s = o->kind == GSR_OPND_REG ? kept(t, o->name) : NULL;
	unsigned int i;

	if (s && *s == UNKNOWN && state != UNKNOWN) {
		*s = state;
		t->changed = true;
	} else if (s && state != UNKNOWN && *s != state) {
		refuse(t, "%s may hold the address of a parameter or another value", o->name);
	}
	for (i = 0; o->kind != GSR_OPND_ADDR && i < o->n_items; i++)
		set_state(t, &o->items[i], state);
}

/* 64 bits in and out, and no carry */
static bool plain64(const struct gsr_insn *insn)
{
	return insn->n_mods && gsr_type_size(insn->mods[insn->n_mods - 1]) == 8 &&
	       !gsr_insn_has(insn, "cc") && !gsr_insn_has(insn, "sat");
}

/* Of two addresses, or of one and 0: the same in every launch */
static bool compares(struct gsr_based *t, const struct gsr_insn *insn)
{
	const struct gsr_operand *a = &insn->opnds[1], *b = &insn->opnds[2];
	bool equal = gsr_insn_has(insn, "eq") || gsr_insn_has(insn, "ne"), same = plain64(insn);
	unsigned int i;

	for (i = 3; i < insn->n_opnds; i++)
		same &= !any_based(t, &insn->opnds[i]);
	return same && ((state_of(t, a) == BASED && state_of(t, b) == BASED) ||
			(equal && state_of(t, a) == BASED && b->kind == GSR_OPND_INT && !b->ival));
}

static bool keeps_base(const struct gsr_insn *insn)
{
	return insn->op == GSR_OP_MOV || insn->op == GSR_OP_ADD || insn->op == GSR_OP_SUB ||
	       insn->op == GSR_OP_MAD || insn->op == GSR_OP_SELP;
}

/*
 * The result of an instruction that has a based operand; UNKNOWN and a refusal: it cannot be told
 */
static enum state transfer(struct gsr_based *t, const struct gsr_insn *insn)
{
	const struct gsr_operand *o = insn->opnds;
	unsigned int n = keeps_base(insn) && o[0].kind != GSR_OPND_REG ? 0 : insn->n_opnds;

	switch (insn->op) {
	case GSR_OP_MOV:
		if (n == 2 && plain64(insn) && state_of(t, &o[1]) == BASED)
			return BASED;
		break;
	case GSR_OP_ADD:
		if (n == 3 && plain64(insn) && state_of(t, &o[1]) != state_of(t, &o[2]))
			return BASED;
		break;
	case GSR_OP_SUB:
		if (n == 3 && plain64(insn) && state_of(t, &o[1]) == BASED)
			return state_of(t, &o[2]) == BASED ? FREE : BASED;
		break;
	case GSR_OP_MAD:
		if (n == 4 && insn->n_mods && !any_based(t, &o[1]) && !any_based(t, &o[2]) &&
		    !gsr_insn_has(insn, "hi") && !gsr_insn_has(insn, "cc") &&
		    gsr_type_size(insn->mods[insn->n_mods - 1]) ==
		    (gsr_insn_has(insn, "wide") ? 4 : 8))
			return BASED;
		break;
	case GSR_OP_SELP:
		/* set_state() has found the registers whose writes do not agree */
		if (n == 4 && plain64(insn) && state_of(t, &o[1]) == BASED &&
		    state_of(t, &o[2]) == BASED)
			return BASED;
		break;
	case GSR_OP_SETP:
		if (n >= 3 && compares(t, insn))
			return FREE;
		break;
	case GSR_OP_LD:
		/* the parameters themselves are the same in every launch */
		if (n == 2 && o[1].kind == GSR_OPND_ADDR)
			return FREE;
		break;
	case GSR_OP_PREFETCH:
		return FREE;
	default:
		break;
	}
	refuse(t, "address of a parameter used by %s", insn->name);
	return UNKNOWN;
}

/* An operand whose state is not known yet: the instruction is looked at again */
static bool waits_for_operands(struct gsr_based *t, const struct gsr_insn *insn)
{
	unsigned int i;

	for (i = 1; i < insn->n_opnds; i++)
		if (insn->opnds[i].kind == GSR_OPND_REG && state_of(t, &insn->opnds[i]) == UNKNOWN)
			return true;
	return false;
}

static void look_at_insn(struct gsr_based *t, const struct gsr_insn *insn)
{
	bool based = false, result = gsr_defined_by(insn);
	unsigned int i;

	/* the first operand may be a source, too: of a store it is an address */
	for (i = result && gsr_has_result(insn); i < insn->n_opnds; i++)
		based |= any_based(t, &insn->opnds[i]);
	if (makes_address(insn)) {
		if (based)
			refuse(t, "address of a parameter used by %s", insn->name);
		else
			set_state(t, &insn->opnds[0], BASED);
	} else if (keeps_base(insn) && waits_for_operands(t, insn)) {
		return;
	} else if (result) {
		set_state(t, &insn->opnds[0], based ? transfer(t, insn) : FREE);
	} else if (based) {
		transfer(t, insn);
	}
}

struct gsr_based *gsr_find_based(struct gsr_arena *a, const struct gsr_fn *fn,
				 const char **refusal)
{
	const struct gsr_defuse *d = fn->graph.defuse;
	struct gsr_based *t;
	unsigned int i;

	for (i = 0; i < d->n_insns && !makes_address(d->insns[i]); i++)
		;
	if (i == d->n_insns)
		return NULL;
	gsr_defuse_enter(d);
	t = gsr_alloc(a, sizeof(*t) + d->n_regs * sizeof(t->states[0]));
	t->arena = a;
	t->d = d;
	do {
		t->changed = false;
		for (i = 0; i < d->n_insns && !t->refusal; i++)
			look_at_insn(t, d->insns[i]);
	} while (t->changed && !t->refusal);
	*refusal = t->refusal;
	return t;
}
