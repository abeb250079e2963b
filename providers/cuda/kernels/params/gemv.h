#pragma once

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

inline constexpr int kGemvRows = 16;                ///< of B, in a block
inline constexpr int kGemvMost = 8;                 ///< rows of A
inline constexpr int kGemvAhead = 6;                ///< loads of 16 bytes of a lane for each of two rows, in a round
inline constexpr int kGemvWarpK = kGemvAhead * 32;  ///< elements of K of a warp and round
inline constexpr int kGemvWarpBytes = kGemvRows * kGemvWarpK * 2;
inline constexpr int kGemvMostNormalizedRows = kGemvMost - 2;  ///< of A, where they are normalized
inline constexpr int kGemvNormFloats = 2 * kGemvMost;          ///< what a warp finds out of them

/// Products of up to eight rows of A. Grid: x 16 rows of B, y batch; warps of a block share K, and have `stages` rounds
/// of it under way. Kernels named gemv_norm normalize the rows of A on the way (row_norm.cuh): a block has all of K in
/// one round. Dynamic shared memory: the stages; then kGemvNormFloats for each warp of those.
struct GemvParams {
  std::uint64_t a, b;
  EpilogueParams e;
  std::int64_t a_row, b_row, a_batch[2], b_batch[2];  ///< elements
  std::int32_t m, n, k;                               ///< k: a multiple of 8
  std::int32_t stages;                                ///< 1 or 2
  std::int32_t batch_inner;
  std::int32_t b_constant;
  std::uint64_t norm_scale, norm_bias;  ///< constants of A's type, [k]; no bias: 0
  float norm_epsilon, per_k;            ///< per_k: 1 / k
  std::uint32_t norm_down;              ///< a power of two that brings the scales to 1 or less, twice in A's type
  float norm_up;                        ///< its reciprocal
  std::int32_t norm_no_mean;            ///< root-mean-square normalization
};

}  // namespace infernode::cuda
