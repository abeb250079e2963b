#include "fusions/matcher.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/text.h"

namespace infernode::fusions {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

bool commutative(const Node& node) {
  constexpr std::array<std::string_view, 9> kOps = {"Add", "Mul", "And", "Or", "Xor", "Equal", "Min", "Max", "Sum"};
  return node.domain.empty() && node.inputs.size() == 2 &&
         std::find(kOps.begin(), kOps.end(), node.op_type) != kOps.end();
}

bool equal_constants(const tensor::Value& a, const tensor::Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return false;
  const tensor::Tensor &x = a.tensor(), &y = b.tensor();
  if (x.numel() != y.numel()) return false;
  return tensor::to_float_vector(x) == tensor::to_float_vector(y);
}

/// Pattern ids -> graph ids found so far; copied to go back from a wrong turn.
struct Binding {
  std::vector<ValueId> values;
  std::vector<NodeId> nodes;
};

class Matcher {
 public:
  Matcher(const Pattern& pattern, const Graph& graph) : pattern_(pattern.graph()), graph_(graph) {}

  std::optional<Binding> match(NodeId pattern_root, NodeId root) const {
    Binding binding{std::vector<ValueId>(pattern_.values().size(), kNoValue),
                    std::vector<NodeId>(pattern_.node_count(), kNoNode)};
    if (!match_node(pattern_root, root, binding)) return std::nullopt;
    return binding;
  }

 private:
  bool match_node(NodeId wanted, NodeId found, Binding& binding) const {
    if (binding.nodes[index(wanted)] != kNoNode) return binding.nodes[index(wanted)] == found;
    const Node &p = pattern_.node(wanted), &g = graph_.node(found);
    if (g.removed || p.op_type != g.op_type || p.domain != g.domain || p.outputs.size() > g.outputs.size())
      return false;
    if (!attributes_fit(p, g)) return false;
    binding.nodes[index(wanted)] = found;
    for (std::size_t o = 0; o < p.outputs.size(); ++o) {
      if (p.outputs[o] == kNoValue) continue;
      if (!bind(p.outputs[o], g.outputs[o], binding)) return false;
    }
    const Binding before = binding;
    if (inputs_fit(p, g, false, binding)) return true;
    if (!commutative(p)) return false;
    binding = before;
    return inputs_fit(p, g, true, binding);
  }

  bool inputs_fit(const Node& p, const Node& g, bool swapped, Binding& binding) const {
    if (g.inputs.size() > p.inputs.size()) {
      // A pattern without an optional input does not fit a node that has it.
      for (std::size_t i = p.inputs.size(); i < g.inputs.size(); ++i) {
        if (g.inputs[i] != kNoValue) return false;
      }
    }
    for (std::size_t i = 0; i < p.inputs.size(); ++i) {
      const std::size_t from = swapped ? 1 - i : i;
      const ValueId found = from < g.inputs.size() ? g.inputs[from] : kNoValue;
      if (!match_value(p.inputs[i], found, binding)) return false;
    }
    return true;
  }

  bool match_value(ValueId wanted, ValueId found, Binding& binding) const {
    if (wanted == kNoValue || found == kNoValue) return wanted == found;
    if (binding.values[index(wanted)] != kNoValue) return binding.values[index(wanted)] == found;
    const graph::ValueInfo& p = pattern_.value(wanted);
    const graph::ValueInfo& g = graph_.value(found);
    if (p.has_constant())
      return g.is_constant() && equal_constants(p.constant, g.constant) && bind(wanted, found, binding);
    if (p.producer == kNoNode) {
      if (p.name.starts_with("c_") && !g.is_constant()) return false;
      return bind(wanted, found, binding);
    }
    if (g.producer == kNoNode) return false;
    return match_node(p.producer, g.producer, binding) && binding.values[index(wanted)] == found;
  }

  static bool bind(ValueId wanted, ValueId found, Binding& binding) {
    ValueId& slot = binding.values[index(wanted)];
    if (slot != kNoValue) return slot == found;
    slot = found;
    return true;
  }

  static bool attributes_fit(const Node& p, const Node& g) {
    return std::all_of(p.attributes.begin(), p.attributes.end(), [&](const auto& wanted) {
      graph::Attributes mine, theirs;
      const graph::Attribute* found = g.attributes.find(wanted.first);
      if (found == nullptr) return false;
      mine.set(wanted.first, wanted.second);
      theirs.set(wanted.first, *found);
      return mine == theirs;
    });
  }

  const Graph& pattern_;
  const Graph& graph_;
};

/// Values made inside the match are read inside only, except the pattern's outputs.
bool closed(const Graph& pattern, const Graph& graph, const Binding& binding,
            const std::vector<std::vector<NodeId>>& consumers) {
  for (const NodeId id : binding.nodes) {
    for (const ValueId made : graph.node(id).outputs) {
      if (made == kNoValue) continue;
      const auto out = pattern.outputs();
      const bool output =
          std::any_of(out.begin(), out.end(), [&](ValueId o) { return binding.values[index(o)] == made; });
      if (output) continue;
      if (graph.is_output(made)) return false;
      for (const NodeId reader : consumers[index(made)]) {
        if (std::find(binding.nodes.begin(), binding.nodes.end(), reader) == binding.nodes.end()) return false;
      }
    }
  }
  return true;
}

}  // namespace

Pattern::Pattern(std::string_view text) {
  try {
    graph_ = graph::parse_model(cat("pattern ", text)).graph;
  } catch (const Error& error) {
    fail(ErrorCode::Internal, cat("a fusion's pattern does not parse: ", error.message()));
  }
  order_ = graph_->topological_order();
  if (graph_->outputs().empty()) fail(ErrorCode::Internal, "a fusion's pattern has no output");
  root_ = graph_->value(graph_->outputs()[0]).producer;
  if (root_ == kNoNode) fail(ErrorCode::Internal, "a fusion's first output is not made by a node");
}

std::optional<Match> match_at(const Pattern& pattern, const Graph& graph, NodeId node,
                              const std::vector<std::vector<NodeId>>& consumers) {
  std::optional<Binding> binding = Matcher(pattern, graph).match(pattern.root(), node);
  if (!binding) return std::nullopt;
  if (std::find(binding->nodes.begin(), binding->nodes.end(), kNoNode) != binding->nodes.end()) return std::nullopt;
  if (!closed(pattern.graph(), graph, *binding, consumers)) return std::nullopt;
  std::map<std::string, ValueId, std::less<>> values;
  for (std::size_t v = 0; v < binding->values.size(); ++v) {
    values.emplace(pattern.graph().value(static_cast<ValueId>(v)).name, binding->values[v]);
  }
  std::vector<NodeId> nodes;
  for (const NodeId id : pattern.order()) nodes.push_back(binding->nodes[index(id)]);
  return Match(graph, std::move(values), std::move(nodes));
}

}  // namespace infernode::fusions
