#include "graph/captures.h"

#include <map>
#include <tuple>

namespace infernode::graph {

namespace {

template <class Visit>
void for_each_body(Graph& graph, const Visit& visit) {
  for (NodeId id = 0; id < static_cast<NodeId>(graph.node_count()); ++id) {
    if (graph.node(id).removed) continue;
    for (const auto& body : subgraphs(graph.node(id))) visit(*body);
  }
}

bool is_shareable(const ValueInfo& value) {
  return value.is_constant() && value.constant.is_tensor() && value.constant.bytes() > 0;
}

/// What makes two tensors the same without a look at their elements.
using Identity = std::tuple<const void*, tensor::DType, std::vector<std::int64_t>>;
Identity identity_of(const ValueInfo& value) {
  const tensor::Tensor& t = value.constant.tensor();
  return {t.raw(), t.dtype(), {t.shape().begin(), t.shape().end()}};
}

using Counts = std::map<Identity, int>;

void count(Graph& graph, Counts& counts) {
  for (const ValueInfo& value : graph.values()) {
    if (is_shareable(value)) ++counts[identity_of(value)];
  }
  for_each_body(graph, [&](Graph& body) { count(body, counts); });
}

/// Constants of the bodies that stand elsewhere too become captures of constants of `outer`.
void lift(Graph& outer, const Counts& counts) {
  std::map<Identity, ValueId> constants;
  for (ValueId id = 0; id < static_cast<ValueId>(outer.values().size()); ++id) {
    if (is_shareable(outer.value(id))) constants.emplace(identity_of(outer.value(id)), id);
  }
  for_each_body(outer, [&](Graph& body) {
    lift(body, counts);
    for (ValueId id = 0; id < static_cast<ValueId>(body.values().size()); ++id) {
      ValueInfo& value = body.value(id);
      if (!is_shareable(value) || body.is_output(id)) continue;
      const Identity identity = identity_of(value);
      if (counts.at(identity) < 2) continue;
      auto at = constants.find(identity);
      if (at == constants.end()) {
        const ValueId lifted = outer.add_constant(outer.unique_name(value.name), value.constant);
        outer.value(lifted).type = value.type;
        at = constants.emplace(identity, lifted).first;
      }
      value.constant = {};
      body.add_capture({id, at->second});
    }
  });
}

}  // namespace

void adopt_constants(Graph& graph) {
  for_each_body(graph, [&](Graph& body) {
    std::erase_if(body.mutable_captures(), [&](const Capture& capture) {
      const ValueInfo& outer = graph.value(capture.outer);
      if (!outer.is_constant()) return false;
      body.value(capture.inner).type = outer.type;
      body.value(capture.inner).constant = outer.constant;
      return true;
    });
    adopt_constants(body);
  });
}

void capture_constants(Graph& graph) {
  Counts counts;
  count(graph, counts);
  lift(graph, counts);
}

}  // namespace infernode::graph
