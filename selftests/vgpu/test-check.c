// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What vgpu reports with VGPU_CHECK_ALL: each kernel with a bug is reported with the right place,
 * and its correct sibling, which differs from it only in that bug, never is.
 */
#include "test-exec.h"

#define SEEDS	12
/* %rd1: the buffer; %r1: thread; %rd2: its element of 4 bytes. The body begins at line 9. */
#define BODY(body) HEAD ".visible .entry k(.param .u64 b)\n{\n" \
	".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>; .reg .f32 %f<9>; " \
	".shared .align 16 .b8 s[1024];\n" \
	"ld.param.u64 %rd1, [b]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; " \
	"add.s64 %rd2, %rd1, %rd2; shl.b32 %r2, %r1, 2;\n" \
	"mov.u32 %r3, s; add.s32 %r3, %r3, %r2;\n" body "\n}\n"

static uint32_t buf[4096];

struct check {
	const char *name, *bad, *good;
	const char *want[5];		/* of the report */
	unsigned int threads, blocks, more;	/* more: checks beside VGPU_CHECK_ALL */
};

static const struct check checks[] = {
	{ "one barrier at two instructions of a warp, aligned",
	  BODY("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $A;\nbar.sync 0;\nbra $B;\n$A: bar.sync 0;\n"
	       "$B: st.global.u32 [%rd2], %r1; ret;"),
	  BODY("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $A;\nbar.sync 0;\nbra $B;\n$A: bar.sync 0;\n"
	       "$B: st.global.u32 [%rd2], %r1; ret;"),
	  { "line 11: bar.sync", "threads 16-31 wait for barrier 0 here",
	    "threads 0-15 of the same warp at line 13" }, 64, 1, 0 },
	{ "one barrier at two instructions of a warp, unaligned",
	  BODY("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $A;\nbarrier.sync 1;\nbra $B;\n"
	       "$A: barrier.sync 1;\n$B: ret;"),
	  BODY("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $A;\nbarrier.sync 1;\nbra $B;\n"
	       "$A: barrier.sync 1;\n$B: ret;"),
	  { "wait for barrier 1 here", "line 13", "line 11" }, 64, 1, 0 },
	{ "an aligned barrier under a branch that part of a warp takes",
	  BODY("setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $A;\nbar.sync 0;\n$A:\n"
	       "st.global.u32 [%rd2], %r1; ret;"),
	  /* what hardware makes of an early return */
	  BODY("setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra $A;\nbar.sync 0;\nst.global.u32 [%rd2], %r1;\n"
	       "$A: ret;"),
	  { "line 11: bar.sync", "threads 0-15 wait for their warp",
	    "threads 16-31 went past to line 13" }, 32, 1, VGPU_CHECK_LETTER },
	{ "an aligned barrier in a loop, which lanes do different times",
	  BODY("and.b32 %r4, %r1, 1; add.s32 %r4, %r4, 2;\n$L: bar.sync 0;\n"
	       "add.s32 %r4, %r4, -1; setp.ne.s32 %p1, %r4, 0;\n@%p1 bra $L;\n"
	       "st.global.u32 [%rd2], %r1; ret;"),
	  BODY("and.b32 %r4, %r1, 32; add.s32 %r4, %r4, 2;\n$L: bar.sync 0;\n"
	       "add.s32 %r4, %r4, -1; setp.ne.s32 %p1, %r4, 0;\n@%p1 bra $L;\n"
	       "st.global.u32 [%rd2], %r1; ret;"),
	  { "line 10: bar.sync", "went past to line 13" }, 64, 1, VGPU_CHECK_LETTER },
	{ "an aligned barrier under a guard that differs",
	  BODY("setp.lt.u32 %p1, %r1, 40;\n@%p1 bar.sync 0;\nst.global.u32 [%rd2], %r1; ret;"),
	  BODY("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 32;\nst.global.u32 [%rd2], %r1; ret;"),
	  { "line 10: bar.sync", "threads 32-39 of warp 1 execute, threads 40-63 not" }, 64, 1, 0 },
	{ "an aligned barrier in a function that part of a warp calls",
	  HEAD ".func f() {\nbar.sync 0;\nret;\n}\n.visible .entry k(.param .u64 b) {\n"
	       ".reg .pred %p1; .reg .b32 %r1; .reg .b64 %rd1;\n"
	  "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $A;\ncall f, ();\n$A:\n"
	  "ld.param.u64 %rd1, [b]; st.global.u32 [%rd1], 1; ret;\n}\n",
	  HEAD ".func f() {\nbar.sync 0;\nret;\n}\n.visible .entry k(.param .u64 b) {\n"
	       ".reg .pred %p1; .reg .b32 %r1; .reg .b64 %rd1;\n"
	  "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $A;\n\n$A:\n"
	  "call f, (); ld.param.u64 %rd1, [b]; st.global.u32 [%rd1], 1; ret;\n}\n",
	  { "line 5: bar.sync", "threads 0-6 went past to line 14" }, 32, 1, VGPU_CHECK_LETTER },
	{ "a shuffle whose mask names lanes that go round it",
	  BODY("setp.lt.u32 %p1, %r1, 8;\n@%p1 bra $A;\nshfl.sync.idx.b32 %r4, %r1, 9, 31, -1;\n"
	       "$A:\nst.global.u32 [%rd2], %r4; ret;"),
	  BODY("setp.lt.u32 %p1, %r1, 8;\n@%p1 bra $A;\n"
	       "shfl.sync.idx.b32 %r4, %r1, 9, 31, 0xffffff00;\n$A:\n"
	       "st.global.u32 [%rd2], %r4; ret;"),
	  { "line 11: shfl.sync.idx", "threads 8-31 wait for their warp, of which threads 0-7 went "
	    "past to line 13" }, 32, 1, VGPU_CHECK_LETTER },
	{ "a vote under a guard that differs, with a full mask",
	  BODY("setp.lt.u32 %p1, %r1, 8;\n@%p1 vote.sync.ballot.b32 %r4, %p1, -1;\n"
	       "st.global.u32 [%rd2], %r4; ret;"),
	  BODY("setp.lt.u32 %p1, %r1, 8;\n@%p1 vote.sync.ballot.b32 %r4, %p1, 255;\n"
	       "st.global.u32 [%rd2], %r4; ret;"),
	  { "line 10: vote.sync.ballot", "threads 8-31 went past to line 11" }, 32, 1,
	  VGPU_CHECK_LETTER },
	{ "a lane outside of its own mask",
	  BODY("match.any.sync.b32 %r4, %r1, 0xffff;\nst.global.u32 [%rd2], %r4; ret;"),
	  BODY("setp.ge.u32 %p1, %r1, 16;\n@%p1 ret;\nmatch.any.sync.b32 %r4, %r1, 0xffff;\n"
	       "st.global.u32 [%rd2], %r4; ret;"),
	  { "line 9: match.any", "thread 16 is not in its own member mask 0xffff" }, 32, 1, 0 },
	{ "halves of a warp that wait for each other at a barrier and at bar.warp.sync",
	  BODY("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $A;\nbar.warp.sync -1;\nbra $B;\n"
	       "$A: bar.sync 0;\n$B: ret;"),
	  BODY("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $A;\nbar.warp.sync -1;\nbra $B;\n"
	       "$A: bar.warp.sync -1;\n$B: bar.sync 0; ret;"),
	  { "deadlock in block (0,0,0)",
	    "threads 0-15 at line 13 (bar, barrier 0, its warp has not arrived)",
	    "threads 16-31 at line 11 (bar, lanes 0xffffffff)" }, 32, 1, 0 },
	{ "a warp that does not come to a barrier with a count",
	  BODY("setp.ge.u32 %p1, %r1, 64;\n@%p1 bra $A;\nbar.sync 3, 96;\n$A: ret;"),
	  BODY("setp.ge.u32 %p1, %r1, 96;\n@%p1 bra $A;\nbar.sync 3, 96;\n$A: ret;"),
	  { "deadlock", "barrier 3: 2 of 3 warps arrived",
	    "threads 0-31 at line 11 (bar, barrier 3)", "threads 32-63" }, 128, 1, 0 },
	{ "partial warps, full masks",
	  BODY("bar.sync 0, 48;\nret;"),
	  BODY("bar.sync 0; bar.warp.sync -1; shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1; "
	       "vote.sync.any.pred %p1, %p1, -1; bar.sync 0, 64; ret;"),
	  { "line 9", "not a multiple of 32" }, 48, 1, 0 },
};

