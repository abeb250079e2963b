// Nodes that name axes, drop them or add some.

#include <algorithm>
#include <numeric>

#include "passes/transposes/turning.h"

namespace infernode::passes::transposes {

namespace {

using Axes = std::vector<std::int64_t>;

/// Where the axes have gone; nullopt where one of them is none.
std::optional<Axes> moved(const Turning& t, const Axes& axes) {
  Axes out;
  for (const std::int64_t axis : axes) {
    const auto to = t.axis(axis);
    if (!to) return std::nullopt;
    out.push_back(*to);
  }
  return out;
}

/// A mark at each of the axes of a value of that rank; nullopt where one is none or comes twice.
std::optional<std::vector<bool>> marks(const Axes& axes, std::size_t rank) {
  std::vector<bool> out(rank, false);
  for (std::int64_t axis : axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank) || out[static_cast<std::size_t>(axis)]) return std::nullopt;
    out[static_cast<std::size_t>(axis)] = true;
  }
  return out;
}

/// Axes that an attribute or, where the operator has it, an input says.
struct NamedAxes {
  bool input = false;  ///< said by input 1
  Axes axes;           ///< empty where none are named
};
std::optional<NamedAxes> named_axes(const Turning& t) {
  if (!t.knows_input(1)) return NamedAxes{false, t.node.attributes.get_ints("axes")};
  if (!t.has_input(1)) return NamedAxes{};
  auto given = t.integers(1);
  return given ? std::optional(NamedAxes{true, std::move(*given)}) : std::nullopt;
}

void set_axes(Turning& t, const NamedAxes& named, Axes axes) {
  std::sort(axes.begin(), axes.end());
  if (named.input)
    t.set_integers(1, axes, 1);
  else
    t.node.attributes.set("axes", std::move(axes));
}

/// The numbers given for old axes, one a place, in the order of the new ones; `sets` of them in a row.
Axes rearranged(const Turning& t, const Axes& numbers, std::size_t sets) {
  Axes out(numbers.size());
  const std::size_t rank = t.order.size();
  for (std::size_t i = 0; i < sets * rank; ++i)
    out[i / rank * rank + static_cast<std::size_t>(t.order[i % rank])] = numbers[i];
  return out;
}

/// The output of a reduction over the marked axes.
bool reduce(Turning& t, const std::vector<bool>& reduced) {
  t.inputs[0] = t.order;
  t.turn_outputs(t.node.attributes.get_int("keepdims", 1) != 0 ? t.order : drop(t.order, reduced));
  return true;
}

}  // namespace

bool turn_reduced(Turning& t) {
  const auto named = named_axes(t);
  if (!named) return false;
  if (named->axes.empty()) {
    if (t.node.attributes.get_int("noop_with_empty_axes", 0) != 0) return t.turn_first();
    return reduce(t, std::vector<bool>(t.order.size(), true));
  }
  const auto axes = moved(t, named->axes);
  const auto reduced = marks(named->axes, t.order.size());
  if (!axes || !reduced) return false;
  set_axes(t, *named, *axes);
  return reduce(t, *reduced);
}

bool turn_reduced_one(Turning& t) {
  const std::int64_t old = t.node.attributes.get_int("axis", 0);
  const auto axis = t.axis(old);
  const auto reduced = marks({old}, t.order.size());
  if (!axis || !reduced) return false;
  t.node.attributes.set("axis", *axis);
  return reduce(t, *reduced);
}

bool turn_sliced(Turning& t) {
  constexpr std::size_t kStarts = 1, kAxes = 3;
  const bool by_input = t.knows_input(kStarts);
  Axes axes;
  if (!by_input && t.node.attributes.has("axes")) {
    axes = t.node.attributes.get_ints("axes");
  } else if (by_input && t.has_input(kAxes)) {
    const auto given = t.integers(kAxes);
    if (!given) return false;
    axes = *given;
  } else {
    // One start for each of the first axes.
    const graph::SymShape* starts = by_input ? t.input_shape(kStarts) : nullptr;
    if (by_input && (starts == nullptr || starts->size() != 1 || !starts->front().known())) return false;
    const std::int64_t count =
        by_input ? starts->front().value() : static_cast<std::int64_t>(t.node.attributes.get_ints("starts").size());
    if (count < 0 || count > t.rank()) return false;
    axes.resize(static_cast<std::size_t>(count));
    std::iota(axes.begin(), axes.end(), 0);
  }
  const auto to = moved(t, axes);
  if (!to) return false;
  if (by_input)
    t.set_integers(kAxes, *to, kStarts);
  else
    t.node.attributes.set("axes", *to);
  return t.turn_first();
}

