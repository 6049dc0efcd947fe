// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels that Slate's table II adds: Gaussian elimination, a quasi-random generator, transpose.

/* GS: the factors of one column, then the elimination below it, from one matrix into the next */
extern "C" __global__ void gs_factors(const float *a, float *factor, unsigned int n, unsigned int k)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x + k + 1;

	if (i < n)
		factor[i] = a[i * n + k] / (a[k * n + k] + 1);
}

extern "C" __global__ void gs_step(const float *a, const float *factor, float *out, unsigned int n,
				   unsigned int k)
{
	unsigned int x = blockIdx.x * blockDim.x + threadIdx.x,
		     y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < n && y < n)
		out[y * n + x] =
			y > k && x >= k ? a[y * n + x] - factor[y] * a[k * n + x] : a[y * n + x];
}

/* RG: points of a digital sequence, one direction number a bit; a row of blocks a dimension */
extern "C" __global__ void rg(const unsigned int *direction, float *out, unsigned int n)
{
	const unsigned int *d = direction + blockIdx.y * 31;

	for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += blockDim.x * gridDim.x) {
		unsigned int v = 0;

		for (unsigned int bit = 0, k = i; bit < 31; bit++, k >>= 1)
			if (k & 1)
				v ^= d[bit];
		out[blockIdx.y * n + i] = (v + 1) * 2.3283064e-10f;
	}
}

/* ... and what makes normal variates of evenly spread ones */
extern "C" __global__ void rg_normal(float *out, unsigned int n)
{
	for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += blockDim.x * gridDim.x) {
		float p = (i + 0.5f) / n, q = p < 0.5f ? p : 1 - p, t = sqrtf(-2 * __logf(q));
		float x = t - (2.515517f + t * (0.802853f + t * 0.010328f)) /
			      (1 + t * (1.432788f + t * (0.189269f + t * 0.001308f)));

		out[i] = p < 0.5f ? -x : x;
	}
}

/* TR: through shared memory, a column of padding against bank conflicts */
extern "C" __global__ void tr(const float *in, float *out, unsigned int width, unsigned int height)
{
	__shared__ float tile[16][17];
	unsigned int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;

	for (unsigned int k = 0; k < 16; k += blockDim.y)
		if (x < width && y + k < height)
			tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
	__syncthreads();
	x = blockIdx.y * 16 + threadIdx.x;
	y = blockIdx.x * 16 + threadIdx.y;
	for (unsigned int k = 0; k < 16; k += blockDim.y)
		if (x < height && y + k < width)
			out[(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
}
