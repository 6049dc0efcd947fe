// SPDX-License-Identifier: LGPL-2.1-or-later
// Variables of the module: original and twin share them.
#include <cstdio>

__device__ unsigned int hist[64];
static __device__ unsigned int marks[32] = { 5, 6, 7 };
__device__ uint4 vectors[16];
__device__ unsigned int left[64], right[64];
__device__ unsigned int *sides[2] = { left, right };
__managed__ unsigned int managed[32];
__constant__ unsigned int table[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
__constant__ float4 factors[4] = {
	{ 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 }, { 13, 14, 15, 16 }
};
static __constant__ unsigned int primes[4] = { 2, 3, 5, 7 };

extern "C" __global__ void histogram(const unsigned int *in)
{
	atomicAdd(&hist[in[blockIdx.x * blockDim.x + threadIdx.x] & 63], 1);
}

extern "C" __global__ void statics(unsigned int *out)
{
	if (threadIdx.x == 0)
		marks[blockIdx.x] += blockIdx.x * 3;
	__syncthreads();
	out[blockIdx.x * blockDim.x + threadIdx.x] = marks[blockIdx.x] + threadIdx.x;
}

extern "C" __global__ void constants(unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
	float4 f = factors[threadIdx.x & 3];

	out[i] = table[i & 15] + table[3] * 100 + primes[blockIdx.x & 3] * 10000 +
		 (unsigned int)(f.x + f.w * factors[1].y);
}

__device__ __noinline__ unsigned int sum(const unsigned int *p, unsigned int n)
{
	unsigned int s = 0;

	while (n--)
		s += p[n];
	return s;
}

// A constant's generic address, beside one of global memory
extern "C" __global__ void generic(unsigned int *out, const unsigned int *in)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] =
		sum(threadIdx.x & 1 ? table : in, 1 + threadIdx.x % 16);
}

extern "C" __global__ void literals(unsigned int *out, unsigned int n)
{
	const char *text = blockIdx.x & 1 ? "an odd block" : "a block";
	unsigned int h = 5381;

	while (*text)
		h = h * 33 + *text++;
	if (n > 1000000)
		printf("%s: %u\n", "too many", n);
	out[blockIdx.x * blockDim.x + threadIdx.x] = h + threadIdx.x;
}

// Addresses in a variable: through them the original's variables
extern "C" __global__ void pointers(unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	sides[i & 1][i / 2] += i;
	if (&left[i / 2] != sides[0] + i / 2)
		left[0] = ~0u;
}

extern "C" __global__ void vector(unsigned int *out)
{
	if (threadIdx.x == 0) {
		vectors[blockIdx.x] = make_uint4(blockIdx.x, 2, 3, gridDim.x);
		vectors[blockIdx.x].y += vectors[blockIdx.x].w;
		managed[blockIdx.x] = blockIdx.x ^ 21;
	}
	__syncthreads();
	out[blockIdx.x * blockDim.x + threadIdx.x] =
		vectors[blockIdx.x].y + managed[blockIdx.x] * threadIdx.x;
}

__device__ __noinline__ void note(unsigned int i, unsigned int v)
{
	right[i] = v;
}

// In a function, beside early returns
extern "C" __global__ void in_function(unsigned int n)
{
	__shared__ unsigned int s[64];
	unsigned int i = threadIdx.x;

	s[i] = i * blockIdx.x;
	if (i >= n)
		return;
	__syncthreads();
	if (i == 0)
		note(blockIdx.x, s[n - 1] + s[1]);
}
