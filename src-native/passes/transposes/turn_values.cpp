// Nodes whose values all have the order of the leading one, or a part of it.

#include <algorithm>

#include "passes/transposes/turning.h"

namespace infernode::passes::transposes {

namespace {

bool keeps(const Turning& t, std::size_t axes) {
  for (std::size_t i = 0; i < axes; ++i) {
    if (i >= t.order.size() || t.order[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

bool along_axis(Turning& t, std::int64_t fallback) {
  const auto axis = t.axis(t.node.attributes.get_int("axis", fallback));
  if (!axis) return false;
  t.node.attributes.set("axis", *axis);
  return t.turn_first();
}

}  // namespace

std::optional<std::int64_t> Turning::axis(std::int64_t old) const {
  if (old < 0) old += rank();
  return old >= 0 && old < rank() ? std::optional(order[static_cast<std::size_t>(old)]) : std::nullopt;
}

const graph::SymShape* Turning::shape(graph::ValueId value) const {
  if (value == graph::kNoValue) return nullptr;
  const graph::ValueType& type = graph.value(value).type;
  return type.is_tensor() && type.shape ? &*type.shape : nullptr;
}

const graph::SymShape* Turning::input_shape(std::size_t i) const {
  return i < node.inputs.size() ? shape(node.inputs[i]) : nullptr;
}

std::optional<std::vector<std::int64_t>> Turning::integers(std::size_t i) const {
  if (!has_input(i)) return std::nullopt;
  const graph::ValueInfo& value = graph.value(node.inputs[i]);
  if (!value.is_constant() || !value.constant.is_tensor() || !tensor::is_integer(value.constant.tensor().dtype()))
    return std::nullopt;
  return tensor::to_int64_vector(value.constant.tensor());
}

void Turning::set_integers(std::size_t i, const std::vector<std::int64_t>& values, std::size_t like) {
  while (node.inputs.size() <= i) node.inputs.push_back(graph::kNoValue);
  inputs.resize(node.inputs.size());
  const graph::ValueId model = has_input(i) ? node.inputs[i] : has_input(like) ? node.inputs[like] : graph::kNoValue;
  const bool narrow = model != graph::kNoValue && graph.value(model).type.elem == tensor::DType::Int32;
  tensor::Shape shape{static_cast<std::int64_t>(values.size())};
  if (const graph::SymShape* old = input_shape(i); old != nullptr && old->empty()) shape = {};
  if (narrow) {
    const std::vector<std::int32_t> small(values.begin(), values.end());
    constants.emplace_back(i, tensor::Tensor::of<std::int32_t>(shape, std::span<const std::int32_t>(small)));
  } else {
    constants.emplace_back(i, tensor::Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(values)));
  }
}

bool Turning::turn_first() {
  inputs[0] = order;
  turn_outputs(order);
  return true;
}

bool turn_elementwise(Turning& t) { return t.turn_first(); }

bool turn_broadcast(Turning& t) {
  const std::size_t rank = t.order.size();
  for (std::size_t i = 0; i < t.node.inputs.size(); ++i) {
    const graph::SymShape* shape = t.input_shape(i);
    if (shape == nullptr || shape->size() > rank) return false;
    if (std::all_of(shape->begin(), shape->end(), [](const graph::Dim& dim) { return dim.is(1); })) continue;
    if (shape->size() == rank) {
      t.inputs[i] = t.order;
      continue;
    }
    // The last axes of the output are those of this input: where they stay the last ones, it need not grow.
    const auto first = static_cast<std::int64_t>(rank - shape->size());
    Order part(t.order.begin() + first, t.order.end());
    for (std::int64_t& axis : part) axis -= first;
    if (std::all_of(part.begin(), part.end(), [](std::int64_t axis) { return axis >= 0; }))
      t.inputs[i] = std::move(part);
    else
      t.widened.emplace_back(i, t.order);
  }
  t.turn_outputs(t.order);
  return true;
}

bool turn_channels(Turning& t) {
  // In training there are more outputs; before version 9 an attribute could give each place statistics of its own.
  if (t.node.outputs.size() != 1 || t.node.attributes.get_int("spatial", 1) != 1) return false;
  return t.order.size() > 1 && t.order[1] == 1 && t.turn_first();
}

bool turn_batch_and_channels(Turning& t) { return keeps(t, 2) && t.turn_first(); }

bool turn_along(Turning& t) { return along_axis(t, t.schema.traits.default_axis); }

bool turn_along_input(Turning& t) {
  const auto given = t.integers(1);
  if (!given || given->size() != 1) return false;
  const auto axis = t.axis(given->front());
  if (!axis) return false;
  t.set_integers(1, {*axis}, 1);
  return t.turn_first();
}

bool turn_joined(Turning& t) {
  if (!t.node.attributes.has("axis") || !along_axis(t, 0)) return false;
  t.inputs.assign(t.node.inputs.size(), t.order);
  return true;
}

bool turn_from(Turning& t) {
  std::int64_t axis = t.node.attributes.get_int("axis", 1);
  if (axis < 0) axis += t.rank();
  if (axis < 0 || axis > t.rank()) return false;
  const auto cut = t.order.begin() + axis;
  return std::all_of(cut, t.order.end(), [&](std::int64_t to) { return to >= axis; }) && t.turn_first();
}

bool turn_scaled(Turning& t) {
  const graph::SymShape* scale = t.input_shape(1);
  if (scale == nullptr) return false;
  if (scale->empty()) return t.turn_first();
  const bool blocked = t.node.attributes.get_int("block_size", 0) != 0;
  if (t.node.opset < 13) return scale->size() == 1 && scale->front().is(1) && t.turn_first();
  const auto axis = t.axis(t.node.attributes.get_int("axis", 1));
  if (!axis || (!blocked && scale->size() != 1)) return false;
  t.node.attributes.set("axis", *axis);
  // A scale for each block of the axis: scales and zero points have all the axes of the values.
  for (std::size_t i = 1; blocked && i < t.node.inputs.size(); ++i) {
    if (t.has_input(i)) t.inputs[i] = t.order;
  }
  return t.turn_first();
}

}  // namespace infernode::passes::transposes
