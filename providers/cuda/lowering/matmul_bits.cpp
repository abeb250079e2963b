// MatMulNBits and MatMulBnb4: weights of few bits, which are expanded once to the type of what they multiply.

#include <algorithm>

#include "base/content_hash.h"
#include "base/error.h"
#include "ops/matmul/bnb4.h"
#include "providers/cuda/kernels/params/quantize.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/places.h"
#include "providers/cuda/lowering/products.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Tensor;

bool can_expand(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::int64_t bits = attributes.get_int("bits", 4), block = attributes.get_int("block_size", 0);
  for (std::size_t i = 1; i < 4; ++i) {
    if (!node.is_known(i)) return false;
  }
  const bool zeros =
      !node.has_input(3) || kProductTypes.contains(node.input_dtype(3)) || node.input_dtype(3) == DType::UInt8;
  return kProductTypes.contains(node.input_dtype(0)) && node.input_dtype(1) == DType::UInt8 && zeros &&
         node.input_dtype(2) == node.input_dtype(0) && node.input_rank(0).value_or(0) > 0 && !node.has_input(4) &&
         (bits == 2 || bits == 4 || bits == 8) && block >= 16 && (block & (block - 1)) == 0 &&
         attributes.get_int("weight_prepacked", 0) == 0;
}

std::string content_of(const Tensor* t) { return t == nullptr ? "none" : content_hash(t->byte_span()).to_string(); }

/// The weight as rows [N][K] of A's type, made once.
DevicePtr expanded(Builder& b, std::int64_t n, std::int64_t k) {
  const Tensor &codes = *b.known(1), &scales = *b.known(2);
  const Tensor* zeros = b.known(3);
  ExpandBitsParams p{};
  p.count = n * k;
  p.k = static_cast<std::int32_t>(k);
  p.block = static_cast<std::int32_t>(b.attributes().get_int("block_size", 0));
  p.bits = static_cast<std::int32_t>(b.attributes().get_int("bits", 4));
  p.blocks = (p.k + p.block - 1) / p.block;
  const std::int64_t packed = (std::int64_t{p.blocks} * p.bits + 7) / 8;
  const bool bytes = zeros != nullptr && zeros->dtype() == DType::UInt8;
  if (codes.numel() != n * p.blocks * p.block * p.bits / 8 || scales.numel() != n * p.blocks ||
      (zeros != nullptr && zeros->numel() != n * (bytes ? packed : p.blocks))) {
    fail(ErrorCode::ShapeMismatch, cat("MatMulNBits: B ", codes.to_string(), ", scales ", scales.to_string(),
                                       " and zero points do not fit N = ", n, " and ", p.blocks, " blocks"));
  }
  p.type = number_of(scales.dtype()).value();
  p.zero_type = number_of(zeros != nullptr ? zeros->dtype() : DType::UInt8).value();
  p.scales = b.constants().upload(scales);
  p.zeros = zeros != nullptr ? b.constants().upload(*zeros) : 0;
  const std::string format = cat("expanded ", n, " ", k, " ", p.block, " ", p.bits, " ", content_of(&scales), " ",
                                 content_of(zeros), " ", static_cast<int>(p.type), " ", static_cast<int>(p.zero_type));
  return b.constants().pack(codes, format, tensor::byte_size(scales.dtype(), p.count),
                            [&p](DevicePtr from, DevicePtr to) -> std::vector<Launch> {
                              p.codes = from;
                              p.out = to;
                              return {launch_of_threads("expand_bits", p.count, param_bytes(p))};
                            });
}

