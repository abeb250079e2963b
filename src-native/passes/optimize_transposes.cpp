// Transposes around nodes that do not care for the order of axes. Such nodes that touch one another form a region; all
// of a region changes its order of axes at once, where that removes more transposes at its edge than it makes.

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "graph/patch.h"
#include "kernel/inference.h"
#include "passes/pass.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using Axes = std::vector<std::int64_t>;

/// Elementwise in the first input; any others are scalars.
constexpr std::string_view kUnary[] = {"Abs",
                                       "Neg",
                                       "Exp",
                                       "Log",
                                       "Sqrt",
                                       "Reciprocal",
                                       "Floor",
                                       "Ceil",
                                       "Round",
                                       "Erf",
                                       "Sign",
                                       "Sin",
                                       "Cos",
                                       "Relu",
                                       "Elu",
                                       "Selu",
                                       "Celu",
                                       "LeakyRelu",
                                       "Sigmoid",
                                       "Tanh",
                                       "Gelu",
                                       "Mish",
                                       "Swish",
                                       "HardSigmoid",
                                       "HardSwish",
                                       "Softplus",
                                       "Softsign",
                                       "Clip",
                                       "Cast",
                                       "Not",
                                       "IsNaN",
                                       "IsInf",
                                       "Identity",
                                       "ThresholdedRelu",
                                       "QuantizeLinear",
                                       "DequantizeLinear"};
/// Elementwise with broadcasting in all inputs.
constexpr std::string_view kBroadcast[] = {"Add",
                                           "Sub",
                                           "Mul",
                                           "Div",
                                           "Pow",
                                           "Min",
                                           "Max",
                                           "Sum",
                                           "Mean",
                                           "And",
                                           "Or",
                                           "Xor",
                                           "Equal",
                                           "Less",
                                           "Greater",
                                           "LessOrEqual",
                                           "GreaterOrEqual",
                                           "Where",
                                           "PRelu"};
/// From here on Softmax works along one axis, and no elementwise operator says by attribute how it broadcasts.
constexpr std::int64_t kModern = 13;

template <std::size_t N>
bool contains(const std::string_view (&ops)[N], const std::string& op) {
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

Axes inverse(const Axes& perm) {
  Axes out(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) out[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return out;
}

std::optional<Axes> perm_of(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || node.op_type != "Transpose") return std::nullopt;
  const auto& shape = graph.value(node.inputs[0]).type.shape;
  if (!shape) return std::nullopt;
  Axes perm = node.attributes.get_ints("perm");
  if (perm.empty()) {
    for (std::size_t i = shape->size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  }
  Axes sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) return std::nullopt;
  }
  return perm.size() == shape->size() ? std::optional(perm) : std::nullopt;
}

class Region {
 public:
  Region(Graph& graph, const std::vector<std::vector<NodeId>>& consumers, Axes perm)
      : graph_(graph), consumers_(consumers), perm_(std::move(perm)), inverse_(inverse(perm_)) {}

