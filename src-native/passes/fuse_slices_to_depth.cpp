#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "graph/patch.h"
#include "graph/walks.h"
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
using tensor::Tensor;

constexpr std::int64_t kRank = 4;
/// Before this version a Slice has no steps.
constexpr std::int64_t kHasSteps = 10;
/// "To the end" where the dim is not known.
constexpr std::int64_t kEnd = std::numeric_limits<std::int32_t>::max();

struct Grid {
  std::array<std::int64_t, 2> offset{0, 0}, step{1, 1};  ///< of rows, of columns
};

/// A constant list of integers; nullopt where it is none. An absent one is `fallback`.
std::optional<std::vector<std::int64_t>> list(const Graph& graph, const Node& node, std::size_t input,
                                              std::vector<std::int64_t> fallback) {
  if (input >= node.inputs.size() || node.inputs[input] == kNoValue) return fallback;
  const graph::ValueInfo& value = graph.value(node.inputs[input]);
  if (!value.is_constant() || !value.constant.is_tensor()) return std::nullopt;
  return tensor::to_int64_vector(value.constant.tensor());
}

/// Puts a Slice before those that `grid` stands for; false where it takes anything but a grid of rows and columns.
bool prepend(const Graph& graph, const Node& slice, Grid& grid) {
  const auto& shape = graph.value(slice.inputs[0]).type.shape;
  if (slice.opset < kHasSteps || slice.inputs.size() < 3 || !shape || shape->size() != kRank) return false;
  const auto starts = list(graph, slice, 1, {}), ends = list(graph, slice, 2, {});
  if (!starts || !ends) return false;
  std::vector<std::int64_t> all(starts->size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const auto axes = list(graph, slice, 3, all), steps = list(graph, slice, 4, std::vector<std::int64_t>(all.size(), 1));
  if (!axes || !steps || ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size())
    return false;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + kRank : (*axes)[i];
    if (axis < 0 || axis >= kRank) return false;
    const graph::Dim& dim = (*shape)[static_cast<std::size_t>(axis)];
    const std::int64_t start = (*starts)[i], step = (*steps)[i];
    if (start < 0 || start > 1 || step < 1 || step > 2 || (*ends)[i] < (dim.known() ? dim.value() : kEnd)) return false;
    if (axis < 2) {
      if (start != 0 || step != 1) return false;
      continue;
    }
    const auto a = static_cast<std::size_t>(axis - 2);
    grid.offset[a] = start + step * grid.offset[a];
    grid.step[a] *= step;
  }
  return true;
}

struct Focus {
  ValueId source = kNoValue;
  std::vector<std::int64_t> blocks;  ///< by place in the Concat: SpaceToDepth's block
  std::vector<NodeId> slices;
};

/// The four grids that a Concat joins, where they make up one image and nobody else reads them.
std::optional<Focus> find(const Graph& graph, NodeId id, const graph::Consumers& consumers) {
  const Node& concat = graph.node(id);
  const std::int64_t axis = concat.attributes.get_int("axis", 1);
  if (!is(concat, kConcat) || concat.inputs.size() != 4 || (axis != 1 && axis != -3)) return std::nullopt;
  Focus focus;
  for (ValueId value : concat.inputs) {
    Grid grid;
    while (value != kNoValue && graph.value(value).producer != kNoNode) {
      const NodeId before = graph.value(value).producer;
      const Node& slice = graph.node(before);
      if (!is(slice, kSlice) || grid.step == std::array<std::int64_t, 2>{2, 2}) break;
      if (!prepend(graph, slice, grid)) return std::nullopt;
      focus.slices.push_back(before);
      value = slice.inputs[0];
    }
    const std::int64_t block = grid.offset[0] * 2 + grid.offset[1];
    if (grid.step != std::array<std::int64_t, 2>{2, 2} || grid.offset[0] > 1 || grid.offset[1] > 1 ||
        (focus.source != kNoValue && value != focus.source) ||
        std::find(focus.blocks.begin(), focus.blocks.end(), block) != focus.blocks.end())
      return std::nullopt;
    focus.source = value;
    focus.blocks.push_back(block);
  }
  for (const NodeId slice : focus.slices) {
    const ValueId made = graph.node(slice).outputs[0];
    const auto& readers = consumers[static_cast<std::size_t>(made)];
    if (graph.is_output(made) || !std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
          return reader == id || std::find(focus.slices.begin(), focus.slices.end(), reader) != focus.slices.end();
        }))
      return std::nullopt;
  }
  const graph::ValueType& type = graph.value(focus.source).type;
  const bool sorted = std::is_sorted(focus.blocks.begin(), focus.blocks.end());
  if (type.elem != DType::Float32 && type.elem != DType::Float16) return std::nullopt;
  if (!type.shape || type.shape->size() != kRank || (!sorted && !(*type.shape)[1].known())) return std::nullopt;
  return focus;
}

