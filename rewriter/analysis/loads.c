// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loads that give all threads of a thread block the same value: weak loads of one address, in a
 * kernel whose threads order their accesses by plain barriers alone.
 *
 * Let all threads execute a load of one address, and let another thread's store lie between the
 * loads of two of them. The kernel has no data race, so the store is ordered behind one load and in
 * front of the other. Only barriers order it. But all threads pass as many barriers in front of the
 * load, as none of these is where part of the thread block may bypass it; so a store that is
 * ordered behind one thread's load is so behind all. Warp-wide instructions order lanes of one
 * warp, which execute each of them on the same side of the load.
 *
 * So nothing is assumed where threads could be ordered otherwise: by barriers with counts,
 * mbarriers, calls, or loops with atomics whose results are read or loads that see what others
 * write. Without a loop a thread cannot wait for another, and what is ordered by chance is a race
 * in another run. For shared memory only such loops on shared memory count. Where a loop may wait
 * for other blocks, loads of global memory count if the kernel stores nothing through their
 * pointers.
 *
 * Programs do have benign races on flags: some thread stores "done" while others look whether it is
 * set. Such a word is read and written through the same pointer or by the same name. So loads of
 * global memory are not assumed to be alike if a store goes through a pointer that one of them
 * uses.
 *
 * In: a kernel with its graph. Out: enum gsr_loads for gsr_uniform(). Assumes gsr_find_retries().
 */
#include <string.h>
#include "analysis.h"

enum gsr_loads gsr_loads_alike(struct gsr_arena *scratch, const struct gsr_fn *fn, bool *may_wait)
{
	const struct gsr_stmt *s;
	unsigned int waits;
	bool local = false;

	*may_wait = false;
	if (!fn->f->entry || fn->has.refs.n || fn->has.indirect || fn->has.counted ||
	    fn->has.mbarriers || fn->has.alloca)
		return GSR_LOADS_VARY;
	for (s = fn->f->first; s; s = s->next)
		local |= s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_CVTA &&
			 gsr_insn_has(s->insn, "local");
	waits = gsr_loop_waits(scratch, &fn->graph.cfg, true);
	gsr_arena_reset(scratch);
	if (waits & 1u << GSR_WAIT_BLOCK)
		return GSR_LOADS_VARY;
	*may_wait = waits & 1u << GSR_WAIT_ALL;
	/* a generic address of local memory is each thread's own */
	return local ? GSR_LOADS_NAMED : GSR_LOADS_ALL;
}

/* ---- pointers by the parameters that they come from ---- */

#define ROOTS_MAX	64u
#define ROUNDS_MAX	32u	/* instructions mostly stand behind those whose results they use */

struct roots {
	const struct gsr_defuse *d;
	uint64_t *regs;			/* the parameters that each may come from, a bit for each */
	const struct gsr_operand *at[ROOTS_MAX];
	unsigned int n_at;
	uint64_t names;			/* which of them are variables of the module */
	bool changed;
};

static bool same_place(const struct gsr_operand *a, const struct gsr_operand *b)
{
	unsigned int i;

	if (a->kind != b->kind || a->name != b->name)
		return false;
	/* a variable is one place, whatever the offset */
	if (a->kind == GSR_OPND_SYM)
		return true;
	if (a->ival != b->ival || a->n_items != b->n_items)
		return false;
	for (i = 0; i < a->n_items; i++)
		if (!same_place(&a->items[i], &b->items[i]))
			return false;
	return true;
}

/* The last bit stands for all parameters that have none of their own */
static uint64_t root_of(struct roots *r, const struct gsr_operand *at)
{
	unsigned int i;

	for (i = 0; i < r->n_at; i++)
		if (same_place(r->at[i], at))
			return 1ull << i;
	if (r->n_at < ROOTS_MAX - 1)
		r->at[r->n_at++] = at;
	return 1ull << i;
}

static uint64_t roots_of(struct roots *r, const struct gsr_operand *o)
{
	uint64_t roots = o->kind == GSR_OPND_REG ? r->regs[gsr_reg_slot(r->d, o->name)] : 0;
	unsigned int i;

	if (o->kind == GSR_OPND_SYM) {
		roots = root_of(r, o);
		r->names |= roots;
	}
	for (i = 0; i < o->n_items; i++)
		roots |= roots_of(r, &o->items[i]);
	return roots;
}

