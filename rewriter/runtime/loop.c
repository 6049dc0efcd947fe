// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The worker's life around the body (abi.h). What it must remember from one fetch to the next lies
 * in shared memory; only the ids that the kernel reads, and how many block-tasks are left, are
 * held in registers across the body.
 *
 * Offsets in the text: #launch is struct gsr_launch, %#d0 struct gsr_control, #task see
 * GSR_TASK_*, and of the page's slot (struct gsched_cl_slot) left +12, seen_limit +16, start_ns
 * +40, end_ns +48, finished +56.
 *
 * In: a kernel whose body ends at $#end and reads its ids where the passes say. Out: the twin.
 * Assumes that all passes of transform/ have run.
 */
#include <stddef.h>
#include "runtime.h"

_Static_assert(offsetof(struct gsr_launch, window) == 8 && offsetof(struct gsr_launch, stat) == 16 &&
	       offsetof(struct gsr_launch, seq) == 36 && offsetof(struct gsr_launch, weight) == 40 &&
	       offsetof(struct gsr_launch, poll_ns) == 44 && offsetof(struct gsr_launch, fetch_ns) == 48 &&
	       offsetof(struct gsr_launch, fetch_max) == 52 && offsetof(struct gsr_launch, workers) == 56 &&
	       offsetof(struct gsr_launch, flags) == 60 && offsetof(struct gsr_launch, first) == 84 &&
	       GSR_LAUNCH_BY_RANK == 2 && GSR_LAUNCH_BY_INDEX == 4 && GSR_LAUNCH_WHOLE == 16,
	       "offsets below");
_Static_assert(offsetof(struct gsr_control, next_poll) == 8 && offsetof(struct gsr_control, started) == 268 &&
	       offsetof(struct gsr_control, ranks) == 384 && offsetof(struct gsr_control, sm) == 512 &&
	       offsetof(struct gsr_control, copy) == 84 * 128 && sizeof(((struct gsr_control *)NULL)->copy[0]) == 128 &&
	       offsetof(struct gsr_launch, last_copy) == 156 && GSR_TASK_RELAY == 120,
	       "offsets below");

static const char declarations[] =
	".reg .pred %#p<3>; .reg .b32 %#r<11>; .reg .b64 %#d<8>; .reg .f32 %#f<3>;"
	".reg .b32 %#cx, %#cy, %#cz, %#cn;";

/* %#p0: not thread 0 */
const char gsr_not_first[] =
	"mov.u32 %#r0, %tid.x;\n"
	"mov.u32 %#r1, %tid.y;\n"
	"mov.u32 %#r2, %tid.z;\n"
	"or.b32 %#r0, %#r0, %#r1;\n"
	"or.b32 %#r0, %#r0, %#r2;\n"
	"setp.ne.u32 %#p0, %#r0, 0;\n";

/*
 * A worker's position. By SM id and by SM number its place is a bit of its SM's word, by index its
 * index is a bit of one of these words; what it gives back at the end it keeps as the word's offset
 * and the bit's number, 64 none. Twins without gsr_options.modes know the first way only.
 */
static const char start[] =
	"ld.param.u64 %#d0, [#launch];\n"
	"ld.param.u32 %#r4, [#launch+40];\n"
	"ld.param.u32 %#r5, [#launch+60];\n";

static const char start_modes[] =
	"and.b32 %#r0, %#r5, 4;\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#by_index;\n";

static const char claim_place[] =
	/* the lowest free place of this SM */
	"mov.u32 %#r0, %smid;\n"
	"and.b32 %#r0, %#r0, 1023;\n"
	"mul.wide.u32 %#d2, %#r0, 8;\n"
	"add.u64 %#d2, %#d2, %#d0;\n"
	"mov.u32 %#r1, 0;\n"
	"and.b32 %#r2, %#r5, 16;\n"
	"setp.eq.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#claim;\n"
	/* begin behind the workers that this SM is likely to have: each tries another place first */
	"mov.u32 %#r2, %ctaid.x;\n"
	"mov.u32 %#r3, %nsmid;\n"
	"div.u32 %#r2, %#r2, %#r3;\n"
	"min.u32 %#r2, %#r2, 31;\n"
	"mov.u32 %#r3, 1;\n"
	"shl.b32 %#r2, %#r3, %#r2;\n"
	"bra $#place;\n"
	"$#claim:\n"
	"not.b32 %#r2, %#r1;\n"
	"neg.s32 %#r3, %#r2;\n"
	"and.b32 %#r2, %#r2, %#r3;\n"
	"$#place:\n"
	"cvt.u64.u32 %#d3, %#r2;\n"
	"atom.relaxed.gpu.global.or.b64 %#d3, [%#d2+512], %#d3;\n"
	"mov.b64 {%#r1, %#r6}, %#d3;\n"
	"and.b32 %#r3, %#r1, %#r2;\n"
	"setp.ne.u32 %#p1, %#r3, 0;\n"
	"@%#p1 bra $#claim;\n"
	/* no free place left: none is claimed, %#r2 is 0 */
	"bfind.u32 %#r2, %#r2;\n"
	"st.shared.u32 [#task+68], %#r2;\n"
	"min.u32 %#r3, %#r2, 31;\n"
	"shl.b32 %#r2, %#r0, 3;\n"
	"add.u32 %#r2, %#r2, 512;\n"
	"st.shared.u32 [#task+88], %#r2;\n";

