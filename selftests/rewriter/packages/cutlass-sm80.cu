// SPDX-License-Identifier: LGPL-2.1-or-later
// CUTLASS' products by Ampere's tensor instructions: cp.async in stages, a bias with ReLU,
// stream-K, TF32, bytes
#include <cutlass/epilogue/thread/linear_combination_relu.h>
#include <cutlass/gemm/device/gemm.h>
#include <cutlass/gemm/device/gemm_universal.h>

using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using f16 = cutlass::half_t;
using Tensor = cutlass::arch::OpClassTensorOp;
template <int m, int n, int k> using Shape = cutlass::gemm::GemmShape<m, n, k>;
template <typename T, int n>
using Linear = cutlass::epilogue::thread::LinearCombination<T, n, float, float>;

template <typename G> void instantiate()
{
	typename G::Arguments args;
	G g;

	(void)g(args);
}

void all()
{
	instantiate<cutlass::gemm::device::Gemm<
		f16, Row, f16, Column, f16, Row, float, Tensor, cutlass::arch::Sm80,
		Shape<128, 128, 32>, Shape<64, 64, 32>, Shape<16, 8, 16>, Linear<f16, 8>,
		cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, 3, 8, 8, true>>();
	instantiate<cutlass::gemm::device::Gemm<
		float, Row, float, Column, float, Row, float, Tensor, cutlass::arch::Sm80,
		Shape<128, 64, 16>, Shape<64, 32, 16>, Shape<16, 8, 8>, Linear<float, 4>,
		cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 4>>();
	instantiate<cutlass::gemm::device::Gemm<
		f16, Row, f16, Row, f16, Row, float, Tensor, cutlass::arch::Sm80, Shape<64, 64, 64>,
		Shape<32, 32, 64>, Shape<16, 8, 16>,
		cutlass::epilogue::thread::LinearCombinationRelu<f16, 8, float, float>,
		cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 5>>();
	instantiate<cutlass::gemm::device::Gemm<
		int8_t, Row, int8_t, Column, int32_t, Row, int32_t, Tensor, cutlass::arch::Sm80,
		Shape<128, 128, 64>, Shape<64, 64, 64>, Shape<16, 8, 32>,
		cutlass::epilogue::thread::LinearCombination<int32_t, 4, int32_t, int32_t>,
		cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 3>>();
	instantiate<cutlass::gemm::device::GemmUniversal<
		f16, Row, f16, Column, f16, Row, float, Tensor, cutlass::arch::Sm80,
		Shape<128, 128, 32>, Shape<64, 64, 32>, Shape<16, 8, 16>, Linear<f16, 8>,
		cutlass::gemm::threadblock::ThreadblockSwizzleStreamK, 4>>();
}
