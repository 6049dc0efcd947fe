// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Barriers and early returns. In the twin no thread exits with its block-task. The hardware does
 * not count exited threads, so in the twin finished threads must take part in the barriers of the
 * others, or the barriers must not wait for them.
 *
 * In: functions with graphs. Out: gsr_insn.all_arrive, the summaries (gsr_fn.any), and how the
 * kernel ends (struct gsr_end). Assumes that calls through pointers are resolved (devirtualise.c).
 */
#include <string.h>
#include "analysis.h"

static bool makes_mask(const struct gsr_insn *insn)
{
	return insn->op == GSR_OP_ACTIVEMASK || insn->op == GSR_OP_MATCH;
}

/* The instruction that made the mask, if it is the mask of converged lanes */
static const struct gsr_insn *mask_of_active(const struct gsr_function *f,
					     const struct gsr_insn *insn)
{
	const struct gsr_operand *mask = gsr_mask_of(insn);
	const struct gsr_insn *i =
		mask && mask->kind == GSR_OPND_REG ? gsr_only_writer(f, mask->name) : NULL;

	return i && makes_mask(i) ? i : NULL;
}

/* ---- masks whose lanes all arrive ---- */

#define MAKERS_MAX	64u
#define LOOKS_MAX	256u	/* each is linear; above that masks are incomplete */

struct maker {
	const struct gsr_insn *insn;
	unsigned int block;
};

/* Can control flow from @block return to it without passing @maker? */
static bool repeats_without(struct gsr_pass *p, const struct gsr_cfg *cfg, unsigned int block,
			    unsigned int maker)
{
	unsigned int *todo = gsr_alloc_array(p->scratch, cfg->n_blocks, sizeof(*todo)), n = 0, i,
		     to;
	bool *seen = gsr_alloc_array(p->scratch, cfg->n_blocks, sizeof(*seen)), again = false;

	for (todo[n++] = block; n && !again;) {
		const struct gsr_block *b = &cfg->blocks[todo[--n]];

		for (i = 0; i < b->n_succ; i++) {
			to = b->succ[i];
			again |= to == block;
			if (to == cfg->n_blocks || to == maker || seen[to])
				continue;
			seen[to] = true;
			todo[n++] = to;
		}
	}
	gsr_arena_reset(p->scratch);
	return again;
}

static bool all_lanes_arrive(struct gsr_pass *p, const struct gsr_cfg *cfg,
			     const struct maker *maker, unsigned int block, unsigned int *looks)
{
	unsigned int b = maker->block;

	if (b == block)
		return true;
	if (++*looks > LOOKS_MAX)
		return false;
	while (b != GSR_NO_BLOCK && b != cfg->n_blocks && b != block)
		b = cfg->blocks[b].ipdom;
	return b == block && !repeats_without(p, cfg, block, maker->block);
}

/* @calls: threads may end in what the function calls */
static void find_complete_masks(struct gsr_pass *p, struct gsr_fn *fn, bool calls)
{
	struct maker makers[MAKERS_MAX];
	struct gsr_function *f = fn->f;
	unsigned int n = 0, looks = 0, i, k;
	struct gsr_cfg cfg = { 0 };
	struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN && gsr_warp_sync(f, s->insn) &&
		    mask_of_active(f, s->insn))
			break;
	if (!s || (calls && fn->has.refs.n))
		return;
	gsr_cfg_build(p->arena, p->scratch, f, &cfg);
	gsr_arena_reset(p->scratch);
	for (i = 0; i < cfg.n_blocks && !cfg.error; i++) {
		for (s = cfg.blocks[i].first; s; s = s->next) {
			const struct gsr_insn *made = s->kind == GSR_STMT_INSN &&
								      gsr_warp_sync(f, s->insn) &&
								      !s->insn->guard ?
							      mask_of_active(f, s->insn) :
							      NULL;

			for (k = 0; made && k < n && makers[k].insn != made; k++)
				;
			if (made && k < n)
				s->insn->all_arrive =
					all_lanes_arrive(p, &cfg, &makers[k], i, &looks);
			if (s->kind == GSR_STMT_INSN && makes_mask(s->insn) && n < MAKERS_MAX)
				makers[n++] = (struct maker){ s->insn, i };
			if (s == cfg.blocks[i].last)
				break;
		}
	}
	fn->has.warp_sync = NULL;
	for (s = f->first; s && !fn->has.warp_sync; s = s->next)
		fn->has.warp_sync = s->kind == GSR_STMT_INSN ? gsr_warp_sync(f, s->insn) : NULL;
}