bool turn_padded(Turning& t) {
  constexpr std::size_t kPads = 1, kAxes = 3;
  if (!t.knows_input(kPads)) {
    const Axes pads = t.node.attributes.get_ints("pads");
    if (pads.size() != 2 * t.order.size()) return false;
    t.node.attributes.set("pads", rearranged(t, pads, 2));
  } else if (t.has_input(kAxes)) {
    const auto axes = t.integers(kAxes);
    const auto to = axes ? moved(t, *axes) : std::nullopt;
    if (!to) return false;
    t.set_integers(kAxes, *to, kAxes);
  } else if (const auto pads = t.integers(kPads)) {
    if (pads->size() != 2 * t.order.size()) return false;
    t.set_integers(kPads, rearranged(t, *pads, 2), kPads);
  } else if (t.knows_input(kAxes) && t.has_input(kPads)) {
    t.set_integers(kAxes, t.order, kPads);
  } else {
    return false;
  }
  return t.turn_first();
}

bool turn_repeated(Turning& t) {
  const auto numbers = t.integers(1);
  if (!numbers || numbers->size() != t.order.size()) return false;
  t.set_integers(1, rearranged(t, *numbers, 1), 1);
  return t.turn_first();
}

bool turn_expanded(Turning& t) {
  auto numbers = t.integers(1);
  if (!numbers || numbers->size() > t.order.size()) return false;
  numbers->insert(numbers->begin(), t.order.size() - numbers->size(), 1);
  t.set_integers(1, rearranged(t, *numbers, 1), 1);
  return t.turn_first();
}

bool turn_gathered(Turning& t) {
  std::int64_t old = t.node.attributes.get_int("axis", 0);
  const auto axis = t.axis(old);
  const graph::SymShape* indices = t.input_shape(1);
  if (!axis || indices == nullptr) return false;
  if (old < 0) old += t.rank();
  // The axes of the indices stand together where the axis was, before and after.
  const auto width = static_cast<std::int64_t>(indices->size());
  Order out;
  for (std::int64_t i = 0; i < t.rank(); ++i) {
    const std::int64_t to = t.order[static_cast<std::size_t>(i)];
    if (i == old) {
      for (std::int64_t k = 0; k < width; ++k) out.push_back(*axis + k);
    } else {
      out.push_back(to < *axis ? to : to - 1 + width);
    }
  }
  t.node.attributes.set("axis", *axis);
  t.inputs[0] = t.order;
  t.turn_outputs(out);
  return true;
}

bool turn_gathered_elements(Turning& t) {
  const auto axis = t.axis(t.node.attributes.get_int("axis", 0));
  if (!axis) return false;
  t.node.attributes.set("axis", *axis);
  t.inputs[1] = t.order;
  return t.turn_first();
}

bool turn_squeezed(Turning& t) {
  auto named = named_axes(t);
  if (!named) return false;
  const bool all = named->axes.empty();
  if (all) {
    // Every dim of 1 goes: which ones those are has to be known.
    const graph::SymShape* shape = t.input_shape(0);
    if (shape == nullptr || named->input) return false;
    for (std::size_t i = 0; i < shape->size(); ++i) {
      if (!(*shape)[i].known()) return false;
      if ((*shape)[i].is(1)) named->axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto axes = moved(t, named->axes);
  const auto gone = marks(named->axes, t.order.size());
  if (!axes || !gone) return false;
  if (!all) set_axes(t, *named, *axes);
  t.inputs[0] = t.order;
  t.turn_outputs(drop(t.order, *gone));
  return true;
}

bool turn_unsqueezed(Turning& t) {
  const auto named = named_axes(t);
  if (!named || (t.knows_input(1) && !named->input)) return false;
  const auto fresh = marks(named->axes, t.order.size() + named->axes.size());
  if (!fresh) return false;
  // New axes keep their places; the others follow one another in the new order around them.
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < fresh->size(); ++i) {
    if (!(*fresh)[i]) places.push_back(static_cast<std::int64_t>(i));
  }
  Order out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < fresh->size(); ++i) {
    out.push_back((*fresh)[i] ? static_cast<std::int64_t>(i) : places[static_cast<std::size_t>(t.order[next++])]);
  }
  t.inputs[0] = t.order;
  t.turn_outputs(out);
  return true;
}

bool turn_dims(Turning& t) {
  const std::int64_t rank = t.rank();
  const auto bound = [&](const char* name, std::int64_t fallback) {
    std::int64_t at = t.node.attributes.get_int(name, fallback);
    if (at < 0) at += rank;
    return std::clamp<std::int64_t>(at, 0, rank);
  };
  const std::int64_t start = bound("start", 0), end = std::max(start, bound("end", rank));
  t.node.attributes.erase("start");
  t.node.attributes.erase("end");
  t.picks.emplace(t.order.begin() + start, t.order.begin() + end);
  t.inputs[0] = t.order;
  return true;
}

bool turn_count(Turning& t) {
  t.inputs[0] = t.order;
  return true;
}

}  // namespace infernode::passes::transposes
