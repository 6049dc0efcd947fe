// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dynamic dispatch: how many block-tasks a worker fetches, and which (struct gsr_launch, "order",
 * in abi.h).
 *
 * Offsets in the text as in loop.c; of struct gsr_control exhausted +128, counter +8704.
 *
 * In: a place in the loop. Out: the code there, executed by the thread or warp that fetches.
 * Assumes the registers that loop.c declares.
 */
#include <string.h>
#include "runtime.h"

#define COUNTERS_SHIFT	4
#define STRIPES_LEAST	8
#define UNKNOWN_DEPTH	8
#define NUMBERS_MAX	(1u << 31)	/* numbers of this and more are wide */
#define COPY_WORKERS	128	/* workers that poll one copy of the relay: about 5 a us */

_Static_assert(GSR_COUNTERS == 1 << COUNTERS_SHIFT, "as many");
_Static_assert(offsetof(struct gsr_launch, flags) == 60 && GSR_LAUNCH_COLUMNS == 8 &&
		       offsetof(struct gsr_launch, step) == 96 &&
		       offsetof(struct gsr_launch, positions) == 108 &&
		       offsetof(struct gsr_launch, last_counter) == 112 &&
		       offsetof(struct gsr_launch, counter_shift) == 116 &&
		       offsetof(struct gsr_launch, depth) == 120 &&
		       offsetof(struct gsr_launch, depth_shift) == 124 &&
		       offsetof(struct gsr_launch, width_mask) == 128 &&
		       offsetof(struct gsr_launch, width_shift) == 132 &&
		       offsetof(struct gsr_launch, fetch_first) == 136 &&
		       offsetof(struct gsr_launch, divide) == 140,
	       "offsets below");
_Static_assert(offsetof(struct gsr_control, exhausted) == 128 &&
		       offsetof(struct gsr_control, counter) == 8704 &&
		       sizeof(((struct gsr_control *)NULL)->counter[0]) == 128,
	       "offsets below");
_Static_assert(GSR_TASK_TOTAL == 32 && GSR_TASK_INDEX == 48 && GSR_TASK_REST == 112 &&
		       GSR_TASK_REST_COUNT == 116 && GSR_TASK_COUNTER == 124,
	       "offsets below");

/*
 * The rest of the last fetch, which is in another column, comes first. As it is part of that fetch,
 * the window is not polled and no time is measured in between.
 */
const char gsr_queue_rest[] =
	"ld.shared.v4.u32 {%#r1, %#r5, %#r6, %#r10}, [#task+112];\n"
	"setp.ne.u32 %#p1, %#r5, 0;\n"
	"@%#p1 bra $#leftover;\n";

static const char leftover[] =
	"$#leftover:\n"
	"mov.u32 %#r0, %#r10;\n"
	"bra $#locate;\n";

/*
 * The batch size: the last one if that took about fetch_ns and the end is far, or if it was 1 and
 * took longer. Otherwise it is computed again, bounded by half an even share, fetch_max, four times
 * the last size and fetch_ns. All threads wait for this, so it is kept short: it is most of a
 * twin's overhead. It is computed while the window load to %#d1 and %#d2 is in flight.
 */
const char gsr_queue_count[] =
	"ld.shared.v2.u32 {%#r1, %#r5}, [#task+72];\n"
	"ld.shared.v2.u64 {%#d3, %#d7}, [#task+48];\n"
	"sub.u32 %#r1, %#r7, %#r1;\n"
	"ld.param.u32 %#r2, [#launch+48];\n"
	"shr.u32 %#r3, %#r2, 1;\n"
	"sub.u32 %#r4, %#r1, %#r3;\n"
	"add.u32 %#r6, %#r2, %#r3;\n"
	"setp.lt.u32 %#p1, %#r4, %#r6;\n"
	"setp.lt.and.u64 %#p1, %#d3, %#d7, %#p1;\n"
	"setp.gt.u32 %#p2, %#r1, %#r3;\n"
	"setp.eq.and.u32 %#p2, %#r5, 1, %#p2;\n"
	"or.pred %#p1, %#p1, %#p2;\n"
	"@!%#p1 bra $#reckon;\n"
	"$#take:\n"
	"st.shared.v2.u32 [#task+72], {%#r7, %#r5};\n";

