#include "session/loader.h"

#include <filesystem>
#include <functional>
#include <new>
#include <optional>

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/cpu_features.h"
#include "base/path.h"
#include "fusions/definition.h"
#include "graph/captures.h"
#include "graph/patch.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "passes/pipeline.h"
#include "runtime/run/end_apart.h"
#include "runtime/tuning/tuner.h"
#include "runtime/weights/packing_id.h"
#include "runtime/weights/weight_cache.h"
#include "session/model_check.h"
#include "session/model_interface.h"
#include "session/model_saver.h"
#include "session/pass_config.h"

namespace infernode::session {

namespace {

using graph::Model;

using Files = std::vector<std::shared_ptr<const MappedFile>>;

/// `files` gets those that are mapped.
Model read(Engine& engine, const ModelSource& source, const SessionOptions& options, const Logger& logger,
           const kernel::RunContext& load, Files& files) {
  onnx::ReadOptions read_options;
  read_options.external_data = options.external_data;
  read_options.logger = &logger;
  read_options.format = stated_format(options);
  read_options.map = [&](const std::string& path) { return files.emplace_back(engine.weights().map(path)); };
  read_options.checkpoint = [&load] { load.check(); };
  read_options.max_structure_bytes =
      number_of<std::size_t>(options.config, "session.max_structure_bytes", "a number of bytes", kAnyNumber)
          .value_or(onnx::kMaxStructureBytes);
  read_options.external_folder = text_of(options.config, "session.model_external_initializers_file_folder_path");
  return source.path.empty() ? onnx::read_model_bytes(source.bytes, read_options)
                             : onnx::read_model_file(source.path, read_options);
}

/// Throws Io where one was written to in place since it was mapped: what was read may be of neither state.
void check_unchanged(const Files& files) {
  for (const auto& file : files) {
    const FileIdentity& was = file->identity();
    FileIdentity now;
    try {
      now = file_identity(file->path());
    } catch (const Error&) {
      continue;  // it was renamed or deleted, and is mapped as it was
    }
    if (now.device == was.device && now.inode == was.inode && now != was) {
      fail(ErrorCode::Io,
           cat(file->path(), " was changed while it was loaded; write another file and rename it to replace a model"),
           {.path = file->path()});
    }
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

/// The model as it is now. Operators that only this engine knows get definitions that any runtime can use.
void write_optimized(const Model& model, const Engine& engine, const SessionOptions& options, const Logger& logger,
                     const kernel::RunContext& load) {
  const kernel::Registry& registry = engine.registry();
  onnx::WriteOptions write;
  write.means_the_same = [&registry](const graph::Node& node, std::int64_t imported) {
    const kernel::OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
    return schema != nullptr && schema == registry.find_schema(node.domain, node.op_type, imported);
  };
  const Model complete = fusions::with_definitions(model, registry, write.functions);
  graph::capture_constants(*complete.graph);
  save_model(complete, std::move(write), registry, options, logger, load);
}

/// The model as it would run on the CPU, or at level basic where other providers run parts of it, but for the
/// DequantizeLinears of constants, which stay.
void write_with_codes(Model model, Engine& engine, const SessionOptions& options, passes::PassOptions pass_options,
                      bool shared, const Logger& logger, const kernel::RunContext& load) {
  pass_options.keep_dequantizers = true;
  pass_options.separate_dequantizers = shared || options.level < passes::Level::Extended;
  passes::run_basic(model, pass_options);
  if (!shared) {
    provider::partition(*model.graph, {}, engine.registry(), {.load = &load});
    if (options.level >= passes::Level::Extended) passes::run_extended(model, "cpu", pass_options);
  }
  write_optimized(model, engine, options, logger, load);
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
    copy.graph = graph::GraphPatch::clone(*model.graph, [&load] { load.check(); });
    write_with_codes(std::move(copy), engine, options, pass_options, shared, logger, load);
    save = false;
  }
  if (options.level >= passes::Level::Basic) passes::run_basic(model, pass_options);
  // What a provider compiles cannot be written.
  if (save && shared) write_optimized(model, engine, options, logger, load);
  loaded.placements = provider::partition(
      *model.graph, loaded.providers, engine.registry(),
      {.forbid_cpu_fallback = is_on(options.config, "session.disable_cpu_ep_fallback"), .load = &load});
  if (options.level >= passes::Level::Extended) passes::run_extended(model, "cpu", pass_options);
  if (save && !shared) write_optimized(model, engine, options, logger, load);
  if (options.level >= passes::Level::Layout) passes::run_layout(model, pass_options);
}

/// The file in options.model_cache_dir for this model, by its path or, where it has none, its bytes, for all that
/// decides which weights are packed, and how, and for `more` facts. It only has to be another one for another model:
/// see WeightCache.
std::string cache_path(const ModelSource& source, const SessionOptions& options, CpuRung rung, std::string_view more,
                       std::string_view extension) {
  std::string facts = cat(more, to_string(rung), "\n", static_cast<int>(options.float32_precision), "\n",
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
  return cat(options.model_cache_dir, "/", content_hash(std::as_bytes(std::span(facts))).to_string(), extension);
}

/// What a method's time depends on, beside the node and the options: one line.
std::string machine_facts(std::size_t threads) {
  return cat(cpu_name(), ", ", threads, threads == 1 ? " thread" : " threads", ", build ", runtime::kPackingId);
}

/// Where options ask for it, what measures methods, with the file that keeps them.
class MethodTuning {
 public:
  MethodTuning(const ModelSource& source, const SessionOptions& options, CpuRung rung, std::size_t threads,
               const Logger& logger) {
    if (options.tuning == Tuning::kOff) return;
    if (!options.model_cache_dir.empty()) {
      const std::string facts = machine_facts(threads);
      file_.emplace(cache_path(source, options, rung, facts + "\n", ".methods"), facts, logger);
    }
    tuner_.emplace(file_ ? &*file_ : nullptr, logger);
  }
  runtime::Tuner* tuner() { return tuner_ ? &*tuner_ : nullptr; }
  void save() const {
    if (file_) file_->save();
  }

 private:
  std::optional<runtime::ChoiceFile> file_;
  std::optional<runtime::Tuner> tuner_;
};

/// Large constants come to lie where those of other sessions lie that are the same.
void share_constants(graph::Graph& graph, runtime::WeightStore& weights, const kernel::RunContext& load) {
  for (graph::ValueId id = 0; id < static_cast<graph::ValueId>(graph.values().size()); ++id) {
    graph::ValueInfo& value = graph.value(id);
    if (!value.has_constant() || !value.constant.is_tensor()) continue;
    load.check();
    const tensor::Tensor t = value.constant.tensor();
    if (t.dtype() == tensor::DType::String || weights.find(t.raw()) != nullptr) continue;
    value.constant = tensor::Tensor(t.dtype(), t.shape(), weights.share(t.buffer().slice(0, t.bytes())));
  }
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    if (graph.node(id).removed) continue;
    for (const auto& body : graph::subgraphs(graph.node(id))) share_constants(*body, weights, load);
  }
}

/// A large graph that a load leaves when it fails, or is ended, is freed elsewhere: who ended it waits for its answer.
class LeftApart {
 public:
  LeftApart(Model& model, ThreadPool& pool) : model_(model), pool_(pool) {}
  ~LeftApart() {
    constexpr std::size_t kMany = 1 << 12;
    const auto& graph = model_.graph;
    if (graph == nullptr || graph.use_count() > 1 || graph->node_count() < kMany) return;
    runtime::end_apart(pool_, std::move(model_));
  }
  LeftApart(const LeftApart&) = delete;
  LeftApart& operator=(const LeftApart&) = delete;

 private:
  Model& model_;
  ThreadPool& pool_;
};

class Stage {
 public:
  Stage(runtime::Profiler* profiler, const char* name)
      : profiler_(profiler), name_(name), begin_(runtime::Profiler::Clock::now()) {}
  ~Stage() {
    if (profiler_ == nullptr) return;
    try {
      profiler_->add("Session", name_, begin_, runtime::Profiler::Clock::now());
    } catch (const std::bad_alloc&) {  // the trace goes without it
    }
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  runtime::Profiler* profiler_;
  const char* name_;
  runtime::Profiler::Clock::time_point begin_;
};

}  // namespace

LoadedModel load_model(Engine& engine, ModelSource source, const SessionOptions& options, const Logger& logger,
                       const kernel::CancelToken* cancel, runtime::Profiler* profiler) {
  kernel::RunContext load;
  load.cancel = cancel;
  load.pool = &engine.pool();
  load.max_threads = threads_of(options, load.pool->size());
  std::optional<runtime::WeightCache> cache;
  if (!options.model_cache_dir.empty()) {
    cache.emplace(cache_path(source, options, engine.cpu_rung(), "", ".infernode"), engine.weights(), engine.pool(),
                  load.max_threads, logger);
  }
  MethodTuning tuning(source, options, engine.cpu_rung(), load.max_threads, logger);
  LoadedModel loaded;
  Model model;
  const LeftApart left(model, *load.pool);
  Files files;
  for (const auto& [name, bytes] : options.external_data) {
    if (auto file = engine.weights().find(bytes.data())) files.push_back(std::move(file));
  }
  {
    const Stage stage(profiler, source.path.empty() ? "model_loading_array" : "model_loading_uri");
    try {
      model = read(engine, source, options, logger, load, files);
    } catch (const Error&) {
      check_unchanged(files);
      throw;
    }
    source.bytes = {};
  }
  load.check();
  if (options.progress) options.progress("optimize", 0, 0);
  const Stage stage(profiler, "session_initialization");
  check_opsets(model, engine.registry(), logger);
  check_operators(model, engine.registry(), load);
  raise_opsets(model, engine.registry(), load);
  drop_constant_inputs(model);
  settle_inputs(*model.graph);
  override_dimensions(*model.graph, options, logger);
  loaded.info = model.info;
  graph::adopt_constants(*model.graph);
  const std::vector<graph::ValueType> declared = output_types(*model.graph);
  kernel::infer_graph(*model.graph, engine.registry(), &logger, &load);
  if (kernel::expand_functions(*model.graph, engine.registry(), &load) > 0)
    kernel::infer_graph(*model.graph, engine.registry(), &logger, &load);
  if (passes::guard_arc_tangents(*model.graph, engine.registry()))
    kernel::infer_graph(*model.graph, engine.registry(), &logger, &load);
  describe_interface(*model.graph, declared, loaded);
  load.check();
  optimize(model, engine, options, logger, load, loaded);
  graph::GraphPatch::compact(*model.graph, [&load] { load.check(); });
  share_constants(*model.graph, engine.weights(), load);
  const std::function<void(std::size_t, std::size_t)> built = [&options](std::size_t done, std::size_t total) {
    const std::size_t step = ceil_div(total, std::size_t{100});
    if (done % step == 0 || done == total) options.progress("build", done, total);
  };
  loaded.plan =
      runtime::ExecutionPlan::build(model.graph, {.registry = &engine.registry(),
                                                  .kernels = &engine.kernels(options.float32_precision),
                                                  .weights = &engine.weights(),
                                                  .cache = cache ? &*cache : nullptr,
                                                  .tuner = tuning.tuner(),
                                                  .providers = loaded.providers,
                                                  .logger = &logger,
                                                  .lay_out_memory = options.memory_pattern && !options.parallel,
                                                  .keep_memory = options.cpu_arena,
                                                  .check_shapes = shape_check(options),
                                                  .names_methods = profiler != nullptr,
                                                  .load = &load,
                                                  .built = options.progress ? &built : nullptr});
  if (cache) cache->save();
  tuning.save();
  // What runs read of the files comes back when they do; much of what loading read is packed now, or next to it.
  for (const auto& file : files) file->drop();
  check_unchanged(files);
  return loaded;
}

}  // namespace infernode::session
