#include "fusions/fusion.h"

#include <algorithm>

#include "base/error.h"
#include "fusions/matcher.h"
#include "graph/walks.h"

namespace infernode::fusions {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;

ValueId Match::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) fail(ErrorCode::Internal, cat("the pattern has no value '", name, "'"));
  return found->second;
}

const tensor::Tensor* Match::constant(std::string_view name) const {
  const ValueId id = value(name);
  if (id == graph::kNoValue) return nullptr;
  const graph::ValueInfo& info = graph_.value(id);
  return info.is_constant() && info.constant.is_tensor() ? &info.constant.tensor() : nullptr;
}

const graph::ValueType& Match::type(std::string_view name) const { return graph_.value(value(name)).type; }

struct FusionSet::Entry {
  Fusion fusion;
  Pattern pattern;
};

FusionSet::FusionSet(const FusionRegistry& registry, int level, const std::set<std::string, std::less<>>& disabled) {
  for (const Fusion& fusion : registry.fusions()) {
    if (fusion.level != level || disabled.contains(fusion.name)) continue;
    Pattern pattern(fusion.pattern, registry.operators());
    const std::string& root = pattern.graph().node(pattern.root()).op_type;
    by_root_[root].push_back({fusion, std::move(pattern)});
  }
}

FusionSet::~FusionSet() = default;

namespace {

/// The match's nodes whose results nobody reads any more go: those behind first.
void drop_unread(Graph& graph, const Match& match, graph::Consumers& consumers) {
  const auto unread = [&](ValueId id) {
    return id == graph::kNoValue || (consumers[static_cast<std::size_t>(id)].empty() && !graph.is_output(id));
  };
  for (auto at = match.nodes().rbegin(); at != match.nodes().rend(); ++at) {
    const graph::Node& node = graph.node(*at);
    if (node.removed || !std::all_of(node.outputs.begin(), node.outputs.end(), unread)) continue;
    graph::GraphPatch patch(graph);
    patch.remove_node(*at);
    patch.apply(consumers);
  }
}

/// Puts the fusion's replacement in the match's place.
void replace(Graph& graph, const Fusion& fusion, const Pattern& pattern, const Match& match,
             graph::Consumers& consumers) {
  const std::size_t nodes_before = graph.node_count();
  const std::string provider = match.node(0).provider;
  graph::GraphPatch patch(graph);
  const std::vector<ValueId> outputs = fusion.replace(match, patch);
  for (const NodeId old : match.nodes()) {
    // What leads to a shared value may have other readers.
    const auto made = graph.node(old).outputs;
    const bool last = std::any_of(made.begin(), made.end(), [&](ValueId id) {
      return std::any_of(pattern.graph().outputs().begin(), pattern.graph().outputs().end(),
                         [&](ValueId out) { return match.value(pattern.graph().value(out).name) == id; });
    });
    if (last || !pattern.has_shared()) patch.remove_node(old);
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    patch.replace_uses(match.value(pattern.graph().value(pattern.graph().outputs()[o]).name), outputs[o]);
  }
  patch.apply(consumers);
  if (pattern.has_shared()) drop_unread(graph, match, consumers);
  for (std::size_t n = nodes_before; n < graph.node_count(); ++n) {
    graph.node(static_cast<NodeId>(n)).provider = provider;
  }
}

}  // namespace

bool FusionSet::apply(Graph& graph, std::string_view provider, std::vector<std::string>& applied,
                      const kernel::RunContext* load) const {
  const auto elsewhere = [&](NodeId id) {
    const std::string& at = graph.node(id).provider;
    return !provider.empty() && !at.empty() && at != provider;
  };
  bool changed = false;
  const auto look = [load] {
    if (load != nullptr) load->check();
  };
  auto consumers = graph::consumers(graph, look);
  // From the end: of two patterns that end in one another, the longer one comes first.
  const std::vector<NodeId> order = graph::topological_order(graph, look);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    look();
    const NodeId id = *at;
    const auto candidates = by_root_.find(graph.node(id).op_type);
    if (candidates == by_root_.end()) continue;
    for (const Entry& entry : candidates->second) {
      const std::optional<Match> match = match_at(entry.pattern, graph, id, consumers);
      if (!match || std::any_of(match->nodes().begin(), match->nodes().end(), elsewhere)) continue;
      if (entry.fusion.guard != nullptr && !entry.fusion.guard(*match)) continue;
      replace(graph, entry.fusion, entry.pattern, *match, consumers);
      applied.emplace_back(entry.fusion.name);
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace infernode::fusions
