// 8-bit weights, with activations that are quantized in each run: what onnxruntime.quantization.quantize_dynamic makes.

#include <map>
#include <tuple>

#include "base/error.h"
#include "graph/patch.h"
#include "graph/uses.h"
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

/// From that version on there is DynamicQuantizeLinear.
constexpr std::int64_t kLeastOpset = 11;

/// A value's codes with their scale and zero point.
struct Coded {
  ValueId codes, scale, zero;
};

/// A weight's memory, whether its codes are unsigned, and whether they are transposed.
using WeightKey = std::tuple<const void*, bool, bool>;

/// What is added to one graph: each activation is quantized once, and each weight.
struct Additions {
  Additions(Graph& to, const Context& context) : graph(to), uses(to, context), patch(to) {}

  Graph& graph;
  WeightUses uses;
  GraphPatch patch;
  std::map<ValueId, Coded> activations;
  std::map<WeightKey, Coded> weights;
  std::map<std::pair<ValueId, ValueId>, ValueId> products;  ///< of scales

  /// A node of ai.onnx with one output.
  ValueId add(std::string op_type, std::vector<ValueId> inputs, const std::string& output, std::int64_t opset,
              graph::Attributes attributes = {}) {
    const ValueId made = patch.add_value(output);
    add_to(std::move(op_type), std::move(inputs), {made}, opset, std::move(attributes));
    return made;
  }
  void add_to(std::string op_type, std::vector<ValueId> inputs, std::vector<ValueId> outputs, std::int64_t opset,
              graph::Attributes attributes = {}) {
    Node node;
    node.name = cat(graph.value(outputs.front()).name, "_", op_type);
    node.op_type = std::move(op_type);
    node.opset = opset;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    patch.add_node(std::move(node));
  }
};

class DynamicQuantizer {
 public:
  DynamicQuantizer(const Graph& graph, const Settings& settings, const Context& context, Report& report)
      : visits_(graph, settings, "nodesToQuantize", context, report),
        context_(context),
        per_channel_(settings.flag("perChannel")),
        const_b_only_(settings.flag("MatMulConstBOnly")),
        subgraphs_(settings.flag("EnableSubgraph")) {
    const std::string& type = settings.text("weightType");
    if (type != "QInt8" && type != "QUInt8")
      fail(ErrorCode::InvalidArgument, cat("weightType is '", type, "'; it may be 'QInt8' or 'QUInt8'"));
    format_.type = type == "QInt8" ? DType::Int8 : DType::UInt8;
    format_.symmetric = settings.flag("WeightSymmetric");
    format_.reduced = settings.flag("reduceRange");
  }

  void visit(Graph& graph) {
    Additions to(graph, context_);
    visits_.visit(
        graph,
        [this](Graph& body) {
          if (subgraphs_) visit(body);
        },
        [&](const Node& node) { return refusal(graph, node); },
        [&](NodeId id, const Node& node) {
          to.patch.remove_node(id);
          return replace(to, node);
        });
    to.patch.apply();
  }

 private:
  static bool is_gather(const Node& node) { return node.op_type == "Gather"; }

  /// Why the node stays as it is; "" where it need not.
  std::string refusal(const Graph& graph, const Node& node) const {
    if (node.opset < kLeastOpset) return cat("its operator set is older than version ", kLeastOpset);
    const Tensor* weight = constant_of(graph, node.inputs.at(is_gather(node) ? 0 : 1));
    const bool product = node.op_type == "MatMul";
    if (weight == nullptr && product && !const_b_only_) return may_be_float(graph, node.inputs[1]);
    if (weight == nullptr) return "its weight is no constant";
    if (weight->dtype() != DType::Float32) return "its weight is not float32";
    if (weight->numel() == 0) return "its weight is empty";
    if (product && weight->rank() < 2) return "its weight is no matrix";
    return std::string(node.op_type == "Gemm" ? refusal_of_gemm(node) : "");
  }

  /// Whether a value can be quantized in a run.
  static std::string may_be_float(const Graph& graph, ValueId value) {
    const graph::ValueType& type = graph.value(value).type;
    const bool other = type.is_tensor() && type.elem != DType::Float32 && type.elem != DType::Undefined;
    return other ? "its second input is not float32" : "";
  }

  std::string replace(Additions& to, const Node& node) {
    if (is_gather(node)) return replace_gather(to, node);
    const bool conv = node.op_type == "Conv";
    const Coded a = activation(to, node.inputs.at(0), node.opset);
    const bool transposed = node.op_type == "Gemm" && node.attributes.get_int("transB", 0) != 0;
    const Coded b = constant_of(to.graph, node.inputs[1]) == nullptr
                        ? activation(to, node.inputs[1], node.opset)
                        : weight(to, node, node.inputs[1], format(to, node), transposed);
    const std::string name = to.graph.value(node.outputs.at(0)).name, op_type = conv ? "ConvInteger" : "MatMulInteger";
    const ValueId sums = to.add(op_type, {a.codes, b.codes, a.zero, b.zero}, name + "_output_quantized", node.opset,
                                conv ? node.attributes : graph::Attributes());
    graph::Attributes float32;
    float32.set("to", static_cast<std::int64_t>(DType::Float32));
    const ValueId real = to.add("Cast", {sums}, name + "_output_quantized_cast_output", node.opset, std::move(float32));
    const ValueId scale = product_of_scales(to, a.scale, b.scale, node.opset);
    if (!has_bias(node)) {
      to.add_to("Mul", {real, scale}, node.outputs, node.opset);
    } else {
      const ValueId scaled = to.add("Mul", {real, scale}, name + "_scaled", node.opset);
      const ValueId bias =
          conv ? conv_bias(to, node, to.graph.value(b.codes).constant.tensor().rank()) : node.inputs[2];
      to.add_to("Add", {scaled, bias}, node.outputs, node.opset);
    }
    return op_type;
  }

