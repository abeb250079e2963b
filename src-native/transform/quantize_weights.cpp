// Weights of products, and tables of embeddings, in codes of few bits: com.microsoft's MatMulNBits and
// GatherBlockQuantized.

#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/packed.h"
#include "graph/operator_names.h"
#include "graph/patch.h"
#include "graph/uses.h"
#include "transform/block_codes.h"
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

/// A weight's codes as one operator takes them.
struct Made {
  Tensor codes, scales;
  std::optional<Tensor> zeros;
};

class WeightQuantizer {
 public:
  WeightQuantizer(const Graph& graph, const Settings& settings, const Context& context, Report& report)
      : visits_(graph, settings, "nodesToInclude", context, report),
        context_(context),
        accuracy_(settings.whole("accuracyLevel", 0, 4)) {
    format_.bits = static_cast<int>(settings.whole("bits", 4, 8));
    format_.block = static_cast<std::size_t>(settings.whole("blockSize", 16, 256));
    format_.symmetric = settings.flag("isSymmetric");
    if (format_.bits != 4 && format_.bits != 8)
      fail(ErrorCode::InvalidArgument, cat("bits is ", format_.bits, "; it may be 4 or 8"));
    if ((format_.block & (format_.block - 1)) != 0)
      fail(ErrorCode::InvalidArgument, cat("blockSize is ", format_.block, "; it must be a power of two"));
  }

  void visit(Graph& graph) {
    WeightUses uses(graph, context_);
    GraphPatch patch(graph);
    Constants constants;
    visits_.visit(
        graph, [this](Graph& body) { visit(body); }, [&](const Node& node) { return refusal(graph, node); },
        [&](NodeId id, const Node& node) { return replace(graph, id, node, patch, constants, uses); });
    patch.apply();
  }

 private:
  /// The memory of a weight, how its lines go, and whether a Gather reads it.
  using Key = std::tuple<const void*, Lines, bool>;
  struct Ids {
    ValueId codes, scales, zeros;
  };
  using Constants = std::map<Key, Ids>;

  static bool is_gather(const Node& node) { return node.op_type == "Gather"; }
  static ValueId weight_of(const Node& node) { return node.inputs.at(is_gather(node) ? 0 : 1); }
  static Lines lines_of(const Node& node) {
    const bool rows = is_gather(node) || (node.op_type == "Gemm" && node.attributes.get_int("transB", 0) != 0);
    return rows ? Lines::Rows : Lines::Columns;
  }

  /// Why the node stays as it is; "" where it need not.
  std::string refusal(const Graph& graph, const Node& node) const {
    const Tensor* weight = constant_of(graph, weight_of(node));
    if (weight == nullptr) return "its weight is no constant";
    if (!can_have_codes(*weight)) return "its weight is no matrix of floats";
    if (node.op_type == "Gemm") return std::string(refusal_of_gemm(node));
    if (is_gather(node)) {
      const std::int64_t axis = node.attributes.get_int("axis", 0);
      if (axis != 0 && axis != -2) return "it gathers columns";
      if (format_.bits == 4 && weight->dim(1) % 2 != 0) return "the rows of its table are of an odd length";
    }
    return "";
  }

  std::string replace(Graph& graph, NodeId id, const Node& node, GraphPatch& patch, Constants& constants,
                      WeightUses& uses) {
    const ValueId weight = weight_of(node);
    const Tensor matrix = *constant_of(graph, weight);
    const Key key{matrix.raw(), lines_of(node), is_gather(node)};
    auto at = constants.find(key);
    if (at == constants.end()) {
      const Made& codes = codes_of(graph, node, weight, matrix, key);
      const std::string name = graph.value(weight).name;
      at = constants
               .emplace(key,
                        Ids{patch.add_constant(cat(name, "_Q", format_.bits), codes.codes),
                            patch.add_constant(name + "_scales", codes.scales),
                            codes.zeros ? patch.add_constant(name + "_zero_points", *codes.zeros) : graph::kNoValue})
               .first;
    }
    const Ids& ids = at->second;
    Node made = is_gather(node) ? gather_node(node) : product_node(node, matrix);
    made.outputs = node.outputs;
    if (is_gather(node)) {
      made.inputs = {ids.codes, node.inputs.at(1), ids.scales, ids.zeros};
    } else {
      made.inputs = {node.inputs.at(0), ids.codes, ids.scales, ids.zeros, graph::kNoValue, graph::kNoValue};
      if (has_bias(node)) join_bias(graph, node, matrix, made, patch);
    }
    while (made.inputs.back() == graph::kNoValue) made.inputs.pop_back();
    uses.drop(weight, patch);
    patch.remove_node(id);
    std::string became = made.op_type;
    patch.add_node(std::move(made));
    return became;
  }

