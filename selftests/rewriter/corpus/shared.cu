// SPDX-License-Identifier: LGPL-2.1-or-later
// Static and dynamic shared memory, barriers in loops: the next block-task reuses what slow threads
// still read.
#define TILE 16

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		ta[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
		tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
		__syncthreads();
	}
	c[y * n + x] = sum;
}

extern "C" __global__ void reduce(const unsigned int *in, unsigned int *out, int n)
{
	extern __shared__ unsigned int s[];
	int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;

	s[t] = i < n ? in[i] : 0;
	__syncthreads();
	for (int k = blockDim.x / 2; k > 0; k >>= 1) {
		if (t < k)
			s[t] += s[t + k];
		__syncthreads();
	}
	if (t == 0)
		out[blockIdx.x] = s[0];
}

/* The last reads of shared memory and of the block's id are after the last barrier */
extern "C" __global__ void reverse(const unsigned int *in, unsigned int *out)
{
	__shared__ unsigned int s[128];
	unsigned int b;

	s[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
	__syncthreads();
	asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(b) :: "memory");
	out[b * 128 + threadIdx.x] = s[127 - threadIdx.x];
}

extern "C" __global__ void votes_all(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];

	out[i] = __syncthreads_count(v & 1) * 4 + (__syncthreads_or(v == 5) ? 2 : 0) +
		 (__syncthreads_and(v < 1000000) ? 1 : 0);
}

/* Half of the threads meet at a barrier of their own */
extern "C" __global__ void named(const unsigned int *in, unsigned int *out)
{
	__shared__ unsigned int s[64];
	unsigned int t = threadIdx.x;

	if (t < 64) {
		s[t] = in[blockIdx.x * 64 + t];
		asm volatile("bar.sync 1, 64;" ::: "memory");
		out[blockIdx.x * blockDim.x + t] = s[63 - t];
	} else {
		out[blockIdx.x * blockDim.x + t] = t;
	}
}

/* The same on barrier 0: ours must be another one */
extern "C" __global__ void counted0(const unsigned int *in, unsigned int *out)
{
	__shared__ unsigned int s[64];
	unsigned int t = threadIdx.x;

	if (t < 64) {
		s[t] = in[blockIdx.x * 64 + t];
		asm volatile("bar.sync 0, 64;" ::: "memory");
		out[blockIdx.x * blockDim.x + t] = s[63 - t];
	} else {
		out[blockIdx.x * blockDim.x + t] = t;
	}
}