void gsr_find_complete_masks(struct gsr_pass *p)
{
	bool ends = false;
	unsigned int k;

	for (k = 0; k < p->n_fns; k++)
		ends |= p->fns[k].has.exits && !p->fns[k].f->entry;
	for (k = 0; k < p->n_fns; k++)
		if (p->fns[k].has.warp_sync)
			find_complete_masks(p, &p->fns[k], ends);
}

static bool is_plain(const struct gsr_function *f, const struct gsr_insn *insn)
{
	struct gsr_barrier b;

	return gsr_barrier_of(f, insn, &b) && !b.warp && !b.cluster && !b.counted && !b.arrive;
}

/* A pointer may mean any function whose address is taken, of those that @fn names (escape.c) */
struct gsr_fn *gsr_callee(const struct gsr_fn *fn, const struct gsr_insn *insn, unsigned int *k)
{
	const struct gsr_operand *target = NULL;
	unsigned int i;

	for (i = 0; insn->op == GSR_OP_CALL && i < insn->n_opnds && !target; i++)
		if (insn->opnds[i].kind == GSR_OPND_SYM || insn->opnds[i].kind == GSR_OPND_REG)
			target = &insn->opnds[i];
	while (target && *k < fn->has.refs.n) {
		struct gsr_fn *to = fn->has.refs.at[(*k)++];

		if (target->kind == GSR_OPND_REG ? to->has.address_taken :
						   to->f->name == target->name)
			return to;
	}
	return NULL;
}

static bool has_plain(const struct gsr_fn *fn)
{
	return fn->any.plain;
}

/* Warp-synchronous instructions of the hardware, which in the twin wait for finished lanes */
static bool has_warp_sync(const struct gsr_fn *fn)
{
	return fn->any.warp_sync && !fn->plan.warpsync;
}

static bool has_counted(const struct gsr_fn *fn)
{
	return fn->any.counted && fn->plan.warpsync;
}

/* May the instruction call a function for which @has is true? */
static bool calls_any(const struct gsr_fn *fn, const struct gsr_insn *insn,
		      bool (*has)(const struct gsr_fn *fn))
{
	const struct gsr_fn *to;
	unsigned int k = 0;

	while ((to = gsr_callee(fn, insn, &k)))
		if (has(to))
			return true;
	return false;
}

/* All threads of the block that have not finished wait for each other there */
static bool meets_all(const struct gsr_fn *fn, const struct gsr_block *b)
{
	const struct gsr_stmt *s;

	for (s = b->first; s; s = s == b->last ? NULL : s->next)
		if (s->kind == GSR_STMT_INSN && !s->insn->guard && is_plain(fn->f, s->insn))
			return true;
	return false;
}

/* From which blocks, and the exit, the end is reached without such a barrier */
static bool *blocks_that_may_end(struct gsr_arena *scratch, const struct gsr_fn *fn)
{
	const struct gsr_cfg *cfg = &fn->graph.cfg;
	bool *ends = gsr_alloc_array(scratch, cfg->n_blocks + 1, sizeof(*ends));
	unsigned int *found = gsr_alloc_array(scratch, cfg->n_blocks + 1, sizeof(*found)), n = 0,
		     i, k;
	struct gsr_preds back = gsr_preds(scratch, cfg);

	ends[cfg->n_blocks] = true;
	found[n++] = cfg->n_blocks;
	for (i = 0; i < n; i++)
		for (k = back.start[found[i]]; k < back.start[found[i] + 1]; k++) {
			unsigned int from = back.at[k];

			if (!ends[from] && !meets_all(fn, &cfg->blocks[from])) {
				ends[from] = true;
				found[n++] = from;
			}
		}
	return ends;
}

static bool branch_may_end(const struct gsr_block *b, const bool *ends)
{
	unsigned int k;

	for (k = 0; k < b->n_succ; k++)
		if (ends[b->succ[k]])
			return true;
	return false;
}

