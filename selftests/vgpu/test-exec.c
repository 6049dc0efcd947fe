// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The interpreter: control flow, memory, barriers, warps, calls, and how it fails. Arithmetic is in
 * test-exec-alu.c.
 */
#include <unistd.h>
#include "test-exec.h"

#define ENTRY(params, body) HEAD ".visible .entry k(" params ")\n{\n" body "\n}\n"
/* %rd1: the buffer; %r1: thread; %rd2: its element */
#define PROLOGUE \
	".reg .pred %p<20>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .b16 %rs<10>; " \
	".reg .f32 %f<10>; .reg .f64 %fd<10>;\n" \
	"ld.param.u64 %rd1, [b]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; " \
	"add.s64 %rd2, %rd1, %rd2;\n"
#define ONE(body) ENTRY(".param .u64 b", PROLOGUE body)

static uint32_t buf[4096];
static const struct args args = { { 0 } };

static const char *one(const char *ptx, unsigned int threads, uint64_t seed)
{
	struct args a = { { (uintptr_t)buf } };

	return run_text(ptx, 1, threads, 0, seed, &a);
}

static bool all(unsigned int n, uint32_t (*f)(unsigned int i))
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (buf[i] != f(i)) {
			printf("# [%u] is 0x%x, not 0x%x\n", i, buf[i], f(i));
			return false;
		}
	return true;
}

static bool clean(const char *error)
{
	if (*error)
		printf("# %s\n", error);
	return !*error;
}

static void vector_add(void)
{
	static float a[1000], b[1000], c[1000];
	static const char ptx[] = ENTRY(".param .u64 a, .param .u64 b, .param .u64 c, "
					".param .u32 n", ".reg .pred %p<2>; .reg .b32 %r<9>; "
							 ".reg .b64 %rd<12>; .reg .f32 %f<4>;\n"
		"ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; "
		"ld.param.u32 %r2, [n];\n"
		"mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; "
		"mad.lo.s32 %r1, %r3, %r4, %r5;\n"
		"setp.ge.s32 %p1, %r1, %r2;\n@%p1 bra $L;\n"
		"cvta.to.global.u64 %rd4, %rd1; mul.wide.s32 %rd5, %r1, 4; "
		"add.s64 %rd6, %rd4, %rd5;\n"
		"add.s64 %rd7, %rd2, %rd5; add.s64 %rd8, %rd3, %rd5;\n"
		"ld.global.f32 %f1, [%rd6]; ld.global.f32 %f2, [%rd7]; add.f32 %f3, %f1, %f2; "
		"st.global.f32 [%rd8], %f3;\n"
		"$L: ret;");
	struct args v = { { (uintptr_t)a, (uintptr_t)b, (uintptr_t)c, 1000 } };
	bool good;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		a[i] = (float)i * 0.37f;
		b[i] = 1e-3f * (float)(i * i);
	}
	good = clean(run_text(ptx, 8, 128, 0, 0, &v));
	for (i = 0; i < 1000; i++)
		good &= c[i] == a[i] + b[i];
	ok(good, "vectorAdd");
}

/* Tree reduction in shared memory, static and dynamic, each order of warps */
static void reduction(bool dynamic)
{
	static const char fixed[] = ENTRY(".param .u64 b", PROLOGUE
		".shared .align 4 .b8 s[1024];\n"
		"ld.global.u32 %r2, [%rd2]; shl.b32 %r3, %r1, 2; mov.u32 %r4, s; "
		"add.s32 %r4, %r4, %r3;\n"
		"st.shared.u32 [%r4], %r2; bar.sync 0; mov.u32 %r5, 128;\n"
		"$L: setp.ge.u32 %p1, %r1, %r5;\n@%p1 bra $N;\n"
		"shl.b32 %r6, %r5, 2; add.s32 %r7, %r4, %r6; ld.shared.u32 %r8, [%r7]; "
		"ld.shared.u32 %r9, [%r4];\n"
		"add.s32 %r9, %r9, %r8; st.shared.u32 [%r4], %r9;\n"
		"$N: bar.sync 0; shr.u32 %r5, %r5, 1; setp.ne.s32 %p2, %r5, 0;\n@%p2 bra $L;\n"
		"setp.ne.s32 %p3, %r1, 0;\n@%p3 ret;\n"
		"ld.shared.u32 %r10, [s]; st.global.u32 [%rd1], %r10; ret;");
	const char *head = ".extern .shared .align 16 .b8 s[];\n";
	char text[4096], *at;
	struct args a = { { (uintptr_t)buf } };
	uint64_t seed;
	bool good = true;
	uint32_t sum;
	unsigned int i;

	snprintf(text, sizeof(text), "%s", fixed);
	if (dynamic) {
		at = strstr(text, ".shared .align 4 .b8 s[1024];");
		memset(at, ' ', strlen(".shared .align 4 .b8 s[1024];"));
		at = strstr(text, ".visible");
		memmove(at + strlen(head), at, strlen(at) + 1);
		memcpy(at, head, strlen(head));
	}
	for (seed = 0; seed < 20; seed++) {
		for (i = 0, sum = 0; i < 256; i++)
			sum += buf[i] = i * 2654435761u + (uint32_t)seed;
		good &= clean(run_text(text, 1, 256, dynamic ? 1024 : 0, seed, &a)) &&
			buf[0] == sum;
	}
	ok(good, "reduction in %s shared memory with barriers", dynamic ? "dynamic" : "static");
}

static uint32_t f_collatz(unsigned int i)
{
	uint32_t n = i + 1, steps = 0;

	for (; n != 1; steps++)
		n = n & 1 ? 3 * n + 1 : n / 2;
	return steps;
}

