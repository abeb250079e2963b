// Codes of few bits for weights and, by ranges that a calibration found, for activations: what
// onnxruntime.quantization.quantize_static makes in its format QDQ.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "graph/operator_names.h"
#include "graph/patch.h"
#include "kernel/inference.h"
#include "transform/static_marks.h"
#include "transform/tensor_codes.h"
#include "transform/transformation.h"
#include "transform/weights.h"

namespace infernode::transform {

namespace {

using graph::Graph;
using graph::GraphPatch;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

DType type_of(std::string_view option, const std::string& name) {
  const std::pair<std::string_view, DType> kTypes[] = {{"QInt8", DType::Int8},   {"QUInt8", DType::UInt8},
                                                       {"QInt16", DType::Int16}, {"QUInt16", DType::UInt16},
                                                       {"QInt4", DType::Int4},   {"QUInt4", DType::UInt4}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  fail(ErrorCode::InvalidArgument, cat(option, " is '", name, "', which is no type of codes"));
}

/// Codes of other than 8 bits came to the standard's operators with that version, and scales of channels with the
/// other.
constexpr std::int64_t kAllTypesOpset = 21, kChannelsOpset = 13, kLeastOpset = 10;

/// Ends the names of what QuantizeLinear and DequantizeLinear make.
constexpr std::string_view kMade = "_Output";

/// How values are written as codes.
struct Formats {
  explicit Formats(const Settings& settings)
      : per_channel(settings.flag("perChannel")),
        restricted(settings.flag("ActivationRestrictedAsymmetric")),
        weight_symmetric(settings.flag("WeightSymmetric")) {
    activation.type = type_of("activationType", settings.text("activationType"));
    activation.symmetric = settings.flag("ActivationSymmetric");
    activation.least_length = static_cast<float>(settings.number("MinimumRealRange"));
    weight.type = type_of("weightType", settings.text("weightType"));
    weight.reduced = settings.flag("reduceRange");
    weight.least_length = activation.least_length;
    if (activation.type == DType::Int8 && weight.type == DType::UInt8)
      fail(ErrorCode::InvalidArgument, "weightType QUInt8 needs an activationType that is unsigned, too");
  }

  TensorFormat of_constant(const Mark& mark) const {
    TensorFormat format = mark.weight ? weight : activation;
    format.reduced = weight.reduced;
    format.axis = mark.axis;
    format.symmetric = mark.axis ? true : mark.weight ? weight_symmetric : activation.symmetric;
    return format;
  }
  Scale of_activation(Range range) const {
    const bool snapped = restricted && activation.type == DType::UInt8 && !activation.symmetric;
    return snapped ? restricted_scale_of(range, activation) : scale_of(range, activation);
  }

  TensorFormat activation, weight;
  bool per_channel, restricted, weight_symmetric;
};

/// The domain of QuantizeLinear and DequantizeLinear, and its version.
struct Operators {
  std::string domain;
  std::int64_t opset;
};

Operators operators_of(const graph::Model& model, const Formats& formats, bool contrib) {
  const auto at = model.info.opsets.find("");
  const std::int64_t opset = at == model.info.opsets.end() ? 0 : at->second;
  const auto is_byte = [](DType type) { return type == DType::Int8 || type == DType::UInt8; };
  const bool bytes = is_byte(formats.activation.type) && is_byte(formats.weight.type);
  if (contrib || (!bytes && opset < kAllTypesOpset)) return {graph::kMicrosoft, 1};
  const std::int64_t least = formats.per_channel ? kChannelsOpset : kLeastOpset;
  if (opset < least) {
    fail(ErrorCode::InvalidModel, cat("the model's operator set is ", opset, ", and ",
                                      formats.per_channel ? "scales of channels need " : "QuantizeLinear needs ", least,
                                      " (UseQDQContribOps does without)"));
  }
  return {"", opset};
}

/// Adds what the marks say to a graph. All that reads a value with codes reads what its DequantizeLinear makes. That
/// takes two patches: QuantizeLinear alone still reads the value.
class QdqWriter {
 public:
  QdqWriter(Graph& graph, const StaticMarks& marks, const ValueRanges& ranges, const Formats& formats,
            Operators operators, const Settings& settings, const Context& context)
      : graph_(graph),
        marks_(marks),
        ranges_(ranges),
        formats_(formats),
        operators_(std::move(operators)),
        context_(context),
        pairs_for_weights_(settings.flag("AddQDQPairToWeight")),
        dedicated_(settings.flag("DedicatedQDQPair")),
        adjusts_(!settings.flag("QDQDisableWeightAdjustForInt32Bias")) {}

  void write() {
    find_scales();
    if (adjusts_) {
      for (const BiasMark& bias : marks_.biases()) adjust_weight(bias);
    }
    GraphPatch first(graph_), second(graph_);
    for (const BiasMark& bias : marks_.biases()) write_bias(bias, first);
    for (const auto& [id, mark] : marks_.values()) {
      context_.run.check();
      if (constant_of(graph_, id) != nullptr) {
        write_constant(id, mark, first, second);
      } else {
        write_activation(id, first, second);
      }
    }
    first.apply();
    second.apply();
    drop_unread();
  }

 private:
  /// The scales of a value's codes; more than one for channels.
  using Scales = std::vector<Scale>;
  struct ScaleIds {
    ValueId scale, zero;  ///< no zero: it is 0
  };

  /// The value whose scale it has.
  ValueId provider(ValueId id) const {
    const Mark* mark = &marks_.values().at(id);
    while (mark->like != graph::kNoValue && !marks_.values().at(mark->like).axis) {
      id = mark->like;
      mark = &marks_.values().at(id);
    }
    return id;
  }

  void find_scales() {
    for (const auto& entry : marks_.values()) {
      const ValueId id = entry.first;
      if (provider(id) != id) continue;
      const Tensor* constant = constant_of(graph_, id);
      if (constant == nullptr) {
        scales_[id] = {formats_.of_activation(ranges_.at(id))};
        continue;
      }
      const TensorFormat format = formats_.of_constant(entry.second);
      naming_weight(graph_, graph_.node(reader_of(id)), id, [&] {
        for (const Range& range : ranges_of(*constant, format.axis, context_.run))
          scales_[id].push_back(scale_of(range, format));
      });
    }
  }

  const Scales* scales_of(ValueId id) const {
    if (!marks_.values().contains(id)) return nullptr;
    const auto at = scales_.find(provider(id));
    return at == scales_.end() ? nullptr : &at->second;
  }

  /// Codes of a bias have 32 bits: where they would be larger, those of the weight are made smaller.
  void adjust_weight(const BiasMark& mark) {
    const auto weight = scales_.find(mark.weight);
    const Scales* input = scales_of(mark.input);
    const DType type = formats_.weight.type;
    if (weight == scales_.end() || input == nullptr || constant_of(graph_, mark.weight) == nullptr) return;
    const auto has_zero = [](const Scale& scale) { return scale.zero != 0; };
    if ((type != DType::Int8 && type != DType::Int16) || std::ranges::any_of(weight->second, has_zero)) return;
    const std::vector<float> bias = tensor::to_float_vector(*constant_of(graph_, bias_of(mark)));
    Scales& scales = weight->second;
    if (scales.size() > 1 && scales.size() != bias.size()) return;
    constexpr double kCodes = 2.0 * std::numeric_limits<std::int32_t>::max(), kMargin = 1.0001;
    for (std::size_t i = 0; i < bias.size(); ++i) {
      Scale& scale = scales[scales.size() > 1 ? i : 0];
      const double least = kMargin * 2 * std::abs(bias[i]) / kCodes;
      const double product = static_cast<double>(input->front().scale) * scale.scale;
      if (product > 0 && product < least) scale.scale = static_cast<float>(scale.scale * (least / product));
    }
  }

  ValueId bias_of(const BiasMark& mark) const { return graph_.node(mark.node).inputs.at(mark.index); }

  void write_bias(const BiasMark& mark, GraphPatch& patch) {
    const Scales *input = scales_of(mark.input), *weight = scales_of(mark.weight);
    const ValueId id = bias_of(mark);
    const Tensor bias = *constant_of(graph_, id);
    if (is_idle(graph_.node(mark.node), bias)) return patch.set_input(mark.node, mark.index, graph::kNoValue);
    if (input == nullptr || input->size() != 1 || weight == nullptr) return;
    const bool each = marks_.values().at(mark.weight).axis.has_value();
    if (each && bias.shape() != Shape{static_cast<std::int64_t>(weight->size())}) return;
    const Shape shape = each ? bias.shape() : Shape{};
    const Tensor scale = Tensor::make(DType::Float32, shape);
    for (std::size_t i = 0; i < weight->size(); ++i)
      scale.mutable_data<float>()[i] = input->front().scale * (*weight)[i].scale;
    const std::string name = graph_.value(id).name;
    const ValueId codes = patch.add_constant(name + "_quantized", bias_codes(bias, scale));
    const ValueId real = patch.add_value(cat(name, "_DequantizeLinear", kMade), graph_.value(id).type);
    const ScaleIds ids{patch.add_constant(name + "_quantized_scale", scale), graph::kNoValue};
    add("DequantizeLinear", codes, ids, real, each ? std::optional<std::size_t>(0) : std::nullopt, patch);
    patch.set_input(mark.node, mark.index, real);
    context_.let_go(bias);
  }

  /// Whether a node does without the bias: it is of zeros, as those are that exporters add to all convolutions.
  static bool is_idle(const Node& node, const Tensor& bias) {
    const bool optional = node.op_type == "Conv" || node.op_type == "ConvTranspose" || node.op_type == "Gemm";
    const auto is_zero = [](float value) { return value == 0; };
    return optional && std::ranges::all_of(bias.span<float>(), is_zero);
  }

  static Tensor bias_codes(const Tensor& bias, const Tensor& scale) {
    const Tensor codes = Tensor::make(DType::Int32, bias.shape());
    constexpr double kLeast = std::numeric_limits<std::int32_t>::min(),
                     kMost = std::numeric_limits<std::int32_t>::max();
    for (std::int64_t i = 0; i < bias.numel(); ++i) {
      const double code = std::nearbyint(static_cast<double>(bias.data<float>()[i]) /
                                         static_cast<double>(scale.data<float>()[scale.rank() > 0 ? i : 0]));
      codes.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(std::clamp(code, kLeast, kMost));
    }
    return codes;
  }

  void write_constant(ValueId id, const Mark& mark, GraphPatch& first, GraphPatch& second) {
    const std::string name = graph_.value(id).name;
    const Tensor held = *constant_of(graph_, id);
    const TensorCodes codes = encode(held, formats_.of_constant(mark), scales_.at(id), context_.run);
    const ScaleIds ids{first.add_constant(name + "_scale", codes.scale),
                       first.add_constant(name + "_zero_point", codes.zero)};
    made_.emplace(id, ids);
    const ValueId real = first.add_value(cat(name, "_DequantizeLinear", kMade), graph_.value(id).type);
    const ValueId coded = pairs_for_weights_ ? first.add_value(cat(name, "_QuantizeLinear", kMade))
                                             : first.add_constant(name + "_quantized", codes.codes);
    add("DequantizeLinear", coded, ids, real, mark.axis, first);
    if (pairs_for_weights_) add("QuantizeLinear", id, ids, coded, mark.axis, second);
    first.replace_uses(id, real);
    if (!pairs_for_weights_) context_.let_go(held);
  }

  void write_activation(ValueId id, GraphPatch& first, GraphPatch& second) {
    const std::string name = graph_.value(id).name;
    const ScaleIds ids = scale_ids(provider(id), first);
    const std::vector<Use> uses = dedicated_ ? uses_of(id) : std::vector<Use>();
    if (uses.size() < 2) {
      first.replace_uses(id, add_pair(id, name, ids, first, second));
      return;
    }
    for (const Use& use : uses) {
      const ValueId real = add_pair(id, name, ids, first, second);
      for (const std::size_t index : use.inputs) first.set_input(use.node, index, real);
    }
  }

  /// QuantizeLinear and DequantizeLinear of a value; what the latter makes.
  ValueId add_pair(ValueId id, const std::string& name, const ScaleIds& ids, GraphPatch& first, GraphPatch& second) {
    const ValueId coded = first.add_value(cat(name, "_QuantizeLinear", kMade));
    const ValueId real = first.add_value(cat(name, "_DequantizeLinear", kMade), graph_.value(id).type);
    add("DequantizeLinear", coded, ids, real, {}, first);
    add("QuantizeLinear", id, ids, coded, {}, second);
    return real;
  }

  /// A quantized node that reads a value, and at which inputs.
  struct Use {
    NodeId node;
    std::vector<std::size_t> inputs;
  };
  std::vector<Use> uses_of(ValueId id) const {
    std::vector<Use> uses;
    for (const NodeId node : marks_.nodes()) {
      Use use{node, {}};
      const std::vector<ValueId>& inputs = graph_.node(node).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == id) use.inputs.push_back(i);
      }
      if (!use.inputs.empty()) uses.push_back(std::move(use));
    }
    return uses;
  }

