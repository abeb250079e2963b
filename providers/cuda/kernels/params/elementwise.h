#pragma once

#include <cstdint>

namespace infernode::cuda {

inline constexpr int kElementwiseRank = 5, kElementwiseInputs = 3;

enum class UnaryOp : std::uint32_t {
  abs,
  neg,
  exp,
  log,
  sqrt,
  reciprocal,
  rsqrt,
  square,
  floor,
  ceil,
  round,
  sign,
  erf,
  sin,
  cos,
  tan,
  tanh,
  sigmoid,
  relu,
  softplus,
  softsign,
  gelu,
  gelu_tanh,
  quick_gelu,
  silu,
  hard_sigmoid,
  hard_swish,
  leaky_relu,
  elu,
  selu,
  celu,
  clip,
  mish,
  thresholded_relu,
  logical_not,
  is_nan,
  is_inf,
  identity,
  affine,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  shrink,
  bit_not
};

enum class BinaryOp : std::uint32_t {
  add,
  sub,
  mul,
  div,
  pow,
  min,
  max,
  mod,
  fmod,
  prelu,
  equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right
};

/// out[i] = op(inputs at i), where each input has strides of its own. Dims are merged; where the innermost one allows,
/// a thread does some neighbours at once. Grid: x blocks of 256 threads.
struct ElementwiseParams {
  std::uint64_t in[kElementwiseInputs], out;
  std::int64_t threads;  ///< each for one pack of elements
  std::int32_t rank;
  std::uint32_t op;
  std::uint32_t dims[kElementwiseRank];                                                     ///< the last one in packs
  std::int64_t stride[kElementwiseInputs][kElementwiseRank], out_stride[kElementwiseRank];  ///< elements
  std::uint32_t packed;  ///< bit i: input i has a pack's elements side by side; otherwise one element for all
  float a, b;            ///< parameters of unary operators
};

/// Types of a conversion.
enum class Number : std::uint32_t { f32, f16, bf16, f64, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

/// An operator on elements of any types, where one kernel for all of them is quick enough: integers are computed with
/// as 64 bits, all else as float64.
struct WideParams {
  ElementwiseParams at;
  Number from[2], to;
};

struct CastParams {
  std::uint64_t in, out;
  std::int64_t count;
  Number from, to;
};

}  // namespace infernode::cuda
