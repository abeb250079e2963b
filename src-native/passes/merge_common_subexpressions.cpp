#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pass.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

bool mergeable(const Node& node, const PassOptions& options) {
  if (node.outputs.empty() || node.inputs.empty() || !graph::subgraphs(node).empty()) return false;
  const kernel::OpSchema* schema = options.registry->find_schema(node.domain, node.op_type, node.opset);
  return schema != nullptr && schema->deterministic;
}

/// Whether the first has every output that the second one has: what may stand for the second may stand for it as well.
bool has_outputs_of(const Node& first, const Node& second) {
  if (first.outputs.size() < second.outputs.size()) return false;
  for (std::size_t o = 0; o < second.outputs.size(); ++o) {
    if (second.outputs[o] != kNoValue && first.outputs[o] == kNoValue) return false;
  }
  return true;
}

/// The second node's outputs can all become the first's: no two graph outputs fall together, and the first has every
/// output that is read.
bool outputs_fit(const std::unordered_set<ValueId>& graph_outputs, const Node& first, const Node& second) {
  return has_outputs_of(first, second) &&
         std::ranges::none_of(second.outputs, [&](ValueId id) { return id != kNoValue && graph_outputs.contains(id); });
}

}  // namespace

bool merge_common_subexpressions(Graph& graph, const PassOptions& options) {
  using Key = std::tuple<std::string, std::string, std::int64_t, std::vector<ValueId>>;
  std::map<Key, std::vector<NodeId>> seen;
  std::map<ValueId, ValueId> same;  // a merged node's output -> the one that stays
  const auto resolve = [&](ValueId id) {
    const auto found = same.find(id);
    return found == same.end() ? id : found->second;
  };
  const std::unordered_set<ValueId> graph_outputs(graph.outputs().begin(), graph.outputs().end());
  graph::GraphPatch patch(graph);
  for (const NodeId id : graph::topological_order(graph, options)) {
    options.check();
    const Node& node = graph.node(id);
    if (!mergeable(node, options)) continue;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(resolve(input));
    std::vector<NodeId>& candidates = seen[{node.domain, node.op_type, node.opset, std::move(inputs)}];
    const Node* twin = nullptr;
    bool serves = false;
    for (const NodeId other : candidates) {
      const Node& first = graph.node(other);
      if (!(first.attributes == node.attributes)) continue;
      serves = serves || has_outputs_of(first, node);
      if (outputs_fit(graph_outputs, first, node)) twin = &first;
    }
    if (twin == nullptr) {
      if (!serves) candidates.push_back(id);
      continue;
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue) continue;
      same[node.outputs[o]] = twin->outputs[o];
      patch.replace_uses(node.outputs[o], twin->outputs[o]);
    }
    patch.remove_node(id);
  }
  if (patch.empty()) return false;
  patch.apply();
  return true;
}

}  // namespace infernode::passes