  Node product_node(const Node& node, const Tensor& weight) const {
    Node made;
    made.op_type = "MatMulNBits";
    prepare(node, made);
    const bool rows = lines_of(node) == Lines::Rows;
    made.attributes.set("K", weight.dim(rows ? 1 : 0));
    made.attributes.set("N", weight.dim(rows ? 0 : 1));
    made.attributes.set("bits", std::int64_t{format_.bits});
    made.attributes.set("block_size", static_cast<std::int64_t>(format_.block));
    if (accuracy_ > 0) made.attributes.set("accuracy_level", accuracy_);
    return made;
  }

  Node gather_node(const Node& node) const {
    Node made;
    made.op_type = "GatherBlockQuantized";
    prepare(node, made);
    made.attributes.set("gather_axis", std::int64_t{0});
    made.attributes.set("quantize_axis", std::int64_t{1});
    made.attributes.set("block_size", static_cast<std::int64_t>(format_.block));
    if (format_.bits != 4) made.attributes.set("bits", std::int64_t{format_.bits});
    return made;
  }

  static void prepare(const Node& node, Node& made) {
    made.name = node.name;
    made.domain = graph::kMicrosoft;
    made.opset = 1;
  }

  /// A Gemm's C is an input of the product where it is a constant row; otherwise a node adds it.
  static void join_bias(const Graph& graph, const Node& node, const Tensor& weight, Node& made, GraphPatch& patch) {
    const Tensor* c = constant_of(graph, node.inputs[2]);
    const std::int64_t columns = made.attributes.get_int("N");
    if (c != nullptr && c->dtype() == weight.dtype() && c->shape() == Shape{columns}) {
      made.inputs.back() = node.inputs[2];
      return;
    }
    const std::string name = graph.value(node.outputs.at(0)).name + "_product";
    const ValueId product = patch.add_value(name);
    Node add;
    add.op_type = "Add";
    add.opset = node.opset;
    if (!node.name.empty()) add.name = node.name + "_bias";
    add.inputs = {product, node.inputs[2]};
    add.outputs = node.outputs;
    made.outputs = {product};
    patch.add_node(std::move(add));
  }

  const Made& codes_of(const Graph& graph, const Node& node, ValueId weight, const Tensor& matrix, const Key& key) {
    auto at = made_.find(key);
    if (at == made_.end()) {
      naming_weight(graph, node, weight, [&] {
        const BlockCodes codes = make_block_codes(matrix, std::get<Lines>(key), format_, context_.run);
        at = made_.emplace(key, std::get<bool>(key) ? table(matrix, codes) : product_weight(codes)).first;
      });
    }
    return at->second;
  }

  Made product_weight(const BlockCodes& codes) const {
    const auto lines = static_cast<std::int64_t>(codes.lines), blocks = static_cast<std::int64_t>(codes.blocks);
    const auto bytes = static_cast<std::int64_t>(codes.line_bytes);
    Made made{Tensor(DType::UInt8, {lines, blocks, bytes / blocks}, codes.codes), codes.scales, {}};
    if (!format_.symmetric) made.zeros = packed_zeros(codes, format_.bits);
    return made;
  }

  /// Rows without what fills up their last blocks: elements of a 4-bit type, or bytes.
  Made table(const Tensor& matrix, const BlockCodes& codes) const {
    const bool narrow = format_.bits == 4;
    const DType type = !narrow ? DType::UInt8 : format_.symmetric ? DType::Int4 : DType::UInt4;
    Made made{Tensor::make(type, matrix.shape()), codes.scales, {}};
    const std::size_t line = made.codes.bytes() / codes.lines;
    auto* to = static_cast<std::uint8_t*>(made.codes.mutable_raw());
    const auto* from = reinterpret_cast<const std::uint8_t*>(codes.codes.data());
    const std::uint8_t flip = type == DType::Int4 ? 0x88 : 0;  // codes from 0 to those from -8
    for (std::size_t i = 0; i < codes.lines; ++i) {
      for (std::size_t b = 0; b < line; ++b)
        to[i * line + b] = static_cast<std::uint8_t>(from[i * codes.line_bytes + b] ^ flip);
    }
    if (format_.symmetric) return made;
    if (!narrow) {
      made.zeros = packed_zeros(codes, format_.bits);
      return made;
    }
    made.zeros = Tensor::make(type, codes.scales.shape());
    pack_4(codes.zeros.data(), codes.zeros.size(), static_cast<std::uint8_t*>(made.zeros->mutable_raw()));
    return made;
  }

  NodeVisits visits_;
  const Context& context_;
  BlockFormat format_;
  std::int64_t accuracy_;
  std::map<Key, Made> made_;  ///< weights of several nodes have codes once
};

}  // namespace

void quantize_weights(graph::Model& model, const Settings& settings, const Context& context, Report& report) {
  WeightQuantizer quantizer(*model.graph, settings, context, report);
  quantizer.visit(*model.graph);
  check_changed(*model.graph, report, "weight of the operators that opTypesToQuantize names is a constant matrix",
                {"MatMulNBits", "GatherBlockQuantized"});
}

}  // namespace infernode::transform
