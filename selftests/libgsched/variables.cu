// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of variables.c. variables.ptx is made from this: nvcc -arch=compute_75 --ptx -o variables.ptx variables.cu
#include <cstdio>

typedef unsigned int u32;

__device__ u32 total[192 * 64];
static __device__ u32 quiet[64] = { 11, 12, 13 };
__constant__ u32 factors[16] = { 1, 2, 3, 4 };
__device__ u32 *sides[2] = { total, quiet };
__managed__ u32 rounds[64];

__device__ u32 mix(u32 x, u32 n)
{
	for (u32 i = 0; i < n; i++)
		x = x * 1664525u + 1013904223u + (x >> 13);
	return x;
}

// each word from what the launch before left, the host's factors and a literal
extern "C" __global__ void step(u32 n, u32 *out)
{
	const char *text = blockIdx.x & 1 ? "odd blocks" : "even blocks";
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	if (n > 1000000)
		printf("%u rounds\n", n);
	total[i] = mix(total[i] ^ factors[i & 15] ^ text[threadIdx.x % 10], n);
	if (sides[0] != total)
		total[i] = 0;
	if (blockIdx.x == 0) {
		quiet[threadIdx.x] += sides[0][i];
		rounds[threadIdx.x]++;
	}
	out[i] = total[i];
}
