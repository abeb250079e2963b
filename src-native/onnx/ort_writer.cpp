#include "onnx/ort_writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "graph/definition.h"
#include "onnx/flatbuffer.h"
#include "onnx/ort_schema.h"

namespace infernode::onnx {
namespace {

using flat::Builder;
using flat::Position;
using flat::TableFields;
using graph::Graph;
using graph::kNoValue;
using graph::NameTable;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueType;
using ort::AttributeCode;
using tensor::Tensor;

/// Data of tensors begins at a multiple of this, so that readers can use it where it lies.
constexpr std::size_t kDataAlignment = 64;
/// Set aside for all else at once.
constexpr std::size_t kRoomBesideTensors = std::size_t{1} << 20;

/// One end of an edge as the format has it.
struct EdgeEnd {
  std::uint32_t node;
  std::int32_t from, to;
  bool operator<(const EdgeEnd& other) const {
    return std::tie(node, from, to) < std::tie(other.node, other.from, other.to);
  }
};
static_assert(sizeof(EdgeEnd) == 12);

struct NodeEdges {
  std::set<EdgeEnd> inputs, outputs;
};

std::size_t tensor_bytes(const Graph& graph) {
  std::size_t total = 0;
  for (const graph::ValueInfo& info : graph.values())
    if (info.constant.is_tensor()) total += info.constant.bytes();
  return total;
}

class OrtWriter {
 public:
  OrtWriter(const graph::Model& model, const OrtWriteOptions& options)
      : model_(model), options_(options), out_(tensor_bytes(*model.graph) + kRoomBesideTensors) {}

  std::vector<std::byte> write() {
    const Position graph = write_graph(*model_.graph, nullptr);
    TableFields model;
    const graph::ModelInfo& info = model_.info;
    std::map<std::string, std::int64_t> opsets = info.opsets;
    for (const auto& [domain, version] : used_domains_) opsets.emplace(domain, version);
    std::vector<Position> imports;
    for (const auto& [domain, version] : opsets) {
      TableFields entry;
      entry.offset(ort::pair::kFirst, out_.text(domain));
      entry.scalar(ort::pair::kSecond, version);
      imports.push_back(out_.table(std::move(entry)));
    }
    std::vector<Position> metadata;
    for (const auto& [key, value] : info.metadata) {
      TableFields entry;
      entry.offset(ort::pair::kFirst, out_.text(key));
      entry.offset(ort::pair::kSecond, out_.text(value));
      metadata.push_back(out_.table(std::move(entry)));
    }
    model.scalar(ort::model::kIrVersion, info.ir_version);
    model.offset(ort::model::kOpsetImport, out_.offsets(imports));
    model.offset(ort::model::kProducerName, text(info.producer_name));
    model.offset(ort::model::kProducerVersion, text(info.producer_version));
    model.offset(ort::model::kDomain, out_.text(info.domain));
    model.scalar(ort::model::kModelVersion, info.model_version);
    model.offset(ort::model::kDoc, text(info.doc));
    model.offset(ort::model::kGraph, graph);
    model.offset(ort::model::kGraphDoc, text(model_.graph->doc));
    if (!metadata.empty()) model.offset(ort::model::kMetadata, out_.offsets(metadata));
    TableFields session;
    session.offset(ort::session::kVersion, out_.text(std::to_string(ort::kNewestVersion)));
    session.offset(ort::session::kModel, out_.table(std::move(model)));
    session.offset(ort::session::kTypeNames, write_type_names());
    return out_.finish(out_.table(std::move(session)), ort::kIdentifier);
  }

 private:
  Position text(const std::string& s) { return s.empty() ? 0 : out_.text(s); }

  Position texts(const std::vector<std::string>& list) {
    std::vector<Position> items;
    items.reserve(list.size());
    for (const std::string& s : list) items.push_back(out_.text(s));
    return out_.offsets(items);
  }

  Position values(const std::vector<ValueId>& ids, const NameTable& names) {
    std::vector<Position> items;
    items.reserve(ids.size());
    for (const ValueId id : ids) items.push_back(out_.text(id == kNoValue ? std::string() : names[id]));
    return out_.offsets(items);
  }

