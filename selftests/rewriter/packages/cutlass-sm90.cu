// SPDX-License-Identifier: LGPL-2.1-or-later
// CUTLASS' products by Hopper's TMA and wgmma: roles for warps with and without clusters, and all
// warps alike
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using namespace cute;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using f16 = cutlass::half_t;

template <typename Tile, typename Cluster, typename Mainloop, typename Epilogue> struct product_of {
	using epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
		cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
		cutlass::epilogue::collective::EpilogueTileAuto, float, float, f16, Row, 8, f16,
		Row, 8, Epilogue>::CollectiveOp;
	using mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
		cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, f16, Row, 8, f16, Column, 8,
		float, Tile, Cluster,
		cutlass::gemm::collective::StageCountAutoCarveout<sizeof(
			typename epilogue::SharedStorage)>,
		Mainloop>::CollectiveOp;
	using gemm =
		cutlass::gemm::device::GemmUniversalAdapter<cutlass::gemm::kernel::GemmUniversal<
			Shape<int, int, int, int>, mainloop, epilogue>>;
};

template <typename P> void instantiate()
{
	typename P::gemm::Arguments args;
	typename P::gemm g;

	(void)g(args);
}

void all()
{
	using One = Shape<_1, _1, _1>;
	using Tile = Shape<_128, _128, _64>;

	instantiate<product_of<Tile, One, cutlass::gemm::KernelTma,
			       cutlass::epilogue::NoSmemWarpSpecialized>>();
	instantiate<product_of<Shape<_64, _128, _64>, One, cutlass::gemm::KernelTmaWarpSpecialized,
			    cutlass::epilogue::TmaWarpSpecialized>>();
	instantiate<product_of<Tile, One, cutlass::gemm::KernelTmaWarpSpecializedCooperative,
			    cutlass::epilogue::TmaWarpSpecializedCooperative>>();
	instantiate<product_of<Tile, One, cutlass::gemm::KernelTmaWarpSpecializedPingpong,
			    cutlass::epilogue::TmaWarpSpecialized>>();
	instantiate<
		product_of<Tile, Shape<_2, _1, _1>, cutlass::gemm::KernelTmaWarpSpecializedPingpong,
			   cutlass::epilogue::TmaWarpSpecialized>>();
}
