#pragma once
// From a run-time DType to a C++ type: one short table per call site. Keep the list of types as short as the operator
// needs; loops that only move bytes dispatch on the element size instead (dispatch_size).

#include <cstdint>

#include "base/error.h"
#include "tensor/dtype.h"

namespace infernode::tensor {

template <class T>
struct TypeTag {
  using type = T;
};

[[noreturn]] void fail_dispatch(DType type, const char* what);

/// Calls f(TypeTag<T>{}) for the T among Ts whose DType is `type`; throws UnsupportedOperator naming `what` where there
/// is none. Use: dispatch<float, double, int32_t>(t.dtype(), "Relu", [&]<class T>(TypeTag<T>) { ... });
template <class... Ts, class F>
void dispatch(DType type, const char* what, F&& f) {
  const bool found = ((type == kDTypeOf<Ts> ? (f(TypeTag<Ts>{}), true) : false) || ...);
  if (!found) fail_dispatch(type, what);
}

template <class F>
void dispatch_floats(DType type, const char* what, F&& f) {
  dispatch<float, double, Float16, BFloat16>(type, what, static_cast<F&&>(f));
}

/// The eight integer types.
template <class F>
void dispatch_ints(DType type, const char* what, F&& f) {
  dispatch<std::int32_t, std::int64_t, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
           std::uint64_t>(type, what, static_cast<F&&>(f));
}

/// Floats (bfloat16 too) and integers.
template <class F>
void dispatch_numeric(DType type, const char* what, F&& f) {
  dispatch<float, std::int64_t, std::int32_t, double, std::uint8_t, std::int8_t, Float16, BFloat16, std::uint16_t,
           std::int16_t, std::uint32_t, std::uint64_t>(type, what, static_cast<F&&>(f));
}

struct Bytes16 {
  std::uint64_t lo, hi;
};

/// Calls f(TypeTag<uintN_t>{}) by the element's size in bytes (1, 2, 4, 8, 16): for kernels that move elements. Strings
/// and sub-byte types are the caller's to treat first.
template <class F>
void dispatch_size(std::size_t bytes, const char* what, F&& f) {
  switch (bytes) {
    case 1:
      return f(TypeTag<std::uint8_t>{});
    case 2:
      return f(TypeTag<std::uint16_t>{});
    case 4:
      return f(TypeTag<std::uint32_t>{});
    case 8:
      return f(TypeTag<std::uint64_t>{});
    case 16:
      return f(TypeTag<Bytes16>{});
    default:
      fail_dispatch(DType::Undefined, what);
  }
}

/// The type a kernel computes in: float for 16-bit floats, itself otherwise.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Float16> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using ComputeTypeOf = typename ComputeType<T>::type;

}  // namespace infernode::tensor
