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
	out[blockIdx.x * blockDim.x + threadIdx.x] =
		(unsigned int)w.v[threadIdx.x % 20] + (unsigned int)d + blockIdx.x;
}

extern "C" __global__ void __launch_bounds__(128, 8) bounds(unsigned int *out)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x ^ threadIdx.x;
}

struct page {
	unsigned int v[1000];
};

/* 4096 bytes, what every driver takes; index known only when it runs */
extern "C" __global__ void page_param(unsigned int *out, struct page p)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] =
		p.v[(threadIdx.x * 31 + blockIdx.x) % 1000] + blockIdx.x;
}

struct large {
	unsigned int v[8100];
};

/* 32 KB with ours behind: PTX 8.1 */
extern "C" __global__ void large_param(unsigned int *out, const __grid_constant__ struct large p)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] =
		p.v[(threadIdx.x * 253 + blockIdx.x) % 8100] + blockIdx.x;
}

/* Arrays in structures, alignment */
struct __align__(16) mixed {
	char c;
	short s[3];
	double d[2];
	float4 f;
};

extern "C" __global__ void mixed_param(char first, struct mixed m, unsigned int *out, short last)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = first + m.c + m.s[threadIdx.x % 3] +
						     (unsigned int)(m.d[threadIdx.x & 1] != 0) +
						     __float_as_uint(m.f.z) + last + blockIdx.x;
}

extern "C" __global__ void __maxnreg__(40) few_registers(unsigned int *out)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, a[8];

	for (unsigned int k = 0; k < 8; k++)
		a[k] = i * (k + 3);
	for (unsigned int k = 0; k < 64; k++)
		a[k & 7] = a[(k + 1) & 7] * 5 + a[(k + 3) & 7];
	out[i] = a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

struct table {
	unsigned int n, v[64];
};

/* The address of a parameter in a loop: what is held of it when a block-task is left */
extern "C" __global__ void param_walk(unsigned int *out, const __grid_constant__ struct table t)
{
	const unsigned int *v = t.v + threadIdx.x % 8, *end = t.v + 56;
	unsigned int sum = blockIdx.x;

	asm("" : "+l"(v), "+l"(end));
	while (v < end) {
		sum = sum * 31 + *v;
		v += 1 + (sum & 1);
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* Of two, at barriers */
extern "C" __global__ void param_choice(unsigned int *out, const __grid_constant__ struct table a,
					const __grid_constant__ struct table b)
{
	__shared__ unsigned int next[64];
	const struct table *t = blockIdx.x & 1 ? &a : &b;
	unsigned int sum = threadIdx.x;

	asm("" : "+l"(t));
	for (unsigned int i = 0; i < 8 + t->n % 4; i++) {
		next[threadIdx.x] = sum;
		__syncthreads();
		sum += next[(threadIdx.x + i) % 64] ^ t->v[(sum + i) % 64];
		__syncthreads();
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