void gsr_find_left(struct gsr_arena *scratch, struct gsr_fn *fn)
{
	struct gsr_cfg *cfg = &fn->graph.cfg;
	/* a function it calls may end threads, and the end of a function is not a thread's */
	const bool any = !fn->f->entry || gsr_calls_own(fn) || fn->has.indirect;
	const bool *ends = blocks_that_may_end(scratch, fn);
	struct gsr_region block, warp;
	unsigned int i;

	gsr_region_init(scratch, cfg, &block);
	gsr_region_init(scratch, cfg, &warp);
	for (i = 0; i < cfg->n_blocks; i++) {
		const struct gsr_block *b = &cfg->blocks[i];

		if (!any && !branch_may_end(b, ends))
			continue;
		if (b->varying)
			gsr_region_add(&block, i);
		if (b->splits_warp)
			gsr_region_add(&warp, i);
	}
	for (i = 0; i < block.n; i++)
		cfg->blocks[block.found[i]].left = true;
	for (i = 0; i < warp.n; i++)
		cfg->blocks[warp.found[i]].left_warp = true;
	for (i = 0; any && i < cfg->n_blocks; i++) {
		cfg->blocks[i].left = cfg->blocks[i].split;
		cfg->blocks[i].left_warp = cfg->blocks[i].split_warp;
	}
	gsr_arena_reset(scratch);
}

bool gsr_divergent(const struct gsr_fn *fn)
{
	const struct gsr_stmt *s;
	unsigned int i;

	for (i = 0; fn->any.plain && i < fn->graph.cfg.n_blocks; i++) {
		const struct gsr_block *b = &fn->graph.cfg.blocks[i];

		for (s = b->first; s; s = s->next) {
			if (s->kind == GSR_STMT_INSN && (b->split || s->insn->guard) &&
			    (is_plain(fn->f, s->insn) || calls_any(fn, s->insn, has_plain)))
				return true;
			if (s == b->last)
				break;
		}
	}
	return false;
}

bool gsr_lanes_part(const struct gsr_fn *fn)
{
	const struct gsr_stmt *s;
	unsigned int i;

	for (i = 0; fn->any.warp_sync && i < fn->graph.cfg.n_blocks; i++) {
		const struct gsr_block *b = &fn->graph.cfg.blocks[i];

		for (s = b->first; b->left_warp && s; s = s->next) {
			if (s->kind == GSR_STMT_INSN &&
			    ((!fn->f->entry && gsr_warp_sync(fn->f, s->insn)) ||
			     calls_any(fn, s->insn, has_warp_sync)))
				return true;
			if (s == b->last)
				break;
		}
	}
	return false;
}

bool gsr_part_masks(const struct gsr_function *f)
{
	const struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN && gsr_warp_sync(f, s->insn) &&
		    !gsr_counts_warps(s->insn) && !gsr_full_mask(f, s->insn))
			return true;
	return false;
}

/* What a function has where part of a thread block may bypass it and finish */
struct hazard {
	/* where part of a warp may bypass it */
	bool counted;			/* barriers with a thread count */
	bool part, whole;		/* instructions for some lanes of a warp, for all */
	bool calls;			/* calls of functions with such instructions */
	/* where warps stay converged if block.x is a multiple of 32 */
	bool rows, counted_rows;
};

static void note_hazard(const struct gsr_fn *fn, const struct gsr_block *b,
			const struct gsr_insn *insn, struct hazard *h)
{
	const char *name = gsr_warp_sync(fn->f, insn);
	bool counts = (name && gsr_counts_warps(insn)) || calls_any(fn, insn, has_counted),
	     called = calls_any(fn, insn, has_warp_sync);

	if (!b->left_warp) {
		h->counted_rows |= counts || called;
		h->rows |= name && !counts;
	} else if (counts) {
		h->counted = true;
	} else if (name) {
		*(gsr_full_mask(fn->f, insn) ? &h->whole : &h->part) = true;
	}
	h->calls |= called && b->left_warp;
}

static void find_hazards(const struct gsr_fn *fn, struct hazard *h)
{
	const struct gsr_stmt *s;
	unsigned int i;

	memset(h, 0, sizeof(*h));
	for (i = 0; fn->any.warp_sync && i < fn->graph.cfg.n_blocks; i++) {
		const struct gsr_block *b = &fn->graph.cfg.blocks[i];

		for (s = b->first; (b->left || b->left_warp) && s; s = s->next) {
			if (s->kind == GSR_STMT_INSN)
				note_hazard(fn, b, s->insn, h);
			if (s == b->last)
				break;
		}
	}
}

