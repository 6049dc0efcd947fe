// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Software warp sync: warp-synchronous instructions with masks of some lanes, where lanes of the
 * mask may have exited. The hardware does not wait for exited lanes; in the twin they are still
 * alive at the end of the body. So in front of such an instruction the lanes of its mask
 * synchronise in shared memory, and those that have not exited execute the instruction with the
 * mask of each other. If activemask tells that all lanes of the mask are converged here, this is
 * skipped. Otherwise each lane writes its mask to its own word and polls until the word of every
 * other lane of the mask holds the same mask, or the lane's exit bit is set. A thread sets its exit
 * bit before anything else, so no lane waits for it wherever it then waits.
 *
 * One word per lane and not one bit: a lane that waits at another instruction, with another mask,
 * has not arrived here, and may exit there.
 *
 * The shared variable PREFIX "gathers" (or "own_gathers"), by warp: 32 words, one per lane, then
 * GSR_WARP_* (task.h). The PTX is in warpsync.ptx.
 *
 * In: functions with gsr_plan.warpsync, or a kernel whose struct gsr_end says so. Out: the plan;
 * the code. Assumes graphs.
 */
#include "transform.h"
#include "rewriter/transform/warpsync.ptx.h"

struct context {
	struct gsr_pass *p;
	struct gsr_fn *fn;
	bool own;			/* the words are the kernel's own variable */
	bool held;			/* %#ab holds their address throughout */
	unsigned int inserted;
};

static void insert_code(struct context *g, struct gsr_stmt *at, const char *text)
{
	g->inserted += gsr_insert(g->p, g->fn->f, at, text);
}

static const char *words_text(struct gsr_pass *p, bool own)
{
	return gsr_sprintf(p->arena, find_words, own ? "#own_gathers" : "#gathers");
}

static void insert_find_words(struct context *g, struct gsr_stmt *at)
{
	if (!g->held)
		insert_code(g, at, words_text(g->p, g->own));
}

/* The warp-synchronous instructions from @first to @behind need no sync (any more) */
static void mark_complete(struct gsr_stmt *first, const struct gsr_stmt *behind)
{
	for (; first != behind; first = first->next)
		if (first->kind == GSR_STMT_INSN)
			first->insn->all_arrive = true;
}

static void insert_sync(struct context *g, struct gsr_stmt *s)
{
	unsigned int i = ++g->p->unique;
	struct gsr_arena *a = g->p->arena;
	struct gsr_function *f = g->fn->f;
	struct gsr_operand *mask = gsr_mask_of(s->insn);
	bool constant = gsr_constant_mask(f, s->insn);
	struct gsr_stmt *first, *next;

	g->inserted += gsr_unguard(g->p, f, s);
	insert_code(g, s, "mov.b32 %#am, 0;");
	first = s->prev;
	first->insn->opnds[1] = *mask;
	insert_code(g, s, constant ? converged_constant : converged);
	insert_code(g, s, gsr_sprintf(a, skip_if_converged, i));
	insert_find_words(g, s);
	insert_code(g, s, gsr_sprintf(a, arrive_and_poll, i));
	*mask = (struct gsr_operand){ .kind = GSR_OPND_REG,
				      .name = gsr_intern_str(a, gsr_expand(g->p, "%#am")) };
	next = s->next;
	insert_code(g, next, gsr_sprintf(a, clear_words, i));
	mark_complete(first, next);
}

static bool is_exit(const struct gsr_function *f, const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_INSN &&
	       (s->insn->op == GSR_OP_EXIT || (f->entry && s->insn->op == GSR_OP_RET));
}

static bool needs_sync(const struct gsr_function *f, const struct gsr_insn *insn)
{
	return gsr_warp_sync(f, insn) && gsr_mask_of(insn);
}

/*
 * In a kernel, only where others may have finished meanwhile. In a function, everywhere:
 * its call sites are not examined.
 */
static unsigned int insert_all_syncs(struct context *g)
{
	const struct gsr_cfg *cfg = &g->fn->graph.cfg;
	unsigned int i, n = 0;
	struct gsr_stmt *s;

	for (i = 0; i < cfg->n_blocks; i++) {
		const struct gsr_block *b = &cfg->blocks[i];
		const struct gsr_stmt *last = b->last;

		for (s = b->first; s && (b->left || b->left_warp || !g->fn->f->entry);
		     s = s->next) {
			if (s->kind == GSR_STMT_INSN && needs_sync(g->fn->f, s->insn)) {
				insert_sync(g, s);
				n++;
			}
			if (s == last)
				break;
		}
	}
	return n;
}