static uint32_t f_switch(unsigned int i)
{
	return (uint32_t[]){ 5, 9, 7, 100, 11 }[i % 5] + i;
}

static uint32_t f_spin(unsigned int i)
{
	return i == 31 ? 1 : 42 + i;
}

static void control(void)
{
	static const char collatz[] = ONE(
		"add.s32 %r2, %r1, 1; mov.u32 %r3, 0;\n"
		"$L: setp.eq.s32 %p1, %r2, 1;\n@%p1 bra $E;\n"
		"and.b32 %r4, %r2, 1; setp.eq.s32 %p2, %r4, 0;\n@%p2 bra $H;\n"
		"mad.lo.s32 %r2, %r2, 3, 1;\nbra.uni $J;\n$H: shr.u32 %r2, %r2, 1;\n"
		"$J: add.s32 %r3, %r3, 1;\nbra $L;\n"
		"$E: st.global.u32 [%rd2], %r3; ret;");
	static const char table[] = ONE(
		"rem.u32 %r2, %r1, 5;\n$T: .branchtargets $A, $B, $C, $D, $E;\nbrx.idx %r2, $T;\n"
		"$A: mov.u32 %r3, 5; bra $X;\n$B: mov.u32 %r3, 9; bra $X;\n"
		"$C: mov.u32 %r3, 7; bra $X;\n$D: mov.u32 %r3, 100; bra $X;\n"
		"$E: mov.u32 %r3, 11;\n$X: add.s32 %r3, %r3, %r1; st.global.u32 [%rd2], %r3; ret;");
	/* lanes 0-30 spin, at a lower address, for what lane 31 does later */
	static const char spin[] = ONE(
		"setp.eq.s32 %p1, %r1, 31;\n@%p1 bra $S;\n"
		"$W: ld.volatile.global.u32 %r2, [%rd1+124]; setp.eq.s32 %p2, %r2, 0;\n"
		"@%p2 bra $W;\n"
		"add.s32 %r3, %r1, 42; st.global.u32 [%rd2], %r3; ret;\n"
		"$S: mov.u32 %r4, 100;\n$D: add.s32 %r4, %r4, -1; setp.ne.s32 %p3, %r4, 0;\n"
		"@%p3 bra $D;\n"
		"st.volatile.global.u32 [%rd1+124], 1; ret;");
	/* a lock that each lane takes in turn: livelocks if the winner is never run */
	static const char lock[] = ONE(
		"mov.u32 %r5, 0;\n$L: atom.global.cas.b32 %r2, [%rd1], 0, 1; "
		"setp.ne.s32 %p1, %r2, 0;\n@%p1 bra $L;\n"
		"ld.volatile.global.u32 %r3, [%rd1+4]; add.s32 %r3, %r3, 1; "
		"st.volatile.global.u32 [%rd1+4], %r3;\n"
		"membar.gl; atom.global.exch.b32 %r4, [%rd1], 0; ret;");
	static const char scopes[] = ONE(
		"{ .reg .b32 %t; mov.u32 %t, 1; bra $X; mov.u32 %t, 2;\n"
		"$X: { .reg .b32 %t; mov.u32 %t, 7; bra $X; mov.u32 %t, 9;\n"
		"$X: st.global.u32 [%rd2], %t; }\nst.global.u32 [%rd2+4], %t; }");
	uint64_t seed;
	bool good = true;

	memset(buf, 0, sizeof(buf));
	ok(clean(one(collatz, 1000, 0)) && all(1000, f_collatz), "divergent loops");
	ok(clean(one(table, 100, 0)) && all(100, f_switch), "brx.idx");
	memset(buf, 0, sizeof(buf));
	ok(clean(one(spin, 32, 0)) && all(32, f_spin),
	   "lanes that spin do not starve the lane they wait for");
	for (seed = 0; seed < 10; seed++) {
		memset(buf, 0, sizeof(buf));
		good &= clean(one(lock, 96, seed)) && buf[1] == 96;
	}
	ok(good, "a spin lock among the lanes of a warp");
	ok(clean(one(scopes, 1, 0)) && buf[0] == 7 && buf[1] == 1,
	   "registers and labels of inner scopes");
}

static uint32_t f_count(unsigned int i)
{
	return i < 100 ? 100 : 0;
}

static uint32_t f_red(unsigned int i)
{
	return 43 | 0 << 8 | 1 << 9;
}

static uint32_t f_named(unsigned int i)
{
	return i < 64 ? i + 64 : i;
}

