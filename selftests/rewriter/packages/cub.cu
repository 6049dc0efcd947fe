// SPDX-License-Identifier: LGPL-2.1-or-later
// What CUB's device-wide functions are made of, for the types that programs use most. Only the
// kernels' PTX matters.
#include <cub/cub.cuh>

struct larger {
	template <typename T> __host__ __device__ T operator()(const T &a, const T &b) const
	{
		return a < b ? b : a;
	}
};
struct odd {
	__host__ __device__ bool operator()(int v) const { return v & 1; }
};
struct twice {
	__host__ __device__ void operator()(int &v) const { v *= 2; }
};

template <typename T> static void reductions(void *tmp, size_t &n, T *in, T *out, int *at)
{
	cub::DeviceReduce::Sum(tmp, n, in, out, 1000);
	cub::DeviceReduce::Reduce(tmp, n, in, out, 1000, larger(), T());
	cub::DeviceReduce::ReduceByKey(tmp, n, at, at, in, out, at, larger(), 1000);
	cub::DeviceSegmentedReduce::Sum(tmp, n, in, out, 10, at, at + 1);
}

template <typename T> static void scans(void *tmp, size_t &n, T *in, T *out, int *keys)
{
	cub::DeviceScan::ExclusiveSum(tmp, n, in, out, 1000);
	cub::DeviceScan::InclusiveScan(tmp, n, in, out, larger(), 1000);
	cub::DeviceScan::InclusiveSumByKey(tmp, n, keys, in, out, 1000);
}

template <typename K> static void sorts(void *tmp, size_t &n, K *in, K *out, int *values, int *at)
{
	cub::DeviceRadixSort::SortKeys(tmp, n, in, out, 1000);
	cub::DeviceRadixSort::SortPairs(tmp, n, in, out, values, values + 1000, 1000);
	cub::DeviceSegmentedSort::SortKeys(tmp, n, in, out, 1000, 10, at, at + 1);
	cub::DeviceMergeSort::SortKeys(tmp, n, in, 1000, cuda::std::less<K>());
}

void use(void *tmp, size_t &n, int *i, unsigned long long *l, float *f, double *d, unsigned char *c)
{
	cub::KeyValuePair<int, float> *pair = nullptr;

	reductions(tmp, n, i, i + 1000, i);
	reductions(tmp, n, d, d + 1000, i);
	cub::DeviceReduce::ArgMax(tmp, n, f, pair, 1000);
	scans(tmp, n, i, i + 1000, i);
	scans(tmp, n, d, d + 1000, i);
	sorts(tmp, n, i, i + 1000, i, i);
	sorts(tmp, n, l, l + 1000, i, i);
	cub::DeviceRadixSort::SortKeysDescending(tmp, n, f, f + 1000, 1000);
	cub::DeviceSegmentedRadixSort::SortPairs(tmp, n, f, f + 1000, i, i + 1000, 1000, 10, i,
						 i + 1);
	cub::DeviceSelect::If(tmp, n, i, i + 1000, i, 1000, odd());
	cub::DeviceSelect::Flagged(tmp, n, f, c, f + 1000, i, 1000);
	cub::DeviceSelect::Unique(tmp, n, i, i + 1000, i, 1000);
	cub::DeviceSelect::UniqueByKey(tmp, n, i, f, i + 1000, f + 1000, i, 1000);
	cub::DevicePartition::If(tmp, n, i, i + 1000, i, 1000, odd());
	cub::DeviceRunLengthEncode::Encode(tmp, n, i, i + 1000, i, i, 1000);
	cub::DeviceRunLengthEncode::NonTrivialRuns(tmp, n, i, i + 1000, i, i, 1000);
	cub::DeviceHistogram::HistogramEven(tmp, n, c, i, 257, 0, 256, 1000);
	cub::DeviceHistogram::HistogramRange(tmp, n, f, i, 17, f, 1000);
	cub::DeviceFor::Bulk(1000, [i] __device__(int k) { i[k] = k; });
	cub::DeviceFor::ForEach(i, i + 1000, twice());
	cub::DeviceTransform::Transform(cuda::std::make_tuple(f, f + 1000), f, 1000,
					cuda::std::plus<float>());
	cub::DeviceMemcpy::Batched(tmp, n, (void **)nullptr, (void **)nullptr, i, 10);
	cub::DeviceAdjacentDifference::SubtractLeft(tmp, n, i, 1000);
	cub::DeviceMerge::MergeKeys(tmp, n, i, 500, i + 500, 500, i + 1000);
}
