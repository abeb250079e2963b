#pragma once

#include "providers/cuda/kernels/products/product.h"

namespace infernode::cuda {

/// A matrix as it lies in memory; element (row, k) at row * row_stride + k * k_stride.
struct Matrix {
  DevicePtr address = 0;
  Element type = Element::f16;
  std::int64_t row_stride = 0, k_stride = 1;  ///< elements
  std::int64_t batch_stride[2] = {0, 0};      ///< 0: the same for all
};

/// out[i][m][n] = epilogue(sum over k of a[i][m][k] b[i][n][k]): B has a row for each column of the output. Batch index
/// i has the parts i % batch[0] and i / batch[0]. Any sizes and strides.
struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch[2] = {1, 1};
  Matrix a, b;
  /// B as plan_pack_weight made it, in place of `b`.
  const WeightLayout* b_packed = nullptr;
  DevicePtr b_address = 0;
  bool b_constant = true;  ///< no kernel before writes B
  Precision precision = Precision::highest;
  RowNorm norm;  ///< can_normalize_rows says whether that can be
  Epilogue epilogue;
  DevicePtr workspace = 0;  ///< gemm_workspace bytes, 256-byte aligned
};

using GemmChoice = ProductChoice;

/// Whether a kernel normalizes the rows of A as `norm` says, on the way.
bool can_normalize_rows(const Target& target, const GemmProblem& problem);

/// All that can compute it, the fastest by the model first.
std::vector<GemmChoice> gemm_choices(const Target& target, const GemmProblem& problem);
std::size_t gemm_workspace(const Target& target, const GemmProblem& problem,
                           const std::optional<GemmChoice>& choice = std::nullopt);
std::vector<Launch> plan_gemm(const Target& target, const GemmProblem& problem,
                              const std::optional<GemmChoice>& choice = std::nullopt);

}  // namespace infernode::cuda
