/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels and helpers of the driver API's tests */
#ifndef VGPU_TEST_API_H
#define VGPU_TEST_API_H

#include <stdint.h>
#include <string.h>
#include "libgsched/cuda/base/cudadrv.h"
#include "selftests/tap.h"

/*
 * spin: every thread waits until *flag is not 0. hold: *started = 1, then for ever. stamp: *out =
 * number of stamps before. set: *p = v. add: out[i] = in[i] + v. wild: writes where no memory is.
 * trap. big: 40 KiB of shared memory.
 */
static const char kernels[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 5;\n"
	".visible .entry spin(.param .u64 flag)\n{\n"
	".reg .pred %p; .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
	"ld.param.u64 %rd1, [flag];\n"
	"$L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0; @%p bra $L;\nret;\n}\n"
	".visible .entry hold(.param .u64 started)\n{\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
	"ld.param.u64 %rd1, [started]; mov.u32 %r1, 1; st.volatile.global.u32 [%rd1], %r1;\n"
	"$L: bra $L;\n}\n"
	".visible .entry stamp(.param .u64 counter_, .param .u64 out)\n{\n"
	".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
	"mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @%p bra $E;\n"
	"ld.param.u64 %rd1, [counter_]; ld.param.u64 %rd2, [out];\n"
	"atom.global.add.u32 %r2, [%rd1], 1; st.global.u32 [%rd2], %r2;\n$E: ret;\n}\n"
	".visible .entry set(.param .u64 p, .param .u32 v)\n{\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
	"ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v]; st.volatile.global.u32 [%rd1], %r1; "
	"ret;\n}\n"
	".visible .entry add(.param .u64 out, .param .u64 in, .param .u32 v)\n{\n"
	".reg .b32 %r<6>; .reg .b64 %rd<6>;\n"
	"ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; ld.param.u32 %r1, [v];\n"
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; "
	"mad.lo.u32 %r2, %r2, %r3, %r4;\n"
	"mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;\n"
	"ld.global.u32 %r5, [%rd2]; add.u32 %r5, %r5, %r1; st.global.u32 [%rd1], %r5; ret;\n}\n"
	".visible .entry wild()\n{\n.reg .b64 %rd<2>;\n"
	"mov.u64 %rd1, 0x123456789000; st.global.u64 [%rd1], %rd1; ret;\n}\n"
	".visible .entry big(.param .u64 p)\n{\n.shared .align 4 .b8 s[40960]; .reg .b32 %r<2>;\n"
	"mov.u32 %r1, s; st.shared.u32 [%r1], %r1; ret;\n}\n"
	".visible .entry bound(.param .u64 p)\n.maxntid 64, 1, 1\n{\nret;\n}\n";

extern CUcontext ctx;
extern CUmodule module;
extern CUfunction k_spin, k_stamp, k_set, k_add, k_wild;
extern volatile uint32_t *host;		/* pinned, 1024 words; tests share it out and clear it */

#define OK(call) CHECK((call) == CUDA_SUCCESS)
#define IS(result, call) CHECK((call) == CUDA_ERROR_##result)

bool prepare(void);			/* device, context, module, pinned words */
CUresult run(CUfunction f, unsigned int blocks, unsigned int threads, CUstream s, void **params);

static inline CUdeviceptr at(unsigned int word)
{
	return (CUdeviceptr)(uintptr_t)(host + word);
}

static inline CUresult spin(CUstream s, unsigned int word, unsigned int blocks,
			    unsigned int threads)
{
	CUdeviceptr p = at(word);

	return run(k_spin, blocks, threads, s, (void *[]){ &p });
}

static inline CUresult stamp(CUstream s, unsigned int counter, unsigned int word,
			     unsigned int threads)
{
	CUdeviceptr c = at(counter), p = at(word);

	return run(k_stamp, 1, threads, s, (void *[]){ &c, &p });
}

static inline CUresult set(CUstream s, unsigned int word, uint32_t v)
{
	CUdeviceptr p = at(word);

	return run(k_set, 1, 32, s, (void *[]){ &p, &v });
}

void textures_tests(void);
void streams_tests(void);
void pools_tests(void);
void virtual_tests(void);
void graphs_tests(void);
void process_tests(const char *self);
int process_child(const char *role);

#endif /* VGPU_TEST_API_H */
