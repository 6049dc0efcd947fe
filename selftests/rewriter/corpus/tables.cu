// SPDX-License-Identifier: LGPL-2.1-or-later
// Functions called through tables of the program's own: what the tables hold are the original's
// numbers, what is called is the twin's.
typedef unsigned int u32;
typedef u32 (*op_t)(u32, u32);

/* Not rewritten, and in front: so functions have other numbers in the twins' module */
__device__ __noinline__ u32 least(u32 x, u32 y, u32 z) { return x < y ? x + z : y + z; }
__device__ __noinline__ u32 most(u32 x, u32 y, u32 z) { return x < y ? y + z : x + z; }
__device__ u32 (*extremes[])(u32, u32, u32) = { least, most };

__device__ u32 add(u32 x, u32 y) { return x + y + blockIdx.x; }
__device__ u32 mul(u32 x, u32 y) { return x * y + gridDim.x; }
__device__ u32 sub(u32 x, u32 y) { return x - y; }

__device__ op_t ops[] = { add, mul, sub };
__constant__ op_t constant[4] = { 0, sub, add };
__device__ op_t single = mul;
__device__ op_t square[2][3] = { { add }, { mul, sub } };

/* Functions with other parameters are none that could be meant above */
__device__ u32 ends(u32 x)
{
	if (x % 7 == 3)
		asm volatile("exit;");
	return x ^ blockIdx.x;
}

__device__ u32 meets(u32 x)
{
	__shared__ u32 word;

	__syncthreads();
	if (!threadIdx.x)
		word = x * 3 + blockIdx.y;
	__syncthreads();
	return word + x;
}

__device__ u32 (*stops[])(u32) = { ends, meets };

struct record {
	u32 tag;
	op_t first;
	char pad;
	op_t second;
};
__device__ record records[3] = { { 5, add, 0, sub }, { 6, sub, 1, mul }, { 7, mul, 2, add } };

/* the table itself is changed */
extern "C" __global__ void replaces(u32 *out, u32 n)
{
	extremes[n % 2] = extremes[(n + 1) % 2];
	out[threadIdx.x] = extremes[threadIdx.x % 2](threadIdx.x, n, 1);
}

extern "C" __global__ void by_index(u32 *out)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x, x;

	x = ops[i % 3](i, 7) ^ single(i, 3);
	if (i % 5)
		x += constant[1](i, 2);
	out[i] = x + square[1][0](i, 9) + square[0][0](3, i);
}

/* each thread calls what another one has put into memory */
extern "C" __global__ void in_memory(u32 *out)
{
	op_t *all = (op_t *)(out + (blockIdx.z * gridDim.x + blockIdx.x) * 4 * blockDim.x);
	u32 *sums = (u32 *)(all + blockDim.x), t = threadIdx.x;

	all[t] = t % 4 ? ops[t % 3] : square[0][0];
	__syncthreads();
	sums[t] = all[(t + 5) % blockDim.x](t, blockIdx.x);
	/* so that no number is left */
	__syncthreads();
	all[t] = 0;
}

/* beside a pointer the data that belongs to it */
extern "C" __global__ void of_records(u32 *out)
{
	u32 i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
	const record *r = &records[i % 3];

	out[i] = r->first(i, r->tag) * r->second(r->tag, i);
}

/* barriers, and ends of threads */
extern "C" __global__ void through_barriers(u32 *out, u32 n)
{
	u32 i = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x +
		threadIdx.x;

	out[i] = stops[1 - n](i);
	out[i] += stops[n](i + blockIdx.y);
	out[i] += stops[1 - n](i + 1);
}

/* made here, of functions that look alike */
extern "C" __global__ void chosen(u32 *out, u32 n)
{
	u32 i = blockIdx.x * blockDim.x + threadIdx.x;
	op_t f;

	switch ((i + n) % 3) {
	case 0: f = add; break;
	case 1: f = mul; break;
	default: f = sub;
	}
	out[i] = f(i, n);
}
