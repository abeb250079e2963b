// A reshape in another order of axes: where the axes that it joins or splits stay side by side.

#include <algorithm>

#include "passes/operators.h"
#include "passes/pass.h"
#include "passes/transposes/turning.h"

namespace infernode::passes::transposes {

namespace {

using Axes = std::vector<std::size_t>;

/// Axes of the input and axes of the output that hold the same elements in the same order.
struct Group {
  Axes from, to;
};

/// Axes whose dim is not 1.
Axes wide_axes(const graph::SymShape& shape) {
  Axes out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is(1)) out.push_back(i);
  }
  return out;
}

/// The smallest groups that can be told apart, in their order; what cannot be compared is the last one.
std::vector<Group> groups_of(const graph::Graph& graph, const graph::SymShape& from, const graph::SymShape& to) {
  const Axes in = wide_axes(from), out = wide_axes(to);
  std::vector<Group> groups;
  std::size_t i = 0, o = 0;
  while (i < in.size() && o < out.size()) {
    Group group{{in[i]}, {out[o]}};
    graph::Dim left = from[in[i]], right = to[out[o]];
    std::size_t a = i + 1, b = o + 1;
    const auto certain = [&] { return is_certain(graph, left) && is_certain(graph, right); };
    while (!(left == right && certain())) {
      const bool less = left.known() && right.known() && left.value() < right.value();
      const bool more = left.known() && right.known() && left.value() > right.value();
      if (less && a < in.size()) {
        left = left * from[in[a]];
        group.from.push_back(in[a++]);
      } else if (more && b < out.size()) {
        right = right * to[out[b]];
        group.to.push_back(out[b++]);
      } else {
        break;
      }
    }
    if (!(left == right && certain())) break;
    groups.push_back(std::move(group));
    i = a;
    o = b;
  }
  if (i < in.size() || o < out.size()) {
    groups.push_back({Axes(in.begin() + static_cast<std::ptrdiff_t>(i), in.end()),
                      Axes(out.begin() + static_cast<std::ptrdiff_t>(o), out.end())});
  }
  return groups;
}

/// The groups in the order in which their axes come now; empty where one is torn apart.
std::vector<Group> turned_groups(std::vector<Group> groups, const Order& order) {
  std::vector<std::int64_t> places;
  const auto place = [&](std::size_t axis) { return order[axis]; };
  for (const Group& group : groups) {
    if (group.from.empty()) return {};
    for (const std::size_t axis : group.from) places.push_back(place(axis));
  }
  std::sort(places.begin(), places.end());
  const auto index = [&](std::size_t axis) {
    return std::lower_bound(places.begin(), places.end(), place(axis)) - places.begin();
  };
  for (const Group& group : groups) {
    for (std::size_t i = 1; i < group.from.size(); ++i) {
      if (index(group.from[i]) != index(group.from[i - 1]) + 1) return {};
    }
  }
  std::sort(groups.begin(), groups.end(),
            [&](const Group& a, const Group& b) { return place(a.from[0]) < place(b.from[0]); });
  return groups;
}

/// The order of the output: axes as their groups come, those of dim 1 behind the axis that they stood behind.
Order output_order(const std::vector<Group>& groups, const graph::SymShape& to) {
  Axes sequence;
  std::size_t axis = 0;
  const auto take_ones = [&] {
    while (axis < to.size() && to[axis].is(1)) sequence.push_back(axis++);
  };
  take_ones();
  for (const Group& group : groups) {
    for (const std::size_t wide : group.to) {
      sequence.push_back(wide);
      axis = wide + 1;
      take_ones();
    }
  }
  Order order(to.size());
  for (std::size_t i = 0; i < sequence.size(); ++i) order[sequence[i]] = static_cast<std::int64_t>(i);
  return order;
}

}  // namespace

bool turn_reshaped(Turning& t) {
  const graph::SymShape *from = t.input_shape(0), *to = t.shape(t.node.outputs[0]);
  if (from == nullptr || to == nullptr) return false;
  const bool flat = !t.knows_input(1);
  if (!flat && !t.integers(1)) return false;
  const auto is_zero = [](const graph::Dim& dim) { return dim.is(0); };
  if (std::any_of(from->begin(), from->end(), is_zero)) return false;
  const std::vector<Group> groups = turned_groups(groups_of(t.graph, *from, *to), t.order);
  if (groups.empty()) return false;
  const Order order = output_order(groups, *to);
  const graph::SymShape wanted = turned_shape(*to, order);
  const std::vector<std::int64_t> dims = spell(t.graph, turned_shape(*from, t.order), wanted);
  if (dims.empty()) return false;
  if (flat) {
    if (t.node.opset < kShapeIsInput) return false;
    t.node.op_type = kReshape;
    t.node.attributes.erase("axis");
  }
  t.node.attributes.erase("allowzero");
  t.set_integers(1, dims, 1);
  t.inputs[0] = t.order;
  t.turn_outputs(order);
  return true;
}

}  // namespace infernode::passes::transposes
