// SPDX-License-Identifier: LGPL-2.1-or-later
/* mbarriers, asynchronous copies, atomics of vectors and of 128 bits. */
#include "test-exec.h"

/* %rd1: the buffer; %r1: thread; %rd2: its element; m: two mbarriers; s: shared memory */
#define START HEAD ".visible .entry k(.param .u64 b)\n{\n" \
	".reg .pred %p<20>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .b16 %rs<20>; " \
	".reg .f32 %f<20>; .reg .b128 %q<9>;\n" \
	".shared .align 8 .b64 m[2]; .shared .align 128 .b8 s[4096];\n" \
	"ld.param.u64 %rd1, [b]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; " \
	"add.s64 %rd2, %rd1, %rd2;\n"
#define ONE(body) START body "\nret;\n}\n"
#define FIRST "setp.ne.u32 %p9, %r1, 0;\n"

static uint32_t buf[8192];

static const char *one(const char *ptx, unsigned int threads, uint64_t seed)
{
	struct args a = { { (uintptr_t)buf } };

	return run_text(ptx, 1, threads, 0, seed, &a);
}

static bool clean(const char *error)
{
	if (*error)
		printf("# %s\n", error);
	return !*error;
}

static bool is(const uint32_t *want, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (buf[i] != want[i]) {
			printf("# [%u] is 0x%x, not 0x%x\n", i, buf[i], want[i]);
			return false;
		}
	return true;
}

static void phases(void)
{
	/* one thread alone: each step's answer */
	static const char counts[] = ONE(
		"mbarrier.init.shared.b64 [m], 3; mbarrier.arrive.shared.b64 %rd3, [m]; "
		"mbarrier.test_wait.shared.b64 %p1, [m], %rd3;\n"
		"selp.u32 %r2, 1, 0, %p1; mbarrier.arrive.noComplete.shared::cta.b64 %rd4, [m], 1; "
		"mbarrier.pending_count.b64 %r3, %rd4;\n"
		"mbarrier.arrive.release.cta.shared::cta.b64 %rd5, [m], 1; "
		"mbarrier.test_wait.shared.b64 %p1, [m], %rd3; selp.u32 %r4, 1, 0, %p1;\n"
		"mbarrier.test_wait.parity.shared.b64 %p1, [m], 0; selp.u32 %r5, 1, 0, %p1;\n"
		"mbarrier.test_wait.parity.shared.b64 %p1, [m], 1; selp.u32 %r6, 1, 0, %p1;\n"
		/* the next phase waits for three again; two drop out for good */
		"mbarrier.arrive_drop.shared::cta.b64 %rd6, [m], 2; "
		"mbarrier.test_wait.shared.b64 %p1, [m], %rd6; selp.u32 %r7, 1, 0, %p1;\n"
		"mbarrier.arrive.shared.b64 _, [m]; mbarrier.test_wait.shared.b64 %p1, [m], %rd6; "
		"selp.u32 %r8, 1, 0, %p1;\n"
		"mbarrier.arrive.shared.b64 %rd7, [m]; mbarrier.pending_count.b64 %r9, %rd7; "
		"mbarrier.test_wait.shared.b64 %p1, [m], %rd7;\n"
		"selp.u32 %r10, 1, 0, %p1; mbarrier.inval.shared.b64 [m];\n"
		"st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; "
		"st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r9}; st.global.u32 [%rd1+32], %r10;");
	static const uint32_t want[] = { 0, 2, 1, 1, 0, 0, 1, 1, 1 };
	/* transactions hold a phase open, in either order */
	static const char tx[] = ONE(
		"mbarrier.init.shared.b64 [m], 1; "
		"mbarrier.arrive.expect_tx.shared.b64 %rd3, [m], 64; "
		"mbarrier.test_wait.shared.b64 %p1, [m], %rd3;\n"
		"selp.u32 %r2, 1, 0, %p1; "
		"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [m], 48; "
		"mbarrier.test_wait.shared.b64 %p1, [m], %rd3;\n"
		"selp.u32 %r3, 1, 0, %p1; mbarrier.complete_tx.shared.b64 [m], 16; "
		"mbarrier.test_wait.shared.b64 %p1, [m], %rd3; selp.u32 %r4, 1, 0, %p1;\n"
		"mbarrier.complete_tx.shared.b64 [m], 32; "
		"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [m], 32; "
		"mbarrier.try_wait.parity.shared.b64 %p1, [m], 1, 100;\n"
		"selp.u32 %r5, 1, 0, %p1; mbarrier.arrive.shared.b64 _, [m]; "
		"mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [m], 1;\n"
		"selp.u32 %r6, 1, 0, %p1; st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; "
		"st.global.u32 [%rd1+16], %r6;");
	static const uint32_t want_tx[] = { 0, 0, 1, 0, 1 };
	/* ten rounds in which all threads wait for each other, by parity, with a generic address */
	static const char rounds[] = ONE(
		"mov.u64 %rd3, m; cvta.shared.u64 %rd3, %rd3; mov.u32 %r9, %ntid.x;\n"
		FIRST "@%p9 bra $I;\nmbarrier.init.b64 [%rd3], %r9;\n$I: bar.sync 0;\n"
		"mov.u32 %r2, 0; mov.u32 %r3, 0;\n$L: atom.global.add.u32 %r4, [%rd1+16384], 1; "
		"mbarrier.arrive.release.cta.b64 _, [%rd3]; and.b32 %r5, %r2, 1;\n"
		"$W: mbarrier.try_wait.parity.b64 %p1, [%rd3], %r5;\n@!%p1 bra $W;\n"
		"ld.volatile.global.u32 %r6, [%rd1+16384]; add.s32 %r2, %r2, 1;\n"
		"mul.lo.u32 %r7, %r2, %r9; setp.lt.u32 %p2, %r6, %r7;\n@%p2 add.s32 %r3, %r3, 1;\n"
		"setp.lt.u32 %p3, %r2, 10;\n@%p3 bra $L;\n"
		"st.global.u32 [%rd2], %r3;");
	bool good = true;
	unsigned int i;
	uint64_t seed;

	ok(clean(one(counts, 1, 0)) && is(want, 9), "mbarrier: arrivals, states, drops");
	ok(clean(one(tx, 1, 0)) && is(want_tx, 5), "mbarrier: transactions");
	for (seed = 0; seed < 10; seed++) {
		memset(buf, 0, sizeof(buf));
		good &= clean(one(rounds, 96, seed)) && buf[4096] == 960;
		for (i = 0; i < 96; i++)
			good &= !buf[i];
	}
	ok(good, "mbarrier: rounds of all threads, by parity");
}