  /// Rows of codes become numbers where they are picked. Tables have the type of activations.
  std::string replace_gather(Additions& to, const Node& node) {
    const TensorFormat codes{.type = DType::UInt8, .symmetric = false};
    const Coded table = weight(to, node, node.inputs.at(0), codes, false);
    const std::string name = to.graph.value(node.outputs.at(0)).name;
    const ValueId picked =
        to.add("Gather", {table.codes, node.inputs.at(1)}, name + "_quantized", node.opset, node.attributes);
    to.add_to("DequantizeLinear", {picked, table.scale, table.zero}, node.outputs, node.opset);
    return "DequantizeLinear";
  }

  /// Products have a scale for each column where that is asked for, as in the Python tool.
  TensorFormat format(const Additions& to, const Node& node) const {
    TensorFormat format = format_;
    const Tensor* weight = constant_of(to.graph, node.inputs[1]);
    if (per_channel_ && node.op_type != "Conv" && weight->rank() == 2) format.axis = 1;
    return format;
  }

  static Coded activation(Additions& to, ValueId value, std::int64_t opset) {
    if (const auto at = to.activations.find(value); at != to.activations.end()) return at->second;
    const std::string name = to.graph.value(value).name;
    const Coded coded{to.patch.add_value(name + "_quantized"), to.patch.add_value(name + "_scale"),
                      to.patch.add_value(name + "_zero_point")};
    to.add_to("DynamicQuantizeLinear", {value}, {coded.codes, coded.scale, coded.zero}, opset);
    return to.activations.emplace(value, coded).first->second;
  }

  Coded weight(Additions& to, const Node& node, ValueId id, const TensorFormat& format, bool transposed) {
    const Tensor held = *constant_of(to.graph, id);
    const WeightKey key(held.raw(), format.type == DType::UInt8, transposed);
    auto at = to.weights.find(key);
    if (at == to.weights.end()) {
      const TensorCodes& codes = codes_of(to, node, id, transposed ? transpose(held) : held, format, key);
      const std::string name = to.graph.value(id).name;
      at = to.weights
               .emplace(key, Coded{to.patch.add_constant(name + "_quantized", codes.codes),
                                   to.patch.add_constant(name + "_scale", codes.scale),
                                   to.patch.add_constant(name + "_zero_point", codes.zero)})
               .first;
    }
    to.uses.drop(id, to.patch);
    return at->second;
  }

  const TensorCodes& codes_of(const Additions& to, const Node& node, ValueId id, const Tensor& tensor,
                              const TensorFormat& format, const WeightKey& key) {
    auto at = made_.find(key);
    if (at == made_.end()) {
      naming_weight(to.graph, node, id,
                    [&] { at = made_.emplace(key, make_tensor_codes(tensor, format, context_.run)).first; });
    }
    return at->second;
  }

  static Tensor transpose(const Tensor& matrix) {
    const std::int64_t rows = matrix.dim(0), columns = matrix.dim(1);
    const Tensor out = Tensor::make(DType::Float32, {columns, rows});
    const float* from = matrix.data<float>();
    float* to = out.mutable_data<float>();
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
    }
    return out;
  }

  static ValueId product_of_scales(Additions& to, ValueId a, ValueId b, std::int64_t opset) {
    if (const auto at = to.products.find({a, b}); at != to.products.end()) return at->second;
    const std::string name = cat(to.graph.value(a).name, "_", to.graph.value(b).name, "_mul");
    return to.products.emplace(std::pair(a, b), to.add("Mul", {a, b}, name, opset)).first->second;
  }

  /// A Conv's bias as what is added to its result: [1, M, 1, ...].
  static ValueId conv_bias(Additions& to, const Node& node, std::size_t rank) {
    const ValueId bias = node.inputs[2];
    const std::string name = to.graph.value(bias).name;
    Shape shape;
    shape.resize(rank);
    if (const Tensor* constant = constant_of(to.graph, bias)) {
      const Tensor held = *constant;
      shape[1] = held.numel();
      to.uses.drop(bias, to.patch);
      return to.patch.add_constant(name + "_reshaped", held.reshaped(shape));
    }
    std::vector<std::int64_t> dims(shape.begin(), shape.end());
    dims[1] = -1;
    const Tensor to_shape = Tensor::of<std::int64_t>({static_cast<std::int64_t>(rank)}, dims);
    const ValueId constant = to.patch.add_constant(name + "_shape", to_shape);
    return to.add("Reshape", {bias, constant}, name + "_reshaped", node.opset);
  }

  NodeVisits visits_;
  const Context& context_;
  TensorFormat format_;
  bool per_channel_, const_b_only_, subgraphs_;
  std::map<WeightKey, TensorCodes> made_;  ///< weights of several nodes have codes once
};

}  // namespace

void quantize_dynamic(graph::Model& model, const Settings& settings, const Context& context, Report& report) {
  DynamicQuantizer quantizer(*model.graph, settings, context, report);
  quantizer.visit(*model.graph);
  check_changed(*model.graph, report, "operator that opTypesToQuantize names has a constant weight of float32",
                {"MatMulInteger", "ConvInteger", "DynamicQuantizeLinear"});
}

}  // namespace infernode::transform
