#include "session/session.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "base/float_mode.h"
#include "base/mapped_file.h"
#include "base/system.h"
#include "runtime/brief_run.h"
#include "runtime/executor.h"
#include "session/feed_check.h"
#include "session/loader.h"

namespace infernode::session {

using runtime::Profiler;

/// What a session holds; `model` and `frames` are gone after release.
struct Session::State {
  State(std::shared_ptr<Engine> e, SessionOptions o)
      : engine(std::move(e)),
        options(std::move(o)),
        logger(options.log_severity, options.log_id),
        frames(options.cpu_arena),
        dynamic_block_base(number_of<std::size_t>(options.config, "session.dynamic_block_base",
                                                  "a whole number up to 1000000",
                                                  [](std::size_t base) { return base <= 1'000'000; })
                               .value_or(0)) {}

  std::shared_ptr<Engine> engine;
  const SessionOptions options;
  const Logger logger;
  LoadedModel model;
  runtime::FramePool frames;
  const std::size_t dynamic_block_base;

  std::mutex mutex;
  std::condition_variable idle;
  std::size_t running = 0;
  bool released = false;
  std::shared_ptr<Profiler> profiler;
  std::atomic<bool> warned_symbols = false;
  bool may_never_end = false;

  void begin_run() {
    const std::lock_guard lock(mutex);
    if (released) fail(ErrorCode::Disposed, "Session already disposed.");
    ++running;
  }
  void end_run() {
    const std::lock_guard lock(mutex);
    if (--running == 0) idle.notify_all();
  }
  /// Those there are, which live on while they are used though the session be released meanwhile.
  std::vector<std::shared_ptr<provider::Provider>> providers() {
    const std::lock_guard lock(mutex);
    if (released && running == 0) fail(ErrorCode::Disposed, "Session already disposed.");
    return model.providers;
  }
};

namespace {

/// Counts a run in and out, so that release() waits for it.
template <class State>
class RunGuard {
 public:
  explicit RunGuard(State& state) : state_(state) { state_.begin_run(); }
  ~RunGuard() { state_.end_run(); }
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

 private:
  State& state_;
};

bool has_loop(const graph::Graph& graph) {
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.removed) continue;
    if (node.domain.empty() && node.op_type == "Loop") return true;
    const auto bodies = graph::subgraphs(node);
    if (std::any_of(bodies.begin(), bodies.end(), [](const auto& body) { return has_loop(*body); })) return true;
  }
  return false;
}

/// Feeds in the order of the graph's inputs: null where an overridable initializer is not fed.
std::vector<const tensor::Value*> order_feeds(const LoadedModel& model, std::span<const tensor::Value> feeds) {
  const graph::Graph& graph = model.plan->graph();
  std::vector<const tensor::Value*> ordered;
  ordered.reserve(graph.inputs().size());
  std::size_t plain = 0, overridable = model.input_count;
  for (const graph::ValueId id : graph.inputs()) {
    const std::size_t at = graph.value(id).has_constant() ? overridable++ : plain++;
    ordered.push_back(at < feeds.size() && !feeds[at].empty() ? &feeds[at] : nullptr);
  }
  return ordered;
}

void check_feeds(const LoadedModel& model, std::span<const tensor::Value> feeds) {
  for (std::size_t i = 0; i < model.feeds.size(); ++i) {
    const bool given = i < feeds.size() && !feeds[i].empty();
    if (given) {
      check_feed(model.feeds[i], feeds[i]);
    } else if (i < model.input_count && model.feeds[i].type.kind != graph::ValueType::Kind::Optional) {
      fail(ErrorCode::InvalidArgument, cat("input '", model.feeds[i].name, "' is missing in 'feeds'."),
           {.input = model.feeds[i].name});
    }
  }
}

/// Feeds that lie on a device but are read on the host are copied there.
void bring_to_host(Session& session, const LoadedModel& model, std::span<tensor::Value> feeds) {
  const graph::Graph& graph = model.plan->graph();
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    if (!feeds[i].is_tensor() || feeds[i].tensor().device().is_host()) continue;
    const tensor::Tensor& t = feeds[i].tensor();
    if (model.plan->takes_input_on(graph.find_value(model.feeds[i].name), t.device())) continue;
    const tensor::Tensor host = tensor::Tensor::make(t.dtype(), t.shape());
    session.copy(t, host);
    feeds[i] = host;
  }
}

bool overlap(const tensor::Value& feed, const tensor::Tensor& target) {
  if (!feed.is_tensor()) return false;
  const tensor::Tensor& source = feed.tensor();
  return source.buffer().data() < target.buffer().data() + target.bytes() &&
         target.buffer().data() < source.buffer().data() + source.bytes();
}

