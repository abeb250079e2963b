#include <algorithm>

#include "base/error.h"
#include "ops/quant/qlinear.h"

namespace infernode::ops {

using tensor::DType;
using tensor::Tensor;

Quantized8::Quantized8(const Tensor& scale_tensor, const Tensor* zero_tensor, DType type)
    : is_signed(type == DType::Int8) {
  if (scale_tensor.numel() != 1 || (zero_tensor != nullptr && zero_tensor->numel() != 1)) {
    fail(ErrorCode::ShapeMismatch,
         cat("a scale ", scale_tensor.to_string(), " and a zero point ",
             zero_tensor == nullptr ? "of 0" : zero_tensor->to_string(), "; this operator takes one of each"));
  }
  scale = tensor::to_float_scalar(scale_tensor);
  if (zero_tensor != nullptr) zero = static_cast<std::int32_t>(tensor::to_int64_scalar(*zero_tensor));
}

std::uint8_t Quantized8::quantize(float value) const {
  const float rounded = std::nearbyint(value / scale), shift = static_cast<float>(zero);
  const float low = is_signed ? -128.0f : 0.0f, high = is_signed ? 127.0f : 255.0f;
  const float shifted = std::isnan(rounded) ? shift : rounded + shift;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(std::clamp(shifted, low, high)));
}

void Quantized8::load(const microkernels::ConvertTable& table, const std::uint8_t* from, float* to,
                      std::size_t n) const {
  if (is_signed) {
    table.dequantize_s8(reinterpret_cast<const std::int8_t*>(from), to, n, scale, zero);
  } else {
    table.dequantize_u8(from, to, n, scale, zero);
  }
}

void Quantized8::store(const microkernels::ConvertTable& table, const float* from, std::uint8_t* to,
                       std::size_t n) const {
  if (is_signed) {
    table.quantize_s8(from, reinterpret_cast<std::int8_t*>(to), n, scale, zero);
  } else {
    table.quantize_u8(from, to, n, scale, zero);
  }
}

ByteTable requantization(const Quantized8& x, const Quantized8& y) {
  if (!(x == y)) return byte_table(x, y, [](float v) { return v; });
  ByteTable table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint8_t>(i);
  return table;
}

void infer_like_input(kernel::InferContext& ctx, std::size_t input) {
  ctx.set_output_dtype(0, ctx.input_dtype(input));
  if (const graph::SymShape* x = ctx.input_shape(input)) ctx.set_output_shape(0, *x);
}

}  // namespace infernode::ops
