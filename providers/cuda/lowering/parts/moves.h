#pragma once

#include <span>

#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/lowering/lowering.h"

// What lowerings of operators that move elements share.
namespace infernode::cuda {

/// Elements that kernels can move: whole bytes, up to 8 of them.
inline bool is_movable(tensor::DType dtype) {
  const std::size_t bits = tensor::bit_size(dtype);
  return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}
inline bool can_move(const NodeView& node) {
  return is_movable(node.input_dtype(0)) && node.input_rank(0).value_or(9) <= kCopyRank;
}
/// All inputs but the first are known.
inline bool can_move_known(const NodeView& node) {
  for (std::size_t i = 1; i < node.node().inputs.size(); ++i) {
    if (!node.is_known(i)) return false;
  }
  return can_move(node);
}
inline bool is_index(tensor::DType dtype) { return dtype == tensor::DType::Int64 || dtype == tensor::DType::Int32; }

inline std::vector<std::int64_t> vector_of(const tensor::Shape& shape) { return {shape.begin(), shape.end()}; }

/// Copies dense elements to other strides.
inline void copy_dense(Builder& b, DevicePtr from, const tensor::Shape& dims, std::size_t element_bytes, DevicePtr to,
                       std::vector<std::int64_t> from_stride) {
  if (dims.numel() == 0) return;
  b.launch(plan_strided_copy(b.target(), {.from = from,
                                          .to = to,
                                          .element_bytes = element_bytes,
                                          .dims = dims,
                                          .from_stride = std::move(from_stride),
                                          .to_stride = vector_of(dims.strides())}));
}

/// The elements at these places along an axis of a dense tensor; places beyond its end give zeros. The last of such
/// steps writes the node's output.
DeviceTensor take_along(Builder& b, const DeviceTensor& x, std::size_t axis, std::span<const std::int64_t> places,
                        bool last);

}  // namespace infernode::cuda