  Position write_graph(const Graph& graph, const NameTable* outer) {
    const NameTable names(graph, outer);
    const std::vector<NodeId> order = graph.topological_order();
    std::vector<Position> nodes, initializers, sparse, infos;
    for (std::size_t i = 0; i < order.size(); ++i) nodes.push_back(write_node(graph, graph.node(order[i]), i, names));
    std::vector<bool> used(graph.values().size(), false);
    const auto use = [&](const std::vector<ValueId>& ids) {
      for (const ValueId id : ids)
        if (id != kNoValue) used[static_cast<std::size_t>(id)] = true;
    };
    bool absent = false;
    use(graph.inputs());
    use(graph.outputs());
    for (const graph::Capture& c : graph.captures()) used[static_cast<std::size_t>(c.inner)] = true;
    for (const NodeId id : order) {
      const Node& node = graph.node(id);
      use(node.inputs);
      use(node.outputs);
      const auto none = [](ValueId v) { return v == kNoValue; };
      absent = absent || std::ranges::any_of(node.inputs, none) || std::ranges::any_of(node.outputs, none);
    }
    for (const NodeId id : order) use(graph::implicit_inputs(graph.node(id)));
    for (std::size_t v = 0; v < graph.values().size(); ++v) {
      const graph::ValueInfo& info = graph.values()[v];
      const std::string& name = names[static_cast<ValueId>(v)];
      if (!used[v]) continue;
      if (info.constant.is_tensor()) {
        initializers.push_back(write_tensor(name, info.constant.tensor()));
      } else if (info.constant.is_sparse()) {
        sparse.push_back(write_sparse(name, info.constant.sparse()));
      } else {
        INFERNODE_CHECK(info.constant.empty(), ErrorCode::InvalidModel, "value '", info.name,
                        "' cannot be written: it is a constant that is no tensor");
      }
      const bool typed = info.type.kind != ValueType::Kind::Unknown || !info.constant.is_tensor();
      infos.push_back(write_value(name, typed ? info.type
                                              : ValueType::tensor(info.constant.tensor().dtype(),
                                                                  graph::to_sym(info.constant.tensor().shape()))));
    }
    if (absent) infos.push_back(write_value("", {}));
    const std::vector<NodeEdges> edges = edges_of(graph, order);
    std::vector<Position> written_edges;
    for (std::size_t i = 0; i < edges.size(); ++i) written_edges.push_back(write_edges(i, edges[i]));

    TableFields t;
    if (!initializers.empty()) t.offset(ort::graph::kInitializers, out_.offsets(initializers));
    t.offset(ort::graph::kValues, out_.offsets(infos));
    t.offset(ort::graph::kNodes, out_.offsets(nodes));
    t.scalar(ort::graph::kMaxNodeIndex, static_cast<std::uint32_t>(order.size()));
    t.offset(ort::graph::kEdges, out_.offsets(written_edges));
    t.offset(ort::graph::kInputs, values(graph.inputs(), names));
    t.offset(ort::graph::kOutputs, values(graph.outputs(), names));
    if (!sparse.empty()) t.offset(ort::graph::kSparseInitializers, out_.offsets(sparse));
    return out_.table(std::move(t));
  }

  /// Outer values that a node's subgraphs read, each once.
  static std::vector<ValueId> captured(const Node& node) {
    std::vector<ValueId> out;
    for (const ValueId id : graph::implicit_inputs(node))
      if (std::ranges::find(out, id) == out.end()) out.push_back(id);
    return out;
  }

  static std::vector<NodeEdges> edges_of(const Graph& graph, const std::vector<NodeId>& order) {
    struct Source {
      std::uint32_t node;
      std::int32_t output;
    };
    std::map<ValueId, Source> makers;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto& outputs = graph.node(order[i]).outputs;
      for (std::size_t o = 0; o < outputs.size(); ++o)
        if (outputs[o] != kNoValue) makers[outputs[o]] = {static_cast<std::uint32_t>(i), static_cast<std::int32_t>(o)};
    }
    std::vector<NodeEdges> edges(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::vector<ValueId> inputs = graph.node(order[i]).inputs;
      for (const ValueId id : captured(graph.node(order[i]))) inputs.push_back(id);
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const auto maker = makers.find(inputs[k]);
        if (maker == makers.end()) continue;
        const auto [from, output] = maker->second;
        const auto to = static_cast<std::int32_t>(k);
        edges[i].inputs.insert({from, output, to});
        edges[from].outputs.insert({static_cast<std::uint32_t>(i), output, to});
      }
    }
    return edges;
  }

  Position write_edges(std::size_t node, const NodeEdges& edges) {
    const auto list = [&](const std::set<EdgeEnd>& ends) -> Position {
      if (ends.empty()) return 0;
      const std::vector<EdgeEnd> items(ends.begin(), ends.end());
      return out_.bytes({reinterpret_cast<const char*>(items.data()), items.size() * sizeof(EdgeEnd)}, items.size(), 4);
    };
    TableFields t;
    t.scalar(ort::edges::kNode, static_cast<std::uint32_t>(node));
    t.offset(ort::edges::kInputs, list(edges.inputs));
    t.offset(ort::edges::kOutputs, list(edges.outputs));
    return out_.table(std::move(t));
  }

