// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reconvergence behind loops with points. Where lanes leave a loop at different times, the
 * assembler has them meet again in the first block that all of them come to. A point gives the loop
 * another way out, to the end of the body. Then that block is there, and all code between loop and
 * end is executed lane by lane. So the lanes that come to a loop together note their mask, and wait
 * for each other in the first block behind the loop that all pass, the reconvergence point. Those
 * that left at a point pass it, too, and then go to a join, or to the end. A lane that comes there
 * in another way, or was resumed in the loop, waits for none. A kernel that follows a tree (`mum`)
 * takes 2 % longer than the original so, and 15 % without it.
 *
 * In: the points, and which branches split a warp. Out: reconvergence points, where lanes note
 * their masks, and which one lanes that left at a point pass. Checked: that lanes wait for nobody
 * between a loop and its reconvergence point.
 */
#include "resume.h"

#define RECONVS_MAX	8	/* each takes a register */

struct finder {
	const struct gsr_fn *fn;
	const struct gsr_cfg *cfg;
	struct gsr_resume *r;
	bool calls_wait;
	unsigned int *stack;
	unsigned int *seen;		/* by block: number of the walk that came here last */
	unsigned int walk;
};

static bool may_wait(const struct finder *g, const struct gsr_insn *insn)
{
	struct gsr_barrier b;

	return gsr_barrier_of(g->fn->f, insn, &b) || gsr_needs_lanes(insn) ||
	       gsr_may_wait(insn) != GSR_WAIT_NONE || insn->op == GSR_OP_ATOM ||
	       (insn->op == GSR_OP_CALL && g->calls_wait);
}

/* Lanes that run the block wait for no other: neither in it nor for what another does behind it */
static bool passable(const struct finder *g, const struct gsr_block *b)
{
	const struct gsr_stmt *s;

	for (s = b->first; s; s = s == b->last ? NULL : s->next)
		if (s->kind == GSR_STMT_INSN && may_wait(g, s->insn))
			return false;
	return true;
}

/* Marks what is reached from @from without passing @end; false: lanes may wait there */
static bool mark_region(struct finder *g, unsigned int from, unsigned int end)
{
	unsigned int n = 0, k;
	bool fine = true;

	if (g->seen[from] != g->walk) {
		g->seen[from] = g->walk;
		g->stack[n++] = from;
	}
	while (n) {
		unsigned int b = g->stack[--n];
		const struct gsr_block *block = &g->cfg->blocks[b];

		fine &= passable(g, block);
		for (k = 0; k < block->n_succ; k++) {
			unsigned int to = block->succ[k];

			if (to == end || to >= g->cfg->n_blocks || g->seen[to] == g->walk)
				continue;
			g->seen[to] = g->walk;
			g->stack[n++] = to;
		}
	}
	return fine;
}

/* The first block behind the loop that all its lanes pass, or GSR_NO_BLOCK */
static unsigned int behind(struct finder *g, const struct gsr_loop *l)
{
	unsigned int b = g->cfg->blocks[l->head].ipdom, i;

	g->walk++;
	for (i = 0; i < l->n; i++)
		g->seen[l->blocks[i]] = g->walk;
	while (b < g->cfg->n_blocks && g->seen[b] == g->walk)
		b = g->cfg->blocks[b].ipdom;
	return b < g->cfg->n_blocks ? b : GSR_NO_BLOCK;
}

/* Is there code behind the block that lanes could run together? */
static bool is_last(const struct gsr_block *b)
{
	const struct gsr_stmt *s;

	for (s = b->first; s; s = s == b->last ? NULL : s->next)
		if (s->kind == GSR_STMT_INSN && s->insn->op != GSR_OP_RET &&
		    s->insn->op != GSR_OP_EXIT)
			return false;
	return true;
}

/* Whether lanes fall into @head from the block in front of it, which is outside the region */
static bool falls_in(const struct finder *g, unsigned int head)
{
	const struct gsr_block *b = head ? &g->cfg->blocks[head - 1] : NULL;
	unsigned int k;

	if (!b || !b->reachable || g->seen[head - 1] == g->walk)
		return false;
	/* it ends in no jump, or in one that is not always taken */
	if (b->last->kind == GSR_STMT_INSN && !b->last->insn->guard &&
	    (b->last->insn->op == GSR_OP_BRA || b->last->insn->op == GSR_OP_BRX))
		return false;
	for (k = 0; k < b->n_succ; k++)
		if (b->succ[k] == head)
			return true;
	return false;
}

/*
 * Lanes would wait each time that they come from a loop in a loop: that made a kernel with a short
 * one (`tpacf`) 40 % slower than the original, in place of 4 %.
 */
