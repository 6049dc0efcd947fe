// SPDX-License-Identifier: LGPL-2.1-or-later
// Warp-synchronous instructions: fine where warps stay whole, refused where finished lanes would be
// waited for.
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

extern "C" __global__ void votes(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], r = 0;

	r |= __any_sync(~0u, v % 5 == 0) ? 1 : 0;
	r |= __all_sync(~0u, v % 3 != 7) ? 2 : 0;
	r |= __uni_sync(~0u, v & 1) ? 4 : 0;
	r |= __uni_sync(~0u, blockIdx.x & 1) ? 8 : 0;
	out[i] = r;
}

extern "C" __global__ void shuffles(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], r;

	r = __shfl_sync(~0u, v, v & 31);
	r = r * 3 + __shfl_up_sync(~0u, v, 3, 16);
	r = r * 3 + __shfl_down_sync(~0u, v, 5, 8);
	r = r * 3 + __shfl_xor_sync(~0u, v, 9);
	r += (unsigned int)__shfl_sync(~0u, (unsigned long long)v << 7, 30, 4);
	out[i] = r;
}

extern "C" __global__ void match(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i] & 7;
	int all;
	unsigned int same = __match_any_sync(~0u, v),
		     whole = __match_all_sync(~0u, blockIdx.x / 2, &all);

	/* those with one value among themselves */
	out[i] = same ^ whole ^ all ^ __popc(__ballot_sync(same, in[i] & 8)) << 4 ^
		 __shfl_sync(same, in[i], __ffs(same) - 1);
}

/* One addition for all who happen to be there: how they came together does not show */
extern "C" __global__ void active(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;

	if (in[i] % 3 == 0) {
		unsigned int mask = __activemask();

		if (lane == __ffs(mask) - 1)
			atomicAdd(&out[blockIdx.x], __popc(mask));
	}
}

/* Votes of half a warp each */
extern "C" __global__ void half_votes(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];

	if (threadIdx.x & 16)
		out[i] = __ballot_sync(0xffff0000, v & 4) >> 8;
	else
		out[i] = __ballot_sync(0x0000ffff, v & 2) << 8;
}

extern "C" __global__ void redux(const unsigned int *in, unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];

#if __CUDA_ARCH__ >= 800
	out[i] = __reduce_add_sync(~0u, v) ^ __reduce_min_sync(~0u, v) ^
		 __reduce_max_sync(~0u, (int)(v << 8)) ^ __reduce_and_sync(~0u, v | 0xf0) ^
		 __reduce_or_sync(~0u, v & 0xff00) ^ __reduce_xor_sync(~0u, v * 5);
#else
	for (int k = 16; k; k >>= 1)
		v ^= __shfl_xor_sync(~0u, v * 5, k);
	out[i] = v;
#endif
}
