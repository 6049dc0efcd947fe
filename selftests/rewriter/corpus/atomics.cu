// SPDX-License-Identifier: LGPL-2.1-or-later
// Atomics of all scopes and orders. What they leave does not depend on the order of threads.
#include <cuda_fp16.h>

extern "C" __global__ void scopes(unsigned int *out, unsigned long long *wide)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	atomicAdd_block(&out[blockIdx.x], threadIdx.x);
	atomicAdd(&out[64], i);
	atomicAdd_system(&out[65], 3);
	atomicMax(&out[66], i * 2654435761u);
	atomicMin_system((int *)&out[67], -(int)i);
	atomicOr(&out[68], 1u << (i & 31));
	atomicXor(&out[69], i * 77);
	atomicInc(&out[70], 16);
	atomicDec(&out[71], 10);
	atomicAdd(&wide[0], (unsigned long long)i << 20);
	atomicMax(&wide[1], (unsigned long long)i * 0x100000001ull);
	atomicExch(&out[72 + i % 8], 5);
}

/* Whole numbers: any order gives the same sum */
extern "C" __global__ void real_sums(float *f, double *d, __half2 *h)
{
	unsigned int t = threadIdx.x;

	atomicAdd(f, (float)(t & 7));
	atomicAdd(d, (double)blockIdx.x);
	if (t < 4)
		atomicAdd(h, __halves2half2(__float2half(1), __float2half(2)));
}

/* A loop around compare-and-swap, and a lock that whole blocks take in turn */
extern "C" __global__ void cas(unsigned int *largest, unsigned int *lock, unsigned int *list)
{
	unsigned int mine = (blockIdx.x * blockDim.x + threadIdx.x) * 40503u % 65521,
		     old = *(volatile unsigned int *)largest;

	while (old < mine) {
		unsigned int seen = atomicCAS(largest, old, mine);

		if (seen == old)
			break;
		old = seen;
	}
	if (threadIdx.x == 0) {
		unsigned int one;

		do
			asm volatile("atom.acquire.gpu.cas.b32 %0, [%1], 0, 1;"
				     : "=r"(one) : "l"(lock) : "memory");
		while (one);
		list[0] += blockIdx.x;
		list[1] = list[1] + 1;
		asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(lock), "r"(0) : "memory");
	}
}

/* The last block to come adds up what all have left */
extern "C" __global__ void last_block(const unsigned int *in, unsigned int *part,
				      unsigned int *count, unsigned int *total)
{
	__shared__ unsigned int sum, last;

	if (threadIdx.x == 0)
		sum = 0;
	__syncthreads();
	atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x] & 255);
	__syncthreads();
	if (threadIdx.x == 0) {
		part[blockIdx.x] = sum;
		__threadfence();
		last = atomicAdd(count, 1) == gridDim.x - 1;
		if (last) {
			__threadfence();
			sum = 0;
			for (unsigned int k = 0; k < gridDim.x; k++)
				sum += ((volatile unsigned int *)part)[k];
			*total = sum;
		}
	}
}