  /// All that hangs together with `seed`; empty where the seed cannot take part.
  void grow(NodeId seed) {
    std::vector<NodeId> open{seed};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (nodes_.contains(id) || !takes_part(graph_.node(id))) continue;
      nodes_.insert(id);
      for (const ValueId input : turned_inputs(graph_.node(id))) {
        if (graph_.value(input).producer != kNoNode && graph_.value(input).type.shape->size() == perm_.size())
          open.push_back(graph_.value(input).producer);
      }
      for (const ValueId output : graph_.node(id).outputs) {
        for (const NodeId reader : consumers_[static_cast<std::size_t>(output)]) open.push_back(reader);
      }
    }
  }

  const std::set<NodeId>& nodes() const { return nodes_; }

  /// Transposes that go, less those that come.
  int gain() const {
    int gain = 0;
    std::set<ValueId> inputs;
    for (const NodeId id : nodes_) {
      const Node& node = graph_.node(id);
      for (const ValueId input : turned_inputs(node)) inputs.insert(input);
      for (const ValueId output : node.outputs) {
        int outside = 0;
        for (const NodeId reader : consumers_[static_cast<std::size_t>(output)]) {
          if (ends(reader))
            ++gain;
          else
            outside += !reads_turned(reader, output);
        }
        gain -= outside > 0 || graph_.is_output(output);
      }
    }
    for (const ValueId input : inputs) {
      const NodeId maker = graph_.value(input).producer;
      if (maker == kNoNode || !nodes_.contains(maker)) gain += gain_of_input(input);
    }
    return gain;
  }

  void turn() {
    graph::GraphPatch patch(graph_);
    std::map<ValueId, ValueId> turned;
    for (const NodeId id : nodes_) {
      for (const ValueId output : graph_.node(id).outputs)
        turned[output] = patch.add_value(graph_.value(output).name + "_turned");
    }
    for (const NodeId id : nodes_) {
      Node node = graph_.node(id);
      const std::vector<ValueId> inputs = turned_inputs(node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId input = node.inputs[i];
        if (std::find(inputs.begin(), inputs.end(), input) == inputs.end() || (i > 0 && only_first(node))) continue;
        if (!turned.contains(input)) turned[input] = turn_input(patch, input);
        node.inputs[i] = turned[input];
      }
      remap(patch, node);
      for (ValueId& output : node.outputs) {
        const ValueId old = output;
        output = turned[old];
        give_back(patch, old, output);
      }
      const NodeId from[] = {id};
      node.provenance.clear();
      patch.remove_node(id);
      patch.add_node(std::move(node), from);
    }
    patch.apply();
  }

 private:
  static bool only_first(const Node& node) { return !contains(kBroadcast, node.op_type) && node.op_type != "Concat"; }

  /// Inputs whose axes change places; those of one element have none.
  std::vector<ValueId> turned_inputs(const Node& node) const {
    std::vector<ValueId> out;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i > 0 && only_first(node)) break;
      const graph::ValueInfo& value = graph_.value(node.inputs[i]);
      const bool scalar = value.type.shape->empty() ||
                          (value.is_constant() && value.constant.is_tensor() && value.constant.tensor().numel() == 1);
      if (!scalar) out.push_back(node.inputs[i]);
    }
    return out;
  }

  bool reads_turned(NodeId reader, ValueId value) const {
    if (!nodes_.contains(reader)) return false;
    const Node& node = graph_.node(reader);
    return !only_first(node) || std::find(node.inputs.begin() + 1, node.inputs.end(), value) == node.inputs.end();
  }

  /// A transpose that undoes the order which the region has now.
  bool ends(NodeId reader) const {
    const Node& node = graph_.node(reader);
    const auto perm = perm_of(graph_, node);
    if (!perm || *perm != inverse_) return false;
    const auto& readers = consumers_[static_cast<std::size_t>(node.outputs[0])];
    return std::none_of(readers.begin(), readers.end(), [&](NodeId id) { return nodes_.contains(id); });
  }

  int gain_of_input(ValueId input) const {
    const graph::ValueInfo& value = graph_.value(input);
    if (value.is_constant()) return 0;
    if (!begins(input)) return -1;
    const auto& readers = consumers_[static_cast<std::size_t>(input)];
    const bool all = std::all_of(readers.begin(), readers.end(), [&](NodeId id) { return reads_turned(id, input); });
    return all && !graph_.is_output(input) ? 1 : 0;
  }

  bool begins(ValueId input) const {
    const NodeId maker = graph_.value(input).producer;
    if (maker == kNoNode) return false;
    const auto perm = perm_of(graph_, graph_.node(maker));
    if (!perm || *perm != perm_) return false;
    const NodeId before = graph_.value(graph_.node(maker).inputs[0]).producer;
    return before == kNoNode || !nodes_.contains(before);
  }

  bool is_small_constant(const Node& node, std::size_t input) const {
    if (input >= node.inputs.size() || node.inputs[input] == kNoValue) return false;
    const graph::ValueInfo& value = graph_.value(node.inputs[input]);
    return value.is_constant() && value.constant.is_tensor();
  }

  bool takes_part(const Node& node) const {
    if (!node.domain.empty() || node.opset < kModern || !graph::subgraphs(node).empty() || node.inputs.empty())
      return false;
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) return false;
      const auto& shape = graph_.value(output).type.shape;
      if (!shape || shape->size() != perm_.size()) return false;
    }
    const std::size_t turning = only_first(node) ? 1 : node.inputs.size();
    for (std::size_t i = 0; i < turning; ++i) {
      if (node.inputs[i] == kNoValue) return false;
      const graph::ValueInfo& value = graph_.value(node.inputs[i]);
      if (!value.type.shape || !value.type.is_tensor()) return false;
      const std::size_t rank = value.type.shape->size();
      if (rank != perm_.size() && !(rank == 0 || (value.is_constant() && rank < perm_.size()))) return false;
      if ((node.op_type == "Concat" || only_first(node)) && rank != perm_.size()) return false;
    }
    const std::string& op = node.op_type;
    if (op == "QuantizeLinear" || op == "DequantizeLinear")
      return is_small_constant(node, 1) && graph_.value(node.inputs[1]).constant.tensor().rank() == 0;
    if (contains(kUnary, op) || contains(kBroadcast, op)) return true;
    if (op == "Concat" || op == "Softmax" || op == "LogSoftmax" || op == "Hardmax" || op == "Split") return true;
    if (op == "Pad") return node.inputs.size() < 4 && is_small_constant(node, 1);
    return false;
  }

  /// What a node says of axes, said of those that it works on from now on.
  void remap(graph::GraphPatch& patch, Node& node) const {
    const std::string& op = node.op_type;
    if (op == "Concat" || op == "Split" || op == "Softmax" || op == "LogSoftmax" || op == "Hardmax") {
      const auto rank = static_cast<std::int64_t>(perm_.size());
      std::int64_t axis = node.attributes.get_int("axis", op == "Split" ? 0 : -1);
      if (axis < 0) axis += rank;
      node.attributes.set("axis", perm_.at(static_cast<std::size_t>(axis)));
    } else if (op == "Pad") {
      const graph::ValueInfo& old = graph_.value(node.inputs[1]);
      const Axes pads = tensor::to_int64_vector(old.constant.tensor());
      Axes moved(pads.size());
      for (std::size_t a = 0; a < perm_.size(); ++a) {
        const auto to = static_cast<std::size_t>(perm_[a]);
        moved.at(to) = pads.at(a);
        moved.at(to + perm_.size()) = pads.at(a + perm_.size());
      }
      node.inputs[1] = patch.add_constant(old.name + "_turned",
                                          tensor::Tensor::of<std::int64_t>({static_cast<std::int64_t>(moved.size())},
                                                                           std::span<const std::int64_t>(moved)));
    }
  }

  NodeId add_transpose(graph::GraphPatch& patch, ValueId from, ValueId to, const Axes& perm) const {
    Node node;
    node.op_type = "Transpose";
    node.opset = graph_.node(*nodes_.begin()).opset;
    node.inputs = {from};
    node.outputs = {to};
    node.attributes.set("perm", perm);
    return patch.add_node(std::move(node));
  }

  ValueId turn_input(graph::GraphPatch& patch, ValueId input) const {
    if (begins(input)) return graph_.node(graph_.value(input).producer).inputs[0];
    ValueId whole = input;
    const std::string name = graph_.value(input).name;
    if (const tensor::Value constant = graph_.value(input).constant; graph_.value(input).is_constant()) {
      const tensor::Tensor& t = constant.tensor();
      std::vector<std::int64_t> dims(perm_.size() - t.rank(), 1);
      dims.insert(dims.end(), t.shape().begin(), t.shape().end());
      tensor::Shape shape;
      for (const std::int64_t dim : dims) shape.push_back(dim);
      if (t.rank() < perm_.size()) whole = patch.add_constant(name + "_whole", t.reshaped(shape));
    }
    const ValueId out = patch.add_value(name + "_turned");
    add_transpose(patch, whole, out, inverse_);
    return out;
  }

  /// Readers outside get the old order back; transposes that undid it go.
  void give_back(graph::GraphPatch& patch, ValueId old, ValueId now) const {
    bool needed = graph_.is_output(old);
    for (const NodeId reader : consumers_[static_cast<std::size_t>(old)]) {
      if (ends(reader)) {
        patch.replace_uses(graph_.node(reader).outputs[0], now);
        patch.remove_node(reader);
      } else {
        needed = needed || !reads_turned(reader, old);
      }
    }
    if (needed) add_transpose(patch, now, old, perm_);
  }

  Graph& graph_;
  const std::vector<std::vector<NodeId>>& consumers_;
  Axes perm_, inverse_;
  std::set<NodeId> nodes_;
};

bool turn_one(Graph& graph) {
  const auto consumers = graph.consumers();
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const std::optional<Axes> perm = perm_of(graph, node);
    if (!perm) continue;
    std::set<NodeId> tried;
    for (const NodeId reader : consumers[static_cast<std::size_t>(node.outputs[0])]) {
      if (tried.contains(reader)) continue;
      Region region(graph, consumers, *perm);
      region.grow(reader);
      tried.insert(region.nodes().begin(), region.nodes().end());
      if (region.nodes().empty() || region.gain() <= 0) continue;
      region.turn();
      return true;
    }
  }
  return false;
}

}  // namespace

bool optimize_transposes(Graph& graph, const PassOptions& options) {
  bool changed = false;
  while (turn_one(graph)) {
    kernel::infer_graph(graph, *options.registry, options.logger);
    changed = true;
  }
  return changed;
}

}  // namespace infernode::passes
