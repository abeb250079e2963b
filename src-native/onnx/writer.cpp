#include "onnx/writer.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <tuple>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/path.h"
#include "graph/walks.h"
#include "onnx/fields.h"
#include "onnx/tensor_writer.h"

namespace infernode::onnx {
namespace {

using graph::Attribute;
using graph::Graph;
using graph::NameTable;
using graph::Node;
using graph::ValueId;
using graph::ValueType;
using protozero::pbf_writer;
using tensor::Tensor;

constexpr size_t kDefaultThreshold = 1024;
constexpr const char* kWrapperDomain = "infernode.versions";

std::string dim_bytes(const graph::Dim& d) {
  std::string out;
  pbf_writer w(out);
  if (d.known())
    w.add_int64(dim_field::kValue, d.value());
  else if (const std::string text = d.to_string(); text.find('?') == std::string::npos)
    w.add_string(dim_field::kParam, text);
  return out;
}

/// A TypeProto. Made of strings: a pbf_writer leaves out empty messages, and an empty shape or dim has a meaning.
std::string type_bytes(const ValueType& type) {
  std::string inner, out;
  pbf_writer in(inner), w(out);
  const auto element = [&](uint32_t field) {
    if (type.inner) in.add_message(field, type_bytes(*type.inner));
  };
  switch (type.kind) {
    case ValueType::Kind::Unknown:
      break;
    case ValueType::Kind::Tensor:
    case ValueType::Kind::SparseTensor:
      in.add_int32(tensor_type_field::kElemType, static_cast<int32_t>(type.elem));
      if (type.shape) {
        std::string shape;
        pbf_writer dims(shape);
        for (const graph::Dim& d : *type.shape) dims.add_message(shape_field::kDim, dim_bytes(d));
        in.add_message(tensor_type_field::kShape, shape);
      }
      w.add_message(type.is_tensor() ? type_field::kTensor : type_field::kSparseTensor, inner);
      break;
    case ValueType::Kind::Sequence:
    case ValueType::Kind::Optional:
      element(element_type_field::kElemType);
      w.add_message(type.is_sequence() ? type_field::kSequence : type_field::kOptional, inner);
      break;
    case ValueType::Kind::Map:
      in.add_int32(map_type_field::kKeyType, static_cast<int32_t>(type.elem));
      element(map_type_field::kValueType);
      w.add_message(type_field::kMap, inner);
      break;
  }
  return out;
}

void write_value(pbf_writer out, const std::string& name, const ValueType& type) {
  out.add_string(value_field::kName, name);
  if (type.kind != ValueType::Kind::Unknown) out.add_message(value_field::kType, type_bytes(type));
}

void write_opset(pbf_writer out, const std::string& domain, int64_t version) {
  out.add_string(opset_field::kDomain, domain);
  out.add_int64(opset_field::kVersion, version);
}

AttributeType type_of(const Attribute& a) {
  // In the order of graph::Attribute's alternatives.
  constexpr AttributeType kTypes[] = {AttributeType::Int,    AttributeType::Float,        AttributeType::String,
                                      AttributeType::Ints,   AttributeType::Floats,       AttributeType::Strings,
                                      AttributeType::Tensor, AttributeType::SparseTensor, AttributeType::Tensors,
                                      AttributeType::Graph,  AttributeType::Graphs,       AttributeType::TypeProto};
  static_assert(std::variant_size_v<Attribute> == std::size(kTypes));
  return kTypes[a.index()];
}

/// A function that stands for nodes of one operator in another version than the model imports.
struct VersionWrapper {
  std::string domain, op_type;
  int64_t opset = 0;
  size_t inputs = 0, outputs = 0;
  std::vector<std::pair<std::string, AttributeType>> attributes;
  std::string name;
  auto key() const { return std::tie(domain, op_type, opset, inputs, outputs, attributes); }
};

class ModelWriter {
 public:
  ModelWriter(const graph::Model& model, const WriteOptions& options, ExternalSink* sink)
      : model_(model), options_(options), sink_(sink), imported_(model.info.opsets) {}

