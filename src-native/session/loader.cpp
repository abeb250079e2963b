#include "session/loader.h"
#include "base/cpu_features.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/content_hash.h"
#include "base/path.h"
#include "fusions/definition.h"
#include "graph/captures.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "passes/names.h"
#include "passes/pipeline.h"
#include "runtime/weight_cache.h"
#include "session/model_saver.h"

namespace infernode::session {

namespace {

using graph::Dim;
using graph::Graph;
using graph::Model;

using Files = std::vector<std::shared_ptr<const MappedFile>>;

/// `files`: those that were mapped.
Model read(Engine& engine, const ModelSource& source, const SessionOptions& options, const Logger& logger,
           const kernel::RunContext& load, Files& files) {
  onnx::ReadOptions read_options;
  read_options.external_data = options.external_data;
  read_options.logger = &logger;
  read_options.format = stated_format(options);
  read_options.map = [&](const std::string& path) { return files.emplace_back(engine.weights().map(path)); };
  read_options.checkpoint = [&load] { load.check(); };
  read_options.external_folder = text_of(options.config, "session.model_external_initializers_file_folder_path");
  return source.path.empty() ? onnx::read_model_bytes(source.bytes, read_options)
                             : onnx::read_model_file(source.path, read_options);
}

/// Operators nobody knows, each with the nodes that use it.
struct Unknown {
  std::string why;
  std::size_t nodes = 0;
};
using UnknownOperators = std::vector<std::pair<std::string, Unknown>>;

void collect_unknown(const Graph& graph, const kernel::Registry& registry, UnknownOperators& unknown,
                     ErrorContext& first) {
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.removed) continue;
    if (registry.find_schema(node.domain, node.op_type, node.opset) == nullptr) {
      std::string key = cat(node.domain, ":", node.op_type, ":", node.opset);
      auto at = std::find_if(unknown.begin(), unknown.end(), [&](const auto& item) { return item.first == key; });
      if (at == unknown.end()) {
        const std::string why = registry.why_missing(node.domain, node.op_type, node.opset);
        unknown.emplace_back(
            std::move(key), Unknown{cat("In Node, ", graph::describe(graph, node), ": ", why, ". No Op registered for ",
                                        node.op_type, " with domain_version of ", node.opset, " (", node.op_type,
                                        " is not a registered function/op)")});
        at = unknown.end() - 1;
      }
      ++at->second.nodes;
      if (first.op_type.empty()) first = {.node = node.name, .op_type = node.op_type};
    }
    for (const auto& body : graph::subgraphs(node)) collect_unknown(*body, registry, unknown, first);
  }
}

/// Every operator the model uses and nobody knows, in one error.
void check_operators(const Model& model, const kernel::Registry& registry) {
  UnknownOperators unknown;
  ErrorContext context;
  collect_unknown(*model.graph, registry, unknown, context);
  if (unknown.empty()) return;
  for (const auto& [key, item] : unknown) {
    context.details.push_back(item.nodes == 1 ? item.why : cat(item.why, ", and ", item.nodes - 1, " more such nodes"));
  }
  std::string message = cat("This is an invalid model. ", context.details[0]);
  if (unknown.size() > 1) {
    message = cat("This is an invalid model: ", unknown.size(), " operators are not known:");
    for (const std::string& line : context.details) message += "\n  " + line;
  }
  fail(ErrorCode::UnsupportedOperator, std::move(message), std::move(context));
}

void check_opsets(const Model& model, const kernel::Registry& registry, const Logger& logger) {
  const auto onnx = model.info.opsets.find("");
  if (onnx == model.info.opsets.end() || onnx->second <= registry.newest_opset("")) return;
  const std::int64_t newest = std::max(registry.newest_opset(""), kernel::kNewestOnnxOpset);
  if (onnx->second > newest) {
    fail(ErrorCode::InvalidModel,
         cat("ValidateOpsetForDomain: the model imports opset ", onnx->second, " of ai.onnx, and ", newest,
             " is the newest known here. Export it with opset ", newest, " or lower, or update infernode."));
  }
  logger.write(LogSeverity::Verbose, "load", "opset ", onnx->second);
}

