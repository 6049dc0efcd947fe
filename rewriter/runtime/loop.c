// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The worker's loop around the body (abi.h). State that must survive from one fetch to the next is
 * in shared memory; only the ids that the kernel reads, and the number of block-tasks left in the
 * batch, are held in registers across the body.
 *
 * Offsets in the text: #launch is struct gsr_launch, %#d0 points to struct gsr_control, #task is
 * described by GSR_TASK_*; of the page's slot (struct gsched_cl_slot) left +12, seen_limit +16,
 * start_ns +40, end_ns +48, finished +56.
 *
 * Cold paths are placed out of line (insert_cold_paths()): fetching is single-threaded and on the
 * thread block's critical path.
 *
 * In: a kernel whose body ends at $#end and reads its ids where the passes say. Out: the twin.
 * Assumes that all passes of transform/ have run.
 */
#include <stddef.h>
#include "runtime.h"

_Static_assert(offsetof(struct gsr_launch, window) == 8 &&
		       offsetof(struct gsr_launch, stat) == 16 &&
		       offsetof(struct gsr_launch, seq) == 36 &&
		       offsetof(struct gsr_launch, weight) == 40 &&
		       offsetof(struct gsr_launch, poll_ns) == 44 &&
		       offsetof(struct gsr_launch, fetch_ns) == 48 &&
		       offsetof(struct gsr_launch, fetch_max) == 52 &&
		       offsetof(struct gsr_launch, workers) == 56 &&
		       offsetof(struct gsr_launch, flags) == 60 &&
		       offsetof(struct gsr_launch, first) == 84 && GSR_LAUNCH_BY_INDEX == 4 && GSR_LAUNCH_WHOLE == 16,
	       "offsets below");
_Static_assert(offsetof(struct gsr_control, next_poll) == 8 &&
		       offsetof(struct gsr_control, started) == 268 &&
		       offsetof(struct gsr_control, ranks) == 384 &&
		       offsetof(struct gsr_control, sm) == 512 &&
		       offsetof(struct gsr_control, copy) == 84 * 128 &&
		       sizeof(((struct gsr_control *)NULL)->copy[0]) == 128 &&
		       offsetof(struct gsr_launch, last_copy) == 156 && GSR_TASK_RELAY == 120,
	       "offsets below");

static const char declarations[] =
	".reg .pred %#p<3>; .reg .b32 %#r<11>; .reg .b64 %#d<8>; .reg .f32 %#f<3>;"
	".reg .b32 %#cx, %#cy, %#cz, %#cn;";

/* Sets %#p0 unless the thread is thread 0 */
const char gsr_not_first[] =
	"mov.u32 %#r0, %tid.x;\n"
	"mov.u32 %#r1, %tid.y;\n"
	"mov.u32 %#r2, %tid.z;\n"
	"or.b32 %#r0, %#r0, %#r1;\n"
	"or.b32 %#r0, %#r0, %#r2;\n"
	"setp.ne.u32 %#p0, %#r0, 0;\n";

/* The number of warps, by which first_come finds the first to arrive; and which copy to poll */
static const char count_warps[] =
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

/* The first warp to finish the last block-task of a batch fetches the next batch */
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
 * %#d0 is the control block, %#d1 and %#d2 its first words, %#d5 the time: the relayed window has
 * expired at %#d2. The worker that wins the swap refreshes it from the page.
 */
static const char poll_relay[] =
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
 * The same for workers that poll copies of these words. The worker that claims the refresh first
 * gives the copies staggered expiry times, so that usually one copy expires at a time, and the next
 * one if no worker polls that. The swap of the relay ensures that one worker reads the page in
 * poll_ns.
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
	 * A worker's first poll reads the relay, which the launcher wrote for its wing. It
	 * stores that window to its copy, which it polls from then on. With GSR_LAUNCH_WHOLE the
	 * copies are valid from the start.
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

/* Sets %#p1 if the window %#d1 excludes this worker: its position + weight is above it */
static const char test_window[] =
	"ld.shared.u32 %#r0, [#task+64];\n"
	"cvt.u32.u64 %#r2, %#d1;\n"
	"ld.param.u32 %#r1, [#launch+40];\n"
	"add.u32 %#r0, %#r0, %#r1;\n"
	"setp.gt.u32 %#p1, %#r0, %#r2;\n";

unsigned int gsr_look(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
		      const char *tag, const char *inside)
{
	unsigned int n;

	n = gsr_insert_format(p, f, at,
			      "setp.lt.u64 %%#p1, %%#d5, %%#d2;\n@%%#p1 bra $#%s_window;\n", tag);
	n += gsr_insert_text(p, f, at, gsr_not_first);
	n += gsr_insert_format(p, f, at, "@%%#p0 bra $#%s_window;\n", tag);
	n += gsr_insert_format(p, f, at, poll_relay, tag, tag);
	n += gsr_insert_format(p, f, at, "$#%s_window:\n", tag);
	n += gsr_insert_text(p, f, at, test_window);
	return n + gsr_insert_format(p, f, at, "@!%%#p1 bra $#%s;\n", inside);
}

