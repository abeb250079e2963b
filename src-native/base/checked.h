#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"

/// Integer arithmetic that throws instead of wrapping. Sizes that a model or a caller states go through these.
namespace infernode {

[[noreturn]] void fail_overflow(const char* operation, ErrorCode code);

/// True when the result did not fit; `out` is then unspecified.
template <std::integral T>
constexpr bool add_overflows(T a, T b, T& out) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_add_overflow(a, b, &out);
#else
  using L = std::numeric_limits<T>;
  if (b > 0 ? a > static_cast<T>(L::max() - b) : a < static_cast<T>(L::min() - b)) return true;
  out = static_cast<T>(a + b);
  return false;
#endif
}

template <std::integral T>
constexpr bool sub_overflows(T a, T b, T& out) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_sub_overflow(a, b, &out);
#else
  using L = std::numeric_limits<T>;
  if (b > 0 ? a < static_cast<T>(L::min() + b) : a > static_cast<T>(L::max() + b)) return true;
  out = static_cast<T>(a - b);
  return false;
#endif
}

template <std::integral T>
constexpr bool mul_overflows(T a, T b, T& out) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_mul_overflow(a, b, &out);
#else
  using L = std::numeric_limits<T>;
  if (a != 0 && b != 0) {
    if constexpr (std::is_signed_v<T>) {
      if ((a == -1 && b == L::min()) || (b == -1 && a == L::min())) return true;
      if (a > 0 ? (b > 0 ? a > L::max() / b : b < L::min() / a) : (b > 0 ? a < L::min() / b : b < L::max() / a))
        return true;
    } else if (a > L::max() / b) {
      return true;
    }
  }
  out = static_cast<T>(a * b);
  return false;
#endif
}

template <std::integral T>
constexpr T checked_add(T a, std::type_identity_t<T> b, ErrorCode code = ErrorCode::OutOfMemory) {
  T out{};
  if (add_overflows<T>(a, b, out)) [[unlikely]]
    fail_overflow("addition", code);
  return out;
}

template <std::integral T>
constexpr T checked_sub(T a, std::type_identity_t<T> b, ErrorCode code = ErrorCode::InvalidArgument) {
  T out{};
  if (sub_overflows<T>(a, b, out)) [[unlikely]]
    fail_overflow("subtraction", code);
  return out;
}

template <std::integral T>
constexpr T checked_mul(T a, std::type_identity_t<T> b, ErrorCode code = ErrorCode::OutOfMemory) {
  T out{};
  if (mul_overflows<T>(a, b, out)) [[unlikely]]
    fail_overflow("multiplication", code);
  return out;
}

/// Converts between integer types when the value fits: checked_cast<size_t>(dim).
template <std::integral To, std::integral From>
constexpr To checked_cast(From value, ErrorCode code = ErrorCode::InvalidArgument) {
  if (!std::in_range<To>(value)) [[unlikely]]
    fail_overflow("conversion", code);
  return static_cast<To>(value);
}

/// Smallest multiple of `alignment` (a power of two) not below `value`.
template <std::unsigned_integral T>
constexpr T align_up(T value, std::type_identity_t<T> alignment) {
  return checked_add<T>(value, alignment - 1) & ~static_cast<T>(alignment - 1);
}

/// Quotient rounded up, for value >= 0 and divisor > 0; does not overflow.
template <std::integral T>
constexpr T ceil_div(T value, std::type_identity_t<T> divisor) noexcept {
  return static_cast<T>(value / divisor + (value % divisor != 0 ? 1 : 0));
}

}  // namespace infernode
