// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Barriers and early returns. In the twin no thread ends with its block-task, so where the original's hardware leaves
 * finished threads out, the twin's must take part or must not be waited for.
 */
#include <string.h>
#include "rewrite.h"

/* The value of a register that one instruction of the function sets to a constant; -1 unknown */
static int constant_of(const struct gsr_function *f, const char *name)
{
	const struct gsr_stmt *s;
	int64_t v = -1;

	for (s = f->first; s; s = s->next) {
		const struct gsr_insn *i = s->kind == GSR_STMT_INSN ? s->insn : NULL;
		const struct gsr_operand *o = i && i->n_opnds ? &i->opnds[0] : NULL;
		unsigned int k;

		if (!o || o->kind == GSR_OPND_ADDR)
			continue;
		for (k = 0; k < o->n_items; k++)
			if (o->items[k].name && !strcmp(o->items[k].name, name))
				return -1;
		if (o->kind != GSR_OPND_REG || strcmp(o->name, name))
			continue;
		if (v >= 0 || i->op != GSR_OP_MOV || i->guard || i->opnds[1].kind != GSR_OPND_INT)
			return -1;
		v = i->opnds[1].ival;
	}
	return v >= 0 && v < 16 ? (int)v : -1;
}

bool gsr_barrier_of(const struct gsr_function *f, const struct gsr_insn *insn, struct gsr_barrier *b)
{
	unsigned int at;

	memset(b, 0, sizeof(*b));
	if (insn->op != GSR_OP_BAR && insn->op != GSR_OP_BARRIER)
		return false;
	b->warp = gsr_insn_has(insn, "warp");
	b->cluster = gsr_insn_has(insn, "cluster");
	b->sync = gsr_insn_has(insn, "sync");
	b->red = gsr_insn_has(insn, "red");
	b->arrive = gsr_insn_has(insn, "arrive");
	if (b->warp || b->cluster)
		return true;
	at = b->red ? 1 : 0;
	b->id = -1;
	if (insn->n_opnds > at) {
		const struct gsr_operand *o = &insn->opnds[at];

		if (o->kind == GSR_OPND_INT && o->ival >= 0 && o->ival < 16)
			b->id = (int)o->ival;
		else if (o->kind == GSR_OPND_REG)
			b->id = constant_of(f, o->name);
	}
	/* bar.red d, a, [b,] p */
	b->counted = insn->n_opnds > (b->red ? 3u : 1u);
	return true;
}

/* Is the mask made of the lanes that are there? */
static bool mask_of_active(const struct gsr_function *f, const struct gsr_operand *mask)
{
	const struct gsr_stmt *s;
	bool found = false;

	if (mask->kind != GSR_OPND_REG)
		return false;
	for (s = f->first; s; s = s->next) {
		const struct gsr_insn *i = s->kind == GSR_STMT_INSN ? s->insn : NULL;

		if (!i || !i->n_opnds || i->opnds[0].kind != GSR_OPND_REG || i->opnds[0].name != mask->name)
			continue;
		if (found || i->guard || (i->op != GSR_OP_ACTIVEMASK && i->op != GSR_OP_MATCH))
			return false;
		found = true;
	}
	return found;
}

/* Instructions that must be executed by whole warps (mma, ldmatrix) are not among them: no lane may be finished there. */
const char *gsr_warp_sync(const struct gsr_function *f, const struct gsr_insn *insn)
{
	const char *name = NULL;
	struct gsr_barrier b;

	switch (insn->op) {
	case GSR_OP_SHFL:
	case GSR_OP_VOTE:
	case GSR_OP_MATCH:
	case GSR_OP_REDUX:
	case GSR_OP_ELECT:
		name = gsr_insn_has(insn, "sync") ? insn->name : NULL;
		break;
	case GSR_OP_BAR:
	case GSR_OP_BARRIER:
		/* a barrier counts whole warps */
		gsr_barrier_of(f, insn, &b);
		return b.warp ? "bar.warp.sync" : b.counted || b.arrive ? "barrier with a thread count" : NULL;
	default:
		break;
	}
	if (name && insn->n_opnds && mask_of_active(f, &insn->opnds[insn->n_opnds - 1]))
		return NULL;
	return name;
}

static bool is_plain(const struct gsr_function *f, const struct gsr_insn *insn)
{
	struct gsr_barrier b;

	return gsr_barrier_of(f, insn, &b) && !b.warp && !b.cluster && !b.counted && !b.arrive;
}

static struct gsr_fn *callee_of(const struct gsr_fn *fn, const struct gsr_insn *insn)
{
	unsigned int i, k;

	if (insn->op != GSR_OP_CALL)
		return NULL;
	for (i = 0; i < insn->n_opnds; i++)
		for (k = 0; k < fn->n_refs; k++)
			if (insn->opnds[i].kind == GSR_OPND_SYM && !strcmp(fn->refs[k]->f->name, insn->opnds[i].name))
				return fn->refs[k];
	return NULL;
}

/* Does a block hold, itself or in what it calls, a barrier without a count (1), a warp-synchronous instruction (2)? */
static unsigned int block_holds(const struct gsr_fn *fn, const struct gsr_block *b, const char **name, bool *guarded)
{
	unsigned int what = 0, now;
	const struct gsr_stmt *s;

	for (s = b->first; s; s = s->next) {
		if (s->kind == GSR_STMT_INSN) {
			const struct gsr_fn *to = callee_of(fn, s->insn);
			const char *w = gsr_warp_sync(fn->f, s->insn);

			now = is_plain(fn->f, s->insn) || (to && to->any_plain) ? 1 : 0;
			if (!w && to)
				w = to->any_warp_sync;
			if (w) {
				now |= 2;
				*name = *name ? *name : w;
			}
			if (now & 1 && s->insn->guard)
				*guarded = true;
			what |= now;
		}
		if (s == b->last)
			break;
	}
	return what;
}