static const char reckon[] =
	"$#reckon:\n"
	"max.u32 %#r0, %#r5, 1;\n"
	"setp.eq.u32 %#p1, %#r5, 0;\n"
	"@%#p1 bra $#first_look;\n"
	"max.u32 %#r1, %#r1, 1;\n"
	"cvt.rn.f32.u32 %#f0, %#r1;\n"
	"cvt.rn.f32.u32 %#f1, %#r2;\n"
	"cvt.rn.f32.u32 %#f2, %#r0;\n"
	"mul.f32 %#f1, %#f1, %#f2;\n"
	"div.approx.f32 %#f0, %#f1, %#f0;\n"
	"cvt.rzi.u32.f32 %#r5, %#f0;\n"
	"shl.b32 %#r2, %#r0, 2;\n"
	"min.u32 %#r5, %#r5, %#r2;\n"
	"ld.param.u32 %#r2, [#launch+52];\n"
	"min.u32 %#r5, %#r5, %#r2;\n";

/* a range is nobody else's */
static const char reckon_range[] =
	"max.u32 %#r5, %#r5, 1;\n"
	"ld.param.u64 %#d4, [#launch+88];\n"
	"setp.ne.u64 %#p1, %#d4, 0;\n"
	"@%#p1 bra $#rounded;\n";

static const char reckon_share[] =
	/* what is left when the other workers are as far as this one */
	"ld.param.u32 %#r2, [#launch+56];\n"
	"ld.shared.u64 %#d6, [#task+32];\n"
	"mul.wide.u32 %#d4, %#r2, %#r0;\n"
	"add.u64 %#d4, %#d4, %#d3;\n"
	"min.u64 %#d4, %#d4, %#d6;\n"
	"sub.u64 %#d4, %#d6, %#d4;\n"
	"cvt.rn.f32.u64 %#f0, %#d4;\n"
	"cvt.rn.f32.u32 %#f1, %#r2;\n"
	"add.f32 %#f1, %#f1, %#f1;\n"
	"max.f32 %#f1, %#f1, 0f3F800000;\n"
	"div.approx.f32 %#f0, %#f0, %#f1;\n"
	"cvt.rzi.u32.f32 %#r0, %#f0;\n"
	"min.u32 %#r5, %#r5, %#r0;\n"
	"max.u32 %#r5, %#r5, 1;\n"
	/* the end is near from where so many are less than half an even share */
	"mul.wide.u32 %#d4, %#r2, %#r5;\n"
	"mul.lo.u64 %#d4, %#d4, 3;\n"
	"min.u64 %#d4, %#d4, %#d6;\n"
	"sub.u64 %#d4, %#d6, %#d4;\n"
	"st.shared.u64 [#task+56], %#d4;\n"
	/* the power of two next to it, as a column's length is */
	"$#rounded:\n"
	"shr.u32 %#r0, %#r5, 1;\n"
	"add.u32 %#r5, %#r5, %#r0;\n"
	"bfind.u32 %#r0, %#r5;\n"
	"mov.u32 %#r5, 1;\n"
	"shl.b32 %#r5, %#r5, %#r0;\n"
	/* a column whole, if it is about that: parts of one make others come in parts too */
	"ld.param.u32 %#r0, [#launch+120];\n"
	"shl.b32 %#r2, %#r5, 1;\n"
	"setp.eq.u32 %#p1, %#r2, %#r0;\n"
	"shl.b32 %#r2, %#r0, 1;\n"
	"setp.eq.or.u32 %#p1, %#r2, %#r5, %#p1;\n"
	"selp.u32 %#r5, %#r0, %#r5, %#p1;\n"
	"bra $#take;\n";

/*
 * %laneid is 0, which the assembler does not know: else it would add up over the lanes and exchange
 * the sum
 */
static const char claim[] =
	"ld.shared.u32 %#r10, [#task+124];\n"
	"add.u32 %#r5, %#r5, %#r9;\n"
	"ld.param.u32 %#r2, [#launch+60];\n"
	"and.b32 %#r2, %#r2, 8;\n"
	"setp.ne.u32 %#p1, %#r2, 0;\n"
	"@!%#p1 bra $#in_order;\n"
	/* each fetch uses the next counter, so that all advance at the same rate */
	"ld.param.u32 %#r3, [#launch+112];\n"
	"add.u32 %#r0, %#r10, 1;\n"
	"and.b32 %#r0, %#r0, %#r3;\n";

