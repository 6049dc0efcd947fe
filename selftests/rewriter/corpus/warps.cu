// SPDX-License-Identifier: LGPL-2.1-or-later
// Warp-synchronous instructions: fine where warps stay whole, refused where finished lanes would be waited for.
extern "C" __global__ void block_sum(const unsigned int *in, unsigned int *out, int n)
{
	__shared__ unsigned int s[32];
	unsigned int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = i < n ? in[i] : 0;

	for (int k = 16; k; k >>= 1)
		v += __shfl_down_sync(~0u, v, k);
	if ((t & 31) == 0)
		s[t >> 5] = v;
	__syncthreads();
	if (t < 32) {
		v = t < blockDim.x / 32 ? s[t] : 0;
		for (int k = 16; k; k >>= 1)
			v += __shfl_down_sync(~0u, v, k);
		if (t == 0)
			out[blockIdx.x] = v;
	}
}

extern "C" __global__ void row_sum(const unsigned int *in, unsigned int *out, int rows, int cols)
{
	int r = blockIdx.x * blockDim.y + threadIdx.y;
	unsigned int v = 0;

	if (r >= rows)
		return;
	for (int c = threadIdx.x; c < cols; c += 32)
		v += in[r * cols + c];
	for (int k = 16; k; k >>= 1)
		v += __shfl_xor_sync(~0u, v, k);
	if (threadIdx.x == 0)
		out[r] = v;
}

extern "C" __global__ void ballot(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = __ballot_sync(~0u, in[i] & 1) ^ __popc(__ballot_sync(~0u, in[i] & 2));
}

extern "C" __global__ void hazard(const unsigned int *in, unsigned int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[i] = __shfl_xor_sync(~0u, in[i], 1);
}
