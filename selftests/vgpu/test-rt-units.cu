/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the libraries of the toolkit make of matrices, barriers, pipelines, cooperative groups: run on vgpu. Prints TAP. */
#include <cassert>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>
#include <cstring>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp16.h>
#include <mma.h>

namespace cg = cooperative_groups;
namespace wmma = nvcuda::wmma;

__global__ void matrices(const half *a, const half *b, float *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;

	wmma::fill_fragment(fc, 1.f);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::mma_sync(fc, fa, fb, fc);
	for (int i = 0; i < fc.num_elements; i++)
		fc.x[i] *= 2;
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void barriers(const int *in, int *out)
{
	__shared__ alignas(16) int s[256];
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;
	auto block = cg::this_thread_block();

	if (!threadIdx.x)
		init(&bar, blockDim.x);
	block.sync();
	for (int r = 0; r < 4; r++) {
		cuda::memcpy_async(block, s, in + r * 256, sizeof(s), bar);
		bar.arrive_and_wait();
		out[r * 256 + threadIdx.x] = s[threadIdx.x ^ 37];
		bar.arrive_and_wait();
	}
}

__global__ void pipelines(const int *in, int *out)
{
	__shared__ int s[3][256];
	auto pipe = cuda::make_pipeline();
	int t = threadIdx.x, sum = 0;

	for (int i = 0; i < 6; i++) {
		if (i < 4) {
			pipe.producer_acquire();
			cuda::memcpy_async(&s[i % 3][t], in + i * 256 + t, sizeof(int), pipe);
			pipe.producer_commit();
		}
		if (i < 2)
			continue;
		pipe.consumer_wait();
		sum = sum * 3 + s[(i - 2) % 3][t];
		pipe.consumer_release();
	}
	out[t] = sum;
}

__global__ void groups(const int *in, int *out)
{
	auto tile = cg::tiled_partition<32>(cg::this_thread_block());
	int v = in[threadIdx.x], s = cg::reduce(tile, v, cg::plus<int>()) + cg::inclusive_scan(tile, v) * 7;

	if (v & 1) {
		auto odd = cg::coalesced_threads();

		s += cg::reduce(odd, v, cg::plus<int>()) * 1000;
	}
	out[threadIdx.x] = s;
}

__global__ void heap(int **p, bool give)
{
	if (give) {
		p[threadIdx.x] = (int *)malloc(16);
		p[threadIdx.x][1] = (int)threadIdx.x * 5;
	} else {
		int v = p[threadIdx.x][1];

		free(p[threadIdx.x]);
		p[threadIdx.x] = (int *)(size_t)v;
	}
}

__global__ void claim(int n)
{
	assert(n == 7);
}

static unsigned int n, bad;

static void ok(bool good, const char *name)
{
	bad += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", ++n, name);
}

static bool wmma_ok(void *mem)
{
	half *a = (half *)mem, *b = a + 256;
	float *c = (float *)(a + 512);
	bool good = true;

	for (int i = 0; i < 256; i++) {
		a[i] = half(i * 7 % 11 - 5);
		b[i] = half(i * 3 % 13 - 6);
	}
	matrices<<<1, 32>>>(a, b, c);
	good = !cudaDeviceSynchronize();
	for (int i = 0; i < 256; i++) {
		float s = 1;

		for (int k = 0; k < 16; k++)
			s += (float)a[i / 16 * 16 + k] * (float)b[i % 16 * 16 + k];
		good = good && c[i] == 2 * s;
	}
	return good;
}

static bool copies_ok(void *mem, bool pipe)
{
	int *in = (int *)mem, *out = in + 1024;
	bool good;

	for (int i = 0; i < 1024; i++)
		in[i] = i * i;
	if (pipe)
		pipelines<<<1, 256>>>(in, out);
	else
		barriers<<<1, 256>>>(in, out);
	good = !cudaDeviceSynchronize();
	for (int i = 0; i < (pipe ? 256 : 1024); i++)
		good = good && out[i] == (pipe ? ((in[i] * 3 + in[256 + i]) * 3 + in[512 + i]) * 3 + in[768 + i] : in[i ^ 37]);
	return good;
}

static bool groups_ok(void *mem)
{
	int *in = (int *)mem, *out = in + 1024;
	bool good;

	for (int i = 0; i < 64; i++)
		in[i] = i * i % 29;
	groups<<<1, 64>>>(in, out);
	good = !cudaDeviceSynchronize();
	for (int i = 0; i < 64; i++) {
		int all = 0, upto = 0, odd = 0;

		for (int k = i & ~31; k < (i & ~31) + 32; k++) {
			all += in[k];
			upto += k <= i ? in[k] : 0;
			odd += in[k] & 1 ? in[k] : 0;
		}
		good = good && out[i] == all + upto * 7 + (in[i] & 1 ? odd * 1000 : 0);
	}
	return good;
}

static bool heap_ok(void *mem)
{
	int **p = (int **)mem;
	bool good;

	heap<<<1, 32>>>(p, true);
	heap<<<1, 32>>>(p, false);
	good = !cudaDeviceSynchronize();
	for (int i = 0; i < 32; i++)
		good = good && (size_t)p[i] == (size_t)i * 5;
	return good;
}

int main()
{
	void *mem = nullptr;

	ok(!cudaMallocManaged(&mem, 1 << 16), "managed memory");
	ok(wmma_ok(mem), "nvcuda::wmma");
	ok(copies_ok(mem, false), "cuda::barrier and cuda::memcpy_async");
	ok(copies_ok(mem, true), "cuda::pipeline");
	ok(groups_ok(mem), "cooperative groups: reductions and scans");
	ok(heap_ok(mem), "malloc and free in kernels");
	claim<<<1, 1>>>(8);
	ok(cudaDeviceSynchronize() == cudaErrorAssert, "a failed assertion has its own error");
	printf("1..%u\n", n);
	return bad != 0;
}