/* %#r5 from counter %#r0 */
static const char advance[] =
	"mul.wide.u32 %#d4, %#r0, 128;\n"
	"add.u64 %#d4, %#d4, %#d0;\n"
	"atom.relaxed.gpu.global.add.u32 %#r1, [%#d4+8704], %#r5;\n"
	"st.shared.u32 [#task+124], %#r0;\n"
	"ld.param.u32 %#r2, [#launch+116];\n"
	"shl.b32 %#r2, %#r1, %#r2;\n"
	"st.shared.u32 [#task+48], %#r2;\n";

static const char in_order[] =
	"$#in_order:\n"
	"ld.shared.u64 %#d6, [#task+32];\n";

static const char from_range[] =
	"ld.param.u64 %#d4, [#launch+88];\n"
	"setp.ne.u64 %#p1, %#d4, 0;\n"
	"@%#p1 bra $#range;\n";

static const char from_counter[] =
	"ld.param.u32 %#r0, [#launch+140];\n"
	"setp.eq.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#wide_numbers;\n"
	"atom.relaxed.gpu.global.add.u32 %#r2, [%#d0+8704], %#r5;\n"
	"cvt.u32.u64 %#r3, %#d6;\n"
	"setp.ge.u32 %#p1, %#r2, %#r3;\n"
	"@%#p1 bra $#stop;\n"
	"st.shared.u32 [#task+48], %#r2;\n"
	"sub.u32 %#r3, %#r3, %#r2;\n"
	"min.u32 %#r6, %#r5, %#r3;\n"
	"bra $#numbered_task;\n"
	"$#wide_numbers:\n"
	"cvt.u64.u32 %#d3, %#r5;\n"
	"atom.relaxed.gpu.global.add.u64 %#d2, [%#d0+8704], %#d3;\n"
	"setp.ge.u64 %#p1, %#d2, %#d6;\n"
	"@%#p1 bra $#stop;\n"
	"sub.u64 %#d4, %#d6, %#d2;\n"
	"min.u64 %#d3, %#d3, %#d4;\n"
	"st.shared.u64 [#task+48], %#d2;\n"
	"$#taken:\n"
	"cvt.u32.u64 %#r6, %#d3;\n";

/*
 * Position %#r1 of counter %#r0, and %#r5 of them: row %#r2 of a column, or behind the stripes. As
 * many as there are in that column, %#r6
 */
static const char locate[] =
	"$#locate:\n"
	"ld.param.u32 %#r4, [#launch+108];\n"
	"setp.ge.u32 %#p1, %#r1, %#r4;\n"
	"@%#p1 bra $#behind;\n"
	"ld.param.u32 %#r6, [#launch+120];\n"
	"sub.u32 %#r2, %#r6, 1;\n"
	"and.b32 %#r2, %#r1, %#r2;\n"
	"sub.u32 %#r6, %#r6, %#r2;\n"
	"min.u32 %#r6, %#r6, %#r5;\n";

/*
 * Column %#r3 of the counter; its block-task %#r2, and the ids of that. Numbers have 31 bits here
 */
static const char number[] =
	"ld.param.u32 %#r4, [#launch+124];\n"
	"shr.u32 %#r3, %#r1, %#r4;\n"
	"ld.param.u32 %#r5, [#launch+132];\n"
	"shr.u32 %#r1, %#r3, %#r5;\n"
	"shl.b32 %#r1, %#r1, %#r4;\n"
	"add.u32 %#r2, %#r2, %#r1;\n"
	"shl.b32 %#r2, %#r2, %#r5;\n"
	"ld.param.u32 %#r4, [#launch+128];\n"
	"and.b32 %#r3, %#r3, %#r4;\n"
	"add.u32 %#r2, %#r2, %#r3;\n"
	"ld.param.u32 %#r4, [#launch+116];\n"
	"shl.b32 %#r2, %#r2, %#r4;\n"
	"add.u32 %#r2, %#r2, %#r0;\n"
	"$#numbered_task:\n"
	"ld.param.u32 %#r0, [#launch+24];\n"
	"ld.param.u32 %#r1, [#launch+28];\n"
	"mov.u32 %#r3, 0;\n"
	"mov.u32 %#r4, 0;\n"
	"setp.ge.u32 %#p1, %#r2, %#r0;\n"
	"@%#p1 bra $#rows;\n"
	"$#ids:\n";