  std::string write() {
    const Graph& graph = *model_.graph;
    std::string graph_bytes;
    write_graph(pbf_writer(graph_bytes), graph, nullptr, model_.info.graph_name);
    for (const graph::FunctionDef& f : options_.functions) imported_.emplace(f.domain, 1);
    if (!options_.functions.empty() || !wrappers_.empty()) ir_version_ = std::max<int64_t>(ir_version_, 8);

    const graph::ModelInfo& info = model_.info;
    std::string out;
    pbf_writer w(out);
    w.add_int64(model_field::kIrVersion, std::max(ir_version_, info.ir_version));
    for (const auto& [domain, version] : imported_)
      write_opset(pbf_writer(w, model_field::kOpsetImport), domain, version);
    const auto text = [&](uint32_t field, const std::string& s) {
      if (!s.empty()) w.add_string(field, s);
    };
    text(model_field::kProducerName, info.producer_name);
    text(model_field::kProducerVersion, info.producer_version);
    text(model_field::kDomain, info.domain);
    if (info.model_version != 0) w.add_int64(model_field::kModelVersion, info.model_version);
    text(model_field::kDoc, info.doc);
    w.add_message(model_field::kGraph, graph_bytes);
    graph_bytes = {};
    for (const auto& [key, value] : info.metadata) {
      pbf_writer entry(w, model_field::kMetadata);
      entry.add_string(entry_field::kKey, key);
      entry.add_string(entry_field::kValue, value);
    }
    for (const graph::FunctionDef& f : options_.functions) write_function(pbf_writer(w, model_field::kFunctions), f);
    for (const VersionWrapper& v : wrappers_) write_wrapper(pbf_writer(w, model_field::kFunctions), v);
    INFERNODE_CHECK(out.size() <= options_.most_bytes, ErrorCode::InvalidModel, "the model takes ", out.size(),
                    " bytes, more than the 2 GB that protobuf allows: write it with external data");
    return out;
  }

 private:
  void note(const ValueType& type) {
    if (type.is_tensor()) ir_version_ = std::max(ir_version_, first_ir_version(type.elem));
  }

  void write_graph(pbf_writer out, const Graph& graph, const NameTable* outer, const std::string& name) {
    const NameTable names(graph, outer);
    for (graph::NodeId id : graph::topological_order(graph, [this] { look(); }))
      write_node(pbf_writer(out, graph_field::kNode), graph.node(id), names);
    // A graph without a name is refused by onnx's checker.
    out.add_string(graph_field::kName, name.empty() ? "graph" : name);
    if (!graph.doc.empty()) out.add_string(graph_field::kDoc, graph.doc);
    std::vector<bool> listed(graph.values().size(), false);
    const auto list = [&](uint32_t field, const std::vector<ValueId>& ids) {
      for (ValueId id : ids) {
        listed[static_cast<size_t>(id)] = true;
        note(graph.value(id).type);
        write_value(pbf_writer(out, field), names[id], graph.value(id).type);
      }
    };
    list(graph_field::kInput, graph.inputs());
    list(graph_field::kOutput, graph.outputs());
    for (const graph::Capture& c : graph.captures()) listed[static_cast<size_t>(c.inner)] = true;
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const graph::ValueInfo& info = graph.values()[v];
      const std::string& value_name = names[static_cast<ValueId>(v)];
      look();
      if (info.constant.is_tensor()) {
        note(ValueType::tensor(info.constant.tensor().dtype()));
        write_tensor(pbf_writer(out, graph_field::kInitializer), value_name, info.constant.tensor(), sink_);
      } else if (info.constant.is_sparse()) {
        write_sparse(pbf_writer(out, graph_field::kSparseInitializer), value_name, info.constant.sparse());
      } else {
        INFERNODE_CHECK(info.constant.empty(), ErrorCode::InvalidModel, "value '", info.name,
                        "' cannot be written: it is a constant that is no tensor");
        note(info.type);
        if (info.producer != graph::kNoNode && !listed[v] && info.type.kind != ValueType::Kind::Unknown)
          write_value(pbf_writer(out, graph_field::kValueInfo), value_name, info.type);
      }
    }
  }

  void look() const {
    if (options_.checkpoint) options_.checkpoint();
  }