static const char claim_number[] =
	"and.b32 %#r2, %#r5, 2;\n"
	"setp.eq.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#position;\n"
	/* the task's first worker on this SM finds a number for it, the others wait for that */
	"setp.eq.u32 %#p1, %#r1, 0;\n"
	"@%#p1 bra $#by_rank;\n"
	"$#rank:\n"
	"sub.u32 %#r0, %#r6, 1;\n"
	"setp.ne.u32 %#p1, %#r6, 0;\n"
	"@%#p1 bra $#position;\n"
	"ld.relaxed.gpu.global.u64 %#d3, [%#d2+512];\n"
	"mov.b64 {%#r1, %#r6}, %#d3;\n"
	"bra $#rank;\n"
	"$#by_rank:\n"
	"ld.param.u32 %#r0, [#launch+84];\n"
	"mul.lo.u32 %#r0, %#r0, %#r4;\n"
	"shr.u32 %#r0, %#r0, 10;\n"
	"ld.relaxed.gpu.global.u64 %#d4, [%#d0];\n"
	"cvt.u32.u64 %#r1, %#d4;\n"
	"min.u32 %#r1, %#r1, 1048576;\n"
	"add.u32 %#r1, %#r1, 1023;\n"
	"shr.u32 %#r1, %#r1, 10;\n"
	"add.u64 %#d3, %#d0, 384;\n"
	"bra $#number;\n"
	"$#by_index:\n"
	"ld.param.u32 %#r0, [#launch+84];\n"
	"ld.relaxed.gpu.global.u64 %#d4, [%#d0];\n"
	"cvt.u32.u64 %#r1, %#d4;\n"
	"min.u32 %#r1, %#r1, 1048576;\n"
	"div.u32 %#r1, %#r1, %#r4;\n"
	"add.u64 %#d3, %#d0, 512;\n"
	/*
	 * A free number below %#r1, from %#r0 + %ctaid.x on and around, so that workers that start
	 * together do not all want the same one: a bit of the words at %#d3. None: a number that no
	 * window holds.
	 */
	"$#number:\n"
	"mov.u32 %#r6, 2097151;\n"
	"setp.eq.u32 %#p1, %#r1, 0;\n"
	"@%#p1 bra $#numbered;\n"
	"mov.u32 %#r2, %ctaid.x;\n"
	"add.u32 %#r0, %#r0, %#r2;\n"
	"rem.u32 %#r0, %#r0, %#r1;\n"
	"and.b32 %#r2, %#r0, 63;\n"
	"mov.u64 %#d7, -1;\n"
	"shl.b64 %#d7, %#d7, %#r2;\n"
	"and.b32 %#r0, %#r0, -64;\n"
	/* the first word twice: its upper bits first, its lower ones last */
	"shr.u32 %#r7, %#r1, 6;\n"
	"add.u32 %#r7, %#r7, 2;\n"
	"$#bits:\n"
	"sub.u32 %#r2, %#r1, %#r0;\n"
	"mov.u64 %#d4, -1;\n"
	"shl.b64 %#d4, %#d4, %#r2;\n"
	"not.b64 %#d4, %#d4;\n"
	"and.b64 %#d7, %#d7, %#d4;\n"
	"shr.u32 %#r2, %#r0, 3;\n"
	"cvt.u64.u32 %#d6, %#r2;\n"
	"add.u64 %#d6, %#d6, %#d3;\n"
	"ld.relaxed.gpu.global.u64 %#d4, [%#d6];\n"
	"$#unused:\n"
	"not.b64 %#d4, %#d4;\n"
	"and.b64 %#d4, %#d4, %#d7;\n"
	"setp.eq.u64 %#p1, %#d4, 0;\n"
	"@%#p1 bra $#used;\n"
	"neg.s64 %#d5, %#d4;\n"
	"and.b64 %#d5, %#d5, %#d4;\n"
	"atom.relaxed.gpu.global.or.b64 %#d4, [%#d6], %#d5;\n"
	"and.b64 %#d1, %#d4, %#d5;\n"
	"setp.ne.u64 %#p1, %#d1, 0;\n"
	"@%#p1 bra $#unused;\n"
	"bfind.u64 %#r2, %#d5;\n"
	"add.u32 %#r6, %#r0, %#r2;\n"
	"bra $#numbered;\n"
	"$#used:\n"
	"mov.u64 %#d7, -1;\n"
	"add.u32 %#r0, %#r0, 64;\n"
	"setp.ge.u32 %#p1, %#r0, %#r1;\n"
	"selp.u32 %#r0, 0, %#r0, %#p1;\n"
	"sub.u32 %#r7, %#r7, 1;\n"
	"setp.ne.u32 %#p1, %#r7, 0;\n"
	"@%#p1 bra $#bits;\n"
	"$#numbered:\n"
	"and.b32 %#r2, %#r5, 4;\n"
	"setp.ne.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#index;\n"
	"mov.u32 %#r1, 0;\n"
	"add.u32 %#r2, %#r6, 1;\n"
	"mov.b64 %#d3, {%#r1, %#r2};\n"
	"red.relaxed.gpu.global.or.b64 [%#d2+512], %#d3;\n"
	"mov.u32 %#r0, %#r6;\n"
	"$#position:\n";

static const char position[] =
	"shl.b32 %#r0, %#r0, 10;\n"
	"mad.lo.u32 %#r0, %#r3, %#r4, %#r0;\n";

static const char index_position[] =
	"bra $#positioned;\n"
	"$#index:\n"
	"mul.lo.u32 %#r0, %#r6, %#r4;\n"
	"setp.eq.u32 %#p1, %#r6, 2097151;\n"
	"shr.u32 %#r1, %#r6, 6;\n"
	"shl.b32 %#r1, %#r1, 3;\n"
	"selp.u32 %#r1, 0, %#r1, %#p1;\n"
	"add.u32 %#r1, %#r1, 512;\n"
	"st.shared.u32 [#task+88], %#r1;\n"
	"and.b32 %#r2, %#r6, 63;\n"
	"selp.u32 %#r2, 64, %#r2, %#p1;\n"
	"st.shared.u32 [#task+68], %#r2;\n"
	"$#positioned:\n";

static const char positioned[] =
	"st.shared.u32 [#task+64], %#r0;\n"
	"ld.param.u64 %#d1, [#launch+16];\n"
	/* the first worker of the task: of each launch one asks */
	"mov.u32 %#r0, 0;\n"
	"mov.u32 %#r1, %ctaid.x;\n"
	"setp.ne.u32 %#p1, %#r1, 0;\n"
	"@%#p1 bra $#init;\n"
	"mov.u32 %#r1, 1;\n"
	"atom.relaxed.gpu.global.cas.b32 %#r2, [%#d0+268], %#r0, %#r1;\n"
	"setp.ne.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#init;\n"
	"mov.u64 %#d3, %globaltimer;\n"
	"st.relaxed.sys.global.u64 [%#d1+40], %#d3;\n"
	"ld.relaxed.gpu.global.u64 %#d3, [%#d0];\n"
	"cvt.u32.u64 %#r2, %#d3;\n"
	"st.relaxed.sys.global.u32 [%#d1+16], %#r2;\n"
	"$#init:\n"
	"ld.param.u32 %#r1, [#launch+24];\n"
	"ld.param.u32 %#r2, [#launch+28];\n"
	"ld.param.u32 %#r3, [#launch+32];\n"
	"st.shared.v4.u32 [#task+16], {%#r1, %#r2, %#r3, %#r0};\n"
	"mul.wide.u32 %#d3, %#r1, %#r2;\n"
	"cvt.u64.u32 %#d4, %#r3;\n"
	"mul.lo.u64 %#d3, %#d3, %#d4;\n"
	"mov.u64 %#d4, 0;\n"
	"st.shared.v2.u64 [#task+32], {%#d3, %#d4};\n"
	"st.shared.v2.u64 [#task+48], {%#d4, %#d4};\n"
	"mov.u32 %#r1, %ctaid.x;\n";

