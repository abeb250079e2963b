// Quantization: numbers as codes of 8 and 16 bits and back, products of bytes, and of weights in few bits.

#include "providers/cuda/kernels/params/quantize.h"

#include <algorithm>

#include "base/error.h"
#include "providers/cuda/kernels/simple/places.h"
#include "providers/cuda/lowering/parts/elements.h"
#include "providers/cuda/lowering/products.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::TypeSet;

constexpr TypeSet kCodes{DType::Int8, DType::UInt8, DType::Int16, DType::UInt16};
constexpr TypeSet kBytes{DType::Int8, DType::UInt8};
constexpr TypeSet kInt32{DType::Int32};

bool can_quantize(const NodeView& node) {
  return (kReals | kInt32).contains(node.input_dtype(0)) && kReals.contains(node.input_dtype(1)) &&
         kCodes.contains(node.output_dtype(0));
}
bool can_dequantize(const NodeView& node) {
  return (kCodes | kInt32).contains(node.input_dtype(0)) && kReals.contains(node.input_dtype(1)) &&
         kReals.contains(node.output_dtype(0));
}

/// Which scale an element has: one for all, one for each index of an axis, or one for each block of indices.
void lay_scales(Builder& b, const Shape& x, const Shape& scale, QuantizeParams& p) {
  const std::int64_t block = b.attributes().get_int("block_size", 0);
  p.count = x.numel();
  p.n = p.block = std::max<std::int64_t>(p.count, 1);
  p.inner = p.blocks = 1;
  if (scale.rank() == 0 || (block == 0 && scale.numel() == 1)) return;
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("axis", 1), x.rank());
  p.n = x[axis];
  p.inner = x.numel(axis + 1, x.rank());
  p.block = block == 0 ? 1 : block;
  p.blocks = (p.n + p.block - 1) / p.block;
  p.per_element = block != 0;
  Shape expected{x[axis]};
  if (block != 0) expected = x, expected[axis] = p.blocks;
  if (!(scale == expected)) {
    fail(ErrorCode::ShapeMismatch, cat("scale ", scale.to_string(), " does not fit x ", x.to_string()));
  }
}

template <bool back>
void lower_quantize(Builder& b) {
  const DeviceTensor x = b.input(0), scale = b.input(1), zero = b.input(2), y = b.output(0);
  if (zero && zero.numel() != scale.numel()) {
    fail(ErrorCode::ShapeMismatch,
         cat("zero point ", zero.shape.to_string(), " does not fit scale ", scale.shape.to_string()));
  }
  QuantizeParams p{};
  p.x = x.at, p.scale = scale.at, p.zero = zero ? zero.at : 0, p.y = y.at;
  p.back = back;
  p.x_type = number_of(x.dtype).value();
  p.scale_type = number_of(scale.dtype).value();
  p.zero_type = number_of(zero ? zero.dtype : DType::UInt8).value();
  p.y_type = number_of(y.dtype).value();
  lay_scales(b, x.shape, scale.shape, p);
  if (p.count > 0) b.launch(launch_of_threads("quantize", p.count, param_bytes(p)));
}

bool can_quantize_dynamically(const NodeView& node) {
  return node.input_dtype(0) == DType::Float32 && node.has_output(0) && node.has_output(1) && node.has_output(2) &&
         !node.is_empty(0);
}
void lower_quantize_dynamically(Builder& b) {
  const DeviceTensor x = b.input(0), y = b.output(0), scale = b.output(1), zero = b.output(2);
  constexpr std::int64_t kMostParts = 256, kPart = 4096;
  const std::int64_t parts = std::clamp<std::int64_t>(x.numel() / kPart, 1, kMostParts);
  const auto bounds = [&] { return b.scratch(static_cast<std::size_t>(parts) * sizeof(float)); };
  const NumberRangeParams range{.in = x.at, .low = bounds(), .high = bounds(), .count = x.numel(), .parts = parts};
  b.launch(Launch{.kernel = "number_range",
                  .grid = {static_cast<std::uint32_t>(parts)},
                  .block = {256},
                  .cluster = {},
                  .programmatic = true,
                  .params = param_bytes(range)});
  b.launch(Launch{.kernel = "dynamic_range",
                  .grid = {},
                  .block = {32},
                  .cluster = {},
                  .programmatic = true,
                  .params = param_bytes(DynamicRangeParams{.low = range.low,
                                                           .high = range.high,
                                                           .scale = scale.at,
                                                           .zero = zero.at,
                                                           .parts = static_cast<std::int32_t>(parts)})});
  QuantizeParams p{};
  p.x = x.at, p.scale = scale.at, p.zero = zero.at, p.y = y.at;
  p.x_type = p.scale_type = Number::f32;
  p.zero_type = p.y_type = Number::u8;
  p.count = p.n = p.block = x.numel();
  p.inner = p.blocks = 1;
  if (p.count > 0) b.launch(launch_of_threads("quantize", p.count, param_bytes(p)));
}

