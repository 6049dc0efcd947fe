// SPDX-License-Identifier: LGPL-2.1-or-later
// What ends a program, where it does not come to that; output.
#include <cassert>
#include <cstdio>

extern "C" __global__ void asserts(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	assert(in[i] < 1u << 24);
	if (in[i] == ~0u)
		__trap();
	out[i] = in[i] + blockIdx.x;
	if (in[i] == ~1u)
		asm volatile("brkpt;");
}

/* Printed by nobody, unless the input is wrong */
extern "C" __global__ void prints(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (in[i] >> 24)
		printf("block %u: %u\n", blockIdx.x, in[i]);
	out[i] = in[i] ^ blockIdx.x;
}
