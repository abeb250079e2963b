#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "graph/patch.h"
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

using Consumers = std::vector<std::vector<NodeId>>;

bool is(const Node& node, std::string_view op) { return !node.removed && is_of_either_domain(node, op); }
bool is_code(DType type) {
  return type == DType::Int8 || type == DType::UInt8 || type == DType::Int16 || type == DType::UInt16;
}
ValueId zero_point(const Node& node) { return node.inputs.size() > 2 ? node.inputs[2] : kNoValue; }

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

/// Whether quantizing by the second gives what the first was given. The roundings of a product and a quotient by one
/// float32 scale cancel over 16 bits.
bool undoes(const Graph& graph, const Node& dequantize, const Node& quantize) {
  const Tensor *s = constant(graph, dequantize.inputs[1]), *t = constant(graph, quantize.inputs[1]);
  if (s == nullptr || t == nullptr || s->numel() != 1 || t->numel() != 1 || s->dtype() != DType::Float32 ||
      t->dtype() != DType::Float32 || *s->data<float>() != *t->data<float>())
    return false;
  if (graph.value(dequantize.inputs[0]).type.elem != graph.value(quantize.outputs[0]).type.elem) return false;
  const auto zero = [&](const Node& node) -> std::optional<std::int64_t> {
    if (zero_point(node) == kNoValue) return 0;
    const Tensor* z = constant(graph, zero_point(node));
    return z != nullptr && z->numel() == 1 ? std::optional(tensor::to_int64_scalar(*z)) : std::nullopt;
  };
  return zero(dequantize) && zero(dequantize) == zero(quantize);
}

bool is_view(const Node& node) {
  return node.op_type == "Reshape" || node.op_type == "Flatten" || node.op_type == "Squeeze" ||
         node.op_type == "Unsqueeze";
}
/// As many elements come out as go in, and each is one of them.
bool rearranges(const Node& node) {
  return is_view(node) || node.op_type == "Transpose" || node.op_type == "DepthToSpace" ||
         node.op_type == "SpaceToDepth";
}
bool selects(const Node& node) { return node.op_type == "Slice" || node.op_type == "Gather"; }
bool repeats(const Node& node) { return node.op_type == "Expand" || node.op_type == "Tile"; }

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
  return pool.op_type == "MaxPool" && pool.opset >= 12 && pool.outputs.size() == 1 && has_full_windows(pool) &&
         (type == DType::Int8 || type == DType::UInt8) && scale != nullptr && scale->numel() == 1 &&
         tensor::to_float_scalar(*scale) > 0;
}

/// No more elements come out than go in.
bool shrinks(const Graph& graph, const Node& node) {
  const auto &in = graph.value(node.inputs[0]).type.shape, &out = graph.value(node.outputs[0]).type.shape;
  if (node.op_type == "Slice") return true;
  if (!in || !out) return false;
  const graph::Dim before = graph::numel(*in), after = graph::numel(*out);
  return before == after || (before.known() && after.known() && after.value() <= before.value());
}

class Propagation {
 public:
  Propagation(Graph& graph, const PassOptions& options)
      : graph_(graph), options_(options), consumers_(graph.consumers()) {}

