#include "session/model_interface.h"

#include <set>

namespace infernode::session {

using graph::Dim;
using graph::Graph;
using graph::Model;

namespace {

/// The names that dims of inputs have, for messages: the first twenty.
std::string dimension_names(const Graph& graph) {
  std::set<std::string> names;
  for (const graph::ValueId id : graph.inputs()) {
    if (const auto& shape = graph.value(id).type.shape) {
      for (const Dim& dim : *shape) names.insert(dim.symbol_name());
    }
  }
  names.erase("");
  if (names.empty()) return "no dimension of an input has a name";
  constexpr std::size_t kMost = 20;
  std::string text;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown++ < kMost) text += cat(text.empty() ? "the names are '" : ", '", name, "'");
  }
  return shown > kMost ? cat(text, " and ", shown - kMost, " more") : text;
}

bool is_complete(const graph::ValueType& type) {
  switch (type.kind) {
    case graph::ValueType::Kind::Unknown:
      return false;
    case graph::ValueType::Kind::Tensor:
    case graph::ValueType::Kind::SparseTensor:
      return type.elem != tensor::DType::Undefined;
    default:
      return type.inner && is_complete(*type.inner);
  }
}

ValueMetadata metadata_of(const Graph& graph, graph::ValueId id) {
  const graph::ValueInfo& value = graph.value(id);
  return {.name = value.name, .type = value.type, .overridable = value.is_input && value.has_constant()};
}

/// Dims of which inference does not know the size have the symbol that the file declares, if it declares one.
void name_dims(graph::ValueType& inferred, const graph::ValueType& declared) {
  if (!inferred.shape || !declared.shape || inferred.shape->size() != declared.shape->size()) return;
  for (std::size_t d = 0; d < inferred.shape->size(); ++d) {
    Dim& dim = (*inferred.shape)[d];
    const Dim& name = (*declared.shape)[d];
    if (!dim.known() && !name.symbol_name().empty()) dim = name;
  }
}

}  // namespace

void drop_constant_inputs(Model& model) {
  if (model.info.ir_version >= 4) return;
  Graph& graph = *model.graph;
  std::erase_if(graph.mutable_inputs(), [&](graph::ValueId id) {
    if (!graph.value(id).has_constant()) return false;
    graph.value(id).is_input = false;
    return true;
  });
}

void override_dimensions(Graph& graph, const SessionOptions& options, const Logger& logger) {
  std::map<std::string, std::int64_t, std::less<>> unused = options.free_dimensions;
  const std::string names = unused.empty() ? std::string() : dimension_names(graph);
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    auto& shape = graph.value(static_cast<graph::ValueId>(i)).type.shape;
    if (!shape) continue;
    for (Dim& dim : *shape) {
      const auto size = options.free_dimensions.find(dim.symbol_name());
      if (dim.known() || size == options.free_dimensions.end()) continue;
      unused.erase(size->first);
      dim = Dim(size->second);
    }
  }
  for (const auto& [name, size] : unused) {
    logger.write(LogSeverity::Warning, "load", "freeDimensionOverrides: no input has a dimension named '", name, "'; ",
                 names);
  }
}

void settle_inputs(Graph& graph) {
  for (const graph::ValueId id : graph.inputs()) {
    graph::ValueInfo& input = graph.value(id);
    const tensor::Tensor* held =
        input.has_constant() && input.constant.is_tensor() ? &input.constant.tensor() : nullptr;
    if (!held && !is_complete(input.type)) {
      fail(ErrorCode::InvalidModel,
           cat("input '", input.name, "' declares no element type; the file must say what it takes"),
           {.input = input.name});
    }
    if (held &&
        (input.type.is_tensor() ? input.type.elem != tensor::DType::Undefined && input.type.elem != held->dtype()
                                : input.type.kind != graph::ValueType::Kind::Unknown)) {
      fail(ErrorCode::InvalidModel,
           cat("initializer '", input.name, "' is ", held->to_string(), ", but the graph's input of that name is ",
               input.type.to_string()),
           {.input = input.name, .expected = input.type.to_string(), .actual = held->to_string()});
    }
    if (held && input.type.is_tensor()) input.type.elem = held->dtype();
  }
}

std::vector<graph::ValueType> output_types(const Graph& graph) {
  std::vector<graph::ValueType> types;
  for (const graph::ValueId id : graph.outputs()) types.push_back(graph.value(id).type);
  return types;
}

void describe_interface(const Graph& graph, const std::vector<graph::ValueType>& declared, LoadedModel& loaded) {
  std::vector<graph::ValueId> overridable;
  for (const graph::ValueId id : graph.inputs()) {
    if (graph.value(id).has_constant()) {
      overridable.push_back(id);
    } else {
      loaded.feeds.push_back(metadata_of(graph, id));
    }
  }
  loaded.input_count = loaded.feeds.size();
  for (const graph::ValueId id : overridable) loaded.feeds.push_back(metadata_of(graph, id));
  for (const graph::ValueId id : graph.outputs()) {
    loaded.outputs.push_back(metadata_of(graph, id));
    name_dims(loaded.outputs.back().type, declared[loaded.outputs.size() - 1]);
  }
}

}  // namespace infernode::session
