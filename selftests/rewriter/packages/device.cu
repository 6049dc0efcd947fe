// SPDX-License-Identifier: LGPL-2.1-or-later
// Device-side libraries: cooperative groups, libcu++, curand, CUB's block and warp functions. What
// has a line in device.launch is run.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda_fp16.h>
#if __has_include(<curand_kernel.h>)
#include <curand_kernel.h>
#endif

namespace cg = cooperative_groups;

extern "C" __global__ void cg_tiles(const int *in, int *out)
{
	auto block = cg::this_thread_block();
	auto tile = cg::tiled_partition<8>(block);
	int v = in[block.group_index().x * block.size() + block.thread_rank()];
	int sum = cg::reduce(tile, v, cg::plus<int>());
	int before = cg::exclusive_scan(tile, v, cg::plus<int>());

	if (v & 1) {
		auto odd = cg::coalesced_threads();

		before += cg::reduce(odd, v, cg::greater<int>()) + odd.size();
	}
	auto same = cg::labeled_partition(tile, v & 3);
	before += cg::reduce(same, v, cg::bit_xor<int>());
	block.sync();
	out[block.group_index().x * block.size() + block.thread_rank()] = sum * 3 + before;
}

extern "C" __global__ void cg_early(const int *in, int *out, int n)
{
	auto block = cg::this_thread_block();
	auto warp = cg::tiled_partition<32>(block);
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	if (warp.meta_group_rank() & 1)
		out[i] = in[i] * 3;
	else
		out[i] = in[i] + cg::coalesced_threads().num_threads();
}

