#include "fusions/fusion.h"

#include <algorithm>

#include "base/error.h"
#include "fusions/matcher.h"

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

namespace {

/// Applies one fusion wherever it fits, in one sweep.
bool sweep(Graph& graph, const Fusion& fusion, const Pattern& pattern, std::string_view provider) {
  bool changed = false;
  const auto elsewhere = [&](NodeId id) {
    const std::string& at = graph.node(id).provider;
    return !provider.empty() && !at.empty() && at != provider;
  };
  auto consumers = graph.consumers();
  for (const NodeId id : graph.topological_order()) {
    if (graph.node(id).removed) continue;
    const std::optional<Match> match = match_at(pattern, graph, id, consumers);
    if (!match || std::any_of(match->nodes().begin(), match->nodes().end(), elsewhere)) continue;
    if (fusion.guard != nullptr && !fusion.guard(*match)) continue;
    const std::size_t nodes_before = graph.node_count();
    const std::string on = match->node(0).provider;
    graph::GraphPatch patch(graph);
    const std::vector<ValueId> outputs = fusion.replace(*match, patch);
    for (const NodeId old : match->nodes()) patch.remove_node(old);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      patch.replace_uses(match->value(pattern.graph().value(pattern.graph().outputs()[o]).name), outputs[o]);
    }
    patch.apply();
    for (std::size_t n = nodes_before; n < graph.node_count(); ++n) graph.node(static_cast<NodeId>(n)).provider = on;
    consumers = graph.consumers();
    changed = true;
  }
  return changed;
}

}  // namespace

struct FusionSet::Entry {
  Fusion fusion;
  Pattern pattern;
};

FusionSet::FusionSet(const FusionRegistry& registry, int level, const std::set<std::string, std::less<>>& disabled) {
  for (const Fusion& fusion : registry.fusions()) {
    if (fusion.level == level && !disabled.contains(fusion.name)) entries_.push_back({fusion, Pattern(fusion.pattern)});
  }
}

FusionSet::~FusionSet() = default;

std::vector<std::string> FusionSet::apply(Graph& graph, std::string_view provider) const {
  constexpr int kMostRounds = 8;
  std::vector<std::string> applied;
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (const Entry& entry : entries_) {
      if (!sweep(graph, entry.fusion, entry.pattern, provider)) continue;
      applied.emplace_back(entry.fusion.name);
      changed = true;
    }
  }
  return applied;
}

}  // namespace infernode::fusions
