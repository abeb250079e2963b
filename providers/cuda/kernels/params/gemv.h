#pragma once

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// Products of up to eight rows of A. Grid: x 16 rows of B, y batch; warps of a block share K.
struct GemvParams {
  std::uint64_t a, b;
  EpilogueParams e;
  std::int64_t a_row, b_row, a_batch[2], b_batch[2];  ///< elements
  std::int32_t m, n, k;                               ///< k: a multiple of 8
  std::int32_t batch_inner;
  std::int32_t b_constant;
};

}  // namespace infernode::cuda
