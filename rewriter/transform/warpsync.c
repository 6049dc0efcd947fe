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
 * The shared variable PREFIX "gathers" (or "own_gathers"), by warp: 32 words, one per lane; at
 * offset 128 the exited lanes; at 132 the lanes that do not exist, which is what 128 starts with.
 *
 * In: functions with gsr_fn.warpsync, or a kernel whose struct gsr_end says so. Out: the code.
 * Assumes graphs.
 */
#include "transform.h"

#define STRIDE	136		/* bytes per warp */

/* The warp's number */
#define WARP(to, a, b) \
	"mov.u32 " to ", %tid.z;\n" \
	"mov.u32 " a ", %ntid.y;\n" \
	"mov.u32 " b ", %tid.y;\n" \
	"mad.lo.u32 " to ", " to ", " a ", " b ";\n" \
	"mov.u32 " a ", %ntid.x;\n" \
	"mov.u32 " b ", %tid.x;\n" \
	"mad.lo.u32 " to ", " to ", " a ", " b ";\n" \
	"shr.u32 " to ", " to ", 5;\n"

/* The address of the warp's words, from its number */
#define WARP_WORDS(to, a, name) \
	"mov.u32 " a ", " name ";\n" \
	"mad.lo.u32 " to ", " to ", " GSR_STR(STRIDE) ", " a ";\n"

/*
 * Executed by all threads before the first block-task. The lanes that the last warp of the block
 * does not have are -1 << (threads - 32 * warp), which is 0 for full warps: PTX shifts clamp.
 */
#define INIT(name) \
	WARP("%#r0", "%#r1", "%#r2") \
	"shl.b32 %#r1, %#r0, 5;\n" \
	"mov.u32 %#r2, %ntid.x;\n" \
	"mov.u32 %#r3, %ntid.y;\n" \
	"mul.lo.u32 %#r2, %#r2, %#r3;\n" \
	"mov.u32 %#r3, %ntid.z;\n" \
	"mul.lo.u32 %#r2, %#r2, %#r3;\n" \
	"sub.u32 %#r2, %#r2, %#r1;\n" \
	"mov.u32 %#r3, -1;\n" \
	"shl.b32 %#r2, %#r3, %#r2;\n" \
	WARP_WORDS("%#r0", "%#r1", name) \
	"mov.u32 %#r3, %laneid;\n" \
	"setp.eq.u32 %#p0, %#r3, 0;\n" \
	"@%#p0 st.shared.v2.u32 [%#r0+128], {%#r2, %#r2};\n" \
	"mad.lo.u32 %#r0, %#r3, 4, %#r0;\n" \
	"mov.u32 %#r1, 0;\n" \
	"st.shared.u32 [%#r0], %#r1;\n"

const char gsr_warpsync_init[] = INIT("#gathers"), gsr_warpsync_init_own[] = INIT("#own_gathers");

static const char find_words[] =
	WARP("%#ab", "%#a1", "%#a2") WARP_WORDS("%#ab", "%#a1", "#gathers");
static const char find_own_words[] =
	WARP("%#ab", "%#a1", "%#a2") WARP_WORDS("%#ab", "%#a1", "#own_gathers");

/*
 * %#a0: the lanes of the mask %#am that are converged here and have the same mask. A constant mask
 * is the same in all of them.
 */
static const char converged_constant[] =
	"activemask.b32 %#a0;\n"
	"and.b32 %#a0, %#a0, %#am;\n";
static const char converged[] =
	"activemask.b32 %#a0;\n"
	"match.any.sync.b32 %#a0, %#am, %#a0;\n";

static const char skip_if_converged[] =
	"setp.ne.u32 %%#ap, %%#a0, %%#am;\n"
	"@!%%#ap bra $#all_%u;\n";

/*
 * Polls for the missing lanes, %#a0. A lane that has arrived stays until all have, and an exited
 * lane stays exited: so each lane is removed from %#a0 for good.
 */
static const char arrive_and_poll[] =
	"xor.b32 %%#a0, %%#a0, %%#am;\n"
	"mov.u32 %%#a1, %%laneid;\n"
	"mad.lo.u32 %%#a1, %%#a1, 4, %%#ab;\n"
	"st.relaxed.cta.shared.u32 [%%#a1], %%#am;\n"
	"$#look_%u:\n"
	"ld.relaxed.cta.shared.u32 %%#a1, [%%#ab+128];\n"
	"not.b32 %%#a1, %%#a1;\n"
	"and.b32 %%#a0, %%#a0, %%#a1;\n"
	"setp.eq.u32 %%#aq, %%#a0, 0;\n"
	"@%%#aq bra $#come_%u;\n"
	"bfind.u32 %%#a2, %%#a0;\n"
	"mad.lo.u32 %%#a3, %%#a2, 4, %%#ab;\n"
	"ld.relaxed.cta.shared.u32 %%#a3, [%%#a3];\n"
	"setp.eq.u32 %%#aq, %%#a3, %%#am;\n"
	"selp.u32 %%#a3, 1, 0, %%#aq;\n"
	"shl.b32 %%#a3, %%#a3, %%#a2;\n"
	"xor.b32 %%#a0, %%#a0, %%#a3;\n"
	"@!%%#aq nanosleep.u32 20;\n"
	"bra $#look_%u;\n"
	"$#come_%u:\n"
	"and.b32 %%#am, %%#am, %%#a1;\n"
	"$#all_%u:\n";

/*
 * Clears the words; no lane reaches its next sync before all are cleared. A converged group takes
 * this branch uniformly.
 */