/// What a run of these outputs has to do; null where all are wanted.
std::shared_ptr<const runtime::Demand> demand_of(const runtime::ExecutionPlan& plan,
                                                 std::span<const std::size_t> wanted) {
  std::vector<bool> asked(plan.graph().outputs().size());
  for (const std::size_t i : wanted) asked.at(i) = true;
  return plan.demand(asked);
}

/// What a brief run gives. One that is past its deadline is given up like one that found reasons to be.
template <class Execute>
std::vector<tensor::Value> or_not_brief(const Execute& execute, runtime::RunHistory& history) {
  try {
    return execute();
  } catch (const runtime::NotBrief&) {
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Aborted) throw;
  }
  history.given_up();
  throw runtime::NotBrief{};
}

/// A symbol that two inputs, or two dims of one, give different sizes, in words; empty where there is none. It is
/// allowed: each then stands for itself.
std::string disagreement(const LoadedModel& model, std::span<const tensor::Value> feeds) {
  struct Given {
    std::int64_t size;
    std::string_view input;
  };
  std::map<std::string, Given> sizes;
  for (std::size_t i = 0; i < model.feeds.size() && i < feeds.size(); ++i) {
    const auto& shape = model.feeds[i].type.shape;
    if (!shape || !feeds[i].is_tensor() || feeds[i].tensor().rank() != shape->size()) continue;
    for (std::size_t d = 0; d < shape->size(); ++d) {
      const std::string name = (*shape)[d].symbol_name();
      if (name.empty()) continue;
      const Given given{feeds[i].tensor().dim(d), model.feeds[i].name};
      const auto [at, fresh] = sizes.emplace(name, given);
      const Given& first = at->second;
      if (fresh || first.size == given.size) continue;
      return cat("inputs give dimension '", name, "' different sizes: ", first.size, " in '", first.input, "', ",
                 given.size, " in '", given.input, "'; each is taken as it is");
    }
  }
  return {};
}

}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

Session::~Session() = default;

std::shared_ptr<Session> Session::create(std::shared_ptr<Engine> engine, ModelSource source, SessionOptions options,
                                         const kernel::CancelToken* cancel) {
  auto state = std::make_unique<State>(std::move(engine), std::move(options));
  if (state->options.profiling) state->profiler = std::make_shared<Profiler>();
  state->model = load_model(*state->engine, source, state->options, state->logger, cancel, state->profiler.get());
  state->may_never_end = has_loop(state->model.plan->graph());
  constexpr std::size_t kMuch = std::size_t{1} << 20;
  if (state->model.plan->held_bytes() >= kMuch) return_freed_memory();
  return std::shared_ptr<Session>(new Session(std::move(state)));
}

const std::vector<ValueMetadata>& Session::feeds() const { return state_->model.feeds; }
std::size_t Session::input_count() const { return state_->model.input_count; }
const std::vector<ValueMetadata>& Session::outputs() const { return state_->model.outputs; }
const graph::ModelInfo& Session::info() const { return state_->model.info; }
const std::vector<provider::Placement>& Session::placements() const { return state_->model.placements; }
const SessionOptions& Session::options() const { return state_->options; }
Engine& Session::engine() const { return *state_->engine; }

void Session::check(std::span<const tensor::Value> feeds) const { check_feeds(state_->model, feeds); }

