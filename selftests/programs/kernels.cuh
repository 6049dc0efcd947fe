/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernels of the two example programs. `work` mixes a word for `iters` rounds in every thread, then reduces the block in
 * shared memory: its time is set by iters alone, and every block's result depends on all earlier launches, so one lost or
 * repeated block-task changes the final memory.
 */
extern "C" __global__ void work(unsigned int *out, unsigned int iters, unsigned int seed)
{
	__shared__ unsigned int part[1024];
	unsigned int block = blockIdx.y * gridDim.x + blockIdx.x;
	unsigned int x = seed ^ (block * 2654435761u) ^ (threadIdx.x * 40503u);

	for (unsigned int i = 0; i < iters; i++) {
		x = x * 1664525u + 1013904223u;
		x ^= x >> 15;
	}
	part[threadIdx.x] = x;
	__syncthreads();
	for (unsigned int n = blockDim.x / 2; n > 0; n /= 2) {
		if (threadIdx.x < n)
			part[threadIdx.x] = part[threadIdx.x] * 31u + part[threadIdx.x + n];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		out[block] = out[block] * 31u + part[0];
}
