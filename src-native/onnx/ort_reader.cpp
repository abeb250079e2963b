#include "onnx/ort_reader.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/error.h"
#include "graph/building.h"
#include "graph/verifier.h"
#include "onnx/flatbuffer.h"
#include "onnx/ort_schema.h"
#include "onnx/structure_budget.h"
#include "onnx/tensor_reader.h"

namespace infernode::onnx {
namespace {

using flat::Offsets;
using flat::Table;
using graph::Dim;
using graph::GraphDef;
using graph::NodeDef;
using graph::ValueType;
using ort::AttributeCode;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr int kMaxTypeDepth = 16;

std::string copy(std::string_view text) { return std::string(text); }

class OrtReader {
 public:
  OrtReader(const SourceBytes& source, const ReadOptions& options)
      : bytes_(source),
        flat_({source.data, source.size}),
        options_(options),
        budget_(options.max_structure_bytes, source.size),
        dense_(options.max_dense_bytes) {}

  graph::Model read() const {
    const Table session = Table::root(flat_);
    check_version(session.text(ort::session::kVersion));
    const auto root = session.table(ort::session::kModel);
    INFERNODE_CHECK(root, ErrorCode::InvalidModel, "It holds no model.");
    graph::Model model;
    read_info(*root, model.info);
    const auto graph = root->table(ort::model::kGraph);
    INFERNODE_CHECK(graph, ErrorCode::InvalidModel, "It holds no graph.");
    GraphDef def;
    read_graph(*graph, def, 0);
    def.name = "graph";
    def.doc = root->text(ort::model::kGraphDoc);
    model.info.graph_name = def.name;
    keep_last_initializers(def, options_.logger);
    model.graph = graph::build_graph(std::move(def), model.info.opsets, checkpoint_of(options_));
    return model;
  }

 private:
  static void check_version(std::string_view text) {
    std::int64_t version = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
    INFERNODE_CHECK(error == std::errc() && end == text.data() + text.size() && version >= ort::kOldestVersion,
                    ErrorCode::InvalidModel, "The ORT format model version [", text, "] is not a version.");
    INFERNODE_CHECK(version <= ort::kNewestVersion, ErrorCode::InvalidModel, "The ORT format model version [", version,
                    "] is newer than ", ort::kNewestVersion,
                    ", the newest known here. Load the .onnx file that it was made from, or update infernode.");
  }

  void read_info(const Table& t, graph::ModelInfo& info) const {
    info.ir_version = t.scalar<std::int64_t>(ort::model::kIrVersion);
    INFERNODE_CHECK(info.ir_version > 0 && info.ir_version <= kMaxIrVersion, ErrorCode::InvalidModel,
                    "Unsupported model IR version: ", info.ir_version, ", max supported IR version: ", kMaxIrVersion,
                    ".");
    const Offsets imports = t.offsets(ort::model::kOpsetImport);
    for (std::size_t i = 0; i < imports.size(); ++i) {
      const Table entry = imports.table(i);
      info.opsets[graph::normal_domain(entry.text(ort::pair::kFirst))] = entry.scalar<std::int64_t>(ort::pair::kSecond);
    }
    INFERNODE_CHECK(!info.opsets.empty(), ErrorCode::InvalidModel, "Missing opset in the model.");
    info.producer_name = t.text(ort::model::kProducerName);
    info.producer_version = t.text(ort::model::kProducerVersion);
    info.domain = t.text(ort::model::kDomain);
    info.model_version = t.scalar<std::int64_t>(ort::model::kModelVersion);
    info.doc = t.text(ort::model::kDoc);
    const Offsets metadata = t.offsets(ort::model::kMetadata);
    for (std::size_t i = 0; i < metadata.size(); ++i) {
      const Table entry = metadata.table(i);
      budget_.take(StructureBudget::kEntry, entry.text(ort::pair::kFirst));
      info.metadata.emplace_back(entry.text(ort::pair::kFirst), entry.text(ort::pair::kSecond));
    }
  }