std::vector<tensor::Value> Session::run(const RunRequest& request) {
  const RunGuard guard(*state_);
  const LoadedModel& model = state_->model;
  check_feeds(model, request.feeds);
  if (!state_->warned_symbols) {
    const std::string warning = disagreement(model, request.feeds);
    if (!warning.empty() && !state_->warned_symbols.exchange(true))
      state_->logger.write(LogSeverity::Warning, "run", warning);
  }
  if (request.options.terminate) fail(ErrorCode::Aborted, "the run was asked to terminate");

  const std::size_t output_count = model.outputs.size();
  std::vector<tensor::Tensor> targets(output_count);
  std::vector<tensor::Device> devices(output_count);
  for (std::size_t i = 0; i < request.wanted.size(); ++i) {
    if (request.wanted[i] >= output_count)
      fail(ErrorCode::InvalidArgument, cat("no output ", request.wanted[i], ": the model has ", output_count));
    if (i < request.preallocated.size() && request.preallocated[i].is_tensor())
      targets[request.wanted[i]] = request.preallocated[i].tensor();
    if (i < request.devices.size()) devices[request.wanted[i]] = request.devices[i];
  }

  const auto called = Profiler::Clock::now();
  std::shared_ptr<Profiler> profiler;
  {
    const std::lock_guard lock(state_->mutex);
    profiler = state_->profiler;
  }
  const auto budget = std::make_shared<kernel::MemoryBudget>(state_->options.memory_limit);
  const runtime::FrameLease frame(state_->frames);
  const bool limited = state_->options.memory_limit != SIZE_MAX;
  runtime::BudgetAllocator charged((*frame).allocator, budget), charged_outputs(tensor::host_allocator(), budget);
  ThreadPool& pool = state_->engine->pool();
  const Logger logger =
      state_->logger.with(request.options.log_severity.value_or(state_->options.log_severity), state_->options.log_id);
  kernel::RunContext run{
      .pool = &pool,
      .max_threads = threads_of(state_->options, pool.size()),
      .dynamic_block_base = state_->dynamic_block_base,
      .precision = state_->options.float32_precision,
      .cancel = request.cancel,
      .deadline = {},
      .budget = limited ? budget.get() : nullptr,
      .logger = &logger,
      .profile = profiler.get(),
      .allocator = limited ? static_cast<tensor::Allocator*>(&charged) : &(*frame).allocator,
  };
  if (request.options.timeout_ms) {
    run.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(*request.options.timeout_ms);
  }

  const auto demand = demand_of(*model.plan, request.wanted);
  const std::size_t inter_op = state_->options.inter_op_threads;
  const FloatModeScope float_mode(true);
  std::vector<tensor::Value> feeds(request.feeds.begin(), request.feeds.end());
  bring_to_host(*this, model, feeds);
  // Memory that is read as a feed is written only when the run is over.
  std::vector<tensor::Tensor> bound = targets;
  for (tensor::Tensor& target : bound) {
    if (target && std::any_of(feeds.begin(), feeds.end(), [&](const auto& feed) { return overlap(feed, target); }))
      target = {};
  }
  const auto inputs = order_feeds(model, feeds);
  const auto shapes = request.brief ? model.plan->find_specialised(inputs) : model.plan->specialise(inputs, {});
  if (!shapes) throw runtime::NotBrief{};
  runtime::RunHistory& history = shapes->history_of(demand.get());
  const auto begin = Profiler::Clock::now();
  const bool brief = request.brief && shapes->control_flow;
  if (brief) {
    if (profiler || shapes->data_decides) throw runtime::NotBrief{};
    run.cancel = &runtime::kBriefRun;
    const std::chrono::steady_clock::time_point until = begin + *request.brief;
    run.deadline = std::min(run.deadline.value_or(until), until);
    bound.clear();  // a run that is given up has written nothing
  }
  const auto execute = [&] {
    return runtime::execute({.plan = *model.plan,
                             .shapes = *shapes,
                             .frame = *frame,
                             .run = run,
                             .inputs = inputs,
                             .captures = {},
                             .bound = bound,
                             .devices = devices,
                             .output_allocator = limited ? charged_outputs : tensor::host_allocator(),
                             .inter_op_threads = !state_->options.parallel ? 1
                                                 : inter_op == 0           ? pool.size()
                                                                           : inter_op,
                             .demand = demand.get()});
  };
  std::vector<tensor::Value> all = brief ? or_not_brief(execute, history) : execute();
  const auto end = Profiler::Clock::now();
  const double us = std::chrono::duration<double, std::micro>(end - begin).count();
  history.ended(us, brief);
  if (profiler) {
    profiler->add("Session", state_->options.parallel ? "ParallelExecutor::Execute" : "SequentialExecutor::Execute",
                  begin, end);
  }
  if (!text_of(request.options.config, "memory.enable_memory_arena_shrinkage").empty()) {
    (*frame).arena = {};
    (*frame).allocator.trim();
  }

  std::vector<tensor::Value> results;
  results.reserve(request.wanted.size());
  for (std::size_t i = 0; i < request.wanted.size(); ++i) {
    tensor::Value value = all[request.wanted[i]];
    const tensor::Tensor& target = targets[request.wanted[i]];
    if (target && value.is_tensor()) {
      const tensor::Tensor& made = value.tensor();
      if (made.buffer().data() != target.buffer().data() && made.dtype() == target.dtype() &&
          made.shape() == target.shape() && target.bytes() > 0) {
        copy(made, target);
        value = target;
      }
    }
    if (i < request.devices.size() && value.is_tensor() && value.tensor().device() != request.devices[i]) {
      const tensor::Tensor moved = allocate(value.tensor().dtype(), value.tensor().shape(), request.devices[i]);
      copy(value.tensor(), moved);
      value = moved;
    }
    results.push_back(std::move(value));
  }
  if (profiler) profiler->add("Session", "model_run", called, Profiler::Clock::now());
  return results;
}

std::vector<Session::OutputForecast> Session::forecast(std::span<const tensor::Value> feeds,
                                                       std::span<const std::size_t> wanted) {
  std::vector<OutputForecast> forecasts(wanted.size());
  try {
    const RunGuard guard(*state_);
    check_feeds(state_->model, feeds);
    const auto shapes = state_->model.plan->specialise(order_feeds(state_->model, feeds), {});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const graph::ValueType& type = shapes->outputs.at(wanted[i]);
      if (!type.is_tensor() || !type.shape) continue;
      if (const auto known = graph::to_known(*type.shape)) forecasts[i] = {type.elem, *known};
    }
  } catch (const Error&) {
    // run() will say what is wrong
  }
  return forecasts;
}

