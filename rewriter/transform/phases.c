// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Barriers that finished threads have no part in, in functions that stay functions: a kernel whose
 * threads may finish early cannot jump from there to the meeting at its end (returns.c). All
 * barriers without a thread count, of such a kernel and of what it calls, become phases that are
 * counted in shared memory: who comes to one adds itself, and who finds that all have come that
 * are in their bodies begins the next; the others look until that is so. A thread that ends takes
 * itself off where it ends, before anything else, so from there on nobody waits for it, wherever
 * it then waits for others.
 *
 * No barrier of the hardware is used, so it makes no difference in what pieces the lanes of a warp
 * come.
 *
 * Word 0: come, in the upper half threads in the body. Word 1: the phase. Words 2 and 3: of even
 * and odd phases, what reductions add up; each is made zero again by who ends the phase before it
 * is used.
 *
 * In: kernels whose functions have such barriers. Out: gsr_fn.phases; the code. Assumes graphs,
 * and that a thread's end is marked by what inserts it.
 */
#include <string.h>
#include "transform.h"

/* Ready for the next block-task, with two registers */
#define READY(a, b) \
	"mov.u32 " a ", %ntid.x;\n" \
	"mov.u32 " b ", %ntid.y;\n" \
	"mul.lo.u32 " a ", " a ", " b ";\n" \
	"mov.u32 " b ", %ntid.z;\n" \
	"mul.lo.u32 " a ", " a ", " b ";\n" \
	"shl.b32 " a ", " a ", 16;\n" \
	"mov.u32 " b ", 0;\n" \
	"st.shared.v4.u32 [#phases], {" a ", " b ", " b ", " b "};\n"

/* By thread 0, before the first block-task; leaves 0 in %#r0, as it was */
const char gsr_phases_ready[] = READY("%#r1", "%#r0");

/* Whoever finds that all have come, %#b3 threads: nobody else changes anything meanwhile. %#b0 is the phase */
#define NEXT \
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

/* %#b1: where this phase adds up; the value is %#b2 */
static const char add_up[] =
	"ld.volatile.shared.u32 %#b0, [#phases+4];\n"
	"and.b32 %#b1, %#b0, 1;\n"
	"shl.b32 %#b1, %#b1, 2;\n"
	"mov.u32 %#b3, #phases;\n"
	"add.u32 %#b1, %#b1, %#b3;\n"
	"red.relaxed.cta.shared.add.u32 [%#b1+8], %#b2;\n";

static const char come[] =
	"ld.volatile.shared.u32 %%#b0, [#phases+4];\n"
	"mov.u32 %%#b2, 1;\n"
	"atom.acq_rel.cta.shared.add.u32 %%#b2, [#phases], %%#b2;\n"
	"add.u32 %%#b2, %%#b2, 1;\n"
	"shr.u32 %%#b3, %%#b2, 16;\n"
	"and.b32 %%#b2, %%#b2, 0xffff;\n"
	"setp.ne.u32 %%#bp, %%#b2, %%#b3;\n"
	"@%%#bp bra $#look_%u;\n"
	NEXT
	"bra $#go_%u;\n"
	"$#look_%u:\n"
	"ld.acquire.cta.shared.u32 %%#b2, [#phases+4];\n"
	"setp.ne.u32 %%#bp, %%#b2, %%#b0;\n"
	"@%%#bp bra $#go_%u;\n"
	"nanosleep.u32 20;\n"
	"bra $#look_%u;\n"
	"$#go_%u:\n";

/* A thread ends. With the last one nobody looks, and the phases begin anew; else it may be the one that the others look for */
static const char end[] =
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
	NEXT
	"bra $#go_%u;\n"
	"$#look_%u:\n";
static const char last[] = READY("%#b2", "%#b3");

/* In front of @s, NULL: at the end */
static unsigned int thread_ends(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s)
{
	unsigned int i = ++p->unique, n;

	n = gsr_insert(p, f, s, gsr_sprintf(p->arena, end, i, i, i, i));
	n += gsr_insert(p, f, s, last);
	gsr_insert(p, f, s, gsr_sprintf(p->arena, "$#go_%u:\n", i));
	return n;
}

static unsigned int meet(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s, bool red)
{
	unsigned int n = gsr_unguard(p, f, s), i = ++p->unique;

	if (red) {
		gsr_contribute(p, f, s, "%#b2");
		n += 1 + gsr_insert(p, f, s, add_up);
	}
	n += gsr_insert(p, f, s, gsr_sprintf(p->arena, come, i, i, i, i, i, i));
	if (red)
		n += gsr_insert(p, f, s, "ld.shared.u32 %#b2, [%#b1+8];") + gsr_outcome(p, f, s, "%#b2");
	gsr_remove(f, s);
	return n - 1;
}

unsigned int gsr_phases(struct gsr_pass *p, struct gsr_fn *fn, unsigned int *sites)
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
			n += meet(p, f, s, b.red);
			++*sites;
		} else if (s->insn->op == GSR_OP_EXIT || (f->entry && s->insn->op == GSR_OP_RET)) {
			n += gsr_unguard(p, f, s);
			n += thread_ends(p, f, s);
		}
	}
	if (f->entry)
		n += thread_ends(p, f, NULL);
	gsr_insert(p, f, f->first, ".reg .b32 %#b<4>; .reg .pred %#bp;");
	gsr_graph(p, fn);
	return n;
}

static bool may_finish_early(struct gsr_pass *p, const struct gsr_closure *c)
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

static bool any_of(const struct gsr_closure *c, bool of_functions)
{
	unsigned int i;

	for (i = 1; i < c->n; i++)
		if (of_functions ? c->fns[i]->phases : c->fns[i]->holds)
			return true;
	return false;
}

/*
 * Which kernels need it, and with them the functions that they call: these are changed once for all, so other kernels that call
 * one of them take part.
 */
void gsr_phases_prepare(struct gsr_pass *p)
{
	bool changed = false;
	unsigned int i, k;

	for (i = 0; i < p->n_fns && !changed; i++)
		changed = p->fns[i].holds;
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			struct gsr_fn *fn = &p->fns[i];
			struct gsr_closure c;

			if (!fn->f->entry || !fn->f->body || fn->phases)
				continue;
			c = gsr_closure(p, fn);
			if (!any_of(&c, true) && !(any_of(&c, false) && may_finish_early(p, &c)))
				continue;
			changed = fn->phases = true;
			for (k = 1; k < c.n; k++) {
				c.fns[k]->phases |= c.fns[k]->any_plain || c.fns[k]->any_exit;
				/* none becomes part of one kernel and stays what it was in others */
				c.fns[k]->ends |= c.fns[k]->any_exit;
			}
		}
	}
}
