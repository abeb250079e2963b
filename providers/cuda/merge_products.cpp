#include "providers/cuda/merge_products.h"

#include <cstring>
#include <map>

#include "graph/operator_names.h"
#include "tensor/tensor.h"

namespace infernode::cuda {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::Shape;
using tensor::Tensor;

const Tensor* constant_of(const Graph& graph, const Node& node, std::size_t i) {
  if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return nullptr;
  const graph::ValueInfo& value = graph.value(node.inputs[i]);
  return value.is_constant() && value.constant.is_tensor() ? &value.constant.tensor() : nullptr;
}

bool has_bias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2] != kNoValue; }

/// A product with constant weights and, if any, constant bias, and nothing else.
bool is_plain_product(const Graph& graph, const Node& node) {
  const bool matmul = node.op_type == "MatMul" && node.domain.empty();
  const bool fused = node.op_type == "FusedMatMul" && node.domain == graph::kOwn;
  if ((!matmul && !fused) || node.attributes.has("activation") || node.attributes.get_int("transB", 0) != 0 ||
      node.attributes.get_float("alpha", 1) != 1)
    return false;
  const Tensor* weights = constant_of(graph, node, 1);
  if (weights == nullptr || weights->rank() != 2 || tensor::bit_size(weights->dtype()) < 16) return false;
  for (std::size_t i = 2; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue && (i > 2 || constant_of(graph, node, 2) == nullptr)) return false;
  }
  const graph::ValueType& out = graph.value(node.outputs[0]).type;
  return out.shape && out.shape->size() >= 2;
}

/// The same rows side by side: [rows, columns of all]; `parts` are matrices or, with one row, vectors.
Tensor side_by_side(const std::vector<Tensor>& parts, const Shape& shape) {
  const Tensor all = Tensor::make(parts[0].dtype(), shape);
  const std::size_t element = tensor::bit_size(all.dtype()) / 8;
  const std::size_t rows = shape.rank() == 2 ? static_cast<std::size_t>(shape[0]) : 1;
  const std::size_t width = static_cast<std::size_t>(shape.back()) * element;
  std::size_t at = 0;
  for (const Tensor& part : parts) {
    const std::size_t own = static_cast<std::size_t>(part.shape().back()) * element;
    for (std::size_t r = 0; r < rows; ++r) {
      std::memcpy(static_cast<std::byte*>(all.mutable_raw()) + r * width + at,
                  static_cast<const std::byte*>(part.raw()) + r * own, own);
    }
    at += own;
  }
  return all;
}

void merge(Graph& graph, const std::vector<NodeId>& products) {
  std::vector<Tensor> weights, biases;  // the graph's own ones move when it gets more values
  std::vector<std::int64_t> widths;
  Node merged = graph.node(products[0]);
  Node split;
  split.op_type = "Split";
  split.opset = 13;
  split.provider = merged.provider;
  split.attributes.set("axis", std::int64_t{-1});
  std::int64_t width = 0;
  for (const NodeId id : products) {
    Node& node = graph.node(id);
    weights.push_back(*constant_of(graph, node, 1));
    if (has_bias(node)) biases.push_back(*constant_of(graph, node, 2));
    widths.push_back(weights.back().dim(1));
    width += widths.back();
    split.outputs.push_back(node.outputs[0]);
    graph.value(node.outputs[0]).producer = graph::kNoNode;
    node.outputs.clear();
    node.removed = true;
  }
  const std::string name = graph.value(merged.outputs[0]).name;
  graph::ValueType type = graph.value(merged.outputs[0]).type;
  type.shape->back() = graph::Dim(width);
  merged.inputs[1] =
      graph.add_constant(graph.unique_name(name + "_weights"), side_by_side(weights, Shape{weights[0].dim(0), width}));
  if (!biases.empty())
    merged.inputs[2] = graph.add_constant(graph.unique_name(name + "_bias"), side_by_side(biases, Shape{width}));
  const ValueId all = graph.add_value(graph.unique_name(name + "_merged"), std::move(type));
  merged.outputs = {all};
  split.inputs = {all, graph.add_constant(graph.unique_name(name + "_widths"),
                                          Tensor::of<std::int64_t>(Shape{static_cast<std::int64_t>(widths.size())},
                                                                   std::span<const std::int64_t>(widths)))};
  graph.add_node(std::move(merged));
  graph.add_node(std::move(split));
}

}  // namespace

bool merge_products(Graph& graph) {
  // What they have in common: the other factor, and whether there is a bias.
  std::map<std::pair<ValueId, bool>, std::vector<NodeId>> groups;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (is_plain_product(graph, node)) groups[{node.inputs[0], has_bias(node)}].push_back(id);
  }
  bool changed = false;
  for (const auto& [key, products] : groups) {
    if (products.size() < 2) continue;
    merge(graph, products);
    changed = true;
  }
  if (changed) graph.compact();
  return changed;
}

}  // namespace infernode::cuda
