#pragma once
// Orders of axes: how a value was laid out in its graph, said by the layout that it has from now on.

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace infernode::passes::transposes {

/// Axis i of a value is axis order[i] of its turned version: value = Transpose<perm = order>(turned). Empty: the two
/// are one.
using Order = std::vector<std::int64_t>;

bool is_identity(const Order& order);
Order inverse(const Order& order);
/// The permutation of one transpose in place of two, `first` and then `second`.
Order compose(const Order& first, const Order& second);
/// What is left of an order where the axes marked in `gone` are dropped.
Order drop(const Order& order, const std::vector<bool>& gone);

/// Dims of the turned version of a value of this shape.
graph::SymShape turned_shape(const graph::SymShape& shape, const Order& order);
/// Whether the elements stay where they are: only dims of 1 change places.
bool moves_nothing(const graph::SymShape& shape, const Order& order);
/// The order, empty where the turned version of such a value is the value itself.
Order settle(const graph::SymShape& shape, Order order);

/// The permutation of a Transpose of the standard; nullopt for other nodes, and where it is none of the input's axes.
std::optional<Order> perm_of(const graph::Graph& graph, const graph::Node& node);

/// Whether the value is a constant, maybe transposed by nodes that are yet to be folded.
bool is_constant(const graph::Graph& graph, graph::ValueId value);

}  // namespace infernode::passes::transposes
