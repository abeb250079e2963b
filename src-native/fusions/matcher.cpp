#include "fusions/matcher.h"

#include <algorithm>

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

bool is_commutative(Node node, const kernel::Registry& operators) {
  node.opset = operators.newest_opset(node.domain);
  return node.inputs.size() == 2 && kernel::traits_of(node, operators).commutative;
}

bool equal_constants(const tensor::Value& a, const tensor::Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return false;
  const tensor::Tensor &x = a.tensor(), &y = b.tensor();
  if (x.numel() != y.numel() || y.dtype() == tensor::DType::String) return false;
  return tensor::to_float_vector(x) == tensor::to_float_vector(y);
}

/// Before version 7, an attribute said how an elementwise operator's second input was aligned; patterns mean what came
/// after.
bool broadcasts_by_attribute(const Node& node) {
  return node.opset < 7 && node.domain.empty() && node.attributes.get_int("broadcast", 0) != 0;
}

/// Pattern ids -> graph ids found so far.
struct Binding {
  std::vector<ValueId> values;
  std::vector<NodeId> nodes;
};

/// "This pattern value is that graph value": what remains to be shown, as a list that branches of the search share.
struct Goal {
  ValueId wanted, found;
  const Goal* next;
};

/// What the pattern takes comes from outside the match, and what is made inside is read inside only, except the
/// pattern's outputs and values that may be shared.
bool closed(const Graph& pattern, const Graph& graph, const Binding& binding,
            const std::vector<std::vector<NodeId>>& consumers) {
  const auto inside = [&](NodeId id) {
    return std::find(binding.nodes.begin(), binding.nodes.end(), id) != binding.nodes.end();
  };
  for (const ValueId input : pattern.inputs()) {
    const ValueId found = binding.values[index(input)];
    if (found != kNoValue && inside(graph.value(found).producer)) return false;
  }
  for (std::size_t n = 0; n < binding.nodes.size(); ++n) {
    if (binding.nodes[n] == kNoNode) return false;
    const auto& names = pattern.node(static_cast<NodeId>(n)).outputs;
    const auto& outputs = graph.node(binding.nodes[n]).outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const ValueId made = outputs[o];
      if (made == kNoValue) continue;
      if (o < names.size() && names[o] != kNoValue && Pattern::is_shared(pattern.value(names[o]))) continue;
      const auto out = pattern.outputs();
      const bool output =
          std::any_of(out.begin(), out.end(), [&](ValueId o) { return binding.values[index(o)] == made; });
      if (output) continue;
      const auto& readers = consumers[index(made)];
      if (graph.is_output(made) || !std::all_of(readers.begin(), readers.end(), inside)) return false;
    }
  }
  return true;
}

/// Depth-first search over the ways round of commutative operators: a choice made early is taken back when a goal
/// further on fails, or when what was found is not closed.
class Matcher {
 public:
  Matcher(const Pattern& pattern, const Graph& graph, const std::vector<std::vector<NodeId>>& consumers)
      : whole_(pattern), pattern_(pattern.graph()), graph_(graph), consumers_(consumers) {}

  std::optional<Binding> match(NodeId pattern_root, NodeId root) const {
    if (!fits(pattern_.node(pattern_root), graph_.node(root))) return std::nullopt;
    Binding binding{std::vector<ValueId>(pattern_.values().size(), kNoValue),
                    std::vector<NodeId>(pattern_.node_count(), kNoNode)};
    if (!match_node(pattern_root, root, nullptr, binding)) return std::nullopt;
    return binding;
  }

 private:
  bool solve(const Goal* goal, Binding& binding) const {
    if (goal == nullptr) return closed(pattern_, graph_, binding, consumers_);
    const ValueId wanted = goal->wanted, found = goal->found;
    if (wanted == kNoValue || found == kNoValue)
      return (wanted == found || optional(wanted)) && solve(goal->next, binding);
    if (const ValueId bound = binding.values[index(wanted)]; bound != kNoValue)
      return bound == found && solve(goal->next, binding);
    const graph::ValueInfo &p = pattern_.value(wanted), &g = graph_.value(found);
    if (p.producer == kNoNode) {
      if (p.has_constant() && !(g.is_constant() && equal_constants(p.constant, g.constant))) return false;
      if (p.name.starts_with("c_") && !g.is_constant()) return false;
      binding.values[index(wanted)] = found;
      return solve(goal->next, binding);
    }
    return g.producer != kNoNode && match_node(p.producer, g.producer, goal, binding);
  }