  void write_node(pbf_writer out, const Node& node, const NameTable& names) {
    look();
    for (ValueId v : node.inputs) out.add_string(node_field::kInput, v == graph::kNoValue ? std::string() : names[v]);
    for (ValueId v : node.outputs) out.add_string(node_field::kOutput, v == graph::kNoValue ? std::string() : names[v]);
    if (!node.name.empty()) out.add_string(node_field::kName, node.name);
    const VersionWrapper* wrapper = wrapper_for(node);
    out.add_string(node_field::kOpType, wrapper ? wrapper->name : node.op_type);
    const std::string domain = wrapper ? kWrapperDomain : node.domain;
    if (!domain.empty()) out.add_string(node_field::kDomain, domain);
    if (!node.overload.empty()) out.add_string(node_field::kOverload, node.overload);
    for (const auto& [name, value] : node.attributes)
      write_attribute(pbf_writer(out, node_field::kAttribute), name, value, &names);
  }

  void write_attribute(pbf_writer out, const std::string& name, const Attribute& value, const NameTable* names) {
    out.add_string(attribute_field::kName, name);
    std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, int64_t>) {
            out.add_int64(attribute_field::kI, v);
          } else if constexpr (std::is_same_v<T, float>) {
            out.add_float(attribute_field::kF, v);
          } else if constexpr (std::is_same_v<T, std::string>) {
            out.add_bytes(attribute_field::kS, v);
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            for (int64_t i : v) out.add_int64(attribute_field::kInts, i);
          } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            for (float f : v) out.add_float(attribute_field::kFloats, f);
          } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            for (const std::string& s : v) out.add_bytes(attribute_field::kStrings, s);
          } else if constexpr (std::is_same_v<T, Tensor>) {
            write_tensor(pbf_writer(out, attribute_field::kT), "", v, sink_);
          } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
            for (const Tensor& t : v) write_tensor(pbf_writer(out, attribute_field::kTensors), "", t, sink_);
          } else if constexpr (std::is_same_v<T, std::shared_ptr<const tensor::Sparse>>) {
            write_sparse(pbf_writer(out, attribute_field::kSparseTensor), "", *v);
          } else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>) {
            write_graph(pbf_writer(out, attribute_field::kG), *v, names, v->name);
          } else if constexpr (std::is_same_v<T, std::vector<std::shared_ptr<Graph>>>) {
            for (const auto& g : v) write_graph(pbf_writer(out, attribute_field::kGraphs), *g, names, g->name);
          } else {
            out.add_message(attribute_field::kTypeProto, type_bytes(v));
          }
        },
        value);
    out.add_int32(attribute_field::kType, static_cast<int32_t>(type_of(value)));
  }

  /// Null where the node may be written as it is. Also imports the node's domain.
  const VersionWrapper* wrapper_for(const Node& node) {
    const auto [at, added] = imported_.emplace(node.domain, std::max<int64_t>(node.opset, 1));
    if (added || node.opset == 0 || at->second == node.opset) return nullptr;
    if (options_.means_the_same && options_.means_the_same(node, at->second)) return nullptr;
    // Graphs cannot pass through a function.
    if (!graph::subgraphs(node).empty()) return nullptr;
    VersionWrapper v{node.domain, node.op_type, node.opset, node.inputs.size(), node.outputs.size(), {}, {}};
    for (const auto& [name, value] : node.attributes) v.attributes.emplace_back(name, type_of(value));
    std::ranges::sort(v.attributes);
    const auto found = std::ranges::find_if(wrappers_, [&](const VersionWrapper& w) { return w.key() == v.key(); });
    if (found != wrappers_.end()) return &*found;
    v.name = cat(node.op_type, "_", node.opset, "_", wrappers_.size());
    imported_.emplace(kWrapperDomain, 1);
    wrappers_.push_back(std::move(v));
    return &wrappers_.back();
  }

  void write_wrapper(pbf_writer out, const VersionWrapper& v) {
    out.add_string(function_field::kName, v.name);
    out.add_string(function_field::kDomain, kWrapperDomain);
    write_opset(pbf_writer(out, function_field::kOpsetImport), v.domain, v.opset);
    for (size_t i = 0; i < v.inputs; ++i) out.add_string(function_field::kInput, cat("i", i));
    for (size_t i = 0; i < v.outputs; ++i) out.add_string(function_field::kOutput, cat("o", i));
    for (const auto& [name, type] : v.attributes) out.add_string(function_field::kAttribute, name);
    pbf_writer node(out, function_field::kNode);
    for (size_t i = 0; i < v.inputs; ++i) node.add_string(node_field::kInput, cat("i", i));
    for (size_t i = 0; i < v.outputs; ++i) node.add_string(node_field::kOutput, cat("o", i));
    node.add_string(node_field::kOpType, v.op_type);
    if (!v.domain.empty()) node.add_string(node_field::kDomain, v.domain);
    for (const auto& [name, type] : v.attributes) {
      pbf_writer attribute(node, node_field::kAttribute);
      attribute.add_string(attribute_field::kName, name);
      attribute.add_string(attribute_field::kRefAttrName, name);
      attribute.add_int32(attribute_field::kType, static_cast<int32_t>(type));
    }
  }

  void write_function(pbf_writer out, const graph::FunctionDef& f) {
    out.add_string(function_field::kName, f.name);
    out.add_string(function_field::kDomain, f.domain);
    if (!f.overload.empty()) out.add_string(function_field::kOverload, f.overload);
    for (const auto& [domain, version] : f.opsets)
      write_opset(pbf_writer(out, function_field::kOpsetImport), domain, version);
    for (const auto& input : f.body.inputs) out.add_string(function_field::kInput, input.name);
    for (const auto& output : f.body.outputs) out.add_string(function_field::kOutput, output.name);
    for (const std::string& name : f.attributes) out.add_string(function_field::kAttribute, name);
    for (const auto& [name, value] : f.defaults)
      write_attribute(pbf_writer(out, function_field::kAttributeProto), name, value, nullptr);
    for (const graph::NodeDef& node : f.body.nodes) write_definition(pbf_writer(out, function_field::kNode), f, node);
  }

  void write_definition(pbf_writer out, const graph::FunctionDef& f, const graph::NodeDef& node) {
    INFERNODE_CHECK(node.graphs.empty(), ErrorCode::Internal, "function '", f.name,
                    "' has a body with subgraphs, which is not written");
    for (const std::string& name : node.inputs) out.add_string(node_field::kInput, name);
    for (const std::string& name : node.outputs) out.add_string(node_field::kOutput, name);
    if (!node.name.empty()) out.add_string(node_field::kName, node.name);
    out.add_string(node_field::kOpType, node.op_type);
    if (!node.domain.empty()) out.add_string(node_field::kDomain, node.domain);
    for (const auto& [name, value] : node.attributes)
      write_attribute(pbf_writer(out, node_field::kAttribute), name, value, nullptr);
    for (const graph::AttributeRef& ref : node.attribute_refs) {
      pbf_writer attribute(out, node_field::kAttribute);
      attribute.add_string(attribute_field::kName, ref.name);
      attribute.add_string(attribute_field::kRefAttrName, ref.source);
      attribute.add_int32(attribute_field::kType, static_cast<int32_t>(ref.type));
    }
  }

  const graph::Model& model_;
  const WriteOptions& options_;
  ExternalSink* sink_;
  std::map<std::string, int64_t> imported_;
  std::deque<VersionWrapper> wrappers_;
  int64_t ir_version_ = 4;
};

