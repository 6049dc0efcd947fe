// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of the forms. kernels.ptx is made from this: make forms-ptx
typedef unsigned int u32;
typedef unsigned long long u64;

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

// the same over a grid and blocks of three dimensions
extern "C" __global__ void grid3(u32 *out, u32 n, u32 seed)
{
	u32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	u32 i = block * blockDim.x * blockDim.y * blockDim.z + thread;
	u32 place = blockIdx.x + 31 * blockIdx.y + 1009 * blockIdx.z + 7 * threadIdx.x +
		    13 * threadIdx.y + 17 * threadIdx.z;

	out[i] = mix(out[i] ^ seed ^ place, n);
}

// reverses each block by way of dynamic shared memory
extern "C" __global__ void reverse(u32 *out, u32 n)
{
	extern __shared__ u32 shared[];
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	shared[threadIdx.x] = mix(out[i], n);
	__syncthreads();
	out[i] = shared[blockDim.x - 1 - threadIdx.x];
}

// parameters of all sizes
extern "C" __global__ void many(u32 *out, unsigned char a, u64 b, unsigned short c, u32 d, u64 e,
				unsigned char f, float g, double h, u32 i, u32 j, u32 k, u32 l,
				u64 m, unsigned short n, unsigned char o, u32 p, u32 q, u64 r,
				u32 s)
{
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	u64 sum =
		a + b + c + d + e + f + (u64)g + (u64)h + i + j + k + l + m + n + o + p + q + r + s;

	out[t] = out[t] * 31u + (u32)sum + (u32)(sum >> 32) + t;
}

// a parameter that is aligned as the descriptor of a tensor copy
struct __align__(64) descriptor { u32 word[32]; };
extern "C" __global__ void aligned(const __grid_constant__ descriptor d, u32 a, u32 *out, u32 b)
{
	u32 t = blockIdx.x * blockDim.x + threadIdx.x;
	u64 low = (u64)&d & 63;

	out[t] = out[t] * 31u + a + b + (u32)low + d.word[t & 31] + t;
}

// a word for the stream that runs it: what it saw, one more for the next
extern "C" __global__ void step(u32 *word, u32 *saw, u32 n)
{
	if (!threadIdx.x) {
		*saw = *word;
		*word = mix(*word, n);
	}
}

// adds the same at every launch. Whoever overlaps with another launch loses what that one added
extern "C" __global__ void bump(u32 *out, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, was;

	// not before the work: the compiler would move a plain load behind it
	asm volatile("ld.global.u32 %0, [%1];" : "=r"(was) : "l"(out + i));
	out[i] = was + mix(i, n);
}

// until the host, or somebody, sets *flag
extern "C" __global__ void hold(volatile u32 *flag)
{
	while (!*flag)
		;
}

extern "C" __global__ void set(volatile u32 *word, u32 value)
{
	*word = value;
}

extern "C" __global__ void wild(u32 *p)
{
	*p = 1;
}

extern "C" __global__ void trap(void)
{
	asm volatile("trap;");
}

__device__ u32 counter = 5;
__device__ u32 table[256];
__constant__ u32 weights[64];

extern "C" __global__ void variables(u32 *out, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = mix(out[i] + table[i & 255] + weights[threadIdx.x & 63], n);
	if (!threadIdx.x)
		atomicAdd(&counter, 1);
}

// sums are wanted of these, whatever the order
extern "C" __global__ void add_global(u32 *sums, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	atomicAdd(&sums[mix(i, n) & 63], i);
	atomicMax(&sums[64], mix(i, n));
	atomicXor(&sums[65], mix(i, n));
}

extern "C" __global__ void add_shared(u32 *sums, u32 n)
{
	__shared__ u32 part[64];
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x & 63] = 0;
	__syncthreads();
	atomicAdd(&part[mix(i, n) & 63], i);
	__syncthreads();
	if (threadIdx.x < 64)
		atomicAdd(&sums[threadIdx.x], part[threadIdx.x]);
}

// the lanes of a warp with an odd word count together: one atomic for all
extern "C" __global__ void add_warp(u32 *sums, u32 *places, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, at = 0;

	if (mix(i, n) & 1) {
		u32 active = __activemask(), leader = __ffs(active) - 1;

		if (lane == leader)
			at = atomicAdd(&sums[0], __popc(active));
		at = __shfl_sync(active, at, leader) + __popc(active & ((1u << lane) - 1));
		places[at] = i;
	}
}

