// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a block-task has done that it must not do twice: where a block-task may be abandoned and
 * begun again. It may be abandoned
 * - before its first effect on memory outside of the thread block, whatever it has read; and
 * - behind weak stores, too, if the kernel is repeatable: it reads only memory that does not change
 *   during a launch (parameters, constants, .nc, textures) or that the block-task itself has made
 *   (registers, shared and local memory), and nothing that differs from one execution to the next.
 *   Then the second execution stores the same values to the same places, and until then no thread
 *   reads them: one that did would have a data race, or the kernel a load that is not of this kind.
 * Aliasing needs no proof of its own: a load that is not .nc may alias any store.
 *
 * In: a kernel's closure and its graph. Out: by block, what may have been executed before it.
 * Assumes that functions that are called have their final text. An instruction that is not listed
 * counts as an effect that must not be repeated.
 */
#include <string.h>
#include "analysis.h"

struct gsr_effects {
	const struct gsr_fn *fn;
	unsigned int counts;		/* enum gsr_effect: those that count in this kernel */
	bool calls;			/* functions that it may call have effects */
	unsigned char *before;		/* by block */
};

static bool in_block(const struct gsr_insn *insn)
{
	return gsr_insn_has(insn, "shared") || gsr_insn_has(insn, "shared::cta");
}

static unsigned int of_store(const struct gsr_insn *insn)
{
	static const char *const strong[] = { "volatile", "relaxed", "release", "mmio", "async" };
	unsigned int i;

	if (in_block(insn) || gsr_insn_has(insn, "local") || gsr_insn_has(insn, "param"))
		return 0;
	for (i = 0; i < sizeof(strong) / sizeof(*strong); i++)
		if (gsr_insn_has(insn, strong[i]))
			return GSR_EFFECT_OTHER;
	return GSR_EFFECT_STORE;
}

static unsigned int effect_of(const struct gsr_insn *insn, bool calls)
{
	switch (insn->op) {
	case GSR_OP_ADD ... GSR_OP_LDU:
	case GSR_OP_PREFETCH ... GSR_OP_APPLYPRIORITY:
	case GSR_OP_CREATEPOLICY ... GSR_OP_GETCTARANK:
	case GSR_OP_TEX ... GSR_OP_SULD:
	case GSR_OP_SUQ ... GSR_OP_BRX:
	case GSR_OP_RET ... GSR_OP_FENCE:
	case GSR_OP_VOTE ... GSR_OP_ELECT:
	case GSR_OP_MMA:
	case GSR_OP_LDMATRIX ... GSR_OP_MOVMATRIX:	/* stmatrix: to shared memory */
	case GSR_OP_VADD ... GSR_OP_VSET4:
	case GSR_OP_NANOSLEEP:
	case GSR_OP_TRAP:
		return 0;
	case GSR_OP_ST:
		return of_store(insn);
	case GSR_OP_WMMA:
		return gsr_insn_has(insn, "store") ? of_store(insn) : 0;
	case GSR_OP_ATOM:
	case GSR_OP_RED:
		return in_block(insn) && !gsr_insn_has(insn, "async") ? 0 : GSR_EFFECT_OTHER;
	case GSR_OP_CP:
		return gsr_insn_has(insn, "bulk") || gsr_insn_has(insn, "reduce") ?
			       GSR_EFFECT_OTHER : 0;
	case GSR_OP_CALL:
		return calls ? GSR_EFFECT_OTHER : 0;
	default:
		return GSR_EFFECT_OTHER;
	}
}

static bool names_what_varies(const struct gsr_operand *o)
{
	static const char *const names[] = { "%clock", "%globaltimer", "%smid", "%nsmid",
					     "%warpid", "%nwarpid", "%gridid", "%pm", "%envreg" };
	unsigned int i;

	for (i = 0; o->kind == GSR_OPND_REG && i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(o->name, names[i], strlen(names[i])))
			return true;
	for (i = 0; i < o->n_items; i++)
		if (names_what_varies(&o->items[i]))
			return true;
	return false;
}

