#include "session/session.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "base/system.h"
#include "session/prepared_run.h"
#include "session/session_state.h"

namespace infernode::session {

using runtime::Profiler;

Session::State::State(std::shared_ptr<Engine> e, SessionOptions o)
    : engine(std::move(e)),
      options(std::move(o)),
      logger(options.log_severity, options.log_id, options.log_sink),
      frames(options.cpu_arena),
      dynamic_block_base(number_of<std::size_t>(options.config, "session.dynamic_block_base",
                                                "a whole number up to 1000000",
                                                [](std::size_t base) { return base <= 1'000'000; })
                             .value_or(0)) {}

Session::State::Running::Running(State& state) : state_(state) {
  const std::lock_guard lock(state.mutex);
  if (state.released) fail(ErrorCode::Disposed, "Session already disposed.");
  ++state.running;
}

Session::State::Running::~Running() {
  const std::lock_guard lock(state_.mutex);
  if (--state_.running > 0) return;
  if (state_.released) state_.let_go();
  state_.idle.notify_all();
}

void Session::State::let_go() noexcept {
  frames.clear();
  model.plan.reset();
  model.providers.clear();
}

std::shared_ptr<Profiler> Session::State::current_profiler() {
  const std::lock_guard lock(mutex);
  return profiler;
}

std::vector<std::shared_ptr<provider::Provider>> Session::State::providers() {
  const std::lock_guard lock(mutex);
  if (released && running == 0) fail(ErrorCode::Disposed, "Session already disposed.");
  return model.providers;
}

namespace {

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

}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

Session::~Session() = default;

std::shared_ptr<Session> Session::create(std::shared_ptr<Engine> engine, ModelSource source, SessionOptions options,
                                         const kernel::CancelToken* cancel) {
  auto state = std::make_unique<State>(std::move(engine), std::move(options));
  if (state->options.profiling) state->profiler = std::make_shared<Profiler>();
  state->model =
      load_model(*state->engine, std::move(source), state->options, state->logger, cancel, state->profiler.get());
  state->options.external_data.clear();
  state->options.progress = {};
  state->symbols = SharedSymbols(state->model.feeds);
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

PreparedRun Session::prepare(std::vector<tensor::Value> feeds, RunOptions options) {
  return {shared_from_this(), std::move(feeds), std::move(options)};
}

bool Session::may_never_end() const { return state_->may_never_end; }

tensor::Tensor Session::allocate(tensor::DType dtype, const tensor::Shape& shape, tensor::Device device) {
  const tensor::Tensor zeros =
      dtype == tensor::DType::String
          ? tensor::Tensor::make(dtype, shape)
          : tensor::Tensor(dtype, shape, tensor::zeroed_host_buffer(tensor::byte_size(dtype, shape.numel())));
  if (device.is_host()) return zeros;
  for (const auto& provider : state_->providers()) {
    if (provider->device() != device) continue;
    const tensor::Tensor there = tensor::Tensor::make(dtype, shape, provider->allocator());
    copy(zeros, there);
    return there;
  }
  fail(ErrorCode::InvalidArgument, cat("this session has no device '", device.to_string(), "'"));
}

tensor::Buffer Session::allocate_staging(std::size_t bytes) {
  const auto providers = state_->providers();
  return (providers.empty() ? tensor::host_allocator() : providers.front()->host_allocator()).allocate(bytes);
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

bool Session::add_user() {
  const std::lock_guard lock(state_->mutex);
  if (state_->released) return false;
  ++state_->users;
  return true;
}

bool Session::release() {
  std::unique_lock lock(state_->mutex);
  if (state_->released) return false;
  if (--state_->users > 0) return true;
  state_->released = true;
  state_->idle.wait(lock, [&] { return state_->running == 0; });
  state_->let_go();
  lock.unlock();
  return_freed_memory();
  return true;
}

void Session::leave() noexcept {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->released || --state_->users > 0) return;
    state_->released = true;
    if (state_->running > 0) return;  // the last run lets go
    state_->let_go();
  }
  return_freed_memory();
}

bool Session::released() const {
  const std::lock_guard lock(state_->mutex);
  return state_->released;
}

std::size_t Session::memory_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return (state_->model.plan ? state_->model.plan->held_bytes() : 0) + state_->frames.bytes();
}

void Session::inspect(FunctionRef<void(const runtime::ExecutionPlan&, const Memory&)> look) {
  const State::Running running(*state_);
  const runtime::ExecutionPlan& plan = *state_->model.plan;
  look(plan, {.weights = plan.held_bytes(), .kept = state_->frames.bytes(), .arena = plan.last_arena_bytes()});
}

}  // namespace infernode::session
