/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* As much of CUDA's language as the corpus needs, for clang without CUDA's headers */
#ifndef CORPUS_CLANG_H
#define CORPUS_CLANG_H

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

struct corpus_index {
	unsigned int x, y, z;
};
struct corpus_tid {
	__declspec(property(get = get_x)) unsigned int x;
	__declspec(property(get = get_y)) unsigned int y;
	__declspec(property(get = get_z)) unsigned int z;
	__device__ static unsigned int get_x() { return __nvvm_read_ptx_sreg_tid_x(); }
	__device__ static unsigned int get_y() { return __nvvm_read_ptx_sreg_tid_y(); }
	__device__ static unsigned int get_z() { return __nvvm_read_ptx_sreg_tid_z(); }
};
struct corpus_ntid {
	__declspec(property(get = get_x)) unsigned int x;
	__declspec(property(get = get_y)) unsigned int y;
	__declspec(property(get = get_z)) unsigned int z;
	__device__ static unsigned int get_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
	__device__ static unsigned int get_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
	__device__ static unsigned int get_z() { return __nvvm_read_ptx_sreg_ntid_z(); }
};
struct corpus_ctaid {
	__declspec(property(get = get_x)) unsigned int x;
	__declspec(property(get = get_y)) unsigned int y;
	__declspec(property(get = get_z)) unsigned int z;
	__device__ static unsigned int get_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
	__device__ static unsigned int get_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
	__device__ static unsigned int get_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
};
struct corpus_nctaid {
	__declspec(property(get = get_x)) unsigned int x;
	__declspec(property(get = get_y)) unsigned int y;
	__declspec(property(get = get_z)) unsigned int z;
	__device__ static unsigned int get_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
	__device__ static unsigned int get_y() { return __nvvm_read_ptx_sreg_nctaid_y(); }
	__device__ static unsigned int get_z() { return __nvvm_read_ptx_sreg_nctaid_z(); }
};
#define threadIdx (corpus_tid())
#define blockDim (corpus_ntid())
#define blockIdx (corpus_ctaid())
#define gridDim (corpus_nctaid())

struct alignas(16) uint4 {
	unsigned int x, y, z, w;
};

__device__ static inline int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
__device__ static inline int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
__device__ static inline int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
__device__ static inline unsigned int __shfl_down_sync(unsigned int m, unsigned int v, int d)
{
	return __nvvm_shfl_sync_down_i32(m, v, d, 31);
}
__device__ static inline unsigned int __shfl_xor_sync(unsigned int m, unsigned int v, int d)
{
	return __nvvm_shfl_sync_bfly_i32(m, v, d, 31);
}
__device__ static inline unsigned int __ballot_sync(unsigned int m, int p) { return __nvvm_vote_ballot_sync(m, p); }
__device__ static inline int __popc(unsigned int v) { return __builtin_popcount(v); }

#endif