static void barriers(void)
{
	/* threads 100.. return at once; the rest use a barrier, twice */
	static const char early[] = ONE(
		"setp.ge.u32 %p1, %r1, 100;\n@%p1 ret;\n"
		"atom.global.add.u32 %r2, [%rd1+4000], 1; bar.sync 0;\n"
		"ld.global.u32 %r3, [%rd1+4000]; bar.sync 0; st.global.u32 [%rd2], %r3; ret;");
	/* warps 0, 1 wait at barrier 3 for what warps 2, 3 bring */
	static const char named[] = ONE(
		".shared .b32 s[64]; setp.lt.u32 %p1, %r1, 64; mov.u32 %r5, 128; mov.u32 %r6, 3;\n"
		"@%p1 bra $W;\n"
		"shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.s32 %r3, %r3, %r2; "
		"st.shared.u32 [%r3+-256], %r1;\n"
		"bar.arrive %r6, %r5; st.global.u32 [%rd2], %r1; ret;\n"
		"$W: barrier.sync %r6, 128; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; "
		"add.s32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];\n"
		"st.global.u32 [%rd2], %r4; ret;");
	static const char red[] = ONE(
		"setp.lt.u32 %p1, %r1, 43; bar.red.popc.u32 %r2, 0, %p1; "
		"bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;\n"
		"selp.u32 %r3, 256, 0, %p2; selp.u32 %r4, 512, 0, %p3; or.b32 %r2, %r2, %r3; "
		"or.b32 %r2, %r2, %r4;\n"
		"st.global.u32 [%rd2], %r2; ret;");
	static const char diverged[] = ONE(
		"and.b32 %r2, %r1, 1; setp.eq.s32 %p1, %r2, 0;\n@%p1 bra $A;\nbar.sync 0; bra $E;\n"
		"$A: bar.sync 0;\n$E: st.global.u32 [%rd2], 1; ret;");
	/* one half of a warp at barrier 0, the other at 1 */
	static const char stuck[] = ONE("\n\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra $A;\nbar.sync 1;\n"
					"ret;\n$A: bar.sync 0;\nret;");
	static const char skipped[] = ONE("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $A;\nbar.sync 0;\n"
					  "$A: bar.sync 1, 64; ret;");
	static const char odd[] = ONE("bar.sync 1, 48;");
	static const char mixed[] = ONE("setp.lt.u32 %p1, %r1, 32; selp.u32 %r2, 64, 128, %p1; "
					"bar.sync 1, %r2;");
	const char *e;
	uint64_t seed;
	bool good = true;

	for (seed = 0; seed < 10; seed++) {
		memset(buf, 0, sizeof(buf));
		good &= clean(one(early, 256, seed)) && all(256, f_count);
	}
	ok(good, "threads that have exited count as arrived");
	for (seed = 0, good = true; seed < 20; seed++)
		good &= clean(one(named, 128, seed)) && all(128, f_named);
	ok(good, "named barrier with a count, arrive and sync, from registers");
	ok(clean(one(red, 128, 0)) && all(128, f_red), "barrier reductions");
	ok(clean(one(diverged, 64, 0)),
	   "diverged threads may meet at different bar.sync of one barrier");
	vgpu_checks = VGPU_CHECK_ALL;
	e = one(diverged, 64, 0);
	ok(strstr(e, "wait for barrier 0 here"), "... unless that is checked");
	vgpu_checks = 0;
	e = one(stuck, 32, 0);
	ok(strstr(e, "deadlock") && strstr(e, "threads 0-15") && strstr(e, "threads 16-31") &&
	   strstr(e, "line 12") && strstr(e, "line 14"),
	   "a deadlock inside a warp says who waits where");
	e = one(skipped, 96, 0);
	ok(strstr(e, "deadlock") && strstr(e, "threads 32-63") && strstr(e, "barrier 0"),
	   "a deadlock between warps is found");
	ok(strstr(one(odd, 64, 0), "not a multiple of 32"), "a barrier for 48 threads is a fault");
	ok(strstr(one(mixed, 128, 0), "asks for"), "a barrier with two counts is a fault");
}

static uint32_t f_shfl(unsigned int i)
{
	unsigned int lane = i % 32, up = lane >= 3 ? i - 3 : i, down = lane < 30 ? i + 2 : i;

	return (i ^ 5) | up << 8 | down << 16 | (i / 32 * 32 + 7) << 24;
}

static uint32_t f_warp(unsigned int i)
{
	uint32_t votes = 0x49249249 & 0xffffffff, match = 0, j;	/* lanes that 3 divides */

	for (j = 0; j < 32; j++)
		match |= (uint32_t)(j / 8 == i / 8) << j;
	return votes ^ match ^ 496 ^ (i % 2 ? 0xaaaaaaaa : 0);
}

static void warps(void)
{
	static const char shfl[] = ONE(
		"mov.u32 %r9, -1; shfl.sync.bfly.b32 %r2, %r1, 5, 31, %r9; "
		"shfl.sync.up.b32 %r3|%p1, %r1, 3, 0, %r9;\n"
		"shfl.sync.down.b32 %r4|%p2, %r1, 2, 31, %r9; "
		"shfl.sync.idx.b32 %r5, %r1, 7, 31, -1;\n"
		"shl.b32 %r3, %r3, 8; shl.b32 %r4, %r4, 16; shl.b32 %r5, %r5, 24; "
		"or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4;\n"
		"or.b32 %r2, %r2, %r5; st.global.u32 [%rd2], %r2; ret;");
	static const char votes[] = ONE(
		"rem.u32 %r2, %r1, 3; setp.eq.s32 %p1, %r2, 0; vote.sync.ballot.b32 %r3, %p1, -1; "
		"shr.u32 %r4, %r1, 3;\n"
		"match.any.sync.b32 %r5, %r4, -1; redux.sync.add.u32 %r6, %r1, -1; "
		"xor.b32 %r3, %r3, %r5; xor.b32 %r3, %r3, %r6;\n"
		"and.b32 %r7, %r1, 1; setp.eq.s32 %p2, %r7, 0; vote.sync.any.pred %p4, %p2, -1; "
		"vote.sync.all.pred %p5, %p2, -1;\n"
		"@!%p4 trap;\n@%p5 trap;\n@%p2 bra $E;\n"
		"activemask.b32 %r8; xor.b32 %r3, %r3, %r8;\n$E: st.global.u32 [%rd2], %r3; ret;");
	/* the lanes of a mask come to different instructions, at different times */
	static const char apart[] = ONE(
		"setp.lt.u32 %p1, %r1, 16;\n@%p1 bra $A;\nmov.u32 %r4, 50;\n"
		"$D: add.s32 %r4, %r4, -1; setp.ne.s32 %p2, %r4, 0;\n@%p2 bra $D;\n"
		"shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; bra $E;\n"
		"$A: shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;\n"
		"$E: st.global.u32 [%rd2], %r2; ret;");
	static const char gone[] = ONE("setp.lt.u32 %p1, %r1, 8;\n@%p1 exit;\n"
				       "bar.warp.sync -1; st.global.u32 [%rd2], 5; ret;");
	static const char missing[] = ONE("setp.lt.u32 %p1, %r1, 8;\n@%p1 bra $A;\n"
					  "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n"
					  "$A: bar.sync 0; ret;");
	static const char outside[] = ONE("shfl.sync.idx.b32 %r2, %r1, 0, 31, 1; ret;");
	static const char elect[] = ONE("mov.u32 %r3, 0; setp.lt.u32 %p1, %r1, 4;\n@%p1 bra $E;\n"
					"elect.sync %r2|%p2, -16;\n"
					"selp.u32 %r3, %r2, 99, %p2;\n"
					"$E: st.global.u32 [%rd2], %r3; ret;");
	const char *e;
	unsigned int i;
	bool good;

	ok(clean(one(shfl, 64, 0)) && all(64, f_shfl), "shfl.sync");
	ok(clean(one(votes, 32, 0)) && all(32, f_warp), "vote, match, redux, activemask");
	good = clean(one(apart, 32, 0));
	for (i = 0; i < 32; i++)
		good &= buf[i] == (i ^ 16);
	ok(good, "shfl.sync waits for lanes that come to another one");
	memset(buf, 0, sizeof(buf));
	ok(clean(one(gone, 32, 0)) && buf[7] == 0 && buf[8] == 5,
	   "lanes that have exited are not waited for");
	e = one(missing, 32, 0);
	ok(strstr(e, "deadlock") && strstr(e, "shfl"),
	   "lanes of the mask that never come are a deadlock");
	ok(strstr(one(outside, 32, 0), "member mask"), "a lane outside of its own mask is a fault");
	ok(clean(one(elect, 32, 0)) && buf[3] == 0 && buf[4] == 4 && buf[5] == 99, "elect.sync");
}

