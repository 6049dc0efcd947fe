// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The code that suspends a block-task in its middle and resumes it (abi.h: struct gsr_save).
 *
 * At a point, which is the head of a loop or a barrier, a thread charges the instructions executed
 * since the last point to its budget (%#n). When the budget is below zero it checks: whether FLAG
 * says "leave", and in the first warp, if LOOK says so, whether it is time to poll the window.
 * Threads of the first warp have odd budgets; charges are even, so the low bit stays.
 *
 * A thread that finds "leave" saves its registers and jumps to the meeting at the end of the body.
 * All threads of the block come there, from points, from barriers and from returns, and vote. If
 * some thread has left, all leave, and those at barriers save their registers too. In a kernel all
 * of whose threads reach each point, they vote at the points instead (gsr_resume.in_place).
 *
 * Registers %#p, %#r and %#d hold no value of the body and are free at points.
 *
 * In: a kernel and its plan (resume.c). Out: the code at its points, and what the loop needs to
 * save, fetch and restore. Assumes that the kernel has not changed since the plan was made.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "runtime.h"

#define UNROLLED_MAX	512u	/* bytes of a local array that are copied without a loop */

/* Checks at the meeting: one in so many passes, as code between barriers is not weighed */
#define SITES_A_LOOK	16

_Static_assert(offsetof(struct gsr_launch, save) == 64 &&
		       offsetof(struct gsr_launch, save_stride) == 72 &&
		       offsetof(struct gsr_launch, save_per_sm) == 76 &&
		       offsetof(struct gsr_launch, save_sms) == 80 &&
		       sizeof(struct gsr_save) == 8320 && offsetof(struct gsr_save, taken) == 128 &&
		       offsetof(struct gsr_save, waiting) == 4224 &&
		       sizeof(struct gsr_record) == 16,
	       "offsets below");
_Static_assert(GSR_TASK_RECORD == 96 && GSR_TASK_RECORD_SM == 104 && GSR_TASK_RECORD_MASK == 108 &&
		       GSR_TASK_FLAG == 112 && GSR_TASK_LOOK == 116 && GSR_TASK_DEADLINE == 120,
	       "offsets below");

/*
 * The check. Labels %s: where a thread continues that must leave; and one that need not poll. The
 * first warp is converged here, and diverges only while thread 0 reads the page.
 */
static const char at_flag[] =
	"ld.volatile.shared.v2.u32 {%%#r0, %%#r1}, [#task+112];\n"
	"and.b32 %%#n, %%#n, 1;\n"
	"add.u32 %%#n, %%#n, %u;\n"
	"setp.eq.u32 %%#p1, %%#r0, 1;\n"
	"@%%#p1 bra $#%s;\n"
	"and.b32 %%#r0, %%#n, 1;\n"
	"setp.eq.u32 %%#p1, %%#r0, 0;\n"
	"setp.ne.or.u32 %%#p1, %%#r1, 2, %%#p1;\n"
	"@%%#p1 bra $#%s;\n";

/*
 * The relayed window is read from the L2 cache, which stalls the warp: so at most once in poll_ns
 * clocks
 */
static const char due[] =
	"mov.u32 %%#r0, %%clock;\n"
	"ld.volatile.shared.u32 %%#r1, [#task+120];\n"
	"sub.u32 %%#r1, %%#r0, %%#r1;\n"
	"setp.lt.s32 %%#p1, %%#r1, 0;\n"
	"@%%#p1 bra $#%s;\n"
	"ld.param.u32 %%#r1, [#launch+44];\n"
	"add.u32 %%#r0, %%#r0, %%#r1;\n"
	"st.volatile.shared.u32 [#task+120], %%#r0;\n"
	"ld.param.u64 %%#d0, [#launch];\n"
	"ld.relaxed.gpu.global.v2.u64 {%%#d1, %%#d2}, [%%#d0];\n"
	"mov.u64 %%#d5, %%globaltimer;\n";

static const char flag[] =
	"mov.u32 %#r0, 1;\n"
	"st.volatile.shared.v2.u32 [#task+112], {%#r0, %#r0};\n";

/* A check: falls through or jumps to @leave if the worker must leave, else jumps to @inside */
static unsigned int insert_check(struct gsr_pass *p, struct gsr_function *f,
				 const struct gsr_resume *r, const char *tag, const char *leave,
				 const char *inside)
{
	unsigned int n;

	n = gsr_insert_format(p, f, NULL, at_flag, r->look, leave, inside);
	n += gsr_insert_format(p, f, NULL, due, inside);
	n += gsr_look(p, f, NULL, tag, inside);
	return n + gsr_insert_text(p, f, NULL, flag);
}

/*
 * Lanes that were apart in a loop with a point have different budgets. Where the lanes of a warp
 * decide together, all check as soon as one has to.
 */
static bool budgets_differ(const struct gsr_resume *r)
{
	unsigned int i;

	for (i = r->n_sites; i < r->n_points; i++)
		if (!r->points[i].warp)
			return true;
	return false;
}

unsigned int gsr_resume_points(struct gsr_pass *p, struct gsr_function *f, struct gsr_resume *r)
{
	const bool differ = budgets_differ(r);
	unsigned int n = 0, i;

	for (i = r->n_sites; i < r->n_points; i++)
		if (!gsr_stripmine(p, f, &r->points[i], i, r->look, &n) && !r->in_place)
			n += gsr_unroll(p, f, &r->points[i], i);
	for (i = r->n_sites; i < r->n_points; i++)
		n += gsr_remat_insert(p, f, &r->points[i]);
	for (i = r->in_place ? 0 : r->n_sites; i < r->n_points; i++) {
		const struct gsr_point *pt = &r->points[i];

		n += gsr_insert_format(p, f, i < r->n_sites ? pt->at : pt->at->next,
				       "sub.s32 %%#n, %%#n, %u;\n"
				       "setp.lt.s32 %%#q, %%#n, 0;\n%s"
				       "@%%#q bra%s $#look_%u;\n"
				       "$#go_%u:\n", pt->weight,
				       pt->warp && differ ? "vote.sync.any.pred %#q, %#q, -1;\n" : "",
				       r->in_place ? ".uni" : "", i, i);
	}
	return n;
}

/* Executed by thread 0 before it fetches: %#d5 is the time, %#d0 the control block */
static const char take_suspended[] =
	"ld.param.u64 %#d6, [#launch+64];\n"
	"setp.eq.u64 %#p1, %#d6, 0;\n"
	"@%#p1 bra $#fresh;\n"
	"ld.relaxed.gpu.global.u32 %#r0, [%#d6];\n"
	"setp.le.s32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#room;\n"
	"mov.u32 %#r0, -1;\n"
	"atom.relaxed.gpu.global.add.u32 %#r0, [%#d6], %#r0;\n"
	"setp.gt.s32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#find;\n"
	"mov.u32 %#r0, 1;\n"
	"red.relaxed.gpu.global.add.u32 [%#d6], %#r0;\n"
	"bra $#room;\n"
	/* the counter grants this worker one suspended block-task: find and claim any */
	"$#find:\n"
	"mov.u32 %#r1, %smid;\n"
	"ld.param.u32 %#r4, [#launch+80];\n"
	"setp.ge.u32 %#p1, %#r1, %#r4;\n"
	"@%#p1 mov.u32 %#r1, 0;\n"
	"$#word:\n"
	"mul.wide.u32 %#d1, %#r1, 4;\n"
	"add.u64 %#d1, %#d1, %#d6;\n"
	"ld.relaxed.gpu.global.u32 %#r2, [%#d1+4224];\n"
	"$#bit:\n"
	"setp.ne.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#try;\n"
	"add.u32 %#r1, %#r1, 1;\n"
	"ld.param.u32 %#r4, [#launch+80];\n"
	"setp.ge.u32 %#p1, %#r1, %#r4;\n"
	"@%#p1 mov.u32 %#r1, 0;\n"
	"bra $#word;\n"
	"$#try:\n"
	"neg.s32 %#r3, %#r2;\n"
	"and.b32 %#r3, %#r2, %#r3;\n"
	"not.b32 %#r0, %#r3;\n"
	"atom.relaxed.gpu.global.and.b32 %#r2, [%#d1+4224], %#r0;\n"
	"and.b32 %#r5, %#r2, %#r3;\n"
	"and.b32 %#r2, %#r2, %#r0;\n"
	"setp.eq.u32 %#p1, %#r5, 0;\n"
	"@%#p1 bra $#bit;\n"
	/* its record replaces this worker's own, which is released */
	"ld.shared.v2.u32 {%#r0, %#r2}, [#task+104];\n"
	"setp.eq.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#own;\n"
	"not.b32 %#r2, %#r2;\n"
	"mul.wide.u32 %#d1, %#r0, 4;\n"
	"add.u64 %#d1, %#d1, %#d6;\n"
	"red.release.gpu.global.and.b32 [%#d1+128], %#r2;\n"
	"$#own:\n"
	"st.shared.v2.u32 [#task+104], {%#r1, %#r3};\n"
	"bfind.u32 %#r2, %#r3;\n"
	"ld.param.u32 %#r0, [#launch+76];\n"
	"mad.lo.u32 %#r0, %#r1, %#r0, %#r2;\n"
	"ld.param.u32 %#r2, [#launch+72];\n"
	"mul.wide.u32 %#d1, %#r0, %#r2;\n"
	"add.u64 %#d1, %#d1, %#d6;\n"
	"add.u64 %#d1, %#d1, 8320;\n"
	"st.shared.u64 [#task+96], %#d1;\n"
	"fence.acq_rel.gpu;\n"
	"ld.global.v4.u32 {%#r2, %#r3, %#r4, %#r5}, [%#d1];\n"
	"mov.u32 %#r5, " GSR_STR(GSR_TASK_RESUME) ";\n"
	"st.shared.v4.u32 [#task], {%#r2, %#r3, %#r4, %#r5};\n"
	"ld.shared.u64 %#d4, [#task+40];\n"
	"add.u64 %#d4, %#d4, 1;\n"
	"st.shared.u64 [#task+40], %#d4;\n"
	"bra $#armed;\n"
	/* nothing is suspended: claim a record for the next block-task, unless there is one */
	"$#room:\n"
	"ld.shared.u32 %#r0, [#task+108];\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#fresh;\n"
	"mov.u32 %#r1, %smid;\n"
	"ld.param.u32 %#r4, [#launch+80];\n"
	"setp.ge.u32 %#p1, %#r1, %#r4;\n"
	"@%#p1 mov.u32 %#r1, 0;\n"
	"mov.u32 %#r7, 0;\n"
	/*
	 * The records of this SM may be in use by block-tasks that resumed on other SMs. Then
	 * another SM has a free one.
	 */
	"$#here:\n"
	"mul.wide.u32 %#d1, %#r1, 4;\n"
	"add.u64 %#d1, %#d1, %#d6;\n"
	"ld.relaxed.gpu.global.u32 %#r2, [%#d1+128];\n"
	"$#free:\n"
	"not.b32 %#r3, %#r2;\n"
	"neg.s32 %#r0, %#r3;\n"
	"and.b32 %#r3, %#r3, %#r0;\n"
	"bfind.u32 %#r0, %#r3;\n"
	"ld.param.u32 %#r4, [#launch+76];\n"
	"setp.lt.u32 %#p1, %#r0, %#r4;\n"
	"@%#p1 bra $#claimed;\n"
	"ld.param.u32 %#r4, [#launch+80];\n"
	"add.u32 %#r1, %#r1, 1;\n"
	"setp.ge.u32 %#p1, %#r1, %#r4;\n"
	"@%#p1 mov.u32 %#r1, 0;\n"
	"add.u32 %#r7, %#r7, 1;\n"
	"setp.lt.u32 %#p1, %#r7, %#r4;\n"
	"@%#p1 bra $#here;\n"
	"bra $#fresh;\n"
	"$#claimed:\n"
	"atom.acquire.gpu.global.or.b32 %#r2, [%#d1+128], %#r3;\n"
	"and.b32 %#r5, %#r2, %#r3;\n"
	"setp.ne.u32 %#p1, %#r5, 0;\n"
	"@%#p1 bra $#free;\n"
	"st.shared.v2.u32 [#task+104], {%#r1, %#r3};\n"
	"mad.lo.u32 %#r0, %#r1, %#r4, %#r0;\n"
	"ld.param.u32 %#r2, [#launch+72];\n"
	"mul.wide.u32 %#d1, %#r0, %#r2;\n"
	"add.u64 %#d1, %#d1, %#d6;\n"
	"add.u64 %#d1, %#d1, 8320;\n"
	"st.shared.u64 [#task+96], %#d1;\n"
	"$#fresh:\n"
	"mov.u32 %#r5, 1;\n";

unsigned int gsr_resume_fetch(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at)
{
	return gsr_insert_text(p, f, at, take_suspended);
}

/* Executed by thread 0 when the ids are written: without a record or a window there are no polls */
static const char arm_checks[] =
	"$#armed:\n"
	"ld.shared.u32 %#r0, [#task+108];\n"
	"ld.param.u32 %#r1, [#launch+60];\n"
	"and.b32 %#r1, %#r1, 1;\n"
	"setp.eq.u32 %#p1, %#r1, 0;\n"
	"setp.ne.and.u32 %#p1, %#r0, 0, %#p1;\n"
	"selp.u32 %#r1, 2, 0, %#p1;\n"
	"mov.u32 %#r0, 0;\n"
	"st.shared.v2.u32 [#task+112], {%#r0, %#r1};\n"
	"mov.u32 %#r0, %clock;\n"
	"st.shared.u32 [#task+120], %#r0;\n";

unsigned int gsr_resume_arm(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at)
{
	return gsr_insert_text(p, f, at, arm_checks);
}

/*
 * Sets %#r0 to the thread's number, %#r1 to the number of threads, %#d0 to the address of the
 * thread's first word in the record, %#d1 to the stride of its words, %#d3 to the record, %#r4 to
 * the bytes of dynamic shared memory
 */
static const char locate[] =
	"mov.u32 %#r0, %tid.z;\n"
	"mov.u32 %#r1, %ntid.y;\n"
	"mov.u32 %#r2, %tid.y;\n"
	"mad.lo.u32 %#r0, %#r0, %#r1, %#r2;\n"
	"mov.u32 %#r3, %ntid.x;\n"
	"mov.u32 %#r2, %tid.x;\n"
	"mad.lo.u32 %#r0, %#r0, %#r3, %#r2;\n"
	"mul.lo.u32 %#r1, %#r1, %#r3;\n"
	"mov.u32 %#r2, %ntid.z;\n"
	"mul.lo.u32 %#r1, %#r1, %#r2;\n"
	"mul.wide.u32 %#d1, %#r1, 4;\n"
	"ld.shared.u64 %#d3, [#task+96];\n"
	"mov.u32 %#r4, %dynamic_smem_size;\n"
	"add.u32 %#r2, %#r4, 15;\n"
	"and.b32 %#r2, %#r2, -16;\n"
	"mad.lo.u32 %#r2, %#r0, 4, %#r2;\n";
static const char located[] =
	"cvt.u64.u32 %#d0, %#r2;\n"
	"add.u64 %#d0, %#d0, %#d3;\n";

static unsigned int insert_locate(struct gsr_pass *p, struct gsr_function *f,
				  const struct gsr_resume *r)
{
	unsigned int n = gsr_insert_text(p, f, NULL, locate);

	n += gsr_insert_format(p, f, NULL, "add.u32 %%#r2, %%#r2, %u;\n", r->fixed);
	return n + gsr_insert_text(p, f, NULL, located);
}

/* Advances to the next word of the thread, and saves or loads %#r2 there */
static unsigned int next_word(struct gsr_pass *p, struct gsr_function *f, bool save)
{
	return gsr_insert_text(p, f, NULL,
			       save ? "add.u64 %#d0, %#d0, %#d1;\nst.global.u32 [%#d0], %#r2;\n" :
				      "add.u64 %#d0, %#d0, %#d1;\nld.global.u32 %#r2, [%#d0];\n");
}

static unsigned int save_register(struct gsr_pass *p, struct gsr_function *f, const char *reg,
				  const struct gsr_var *v)
{
	unsigned int n, size = gsr_type_size(v->type);

	if (!strcmp(v->type, "pred")) {
		n = gsr_insert_format(p, f, NULL, "selp.u32 %%#r2, 1, 0, %s;\n", reg);
	} else if (size == 2) {
		n = gsr_insert_format(p, f, NULL, "mov.b16 %%#h, %s;\ncvt.u32.u16 %%#r2, %%#h;\n",
				      reg);
	} else if (size == 4) {
		n = gsr_insert_format(p, f, NULL, "mov.b32 %%#r2, %s;\n", reg);
	} else if (size == 8) {
		n = gsr_insert_format(p, f, NULL, "mov.b64 {%%#r2, %%#r3}, %s;\n", reg);
		n += next_word(p, f, true);
		n += gsr_insert_text(p, f, NULL, "mov.u32 %#r2, %#r3;\n");
	} else {
		n = gsr_insert_format(p, f, NULL, "mov.b128 {%%#d2, %%#d3}, %s;\n"
				      "mov.b64 {%%#r2, %%#r3}, %%#d2;\n", reg);
		n += next_word(p, f, true);
		n += gsr_insert_text(p, f, NULL, "mov.u32 %#r2, %#r3;\n");
		n += next_word(p, f, true);
		n += gsr_insert_text(p, f, NULL, "mov.b64 {%#r2, %#r3}, %#d3;\n");
		n += next_word(p, f, true);
		n += gsr_insert_text(p, f, NULL, "mov.u32 %#r2, %#r3;\n");
	}
	return n + next_word(p, f, true);
}

static unsigned int restore_register(struct gsr_pass *p, struct gsr_function *f, const char *reg,
				     const struct gsr_var *v)
{
	unsigned int n = next_word(p, f, false), size = gsr_type_size(v->type);

	if (!strcmp(v->type, "pred"))
		return n + gsr_insert_format(p, f, NULL, "setp.ne.u32 %s, %%#r2, 0;\n", reg);
	if (size == 2)
		return n + gsr_insert_format(p, f, NULL,
					     "cvt.u16.u32 %%#h, %%#r2;\nmov.b16 %s, %%#h;\n", reg);
	if (size == 4)
		return n + gsr_insert_format(p, f, NULL, "mov.b32 %s, %%#r2;\n", reg);
	n += gsr_insert_text(p, f, NULL, "mov.u32 %#r3, %#r2;\n");
	n += next_word(p, f, false);
	if (size == 8)
		return n + gsr_insert_format(p, f, NULL, "mov.b64 %s, {%%#r3, %%#r2};\n", reg);
	n += gsr_insert_text(p, f, NULL, "mov.b64 %#d2, {%#r3, %#r2};\n");
	n += next_word(p, f, false);
	n += gsr_insert_text(p, f, NULL, "mov.u32 %#r3, %#r2;\n");
	n += next_word(p, f, false);
	return n + gsr_insert_format(p, f, NULL, "mov.b64 %%#d3, {%%#r3, %%#r2};\n"
				     "mov.b128 %s, {%%#d2, %%#d3};\n", reg);
}

/*
 * Copies %#r6 bytes of shared memory at %#r5 to or from %#d2, by all threads, in units of @unit
 * bytes from offset %#r2 on
 */
static unsigned int copy_units(struct gsr_pass *p, struct gsr_function *f, bool save,
			       unsigned int unit, unsigned int *label)
{
	const char *type = unit == 4 ? "u32" : "u8", *move;
	unsigned int l = (*label)++;

	move = save ? gsr_sprintf(p->arena,
				  "ld.shared.%s %%#r3, [%%#r3];\nst.global.%s [%%#d3], %%#r3;\n",
				  type, type) :
		      gsr_sprintf(p->arena,
				  "ld.global.%s %%#r7, [%%#d3];\nst.shared.%s [%%#r3], %%#r7;\n",
				  type, type);
	return gsr_insert_format(p, f, NULL,
		"$#copy_%u:\n"
		"add.u32 %%#r3, %%#r2, %u;\n"
		"setp.gt.u32 %%#p1, %%#r3, %%#r6;\n"
		"@%%#p1 bra $#copied_%u;\n"
		"add.u32 %%#r3, %%#r5, %%#r2;\n"
		"cvt.u64.u32 %%#d3, %%#r2;\n"
		"add.u64 %%#d3, %%#d3, %%#d2;\n"
		"%s"
		"mad.lo.u32 %%#r2, %%#r1, %u, %%#r2;\n"
		"bra $#copy_%u;\n"
		"$#copied_%u:\n", l, unit, l, move, unit, l, l);
}

static unsigned int copy_shared(struct gsr_pass *p, struct gsr_function *f, bool save,
				const char *name, unsigned int offset, unsigned int align,
				const char *size, unsigned int *label)
{
	unsigned int n;

	n = gsr_insert_format(p, f, NULL,
		"mov.u32 %%#r5, %s;\n"
		"mov.u32 %%#r6, %s;\n"
		"ld.shared.u64 %%#d2, [#task+96];\n"
		"add.u64 %%#d2, %%#d2, %u;\n", name, size, offset);
	if (align >= 4) {
		n += gsr_insert_text(p, f, NULL, "shl.b32 %#r2, %#r0, 2;\n");
		n += copy_units(p, f, save, 4, label);
		/* the remaining bytes, one per thread */
		n += gsr_insert_text(p, f, NULL,
				     "and.b32 %#r2, %#r6, -4;\nadd.u32 %#r2, %#r2, %#r0;\n");
	} else {
		n += gsr_insert_text(p, f, NULL, "mov.u32 %#r2, %#r0;\n");
	}
	return n + copy_units(p, f, save, 1, label);
}

/*
 * Copies a long local array by a loop. The loop takes the array's address, so the assembler must
 * keep it in memory; it does that anyway for arrays of this size.
 */
static unsigned int copy_array(struct gsr_pass *p, struct gsr_function *f,
			       const struct gsr_saved *array, bool save, unsigned int *label)
{
	const char *move = save ? "ld.local.u32 %#r2, [%#d3];\nst.global.u32 [%#d2], %#r2;\n" :
				  "ld.global.u32 %#r2, [%#d2];\nst.local.u32 [%#d3], %#r2;\n";
	unsigned int l = (*label)++;

	return gsr_insert_format(p, f, NULL,
		"mov.u64 %%#d3, %s;\n"
		"mov.u32 %%#r3, %u;\n"
		"$#copy_%u:\n"
		"%s"
		"add.u64 %%#d2, %%#d2, %%#d1;\n"
		"add.u64 %%#d3, %%#d3, 4;\n"
		"sub.u32 %%#r3, %%#r3, 1;\n"
		"setp.ne.u32 %%#p1, %%#r3, 0;\n"
		"@%%#p1 bra $#copy_%u;\n", array->name, array->size / 4, l, move, l);
}

/* Expects the registers of insert_locate(); preserves %#r0, %#r1, %#r4 */
static unsigned int copy_memory(struct gsr_pass *p, struct gsr_function *f,
				const struct gsr_resume *r, bool save, unsigned int *label)
{
	unsigned int n = 0, i, w;

	for (i = 0; i < r->n_shared; i++)
		n += copy_shared(p, f, save, r->shared[i].name, r->shared[i].offset,
				 r->shared[i].align, gsr_sprintf(p->arena, "%u", r->shared[i].size),
				 label);
	if (r->dynamic)
		n += copy_shared(p, f, save, r->dynamic, r->fixed, 16, "%#r4", label);
	for (i = 0; i < r->n_local; i++) {
		const struct gsr_saved *l = &r->local[i];
		const char *op = save ? "ld.local" : "st.local";

		/* local memory: the words of a thread are strided in the record */
		n += gsr_insert_format(
			p, f, NULL, "mul.lo.u64 %%#d2, %%#d1, %u;\nadd.u64 %%#d2, %%#d2, %%#d0;\n",
			l->offset);
		if (l->align >= 4 && l->size % 4 == 0 && l->size > UNROLLED_MAX) {
			n += copy_array(p, f, l, save, label);
			continue;
		}
		for (w = 0; w < l->size; w++) {
			const char *type = l->align >= 4 && w + 4 <= l->size ? "u32" : "u8";
			unsigned int at = type[1] == '3' ? 0 : w % 4;

			n += save ? gsr_insert_format(
					    p, f, NULL,
					    "%s.%s %%#r2, [%s+%u];\nst.global.%s [%%#d2+%u], %%#r2;\n",
					    op, type, l->name, w, type, at) :
				    gsr_insert_format(
					    p, f, NULL,
					    "ld.global.%s %%#r2, [%%#d2+%u];\n%s.%s [%s+%u], %%#r2;\n",
					    type, at, op, type, l->name, w);
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
	return gsr_insert_format(p, f, NULL, "mov.u64 %%#d2, %s;\ncvta.param.u64 %%#d2, %%#d2;\n",
				 f->params[0].name);
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
	const char *tag = gsr_sprintf(a, "point_%u", i);
	unsigned int n;

	n = gsr_insert_format(p, f, NULL, "$#look_%u:\n", i);
	if (r->points[i].warp || r->in_place) {
		n += gsr_insert_text(p, f, NULL, "mov.u32 %#c, 0;\n");
		n += insert_check(p, f, r, tag, gsr_sprintf(a, "told_%u", i),
				  gsr_sprintf(a, "looked_%u", i));
		n += gsr_insert_format(p, f, NULL,
			"$#told_%u:\n"
			"mov.u32 %%#c, 1;\n"
			"$#looked_%u:\n"
			"setp.eq.u32 %%#q, %%#c, 1;\n", i, i);
		if (r->in_place)
			n += gsr_insert_format(
				p, f, NULL,
				"bar.warp.sync -1;\nbar.red.or.pred %%#q, %d, %%#q;\n@!%%#q bra.uni $#go_%u;\n",
				r->id, i);
		else
			n += gsr_insert_format(
				p, f, NULL,
				"vote.sync.any.pred %%#q, %%#q, -1;\n@!%%#q bra $#go_%u;\n", i);
	} else {
		n += insert_check(p, f, r, tag, gsr_sprintf(a, "save_%u", i),
				  gsr_sprintf(a, "go_%u", i));
	}
	n += save_stub(p, f, r, i);
	if (r->cp_async)
		n += gsr_insert_text(p, f, NULL, "cp.async.wait_all;\n");
	return n + gsr_insert_format(p, f, NULL, "mov.u32 %%#s, %u;\nbra $#%s;\n", i,
				     r->in_place ? "suspend" : "meet");
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
	n += gsr_insert_format(p, f, NULL,
		"mov.u32 %%#s, -1;\n"
		"$#meet:\n"
		"mov.u32 %%#c, 0;\n"
		"sub.s32 %%#n, %%#n, %u;\n"
		"setp.lt.s32 %%#q, %%#n, 0;\n"
		"@%%#q bra $#look_meeting;\n"
		"$#met:\n"
		"setp.eq.u32 %%#p1, %%#c, 1;\n"
		"setp.ge.and.s32 %%#p1, %%#s, 0, %%#p1;\n", r->look / SITES_A_LOOK / 2 * 2 + 2);
	n += gsr_insert_format(p, f, NULL,
		"setp.ge.or.s32 %%#p1, %%#s, %u, %%#p1;\n"
		"setp.ne.s32 %%#p0, %%#s, -1;\n"
		"bar.warp.sync -1;\n"
		"bar.red.or.pred %%#p1, %d, %%#p1;\n"
		"@%%#p1 bra.uni $#suspend;\n", r->n_sites, r->id);
	if (!r->n_sites)
		return n + gsr_insert_text(p, f, NULL, "bra.uni $#next;\n");
	if (r->early) {
		n += gsr_vote(p, f, r->red, r->id, "next");
		n += gsr_insert_format(p, f, NULL,
			"setp.eq.s32 %%#p0, %%#s, %d;\n"
			"@%%#p0 bra.uni $#start;\n"
			"setp.eq.s32 %%#p0, %%#s, %d;\n"
			"@%%#p0 bra.uni $#restore;\n", GSR_RESUME_START, GSR_RESUME_BACK);
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
	if (r->cp_async)
		n += gsr_insert_format(
			p, f, NULL, "cp.async.wait_all;\nbar.warp.sync -1;\nbar.sync %d;\n", r->id);
	n += insert_locate(p, f, r);
	n += gsr_insert_text(p, f, NULL, "st.global.u32 [%#d0], %#s;\n");
	n += copy_memory(p, f, r, true, label);
	if (r->n_sites && !r->in_place) {
		n += gsr_insert_format(p, f, NULL,
				       "setp.ge.u32 %%#p0, %%#s, %u;\n@%%#p0 bra $#saved;\n",
				       r->n_sites);
		n += gsr_dispatch(p, f, "save", 0, r->n_sites);
	}
	for (i = 0; i < r->n_sites && !r->in_place; i++) {
		n += save_stub(p, f, r, i);
		n += gsr_insert_text(p, f, NULL, "bra $#saved;\n");
	}
	n += gsr_insert_format(p, f, NULL,
		"$#saved:\n"
		"fence.acq_rel.gpu;\n"
		"bar.warp.sync -1;\n"
		"bar.sync %d;\n", r->id);
	n += gsr_insert_text(p, f, NULL, gsr_not_first);
	return n + gsr_insert_text(p, f, NULL,
		"@%#p0 bra $#leave;\n"
		"ld.shared.v4.u32 {%#r0, %#r1, %#r2, %#r3}, [#task];\n"
		"ld.shared.u64 %#d0, [#task+96];\n"
		"st.global.v4.u32 [%#d0], {%#r0, %#r1, %#r2, %#r3};\n"
		"ld.shared.u64 %#d4, [#task+40];\n"
		"sub.u64 %#d4, %#d4, 1;\n"
		"st.shared.u64 [#task+40], %#d4;\n"
		"mov.u32 %#r0, 1;\n"
		"st.shared.u32 [#task+80], %#r0;\n"
		"ld.shared.v2.u32 {%#r1, %#r2}, [#task+104];\n"
		"mov.u32 %#r3, 0;\n"
		"st.shared.u32 [#task+108], %#r3;\n"
		"ld.param.u64 %#d0, [#launch+64];\n"
		"mul.wide.u32 %#d1, %#r1, 4;\n"
		"add.u64 %#d1, %#d1, %#d0;\n"
		"fence.acq_rel.gpu;\n"
		"red.relaxed.gpu.global.or.b32 [%#d1+4224], %#r2;\n"
		/* a worker that the count grants a block-task must find the bit */
		"fence.acq_rel.gpu;\n"
		"red.relaxed.gpu.global.add.u32 [%#d0], %#r0;\n"
		"bra $#leave;\n");
}

static unsigned int insert_restore(struct gsr_pass *p, struct gsr_function *f,
				   const struct gsr_resume *r, unsigned int *label)
{
	unsigned int n, i;

	n = gsr_insert_text(p, f, NULL, "$#restore:\n");
	n += insert_locate(p, f, r);
	n += copy_memory(p, f, r, false, label);
	n += gsr_insert_format(p, f, NULL,
		"ld.global.u32 %%#s, [%%#d0];\n"
		"bar.warp.sync -1;\n"
		"bar.sync %d;\n"
		"setp.eq.s32 %%#p0, %%#s, -1;\n"
		"@%%#p0 bra $#end;\n", r->id);
	n += gsr_dispatch(p, f, "back", 0, r->n_points);
	for (i = 0; i < r->n_points; i++) {
		const struct gsr_point *pt = &r->points[i];

		n += gsr_insert_format(p, f, NULL, "$#back_%u:\n", i);
		n += restore_point(p, f, pt);
		n += gsr_insert_format(p, f, NULL, "bra $#%s_%u;\n",
				       i < r->n_sites && !r->in_place ? "again" : "go", i);
	}
	return n;
}

unsigned int gsr_resume_tail(struct gsr_pass *p, struct gsr_function *f, const struct gsr_resume *r)
{
	unsigned int n, i, label = 0;

	if (r->in_place) {
		n = gsr_insert_format(p, f, NULL,
				      "bar.warp.sync -1;\nbar.sync %d;\nbra.uni $#next;\n", r->id);
	} else {
		n = insert_meeting(p, f, r);
		n += gsr_insert_text(p, f, NULL, "$#look_meeting:\n");
		n += insert_check(p, f, r, "meeting", "told_meeting", "met");
		n += gsr_insert_text(p, f, NULL, "$#told_meeting:\nmov.u32 %#c, 1;\nbra $#met;\n");
	}
	for (i = r->in_place ? 0 : r->n_sites; i < r->n_points; i++)
		n += point_stub(p, f, r, i);
	n += insert_suspend(p, f, r, &label);
	return n + insert_restore(p, f, r, &label);
}
