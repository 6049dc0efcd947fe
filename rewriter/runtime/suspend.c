// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The code that suspends a block-task in its middle and resumes it (abi.h: struct gsr_save).
 *
 * At a point, which is the head of a loop or a barrier, a thread charges the instructions executed
 * since the last point to its budget (%#n). When the budget is below zero it checks whether FLAG
 * says "leave", and, if LOOK says so, whether it is time to poll the window.
 *
 * A thread that finds "leave" saves its registers and jumps to the meeting at the end of the body.
 * All threads of the block come there, from points, from barriers and from returns, and vote. If
 * some thread has left, all leave, and those at barriers save their registers too. In a kernel all
 * of whose threads reach each point, they vote at the points instead (gsr_resume.in_place).
 *
 * Registers %#p, %#d and %#0 to %#13 hold no value of the body and are free at points.
 *
 * In: a kernel and its plan (resume.c). Out: the code at its points, and what the loop needs to
 * save, fetch and restore. Assumes that the kernel has not changed since the plan was made.
 */
#include <stdio.h>
#include <string.h>
#include "runtime.h"
#include "rewriter/runtime/suspend.ptx.h"

/* bytes of a local array that are copied without a loop, and of all arrays of a thread */
#define UNROLLED_MAX	512u
#define UNROLLED_ALL	2048u

/* Checks at the meeting: one in so many passes, as code between barriers is not weighed */
#define SITES_A_LOOK	16

/*
 * A check: falls through or jumps to @leave if the worker must leave, else jumps to @inside. @tag
 * makes labels unique.
 */
static unsigned int insert_check(struct gsr_pass *p, struct gsr_function *f,
				 const struct gsr_resume *r, const char *tag, const char *leave,
				 const char *inside)
{
	unsigned int n;

	n = gsr_insert_format(p, f, NULL, load_flags, r->look);
	if (!r->in_place)
		n += gsr_insert_format(p, f, NULL, leave_if_told, leave);
	n += gsr_insert_format(p, f, NULL, claim_poll, inside);
	n += gsr_insert_format(p, f, NULL, look_at_copy, tag);
	n += gsr_insert_format(p, f, NULL, poll_copy, tag);
	n += gsr_insert_format(p, f, NULL, "$#window%s:\n", tag);
	n += gsr_insert_text(p, f, NULL, test_window);
	n += gsr_insert_format(p, f, NULL, "@!%%#p1 bra $#%s;\n", inside);
	return n + gsr_insert_text(p, f, NULL, raise_flag);
}

/*
 * Lanes that were apart in a loop with a point have different budgets. Where the lanes of a warp
 * decide together, all check as soon as one has to.
 */
static bool budgets_differ(const struct gsr_resume *r)
{
	unsigned int i;

	for (i = r->n_sites; i < r->n_points; i++)
		if (!r->points[i].warp && !r->points[i].is_join)
			return true;
	return false;
}

/* Where a thread goes that has left, from a point or a reconvergence point */
static const char *way_out(struct gsr_pass *p, const struct gsr_resume *r, unsigned int reconv,
			   unsigned int join)
{
	if (r->in_place)
		return "suspend";
	if (reconv)
		return gsr_sprintf(p->arena, "reconv_%u", reconv - 1);
	return join ? gsr_sprintf(p->arena, "join_%u", join) : "meet";
}

unsigned int gsr_resume_start(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			      const struct gsr_resume *r)
{
	unsigned int n = gsr_insert_format(p, f, at, "mov.u32 %%#n, %u;\n", r->look), i;

	for (i = 0; i < r->n_reconvs; i++)
		n += gsr_insert_format(p, f, at, no_lanes, i);
	return n;
}

unsigned int gsr_resume_points(struct gsr_pass *p, struct gsr_function *f, struct gsr_resume *r)
{
	const bool differ = budgets_differ(r);
	unsigned int n = 0, i;

	for (i = 0; i < r->n_entries; i++)
		n += gsr_insert_format(p, f, r->entries[i].at, note_lanes, r->entries[i].reconv);
	for (i = 0; i < r->n_reconvs; i++)
		n += gsr_insert_format(p, f, r->reconvs[i].at, reconv, i,
				       way_out(p, r, 0, r->reconvs[i].join));
	for (i = r->n_sites; i < r->n_points; i++)
		if (!gsr_stripmine(p, f, &r->points[i], i, r->look, &n) && !r->in_place)
			n += gsr_unroll(p, f, &r->points[i], i);
	for (i = r->n_sites; i < r->n_points; i++) {
		if (!r->points[i].n_remat)
			continue;
		n += gsr_remat_insert(p, f, &r->points[i]);
		/* behind the body, where ids are still replaced */
		n += gsr_insert_format(p, f, NULL, "$#redo_%u:\n", i);
		n += gsr_remat_redo(p, f, &r->points[i]);
		n += gsr_insert_format(p, f, NULL, "bra $#go_%u;\n", i);
	}
	for (i = r->in_place ? 0 : r->n_sites; i < r->n_points; i++) {
		const struct gsr_point *pt = &r->points[i];

		struct gsr_stmt *at = i < r->n_sites || pt->is_join ? pt->at : pt->at->next;

		if (pt->is_join) {
			n += gsr_insert_format(p, f, at, join, i);
			continue;
		}
		n += gsr_insert_format(p, f, at, charge, pt->weight);
		if (pt->warp && differ)
			n += gsr_insert_text(p, f, at, charge_warp);
		n += gsr_insert_format(p, f, at, go_or_look, r->in_place ? ".uni" : "", i);
	}
	return n;
}

unsigned int gsr_resume_look(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at)
{
	return gsr_insert_text(p, f, at, look_for_suspended);
}

unsigned int gsr_resume_fetch(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			      const struct gsr_resume *r)
{
	unsigned int n = gsr_insert_text(p, f, at, take_suspended);

	n += gsr_insert_text(p, f, at, r->restart ? count_restart : mark_resumed);
	return n + gsr_insert_text(p, f, at, take_record);
}

unsigned int gsr_resume_arm(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			    const struct gsr_resume *r)
{
	unsigned int n = gsr_insert_text(p, f, at, arm_checks);

	if (r->restart)
		n += gsr_insert_text(p, f, at, bound_restarts);
	return n + gsr_insert_text(p, f, at, set_checks);
}

static unsigned int insert_locate(struct gsr_pass *p, struct gsr_function *f,
				  const struct gsr_resume *r)
{
	unsigned int n = gsr_insert_text(p, f, NULL, locate_record);

	if (r->behind)
		n += gsr_insert_format(p, f, NULL, "sub.u32 %%#4, %%#4, %u;\n", GSR_TASK_SIZE);
	return n + gsr_insert_format(p, f, NULL, locate_thread, r->fixed);
}

static unsigned int save_register(struct gsr_pass *p, struct gsr_function *f, const char *reg,
				  const struct gsr_var *v)
{
	unsigned int size = gsr_type_size(v->type);

	if (!strcmp(v->type, "pred"))
		return gsr_insert_format(p, f, NULL, save_pred, reg);
	return gsr_insert_format(p, f, NULL,
				 size == 2 ? save_16 :
				 size == 4 ? save_32 :
				 size == 8 ? save_64 :
					     save_128, reg);
}

static unsigned int restore_register(struct gsr_pass *p, struct gsr_function *f, const char *reg,
				     const struct gsr_var *v)
{
	unsigned int size = gsr_type_size(v->type);

	if (!strcmp(v->type, "pred"))
		return gsr_insert_format(p, f, NULL, restore_pred, reg);
	return gsr_insert_format(p, f, NULL,
				 size == 2 ? restore_16 :
				 size == 4 ? restore_32 :
				 size == 8 ? restore_64 :
					     restore_128, reg);
}

/*
 * Copies %#6 bytes of shared memory at %#5 to or from %#d2, by all threads, in units of @unit
 * bytes from offset %#2 on
 */
static unsigned int copy_units(struct gsr_pass *p, struct gsr_function *f, bool save,
			       unsigned int unit, unsigned int *label)
{
	unsigned int l = (*label)++, n;

	n = gsr_insert_format(p, f, NULL, copy_next_unit, l, unit);
	n += gsr_insert_format(p, f, NULL, save ? save_unit : restore_unit,
			       unit == 4 ? "u32" : "u8");
	return n + gsr_insert_format(p, f, NULL, repeat_copy, l, unit);
}

static unsigned int copy_shared(struct gsr_pass *p, struct gsr_function *f, bool save,
				const char *name, unsigned int offset, unsigned int align,
				const char *size, unsigned int *label)
{
	unsigned int n;

	n = gsr_insert_format(p, f, NULL, locate_shared, name, size, offset);
	if (align >= 4) {
		n += gsr_insert_text(p, f, NULL, "shl.b32 %#2, %#0, 2;\n");
		n += copy_units(p, f, save, 4, label);
		/* the remaining bytes, one per thread */
		n += gsr_insert_text(p, f, NULL, remaining_bytes);
	} else {
		n += gsr_insert_text(p, f, NULL, "mov.u32 %#2, %#0;\n");
	}
	return n + copy_units(p, f, save, 1, label);
}

/*
 * Copies the words of a long local array by a loop. The loop takes the array's address, so the
 * assembler must keep it in memory; it does that anyway for arrays of this size.
 */
static unsigned int copy_array(struct gsr_pass *p, struct gsr_function *f,
			       const struct gsr_saved *array, bool save, unsigned int *label)
{
	unsigned int l = (*label)++, n, i;

	n = gsr_insert_format(p, f, NULL, locate_array, array->name, array->size / 4, l);
	for (i = 0; i < 4 && array->align < 4; i++)
		n += gsr_insert_format(p, f, NULL, save ? save_element_byte : restore_element_byte,
				       i);
	if (array->align >= 4)
		n += gsr_insert_text(p, f, NULL, save ? save_element : restore_element);
	return n + gsr_insert_format(p, f, NULL, repeat_element, l);
}

/* Expects the registers of insert_locate(); preserves %#0, %#1, %#4 */
static unsigned int copy_memory(struct gsr_pass *p, struct gsr_function *f,
				const struct gsr_resume *r, bool save, unsigned int *label)
{
	unsigned int n = 0, unrolled = 0, i, w;

	for (i = 0; i < r->n_shared; i++)
		n += copy_shared(p, f, save, r->shared[i].name, r->shared[i].offset,
				 r->shared[i].align, gsr_sprintf(p->arena, "%u", r->shared[i].size),
				 label);
	if (r->dynamic)
		n += copy_shared(p, f, save, r->dynamic, r->fixed, 16, "%#4", label);
	for (i = 0; i < r->n_local; i++) {
		const struct gsr_saved *l = &r->local[i];

		/* local memory: the words of a thread are strided in the record */
		n += gsr_insert_format(p, f, NULL, locate_local, l->offset);
		w = l->size > UNROLLED_MAX || unrolled + l->size > UNROLLED_ALL ? l->size / 4 * 4 :
										  0;
		unrolled += l->size - w;
		if (w)
			n += copy_array(p, f, l, save, label);
		for (; w < l->size; w++) {
			const char *type = l->align >= 4 && w + 4 <= l->size ? "u32" : "u8";
			unsigned int at = type[1] == '3' ? 0 : w % 4;

			n += gsr_insert_format(p, f, NULL, save ? save_local : restore_local, type,
					       l->name, w, at);
			if (type[1] == '3')
				w += 3;
			if (w % 4 == 3)
				n += gsr_insert_text(p, f, NULL, "add.u64 %#d2, %#d2, %#d1;\n");
		}
	}
	return n;
}

/*
 * Sets %#d2 to the address of the launch's parameters. Offsets from it are the same in all launches
 * of the twin.
 */
static unsigned int param_base(struct gsr_pass *p, struct gsr_function *f)
{
	return gsr_insert_format(p, f, NULL, address_params, f->params[0].name);
}

static unsigned int save_point(struct gsr_pass *p, struct gsr_function *f,
			       const struct gsr_point *pt)
{
	unsigned int n = 0, k;

	for (k = 0; k < pt->n_regs; k++) {
		const char *reg = pt->regs[k];

		if (pt->based[k]) {
			n += param_base(p, f);
			n += gsr_insert_format(p, f, NULL, "sub.u64 %%#d2, %s, %%#d2;\n", reg);
			reg = "%#d2";
		}
		n += save_register(p, f, reg, pt->vars[k]);
	}
	return n;
}

static unsigned int restore_point(struct gsr_pass *p, struct gsr_function *f,
				  const struct gsr_point *pt)
{
	unsigned int n = 0, k;

	for (k = 0; k < pt->n_regs; k++) {
		n += restore_register(p, f, pt->regs[k], pt->vars[k]);
		if (pt->based[k]) {
			n += param_base(p, f);
			n += gsr_insert_format(p, f, NULL, "add.u64 %s, %s, %%#d2;\n", pt->regs[k],
					       pt->regs[k]);
		}
	}
	return n;
}

static unsigned int save_stub(struct gsr_pass *p, struct gsr_function *f,
			      const struct gsr_resume *r, unsigned int i)
{
	const struct gsr_point *pt = &r->points[i];
	unsigned int n;

	n = gsr_insert_format(p, f, NULL, "$#save_%u:\n", i);
	n += insert_locate(p, f, r);
	return n + save_point(p, f, pt);
}

/*
 * The check of a point, out of line. A thread that must leave saves its registers and goes to the
 * meeting; if all threads, or the lanes of a warp, must decide together, they vote first.
 */
static unsigned int point_stub(struct gsr_pass *p, struct gsr_function *f,
			       const struct gsr_resume *r, unsigned int i)
{
	struct gsr_arena *a = p->arena;
	const char *tag = gsr_sprintf(a, "_point_%u", i);
	unsigned int n;

	n = gsr_insert_format(p, f, NULL, r->points[i].is_join ? leave_join : look_here, i);
	if (r->points[i].is_join) {
		/* all must leave */
	} else if (r->points[i].warp || r->in_place) {
		n += gsr_insert_text(p, f, NULL, "mov.u32 %#c, 0;\n");
		n += insert_check(p, f, r, tag, gsr_sprintf(a, "told_%u", i),
				  gsr_sprintf(a, "looked_%u", i));
		n += gsr_insert_format(p, f, NULL, told_or_not, i);
		n += r->in_place ? gsr_insert_format(p, f, NULL, vote_in_place, r->id, i) :
				   gsr_insert_format(p, f, NULL, vote_in_warp, i);
	} else {
		n += insert_check(p, f, r, tag, gsr_sprintf(a, "save_%u", i),
				  gsr_sprintf(a, "go_%u", i));
	}
	n += r->restart ? gsr_insert_format(p, f, NULL, "$#save_%u:\n", i) :
			  save_stub(p, f, r, i);
	if (r->cp_async)
		n += gsr_insert_text(p, f, NULL, "cp.async.wait_all;\n");
	return n + gsr_insert_format(p, f, NULL, leave_point, i,
				     way_out(p, r, r->points[i].reconv, r->points[i].join));
}

/*
 * The meeting at the end of the body. %#s is the point at which a thread is, -1 after a return. The
 * first vote: has some thread left, or found at a barrier that all must leave? The second, if
 * threads may finish early: is some thread still in the body? Only then reductions are computed, as
 * a thread that leaves contributes its predicate again when it is back at its barrier. The second
 * vote needs the loop that gsr_vote() describes, so the body is also entered from here, at its
 * start or to resume in its middle.
 */
static unsigned int insert_meeting(struct gsr_pass *p, struct gsr_function *f,
				   const struct gsr_resume *r)
{
	unsigned int n;

	n = gsr_insert_text(p, f, NULL, r->red ? "mov.u32 %#v, 0;\n" : "");
	n += gsr_insert_format(p, f, NULL, meet, r->look / SITES_A_LOOK + 1);
	n += gsr_insert_format(p, f, NULL, vote_to_leave, r->n_sites, r->id);
	if (r->commits) {
		n += gsr_insert_format(p, f, NULL, suspend_if_none_finished, r->id, r->n_sites);
		if (r->n_points > r->n_sites)
			n += gsr_dispatch(p, f, "go", r->n_sites, r->n_points);
		n += gsr_insert_text(p, f, NULL, stays);
	} else {
		n += gsr_insert_text(p, f, NULL, suspend_if_told);
	}
	if (!r->n_sites)
		return n + gsr_insert_text(p, f, NULL, "bra.uni $#next;\n");
	if (r->early) {
		n += gsr_vote(p, f, r->red, r->id, "next");
		n += gsr_insert_text(p, f, NULL, start_from_meeting);
		if (!r->restart)
			n += gsr_insert_text(p, f, NULL, back_from_meeting);
	} else {
		n += gsr_insert_text(p, f, NULL, "@!%#p0 bra.uni $#next;\n");
		if (r->red)
			n += gsr_insert_format(p, f, NULL, gsr_sum_up, r->id);
	}
	return n + gsr_dispatch(p, f, "site", 0, r->n_sites);
}

/* Executed by all threads: saves memory, and the registers of threads at barriers */
static unsigned int insert_suspend(struct gsr_pass *p, struct gsr_function *f,
				   const struct gsr_resume *r, unsigned int *label)
{
	unsigned int n, i;

	n = gsr_insert_text(p, f, NULL, "$#suspend:\n");
	if (r->cp_async) {
		n += gsr_insert_text(p, f, NULL, "cp.async.wait_all;\n");
		n += gsr_insert_format(p, f, NULL, gsr_converge_and_sync, r->id);
	}
	if (!r->restart) {
		n += insert_locate(p, f, r);
		n += gsr_insert_text(p, f, NULL, "st.global.u32 [%#d0], %#s;\n");
		n += copy_memory(p, f, r, true, label);
	}
	if (r->n_sites && !r->in_place && !r->restart) {
		n += gsr_insert_format(p, f, NULL, unless_at_site, r->n_sites);
		n += gsr_dispatch(p, f, "save", 0, r->n_sites);
	}
	for (i = 0; i < r->n_sites && !r->in_place && !r->restart; i++) {
		n += save_stub(p, f, r, i);
		n += gsr_insert_text(p, f, NULL, "bra $#saved;\n");
	}
	n += gsr_insert_text(p, f, NULL, saved);
	n += gsr_insert_format(p, f, NULL, gsr_converge_and_sync, r->id);
	n += gsr_insert_text(p, f, NULL, gsr_not_first);
	return n + gsr_insert_text(p, f, NULL, hand_over_record);
}

static unsigned int insert_restore(struct gsr_pass *p, struct gsr_function *f,
				   const struct gsr_resume *r, unsigned int *label)
{
	unsigned int n, i;

	n = gsr_insert_text(p, f, NULL, "$#restore:\n");
	n += insert_locate(p, f, r);
	n += copy_memory(p, f, r, false, label);
	n += gsr_insert_format(p, f, NULL, restore_point_number, r->id);
	n += gsr_dispatch(p, f, "back", 0, r->n_points);
	for (i = 0; i < r->n_points; i++) {
		const struct gsr_point *pt = &r->points[i];

		n += gsr_insert_format(p, f, NULL, "$#back_%u:\n", i);
		n += restore_point(p, f, pt);
		n += gsr_insert_format(p, f, NULL, "bra $#%s_%u;\n",
				       i < r->n_sites && !r->in_place ? "again" :
				       pt->n_remat		      ? "redo" :
									"go",
				       i);
	}
	return n;
}

unsigned int gsr_resume_tail(struct gsr_pass *p, struct gsr_function *f, const struct gsr_resume *r)
{
	unsigned int n, i, label = 0;

	if (r->in_place) {
		n = gsr_insert_format(p, f, NULL, gsr_converge_and_sync, r->id);
		n += gsr_insert_text(p, f, NULL, "bra.uni $#next;\n");
	} else {
		n = insert_meeting(p, f, r);
		n += gsr_insert_text(p, f, NULL, "$#look_meeting:\n");
		n += insert_check(p, f, r, "_meeting", "told_meeting", "met");
		n += gsr_insert_text(p, f, NULL, "$#told_meeting:\nmov.u32 %#c, 1;\nbra $#met;\n");
	}
	for (i = r->in_place ? 0 : r->n_sites; i < r->n_points; i++)
		n += point_stub(p, f, r, i);
	n += insert_suspend(p, f, r, &label);
	return r->restart ? n : n + insert_restore(p, f, r, &label);
}