  ScaleIds scale_ids(ValueId id, GraphPatch& patch) {
    if (const auto at = made_.find(id); at != made_.end()) return at->second;
    const std::string name = graph_.value(id).name;
    const Scale scale = scales_.at(id).front();
    const Tensor zero = codes_tensor(formats_.activation.type, {}, {scale.zero});
    const ScaleIds ids{patch.add_constant(name + "_scale", Tensor::scalar(scale.scale)),
                       patch.add_constant(name + "_zero_point", zero)};
    return made_.emplace(id, ids).first->second;
  }

  /// Named by what it makes, whose name is the only one.
  void add(std::string op_type, ValueId from, const ScaleIds& ids, ValueId to, std::optional<std::size_t> axis,
           GraphPatch& patch) const {
    Node node;
    node.name = graph_.value(to).name;
    if (const std::size_t at = node.name.rfind(kMade); at != std::string::npos) node.name.erase(at, kMade.size());
    node.op_type = std::move(op_type);
    node.domain = operators_.domain;
    node.opset = operators_.opset;
    node.inputs = {from, ids.scale};
    if (ids.zero != graph::kNoValue) node.inputs.push_back(ids.zero);
    node.outputs = {to};
    if (axis) node.attributes.set("axis", static_cast<std::int64_t>(*axis));
    patch.add_node(std::move(node));
  }

