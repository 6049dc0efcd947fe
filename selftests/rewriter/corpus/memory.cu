// SPDX-License-Identifier: LGPL-2.1-or-later
// Shared and local memory of all kinds, copies that are under way at the end of a block.
struct pair {
	unsigned short key;
	unsigned char tag[2];
	unsigned int value;
};

/*
 * Static arrays of several types and alignments; dynamic memory under two names, the second behind
 * the first
 */
extern "C" __global__ void shared_kinds(const unsigned int *in, unsigned int *out)
{
	extern __shared__ unsigned int words[];
	__shared__ __align__(16) struct pair pairs[64];
	__shared__ unsigned char bytes[64][3];
	__shared__ double wide[8];
	unsigned short *halves = (unsigned short *)(words + 64);
	unsigned int t = threadIdx.x, v = in[blockIdx.x * 64 + t];

	words[t] = v;
	halves[t] = v >> 3;
	pairs[t].key = v;
	pairs[t].tag[t & 1] = t;
	pairs[t].tag[~t & 1] = blockIdx.x;
	pairs[t].value = v * 3;
	bytes[t][v % 3] = v;
	bytes[t][(v + 1) % 3] = v >> 8;
	bytes[t][(v + 2) % 3] = t;
	if (t < 8)
		wide[t] = v;
	__syncthreads();
	unsigned int o = (t * 7 + 13) & 63;

	out[blockIdx.x * 64 + t] = words[o] + halves[o ^ 1] * 5 + pairs[o].key +
				   pairs[o].tag[1] * 11 + pairs[o].value + bytes[o][0] * 2 +
				   bytes[o][1] * 3 + bytes[o][2] + (unsigned int)wide[o & 7];
}

__device__ __noinline__ unsigned int sum_of(const unsigned int *p, unsigned int n)
{
	unsigned int s = 0;

	for (unsigned int i = 0; i < n; i++)
		s += p[i] * (i + 1);
	return s;
}

/* One function, and pointers into shared, local and global memory */
extern "C" __global__ void any_memory(const unsigned int *in, unsigned int *out)
{
	__shared__ unsigned int s[64];
	unsigned int t = threadIdx.x, own[8];

	s[t] = in[blockIdx.x * 64 + t];
	for (unsigned int i = 0; i < 8; i++)
		own[i] = t * i + blockIdx.x;
	__syncthreads();
	out[blockIdx.x * 64 + t] = sum_of(s + (t & 31), 8) ^ sum_of(own, 8) ^
				   sum_of(in + blockIdx.x * 64 + (t & 31), 4);
}

/* Where an index is known only when it runs */
extern "C" __global__ void local_array(const unsigned int *in, unsigned int *out)
{
	unsigned int a[32], i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i], sum = 0;

	for (unsigned int k = 0; k < 32; k++)
		a[k] = k * x + blockIdx.x;
	for (unsigned int k = 0; k < 16; k++) {
		unsigned int at = (x >> (k & 7)) & 31;

		a[at] ^= a[(at + k) & 31] + 1;
	}
	for (unsigned int k = 0; k < 32; k++)
		sum = sum * 31 + a[k];
	out[i] = sum;
}

/*
 * Chunk after chunk, one copied while the other is used; the last one that is asked for is never
 * waited for
 */
extern "C" __global__ void pipeline(const uint4 *in, uint4 *out, unsigned int chunks)
{
	__shared__ uint4 s[2][32];
	unsigned int t = threadIdx.x;
	uint4 sum = { 0, 0, 0, 0 };

	in += blockIdx.x * chunks * 32;
#if __CUDA_ARCH__ >= 800
#define COPY(k) \
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n\tcp.async.commit_group;" :: \
		     "r"((unsigned int)__cvta_generic_to_shared(&s[(k) & 1][t])), \
		     "l"(in + (k) % chunks * 32 + t) : "memory")
#define ARRIVED() asm volatile("cp.async.wait_group 1;" ::: "memory")
#else
#define COPY(k) (s[(k) & 1][t] = in[(k) % chunks * 32 + t])
#define ARRIVED() do { } while (0)
#endif
	COPY(0);
	for (unsigned int k = 0; k < chunks; k++) {
		COPY(k + 1);
		ARRIVED();
		__syncthreads();
		uint4 v = s[k & 1][31 - t];

		sum.x += v.x;
		sum.y ^= v.y;
		sum.z += v.z * (k + 1);
		sum.w |= v.w;
		__syncthreads();
	}
	out[blockIdx.x * 32 + t] = sum;
}
