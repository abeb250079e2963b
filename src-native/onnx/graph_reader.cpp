#include "onnx/graph_reader.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "graph/verifier.h"
#include "onnx/fields.h"

namespace infernode::onnx {

using graph::Attribute;
using graph::Dim;
using graph::GraphDef;
using graph::NodeDef;
using graph::ValueType;
using tensor::DType;

namespace {

constexpr int kMaxTypeDepth = 16;

std::optional<graph::SymShape> read_shape(Message proto, StructureBudget& budget) {
  graph::SymShape out;
  while (proto.next()) {
    if (proto.field() != shape_field::kDim) continue;
    Dim dim = Dim::unknown();
    for (Message d = proto.message(); d.next();) {
      if (d.field() == dim_field::kValue)
        dim = d.integer() >= 0 ? Dim(d.integer()) : Dim::unknown();
      else if (d.field() == dim_field::kParam && !d.bytes().empty())
        dim = Dim::symbol(d.bytes());
    }
    budget.take(dim.known() ? StructureBudget::kDim : StructureBudget::kUnknownDim);
    out.push_back(std::move(dim));
  }
  return out;
}

DType read_element_type(int64_t code, const std::string& name) {
  const auto type = tensor::dtype_from_code(code);
  INFERNODE_CHECK(type || code == 0, ErrorCode::InvalidModel, "value '", name, "' has the unknown element type ", code);
  return type.value_or(DType::Undefined);
}

/// Everything that an AttributeProto may hold; which of it counts is said by its type.
struct AttributeFields {
  std::string name, ref;
  AttributeType type = AttributeType::Undefined;
  AttributeType found = AttributeType::Undefined;  ///< the kind of field seen, for files that state no type
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::vector<Message> messages;  ///< tensors, graphs, types
};

bool is_list_of_messages(std::uint32_t field) {
  using namespace attribute_field;
  for (const std::uint32_t list : {kT, kTensors, kG, kGraphs, kTypeProto, kTypeProtos, kSparseTensor, kSparseTensors})
    if (field == list) return true;
  return false;
}

/// Room for what a list says that it holds: one that grows holds up to three times as much meanwhile.
void reserve_lists(Message m, AttributeFields& to, StructureBudget& budget) {
  std::size_t floats = 0, ints = 0, strings = 0, text = 0, messages = 0;
  while (m.next()) {
    const std::size_t size = m.is_bytes() ? m.bytes().size() : 0;
    if (m.field() == attribute_field::kStrings) ++strings, text += StructureBudget::string_bytes(size);
    if (m.field() == attribute_field::kS) text += size;
    if (is_list_of_messages(m.field())) ++messages;
    if (m.field() == attribute_field::kFloats) floats += m.is_bytes() ? size / sizeof(float) : 1;
    if (m.field() != attribute_field::kInts) continue;
    ints +=
        m.is_bytes() ? static_cast<std::size_t>(std::ranges::count_if(m.bytes(), [](char c) { return c >= 0; })) : 1;
  }
  budget.hold(floats * sizeof(float) + ints * sizeof(std::int64_t) + text);
  budget.take(messages * sizeof(Message));
  to.messages.reserve(messages);
  to.floats.reserve(floats);
  to.ints.reserve(ints);
  to.strings.reserve(strings);
}

AttributeFields read_fields(Message m, StructureBudget& budget) {
  AttributeFields a;
  reserve_lists(m, a, budget);
  const auto found = [&](AttributeType type) { a.found = type; };
  const auto nested = [&](AttributeType type) {
    a.found = type;
    a.messages.push_back(m.message());
  };
  while (m.next()) {
    switch (m.field()) {
      case attribute_field::kName:
        a.name = m.text();
        break;
      case attribute_field::kRefAttrName:
        a.ref = m.text();
        break;
      case attribute_field::kType:
        a.type = static_cast<AttributeType>(m.integer32());
        break;
      case attribute_field::kF:
        a.f = m.real();
        found(AttributeType::Float);
        break;
      case attribute_field::kI:
        a.i = m.integer();
        found(AttributeType::Int);
        break;
      case attribute_field::kS:
        a.s = m.text();
        found(AttributeType::String);
        break;
      case attribute_field::kFloats:
        m.each_fixed<float>([&](float v) { a.floats.push_back(v); });
        found(AttributeType::Floats);
        break;
      case attribute_field::kInts:
        m.each_varint([&](uint64_t v) { a.ints.push_back(static_cast<int64_t>(v)); });
        found(AttributeType::Ints);
        break;
      case attribute_field::kStrings:
        a.strings.push_back(m.text());
        found(AttributeType::Strings);
        break;
      case attribute_field::kT:
        nested(AttributeType::Tensor);
        break;
      case attribute_field::kTensors:
        nested(AttributeType::Tensors);
        break;
      case attribute_field::kG:
        nested(AttributeType::Graph);
        break;
      case attribute_field::kGraphs:
        nested(AttributeType::Graphs);
        break;
      case attribute_field::kTypeProto:
        nested(AttributeType::TypeProto);
        break;
      case attribute_field::kTypeProtos:
        nested(AttributeType::TypeProtos);
        break;
      case attribute_field::kSparseTensor:
        nested(AttributeType::SparseTensor);
        break;
      case attribute_field::kSparseTensors:
        nested(AttributeType::SparseTensors);
        break;
      default:
        break;
    }
  }
  if (a.type == AttributeType::Undefined) a.type = a.found;
  return a;
}

}  // namespace

void GraphReader::read_opset(Message proto, std::map<std::string, int64_t>& opsets) {
  std::string domain;
  int64_t version = 0;
  while (proto.next()) {
    if (proto.field() == opset_field::kDomain) domain = graph::normal_domain(proto.bytes());
    if (proto.field() == opset_field::kVersion) version = proto.integer();
  }
  INFERNODE_CHECK(version >= 0, ErrorCode::InvalidModel, "the model imports version ", version, " of operator set '",
                  domain.empty() ? "ai.onnx" : domain, "'");
  int64_t& known = opsets[domain];
  known = std::max(known, version);
}

ValueType GraphReader::read_type(Message proto, const std::string& name, int depth) const {
  INFERNODE_CHECK(depth <= kMaxTypeDepth, ErrorCode::InvalidModel, "the type of value '", name, "' is nested too deep");
  ValueType out;
  while (proto.next()) {
    switch (proto.field()) {
      case type_field::kTensor:
      case type_field::kSparseTensor: {
        DType elem = DType::Undefined;
        std::optional<graph::SymShape> shape;
        const bool is_sparse = proto.field() == type_field::kSparseTensor;
        for (Message m = proto.message(); m.next();) {
          if (m.field() == tensor_type_field::kElemType) elem = read_element_type(m.integer(), name);
          if (m.field() == tensor_type_field::kShape) shape = read_shape(m.message(), budget_);
        }
        if (elem != DType::Undefined || shape)
          out =
              is_sparse ? ValueType::sparse_tensor(elem, std::move(shape)) : ValueType::tensor(elem, std::move(shape));
        break;
      }
      case type_field::kSequence:
      case type_field::kOptional: {
        ValueType inner;
        const bool is_sequence = proto.field() == type_field::kSequence;
        for (Message m = proto.message(); m.next();)
          if (m.field() == element_type_field::kElemType) inner = read_type(m.message(), name, depth + 1);
        out = is_sequence ? ValueType::sequence(std::move(inner)) : ValueType::optional(std::move(inner));
        break;
      }
      case type_field::kMap: {
        DType key = DType::Undefined;
        ValueType value;
        for (Message m = proto.message(); m.next();) {
          if (m.field() == map_type_field::kKeyType) key = read_element_type(m.integer(), name);
          if (m.field() == map_type_field::kValueType) value = read_type(m.message(), name, depth + 1);
        }
        out = ValueType::map(key, std::move(value));
        break;
      }
      default:
        break;
    }
  }
  return out;
}

bool GraphReader::read_value(Message proto, graph::NamedType& out) const {
  std::optional<Message> type;
  budget_.take(StructureBudget::kType);
  while (proto.next()) {
    if (proto.field() == value_field::kName) {
      out.name = proto.text();
      budget_.take(0, out.name);
    }
    if (proto.field() == value_field::kType) type = proto.message();
  }
  if (type) out.type = read_type(*type, out.name);
  return !out.name.empty() && out.type.kind != ValueType::Kind::Unknown;
}

void GraphReader::read_graph(Message proto, GraphDef& out, int depth) const {
  INFERNODE_CHECK(depth <= graph::kMaxSubgraphDepth, ErrorCode::InvalidModel, "graphs are nested deeper than ",
                  graph::kMaxSubgraphDepth, " levels");
  budget_.take(StructureBudget::kGraph);
  std::size_t nodes = 0;
  for (Message counted = proto; counted.next();) nodes += counted.field() == graph_field::kNode ? 1 : 0;
  budget_.expect(nodes * StructureBudget::kNode);
  out.nodes.reserve(out.nodes.size() + nodes);
  while (proto.next()) {
    switch (proto.field()) {
      case graph_field::kNode:
        out.nodes.push_back(read_node(proto.message(), depth));
        break;
      case graph_field::kName:
        out.name = proto.text();
        break;
      case graph_field::kDoc:
        out.doc = proto.text();
        break;
      case graph_field::kInitializer: {
        budget_.take(StructureBudget::kTensor);
        auto [name, tensor] = tensors_.read(proto.message());
        INFERNODE_CHECK(!name.empty(), ErrorCode::InvalidModel, "graph '", out.name,
                        "' has an initializer without a name");
        out.initializers.emplace_back(std::move(name), std::move(tensor));
        break;
      }
      case graph_field::kSparseInitializer: {
        budget_.take(StructureBudget::kTensor);
        auto [name, sparse] = tensors_.read_sparse(proto.message());
        INFERNODE_CHECK(!name.empty(), ErrorCode::InvalidModel, "graph '", out.name,
                        "' has a sparse initializer without a name");
        tensor::Tensor dense = tensors_.to_dense(name, sparse);
        out.initializers.emplace_back(std::move(name), std::move(dense));
        break;
      }
      case graph_field::kInput:
      case graph_field::kOutput: {
        auto& list = proto.field() == graph_field::kInput ? out.inputs : out.outputs;
        graph::NamedType value;
        read_value(proto.message(), value);
        INFERNODE_CHECK(!value.name.empty(), ErrorCode::InvalidModel, "graph '", out.name,
                        "' has an input or output without a name");
        list.push_back(std::move(value));
        break;
      }
      case graph_field::kValueInfo: {
        graph::NamedType value;
        if (read_value(proto.message(), value)) out.value_info.push_back(std::move(value));
        break;
      }
      default:
        break;
    }
  }
}

NodeDef GraphReader::read_node(Message proto, int depth) const {
  if (checkpoint_) checkpoint_();
  budget_.take(StructureBudget::kNode);
  NodeDef out;
  std::vector<Message> attributes;
  while (proto.next()) {
    switch (proto.field()) {
      case node_field::kInput:
        budget_.take(StructureBudget::kInput, proto.bytes());
        out.inputs.push_back(proto.text());
        break;
      case node_field::kOutput:
        budget_.take(StructureBudget::kValue, proto.bytes());
        out.outputs.push_back(proto.text());
        break;
      case node_field::kName:
        budget_.take(0, proto.bytes());
        out.name = proto.text();
        break;
      case node_field::kOpType:
        budget_.take(0, proto.bytes());
        out.op_type = proto.text();
        break;
      case node_field::kDomain:
        out.domain = graph::normal_domain(proto.bytes());
        break;
      case node_field::kOverload:
        out.overload = proto.text();
        break;
      case node_field::kAttribute:
        budget_.take(StructureBudget::kAttribute);
        attributes.push_back(proto.message());
        break;
      default:
        break;
    }
  }
  INFERNODE_CHECK(!out.op_type.empty(), ErrorCode::InvalidModel, "node '", out.name, "' has no operator");
  for (const Message& attribute : attributes) {
    try {
      read_attribute(attribute, out, depth);
    } catch (Error& e) {
      if (e.code() == ErrorCode::InvalidModel && e.context().node.empty()) {
        e.context().node = out.name;
        e.context().op_type = out.op_type;
        const std::string label = !out.name.empty() ? out.name : out.outputs.empty() ? std::string() : out.outputs[0];
        e.prepend(cat("node ", out.op_type, " '", label, "': "));
      }
      throw;
    }
  }
  return out;
}

void GraphReader::read_attribute(Message proto, NodeDef& node, int depth) const {
  AttributeFields a = read_fields(proto, budget_);
  INFERNODE_CHECK(!a.name.empty(), ErrorCode::InvalidModel, "an attribute has no name");
  const bool repeated = node.attributes.has(a.name) ||
                        std::ranges::any_of(node.graphs, [&](const auto& g) { return g.name == a.name; }) ||
                        std::ranges::any_of(node.attribute_refs, [&](const auto& r) { return r.name == a.name; });
  INFERNODE_CHECK(!repeated, ErrorCode::InvalidModel, "attribute '", a.name, "' is given more than once");
  if (!a.ref.empty()) {
    node.attribute_refs.push_back({std::move(a.name), std::move(a.ref), static_cast<int>(a.type)});
    return;
  }
  const auto one = [&]() -> Message {
    INFERNODE_CHECK(a.messages.size() == 1, ErrorCode::InvalidModel, "attribute '", a.name, "' holds ",
                    a.messages.size(), " values where its type says one");
    return a.messages[0];
  };
  const auto set = [&](Attribute value) { node.attributes.set(a.name, std::move(value)); };
  switch (a.type) {
    case AttributeType::Float:
      return set(a.f);
    case AttributeType::Int:
      return set(a.i);
    case AttributeType::String:
      return set(std::move(a.s));
    case AttributeType::Floats:
      return set(std::move(a.floats));
    case AttributeType::Ints:
      return set(std::move(a.ints));
    case AttributeType::Strings:
      return set(std::move(a.strings));
    case AttributeType::Tensor:
      budget_.take(StructureBudget::kTensor);
      return set(tensors_.read(one()).second);
    case AttributeType::Tensors: {
      std::vector<tensor::Tensor> list;
      for (const Message& m : a.messages) {
        budget_.take(StructureBudget::kTensor);
        list.push_back(tensors_.read(m).second);
      }
      return set(std::move(list));
    }
    case AttributeType::SparseTensor: {
      const tensor::Sparse sparse = tensors_.read_sparse(one()).second;
      if (a.name != "sparse_value") return set(std::make_shared<const tensor::Sparse>(sparse));
      INFERNODE_CHECK(!node.attributes.has("value"), ErrorCode::InvalidModel, "it has a value and a sparse_value");
      return node.attributes.set("value", tensors_.to_dense(a.name, sparse));
    }
    case AttributeType::TypeProto:
      return set(read_type(one(), a.name));
    case AttributeType::Graph:
    case AttributeType::Graphs: {
      graph::GraphAttribute out{a.name, {}, a.type == AttributeType::Graphs};
      if (!out.is_list) (void)one();
      for (const Message& m : a.messages) {
        auto def = std::make_shared<GraphDef>();
        read_graph(m, *def, depth + 1);
        out.graphs.push_back(std::move(def));
      }
      node.graphs.push_back(std::move(out));
      return;
    }
    default:
      fail(ErrorCode::InvalidModel,
           cat("attribute '", a.name, "' has the unsupported type ", static_cast<int32_t>(a.type)));
  }
}

graph::FunctionDef GraphReader::read_function(Message proto) const {
  graph::FunctionDef out;
  NodeDef defaults;
  budget_.take(StructureBudget::kFunction);
  while (proto.next()) {
    switch (proto.field()) {
      case function_field::kName:
        out.name = proto.text();
        break;
      case function_field::kDomain:
        out.domain = graph::normal_domain(proto.bytes());
        break;
      case function_field::kOverload:
        out.overload = proto.text();
        break;
      case function_field::kInput:
        budget_.take(StructureBudget::kInput, proto.bytes());
        out.body.inputs.push_back({proto.text(), {}});
        break;
      case function_field::kOutput:
        budget_.take(StructureBudget::kInput, proto.bytes());
        out.body.outputs.push_back({proto.text(), {}});
        break;
      case function_field::kAttribute:
        budget_.take(StructureBudget::kInput, proto.bytes());
        out.attributes.push_back(proto.text());
        break;
      case function_field::kAttributeProto:
        budget_.take(StructureBudget::kAttribute);
        read_attribute(proto.message(), defaults, 0);
        break;
      case function_field::kNode:
        out.body.nodes.push_back(read_node(proto.message(), 0));
        break;
      case function_field::kOpsetImport:
        budget_.take(StructureBudget::kEntry);
        read_opset(proto.message(), out.opsets);
        break;
      case function_field::kValueInfo: {
        graph::NamedType value;
        if (read_value(proto.message(), value)) out.body.value_info.push_back(std::move(value));
        break;
      }
      default:
        break;
    }
  }
  INFERNODE_CHECK(!out.name.empty(), ErrorCode::InvalidModel, "the model has a function without a name");
  INFERNODE_CHECK(defaults.graphs.empty(), ErrorCode::InvalidModel, "function '", out.name,
                  "' has a graph as default of an attribute");
  out.defaults = std::move(defaults.attributes);
  out.body.name = out.name;
  return out;
}

}  // namespace infernode::onnx