  bool run() {
    const std::vector<NodeId> order = graph_.topological_order();
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
  bool movable(const Node& node) const {
    return !node.removed && node.domain.empty() && !node.inputs.empty() && node.inputs[0] != kNoValue &&
           node.outputs.size() == 1 &&
           (rearranges(node) || selects(node) || repeats(node) || node.op_type == "MaxPool");
  }

  /// Dequantizing moves from before a node to after it.
  void lower(NodeId id) {
    if (!movable(graph_.node(id))) return;
    const Node& node = graph_.node(id);
    const ValueId in = node.inputs[0], out = node.outputs[0];
    const NodeId before = graph_.value(in).producer;
    if (before == kNoNode || !is(graph_.node(before), "DequantizeLinear")) return;
    const Node& dequantize = graph_.node(before);
    const ValueId codes = dequantize.inputs[0];
    const DType type = graph_.value(codes).type.elem;
    if (!is_code(type) || std::count(node.inputs.begin(), node.inputs.end(), in) != 1) return;
    const bool quantized_again = read_once(out) && [&] {
      const Node& after = graph_.node(consumers_[static_cast<std::size_t>(out)][0]);
      return is(after, "QuantizeLinear") && after.inputs[0] == out && undoes(graph_, dequantize, after);
    }();
    if (!quantized_again && !read_once(in)) return;
    if (node.op_type == "MaxPool" && !keeps_largest(graph_, node, dequantize)) return;
    if (repeats(node) && !quantized_again) return;
    if (selects(node) && !quantized_again && (constant(graph_, codes) != nullptr || !shrinks(graph_, node))) return;
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
    if (node.op_type != "Transpose" || scale == nullptr || scale->rank() != 1 || !shape ||
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
    if (!is(quantize, "QuantizeLinear") || !is_uniform(graph_, quantize)) return;
    const ValueId in = quantize.inputs[0], out = quantize.outputs[0];
    const DType type = graph_.value(out).type.elem;
    const NodeId before = graph_.value(in).producer;
    if (!is_code(type) || before == kNoNode || !read_once(in)) return;
    const Node& node = graph_.node(before);
    if (!movable(node) || !(rearranges(node) || repeats(node))) return;
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
    patch.apply();
    consumers_ = graph_.consumers();
    changed_ = true;
  }

  Graph& graph_;
  const PassOptions& options_;
  Consumers consumers_;
  bool changed_ = false;
};

/// Whether the node has codes, of which it may be meant to make codes: behind one of its outputs (`ahead`), or in front
/// of one of its inputs. Products make floats of codes, too.
bool works_on_codes(const Graph& graph, const Consumers& consumers, const Node& node, bool ahead) {
  if (!ahead) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const NodeId maker = id == kNoValue ? kNoNode : graph.value(id).producer;
      return maker != kNoNode && is(graph.node(maker), "DequantizeLinear");
    });
  }
  if (node.op_type.find("MatMul") != std::string::npos || node.op_type.find("Gemm") != std::string::npos) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    const auto quantizes = [&](NodeId reader) { return is(graph.node(reader), "QuantizeLinear"); };
    return id != kNoValue && std::ranges::any_of(consumers[static_cast<std::size_t>(id)], quantizes);
  });
}

/// The DequantizeLinears that read what the node makes, where they undo it and nothing else reads it.
std::vector<NodeId> undone_by(const Graph& graph, const Consumers& consumers, const Node& quantize) {
  const ValueId codes = quantize.outputs[0];
  if (codes == kNoValue || quantize.inputs[0] == kNoValue) return {};
  const NodeId before = graph.value(quantize.inputs[0]).producer;
  if (graph.is_output(codes) || !is_code(graph.value(codes).type.elem) ||
      (before != kNoNode && works_on_codes(graph, consumers, graph.node(before), false)))
    return {};
  const DType type = graph.value(quantize.inputs[0]).type.elem;
  const std::vector<NodeId>& readers = consumers[static_cast<std::size_t>(codes)];
  const bool undone = std::ranges::all_of(readers, [&](NodeId id) {
    const Node& reader = graph.node(id);
    return is(reader, "DequantizeLinear") && reader.inputs[0] == codes && reader.outputs[0] != kNoValue &&
           reader.provider == quantize.provider && graph.value(reader.outputs[0]).type.elem == type &&
           undoes(graph, reader, quantize) &&
           std::ranges::none_of(consumers[static_cast<std::size_t>(reader.outputs[0])], [&](NodeId after) {
             return works_on_codes(graph, consumers, graph.node(after), true);
           });
  });
  return undone ? readers : std::vector<NodeId>{};
}

}  // namespace

bool propagate_quantization(Graph& graph, const PassOptions& options) { return Propagation(graph, options).run(); }

bool drop_quantization(Graph& graph, const PassOptions& options) {
  const Consumers consumers = graph.consumers();
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    options.check();
    if (!is(graph.node(id), "QuantizeLinear")) continue;
    const std::vector<NodeId> undone = undone_by(graph, consumers, graph.node(id));
    if (undone.empty()) continue;
    graph::GraphPatch patch(graph);
    for (const NodeId reader : undone) {
      patch.replace_uses(graph.node(reader).outputs[0], graph.node(id).inputs[0]);
      patch.remove_node(reader);
    }
    patch.remove_node(id);
    patch.apply();
    changed = true;
  }
  return changed;
}

}  // namespace infernode::passes
