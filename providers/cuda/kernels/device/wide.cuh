#pragma once

#include "providers/cuda/kernels/device/any.cuh"
#include "providers/cuda/kernels/device/binary.cuh"
#include "providers/cuda/kernels/device/unary.cuh"

// Operators on numbers whose type is known at run time.
namespace infernode::cuda {

__device__ __forceinline__ Any of(long long x, bool is_unsigned) { return {true, 0, x, is_unsigned}; }

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

__device__ __forceinline__ bool wide_compares(BinaryOp op, const Any& x, const Any& y) {
  if (!x.integer) return compares(op, x.real, y.real);
  if (!x.is_unsigned) return compares(op, x.whole, y.whole);
  return compares(op, static_cast<unsigned long long>(x.whole), static_cast<unsigned long long>(y.whole));
}

/// The result of an arithmetic operator. A power's exponent may be of another type than the base, whose bits alone
/// count.
__device__ __forceinline__ Any wide_binary_of(BinaryOp op, const Any& x, const Any& y) {
  if (!x.integer || !y.integer) return of(binary<double>(op, real(x), real(y)));
  if (!(op == BinaryOp::pow ? y : x).is_unsigned) return of(integer(op, x.whole, y.whole), x.is_unsigned);
  const auto p = static_cast<unsigned long long>(x.whole), q = static_cast<unsigned long long>(y.whole);
  return of(static_cast<long long>(integer(op, p, q)), x.is_unsigned);
}

}  // namespace infernode::cuda
