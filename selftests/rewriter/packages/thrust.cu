// SPDX-License-Identifier: LGPL-2.1-or-later
// Thrust's algorithms, with iterators and functions as programs have them
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

struct square {
	__host__ __device__ float operator()(float v) const { return v * v; }
};
struct pair_sum {
	template <typename T> __host__ __device__ float operator()(const T &t) const
	{
		return thrust::get<0>(t) + thrust::get<1>(t);
	}
};
struct by_last {
	__host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};
struct negative {
	__host__ __device__ bool operator()(float v) const { return v < 0; }
};

float use(thrust::device_vector<int> &i, thrust::device_vector<float> &f)
{
	auto z = thrust::make_zip_iterator(thrust::make_tuple(f.begin(), f.begin() + 100));
	float r;

	thrust::sort(i.begin(), i.end());
	thrust::sort(i.begin(), i.end(), by_last());
	thrust::stable_sort_by_key(i.begin(), i.end(), f.begin());
	thrust::transform(f.begin(), f.end(), f.begin(), square());
	thrust::transform(z, z + 100, f.begin(), pair_sum());
	thrust::sequence(i.begin(), i.end());
	thrust::fill(f.begin(), f.end(), 1.f);
	thrust::gather(i.begin(), i.end(), f.begin(), f.begin());
	r = thrust::transform_reduce(f.begin(), f.end(), square(), 0.f, thrust::plus<float>());
	r += thrust::inner_product(f.begin(), f.end(), f.begin(), 0.f);
	r += *thrust::max_element(f.begin(), f.end());
	thrust::inclusive_scan(f.begin(), f.end(), f.begin());
	thrust::exclusive_scan_by_key(i.begin(), i.end(), f.begin(), f.begin());
	thrust::reduce_by_key(i.begin(), i.end(), f.begin(), i.begin(), f.begin());
	thrust::remove_if(f.begin(), f.end(), negative());
	thrust::unique(i.begin(), i.end());
	thrust::partition(f.begin(), f.end(), negative());
	thrust::merge(i.begin(), i.end(), i.begin(), i.end(), i.begin());
	thrust::set_intersection(i.begin(), i.end(), i.begin(), i.end(), i.begin());
	return r;
}