  NodeId reader_of(ValueId id) const {
    const auto reads = [&](NodeId node) { return std::ranges::count(graph_.node(node).inputs, id) > 0; };
    return *std::ranges::find_if(marks_.nodes(), reads);
  }

  /// Constants that nothing reads any more go, also where a file lists them as inputs.
  void drop_unread() {
    const graph::Consumers readers = graph_.consumers();
    GraphPatch patch(graph_);
    for (std::size_t i = 0; i < readers.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (!readers[i].empty() || graph_.is_output(id) || constant_of(graph_, id) == nullptr) continue;
      graph::ValueInfo& value = graph_.value(id);
      if (value.producer != graph::kNoNode) {
        patch.remove_node(value.producer);
        continue;
      }
      value.constant = {};
      if (value.is_input) std::erase(graph_.mutable_inputs(), id);
      value.is_input = false;
    }
    patch.apply();
  }

  Graph& graph_;
  const StaticMarks& marks_;
  const ValueRanges& ranges_;
  const Formats& formats_;
  Operators operators_;
  const Context& context_;
  bool pairs_for_weights_, dedicated_, adjusts_;
  std::map<ValueId, Scales> scales_;
  std::map<ValueId, ScaleIds> made_;
};

/// What a calibration found, by the names of values that are there.
ValueRanges ranges_in(const Graph& graph, const Settings& settings) {
  const std::vector<std::string>& names = settings.texts("rangeNames");
  const std::vector<double>& numbers = settings.numbers("ranges");
  if (numbers.size() != names.size() * 2)
    fail(ErrorCode::InvalidArgument, "'ranges' must have two numbers for each of 'rangeNames'");
  ValueRanges ranges;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ValueId id = graph.find_value(names[i]);
    if (id == graph::kNoValue) continue;
    const double least = numbers[2 * i], largest = numbers[2 * i + 1];
    if (!(std::isfinite(least) && std::isfinite(largest) && least <= largest))
      fail(ErrorCode::InvalidArgument, cat("the range of '", names[i], "' is no range of finite numbers"));
    ranges[id] = {static_cast<float>(std::min(least, 0.0)), static_cast<float>(std::max(largest, 0.0))};
  }
  return ranges;
}

