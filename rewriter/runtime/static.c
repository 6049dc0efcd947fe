// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Static dispatch (struct gsr_ranges in abi.h; SMGuard 5.1 and 5.2, algorithm 2): where a worker's
 * block-tasks come from if it is not the counter. The grid is cut into as many ranges as a full
 * launch has workers, each worker begins with its own, and takes over others' when that is done:
 * first those that SMGuard's remapping gives it, then any that nobody has.
 *
 * Offsets in the text as in loop.c. Of struct gsr_ranges taken_count +0, taken +128, left +4224,
 * next +8320.
 *
 * In: nothing: constant texts, in twins made with gsr_options.modes. Assumes the registers that
 * loop.c declares.
 */
#include "runtime.h"

_Static_assert(offsetof(struct gsr_launch, ranges) == 88 &&
		       offsetof(struct gsr_ranges, taken) == 128 &&
		       offsetof(struct gsr_ranges, left) == 4224 &&
		       offsetof(struct gsr_ranges, next) == 8320,
	       "offsets below");
_Static_assert(GSR_TASK_TOTAL == 32 && GSR_TASK_INDEX == 48 && GSR_TASK_NEAR == 56 &&
		       GSR_TASK_POSITION == 64 && GSR_TASK_RANGE == 124,
	       "offsets below");

/*
 * Expects the number of block-tasks to take in %#r5. Jumps to $#taken with the first in %#d2 and
 * their number in %#d3, or to $#stop. Few values are live across the divisions, which need many
 * registers: what can be loaded again is.
 */
