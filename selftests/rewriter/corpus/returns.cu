// SPDX-License-Identifier: LGPL-2.1-or-later
// Threads that end early while others go on to barriers.
extern "C" __global__ void early(unsigned int *out, int n)
{
	__shared__ unsigned int s[128];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	s[threadIdx.x] = i * 3;
	__syncthreads();
	out[i] = s[0] + i;
}

/* Each thread takes part in another number of barriers */
extern "C" __global__ void divergent(unsigned int *out)
{
	__shared__ unsigned int s[64];
	unsigned int t = threadIdx.x, sum = 0;

	for (unsigned int k = 0; k < 8; k++) {
		if (t < 64 && k == 0)
			s[t] = t + blockIdx.x;
		if (t == 8 * k) {
			out[blockIdx.x * blockDim.x + t] = sum;
			return;
		}
		__syncthreads();
		sum += s[(t + k) & 63];
	}
	out[blockIdx.x * blockDim.x + t] = sum;
}

/* Predicated, and exit instead of return */
extern "C" __global__ void exits(unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = 1;
	asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 3; @p exit; }"
		     :: "r"(threadIdx.x) : "memory");
	__syncthreads();
	out[i] = 2;
	asm volatile("{ .reg .pred p; setp.gt.u32 p, %0, 40; @p ret; }"
		     :: "r"(threadIdx.x) : "memory");
	__syncthreads();
	out[i] = 3;
}

extern "C" __global__ void votes_early(const unsigned int *in, unsigned int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	int a = __syncthreads_count(in[i] & 1), b = __syncthreads_or(in[i] == 7),
	    c = __syncthreads_and(in[i] < 100000);

	out[i] = a * 4 + (b ? 2 : 0) + (c ? 1 : 0);
}

/* The whole block returns: no thread is left at a barrier */
extern "C" __global__ void whole(unsigned int *out, int n)
{
	__shared__ unsigned int s[64];

	if (blockIdx.x * 64 >= n)
		return;
	s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x] + blockIdx.x;
}

extern "C" __global__ void async_copy(const uint4 *in, uint4 *out, int n)
{
	__shared__ uint4 s[64];
	int i = blockIdx.x * 64 + threadIdx.x;

	s[threadIdx.x] = in[i];
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::
		     "r"((unsigned int)__cvta_generic_to_shared(&s[threadIdx.x])), "l"(in + i)
		     : "memory");
#endif
	if (i >= n)
		return;
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.wait_all;" ::: "memory");
#endif
	__syncthreads();
	out[i] = s[threadIdx.x];
}
