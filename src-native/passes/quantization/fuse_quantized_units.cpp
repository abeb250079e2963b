#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
using tensor::Shape;
using tensor::Tensor;

/// Products on codes, of com.microsoft: of matrices into floats, and of Gemm.
constexpr const char *kMatMulToFloat = "MatMulIntegerToFloat", *kGemmOnCodes = "QGemm";
/// Prefix of their names for all else.
constexpr const char* kOnCodes = "QLinear";

bool is_byte(DType type) { return type == DType::Int8 || type == DType::UInt8; }

/// (code - zero) * scale stands for an element.
struct Codes {
  NodeId by = kNoNode;  ///< the node that makes floats of codes, or codes of floats
  ValueId codes = kNoValue, scale = kNoValue, zero = kNoValue;
  DType type = DType::Undefined;
  Tensor scales{}, zeros{};  ///< zeros: none where all are 0
  std::int64_t axis = 0;     ///< of scales, where there are more than one

  bool uniform() const { return scales.numel() == 1; }
  /// One scale, or one for each place of an axis of `shape`.
  bool fits(const Shape& shape, std::size_t along) const {
    return uniform() || (axis == static_cast<std::int64_t>(along) && scales.numel() == shape[along]);
  }
  float scale_at(std::int64_t i) const { return scales.data<float>()[uniform() ? 0 : i]; }
  std::int64_t zero_at_first() const { return zeros ? tensor::to_int64_vector(zeros)[0] : 0; }
  bool one_zero() const {
    if (!zeros) return true;
    const std::vector<std::int64_t> all = tensor::to_int64_vector(zeros);
    return std::ranges::all_of(all, [&](std::int64_t z) { return z == all[0]; });
  }
};

/// A node that computes on what is dequantized, and what is around it.
struct Unit {
  std::vector<NodeId> nodes;  ///< that go: the node, activations, QuantizeLinear
  std::vector<Codes> inputs;
  std::optional<Codes> bias, output;  ///< output: none where floats are wanted
};

/// Inputs before it, a condition, are no numbers and stay as they are.
std::size_t first_float(const Graph& graph, const Node& node) {
  std::size_t i = 0;
  while (i < node.inputs.size() && node.inputs[i] != kNoValue && graph.value(node.inputs[i]).type.elem == DType::Bool)
    ++i;
  return i;
}

class Finder {
 public:
  Finder(const Graph& graph, const PassOptions& options)
      : graph_(graph), registry_(*options.registry), consumers_(graph::consumers(graph, options)) {}