const char gsr_static_take[] =
	"$#range:\n"
	"ld.shared.v2.u64 {%#d2, %#d4}, [#task+48];\n"
	"setp.ge.u64 %#p1, %#d2, %#d4;\n"
	"@%#p1 bra $#another;\n"
	"sub.u64 %#d4, %#d4, %#d2;\n"
	"cvt.u64.u32 %#d3, %#r5;\n"
	"min.u64 %#d3, %#d3, %#d4;\n"
	"add.u64 %#d4, %#d2, %#d3;\n"
	"st.shared.u64 [#task+48], %#d4;\n"
	"bra $#taken;\n"
	/* of %#r6 ranges, is any unclaimed? */
	"$#another:\n"
	"ld.param.u64 %#d7, [#launch+88];\n"
	"ld.param.u32 %#r6, [#launch+56];\n"
	"ld.relaxed.gpu.global.u32 %#r0, [%#d7];\n"
	"setp.ge.u32 %#p1, %#r0, %#r6;\n"
	"@%#p1 bra $#stop;\n"
	/* %#r7 workers in a CapSM, %#r0 our number */
	"ld.param.u32 %#r4, [#launch+40];\n"
	"ld.shared.u32 %#r0, [#task+64];\n"
	"mov.u32 %#r7, 1024;\n"
	"div.u32 %#r7, %#r7, %#r4;\n"
	"shr.u32 %#r1, %#r0, 10;\n"
	"and.b32 %#r2, %#r0, 1023;\n"
	"ld.param.u32 %#r3, [#launch+60];\n"
	"and.b32 %#r3, %#r3, 4;\n"
	"setp.ne.u32 %#p1, %#r3, 0;\n"
	"selp.u32 %#r1, 0, %#r1, %#p1;\n"
	"selp.u32 %#r2, %#r0, %#r2, %#p1;\n"
	"div.u32 %#r2, %#r2, %#r4;\n"
	"mad.lo.u32 %#r0, %#r1, %#r7, %#r2;\n"
	/*
	 * at first our own, then step by step the evicted CapSMs' that are ours to do, at last any
	 */
	"ld.shared.u32 %#r3, [#task+124];\n"
	"add.u32 %#r1, %#r3, 65536;\n"
	"st.shared.u32 [#task+124], %#r1;\n"
	"shr.u32 %#r3, %#r3, 16;\n"
	"mov.u32 %#r1, %#r0;\n"
	"setp.eq.u32 %#p1, %#r3, 0;\n"
	"@%#p1 bra $#this;\n"
	/*
	 * eq. 2: CapSM %#r1, in it %#r2; the window's CapSMs: the first %#r8; %#r10 are outside
	 */
	"div.u32 %#r1, %#r0, %#r7;\n"
	"mul.lo.u32 %#r2, %#r1, %#r7;\n"
	"sub.u32 %#r2, %#r0, %#r2;\n"
	"ld.param.u64 %#d1, [#launch];\n"
	"ld.relaxed.gpu.global.u64 %#d1, [%#d1];\n"
	"cvt.u32.u64 %#r8, %#d1;\n"
	"shr.u32 %#r8, %#r8, 10;\n"
	"add.u32 %#r10, %#r6, %#r7;\n"
	"sub.u32 %#r10, %#r10, 1;\n"
	"div.u32 %#r10, %#r10, %#r7;\n"
	"min.u32 %#r8, %#r8, %#r10;\n"
	"sub.u32 %#r10, %#r10, %#r8;\n"
	"setp.ge.u32 %#p1, %#r1, %#r8;\n"
	"@%#p1 bra $#any;\n"
	/* eq. 5: %#r4 of them for each that stays; eq. 6, 7: which */
	"add.u32 %#r4, %#r10, %#r8;\n"
	"sub.u32 %#r4, %#r4, 1;\n"
	"div.u32 %#r4, %#r4, %#r8;\n"
	"setp.gt.u32 %#p1, %#r3, %#r4;\n"
	"@%#p1 bra $#any;\n"
	"mad.lo.u32 %#r1, %#r1, %#r4, %#r3;\n"
	"sub.u32 %#r1, %#r1, 1;\n"
	"setp.ge.u32 %#p1, %#r1, %#r10;\n"
	"@%#p1 bra $#any;\n"
	"add.u32 %#r1, %#r1, %#r8;\n"
	/* eq. 8 */
	"mad.lo.u32 %#r1, %#r1, %#r7, %#r2;\n"
	"$#this:\n"
	"setp.ge.u32 %#p1, %#r1, %#r6;\n"
	"@%#p1 bra $#another;\n"
	"shr.u32 %#r2, %#r1, 6;\n"
	"mul.wide.u32 %#d1, %#r2, 8;\n"
	"add.u64 %#d1, %#d1, %#d7;\n"
	"and.b32 %#r2, %#r1, 63;\n"
	"mov.u64 %#d2, 1;\n"
	"shl.b64 %#d2, %#d2, %#r2;\n"
	"atom.acquire.gpu.global.or.b64 %#d3, [%#d1+128], %#d2;\n"
	"and.b64 %#d3, %#d3, %#d2;\n"
	"setp.ne.u64 %#p1, %#d3, 0;\n"
	"@%#p1 bra $#another;\n"
	/* range %#r1 is claimed; counted afterwards, so a range that is counted is claimed */
	"$#ours:\n"
	"mov.u32 %#r0, 1;\n"
	"red.relaxed.gpu.global.add.u32 [%#d7], %#r0;\n"
	"ld.shared.u64 %#d4, [#task+32];\n"
	"cvt.u64.u32 %#d3, %#r6;\n"
	"add.u64 %#d4, %#d4, %#d3;\n"
	"sub.u64 %#d4, %#d4, 1;\n"
	"div.u64 %#d3, %#d4, %#d3;\n"
	"cvt.u64.u32 %#d4, %#r1;\n"
	"mul.lo.u64 %#d4, %#d4, %#d3;\n"
	"add.u64 %#d3, %#d4, %#d3;\n"
	"ld.shared.u64 %#d6, [#task+32];\n"
	"min.u64 %#d3, %#d3, %#d6;\n"
	/* begun by somebody who left it? */
	"ld.param.u64 %#d7, [#launch+88];\n"
	"shr.u32 %#r2, %#r1, 6;\n"
	"mul.wide.u32 %#d1, %#r2, 8;\n"
	"add.u64 %#d1, %#d1, %#d7;\n"
	"ld.relaxed.gpu.global.u64 %#d1, [%#d1+4224];\n"
	"and.b32 %#r2, %#r1, 63;\n"
	"shr.u64 %#d1, %#d1, %#r2;\n"
	"and.b64 %#d1, %#d1, 1;\n"
	"setp.eq.u64 %#p1, %#d1, 0;\n"
	"@%#p1 bra $#begun;\n"
	"mul.wide.u32 %#d2, %#r1, 8;\n"
	"add.u64 %#d2, %#d2, %#d7;\n"
	"ld.relaxed.gpu.global.u64 %#d4, [%#d2+8320];\n"
	"$#begun:\n"
	"st.shared.v2.u64 [#task+48], {%#d4, %#d3};\n"
	"ld.shared.u32 %#r2, [#task+124];\n"
	"and.b32 %#r2, %#r2, -65536;\n"
	"or.b32 %#r2, %#r2, %#r1;\n"
	"st.shared.u32 [#task+124], %#r2;\n"
	"bra $#range;\n"
	/* word by word, from the one with our number on and around */
	"$#any:\n"
	"add.u32 %#r7, %#r6, 63;\n"
	"shr.u32 %#r7, %#r7, 6;\n"
	"shr.u32 %#r2, %#r0, 6;\n"
	"setp.ge.u32 %#p1, %#r2, %#r7;\n"
	"selp.u32 %#r2, 0, %#r2, %#p1;\n"
	"mov.u32 %#r3, %#r7;\n"
	"$#ranges:\n"
	"mul.wide.u32 %#d1, %#r2, 8;\n"
	"add.u64 %#d1, %#d1, %#d7;\n"
	"shl.b32 %#r1, %#r2, 6;\n"
	"sub.u32 %#r4, %#r6, %#r1;\n"
	"mov.u64 %#d3, -1;\n"
	"shl.b64 %#d3, %#d3, %#r4;\n"
	"not.b64 %#d3, %#d3;\n"
	"ld.relaxed.gpu.global.u64 %#d4, [%#d1+128];\n"
	"$#untaken:\n"
	"not.b64 %#d4, %#d4;\n"
	"and.b64 %#d4, %#d4, %#d3;\n"
	"setp.eq.u64 %#p1, %#d4, 0;\n"
	"@%#p1 bra $#all_taken;\n"
	"neg.s64 %#d2, %#d4;\n"
	"and.b64 %#d2, %#d2, %#d4;\n"
	"atom.acquire.gpu.global.or.b64 %#d4, [%#d1+128], %#d2;\n"
	"and.b64 %#d5, %#d4, %#d2;\n"
	"setp.ne.u64 %#p1, %#d5, 0;\n"
	"@%#p1 bra $#untaken;\n"
	"bfind.u64 %#r4, %#d2;\n"
	"add.u32 %#r1, %#r1, %#r4;\n"
	"bra $#ours;\n"
	"$#all_taken:\n"
	"add.u32 %#r2, %#r2, 1;\n"
	"setp.ge.u32 %#p1, %#r2, %#r7;\n"
	"selp.u32 %#r2, 0, %#r2, %#p1;\n"
	"sub.u32 %#r3, %#r3, 1;\n"
	"setp.ne.u32 %#p1, %#r3, 0;\n"
	"@%#p1 bra $#ranges;\n"
	"bra $#stop;\n";

