#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/attention.h"
#include "providers/cuda/kernels/params/gemm.h"

// Parameters of the kernels of reference.cu, which compute slowly and in float64.
namespace infernode::cuda::bench {

struct FillParams {
  std::uint64_t out;
  std::int64_t count;
  Element type;
  std::uint32_t seed;
  float scale, shift;
};

struct ReferenceEpilogue {
  std::uint64_t bias, scale, residual;
  Element residual_type;
  std::int64_t residual_row, residual_batch[2];
  std::int32_t residual_last, column_batch;
  Activation activation;
  float alpha, a, b;
};

/// ref[batch][m][n] in float64. With a scale, rows of A are normalized first, and rounded to A's type.
struct ReferenceGemm {
  std::uint64_t a, b, ref;
  Element a_type, b_type;
  std::int64_t a_row, a_k, a_batch[2], b_row, b_k, b_batch[2];
  std::int64_t m, n, k, batch[2];
  ReferenceEpilogue e;
  std::uint64_t norm_scale = 0, norm_bias = 0;
  float norm_epsilon = 0;
  std::int32_t norm_no_mean = 0;
};

/// ref[pixel][group * outputs + output]; weights [group outputs][tap][channels] without padding.
struct ReferenceConv {
  std::uint64_t input, weights, ref;
  Element type, weights_type;
  ConvParams conv;
  std::int64_t pixels, outputs, groups;
  ReferenceEpilogue e;
};

/// ref[batch][head][query][dv] from the problem that the kernels get; scale in units of e.
struct ReferenceAttention {
  AttentionParams p;
  std::uint64_t ref;
  float scale;
};

/// sums[0] += (out - ref)^2, sums[1] += ref^2; sums[2] counts what is not finite, sums[3] writes outside of the rows.
struct CompareParams {
  std::uint64_t out, ref, sums;
  Element type;
  std::int64_t rows, columns, out_row, batch[2], out_batch[2];
  std::int64_t ref_row, ref_batch[2];  ///< as out_row and out_batch, of the reference
  std::int32_t gaps;                   ///< whether elements between rows must still be poison
};

}  // namespace infernode::cuda::bench