#define RACES(body) BODY("shl.b32 %r2, %r1, 2; xor.b32 %r4, %r1, 33; shl.b32 %r4, %r4, 2; " \
			 "mov.u32 %r5, s; add.s32 %r4, %r4, %r5;\n" body)
#define LAST(fence) HEAD ".global .u32 n;\n.visible .entry k(.param .u64 b) {\n" \
			 ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>;\n" \
	"ld.param.u64 %rd1, [b]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; " \
	"add.s64 %rd2, %rd1, %rd2;\n" \
	"st.global.u32 [%rd2+4], %r1;\n" fence "atom.global.inc.u32 %r2, [n], 3;\n" \
		fence "setp.ne.u32 %p1, %r2, 3;\n@%p1 ret;\n" \
	"ld.global.u32 %r3, [%rd1+4];\nld.global.u32 %r4, [%rd1+8];\n" \
	"add.u32 %r3, %r3, %r4; st.global.u32 [%rd1], %r3; ret;\n}\n"
#define FLAG(fence) BODY(".shared .u32 flag; setp.eq.s32 %p1, %r1, 0;\n" \
			 "@%p1 st.shared.u32 [flag], 0;\nbar.sync 0;\n" \
	"setp.lt.u32 %p2, %r1, 32;\n@%p2 bra $W;\nsetp.ne.u32 %p3, %r1, 40;\n@%p3 ret;\n" \
	"st.shared.u32 [s], 7;\n" fence \
	"st.volatile.shared.u32 [flag], 1;\nret;\n" \
	"$W: ld.volatile.shared.u32 %r4, [flag]; setp.eq.u32 %p4, %r4, 0;\n@%p4 bra $W;\n" \
	"membar.cta; ld.shared.u32 %r5, [s]; st.global.u32 [%rd2], %r5; ret;")
