#include <algorithm>
#include <optional>
#include <set>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pattern_passes.h"
#include "passes/quantization/codes.h"

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

using kernel::Moves;

/// One scale and zero point for all elements, whatever their shape is.
bool is_uniform(const Graph& graph, const Node& node) {
  if (node.attributes.get_int("block_size", 0) != 0) return false;
  for (const ValueId id : {node.inputs[1], zero_point(node)}) {
    if (id == kNoValue) continue;
    const Tensor* known = constant(graph, id);
    const auto& shape = graph.value(id).type.shape;
    if (known != nullptr ? known->numel() != 1 : !shape || !shape->empty()) return false;
  }
  return true;
}

/// Every window has an element, so that no code stands for "less than any".
bool has_full_windows(const Node& pool) {
  const auto kernel = pool.attributes.get_ints("kernel_shape"), pads = pool.attributes.get_ints("pads"),
             dilations = pool.attributes.get_ints("dilations");
  if (std::any_of(dilations.begin(), dilations.end(), [](std::int64_t d) { return d != 1; })) return false;
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (kernel.empty() || pads[i] >= kernel[i % kernel.size()]) return false;
  }
  return pool.attributes.get_int("ceil_mode", 0) == 0;
}

/// The largest of what is dequantized is what the largest code stands for.
bool keeps_largest(const Graph& graph, const Node& pool, const Node& dequantize) {
  const DType type = graph.value(dequantize.inputs[0]).type.elem;
  const Tensor* scale = constant(graph, dequantize.inputs[1]);
  constexpr std::int64_t kTakesCodes = 12;
  return pool.opset >= kTakesCodes && pool.outputs.size() == 1 && has_full_windows(pool) &&
         (type == DType::Int8 || type == DType::UInt8) && scale != nullptr && scale->numel() == 1 &&
         tensor::to_float_scalar(*scale) > 0;
}

/// No more elements come out than go in.
bool shrinks(const Graph& graph, const Node& node) {
  if (is(node, kSlice)) return true;
  const auto &in = graph.value(node.inputs[0]).type.shape, &out = graph.value(node.outputs[0]).type.shape;
  if (!in || !out) return false;
  const graph::Dim before = graph::numel(*in), after = graph::numel(*out);
  return before == after || (before.known() && after.known() && after.value() <= before.value());
}

class Propagation {
 public:
  Propagation(Graph& graph, const PassOptions& options)
      : graph_(graph), options_(options), consumers_(graph::consumers(graph, options)) {}

