// SPDX-License-Identifier: LGPL-2.1-or-later
// Instructions of whole warps on small matrices.
#include <mma.h>
using namespace nvcuda;

/* A product of 16 x n halves by n x 16, a warp a tile */
extern "C" __global__ void wmma_tile(const unsigned int *in, float *out, unsigned int n)
{
	__shared__ __half a[16 * 16], b[16 * 16];
	wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;

	wmma::fill_fragment(sum, 0.0f);
	for (unsigned int k = 0; k < n; k++) {
		for (unsigned int i = threadIdx.x; i < 256; i += 32) {
			unsigned int v = in[(blockIdx.x * n + k) * 256 + i];

			a[i] = __float2half((float)(v & 7));
			b[i] = __float2half((float)(v >> 3 & 7));
		}
		__syncwarp();
		wmma::load_matrix_sync(fa, a, 16);
		wmma::load_matrix_sync(fb, b, 16);
		wmma::mma_sync(sum, fa, fb, sum);
		__syncwarp();
	}
	wmma::store_matrix_sync(out + blockIdx.x * 256, sum, 16, wmma::mem_row_major);
}

/* ldmatrix and mma as they are */
extern "C" __global__ void mma_direct(const unsigned int *in, float *out)
{
	__shared__ __align__(16) __half a[16 * 8];
	unsigned int t = threadIdx.x, r0, r1, b, at;
	float d[4];

	for (unsigned int i = t; i < 128; i += 32)
		a[i] = __float2half((float)(in[blockIdx.x * 128 + i] & 15));
	__syncwarp();
	at = (unsigned int)__cvta_generic_to_shared(a + (t & 15) * 8);
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
		     : "=r"(r0), "=r"(r1) : "r"(at) : "memory");
	b = 0x3c003c00 + (t & 3);
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
		     "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
		     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
		     : "r"(r0), "r"(r1), "r"(b), "f"((float)blockIdx.x));
	for (unsigned int i = 0; i < 4; i++)
		out[blockIdx.x * 128 + t * 4 + i] = d[i];
}