static const char divide[] =
	"$#rows:\n"
	"ld.param.u32 %#r3, [#launch+140];\n"
	"ld.param.u32 %#r4, [#launch+144];\n"
	"shl.b32 %#r5, %#r2, 1;\n"
	"mul.hi.u32 %#r3, %#r5, %#r3;\n"
	"shr.u32 %#r3, %#r3, %#r4;\n"
	"mul.lo.u32 %#r5, %#r3, %#r0;\n"
	"sub.u32 %#r2, %#r2, %#r5;\n"
	"mov.u32 %#r4, 0;\n"
	"setp.lt.u32 %#p1, %#r3, %#r1;\n"
	"@%#p1 bra $#ids;\n"
	"ld.param.u32 %#r4, [#launch+148];\n"
	"ld.param.u32 %#r0, [#launch+152];\n"
	"shl.b32 %#r5, %#r3, 1;\n"
	"mul.hi.u32 %#r4, %#r5, %#r4;\n"
	"shr.u32 %#r4, %#r4, %#r0;\n"
	"mul.lo.u32 %#r5, %#r4, %#r1;\n"
	"sub.u32 %#r3, %#r3, %#r5;\n"
	"bra $#ids;\n";

static const char behind_begins[] =
	"$#behind:\n"
	"mov.u32 %#r6, 1;\n";

static const char behind[] =
	"ld.param.u32 %#r2, [#launch+116];\n"
	"shl.b32 %#r2, %#r1, %#r2;\n"
	"add.u32 %#r2, %#r2, %#r0;\n"
	"ld.shared.u32 %#r3, [#task+32];\n"
	"setp.lt.u32 %#p1, %#r2, %#r3;\n"
	"@%#p1 bra $#numbered_task;\n";

/* This counter is exhausted: try the next one that is not, as far as is known */
static const char another[] =
	"ld.param.u64 %#d0, [#launch];\n"
	"ld.param.u32 %#r3, [#launch+112];\n"
	"mov.u32 %#r2, 1;\n"
	"shl.b32 %#r2, %#r2, %#r0;\n"
	"atom.relaxed.gpu.global.or.b32 %#r4, [%#d0+128], %#r2;\n"
	"or.b32 %#r4, %#r4, %#r2;\n"
	"mov.u32 %#r1, 2;\n"
	"shl.b32 %#r1, %#r1, %#r3;\n"
	"sub.u32 %#r1, %#r1, 1;\n"
	"not.b32 %#r4, %#r4;\n"
	"and.b32 %#r4, %#r4, %#r1;\n"
	"setp.eq.u32 %#p1, %#r4, 0;\n"
	"@%#p1 bra $#stop;\n"
	"neg.s32 %#r2, %#r2;\n"
	"and.b32 %#r2, %#r2, %#r4;\n"
	"setp.eq.u32 %#p1, %#r2, 0;\n"
	"selp.u32 %#r2, %#r4, %#r2, %#p1;\n"
	"neg.s32 %#r4, %#r2;\n"
	"and.b32 %#r2, %#r2, %#r4;\n"
	"bfind.u32 %#r0, %#r2;\n"
	"mov.u32 %#r5, 1;\n";

/* A resumable twin fetches one block-task: there is no rest */
static const char rest[] =
	"add.u32 %#r3, %#r1, %#r6;\n"
	"sub.u32 %#r5, %#r5, %#r6;\n"
	"st.shared.v2.u32 [#task+112], {%#r3, %#r5};\n";

static const char no_rest[] =
	"mov.u32 %#r5, 0;\n"
	"st.shared.u32 [#task+116], %#r5;\n";

/*
 * Expects the batch size in %#r5 and the lane in %#r9. Falls through with the ids of the first
 * block-task in %#r2, %#r3, %#r4 and the number fetched in %#r6, or jumps to $#stop.
 */
