// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A software barrier for device functions that are not inlined. Threads of a kernel whose threads
 * may exit early cannot jump from such a function to the meeting at the kernel's end (returns.c).
 * So all barriers without a thread count, of such a kernel and of its callees, become one barrier
 * in shared memory. It counts arrivals; the last thread to arrive starts the next phase, and the
 * others poll until it has. An exiting thread leaves the barrier before anything else, so no later
 * phase counts it, wherever that thread waits afterwards.
 *
 * No hardware barrier is used, so the lanes of a warp may arrive in any number of divergent
 * groups.
 *
 * The shared variable PREFIX "phases":
 *	word 0		arrivals in this phase; upper half: threads that have not exited
 *	word 1		number of the phase
 *	words 2, 3	accumulators for reductions in even and odd phases; the thread that ends
 *			the phase before clears the next one
 *
 * In: kernels whose functions have such barriers. Out: gsr_fn.swbarrier; the code. Assumes graphs,
 * and that whatever inserts an exit marks it.
 */
#include <string.h>
#include "transform.h"

/* Initialises the barrier for the next block-task; clobbers two registers */
#define INIT(a, b) \
	"mov.u32 " a ", %ntid.x;\n" \
	"mov.u32 " b ", %ntid.y;\n" \
	"mul.lo.u32 " a ", " a ", " b ";\n" \
	"mov.u32 " b ", %ntid.z;\n" \
	"mul.lo.u32 " a ", " a ", " b ";\n" \
	"shl.b32 " a ", " a ", 16;\n" \
	"mov.u32 " b ", 0;\n" \
	"st.shared.v4.u32 [#phases], {" a ", " b ", " b ", " b "};\n"

/* Executed by thread 0 before the first block-task; %#r0 is 0 before and after */
const char gsr_swbarrier_init[] = INIT("%#r1", "%#r0");

/*
 * Starts the next phase. Executed by the last of %#b3 threads to arrive: all others poll, so
 * nothing else writes these words. %#b0 is the number of the phase.
 */
#define START_NEXT_PHASE \
	"shl.b32 %%#b3, %%#b3, 16;\n" \
	"st.shared.u32 [#phases], %%#b3;\n" \
	"add.u32 %%#b0, %%#b0, 1;\n" \
	"and.b32 %%#b2, %%#b0, 1;\n" \
	"shl.b32 %%#b2, %%#b2, 2;\n" \
	"mov.u32 %%#b3, #phases;\n" \
	"add.u32 %%#b2, %%#b2, %%#b3;\n" \
	"mov.u32 %%#b3, 0;\n" \
	"st.shared.u32 [%%#b2+8], %%#b3;\n" \
	"st.release.cta.shared.u32 [#phases+4], %%#b0;\n"

/* Adds %#b2 to the accumulator of this phase, whose address is left in %#b1 */
static const char accumulate[] =
	"ld.volatile.shared.u32 %#b0, [#phases+4];\n"
	"and.b32 %#b1, %#b0, 1;\n"
	"shl.b32 %#b1, %#b1, 2;\n"
	"mov.u32 %#b3, #phases;\n"
	"add.u32 %#b1, %#b1, %#b3;\n"
	"red.relaxed.cta.shared.add.u32 [%#b1+8], %#b2;\n";

/* Arrives and waits for the phase to end. A format: all its arguments are a number for labels */
static const char arrive_and_wait[] =
	"ld.volatile.shared.u32 %%#b0, [#phases+4];\n"
	"mov.u32 %%#b2, 1;\n"
	"atom.acq_rel.cta.shared.add.u32 %%#b2, [#phases], %%#b2;\n"
	"add.u32 %%#b2, %%#b2, 1;\n"
	"shr.u32 %%#b3, %%#b2, 16;\n"
	"and.b32 %%#b2, %%#b2, 0xffff;\n"
	"setp.ne.u32 %%#bp, %%#b2, %%#b3;\n"
	"@%%#bp bra $#look_%u;\n"
	START_NEXT_PHASE
	"bra $#go_%u;\n"
	"$#look_%u:\n"
	"ld.acquire.cta.shared.u32 %%#b2, [#phases+4];\n"
	"setp.ne.u32 %%#bp, %%#b2, %%#b0;\n"
	"@%%#bp bra $#go_%u;\n"
	"nanosleep.u32 20;\n"
	"bra $#look_%u;\n"
	"$#go_%u:\n";

/*
 * Executed by an exiting thread. If all remaining threads have arrived, it starts the next phase
 * for them; if it is the last thread of the block, it initialises the barrier again (leave_last).
 */