#define MBAR(wait) BODY(".shared .align 8 .b64 mb; setp.eq.s32 %p1, %r1, 0;\n" \
			"@%p1 mbarrier.init.shared.b64 [mb], 32;\nbar.sync 0;\n" \
	"setp.lt.u32 %p2, %r1, 32;\n@%p2 bra $W;\nst.shared.u32 [%r3], %r1;\n" \
	"mbarrier.arrive.shared.b64 %rd3, [mb]; ret;\n" \
	"$W:\n" wait "\nld.shared.u32 %r5, [%r3+128];\nst.global.u32 [%rd2], %r5; ret;")

/* Line 10 is the first of the body */
static const struct check races[] = {
	{ "no barrier between a write and the read of another thread",
	  RACES("st.shared.u32 [%r3], %r1;\n\nld.shared.u32 %r6, [%r4];\n"
		"st.global.u32 [%rd2], %r6; ret;"),
	  RACES("st.shared.u32 [%r3], %r1;\nbar.sync 0;\nld.shared.u32 %r6, [%r4];\n"
		"st.global.u32 [%rd2], %r6; ret;"),
	  { "data race on shared 0x", "line 10", "line 12", "block (0,0,0)" }, 64, 1, 0 },
	{ "no barrier before what was read is written again",
	  RACES("mov.u32 %r7, 0;\n$L: st.shared.u32 [%r3], %r1;\nbar.sync 0;\n"
		"ld.shared.u32 %r6, [%r4];\nadd.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 3;\n"
		"@%p1 bra $L;\nret;"),
	  RACES("mov.u32 %r7, 0;\n$L: st.shared.u32 [%r3], %r1;\nbar.sync 0;\n"
		"ld.shared.u32 %r6, [%r4];\nadd.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 3;\n"
		"bar.sync 0;\n@%p1 bra $L;\nret;"),
	  { "data race on shared", "line 11", "line 13" }, 64, 1, 0 },
	{ "lanes of a warp without bar.warp.sync",
	  RACES("xor.b32 %r4, %r3, 4; st.shared.u32 [%r3], %r1;\n\nld.shared.u32 %r6, [%r4];\n"
		"st.global.u32 [%rd2], %r6; ret;"),
	  RACES("xor.b32 %r4, %r3, 4; st.shared.u32 [%r3], %r1;\nbar.warp.sync -1;\n"
		"ld.shared.u32 %r6, [%r4];\nst.global.u32 [%rd2], %r6; ret;"),
	  { "line 12", "reads it here", "wrote it at line 10" }, 32, 1, 0 },
	{ "a reduction in the last warp, plain instead of volatile",
	  RACES("xor.b32 %r4, %r3, 4; st.shared.u32 [%r3], %r1;\nld.shared.u32 %r6, [%r4];\nret;"),
	  RACES("xor.b32 %r4, %r3, 4; st.volatile.shared.u32 [%r3], %r1;\n"
		"ld.volatile.shared.u32 %r6, [%r4];\nret;"),
	  { "data race" }, 32, 1, 0 },
	{ "lanes that store to one place what differs",
	  RACES("st.shared.u32 [s+8], %r1;\nret;"),
	  RACES("st.shared.u32 [s+8], 5;\nbar.sync 0; ld.shared.u32 %r6, [s+8]; ret;"),
	  { "data race on shared 0x8", "line 10",
	    "thread 1 writes it here, thread 0 wrote it at line 10" }, 32, 1, 0 },
	{ "a plain write among atomics",
	  RACES("setp.ne.u32 %p1, %r1, 40;\n@%p1 atom.shared.add.u32 %r6, [s], 1;\n"
		"@!%p1 st.shared.u32 [s], 77;\nret;"),
	  RACES("setp.ne.u32 %p1, %r1, 40;\n@%p1 atom.shared.add.u32 %r6, [s], 1;\n"
		"@!%p1 atom.shared.exch.b32 %r6, [s], 77;\n"
		"bar.sync 0; ld.shared.u32 %r6, [s]; ret;"),
	  { "data race on shared 0x0", "atomically" }, 64, 1, 0 },
	{ "a flag without a fence before it", FLAG(""), FLAG("membar.cta;\n"),
	  { "data race on shared 0x0", "thread 40 wrote it at line 16" }, 64, 1, 0 },
	{ "a write behind bar.arrive",
	  RACES("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $W;\nbar.arrive 1, 64;\n"
		"st.shared.u32 [%r3], %r1;\nret;\n"
		"$W: bar.sync 1, 64; ld.shared.u32 %r6, [%r3+128]; ret;"),
	  RACES("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $W;\nst.shared.u32 [%r3], %r1;\n"
		"bar.arrive 1, 64;\nret;\n$W: bar.sync 1, 64; ld.shared.u32 %r6, [%r3+128]; ret;"),
	  { "data race on shared", "line 13", "line 15" }, 64, 1, 0 },
	{ "a barrier of too few warps",
	  RACES("st.shared.u32 [%r3], %r1;\nsetp.lt.u32 %p1, %r1, 64;\n@%p1 bar.sync 1, 64;\n"
		"@!%p1 bar.sync 2, 32;\n@%p1 ld.shared.u32 %r6, [s+300]; ret;"),
	  RACES("st.shared.u32 [%r3], %r1;\nsetp.lt.u32 %p1, %r1, 64;\n@%p1 bar.sync 1, 64;\n"
		"@!%p1 bar.sync 2, 32;\n@%p1 ld.shared.u32 %r6, [s+252]; ret;"),
	  { "data race on shared 0x12c", "line 10", "thread 75 " }, 96, 1, 0 },
	{ "neighbours' bytes that overlap",
	  RACES("mov.u32 %r6, s; add.u32 %r6, %r6, %r1; st.shared.u8 [%r6], %r1;\n"
		"bar.sync 0; and.b32 %r7, %r1, 1; setp.eq.u32 %p1, %r7, 0;\n"
		"@%p1 st.shared.u16 [%r6], %r1;\n@!%p1 st.shared.u8 [%r6], 200;\nret;"),
	  RACES("mov.u32 %r6, s; add.u32 %r6, %r6, %r1; st.shared.u8 [%r6], %r1;\n"
		"bar.sync 0; and.b32 %r7, %r1, 1; setp.eq.u32 %p1, %r7, 0;\n"
		"@%p1 st.shared.u8 [%r6], %r1;\n@!%p1 st.shared.u8 [%r6], 200;\nret;"),
	  { "data race", "line 12", "line 13" }, 64, 1, 0 },
	{ "cp.async that only its own thread waits for",
	  RACES("cp.async.ca.shared.global [%r3], [%rd2], 4; cp.async.wait_all;\n\n"
		"ld.shared.u32 %r6, [%r4]; ret;"),
	  RACES("cp.async.ca.shared.global [%r3], [%rd2], 4; cp.async.wait_all;\nbar.sync 0;\n"
		"ld.shared.u32 %r6, [%r4]; ret;"),
	  { "data race on shared", "line 10", "line 12" }, 64, 1, 0 },
	{ "no wait at an mbarrier", MBAR(""),
	  MBAR("$T: mbarrier.test_wait.parity.shared.b64 %p3, [mb], 0;\n@!%p3 bra $T;"),
	  { "data race on shared", "line 14", "line 18" }, 64, 1, 0 },
	{ "threads that have exited are ordered by the barrier",
	  RACES("setp.ge.u32 %p1, %r1, 32;\n@%p1 bra $A;\nst.shared.u32 [%r3], 1;\nret;\n"
		"$A: ld.shared.u32 %r6, [%r3+-128]; ret;"),
	  RACES("setp.ge.u32 %p1, %r1, 32;\n@%p1 bra $A;\nst.shared.u32 [%r3], 1;\nret;\n"
		"$A: bar.sync 0; ld.shared.u32 %r6, [%r3+-128]; ret;"),
	  { "line 12", "line 14" }, 64, 1, 0 },
	{ "blocks that write to one place",
	  BODY("mov.u32 %r4, %ctaid.x;\nst.global.u32 [%rd2], %r4; ret;"),
	  BODY("mov.u32 %r4, %ctaid.x; mul.wide.u32 %rd3, %r4, 128; add.s64 %rd2, %rd2, %rd3;\n"
	       "st.global.u32 [%rd2], %r4; ret;"),
	  { "data race on global 0x", "line 10", "of block (0,0,0) wrote it at line 10",
	    "block (1,0,0)" }, 32, 3, 0 },
	{ "threads of a block in global memory",
	  RACES("st.global.u32 [%rd2], %r1;\n\nld.global.u32 %r6, [%rd1+8]; ret;"),
	  RACES("st.global.u32 [%rd2], %r1;\nbar.sync 0;\nld.global.u32 %r6, [%rd1+8]; ret;"),
	  { "data race on global", "line 10" }, 64, 1, 0 },
	{ "the last block reads what others wrote, without fences", LAST("\n"),
	  LAST("membar.gl;\n"),
	  { "data race on global", "wrote it at line 8" }, 1, 4, 0 },
};

