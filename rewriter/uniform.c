// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which branches may split a block of threads. A register is uniform if every instruction that writes it computes the
 * same for all threads, and none of them stands where only part of the threads may come by. Begins with all uniform and
 * takes away until nothing changes: a branch that varies makes all that is written between it and its post-dominator
 * vary. That is more than necessary, never less.
 */
#include <string.h>
#include "rewrite.h"

struct reg {
	const char *name;
	bool varying, defined;
};

struct state {
	struct gsr_function *f;
	struct gsr_cfg *cfg;
	struct reg *regs;
	unsigned int n;
	bool changed;
};

static const char *const uniform_specials[] = {
	"%ctaid", "%nctaid", "%ntid", "%gridid", "%nsmid", "%smid", "%nwarpid", "%total_smem_size", "%dynamic_smem_size",
	NULL
};

typedef void (*visit_fn)(struct state *st, const struct gsr_operand *o);

static void visit(struct state *st, const struct gsr_operand *o, visit_fn fn)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG)
		fn(st, o);
	for (i = 0; i < o->n_items; i++)
		visit(st, &o->items[i], fn);
}

/* The registers an instruction writes, at most: those of its first operand. An address is only read. */
static void visit_result(struct state *st, const struct gsr_insn *insn, visit_fn fn)
{
	if (insn->n_opnds && insn->opnds[0].kind != GSR_OPND_ADDR)
		visit(st, &insn->opnds[0], fn);
}

static struct reg *reg_of(struct state *st, const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	return m && m <= st->n && st->regs[m - 1].name == name ? &st->regs[m - 1] : NULL;
}

static void forget(struct state *st, const struct gsr_operand *o)
{
	*gsr_intern_mark(o->name) = 0;
	st->n++;
}

static void enter(struct state *st, const struct gsr_operand *o)
{
	if (!reg_of(st, o->name)) {
		st->regs[st->n].name = o->name;
		*gsr_intern_mark(o->name) = ++st->n;
	}
}

static void define(struct state *st, const struct gsr_operand *o)
{
	reg_of(st, o->name)->defined = true;
}

static void vary(struct state *st, const struct gsr_operand *o)
{
	struct reg *r = reg_of(st, o->name);

	if (!r->varying) {
		r->varying = true;
		st->changed = true;
	}
}

static bool name_varies(struct state *st, const char *name)
{
	const struct reg *r = reg_of(st, name);

	return !r || r->varying;
}

static bool operand_varies(struct state *st, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG && name_varies(st, o->name))
		return true;
	for (i = 0; i < o->n_items; i++)
		if (operand_varies(st, &o->items[i]))
			return true;
	return false;
}

static bool entry_param(const struct gsr_function *f, const struct gsr_operand *addr)
{
	unsigned int i;

	if (!f->entry || addr->kind != GSR_OPND_ADDR || addr->n_items != 1 || addr->items[0].kind != GSR_OPND_SYM)
		return false;
	for (i = 0; i < f->n_params; i++)
		if (!strcmp(f->params[i].name, addr->items[0].name))
			return true;
	return false;
}

/* Does the instruction give all threads the same result, if its operands are the same? */
static bool pure(const struct gsr_function *f, const struct gsr_insn *insn)
{
	if ((insn->op >= GSR_OP_ADD && insn->op <= GSR_OP_DP2A) || (insn->op >= GSR_OP_TESTP && insn->op <= GSR_OP_SHR))
		return true;
	switch (insn->op) {
	case GSR_OP_MOV:
	case GSR_OP_PRMT:
	case GSR_OP_CVT:
	case GSR_OP_CVTA:
	case GSR_OP_ISSPACEP:
		return true;
	case GSR_OP_LD:
		if (insn->n_opnds < 2)
			return false;
		return gsr_insn_has(insn, "nc") || gsr_insn_has(insn, "const") ||
		       (gsr_insn_has(insn, "param") && entry_param(f, &insn->opnds[1]));
	case GSR_OP_BAR:
	case GSR_OP_BARRIER:
		return gsr_insn_has(insn, "red");
	default:
		return false;
	}
}

static bool result_varies(struct state *st, const struct gsr_insn *insn)
{
	unsigned int i;

	if (insn->guard && name_varies(st, insn->guard))
		return true;
	if (!pure(st->f, insn))
		return true;
	if (insn->op == GSR_OP_BAR || insn->op == GSR_OP_BARRIER)
		return false;
	for (i = 1; i < insn->n_opnds; i++)
		if (operand_varies(st, &insn->opnds[i]))
			return true;
	return false;
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

static void vary_block(struct state *st, const struct gsr_block *b)
{
	const struct gsr_stmt *s;

	for (s = b->first; s; s = s->next) {
		if (s->kind == GSR_STMT_INSN)
			visit_result(st, s->insn, vary);
		if (s == b->last)
			break;
	}
}

static void for_all(struct state *st, visit_fn fn)
{
	const struct gsr_stmt *s;
	unsigned int i;

	for (s = st->f->first; s; s = s->next) {
		struct gsr_operand guard = { .kind = GSR_OPND_REG };

		if (s->kind != GSR_STMT_INSN)
			continue;
		for (i = 0; i < s->insn->n_opnds; i++)
			visit(st, &s->insn->opnds[i], fn);
		guard.name = s->insn->guard;
		if (guard.name)
			visit(st, &guard, fn);
	}
}

void gsr_uniform(struct gsr_arena *a, struct gsr_function *f, struct gsr_cfg *cfg)
{
	struct state st = { .f = f, .cfg = cfg };
	unsigned char *in = gsr_alloc(a, cfg->n_blocks + 1);
	unsigned int *stack = gsr_alloc_array(a, cfg->n_blocks + 1, sizeof(*stack));
	unsigned int i, k;
	struct gsr_stmt *s;

	for_all(&st, forget);
	st.regs = gsr_alloc_array(a, st.n + 1, sizeof(*st.regs));
	st.n = 0;
	for_all(&st, enter);
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN)
			visit_result(&st, s->insn, define);
	/* what nothing writes is a special register, or a parameter in a register */
	for (i = 0; i < st.n; i++) {
		for (k = 0; uniform_specials[k] && strcmp(uniform_specials[k], st.regs[i].name); k++)
			;
		st.regs[i].varying = !st.regs[i].defined && !uniform_specials[k];
	}
	do {
		st.changed = false;
		for (s = f->first; s; s = s->next)
			if (s->kind == GSR_STMT_INSN && result_varies(&st, s->insn))
				visit_result(&st, s->insn, vary);
		for (i = 0; i < cfg->n_blocks; i++) {
			struct gsr_block *b = &cfg->blocks[i];

			if (b->varying || !branch_varies(&st, b))
				continue;
			b->varying = true;
			st.changed = true;
			memset(in, 0, cfg->n_blocks + 1);
			for (k = 0; k < b->n_succ; k++)
				gsr_cfg_region(cfg, b->succ[k], b->ipdom, in, stack);
			for (k = 0; k < cfg->n_blocks; k++)
				if (in[k])
					vary_block(&st, &cfg->blocks[k]);
		}
	} while (st.changed);
}
