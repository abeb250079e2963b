#include <cmath>
#include <optional>
#include <vector>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pattern_passes.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

/// The node that makes floats of codes with one float scale, or one for each place of an axis.
const Node* dequantizer(const Graph& graph, ValueId value) {
  const NodeId id = value == kNoValue ? kNoNode : graph.value(value).producer;
  if (id == kNoNode || !is_dequantizer(graph.node(id))) return nullptr;
  const Node& node = graph.node(id);
  const Tensor* scale = constant(graph, node.inputs[1]);
  const bool fed = node.inputs.size() > 2 && node.inputs[2] != kNoValue && constant(graph, node.inputs[2]) == nullptr;
  return !fed && scale != nullptr && scale->dtype() == DType::Float32 ? &node : nullptr;
}

/// The number, where a code can stand for it: a scalar that is no NaN, infinite nor too small to divide by.
std::optional<float> number(const Graph& graph, ValueId value) {
  const Tensor* known = constant(graph, value);
  if (known == nullptr || known->dtype() != DType::Float32 || known->rank() != 0) return std::nullopt;
  const float v = *known->data<float>();
  return v == 0 || std::isnormal(v) ? std::optional(v) : std::nullopt;
}

/// The type of the codes that the value becomes, which nothing else reads.
DType quantized_type(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers, ValueId value) {
  if (value == kNoValue || graph.is_output(value)) return DType::Undefined;
  const auto& readers = consumers[static_cast<std::size_t>(value)];
  if (readers.size() != 1) return DType::Undefined;
  const Node& reader = graph.node(readers[0]);
  const bool quantizes = is_quantizer(reader) && reader.inputs[0] == value;
  return quantizes ? graph.value(reader.outputs[0]).type.elem : DType::Undefined;
}

std::optional<Tensor> code(DType type, int value) {
  switch (type) {
    case DType::Int8:
      return Tensor::scalar(static_cast<std::int8_t>(value));
    case DType::UInt8:
      return Tensor::scalar(static_cast<std::uint8_t>(value));
    case DType::Int16:
      return Tensor::scalar(static_cast<std::int16_t>(value));
    case DType::UInt16:
      return Tensor::scalar(static_cast<std::uint16_t>(value));
    default:
      return std::nullopt;
  }
}

/// The number is its magnitude, as a scale, times a code of one step from the zero point, so that it stays what it is.
bool quantize_constant(Graph& graph, const std::vector<std::vector<NodeId>>& consumers, NodeId id) {
  const Node& where = graph.node(id);
  if (!is(where, kWhere) || where.inputs.size() != 3) return false;
  const bool first = dequantizer(graph, where.inputs[1]) != nullptr;
  const ValueId value = where.inputs[first ? 2 : 1];
  const Node* like = dequantizer(graph, where.inputs[first ? 1 : 2]);
  const auto known = number(graph, value);
  if (like == nullptr || !known) return false;
  const DType type = graph.value(like->inputs[0]).type.elem;
  const auto codes = code(type, *known > 0 ? 1 : 0), zero = code(type, *known < 0 ? 1 : 0);
  if (!codes || quantized_type(graph, consumers, where.outputs[0]) != type) return false;

  const std::string name = graph.value(value).name;
  graph::GraphPatch patch(graph);
  Node node;
  node.domain = like->domain;
  node.op_type = like->op_type;
  node.opset = like->opset;
  node.provider = where.provider;
  node.inputs = {patch.add_constant(name + "_codes", *codes),
                 patch.add_constant(name + "_scale", Tensor::scalar(*known == 0 ? 1.0f : std::abs(*known))),
                 patch.add_constant(name + "_zero", *zero)};
  node.outputs = {patch.add_value(name + "_dequantized", graph::ValueType::tensor(DType::Float32))};
  patch.set_input(id, first ? 2 : 1, node.outputs[0]);
  patch.add_node(std::move(node));
  patch.apply();
  return true;
}

}  // namespace

bool quantize_where_constants(Graph& graph, const PassOptions& options) {
  const auto consumers = graph::consumers(graph, options);
  bool changed = false;
  for (const NodeId id : graph::topological_order(graph, options)) {
    options.check();
    changed = quantize_constant(graph, consumers, id) || changed;
  }
  return changed;
}

}  // namespace infernode::passes
