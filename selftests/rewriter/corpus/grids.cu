// SPDX-License-Identifier: LGPL-2.1-or-later
// Grids of one to three dimensions, and ids used in ways a compiler treats differently.
extern "C" __global__ void vecadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void grid2d(unsigned int *out, int width)
{
	unsigned int x = blockIdx.x * blockDim.x + threadIdx.x,
		     y = blockIdx.y * blockDim.y + threadIdx.y;

	out[y * width + x] = (blockIdx.y << 16 | blockIdx.x) ^ (gridDim.x * 7 + gridDim.y);
}

extern "C" __global__ void grid3d(unsigned int *out)
{
	unsigned int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	unsigned int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	unsigned int n = blockDim.x * blockDim.y * blockDim.z;

	out[b * n + t] = b * 1000003u + t + gridDim.z;
}

/* One thread a block: workers whose thread 0 is all there is */
extern "C" __global__ void tiny(unsigned int *out)
{
	out[blockIdx.x + gridDim.x * blockIdx.y] += blockIdx.x * 3 + blockIdx.y;
}

extern "C" __global__ void stride(unsigned int *out, unsigned int n)
{
	for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * blockDim.x)
		out[i] = i * i + blockIdx.x;
}