/*
 * A warp-synchronous instruction that part of a warp may bypass: in the original the other lanes
 * exit and are not waited for, in the twin they would be. Instructions that wait for all lanes
 * become sites (@end->warps); if the kernel, or a function that is not inlined, has others, each
 * gets a software warp sync (@end->warpsync). If warps stay converged in rows of whole warps, only
 * @end->rows is set.
 */
static const char *warp_hazard(const struct gsr_fn *fn, const struct gsr_fn *kernel,
			       struct gsr_end *end, enum gsr_inline *wants)
{
	struct hazard h;

	find_hazards(fn, &h);
	if (h.counted)
		return "warp-synchronous barrier with a thread count where only part of a "
		       "warp may come by";
	/* only the kernel's own can be converted */
	if (h.calls || (fn != kernel && (h.whole || h.part)))
		*wants = GSR_INLINE_WARPS;
	end->rows |= h.counted_rows;
	if (fn == kernel && (h.part || kernel->plan.warpsync)) {
		end->warpsync = h.part || h.whole || h.rows;
	} else {
		end->warps |= fn == kernel && h.whole;
		end->rows |= h.rows;
	}
	return NULL;
}

static bool add_summary(struct gsr_summary *to, const struct gsr_summary *from)
{
	const struct gsr_summary was = *to;

	to->plain |= from->plain;
	to->counted |= from->counted;
	to->exit |= from->exit;
	to->texture |= from->texture;
	to->warp_sync = to->warp_sync ? to->warp_sync : from->warp_sync;
	return to->plain != was.plain || to->counted != was.counted || to->exit != was.exit ||
	       to->texture != was.texture || to->warp_sync != was.warp_sync;
}

void gsr_barriers_prepare(struct gsr_pass *p)
{
	bool changed = true;
	unsigned int i, k;

	for (i = 0; i < p->n_fns; i++) {
		const struct gsr_facts *has = &p->fns[i].has;

		p->fns[i].any = (struct gsr_summary){
			.plain = has->plain,
			.counted = has->counted,
			.exit = has->exits,
			.texture = has->textures.n,
			.warp_sync = has->warp_sync,
		};
	}
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			const struct gsr_fns *refs = &p->fns[i].has.refs;

			for (k = 0; k < refs->n; k++)
				changed |= add_summary(&p->fns[i].any, &refs->at[k]->any);
		}
	}
}

const char *gsr_barriers(const struct gsr_closure *c, struct gsr_end *end, enum gsr_inline *wants)
{
	unsigned int counted = 0, i;
	const char *why = NULL;

	memset(end, 0, sizeof(*end));
	*wants = GSR_INLINE_NONE;
	for (i = 0; i < c->n; i++)
		end->early |= c->fns[i]->graph.divergent;
	for (i = 0; i < c->n; i++) {
		const struct gsr_function *f = c->fns[i]->f;
		const struct gsr_stmt *s;
		struct gsr_barrier b;

		for (s = f->first; s && c->fns[i]->has.barriers; s = s->next) {
			if (s->kind != GSR_STMT_INSN || !gsr_barrier_of(f, s->insn, &b) || b.warp ||
			    b.cluster)
				continue;
			if (b.counted)
				counted |= b.id < 0 ? gsr_barriers_used(c->fns[0]->f, c->fns[i],
									s->insn) :
						      1u << b.id;
			/*
			 * a site is entered by a jump from the meeting, which must be in the same
			 * function
			 */
			if (end->early && !b.counted && i)
				*wants = GSR_INLINE_BARRIERS;
		}
	}
	/*
	 * The twin's own barrier must not be one with a thread count. It may be that of plain
	 * barriers: all threads take part in these, or they are converted.
	 */
	for (end->id = 0; end->id < 16 && counted & 1u << end->id; ++end->id)
		;
	if (end->id == 16)
		return "no barrier is free of thread counts";
	for (i = 0; i < c->n && !why && *wants == GSR_INLINE_NONE; i++)
		why = warp_hazard(c->fns[i], c->fns[0], end, wants);
	return why;
}
