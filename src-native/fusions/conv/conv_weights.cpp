#include "fusions/conv/conv_weights.h"

#include "fusions/rewrite.h"
#include "tensor/tensor.h"

namespace infernode::fusions {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

std::optional<std::vector<float>> per_channel(const Tensor& constant, std::int64_t channels, std::size_t rank) {
  if (constant.dtype() != DType::Float32 || constant.rank() > rank) return std::nullopt;
  std::vector<float> values = tensor::to_float_vector(constant);
  if (values.size() == 1) return std::vector<float>(static_cast<std::size_t>(channels), values[0]);
  // Aligned from the right, only the channel axis (1 of rank) may differ from 1.
  const std::size_t missing = rank - constant.rank();
  for (std::size_t d = 0; d < constant.rank(); ++d) {
    if (constant.dim(d) != (d + missing == 1 ? channels : 1)) return std::nullopt;
  }
  return missing > 1 ? std::nullopt : std::optional(std::move(values));
}

bool foldable_weights(const Match& match) {
  const Tensor* w = match.constant("c_w");
  if (w == nullptr || w->dtype() != DType::Float32 || w->rank() < 3) return false;
  const Tensor* b = match.constant("o_b");
  return b == nullptr ? !match.has("o_b") : (b->dtype() == DType::Float32 && b->numel() == w->dim(0));
}

graph::ValueId replace_conv(const Match& match, graph::GraphPatch& patch, const ChannelAffine& affine) {
  const Tensor& w = *match.constant("c_w");
  const Tensor* b = match.constant("o_b");
  const auto channels = static_cast<std::size_t>(w.dim(0));
  const std::size_t depth = channels == 0 ? 0 : static_cast<std::size_t>(w.numel()) / channels;
  const Tensor weight = w.clone();
  const Tensor bias = Tensor::make(DType::Float32, Shape{w.dim(0)});
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < depth; ++i) weight.mutable_data<float>()[c * depth + i] *= affine.scale[c];
    bias.mutable_data<float>()[c] = (b == nullptr ? 0.0f : b->data<float>()[c]) * affine.scale[c] + affine.shift[c];
  }
  const graph::Graph& graph = match.graph();
  graph::Node conv = match.node(0);
  const std::string name = graph.value(match.value("c_w")).name;
  conv.inputs.resize(3, graph::kNoValue);
  conv.inputs[1] = patch.add_constant(name + "_fused", weight);
  conv.inputs[2] = patch.add_constant(name + "_bias_fused", bias);
  return put(match, patch, std::move(conv))[0];
}

}  // namespace infernode::fusions