/* Bounds: the harness has no allocations, the driver API's are in test-api-process.c */
static const struct check bounds[] = {
	{ "behind a shared array", BODY("setp.eq.u32 %p1, %r1, 3;\n@%p1 add.u32 %r3, %r3, 1012;\n"
					"st.shared.u32 [%r3], %r1; ret;"),
	  BODY("setp.eq.u32 %p1, %r1, 3;\n@%p1 add.u32 %r3, %r3, 1008;\n"
	       "st.shared.u32 [%r3], %r1; ret;"),
	  { "line 11: st.shared.u32",
	    "shared address 0x400 of 4 bytes is outside of 1024, thread 3" }, 32, 1, 0 },
	{ "behind the frame of a function",
	  BODY(".local .b32 l[4];\nst.local.u32 [l+16], %r1; ret;"),
	  BODY(".local .b32 l[4];\nst.local.u32 [l+12], %r1; ret;"),
	  { "line 10: st.local.u32", "local address 0x10 of 4 bytes is outside of 16, thread 0" },
	  32, 1, 0 },
	{ "behind a parameter", BODY("ld.param.u32 %r4, [b+8]; ret;"),
	  BODY("ld.param.u32 %r4, [b+4]; ret;"),
	  { "line 9: ld.param.u32", "parameter address 0x8 of 4 bytes is outside of 8" },
	  32, 1, 0 },
	{ "behind a variable of the module, short of the next",
	  HEAD ".global .u32 v[4]; .global .u32 w[64]; "
	       ".visible .entry k(.param .u64 b) { .reg .b32 %r1; "
	       "ld.global.u32 %r1, [v+16]; ret; }\n",
	  HEAD ".global .u32 v[4]; .global .u32 w[64]; "
	       ".visible .entry k(.param .u64 b) { .reg .b32 %r1; "
	       "ld.global.u32 %r1, [v+12]; ret; }\n",
	  { "line 4: ld.global.u32", "illegal load of 4 bytes" }, 1, 1, 0 },
	{ "behind a constant variable",
	  HEAD ".const .u32 v[4]; .visible .entry k(.param .u64 b) { .reg .b32 %r1; "
	       "ld.const.u32 %r1, [v+16]; ret; }\n",
	  HEAD ".const .u32 v[4]; .visible .entry k(.param .u64 b) { .reg .b32 %r1; "
	       "ld.const.u32 %r1, [v+12]; ret; }\n",
	  { "line 4: ld.const.u32", "illegal load from constant memory" }, 1, 1, 0 },
	{ "a write to a constant variable",
	  HEAD ".const .u32 v[4]; .visible .entry k(.param .u64 b) {\n"
	       ".reg .b64 %rd1; mov.u64 %rd1, v; cvta.const.u64 %rd1, %rd1;\n"
	       "st.u32 [%rd1], 1; ret; }\n",
	  HEAD ".global .u32 v[4]; .visible .entry k(.param .u64 b) {\n"
	       ".reg .b64 %rd1; mov.u64 %rd1, v; cvta.global.u64 %rd1, %rd1;\n"
	       "st.u32 [%rd1], 1; ret; }\n",
	  { "line 6: st.u32", "illegal store of 4 bytes" }, 1, 1, 0 },
};

