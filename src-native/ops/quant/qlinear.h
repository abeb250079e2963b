#pragma once
// 8-bit tensors with one scale and one zero point: what com.microsoft's QLinear operators share.

#include <array>
#include <cmath>
#include <cstdint>

#include "kernel/infer_context.h"
#include "kernel/kernel.h"
#include "microkernels/convert/convert.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// How the bytes of a tensor read: value = (code - zero) * scale.
struct Quantized8 {
  float scale = 1;
  std::int32_t zero = 0;
  bool is_signed = false;

  Quantized8() = default;
  /// From a scale and a zero point of one element each; an absent zero point is 0. `type` is that of the codes.
  /// Throws ShapeMismatch.
  Quantized8(const tensor::Tensor& scale_tensor, const tensor::Tensor* zero_tensor, tensor::DType type);

  std::int32_t code(std::uint8_t byte) const { return is_signed ? static_cast<std::int8_t>(byte) : byte; }
  float value(std::uint8_t byte) const { return static_cast<float>(code(byte) - zero) * scale; }
  /// saturate(round_even(value / scale) + zero); NaN counts as 0.
  std::uint8_t quantize(float value) const;
  bool operator==(const Quantized8&) const = default;

  void load(const microkernels::ConvertTable& table, const std::uint8_t* from, float* to, std::size_t n) const;
  void store(const microkernels::ConvertTable& table, const float* from, std::uint8_t* to, std::size_t n) const;
};

inline const std::uint8_t* bytes_of(const tensor::Tensor& t) { return static_cast<const std::uint8_t*>(t.raw()); }
inline std::uint8_t* mutable_bytes_of(const tensor::Tensor& t) { return static_cast<std::uint8_t*>(t.mutable_raw()); }

/// Result of a function of one quantized number for each of its 256 codes.
using ByteTable = std::array<std::uint8_t, 256>;
template <class F>
ByteTable byte_table(const Quantized8& x, const Quantized8& y, F f) {
  ByteTable table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = y.quantize(f(x.value(static_cast<std::uint8_t>(i))));
  return table;
}
/// The table that turns codes of x into those of y for the same numbers; the identity where the two agree.
ByteTable requantization(const Quantized8& x, const Quantized8& y);

/// Output 0 has input 0's type and shape.
void infer_like_input(kernel::InferContext& ctx, std::size_t input);

}  // namespace infernode::ops