static void insert_all_exit_bits(struct context *g)
{
	struct gsr_function *f = g->fn->f;
	struct gsr_stmt *s, *next;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (!is_exit(f, s))
			continue;
		g->inserted += gsr_unguard(g->p, f, s);
		insert_find_words(g, s);
		insert_code(g, s, set_exit_bit);
	}
	if (!f->entry || (f->last && is_exit(f, f->last)))
		return;
	insert_find_words(g, NULL);
	insert_code(g, NULL, set_exit_bit);
}

unsigned int gsr_warpsync_insert(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_warpsync what,
				 unsigned int *sites)
{
	struct context g = { .p = p, .fn = fn, .own = !fn->plan.warpsync, .held = fn->has.refs.n };
	struct gsr_function *f = fn->f;

	if (what & GSR_WARPSYNC_LANES)
		*sites += insert_all_syncs(&g);
	if (!(what & GSR_WARPSYNC_EXITS))
		return g.inserted;
	insert_all_exit_bits(&g);
	/* true of a function that only calls others */
	if (!g.inserted)
		return 0;
	if (g.held)
		g.inserted += gsr_insert(p, f, f->first, words_text(p, g.own));
	gsr_insert(p, f, f->first, ".reg .b32 %#ab, %#am, %#a<4>; .reg .pred %#ap, %#aq;");
	return g.inserted;
}

unsigned int gsr_warpsync_size(const struct gsr_function *entry)
{
	return (gsr_threads_of(entry) + 31) / 32 * GSR_WARP_SIZE;
}

/*
 * Do functions of the kernel need software warp syncs? They do if part of a warp may reach such an
 * instruction in a function that cannot be inlined, or if threads may exit in functions, which must
 * set their exit bits then: how such an exit splits the warp afterwards is not known yet.
 */
static bool needed_in_functions(struct gsr_pass *p, const struct gsr_closure *c, const bool *stays)
{
	bool ends = gsr_functions_exit(c), not_inlinable = false, part = false, masks = false;
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		if (c->fns[i]->refusal)
			return false;
		not_inlinable |= stays[c->fns[i] - p->fns];
	}
	for (i = 0; i < c->n && (not_inlinable || ends); i++) {
		gsr_need_graph(p, c->fns[i]);
		part |= gsr_lanes_part(c->fns[i]);
		masks |= gsr_part_masks(c->fns[i]->f);
	}
	return not_inlinable ? part || ends : ends && masks;
}

static bool any_function(const struct gsr_closure *c)
{
	unsigned int i;

	for (i = 1; i < c->n && !c->fns[i]->plan.warpsync; i++)
		;
	return i < c->n;
}

static void use_in_closure(struct gsr_pass *p, const struct gsr_closure *c)
{
	unsigned int size = gsr_warpsync_size(c->fns[0]->f), i;

	p->warpsync_size = size > p->warpsync_size ? size : p->warpsync_size;
	c->fns[0]->plan.warpsync = true;
	for (i = 1; i < c->n; i++) {
		c->fns[i]->plan.warpsync |= c->fns[i]->any.warp_sync || c->fns[i]->any.exit;
		/* these are never inlined: their exits are rewritten instead */
		c->fns[i]->plan.may_exit |= c->fns[i]->any.exit;
	}
}

/* As with the software barrier, all kernels that call a converted function use it */
void gsr_warpsync_prepare(struct gsr_pass *p)
{
	/* by number: functions with warp-synchronous instructions that cannot be inlined */
	bool *stays = gsr_alloc_array(p->arena, p->n_fns, sizeof(*stays)), changed = false;
	unsigned int i;

	for (i = 0; i < p->n_fns; i++) {
		struct gsr_fn *fn = &p->fns[i];

		stays[i] = fn->any.warp_sync && !fn->f->entry && gsr_not_inlinable(p, fn);
		changed |= stays[i] || (fn->plan.may_exit && !fn->f->entry);
	}
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			struct gsr_fn *fn = &p->fns[i];
			struct gsr_closure c;

			if (!fn->f->entry || !fn->f->body || fn->plan.warpsync)
				continue;
			c = gsr_closure(p, fn);
			if (!any_function(&c) && !needed_in_functions(p, &c, stays))
				continue;
			changed = true;
			use_in_closure(p, &c);
		}
	}
}