/// The convolution that alone reads a value, where its weights can take its channels in another order.
NodeId reordering_conv(const Graph& graph, ValueId value, const graph::Consumers& consumers) {
  const auto& readers = consumers[static_cast<std::size_t>(value)];
  if (graph.is_output(value) || readers.size() != 1) return kNoNode;
  const Node& conv = graph.node(readers[0]);
  if (!is(conv, kConv) || conv.inputs[0] != value || conv.attributes.get_int("group", 1) != 1) return kNoNode;
  const graph::ValueInfo& weights = graph.value(conv.inputs[1]);
  return weights.is_constant() && weights.constant.is_tensor() && weights.constant.tensor().rank() == kRank ? readers[0]
                                                                                                            : kNoNode;
}

/// Weights [M, C, ...] whose channel order[c] is what channel c was.
Tensor reordered(const Tensor& weights, const std::vector<std::int64_t>& order) {
  Tensor out = weights.clone();
  const std::size_t channels = order.size(), rows = static_cast<std::size_t>(weights.dim(0));
  const std::size_t bytes = rows == 0 || channels == 0 ? 0 : weights.bytes() / (rows * channels);
  const std::byte* from = weights.byte_span().data();
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t c = 0; c < channels; ++c) {
      std::copy_n(from + (m * channels + c) * bytes, bytes,
                  to + (m * channels + static_cast<std::size_t>(order[c])) * bytes);
    }
  }
  return out;
}

void replace(Graph& graph, NodeId id, const Focus& focus, graph::Consumers& consumers) {
  graph::GraphPatch patch(graph);
  const Node concat = graph.node(id);
  const ValueId joined = concat.outputs[0];
  std::vector<NodeId> from = focus.slices;
  from.push_back(id);
  Node depth;
  depth.name = concat.name;
  depth.op_type = kSpaceToDepth;
  depth.opset = concat.opset;
  depth.inputs = {focus.source};
  depth.attributes.set("blocksize", std::int64_t{2});
  depth.outputs = {joined};
  if (!std::is_sorted(focus.blocks.begin(), focus.blocks.end())) {
    const std::int64_t channels = (*graph.value(focus.source).type.shape)[1].value();
    std::vector<std::int64_t> order;
    for (const std::int64_t block : focus.blocks) {
      for (std::int64_t c = 0; c < channels; ++c) order.push_back(block * channels + c);
    }
    const NodeId conv = reordering_conv(graph, joined, consumers);
    const ValueId weights = conv == kNoNode ? kNoValue : graph.node(conv).inputs[1];
    if (conv != kNoNode && graph.value(weights).constant.tensor().dim(1) == static_cast<std::int64_t>(order.size())) {
      const Tensor moved = reordered(graph.value(weights).constant.tensor(), order);
      patch.set_input(conv, 1, patch.add_constant(graph.value(weights).name + "_reordered", moved));
    } else {
      const std::string name = graph.value(joined).name;
      depth.outputs = {patch.add_value(name + "_depth", graph.value(joined).type)};
      Node gather;
      gather.name = concat.name;
      gather.op_type = kGather;
      gather.opset = concat.opset;
      const auto count = static_cast<std::int64_t>(order.size());
      gather.inputs = {
          depth.outputs[0],
          patch.add_constant(name + "_order",
                             Tensor::of<std::int64_t>(tensor::Shape{count}, std::span<const std::int64_t>(order)))};
      gather.attributes.set("axis", std::int64_t{1});
      gather.outputs = {joined};
      patch.add_node(std::move(gather), from);
    }
  }
  patch.add_node(std::move(depth), from);
  patch.remove_node(id);
  for (const NodeId slice : focus.slices) patch.remove_node(slice);
  patch.apply(consumers);
}

}  // namespace

bool fuse_slices_to_depth(Graph& graph, const PassOptions& options) {
  bool changed = false;
  graph::Consumers consumers;
  for (const NodeId id : graph::topological_order(graph, options)) {
    options.check();
    if (!is(graph.node(id), kConcat)) continue;
    if (consumers.empty()) consumers = graph::consumers(graph, options);
    const std::optional<Focus> focus = find(graph, id, consumers);
    if (!focus) continue;
    replace(graph, id, *focus, consumers);
    changed = true;
  }
  return changed;
}

}  // namespace infernode::passes