  void read_graph(const Table& t, GraphDef& out, int depth) const {
    budget_.take(StructureBudget::kGraph);
    INFERNODE_CHECK(depth <= graph::kMaxSubgraphDepth, ErrorCode::InvalidModel, "graphs are nested deeper than ",
                    graph::kMaxSubgraphDepth, " levels");
    const Offsets initializers = t.offsets(ort::graph::kInitializers);
    for (std::size_t i = 0; i < initializers.size(); ++i) {
      budget_.take(StructureBudget::kTensor);
      auto [name, value] = read_tensor(initializers.table(i));
      out.initializers.emplace_back(std::move(name), std::move(value));
    }
    const Offsets sparse = t.offsets(ort::graph::kSparseInitializers);
    for (std::size_t i = 0; i < sparse.size(); ++i) {
      budget_.take(StructureBudget::kTensor);
      auto [name, value] = read_sparse(sparse.table(i));
      Tensor dense = to_dense(name, value, dense_, checkpoint_of(options_));
      out.initializers.emplace_back(std::move(name), std::move(dense));
    }
    std::map<std::string_view, ValueType> types;
    const Offsets values = t.offsets(ort::graph::kValues);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Table value = values.table(i);
      const std::string_view name = value.text(ort::value::kName);
      budget_.take(StructureBudget::kType, name);
      const auto type = value.table(ort::value::kType);
      if (!name.empty() && type) types[name] = read_type(*type, name, 0);
    }
    const auto named = [&](int field, std::vector<graph::NamedType>& list) {
      const Offsets names = t.offsets(field);
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string_view name = names.text(i);
        budget_.take(StructureBudget::kType, name);
        INFERNODE_CHECK(!name.empty(), ErrorCode::InvalidModel, "a graph has an input or output without a name");
        const auto type = types.find(name);
        list.push_back({copy(name), type == types.end() ? ValueType{} : type->second});
      }
    };
    named(ort::graph::kInputs, out.inputs);
    named(ort::graph::kOutputs, out.outputs);
    for (auto& [name, type] : types) out.value_info.push_back({copy(name), std::move(type)});
    const Offsets nodes = t.offsets(ort::graph::kNodes);
    for (std::size_t i = 0; i < nodes.size(); ++i) out.nodes.push_back(read_node(nodes.table(i), depth));
  }

  NodeDef read_node(const Table& t, int depth) const {
    if (options_.checkpoint) options_.checkpoint();
    budget_.take(StructureBudget::kNode);
    NodeDef out;
    out.name = t.text(ort::node::kName);
    out.domain = graph::normal_domain(t.text(ort::node::kDomain));
    out.op_type = t.text(ort::node::kOpType);
    INFERNODE_CHECK(!out.op_type.empty(), ErrorCode::InvalidModel, "node '", out.name, "' has no operator");
    INFERNODE_CHECK(t.scalar<std::int32_t>(ort::node::kType) == 0, ErrorCode::InvalidModel, "node '", out.name,
                    "' was compiled by a provider; save the model without that provider");
    out.opset = std::max<std::int64_t>(t.scalar<std::int32_t>(ort::node::kSinceVersion), 0);
    const auto names = [&](int field, std::vector<std::string>& list, std::size_t each) {
      const Offsets items = t.offsets(field);
      for (std::size_t i = 0; i < items.size(); ++i) {
        budget_.take(each, items.text(i));
        list.emplace_back(items.text(i));
      }
    };
    names(ort::node::kInputs, out.inputs, StructureBudget::kInput);
    names(ort::node::kOutputs, out.outputs, StructureBudget::kValue);
    const Offsets attributes = t.offsets(ort::node::kAttributes);
    for (std::size_t i = 0; i < attributes.size(); ++i) read_attribute(attributes.table(i), out, depth);
    return out;
  }

