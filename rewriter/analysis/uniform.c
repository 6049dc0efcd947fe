// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Divergence analysis: which branches may diverge within a thread block. A definition is uniform if
 * it computes the same value in all threads and is not executed by only part of them; an operand
 * is, if all definitions that reach it are. All start as uniform; the instructions that name a
 * register are visited again when a definition of it becomes varying, until a fixed point is
 * reached. Everything written between a varying branch and its post-dominator varies. The result is
 * conservative.
 *
 * With @warp, "uniform" means the same in all lanes of a warp, for thread blocks whose x is a
 * multiple of 32 (the kernel's description says so): then %tid.y and %tid.z are uniform, and so is
 * (%tid.x + a multiple of 32) / 32.
 *
 * In: a function and its graph. Out: gsr_block.varying and split, or splits_warp and split_warp.
 * Assumes gsr_find_writers().
 */
#include <string.h>
#include "reach.h"

struct use {
	bool waits;			/* to be looked at */
	bool again;			/* what it computes depends on more than its operands */
	bool varies;			/* what it writes */
	bool bypassed;			/* part of a warp may keep what the register had before */
};

struct state {
	const struct gsr_function *f;
	struct gsr_cfg *cfg;
	const struct gsr_defuse *d;
	struct gsr_reach *reach;
	bool *varying;			/* by register: some definition of it varies */
	struct use *insns;		/* by instruction */
	unsigned int *queue, n_queue;
	struct gsr_region region;
	bool warp;
	bool strict;			/* do not look back any more */
	enum gsr_loads loads;
};

static const char *const uniform_specials[] = {
	"%ctaid", "%nctaid", "%ntid", "%gridid", "%nsmid", "%smid", "%nwarpid", "%total_smem_size",
	"%dynamic_smem_size", NULL
};

static void look_at(struct state *st, unsigned int i)
{
	if (!st->insns[i].waits)
		st->queue[st->n_queue++] = i;
	st->insns[i].waits = true;
}

static void vary(struct state *st, const struct gsr_operand *o)
{
	unsigned int reg = o->kind == GSR_OPND_REG ? gsr_reg_number(st->d, o->name) : GSR_NO_REG, i;

	if (reg != GSR_NO_REG &&
	    (!st->varying[reg] || st->d->regs[reg].n_defs <= GSR_REACHING_MAX)) {
		st->varying[reg] = true;
		for (i = st->d->regs[reg].first; i < st->d->regs[reg].end; i++)
			look_at(st, st->d->mentions[i]);
	}
	for (i = 0; i < o->n_items; i++)
		vary(st, &o->items[i]);
}

static void vary_result(struct state *st, unsigned int i)
{
	const struct gsr_operand *o = gsr_defined_by(st->d->insns[i]);

	if (o && !st->insns[i].varies) {
		st->insns[i].varies = true;
		vary(st, o);
	}
}

/* As instruction @i reads it */
static bool name_varies(struct state *st, unsigned int i, const char *name)
{
	unsigned int reg = gsr_reg_number(st->d, name), defs[GSR_REACHING_MAX], n;

	if (reg == GSR_NO_REG || (st->varying[reg] && st->d->regs[reg].n_defs < 2))
		return true;
	if (!st->varying[reg])
		return false;
	if (!gsr_reaching(st->reach, i, reg, defs, &n))
		return true;
	while (n--)
		if (st->insns[defs[n]].varies)
			return true;
	return false;
}

static bool operand_varies(struct state *st, unsigned int i, const struct gsr_operand *o)
{
	unsigned int k;

	if (st->warp && o->kind == GSR_OPND_REG && !strcmp(o->name, "%tid"))
		return o->component != 'y' && o->component != 'z';
	if (o->kind == GSR_OPND_REG && name_varies(st, i, o->name))
		return true;
	for (k = 0; k < o->n_items; k++)
		if (operand_varies(st, i, &o->items[k]))
			return true;
	return false;
}

#define LOOK_BACK	8
#define ROUNDS_MAX	50	/* of second looks, at instructions that look back */

/*
 * The instruction that wrote what @i reads there, if all lanes have it from the same execution;
 * GSR_NO_REG: it cannot be told. Text that parses need not be right: an instruction may lack
 * operands
 */
static unsigned int definition(struct state *st, unsigned int i, const struct gsr_operand *o)
{
	unsigned int reg = o->kind == GSR_OPND_REG && !o->negated && !o->component ?
				   gsr_reg_number(st->d, o->name) :
				   GSR_NO_REG;
	unsigned int defs[GSR_REACHING_MAX], n;
	const struct gsr_insn *insn;

	if (reg == GSR_NO_REG || !gsr_reaching(st->reach, i, reg, defs, &n) || n != 1)
		return GSR_NO_REG;
	insn = st->d->insns[defs[0]];
	if (insn->guard || st->insns[defs[0]].bypassed ||
	    insn->n_opnds < (insn->op == GSR_OP_MOV ? 2u : insn->op == GSR_OP_MAD ? 4u : 3u))
		return GSR_NO_REG;
	return defs[0];
}

static bool is_constant(struct state *st, unsigned int i, const struct gsr_operand *o,
			int64_t value)
{
	unsigned int def = o->kind == GSR_OPND_INT ? GSR_NO_REG : definition(st, i, o);

	if (def != GSR_NO_REG && st->d->insns[def]->op == GSR_OP_MOV)
		o = &st->d->insns[def]->opnds[1];
	return o->kind == GSR_OPND_INT && o->ival == value;
}

static bool is_special(const struct gsr_operand *o, const char *name)
{
	return o->kind == GSR_OPND_REG && o->component == 'x' && !strcmp(o->name, name);
}

/* A multiple of 32, the same in all lanes */
static bool times32(struct state *st, unsigned int at, const struct gsr_operand *o,
		    unsigned int depth)
{
	const struct gsr_insn *i;
	unsigned int def;

	if (o->kind == GSR_OPND_INT)
		return !(o->ival & 31);
	if (is_special(o, "%ntid") || (gsr_names_register(o) && !strcmp(o->name, "WARP_SZ")))
		return true;
	def = definition(st, at, o);
	if (def == GSR_NO_REG || depth > LOOK_BACK || operand_varies(st, at, o))
		return false;
	i = st->d->insns[def];
	if (i->op == GSR_OP_MOV)
		return times32(st, def, &i->opnds[1], depth + 1);
	if (i->op == GSR_OP_SHL)
		return i->opnds[2].kind == GSR_OPND_INT && i->opnds[2].ival >= 5;
	if (i->op == GSR_OP_ADD)
		return times32(st, def, &i->opnds[1], depth + 1) &&
		       times32(st, def, &i->opnds[2], depth + 1);
	if (i->op == GSR_OP_MUL && gsr_insn_has(i, "lo"))
		return times32(st, def, &i->opnds[1], depth + 1) ||
		       times32(st, def, &i->opnds[2], depth + 1);
	return false;
}

/* %tid.x plus a multiple of 32 */
static bool linear(struct state *st, unsigned int at, const struct gsr_operand *o,
		   unsigned int depth)
{
	const struct gsr_operand *a, *b;
	const struct gsr_insn *i;
	unsigned int def;

	if (is_special(o, "%tid"))
		return true;
	def = definition(st, at, o);
	if (def == GSR_NO_REG || depth > LOOK_BACK)
		return false;
	i = st->d->insns[def];
	a = &i->opnds[1];
	b = &i->opnds[2];
	if (i->op == GSR_OP_MOV)
		return linear(st, def, a, depth + 1);
	if (i->op == GSR_OP_ADD)
		return (times32(st, def, b, depth + 1) && linear(st, def, a, depth + 1)) ||
		       (times32(st, def, a, depth + 1) && linear(st, def, b, depth + 1));
	if (i->op == GSR_OP_MAD && gsr_insn_has(i, "lo"))
		return !operand_varies(st, def, a) && !operand_varies(st, def, b) &&
		       linear(st, def, &i->opnds[3], depth + 1) &&
		       (times32(st, def, a, depth + 1) || times32(st, def, b, depth + 1));
	return false;
}

/* A result of operands that vary may be the same in all lanes all the same */
static bool same_in_warp(struct state *st, unsigned int at)
{
	const struct gsr_insn *i = st->d->insns[at];
	const struct gsr_operand *a = &i->opnds[1], *b = &i->opnds[2];

	if (i->n_opnds != 3)
		return false;
	switch (i->op) {
	case GSR_OP_SHR:
		return b->kind == GSR_OPND_INT && b->ival >= 5 && linear(st, at, a, 0);
	case GSR_OP_AND:
		return b->kind == GSR_OPND_INT && !(b->ival & 31) && linear(st, at, a, 0);
	case GSR_OP_DIV:
		return (gsr_insn_has(i, "u32") || gsr_insn_has(i, "u64")) &&
		       times32(st, at, b, 0) && linear(st, at, a, 0);
	case GSR_OP_SETP:
		if (gsr_insn_has(i, "lt") || gsr_insn_has(i, "ge") || gsr_insn_has(i, "lo") ||
		    gsr_insn_has(i, "hs"))
			return times32(st, at, b, 0) && linear(st, at, a, 0);
		if (gsr_insn_has(i, "gt") || gsr_insn_has(i, "le") || gsr_insn_has(i, "hi") ||
		    gsr_insn_has(i, "ls"))
			return (b->kind == GSR_OPND_INT && (b->ival & 31) == 31 &&
				linear(st, at, a, 0)) ||
			       (times32(st, at, a, 0) && linear(st, at, b, 0));
		return false;
	default:
		return false;
	}
}

static bool looks_back(const struct gsr_insn *insn)
{
	return insn->op == GSR_OP_SHR || insn->op == GSR_OP_AND || insn->op == GSR_OP_DIV ||
	       insn->op == GSR_OP_SETP;
}

static bool any_varies(struct state *st, unsigned int i, unsigned int first, unsigned int end)
{
	const struct gsr_insn *insn = st->d->insns[i];
	unsigned int k;

	for (k = first; k < end && k < insn->n_opnds; k++)
		if (operand_varies(st, i, &insn->opnds[k]))
			return true;
	return false;
}

static bool result_varies(struct state *st, unsigned int i)
{
	const struct gsr_insn *insn = st->d->insns[i];

	if (insn->guard && name_varies(st, i, insn->guard))
		return true;
	switch (gsr_result_uniform(st->f, insn)) {
	case GSR_UNIFORM_BLOCK:
		return false;
	case GSR_UNIFORM_WARP:
		return !st->warp;
	case GSR_UNIFORM_LANE:
		return !st->warp || !is_constant(st, i, &insn->opnds[3], 31) ||
		       operand_varies(st, i, &insn->opnds[2]);
	case GSR_UNIFORM_COUNTED:
		return !st->warp || any_varies(st, i, 1, 3);
	case GSR_UNIFORM_SHARED:
		return !st->loads || any_varies(st, i, 1, insn->n_opnds);
	case GSR_UNIFORM_GLOBAL:
		return insn->stored || !st->loads || any_varies(st, i, 1, insn->n_opnds);
	case GSR_UNIFORM_GENERIC:
		return insn->stored || st->loads < GSR_LOADS_ALL ||
		       any_varies(st, i, 1, insn->n_opnds);
	case GSR_UNIFORM_OPERANDS:
		if (st->warp && !(st->strict && looks_back(insn)) && same_in_warp(st, i))
			return false;
		return any_varies(st, i, 1, insn->n_opnds);
	default:
		return true;
	}
}

static bool *flag_of(const struct state *st, struct gsr_block *b)
{
	return st->warp ? &b->splits_warp : &b->varying;
}

/* Instruction @i, the last one of the block */
static bool branch_varies(struct state *st, unsigned int i, const struct gsr_block *b)
{
	const struct gsr_insn *insn = st->d->insns[i];

	if (b->n_succ < 2)
		return false;
	if (insn->guard && name_varies(st, i, insn->guard))
		return true;
	return insn->op == GSR_OP_BRX &&
	       (insn->n_opnds < 1 || operand_varies(st, i, &insn->opnds[0]));
}

static void split_block(struct state *st, unsigned int block)
{
	struct gsr_block *b = &st->cfg->blocks[block];
	unsigned int i;

	if (st->warp)
		b->split_warp = true;
	else
		b->split = true;
	for (i = st->reach->first_insn[block]; i < st->reach->first_insn[block + 1]; i++) {
		vary_result(st, i);
		st->insns[i].bypassed = true;
	}
}

/* What nothing writes is a special register, or a parameter in a register */
static bool uniform_special(const struct state *st, const char *name)
{
	unsigned int k;

	for (k = 0; uniform_specials[k]; k++)
		if (!strcmp(uniform_specials[k], name))
			return true;
	return st->warp && !strcmp(name, "%warpid");
}

static void find_specials(struct gsr_arena *a, struct state *st)
{
	unsigned int i;

	gsr_defuse_enter(st->d);
	st->insns = gsr_alloc_array(a, st->d->n_insns + 1, sizeof(*st->insns));
	st->queue = gsr_alloc_array(a, st->d->n_insns + 1, sizeof(*st->queue));
	st->varying = gsr_alloc_array(a, st->d->n_regs + 1, sizeof(*st->varying));
	for (i = 0; i < st->d->n_regs; i++)
		st->varying[i] = !st->d->regs[i].n_defs &&
				 !uniform_special(st, st->d->regs[i].name);
}

/* Lanes that call different functions are apart meanwhile */
static bool calls_apart(struct state *st, unsigned int i)
{
	const struct gsr_insn *insn = st->d->insns[i];
	unsigned int k;

	for (k = 0; insn->op == GSR_OP_CALL && k < insn->n_opnds; k++)
		if (insn->opnds[k].kind == GSR_OPND_REG && operand_varies(st, i, &insn->opnds[k]))
			return true;
	return false;
}

static void reconsider(struct state *st, unsigned int i)
{
	const struct gsr_insn *insn = st->d->insns[i];
	const unsigned int block = st->reach->block[i];
	struct use *u = &st->insns[i];
	struct gsr_block *b = &st->cfg->blocks[block];
	unsigned int n = st->region.n;

	u->waits = false;
	if (u->varies || result_varies(st, i))
		vary_result(st, i);
	else
		u->again = st->warp && looks_back(insn);
	if (!(st->warp ? b->split_warp : b->split) && calls_apart(st, i))
		split_block(st, block);
	if (!b->last || b->last->kind != GSR_STMT_INSN || b->last->insn != insn ||
	    *flag_of(st, b) || !b->reachable || !branch_varies(st, i, b))
		return;
	*flag_of(st, b) = true;
	gsr_region_add(&st->region, block);
	for (; n < st->region.n; n++)
		split_block(st, st->region.found[n]);
}

static void mark_one_address(struct state *st)
{
	enum gsr_uniform u;
	unsigned int i;

	for (i = 0; i < st->d->n_insns; i++) {
		struct gsr_insn *insn = st->d->insns[i];

		if (insn->op != GSR_OP_LD || insn->n_opnds < 2)
			continue;
		u = gsr_result_uniform(st->f, insn);
		insn->one_address = (u == GSR_UNIFORM_GLOBAL || u == GSR_UNIFORM_GENERIC) &&
				    !operand_varies(st, i, &insn->opnds[1]);
	}
}

void gsr_uniform(struct gsr_arena *a, const struct gsr_function *f, struct gsr_graph *g, bool warp)
{
	struct state st = { .f = f, .cfg = &g->cfg, .d = g->defuse, .warp = warp,
			    .loads = g->loads };
	struct gsr_cfg *cfg = &g->cfg;
	unsigned int i, rounds = 0;

	for (i = 0; i < cfg->n_blocks; i++) {
		*flag_of(&st, &cfg->blocks[i]) = false;
		*(warp ? &cfg->blocks[i].split_warp : &cfg->blocks[i].split) = false;
	}
	find_specials(a, &st);
	st.reach = gsr_reach(a, cfg, st.d);
	gsr_region_init(a, cfg, &st.region);
	for (i = st.d->n_insns; i-- > 0;)
		look_at(&st, i);
	do {
		while (st.n_queue)
			reconsider(&st, st.queue[--st.n_queue]);
		/* long chains of such instructions: no use to go on, they may vary */
		st.strict = rounds++ >= ROUNDS_MAX;
		for (i = 0; i < st.d->n_insns; i++)
			if (st.insns[i].again) {
				st.insns[i].again = false;
				reconsider(&st, i);
			}
	} while (st.n_queue);
	if (!warp && g->loads)
		mark_one_address(&st);
}
