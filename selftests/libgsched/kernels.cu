// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of app.c. kernels.ptx is made from this: nvcc -arch=compute_75 --ptx -o kernels.ptx kernels.cu
typedef unsigned int u32;

__device__ u32 mix(u32 x, u32 n)
{
	for (u32 i = 0; i < n; i++)
		x = x * 1664525u + 1013904223u + (x >> 13);
	return x;
}

// one word a thread, n rounds of work
extern "C" __global__ void work(u32 *out, u32 n, u32 seed)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = mix(out[i] ^ seed ^ i, n);
}

// the next launch in the stream reads what this one wrote, from other blocks: order shows in the result
extern "C" __global__ void chain(u32 *out, u32 blocks, u32 n)
{
	u32 from = (blockIdx.x * 7 + 3) % blocks;
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	out[blocks * blockDim.x + i] = mix(out[from * blockDim.x + threadIdx.x] + i, n);
}

extern "C" __global__ void copyback(u32 *out, u32 blocks)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = out[blocks * blockDim.x + i];
}

// 2-D grid, dynamic shared memory, barriers, threads that return early
extern "C" __global__ void tile(u32 *out, u32 width, u32 n, unsigned char small, unsigned long long big)
{
	extern __shared__ u32 shared[];
	u32 x = blockIdx.x, y = blockIdx.y, t = threadIdx.x;

	if (t >= blockDim.x - 3)
		return;
	shared[t] = mix(out[(y * gridDim.x + x) * blockDim.x + t] + small, n);
	__syncthreads();
	out[(y * gridDim.x + x) * blockDim.x + t] = shared[(t + 1) % (blockDim.x - 3)] ^ (u32)(big >> (x & 31)) ^ width;
}

// 48 KiB of static shared memory, where a twin's own words have no room; and `d` words of dynamic
// shared memory
extern "C" __global__ void full(u32 *out, u32 n, u32 d)
{
	__shared__ u32 fixed[12288];
	extern __shared__ u32 shared[];
	u32 t = threadIdx.x, i = blockIdx.x * blockDim.x + t;

	fixed[t] = mix(out[i] ^ i, n);
	fixed[12287 - t] = i;
	if (t < d)
		shared[t] = mix(i, n);
	__syncthreads();
	out[i] = fixed[t ^ 1] + fixed[12287 - (t ^ 2)] + (d ? shared[d - 1] : 0);
}

__device__ void count(u32 *at)
{
	asm volatile("red.global.add.u32 [%0], 1;" : : "l"(at));
}

// the blocks from the one numbered `free` on wait for the flag in their middle. Counted for each block: how often it ended;
// behind these how often it began, and how often it has looked at the flag. A load that is volatile or atomic would tell the
// rewriter that the block may wait for another one
extern "C" __global__ void held(u32 *out, u32 *flag, u32 *counts, u32 free, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;
	u32 *ended = counts + blockIdx.x, *began = ended + gridDim.x, *looked = began + gridDim.x;
	u32 x = mix(out[i] ^ i, n);

	if (!threadIdx.x)
		count(began);
	for (u32 set = blockIdx.x < free; !set;) {
		asm volatile("ld.u32 %0, [%1];" : "=r"(set) : "l"(flag));
		if (!threadIdx.x)
			count(looked);
	}
	out[i] = mix(x, n);
	__syncthreads();
	if (!threadIdx.x)
		count(ended);
}

// a barrier over the grid, by hand: right where all blocks are resident at once. @count begins with a multiple of the grid
extern "C" __global__ void meets(u32 *out, u32 *count, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, from = (blockIdx.x * 7 + 3) % gridDim.x, x = mix(out[i] ^ i, n);

	out[i] = x;
	__threadfence();
	__syncthreads();
	if (!threadIdx.x) {
		u32 end = (atomicAdd(count, 1) / gridDim.x + 1) * gridDim.x;

		while (*(volatile u32 *)count < end)
			;
		__threadfence();
	}
	__syncthreads();
	x += ((volatile u32 *)out)[from * blockDim.x + threadIdx.x];
	out[gridDim.x * blockDim.x + i] = x;
}
