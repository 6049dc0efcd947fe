// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Divergence analysis: which branches may diverge within a thread block. A register is uniform if
 * every instruction that writes it computes the same value in all threads, and none of them is
 * executed by only part of the threads. All registers start as uniform; the instructions that use a
 * register are visited again when it becomes varying, until a fixed point is reached. Everything
 * written between a varying branch and its post-dominator varies. The result is conservative.
 *
 * With @warp, "uniform" means the same in all lanes of a warp, for thread blocks whose x is a
 * multiple of 32 (the kernel's description says so): then %tid.y and %tid.z are uniform, and so is
 * (%tid.x + a multiple of 32) / 32.
 *
 * In: a function and its graph. Out: gsr_block.varying and split, or splits_warp and split_warp.
 * Assumes gsr_find_writers().
 */
#include <string.h>
#include "analysis.h"

struct use {
	unsigned int block;
	bool waits;			/* to be looked at */
	bool again;			/* what it computes depends on more than its operands */
};

struct state {
	const struct gsr_function *f;
	struct gsr_cfg *cfg;
	const struct gsr_defuse *d;
	bool *varying;			/* by register */
	bool *bypassed;			/* likewise: part of a warp may keep what it had before */
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

	if (reg != GSR_NO_REG && !st->varying[reg]) {
		st->varying[reg] = true;
		for (i = st->d->regs[reg].first; i < st->d->regs[reg].end; i++)
			look_at(st, st->d->mentions[i]);
	}
	for (i = 0; i < o->n_items; i++)
		vary(st, &o->items[i]);
}

static void vary_result(struct state *st, const struct gsr_insn *insn)
{
	const struct gsr_operand *o = gsr_defined_by(insn);

	if (o)
		vary(st, o);
}

static bool name_varies(struct state *st, const char *name)
{
	unsigned int reg = gsr_reg_number(st->d, name);

	return reg == GSR_NO_REG || st->varying[reg];
}

static bool operand_varies(struct state *st, const struct gsr_operand *o)
{
	unsigned int i;

	if (st->warp && o->kind == GSR_OPND_REG && !strcmp(o->name, "%tid"))
		return o->component != 'y' && o->component != 'z';
	if (o->kind == GSR_OPND_REG && name_varies(st, o->name))
		return true;
	for (i = 0; i < o->n_items; i++)
		if (operand_varies(st, &o->items[i]))
			return true;
	return false;
}

#define LOOK_BACK	8
#define ROUNDS_MAX	50	/* of second looks, at instructions that look back */

/*
 * Of the value that all lanes have from the same execution. Text that parses need not be right: an
 * instruction may lack operands
 */
static const struct gsr_insn *definition(struct state *st, const struct gsr_operand *o)
{
	unsigned int reg = o->kind == GSR_OPND_REG && !o->negated && !o->component ?
				   gsr_reg_number(st->d, o->name) :
				   GSR_NO_REG;
	const struct gsr_insn *i = reg != GSR_NO_REG && st->d->regs[reg].n_defs == 1 &&
						   !st->d->regs[reg].def->guard &&
						   !st->bypassed[reg] ?
					   st->d->regs[reg].def :
					   NULL;

	return i && i->n_opnds >= (i->op == GSR_OP_MOV ? 2u :
				   i->op == GSR_OP_MAD ? 4u :
							 3u) ?
		       i :
		       NULL;
}

static bool is_special(const struct gsr_operand *o, const char *name)
{
	return o->kind == GSR_OPND_REG && o->component == 'x' && !strcmp(o->name, name);
}

/* A multiple of 32, the same in all lanes */
static bool times32(struct state *st, const struct gsr_operand *o, unsigned int depth)
{
	const struct gsr_insn *i;

	if (o->kind == GSR_OPND_INT)
		return !(o->ival & 31);
	if (is_special(o, "%ntid"))
		return true;
	i = definition(st, o);
	if (!i || depth > LOOK_BACK || operand_varies(st, o))
		return false;
	if (i->op == GSR_OP_MOV)
		return times32(st, &i->opnds[1], depth + 1);
	if (i->op == GSR_OP_SHL)
		return i->opnds[2].kind == GSR_OPND_INT && i->opnds[2].ival >= 5;
	if (i->op == GSR_OP_ADD)
		return times32(st, &i->opnds[1], depth + 1) && times32(st, &i->opnds[2], depth + 1);
	if (i->op == GSR_OP_MUL && gsr_insn_has(i, "lo"))
		return times32(st, &i->opnds[1], depth + 1) || times32(st, &i->opnds[2], depth + 1);
	return false;
}

/* %tid.x plus a multiple of 32 */
static bool linear(struct state *st, const struct gsr_operand *o, unsigned int depth)
{
	const struct gsr_insn *i;

	if (is_special(o, "%tid"))
		return true;
	i = definition(st, o);
	if (!i || depth > LOOK_BACK)
		return false;
	if (i->op == GSR_OP_MOV)
		return linear(st, &i->opnds[1], depth + 1);
	if (i->op == GSR_OP_ADD)
		return (times32(st, &i->opnds[2], depth + 1) &&
			linear(st, &i->opnds[1], depth + 1)) ||
		       (times32(st, &i->opnds[1], depth + 1) &&
			linear(st, &i->opnds[2], depth + 1));
	if (i->op == GSR_OP_MAD && gsr_insn_has(i, "lo"))
		return !operand_varies(st, &i->opnds[1]) && !operand_varies(st, &i->opnds[2]) &&
		       linear(st, &i->opnds[3], depth + 1) &&
		       (times32(st, &i->opnds[1], depth + 1) ||
			times32(st, &i->opnds[2], depth + 1));
	return false;
}

/* A result of operands that vary may be the same in all lanes all the same */
static bool same_in_warp(struct state *st, const struct gsr_insn *i)
{
	const struct gsr_operand *c = i->n_opnds >= 3 ? &i->opnds[2] : NULL;

	switch (i->op) {
	case GSR_OP_SHR:
		return c && c->kind == GSR_OPND_INT && c->ival >= 5 && linear(st, &i->opnds[1], 0);
	case GSR_OP_AND:
		return c && c->kind == GSR_OPND_INT && !(c->ival & 31) &&
		       linear(st, &i->opnds[1], 0);
	case GSR_OP_SETP:
		if (!c || i->n_opnds != 3 || c->kind != GSR_OPND_INT ||
		    !linear(st, &i->opnds[1], 0))
			return false;
		if (gsr_insn_has(i, "lt") || gsr_insn_has(i, "ge") || gsr_insn_has(i, "lo") ||
		    gsr_insn_has(i, "hs"))
			return !(c->ival & 31);
		if (gsr_insn_has(i, "gt") || gsr_insn_has(i, "le") || gsr_insn_has(i, "hi") ||
		    gsr_insn_has(i, "ls"))
			return (c->ival & 31) == 31;
		return false;
	default:
		return false;
	}
}

static bool looks_back(const struct gsr_insn *insn)
{
	return insn->op == GSR_OP_SHR || insn->op == GSR_OP_AND || insn->op == GSR_OP_SETP;
}

static bool any_varies(struct state *st, const struct gsr_insn *insn, unsigned int first,
		       unsigned int end)
{
	unsigned int i;

	for (i = first; i < end && i < insn->n_opnds; i++)
		if (operand_varies(st, &insn->opnds[i]))
			return true;
	return false;
}

static bool result_varies(struct state *st, const struct gsr_insn *insn)
{
	if (insn->guard && name_varies(st, insn->guard))
		return true;
	switch (gsr_result_uniform(st->f, insn)) {
	case GSR_UNIFORM_BLOCK:
		return false;
	case GSR_UNIFORM_WARP:
		return !st->warp;
	case GSR_UNIFORM_COUNTED:
		return !st->warp || any_varies(st, insn, 1, 3);
	case GSR_UNIFORM_SHARED:
		return st->loads < GSR_LOADS_SHARED || any_varies(st, insn, 1, insn->n_opnds);
	case GSR_UNIFORM_GLOBAL:
		return st->loads < GSR_LOADS_NAMED || any_varies(st, insn, 1, insn->n_opnds);
	case GSR_UNIFORM_GENERIC:
		return st->loads < GSR_LOADS_ALL || any_varies(st, insn, 1, insn->n_opnds);
	case GSR_UNIFORM_OPERANDS:
		if (st->warp && !(st->strict && looks_back(insn)) && same_in_warp(st, insn))
			return false;
		return any_varies(st, insn, 1, insn->n_opnds);
	default:
		return true;
	}
}

static bool *flag_of(const struct state *st, struct gsr_block *b)
{
	return st->warp ? &b->splits_warp : &b->varying;
}

static bool branch_varies(struct state *st, const struct gsr_block *b)
{
	const struct gsr_insn *insn;

	if (!b->last || b->last->kind != GSR_STMT_INSN || b->n_succ < 2)
		return false;
	insn = b->last->insn;
	if (insn->guard && name_varies(st, insn->guard))
		return true;
	return insn->op == GSR_OP_BRX && (insn->n_opnds < 1 || operand_varies(st, &insn->opnds[0]));
}

static void bypass(struct state *st, const struct gsr_insn *insn)
{
	const struct gsr_operand *o = gsr_defined_by(insn);
	unsigned int reg = o && o->kind == GSR_OPND_REG ? gsr_reg_number(st->d, o->name) :
							  GSR_NO_REG;

	if (reg != GSR_NO_REG)
		st->bypassed[reg] = true;
}

static void split_block(struct state *st, struct gsr_block *b)
{
	const struct gsr_stmt *s;

	if (st->warp)
		b->split_warp = true;
	else
		b->split = true;
	for (s = b->first; s; s = s->next) {
		if (s->kind == GSR_STMT_INSN) {
			vary_result(st, s->insn);
			bypass(st, s->insn);
		}
		if (s == b->last)
			break;
	}
}

/* The blocks are all of the text, in its order */
static void find_blocks(struct gsr_arena *a, struct state *st)
{
	struct gsr_cfg *cfg = st->cfg;
	const struct gsr_stmt *s;
	unsigned int i, n = 0;

	st->insns = gsr_alloc_array(a, st->d->n_insns + 1, sizeof(*st->insns));
	st->queue = gsr_alloc_array(a, st->d->n_insns + 1, sizeof(*st->queue));
	for (i = 0; i < cfg->n_blocks; i++)
		for (s = cfg->blocks[i].first; s; s = s->next) {
			if (s->kind == GSR_STMT_INSN)
				st->insns[n++].block = i;
			if (s == cfg->blocks[i].last)
				break;
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
	st->varying = gsr_alloc_array(a, st->d->n_regs + 1, sizeof(*st->varying));
	st->bypassed = gsr_alloc_array(a, st->d->n_regs + 1, sizeof(*st->bypassed));
	for (i = 0; i < st->d->n_regs; i++)
		st->varying[i] = !st->d->regs[i].n_defs &&
				 !uniform_special(st, st->d->regs[i].name);
}

/* Lanes that call different functions are apart meanwhile */
static bool calls_apart(struct state *st, const struct gsr_insn *insn)
{
	unsigned int i;

	for (i = 0; insn->op == GSR_OP_CALL && i < insn->n_opnds; i++)
		if (insn->opnds[i].kind == GSR_OPND_REG && operand_varies(st, &insn->opnds[i]))
			return true;
	return false;
}

static void reconsider(struct state *st, unsigned int i)
{
	const struct gsr_insn *insn = st->d->insns[i];
	struct use *u = &st->insns[i];
	struct gsr_block *b = &st->cfg->blocks[u->block];
	unsigned int n = st->region.n;

	u->waits = false;
	if (result_varies(st, insn))
		vary_result(st, insn);
	else
		u->again = st->warp && looks_back(insn);
	if (!(st->warp ? b->split_warp : b->split) && calls_apart(st, insn))
		split_block(st, b);
	if (!b->last || b->last->kind != GSR_STMT_INSN || b->last->insn != insn ||
	    *flag_of(st, b) || !b->reachable || !branch_varies(st, b))
		return;
	*flag_of(st, b) = true;
	gsr_region_add(&st->region, u->block);
	for (; n < st->region.n; n++)
		split_block(st, &st->cfg->blocks[st->region.found[n]]);
}

static void mark_one_address(struct state *st)
{
	struct gsr_stmt *s;
	enum gsr_uniform u;

	for (s = st->f->first; s; s = s->next) {
		struct gsr_insn *insn = s->kind == GSR_STMT_INSN ? s->insn : NULL;

		if (!insn || insn->op != GSR_OP_LD || insn->n_opnds < 2)
			continue;
		u = gsr_result_uniform(st->f, insn);
		insn->one_address = (u == GSR_UNIFORM_GLOBAL || u == GSR_UNIFORM_GENERIC) &&
				    !operand_varies(st, &insn->opnds[1]);
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
	find_blocks(a, &st);
	find_specials(a, &st);
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
	if (!warp && g->loads > GSR_LOADS_SHARED)
		mark_one_address(&st);
}
