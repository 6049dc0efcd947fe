// SPDX-License-Identifier: LGPL-2.1-or-later
// A program of several units: calls, variables and shared memory across them, names that each has for itself. Prints one line.
#include <cstdio>
#include "units.h"

__global__ void first(int *out, int n)
{
	extern __shared__ int mem[];

	mem[threadIdx.x] = (int)threadIdx.x;
	__syncthreads();
	for (int i = blockIdx.x; i < n; i += (int)gridDim.x)
		if (!threadIdx.x)
			out[i] = scaled(mem[blockDim.x - 1] + i) + own_table();
}

int main()
{
	int *out, sum = 0;

	cudaMallocManaged(&out, 64 * sizeof(*out));
	first<<<8, 32, 32 * sizeof(int)>>>(out, 32);
	second<<<32, 1>>>(out + 32);
	cudaError_t e = cudaDeviceSynchronize();
	for (int i = 0; !e && i < 64; i++)
		sum += out[i] * (i + 1);
	printf("%s %d\n", e ? cudaGetErrorString(e) : "sum", sum);
	return e != cudaSuccess;
}
