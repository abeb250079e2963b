#pragma once

#include <math.h>

#include <type_traits>

#include "providers/cuda/kernels/params/elementwise.h"

// Functions of two numbers: float or double, or integers of any size.
namespace infernode::cuda {

template <class F>
__device__ __noinline__ F slow_binary(BinaryOp op, F x, F y) {
  switch (op) {
    case BinaryOp::div:
      return x / y;
    case BinaryOp::pow:
      return y == F(2) ? x * x : pow(x, y);
    case BinaryOp::mod: {
      const F rest = fmod(x, y);
      if (rest == 0) return copysign(F(0), y);
      return (rest < 0) != (y < 0) ? rest + y : rest;
    }
    case BinaryOp::fmod:
      return fmod(x, y);
    default:
      return x;
  }
}

/// NaN is the least and the greatest of two.
template <class F>
__device__ __forceinline__ F binary(BinaryOp op, F x, F y) {
  switch (op) {
    case BinaryOp::add:
      return x + y;
    case BinaryOp::sub:
      return x - y;
    case BinaryOp::mul:
      return x * y;
    case BinaryOp::min:
      return x != x || x < y ? x : y;
    case BinaryOp::max:
      return x != x || x > y ? x : y;
    case BinaryOp::prelu:
      return x < 0 ? x * y : x;
    default:
      return slow_binary<F>(op, x, y);
  }
}

template <class T>
__device__ __forceinline__ bool is_negative(T x) {
  if constexpr (std::is_signed_v<T>) {
    return x < 0;
  } else {
    return false;
  }
}

template <class T>
__device__ T power(T x, T y) {
  if (is_negative(y)) return x == 1 ? 1 : x == T(-1) ? (y % 2 == 0 ? 1 : x) : 0;
  std::make_unsigned_t<T> result = 1, square = x;
  for (; y != 0; y >>= 1, square *= square) {
    if (y & 1) result *= square;
  }
  return static_cast<T>(result);
}

/// The quotient, or the remainder with the sign that `op` gives it. By zero: zero.
template <class T>
__device__ __forceinline__ T divided(BinaryOp op, T x, T y) {
  using Bits = std::make_unsigned_t<T>;
  if (y == 0) return 0;
  if (std::is_signed_v<T> && y == T(-1)) return op == BinaryOp::div ? static_cast<T>(0 - static_cast<Bits>(x)) : 0;
  if (op == BinaryOp::div) return x / y;
  const T rest = x % y;
  const bool moves = op == BinaryOp::mod && rest != 0 && is_negative(rest) != is_negative(y);
  return moves ? rest + y : rest;
}

/// Sums and products wrap round.
template <class T>
__device__ __noinline__ T integer(BinaryOp op, T x, T y) {
  using Bits = std::make_unsigned_t<T>;
  constexpr int kBits = 8 * sizeof(T);
  const auto p = static_cast<Bits>(x), q = static_cast<Bits>(y);
  switch (op) {
    case BinaryOp::add:
      return static_cast<T>(p + q);
    case BinaryOp::sub:
      return static_cast<T>(p - q);
    case BinaryOp::mul:
      return static_cast<T>(p * q);
    case BinaryOp::prelu:
      return is_negative(x) ? static_cast<T>(p * q) : x;
    case BinaryOp::pow:
      return power(x, y);
    case BinaryOp::min:
      return x < y ? x : y;
    case BinaryOp::max:
      return x > y ? x : y;
    case BinaryOp::div:
    case BinaryOp::mod:
    case BinaryOp::fmod:
      return divided(op, x, y);
    case BinaryOp::bit_and:
      return x & y;
    case BinaryOp::bit_or:
      return x | y;
    case BinaryOp::bit_xor:
      return x ^ y;
    case BinaryOp::shift_left:
      return q < kBits ? static_cast<T>(p << q) : 0;
    case BinaryOp::shift_right:
      return q < kBits ? x >> q : is_negative(x) ? T(-1) : T(0);
    default:
      return x;
  }
}

template <class T>
__device__ __forceinline__ bool compares(BinaryOp op, T x, T y) {
  switch (op) {
    case BinaryOp::equal:
      return x == y;
    case BinaryOp::less:
      return x < y;
    case BinaryOp::less_equal:
      return x <= y;
    case BinaryOp::greater:
      return x > y;
    case BinaryOp::greater_equal:
      return x >= y;
    case BinaryOp::logical_and:
      return x && y;
    case BinaryOp::logical_or:
      return x || y;
    case BinaryOp::logical_xor:
      return !x != !y;
    default:
      return false;
  }
}

}  // namespace infernode::cuda
