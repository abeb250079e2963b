#pragma once
// What becomes of a node where its values have another order of axes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "kernel/registry.h"
#include "passes/transposes/order.h"

namespace infernode::passes::transposes {

/// One node made to work on turned values. The way of working fills it in from `order`, the order of the node's leading
/// value: its first input, or its output where the inputs are broadcast.
struct Turning {
  Turning(const graph::Graph& g, const kernel::OpSchema& s, graph::Node n, Order o)
      : graph(g),
        schema(s),
        node(std::move(n)),
        order(std::move(o)),
        inputs(node.inputs.size()),
        outputs(node.outputs.size()) {}

  const graph::Graph& graph;
  const kernel::OpSchema& schema;  ///< of the node before it turns
  graph::Node node;                ///< as it will be; its inputs are the old ones
  Order order;
  std::vector<Order> inputs, outputs;  ///< of every input and output; empty: as it is
  /// Inputs of lower rank whose dims come to stand apart: the order is that of the node's rank.
  std::vector<std::pair<std::size_t, Order>> widened;
  std::vector<std::pair<std::size_t, tensor::Tensor>> constants;  ///< new inputs
  std::optional<Order> picks;                                     ///< elements to take of a new list of dims

  std::int64_t rank() const { return static_cast<std::int64_t>(order.size()); }
  /// Where an axis of the leading value, maybe counted from the end, has gone; nullopt where it is no axis.
  std::optional<std::int64_t> axis(std::int64_t old) const;
  /// nullopt where the value is absent or of unknown rank.
  const graph::SymShape* shape(graph::ValueId value) const;
  const graph::SymShape* input_shape(std::size_t i) const;
  /// Whether this version of the operator has such an input: earlier ones have attributes instead.
  bool knows_input(std::size_t i) const { return i < schema.inputs.size(); }
  bool has_input(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != graph::kNoValue; }
  /// The elements of an input that no feed can change.
  std::optional<std::vector<std::int64_t>> integers(std::size_t i) const;
  /// Gives the node other integers, of the type that the input has or else `like` has.
  void set_integers(std::size_t i, const std::vector<std::int64_t>& values, std::size_t like);
  void turn_outputs(const Order& to) { outputs.assign(node.outputs.size(), to); }
  /// The first input in `order`, and every output.
  bool turn_first();
};

/// How a node works in another order: as its operator says (kernel::Axes).
struct Rule {
  const kernel::OpSchema* schema = nullptr;
  /// False where the node cannot.
  bool (*turn)(Turning& turning) = nullptr;
  bool leads_by_output = false;  ///< the output's order says those of all other values, otherwise the first input's

  explicit operator bool() const { return turn != nullptr; }
  graph::ValueId leading_value(const graph::Node& node) const {
    return leads_by_output ? node.outputs[0] : node.inputs[0];
  }
};

/// The rule for a node of the standard; none where it works in one order only.
Rule rule_for(const graph::Node& node, const kernel::Registry& registry);
/// What becomes of the node where its leading value has this order; nullopt where it has to stay.
std::optional<Turning> turn(const graph::Graph& graph, const graph::Node& node, const Rule& rule, const Order& order);

// The ways of working, one for each of kernel::Axes.
bool turn_elementwise(Turning& t);
bool turn_broadcast(Turning& t);
bool turn_channels(Turning& t);
bool turn_batch_and_channels(Turning& t);
bool turn_along(Turning& t);
bool turn_along_input(Turning& t);
bool turn_from(Turning& t);
bool turn_joined(Turning& t);
bool turn_scaled(Turning& t);
bool turn_reduced(Turning& t);
bool turn_reduced_one(Turning& t);
bool turn_sliced(Turning& t);
bool turn_padded(Turning& t);
bool turn_repeated(Turning& t);
bool turn_expanded(Turning& t);
bool turn_gathered(Turning& t);
bool turn_gathered_elements(Turning& t);
bool turn_squeezed(Turning& t);
bool turn_unsqueezed(Turning& t);
bool turn_reshaped(Turning& t);
bool turn_dims(Turning& t);
bool turn_count(Turning& t);

}  // namespace infernode::passes::transposes
