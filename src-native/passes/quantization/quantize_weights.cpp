#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
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
using tensor::Tensor;

constexpr float kLeastCode = -128, kMostCode = 127;

bool takes_weights(const Node& node, const kernel::Registry& registry) {
  if (!node.domain.empty() || node.inputs.size() < 2) return false;
  return is(node, kGemm) || kernel::traits_of(node, registry).product == kernel::Product::Convolution;
}
/// The axis of the weights along which the node's output channels lie.
std::int64_t channel_axis(const Node& node) {
  if (is(node, kConv)) return 0;
  return is(node, kGemm) && node.attributes.get_int("transB", 0) != 0 ? 0 : 1;
}
const Tensor* floats(const Graph& graph, ValueId id) {
  const Tensor* tensor = constant(graph, id);
  return tensor != nullptr && tensor->dtype() == DType::Float32 ? tensor : nullptr;
}

/// (code - zero) * scale stands for an element; zero is 0 for int32.
struct Codes {
  Tensor codes;
  Tensor scale;  ///< a scalar, or one for each element
  std::int8_t zero = 0;
};

/// To the nearest whole number, halves to even; for less than 2^22. Inlined, unlike the library's, and there are
/// millions of weights.
float rounded(float v) {
  constexpr float kShift = 12582912;  // 1.5 * 2^23: at this size floats are whole numbers
  return (v + kShift) - kShift;
}
std::int8_t code_of(float v) { return static_cast<std::int8_t>(std::clamp(v, kLeastCode, kMostCode)); }

/// 256 steps from the least to the largest element and 0. Empty where no float can be such a step.
std::optional<Codes> quantize_weights(const Tensor& weights) {
  float low = 0, high = 0;
  bool finite = true;
  for (const float w : weights.span<float>()) {
    finite &= std::abs(w) <= std::numeric_limits<float>::max();
    low = std::min(low, w);
    high = std::max(high, w);
  }
  const float scale = low == high ? 1 : (high - low) / (kMostCode - kLeastCode);
  if (!finite || !std::isfinite(scale) || scale == 0) return std::nullopt;
  const float zero = std::clamp(rounded(kLeastCode - low / scale), kLeastCode, kMostCode);
  Codes out{Tensor::make(DType::Int8, weights.shape()), Tensor::scalar(scale), code_of(zero)};
  std::ranges::transform(weights.span<float>(), out.codes.mutable_data<std::int8_t>(),
                         [&](float w) { return code_of(rounded(w / scale) + zero); });
  return out;
}

/// Multiples of the products' scale: the input's times that of the weights. Empty where 32 bits do not hold them.
std::optional<Codes> quantize_bias(const Tensor& bias, float input, const Tensor& weights) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const bool each = weights.numel() != 1;
  if (each && weights.numel() != bias.numel()) return std::nullopt;
  Codes out{Tensor::make(DType::Int32, bias.shape()), weights.clone()};
  if (!each) out.scale = out.scale.reshaped({});
  for (float& scale : out.scale.mutable_span<float>()) {
    scale *= input;
    if (!std::isfinite(scale) || scale <= 0) return std::nullopt;
  }
  const auto from = bias.span<float>(), scale = std::as_const(out.scale).span<float>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const double code = std::nearbyint(from[i] / scale[each ? i : 0]);
    if (!(std::abs(code) <= kMost)) return std::nullopt;
    out.codes.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(code);
  }
  return out;
}

/// What a DequantizeLinear gives.
Tensor dequantized(const Codes& in) {
  Tensor out = Tensor::make(DType::Float32, in.codes.shape());
  const float scale = tensor::to_float_scalar(in.scale);
  std::ranges::transform(in.codes.span<std::int8_t>(), out.mutable_data<float>(),
                         [&](std::int8_t code) { return static_cast<float>(code - in.zero) * scale; });
  return out;
}

class Quantizer {
 public:
  Quantizer(Graph& graph, const PassOptions& options)
      : graph_(graph), options_(options), consumers_(graph::consumers(graph, options)) {}

  bool run() {
    bool changed = false;
    for (const NodeId id : graph::topological_order(graph_, options_)) {
      options_.check();
      changed = quantize(id) || changed;
    }
    return changed;
  }

 private:
  struct Rounded {
    ValueId value;
    Tensor scale;
  };

  bool quantize(NodeId id) {
    const Node& node = graph_.node(id);
    if (!takes_weights(node, *options_.registry) || !becomes_codes(id)) return false;
    const NodeId input = maker(node.inputs[0]), coded = maker(node.inputs[1]);
    const float* scale = input != kNoNode ? scale_of_codes(graph_.node(input)) : nullptr;
    if (scale == nullptr) return false;
    const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    const Tensor* added = floats(graph_, bias);
    if (bias != kNoValue && (added == nullptr || added->rank() != 1)) return false;
    if (coded == kNoNode) return round_both(id, added, *scale, input);
    const Tensor* scales = scales_of_channels(node, graph_.node(coded));
    return added != nullptr && scales != nullptr && round_bias(id, *added, *scale, *scales, coded);
  }

  bool round_bias(NodeId id, const Tensor& bias, float input, const Tensor& weights, NodeId like) {
    const auto codes = quantize_bias(bias, input, weights);
    if (!codes) return false;
    graph::GraphPatch patch(graph_);
    patch.set_input(id, 2, dequantize(patch, graph_.node(id).inputs[2], *codes, like));
    patch.apply();
    return true;
  }

