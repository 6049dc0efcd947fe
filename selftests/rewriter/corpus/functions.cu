// SPDX-License-Identifier: LGPL-2.1-or-later
// Ids read in device functions: not inlined, recursive, with barriers, through pointers.
__device__ __noinline__ unsigned int where(unsigned int t)
{
	return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x + t * 65536;
}

__device__ __noinline__ unsigned int deep(unsigned int n)
{
	return n ? deep(n - 1) * 3 + blockIdx.x : gridDim.x;
}

__device__ __noinline__ void meet(unsigned int *s, unsigned int v)
{
	s[threadIdx.x] = v;
	__syncthreads();
}

__device__ __noinline__ unsigned int twice(unsigned int x)
{
	return x * 2;
}

__device__ __noinline__ unsigned int thrice(unsigned int x)
{
	return x * 3 + threadIdx.x;
}

extern "C" __global__ void calls(unsigned int *out)
{
	unsigned int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;

	out[b * blockDim.x + threadIdx.x] = where(threadIdx.x);
}

extern "C" __global__ void recursive(unsigned int *out)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = deep(threadIdx.x & 7);
}

extern "C" __global__ void callee_barrier(unsigned int *out)
{
	__shared__ unsigned int s[64];

	meet(s, blockIdx.x * 64 + threadIdx.x);
	out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}

extern "C" __global__ void callee_barrier_early(unsigned int *out, int n)
{
	__shared__ unsigned int s[64];
	int i = blockIdx.x * 64 + threadIdx.x;

	s[threadIdx.x] = 9;
	if (i >= n)
		return;
	meet(s, i);
	out[i] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void pointer(unsigned int *out, int which)
{
	unsigned int (*f)(unsigned int) = which + threadIdx.x > 20 ? twice : thrice;

	out[blockIdx.x * blockDim.x + threadIdx.x] = f(blockIdx.x);
}

extern "C" __global__ void pointer_to_id(unsigned int *out, int which)
{
	unsigned int (*f)(unsigned int) = which + threadIdx.x > 20 ? where : twice;

	out[blockIdx.x * blockDim.x + threadIdx.x] = f(threadIdx.x);
}
