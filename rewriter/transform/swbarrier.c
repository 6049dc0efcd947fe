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
 * The shared variable PREFIX "phases": its first word counts arrivals in this phase and, in the
 * upper half, threads that have not exited. The others are GSR_PHASES_* (task.h). The PTX is in
 * swbarrier.ptx.
 *
 * In: kernels whose functions have such barriers. Out: gsr_plan.swbarrier; the code. Assumes
 * graphs, and that whatever inserts an exit marks it.
 */
#include <string.h>
#include "transform.h"
#include "rewriter/transform/swbarrier.ptx.h"

/* In front of @s; NULL: at the end of the function */
static unsigned int insert_leave(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s)
{
	unsigned int i = ++p->unique, n;

	n = gsr_insert(p, f, s, gsr_sprintf(p->arena, leave_barrier, i));
	n += gsr_insert(p, f, s, start_next_phase);
	n += gsr_insert(p, f, s, gsr_sprintf(p->arena, unless_last, i));
	n += gsr_insert(p, f, s, gsr_sprintf(p->arena, gsr_swbarrier_init, "%#b2", "%#b3"));
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
	n += gsr_insert(p, f, s, gsr_sprintf(p->arena, arrive, i));
	n += gsr_insert(p, f, s, start_next_phase);
	n += gsr_insert(p, f, s, gsr_sprintf(p->arena, wait_for_phase, i));
	if (red)
		n += gsr_insert(p, f, s, load_sum) + gsr_outcome(p, f, s, "%#b2");
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
		gsr_need_graph(p, c->fns[i]);
		if (c->fns[i]->graph.divergent || (i && c->fns[i]->any.exit))
			return true;
	}
	return false;
}

static bool any_function(const struct gsr_closure *c, bool converted)
{
	unsigned int i;

	for (i = 1; i < c->n; i++)
		if (converted ? c->fns[i]->plan.swbarrier : c->fns[i]->plan.keeps_barriers)
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
		changed = p->fns[i].plan.keeps_barriers;
	while (changed) {
		changed = false;
		for (i = 0; i < p->n_fns; i++) {
			struct gsr_fn *fn = &p->fns[i];
			struct gsr_closure c;

			if (!fn->f->entry || !fn->f->body || fn->plan.swbarrier)
				continue;
			c = gsr_closure(p, fn);
			if (!any_function(&c, true) &&
			    !(any_function(&c, false) && may_exit_early(p, &c)))
				continue;
			changed = fn->plan.swbarrier = true;
			for (k = 1; k < c.n; k++) {
				struct gsr_fn *to = c.fns[k];

				to->plan.swbarrier |= to->any.plain || to->any.exit;
				/* these are never inlined: their exits are rewritten instead */
				to->plan.may_exit |= to->any.exit;
			}
		}
	}
}
