// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Liveness of registers: live-in sets of basic blocks, by backward iteration to a fixed point. Only
 * an instruction that certainly replaces the whole register counts as a write; everything else that
 * names a register counts as a read.
 *
 * In: a function with its graph. Out: live sets by block. Assumes a function without inner scopes.
 */
#include <stdlib.h>
#include <string.h>
#include "liveness.h"

#define BITS_MAX	(1ull << 29)	/* of all sets together */

/* The declaration of a register: of its name, or for %r<21> of its name without the number */
static const struct gsr_var *declaration(const struct gsr_live *l, unsigned int reg)
{
	const char *name = l->regs[reg].name;
	size_t n = strlen(name), stem = n;
	unsigned int i;

	if (l->regs[reg].var)
		return l->regs[reg].var;
	while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9')
		stem--;
	for (i = 0; i < l->n_ranges; i++) {
		const struct gsr_var *v = l->ranges[i];

		if (stem < n && n - stem < 9 && strlen(v->name) == stem &&
		    !strncmp(v->name, name, stem) && strtoul(name + stem, NULL, 10) < v->range)
			return v;
	}
	return NULL;
}

static unsigned int index_of(const struct gsr_live *l, const char *name)
{
	unsigned int reg = gsr_reg_number(l->d, name);

	return reg != GSR_NO_REG ? l->index[reg] : GSR_NO_REG;
}

typedef void (*name_fn)(struct gsr_live *l, const char *name, void *arg);

static void names_of(struct gsr_live *l, const struct gsr_operand *o, name_fn fn, void *arg)
{
	unsigned int i;

	if (gsr_names_register(o))
		fn(l, o->name, arg);
	for (i = 0; i < o->n_items; i++)
		names_of(l, &o->items[i], fn, arg);
}

static void for_each_name(struct gsr_live *l, const struct gsr_insn *insn, unsigned int from,
			  name_fn fn, void *arg)
{
	unsigned int i;

	if (insn->guard)
		fn(l, insn->guard, arg);
	for (i = from; i < insn->n_opnds; i++)
		names_of(l, &insn->opnds[i], fn, arg);
}

/* @arg: the stretch of code we are in */
static void is_read(struct gsr_live *l, const char *name, void *arg)
{
	unsigned int i = index_of(l, name);

	l->regs[i].crosses |= l->regs[i].written != *(unsigned int *)arg;
}

static void is_written(struct gsr_live *l, const char *name, void *arg)
{
	l->regs[index_of(l, name)].written = *(unsigned int *)arg;
}

static void set_live(struct gsr_live *l, const char *name, void *arg)
{
	unsigned int i = index_of(l, name);

	if (i != GSR_NO_REG)
		((uint64_t *)arg)[i / 64] |= 1ull << (i % 64);
}

static void clear(struct gsr_live *l, const char *name, void *arg)
{
	unsigned int i = index_of(l, name);

	if (i != GSR_NO_REG)
		((uint64_t *)arg)[i / 64] &= ~(1ull << (i % 64));
}

static bool whole(const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_ADDR || o->component || o->selector)
		return false;
	for (i = 0; i < o->n_items; i++)
		if (!whole(&o->items[i]))
			return false;
	return true;
}

static bool writes(const struct gsr_insn *insn)
{
	return insn->n_opnds && !insn->guard && gsr_has_result(insn) && whole(&insn->opnds[0]);
}

/* @live: behind the instruction; becomes what is live before it */
static void step_backwards(struct gsr_live *l, const struct gsr_insn *insn, uint64_t *live)
{
	bool result = writes(insn);

	if (result)
		names_of(l, &insn->opnds[0], clear, live);
	for_each_name(l, insn, result ? 1 : 0, set_live, live);
}

static void live_out(const struct gsr_live *l, const struct gsr_cfg *cfg, unsigned int block,
		     uint64_t *out)
{
	const struct gsr_block *b = &cfg->blocks[block];
	unsigned int k, w;

	memset(out, 0, l->words * sizeof(*out));
	for (k = 0; k < b->n_succ; k++)
		for (w = 0; b->succ[k] < cfg->n_blocks && w < l->words; w++)
			out[w] |= l->in[(size_t)b->succ[k] * l->words + w];
}

void gsr_live_before(struct gsr_live *l, const struct gsr_cfg *cfg, unsigned int block,
		     const struct gsr_stmt *at, uint64_t *live)
{
	const struct gsr_stmt *s = cfg->blocks[block].last;

	live_out(l, cfg, block, live);
	for (;; s = s->prev) {
		if (s->kind == GSR_STMT_INSN)
			step_backwards(l, s->insn, live);
		if (s == at || s == cfg->blocks[block].first)
			break;
	}
}