  void read_attribute(const Table& t, NodeDef& node, int depth) const {
    budget_.take(StructureBudget::kAttribute);
    std::string name(t.text(ort::attribute::kName));
    INFERNODE_CHECK(!name.empty(), ErrorCode::InvalidModel, "an attribute of node ", node.op_type, " '", node.name,
                    "' has no name");
    INFERNODE_CHECK(
        !node.attributes.has(name) && std::ranges::none_of(node.graphs, [&](const auto& g) { return g.name == name; }),
        ErrorCode::InvalidModel, "attribute '", name, "' of node ", node.op_type, " '", node.name,
        "' is given more than once");
    const auto set = [&](graph::Attribute value) { node.attributes.set(std::move(name), std::move(value)); };
    const auto missing = [&]() { flat::Source::fail_at(0, cat("attribute '", name, "' has no value")); };
    switch (static_cast<AttributeCode>(t.scalar<std::int32_t>(ort::attribute::kType))) {
      case AttributeCode::Float:
        return set(t.scalar<float>(ort::attribute::kFloat));
      case AttributeCode::Int:
        return set(t.scalar<std::int64_t>(ort::attribute::kInt));
      case AttributeCode::String:
        return set(copy(hold(t.text(ort::attribute::kString))));
      case AttributeCode::Floats:
        return set(numbers<float>(t, ort::attribute::kFloats));
      case AttributeCode::Ints:
        return set(numbers<std::int64_t>(t, ort::attribute::kInts));
      case AttributeCode::Strings: {
        std::vector<std::string> list;
        const Offsets items = t.offsets(ort::attribute::kStrings);
        for (std::size_t i = 0; i < items.size(); ++i) list.emplace_back(hold(items.text(i)));
        return set(std::move(list));
      }
      case AttributeCode::Tensor: {
        const auto value = t.table(ort::attribute::kTensor);
        if (!value) missing();
        return set(read_tensor(*value, false).second);
      }
      case AttributeCode::Tensors: {
        std::vector<Tensor> list;
        const Offsets items = t.offsets(ort::attribute::kTensors);
        for (std::size_t i = 0; i < items.size(); ++i) {
          budget_.take(StructureBudget::kTensor);
          list.push_back(read_tensor(items.table(i), false).second);
        }
        return set(std::move(list));
      }
      case AttributeCode::Graph: {
        const auto value = t.table(ort::attribute::kGraph);
        if (!value) missing();
        node.graphs.push_back({std::move(name), {read_body(*value, depth + 1)}, false});
        return;
      }
      case AttributeCode::Graphs: {
        graph::GraphAttribute out{std::move(name), {}, true};
        const Offsets items = t.offsets(ort::attribute::kGraphs);
        for (std::size_t i = 0; i < items.size(); ++i) out.graphs.push_back(read_body(items.table(i), depth + 1));
        node.graphs.push_back(std::move(out));
        return;
      }
      default:
        fail(ErrorCode::InvalidModel,
             cat("attribute '", name, "' of node ", node.op_type, " '", node.name, "' has the unsupported type ",
                 t.scalar<std::int32_t>(ort::attribute::kType)));
    }
  }

  template <class T>
  std::vector<T> numbers(const Table& t, int field) const {
    std::vector<T> list = t.scalars<T>(field);
    budget_.hold(list.size() * sizeof(T));
    return list;
  }

  std::string_view hold(std::string_view text) const {
    budget_.hold(StructureBudget::string_bytes(text.size()));
    return text;
  }

  std::shared_ptr<const GraphDef> read_body(const Table& t, int depth) const {
    auto out = std::make_shared<GraphDef>();
    read_graph(t, *out, depth);
    return out;
  }

  ValueType read_type(const Table& t, std::string_view name, int depth) const {
    INFERNODE_CHECK(depth <= kMaxTypeDepth, ErrorCode::InvalidModel, "the type of value '", name,
                    "' is nested too deeply");
    const auto value = t.table(ort::type::kValue);
    if (!value) return {};
    const auto element = [&](int field) {
      const auto inner = value->table(field);
      return inner ? read_type(*inner, name, depth + 1) : ValueType{};
    };
    switch (t.scalar<std::uint8_t>(ort::type::kKind)) {
      case ort::type::kTensor: {
        const DType type = read_element(value->scalar<std::int32_t>(ort::tensor_type::kElement), name);
        const auto shape = value->table(ort::tensor_type::kShape);
        return ValueType::tensor(type, shape ? std::optional(read_shape(*shape)) : std::nullopt);
      }
      case ort::type::kSequence:
        return ValueType::sequence(element(ort::sequence_type::kElement));
      case ort::type::kMap:
        return ValueType::map(read_element(value->scalar<std::int32_t>(ort::map_type::kKey), name),
                              element(ort::map_type::kValue));
      default:
        return {};
    }
  }

