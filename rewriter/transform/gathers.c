// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Instructions for some lanes of a warp where lanes may have finished: in the original these are
 * not waited for, in the twin they wait at the end of the body. So before such an instruction the
 * lanes of its mask gather, and it is executed with those of them that have not finished. If all
 * of them are there already, which is what activemask tells, nothing more is done. Else each
 * writes its mask to a word of its own in shared memory, and looks until all the others' words
 * hold the same mask or their bits are set among the finished. A thread sets its bit where it
 * ends, before anything else, so from there on nobody waits for it.
 *
 * A word a lane and not a bit: who waits elsewhere, with another mask, has not come, and may end
 * there.
 *
 * Of each warp: 32 words, of the lanes; 128: the lanes that have finished; 132: those that do not
 * exist, with which that begins.
 *
 * In: functions with gsr_fn.gathers, or a kernel whose struct gsr_end says so. Out: the code.
 * Assumes graphs.
 */
#include "transform.h"

#define STRIDE	136

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

/* Where the warp's words lie, from its number */
#define PLACE(to, a, name) \
	"mov.u32 " a ", " name ";\n" \
	"mad.lo.u32 " to ", " to ", " GSR_STR(STRIDE) ", " a ";\n"

/*
 * By all threads, before the first block-task. The lanes that a last warp does not have: shifted by
 * 32 and more nothing is left
 */
#define READY(name) \
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
	PLACE("%#r0", "%#r1", name) \
	"mov.u32 %#r3, %laneid;\n" \
	"setp.eq.u32 %#p0, %#r3, 0;\n" \
	"@%#p0 st.shared.v2.u32 [%#r0+128], {%#r2, %#r2};\n" \
	"mad.lo.u32 %#r0, %#r3, 4, %#r0;\n" \
	"mov.u32 %#r1, 0;\n" \
	"st.shared.u32 [%#r0], %#r1;\n"

const char gsr_gathers_ready[] = READY("#gathers"), gsr_gathers_ready_own[] = READY("#own_gathers");

static const char place[] = WARP("%#ab", "%#a1", "%#a2") PLACE("%#ab", "%#a1", "#gathers");
static const char place_own[] = WARP("%#ab", "%#a1", "%#a2") PLACE("%#ab", "%#a1", "#own_gathers");

/*
 * %#a0: those of the mask %#am that are here, and have the same mask. The first where all have, as
 * it is a constant.
 */
static const char here_constant[] =
	"activemask.b32 %#a0;\n"
	"and.b32 %#a0, %#a0, %#am;\n";
static const char here[] =
	"activemask.b32 %#a0;\n"
	"match.any.sync.b32 %#a0, %#am, %#a0;\n";

static const char all_here[] =
	"setp.ne.u32 %%#ap, %%#a0, %%#am;\n"
	"@!%%#ap bra $#all_%u;\n";

/*
 * %#a0: who is missing. A lane that has come stays until all have, and one that has finished stays
 * so: each is looked for once
 */
static const char look[] =
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
 * Nobody comes to the next place before all words are cleared. All that were here together came
 * this way, or none
 */
static const char leave[] =
	"@!%%#ap bra $#gone_%u;\n"
	"mov.u32 %%#a0, %%laneid;\n"
	"mad.lo.u32 %%#a0, %%#a0, 4, %%#ab;\n"
	"mov.u32 %%#a1, 0;\n"
	"st.relaxed.cta.shared.u32 [%%#a0], %%#a1;\n"
	"bar.warp.sync %%#am;\n"
	"$#gone_%u:\n";

/* With the last one of a warp nobody looks, and its words begin anew */
static const char end[] =
	"mov.u32 %#a0, %laneid;\n"
	"mov.u32 %#a1, 1;\n"
	"shl.b32 %#a0, %#a1, %#a0;\n"
	"red.relaxed.cta.shared.or.b32 [%#ab+128], %#a0;\n"
	"ld.relaxed.cta.shared.u32 %#a0, [%#ab+128];\n"
	"setp.eq.u32 %#aq, %#a0, -1;\n"
	"ld.shared.u32 %#a0, [%#ab+132];\n"
	"@%#aq st.relaxed.cta.shared.u32 [%#ab+128], %#a0;\n";

struct gathers {
	struct gsr_pass *p;
	struct gsr_fn *fn;
	bool own;			/* the words are the kernel's own */
	bool held;			/* their place is known from the start */
	unsigned int inserted;
};

static void insert(struct gathers *g, struct gsr_stmt *at, const char *text)
{
	g->inserted += gsr_insert(g->p, g->fn->f, at, text);
}

static void find_place(struct gathers *g, struct gsr_stmt *at)
{
	if (!g->held)
		insert(g, at, g->own ? place_own : place);
}

/* What is inserted needs nothing itself */
static void settle(struct gsr_stmt *first, const struct gsr_stmt *behind)
{
	for (; first != behind; first = first->next)
		if (first->kind == GSR_STMT_INSN)
			first->insn->settled = true;
}