  bool round_both(NodeId id, const Tensor* bias, float input, NodeId like) {
    const std::vector<ValueId> inputs = graph_.node(id).inputs;
    const Tensor* weights = floats(graph_, inputs[1]);
    if (weights == nullptr) return false;
    auto known = rounded_.find(inputs[1]);
    const auto codes = known == rounded_.end() ? quantize_weights(*weights) : std::nullopt;
    if (known == rounded_.end() && !codes) return false;
    const Tensor scale = codes ? codes->scale : known->second.scale;
    const auto multiples = bias != nullptr ? quantize_bias(*bias, input, scale) : std::nullopt;
    if (bias != nullptr && !multiples) return false;
    graph::GraphPatch patch(graph_);
    if (codes) {
      // As folding would give, which leaves large ones to the run.
      const ValueId value = options_.keep_dequantizers || options_.keep_codes
                                ? dequantize(patch, inputs[1], *codes, like)
                                : patch.add_constant(name_of(inputs[1], "_rounded"), dequantized(*codes));
      known = rounded_.emplace(inputs[1], Rounded{value, scale}).first;
    }
    patch.set_input(id, 1, known->second.value);
    if (multiples) patch.set_input(id, 2, dequantize(patch, inputs[2], *multiples, like));
    patch.apply();
    return true;
  }

  std::string name_of(ValueId value, const char* suffix) const { return graph_.value(value).name + suffix; }
  NodeId maker(ValueId value) const { return value == kNoValue ? kNoNode : graph_.value(value).producer; }

  /// The scale, where the node makes floats of 8- or 16-bit codes with a constant one for all.
  const float* scale_of_codes(const Node& node) const {
    if (!is_dequantizer(node)) return nullptr;
    const DType type = graph_.value(node.inputs[0]).type.elem;
    const Tensor* scale = floats(graph_, node.inputs[1]);
    const bool codes = type == DType::Int8 || type == DType::UInt8 || type == DType::Int16 || type == DType::UInt16;
    return codes && scale != nullptr && scale->numel() == 1 && scale->rank() <= 1 ? scale->data<float>() : nullptr;
  }

  /// The scales of weights that are dequantized: one, or one for each channel of the output.
  const Tensor* scales_of_channels(const Node& node, const Node& coded) const {
    if (!is_dequantizer(coded) || coded.attributes.get_int("block_size", 0) != 0) return nullptr;
    const Tensor* scale = floats(graph_, coded.inputs[1]);
    if (scale == nullptr || scale->rank() > 1) return nullptr;
    const auto& shape = graph_.value(coded.inputs[0]).type.shape;
    std::int64_t axis = coded.attributes.get_int("axis", 1);
    if (axis < 0 && shape) axis += static_cast<std::int64_t>(shape->size());
    return scale->numel() == 1 || axis == channel_axis(node) ? scale : nullptr;
  }

  /// Cuts off elements, or takes the largest: codes would do as well.
  bool keeps_order(const Node& node) const {
    const kernel::OpTraits& traits = kernel::traits_of(node, *options_.registry);
    return traits.bounds != nullptr || traits.moves == kernel::Moves::Largest;
  }
  /// Whether the output is quantized and nothing else, as it is or after what cuts off (Relu, Clip) or takes the
  /// largest (MaxPool).
  bool becomes_codes(NodeId id) const {
    const Node* reader = &graph_.node(id);
    do {
      reader = only_reader(*reader);
    } while (reader != nullptr && keeps_order(*reader));
    return reader != nullptr && is_quantizer(*reader);
  }
  const Node* only_reader(const Node& node) const {
    if (node.outputs[0] == kNoValue) return nullptr;  // a MaxPool of which only the places are read
    const auto& readers = consumers_[static_cast<std::size_t>(node.outputs[0])];
    if (readers.size() != 1 || graph_.node(readers[0]).inputs.empty()) return nullptr;
    const Node& reader = graph_.node(readers[0]);
    return reader.inputs[0] == node.outputs[0] ? &reader : nullptr;
  }

  /// What stands for a value: a DequantizeLinear of the same domain and version as another one.
  ValueId dequantize(graph::GraphPatch& patch, ValueId value, const Codes& codes, NodeId like) const {
    Node node;
    node.domain = graph_.node(like).domain;
    node.op_type = graph_.node(like).op_type;
    node.opset = graph_.node(like).opset;
    node.inputs = {patch.add_constant(name_of(value, "_codes"), codes.codes),
                   patch.add_constant(name_of(value, "_scale"), codes.scale)};
    if (codes.codes.dtype() == DType::Int8)
      node.inputs.push_back(patch.add_constant(name_of(value, "_zero"), Tensor::scalar(codes.zero)));
    if (codes.scale.rank() == 1) node.attributes.set("axis", std::int64_t{0});
    const ValueId out = patch.add_value(name_of(value, "_rounded"), graph::ValueType::tensor(DType::Float32));
    node.outputs = {out};
    patch.add_node(std::move(node));
    return out;
  }

  Graph& graph_;
  const PassOptions& options_;
  const std::vector<std::vector<NodeId>> consumers_;
  std::map<ValueId, Rounded> rounded_;  ///< by the weights, which nodes may share
};

}  // namespace

bool may_quantize_weights(const Graph& graph, const PassOptions& options) {
  const auto coded = [&](ValueId id) {
    const NodeId maker = id == kNoValue ? kNoNode : graph.value(id).producer;
    return id == kNoValue || (maker != kNoNode && is_dequantizer(graph.node(maker)));
  };
  bool quantizes = false, takes = false;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.node_count()); ++id) {
    const Node& node = graph.node(id);
    if (node.removed) continue;
    quantizes = quantizes || is_quantizer(node);
    takes = takes || is(node, kMatMul) ||  // may become a Gemm
            (takes_weights(node, *options.registry) && !std::all_of(node.inputs.begin() + 1, node.inputs.end(), coded));
  }
  return quantizes && takes;
}

bool quantize_weights(Graph& graph, const PassOptions& options) { return Quantizer(graph, options).run(); }

}  // namespace infernode::passes