static void atomics(void)
{
	static const char ptx[] = ONE(
		"cvt.rn.f32.u32 %f1, 1; mov.f64 %fd1, 0d3FE0000000000000;\n"
		"red.global.add.u32 [%rd1], 3; atom.global.add.u64 %rd5, [%rd1+8], 5; "
		"atom.global.add.f32 %f2, [%rd1+16], %f1;\n"
		"atom.global.add.f64 %fd2, [%rd1+24], %fd1; "
		"atom.global.max.s32 %r2, [%rd1+32], %r1; "
		"atom.global.min.s32 %r2, [%rd1+36], %r1;\n"
		"atom.global.inc.u32 %r3, [%rd1+40], 6; atom.global.dec.u32 %r3, [%rd1+44], 6; "
		"shl.b32 %r4, 1, %r1;\n"
		"atom.global.or.b32 %r5, [%rd1+48], %r4; atom.global.xor.b32 %r5, [%rd1+52], %r4; "
		"atom.global.and.b32 %r5, [%rd1+56], -16;\n"
		"atom.add.noftz.f16x2 %r6, [%rd1+60], 0x3C004000; "
		"atom.relaxed.gpu.global.add.noftz.f16 %rs1, [%rd1+64], 0x3C00; ret;");
	static const char shared[] = ONE(
		".shared .align 8 .b32 s[2]; setp.eq.s32 %p1, %r1, 0;\n"
		"@%p1 st.shared.v2.u32 [s], {0, 0};\nbar.sync 0;\n"
		"atom.shared.add.u32 %r2, [s], 1; mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; "
		"atom.add.u32 %r3, [%rd5+4], 2; bar.sync 0;\n"
		"ld.shared.v2.u32 {%r4, %r5}, [s]; add.s32 %r4, %r4, %r5; "
		"st.global.u32 [%rd2], %r4; ret;");
	float f;
	double d;
	uint64_t u;

	memset(buf, 0, sizeof(buf));
	buf[9] = 1000;
	buf[14] = ~0u;
	ok(clean(one(ptx, 256, 3)), "every atomic runs");
	memcpy(&u, buf + 2, 8);
	memcpy(&f, buf + 4, 4);
	memcpy(&d, buf + 6, 8);
	ok(buf[0] == 768 && u == 1280 && f == 256 && d == 128, "atomic add of u32, u64, f32, f64");
	ok(buf[8] == 255 && buf[9] == 0 && buf[10] == 256 % 7 && buf[11] == 3,
	   "atomic max, min, inc, dec");
	ok(buf[12] == ~0u && buf[13] == ~0u && buf[14] == ~15u, "atomic or, xor, and");
	ok(buf[15] == 0x5c006000 && (buf[16] & 0xffff) == 0x5c00, "atomic add of f16x2 and f16");
	ok(clean(one(shared, 96, 0)) && buf[0] == 288 && buf[95] == 288,
	   "atomics on shared memory, direct and generic");
}