/*
 * Of all that is named, what is a register that crosses from one stretch of code to another; in the
 * order of first mention
 */
static void find_crossing(struct gsr_live *l, const struct gsr_function *f)
{
	unsigned int stretch = 1, n = l->n, i;
	const struct gsr_stmt *s;

	for (s = f->first; s; s = s->next) {
		bool barrier = s->kind == GSR_STMT_INSN &&
			       (s->insn->op == GSR_OP_BAR || s->insn->op == GSR_OP_BARRIER),
		     result;

		stretch += s->kind == GSR_STMT_LABEL || barrier;
		if (s->kind != GSR_STMT_INSN)
			continue;
		result = writes(s->insn);
		for_each_name(l, s->insn, result ? 1 : 0, is_read, &stretch);
		if (result)
			names_of(l, &s->insn->opnds[0], is_written, &stretch);
		stretch += gsr_insn_branches(s->insn);
	}
	for (i = l->n = 0; i < n; i++) {
		const struct gsr_var *v = l->regs[i].crosses ? declaration(l, i) : NULL;

		l->index[i] = v ? l->n : GSR_NO_REG;
		if (!v)
			continue;
		l->regs[l->n].name = l->regs[i].name;
		l->regs[l->n++].var = v;
	}
}

/* At first all that is named, by the numbers of the def-use index */
static const char *collect(struct gsr_live *l, struct gsr_arena *a, const struct gsr_function *f)
{
	unsigned int room = 0, i;
	const struct gsr_var *v;
	const struct gsr_stmt *s;
	bool vectors = false;

	gsr_defuse_enter(l->d);
	l->n = l->d->n_regs;
	l->regs = gsr_alloc_array(a, l->n + 1, sizeof(*l->regs));
	l->index = gsr_alloc_array(a, l->n + 1, sizeof(*l->index));
	for (i = 0; i < l->n; i++) {
		l->regs[i].name = l->d->regs[i].name;
		l->index[i] = i;
	}
	for (s = f->first; s; s = s->next)
		room += s->kind == GSR_STMT_VAR && s->var->range;
	l->ranges = gsr_alloc_array(a, room + 1, sizeof(*l->ranges));
	for (s = f->first; s; s = s->next) {
		if (s->kind != GSR_STMT_VAR || strcmp(s->var->space, "reg"))
			continue;
		vectors |= s->var->vec;
		i = index_of(l, s->var->name);
		if (s->var->range)
			l->ranges[l->n_ranges++] = s->var;
		else if (i != GSR_NO_REG)
			l->regs[i].var = s->var;
	}
	for (i = 0; vectors && i < l->n; i++) {
		v = declaration(l, i);
		if (v && v->vec)
			return "vector registers";
	}
	find_crossing(l, f);
	return NULL;
}

/*
 * Has the set of a successor of block @i changed since the block was looked at? Each round goes
 * from the last block to the first
 */
static bool must_look(const struct gsr_cfg *cfg, const unsigned int *changed, unsigned int i,
		      unsigned int round)
{
	const struct gsr_block *b = &cfg->blocks[i];
	unsigned int k;

	for (k = 0; k < b->n_succ; k++)
		if (b->succ[k] < cfg->n_blocks &&
		    changed[b->succ[k]] == (b->succ[k] > i ? round : round - 1))
			return true;
	return round == 1;
}

const char *gsr_liveness(struct gsr_live *l, struct gsr_arena *a, const struct gsr_fn *fn)
{
	const struct gsr_cfg *cfg = &fn->graph.cfg;
	unsigned int i, round, *changed;
	const char *reason;
	bool again = true;
	uint64_t *now;

	*l = (struct gsr_live){ .d = fn->graph.defuse };
	reason = collect(l, a, fn->f);
	if (reason)
		return reason;
	l->words = l->n / 64 + 1;
	if ((uint64_t)l->words * 64 * cfg->n_blocks > BITS_MAX)
		return "too many registers in too many basic blocks";
	l->in = gsr_alloc_array(a, (size_t)cfg->n_blocks + 1, l->words * sizeof(*l->in));
	now = gsr_alloc_array(a, l->words, sizeof(*now));
	changed = gsr_alloc_array(a, (size_t)cfg->n_blocks + 1, sizeof(*changed));
	for (round = 1; again; round++) {
		again = false;
		for (i = cfg->n_blocks; i-- > 0;) {
			uint64_t *in = &l->in[(size_t)i * l->words];

			if (!must_look(cfg, changed, i, round))
				continue;
			gsr_live_before(l, cfg, i, cfg->blocks[i].first, now);
			if (!memcmp(in, now, l->words * sizeof(*now)))
				continue;
			memcpy(in, now, l->words * sizeof(*now));
			changed[i] = round;
			again = true;
		}
	}
	return NULL;
}