/// f(tensor) for each that the graph and its subgraphs hold.
template <class F>
void for_each_tensor(const Graph& graph, const F& f) {
  for (const graph::ValueInfo& info : graph.values())
    if (info.constant.is_tensor()) f(info.constant.tensor());
  for (size_t n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.node(static_cast<graph::NodeId>(n));
    if (node.removed) continue;
    for (const auto& [name, value] : node.attributes) {
      if (const auto* t = std::get_if<Tensor>(&value)) f(*t);
      if (const auto* list = std::get_if<std::vector<Tensor>>(&value)) std::ranges::for_each(*list, f);
    }
    for (const auto& g : graph::subgraphs(node)) for_each_tensor(*g, f);
  }
}

/// What the tensor takes inside the model.
size_t bytes_inside(const Tensor& t) {
  if (t.dtype() != tensor::DType::String) return t.bytes();
  size_t total = 0;
  for (const std::string& s : t.span<std::string>()) total += s.size() + 2;  // with the field's number and its length
  return total;
}

size_t tensor_bytes(const Graph& graph) {
  size_t total = 0;
  for_each_tensor(graph, [&](const Tensor& t) { total = checked_add(total, bytes_inside(t)); });
  return total;
}

/// Size from which on tensors go to external data: the one that was asked for, or less where those below it would take
/// more than the model has room for.
size_t external_threshold(const Graph& graph, const WriteOptions& options) {
  const size_t room = options.most_bytes - options.most_bytes / 32;  // for everything that is no tensor, too
  size_t threshold = options.external_threshold;
  if (threshold == SIZE_MAX) {
    if (tensor_bytes(graph) <= room) return SIZE_MAX;
    threshold = kDefaultThreshold;
  }
  std::vector<size_t> inside;
  size_t total = 0;
  for_each_tensor(graph, [&](const Tensor& t) {
    const bool moves = ExternalSink::can_take(t);
    if (moves && t.bytes() >= threshold) return;
    total = checked_add(total, bytes_inside(t));
    if (moves) inside.push_back(t.bytes());
  });
  std::ranges::sort(inside, std::ranges::greater());
  for (const size_t largest : inside) {
    if (total <= room) break;
    total -= largest;
    threshold = largest;
  }
  INFERNODE_CHECK(total <= room, ErrorCode::InvalidModel, "the model's strings take ", total,
                  " bytes, more than the 2 GB that protobuf allows, and strings cannot be external data");
  return threshold;
}