/// A has one zero point, or one for each row where it is a matrix; B one, or one for each column.
bool can_multiply_bytes(const NodeView& node) {
  const std::size_t a = node.input_rank(0).value_or(0), b = node.input_rank(1).value_or(0);
  return kBytes.contains(node.input_dtype(0)) && kBytes.contains(node.input_dtype(1)) && a >= 2 && (b == 2 || b == a) &&
         node.input_rank(2).value_or(0) <= 1 && node.input_rank(3).value_or(0) <= 1;
}
void lower_multiply_bytes(Builder& b) {
  const DeviceTensor left = b.input(0), right = b.input(1), zero_a = b.input(2), zero_b = b.input(3), y = b.output(0);
  if (y.numel() == 0) return;
  const std::size_t rank = left.shape.rank();
  const bool one = right.shape.rank() == 2;
  std::int64_t batch = left.shape.numel(0, rank - 2), rows = left.shape[rank - 2];
  const std::int64_t columns = right.shape.back(), k = left.shape.back();
  if (right.shape[right.shape.rank() - 2] != k) {
    fail(ErrorCode::ShapeMismatch, cat(k, " columns of A meet ", right.shape[right.shape.rank() - 2], " rows of B"));
  }
  for (std::size_t d = 0; !one && d + 2 < rank; ++d) {
    if (left.shape[d] != right.shape[d]) fail(ErrorCode::UnsupportedOperator, "cuda: stacks of bytes that broadcast");
  }
  if (one && zero_a.shape.numel() <= 1) rows *= batch, batch = 1;
  const std::int64_t zeros_a = zero_a ? zero_a.numel() : 1, zeros_b = zero_b ? zero_b.numel() : 1;
  if ((zeros_a != 1 && zeros_a != rows) || (zeros_b != 1 && zeros_b != columns)) {
    fail(ErrorCode::ShapeMismatch, "zero points are neither one nor as many as rows of A, or columns of B");
  }
  if (batch > 65535) fail(ErrorCode::UnsupportedOperator, cat("cuda: ", batch, " products of bytes"));
  const ByteProductParams p{.a = left.at,
                            .b = right.at,
                            .out = y.at,
                            .a_zero = zero_a ? zero_a.at : 0,
                            .b_zero = zero_b ? zero_b.at : 0,
                            .a_batch = rows * k,
                            .b_batch = one ? 0 : k * columns,
                            .m = static_cast<std::int32_t>(rows),
                            .n = static_cast<std::int32_t>(columns),
                            .k = static_cast<std::int32_t>(k),
                            .a_signed = left.dtype == DType::Int8,
                            .b_signed = right.dtype == DType::Int8,
                            .a_zero_step = zeros_a > 1,
                            .b_zero_step = zeros_b > 1};
  const auto tiles = [](std::int64_t n) { return static_cast<std::uint32_t>((n + 31) / 32); };
  if (tiles(rows) > 65535) fail(ErrorCode::UnsupportedOperator, cat("cuda: a product of ", rows, " rows of bytes"));
  b.launch(Launch{.kernel = "byte_product",
                  .grid = {tiles(columns), tiles(rows), static_cast<std::uint32_t>(batch)},
                  .block = {256},
                  .cluster = {},
                  .programmatic = true,
                  .params = param_bytes(p)});
}

}  // namespace

void register_quantize(Lowerings& lowerings) {
  for (const char* domain : {"", graph::kMicrosoft}) {
    lowerings.push_back({domain, "QuantizeLinear", can_quantize, lower_quantize<false>});
    lowerings.push_back({domain, "DequantizeLinear", can_dequantize, lower_quantize<true>});
  }
  lowerings.push_back({"", "DynamicQuantizeLinear", can_quantize_dynamically, lower_quantize_dynamically});
  lowerings.push_back({"", "MatMulInteger", can_multiply_bytes, lower_multiply_bytes});
}

}  // namespace infernode::cuda