extern "C" __global__ void cg_copy(const int *in, int *out)
{
	__shared__ int s[256];
	auto block = cg::this_thread_block();
	int sum = 0;

	cg::memcpy_async(block, s, in + blockIdx.x * 256, sizeof(s));
	cg::wait(block);
	for (int k = 0; k < 4; k++)
		sum += s[(threadIdx.x * 4 + k * 7) & 255];
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void cg_grid(int *out)
{
	auto grid = cg::this_grid();

	out[grid.thread_rank()] = 1;
	grid.sync();
	out[grid.thread_rank()] += out[(grid.thread_rank() + 1) % grid.size()];
}

extern "C" __global__ void cg_block_tile(const int *in, int *out)
{
	__shared__ cg::block_tile_memory<128> memory;
	auto block = cg::this_thread_block(memory);
	auto tile = cg::tiled_partition<64>(block);
	int v = in[blockIdx.x * blockDim.x + threadIdx.x];

	out[blockIdx.x * blockDim.x + threadIdx.x] =
		cg::reduce(tile, v, cg::plus<int>()) + tile.meta_group_rank();
}

extern "C" __global__ void cg_cluster(int *out)
{
	auto cluster = cg::this_cluster();

	cluster.sync();
	out[blockIdx.x] = cluster.num_blocks();
}

extern "C" __global__ void barrier_copy(const int *in, int *out, int rounds)
{
#pragma nv_diag_suppress static_var_with_dynamic_init
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;
	__shared__ alignas(16) int s[128];
	auto block = cg::this_thread_block();
	int sum = 0;

	if (!threadIdx.x)
		init(&bar, blockDim.x);
	__syncthreads();
	for (int r = 0; r < rounds; r++) {
		cuda::memcpy_async(block, s, in + (blockIdx.x * rounds + r) * 128,
				   cuda::aligned_size_t<16>(sizeof(s)), bar);
		bar.arrive_and_wait();
		sum += s[threadIdx.x] + s[127 - threadIdx.x];
		__syncthreads();
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void barrier_split(const int *in, int *out)
{
#pragma nv_diag_suppress static_var_with_dynamic_init
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;
	__shared__ int s[128];

	if (!threadIdx.x)
		init(&bar, blockDim.x);
	__syncthreads();
	s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
	auto token = bar.arrive();
	int v = threadIdx.x * 3;
	bar.wait(cuda::std::move(token));
	out[blockIdx.x * blockDim.x + threadIdx.x] = v + s[(threadIdx.x + 17) & 127];
}

extern "C" __global__ void bulk_copy(const int *in, int *out)
{
#pragma nv_diag_suppress static_var_with_dynamic_init
	__shared__ alignas(128) int s[256];
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;

	if (!threadIdx.x) {
		init(&bar, blockDim.x);
		cuda::device::experimental::fence_proxy_async_shared_cta();
	}
	__syncthreads();
	cuda::barrier<cuda::thread_scope_block>::arrival_token token;
	if (!threadIdx.x) {
		cuda::device::memcpy_async_tx(s, in + blockIdx.x * 256,
					      cuda::aligned_size_t<16>(sizeof(s)), bar);
		token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(s));
	} else {
		token = bar.arrive();
	}
	bar.wait(cuda::std::move(token));
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		s[i] = s[i] * 2 + 1;
	cuda::device::experimental::fence_proxy_async_shared_cta();
	__syncthreads();
	if (!threadIdx.x) {
		cuda::device::experimental::cp_async_bulk_shared_to_global(out + blockIdx.x * 256,
									   s, sizeof(s));
		cuda::device::experimental::cp_async_bulk_commit_group();
		cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
	}
}

extern "C" __global__ void pipeline_stages(const int *in, int *out, int rounds)
{
	constexpr int stages = 3;
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
	__shared__ alignas(16) int s[stages][128];
	auto block = cg::this_thread_block();
	auto pipe = cuda::make_pipeline(block, &state);
	int sum = 0;

	for (int r = 0, ahead = 0; r < rounds; r++) {
		for (; ahead < rounds && ahead < r + stages; ahead++) {
			pipe.producer_acquire();
			cuda::memcpy_async(block, s[ahead % stages],
					   in + (blockIdx.x * rounds + ahead) * 128,
					   cuda::aligned_size_t<16>(sizeof(s[0])), pipe);
			pipe.producer_commit();
		}
		pipe.consumer_wait();
		block.sync();
		sum = sum * 3 + s[r % stages][127 - threadIdx.x];
		pipe.consumer_release();
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void pipeline_roles(const int *in, int *out, int rounds)
{
	constexpr int stages = 2;
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
	__shared__ int s[stages][64];
	auto block = cg::this_thread_block();
	bool producer = threadIdx.x < 32;
	auto pipe = cuda::make_pipeline(block, &state,
					producer ? cuda::pipeline_role::producer
						 : cuda::pipeline_role::consumer);
	int sum = 0;

	for (int r = 0; r < rounds; r++)
		if (producer) {
			pipe.producer_acquire();
			for (int i = threadIdx.x; i < 64; i += 32)
				cuda::memcpy_async(&s[r % stages][i],
						   &in[(blockIdx.x * rounds + r) * 64 + i],
						   sizeof(int), pipe);
			pipe.producer_commit();
		} else {
			pipe.consumer_wait();
			sum = sum * 5 + s[r % stages][(threadIdx.x - 32) ^ 21];
			pipe.consumer_release();
		}
	if (!producer)
		out[blockIdx.x * 64 + threadIdx.x - 32] = sum;
}

extern "C" __global__ void std_atomics(const int *in, unsigned int *out)
{
	cuda::atomic_ref<unsigned int, cuda::thread_scope_device> sum(out[0]), top(out[1]),
		bits(out[2]);
	__shared__ cuda::std::atomic<int> local;
	unsigned int v = in[blockIdx.x * blockDim.x + threadIdx.x];

	if (!threadIdx.x)
		local.store(0, cuda::std::memory_order_relaxed);
	__syncthreads();
	sum.fetch_add(v, cuda::std::memory_order_relaxed);
	top.fetch_max(v);
	bits ^= v;
	local.fetch_add(v & 7);
	__syncthreads();
	if (!threadIdx.x)
		out[4 + blockIdx.x] = local.load();
}

extern "C" __global__ void std_float_atomic(const int *in, float *out)
{
	cuda::atomic_ref<float, cuda::thread_scope_device> sum(out[0]);

	sum.fetch_add((float)(in[blockIdx.x * blockDim.x + threadIdx.x] & 15));
}

extern "C" __global__ void std_lock(const int *in, int *out, int *word)
{
	cuda::atomic_ref<int, cuda::thread_scope_device> lock(*word);

	if (threadIdx.x)
		return;
	while (lock.exchange(1, cuda::std::memory_order_acquire))
		;
	for (int i = 0; i < 8; i++)
		out[i] += in[blockIdx.x * 8 + i];
	lock.store(0, cuda::std::memory_order_release);
}

extern "C" __global__ void std_wait(int *words, int *out)
{
	cuda::atomic_ref<int, cuda::thread_scope_device> mine(words[blockIdx.x]);

	if (threadIdx.x)
		return;
	if (blockIdx.x) {
		cuda::atomic_ref<int, cuda::thread_scope_device> before(words[blockIdx.x - 1]);
		before.wait(0, cuda::std::memory_order_acquire);
	}
	out[blockIdx.x] = blockIdx.x * 3;
	mine.store(1, cuda::std::memory_order_release);
	mine.notify_all();
}

extern "C" __global__ void last_block(const int *in, int *part, unsigned int *count, int *out)
{
	__shared__ bool last;
	typedef cub::BlockReduce<int, 128> reduce;
	__shared__ typename reduce::TempStorage tmp;
	int sum = reduce(tmp).Sum(in[blockIdx.x * 128 + threadIdx.x]);

	if (!threadIdx.x) {
		part[blockIdx.x] = sum;
		__threadfence();
		last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (!last)
		return;
	sum = reduce(tmp).Sum(threadIdx.x < gridDim.x ? ((volatile int *)part)[threadIdx.x] : 0);
	if (!threadIdx.x)
		*out = sum;
}

extern "C" __global__ void cub_block(const int *in, int *out)
{
	typedef cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE> load;
	typedef cub::BlockRadixSort<int, 128, 4> sort;
	typedef cub::BlockScan<int, 128> scan;
	typedef cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE> store;
	__shared__ union {
		typename load::TempStorage load;
		typename sort::TempStorage sort;
		typename scan::TempStorage scan;
		typename store::TempStorage store;
	} tmp;
	int v[4], total;

	load(tmp.load).Load(in + blockIdx.x * 512, v);
	__syncthreads();
	sort(tmp.sort).Sort(v);
	__syncthreads();
	scan(tmp.scan).ExclusiveSum(v, v, total);
	__syncthreads();
	v[0] += total;
	store(tmp.store).Store(out + blockIdx.x * 512, v);
}

extern "C" __global__ void cub_warp(const int *in, int *out, int n)
{
	typedef cub::WarpReduce<int, 16> reduce;
	__shared__ typename reduce::TempStorage tmp[8];
	int i = blockIdx.x * 128 + threadIdx.x, v = i < n ? in[i] : 0;

	if (blockIdx.x * 128 >= n)
		return;
	v = reduce(tmp[threadIdx.x / 16]).Sum(v, 11);
	if (threadIdx.x % 16 == 0)
		out[i / 16] = v;
}

extern "C" __global__ void complex_half(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	cuda::std::complex<float> z(in[i], in[(i * 7) % n]);
	cuda::std::optional<float> o;
	__half2 h = __hmul2(__float2half2_rn(in[i]), __floats2half2_rn(0.5f, 2.f));

	if (i & 1)
		o = cuda::std::abs(z * z);
	out[i] = o.value_or(1) + __low2float(h) + __high2float(h);
}

#if __has_include(<curand_kernel.h>)
extern "C" __global__ void curand_philox(float *out, unsigned long long seed)
{
	curandStatePhilox4_32_10_t s;
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	curand_init(seed, i, 0, &s);
	float4 u = curand_uniform4(&s);
	out[i] = u.x + u.y * u.z + curand_normal(&s) + u.w;
}

extern "C" __global__ void curand_xorwow(float *out, unsigned long long seed)
{
	curandState s;
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;

	curand_init(seed + i, 0, 0, &s);
	for (int k = 0; k < 5; k++)
		sum += curand_uniform(&s) + (float)curand_poisson(&s, 3.0);
	out[i] = sum;
}

extern "C" __global__ void curand_mrg(double *out, unsigned long long seed)
{
	curandStateMRG32k3a s;
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	curand_init(seed, i, 3, &s);
	out[i] = curand_uniform_double(&s) + curand_log_normal_double(&s, 0, 1);
}
#endif
