// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels that SMGuard's table 3 adds: Monte Carlo and Black-Scholes option prices, breadth-first
// search, MD5.

__device__ unsigned int next_random(unsigned int &s)
{
	s ^= s << 13;
	s ^= s >> 17;
	s ^= s << 5;
	return s;
}

/* One option a block: its threads follow paths, the block adds up */
extern "C" __global__ void mc(const float *spot, float *price, unsigned int paths, float strike,
			      float drift, float vol)
{
	__shared__ float sum[128];
	unsigned int t = threadIdx.x, s = blockIdx.x * 977 + t * 2654435761u + 1;
	float own = spot[blockIdx.x] + 20, total = 0;

	for (unsigned int k = t; k < paths; k += blockDim.x) {
		float u = (next_random(s) >> 8) * 5.9604645e-8f + 1e-7f,
		      v = (next_random(s) >> 8) * 5.9604645e-8f;
		float z = sqrtf(-2 * __logf(u)) * __cosf(6.2831853f * v);

		total += fmaxf(own * __expf(drift + vol * z) - strike, 0);
	}
	sum[t] = total;
	__syncthreads();
	for (unsigned int k = blockDim.x / 2; k; k >>= 1) {
		if (t < k)
			sum[t] += sum[t + k];
		__syncthreads();
	}
	if (!t)
		price[blockIdx.x] = sum[0] / paths;
}

__device__ float normal_below(float d)
{
	float k = 1 / (1 + 0.2316419f * fabsf(d));
	float p = 0.39894228f * __expf(-0.5f * d * d) * k *
		  (0.31938153f +
		   k * (-0.35656378f + k * (1.78147794f + k * (-1.82125598f + k * 1.33027443f))));

	return d > 0 ? 1 - p : p;
}

extern "C" __global__ void bs(const float *spot, const float *strike, const float *years,
			      float *call, float *put, unsigned int n, float rate, float vol)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float s = spot[i] + 5, x = strike[i] + 5, t = years[i] + 0.25f, root = sqrtf(t);
	float d1 = (__logf(s / x) + (rate + 0.5f * vol * vol) * t) / (vol * root),
	      d2 = d1 - vol * root;
	float c1 = normal_below(d1), c2 = normal_below(d2), e = __expf(-rate * t);

	call[i] = s * c1 - x * e * c2;
	put[i] = x * e * (1 - c2) - s * (1 - c1);
}

/*
 * One level: every node of the frontier marks its unvisited neighbours. Several may mark one, all
 * with the same value.
 */
extern "C" __global__ void bfs(const unsigned int *row, const unsigned int *edge,
			       const unsigned int *level, unsigned int *marked, unsigned int n,
			       unsigned int now)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n || level[i] != now)
		return;
	for (unsigned int k = row[i]; k < row[i + 1]; k++) {
		unsigned int j = edge[k];

		if (level[j] > now)
			marked[j] = now + 1;
	}
}

#define STEP(f, a, b, c, d, w, s, k) do { \
	unsigned int x = a + (f) + (w) + k; \
	a = b + (x << s | x >> (32 - s)); \
} while (0)
#define F(b, c, d) ((b & c) | (~b & d))
#define G(b, c, d) ((b & d) | (c & ~d))
#define H(b, c, d) (b ^ c ^ d)
#define I(b, c, d) (c ^ (b | ~d))

/* MD5 of a 4-byte key a thread, looking for a digest; RFC 1321's constants are floor(2^32 *
 * |sin(i)|) */