static void calls(void)
{
	static const char ptx[] = HEAD
		".func (.param .b32 r) fib(.param .b32 n);\n"
		".global .align 8 .u64 table[2] = {twice, plus};\n"
		".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<3>; "
		"ld.param.u32 %r1, [a]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }\n"
		".func (.param .b32 r) plus(.param .b32 a) { .reg .b32 %r<3>; .reg .pred %p; "
		"ld.param.u32 %r1, [a]; mov.u32 %r2, %ctaid.x;\n"
		"add.s32 %r2, %r2, 100; add.s32 %r1, %r1, %r2; st.param.b32 [r], %r1; ret; }\n"
		".func (.reg .b32 %out) regs(.reg .b32 %x, .reg .b32 %y) { sub.s32 %out, %x, %y; "
		"ret; }\n"
		".func (.param .b32 r) fib(.param .b32 n) {\n"
		".local .align 4 .b8 keep[8]; .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p1;\n"
		"ld.param.u32 %r1, [n]; setp.lt.s32 %p1, %r1, 2;\n@%p1 bra $B;\n"
		"st.local.u32 [keep], %r1; add.s32 %r2, %r1, -1;\n"
		"{ .param .b32 p; st.param.b32 [p+0], %r2; .param .b32 q; call.uni (q), fib, (p); "
		"ld.param.b32 %r3, [q+0]; }\n"
		"ld.local.u32 %r4, [keep]; add.s32 %r4, %r4, -2;\n"
		"{ .param .b32 p; st.param.b32 [p+0], %r4; .param .b32 q; call.uni (q), fib, (p); "
		"ld.param.b32 %r5, [q+0]; }\n"
		"add.s32 %r1, %r3, %r5;\n$B: st.param.b32 [r], %r1; ret;\n}\n"
		".visible .entry k(.param .u64 b)\n{\n" PROLOGUE
		"rem.u32 %r2, %r1, 12;\n{ .param .b32 p; st.param.b32 [p], %r2; .param .b32 q; "
		"call (q), fib, (p); ld.param.b32 %r3, [q]; }\n"
		"and.b32 %r4, %r1, 1; mul.wide.u32 %rd3, %r4, 8; mov.u64 %rd4, table; "
		"add.s64 %rd4, %rd4, %rd3; ld.global.u64 %rd5, [%rd4];\n"
		"{ .param .b32 p; st.param.b32 [p], %r1; .param .b32 q; "
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (q), %rd5, (p), proto; ld.param.b32 %r6, [q]; }\n"
		"call (%r7), regs, (%r6, %r3); shl.b32 %r3, %r3, 16; add.s32 %r7, %r7, %r3; "
		"st.global.u32 [%rd2], %r7; ret;\n}\n";
	static const char forever[] = HEAD
		".func f(.param .b32 a) { .reg .b32 %r<2>; ld.param.u32 %r1, [a]; { .param .b32 p; "
		"st.param.b32 [p], %r1; call f, (p); } ret; }\n"
		".visible .entry k(.param .u64 b) { { .param .b32 p; st.param.b32 [p], 1; "
		"call f, (p); } ret; }\n";
	static const char wild[] = ONE("{ proto: .callprototype _ (); mov.u64 %rd3, 4096; "
				       "call %rd3, proto; } ret;");
	static const char text[] = HEAD
		".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
		".global .align 1 .b8 fmt[40] = {37, 100, 32, 37, 117, 32, 37, 120, 32, 37, 46, "
		"50, 102, 32, 37, 115, 32, 37, 108, 108, 100, 10};\n"
		".global .align 1 .b8 str[4] = {104, 101, 121};\n"
		".visible .entry k(.param .u64 b)\n{\n.local .align 8 .b8 l[40];\n" PROLOGUE
		"st.local.u32 [l], -5; st.local.u32 [l+4], 4000000000; st.local.u32 [l+8], 255; "
		"mov.f64 %fd1, 0d3FF8000000000000; st.local.f64 [l+16], %fd1;\n"
		"mov.u64 %rd3, str; cvta.global.u64 %rd4, %rd3; st.local.u64 [l+24], %rd4; "
		"mov.u64 %rd5, -5000000000; st.local.u64 [l+32], %rd5;\n"
		"mov.u64 %rd6, fmt; mov.u64 %rd7, l; cvta.local.u64 %rd7, %rd7;\n"
		"{ .param .b64 p; st.param.b64 [p], %rd6; .param .b64 q; st.param.b64 [q], %rd7; "
		".param .b32 r;\n"
		"call.uni (r), vprintf, (p, q); ld.param.b32 %r2, [r]; "
		"} st.global.u32 [%rd2], %r2; ret;\n}\n";
	static const uint32_t fibs[] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };
	char got[256] = "";
	unsigned int i;
	bool good;
	FILE *f;
	int keep;

	good = clean(one(ptx, 100, 0));
	for (i = 0; i < 100; i++) {
		uint32_t n = fibs[i % 12];

		good &= buf[i] == (i & 1 ? i + 100 : 2 * i) - n + (n << 16);
	}
	ok(good, "recursion, indirect divergent calls, register parameters");
	ok(strstr(one(forever, 1, 0), "stack overflow"), "endless recursion is a fault");
	ok(strstr(one(wild, 1, 0), "no function"), "a call of no function is a fault");
	/* what a kernel prints goes to the process's output: look at it through a file */
	fflush(stdout);
	keep = dup(1);
	f = tmpfile();
	dup2(fileno(f), 1);
	good = !*one(text, 1, 0);
	fflush(stdout);
	dup2(keep, 1);
	close(keep);
	rewind(f);
	good &= fgets(got, sizeof(got), f) != NULL;
	fclose(f);
	ok(good && !strcmp(got, "-5 4000000000 ff 1.50 hey -5000000000\n") &&
	   buf[0] == 6, "printf");
}

static bool deny_some(uint64_t addr, size_t size, bool write)
{
	return addr >= (uintptr_t)buf && addr + size <= (uintptr_t)(buf + 64);
}

