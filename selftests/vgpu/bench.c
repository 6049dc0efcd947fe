// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How fast the interpreter is: thread-instructions a second on one core, for kernels of different
 * kinds.
 */
#include <time.h>
#include "test-exec.h"

#define LOOP(decl, body) HEAD ".visible .entry k(.param .u64 b, .param .u32 n)\n{\n" \
	".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n" decl \
	"ld.param.u64 %rd1, [b]; ld.param.u32 %r2, [n]; mov.u32 %r1, %tid.x; " \
	"mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;\n" \
	"mov.u32 %r3, 0; cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, 0f3F800001; mov.u32 %r4, %r1;\n" \
	"$L:\n" body "\nadd.s32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2;\n@%p1 bra $L;\n" \
	"cvt.rzi.u32.f32 %r9, %f1; add.s32 %r4, %r4, %r9; st.global.u32 [%rd2], %r4; ret;\n}\n"

static const struct {
	const char *name, *ptx;
} kinds[] = {
	{ "integer", LOOP("", "mad.lo.s32 %r4, %r4, 5, %r3; xor.b32 %r4, %r4, %r1; "
			  "shl.b32 %r5, %r4, 3; add.s32 %r4, %r4, %r5;") },
	{ "fma", LOOP("", "fma.rn.f32 %f1, %f1, %f2, %f2; fma.rn.f32 %f1, %f1, %f2, %f2; "
		      "mul.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f2;") },
	{ "global memory", LOOP("", "ld.global.u32 %r5, [%rd2]; add.s32 %r5, %r5, %r3; "
				"st.global.u32 [%rd2], %r5;") },
	{ "shared memory and barriers",
	  LOOP(".shared .b32 s[1024];",
	       "shl.b32 %r5, %r1, 2; mov.u32 %r6, s; add.s32 %r5, %r5, %r6;\n"
	  "st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r7, [s]; add.s32 %r4, %r4, %r7; "
	  "bar.sync 0;") },
	{ "divergent", LOOP("", "and.b32 %r5, %r1, 3; setp.eq.s32 %p2, %r5, 1;\n@%p2 bra $A;\n"
			    "add.s32 %r4, %r4, 7; bra $B;\n"
	  "$A: add.s32 %r4, %r4, 3;\n$B: xor.b32 %r4, %r4, %r3;") },
};

static int measure(const char *what, unsigned int loops)
{
	static uint32_t buf[1024];
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		char err[256];
		struct vgpu_module *m = vgpu_module_load(kinds[i].ptx, strlen(kinds[i].ptx), err,
							 sizeof(err));
		struct { uint64_t b; uint32_t n; } params = { (uintptr_t)buf, loops };
		struct timespec a, b;
		struct vgpu_block *blk;
		struct vgpu_launch l = { .grid = { 1, 1, 1 }, .block = { 256, 1, 1 },
					 .params = &params, .nsmid = 1,
					 .watch = vgpu_checks & VGPU_CHECK_GRID ?
						  vgpu_watch_new() : NULL };
		uint64_t done = 0;
		double s;

		if (!m)
			return fprintf(stderr, "%s\n", err), 1;
		vgpu_module_kernels(m, (struct vgpu_kernel **)&l.kernel, 1);
		blk = vgpu_block_new(&l, (unsigned int[3]){ 0 }, 0);
		clock_gettime(CLOCK_MONOTONIC, &a);
		if (!blk || vgpu_block_run(blk, 1ull << 40, &done) != VGPU_DONE)
			return fprintf(stderr, "%s\n", blk ? vgpu_block_error(blk) :
				       "out of memory"), 1;
		clock_gettime(CLOCK_MONOTONIC, &b);
		s = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
		printf("vgpu%s: %-28s %7.0f million thread-instructions/s\n", what, kinds[i].name,
		       (double)done / s / 1e6);
		vgpu_block_free(blk);
		vgpu_watch_free(l.watch);
		vgpu_module_free(m);
	}
	return 0;
}

int main(void)
{
	if (measure("", 20000))
		return 1;
	vgpu_checks = VGPU_CHECK_ALL;
	return measure(", all checks", 5000);
}
