#include "session/model_saver.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "graph/definition.h"
#include "graph/patch.h"
#include "kernel/inference.h"
#include "kernel/run_context.h"
#include "onnx/ort_writer.h"

namespace infernode::session {

namespace {

using graph::Graph;
using kernel::OpSchema;
using kernel::Parameter;

constexpr std::string_view kExternalName = "session.optimized_model_external_initializers_file_name";
constexpr std::string_view kExternalSize = "session.optimized_model_external_initializers_min_size_in_bytes";
constexpr std::size_t kExternalFrom = 1024;

/// Which kind of file a setting names: "ORT" or "ONNX".
onnx::FileFormat format_of(const SessionOptions& options, std::string_view key) {
  const std::string_view text = text_of(options.config, key);
  if (text.empty()) return onnx::FileFormat::Detect;
  if (text == "ORT") return onnx::FileFormat::Ort;
  if (text == "ONNX") return onnx::FileFormat::Onnx;
  fail(ErrorCode::InvalidArgument, cat(key, " is '", text, "'; it may be 'ORT' or 'ONNX'"),
       {.expected = "'ORT' or 'ONNX'", .actual = std::string(text)});
}

bool saves_as_ort(const SessionOptions& options) {
  const onnx::FileFormat format = format_of(options, "session.save_model_format");
  return format == onnx::FileFormat::Ort ||
         (format == onnx::FileFormat::Detect && options.optimized_model_path.ends_with(".ort"));
}

void set_external_data(const SessionOptions& options, onnx::WriteOptions& write) {
  const std::string_view name = text_of(options.config, kExternalName);
  if (name.empty()) return;
  if (name.find_first_of("/\\:") != std::string_view::npos || name == "." || name == "..") {
    fail(ErrorCode::InvalidArgument,
         cat(kExternalName, " is '", name, "'; it must be the name of a file, which goes next to the model"),
         {.actual = std::string(name)});
  }
  if (options.optimized_model_path.ends_with(cat("/", name)) || options.optimized_model_path == name) {
    fail(ErrorCode::InvalidArgument, cat(kExternalName, " is '", name, "', which is the model's own name"));
  }
  write.external_name = name;
  const auto from = number_of<std::size_t>(options.config, kExternalSize, "a number of bytes", kAnyNumber);
  // A threshold above every size still is one: the writer takes SIZE_MAX for none.
  write.external_threshold = std::min(from.value_or(kExternalFrom), SIZE_MAX - 1);
}

/// Types that the standard names and the schemas here spell out, and names that a later version changed: operator,
/// parameter or constraint here, name there.
constexpr struct {
  std::string_view op, here, there;
} kTypeNames[] = {
    {"AffineGrid", "size", "T2"},        {"Compress", "condition", "T1"}, {"Identity", "V", "T"},
    {"RoiAlign", "batch_indices", "T2"}, {"Tile", "repeats", "T1"},       {"TopK", "Indices", "I"},
};

/// Kernels of other runtimes ask for types by the names that the standard gives them: the constraint's, or the
/// parameter's where its type is written out.
onnx::OrtOperator describe(const kernel::Registry& registry, const graph::Node& node) {
  onnx::OrtOperator out;
  out.since_version = std::max<std::int64_t>(node.opset, 1);
  const OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
  if (schema == nullptr) return out;
  out.since_version = schema->since_version;
  out.input_count = schema->inputs.size();
  out.variadic = schema->max_inputs() == SIZE_MAX;
  const auto add_name = [&](std::string_view name, std::size_t index, bool is_input) {
    auto at = std::ranges::find(out.types, name, &onnx::OrtOperator::TypeName::name);
    if (at == out.types.end()) {
      out.types.push_back({std::string(name), {}, {}});
      at = out.types.end() - 1;
    }
    (is_input ? at->inputs : at->outputs).push_back(index);
  };
  const auto add = [&](const Parameter& parameter, std::size_t index, bool is_input) {
    const std::string& constraint = schema->constraints.at(parameter.constraint).name;
    const std::string& name = constraint.empty() ? parameter.name : constraint;
    add_name(name, index, is_input);
    for (const auto& [op, here, there] : kTypeNames) {
      if (schema->domain.empty() && op == schema->name && here == name) add_name(there, index, is_input);
    }
  };
  for (std::size_t i = 0; i < schema->inputs.size(); ++i) add(schema->inputs[i], i, true);
  for (std::size_t i = 0; i < schema->outputs.size(); ++i) add(schema->outputs[i], i, false);
  return out;
}

/// Constant nodes become initializers, in bodies too: readers of the format have no kernel for them.
void lift_constants(Graph& graph, const kernel::Registry& registry) {
  kernel::RunContext run;
  run.allocator = &tensor::host_allocator();
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    if (graph.node(id).removed) continue;
    for (const auto& body : graph::subgraphs(graph.node(id))) lift_constants(*body, registry);
    const graph::Node& node = graph.node(id);
    if (node.op_type != "Constant" || !node.domain.empty()) continue;
    const std::vector<tensor::Value> made = kernel::evaluate_node(graph, node, {}, registry, run);
    graph::GraphPatch patch(graph);
    patch.fold(node.outputs.at(0), made.at(0));
    patch.apply();
  }
}

void save_ort(graph::Model model, const onnx::WriteOptions& write, const kernel::Registry& registry,
              const SessionOptions& options, const Logger& logger, const kernel::RunContext& load) {
  graph::inline_functions(*model.graph, write.functions);
  model.graph->compact();
  kernel::infer_graph(*model.graph, registry, &logger, &load);
  lift_constants(*model.graph, registry);
  const std::vector<std::byte> bytes = onnx::write_ort_bytes(model, {.describe = [&](const graph::Node& node) {
                                                               load.check();
                                                               return describe(registry, node);
                                                             }});
  try {
    write_file(options.optimized_model_path, bytes);
  } catch (const Error& e) {
    fail(ErrorCode::Io, cat("open file ", options.optimized_model_path, " failed: ", e.message()),
         {.path = options.optimized_model_path});
  }
}

void raise_opsets(Graph& graph, const graph::Model& model, const kernel::Registry& registry,
                  const kernel::RunContext& load) {
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    load.check();
    graph::Node& node = graph.node(id);
    const auto imported = model.info.opsets.find(node.domain);
    if (imported != model.info.opsets.end() && imported->second > node.opset) {
      const OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
      if (schema != nullptr && schema == registry.find_schema(node.domain, node.op_type, imported->second))
        node.opset = imported->second;
    }
    for (const auto& body : graph::subgraphs(node)) raise_opsets(*body, model, registry, load);
  }
}

}  // namespace

void save_model(graph::Model model, onnx::WriteOptions write, const kernel::Registry& registry,
                const SessionOptions& options, const Logger& logger, const kernel::RunContext& load) {
  if (saves_as_ort(options)) return save_ort(std::move(model), write, registry, options, logger, load);
  write.checkpoint = [&load] { load.check(); };
  set_external_data(options, write);
  onnx::write_model_file(model, options.optimized_model_path, write);
}

onnx::FileFormat stated_format(const SessionOptions& options) {
  return format_of(options, "session.load_model_format");
}

void raise_opsets(graph::Model& model, const kernel::Registry& registry, const kernel::RunContext& load) {
  raise_opsets(*model.graph, model, registry, load);
}

}  // namespace infernode::session
