#pragma once

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

inline constexpr int kGemvRows = 16;                ///< of B, in a block
inline constexpr int kGemvMost = 8;                 ///< rows of A
inline constexpr int kGemvAhead = 6;                ///< loads of 16 bytes of a lane for each of two rows, in a round
inline constexpr int kGemvWarpK = kGemvAhead * 32;  ///< elements of K of a warp and round
inline constexpr int kGemvWarpBytes = kGemvRows * kGemvWarpK * 2;
inline constexpr int kGemvMostNormalized = 1536;  ///< elements of rows that are normalized

/// Products of up to eight rows of A. Grid: x 16 rows of B, y batch; warps of a block share K, and have `stages` rounds
/// of it under way. Kernels named gemv_norm normalize the rows of A first: a block has all of K in one round.
/// Dynamic shared memory: the stages; then what NormalizedRows needs.
struct GemvParams {
  std::uint64_t a, b;
  EpilogueParams e;
  std::int64_t a_row, b_row, a_batch[2], b_batch[2];  ///< elements
  std::int32_t m, n, k;                               ///< k: a multiple of 8
  std::int32_t stages;                                ///< 1 or 2
  std::int32_t batch_inner;
  std::int32_t b_constant;
  std::uint64_t norm_scale, norm_bias;  ///< constants of A's type, [k]; no bias: 0
  float norm_epsilon;
  std::int32_t norm_no_mean;  ///< root-mean-square normalization
};

}  // namespace infernode::cuda
