#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/elementwise.h"

namespace infernode::cuda {

/// Where the largest (or the smallest) of each [outer][columns][inner] stands. NaN is beyond all numbers. Grid: x
/// blocks of `warps` warps that share a row, or of four with one each.
struct ArgParams {
  std::uint64_t in, out;  ///< out: int64 [outer][inner]; or in's shape and type, 1 there and else 0
  std::int64_t rows;      ///< outer * inner
  std::int64_t columns, inner;
  Number type;
  std::int32_t smallest, last, one_hot;
  std::int32_t warps;  ///< 1: a warp for each row
};

/// The first k of each [outer][columns][inner] in descending order (or ascending), equal ones in theirs. Grid: x rows.
struct TopKParams {
  std::uint64_t in, values, indices;  ///< [outer][k][inner]; indices int64
  std::uint64_t chosen_key, chosen;   ///< scratch: uint64 and int32 [row][k]
  std::int64_t columns, inner;
  std::int32_t k;
  Number type;
  std::int32_t smallest, sorted;  ///< not sorted: in the order of their places
};

}  // namespace infernode::cuda
