#pragma once

#include <cstddef>
#include <cstdint>

// Float32 reductions and row normalisations. Minimum and maximum are NaN if any element is NaN.
namespace infernode::microkernels {

enum class ReduceOp : std::uint8_t { kSum, kSumSquare, kSumAbs, kMax, kMin, kProd, kCount };

// Of n contiguous elements; n = 0 gives the operation's neutral element.
using ReduceRow = float (*)(const float* x, std::size_t n) noexcept;
// out[c] = reduction over r of x[r * stride + c], for c < cols.
using ReduceColumns = void (*)(const float* x, std::size_t rows, std::size_t stride, std::size_t cols,
                               float* out) noexcept;

inline constexpr std::size_t kOrderColumns = 16, kMostBest = 8;

struct ReduceTable {
  const char* name;
  ReduceRow row[static_cast<std::size_t>(ReduceOp::kCount)];
  ReduceColumns columns[static_cast<std::size_t>(ReduceOp::kCount)];
  // y = softmax(x). y may be x. A row of only -infinity gives NaN.
  void (*softmax)(const float* x, float* y, std::size_t n) noexcept;
  // y = exp(scale * (x - the greatest x)), scale > 0, and returns its sum: softmax(scale * x) before it is divided.
  float (*exponentials)(const float* x, float* y, std::size_t n, float scale) noexcept;
  void (*log_softmax)(const float* x, float* y, std::size_t n) noexcept;
  // y = (x - mean) * inv_std * gamma + beta; gamma or beta may be null. mean and inv_std outputs may be null.
  void (*layer_norm)(const float* x, const float* gamma, const float* beta, float* y, std::size_t n, float epsilon,
                     float* mean, float* inv_std) noexcept;
  // y = x / sqrt(mean(x^2) + epsilon) * gamma; gamma may be null, inv_rms may be null.
  void (*rms_norm)(const float* x, const float* gamma, float* y, std::size_t n, float epsilon, float* inv_rms) noexcept;
  // Mean and variance (population) of n elements.
  void (*mean_variance)(const float* x, std::size_t n, float* mean, float* variance) noexcept;
  // Index of the first (or last) greatest or smallest element; n > 0. A NaN wins, as in NumPy.
  std::size_t (*arg_max)(const float* x, std::size_t n, bool last) noexcept;
  std::size_t (*arg_min)(const float* x, std::size_t n, bool last) noexcept;
  float (*dot)(const float* x, const float* y, std::size_t n) noexcept;
  // Whole numbers that compare as the elements do, or the other way round where not `largest`: both zeros alike, NaN
  // above all numbers. None is the least int32.
  void (*order_keys)(const float* x, std::int32_t* keys, std::size_t n, bool largest) noexcept;
  // ranks[i] = how many keys come before the i-th: the greater ones, and equal ones of a lower index.
  void (*ranks)(const std::int32_t* keys, std::size_t n, std::int32_t* ranks) noexcept;
  // Where in each of kOrderColumns columns the k first in that order stand, indices[k][kOrderColumns] of
  // keys[n][kOrderColumns]; 0 < k <= n, k <= kMostBest, and no key is the least int32.
  void (*best)(const std::int32_t* keys, std::size_t n, std::size_t k, std::int32_t* indices) noexcept;
};

}  // namespace infernode::microkernels
