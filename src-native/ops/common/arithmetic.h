#pragma once
// Arithmetic of element types as the operators define it: integers wrap, 16-bit floats compute in float, NaN wins.

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/dispatch.h"

namespace infernode::ops {

template <class T>
constexpr T wrap_add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

template <class T>
constexpr T wrap_multiply(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

template <class T>
constexpr bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return v != v;
  else
    return false;
}

template <class T>
constexpr T minimum(T a, T b) {
  return a < b || is_nan(a) ? a : b;
}

template <class T>
constexpr T maximum(T a, T b) {
  return a > b || is_nan(a) ? a : b;
}

/// An element in the type that kernels compute in, and back.
template <class T>
constexpr tensor::ComputeTypeOf<T> widen(T v) {
  return static_cast<tensor::ComputeTypeOf<T>>(v);
}

/// `v`, of any arithmetic type, as T: towards zero and limited to T's range where T is an integer (NaN gives 0).
template <class T, class From>
T convert(From v) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && std::is_floating_point_v<From>) {
    if (is_nan(v)) return 0;
    if (v <= static_cast<From>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (v >= static_cast<From>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(v);
  } else {
    return T(static_cast<std::conditional_t<std::is_same_v<From, double>, double, float>>(v));
  }
}

/// A whole number that compares as `v` does: both zeros alike, NaN above all numbers and equal to itself. Loops over
/// these need not be compiled for each type.
template <class T>
std::int64_t order_key(T v) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return static_cast<std::int64_t>(v ^ (std::uint64_t{1} << 63));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::int64_t>(v);
  } else {
    const auto number = static_cast<double>(widen(v)) + 0.0;  // -0 becomes 0
    if (is_nan(number)) return std::numeric_limits<std::int64_t>::max();
    const auto bits = std::bit_cast<std::int64_t>(number);
    return bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits;
  }
}

}  // namespace infernode::ops
