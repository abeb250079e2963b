// Operators that give the same elements other dims.

#include "providers/cuda/lowering/lowering.h"

namespace infernode::cuda {
namespace {

bool is_movable(const NodeView& node) {
  return node.input_dtype(0) != tensor::DType::Undefined && tensor::bit_size(node.input_dtype(0)) >= 8 &&
         node.input_dtype(0) != tensor::DType::String;
}
bool can_view(const NodeView& node) { return is_movable(node) && node.is_known(1); }
/// Where it is no training: before version 7 an attribute said so, from 12 on input 2 does.
bool can_drop(const NodeView& node) {
  return is_movable(node) && !node.has_output(1) && !node.has_input(2) && node.node().opset >= 7;
}

void lower_view(Builder& b) {
  const Deferred* work = b.deferred(0);
  if (work != nullptr && work->norm && b.output_shape(0).rank() > 0 &&
      b.output_shape(0).back() == b.input_shape(0).back()) {
    return b.defer_view(0, 0);
  }
  const DeviceTensor x = b.input_strided(0);
  if (x.strides.empty()) return b.view(0, x);
  auto strides = reshaped_strides(x.shape, x.strides, b.output_shape(0));
  if (strides) return b.strided_view(0, x, x.at, std::move(*strides));
  b.view(0, b.input(0));
}
void lower_identity(Builder& b) {
  const DeviceTensor x = b.input_strided(0);
  if (x.strides.empty()) return b.view(0, b.input_as_it_is(0));
  b.strided_view(0, x, x.at, x.strides);
}

}  // namespace

void register_views(Lowerings& lowerings) {
  for (const char* op : {"Reshape", "Squeeze", "Unsqueeze"}) lowerings.push_back({"", op, can_view, lower_view});
  lowerings.push_back({graph::kMicrosoft, "ExpandDims", can_view, lower_view});
  lowerings.push_back({"", "Flatten", is_movable, lower_view});
  lowerings.push_back({"", "Identity", is_movable, lower_identity});
  lowerings.push_back({"", "Dropout", can_drop, lower_identity});
}

}  // namespace infernode::cuda
