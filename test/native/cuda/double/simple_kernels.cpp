// The kernels that have no instructions of their own, from the same sources, for the host.

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "host_kernels.h"

#include "providers/cuda/kernels/simple/movement.cu"
#undef MOVEMENT
#undef PIXELS
#undef TRANSPOSE
#include "providers/cuda/kernels/simple/unary.cu"
#undef KERNEL
#include "providers/cuda/kernels/simple/binary.cu"
#undef KERNEL
#include "providers/cuda/kernels/simple/attention_mask.cu"
#include "providers/cuda/kernels/simple/cast.cu"
#include "providers/cuda/kernels/simple/places.cu"
#undef PLACES
#include "providers/cuda/kernels/simple/pool.cu"
#include "providers/cuda/kernels/simple/wide.cu"
#undef KERNEL
#include "providers/cuda/kernels/simple/groups.cu"
#include "providers/cuda/kernels/simple/normalize.cu"
#include "providers/cuda/kernels/simple/order.cu"
#include "providers/cuda/kernels/simple/quantize.cu"
#include "providers/cuda/kernels/simple/recurrent.cu"
#include "providers/cuda/kernels/simple/resample.cu"
#include "providers/cuda/kernels/simple/rotary.cu"
#include "providers/cuda/kernels/simple/rows.cu"
#include "providers/cuda/kernels/simple/sample.cu"

namespace infernode::cuda_double {

namespace {

void add_movement(Table& table) {
  using namespace cuda;
#define ADD_SIZE(bytes) ADD(copy_##bytes, CopyParams) ADD(gather_##bytes, GatherParams)
  ADD_SIZE(1)
  ADD_SIZE(2)
  ADD_SIZE(4)
  ADD_SIZE(8)
  ADD_SIZE(16)
  ADD(pixels_2, PixelsParams)
  ADD(pixels_4, PixelsParams)
  ADD(transpose_1, TransposeParams)
  ADD(transpose_2, TransposeParams)
  ADD(transpose_4, TransposeParams) ADD(transpose_8, TransposeParams) ADD(cast, CastParams)
}

void add_places(Table& table) {
  using namespace cuda;
#define ADD_PLACES(bytes)                       \
  ADD(gather_places_##bytes, PlacedCopyParams)  \
  ADD(scatter_places_##bytes, PlacedCopyParams) \
  ADD(write_rows_##bytes, RowsParams) ADD(triangle_##bytes, TriangleParams) ADD(reverse_##bytes, ReverseParams)
  ADD_PLACES(1)
  ADD_PLACES(2)
  ADD_PLACES(4)
  ADD_PLACES(8)
  ADD(quantize, QuantizeParams)
  ADD(number_range, NumberRangeParams)
  ADD(dynamic_range, DynamicRangeParams)
  ADD(byte_product, ByteProductParams)
  ADD(expand_bits, ExpandBitsParams)
  ADD(expand_codes, ExpandCodesParams)
  ADD(gather_blocks, GatherBlocksParams)
  ADD(scatter_owner, OwnerParams)
  ADD(scatter_link, LinkParams)
  ADD(scatter_order, OrderParams)
  ADD(scatter_sum, PlacedSumParams)
}

void add_elementwise(Table& table) {
  using namespace cuda;
#define ADD_PACKS(name) ADD(name##_1, ElementwiseParams) ADD(name##_4, ElementwiseParams)
#define ADD_REALS(family) ADD_PACKS(family##_f32) ADD_PACKS(family##_f16) ADD_PACKS(family##_bf16)
#define ADD_INTS(family) ADD_PACKS(family##_i64) ADD_PACKS(family##_i32)
  ADD_REALS(unary)
  ADD_REALS(binary)
  ADD_REALS(compare)
  ADD_REALS(test)
  ADD_INTS(unary)
  ADD_INTS(binary)
  ADD_INTS(compare)
  ADD(wide_unary, WideParams)
  ADD(wide_binary, WideParams)
  ADD_PACKS(unary_u8) ADD_PACKS(compare_u8) ADD_PACKS(where_1) ADD_PACKS(where_2) ADD_PACKS(where_4) ADD_PACKS(where_8)
}

void add_rows(Table& table) {
  using namespace cuda;
#define ADD_TYPES(family, params) ADD(family##_f32, params) ADD(family##_f16, params) ADD(family##_bf16, params)
  ADD_TYPES(normalize, NormalizeParams)
  ADD_TYPES(softmax, SoftmaxParams)
  ADD_TYPES(reduce, ReduceParams)
  ADD_TYPES(scan, ScanParams)
  ADD_TYPES(pool, PoolParams)
  ADD_TYPES(global_pool, GlobalPoolParams)
  ADD_TYPES(group_norm, GroupNormParams)
  ADD_TYPES(lp_norm, LpNormParams)
  ADD_TYPES(lrn, LrnParams)
  ADD_TYPES(recurrent, RecurrentParams)
  ADD_TYPES(resample, ResampleParams)
  ADD_TYPES(rotary, RotaryParams)
  ADD_TYPES(grid_sample, GridSampleParams)
  ADD_TYPES(roi_align, RoiAlignParams)
  ADD_TYPES(embed, EmbedParams)
  ADD(attention_mask, AttentionMaskParams)
  ADD(clear_shut, ClearShutParams)
  ADD(join_cache_2, CacheParams)
  ADD(join_cache_4, CacheParams)
  ADD(join_cache_16, CacheParams)
  ADD(arg, ArgParams)
  ADD(top_k, TopKParams)
  ADD(reduce_i64, ReduceParams)
  ADD(reduce_i32, ReduceParams)
  ADD(scan_i64, ScanParams)
  ADD(scan_i32, ScanParams)
}

}  // namespace

void add_simple_kernels(Table& table) {
  add_movement(table);
  add_places(table);
  add_elementwise(table);
  add_rows(table);
}

}  // namespace infernode::cuda_double