static void copies(void)
{
	/* every thread brings 16 bytes, two groups; waits for the first, then for both */
	static const char groups[] = ONE(
		"shl.b32 %r2, %r1, 4; mov.u32 %r3, s; add.s32 %r3, %r3, %r2; "
		"mul.wide.u32 %rd3, %r1, 16; add.s64 %rd3, %rd1, %rd3;\n"
		"cp.async.cg.shared.global [%r3], [%rd3], 16; cp.async.commit_group;\n"
		"cp.async.ca.shared::cta.global.L2::128B [%r3+2048], [%rd3+2048], 8, 4; "
		"cp.async.commit_group;\n"
		"cp.async.wait_group 1; ld.shared.u32 %r4, [%r3+4]; cp.async.wait_all; "
		"ld.shared.v2.u32 {%r5, %r6}, [%r3+2048];\n"
		"add.s32 %r4, %r4, %r5; add.s32 %r4, %r4, %r6; add.s64 %rd2, %rd2, 16384; "
		"st.global.u32 [%rd2], %r4;");
	/* the arrival of the copies, beside that of the threads; and as all there is */
	static const char arrive[] = ONE(
		"mov.u32 %r9, %ntid.x;\n" FIRST "@%p9 bra $I;\n"
						"mbarrier.init.shared.b64 [m], %r9; "
						"mbarrier.init.shared.b64 [m+8], %r9;\n"
						"$I: bar.sync 0;\n"
		"shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.s32 %r3, %r3, %r2; "
		"setp.eq.u32 %p4, %r1, 7;\n"
		"cp.async.ca.shared.global [%r3], [%rd2], 4; "
		"cp.async.mbarrier.arrive.shared.b64 [m]; mbarrier.arrive.shared.b64 %rd4, [m];\n"
		"cp.async.ca.shared.global [%r3+1024], [%rd2+1024], 4, %p4; "
		"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m+8];\n"
		"$W: mbarrier.test_wait.shared.b64 %p1, [m], %rd4;\n@!%p1 bra $W;\n"
		"$V: mbarrier.test_wait.parity.shared.b64 %p1, [m+8], 0;\n@!%p1 bra $V;\n"
		"xor.b32 %r4, %r3, 64; ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r4+1024]; "
		"sub.s32 %r5, %r6, %r5; st.global.u32 [%rd2+8192], %r5;");
	/* 1 KB in with an mbarrier, doubled, 1 KB out in a bulk group */
	static const char bulk[] = ONE(
		FIRST "@%p9 bra $I;\nmbarrier.init.shared::cta.b64 [m], 1; "
		      "fence.mbarrier_init.release.cluster; "
		      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [m], 1024;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], "
		"512, [m];\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+512], "
		"[%rd1+512], 512, [m];\n$I: bar.sync 0;\n"
		"$W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [m], 0;\n@!%p1 bra $W;\n"
		"shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.s32 %r3, %r3, %r2;\n"
		"ld.shared.u32 %r4, [%r3]; shl.b32 %r4, %r4, 1; st.shared.u32 [%r3], %r4; "
		"fence.proxy.async.shared::cta; bar.sync 0;\n@%p9 bra $E;\n"
		"mov.u64 %rd3, s; add.s64 %rd4, %rd1, 4096; "
		"cp.async.bulk.global.shared::cta.bulk_group [%rd4], [s], 1024; "
		"cp.async.bulk.commit_group;\n"
		"cp.async.bulk.wait_group.read 0; st.shared.u32 [s], 77; "
		"cp.async.bulk.prefetch.L2.global [%rd1], 1024;\n$E:");
	static const char reduce[] = ONE(
		"shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.s32 %r3, %r3, %r2; add.s32 %r4, %r1, 1; "
		"st.shared.u32 [%r3], %r4; st.shared.u32 [%r3+256], 3;\n"
		"st.shared.u32 [%r3+512], 0x3c003c00; fence.proxy.async; bar.sync 0;\n"
		FIRST "@%p9 bra $E;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [s], 256;\n"
		"add.s64 %rd3, %rd1, 256; "
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.max.s32 [%rd3], "
		"[s], 256, %rd3;\n"
		"add.s64 %rd3, %rd1, 512; "
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd3], "
		"[s+512], 16;\n"
		"cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; "
		"mbarrier.init.shared.b64 [m], 1; "
		"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [m], 32;\n"
		"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.xor.b32 [s+256], [s], 32, [m];\n"
		"mbarrier.arrive.shared.b64 %rd5, [m];\n"
		"$W: mbarrier.try_wait.shared.b64 %p1, [m], %rd5;\n@!%p1 bra $W;\n"
		"ld.shared.u32 %r6, [s+284]; st.global.u32 [%rd1+1024], %r6;\n$E:");
	/* read before the wait: what is there depends on chance */
	static const char early[] = ONE(
		"st.shared.u32 [s], 0; cp.async.ca.shared.global [s], [%rd1], 4; "
		"ld.volatile.shared.u32 %r2, [s]; cp.async.wait_all; st.global.u32 [%rd1+4], %r2;");
	bool good[4] = { true, true, true, true }, late = false, wrong = false;
	unsigned int i;
	uint64_t seed;

	for (seed = 0; seed < 20; seed++) {
		for (i = 0; i < 1024; i++)
			buf[i] = i * 3 + 1;
		good[0] &= clean(one(groups, 128, seed));
		for (i = 0; i < 128; i++)
			good[0] &= buf[4096 + i] == (4 * i + 1) * 3 + 1 + (4 * i + 512) * 3 + 1;
		good[1] &= clean(one(arrive, 64, seed));
		for (i = 0; i < 64; i++)
			good[1] &= buf[2048 + i] == ((i ^ 16) == 7 ? 0u - 22 : 768u);
		good[2] &= clean(one(bulk, 256, seed));
		for (i = 0; i < 256; i++)
			good[2] &= buf[1024 + i] == (i * 3 + 1) * 2;
		for (i = 0; i < 64; i++)
			buf[i + 64] = (uint32_t)-5;
		for (i = 0; i < 8; i++)
			buf[i + 128] = 0x40004200;
		good[3] &= clean(one(reduce, 64, seed));
		for (i = 0; i < 64; i++)
			good[3] &= buf[i] == i * 3 + 1 + i + 1 && buf[64 + i] == i + 1;
		good[3] &= buf[128] == 0x42004400 && buf[131] == 0x42004400 &&
			   buf[132] == 0x40004200 && buf[256] == (3 ^ 8);
		buf[0] = 5;
		one(early, 1, seed);
		late |= buf[1] == 5;
		wrong |= buf[1] == 0;
	}
	ok(good[0], "cp.async: groups, zero fill");
	ok(good[1], "cp.async.mbarrier.arrive, with and without .noinc; ignored sources");
	ok(good[2], "cp.async.bulk with an mbarrier and in bulk groups");
	ok(good[3], "cp.reduce.async.bulk");
	ok(late && wrong, "a copy that is not waited for comes early with no seed, late with some");
}