extern "C" __global__ void reduce(const u32 *in, u32 *sum, u32 n)
{
	__shared__ u32 part[64];
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = mix(in[i], n);
	__syncthreads();
	for (u32 k = blockDim.x / 2; k; k /= 2) {
		if (threadIdx.x < k)
			part[threadIdx.x] += part[threadIdx.x + k];
		__syncthreads();
	}
	if (!threadIdx.x)
		atomicAdd(sum, part[0]);
}

// inclusive, each block for itself; its total goes to totals[block]
extern "C" __global__ void scan(u32 *data, u32 *totals)
{
	__shared__ u32 part[64];
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;

	part[t] = data[i];
	__syncthreads();
	for (u32 k = 1; k < blockDim.x; k *= 2) {
		u32 left = t >= k ? part[t - k] : 0;

		__syncthreads();
		part[t] += left;
		__syncthreads();
	}
	data[i] = part[t];
	if (t == blockDim.x - 1)
		totals[blockIdx.x] = part[t];
}

extern "C" __global__ void scan_add(u32 *data, const u32 *totals)
{
	u32 left = 0;

	for (u32 b = 0; b < blockIdx.x; b++)
		left += totals[b];
	data[blockIdx.x * blockDim.x + threadIdx.x] += left;
}

// one step of a bitonic sort
extern "C" __global__ void bitonic(u32 *data, u32 j, u32 k)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;

	if (other > i) {
		u32 a = data[i], b = data[other];

		if ((a > b) == !(i & k)) {
			data[i] = b;
			data[other] = a;
		}
	}
}

// counting sort: how many of each key, then each to its place, in no order among equals
extern "C" __global__ void count_keys(const u32 *keys, u32 *counts)
{
	atomicAdd(&counts[keys[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}

extern "C" __global__ void place_keys(const u32 *keys, u32 *next, u32 *out)
{
	u32 key = keys[blockIdx.x * blockDim.x + threadIdx.x];

	out[atomicAdd(&next[key], 1)] = key;
}

// c = a * b, blocks of 8 x 8, n a multiple of 8
extern "C" __global__ void matmul(const float *a, const float *b, float *c, u32 n)
{
	__shared__ float sa[8][8], sb[8][8];
	u32 x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
	float sum = 0;

	for (u32 k = 0; k < n; k += 8) {
		sa[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
		sb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
		__syncthreads();
		for (u32 i = 0; i < 8; i++)
			sum += sa[threadIdx.y][i] * sb[i][threadIdx.x];
		__syncthreads();
	}
	c[y * n + x] = sum;
}

extern "C" __global__ void stencil(const u32 *in, u32 *out, u32 width, u32 height)
{
	u32 x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	u32 l = (x + width - 1) % width, r = (x + 1) % width, u = (y + height - 1) % height,
	    d = (y + 1) % height;

	out[y * width + x] = in[y * width + x] * 5u + in[y * width + l] + 2u * in[y * width + r] +
			     3u * in[u * width + x] + in[d * width + x];
}

// 48 words alive all the time
extern "C" __global__ void heavy(u32 *out, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, x[48], sum = out[i];

#pragma unroll
	for (int k = 0; k < 48; k++)
		x[k] = sum + i * (k + 1);
	for (u32 r = 0; r < n; r++) {
#pragma unroll
		for (int k = 0; k < 48; k++)
			x[k] = x[k] * 1664525u + (x[(k + 7) % 48] ^ (x[(k + 23) % 48] >> 3));
	}
#pragma unroll
	for (int k = 0; k < 48; k++)
		sum = sum * 31u + x[k];
	out[i] = sum;
}

extern "C" __global__ void fetch(u32 *out, cudaTextureObject_t picture, cudaSurfaceObject_t board,
				 u32 width)
{
	u32 x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, v;

	out[y * width + x] = tex2D<u32>(picture, (float)x, (float)y) * 3u;
	surf2Dread(&v, board, x * 4, y);
	surf2Dwrite(v + out[y * width + x], board, x * 4, y);
}

// Blocks that wait for each other

// Of all threads of a cooperative launch, as grid.sync() does it
__device__ void grid_barrier(void)
{
	u32 high, low, was, now, blocks = gridDim.x;
	u64 at;

	asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
	asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
	at = ((u64)high << 32 | low) + 4;
	__syncthreads();
	if (!threadIdx.x) {
		asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
			     : "=r"(was)
			     : "l"(at), "r"(blockIdx.x ? 1u : 0x80000000u - (blocks - 1))
			     : "memory");
		do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(at) : "memory");
		while (!((was ^ now) & 0x80000000u));
	}
	__syncthreads();
}

// Each round every thread reads what another block wrote in the round before
__device__ u32 around(volatile u32 *words, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;

	return mix(words[i] + words[(i + blockDim.x + 1) % all], n);
}

extern "C" __global__ void rounds_whole(u32 *words, u32 n, u32 rounds)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	for (u32 r = 0; r < rounds; r++) {
		u32 v = around(words, n);

		grid_barrier();
		words[i] = v;
		grid_barrier();
	}
}

// The same in an ordinary launch of as many blocks as the device holds
__device__ void counted_barrier(volatile u32 *arrived, u32 *goal)
{
	__syncthreads();
	*goal += gridDim.x;
	if (!threadIdx.x) {
		__threadfence();
		atomicAdd((u32 *)arrived, 1);
		while (*arrived < *goal)
			;
		__threadfence();
	}
	__syncthreads();
}

extern "C" __global__ void rounds_counted(u32 *words, u32 *arrived, u32 n, u32 rounds)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, goal = 0;

	for (u32 r = 0; r < rounds; r++) {
		u32 v = around(words, n);

		counted_barrier(arrived, &goal);
		words[i] = v;
		counted_barrier(arrived, &goal);
	}
}

