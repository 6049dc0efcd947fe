// SPDX-License-Identifier: LGPL-2.1-or-later
// A program that uses CUB and Thrust, as often as its argument says: a line with the hash of the
// result for each algorithm. Results do not depend on the order of thread blocks.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

constexpr int N = 30011, SEGMENTS = 37;

template <typename T> void show(const char *name, const thrust::device_vector<T> &v)
{
	thrust::host_vector<T> h = v;
	unsigned long long hash = 14695981039346656037ull;
	const unsigned char *p = reinterpret_cast<const unsigned char *>(h.data());

	for (size_t i = 0; i < h.size() * sizeof(T); i++)
		hash = (hash ^ p[i]) * 1099511628211ull;
	std::printf("%s %016llx\n", name, hash);
}

template <typename F> void twice(F call)
{
	size_t n = 0;

	call(nullptr, n);
	thrust::device_vector<unsigned char> tmp(n + 1);
	cudaError_t e = call(thrust::raw_pointer_cast(tmp.data()), n);
	if (!e)
		e = cudaDeviceSynchronize();
	if (e)
		std::printf("error %s\n", cudaGetErrorString(e));
}

struct odd {
	__host__ __device__ bool operator()(int v) const { return v & 1; }
};
struct low {
	__host__ __device__ long long operator()(int v) const { return v & 1023; }
};
struct by_digit {
	__host__ __device__ bool operator()(int a, int b) const { return a % 100 < b % 100; }
};

template <typename T> T *raw(thrust::device_vector<T> &v)
{
	return thrust::raw_pointer_cast(v.data());
}

static thrust::device_vector<int> numbers(int mod, int seed)
{
	std::vector<int> h(N);

	for (int i = 0; i < N; i++)
		h[i] = (int)(((unsigned int)(i + seed) * 2654435761u >> 5) % mod);
	return thrust::device_vector<int>(h.begin(), h.end());
}

static void with_cub()
{
	thrust::device_vector<int> in = numbers(1 << 20, 1), out(N), runs = numbers(3, 2), count(2),
				   values = numbers(1 << 16, 3);
	thrust::device_vector<int> values_out(N), offsets(SEGMENTS + 1), sums(SEGMENTS), bins(64);
	thrust::device_vector<unsigned long long> wide(in.begin(), in.end()), wide_out(N);

	for (int i = 0; i <= SEGMENTS; i++)
		offsets[i] = (int)((long long)N * i * i / (SEGMENTS * SEGMENTS));
	twice([&](void *t, size_t &n) {
		return cub::DeviceReduce::Sum(t, n, raw(in), raw(sums), N);
	});
	twice([&](void *t, size_t &n) {
		return cub::DeviceReduce::Max(t, n, raw(in), raw(sums) + 1, N);
	});
	show("reduce", sums);
	twice([&](void *t, size_t &n) {
		return cub::DeviceSegmentedReduce::Sum(t, n, raw(in), raw(sums), SEGMENTS,
						       raw(offsets), raw(offsets) + 1);
	});
	show("segmented-reduce", sums);
	twice([&](void *t, size_t &n) {
		return cub::DeviceScan::ExclusiveSum(t, n, raw(in), raw(out), N);
	});
	show("scan", out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceScan::InclusiveSumByKey(t, n, raw(runs), raw(in), raw(out), N);
	});
	show("scan-by-key", out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceRadixSort::SortKeys(t, n, raw(in), raw(out), N);
	});
	show("radix-sort", out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceRadixSort::SortPairs(t, n, raw(in), raw(out), raw(values),
						       raw(values_out), N);
	});
	show("radix-sort-pairs", values_out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceRadixSort::SortKeysDescending(t, n, raw(wide), raw(wide_out), N,
								0, 24);
	});
	show("radix-sort-wide", wide_out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceSegmentedSort::SortKeys(t, n, raw(in), raw(out), N, SEGMENTS,
							  raw(offsets), raw(offsets) + 1);
	});
	show("segmented-sort", out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceSegmentedRadixSort::SortKeys(t, n, raw(in), raw(out), N, SEGMENTS,
							       raw(offsets), raw(offsets) + 1);
	});
	show("segmented-radix-sort", out);
	out = in;
	twice([&](void *t, size_t &n) {
		return cub::DeviceMergeSort::SortKeys(t, n, raw(out), N, by_digit());
	});
	twice([&](void *t, size_t &n) {
		return cub::DeviceSelect::If(t, n, raw(in), raw(out), raw(count), N, odd());
	});
	show("select", out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceSelect::Unique(t, n, raw(runs), raw(out), raw(count), N);
	});
	show("unique", out);
	twice([&](void *t, size_t &n) {
		return cub::DevicePartition::If(t, n, raw(in), raw(out), raw(count), N, odd());
	});
	show("partition", out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceRunLengthEncode::Encode(t, n, raw(runs), raw(out),
							  raw(values_out), raw(count), N);
	});
	show("run-lengths", values_out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceReduce::ReduceByKey(t, n, raw(runs), raw(out), raw(in),
						      raw(values_out), raw(count),
						      cuda::maximum<>(), N);
	});
	show("reduce-by-key", values_out);
	twice([&](void *t, size_t &n) {
		return cub::DeviceHistogram::HistogramEven(t, n, raw(in), raw(bins), 65, 0, 1 << 20,
							   N);
	});
	show("histogram", bins);
	twice([&](void *t, size_t &n) {
		return cub::DeviceAdjacentDifference::SubtractLeftCopy(t, n, raw(in), raw(out), N);
	});
	show("difference", out);
	show("count", count);
}

static void with_thrust()
{
	thrust::device_vector<int> a = numbers(50000, 4), b = numbers(50000, 5), out(2 * N);
	thrust::device_vector<long long> sum(1);

	sum[0] = thrust::transform_reduce(a.begin(), a.end(), low(), 0ll,
					  cuda::std::plus<long long>());
	show("transform-reduce", sum);
	thrust::inclusive_scan(a.begin(), a.end(), out.begin());
	show("inclusive-scan", out);
	thrust::sort(a.begin(), a.end());
	thrust::stable_sort(b.begin(), b.end(), by_digit());
	show("stable-sort", b);
	thrust::sort(b.begin(), b.end());
	thrust::merge(a.begin(), a.end(), b.begin(), b.end(), out.begin());
	show("merge", out);
	thrust::fill(out.begin(), out.end(), 0);
	thrust::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out.begin());
	show("intersection", out);
	thrust::fill(out.begin(), out.end(), 0);
	thrust::unique_copy(a.begin(), a.end(), out.begin());
	show("unique-copy", out);
	a = numbers(1000, 6);
	a.resize(thrust::remove_if(a.begin(), a.end(), odd()) - a.begin());
	show("remove", a);
	thrust::stable_partition(b.begin(), b.end(), odd());
	show("stable-partition", b);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < (argc > 1 ? std::atoi(argv[1]) : 1); i++) {
		with_cub();
		with_thrust();
	}
	return cudaDeviceSynchronize() != cudaSuccess;
}
