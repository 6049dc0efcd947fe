// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of tables.c. tables.ptx is made from this: nvcc -arch=compute_75 --ptx -o tables.ptx tables.cu
typedef unsigned int u32;
typedef u32 (*op_t)(u32, u32);

__device__ u32 mix(u32 x, u32 n)
{
	for (u32 i = 0; i < n; i++)
		x = x * 1664525u + 1013904223u + (x >> 13);
	return x;
}

__device__ u32 add(u32 x, u32 n) { return mix(x + blockIdx.x, n); }
__device__ u32 mul(u32 x, u32 n) { return mix(x * 3, n) * gridDim.x; }
__device__ u32 sub(u32 x, u32 n) { return mix(x, n) - 7 * blockIdx.x; }
__device__ u32 late(u32 x, u32 n) { return ~mix(x, n); }
__device__ u32 last(u32 x, u32 n) { return mix(~x, n); }

__device__ op_t ops[] = { add, mul, sub };
__device__ op_t d_mul = mul, d_late = late, d_last = last;
__constant__ op_t table[4];

__device__ u32 up(u32 x) { return x + 1; }
__device__ u32 down(u32 x) { return x - 1; }
__device__ u32 (*steps[])(u32) = { up, down };

// a table that the host may have changed, pointers that it has brought from there to constant memory, a buffer, a parameter
extern "C" __global__ void step(u32 n, u32 *out, op_t h, const op_t *memory)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, x = out[i];

	x = ops[(x + i) % 3](x, n);
	x = table[x % 4](x, n);
	x = memory[x % 2](x, n);
	out[i] = h(x, n);
}

// a table that kernels change: no twin
extern "C" __global__ void turns(u32 n, u32 *out, u32 swap)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;

	if (swap && !i) {
		u32 (*f)(u32) = steps[0];

		steps[0] = steps[1];
		steps[1] = f;
	}
	if (!swap)
		out[i] = mix(steps[i % 2](out[i]), n);
}
