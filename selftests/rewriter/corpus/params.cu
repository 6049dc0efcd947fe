// SPDX-License-Identifier: LGPL-2.1-or-later
// Parameters: none, structures, odd sizes, many; launch bounds.
struct odd {
	char c[13];
};

struct wide {
	unsigned long long v[20];
};

extern "C" __global__ void none()
{
}

extern "C" __global__ void byte_param(unsigned int *out, unsigned char c)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = c + blockIdx.x;
}

extern "C" __global__ void odd_param(unsigned int *out, struct odd o, short s)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = o.c[threadIdx.x % 13] * 256 + s + blockIdx.x;
}

extern "C" __global__ void wide_param(unsigned int *out, struct wide w, double d)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = (unsigned int)w.v[threadIdx.x % 20] + (unsigned int)d + blockIdx.x;
}

extern "C" __global__ void __launch_bounds__(128, 8) bounds(unsigned int *out)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x ^ threadIdx.x;
}