// One lock for all threads of all blocks; lanes of a warp take their turns
extern "C" __global__ void locked(u32 *lock, volatile u32 *sum, u32 n)
{
	u32 v = mix(blockIdx.x * blockDim.x + threadIdx.x, n);

	for (u32 lane = 0; lane < 32; lane++)
		if ((threadIdx.x & 31) == lane) {
			while (atomicCAS(lock, 0, 1))
				;
			__threadfence();
			sum[0] += v;
			sum[1] ^= v;
			sum[2]++;
			__threadfence();
			atomicExch(lock, 0);
		}
}

// Inclusive, in one launch: a block waits for the sums of those before it. state: 1 its own sum, 2
// with all before
extern "C" __global__ void scan_once(u32 *data, volatile u64 *state, u32 *next)
{
	__shared__ u32 part[64], block, before;
	u32 t = threadIdx.x, i;

	if (!t)
		block = atomicAdd(next, 1);
	__syncthreads();
	i = block * blockDim.x + t;
	part[t] = data[i];
	__syncthreads();
	for (u32 k = 1; k < blockDim.x; k *= 2) {
		u32 left = t >= k ? part[t - k] : 0;

		__syncthreads();
		part[t] += left;
		__syncthreads();
	}
	if (!t) {
		u32 sum = 0, own = part[blockDim.x - 1];

		if (block) {
			state[block] = 1ull << 32 | own;
			for (u32 b = block - 1;; b--) {
				u64 s;

				do
					s = state[b];
				while (!(s >> 32));
				sum += (u32)s;
				if (s >> 32 == 2)
					break;
			}
		}
		state[block] = 2ull << 32 | (u32)(sum + own);
		before = sum;
	}
	__syncthreads();
	data[i] = part[t] + before;
}

// Runs until the host has had all that it wants: a mailbox of two words, what is asked for and what
// was answered
extern "C" __global__ void serve(volatile u32 *mail, u32 *arrived, u32 *words, u32 n)
{
	__shared__ u32 asked;
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, goal = 0;

	for (u32 turn = 1;; turn++) {
		if (!threadIdx.x) {
			while ((asked = mail[0]) < turn)
				;
		}
		__syncthreads();
		if (asked == 0xffffffffu)
			break;
		words[i] = mix(words[i] ^ turn, n);
		__threadfence_system();
		counted_barrier(arrived, &goal);
		if (!i)
			mail[1] = turn;
		__syncthreads();
	}
}