unsigned int gsr_queue_take(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			    bool resumable)
{
	unsigned int n = gsr_insert_text(p, f, at, claim);

	n += gsr_insert_text(p, f, at, advance);
	n += gsr_insert_text(p, f, at, locate);
	if (!resumable)
		n += gsr_insert_text(p, f, at, rest);
	return n + gsr_insert_text(p, f, at, number);
}

/*
 * Ends where a block-task's number in %#d2 is still to be divided, and how many there are is in
 * %#r6
 */
unsigned int gsr_queue_seldom(struct gsr_pass *p, struct gsr_function *f, bool resumable)
{
	unsigned int n = 0;

	if (!resumable) {
		n += gsr_insert_text(p, f, NULL, leftover);
		n += gsr_insert_text(p, f, NULL, reckon);
		if (p->modes)
			n += gsr_insert_text(p, f, NULL, reckon_range);
		n += gsr_insert_text(p, f, NULL, reckon_share);
	}
	n += gsr_insert_text(p, f, NULL, divide);
	n += gsr_insert_text(p, f, NULL, behind_begins);
	if (!resumable)
		n += gsr_insert_text(p, f, NULL, rest);
	n += gsr_insert_text(p, f, NULL, behind);
	if (!resumable)
		n += gsr_insert_text(p, f, NULL, no_rest);
	n += gsr_insert_text(p, f, NULL, another);
	/* here again, so that the loop has one way in */
	n += gsr_insert_text(p, f, NULL, advance);
	n += gsr_insert_text(p, f, NULL, "bra $#locate;\n");
	n += gsr_insert_text(p, f, NULL, in_order);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, from_range);
	return n + gsr_insert_text(p, f, NULL, from_counter);
}

static unsigned int log2_floor(uint64_t n)
{
	return n ? 63 - (unsigned int)__builtin_clzll(n) : 0;
}

void gsr_launch_order(struct gsr_launch *a, enum gsr_order order, unsigned int workers,
		      unsigned int depth)
{
	const uint64_t total = (uint64_t)a->grid[0] * a->grid[1] * a->grid[2];
	unsigned int width = log2_floor(workers),
		     rows = log2_floor((depth ? depth : UNKNOWN_DEPTH) * 3ull / 2), i, bits;
	uint64_t step = 1;

	a->flags &= ~GSR_LAUNCH_COLUMNS;
	for (a->last_copy = GSR_RELAY_COPIES - 1;
	     a->last_copy && (a->last_copy + 1) * COPY_WORKERS > workers;)
		a->last_copy /= 2;
	a->fetch_first = 1;
	a->depth = 0;
	for (i = 0; i < 2; i++) {
		for (bits = 0; (uint64_t)1 << bits < a->grid[i];)
			bits++;
		a->divide[i].factor =
			(uint32_t)((((uint64_t)1 << (31 + bits)) + a->grid[i] - 1) / a->grid[i]);
		a->divide[i].shift = bits;
	}
	if (total >= NUMBERS_MAX)
		a->divide[0].factor = 0;
	/* 31 bits, with room for what workers at the end add in vain */
	if (order == GSR_ORDER_STRIPES && total < NUMBERS_MAX) {
		a->flags |= GSR_LAUNCH_COLUMNS;
		a->counter_shift = width < COUNTERS_SHIFT ? width : COUNTERS_SHIFT;
		a->last_counter = (1u << a->counter_shift) - 1;
		/* what is behind the stripes is dealt one by one, so it should not be much */
		while (rows && total >> (width + rows) < STRIPES_LEAST)
			rows--;
		a->positions =
			(uint32_t)(total >> (width + rows) << (width + rows - a->counter_shift));
		a->depth_shift = rows;
		a->depth = 1u << rows;
		a->width_shift = width - a->counter_shift;
		a->width_mask = (1u << a->width_shift) - 1;
		if (depth)
			a->fetch_first = a->depth;
		step = (uint64_t)1 << width;
	}
	a->step[0] = (uint32_t)(step % a->grid[0]);
	step /= a->grid[0];
	a->step[1] = (uint32_t)(step % a->grid[1]);
	a->step[2] = (uint32_t)(step / a->grid[1]);
}

void gsr_control_init(struct gsr_control *c, uint64_t window)
{
	unsigned int i;

	memset(c, 0, sizeof(*c));
	c->relay = window;
	for (i = 0; i < GSR_RELAY_COPIES; i++)
		c->copy[i].window = window;
}