static const char first_range[] =
	"ld.param.u64 %#d3, [#launch+88];\n"
	"setp.eq.u64 %#p1, %#d3, 0;\n"
	"selp.u32 %#r1, %#r1, 0, %#p1;\n";

static const char started[] =
	"st.shared.u32 [#task+124], %#r1;\n"
	"st.shared.v2.u32 [#task+72], {%#r0, %#r0};\n"
	"st.shared.v2.u32 [#task+80], {%#r0, %#r0};\n";

/*
 * The last of a block's warps, by which the first to come by is found; all that is above is there
 * for each of them
 */
static const char warps[] =
	"mov.u32 %#r1, %ntid.x;\n"
	"mov.u32 %#r2, %ntid.y;\n"
	"mul.lo.u32 %#r1, %#r1, %#r2;\n"
	"mov.u32 %#r2, %ntid.z;\n"
	"mul.lo.u32 %#r1, %#r1, %#r2;\n"
	"sub.u32 %#r1, %#r1, 1;\n"
	"shr.u32 %#r1, %#r1, 5;\n"
	"st.shared.u32 [#task+84], %#r1;\n"
	"st.shared.u32 [#task+92], %#r0;\n"
	"st.shared.u32 [#task+116], %#r0;\n"
	"mov.u32 %#r1, %ctaid.x;\n"
	"ld.param.u32 %#r2, [#launch+156];\n"
	"and.b32 %#r1, %#r1, %#r2;\n"
	"shl.b32 %#r1, %#r1, 7;\n"
	"add.u32 %#r1, %#r1, 10752;\n"
	"and.b32 %#r2, %#r5, 16;\n"
	"setp.eq.u32 %#p1, %#r2, 0;\n"
	"selp.u32 %#r1, %#r0, %#r1, %#p1;\n"
	"st.shared.u32 [#task+120], %#r1;\n"
	"$#started:\n"
	"mov.u32 %#cn, 0;\n";

/* The first warp that has finished the last block-task of a fetch makes the next fetch. */
static const char first_come[] =
	"mov.u32 %#r0, %laneid;\n"
	"setp.ne.u32 %#p0, %#r0, 0;\n"
	"@%#p0 bra $#wait;\n"
	"ld.shared.u32 %#r1, [#task+84];\n"
	"setp.eq.u32 %#p0, %#r1, 0;\n"
	"@%#p0 bra $#schedule;\n"
	"atom.shared.inc.u32 %#r0, [#task+92], %#r1;\n"
	"setp.ne.u32 %#p0, %#r0, 0;\n"
	"@%#p0 bra $#wait;\n";

/*
 * %#d0 is the control block, %#d1 and %#d2 its first words, %#d5 the time: the window as relayed
 * was good until %#d2. Who wins the swap reads it anew from the page.
 */
static const char poll[] =
	"ld.param.u32 %%#r0, [#launch+44];\n"
	"cvt.u64.u32 %%#d3, %%#r0;\n"
	"add.u64 %%#d3, %%#d5, %%#d3;\n"
	"atom.relaxed.gpu.global.cas.b64 %%#d4, [%%#d0+8], %%#d2, %%#d3;\n"
	"setp.ne.u64 %%#p1, %%#d4, %%#d2;\n"
	"@%%#p1 bra $#%s_window;\n"
	"ld.param.u64 %%#d3, [#launch+8];\n"
	"ld.relaxed.sys.global.u64 %%#d4, [%%#d3];\n"
	"setp.eq.u64 %%#p1, %%#d4, %%#d1;\n"
	"@%%#p1 bra $#%s_window;\n"
	"mov.u64 %%#d1, %%#d4;\n"
	"st.relaxed.gpu.global.u64 [%%#d0], %%#d1;\n"
	"ld.param.u64 %%#d3, [#launch+16];\n"
	"cvt.u32.u64 %%#r0, %%#d1;\n"
	"st.relaxed.sys.global.u32 [%%#d3+16], %%#r0;\n";

/*
 * The same where workers look at copies of these words. Who is to read the page first gives the
 * copies new times, one after another, so that mostly one is due, and the next if nobody looks at
 * that; the first words see to it that one worker reads it in poll_ns.
 */
