#include "transform/static_marks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "graph/uses.h"
#include "transform/weights.h"

namespace infernode::transform {

using graph::Graph;
using graph::GraphPatch;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

namespace {

template <std::size_t N>
bool is_one_of(const Node& node, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, node.op_type) != names.end();
}

/// Operators whose first output has elements of their first input, or means of some.
constexpr std::array<std::string_view, 10> kPassing = {"Reshape", "Transpose",   "Squeeze", "Unsqueeze", "Flatten",
                                                       "Slice",   "AveragePool", "TopK",    "MaxPool",   "Resize"};
constexpr std::array<std::string_view, 2> kGathers = {"Gather", "GatherElements"};
constexpr std::array<std::string_view, 2> kClamps = {"Relu", "Clip"};
constexpr std::array<std::string_view, 3> kNormalizations = {"InstanceNormalization", "LayerNormalization",
                                                             "BatchNormalization"};

bool is_convolution(const Node& node) { return node.op_type == "Conv" || node.op_type == "ConvTranspose"; }

/// The version from which on the operator takes codes; 0 where all do.
std::int64_t least_version(const Node& node) {
  return node.op_type == "MaxPool" ? 12 : node.op_type == "Resize" ? 11 : 0;
}

std::optional<float> scalar_of(const Graph& graph, const Node& node, std::size_t input) {
  if (node.inputs.size() <= input) return {};
  const Tensor* tensor = constant_of(graph, node.inputs[input]);
  if (tensor == nullptr || tensor->dtype() != DType::Float32 || tensor->numel() != 1) return {};
  return tensor->data<float>()[0];
}

/// `OPERATOR:AXIS` each.
std::map<std::string, std::int64_t, std::less<>> axes_of(const std::vector<std::string>& texts) {
  std::map<std::string, std::int64_t, std::less<>> axes;
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    std::int64_t axis = 0;
    const char* end = text.data() + text.size();
    const bool whole = colon != std::string::npos &&
                       std::from_chars(text.data() + colon + 1, end, axis) == std::from_chars_result{end, std::errc{}};
    if (!whole) {
      fail(ErrorCode::InvalidArgument,
           cat("QDQOpTypePerChannelSupportToAxis has '", text, "', which is no operator and axis as MatMul:1"));
    }
    axes[text.substr(0, colon)] = axis;
  }
  return axes;
}

}  // namespace

void check_unquantized(const Graph& graph) {
  constexpr std::array<std::string_view, 6> kMade = {
      "QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QGemm", "DynamicQuantizeMatMul"};
  std::size_t count = 0;
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(static_cast<NodeId>(i));
    if (!node.removed && (is_one_of(node, kMade) || node.op_type.starts_with("QLinear"))) ++count;
  }
  if (count > 0) fail(ErrorCode::InvalidModel, cat("the model is quantized already: ", count, " of its nodes are"));
}

StaticMarks::StaticMarks(const Graph& graph, const Settings& settings, ValueRanges& ranges)
    : graph_(graph),
      ranges_(ranges),
      axes_(axes_of(settings.texts("QDQOpTypePerChannelSupportToAxis"))),
      per_channel_(settings.flag("perChannel")),
      symmetric_(settings.flag("ActivationSymmetric")),
      restricted_(settings.flag("ActivationRestrictedAsymmetric")),
      force_(settings.flag("ForceQuantizeNoInputCheck")),
      const_b_only_(settings.flag("MatMulConstBOnly")),
      keep_(settings.flag("QDQKeepRemovableActivations")),
      quantize_bias_(settings.flag("QuantizeBias")) {
  for (const std::vector<NodeId>& readers : graph.consumers()) readers_.push_back(readers.size());
  const std::vector<std::string>& excluded = settings.texts("OpTypesToExcludeOutputQuantization");
  no_outputs_ = {excluded.begin(), excluded.end()};
  adjust_ranges(settings);
}

/// What Relu and Clip read has their results' range where nothing else reads it; Softmax makes numbers from 0 to 1.
void StaticMarks::adjust_ranges(const Settings& settings) {
  const NodeChoice choice(graph_, settings, "nodesToQuantize");
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.node(static_cast<NodeId>(i));
    if (node.removed || !choice.has_type(node) || !choice.refusal(node).empty()) continue;
    const ValueId output = node.outputs.at(0);
    if (node.op_type == "Softmax" && ranges_.contains(output)) ranges_[output] = {0, 1};
    if (!is_one_of(node, kClamps)) continue;
    const ValueId input = node.inputs.at(0);
    const bool alone = readers_.at(static_cast<std::size_t>(input)) == 1 && !graph_.is_output(input);
    if (alone && ranges_.contains(input) && ranges_.contains(output)) ranges_[input] = ranges_[output];
  }
}

