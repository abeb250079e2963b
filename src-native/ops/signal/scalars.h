#pragma once
// What the signal operators share: scalar inputs and the type of generated outputs.

#include <limits>

#include "kernel/infer_context.h"
#include "kernel/kernel.h"

namespace infernode::ops::signal {

/// The one integer in input `i`.
inline std::int64_t scalar(const kernel::KernelContext& ctx, std::size_t i, const char* what) {
  const tensor::Tensor& t = ctx.input(i);
  INFERNODE_CHECK(t.numel() == 1, ErrorCode::ShapeMismatch, what, " must be one number, got ", t.shape().dims());
  return tensor::to_int64_scalar(t);
}

/// Attribute output_datatype: any integer or floating type but the 8-bit floats.
inline tensor::DType output_datatype(const graph::Attributes& attributes) {
  const std::int64_t code = attributes.get_int("output_datatype", 1);
  const auto dtype = tensor::dtype_from_code(code);
  INFERNODE_CHECK(dtype && tensor::types::kNumericBf16.contains(*dtype), ErrorCode::InvalidModel, "output_datatype ",
                  code, " is no integer or floating type");
  return *dtype;
}

/// To integers values are truncated; those generated fit every type.
template <class T>
T convert(double value) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    return static_cast<T>(static_cast<std::int64_t>(value));
  } else if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace infernode::ops::signal
