#pragma once

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// Products of up to eight rows of A. Grid: x 16 rows of B, y batch; warps of a block share K. Kernels named gemv_norm
/// normalize the rows of A first: a block has all of K in registers.
struct GemvParams {
  std::uint64_t a, b;
  EpilogueParams e;
  std::int64_t a_row, b_row, a_batch[2], b_batch[2];  ///< elements
  std::int32_t m, n, k;                               ///< k: a multiple of 8
  std::int32_t batch_inner;
  std::int32_t b_constant;
  std::uint64_t norm_scale, norm_bias;  ///< constants of A's type, [k]; no bias: 0
  float norm_epsilon;
  std::int32_t norm_no_mean;  ///< root-mean-square normalization
};

}  // namespace infernode::cuda