std::optional<double> Session::expected_run_us(std::span<const tensor::Value> feeds,
                                               std::span<const std::size_t> wanted) {
  std::shared_ptr<const runtime::ShapePlan> shapes;
  std::shared_ptr<const runtime::Demand> demand;
  try {
    const RunGuard guard(*state_);
    const runtime::ExecutionPlan& plan = *state_->model.plan;
    shapes = plan.find_specialised(order_feeds(state_->model, feeds));
    demand = demand_of(plan, wanted);
  } catch (const Error&) {
    return std::nullopt;  // released: run() will say so
  }
  if (!shapes) return std::nullopt;
  const runtime::RunHistory& history = shapes->history_of(demand.get());
  if (history.mean_us() < 0) return std::nullopt;
  const bool tells = !shapes->data_decides && history.worth_a_try();
  return tells ? history.mean_us() : std::numeric_limits<double>::infinity();
}

bool Session::may_never_end() const { return state_->may_never_end; }

tensor::Tensor Session::allocate(tensor::DType dtype, const tensor::Shape& shape, tensor::Device device) {
  const tensor::Tensor zeros = tensor::Tensor::make(dtype, shape);
  if (dtype != tensor::DType::String) std::fill_n(zeros.buffer().data(), zeros.bytes(), std::byte{0});
  if (device.is_host()) return zeros;
  for (const auto& provider : state_->providers()) {
    if (provider->device() != device) continue;
    const tensor::Tensor there = tensor::Tensor::make(dtype, shape, provider->allocator());
    copy(zeros, there);
    return there;
  }
  fail(ErrorCode::InvalidArgument, cat("this session has no device '", device.to_string(), "'"));
}

void Session::copy(const tensor::Tensor& from, const tensor::Tensor& to) {
  if (from.device().is_host() && to.device().is_host()) return tensor::copy_elements(from, to);
  const tensor::Device device = from.device().is_host() ? to.device() : from.device();
  for (const auto& provider : state_->providers()) {
    if (provider->device() != device) continue;
    const auto stream = provider->make_stream();
    provider->copy(from, to, *stream);
    stream->synchronize();
    return;
  }
  fail(ErrorCode::InvalidArgument, cat("this session has no device '", device.to_string(), "'"));
}

tensor::Device Session::device(std::string_view name) const {
  std::string known = "'cpu'";
  if (name == "cpu") return {};
  for (const auto& provider : state_->providers()) {
    const std::string full = provider->device().to_string();
    if (name == provider->name() || name == full) return provider->device();
    known += cat(", '", full, "'");
  }
  fail(ErrorCode::InvalidArgument, cat("unknown device '", name, "'; this session has ", known),
       {.expected = known, .actual = std::string(name)});
}

void Session::start_profiling() {
  const std::lock_guard lock(state_->mutex);
  if (!state_->profiler) state_->profiler = std::make_shared<Profiler>();
}

ProfileSummary Session::end_profiling() {
  std::shared_ptr<Profiler> profiler;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->released) fail(ErrorCode::Disposed, "Session already disposed.");
    profiler.swap(state_->profiler);
  }
  if (!profiler) return {};
  if (const std::size_t dropped = profiler->dropped(); dropped > 0) {
    state_->logger.write(LogSeverity::Error, "profile", "the trace is full at ", Profiler::kMaxEvents, " events; ",
                         dropped, " more are not in it");
  }
  ProfileSummary summary{.path = {}, .json = profiler->json()};
  const std::string prefix =
      state_->options.profile_prefix.empty() ? "infernode_profile" : state_->options.profile_prefix;
  const std::string path = Profiler::file_name(prefix);
  try {
    write_file(path, std::as_bytes(std::span(summary.json)));
    summary.path = path;
  } catch (const Error& error) {
    state_->logger.write(LogSeverity::Warning, "profile", "the trace could not be written: ", error.message());
  }
  return summary;
}

bool Session::release() {
  std::unique_lock lock(state_->mutex);
  if (state_->released) return false;
  state_->released = true;
  state_->idle.wait(lock, [&] { return state_->running == 0; });
  state_->model.plan.reset();
  state_->model.providers.clear();
  state_->frames.clear();
  lock.unlock();
  return_freed_memory();
  return true;
}

bool Session::released() const {
  const std::lock_guard lock(state_->mutex);
  return state_->released;
}

std::size_t Session::memory_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return (state_->model.plan ? state_->model.plan->held_bytes() : 0) + state_->frames.bytes();
}

}  // namespace infernode::session