  std::optional<Unit> find(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.removed || !node.domain.empty() || !runs_on_cpu(node) || node.opset < 10 || node.outputs.size() != 1 ||
        node.outputs[0] == kNoValue || node.inputs.empty())
      return std::nullopt;
    Unit unit;
    unit.nodes = {id};
    const bool conv = is(node, kConv), gemm = is(node, kGemm), product = gemm || is(node, kMatMul);
    if (!product && !conv && !is_simple(node)) return std::nullopt;
    const std::size_t first = first_float(graph_, node), last = product || conv ? 2 : node.inputs.size();
    if (node.inputs.size() < last || graph_.value(node.outputs[0]).type.elem != DType::Float32) return std::nullopt;
    for (std::size_t i = first; i < last; ++i) {
      auto codes = dequantized(node.inputs[i]);
      if (!codes || !is_byte(codes->type)) return std::nullopt;
      unit.inputs.push_back(*codes);
    }
    if (std::ranges::all_of(unit.inputs, [&](const Codes& c) { return constant(graph_, c.codes) != nullptr; }))
      return std::nullopt;
    unit.output = quantized(node.outputs[0], unit.nodes);
    const bool fits = product ? fits_product(node, unit)
                      : conv  ? fits_conv(unit, node.attributes.get_int("group", 1))
                              : fits_simple(unit);
    if (!fits || ((conv || gemm) && !take_bias(node, unit))) return std::nullopt;
    return unit;
  }

 private:
  /// Operators with a form for codes of one type and one scale that has the same attributes.
  bool is_simple(const Node& node) const {
    const kernel::OpTraits& traits = kernel::traits_of(node, registry_);
    if (traits.on_codes == nullptr || traits.axes != kernel::Axes::BatchAndChannels) return traits.on_codes != nullptr;
    const auto& shape = graph_.value(node.inputs[0]).type.shape;
    return shape && shape->size() >= 3;
  }

  bool fits_simple(const Unit& unit) const {
    return unit.output && std::ranges::all_of(unit.inputs, [&](const Codes& in) {
             return in.uniform() && in.type == unit.output->type;
           });
  }

  /// Codes of what comes in and goes out are of one type; weights are signed where they are.
  static bool types_fit(const Unit& unit) {
    const DType type = unit.inputs[0].type;
    return (type == DType::UInt8 || unit.inputs[1].type == type) && (!unit.output || unit.output->type == type);
  }

  bool fits_conv(const Unit& unit, std::int64_t group) const {
    const Tensor* weights = constant(graph_, unit.inputs[1].codes);
    return unit.output && types_fit(unit) && weights != nullptr && weights->rank() >= 3 && weights->numel() != 0 &&
           unit.inputs[0].uniform() && unit.inputs[1].fits(weights->shape(), 0) && unit.inputs[1].one_zero() &&
           is_worth_it(*weights, group);
  }

  /// Convolutions of few channels spend their time moving codes to where products want them: floats are faster. Not
  /// so where each channel is by itself.
  static bool is_worth_it(const Tensor& weights, std::int64_t groups) {
    constexpr std::int64_t kChannels = 16, kDepth = 64, kOutputs = 32;
    const std::int64_t channels = weights.dim(1), depth = channels * weights.shape().numel(2, weights.rank());
    if (channels == 1 && groups > 1) return true;
    return channels >= kChannels && depth >= kDepth && weights.dim(0) / std::max<std::int64_t>(groups, 1) >= kOutputs;
  }

  bool fits_product(const Node& node, const Unit& unit) const {
    const auto &a = graph_.value(node.inputs[0]).type.shape, &b = graph_.value(node.inputs[1]).type.shape;
    // What is no constant has to be packed on each run, which floats do not need.
    const Tensor* weights = constant(graph_, unit.inputs[1].codes);
    if (!types_fit(unit) || !a || !b || a->size() < 2 || b->size() < 2 || !unit.inputs[0].uniform() ||
        weights == nullptr || weights->rank() != b->size() || weights->numel() == 0)
      return false;
    if (is(node, kGemm) && (node.attributes.get_int("transA", 0) != 0 || node.attributes.get_float("beta", 1) != 1))
      return false;
    return unit.inputs[1].uniform() ||
           (weights->rank() == 2 && unit.inputs[1].fits(weights->shape(), columns_first(node) ? 0 : 1));
  }

  /// Whether outputs lie along the first axis of the weights, not along the second.
  static bool columns_first(const Node& node) { return is(node, kConv) || node.attributes.get_int("transB", 0) != 0; }

  /// A bias of 32-bit codes whose step is that of the products: they are added as they are. False where it is another.
  bool take_bias(const Node& node, Unit& unit) const {
    if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return true;
    constexpr float kRounding = 1e-6f;  // of a product of two scales
    unit.bias = dequantized(node.inputs[2]);
    if (!unit.bias || unit.bias->type != DType::Int32 || unit.bias->zero_at_first() != 0 || !unit.bias->one_zero())
      return false;
    const Tensor* codes = constant(graph_, unit.bias->codes);
    const Codes& weights = unit.inputs[1];
    const std::int64_t outputs = constant(graph_, weights.codes)->dim(columns_first(node) ? 0 : 1);
    if (codes == nullptr || codes->rank() != 1 || codes->dim(0) != outputs || !unit.bias->fits(codes->shape(), 0))
      return false;
    const float step = unit.inputs[0].scale_at(0) * node.attributes.get_float("alpha", 1);
    for (std::int64_t i = 0; i < std::max(weights.scales.numel(), unit.bias->scales.numel()); ++i) {
      const float wanted = step * weights.scale_at(i);
      if (!(std::abs(unit.bias->scale_at(i) - wanted) <= kRounding * std::abs(wanted))) return false;
    }
    return true;
  }

  /// Scale and zero point of a node that quantizes or dequantizes; none where they are not constant or of odd kinds.
  std::optional<Codes> read(NodeId by, ValueId codes) const {
    const Node& node = graph_.node(by);
    if (!runs_on_cpu(node) || codes == kNoValue || node.attributes.get_int("block_size", 0) != 0) return std::nullopt;
    Codes out{.by = by, .codes = codes, .scale = node.inputs[1]};
    out.type = graph_.value(codes).type.elem;
    const Tensor* known = constant(graph_, out.scale);
    if (known == nullptr || known->dtype() != DType::Float32 || known->rank() > 1) return std::nullopt;
    out.scales = *known;
    const auto scales = known->span<float>();
    if (scales.empty() || !std::ranges::all_of(scales, [](float s) { return s > 0 && std::isfinite(s); }))
      return std::nullopt;
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
      out.zero = node.inputs[2];
      const Tensor* zeros = constant(graph_, out.zero);
      if (zeros == nullptr || zeros->dtype() != out.type || zeros->rank() > 1 || zeros->numel() != known->numel())
        return std::nullopt;
      out.zeros = *zeros;
    }
    if (out.uniform()) return out;
    const auto& shape = graph_.value(codes).type.shape;
    if (!shape) return std::nullopt;
    out.axis = node.attributes.get_int("axis", 1);
    if (out.axis < 0) out.axis += static_cast<std::int64_t>(shape->size());
    return out;
  }

  std::optional<Codes> dequantized(ValueId value) const {
    const NodeId by = value == kNoValue ? kNoNode : graph_.value(value).producer;
    if (by == kNoNode || !is_dequantizer(graph_.node(by)) || graph_.value(value).type.elem != DType::Float32)
      return std::nullopt;
    return read(by, graph_.node(by).inputs[0]);
  }

  const Node* only_reader(ValueId value, NodeId& id) const {
    if (value == kNoValue) return nullptr;
    const auto& readers = consumers_[static_cast<std::size_t>(value)];
    if (graph_.is_output(value) || readers.size() != 1) return nullptr;
    id = readers[0];
    const Node& reader = graph_.node(id);
    return reader.inputs.empty() || reader.inputs[0] != value || reader.removed ? nullptr : &reader;
  }

  /// What the value becomes if all that reads it quantizes it, as it is or after activations that cut off what codes
  /// cannot say anyway. Those nodes are added to `nodes`.
  std::optional<Codes> quantized(ValueId value, std::vector<NodeId>& nodes) const {
    std::vector<NodeId> path;
    NodeId id = kNoNode;
    const Node* reader = only_reader(value, id);
    if (reader != nullptr && kernel::traits_of(*reader, registry_).bounds != nullptr && runs_on_cpu(*reader)) {
      path.push_back(id);
      reader = only_reader(reader->outputs[0], id);
    }
    if (reader == nullptr || !is_quantizer(*reader)) return std::nullopt;
    const auto out = read(id, reader->outputs[0]);
    if (!out || !out->uniform() || !is_byte(out->type)) return std::nullopt;
    if (!path.empty() && !is_implied(graph_.node(path[0]), *out)) return std::nullopt;
    path.push_back(id);
    nodes.insert(nodes.end(), path.begin(), path.end());
    return out;
  }

  /// Whether what the activation cuts off would have become the least or the largest code.
  bool is_implied(const Node& node, const Codes& out) const {
    const float least = out.type == DType::Int8 ? -128 : 0, most = least + 255;
    const auto code = [&](float value) {
      return std::nearbyint(value / out.scale_at(0)) + static_cast<float>(out.zero_at_first());
    };
    const auto bounds = kernel::traits_of(node, registry_).bounds({graph_, node});
    return bounds && bounds->low <= bounds->high && code(bounds->low) <= least && code(bounds->high) >= most;
  }

  const Graph& graph_;
  const kernel::Registry& registry_;
  const std::vector<std::vector<NodeId>> consumers_;
};

