#pragma once

#include <cstdint>

namespace infernode::cuda {

inline constexpr int kNormalizedInWarp = 256;  ///< columns at most that a warp holds in registers

/// Rows of `columns` numbers that lie side by side, `rows` of them. Grid: x blocks of 4 warps, a row for each warp or
/// for all of them.
struct NormalizeParams {
  std::uint64_t in, out;
  std::uint64_t residual;     ///< of in's type: added first; 0: none
  std::uint64_t sum;          ///< in + residual, where somebody wants it; 0: nobody does
  std::uint64_t scale, bias;  ///< float32 [columns]; 0: none
  std::int64_t rows;
  std::int32_t columns;
  std::int32_t no_mean;           ///< root-mean-square normalization
  std::int32_t columns_constant;  ///< scale and bias are constants: read before the wait for the kernel before
  float epsilon;
  float per_column = 0;    ///< 1 / columns
  std::int32_t warps = 1;  ///< that share a row: 1 or 4
};

/// Softmax over the middle one of [outer][columns][inner] numbers. Grid: x blocks of 4 warps, a row for each warp.
struct SoftmaxParams {
  std::uint64_t in, out;
  std::int64_t rows;  ///< outer * inner
  std::int32_t columns;
  std::int64_t inner;
  std::int32_t logarithm;
};

enum class ReduceOp : std::uint32_t { sum, mean, max, min, prod, l1, l2, sum_square, log_sum, log_sum_exp };

/// One number of each of [outer][columns][inner], over the middle. Grid: x blocks of 4 warps, an output for each warp.
struct ReduceParams {
  std::uint64_t in, out;
  std::int64_t outputs;  ///< outer * inner
  std::int64_t columns, inner;
  ReduceOp op;
};

/// Running sums over the middle of [outer][columns][inner]. Grid: x blocks of 128 threads, one for each row; of 4
/// warps, one for each row, where inner is 1.
struct ScanParams {
  std::uint64_t in, out;
  std::int64_t rows;  ///< outer * inner
  std::int64_t columns, inner;
  std::int32_t exclusive, reverse;
};

}  // namespace infernode::cuda