static void faults(void)
{
	static const struct {
		const char *body, *message;
	} bad[] = {
		{ "mbarrier.arrive.shared.b64 _, [m];", "no mbarrier" },
		{ "mbarrier.init.shared.b64 [m], 1; mbarrier.inval.shared.b64 [m]; "
		  "mbarrier.arrive.shared.b64 _, [m];", "no mbarrier" },
		{ "mbarrier.init.shared.b64 [m], 0;", "for 0 arrivals" },
		{ "mbarrier.init.shared.b64 [m], 1048576;", "for 1048576 arrivals" },
		{ "mbarrier.init.b64 [%rd1], 1;", "not in shared memory" },
		{ "mbarrier.init.shared.b64 [m+4], 1;", "misaligned" },
		{ "mbarrier.init.shared.b64 [m], 2; mbarrier.arrive.shared.b64 _, [m], 3;",
		  "3 arrive, the mbarrier waits for 2" },
		{ "mbarrier.init.shared.b64 [m], 1; "
		  "mbarrier.arrive.noComplete.shared.b64 _, [m], 1;", "completes the phase" },
		{ "mbarrier.init.shared.b64 [m], 1; mbarrier.expect_tx.shared.b64 [m], 1048576;",
		  "out of range" },
		{ "mbarrier.init.shared.b64 [m], 1; mbarrier.test_wait.shared.b64 %p1, [m], 0;",
		  "no state" },
		{ "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 20;",
		  "multiple of 16" },
		{ "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s+8], 16;", "misaligned" },
		{ "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 8192;", "outside" },
		{ "mov.u32 %r2, 20; cp.async.cg.shared.global [s], [%rd1], 16, %r2;",
		  "copies 20 of 16" },
		{ "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%rd1, {%r1}], [m];", "unknown instruction cp.async.bulk.tensor" },
		{ "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%rd1], 16, [m], %rs1;", "multicast" },
		{ "cp.async.cg.shared.global [s], [%rd1], 8;", "unknown instruction cp.async.cg" },
		{ "mbarrier.wait.shared.b64 [m];", "unknown instruction mbarrier.wait" },
		{ "fence.proxy.frob;", "unknown instruction fence.proxy.frob" },
		{ "prefetch.global.L3 [%rd1];", "unknown instruction prefetch.global.L3" },
		{ "multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;",
		  "unknown instruction multimem.red" },
	};
	static const char fine[] = ONE("prefetch.global.L2 [%rd1]; prefetchu.L1 [%rd1]; "
				       "prefetch.global.L2::evict_last [%rd1]; "
				       "applypriority.global.L2::evict_normal [%rd1], 128;\n"
		"createpolicy.fractional.L2::evict_last.b64 %rd3, 1.0; "
		"createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %rd3, 0.5;\n"
		"createpolicy.range.L2::evict_last.b64 %rd3, [%rd1], 1024, 2048; "
		"ld.global.L2::cache_hint.u32 %r2, [%rd1], %rd3; discard.global.L2 [%rd1], 128;\n"
		"fence.proxy.alias; fence.proxy.async.global; fence.acq_rel.cluster; fence.sc.sys; "
		"membar.gl; fence.proxy.tensormap::generic.release.gpu; pmevent 3;");
	char ptx[4096];
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *e;

		snprintf(ptx, sizeof(ptx), "%s%s\nret;\n}\n", START, bad[i].body);
		e = one(ptx, 1, 0);
		if (!ok(strstr(e, bad[i].message), "fault: %s", bad[i].message))
			printf("# %s\n", e);
	}
	ok(clean(one(fine, 1, 0)), "hints and fences");
}