  static DType read_element(std::int32_t code, std::string_view name) {
    const auto type = tensor::dtype_from_code(code);
    INFERNODE_CHECK(type || code == 0, ErrorCode::InvalidModel, "value '", name, "' has the unknown element type ",
                    code);
    return type.value_or(DType::Undefined);
  }

  graph::SymShape read_shape(const Table& t) const {
    graph::SymShape out;
    const Offsets dims = t.offsets(ort::shape::kDims);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      Dim dim = Dim::unknown();
      if (const auto value = dims.table(i).table(ort::dim::kValue)) {
        const auto kind = value->scalar<std::int8_t>(ort::dim_value::kKind);
        const auto size = value->scalar<std::int64_t>(ort::dim_value::kSize);
        const std::string_view symbol = value->text(ort::dim_value::kSymbol);
        if (kind == ort::dim_value::kIsSize && size >= 0) dim = Dim(size);
        if (kind == ort::dim_value::kIsSymbol && !symbol.empty()) dim = Dim::symbol(symbol);
      }
      budget_.take(dim.known() ? StructureBudget::kDim : StructureBudget::kUnknownDim);
      out.push_back(std::move(dim));
    }
    return out;
  }

  std::pair<std::string, Tensor> read_tensor(const Table& t, bool named = true) const {
    std::string name(t.text(ort::tensor::kName));
    INFERNODE_CHECK(!named || !name.empty(), ErrorCode::InvalidModel, "a graph has an initializer without a name");
    const auto dims = t.scalars<std::int64_t>(ort::tensor::kDims);
    const TensorHeader header =
        make_header(std::move(name), t.scalar<std::int32_t>(ort::tensor::kType), Shape(std::span(dims)));
    if (t.scalar<std::int64_t>(ort::tensor::kExternalOffset, -1) >= 0)
      fail_tensor(header.name, "its data is in a checkpoint's file, which is for training");
    if (header.type == DType::String) return {header.name, read_strings(header, t.offsets(ort::tensor::kStrings))};
    const flat::Bytes raw = t.bytes(ort::tensor::kRaw, 1);
    if (raw.count != header.bytes)
      fail_tensor(header.name, cat("raw data of ", raw.count, " bytes does not fit ", tensor::name(header.type),
                                   header.shape.dims(), ", which takes ", header.bytes));
    flat_.spend(header.bytes);
    budget_.hold(header.bytes);
    SourceBytes bytes = bytes_;
    bytes.data = raw.data.data();
    bytes.size = raw.count;
    return {header.name, view_or_copy(header, bytes)};
  }

  Tensor read_strings(const TensorHeader& header, const Offsets& items) const {
    if (items.size() != static_cast<std::size_t>(header.shape.numel()))
      fail_tensor(header.name, cat("it holds ", items.size(), " strings where ", header.shape.dims(), " needs ",
                                   header.shape.numel()));
    budget_.expect_held(header.bytes);
    Tensor out = Tensor::make(DType::String, header.shape);
    for (std::size_t i = 0; i < items.size(); ++i) out.mutable_data<std::string>()[i] = hold(items.text(i));
    return out;
  }

  std::pair<std::string, tensor::Sparse> read_sparse(const Table& t) const {
    tensor::Sparse out;
    std::string name;
    if (const auto values = t.table(ort::sparse::kValues)) std::tie(name, out.values) = read_tensor(*values);
    if (const auto indices = t.table(ort::sparse::kIndices)) out.indices = read_tensor(*indices, false).second;
    if (out.values && !out.indices) out.indices = Tensor::make(DType::Int64, {0});
    const auto dims = t.scalars<std::int64_t>(ort::sparse::kDims);
    out.shape = Shape(std::span(dims));
    check_sparse(name, out);
    return {std::move(name), std::move(out)};
  }

  const SourceBytes& bytes_;
  flat::Source flat_;
  const ReadOptions& options_;
  mutable StructureBudget budget_;
  mutable DenseBudget dense_;
};

}  // namespace

bool is_ort_format(std::string_view bytes) { return bytes.size() >= 8 && bytes.substr(4, 4) == ort::kIdentifier; }

graph::Model read_ort(const SourceBytes& source, const ReadOptions& options) {
  return OrtReader(source, options).read();
}

}  // namespace infernode::onnx