/// An Identity of a constant, as exporters write for a weight that two nodes read, goes: each node then has its own
/// codes.
void drop_identities(Graph& graph) {
  GraphPatch patch(graph);
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(static_cast<NodeId>(i));
    if (node.removed || node.op_type != "Identity" || !node.domain.empty()) continue;
    if (constant_of(graph, node.inputs.at(0)) == nullptr || graph.is_output(node.outputs.at(0))) continue;
    patch.remove_node(static_cast<NodeId>(i));
    patch.replace_uses(node.outputs[0], node.inputs[0]);
  }
  patch.apply();
}

}  // namespace

void quantize_static(graph::Model& model, const Settings& settings, const Context& context, Report& report) {
  Graph& graph = *model.graph;
  check_unquantized(graph);
  const Formats formats(settings);
  const Operators operators = operators_of(model, formats, settings.flag("UseQDQContribOps"));
  drop_identities(graph);
  kernel::infer_graph(graph, context.registry, nullptr, &context.run);
  ValueRanges ranges = ranges_in(graph, settings);
  StaticMarks marks(graph, settings, ranges);
  GraphPatch superfluous(graph);
  NodeVisits(graph, settings, "nodesToQuantize", context, report)
      .visit(
          graph, [](Graph&) {}, [&](const Node& node) { return marks.refusal(node); },
          [&](NodeId id, const Node& node) { return marks.mark(id, node, superfluous); });
  check_changed(graph, report, "operator that opTypesToQuantize names has values of float32", {});
  superfluous.apply();
  QdqWriter(graph, marks, ranges, formats, operators, settings, context).write();
}

}  // namespace infernode::transform