static void atomics(void)
{
	static const char vectors[] = ONE(
		"mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; "
		"atom.global.add.v2.f32 {%f3, %f4}, [%rd1], {%f1, %f2};\n"
		"red.relaxed.gpu.global.add.v4.f32 [%rd1+16], {%f1, %f2, %f1, %f2}; "
		"mov.b32 %r2, 0x3c004000;\n"
		"red.global.add.noftz.v4.f16x2 [%rd1+32], {%r2, %r2, %r2, %r2}; "
		"atom.global.max.noftz.v2.f16x2 {%r3, %r4}, [%rd1+48], {%r2, %r2};\n"
		"mov.b16 %rs1, 0x3f80; red.global.min.noftz.v4.bf16 [%rd1+56], {%rs1, %rs1, %rs1, "
		"%rs1}; st.global.f32 [%rd1+64], %f4; st.global.u32 [%rd1+68], %r4;");
	static const char wide[] = ONE(
		"mov.b64 %rd3, 1; mov.b64 %rd4, 2; mov.b64 %rd5, 3; mov.b128 %q1, {%rd3, %rd4}; "
		"mov.b128 %q2, {%rd4, %rd5};\n"
		"atom.global.cas.b128 %q3, [%rd1], %q1, %q2; "
		"atom.global.cas.b128 %q4, [%rd1], %q1, %q1; mov.b128 {%rd6, %rd7}, %q3; "
		"st.global.v2.u64 [%rd1+16], {%rd6, %rd7};\n"
		"st.global.b128 [%rd1+32], %q4; atom.global.exch.b128 %q5, [%rd1+48], %q1; "
		"mov.b128 %q6, %q5; st.global.b128 [%rd1+64], %q6; ld.global.b128 %q7, [%rd1+48];\n"
		"st.global.b128 [%rd1+80], %q7;");
	/* red.add.f32 flushes subnormal numbers in global memory, not in shared */
	static const char tiny[] = ONE(
		"mov.b32 %f1, 0x00000007; red.global.add.f32 [%rd1], %f1; "
		"ld.global.u32 %r2, [%rd1+4]; st.shared.u32 [s], %r2; "
		"red.shared.add.f32 [s], %f1;\n"
		"ld.shared.u32 %r3, [s]; st.global.u32 [%rd1+4], %r3;");
	static const uint32_t sum[] = { 0x3f800000, 0x40000000, 0, 0, 0x3f800000, 0x40000000,
					0x3f800000, 0x40000000, 0x3c004000, 0x3c004000, 0x3c004000,
					0x3c004000, 0x3c004000, 0x3c004000, 0, 0, 0, 0 };
	static const uint32_t first[] = { 1, 0, 2, 0 };
	uint64_t *q = (uint64_t *)(void *)buf;

	memset(buf, 0, sizeof(buf));
	ok(clean(one(vectors, 1, 0)) && is(sum, 18), "vector atomics");
	memset(buf, 0, sizeof(buf));
	memcpy(buf, first, sizeof(first));
	ok(clean(one(wide, 1, 0)) && q[0] == 2 && q[1] == 3 && q[2] == 1 && q[3] == 2 &&
	   q[4] == 2 && q[5] == 3 && q[6] == 1 && q[7] == 2 && !q[8] && !q[9] && q[10] == 1 &&
	   q[11] == 2, "128 bits: registers, loads, cas, exch");
	buf[0] = buf[1] = 0x00000010;
	ok(clean(one(tiny, 1, 0)) && buf[0] == 0 && buf[1] == 0x17,
	   "subnormal sums in global and in shared memory");
}

int main(void)
{
	phases();
	copies();
	faults();
	atomics();
	return done();
}