static const char schedule[] =
	"ld.param.u64 %#d0, [#launch];\n"
	"ld.relaxed.gpu.global.v2.u64 {%#d1, %#d2}, [%#d0];\n"
	"mov.u32 %#r9, %laneid;\n"
	"mov.u64 %#d5, %globaltimer;\n";

/* %#r6: offset in the control block of the copy that this worker polls; 0: the relay, at first */
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

/* The hot path of a fetch is contiguous, for the instruction caches, as all threads wait for it */
static const char test_expiry[] =
	"setp.ge.u64 %#p1, %#d5, %#d2;\n"
	"@%#p1 bra $#due;\n"
	"$#schedule_window:\n";

static const char leave_if_excluded[] =
	"@%#p1 bra $#excluded;\n"
	"$#fetch:\n";

static const char excluded[] =
	"$#excluded:\n"
	"mov.u32 %#r0, 1;\n"
	"st.shared.u32 [#task+80], %#r0;\n"
	"bra $#stop;\n";

/*
 * Divides the ids out of the block-task's number %#d2, x fastest; once per batch, and in 64 bits
 * only if necessary
 */
static const char divide_ids[] =
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

/* Counts the batch, while the other threads are still on their way */
static const char count_ran[] =
	"ld.shared.u64 %#d4, [#task+40];\n"
	"add.u64 %#d4, %#d4, %#d3;\n"
	"st.shared.u64 [#task+40], %#d4;\n";

/*
 * Publishes the ids and the batch size; 0: leave. %#cn is 0 here, or 1, which tells where the ids
 * were published last.
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
 * A warp may be diverged here, by the body or because one of its lanes fetched. Aligned barriers
 * need it converged, and so do warp-wide instructions at the start of the body.
 */
static const char converge_and_sync[] =
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

/* Between block-tasks of one batch; in front of the next fetch there is another barrier */
static const char sync_between[] =
	"bar.warp.sync -1;\n"
	"setp.ge.u32 %%#p0, %%#cn, 4;\n"
	"@%%#p0 bar.sync %d;\n";

/* Advances the ids, by component: to the next row of the stripe or block-task, with carry */
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
 * An inner loop with its test at the bottom. With the test in front of the increments ptxas 13.0
 * lost a reconvergence point of a body (20 times slower); with one loop for all it kept that point
 * but made slower code.
 */
static const char repeat_body[] =
	"setp.ge.u32 %#p1, %#cn, 2;\n"
	"@%#p1 bra.uni $#body;\n";

/*
 * A grid always has blocks, so this is an unconditional branch. ptxas cannot know that: a way from
 * the body to the end, too, makes it keep reconvergence points of loops in the body that it
 * otherwise drops (18 times slower).
 */
static const char fetch_again[] =
	"ld.param.u32 %#r0, [#launch+24];\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra.uni $#next;\n"
	"bra.uni $#leave;\n";

static const char publish_ids[] =
	"@%#p0 bra $#published;\n"
	"st.shared.v4.u32 [#task], {%#cx, %#cy, %#cz, %#cn};\n"
	"$#published:\n";

static const char load_for_leave[] =
	"@%#p0 bra $#out;\n"
	"ld.param.u64 %#d0, [#launch];\n"
	"ld.param.u64 %#d1, [#launch+16];\n";

/* Releases an unused record of a resumable twin */
static const char release_record[] =
	"ld.shared.v2.u32 {%#r0, %#r1}, [#task+104];\n"
	"setp.eq.u32 %#p1, %#r1, 0;\n"
	"@%#p1 bra $#given;\n"
	"not.b32 %#r1, %#r1;\n"
	"ld.param.u64 %#d2, [#launch+64];\n"
	"mul.wide.u32 %#d3, %#r0, 4;\n"
	"add.u64 %#d2, %#d2, %#d3;\n"
	"red.release.gpu.global.and.b32 [%#d2+128], %#r1;\n"
	"$#given:\n";

static const char count_done[] =
	"fence.acq_rel.sys;\n"
	"ld.shared.v2.u64 {%#d3, %#d2}, [#task+32];\n"
	"setp.eq.u64 %#p1, %#d2, 0;\n"
	"@%#p1 bra $#left;\n"
	"atom.relaxed.gpu.global.add.u64 %#d4, [%#d0+256], %#d2;\n"
	"add.u64 %#d4, %#d4, %#d2;\n"
	"setp.ne.u64 %#p1, %#d4, %#d3;\n"
	"@%#p1 bra $#left;\n"
	/* the last worker: acquires what the others wrote, reports the end, opens the gate */
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