/// A by rows [N][K] of its type, and a bias, input `bias`.
void multiply(Builder& b, DevicePtr weights, std::int64_t n, std::int64_t k, std::size_t bias) {
  const DeviceTensor x = b.input(0);
  GemmProblem p;
  p.m = x.shape.numel(0, x.shape.rank() - 1), p.n = n, p.k = k;
  p.precision = precision_of(b);
  p.a = {.address = x.at, .type = element_of(x.dtype), .row_stride = k, .k_stride = 1};
  p.b = {.address = weights, .type = element_of(x.dtype), .row_stride = k, .k_stride = 1};
  if (b.has_input(bias)) {
    p.epilogue.bias = b.input_floats(bias);
    p.epilogue.columns_constant = b.known(bias) != nullptr;
  }
  const DeviceTensor y = b.output(0);
  p.epilogue.out = y.at;
  p.epilogue.out_type = element_of(y.dtype);
  p.epilogue.out_row = n;
  launch_gemm(b, p);
}

void check_columns(Builder& b, std::int64_t k) {
  const tensor::Shape x = b.input_shape(0);
  if (x.back() != k) fail(ErrorCode::ShapeMismatch, cat(b.node().op_type, ": A is ", x.to_string(), " for K = ", k));
}

void lower_expanded(Builder& b) {
  constexpr std::size_t kBias = 5;
  const std::int64_t n = b.attributes().get_int("N", 0), k = b.attributes().get_int("K", 0);
  check_columns(b, k);
  if (b.has_input(kBias) && b.input_shape(kBias).numel() != n) {
    fail(ErrorCode::ShapeMismatch, cat("MatMulNBits: a bias of ", b.input_shape(kBias).to_string(), " for N = ", n));
  }
  multiply(b, expanded(b, n, k), n, k, kBias);
}

bool can_expand_codes(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::int64_t block = attributes.get_int("block_size", 0), type = attributes.get_int("quant_type", -1);
  return kProductTypes.contains(node.input_dtype(0)) && node.input_dtype(1) == DType::UInt8 &&
         node.input_dtype(2) == node.input_dtype(0) && node.input_rank(0).value_or(0) > 0 && node.is_known(1) &&
         node.is_known(2) && block >= 16 && (block & (block - 1)) == 0 && (type == 0 || type == 1);
}

void lower_expanded_codes(Builder& b) {
  const std::int64_t n = b.attributes().get_int("N", 0), k = b.attributes().get_int("K", 0);
  check_columns(b, k);
  const Tensor &codes = *b.known(1), &scales = *b.known(2);
  const std::int64_t type = b.attributes().get_int("quant_type", 0);
  ExpandCodesParams p{};
  p.count = n * k;
  p.rows = n, p.k = k;
  p.block = b.attributes().get_int("block_size", 0);
  p.rows_first = b.attributes().get_int("transB", 1) != 0;
  p.type = number_of(scales.dtype()).value();
  std::copy_n(ops::bnb4_values(type).begin(), 16, p.value);
  if (codes.numel() != (p.count + 1) / 2 || scales.numel() != (p.count + p.block - 1) / p.block) {
    fail(ErrorCode::ShapeMismatch, cat("MatMulBnb4: B ", codes.to_string(), " and absmax ", scales.to_string(),
                                       " do not fit K = ", k, ", N = ", n));
  }
  p.scales = b.constants().upload(scales);
  const std::string format = cat("bnb4 ", n, " ", k, " ", p.block, " ", type, " ", p.rows_first, " ",
                                 content_of(&scales), " ", static_cast<int>(p.type));
  const DevicePtr weights = b.constants().pack(codes, format, tensor::byte_size(scales.dtype(), p.count),
                                               [&p](DevicePtr from, DevicePtr to) -> std::vector<Launch> {
                                                 p.codes = from;
                                                 p.out = to;
                                                 return {launch_of_threads("expand_codes", p.count, param_bytes(p))};
                                               });
  multiply(b, weights, n, k, 3);
}

}  // namespace

void register_matmul_bits(Lowerings& lowerings) {
  lowerings.push_back({graph::kMicrosoft, "MatMulNBits", can_expand, lower_expanded});
  lowerings.push_back({graph::kMicrosoft, "MatMulBnb4", can_expand_codes, lower_expanded_codes});
}

}  // namespace infernode::cuda
