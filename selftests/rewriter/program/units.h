// SPDX-License-Identifier: LGPL-2.1-or-later
#ifndef UNITS_H
#define UNITS_H

__device__ int scaled(int x);			// other.cu: knows its block
__global__ void second(int *out);		// other.cu
#ifndef WHOLE
extern __device__ int factor[4];		// table.cu
#endif
__device__ int picked(int x);			// table.cu

// in each unit its own
static __device__ __noinline__ int own_table()
{
	const char *text = "0123456789";

	return text[(threadIdx.x + blockIdx.x) % 10] - '0';
}

// in each unit the same
template <int N> __device__ __noinline__ int folded(int x)
{
	return x % N + N;
}

#endif