  bool optional(ValueId wanted) const { return wanted != kNoValue && pattern_.value(wanted).name.starts_with("o_"); }

  /// `goal`, if any, asks for one of the node's outputs; those after it follow.
  bool match_node(NodeId wanted, NodeId found, const Goal* goal, Binding& binding) const {
    const Node &p = pattern_.node(wanted), &g = graph_.node(found);
    if (!fits(p, g) || std::find(binding.nodes.begin(), binding.nodes.end(), found) != binding.nodes.end())
      return false;
    binding.nodes[index(wanted)] = found;
    for (std::size_t o = 0; o < p.outputs.size(); ++o) {
      if (p.outputs[o] != kNoValue) binding.values[index(p.outputs[o])] = g.outputs[o];
    }
    if (goal != nullptr && binding.values[index(goal->wanted)] != goal->found) return false;
    const Goal* rest = goal == nullptr ? nullptr : goal->next;
    if (!whole_.is_commutative(wanted)) return match_inputs(p, g, false, rest, binding);
    const Binding before = binding;
    if (match_inputs(p, g, false, rest, binding)) return true;
    binding = before;
    return match_inputs(p, g, true, rest, binding);
  }

  /// The inputs come before the other goals.
  bool match_inputs(const Node& p, const Node& g, bool swapped, const Goal* rest, Binding& binding) const {
    std::vector<Goal> goals(p.inputs.size());
    for (std::size_t i = 0; i < goals.size(); ++i) {
      const std::size_t from = swapped ? 1 - i : i;
      goals[i] = {p.inputs[i], from < g.inputs.size() ? g.inputs[from] : kNoValue,
                  i + 1 < goals.size() ? &goals[i + 1] : rest};
    }
    return solve(goals.empty() ? rest : goals.data(), binding);
  }

  /// Operator, arity and attributes. A pattern without an optional input does not fit a node that has it.
  static bool fits(const Node& p, const Node& g) {
    if (g.removed || p.op_type != g.op_type || p.domain != g.domain || p.outputs.size() > g.outputs.size())
      return false;
    if (broadcasts_by_attribute(g)) return false;
    for (std::size_t i = p.inputs.size(); i < g.inputs.size(); ++i) {
      if (g.inputs[i] != kNoValue) return false;
    }
    return std::all_of(p.attributes.begin(), p.attributes.end(), [&](const auto& wanted) {
      graph::Attributes mine, theirs;
      const graph::Attribute* found = g.attributes.find(wanted.first);
      if (found == nullptr) return false;
      mine.set(wanted.first, wanted.second);
      theirs.set(wanted.first, *found);
      return mine == theirs;
    });
  }

  const Pattern& whole_;
  const Graph& pattern_;
  const Graph& graph_;
  const std::vector<std::vector<NodeId>>& consumers_;
};

}  // namespace

Pattern::Pattern(std::string_view text, const kernel::Registry& operators) : operators_(operators) {
  try {
    graph_ = graph::parse_model(cat("pattern ", text)).graph;
  } catch (const Error& error) {
    fail(ErrorCode::Internal, cat("a fusion's pattern does not parse: ", error.message()));
  }
  order_ = graph_->topological_order();
  for (NodeId id = 0; id < static_cast<NodeId>(graph_->node_count()); ++id)
    commutative_.push_back(fusions::is_commutative(graph_->node(id), operators));
  if (graph_->outputs().empty()) fail(ErrorCode::Internal, "a fusion's pattern has no output");
  root_ = graph_->value(graph_->outputs()[0]).producer;
  has_shared_ = std::any_of(graph_->values().begin(), graph_->values().end(), is_shared);
  if (root_ == kNoNode) fail(ErrorCode::Internal, "a fusion's first output is not made by a node");
}

std::optional<Match> match_at(const Pattern& pattern, const Graph& graph, NodeId node,
                              const std::vector<std::vector<NodeId>>& consumers) {
  std::optional<Binding> binding = Matcher(pattern, graph, consumers).match(pattern.root(), node);
  if (!binding) return std::nullopt;
  std::map<std::string, ValueId, std::less<>> values;
  for (std::size_t v = 0; v < binding->values.size(); ++v) {
    values.emplace(pattern.graph().value(static_cast<ValueId>(v)).name, binding->values[v]);
  }
  std::vector<NodeId> nodes;
  for (const NodeId id : pattern.order()) nodes.push_back(binding->nodes[index(id)]);
  return Match(graph, pattern.operators(), std::move(values), std::move(nodes));
}

}  // namespace infernode::fusions