static bool is_outermost(const struct gsr_loop *l, const struct gsr_loop *loops, unsigned int n)
{
	unsigned int i, k;

	for (i = 0; i < n; i++)
		for (k = 1; k < loops[i].n && &loops[i] != l; k++)
			if (loops[i].blocks[k] == l->head)
				return false;
	return true;
}

static bool is_in(const struct gsr_loop *l, unsigned int block)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (l->blocks[i] == block)
			return true;
	return false;
}

/* At which lanes leave by themselves */
static bool is_left_apart(const struct gsr_point *pt)
{
	return !pt->warp && !pt->is_join;
}

static bool has_point(const struct gsr_resume *r, const struct gsr_loop *l)
{
	unsigned int i;

	for (i = r->n_sites; i < r->n_points; i++)
		if (is_left_apart(&r->points[i]) && is_in(l, r->points[i].block))
			return true;
	return false;
}

/* Has lanes that left at points in the loop pass reconvergence point number @n */
static void lead_to(struct gsr_resume *r, const struct gsr_loop *l, unsigned int n)
{
	unsigned int i;

	for (i = r->n_sites; i < r->n_points; i++) {
		struct gsr_point *pt = &r->points[i];

		if (!is_left_apart(pt) || !is_in(l, pt->block))
			continue;
		pt->reconv = n + 1;
		if (pt->join)
			r->reconvs[n].join = pt->join;
	}
}

/* A reconvergence point in @block, for those of @loops that have theirs there. @at: by loop */
static void add_reconv(struct finder *g, unsigned int block, const struct gsr_loop *loops,
		       unsigned int n_loops, const unsigned int *at)
{
	struct gsr_resume *r = g->r;
	unsigned int i, had = r->n_entries;
	bool fine = true;

	/* lanes note their mask once before they come there: where they enter from outside */
	g->walk++;
	for (i = 0; i < n_loops; i++)
		if (at[i] == block)
			fine &= mark_region(g, loops[i].head, block);
	for (i = 0; i < n_loops && fine; i++)
		if (at[i] == block && falls_in(g, loops[i].head))
			r->entries[r->n_entries++] = (struct gsr_entry){
				.at = g->cfg->blocks[loops[i].head].first, .reconv = r->n_reconvs,
			};
	if (r->n_entries == had)
		return;
	r->reconvs[r->n_reconvs].at = gsr_start_of(&g->cfg->blocks[block]);
	for (i = 0; i < n_loops; i++)
		if (at[i] == block)
			lead_to(r, &loops[i], r->n_reconvs);
	r->n_reconvs++;
}

void gsr_find_reconvs(struct gsr_pass *p, const struct gsr_fn *fn, struct gsr_resume *r,
		      const struct gsr_loop *loops, unsigned int n_loops, bool calls_wait)
{
	const struct gsr_cfg *cfg = &fn->graph.cfg;
	const unsigned int n = cfg->n_blocks;
	struct finder g = { .fn = fn, .cfg = cfg, .r = r, .calls_wait = calls_wait };
	unsigned char *taken;
	unsigned int i, b, *at;

	if (r->n_points == r->n_sites)
		return;
	g.stack = gsr_alloc_array(p->scratch, n + 1, sizeof(*g.stack));
	g.seen = gsr_alloc_array(p->scratch, n + 1, sizeof(*g.seen));
	taken = gsr_alloc(p->scratch, n + 1);
	at = gsr_alloc_array(p->scratch, n_loops + 1, sizeof(*at));
	r->reconvs = gsr_alloc_array(p->arena, RECONVS_MAX, sizeof(*r->reconvs));
	r->entries = gsr_alloc_array(p->arena, n_loops + 1, sizeof(*r->entries));
	/* at a join lanes meet anyway; what is in front of a loop's check may be moved with it */
	for (i = r->n_sites; i < r->n_points; i++)
		taken[r->points[i].block] = 1;
	for (i = 0; i < n_loops; i++)
		taken[loops[i].head] = 1;
	for (i = 0; i < n_loops; i++) {
		at[i] = GSR_NO_BLOCK;
		if (!cfg->blocks[loops[i].head].split_warp || !has_point(r, &loops[i]) ||
		    !is_outermost(&loops[i], loops, n_loops))
			continue;
		b = behind(&g, &loops[i]);
		if (b != GSR_NO_BLOCK && !taken[b] && !is_last(&cfg->blocks[b]))
			at[i] = b;
	}
	for (i = 0; i < n_loops && r->n_reconvs < RECONVS_MAX; i++) {
		for (b = 0; b < i && at[b] != at[i]; b++)
			;
		if (at[i] != GSR_NO_BLOCK && b == i)
			add_reconv(&g, at[i], loops, n_loops, at);
	}
}