static bool reported(const char *e, const struct check *c)
{
	unsigned int i;

	for (i = 0; i < 5 && c->want[i]; i++)
		if (!strstr(e, c->want[i]))
			return false;
	return true;
}

static void test(const struct check *c)
{
	const struct args a = { { (uintptr_t)buf } };
	unsigned int found = 0;
	bool first = false, quiet = true;
	uint64_t seed;

	vgpu_checks = VGPU_CHECK_ALL | c->more;
	for (seed = 0; seed < SEEDS; seed++) {
		const char *e = run_text(c->bad, c->blocks, c->threads, 0, seed, &a);

		found += reported(e, c);
		first |= !seed && found;
		if (!reported(e, c))
			printf("# seed %llu: %s\n", (unsigned long long)seed,
			       *e ? e : "not reported");
		e = run_text(c->good, c->blocks, c->threads, 0, seed, &a);
		if (*e) {
			printf("# seed %llu: %s\n", (unsigned long long)seed, e);
			quiet = false;
		}
	}
	/*
	 * threads that exit before others of their warp come to wait are not missed: that depends
	 * on the order
	 */
	ok(first && found > SEEDS / 2, "reported: %s (%u of %d seeds)", c->name, found, SEEDS);
	ok(quiet, "... and not its correct sibling");
}