static void add_roots(struct roots *r, const struct gsr_operand *o, uint64_t roots)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG) {
		uint64_t *reg = &r->regs[gsr_reg_slot(r->d, o->name)];

		r->changed |= (*reg | roots) != *reg;
		*reg |= roots;
	}
	for (i = 0; i < o->n_items; i++)
		add_roots(r, &o->items[i], roots);
}

/* What a parameter or variable holds at one offset */
static bool loads_from_name(const struct gsr_insn *insn)
{
	const struct gsr_operand *at = &insn->opnds[1];

	return insn->op == GSR_OP_LD &&
	       (gsr_insn_has(insn, "param") ||
		(at->kind == GSR_OPND_ADDR && at->n_items == 1 &&
		 at->items[0].kind == GSR_OPND_SYM));
}

static uint64_t root_of_name(struct roots *r, const struct gsr_insn *insn)
{
	uint64_t root = root_of(r, &insn->opnds[1]);

	r->names |= gsr_insn_has(insn, "param") ? 0 : root;
	return root;
}

/* false: it would take too long */
static bool find_roots(struct gsr_arena *a, struct roots *r)
{
	unsigned int rounds = 0, i, k;

	gsr_defuse_enter(r->d);
	r->regs = gsr_alloc_array(a, r->d->n_regs + 1, sizeof(*r->regs));
	do {
		r->changed = false;
		for (k = 0; k < r->d->n_insns; k++) {
			struct gsr_insn *insn = r->d->insns[k];
			uint64_t roots = 0;

			if (insn->n_opnds < 2 || !gsr_has_result(insn))
				continue;
			if (loads_from_name(insn))
				roots = root_of_name(r, insn);
			else
				for (i = 1; i < insn->n_opnds; i++)
					roots |= roots_of(r, &insn->opnds[i]);
			add_roots(r, &insn->opnds[0], roots);
		}
	} while (r->changed && ++rounds < ROUNDS_MAX);
	return !r->changed;
}

static const struct gsr_operand *written_to(const struct gsr_stmt *s)
{
	const struct gsr_insn *insn = s->kind == GSR_STMT_INSN ? s->insn : NULL;

	if (!insn || insn->n_opnds < 2 || gsr_insn_has(insn, "shared") ||
	    gsr_insn_has(insn, "shared::cta") || gsr_insn_has(insn, "local") ||
	    gsr_insn_has(insn, "param"))
		return NULL;
	if (insn->op == GSR_OP_ST || insn->op == GSR_OP_RED)
		return &insn->opnds[0];
	return insn->op == GSR_OP_ATOM ? &insn->opnds[1] : NULL;
}

/* gsr_insn.one_address marks the loads of one address */
bool gsr_flags_stored(struct gsr_arena *scratch, const struct gsr_fn *fn, bool waits)
{
	bool loads = false, stores = false, unknown = false;
	uint64_t read = 0, written = 0, from;
	const struct gsr_operand *at;
	struct roots r = { .d = fn->graph.defuse };
	const struct gsr_stmt *s;

	for (s = fn->f->first; s; s = s->next) {
		loads |= s->kind == GSR_STMT_INSN && s->insn->one_address;
		stores |= written_to(s) != NULL;
		/* matrices and copies have stores of their own */
		unknown |= s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_CP &&
			   gsr_insn_has(s->insn, "bulk");
	}
	if (!loads || (!stores && !unknown))
		return false;
	if (!find_roots(scratch, &r)) {
		gsr_arena_reset(scratch);
		return true;
	}
	for (s = fn->f->first; s; s = s->next) {
		bool load = s->kind == GSR_STMT_INSN && s->insn->one_address;

		at = load ? &s->insn->opnds[1] : written_to(s);
		if (!at)
			continue;
		from = roots_of(&r, at);
		/* a pointer may lead to a variable, too */
		unknown |= !(from & ~r.names);
		*(load ? &read : &written) |= from;
	}
	gsr_arena_reset(scratch);
	return (read & written) || (waits && unknown);
}
