#pragma once
// What becomes of a node where its values have another order of axes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "passes/transposes/order.h"

namespace infernode::passes::transposes {

/// One node made to work on turned values. A rule's function fills it in from `order`, the order of the node's leading
/// value: its first input, or its output where the inputs are broadcast.
struct Turning {
  Turning(const graph::Graph& g, graph::Node n, Order o)
      : graph(g), node(std::move(n)), order(std::move(o)), inputs(node.inputs.size()), outputs(node.outputs.size()) {}

  const graph::Graph& graph;
  graph::Node node;  ///< as it will be; its inputs are the old ones
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
  bool has_input(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != graph::kNoValue; }
  /// The elements of an input that no feed can change.
  std::optional<std::vector<std::int64_t>> integers(std::size_t i) const;
  /// Gives the node other integers, of the type that the input has or else `like` has.
  void set_integers(std::size_t i, const std::vector<std::int64_t>& values, std::size_t like);
  void turn_outputs(const Order& to) { outputs.assign(node.outputs.size(), to); }
  /// The first input in `order`, and every output.
  bool turn_first();
};

/// How a kind of node works in another order. `turn` says false where it cannot.
struct Rule {
  std::string_view op;  ///< of the standard
  std::int64_t since;   ///< first version that it speaks of
  std::int64_t before;  ///< first that it does not speak of any more
  bool (*turn)(Turning& turning);
};

/// The rule for a node; nullptr where there is none.
const Rule* rule_for(const graph::Node& node);
/// The value whose order says those of all others.
graph::ValueId leading_value(const graph::Node& node, const Rule& rule);
/// What becomes of the node where its leading value has this order; nullopt where it has to stay.
std::optional<Turning> turn(const graph::Graph& graph, const graph::Node& node, const Rule& rule, const Order& order);

// The ways of working: each is the `turn` of the rules that name it.
bool turn_elementwise(Turning& t);   ///< the first input; others do not hang on axes
bool turn_broadcast(Turning& t);     ///< all inputs, up to the output's rank
bool turn_channels(Turning& t);      ///< axis 1 keeps its place
bool turn_spatial(Turning& t);       ///< axes 0 and 1 keep their places
bool turn_first_axis(Turning& t);    ///< along attribute axis, by default 0
bool turn_last_axis(Turning& t);     ///< along attribute axis, by default the last
bool turn_axis_input(Turning& t);    ///< along an axis that input 1 says
bool turn_concat(Turning& t);        ///< all inputs, joined along attribute axis
bool turn_flat_softmax(Turning& t);  ///< all axes from attribute axis on are one
bool turn_quantize(Turning& t);      ///< attribute axis says where scales lie
bool turn_reduce(Turning& t);        ///< axes by attribute or input
bool turn_arg_reduce(Turning& t);    ///< attribute axis
bool turn_slice(Turning& t);         ///< axes by attribute or input
bool turn_pad(Turning& t);           ///< pads of all axes, or of those named
bool turn_repeats(Turning& t);       ///< input 1 has a number for every axis
bool turn_gather(Turning& t);        ///< axis replaced by those of the indices
bool turn_gather_elements(Turning& t);
bool turn_squeeze(Turning& t);
bool turn_unsqueeze(Turning& t);
bool turn_reshape(Turning& t);
bool turn_shape(Turning& t);
bool turn_size(Turning& t);

}  // namespace infernode::passes::transposes
