#pragma once

#include "providers/cuda/kernels/device/any.cuh"
#include "providers/cuda/kernels/device/unary.cuh"

// Operators on numbers whose type is known at run time.
namespace infernode::cuda {

__device__ __forceinline__ Any of(long long x, bool is_unsigned) { return {true, 0, x, is_unsigned}; }

/// Integers of both kinds as bits; comparisons and divisions ask which it is.
__device__ __forceinline__ bool is_less(const Any& x, const Any& y) {
  if (!x.integer) return x.real < y.real;
  return x.is_unsigned ? static_cast<unsigned long long>(x.whole) < static_cast<unsigned long long>(y.whole)
                       : x.whole < y.whole;
}
__device__ __forceinline__ bool is_equal(const Any& x, const Any& y) {
  return x.integer ? x.whole == y.whole : x.real == y.real;
}

__device__ __forceinline__ Any wide_unary_of(UnaryOp op, const Any& x, double a, double b) {
  if (!x.integer) {
    if (op == UnaryOp::is_nan) return of(static_cast<long long>(x.real != x.real));
    if (op == UnaryOp::is_inf) return of(static_cast<long long>(isinf(x.real) && (x.real > 0 ? a != 0 : b != 0)));
    return of(unary<double>(op, x.real, a, b));
  }
  const bool negative = !x.is_unsigned && x.whole < 0;
  switch (op) {
    case UnaryOp::abs:
      return of(negative ? -x.whole : x.whole, x.is_unsigned);
    case UnaryOp::neg:
      return of(-x.whole, x.is_unsigned);
    case UnaryOp::sign:
      return of(negative ? -1 : x.whole != 0, x.is_unsigned);
    case UnaryOp::relu:
      return of(negative ? 0 : x.whole, x.is_unsigned);
    case UnaryOp::bit_not:
      return of(~x.whole, x.is_unsigned);
    default:
      return x;
  }
}

__device__ __noinline__ double wide_reals(BinaryOp op, double x, double y) {
  switch (op) {
    case BinaryOp::add:
      return x + y;
    case BinaryOp::sub:
      return x - y;
    case BinaryOp::mul:
      return x * y;
    case BinaryOp::div:
      return x / y;
    case BinaryOp::pow:
      return pow(x, y);
    case BinaryOp::min:
      return x != x || x < y ? x : y;
    case BinaryOp::max:
      return x != x || x > y ? x : y;
    case BinaryOp::prelu:
      return x < 0 ? x * y : x;
    case BinaryOp::fmod:
      return fmod(x, y);
    case BinaryOp::mod: {
      const double rest = fmod(x, y);
      if (rest == 0) return copysign(0.0, y);
      return (rest < 0) != (y < 0) ? rest + y : rest;
    }
    default:
      return x;
  }
}

/// What is the same for signed and unsigned integers.
__device__ __forceinline__ unsigned long long wide_bits(BinaryOp op, unsigned long long x, unsigned long long y,
                                                        bool is_negative) {
  switch (op) {
    case BinaryOp::add:
      return x + y;
    case BinaryOp::sub:
      return x - y;
    case BinaryOp::mul:
      return x * y;
    case BinaryOp::prelu:
      return is_negative ? x * y : x;
    case BinaryOp::bit_and:
      return x & y;
    case BinaryOp::bit_or:
      return x | y;
    case BinaryOp::bit_xor:
      return x ^ y;
    case BinaryOp::shift_left:
      return y < 64 ? x << y : 0;
    default:
      return x;
  }
}

__device__ __forceinline__ unsigned long long wide_power(unsigned long long x, const Any& y) {
  if (!y.is_unsigned && y.whole < 0) return x == 1 ? 1 : x == ~0ULL ? (y.whole % 2 == 0 ? 1 : x) : 0;
  unsigned long long result = 1;
  for (auto n = static_cast<unsigned long long>(y.whole); n != 0; n >>= 1, x *= x) {
    if (n & 1) result *= x;
  }
  return result;
}

/// The quotient, or the remainder with the sign that `op` gives it. By zero: zero.
__device__ __forceinline__ unsigned long long wide_divide(BinaryOp op, const Any& x, const Any& y) {
  const auto p = static_cast<unsigned long long>(x.whole), q = static_cast<unsigned long long>(y.whole);
  if (q == 0) return 0;
  if (x.is_unsigned) return op == BinaryOp::div ? p / q : p % q;
  if (y.whole == -1) return op == BinaryOp::div ? 0 - p : 0;
  if (op == BinaryOp::div) return static_cast<unsigned long long>(x.whole / y.whole);
  const long long rest = x.whole % y.whole;
  const bool moves = op == BinaryOp::mod && rest != 0 && (rest < 0) != (y.whole < 0);
  return static_cast<unsigned long long>(moves ? rest + y.whole : rest);
}

__device__ __noinline__ Any wide_integers(BinaryOp op, const Any& x, const Any& y) {
  const auto p = static_cast<unsigned long long>(x.whole), q = static_cast<unsigned long long>(y.whole);
  unsigned long long bits;
  switch (op) {
    case BinaryOp::min:
      return is_less(x, y) ? x : y;
    case BinaryOp::max:
      return is_less(y, x) ? x : y;
    case BinaryOp::div:
    case BinaryOp::mod:
    case BinaryOp::fmod:
      bits = wide_divide(op, x, y);
      break;
    case BinaryOp::pow:
      bits = wide_power(p, y);
      break;
    case BinaryOp::shift_right:
      bits = q < 64 ? (x.is_unsigned ? p >> q : static_cast<unsigned long long>(x.whole >> q))
                    : (x.is_unsigned || x.whole >= 0 ? 0 : ~0ULL);
      break;
    default:
      bits = wide_bits(op, p, q, !x.is_unsigned && x.whole < 0);
  }
  return of(static_cast<long long>(bits), x.is_unsigned);
}

__device__ __forceinline__ bool wide_compares(BinaryOp op, const Any& x, const Any& y) {
  switch (op) {
    case BinaryOp::equal:
      return is_equal(x, y);
    case BinaryOp::less:
      return is_less(x, y);
    case BinaryOp::less_equal:
      return is_less(x, y) || is_equal(x, y);
    case BinaryOp::greater:
      return is_less(y, x);
    default:
      return is_less(y, x) || is_equal(x, y);
  }
}

/// The result of an arithmetic operator.
__device__ __forceinline__ Any wide_binary_of(BinaryOp op, const Any& x, const Any& y) {
  return x.integer && y.integer ? wide_integers(op, x, y) : of(wide_reals(op, real(x), real(y)));
}

}  // namespace infernode::cuda