static const char poll_copies[] =
	"ld.param.u32 %#r0, [#launch+44];\n"
	"cvt.u64.u32 %#d3, %#r0;\n"
	"add.u64 %#d6, %#d5, %#d3;\n"
	"ld.shared.u32 %#r1, [#task+120];\n"
	"cvt.u64.u32 %#d7, %#r1;\n"
	"add.u64 %#d7, %#d7, %#d0;\n"
	"atom.relaxed.gpu.global.cas.b64 %#d4, [%#d7+8], %#d2, %#d6;\n"
	"setp.ne.u64 %#p1, %#d4, %#d2;\n"
	"@%#p1 bra $#schedule_window;\n"
	"ld.relaxed.gpu.global.v2.u64 {%#d4, %#d2}, [%#d0];\n"
	"$#relay:\n"
	"setp.lt.u64 %#p1, %#d5, %#d2;\n"
	"@%#p1 bra $#relayed;\n"
	"atom.relaxed.gpu.global.cas.b64 %#d3, [%#d0+8], %#d2, %#d6;\n"
	"setp.ne.u64 %#p1, %#d3, %#d2;\n"
	"@%#p1 bra $#relayed;\n"
	"shr.u32 %#r0, %#r0, 2;\n"
	"shr.u32 %#r1, %#r1, 7;\n"
	"ld.param.u32 %#r2, [#launch+156];\n"
	"mov.u32 %#r3, %#r2;\n"
	"$#times:\n"
	"sub.u32 %#r4, %#r3, %#r1;\n"
	"add.u32 %#r4, %#r4, 83;\n"
	"and.b32 %#r4, %#r4, %#r2;\n"
	"mul.wide.u32 %#d3, %#r4, %#r0;\n"
	"add.u64 %#d3, %#d3, %#d6;\n"
	"mul.wide.u32 %#d2, %#r3, 128;\n"
	"add.u64 %#d2, %#d2, %#d0;\n"
	"st.relaxed.gpu.global.u64 [%#d2+10760], %#d3;\n"
	"setp.ne.u32 %#p1, %#r3, 0;\n"
	"sub.u32 %#r3, %#r3, 1;\n"
	"@%#p1 bra $#times;\n"
	"ld.param.u64 %#d3, [#launch+8];\n"
	"ld.relaxed.sys.global.u64 %#d2, [%#d3];\n"
	"setp.eq.u64 %#p1, %#d2, %#d4;\n"
	"@%#p1 bra $#relayed;\n"
	"mov.u64 %#d4, %#d2;\n"
	"st.relaxed.gpu.global.u64 [%#d0], %#d4;\n"
	"ld.param.u32 %#r3, [#launch+156];\n"
	"$#windows:\n"
	"mul.wide.u32 %#d2, %#r3, 128;\n"
	"add.u64 %#d2, %#d2, %#d0;\n"
	"st.relaxed.gpu.global.u64 [%#d2+10752], %#d4;\n"
	"setp.ne.u32 %#p1, %#r3, 0;\n"
	"sub.u32 %#r3, %#r3, 1;\n"
	"@%#p1 bra $#windows;\n"
	"ld.param.u64 %#d3, [#launch+16];\n"
	"cvt.u32.u64 %#r0, %#d4;\n"
	"st.relaxed.sys.global.u32 [%#d3+16], %#r0;\n"
	"$#relayed:\n"
	"setp.eq.u64 %#p1, %#d4, %#d1;\n"
	"@%#p1 bra $#schedule_window;\n"
	"mov.u64 %#d1, %#d4;\n"
	"ld.shared.u32 %#r0, [#task+120];\n"
	"cvt.u64.u32 %#d7, %#r0;\n"
	"add.u64 %#d7, %#d7, %#d0;\n"
	"st.relaxed.gpu.global.u64 [%#d7], %#d1;\n"
	"bra $#schedule_window;\n"
	/*
	 * A worker's first look is at the control block's first words, which the launcher has
	 * written for the wing that it came with. Its copy gets that window too, and is what it
	 * looks at from then on. GSR_LAUNCH_WHOLE: the copies say it already.
	 */
	"$#first_look:\n"
	"ld.param.u32 %#r5, [#launch+136];\n"
	"ld.shared.u32 %#r0, [#task+120];\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#take;\n"
	"mov.u32 %#r1, %ctaid.x;\n"
	"ld.param.u32 %#r2, [#launch+156];\n"
	"and.b32 %#r1, %#r1, %#r2;\n"
	"shl.b32 %#r1, %#r1, 7;\n"
	"add.u32 %#r1, %#r1, 10752;\n"
	"st.shared.u32 [#task+120], %#r1;\n"
	"cvt.u64.u32 %#d3, %#r1;\n"
	"add.u64 %#d3, %#d3, %#d0;\n"
	"st.relaxed.gpu.global.u64 [%#d3], %#d1;\n"
	"st.shared.v2.u32 [#task+72], {%#r7, %#r5};\n"
	"ld.param.u32 %#r0, [#launch+60];\n"
	"and.b32 %#r0, %#r0, 1;\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#fetch;\n"
	"ld.param.u32 %#r0, [#launch+44];\n"
	"cvt.u64.u32 %#d3, %#r0;\n"
	"add.u64 %#d6, %#d5, %#d3;\n"
	"mov.u64 %#d4, %#d1;\n"
	"bra $#relay;\n";

/*
 * %#p1: the window %#d1 excludes this worker: base <= position and position + weight <= base +
 * limit do not hold
 */
static const char test[] =
	"ld.shared.u32 %#r0, [#task+64];\n"
	"mov.b64 {%#r2, %#r3}, %#d1;\n";

/* by number and by index: how much, not where */
static const char test_modes[] =
	"ld.param.u32 %#r1, [#launch+60];\n"
	"and.b32 %#r1, %#r1, 6;\n"
	"setp.ne.u32 %#p1, %#r1, 0;\n"
	"selp.u32 %#r3, 0, %#r3, %#p1;\n";

static const char test_limit[] =
	"ld.param.u32 %#r1, [#launch+40];\n"
	"setp.lt.u32 %#p1, %#r0, %#r3;\n"
	"sub.u32 %#r0, %#r0, %#r3;\n"
	"add.u32 %#r0, %#r0, %#r1;\n"
	"setp.gt.u32 %#p2, %#r0, %#r2;\n"
	"or.pred %#p1, %#p1, %#p2;\n";

static unsigned int test_window(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at)
{
	unsigned int n = gsr_insert_text(p, f, at, test);

	if (p->modes)
		n += gsr_insert_text(p, f, at, test_modes);
	return n + gsr_insert_text(p, f, at, test_limit);
}

unsigned int gsr_look(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *tag, const char *inside)
{
	unsigned int n;

	n = gsr_insert_format(p, f, at, "setp.lt.u64 %%#p1, %%#d5, %%#d2;\n@%%#p1 bra $#%s_window;\n", tag);
	n += gsr_insert_text(p, f, at, gsr_not_first);
	n += gsr_insert_format(p, f, at, "@%%#p0 bra $#%s_window;\n", tag);
	n += gsr_insert_format(p, f, at, poll, tag, tag);
	n += gsr_insert_format(p, f, at, "$#%s_window:\n", tag);
	n += test_window(p, f, at);
	return n + gsr_insert_format(p, f, at, "@!%%#p1 bra $#%s;\n", inside);
}

static const char schedule[] =
	"ld.param.u64 %#d0, [#launch];\n"
	"ld.relaxed.gpu.global.v2.u64 {%#d1, %#d2}, [%#d0];\n"
	"mov.u32 %#r9, %laneid;\n"
	"mov.u64 %#d5, %globaltimer;\n";

/* %#r6: where in the control block this worker looks at the window, 0 at first */
static const char schedule_copies[] =
	"ld.param.u64 %#d0, [#launch];\n"
	"cvt.u64.u32 %#d1, %#r6;\n"
	"add.u64 %#d1, %#d1, %#d0;\n"
	"ld.relaxed.gpu.global.v2.u64 {%#d1, %#d2}, [%#d1];\n"
	"mov.u32 %#r9, %laneid;\n"
	"mov.u64 %#d5, %globaltimer;\n"
	"cvt.u32.u64 %#r7, %#d5;\n";

static const char unless_window[] =
	"ld.param.u32 %#r0, [#launch+60];\n"
	"and.b32 %#r0, %#r0, 1;\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#fetch;\n";

