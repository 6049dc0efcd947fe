// SPDX-License-Identifier: LGPL-2.1-or-later
// CUTLASS' products without tensor cores, batched, and split along K with a semaphore and in
// parallel
#include <cutlass/gemm/device/gemm.h>
#include <cutlass/gemm/device/gemm_batched.h>
#include <cutlass/gemm/device/gemm_splitk_parallel.h>

using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;

template <typename G> void instantiate()
{
	typename G::Arguments args;
	G g;

	(void)g(args);
}

void all()
{
	instantiate<cutlass::gemm::device::Gemm<float, Row, float, Column, float, Row>>();
	instantiate<cutlass::gemm::device::Gemm<
		double, Column, double, Row, double, Row, double, cutlass::arch::OpClassSimt,
		cutlass::arch::Sm50, cutlass::gemm::GemmShape<64, 64, 8>,
		cutlass::gemm::GemmShape<32, 32, 8>, cutlass::gemm::GemmShape<1, 1, 1>,
		cutlass::epilogue::thread::LinearCombination<double, 1, double, double>,
		cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 2, 1, 1, true>>();
	instantiate<cutlass::gemm::device::GemmBatched<float, Row, float, Row, float, Row>>();
	instantiate<
		cutlass::gemm::device::GemmSplitKParallel<float, Row, float, Column, float, Row>>();
}
