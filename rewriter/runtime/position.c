// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A worker's position, by which the window includes or excludes it: claimed when the worker starts,
 * released when it leaves.
 *
 * Offsets in the text as in loop.c.
 *
 * In: a place in the loop. Out: the code there, executed by thread 0. The claim expects nothing;
 * the release expects the control block in %#d0. Assumes the registers that loop.c declares.
 */
#include <stddef.h>
#include "runtime.h"

_Static_assert(offsetof(struct gsr_launch, stat) == 16 &&
		       offsetof(struct gsr_launch, weight) == 40 &&
		       offsetof(struct gsr_launch, flags) == 60 &&
		       offsetof(struct gsr_launch, first) == 84 &&
		       GSR_LAUNCH_BY_INDEX == 4 && GSR_LAUNCH_WHOLE == 16,
	       "offsets below");
_Static_assert(offsetof(struct gsr_control, started) == 268 &&
		       offsetof(struct gsr_control, ranks) == 384 &&
		       offsetof(struct gsr_control, sm) == 512,
	       "offsets below");

/*
 * A worker claims its position: by rank a bit of its SM's word, by index a bit of one of these
 * words. It keeps the word's offset and the bit's number (64: none) to release them at the end.
 *
 * Positions are of ranks, which a task gives to the SMs that it is on, and not of %smid: that is a
 * virtual number, and one that two clients of an MPS server see can be two SMs' (H100, H200). Two
 * clients whose windows took different numbers drove each other away for good.
 */
static const char load_launch[] =
	"ld.param.u64 %#d0, [#launch];\n"
	"ld.param.u32 %#r4, [#launch+40];\n"
	"ld.param.u32 %#r5, [#launch+60];\n";

static const char start_modes[] =
	"and.b32 %#r0, %#r5, 4;\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#by_index;\n";

static const char claim_place[] =
	/* the lowest free bit of this SM */
	"mov.u32 %#r0, %smid;\n"
	"and.b32 %#r0, %#r0, 1023;\n"
	"mul.wide.u32 %#d2, %#r0, 8;\n"
	"add.u64 %#d2, %#d2, %#d0;\n"
	"mov.u32 %#r1, 0;\n"
	"and.b32 %#r2, %#r5, 16;\n"
	"setp.eq.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#claim;\n"
	/* workers that start together try different bits: begin at %ctaid.x / SMs */
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
	/* %#r2 is 0 if no bit was free: none is claimed */
	"bfind.u32 %#r2, %#r2;\n"
	"st.shared.u32 [#task+68], %#r2;\n"
	"min.u32 %#r3, %#r2, 31;\n"
	"shl.b32 %#r2, %#r0, 3;\n"
	"add.u32 %#r2, %#r2, 512;\n"
	"st.shared.u32 [#task+88], %#r2;\n";

static const char claim_rank[] =
	/* the task's first worker on this SM claims a rank for it, the others poll for that */
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
	"add.u64 %#d3, %#d0, 384;\n";

static const char by_index[] =
	"bra $#number;\n"
	"$#by_index:\n"
	"ld.param.u32 %#r0, [#launch+84];\n"
	"ld.relaxed.gpu.global.u64 %#d4, [%#d0];\n"
	"cvt.u32.u64 %#r1, %#d4;\n"
	"min.u32 %#r1, %#r1, 1048576;\n"
	"div.u32 %#r1, %#r1, %#r4;\n"
	"add.u64 %#d3, %#d0, 512;\n"
	"$#number:\n";

static const char claim_number[] =
	/*
	 * Claims a free number below %#r1: a clear bit of the words at %#d3. The search starts at
	 * %#r0 + %ctaid.x and wraps, so workers that start together do not compete for one bit. If
	 * none is free the number is one that no window includes.
	 */
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
	/* the first word is searched twice: its upper bits first, its lower ones last */
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
	"$#numbered:\n";

static const char is_index[] =
	"and.b32 %#r2, %#r5, 4;\n"
	"setp.ne.u32 %#p1, %#r2, 0;\n"
	"@%#p1 bra $#index;\n";

static const char publish_rank[] =
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
	/* is this the first worker of the task? One worker of each launch asks */
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

unsigned int gsr_position_claim(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at)
{
	unsigned int n = gsr_insert_text(p, f, at, load_launch);

	if (p->modes)
		n += gsr_insert_text(p, f, at, start_modes);
	n += gsr_insert_text(p, f, at, claim_place);
	n += gsr_insert_text(p, f, at, claim_rank);
	if (p->modes)
		n += gsr_insert_text(p, f, at, by_index);
	n += gsr_insert_text(p, f, at, claim_number);
	if (p->modes)
		n += gsr_insert_text(p, f, at, is_index);
	n += gsr_insert_text(p, f, at, publish_rank);
	n += gsr_insert_text(p, f, at, position);
	if (p->modes)
		n += gsr_insert_text(p, f, at, index_position);
	n += gsr_insert_text(p, f, at, positioned);
	if (p->modes)
		n += gsr_insert_text(p, f, at, first_range);
	return n + gsr_insert_text(p, f, at, started);
}

static const char load_position_bit[] =
	"ld.shared.u32 %#r0, [#task+88];\n"
	"ld.shared.u32 %#r1, [#task+68];\n"
	"cvt.u64.u32 %#d2, %#r0;\n"
	"add.u64 %#d2, %#d2, %#d0;\n"
	"mov.u64 %#d3, 1;\n"
	"shl.b64 %#d3, %#d3, %#r1;\n"
	"not.b64 %#d3, %#d3;\n";

static const char vacate_index[] =
	"ld.param.u32 %#r0, [#launch+60];\n"
	"and.b32 %#r0, %#r0, 4;\n"
	"setp.eq.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#vacate;\n"
	"red.relaxed.gpu.global.and.b64 [%#d2], %#d3;\n"
	"bra $#vacated;\n";

/*
 * The SM's last worker releases its rank too, in one step: the next worker of this SM is the first
 * again.
 */
static const char vacate[] =
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

unsigned int gsr_position_release(struct gsr_pass *p, struct gsr_function *f)
{
	unsigned int n = gsr_insert_text(p, f, NULL, load_position_bit);

	if (p->modes)
		n += gsr_insert_text(p, f, NULL, vacate_index);
	return n + gsr_insert_text(p, f, NULL, vacate);
}