/// Puts the operator for codes in the place of a unit.
class Builder {
 public:
  Builder(Graph& graph, const kernel::Registry& registry, const Unit& unit)
      : graph_(graph), registry_(registry), unit_(unit), patch_(graph) {}

  void run() {
    const Node& old = graph_.node(unit_.nodes[0]);
    Node node;
    node.name = old.name;
    node.provider = old.provider;
    node.attributes = old.attributes;
    node.domain = kMicrosoft;
    node.opset = 1;
    node.outputs = {unit_.output ? unit_.output->codes : old.outputs[0]};
    if (is(old, kGemm)) {
      make_gemm(node);
    } else if (is(old, kMatMul) && !unit_.output) {
      const Codes &a = unit_.inputs[0], &b = unit_.inputs[1];
      node.op_type = kMatMulToFloat;
      node.inputs = {a.codes, b.codes, a.scale, b.scale, zero(a), zero(b)};
    } else if (is(old, kConv) || is(old, kMatMul)) {  // of the standard
      node.domain.clear();
      node.opset = old.opset;
      node.op_type = kOnCodes + old.op_type;
      take(node, unit_.inputs);
      take_output(node);
      if (unit_.bias) node.inputs.push_back(unit_.bias->codes);
    } else {
      make_simple(node, old);
    }
    patch_.add_node(std::move(node), unit_.nodes);
    for (const NodeId id : unit_.nodes) patch_.remove_node(id);
    patch_.apply();
  }

