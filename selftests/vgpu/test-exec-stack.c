// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * malloc and free in kernels, alloca and the stack pointer, blocks that are clusters of their own.
 */
#include "test-exec.h"

#define REGS ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n"
#define START ".visible .entry k(.param .u64 b)\n{\n" REGS \
	"ld.param.u64 %rd1, [b]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; " \
	"add.s64 %rd2, %rd1, %rd2;\n"
#define HEAP ".extern .func (.param .b64 r) malloc(.param .b64 n);\n" \
	     ".extern .func free(.param .b64 p);\n"
#define MALLOC(to, n) "{ .param .b64 n; st.param.b64 [n], " \
	n "; .param .b64 r; call.uni (r), malloc, (n); ld.param.b64 " to ", [r]; }\n"
#define FREE(p) "{ .param .b64 q; st.param.b64 [q], " p "; call.uni free, (q); }\n"

static uint64_t buf[256];

static const char *one(const char *ptx, unsigned int threads)
{
	struct args a = { { (uintptr_t)buf } };

	return run_text(ptx, 1, threads, 0, 3, &a);
}

static bool clean(const char *error)
{
	if (*error)
		printf("# %s\n", error);
	return !*error;
}

static bool mine(uint64_t addr, size_t size, bool write)
{
	return addr >= (uintptr_t)buf && addr + size <= (uintptr_t)(buf + 256);
}

static void heap(void)
{
	/* every thread a piece of its own, which the next kernel reads and frees */
	static const char give[] = HEAD HEAP START
		"mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, 8;\n" MALLOC("%rd4", "%rd3")
			"st.u32 [%rd4], %r1; add.s64 %rd5, %rd4, %rd3; st.u8 [%rd5+-1], %r1;\n"
		"st.global.u64 [%rd2], %rd4; ret;\n}\n";
	static const char take[] = HEAD HEAP START "ld.global.u64 %rd4, [%rd2]; "
						   "ld.u32 %r2, [%rd4]; cvt.u64.u32 %rd8, %r2; "
						   "st.global.u64 [%rd2], %rd8;\n"
							   FREE("%rd4") FREE("0") "ret;\n}\n";
	static const char large[] = HEAD HEAP START MALLOC("%rd4", "%rd2") MALLOC("%rd5", "0")
		"st.global.v2.u64 [%rd1], {%rd4, %rd5}; ret;\n}\n";
	static const char beyond[] = HEAD HEAP START MALLOC("%rd4", "16")
		"st.u32 [%rd4+16], %r1; ret;\n}\n";
	static const char after[] = HEAD HEAP START MALLOC("%rd4", "16") FREE("%rd4")
		"st.u32 [%rd4], %r1; ret;\n}\n";
	static const char twice[] = HEAD HEAP START FREE("%rd1") "ret;\n}\n";
	unsigned int i;
	bool good;

	vgpu_access_ok = mine;
	good = clean(one(give, 70));
	for (i = 0; i < 70; i++)
		good &= buf[i] && !(buf[i] & 15) && (!i || buf[i] != buf[i - 1]);
	good &= clean(one(take, 70));
	for (i = 0; i < 70; i++)
		good &= buf[i] == i;
	ok(good, "malloc in one kernel, free in the next");
	buf[0] = buf[1] = 1;
	ok(clean(one(large, 1)) && !buf[0] && !buf[1],
	   "malloc beyond the heap, and of nothing, is 0");
	ok(strstr(one(beyond, 1), "illegal store"), "fault: behind a piece");
	ok(strstr(one(after, 1), "illegal store"), "fault: a piece that was freed");
	ok(strstr(one(twice, 1), "was not allocated by malloc"), "fault: free of something else");
	vgpu_access_ok = NULL;
}