  Position write_node(const Graph& graph, const Node& node, std::size_t index, const NameTable& names) {
    const OrtOperator op = options_.describe(node);
    used_domains_.emplace(node.domain, std::max<std::int64_t>(node.opset, 1));
    type_names_.emplace(cat(node.domain, ":", node.op_type, ":", op.since_version), op.types);
    std::vector<Position> attributes;
    for (const auto& [name, value] : node.attributes)
      attributes.push_back(write_attribute(graph::describe(graph, node), name, value, names));
    // One number for each formal input: how many of the node's inputs it has.
    std::vector<std::int32_t> counts(std::max(op.input_count, op.variadic ? 1 : node.inputs.size()), 0);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) ++counts[std::min(i, counts.size() - 1)];
    TableFields t;
    t.offset(ort::node::kName, out_.text(node.name));
    t.offset(ort::node::kDomain, out_.text(node.domain));
    t.scalar(ort::node::kSinceVersion, static_cast<std::int32_t>(op.since_version));
    t.scalar(ort::node::kIndex, static_cast<std::uint32_t>(index));
    t.offset(ort::node::kOpType, out_.text(node.op_type));
    t.offset(ort::node::kProvider, out_.text(""));
    t.offset(ort::node::kInputs, values(node.inputs, names));
    t.offset(ort::node::kOutputs, values(node.outputs, names));
    if (!attributes.empty()) t.offset(ort::node::kAttributes, out_.offsets(attributes));
    t.offset(ort::node::kInputCounts, out_.scalars(std::span<const std::int32_t>(counts)));
    t.offset(ort::node::kImplicitInputs, values(captured(node), names));
    return out_.table(std::move(t));
  }

  Position write_attribute(const std::string& node, const std::string& name, const graph::Attribute& value,
                           const NameTable& names) {
    TableFields t;
    AttributeCode code = AttributeCode::Undefined;
    const auto list = [&](AttributeCode c, int field, const auto& items, auto&& write) {
      std::vector<Position> written;
      written.reserve(items.size());
      for (const auto& item : items) written.push_back(write(item));
      code = c;
      t.offset(field, out_.offsets(written));
    };
    std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, std::int64_t>) {
            code = AttributeCode::Int;
            t.scalar(ort::attribute::kInt, v);
          } else if constexpr (std::is_same_v<T, float>) {
            code = AttributeCode::Float;
            t.scalar(ort::attribute::kFloat, v);
          } else if constexpr (std::is_same_v<T, std::string>) {
            code = AttributeCode::String;
            t.offset(ort::attribute::kString, out_.text(v));
          } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
            code = AttributeCode::Ints;
            t.offset(ort::attribute::kInts, out_.scalars(std::span<const std::int64_t>(v)));
          } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            code = AttributeCode::Floats;
            t.offset(ort::attribute::kFloats, out_.scalars(std::span<const float>(v)));
          } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            code = AttributeCode::Strings;
            t.offset(ort::attribute::kStrings, texts(v));
          } else if constexpr (std::is_same_v<T, Tensor>) {
            code = AttributeCode::Tensor;
            t.offset(ort::attribute::kTensor, write_tensor("", v));
          } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
            list(AttributeCode::Tensors, ort::attribute::kTensors, v,
                 [&](const Tensor& x) { return write_tensor("", x); });
          } else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>) {
            code = AttributeCode::Graph;
            t.offset(ort::attribute::kGraph, write_graph(*v, &names));
          } else if constexpr (std::is_same_v<T, std::vector<std::shared_ptr<Graph>>>) {
            list(AttributeCode::Graphs, ort::attribute::kGraphs, v,
                 [&](const std::shared_ptr<Graph>& g) { return write_graph(*g, &names); });
          } else {
            fail(ErrorCode::InvalidModel, cat("attribute '", name, "' of ", node,
                                              " cannot be written: the ORT format has no such attributes; write the "
                                              "model as .onnx"));
          }
        },
        value);
    t.offset(ort::attribute::kName, out_.text(name));
    t.scalar(ort::attribute::kType, static_cast<std::int32_t>(code));
    return out_.table(std::move(t));
  }

  Position write_value(const std::string& name, const ValueType& type) {
    TableFields t;
    t.offset(ort::value::kType, write_type(type));
    t.offset(ort::value::kName, out_.text(name));
    return out_.table(std::move(t));
  }

  /// 0 for types that the format does not know.
  Position write_type(const ValueType& type) {
    TableFields value;
    std::uint8_t kind = 0;
    switch (type.kind) {
      case ValueType::Kind::Tensor:
        kind = ort::type::kTensor;
        value.scalar(ort::tensor_type::kElement, static_cast<std::int32_t>(type.elem));
        if (type.shape) value.offset(ort::tensor_type::kShape, write_shape(*type.shape));
        break;
      case ValueType::Kind::Sequence:
        kind = ort::type::kSequence;
        if (type.inner) value.offset(ort::sequence_type::kElement, write_type(*type.inner));
        break;
      case ValueType::Kind::Map:
        kind = ort::type::kMap;
        value.scalar(ort::map_type::kKey, static_cast<std::int32_t>(type.elem));
        if (type.inner) value.offset(ort::map_type::kValue, write_type(*type.inner));
        break;
      default:
        return 0;
    }
    TableFields t;
    t.offset(ort::type::kValue, out_.table(std::move(value)));
    t.scalar(ort::type::kKind, kind);
    return out_.table(std::move(t));
  }

  Position write_shape(const graph::SymShape& shape) {
    std::vector<Position> dims;
    for (const graph::Dim& dim : shape) {
      TableFields value, t;
      if (dim.known()) {
        value.scalar(ort::dim_value::kKind, ort::dim_value::kIsSize);
        value.scalar(ort::dim_value::kSize, dim.value());
      } else if (const std::string symbol = dim.to_string(); symbol.find('?') == std::string::npos) {
        value.offset(ort::dim_value::kSymbol, out_.text(symbol));
        value.scalar(ort::dim_value::kKind, ort::dim_value::kIsSymbol);
      }
      t.offset(ort::dim::kValue, out_.table(std::move(value)));
      dims.push_back(out_.table(std::move(t)));
    }
    TableFields t;
    t.offset(ort::shape::kDims, out_.offsets(dims));
    return out_.table(std::move(t));
  }

  Position write_tensor(const std::string& name, const Tensor& tensor) {
    INFERNODE_CHECK(tensor.device().is_host(), ErrorCode::Internal, "tensor '", name,
                    "' cannot be written: it is not host memory");
    TableFields t;
    if (tensor.dtype() == tensor::DType::String) {
      std::vector<Position> items;
      for (const std::string& s : tensor.span<std::string>()) items.push_back(out_.text(s));
      t.offset(ort::tensor::kStrings, out_.offsets(items));
    } else {
      t.offset(ort::tensor::kRaw,
               out_.bytes({static_cast<const char*>(tensor.raw()), tensor.bytes()}, tensor.bytes(), kDataAlignment));
    }
    t.offset(ort::tensor::kDims,
             out_.scalars(std::span<const std::int64_t>(tensor.shape().begin(), tensor.shape().end())));
    t.offset(ort::tensor::kName, out_.text(name));
    t.scalar(ort::tensor::kType, static_cast<std::int32_t>(tensor.dtype()));
    return out_.table(std::move(t));
  }

  Position write_sparse(const std::string& name, const tensor::Sparse& sparse) {
    TableFields t;
    t.offset(ort::sparse::kValues, write_tensor(name, sparse.values));
    t.offset(ort::sparse::kIndices, write_tensor(name + "_indices", sparse.indices));
    t.offset(ort::sparse::kDims, out_.scalars(std::span<const std::int64_t>(sparse.shape.begin(), sparse.shape.end())));
    return out_.table(std::move(t));
  }

  /// Operators and types' names sorted: readers look them up by halving.
  Position write_type_names() {
    std::vector<Position> operators;
    for (auto& [id, types] : type_names_) {
      std::ranges::sort(types, {}, &OrtOperator::TypeName::name);
      std::vector<Position> names;
      for (const OrtOperator::TypeName& type : types) {
        std::vector<Position> arguments;
        const auto add = [&](std::int8_t direction, const std::vector<std::size_t>& indices) {
          for (const std::size_t index : indices) {
            TableFields argument;
            argument.scalar(ort::type_names::kDirection, direction);
            argument.scalar(ort::type_names::kIndex, static_cast<std::uint32_t>(index));
            arguments.push_back(out_.table(std::move(argument)));
          }
        };
        add(ort::type_names::kInput, type.inputs);
        add(ort::type_names::kOutput, type.outputs);
        TableFields t;
        t.offset(ort::type_names::kName, out_.text(type.name));
        t.offset(ort::type_names::kArguments, out_.offsets(arguments));
        names.push_back(out_.table(std::move(t)));
      }
      TableFields t;
      t.offset(ort::type_names::kOperator, out_.text(id));
      t.offset(ort::type_names::kNames, out_.offsets(names));
      operators.push_back(out_.table(std::move(t)));
    }
    TableFields t;
    t.offset(ort::type_names::kOperators, out_.offsets(operators));
    return out_.table(std::move(t));
  }

  const graph::Model& model_;
  const OrtWriteOptions& options_;
  Builder out_;
  std::map<std::string, std::int64_t> used_domains_;
  std::map<std::string, std::vector<OrtOperator::TypeName>> type_names_;
};

}  // namespace

std::vector<std::byte> write_ort_bytes(const graph::Model& model, const OrtWriteOptions& options) {
  return OrtWriter(model, options).write();
}

}  // namespace infernode::onnx
