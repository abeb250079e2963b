#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "graph/patch.h"
#include "microkernels/blocked/blocked.h"
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

constexpr auto kBlock = static_cast<std::int64_t>(microkernels::kChannelBlock);
/// How a node may read and make blocks.
enum class Takes : std::uint8_t {
  Float,   ///< of float32 only
  Alike,   ///< of one type, the same for all that it reads and makes
  Either,  ///< of any type each
};

/// The first version of the node's operator, from its own on, that takes bfloat16.
std::int64_t rounded_version(const Node& node, const kernel::Registry& registry) {
  const std::int64_t newest = registry.newest_opset(node.domain);
  for (std::int64_t version = node.opset; version < newest; ++version) {
    const kernel::OpSchema* schema = registry.find_schema(node.domain, node.op_type, version);
    if (schema == nullptr) continue;
    if (schema->constraints[schema->input(0).constraint].tensor.contains(DType::BFloat16)) return version;
  }
  return newest;
}

class Rounding {
 public:
  Rounding(Graph& graph, const kernel::Registry& registry) : graph_(graph), registry_(registry) {}

  bool run() {
    choose();
    if (rounded_.empty()) return false;
    apply();
    return true;
  }

 private:
  static bool is_own(const Node& node, std::string_view op) { return node.op_type == op && node.domain == kOwn; }

  Takes takes(const Node& node) const {
    if (is_own(node, kBlockChannels) || is_own(node, kUnblockChannels)) return Takes::Either;
    if (is_own(node, kBlockedConv)) {
      if (node.attributes.get_int("exact", 0) != 0) return Takes::Float;
      return node.attributes.get_int("group", 1) == 1 ? Takes::Either : Takes::Alike;
    }
    const bool alike = kernel::traits_of(node, registry_).blocks == kernel::Blocks::Any;
    return node.domain.empty() && alike ? Takes::Alike : Takes::Float;
  }

  bool is_rounded(ValueId id) const { return rounded_.contains(id); }

  /// Calls `visit` for the values of a node that may be blocks.
  template <class Visit>
  void for_each_block(const Node& node, const Visit& visit) const {
    for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
      for (const ValueId id : *values) {
        if (id != kNoValue && is_blocked(id)) visit(id);
      }
    }
  }

  /// Whether all that a node of images reads and makes is.
  bool are_rounded(const Node& node) const {
    const bool conv = is_own(node, kBlockedConv);
    bool all = is_rounded(node.outputs[0]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool image = !conv || i == 0 || i == 3;  // X and Z, not W and B
      if (image && node.inputs[i] != kNoValue) all = all && is_rounded(node.inputs[i]);
    }
    return all;
  }

  bool is_blocked(ValueId id) const {
    const graph::ValueInfo& value = graph_.value(id);
    return value.producer != kNoNode && value.type.elem == DType::Float32 && value.type.shape &&
           value.type.shape->size() == 5 && (*value.type.shape)[4].is(kBlock);
  }

  /// All blocks but those that a node takes as float32 only, and those that have to be like such.
  void choose() {
    const std::vector<NodeId> order = graph_.topological_order();
    std::set<ValueId> kept(graph_.outputs().begin(), graph_.outputs().end());
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      for (const ValueId captured : graph::implicit_inputs(node)) kept.insert(captured);
      for_each_block(node, [&](ValueId value) { rounded_.insert(value); });
    }
    for (const ValueId id : kept) rounded_.erase(id);
    for (bool changed = true; changed;) {
      changed = false;
      for (const NodeId id : order) {
        const Node& node = graph_.node(id);
        const Takes how = runs_on_cpu(node) ? takes(node) : Takes::Float;
        bool all = how != Takes::Float;
        if (how == Takes::Alike) all = are_rounded(node);
        if (!all) for_each_block(node, [&](ValueId value) { changed = rounded_.erase(value) > 0 || changed; });
      }
    }
  }

  void apply() {
    graph::GraphPatch patch(graph_);
    std::map<ValueId, ValueId> made;
    for (const ValueId id : rounded_) {
      graph::ValueType type = graph_.value(id).type;
      type.elem = DType::BFloat16;
      made[id] = patch.add_value(graph_.value(id).name + "_bfloat16", type);
    }
    for (const NodeId id : graph_.topological_order()) {
      Node node = graph_.node(id);
      bool changed = false;
      for (std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
        for (ValueId& value : *values) {
          if (const auto at = made.find(value); at != made.end()) value = at->second, changed = true;
        }
      }
      if (!changed) continue;
      const bool rounds = is_rounded(graph_.node(id).outputs[0]);
      if (rounds && node.domain == kOwn) node.attributes.set("to", static_cast<std::int64_t>(DType::BFloat16));
      if (rounds && node.domain.empty()) node.opset = rounded_version(node, registry_);
      patch.remove_node(id);
      patch.add_node(std::move(node), std::array{id});
    }
    patch.apply();
  }

  Graph& graph_;
  const kernel::Registry& registry_;
  std::set<ValueId> rounded_;
};

}  // namespace

bool round_blocks(Graph& graph, const PassOptions& options) {
  if (!options.kernels->blocked_conv.takes_bf16) return false;
  return Rounding(graph, *options.registry).run();
}

}  // namespace infernode::passes