/*
 * A fetch is written in one piece, for the instruction caches, as all threads wait for it; what
 * happens now and then is behind the end (seldom()).
 */
static const char scheduled[] =
	"setp.ge.u64 %#p1, %#d5, %#d2;\n"
	"@%#p1 bra $#due;\n"
	"$#schedule_window:\n";

static const char stay[] =
	"@%#p1 bra $#excluded;\n"
	"$#fetch:\n";

static const char excluded[] =
	"$#excluded:\n"
	"mov.u32 %#r0, 1;\n"
	"st.shared.u32 [#task+80], %#r0;\n"
	"bra $#stop;\n";

/*
 * The ids of block-task %#d2: x fastest. Divided at a fetch only, and in 64 bits only where it must
 * be
 */
static const char divide[] =
	"ld.param.u32 %#r0, [#launch+24];\n"
	"ld.param.u32 %#r1, [#launch+28];\n"
	"cvt.u32.u64 %#r2, %#d2;\n"
	"mov.u32 %#r3, 0;\n"
	"mov.u32 %#r4, 0;\n"
	"cvt.u64.u32 %#d3, %#r0;\n"
	"setp.lt.u64 %#p1, %#d2, %#d3;\n"
	"@%#p1 bra $#ids;\n"
	"shr.u64 %#d4, %#d2, 32;\n"
	"setp.ne.u64 %#p1, %#d4, 0;\n"
	"@%#p1 bra $#wide;\n"
	"div.u32 %#r3, %#r2, %#r0;\n"
	"mul.lo.u32 %#r5, %#r3, %#r0;\n"
	"sub.u32 %#r2, %#r2, %#r5;\n"
	"setp.lt.u32 %#p1, %#r3, %#r1;\n"
	"@%#p1 bra $#ids;\n"
	"mov.u32 %#r4, %#r3;\n"
	"mov.u32 %#r3, 0;\n"
	"setp.eq.u32 %#p1, %#r1, 1;\n"
	"@%#p1 bra $#ids;\n"
	"mov.u32 %#r3, %#r4;\n"
	"div.u32 %#r4, %#r3, %#r1;\n"
	"mul.lo.u32 %#r5, %#r4, %#r1;\n"
	"sub.u32 %#r3, %#r3, %#r5;\n"
	"bra $#ids;\n"
	"$#wide:\n"
	"div.u64 %#d4, %#d2, %#d3;\n"
	"mul.lo.u64 %#d1, %#d4, %#d3;\n"
	"sub.u64 %#d1, %#d2, %#d1;\n"
	"cvt.u32.u64 %#r2, %#d1;\n"
	"cvt.u64.u32 %#d3, %#r1;\n"
	"div.u64 %#d1, %#d4, %#d3;\n"
	"cvt.u32.u64 %#r4, %#d1;\n"
	"mul.lo.u64 %#d1, %#d1, %#d3;\n"
	"sub.u64 %#d1, %#d4, %#d1;\n"
	"cvt.u32.u64 %#r3, %#d1;\n"
	"bra $#ids;\n";

static const char tell_resumable[] =
	"st.shared.v4.u32 [#task], {%#r2, %#r3, %#r4, %#r6};\n"
	"cvt.u64.u32 %#d3, %#r6;\n";

static const char stop_resumable[] =
	"bra $#wait;\n"
	"$#stop:\n"
	"mov.u32 %#r0, 0;\n"
	"st.shared.u32 [#task+12], %#r0;\n"
	"$#wait:\n";

/* Counted while the other threads may still come */
static const char ran[] =
	"ld.shared.u64 %#d4, [#task+40];\n"
	"add.u64 %#d4, %#d4, %#d3;\n"
	"st.shared.u64 [#task+40], %#d4;\n";

/*
 * Ids, and how many follow each other from there; none: leave. %#cn is 0 here, or 1, which says
 * where the last were told
 */
static const char tell_ids[] =
	"bra $#tell_ids;\n"
	"$#stop:\n"
	"mov.u32 %#r6, 0;\n"
	"$#tell_ids:\n"
	"cvt.u64.u32 %#d3, %#r6;\n"
	"shl.b32 %#r6, %#r6, 1;\n"
	"st.shared.v4.u32 [#task], {%#r2, %#r3, %#r4, %#r6};\n";

static const char tell_ids_aside[] =
	"bra $#tell_ids;\n"
	"$#stop:\n"
	"mov.u32 %#r6, 0;\n"
	"$#tell_ids:\n"
	"cvt.u64.u32 %#d3, %#r6;\n"
	"shl.b32 %#r6, %#r6, 1;\n"
	"xor.b32 %#r0, %#cn, 1;\n"
	"or.b32 %#r6, %#r6, %#r0;\n"
	"mov.u32 %#r1, #task;\n"
	"mad.lo.u32 %#r1, %#r0, 96, %#r1;\n"
	"st.shared.v4.u32 [%#r1], {%#r2, %#r3, %#r4, %#r6};\n";

/*
 * A warp may come in pieces: out of the body, or because one of its lanes was away. Aligned
 * barriers need it whole, and so do instructions of whole warps at the start of the body.
 */
static const char meet[] =
	"bar.warp.sync -1;\n"
	"bar.sync %d;\n";

static const char read_ids[] =
	"ld.shared.v4.u32 {%#cx, %#cy, %#cz, %#cn}, [#task];\n"
	"setp.eq.u32 %#p0, %#cn, 0;\n"
	"@%#p0 bra $#leave;\n"
	"$#body:\n";

static const char read_ids_aside[] =
	"xor.b32 %#r0, %#cn, 1;\n"
	"mov.u32 %#r1, #task;\n"
	"mad.lo.u32 %#r1, %#r0, 96, %#r1;\n"
	"ld.shared.v4.u32 {%#cx, %#cy, %#cz, %#cn}, [%#r1];\n"
	"setp.lt.u32 %#p0, %#cn, 2;\n"
	"@%#p0 bra $#leave;\n"
	"$#body:\n";

/* Before the next block-task of the same fetch; before the next fetch there is another barrier */
static const char meet_between[] =
	"bar.warp.sync -1;\n"
	"setp.ge.u32 %%#p0, %%#cn, 4;\n"
	"@%%#p0 bar.sync %d;\n";