static const char leave_barrier[] =
	"ld.volatile.shared.u32 %%#b0, [#phases+4];\n"
	"mov.u32 %%#b2, 0xffff0000;\n"
	"atom.acq_rel.cta.shared.add.u32 %%#b2, [#phases], %%#b2;\n"
	"shr.u32 %%#b3, %%#b2, 16;\n"
	"sub.u32 %%#b3, %%#b3, 1;\n"
	"and.b32 %%#b2, %%#b2, 0xffff;\n"
	"setp.ne.u32 %%#bp, %%#b2, %%#b3;\n"
	"@%%#bp bra $#go_%u;\n"
	"setp.eq.u32 %%#bp, %%#b3, 0;\n"
	"@%%#bp bra $#look_%u;\n"
	START_NEXT_PHASE
	"bra $#go_%u;\n"
	"$#look_%u:\n";
static const char leave_last[] = INIT("%#b2", "%#b3");

/* In front of @s; NULL: at the end of the function */
static unsigned int insert_leave(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s)
{
	unsigned int i = ++p->unique, n;

	n = gsr_insert(p, f, s, gsr_sprintf(p->arena, leave_barrier, i, i, i, i));
	n += gsr_insert(p, f, s, leave_last);
	gsr_insert(p, f, s, gsr_sprintf(p->arena, "$#go_%u:\n", i));
	return n;
}

static unsigned int convert_barrier(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s,
				    bool red)
{
	unsigned int n = gsr_unguard(p, f, s), i = ++p->unique;

	if (red) {
		gsr_contribute(p, f, s, "%#b2");
		n += 1 + gsr_insert(p, f, s, accumulate);
	}
	n += gsr_insert(p, f, s, gsr_sprintf(p->arena, arrive_and_wait, i, i, i, i, i, i));
	if (red)
		n += gsr_insert(p, f, s, "ld.shared.u32 %#b2, [%#b1+8];") +
		     gsr_outcome(p, f, s, "%#b2");
	gsr_remove(f, s);
	return n - 1;
}

unsigned int gsr_swbarrier_insert(struct gsr_pass *p, struct gsr_fn *fn, unsigned int *sites)
{
	struct gsr_function *f = fn->f;
	struct gsr_stmt *s, *next;
	unsigned int n = 0;
	struct gsr_barrier b;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (s->kind != GSR_STMT_INSN)
			continue;
		if (gsr_barrier_of(f, s->insn, &b) && !b.warp && !b.cluster && !b.counted) {
			n += convert_barrier(p, f, s, b.red);
			++*sites;
		} else if (s->insn->op == GSR_OP_EXIT || (f->entry && s->insn->op == GSR_OP_RET)) {
			n += gsr_unguard(p, f, s);
			n += insert_leave(p, f, s);
		}
	}
	if (f->entry)
		n += insert_leave(p, f, NULL);
	gsr_insert(p, f, f->first, ".reg .b32 %#b<4>; .reg .pred %#bp;");
	gsr_graph(p, fn);
	return n;
}

static bool may_exit_early(struct gsr_pass *p, const struct gsr_closure *c)
{
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		if (c->fns[i]->f->body && !c->fns[i]->graph)
			gsr_graph(p, c->fns[i]);
		if (c->fns[i]->plain_divergent || (i && c->fns[i]->any_exit))
			return true;
	}
	return false;
}

static bool any_function(const struct gsr_closure *c, bool converted)
{
	unsigned int i;

	for (i = 1; i < c->n; i++)
		if (converted ? c->fns[i]->swbarrier : c->fns[i]->keeps_barriers)
			return true;
	return false;
}

/*
 * Decides which kernels and functions use the software barrier. A function is converted once, for
 * all kernels: so if one kernel needs it, every kernel that calls one of its functions uses it too.
 */
void gsr_swbarrier_prepare(struct gsr_pass *p)
{
	bool changed = false;
	unsigned int i, k;

	for (i = 0; i < p->n_fns && !changed; i++)
		changed = p->fns[i].keeps_barriers;
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			struct gsr_fn *fn = &p->fns[i];
			struct gsr_closure c;

			if (!fn->f->entry || !fn->f->body || fn->swbarrier)
				continue;
			c = gsr_closure(p, fn);
			if (!any_function(&c, true) &&
			    !(any_function(&c, false) && may_exit_early(p, &c)))
				continue;
			changed = fn->swbarrier = true;
			for (k = 1; k < c.n; k++) {
				c.fns[k]->swbarrier |= c.fns[k]->any_plain || c.fns[k]->any_exit;
				/* these are never inlined: their exits are rewritten instead */
				c.fns[k]->may_exit |= c.fns[k]->any_exit;
			}
		}
	}
}