static const char skip_count[] =
	"@%#p1 bra $#out;\n";

/* With static ranges every worker is counted, as in resumable twins */
static const char skip_count_modes[] =
	"@!%#p1 bra $#count;\n"
	"ld.param.u64 %#d2, [#launch+88];\n"
	"setp.eq.u64 %#p2, %#d2, 0;\n"
	"@%#p2 bra $#out;\n"
	"$#count:\n";

/* The count is in device memory: atomics on host memory take about 1 us each, and serialise */
static const char count_left[] =
	"mov.u32 %#r0, 1;\n"
	"red.relaxed.gpu.global.add.u32 [%#d0+272], %#r0;\n";

static const char tell_if_early[] =
	"@!%#p1 bra $#tell;\n";

/*
 * While suspended block-tasks, or ranges that were left, wait for a worker, the launcher must know
 * how many workers there are. So every worker is counted, but one that leaves as there is no work
 * stores the count for the host only if some block-task waits. It checks that after it is counted,
 * and a worker that leaves a block-task behind stores the count after that.
 */
static const char tell_if_waiting[] =
	"ld.param.u64 %#d2, [#launch+64];\n"
	"setp.eq.u64 %#p1, %#d2, 0;\n"
	"@%#p1 bra $#none;\n"
	"fence.sc.gpu;\n"
	"ld.relaxed.gpu.global.u32 %#r0, [%#d2];\n"
	"setp.ne.u32 %#p1, %#r0, 0;\n"
	"@%#p1 bra $#tell;\n"
	"$#none:\n";

/*
 * One worker at a time stores the count, and checks again afterwards: stores to the host take about
 * 1 us each, and serialise. A worker that finds another storing leaves it to that one, whose final
 * exchange acquires this worker's increment.
 */
static const char tell_count[] =
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
static const char init_resumable[] =
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

/* Sets %#p1 in the first warp, which gets an odd budget (suspend.c) */
static const char is_first_warp[] =
	"mov.u32 %#r0, %tid.z;\n"
	"mov.u32 %#r1, %ntid.y;\n"
	"mov.u32 %#r2, %tid.y;\n"
	"mad.lo.u32 %#r0, %#r0, %#r1, %#r2;\n"
	"mov.u32 %#r1, %ntid.x;\n"
	"mov.u32 %#r2, %tid.x;\n"
	"mad.lo.u32 %#r0, %#r0, %#r1, %#r2;\n"
	"setp.lt.u32 %#p1, %#r0, 32;\n";

static const char enter_body[] =
	"@%#p0 bra $#restore;\n";

/* The same through the meeting */
static const char enter_by_meeting[] =
	"selp.b32 %#s, " GSR_STR(GSR_RESUME_BACK) ", " GSR_STR(GSR_RESUME_START) ", %#p0;\n"
	"bra $#meet;\n"
	"$#start:\n";

/* Advances to the next block-task of the batch, or to the next fetch */
static unsigned int insert_advance(struct gsr_pass *p, struct gsr_function *f,
				   const struct gsr_cleanup *cleanup, const struct gsr_ids *ids,
				   int id)
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
		n += gsr_insert_text(p, f, NULL, publish_ids);
	if (cleanup->mbarriers || ids->shared)
		n += gsr_insert_format(p, f, NULL, converge_and_sync, id);
	n += gsr_insert_text(p, f, NULL, repeat_body);
	return n + gsr_insert_text(p, f, NULL, fetch_again);
}

static struct gsr_stmt *first_code(struct gsr_stmt *s)
{
	while (s && s->kind == GSR_STMT_VAR)
		s = s->next;
	return s;
}