/* Ids by component: a row of the stripe further, or to the next block-task, with carry */
static const char *const count_up[] = {
	"ld.param.u32 %#r0, [#launch+96];\n"
	"add.u32 %#cx, %#cx, %#r0;\n"
	"ld.param.u32 %#r0, [#launch+24];\n"
	"setp.ge.u32 %#p1, %#cx, %#r0;\n"
	"sub.u32 %#r0, %#cx, %#r0;\n"
	"selp.u32 %#cx, %#r0, %#cx, %#p1;\n",
	"ld.param.u32 %#r0, [#launch+100];\n"
	"selp.u32 %#r1, 1, 0, %#p1;\n"
	"add.u32 %#cy, %#cy, %#r1;\n"
	"add.u32 %#cy, %#cy, %#r0;\n"
	"ld.param.u32 %#r0, [#launch+28];\n"
	"setp.ge.u32 %#p1, %#cy, %#r0;\n"
	"sub.u32 %#r0, %#cy, %#r0;\n"
	"selp.u32 %#cy, %#r0, %#cy, %#p1;\n",
	"ld.param.u32 %#r0, [#launch+104];\n"
	"selp.u32 %#r1, 1, 0, %#p1;\n"
	"add.u32 %#cz, %#cz, %#r1;\n"
	"add.u32 %#cz, %#cz, %#r0;\n",
};

/*
 * An inner loop with its test at the bottom. With the test before the ids are counted up ptxas 13.0
 * lost a place where the lanes of a warp come together in a body (20 times slower); with one loop
 * for all it kept that, and made slower code.
 */
static const char again[] =
	"setp.ge.u32 %#p1, %#cn, 2;\n"
	"@%#p1 bra.uni $#body;\n";

static const char publish[] =
	"@%#p0 bra $#published;\n"
	"st.shared.v4.u32 [#task], {%#cx, %#cy, %#cz, %#cn};\n"
	"$#published:\n";

static const char leave[] =
	"@%#p0 bra $#out;\n"
	"ld.param.u64 %#d0, [#launch];\n"
	"ld.param.u64 %#d1, [#launch+16];\n";

/* A resumable twin's record that holds nothing */
static const char give_back[] =
	"ld.shared.v2.u32 {%#r0, %#r1}, [#task+104];\n"
	"setp.eq.u32 %#p1, %#r1, 0;\n"
	"@%#p1 bra $#given;\n"
	"not.b32 %#r1, %#r1;\n"
	"ld.param.u64 %#d2, [#launch+64];\n"
	"mul.wide.u32 %#d3, %#r0, 4;\n"
	"add.u64 %#d2, %#d2, %#d3;\n"
	"red.release.gpu.global.and.b32 [%#d2+128], %#r1;\n"
	"$#given:\n";

static const char finish[] =
	"ld.shared.u32 %#r0, [#task+88];\n"
	"ld.shared.u32 %#r1, [#task+68];\n"
	"cvt.u64.u32 %#d2, %#r0;\n"
	"add.u64 %#d2, %#d2, %#d0;\n"
	"mov.u64 %#d3, 1;\n"
	"shl.b64 %#d3, %#d3, %#r1;\n"
	"not.b64 %#d3, %#d3;\n";

static const char vacate[] =
	"red.relaxed.gpu.global.and.b64 [%#d2], %#d3;\n";

static const char vacate_modes[] =
	"ld.param.u32 %#r0, [#launch+60];\n"
	"and.b32 %#r0, %#r0, 2;\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#vacate;\n"
	"red.relaxed.gpu.global.and.b64 [%#d2], %#d3;\n"
	"bra $#vacated;\n"
	/*
	 * with the SM's last worker its number goes, in one step: who comes then is the first again
	 */
	"$#vacate:\n"
	"ld.relaxed.gpu.global.u64 %#d4, [%#d2];\n"
	"$#vacating:\n"
	"and.b64 %#d5, %#d4, %#d3;\n"
	"cvt.u32.u64 %#r1, %#d5;\n"
	"setp.eq.u32 %#p1, %#r1, 0;\n"
	"selp.b64 %#d5, 0, %#d5, %#p1;\n"
	"atom.relaxed.gpu.global.cas.b64 %#d6, [%#d2], %#d4, %#d5;\n"
	"setp.ne.u64 %#p2, %#d6, %#d4;\n"
	"mov.u64 %#d4, %#d6;\n"
	"@%#p2 bra $#vacating;\n"
	"@!%#p1 bra $#vacated;\n"
	"shr.u64 %#d4, %#d4, 32;\n"
	"cvt.u32.u64 %#r1, %#d4;\n"
	"sub.u32 %#r1, %#r1, 1;\n"
	"setp.gt.u32 %#p1, %#r1, 1023;\n"
	"@%#p1 bra $#vacated;\n"
	"shr.u32 %#r0, %#r1, 6;\n"
	"mul.wide.u32 %#d2, %#r0, 8;\n"
	"add.u64 %#d2, %#d2, %#d0;\n"
	"and.b32 %#r1, %#r1, 63;\n"
	"mov.u64 %#d3, 1;\n"
	"shl.b64 %#d3, %#d3, %#r1;\n"
	"not.b64 %#d3, %#d3;\n"
	"red.relaxed.gpu.global.and.b64 [%#d2+384], %#d3;\n"
	"$#vacated:\n";

static const char count_done[] =
	"fence.acq_rel.sys;\n"
	"ld.shared.v2.u64 {%#d3, %#d2}, [#task+32];\n"
	"setp.eq.u64 %#p1, %#d2, 0;\n"
	"@%#p1 bra $#left;\n"
	"atom.relaxed.gpu.global.add.u64 %#d4, [%#d0+256], %#d2;\n"
	"add.u64 %#d4, %#d4, %#d2;\n"
	"setp.ne.u64 %#p1, %#d4, %#d3;\n"
	"@%#p1 bra $#left;\n"
	/* the last one: takes in what the others wrote, tells, opens the gate */
	"fence.acq_rel.sys;\n"
	"mov.u64 %#d5, %globaltimer;\n"
	"st.relaxed.sys.global.u64 [%#d1+48], %#d5;\n"
	"ld.param.u32 %#r0, [#launch+36];\n"
	"st.relaxed.sys.global.u32 [%#d1+56], %#r0;\n"
	"fence.acq_rel.sys;\n"
	"st.relaxed.sys.global.u32 [%#d0+264], %#r0;\n"
	"$#left:\n"
	"ld.shared.u32 %#r0, [#task+80];\n"
	"setp.eq.u32 %#p1, %#r0, 0;\n";

static const char not_early[] =
	"@%#p1 bra $#out;\n";

/* With ranges all are counted, as of resumable twins */
static const char not_early_modes[] =
	"@!%#p1 bra $#count;\n"
	"ld.param.u64 %#d2, [#launch+88];\n"
	"setp.eq.u64 %#p2, %#d2, 0;\n"
	"@%#p2 bra $#out;\n"
	"$#count:\n";