/// A model and its external data: neither is put in place before both are written.
void write_with(ExternalSink& sink, const std::string& path, std::span<const std::byte> bytes) {
  const std::filesystem::path beside = to_path(temporary_beside(path));
  std::error_code error;
  try {
    write_file(to_utf8(beside), bytes);
    sink.finish();
    std::filesystem::rename(beside, to_path(path));
  } catch (const std::filesystem::filesystem_error& e) {
    std::filesystem::remove(beside, error);
    fail(ErrorCode::Io, cat("cannot replace ", path, ": ", e.code().message()));
  } catch (...) {
    std::filesystem::remove(beside, error);
    throw;
  }
}

}  // namespace

std::vector<std::byte> write_model_bytes(const graph::Model& model, const WriteOptions& options) {
  const size_t total = tensor_bytes(*model.graph);
  INFERNODE_CHECK(total <= options.most_bytes, ErrorCode::InvalidModel, "the model's tensors take ", total,
                  " bytes, more than the 2 GB that protobuf allows: write it to a file with external data");
  const std::string bytes = ModelWriter(model, options, nullptr).write();
  std::vector<std::byte> out(bytes.size());
  std::ranges::transform(bytes, out.begin(), [](char c) { return static_cast<std::byte>(c); });
  return out;
}

bool write_model_file(const graph::Model& model, const std::string& path, const WriteOptions& options) {
  const size_t threshold = external_threshold(*model.graph, options);
  std::optional<ExternalSink> sink;
  if (threshold != SIZE_MAX) {
    const size_t slash = path.find_last_of("/\\");
    const size_t at = slash == std::string::npos ? 0 : slash + 1;
    const std::string location = options.external_name.empty() ? path.substr(at) + ".data" : options.external_name;
    sink.emplace(path.substr(0, at) + location, location, threshold);
  }
  const std::string bytes = ModelWriter(model, options, sink ? &*sink : nullptr).write();
  try {
    if (sink) {
      write_with(*sink, path, std::as_bytes(std::span(bytes)));
    } else {
      write_file(path, std::as_bytes(std::span(bytes)));
    }
  } catch (const Error& e) {
    fail(ErrorCode::Io, cat("open file ", path, " failed: ", e.message()), {.path = path});
  }
  return sink.has_value();
}

}  // namespace infernode::onnx