static void memory(void)
{
	static const char vectors[] = ONE(
		"ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1]; "
		"st.global.v2.u64 [%rd1+32], {%rd1, %rd2}; "
		"st.global.v4.u16 [%rd1+16], {%r5, %r4, %r3, %r2};\n"
		"ld.global.s8 %r6, [%rd1+48]; st.global.u32 [%rd1+52], %r6; "
		"ld.global.s32 %rd3, [%rd1+48]; st.global.u64 [%rd1+56], %rd3;\n"
		"ld.global.v2.u8 {%rs1, _}, [%rd1+48]; cvt.u32.u16 %r7, %rs1; "
		"st.global.u32 [%rd1+64], %r7; ret;");
	static const char registers[] = ONE(
		".reg .v4 .u32 v; .reg .v4 .u32 w; ld.global.v4.u32 v, [%rd1]; "
		"mov.v4.u32 w, {v.w, v.x, v.y, v.z}; and.b32 w.x, w.x, 0xffff;\n"
		"mov.v4.u32 v, w; and.b32 v.y, w.g, 0xffff; and.b32 v.z, w.z, 0xffff; "
		"and.b32 v.w, w.a, 0xffff; st.global.v4.u32 [%rd1+16], v; ret;");
	static const char windows[] = ONE(
		".shared .b32 s; .local .b32 l; mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3; "
		"mov.u64 %rd4, l; cvta.local.u64 %rd4, %rd4;\n"
		"isspacep.shared %p1, %rd3; isspacep.local %p2, %rd4; isspacep.global %p3, %rd1; "
		"isspacep.shared %p4, %rd1;\n"
		"and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3; not.pred %p4, %p4; "
		"and.pred %p1, %p1, %p4; selp.u32 %r2, 1, 0, %p1;\n"
		"st.u32 [%rd3], 11; st.u32 [%rd4], 22; ld.shared.u32 %r3, [s]; "
		"ld.local.u32 %r4, [l]; st.global.v2.u32 [%rd1+8], {%r3, %r4};\n"
		"cvta.to.shared.u64 %rd5, %rd3; cvt.u32.u64 %r5, %rd5; ld.shared.u32 %r6, [%r5]; "
		"st.global.v2.u32 [%rd1], {%r2, %r6}; ret;");
	/* tinygrad writes them so */
	static const char elements[] = ONE(
		".shared .align 16 .b8 s[64]; mov.u64 %rd3, s[0]; mov.u64 %rd4, s[8];\n"
		"st.shared.u32 [%rd3+8], 33; ld.shared.u32 %r2, [%rd4]; st.global.u32 [%rd1], %r2; "
		"ret;");
	static const char variables[] = HEAD
		".global .align 4 .u32 v = 7; .global .u64 p = generic(v); "
		".global .u64 q[2] = {v+4, 0}; .const .align 8 .b8 c[8] = {1, 2, 3, 4};\n"
		".global .f32 f[3] = {1.5, 0f40000000, -2}; .global .align 4 .s16 m[][3] = {{1, "
		"-2}, {3, 4, 5}};\n"
		".global .v2 .u8 e[2] = {{1, 2}, {3, 4}};\n"
		".visible .entry k(.param .u64 b)\n{\n" PROLOGUE
		"ld.global.u64 %rd3, [p]; ld.global.u32 %r2, [%rd3]; ld.const.u32 %r3, [c]; "
		"ld.global.u32 %r4, [f+8]; ld.global.s16 %r5, [m+2];\n"
		"ld.global.u32 %r6, [m+8]; ld.global.u64 %rd4, [q]; sub.s64 %rd4, %rd4, %rd3; "
		"cvt.u32.u64 %r7, %rd4;\n"
		"ld.global.u16 %r8, [e+2];\n"
		"st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; "
		"st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r8}; ret;\n}\n";
	/* each is one that ptxas 13.0 refuses, too */
	static const char *const initialisers[] = {
		"a[2][2] = {{1}, 2}", "a[2][2] = {1, 2}", "a[2][2] = {{1, 2, 3}, {4}}",
		"a[2] = {{1}, {2}}", "a[2] = 5", "a = {1}", "a[2] = {1, 2, 3}", "a[2] = {1,}",
	};
	static const char big[] = HEAD ".visible .entry k(.param .u64 b, .param .align 16 .b8 "
				       "s[4096])\n{\n" PROLOGUE
		"mov.b64 %rd3, s; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd3, %rd3, %rd4; "
		"ld.param.u32 %r2, [%rd3+4]; ld.param.u32 %r3, [s+8];\n"
		"add.s32 %r2, %r2, %r3; st.global.u32 [%rd2], %r2; ret;\n}\n";
	static const char beyond[] = ONE("setp.eq.s32 %p1, %r1, 9;\n@%p1 add.s64 %rd2, %rd1, 256;\n"
					 "st.global.u32 [%rd2], 1; ret;");
	static const char poison[] = ONE(".shared .b32 s[64]; ld.shared.u32 %r2, [s+64]; "
					 "st.global.u32 [%rd2], %r2; ret;");
	static const char async[] = ONE(".shared .align 16 .b8 s[64]; "
					"cp.async.ca.shared.global [s], [%rd1], 16, 12; "
					"cp.async.commit_group;\n"
		"cp.async.wait_group 0; ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [s]; "
		"st.global.v4.u32 [%rd1+32], {%r2, %r3, %r4, %r5}; ret;");
	static const struct {
		const char *body, *message;
	} bad[] = {
		{ "add.s64 %rd2, %rd1, 2; ld.global.u32 %r2, [%rd2];", "misaligned" },
		{ "ld.global.u32 %r2, [16];", "illegal load" },
		{ ".shared .b32 s[4]; st.shared.u32 [s+16], 1;", "shared address 0x10" },
		{ ".local .b32 l[4]; st.local.u32 [l+64], 1;", "local" },
		{ "st.param.u32 [b], 1;", "store to parameter" },
		{ "ld.param.u32 %r2, [b+8];", "parameter" },
		{ "mov.u64 %rd3, 0x7000000000000000; ld.global.u32 %r2, [%rd3];", "illegal load" },
		{ "trap;", "trap" },
	};
	struct args a = { { (uintptr_t)buf, 0x0000000300000002 } };
	char ptx[2048];
	unsigned int i;

	memset(buf, 0, sizeof(buf));
	for (i = 0; i < 4; i++)
		buf[i] = 0x10000u * i + i + 1;
	buf[12] = 0x800000f0;
	ok(clean(one(registers, 1, 0)) && buf[4] == 4 && buf[5] == 1 && buf[6] == 2 && buf[7] == 3,
	   "vector registers");
	ok(clean(one(vectors, 1, 0)) && buf[4] == 0x00030004 && buf[5] == 0x00010002 &&
	   buf[8] == (uint32_t)(uintptr_t)buf && buf[13] == 0xfffffff0 && buf[14] == 0x800000f0 &&
	   buf[15] == 0xffffffff && buf[16] == 0xf0, "vectors and extension");
	ok(clean(one(windows, 1, 0)) && buf[0] == 1 && buf[1] == 11 && buf[2] == 11 && buf[3] == 22,
	   "generic addresses");
	ok(clean(one(elements, 1, 0)) && buf[0] == 33, "addresses of elements");
	ok(clean(one(variables, 1, 0)) && buf[0] == 7 && buf[1] == 0x04030201 &&
	   buf[2] == 0xc0000000 && buf[3] == 0xfffffffe && buf[4] == 5 && buf[5] == 4 &&
	   buf[6] == 0x0403, "variables and their initialisers; ptxas does not fill up rows that "
			     "are too short");
	for (i = 0; i < sizeof(initialisers) / sizeof(*initialisers); i++) {
		snprintf(ptx, sizeof(ptx), HEAD ".global .u32 %s;\n"
			 ".visible .entry k(.param .u64 b) { ret; }\n", initialisers[i]);
		ok(strstr(one(ptx, 1, 0), "initialiser of a"), "refused: %s", initialisers[i]);
	}
	memset(buf, 0, sizeof(buf));
	ok(clean(run_text(big, 1, 1, 0, 0, &a)) && buf[0] == 3,
	   "4 KB of parameters by value, indexed");
	ok(clean(one(poison, 1, 0)) && buf[0] && buf[0] != ~0u, "shared memory starts poisoned");
	for (i = 0; i < 4; i++)
		buf[i] = i + 1;
	ok(clean(one(async, 1, 0)) && buf[8] == 1 && buf[10] == 3 && buf[11] == 0,
	   "cp.async with zero fill");
	vgpu_access_ok = deny_some;
	ok(strstr(one(beyond, 32, 0), "illegal store") && strstr(one(beyond, 32, 0), "thread 9"),
	   "an address out of bounds is named");
	ok(clean(one(variables, 1, 0)), "a module's own variables are in bounds");
	vgpu_access_ok = NULL;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *e;

		snprintf(ptx, sizeof(ptx), "%s%s\nret;\n}\n",
			 HEAD ".visible .entry k(.param .u64 b)\n{\n" PROLOGUE, bad[i].body);
		e = one(ptx, 1, 0);
		if (!ok(strstr(e, bad[i].message) && strstr(e, "line"), "fault: %s",
			bad[i].message))
			printf("# %s\n", e);
	}
}

