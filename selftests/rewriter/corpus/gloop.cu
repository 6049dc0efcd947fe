// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels like those of GLoop's section 7: TPACF, LavaMD, MUMmer's matching and printing, hybrid
// sort, grep.

/* TPACF: angles between points of one set and all of another, as a histogram in shared memory */
extern "C" __global__ void tpacf(const float *a, const float *b, const float *edge,
				 unsigned int *out, unsigned int n, unsigned int m)
{
	__shared__ unsigned int bins[16];
	__shared__ float edges[16];
	unsigned int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;

	if (t < 16) {
		bins[t] = 0;
		edges[t] = edge[t];
	}
	__syncthreads();
	if (i < n) {
		float x = a[i] - 12, y = a[n + i] - 12, z = a[2 * n + i] - 12;

		for (unsigned int k = 0; k < m; k++) {
			float dot = fabsf(x * b[k] + y * b[m + k] + z * b[2 * m + k]) * 0.01f;
			unsigned int low = 0, high = 15;

			while (high > low + 1) {
				unsigned int mid = (low + high) / 2;

				if (dot < edges[mid])
					high = mid;
				else
					low = mid;
			}
			atomicAdd(&bins[low], 1);
		}
	}
	__syncthreads();
	if (t < 16)
		out[blockIdx.x * 16 + t] = bins[t];
}

/* LavaMD: the particles of a box against those of the boxes beside it, a block a box */
extern "C" __global__ void lavamd(const float4 *particle, const unsigned int *beside, float4 *force,
				  unsigned int a, unsigned int boxes)
{
	__shared__ float4 home[32], away[32];
	unsigned int t = threadIdx.x, box = blockIdx.x;
	float4 f = { 0, 0, 0, 0 };

	if (t < 32)
		home[t] = particle[box * 32 + t];
	__syncthreads();
	for (unsigned int k = 0; k < boxes; k++) {
		unsigned int other = k ? beside[box * boxes + k] : box;

		if (t < 32)
			away[t] = particle[other * 32 + t];
		__syncthreads();
		for (unsigned int i = t & 31, j = t >> 5; j < 32; j += blockDim.x >> 5) {
			float x = home[i].x - away[j].x, y = home[i].y - away[j].y,
			      z = home[i].z - away[j].z;
			float e = __expf(-0.01f * a * (x * x + y * y + z * z)),
			      s = 2 * e * away[j].w;

			f.w += away[j].w * e;
			f.x += s * x;
			f.y += s * y;
			f.z += s * z;
		}
		__syncthreads();
	}
	force[box * blockDim.x + t] = f;
}

/* MUMmer-like: from each place of a text down a tree of letters, as far as it goes */
extern "C" __global__ void mum(const unsigned char *text, const unsigned int *child,
			       unsigned int *length, unsigned int *node, unsigned int n,
			       unsigned int nodes, unsigned int least)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, at = i % nodes, k = i;

	if (i >= n)
		return;
	while (k < n) {
		unsigned int to = child[at * 4 + ((text[k] - 'a') & 3)];

		if (to % 16 == 0)
			break;
		at = to;
		k++;
	}
	length[i] = k - i >= least ? k - i : 0;
	node[i] = at;
}

/* ... and the texts of the matches, many short blocks */
extern "C" __global__ void mum_print(const unsigned char *text, const unsigned int *start,
				     const unsigned int *length, uchar4 *out, unsigned int n,
				     unsigned int size)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	unsigned int s = start[i], l = length[i];
	uchar4 c = { 0, 0, 0, 0 };

	if (l > 0)
		c.x = text[s];
	if (l > 1)
		c.y = text[(s + 1) % size];
	if (l > 2)
		c.z = text[(s + l - 1) % size];
	c.w = l;
	out[i] = c;
}

/* Hybrid sort: into buckets, counted in shared memory a block ... */
extern "C" __global__ void sort_buckets(const unsigned int *in, unsigned int *count,
					unsigned short *bucket, unsigned int n)
{
	extern __shared__ unsigned int bins[];
	unsigned int t = threadIdx.x, each = 4;

	for (unsigned int k = t; k < 64; k += blockDim.x)
		bins[k] = 0;
	__syncthreads();
	for (unsigned int k = 0; k < each; k++) {
		unsigned int i = (blockIdx.x * each + k) * blockDim.x + t;

		if (i < n) {
			unsigned int b = in[i] >> 18;

			bucket[i] = b;
			atomicAdd(&bins[b & 63], 1);
		}
	}
	__syncthreads();
	for (unsigned int k = t; k < 64; k += blockDim.x)
		count[blockIdx.x * 64 + k] = bins[k];
}

/* ... then pieces in shared memory, by a network ... */
extern "C" __global__ void sort_pieces(const unsigned int *in, unsigned int *out)
{
	__shared__ unsigned int s[256];
	unsigned int t = threadIdx.x, n = blockDim.x * 2, first = blockIdx.x * n;

	s[t] = in[first + t];
	s[t + blockDim.x] = in[first + t + blockDim.x];
	for (unsigned int size = 2; size <= n; size *= 2)
		for (unsigned int step = size / 2; step; step /= 2) {
			unsigned int i = 2 * t - (t & (step - 1)), up = (i & size) == 0;

			__syncthreads();
			if ((s[i] > s[i + step]) == up) {
				unsigned int x = s[i];

				s[i] = s[i + step];
				s[i + step] = x;
			}
		}
	__syncthreads();
	out[first + t] = s[t];
	out[first + t + blockDim.x] = s[t + blockDim.x];
}

/* ... and two sorted runs merged: each thread finds the place of its own elements */
extern "C" __global__ void sort_merge(const unsigned int *in, unsigned int *out, unsigned int run,
				      unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	unsigned int own = i / run, other = own ^ 1, low = 0, high = run, pos = i % run;
	/* runs of equal steps, so that they are sorted whatever the input holds */
	unsigned int v = in[i] % 16 + pos * 16;

	while (low < high) {
		unsigned int mid = (low + high) / 2, w = in[other * run + mid] % 16 + mid * 16;

		if (w < v || (w == v && other < own))
			low = mid + 1;
		else
			high = mid;
	}
	out[(own & ~1u) * run + pos + low] = v;
}

/* Grep: a pattern with one wildcard, a place a thread; matches counted a block */
extern "C" __global__ void grep(const unsigned char *text, const unsigned char *pattern,
				unsigned int *count, unsigned char *hit, unsigned int n,
				unsigned int length)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;

	if (i + length <= n)
		while (k < length && (text[i + k] == pattern[k] || k == 1))
			k++;
	bool found = k == length;
	unsigned int all = __syncthreads_count(found);

	hit[i] = found;
	if (!threadIdx.x)
		count[blockIdx.x] = all;
}
