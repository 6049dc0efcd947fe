// SPDX-License-Identifier: LGPL-2.1-or-later
// Textures by handle, over the buffer that stands before them.
extern "C" __global__ void fetches(const float *in, cudaTextureObject_t tex, float *out,
				   unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex1Dfetch<float>(tex, n - 1 - i) + in[i] * blockIdx.x;
}

__device__ __noinline__ float around(cudaTextureObject_t tex, unsigned int i)
{
	return tex1Dfetch<float>(tex, i) + tex1Dfetch<float>(tex, i + blockIdx.x);
}

/* In a function that reads the block's id; past the end there are zeros */
extern "C" __global__ void fetch_function(const float *in, cudaTextureObject_t tex, float *out)
{
	__shared__ float s[64];
	unsigned int i = blockIdx.x * 64 + threadIdx.x;

	s[threadIdx.x] = around(tex, i);
	__syncthreads();
	out[i] = s[63 - threadIdx.x] + in[threadIdx.x];
}
