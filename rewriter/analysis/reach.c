// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reaching definitions: for one operand at a time, by a walk from its instruction backwards. Most
 * are near, and most registers have one definition, so no tables for all are made. The walks of one
 * index are limited together, so that their time is in proportion to the text.
 *
 * In: a graph with its def-use index. Out: struct gsr_reach. Assumes that blocks have the order of
 * the text.
 */
#include "reach.h"

#define WALK_MAX	256u		/* blocks, for one operand */
#define BUDGET		64u		/* for all, times the blocks */

static void add_definition(struct gsr_reach *r, unsigned int *n, unsigned int insn,
			   const struct gsr_operand *o)
{
	unsigned int reg = gsr_names_register(o) ? gsr_reg_number(r->d, o->name) : GSR_NO_REG, i;

	if (reg != GSR_NO_REG)
		r->defs[n[reg]++] = insn;
	for (i = 0; i < o->n_items; i++)
		add_definition(r, n, insn, &o->items[i]);
}

static void find_definitions(struct gsr_arena *a, struct gsr_reach *r)
{
	unsigned int *n = gsr_alloc_array(a, r->d->n_regs + 1, sizeof(*n)), i;

	for (i = 0; i < r->d->n_regs; i++) {
		n[i] = r->first_def[i];
		r->first_def[i + 1] = r->first_def[i] + r->d->regs[i].n_defs;
	}
	r->defs = gsr_alloc_array(a, r->first_def[r->d->n_regs] + 1, sizeof(*r->defs));
	for (i = 0; i < r->d->n_insns; i++) {
		const struct gsr_operand *o = gsr_defined_by(r->d->insns[i]);

		if (o)
			add_definition(r, n, i, o);
	}
}

struct gsr_reach *gsr_reach(struct gsr_arena *a, const struct gsr_cfg *cfg,
			    const struct gsr_defuse *d)
{
	struct gsr_reach *r = gsr_alloc(a, sizeof(*r));
	const struct gsr_stmt *s;
	unsigned int i, n = 0;

	r->d = d;
	r->block = gsr_alloc_array(a, d->n_insns + 1, sizeof(*r->block));
	r->first_insn = gsr_alloc_array(a, cfg->n_blocks + 1, sizeof(*r->first_insn));
	r->first_def = gsr_alloc_array(a, d->n_regs + 1, sizeof(*r->first_def));
	r->todo = gsr_alloc_array(a, WALK_MAX + 1, sizeof(*r->todo));
	r->seen = gsr_alloc_array(a, cfg->n_blocks + 1, sizeof(*r->seen));
	r->budget = (size_t)BUDGET * cfg->n_blocks;
	for (i = 0; i < cfg->n_blocks; i++) {
		r->first_insn[i] = n;
		for (s = cfg->blocks[i].first; s; s = s->next) {
			if (s->kind == GSR_STMT_INSN)
				r->block[n++] = i;
			if (s == cfg->blocks[i].last)
				break;
		}
	}
	r->first_insn[cfg->n_blocks] = n;
	r->preds = gsr_preds(a, cfg);
	find_definitions(a, r);
	return r;
}

/*
 * The definitions in the instructions from @first up to @end that reach the end. true: what there
 * was before cannot.
 */
static bool last_definition(const struct gsr_reach *r, unsigned int reg, unsigned int first,
			    unsigned int end, unsigned int *defs, unsigned int *n)
{
	unsigned int k = r->first_def[reg + 1], i;

	while (k-- > r->first_def[reg]) {
		unsigned int def = r->defs[k];

		if (def < first)
			return false;
		if (def >= end)
			continue;
		for (i = 0; i < *n && defs[i] != def; i++)
			;
		if (i == *n)
			defs[(*n)++] = def;
		if (!r->d->insns[def]->guard)
			return true;
	}
	return false;
}

/* false: too far away */
static bool go_back(struct gsr_reach *r, unsigned int block, unsigned int *n_todo)
{
	unsigned int k;

	for (k = r->preds.start[block]; k < r->preds.start[block + 1]; k++) {
		unsigned int from = r->preds.at[k];

		if (r->seen[from] == r->walks)
			continue;
		if (*n_todo == WALK_MAX || !r->budget)
			return false;
		r->budget--;
		r->seen[from] = r->walks;
		r->todo[(*n_todo)++] = from;
	}
	return true;
}

bool gsr_reaching(struct gsr_reach *r, unsigned int insn, unsigned int reg, unsigned int *defs,
		  unsigned int *n)
{
	unsigned int block = r->block[insn], next = 0, n_todo = 0;

	*n = 0;
	if (r->first_def[reg + 1] - r->first_def[reg] > GSR_REACHING_MAX)
		return false;
	r->walks++;
	if (last_definition(r, reg, r->first_insn[block], insn, defs, n))
		return true;
	if (!go_back(r, block, &n_todo))
		return false;
	while (next < n_todo) {
		block = r->todo[next++];
		if (!last_definition(r, reg, r->first_insn[block], r->first_insn[block + 1], defs,
				     n) &&
		    !go_back(r, block, &n_todo))
			return false;
	}
	return true;
}