/* Counted in device memory: an atomic on host memory takes about 1 us, one after another */
static const char counted[] =
	"mov.u32 %#r0, 1;\n"
	"red.relaxed.gpu.global.add.u32 [%#d0+272], %#r0;\n";

static const char told[] =
	"@!%#p1 bra $#tell;\n";

/*
 * While block-tasks wait to be resumed, or in a range that was left, the launcher must know how
 * many workers there are, so all are counted; who leaves for want of work tells only if some wait.
 * It looks after it is counted, and who leaves some tells after that.
 */
static const char some_wait[] =
	"ld.param.u64 %#d2, [#launch+64];\n"
	"setp.eq.u64 %#p1, %#d2, 0;\n"
	"@%#p1 bra $#none;\n"
	"fence.sc.gpu;\n"
	"ld.relaxed.gpu.global.u32 %#r0, [%#d2];\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#tell;\n"
	"$#none:\n";

/*
 * One at a time stores the count, and looks again when it is done: stores to the host take about 1
 * us, one after another. Who comes meanwhile leaves it to that one: its own exchange comes before
 * that one's, which takes in what it has counted.
 */
static const char tell[] =
	"$#tell:\n"
	"mov.u32 %#r0, 1;\n"
	"fence.acq_rel.gpu;\n"
	"atom.relaxed.gpu.global.exch.b32 %#r2, [%#d0+276], %#r0;\n"
	"setp.ne.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#out;\n"
	"fence.acq_rel.gpu;\n"
	"ld.relaxed.gpu.global.u32 %#r1, [%#d0+272];\n"
	"st.relaxed.sys.global.u32 [%#d1+12], %#r1;\n"
	"fence.sc.sys;\n"
	"mov.u32 %#r0, 0;\n"
	"atom.relaxed.gpu.global.exch.b32 %#r2, [%#d0+276], %#r0;\n"
	"fence.acq_rel.gpu;\n"
	"ld.relaxed.gpu.global.u32 %#r0, [%#d0+272];\n"
	"setp.ne.u32 %#p1, %#r1, %#r0;\n"
	"@%#p1 bra $#tell;\n"
	"$#out:\n"
	"ret;\n";

/* Registers and state of a resumable twin */
static const char resumable[] =
	".reg .pred %#q; .reg .b16 %#h; .reg .b32 %#s; .reg .b32 %#c; .reg .b32 %#n;\n"
	"@%#p0 bra $#next;\n"
	"mov.u32 %#r0, 0;\n"
	"st.shared.v4.u32 [#task+96], {%#r0, %#r0, %#r0, %#r0};\n"
	"st.shared.v4.u32 [#task+112], {%#r0, %#r0, %#r0, %#r0};\n";

static const char read_resumable[] =
	"ld.shared.u32 %#r0, [#task+12];\n"
	"setp.eq.u32 %#p0, %#r0, 0;\n"
	"@%#p0 bra $#leave;\n"
	"setp.eq.u32 %#p0, %#r0, " GSR_STR(GSR_TASK_RESUME) ";\n";

/* suspend.c: the first warp counts in odd numbers */
static const char unlooked[] =
	"mov.u32 %#r0, %tid.z;\n"
	"mov.u32 %#r1, %ntid.y;\n"
	"mov.u32 %#r2, %tid.y;\n"
	"mad.lo.u32 %#r0, %#r0, %#r1, %#r2;\n"
	"mov.u32 %#r1, %ntid.x;\n"
	"mov.u32 %#r2, %tid.x;\n"
	"mad.lo.u32 %#r0, %#r0, %#r1, %#r2;\n"
	"setp.lt.u32 %#p1, %#r0, 32;\n";

static const char begin[] =
	"@%#p0 bra $#restore;\n";

/* By way of the meeting */
static const char begin_early[] =
	"selp.b32 %#s, " GSR_STR(GSR_RESUME_BACK) ", " GSR_STR(GSR_RESUME_START) ", %#p0;\n"
	"bra $#meet;\n"
	"$#start:\n";

/* From one block-task to the next of the same fetch, or to the next fetch */
static unsigned int advance(struct gsr_pass *p, struct gsr_function *f, const struct gsr_cleanup *cleanup, const struct gsr_ids *ids, int id)
{
	unsigned int n, i;

	n = gsr_insert_text(p, f, NULL, "$#done:\n");
	if (cleanup->mbarriers || ids->shared)
		n += gsr_insert_text(p, f, NULL, gsr_not_first);
	if (cleanup->mbarriers) {
		n += gsr_insert_text(p, f, NULL, "@%#p0 bra $#unmade;\n");
		n += gsr_insert_text(p, f, NULL, gsr_mbarriers_down);
		n += gsr_insert_text(p, f, NULL, "$#unmade:\n");
	}
	for (i = 0; i < ids->held && i < GSR_IDS_ALL; i++)
		n += gsr_insert_text(p, f, NULL, count_up[i]);
	n += gsr_insert_text(p, f, NULL, "sub.u32 %#cn, %#cn, 2;\n");
	if (ids->shared)
		n += gsr_insert_text(p, f, NULL, publish);
	if (cleanup->mbarriers || ids->shared)
		n += gsr_insert_format(p, f, NULL, meet, id);
	n += gsr_insert_text(p, f, NULL, again);
	return n + gsr_insert_text(p, f, NULL, "bra.uni $#next;\n");
}

static struct gsr_stmt *first_code(struct gsr_stmt *s)
{
	while (s && s->kind == GSR_STMT_VAR)
		s = s->next;
	return s;
}

static unsigned int claim_position(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at)
{
	unsigned int n = gsr_insert_text(p, f, at, start);

	if (p->modes)
		n += gsr_insert_text(p, f, at, start_modes);
	n += gsr_insert_text(p, f, at, claim_place);
	if (p->modes)
		n += gsr_insert_text(p, f, at, claim_number);
	n += gsr_insert_text(p, f, at, position);
	if (p->modes)
		n += gsr_insert_text(p, f, at, index_position);
	n += gsr_insert_text(p, f, at, positioned);
	if (p->modes)
		n += gsr_insert_text(p, f, at, first_range);
	return n + gsr_insert_text(p, f, at, started);
}