  bool run() {
    const std::vector<NodeId> order = graph::topological_order(graph_, options_);
    for (const NodeId id : order) {
      options_.check();
      lower(id);
    }
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      options_.check();
      lift(*at);
    }
    return changed_;
  }

 private:
  bool read_once(ValueId id) const {
    return !graph_.is_output(id) && consumers_[static_cast<std::size_t>(id)].size() == 1;
  }
  /// How the node moves what it is given, codes as well as floats; Nothing where it does anything else, or has more
  /// outputs than one.
  Moves moves(const Node& node) const {
    if (node.removed || node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs.size() != 1)
      return Moves::Nothing;
    const Moves how = kernel::traits_of(node, *options_.registry).moves;
    return how == Moves::Converts ? Moves::Nothing : how;
  }

  /// Dequantizing moves from before a node to after it.
  void lower(NodeId id) {
    const Moves how = moves(graph_.node(id));
    if (how == Moves::Nothing) return;
    const Node& node = graph_.node(id);
    const ValueId in = node.inputs[0], out = node.outputs[0];
    const NodeId before = graph_.value(in).producer;
    if (before == kNoNode || !dequantizes(graph_.node(before))) return;
    const Node& dequantize = graph_.node(before);
    const ValueId codes = dequantize.inputs[0];
    const DType type = graph_.value(codes).type.elem;
    if (!is_code(type) || std::count(node.inputs.begin(), node.inputs.end(), in) != 1) return;
    const bool quantized_again = read_once(out) && [&] {
      const Node& after = graph_.node(consumers_[static_cast<std::size_t>(out)][0]);
      return quantizes(after) && after.inputs[0] == out && undoes(graph_, dequantize, after);
    }();
    if (!quantized_again && !read_once(in)) return;
    if (how == Moves::Largest && !keeps_largest(graph_, node, dequantize)) return;
    if (how == Moves::Repeats && !quantized_again) return;
    if (how == Moves::Selects && !quantized_again && (constant(graph_, codes) != nullptr || !shrinks(graph_, node)))
      return;
    std::optional<std::int64_t> axis;
    if (!is_uniform(graph_, dequantize)) {
      axis = moved_axis(node, dequantize);
      if (!axis) return;
    }
    Node moved = node, last = dequantize;
    if (axis) last.attributes.set("axis", *axis);
    const bool keep = !read_once(in);
    graph::GraphPatch patch(graph_);
    const ValueId between = add_codes(patch, out, type);
    moved.inputs[0] = codes;
    moved.outputs = {between};
    last.inputs[0] = between;
    last.outputs = {out};
    patch.add_node(std::move(moved));
    patch.add_node(std::move(last));
    patch.remove_node(id);
    if (!keep) patch.remove_node(before);
    finish(patch);
  }

  /// Where one scale for each element of an axis finds that axis after a Transpose.
  std::optional<std::int64_t> moved_axis(const Node& node, const Node& dequantize) const {
    const Tensor* scale = constant(graph_, dequantize.inputs[1]);
    const auto& shape = graph_.value(dequantize.inputs[0]).type.shape;
    if (!is(node, kTranspose) || scale == nullptr || scale->rank() != 1 || !shape ||
        dequantize.attributes.get_int("block_size", 0) != 0)
      return std::nullopt;
    const auto rank = static_cast<std::int64_t>(shape->size());
    std::int64_t axis = dequantize.attributes.get_int("axis", 1);
    if (axis < 0) axis += rank;
    std::vector<std::int64_t> perm = node.attributes.get_ints("perm");
    if (perm.empty()) {
      for (std::int64_t i = rank; i-- > 0;) perm.push_back(i);
    }
    const auto at = std::find(perm.begin(), perm.end(), axis);
    if (static_cast<std::int64_t>(perm.size()) != rank || at == perm.end()) return std::nullopt;
    return at - perm.begin();
  }

  /// Quantizing moves from after a node to before it. Not past a MaxPool, which has more elements before it than after
  /// it, nor past what takes some of them.
  void lift(NodeId id) {
    const Node& quantize = graph_.node(id);
    if (!quantizes(quantize) || !is_uniform(graph_, quantize)) return;
    const ValueId in = quantize.inputs[0], out = quantize.outputs[0];
    const DType type = graph_.value(out).type.elem;
    const NodeId before = graph_.value(in).producer;
    if (!is_code(type) || before == kNoNode || !read_once(in)) return;
    const Node& node = graph_.node(before);
    const Moves how = moves(node);
    if (how != Moves::Views && how != Moves::Permutes && how != Moves::Repeats) return;
    const ValueId source = node.inputs[0];
    if (graph_.value(source).has_constant()) return;
    Node moved = node, first = quantize;
    graph::GraphPatch patch(graph_);
    const ValueId between = add_codes(patch, source, type);
    first.inputs[0] = source;
    first.outputs = {between};
    moved.inputs[0] = between;
    moved.outputs = {out};
    patch.add_node(std::move(first));
    patch.add_node(std::move(moved));
    patch.remove_node(id);
    patch.remove_node(before);
    finish(patch);
  }

  /// A value for the codes of `value`'s elements.
  ValueId add_codes(graph::GraphPatch& patch, ValueId value, DType type) const {
    graph::ValueType made = graph_.value(value).type;
    made.elem = type;
    return patch.add_value(graph_.value(value).name + "_codes", std::move(made));
  }

  void finish(graph::GraphPatch& patch) {
    patch.apply(consumers_);
    changed_ = true;
  }

  Graph& graph_;
  const PassOptions& options_;
  Consumers consumers_;
  bool changed_ = false;
};

}  // namespace

bool propagate_quantization(Graph& graph, const PassOptions& options) { return Propagation(graph, options).run(); }

}  // namespace infernode::passes