static const char clear_words[] =
	"@!%%#ap bra $#gone_%u;\n"
	"mov.u32 %%#a0, %%laneid;\n"
	"mad.lo.u32 %%#a0, %%#a0, 4, %%#ab;\n"
	"mov.u32 %%#a1, 0;\n"
	"st.relaxed.cta.shared.u32 [%%#a0], %%#a1;\n"
	"bar.warp.sync %%#am;\n"
	"$#gone_%u:\n";

/*
 * Sets the exit bit. The last lane of a warp to exit initialises the bits for the next block-task
 */
static const char set_exit_bit[] =
	"mov.u32 %#a0, %laneid;\n"
	"mov.u32 %#a1, 1;\n"
	"shl.b32 %#a0, %#a1, %#a0;\n"
	"red.relaxed.cta.shared.or.b32 [%#ab+128], %#a0;\n"
	"ld.relaxed.cta.shared.u32 %#a0, [%#ab+128];\n"
	"setp.eq.u32 %#aq, %#a0, -1;\n"
	"ld.shared.u32 %#a0, [%#ab+132];\n"
	"@%#aq st.relaxed.cta.shared.u32 [%#ab+128], %#a0;\n";

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

static void insert_find_words(struct context *g, struct gsr_stmt *at)
{
	if (!g->held)
		insert_code(g, at, g->own ? find_own_words : find_words);
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
	insert_code(g, s, gsr_sprintf(a, arrive_and_poll, i, i, i, i, i));
	*mask = (struct gsr_operand){ .kind = GSR_OPND_REG,
				      .name = gsr_intern_str(a, gsr_expand(g->p, "%#am")) };
	next = s->next;
	insert_code(g, next, gsr_sprintf(a, clear_words, i, i));
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
 * In a kernel, only where part of a block may bypass the instruction. In a function, everywhere:
 * its call sites are not examined.
 */
static unsigned int insert_all_syncs(struct context *g)
{
	const struct gsr_cfg *cfg = &g->fn->cfg;
	unsigned int i, n = 0;
	struct gsr_stmt *s;

	for (i = 0; i < cfg->n_blocks; i++) {
		const struct gsr_block *b = &cfg->blocks[i];
		const struct gsr_stmt *last = b->last;

		for (s = b->first; s && (b->split || b->split_warp || !g->fn->f->entry);
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
	struct context g = { .p = p, .fn = fn, .own = !fn->warpsync, .held = fn->n_refs };
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
		g.inserted += gsr_insert(p, f, f->first, g.own ? find_own_words : find_words);
	gsr_insert(p, f, f->first, ".reg .b32 %#ab, %#am, %#a<4>; .reg .pred %#ap, %#aq;");
	return g.inserted;
}

unsigned int gsr_warpsync_size(const struct gsr_function *entry)
{
	return (gsr_threads_of(entry) + 31) / 32 * STRIDE;
}

/*
 * Do functions of the kernel need software warp syncs? They do if part of a warp may reach such an
 * instruction in a function that cannot be inlined, or if threads may exit in functions, which must
 * set their exit bits then: how such an exit splits the warp afterwards is not known yet.
 */
static bool needed_in_functions(struct gsr_pass *p, const struct gsr_closure *c)
{
	bool ends = gsr_functions_exit(c), not_inlinable = false, part = false, masks = false;
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		if (c->fns[i]->refusal)
			return false;
		not_inlinable |= c->fns[i]->not_inlinable;
	}
	for (i = 0; i < c->n && (not_inlinable || ends); i++) {
		if (c->fns[i]->f->body && !c->fns[i]->graph)
			gsr_graph(p, c->fns[i]);
		part |= gsr_lanes_part(c->fns[i]);
		masks |= gsr_part_masks(c->fns[i]->f);
	}
	return not_inlinable ? part || ends : ends && masks;
}

static bool any_function(const struct gsr_closure *c)
{
	unsigned int i;

	for (i = 1; i < c->n && !c->fns[i]->warpsync; i++)
		;
	return i < c->n;
}

static void use_in_closure(struct gsr_pass *p, const struct gsr_closure *c)
{
	unsigned int size = gsr_warpsync_size(c->fns[0]->f), i;

	p->warpsync_size = size > p->warpsync_size ? size : p->warpsync_size;
	c->fns[0]->warpsync = true;
	for (i = 1; i < c->n; i++) {
		c->fns[i]->warpsync |= c->fns[i]->any_warp_sync || c->fns[i]->any_exit;
		/* these are never inlined: their exits are rewritten instead */
		c->fns[i]->may_exit |= c->fns[i]->any_exit;
	}
}

/* As with the software barrier, all kernels that call a converted function use it */
void gsr_warpsync_prepare(struct gsr_pass *p)
{
	bool changed = false;
	unsigned int i;

	for (i = 0; i < p->n_fns; i++) {
		struct gsr_fn *fn = &p->fns[i];

		fn->not_inlinable = fn->any_warp_sync && !fn->f->entry && gsr_not_inlinable(p, fn);
		changed |= fn->not_inlinable || (fn->may_exit && !fn->f->entry);
	}
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			struct gsr_fn *fn = &p->fns[i];
			struct gsr_closure c;

			if (!fn->f->entry || !fn->f->body || fn->warpsync)
				continue;
			c = gsr_closure(p, fn);
			if (!any_function(&c) && !needed_in_functions(p, &c))
				continue;
			changed = true;
			use_in_closure(p, &c);
		}
	}
}