/*
 * A worker that leaves early leaves the rest of its range: where it stands, then that nobody has it
 */
const char gsr_static_leave[] =
	"ld.param.u64 %#d7, [#launch+88];\n"
	"setp.eq.u64 %#p1, %#d7, 0;\n"
	"@%#p1 bra $#rest;\n"
	"ld.shared.v2.u64 {%#d2, %#d3}, [#task+48];\n"
	"setp.ge.u64 %#p1, %#d2, %#d3;\n"
	"@%#p1 bra $#rest;\n"
	"ld.shared.u32 %#r1, [#task+124];\n"
	"and.b32 %#r1, %#r1, 65535;\n"
	"mul.wide.u32 %#d4, %#r1, 8;\n"
	"add.u64 %#d4, %#d4, %#d7;\n"
	"st.relaxed.gpu.global.u64 [%#d4+8320], %#d2;\n"
	"shr.u32 %#r2, %#r1, 6;\n"
	"mul.wide.u32 %#d4, %#r2, 8;\n"
	"add.u64 %#d4, %#d4, %#d7;\n"
	"and.b32 %#r1, %#r1, 63;\n"
	"mov.u64 %#d2, 1;\n"
	"shl.b64 %#d2, %#d2, %#r1;\n"
	"red.relaxed.gpu.global.or.b64 [%#d4+4224], %#d2;\n"
	/* not counted before it is not taken */
	"mov.u32 %#r0, -1;\n"
	"red.relaxed.gpu.global.add.u32 [%#d7], %#r0;\n"
	"not.b64 %#d2, %#d2;\n"
	"red.release.gpu.global.and.b64 [%#d4+128], %#d2;\n"
	"$#rest:\n";

/* Counted: goes on behind the text if there are ranges that nobody has */
const char gsr_static_waits[] =
	"ld.param.u64 %#d2, [#launch+88];\n"
	"setp.eq.u64 %#p1, %#d2, 0;\n"
	"@%#p1 bra $#out;\n"
	"fence.sc.gpu;\n"
	"ld.relaxed.gpu.global.u32 %#r0, [%#d2];\n"
	"ld.param.u32 %#r2, [#launch+56];\n"
	"setp.ge.u32 %#p1, %#r0, %#r2;\n"
	"@%#p1 bra $#out;\n";