/*
 * Registers, local and shared memory do not begin as zeros, differ with the seed and follow from it
 */
static void poison(void)
{
	static const char *const what[] = { "register", "predicate", "local memory",
					    "shared memory" };
	static const char *const ptx[] = {
		BODY("st.global.u32 [%rd2], %r20; ret;"),
		BODY("selp.b32 %r4, 1, 0, %p3; st.global.u32 [%rd2], %r4; ret;"),
		BODY(".local .b32 l[4]; ld.local.u32 %r4, [l+8]; st.global.u32 [%rd2], %r4; ret;"),
		BODY("ld.shared.u32 %r4, [%r3]; st.global.u32 [%rd2], %r4; ret;"),
	};
	const struct args a = { { (uintptr_t)buf } };
	uint32_t first[32];
	unsigned int i, seed;

	for (i = 0; i < 4; i++) {
		bool zero = true, varies = false, good = true;

		for (seed = 0; seed < SEEDS; seed++) {
			good &= !*run_text(ptx[i], 1, 32, 0, seed, &a);
			for (unsigned int k = 0; k < 32; k++)
				zero &= !buf[k];
			if (!seed)
				memcpy(first, buf, sizeof(first));
			varies |= memcmp(first, buf, sizeof(first)) != 0;
		}
		good &= !*run_text(ptx[i], 1, 32, 0, 0, &a) && !memcmp(first, buf, sizeof(first));
		ok(good && !zero && varies, "a %s that was not written is garbage by the seed",
		   what[i]);
	}
}

static void names(void)
{
	unsigned int c = 99;

	ok(vgpu_checks_parse("all", &c) && c == VGPU_CHECK_ALL &&
	   vgpu_checks_parse("none", &c) && !c && vgpu_checks_parse(" sync, sync", &c) &&
	   c == VGPU_CHECK_SYNC && vgpu_checks_parse("race,grid", &c) &&
	   c == (VGPU_CHECK_RACE | VGPU_CHECK_GRID) && vgpu_checks_parse("", &c) && !c,
	   "names of checks");
	ok(!vgpu_checks_parse("syn", &c) && !vgpu_checks_parse("sync,everything", &c),
	   "unknown names are refused");
}

int main(void)
{
	size_t i;

	for (i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		test(&checks[i]);
	for (i = 0; i < sizeof(races) / sizeof(*races); i++)
		test(&races[i]);
	for (i = 0; i < sizeof(bounds) / sizeof(*bounds); i++)
		test(&bounds[i]);
	poison();
	names();
	return done();
}
