// GatherBlockQuantized: slices of a tensor of codes of few bits.

#include "base/checked.h"
#include "base/error.h"
#include "providers/cuda/kernels/params/quantize.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

constexpr tensor::TypeSet kCodes{DType::UInt8, DType::Int4, DType::UInt4};

bool can_gather(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::int64_t bits = attributes.get_int("bits", 4), block = attributes.get_int("block_size", 128);
  const DType codes = node.input_dtype(0);
  return kCodes.contains(codes) && is_index(node.input_dtype(1)) && kReals.contains(node.input_dtype(2)) &&
         (!node.has_input(3) || node.input_dtype(3) == codes) && node.is_known(0) && node.is_known(3) &&
         node.input_rank(0).value_or(0) > 0 && !node.is_empty(0) && block >= 16 && (block & (block - 1)) == 0 &&
         (codes == DType::UInt8 ? bits == 2 || bits == 4 || bits == 8 : bits == 4);
}

void lower_gather(Builder& b) {
  const DeviceTensor codes = b.input(0), index = b.input(1), scales = b.input(2), y = b.output(0);
  const bool bytes = codes.dtype == DType::UInt8;
  GatherBlocksParams p{};
  p.bits = static_cast<std::int32_t>(bytes ? b.attributes().get_int("bits", 4) : 4);
  Shape shape = codes.shape;
  const std::size_t rank = shape.rank();
  const std::size_t axis = tensor::normalize_axis(b.attributes().get_int("gather_axis", 0), rank),
                    quantized = tensor::normalize_axis(b.attributes().get_int("quantize_axis", 1), rank);
  if (bytes) shape[rank - 1] *= 8 / p.bits;
  if (bytes && (axis != 0 || quantized != rank - 1)) {
    fail(ErrorCode::InvalidModel,
         "GatherBlockQuantized of bytes gathers along axis 0 what is quantized along the last");
  }
  p.block = b.attributes().get_int("block_size", 128);
  Shape blocks = shape;
  blocks[quantized] = ceil_div(shape[quantized], p.block);
  Shape zeros = blocks;
  if (bytes) zeros[quantized] = ceil_div(blocks[quantized], std::int64_t{8 / p.bits});
  if (!(scales.shape == blocks) || (b.has_input(3) && !(b.input_shape(3) == zeros))) {
    fail(ErrorCode::ShapeMismatch, cat("GatherBlockQuantized: ", scales.shape.to_string(), " does not fit data ",
                                       codes.shape.to_string(), " of ", p.bits, " bits in blocks of ", p.block));
  }
  p.codes = codes.at, p.index = index.at, p.scales = scales.at, p.zeros = b.input(3).at, p.out = y.at;
  p.count = y.numel();
  p.axis = shape[axis], p.inner = shape.numel(axis + 1, rank), p.indices = index.numel();
  p.length = shape[quantized], p.within = shape.numel(quantized + 1, rank), p.blocks = blocks[quantized];
  p.zero_row = bytes ? zeros[quantized] * (8 / p.bits) : 0;
  p.index_is_64 = index.dtype == DType::Int64;
  p.is_signed = codes.dtype == DType::Int4;
  p.type = number_of(scales.dtype).value();
  p.middle = bytes ? static_cast<float>(1 << (p.bits - 1)) : 0.0f;
  if (p.count > 0) b.launch(launch_of_threads("gather_blocks", p.count, param_bytes(p)));
}

}  // namespace

void register_gather_blocks(Lowerings& lowerings) {
  lowerings.push_back({graph::kMicrosoft, "GatherBlockQuantized", can_gather, lower_gather});
}

}  // namespace infernode::cuda