static void stack(void)
{
	/* each thread n + 1 words, kept over a call that takes its own */
	static const char own[] = HEAD
		".func (.param .b64 r) f(.param .b64 n)\n{\n.local .align 8 .b8 l[16]; " REGS
		"ld.param.u64 %rd1, [n]; alloca.u64 %rd2, %rd1, 64; and.b64 %rd5, %rd2, 63; "
		"mov.u64 %rd3, 99; st.local.u64 [%rd2], %rd3; st.local.u64 [l], %rd5;\n"
		"ld.local.u64 %rd4, [l]; st.param.b64 [r], %rd4; ret;\n}\n" START
		".local .align 8 .b64 v; add.u32 %r2, %r1, 1; mul.wide.u32 %rd3, %r2, 8; "
		"st.local.u64 [v], %rd3; stacksave.u64 %rd9; alloca.u64 %rd4, %rd3; "
		"mov.u32 %r3, 0; mov.u64 %rd5, %rd4;\n"
		"$L: cvt.u64.u32 %rd6, %r3; st.local.u64 [%rd5], %rd6; add.s64 %rd5, %rd5, 8; "
		"add.s32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2;\n@%p1 bra $L;\n"
		"{ .param .b64 n; st.param.b64 [n], %rd3; .param .b64 r; call (r), f, (n); "
		"ld.param.b64 %rd7, [r]; }\n"
		"$M: add.s64 %rd5, %rd5, -8; ld.local.u64 %rd6, [%rd5]; add.s64 %rd7, %rd7, %rd6; "
		"setp.ne.s64 %p2, %rd5, %rd4;\n@%p2 bra $M;\n"
		"stackrestore.u64 %rd9; alloca.u64 %rd10, %rd3; setp.eq.s64 %p3, %rd10, %rd4;\n"
		"@!%p3 add.s64 %rd7, %rd7, 1000;\nld.local.u64 %rd11, [v];\n"
		"setp.ne.s64 %p3, %rd11, %rd3;\n@%p3 add.s64 %rd7, %rd7, 2000;\n"
		"st.global.u64 [%rd2], %rd7; ret;\n}\n";
	static const char wild[] = HEAD START "stackrestore.u64 %rd1; ret;\n}\n";
	static const char over[] = HEAD START "mov.u64 %rd3, 1000000; alloca.u64 %rd4, %rd3; "
					      "ret;\n}\n";
	unsigned int i;
	bool good = clean(one(own, 70));

	for (i = 0; i < 70; i++)
		good &= buf[i] == (uint64_t)i * (i + 1) / 2;
	ok(good, "alloca, stacksave, stackrestore");
	ok(strstr(one(wild, 1), "no place in the stack"), "fault: a stack pointer from elsewhere");
	ok(strstr(one(over, 1), "stack overflow"), "fault: alloca beyond local memory");
}

static void clusters(void)
{
	static const char alone[] = HEAD START ".shared .b32 s; mov.u32 %r2, s; "
					       "mapa.shared::cluster.u32 %r3, %r2, 0; "
					       "st.shared::cluster.u32 [%r3], 5; "
					       "ld.shared.u32 %r4, [s];\n"
		"getctarank.shared::cluster.u32 %r5, %r2; add.s32 %r4, %r4, %r5; "
		"mov.u32 %r6, %cluster_nctarank; add.s32 %r4, %r4, %r6; griddepcontrol.wait; "
		"griddepcontrol.launch_dependents;\n"
		"cvt.u64.u32 %rd3, %r4; st.global.u64 [%rd2], %rd3; ret;\n}\n";
	static const char other[] = HEAD START ".shared .b32 s; mov.u32 %r2, s; "
					       "mapa.shared::cluster.u32 %r3, %r2, 1; ret;\n}\n";
	static const char required[] =
		HEAD ".visible .entry k(.param .u64 b) .explicitcluster .reqnctapercluster 2, 1, "
		     "1\n{ ret; }\n";

	ok(clean(one(alone, 1)) && buf[0] == 6, "a block is a cluster of its own");
	ok(strstr(one(other, 1), "block 1 of a cluster of one"),
	   "fault: another block of the cluster");
	ok(strstr(one(required, 1), "clusters are not simulated"),
	   "a kernel for clusters is refused");
}

int main(void)
{
	heap();
	stack();
	clusters();
	return done();
}
