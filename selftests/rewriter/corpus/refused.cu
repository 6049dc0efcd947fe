// SPDX-License-Identifier: LGPL-2.1-or-later
// What is refused, each with its reason (refused.launch).
#include <cstdio>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned int counter;

__device__ __noinline__ unsigned int waits(unsigned int x)
{
	return __syncthreads_count(x & 1);
}

__device__ __noinline__ unsigned int plain(unsigned int x)
{
	return x + 1;
}

__device__ __noinline__ void leaves(unsigned int x)
{
	if (x == 3)
		asm volatile("exit;");
	counter = 0;
}

struct shape {
	__device__ virtual unsigned int area() = 0;
};

extern "C" __global__ void virtual_call(shape **in, unsigned int *out)
{
	out[blockIdx.x] = in[0]->area();
}

extern "C" __global__ void grid_sync(unsigned int *out)
{
	out[blockIdx.x] = 1;
	cg::this_grid().sync();
	out[blockIdx.x] += out[(blockIdx.x + 1) % gridDim.x];
}

extern "C" __global__ void pointer_to_barrier(unsigned int *out, int which)
{
	unsigned int (*f)(unsigned int) = which + blockIdx.x > 20 ? waits : plain;

	out[blockIdx.x] = f(threadIdx.x);
}

extern "C" __global__ void large_shared(unsigned int *out)
{
	__shared__ unsigned int s[12280];

	s[threadIdx.x] = out[threadIdx.x];
	__syncthreads();
	out[threadIdx.x] = s[(threadIdx.x * 97) % 12280];
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster(unsigned int *out)
{
	out[cg::this_cluster().block_rank()] = 1;
}

extern "C" __global__ void dependent(unsigned int *out)
{
	asm volatile("griddepcontrol.wait;" ::: "memory");
	out[blockIdx.x] = 1;
}

extern "C" __global__ void mbar(unsigned int *out)
{
	__shared__ unsigned long long b;

	asm volatile("mbarrier.init.shared.b64 [%0], 32;"
		     :: "r"((unsigned int)__cvta_generic_to_shared(&b)));
	out[blockIdx.x] = 1;
}
#endif