static unsigned int insert_prologue(struct gsr_pass *p, struct gsr_function *f,
				    const struct gsr_sites *sites,
				    const struct gsr_cleanup *cleanup, const struct gsr_ids *ids,
				    int id, const struct gsr_resume *r)
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
		n += gsr_insert_text(p, f, body, init_resumable);
	else
		n += gsr_insert_text(p, f, body, "@%#p0 bra $#started;\n");
	n += gsr_position_claim(p, f, body);
	if (cleanup->mbarriers)
		n += gsr_insert_text(p, f, body, gsr_mbarriers_none);
	if (cleanup->swbarrier)
		n += gsr_insert_text(p, f, body, gsr_swbarrier_init);
	if (!r) {
		n += gsr_insert_text(p, f, body, count_warps);
		n += gsr_insert_format(p, f, body, converge_and_sync, id);
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
	n += gsr_insert_text(p, f, body, test_expiry);
	n += gsr_insert_text(p, f, body, test_window);
	n += gsr_insert_text(p, f, body, leave_if_excluded);
	if (r)
		n += gsr_resume_fetch(p, f, body);
	n += gsr_queue_take(p, f, body, r);
	if (r) {
		n += gsr_insert_text(p, f, body, tell_resumable);
		n += gsr_insert_text(p, f, body, count_ran);
		n += gsr_resume_arm(p, f, body);
	}
	n += gsr_insert_text(p, f, body,
			     r		? stop_resumable :
			     ids->aside ? tell_ids_aside :
					  tell_ids);
	if (!r) {
		n += gsr_insert_text(p, f, body, count_ran);
		n += gsr_insert_text(p, f, body, "$#wait:\n");
	}
	n += gsr_insert_format(p, f, body, converge_and_sync, id);
	n += gsr_insert_text(p, f, body,
			     r		? read_resumable :
			     ids->aside ? read_ids_aside :
					  read_ids);
	/* in this order; the jump comes last */
	code = first_code(body);
	if (!r && sites->n)
		n += gsr_insert(
			p, f, code,
			gsr_sprintf(p->arena, "%smov.u32 %%#s, %u;\nbra $#meet;\n$#site_%u:\n",
				    sites->red ? "mov.u32 %#v, 0;\n" : "", sites->n, sites->n));
	if (r) {
		n += gsr_insert_text(p, f, code, is_first_warp);
		n += gsr_insert_format(p, f, code, "selp.u32 %%#n, %u, %u, %%#p1;\n", r->look + 1,
				       r->look);
	}
	if (r && r->early && r->red)
		n += gsr_insert_text(p, f, code, "mov.u32 %#v, 0;\n");
	if (r)
		n += gsr_insert_text(p, f, code, r->early ? enter_by_meeting : enter_body);
	return n;
}

static unsigned int insert_cold_paths(struct gsr_pass *p, struct gsr_function *f, bool resumable)
{
	unsigned int n = gsr_insert_text(p, f, NULL, "$#due:\n");

	n += resumable ? gsr_insert_format(p, f, NULL, poll_relay, "schedule", "schedule") :
			 gsr_insert_text(p, f, NULL, poll_copies);
	if (resumable)
		n += gsr_insert_text(p, f, NULL, "bra $#schedule_window;\n");
	n += gsr_insert_text(p, f, NULL, excluded);
	n += gsr_queue_seldom(p, f, resumable);
	n += gsr_insert_text(p, f, NULL, divide_ids);
	return p->modes ? n + gsr_insert_text(p, f, NULL, gsr_static_take) : n;
}

unsigned int gsr_loop(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites,
		      const struct gsr_cleanup *cleanup, const struct gsr_ids *ids, int id,
		      const struct gsr_resume *r)
{
	unsigned int n = insert_prologue(p, f, sites, cleanup, ids, id, r);

	n += gsr_insert_text(p, f, NULL, "$#end:\n");
	if (cleanup->alloca)
		n += gsr_insert_text(p, f, NULL, "stackrestore.u64 %#sp;\n");
	if (cleanup->cp_async)
		n += gsr_insert_text(p, f, NULL, "cp.async.wait_all;\n");
	/* order the asynchronous proxy before and after */
	if (cleanup->bulk)
		n += gsr_insert_text(
			p, f, NULL,
			"cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nfence.proxy.async;\n");
	if (r)
		n += gsr_resume_tail(p, f, r);
	else if (sites->n || sites->warps)
		n += gsr_meeting(p, f, sites, ids->alone ? -1 : id);
	else if (ids->alone)
		n += gsr_insert_text(p, f, NULL, "bar.warp.sync -1;\n");
	else
		n += gsr_insert_format(p, f, NULL, ids->aside ? sync_between : converge_and_sync,
				       id);
	if (!r)
		n += insert_advance(p, f, cleanup, ids, id);
	n += gsr_insert_text(p, f, NULL, "$#leave:\n");
	n += gsr_insert_text(p, f, NULL, gsr_not_first);
	n += gsr_insert_text(p, f, NULL, load_for_leave);
	if (r)
		n += gsr_insert_text(p, f, NULL, release_record);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, gsr_static_leave);
	n += gsr_position_release(p, f);
	n += gsr_insert_text(p, f, NULL, count_done);
	if (!r)
		n += gsr_insert_text(p, f, NULL, p->modes ? skip_count_modes : skip_count);
	n += gsr_insert_text(p, f, NULL, count_left);
	if (r || p->modes)
		n += gsr_insert_text(p, f, NULL, tell_if_early);
	if (r)
		n += gsr_insert_text(p, f, NULL, tell_if_waiting);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, gsr_static_waits);
	else if (r)
		n += gsr_insert_text(p, f, NULL, "bra $#out;\n");
	n += gsr_insert_text(p, f, NULL, tell_count);
	return n + insert_cold_paths(p, f, r);
}
