#pragma once

#include "providers/cuda/kernels/device/mma.cuh"
#include "providers/cuda/kernels/params/gemv.h"

// Products of normalized rows, without normalizing them first: with x' = x scale,
//   sum over k of w (x - mean) factor scale + w bias  =  factor (sum of w x' - mean sum of w scale) + sum of w bias.
// Scale and bias are two more rows of the second operand, and a row's sum and squares are products, too.
namespace infernode::cuda {

/// Two 16-bit products.
template <MmaKind kind>
__device__ __forceinline__ std::uint32_t multiply_pair(std::uint32_t a, std::uint32_t b) {
  if constexpr (kind == MmaKind::f16) {
    const __half2 r = __hmul2(reinterpret_cast<const __half2&>(a), reinterpret_cast<const __half2&>(b));
    return reinterpret_cast<const std::uint32_t&>(r);
  } else {
    const __nv_bfloat162 r =
        __hmul2(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
    return reinterpret_cast<const std::uint32_t&>(r);
  }
}

/// Sums and sums of squares of up to eight rows that are the second operand of products.
template <MmaKind kind>
struct RowSums {
  float low[4] = {}, high[4] = {};  ///< parts, so that a product seldom waits for the one before

  __device__ __forceinline__ void add(const uint4& x) {
    constexpr std::uint32_t kOnes = kind == MmaKind::f16 ? 0x3c003c00u : 0x3f803f80u;
    const std::uint32_t one[4] = {x.x, kOnes, x.y, kOnes}, two[4] = {x.z, kOnes, x.w, kOnes};
    mma<kind>(low, one, x.x, x.y);
    mma<kind>(high, two, x.z, x.w);
  }

  /// To kGemvNormFloats floats: the rows' sums, then their squares.
  __device__ __forceinline__ void store(float* to) const {
    const int lane = threadIdx.x & 31, row = lane >> 2, pair = lane & 3;
    if (row == 0) to[pair * 2] = low[2] + high[2], to[pair * 2 + 1] = low[3] + high[3];
    if (row >> 1 == pair) to[kGemvMost + row] = row & 1 ? low[1] + high[1] : low[0] + high[0];
  }
};

/// Where a lane finds what is multiplied like the rows of A behind those: scale, then bias; null where it has neither.
__device__ __forceinline__ const char* norm_row(const GemvParams& p, int row) {
  return reinterpret_cast<const char*>(row == p.m ? p.norm_scale : row == p.m + 1 ? p.norm_bias : 0);
}

/// A's numbers times the scale that the lanes of row p.m hold, made smaller so that they stay finite; what other rows
/// hold stays.
template <MmaKind kind>
__device__ __forceinline__ uint4 times_scale(const GemvParams& p, const uint4& x, bool is_row) {
  const int from = p.m * 4 + (threadIdx.x & 3);
  const auto one = [&](std::uint32_t v) {
    const std::uint32_t scale = multiply_pair<kind>(__shfl_sync(~0u, v, from), p.norm_down);
    return is_row ? multiply_pair<kind>(v, scale) : v;
  };
  return make_uint4(one(x.x), one(x.y), one(x.z), one(x.w));
}

/// The sum of row m's products with normalized numbers. `row`: sums of the output's row, a column for each row of A and
/// for those behind, a set for each warp, kGemvWarpBytes apart; `stats`: kGemvNormFloats a warp.
__device__ __forceinline__ float normalized_sum(const GemvParams& p, const char* row, const char* stats, int warps,
                                                int m) {
  float sum = 0, scales = 0, biases = 0, total = 0, squares = 0;
#pragma unroll 4
  for (int i = 0; i < warps; i++) {
    const float* own = reinterpret_cast<const float*>(row + i * kGemvWarpBytes);
    const float* of_rows = reinterpret_cast<const float*>(stats) + i * kGemvNormFloats + m;
    sum += own[m], scales += own[p.m], biases += own[p.m + 1];
    total += of_rows[0], squares += of_rows[kGemvMost];
  }
  const float mean = p.norm_no_mean ? 0.f : total * p.per_k;
  const float factor = rsqrtf(fmaxf(fmaf(-mean, mean, squares * p.per_k), 0.f) + p.norm_epsilon);
  return fmaf(fmaf(-mean, scales, sum * p.norm_up), factor, biases);
}

}  // namespace infernode::cuda