static unsigned int before(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites, const struct gsr_cleanup *cleanup,
			   const struct gsr_ids *ids, int id, const struct gsr_resume *r)
{
	struct gsr_stmt *body = f->first, *code;
	unsigned int n = 0;

	if (cleanup->alloca)
		n += gsr_insert(p, f, body, ".reg .b64 %#sp; stacksave.u64 %#sp;");
	body = f->first;
	gsr_insert_text(p, f, body, declarations);
	if (cleanup->warpsync)
		n += gsr_insert_text(p, f, body, cleanup->warpsync);
	n += gsr_insert_text(p, f, body, gsr_not_first);
	if (r)
		n += gsr_insert_text(p, f, body, resumable);
	else
		n += gsr_insert_text(p, f, body, "@%#p0 bra $#started;\n");
	n += claim_position(p, f, body);
	if (cleanup->mbarriers)
		n += gsr_insert_text(p, f, body, gsr_mbarriers_none);
	if (cleanup->swbarrier)
		n += gsr_insert_text(p, f, body, gsr_swbarrier_init);
	if (!r) {
		n += gsr_insert_text(p, f, body, warps);
		n += gsr_insert_format(p, f, body, meet, id);
	}
	n += gsr_insert_text(p, f, body, "$#next:\n");
	if (r)
		n += gsr_insert_text(p, f, body, gsr_not_first);
	n += gsr_insert_text(p, f, body, r ? "@%#p0 bra $#wait;\n" : first_come);
	n += gsr_insert_text(p, f, body, "$#schedule:\n");
	if (!r)
		n += gsr_insert_text(p, f, body, gsr_queue_rest);
	n += gsr_insert_text(p, f, body, r ? schedule : schedule_copies);
	if (!r)
		n += gsr_insert_text(p, f, body, gsr_queue_count);
	n += gsr_insert_text(p, f, body, unless_window);
	n += gsr_insert_text(p, f, body, scheduled);
	n += test_window(p, f, body);
	n += gsr_insert_text(p, f, body, stay);
	if (r)
		n += gsr_resume_fetch(p, f, body);
	n += gsr_queue_take(p, f, body, r);
	if (r) {
		n += gsr_insert_text(p, f, body, tell_resumable);
		n += gsr_insert_text(p, f, body, ran);
		n += gsr_resume_arm(p, f, body);
	}
	n += gsr_insert_text(p, f, body, r ? stop_resumable : ids->aside ? tell_ids_aside : tell_ids);
	if (!r) {
		n += gsr_insert_text(p, f, body, ran);
		n += gsr_insert_text(p, f, body, "$#wait:\n");
	}
	n += gsr_insert_format(p, f, body, meet, id);
	n += gsr_insert_text(p, f, body, r ? read_resumable : ids->aside ? read_ids_aside : read_ids);
	/* each behind the one before, what sends threads on as the last */
	code = first_code(body);
	if (!r && sites->n)
		n += gsr_insert(p, f, code,
				gsr_sprintf(p->arena, "%smov.u32 %%#s, %u;\nbra $#meet;\n$#site_%u:\n", sites->red ? "mov.u32 %#v, 0;\n" : "",
					    sites->n, sites->n));
	if (r) {
		n += gsr_insert_text(p, f, code, unlooked);
		n += gsr_insert_format(p, f, code, "selp.u32 %%#n, %u, %u, %%#p1;\n", r->look + 1, r->look);
	}
	if (r && r->early && r->red)
		n += gsr_insert_text(p, f, code, "mov.u32 %#v, 0;\n");
	if (r)
		n += gsr_insert_text(p, f, code, r->early ? begin_early : begin);
	return n;
}

/* What a fetch comes to now and then only */
static unsigned int seldom(struct gsr_pass *p, struct gsr_function *f, bool resumable)
{
	unsigned int n = gsr_insert_text(p, f, NULL, "$#due:\n");

	n += resumable ? gsr_insert_format(p, f, NULL, poll, "schedule", "schedule") : gsr_insert_text(p, f, NULL, poll_copies);
	if (resumable)
		n += gsr_insert_text(p, f, NULL, "bra $#schedule_window;\n");
	n += gsr_insert_text(p, f, NULL, excluded);
	n += gsr_queue_seldom(p, f, resumable);
	n += gsr_insert_text(p, f, NULL, divide);
	return p->modes ? n + gsr_insert_text(p, f, NULL, gsr_static_take) : n;
}

unsigned int gsr_loop(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites, const struct gsr_cleanup *cleanup,
		      const struct gsr_ids *ids, int id, const struct gsr_resume *r)
{
	unsigned int n = before(p, f, sites, cleanup, ids, id, r);

	n += gsr_insert_text(p, f, NULL, "$#end:\n");
	if (cleanup->alloca)
		n += gsr_insert_text(p, f, NULL, "stackrestore.u64 %#sp;\n");
	if (cleanup->cp_async)
		n += gsr_insert_text(p, f, NULL, "cp.async.wait_all;\n");
	/* what the other proxy has read, and what it is to see */
	if (cleanup->bulk)
		n += gsr_insert_text(p, f, NULL, "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nfence.proxy.async;\n");
	if (r)
		n += gsr_resume_tail(p, f, r);
	else if (sites->n || sites->warps)
		n += gsr_meeting(p, f, sites, ids->alone ? -1 : id);
	else if (ids->alone)
		n += gsr_insert_text(p, f, NULL, "bar.warp.sync -1;\n");
	else
		n += gsr_insert_format(p, f, NULL, ids->aside ? meet_between : meet, id);
	if (!r)
		n += advance(p, f, cleanup, ids, id);
	n += gsr_insert_text(p, f, NULL, "$#leave:\n");
	n += gsr_insert_text(p, f, NULL, gsr_not_first);
	n += gsr_insert_text(p, f, NULL, leave);
	if (r)
		n += gsr_insert_text(p, f, NULL, give_back);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, gsr_static_leave);
	n += gsr_insert_text(p, f, NULL, finish);
	n += gsr_insert_text(p, f, NULL, p->modes ? vacate_modes : vacate);
	n += gsr_insert_text(p, f, NULL, count_done);
	if (!r)
		n += gsr_insert_text(p, f, NULL, p->modes ? not_early_modes : not_early);
	n += gsr_insert_text(p, f, NULL, counted);
	if (r || p->modes)
		n += gsr_insert_text(p, f, NULL, told);
	if (r)
		n += gsr_insert_text(p, f, NULL, some_wait);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, gsr_static_waits);
	else if (r)
		n += gsr_insert_text(p, f, NULL, "bra $#out;\n");
	n += gsr_insert_text(p, f, NULL, tell);
	return n + seldom(p, f, r);
}