ValueId StaticMarks::resolve(ValueId id) const {
  const auto at = instead_.find(id);
  return at == instead_.end() ? id : at->second;
}

bool StaticMarks::can_have_codes(ValueId id) const {
  if (id == graph::kNoValue) return false;
  id = resolve(id);
  if (const Tensor* constant = constant_of(graph_, id))
    return constant->dtype() == DType::Float32 && constant->numel() > 0;
  const graph::ValueInfo& value = graph_.value(id);
  const bool has_been = value.producer != graph::kNoNode && graph_.node(value.producer).op_type == "DequantizeLinear";
  if (has_been || !value.type.is_tensor() || value.type.elem != DType::Float32) return false;
  if (ranges_.contains(id)) return true;
  fail(ErrorCode::InvalidArgument, cat("the ranges of the calibration lack that of '", value.name,
                                       "': they are of another model, or of other options"));
}

std::string StaticMarks::refusal(const Node& node) const {
  const auto can = [this](ValueId id) { return can_have_codes(id); };
  if (std::ranges::none_of(node.inputs, can) && std::ranges::none_of(node.outputs, can))
    return "none of its values are float32";
  if (node.opset < least_version(node)) return cat("its operator set is older than version ", least_version(node));
  if (const_b_only_ && node.op_type == "MatMul" && constant_of(graph_, node.inputs.at(1)) == nullptr)
    return "its second input is no constant";
  const bool gather = is_one_of(node, kGathers);
  const bool clamp = is_one_of(node, kClamps);
  if (clamp || ((gather || is_one_of(node, kPassing)) && !force_)) {
    const bool table = gather && constant_of(graph_, node.inputs.at(0)) != nullptr;
    if (!table && !is_marked(node.inputs.at(0))) return "its input is not quantized";
  }
  if (node.op_type == "Where" && !force_ && !(is_marked(node.inputs.at(1)) && is_marked(node.inputs.at(2))))
    return "its inputs are not quantized";
  return "";
}

std::string StaticMarks::mark(NodeId id, const Node& node, GraphPatch& patch) {
  if (is_one_of(node, kClamps)) return mark_clamp(id, node, patch);
  nodes_.push_back(id);
  if (is_convolution(node)) {
    mark_product(id, node, node.op_type == "Conv" ? 0 : 1);
  } else if (node.op_type == "Gemm") {
    mark_product(id, node, node.attributes.get_int("transB", 0) != 0 ? 0 : 1);
  } else if (node.op_type == "MatMul") {
    mark_matmul(node);
  } else if (is_one_of(node, kNormalizations)) {
    mark_normalization(id, node);
  } else if (is_one_of(node, kPassing) || is_one_of(node, kGathers) || node.op_type == "Split") {
    mark_passing(node);
  } else if (node.op_type == "Pad") {
    mark_pad(node);
  } else if (node.op_type == "Where") {
    activation(node.inputs.at(1));
    activation(node.inputs.at(2));
    outputs(node);
  } else {
    activations(node.inputs);
    outputs(node);
  }
  return "QDQ " + node.op_type;
}

void StaticMarks::activation(ValueId id) {
  if (can_have_codes(id)) values_.emplace(resolve(id), Mark{});
}

void StaticMarks::activations(const std::vector<ValueId>& ids) {
  for (const ValueId id : ids) activation(id);
}

void StaticMarks::outputs(const Node& node) {
  if (wants_output(node)) activations(node.outputs);
}

void StaticMarks::weight(ValueId id, const Node& node, std::int64_t axis) {
  const Tensor* constant = constant_of(graph_, id);
  if (constant == nullptr) return activation(id);
  if (!can_have_codes(id)) return;
  if (const auto at = axes_.find(node.op_type); at != axes_.end()) axis = at->second;
  const auto rank = static_cast<std::int64_t>(constant->rank());
  if (axis < 0) axis += rank;
  const bool each = per_channel_ && axis >= 0 && axis < rank;
  Mark mark{.weight = true, .axis = {}, .like = graph::kNoValue};
  if (each) mark.axis = static_cast<std::size_t>(axis);
  if (each) {
    values_.insert_or_assign(id, mark);
  } else {
    values_.emplace(id, mark);
  }
}