/* Plain barriers where only part of the threads may come by: then threads may be finished, or elsewhere, at a barrier */
static void divergence(struct gsr_pass *p, struct gsr_fn *fn)
{
	unsigned int n = fn->cfg.n_blocks, i, k;
	unsigned char *in = gsr_alloc(p->arena, n + 1), *plain = gsr_alloc(p->arena, n + 1);
	unsigned int *stack = gsr_alloc_array(p->arena, n + 1, sizeof(*stack));
	const char *name = NULL;
	bool guarded = false;

	for (i = 0; i < n; i++)
		plain[i] = block_holds(fn, &fn->cfg.blocks[i], &name, &guarded) & 1;
	if (guarded)
		fn->plain_divergent = true;
	for (i = 0; i < n && !fn->plain_divergent; i++) {
		const struct gsr_block *b = &fn->cfg.blocks[i];

		if (!b->varying || !b->reachable)
			continue;
		memset(in, 0, n + 1);
		for (k = 0; k < b->n_succ; k++)
			gsr_cfg_region(&fn->cfg, b->succ[k], b->ipdom, in, stack);
		for (k = 0; k < n; k++)
			if (in[k] && plain[k])
				fn->plain_divergent = true;
	}
}

/*
 * The name of a warp-synchronous instruction that some lanes of a warp may come by while others pass it: in the original
 * the others end and are not waited for, in the twin they would be. *@rows: none, because warps stay whole in rows of
 * whole warps.
 */
static const char *warp_hazard(struct gsr_pass *p, struct gsr_fn *fn, bool *rows)
{
	unsigned int n = fn->cfg.n_blocks, i, k;
	unsigned char *in = gsr_alloc(p->arena, n + 1);
	unsigned int *stack = gsr_alloc_array(p->arena, n + 1, sizeof(*stack));
	const char **held;
	bool guarded;

	if (!fn->any_warp_sync)
		return NULL;
	held = gsr_alloc_array(p->arena, n + 1, sizeof(*held));
	for (i = 0; i < n; i++)
		block_holds(fn, &fn->cfg.blocks[i], &held[i], &guarded);
	for (i = 0; i < n; i++) {
		const struct gsr_block *b = &fn->cfg.blocks[i];
		const char *name = NULL;

		if (!b->varying || !b->reachable)
			continue;
		memset(in, 0, n + 1);
		for (k = 0; k < b->n_succ; k++)
			gsr_cfg_region(&fn->cfg, b->succ[k], b->ipdom, in, stack);
		for (k = 0; k < n && !name; k++)
			name = in[k] ? held[k] : NULL;
		if (name && b->splits_warp)
			return name;
		if (name)
			*rows = true;
	}
	return NULL;
}

void gsr_barriers_prepare(struct gsr_pass *p)
{
	bool changed = true;
	unsigned int i, k;

	for (i = 0; i < p->n_fns; i++) {
		struct gsr_fn *fn = &p->fns[i];
		const struct gsr_stmt *s;

		fn->any_warp_sync = fn->warp_sync;
		for (s = fn->f->first; s; s = s->next)
			if (s->kind == GSR_STMT_INSN && is_plain(fn->f, s->insn))
				fn->any_plain = true;
	}
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			struct gsr_fn *fn = &p->fns[i];

			for (k = 0; k < fn->n_refs; k++) {
				if (fn->refs[k]->any_plain && !fn->any_plain)
					changed = fn->any_plain = true;
				if (fn->refs[k]->any_warp_sync && !fn->any_warp_sync) {
					fn->any_warp_sync = fn->refs[k]->any_warp_sync;
					changed = true;
				}
			}
		}
	}
	for (i = 0; i < p->n_fns; i++)
		if (p->fns[i].f->body && !p->fns[i].cfg.error)
			divergence(p, &p->fns[i]);
}

const char *gsr_barriers(struct gsr_pass *p, const struct gsr_closure *c, bool *early, int *id, bool *rows)
{
	unsigned int counted = 0, i;
	bool divergent = false;
	const char *name;

	for (i = 0; i < c->n; i++)
		divergent |= c->fns[i]->plain_divergent;
	*early = divergent;
	for (i = 0; i < c->n; i++) {
		const struct gsr_function *f = c->fns[i]->f;
		const struct gsr_stmt *s;
		struct gsr_barrier b;

		for (s = f->first; s; s = s->next) {
			if (s->kind != GSR_STMT_INSN || !gsr_barrier_of(f, s->insn, &b) || b.warp || b.cluster)
				continue;
			if (b.counted && b.id < 0)
				return divergent ? "barrier id in a register with a thread count and early returns" :
						   "barrier id in a register with a thread count";
			if (b.counted)
				counted |= 1u << b.id;
			/* what follows is entered by a jump from where all threads of a warp meet */
			if (divergent && !b.counted && f != c->fns[0]->f)
				return "barrier in a device function and early returns";
		}
	}
	/* threads of a counted barrier must not meet ours; those without a count are met by all, or converted */
	for (*id = 0; *id < 16 && counted & 1u << *id; ++*id)
		;
	if (*id == 16)
		return "no free barrier";
	for (i = 0; i < c->n; i++) {
		name = warp_hazard(p, c->fns[i], rows);
		if (name)
			return gsr_sprintf(p->arena, "warp-synchronous %s where only part of a warp may come by", name);
	}
	return NULL;
}