 private:
  void make_gemm(Node& node) {
    node.op_type = kGemmOnCodes;
    node.attributes.erase("beta");
    take(node, unit_.inputs);
    node.inputs.push_back(unit_.bias ? unit_.bias->codes : kNoValue);
    if (unit_.output) take_output(node);
    if (node.inputs.back() == kNoValue) node.inputs.pop_back();
  }
  /// Of any number of inputs, what is said of the output comes first.
  void make_simple(Node& node, const Node& old) {
    const kernel::OpTraits& traits = kernel::traits_of(old, registry_);
    const bool joins = traits.axes == kernel::Axes::Joined;
    node.op_type = traits.on_codes;
    for (std::size_t i = 0; i < first_float(graph_, old); ++i) node.inputs.push_back(old.inputs[i]);
    if (joins) take_output(node);
    take(node, unit_.inputs);
    if (!joins) take_output(node);
  }
  void take(Node& node, const std::vector<Codes>& all) {
    for (const Codes& in : all) {
      for (const ValueId id : {in.codes, in.scale, zero(in)}) node.inputs.push_back(id);
    }
  }
  void take_output(Node& node) {
    node.inputs.push_back(unit_.output->scale);
    node.inputs.push_back(zero(*unit_.output));
  }
  /// Some operators want one, and it says the type of the output's codes.
  ValueId zero(const Codes& of) {
    if (of.zero != kNoValue) return of.zero;
    const Tensor zeros(of.type, of.scales.shape(),
                       tensor::zeroed_host_buffer(tensor::byte_size(of.type, of.scales.numel())));
    return patch_.add_constant(graph_.value(of.codes).name + "_zero", zeros);
  }

  Graph& graph_;
  const kernel::Registry& registry_;
  const Unit& unit_;
  graph::GraphPatch patch_;
};

}  // namespace

std::set<NodeId> dequantizers_of_units(const Graph& graph, const PassOptions& options) {
  std::set<NodeId> out;
  const Finder finder(graph, options);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.node_count()); ++id) {
    const auto unit = finder.find(id);
    if (!unit) continue;
    for (const Codes& in : unit->inputs) out.insert(in.by);
    if (unit->bias) out.insert(unit->bias->by);
  }
  return out;
}

bool fuse_quantized_units(Graph& graph, const PassOptions& options) {
  const Finder finder(graph, options);  // a unit's nodes are no other one's: what it says of the rest stays true
  bool changed = false;
  for (const NodeId id : graph::topological_order(graph, options)) {
    options.check();
    const auto unit = finder.find(id);
    if (!unit) continue;
    Builder(graph, *options.registry, *unit).run();
    changed = true;
  }
  return changed;
}

}  // namespace infernode::passes