extern "C" __global__ void md5(unsigned int *found, unsigned int *sums, unsigned int n,
			       unsigned int first, unsigned int wanted)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	unsigned int a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476, w0 = first + i;
	const unsigned int end = 0x80, bits = 32;

	STEP(F(b, c, d), a, b, c, d, w0, 7, 0xd76aa478);
	STEP(F(a, b, c), d, a, b, c, end, 12, 0xe8c7b756);
	STEP(F(d, a, b), c, d, a, b, 0, 17, 0x242070db);
	STEP(F(c, d, a), b, c, d, a, 0, 22, 0xc1bdceee);
	STEP(F(b, c, d), a, b, c, d, 0, 7, 0xf57c0faf);
	STEP(F(a, b, c), d, a, b, c, 0, 12, 0x4787c62a);
	STEP(F(d, a, b), c, d, a, b, 0, 17, 0xa8304613);
	STEP(F(c, d, a), b, c, d, a, 0, 22, 0xfd469501);
	STEP(F(b, c, d), a, b, c, d, 0, 7, 0x698098d8);
	STEP(F(a, b, c), d, a, b, c, 0, 12, 0x8b44f7af);
	STEP(F(d, a, b), c, d, a, b, 0, 17, 0xffff5bb1);
	STEP(F(c, d, a), b, c, d, a, 0, 22, 0x895cd7be);
	STEP(F(b, c, d), a, b, c, d, 0, 7, 0x6b901122);
	STEP(F(a, b, c), d, a, b, c, 0, 12, 0xfd987193);
	STEP(F(d, a, b), c, d, a, b, bits, 17, 0xa679438e);
	STEP(F(c, d, a), b, c, d, a, 0, 22, 0x49b40821);
	STEP(G(b, c, d), a, b, c, d, end, 5, 0xf61e2562);
	STEP(G(a, b, c), d, a, b, c, 0, 9, 0xc040b340);
	STEP(G(d, a, b), c, d, a, b, 0, 14, 0x265e5a51);
	STEP(G(c, d, a), b, c, d, a, w0, 20, 0xe9b6c7aa);
	STEP(G(b, c, d), a, b, c, d, 0, 5, 0xd62f105d);
	STEP(G(a, b, c), d, a, b, c, 0, 9, 0x02441453);
	STEP(G(d, a, b), c, d, a, b, 0, 14, 0xd8a1e681);
	STEP(G(c, d, a), b, c, d, a, 0, 20, 0xe7d3fbc8);
	STEP(G(b, c, d), a, b, c, d, 0, 5, 0x21e1cde6);
	STEP(G(a, b, c), d, a, b, c, bits, 9, 0xc33707d6);
	STEP(G(d, a, b), c, d, a, b, 0, 14, 0xf4d50d87);
	STEP(G(c, d, a), b, c, d, a, 0, 20, 0x455a14ed);
	STEP(G(b, c, d), a, b, c, d, 0, 5, 0xa9e3e905);
	STEP(G(a, b, c), d, a, b, c, 0, 9, 0xfcefa3f8);
	STEP(G(d, a, b), c, d, a, b, 0, 14, 0x676f02d9);
	STEP(G(c, d, a), b, c, d, a, 0, 20, 0x8d2a4c8a);
	STEP(H(b, c, d), a, b, c, d, 0, 4, 0xfffa3942);
	STEP(H(a, b, c), d, a, b, c, 0, 11, 0x8771f681);
	STEP(H(d, a, b), c, d, a, b, 0, 16, 0x6d9d6122);
	STEP(H(c, d, a), b, c, d, a, bits, 23, 0xfde5380c);
	STEP(H(b, c, d), a, b, c, d, end, 4, 0xa4beea44);
	STEP(H(a, b, c), d, a, b, c, 0, 11, 0x4bdecfa9);
	STEP(H(d, a, b), c, d, a, b, 0, 16, 0xf6bb4b60);
	STEP(H(c, d, a), b, c, d, a, 0, 23, 0xbebfbc70);
	STEP(H(b, c, d), a, b, c, d, 0, 4, 0x289b7ec6);
	STEP(H(a, b, c), d, a, b, c, w0, 11, 0xeaa127fa);
	STEP(H(d, a, b), c, d, a, b, 0, 16, 0xd4ef3085);
	STEP(H(c, d, a), b, c, d, a, 0, 23, 0x04881d05);
	STEP(H(b, c, d), a, b, c, d, 0, 4, 0xd9d4d039);
	STEP(H(a, b, c), d, a, b, c, 0, 11, 0xe6db99e5);
	STEP(H(d, a, b), c, d, a, b, 0, 16, 0x1fa27cf8);
	STEP(H(c, d, a), b, c, d, a, 0, 23, 0xc4ac5665);
	STEP(I(b, c, d), a, b, c, d, w0, 6, 0xf4292244);
	STEP(I(a, b, c), d, a, b, c, 0, 10, 0x432aff97);
	STEP(I(d, a, b), c, d, a, b, bits, 15, 0xab9423a7);
	STEP(I(c, d, a), b, c, d, a, 0, 21, 0xfc93a039);
	STEP(I(b, c, d), a, b, c, d, 0, 6, 0x655b59c3);
	STEP(I(a, b, c), d, a, b, c, 0, 10, 0x8f0ccc92);
	STEP(I(d, a, b), c, d, a, b, 0, 15, 0xffeff47d);
	STEP(I(c, d, a), b, c, d, a, end, 21, 0x85845dd1);
	STEP(I(b, c, d), a, b, c, d, 0, 6, 0x6fa87e4f);
	STEP(I(a, b, c), d, a, b, c, 0, 10, 0xfe2ce6e0);
	STEP(I(d, a, b), c, d, a, b, 0, 15, 0xa3014314);
	STEP(I(c, d, a), b, c, d, a, 0, 21, 0x4e0811a1);
	STEP(I(b, c, d), a, b, c, d, 0, 6, 0xf7537e82);
	STEP(I(a, b, c), d, a, b, c, 0, 10, 0xbd3af235);
	STEP(I(d, a, b), c, d, a, b, 0, 15, 0x2ad7d2bb);
	STEP(I(c, d, a), b, c, d, a, 0, 21, 0xeb86d391);
	sums[i] = a + 0x67452301;
	if (a + 0x67452301 == wanted)
		*found = w0;
}