/*
 * Every one of these must be refused by name, at launch; the module's other kernel must still run
 */
static void unknown(void)
{
	static const char *const bad[] = {
		"foo.bar %r1, %r2;", "add.s33 %r1, %r1, %r1;", "add.rn.s32 %r1, %r1, %r1;",
		"mul.s32 %r1, %r1, %r1;",
		"ld.global.frob.u32 %r1, [%rd1];", "shfl.up.b32 %r1, %r1, 1, 0;",
		"wgmma.fence.aligned;",
		"mbarrier.init.shared.b32 [%rd1], 1;",
		"tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2, %f3, %f4}];",
		"div.f32 %f1, %f1, %f2;", "cvt.f32.f64 %f1, %fd1;",
		"atom.global.add.b32 %r1, [%rd1], 1;", "bar.wait 0;",
		"setp.lt.b32 %p1, %r1, %r2;", "barrier.cluster.arrive;", "cp.async.bulk.commit;",
		"mov.b129 %rd1, 5;",
		"add.s32 %r1, %r2;", "add.s32 %r1, %r2, %nonsense;", "bra $NOWHERE;",
		"shl.u32 %r1, %r1, 2;", "call nobody, ();",
	};
	char ptx[2048], err[512], text[64];
	struct vgpu_kernel *k;
	struct vgpu_module *m;
	unsigned int i;
	const char *e;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(ptx, sizeof(ptx), "%s%s\nret;\n}\n",
			 HEAD ".visible .entry good(.param .u64 b) { ret; }\n"
			 ".visible .entry k(.param .u64 b)\n{\n" PROLOGUE, bad[i]);
		m = vgpu_module_load(ptx, strlen(ptx), err, sizeof(err));
		if (!ok(m != NULL, "module with %s loads", bad[i])) {
			printf("# %s\n", err);
			continue;
		}
		k = vgpu_module_kernel(m, "k");
		e = run_grid(k, 1, 1, 0, 0, &args, 1000);
		/* the opcode with its modifiers, and the line */
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(bad[i], " ;"), bad[i]);
		if (!ok((strstr(e, text) || strstr(e, "nonsense") || strstr(e, "NOWHERE") ||
			 strstr(e, "nobody")) && strstr(e, ":9:"),
			"... and fails when launched, by name and line"))
			printf("# %s\n", e);
		if (*run_grid(vgpu_module_kernel(m, "good"), 1, 1, 0, 0, &args, 1000))
			ok(false, "... but the other kernel runs");
		vgpu_module_free(m);
	}
	m = vgpu_module_load("not ptx at all {", 16, err, sizeof(err));
	ok(!m && err[0], "text that is not PTX is refused with a message");
}

