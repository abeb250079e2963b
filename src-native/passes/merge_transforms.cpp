#include <algorithm>
#include <array>
#include <optional>

#include "graph/patch.h"
#include "graph/walks.h"
#include "ops/conv/dft.h"
#include "passes/pattern_passes.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::Shape;
using tensor::Tensor;

bool same_attributes(const Node& a, const Node& b) {
  const auto ints = [&](const char* name) { return a.attributes.get_ints(name) == b.attributes.get_ints(name); };
  return ints("strides") && ints("pads") && ints("dilations") &&
         a.attributes.get_string("auto_pad", "NOTSET") == b.attributes.get_string("auto_pad", "NOTSET");
}

/// The weight of a convolution that could be merged, and what it is.
struct Transform {
  const Tensor* weight = nullptr;
  ops::DftRows rows = ops::DftRows::None;
};
Transform transform_of(const Graph& graph, const Node& node) {
  if (node.removed || !is(node, kConv) || !runs_on_cpu(node) || node.attributes.get_int("group", 1) != 1 ||
      node.inputs.size() < 2 || (node.inputs.size() > 2 && node.inputs[2] != kNoValue))
    return {};
  const Tensor* weight = constant(graph, node.inputs[1]);
  if (weight == nullptr) return {};
  return {weight, ops::dft_rows(*weight)};
}

Tensor both(const Tensor& cosines, const Tensor& sines) {
  Shape shape = cosines.shape();
  shape[0] *= 2;
  const Tensor out = Tensor::make(tensor::DType::Float32, shape);
  const auto count = static_cast<std::size_t>(cosines.numel());
  std::copy_n(cosines.data<float>(), count, out.mutable_data<float>());
  std::copy_n(sines.data<float>(), count, out.mutable_data<float>() + count);
  return out;
}

void merge(Graph& graph, graph::Consumers& consumers, NodeId cosines, NodeId sines, const Tensor& weight) {
  graph::GraphPatch patch(graph);
  const std::array from{cosines, sines};
  const Node first = graph.node(cosines);
  const std::int64_t rows = weight.dim(0) / 2;
  Node conv = first;
  conv.inputs = {first.inputs[0], patch.add_constant(graph.value(first.inputs[1]).name + "_both", weight)};
  graph::ValueType type = graph.value(first.outputs[0]).type;
  if (type.shape && type.shape->size() > 1) (*type.shape)[1] = graph::Dim(2 * rows);
  const ValueId spectrum = patch.add_value(graph.value(first.outputs[0]).name + "_both", type);
  conv.outputs = {spectrum};
  conv.provenance.clear();
  Node split;
  split.op_type = kSplit;
  split.name = first.name;
  split.opset = first.opset;
  split.provider = first.provider;
  split.inputs = {spectrum};
  split.outputs = {first.outputs[0], graph.node(sines).outputs[0]};
  split.attributes.set("axis", std::int64_t{1});
  const std::vector<std::int64_t> sizes{rows, rows};
  constexpr std::int64_t kSizesAreInput = 13;
  if (first.opset >= kSizesAreInput) {
    split.inputs.push_back(patch.add_constant("rows", Tensor::of<std::int64_t>(Shape{2}, std::span(sizes))));
  } else {
    split.attributes.set("split", sizes);
  }
  patch.remove_node(cosines);
  patch.remove_node(sines);
  patch.add_node(std::move(conv), from);
  patch.add_node(std::move(split), from);
  patch.apply(consumers);
}

}  // namespace

bool merge_transforms(Graph& graph, const PassOptions& options) {
  bool changed = false;
  graph::Consumers consumers;
  for (NodeId a = 0; a < static_cast<NodeId>(graph.node_count()); ++a) {
    options.check();
    const Transform cosines = transform_of(graph, graph.node(a));
    if (cosines.rows != ops::DftRows::Cosines) continue;
    if (consumers.empty()) consumers = graph::consumers(graph, options);
    for (const NodeId b : consumers[static_cast<std::size_t>(graph.node(a).inputs[0])]) {
      const Node& other = graph.node(b);
      if (b == a || other.inputs[0] != graph.node(a).inputs[0]) continue;
      const Transform sines = transform_of(graph, other);
      if (sines.rows != ops::DftRows::Sines || sines.weight->shape() != cosines.weight->shape() ||
          !same_attributes(graph.node(a), other))
        continue;
      const Tensor weight = both(*cosines.weight, *sines.weight);
      if (ops::dft_rows(weight) != ops::DftRows::Both) continue;
      merge(graph, consumers, a, b, weight);
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace infernode::passes