static bool load_is_repeatable(const struct gsr_insn *insn)
{
	static const char *const strong[] = { "volatile", "relaxed", "acquire", "mmio" };
	unsigned int i;

	for (i = 0; i < sizeof(strong) / sizeof(*strong); i++)
		if (gsr_insn_has(insn, strong[i]))
			return false;
	return in_block(insn) || gsr_insn_has(insn, "nc") || gsr_insn_has(insn, "const") ||
	       gsr_insn_has(insn, "param") || gsr_insn_has(insn, "local");
}

static bool is_repeatable(const struct gsr_insn *insn)
{
	unsigned int i;

	for (i = 0; i < insn->n_opnds; i++)
		if (names_what_varies(&insn->opnds[i]))
			return false;
	switch (insn->op) {
	case GSR_OP_LD:
		return load_is_repeatable(insn);
	case GSR_OP_WMMA:
		return !gsr_insn_has(insn, "load") || load_is_repeatable(insn);
	case GSR_OP_CP:
	case GSR_OP_SULD:
	case GSR_OP_ATOM:		/* in shared memory, too: their order may differ */
	case GSR_OP_RED:
	case GSR_OP_MEMBAR:
	case GSR_OP_FENCE:
	case GSR_OP_ACTIVEMASK:
	case GSR_OP_ELECT:
		return false;
	default:
		return true;
	}
}

/* Leaves out stores if the kernel is repeatable, and all that does not occur */
static void scan_closure(struct gsr_effects *e, const struct gsr_closure *c)
{
	const struct gsr_stmt *s;
	bool repeatable = true;
	unsigned int i;

	for (i = 1; i < c->n; i++) {
		e->calls |= !c->fns[i]->f->body;
		for (s = c->fns[i]->f->first; s; s = s->next)
			e->calls |= s->kind == GSR_STMT_INSN && effect_of(s->insn, false);
	}
	for (i = 0; i < c->n; i++)
		for (s = c->fns[i]->f->first; s; s = s->next)
			repeatable &= s->kind != GSR_STMT_INSN || is_repeatable(s->insn);
	for (s = e->fn->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN)
			e->counts |= effect_of(s->insn, e->calls);
	if (repeatable)
		e->counts &= ~(unsigned int)GSR_EFFECT_STORE;
}

/* Of the block's statements in front of @end; NULL: of all */
static unsigned int within(const struct gsr_effects *e, const struct gsr_block *b,
			   const struct gsr_stmt *end)
{
	const struct gsr_stmt *s;
	unsigned int found = 0;

	for (s = b->first; s && s != end; s = s == b->last ? NULL : s->next)
		if (s->kind == GSR_STMT_INSN)
			found |= effect_of(s->insn, e->calls) & e->counts;
	return found;
}

struct gsr_effects *gsr_effects(struct gsr_arena *a, const struct gsr_closure *c)
{
	const struct gsr_cfg *cfg = &c->fns[0]->graph.cfg;
	struct gsr_effects *e = gsr_alloc(a, sizeof(*e));
	unsigned int i, k;
	bool changed;

	e->fn = c->fns[0];
	e->before = gsr_alloc(a, cfg->n_blocks + 1);
	scan_closure(e, c);
	do {
		changed = false;
		for (i = 0; i < cfg->n_blocks; i++) {
			const struct gsr_block *b = &cfg->blocks[i];
			unsigned int behind = e->before[i] | within(e, b, NULL);

			for (k = 0; k < b->n_succ; k++) {
				changed |= behind & ~e->before[b->succ[k]];
				e->before[b->succ[k]] |= (unsigned char)behind;
			}
		}
	} while (changed);
	return e;
}

unsigned int gsr_effects_before(const struct gsr_effects *e, unsigned int block,
				const struct gsr_stmt *s)
{
	return e->before[block] | within(e, &e->fn->graph.cfg.blocks[block], s);
}

bool gsr_has_effects(const struct gsr_effects *e)
{
	return e->counts;
}