/* Of a kernel with 200 live values and that directive */
static unsigned int registers(const char *directive)
{
	static char ptx[1 << 15];
	char err[256];
	int n = snprintf(ptx, sizeof(ptx), HEAD ".visible .entry k(.param .u64 a)\n%s{\n"
			 ".reg .b32 %%r<201>; .reg .b64 %%rd<2>; ld.param.u64 %%rd1, [a];\n",
			 directive);
	struct vgpu_module *m;
	unsigned int i, regs;

	for (i = 0; i < 200; i++)
		n += snprintf(ptx + n, sizeof(ptx) - (size_t)n,
			      "ld.volatile.global.u32 %%r%u, [%%rd1+%u];\n", i, 4 * i);
	for (i = 0; i < 200; i++)
		n += snprintf(ptx + n, sizeof(ptx) - (size_t)n,
			      "st.global.u32 [%%rd1+%u], %%r%u;\n", 4 * i, i);
	n += snprintf(ptx + n, sizeof(ptx) - (size_t)n, "ret;\n}\n");
	m = vgpu_module_load(ptx, (size_t)n, err, sizeof(err));
	regs = m ? vgpu_kernel_info(vgpu_module_kernel(m, "k"))->regs : 0;
	vgpu_module_free(m);
	return regs;
}

static void launches(void)
{
	static const char ptx[] = HEAD ".visible .entry k(.param .u64 a, .param .align 16 .b8 "
				       "s[20], .param .u8 c, .param .f64 d)\n"
		".maxntid 64, 2, 1\n{\n.shared .align 4 .b8 x[100]; .local .b64 l[4]; "
		".reg .b32 %r<3>; mov.u32 %r1, %tid.x; ret;\n}\n";
	static const char regs[] = ONE(
		"mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; "
		"mov.u32 %r4, %nctaid.x; mov.u32 %r5, %warpid; mov.u32 %r6, %laneid;\n"
		"mov.u32 %r7, %smid; mov.u32 %r8, %nsmid; mov.u64 %rd5, %gridid; "
		"cvt.u32.u64 %r9, %rd5; mov.u32 %r10, %lanemask_lt;\n"
		"setp.ne.u32 %p1, %r1, 37;\n@%p1 ret;\n"
		"st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; "
		"st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, %r9};\n"
		"st.global.u32 [%rd1+32], %r10; mov.u32 %r1, WARP_SZ; sub.u32 %r2, %r1, WARP_SZ; "
		"st.global.v2.u32 [%rd1+40], {%r1, %r2}; ret;");
	static const uint32_t want[] = { 0, 64, 1, 1, 5, 0, 4, 7, 31, 0, 32, 0 };
	char err[256];
	struct vgpu_module *m = vgpu_module_load(ptx, strlen(ptx), err, sizeof(err));
	const struct vgpu_kernel_info *i = vgpu_kernel_info(vgpu_module_kernel(m, "k"));

	ok(i->n_params == 4 && i->param[1].offset == 16 && i->param[1].size == 20 &&
	   i->param[2].offset == 36 && i->param[3].offset == 40 && i->param_size == 48,
	   "parameter offsets");
	ok(i->max_threads == 128 && i->static_shared == 100 && i->local_size >= 32 &&
	   i->regs >= 16 && i->regs <= 255, "limits, shared and local sizes");
	ok(strstr(run_grid(vgpu_module_kernel(m, "k"), 1, 129, 0, 0, &args, 1000), "block size"),
	   "a block above .maxntid is refused");
	vgpu_module_free(m);
	ok(registers("") > 168 && registers(".maxntid 384\n") == 168 &&
	   registers(".maxntid 1024\n") == 64,
	   "no more registers than a block of .maxntid can have");
	memset(buf, 0, sizeof(buf));
	ok(clean(one(regs, 64, 0)) && !memcmp(buf, want, sizeof(want)), "special registers");
}

/* A block runs in slices: the same result whatever their length */
static void slices(void)
{
	static const char ptx[] = ONE(
		"mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
		"$L: bar.sync 0; atom.global.add.u32 %r4, [%rd1+8192], 1; bar.sync 0; "
		"ld.global.u32 %r5, [%rd1+8192];\n"
		"mad.lo.s32 %r3, %r3, 31, %r5; add.s32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 10;\n"
		"@%p1 bra $L;\nst.global.u32 [%rd2], %r3; ret;");
	char err[256];
	struct vgpu_module *m = vgpu_module_load(ptx, strlen(ptx), err, sizeof(err));
	uint64_t params = (uintptr_t)buf, done, total = 0;
	struct vgpu_launch l = { .kernel = vgpu_module_kernel(m, "k"), .grid = { 1, 1, 1 },
				 .block = { 70, 1, 1 }, .params = &params, .nsmid = 1 };
	struct vgpu_block *b = vgpu_block_new(&l, (unsigned int[3]){ 0 }, 0);
	uint32_t want = 0, i;
	bool good = true, bounded = true;
	enum vgpu_result r;

	memset(buf, 0, sizeof(buf));
	while ((r = vgpu_block_run(b, 100, &done)) == VGPU_RUNNING) {
		total += done;
		bounded &= done >= 100 && done <= 132;
	}
	for (i = 1; i <= 10; i++)
		want = want * 31 + 70 * i;
	for (i = 0; i < 70; i++)
		good &= buf[i] == want;
	ok(r == VGPU_DONE && good && bounded && total > 70 * 80,
	   "a block runs in slices of about the steps asked for");
	vgpu_block_free(b);
	vgpu_module_free(m);
}

int main(void)
{
	vector_add();
	reduction(false);
	reduction(true);
	control();
	barriers();
	warps();
	atomics();
	calls();
	memory();
	unknown();
	launches();
	slices();
	return done();
}