/// Before IR version 4 every initializer stood among the inputs; those are constants, not inputs.
void drop_constant_inputs(Model& model) {
  if (model.info.ir_version >= 4) return;
  Graph& graph = *model.graph;
  std::erase_if(graph.mutable_inputs(), [&](graph::ValueId id) {
    if (!graph.value(id).has_constant()) return false;
    graph.value(id).is_input = false;
    return true;
  });
}

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

/// Kernels are chosen by type: what can be fed must declare one, or be an initializer; where both, they agree.
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

ValueMetadata metadata_of(const Graph& graph, graph::ValueId id) {
  const graph::ValueInfo& value = graph.value(id);
  return {.name = value.name, .type = value.type, .overridable = value.is_input && value.has_constant()};
}

std::vector<graph::ValueType> output_types(const Graph& graph) {
  std::vector<graph::ValueType> types;
  for (const graph::ValueId id : graph.outputs()) types.push_back(graph.value(id).type);
  return types;
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

/// `declared`: types of the graph's outputs before inference.
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

std::vector<std::shared_ptr<provider::Provider>> make_providers(const Engine& engine, const SessionOptions& options,
                                                                const Logger& logger) {
  std::vector<std::shared_ptr<provider::Provider>> providers;
  const bool strict = !options.provider_fallback || is_on(options.config, "session.disable_provider_fallback");
  for (std::size_t i = 0; i < options.providers.size(); ++i) {
    const ProviderChoice& choice = options.providers[i];
    if (choice.name == "cpu") break;  // takes everything: entries after it get nothing
    const provider::ProviderFactory* factory = engine.find_provider(choice.name);
    try {
      if (factory == nullptr) {
        fail(ErrorCode::ProviderUnavailable,
             cat("no available backend found. ERR: [", choice.name, "] backend not found."));
      }
      providers.push_back(factory->make(choice.options, logger));
    } catch (const Error& error) {
      const bool another = i + 1 < options.providers.size();
      if (error.code() != ErrorCode::ProviderUnavailable || !another || strict) throw;
      logger.write(LogSeverity::Warning, "provider", "'", choice.name,
                   "' cannot start, the next in the list takes over: ", error.message());
    }
  }
  return providers;
}

std::set<std::string, std::less<>> listed_optimizers(std::string_view text) {
  std::set<std::string, std::less<>> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.find(','));
    passes::add_optimizer(items, text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return items;
}

/// The model as it is now. Operators that only this engine knows get definitions that any runtime can use.
void write_optimized(const Model& model, const Engine& engine, const SessionOptions& options, const Logger& logger) {
  const kernel::Registry& registry = engine.registry();
  onnx::WriteOptions write;
  write.means_the_same = [&registry](const graph::Node& node, std::int64_t imported) {
    const kernel::OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
    return schema != nullptr && schema == registry.find_schema(node.domain, node.op_type, imported);
  };
  const Model complete = fusions::with_definitions(model, write.functions);
  graph::capture_constants(*complete.graph);
  save_model(complete, std::move(write), registry, options, logger);
}

/// For tests: "1" looks for contradictions, "complete" also for what substitution does not know.
runtime::ShapeCheck shape_check(const SessionOptions& options) {
  constexpr std::string_view kKey = "session.check_symbolic_shapes";
  if (is_on(options.config, kKey)) return runtime::ShapeCheck::Contradictions;
  return text_of(options.config, kKey) == "complete" ? runtime::ShapeCheck::Complete : runtime::ShapeCheck::Off;
}

/// How large a folded constant may be; 0 is no bound.
std::size_t folding_limit(const SessionOptions& options, std::size_t fallback) {
  constexpr const char* kKey = "optimization.constant_folding_max_output_size_in_bytes";
  constexpr std::size_t kMost = std::size_t{1} << 40;
  const auto bytes = number_of<std::size_t>(options.config, kKey, "a number of bytes", kAnyNumber);
  if (!bytes) return fallback;
  return *bytes == 0 ? kMost : std::min(*bytes, kMost);
}

/// How products with weights of few bits are made.
void configure_products(passes::PassOptions& to, const SessionOptions& options) {
  to.accuracy_level =
      number_of<std::int64_t>(options.config, "session.qdq_matmulnbits_accuracy_level", "a number from 0 to 4",
                              [](std::int64_t level) { return level >= 0 && level <= 4; })
          .value_or(to.accuracy_level);
  const auto block = number_of<std::int64_t>(options.config, "session.qdq_matmulnbits_block_size",
                                             "a power of two from 16 to 256, 0 or -1", [](std::int64_t size) {
                                               return size == 0 || size == -1 ||
                                                      (size >= 16 && size <= 256 && (size & (size - 1)) == 0);
                                             });
  if (block && *block != 0) to.block_size = *block == -1 ? 0 : *block;
}

/// What the config entries say about optimizers.
void configure(passes::PassOptions& to, const SessionOptions& options) {
  to.disabled = listed_optimizers(text_of(options.config, "optimization.disable_specified_optimizers"));
  if (is_on(options.config, "session.disable_double_qdq_remover")) to.disabled.emplace("DoubleQDQPairsRemover");
  if (is_on(options.config, "session.disable_quant_qdq")) {
    for (const char* name : {"QDQSelectorActionTransformer", "DQMatMulNBitsFusion", "DequantizeMatMulFusion",
                             "GatherDequantizeFusion", "QDQPropagationTransformer", "DoubleQDQPairsRemover",
                             "WeightBiasQuantization", "WhereDummyDq", "EnsureUniqueDQForNodeUnit"})
      to.disabled.emplace(name);
  }
  if (is_on(options.config, "optimization.enable_cast_chain_elimination")) to.enabled.emplace("CastChainElimination");
  if (is_on(options.config, "session.enable_dq_matmulnbits_fusion")) to.enabled.emplace("DQMatMulNBitsFusion");
  if (is_on(options.config, "session.enable_quant_qdq_cleanup")) to.enabled.emplace("QDQFinalCleanupTransformer");
  configure_products(to, options);
  to.keep_dequantizers = is_on(options.config, "session.disable_qdq_constant_folding");
  to.max_folded_bytes = folding_limit(options, to.max_folded_bytes);
  to.max_dequantized_bytes = folding_limit(options, to.max_dequantized_bytes);
}

/// The model as it would run on the CPU, or at level basic where other providers run parts of it, but for the
/// DequantizeLinears of constants, which stay.
void write_with_codes(Model model, Engine& engine, const SessionOptions& options, passes::PassOptions pass_options,
                      bool shared, const Logger& logger) {
  pass_options.keep_dequantizers = true;
  pass_options.separate_dequantizers = shared || options.level < passes::Level::Extended;
  passes::run_basic(model, pass_options);
  if (!shared) {
    provider::partition(*model.graph, {}, engine.registry(), {});
    if (options.level >= passes::Level::Extended) passes::run_extended(model, "cpu", pass_options);
  }
  write_optimized(model, engine, options, logger);
}

void optimize(Model& model, Engine& engine, const SessionOptions& options, const Logger& logger,
              const kernel::RunContext& load, LoadedModel& loaded) {
  passes::PassOptions pass_options{.level = options.level,
                                   .registry = &engine.registry(),
                                   .logger = &logger,
                                   .allocator = &tensor::host_allocator(),
                                   .disabled = {},
                                   .fusions = &engine.fusions(),
                                   .load = &load};
  configure(pass_options, options);
  loaded.providers = make_providers(engine, options, logger);
  const bool shared = !loaded.providers.empty();
  pass_options.cpu_only = !shared;
  pass_options.kernels = &engine.kernels(options.float32_precision);
  bool save = !options.optimized_model_path.empty();
  if (save && options.level >= passes::Level::Basic && passes::should_keep_codes(model)) {
    Model copy = model;
    copy.graph = model.graph->clone();
    write_with_codes(std::move(copy), engine, options, pass_options, shared, logger);
    save = false;
  }
  if (options.level >= passes::Level::Basic) passes::run_basic(model, pass_options);
  if (save && shared) write_optimized(model, engine, options, logger);  // what a provider compiles cannot be written
  loaded.placements =
      provider::partition(*model.graph, loaded.providers, engine.registry(),
                          {.forbid_cpu_fallback = is_on(options.config, "session.disable_cpu_ep_fallback")});
  if (options.level >= passes::Level::Extended) passes::run_extended(model, "cpu", pass_options);
  if (save && !shared) write_optimized(model, engine, options, logger);
  if (options.level >= passes::Level::Layout) passes::run_layout(model, pass_options);
}

/// The file in options.model_cache_dir for this model, by its path or, where it has none, its bytes, and for all that
/// decides which weights are packed, and how. It only has to be another one for another model: see WeightCache.
std::string cache_path(const ModelSource& source, const SessionOptions& options, CpuRung rung) {
  std::string facts = cat(to_string(rung), "\n", static_cast<int>(options.float32_precision), "\n",
                          static_cast<int>(options.level), "\n");
  for (const ProviderChoice& choice : options.providers) facts += cat(choice.name, "\n");
  for (const auto& [name, size] : options.free_dimensions) facts += cat(name, "=", size, "\n");
  for (const auto& [key, value] : options.config) facts += cat(key, "=", value, "\n");
  if (source.path.empty()) {
    facts += content_hash({source.bytes.data(), source.bytes.size()}).to_string();
  } else {
    std::error_code ignored;
    const std::u8string path = std::filesystem::absolute(to_path(source.path), ignored).u8string();
    facts.append(path.begin(), path.end());
  }
  return cat(options.model_cache_dir, "/", content_hash(std::as_bytes(std::span(facts))).to_string(), ".infernode");
}

class Stage {
 public:
  Stage(runtime::Profiler* profiler, const char* name)
      : profiler_(profiler), name_(name), begin_(runtime::Profiler::Clock::now()) {}
  ~Stage() {
    if (profiler_ != nullptr) profiler_->add("Session", name_, begin_, runtime::Profiler::Clock::now());
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  runtime::Profiler* profiler_;
  const char* name_;
  runtime::Profiler::Clock::time_point begin_;
};

}  // namespace

LoadedModel load_model(Engine& engine, const ModelSource& source, const SessionOptions& options, const Logger& logger,
                       const kernel::CancelToken* cancel, runtime::Profiler* profiler) {
  kernel::RunContext load;
  load.cancel = cancel;
  load.pool = &engine.pool();
  load.max_threads = threads_of(options, load.pool->size());
  std::optional<runtime::WeightCache> cache;
  if (!options.model_cache_dir.empty()) {
    cache.emplace(cache_path(source, options, engine.cpu_rung()), engine.weights(), engine.pool(), load.max_threads,
                  logger);
  }
  LoadedModel loaded;
  Model model;
  Files files;
  {
    const Stage stage(profiler, source.path.empty() ? "model_loading_array" : "model_loading_uri");
    model = read(engine, source, options, logger, load, files);
  }
  load.check();
  const Stage stage(profiler, "session_initialization");
  check_opsets(model, engine.registry(), logger);
  check_operators(model, engine.registry());
  raise_opsets(model, engine.registry());
  drop_constant_inputs(model);
  settle_inputs(*model.graph);
  override_dimensions(*model.graph, options, logger);
  loaded.info = model.info;
  graph::adopt_constants(*model.graph);
  const std::vector<graph::ValueType> declared = output_types(*model.graph);
  kernel::infer_graph(*model.graph, engine.registry(), &logger, &load);
  if (kernel::expand_functions(*model.graph, engine.registry()) > 0)
    kernel::infer_graph(*model.graph, engine.registry(), &logger, &load);
  describe_interface(*model.graph, declared, loaded);
  load.check();
  optimize(model, engine, options, logger, load, loaded);
  load.check();
  model.graph->compact();
  loaded.plan =
      runtime::ExecutionPlan::build(model.graph, {.registry = &engine.registry(),
                                                  .kernels = &engine.kernels(options.float32_precision),
                                                  .weights = &engine.weights(),
                                                  .cache = cache ? &*cache : nullptr,
                                                  .providers = loaded.providers,
                                                  .logger = &logger,
                                                  .lay_out_memory = options.memory_pattern && !options.parallel,
                                                  .keep_memory = options.cpu_arena,
                                                  .check_shapes = shape_check(options),
                                                  .load = &load});
  if (cache) cache->save();
  // What runs read of the files comes back when they do; much of what loading read is packed now, or next to it.
  for (const auto& file : files) file->drop();
  return loaded;
}

}  // namespace infernode::session