void StaticMarks::same(ValueId output, ValueId input) {
  if (!can_have_codes(output) || !is_marked(input)) return;
  values_.insert_or_assign(resolve(output), Mark{.weight = false, .axis = {}, .like = resolve(input)});
}

void StaticMarks::bias(NodeId id, const Node& node) {
  if (!quantize_bias_ || !has_bias(node) || constant_of(graph_, node.inputs[2]) == nullptr) return;
  if (!can_have_codes(node.inputs[2]) || node.attributes.get_float("beta", 1) != 1) return;
  biases_.push_back({id, 2, resolve(node.inputs.at(0)), resolve(node.inputs.at(1))});
}

void StaticMarks::mark_product(NodeId id, const Node& node, std::int64_t axis) {
  activation(node.inputs.at(0));
  outputs(node);
  weight(node.inputs.at(1), node, axis);
  bias(id, node);
}

/// Weights have a scale for each column: the last axis of a matrix or of many.
void StaticMarks::mark_matmul(const Node& node) {
  for (const ValueId input : node.inputs) {
    const Tensor* constant = constant_of(graph_, input);
    weight(input, node, constant != nullptr && constant->rank() < 2 ? 1 : -1);
  }
  outputs(node);
}

void StaticMarks::mark_normalization(NodeId id, const Node& node) {
  activation(node.inputs.at(0));
  weight(node.inputs.at(1), node, 1);
  bias(id, node);
  outputs(node);
}

/// Outputs have the scale of what they are elements of.
void StaticMarks::mark_passing(const Node& node) {
  const bool split = node.op_type == "Split";
  if (split || force_ || constant_of(graph_, node.inputs.at(0)) != nullptr) activation(node.inputs.at(0));
  if (!wants_output(node)) return;
  const std::size_t count = split ? node.outputs.size() : 1;
  for (std::size_t i = 0; i < count; ++i) same(node.outputs[i], node.inputs[0]);
}

/// All ranges hold 0.
void StaticMarks::mark_pad(const Node& node) {
  activations(node.inputs);
  if (!wants_output(node)) return;
  const bool constant = node.attributes.get_string("mode", "constant") == "constant";
  const bool has_value = node.inputs.size() > 2 && node.inputs[2] != graph::kNoValue;
  const std::optional<float> value = has_value ? scalar_of(graph_, node, 2) : node.attributes.get_float("value", 0);
  if (constant && value != 0.0f) return outputs(node);
  same(node.outputs.at(0), node.inputs.at(0));
}

/// Whether the range of the codes of what the node reads does its work.
bool StaticMarks::is_superfluous(const Node& node) const {
  const ValueId input = node.inputs.at(0), output = node.outputs.at(0);
  if (symmetric_ || keep_ || !wants_output(node) || !can_have_codes(output)) return false;
  if (readers_.at(static_cast<std::size_t>(input)) != 1 || graph_.is_output(input)) return false;
  if (graph_.value(input).producer == graph::kNoNode || constant_of(graph_, input) != nullptr) return false;
  // Where the zero of codes is not where it would be, they reach further than the range.
  const Range range = ranges_.at(output);
  if (restricted_ && range.least < 0) return false;
  constexpr float kFar = std::numeric_limits<float>::infinity();
  if (node.op_type == "Relu") return range.least >= 0;
  const auto bound = [&](std::size_t index, std::string_view name, float otherwise) -> std::optional<float> {
    const bool given = node.inputs.size() > index && node.inputs[index] != graph::kNoValue;
    return given ? scalar_of(graph_, node, index) : node.attributes.get_float(name, otherwise);
  };
  const std::optional<float> least = bound(1, "min", -kFar), largest = bound(2, "max", kFar);
  return least && largest && range.least >= *least && range.largest <= *largest;
}

std::string StaticMarks::mark_clamp(NodeId id, const Node& node, GraphPatch& patch) {
  const ValueId output = node.outputs.at(0);
  if (!is_superfluous(node)) {
    nodes_.push_back(id);
    activation(node.inputs.at(0));
    outputs(node);
    return "QDQ " + node.op_type;
  }
  const ValueId input = resolve(node.inputs.at(0));
  instead_[output] = input;
  ranges_[input] = ranges_.at(output);
  values_.insert_or_assign(input, Mark{});
  patch.remove_node(id);
  patch.replace_uses(output, input);
  return "QuantizeLinear";
}

}  // namespace infernode::transform