static void gather(struct gathers *g, struct gsr_stmt *s)
{
	unsigned int i = ++g->p->unique;
	struct gsr_arena *a = g->p->arena;
	struct gsr_function *f = g->fn->f;
	struct gsr_operand *mask = gsr_mask_of(s->insn);
	bool constant = gsr_constant_mask(f, s->insn);
	struct gsr_stmt *first, *next;

	g->inserted += gsr_unguard(g->p, f, s);
	insert(g, s, "mov.b32 %#am, 0;");
	first = s->prev;
	first->insn->opnds[1] = *mask;
	insert(g, s, constant ? here_constant : here);
	insert(g, s, gsr_sprintf(a, all_here, i));
	find_place(g, s);
	insert(g, s, gsr_sprintf(a, look, i, i, i, i, i));
	*mask = (struct gsr_operand){ .kind = GSR_OPND_REG, .name = gsr_intern_str(a, gsr_expand(g->p, "%#am")) };
	next = s->next;
	insert(g, next, gsr_sprintf(a, leave, i, i));
	settle(first, next);
}

static bool ends_thread(const struct gsr_function *f, const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_INSN && (s->insn->op == GSR_OP_EXIT || (f->entry && s->insn->op == GSR_OP_RET));
}

static bool gathers_at(const struct gsr_function *f, const struct gsr_insn *insn)
{
	return gsr_warp_sync(f, insn) && gsr_mask_of(insn);
}

/*
 * Of a kernel those that part of a block may pass by, of a function all: where it is called is not
 * looked for
 */
static unsigned int gather_all(struct gathers *g)
{
	const struct gsr_cfg *cfg = &g->fn->cfg;
	unsigned int i, n = 0;
	struct gsr_stmt *s;

	for (i = 0; i < cfg->n_blocks; i++) {
		const struct gsr_block *b = &cfg->blocks[i];
		const struct gsr_stmt *last = b->last;

		for (s = b->first; s && (b->split || b->split_warp || !g->fn->f->entry); s = s->next) {
			if (s->kind == GSR_STMT_INSN && gathers_at(g->fn->f, s->insn)) {
				gather(g, s);
				n++;
			}
			if (s == last)
				break;
		}
	}
	return n;
}

static void all_ends(struct gathers *g)
{
	struct gsr_function *f = g->fn->f;
	struct gsr_stmt *s, *next;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (!ends_thread(f, s))
			continue;
		g->inserted += gsr_unguard(g->p, f, s);
		find_place(g, s);
		insert(g, s, end);
	}
	if (!f->entry || (f->last && ends_thread(f, f->last)))
		return;
	find_place(g, NULL);
	insert(g, NULL, end);
}

unsigned int gsr_gathers(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_gather what, unsigned int *sites)
{
	struct gathers g = { .p = p, .fn = fn, .own = !fn->gathers, .held = fn->n_refs };
	struct gsr_function *f = fn->f;

	if (what & GSR_GATHER_LANES)
		*sites += gather_all(&g);
	if (!(what & GSR_GATHER_ENDS))
		return g.inserted;
	all_ends(&g);
	/* a function that only calls others */
	if (!g.inserted)
		return 0;
	if (g.held)
		g.inserted += gsr_insert(p, f, f->first, g.own ? place_own : place);
	gsr_insert(p, f, f->first, ".reg .b32 %#ab, %#am, %#a<4>; .reg .pred %#ap, %#aq;");
	return g.inserted;
}

unsigned int gsr_gathers_size(const struct gsr_function *entry)
{
	return (gsr_threads_of(entry) + 31) / 32 * STRIDE;
}

/*
 * Must lanes gather in the functions of the kernel? If lanes may come in part to what cannot become
 * part of the kernel; or if they end in functions, which must say so then. That what follows there
 * parts them is not known yet.
 */
static bool in_functions(struct gsr_pass *p, const struct gsr_closure *c)
{
	bool ends = gsr_ends(c), stuck = false, part = false, masks = false;
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		if (c->fns[i]->refusal)
			return false;
		stuck |= c->fns[i]->stuck;
	}
	for (i = 0; i < c->n && (stuck || ends); i++) {
		if (c->fns[i]->f->body && !c->fns[i]->graph)
			gsr_graph(p, c->fns[i]);
		part |= gsr_lanes_part(c->fns[i]);
		masks |= gsr_part_masks(c->fns[i]->f);
	}
	return stuck ? part || ends : ends && masks;
}

static bool any_of(const struct gsr_closure *c)
{
	unsigned int i;

	for (i = 1; i < c->n && !c->fns[i]->gathers; i++)
		;
	return i < c->n;
}

static void take_part(struct gsr_pass *p, const struct gsr_closure *c)
{
	unsigned int size = gsr_gathers_size(c->fns[0]->f), i;

	p->gathers_size = size > p->gathers_size ? size : p->gathers_size;
	c->fns[0]->gathers = true;
	for (i = 1; i < c->n; i++) {
		c->fns[i]->gathers |= c->fns[i]->any_warp_sync || c->fns[i]->any_exit;
		/* none becomes part of one kernel and stays what it was in others */
		c->fns[i]->ends |= c->fns[i]->any_exit;
	}
}

/* As with phases, all kernels that call such a function */
void gsr_gathers_prepare(struct gsr_pass *p)
{
	bool changed = false;
	unsigned int i;

	for (i = 0; i < p->n_fns; i++) {
		struct gsr_fn *fn = &p->fns[i];

		fn->stuck = fn->any_warp_sync && !fn->f->entry && gsr_is_stuck(p, fn);
		changed |= fn->stuck || (fn->ends && !fn->f->entry);
	}
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			struct gsr_fn *fn = &p->fns[i];
			struct gsr_closure c;

			if (!fn->f->entry || !fn->f->body || fn->gathers)
				continue;
			c = gsr_closure(p, fn);
			if (!any_of(&c) && !in_functions(p, &c))
				continue;
			changed = true;
			take_part(p, &c);
		}
	}
}
