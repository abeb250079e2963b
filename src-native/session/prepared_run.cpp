#include "session/prepared_run.h"

#include <algorithm>

#include "base/float_mode.h"
#include "runtime/brief/brief_run.h"
#include "runtime/run/executor.h"
#include "session/feed_check.h"
#include "session/session_state.h"

namespace infernode::session {

namespace {

using runtime::Profiler;
using tensor::Tensor;
using tensor::Value;

void check_feeds(const LoadedModel& model, std::span<const Value> feeds) {
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

/// Feeds in the order of the graph's inputs: null where an overridable initializer is not fed.
std::vector<const Value*> order_feeds(const LoadedModel& model, std::span<const Value> feeds) {
  const graph::Graph& graph = model.plan->graph();
  std::vector<const Value*> ordered;
  ordered.reserve(graph.inputs().size());
  std::size_t plain = 0, overridable = model.input_count;
  for (const graph::ValueId id : graph.inputs()) {
    const std::size_t at = graph.value(id).has_constant() ? overridable++ : plain++;
    ordered.push_back(at < feeds.size() && !feeds[at].empty() ? &feeds[at] : nullptr);
  }
  return ordered;
}

/// The feeds with those that lie on a device but are read on the host copied there; empty where there are none.
std::vector<Value> bring_to_host(Session& session, const LoadedModel& model, const std::vector<Value>& feeds) {
  const graph::Graph& graph = model.plan->graph();
  std::vector<Value> brought;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    if (!feeds[i].is_tensor() || feeds[i].tensor().device().is_host()) continue;
    const Tensor& t = feeds[i].tensor();
    if (model.plan->takes_input_on(graph.find_value(model.feeds[i].name), t.device())) continue;
    const Tensor host = Tensor::make(t.dtype(), t.shape());
    session.copy(t, host);
    if (brought.empty()) brought = feeds;
    brought[i] = host;
  }
  return brought;
}

bool overlap(const Value& feed, const Tensor& target) {
  if (!feed.is_tensor()) return false;
  const Tensor& source = feed.tensor();
  return source.buffer().data() < target.buffer().data() + target.bytes() &&
         target.buffer().data() < source.buffer().data() + source.bytes();
}

bool fits(const Tensor& made, const Tensor& target) {
  return made.dtype() == target.dtype() && made.shape() == target.shape();
}

/// Results: large ones from the frame, to which they return once nobody holds them, so that their pages are not made
/// anew at each run.
class ResultAllocator final : public tensor::Allocator {
 public:
  explicit ResultAllocator(tensor::Allocator& frame) : frame_(frame) {}
  tensor::Buffer allocate(std::size_t bytes) override {
    constexpr std::size_t kLarge = std::size_t{1} << 20;
    return (bytes >= kLarge ? frame_ : tensor::host_allocator()).allocate(bytes);
  }
  tensor::Device device() const override { return {}; }

 private:
  tensor::Allocator& frame_;
};

/// Where a run's memory comes from: the frame and the system, and through the budget where there is a limit.
class RunMemory {
 public:
  RunMemory(runtime::Frame& frame, std::size_t limit) : frame_(frame), results_(frame.allocator) {
    if (limit == SIZE_MAX) return;
    budget_ = std::make_shared<kernel::MemoryBudget>(limit);
    scratch_.emplace(frame.allocator, budget_);
    outputs_.emplace(results_, budget_);
  }
  const std::shared_ptr<kernel::MemoryBudget>& budget() const { return budget_; }  ///< null: no limit
  tensor::Allocator& scratch() { return scratch_ ? static_cast<tensor::Allocator&>(*scratch_) : frame_.allocator; }
  tensor::Allocator& outputs() { return outputs_ ? static_cast<tensor::Allocator&>(*outputs_) : results_; }

 private:
  runtime::Frame& frame_;
  ResultAllocator results_;
  std::shared_ptr<kernel::MemoryBudget> budget_;
  std::optional<runtime::BudgetAllocator> scratch_, outputs_;
};

/// What a run that is tried as a brief one gives; nullopt where it was given up, or is past its deadline.
std::optional<std::vector<Value>> try_briefly(const runtime::Execution& execution, runtime::RunHistory& history) {
  try {
    return runtime::execute(execution);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Aborted) throw;
    history.given_up();
    return std::nullopt;
  }
}

}  // namespace

PreparedRun::PreparedRun(std::shared_ptr<Session> session, std::vector<Value> feeds, RunOptions options)
    : session_(std::move(session)), options_(std::move(options)), feeds_(std::move(feeds)) {
  if (options_.timeout_ms) deadline_ = Profiler::Clock::now() + std::chrono::milliseconds(*options_.timeout_ms);
  Session::State& state = *session_->state_;
  const Session::State::Running running(state);
  check_feeds(state.model, feeds_);
  if (!state.warned_symbols) {
    const std::string warning = state.symbols.disagreement(state.model.feeds, feeds_);
    if (!warning.empty() && !state.warned_symbols.exchange(true))
      state.logger.write(LogSeverity::Warning, "run", warning);
  }
  shapes_ = state.model.plan->find_specialised(order_feeds(state.model, feeds_));
}

void PreparedRun::want(std::size_t output, tensor::Device device) {
  const std::size_t count = session_->outputs().size();
  if (output >= count) fail(ErrorCode::InvalidArgument, cat("no output ", output, ": the model has ", count));
  wanted_.push_back({.output = output, .device = device, .target = {}});
  demand_known_ = false;
}

/// What the run has to do; null where all outputs are wanted. While the run is counted in.
const runtime::Demand* PreparedRun::demand() {
  if (!std::exchange(demand_known_, true)) {
    std::vector<bool> asked(session_->outputs().size());
    for (const Wanted& wanted : wanted_) asked[wanted.output] = true;
    demand_ = session_->state_->model.plan->demand(asked);
  }
  return demand_.get();
}

std::optional<double> PreparedRun::expected_us() {
  if (!shapes_) return std::nullopt;
  try {
    const Session::State::Running running(*session_->state_);
    return runtime::expected_us(*shapes_, demand());
  } catch (const Error&) {
    return std::nullopt;  // released: execute() will say so
  }
}

std::vector<PreparedRun::ResultShape> PreparedRun::result_shapes() {
  std::vector<ResultShape> results(wanted_.size());
  try {
    Session::State& state = *session_->state_;
    const Session::State::Running running(state);
    if (!shapes_) shapes_ = state.model.plan->specialise(order_feeds(state.model, feeds_), {});
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const graph::ValueType& type = shapes_->outputs.at(wanted_[i].output);
      if (!type.is_tensor() || !type.shape) continue;
      if (const auto known = graph::to_known(*type.shape)) results[i] = {type.elem, *known};
    }
  } catch (const Error&) {
    // execute() will say what is wrong
  }
  return results;
}

std::vector<Value> PreparedRun::execute(const kernel::CancelToken* cancel) { return *run(cancel, std::nullopt); }

std::optional<std::vector<Value>> PreparedRun::execute_briefly(Microseconds most) { return run(nullptr, most); }

/// By output of the model: memory to write it into while the feeds are still read, and where it shall stay.
void PreparedRun::place_outputs(std::vector<Tensor>& targets, std::vector<tensor::Device>& devices) const {
  targets.resize(session_->outputs().size());
  devices.resize(targets.size());
  for (const Wanted& wanted : wanted_) {
    const auto is_read = [&](const Value& feed) { return overlap(feed, wanted.target); };
    if (wanted.target && std::ranges::none_of(feeds_, is_read)) targets[wanted.output] = wanted.target;
    devices[wanted.output] = wanted.device;
  }
}

std::optional<std::vector<Value>> PreparedRun::run(const kernel::CancelToken* cancel,
                                                   std::optional<Microseconds> most) {
  Session::State& state = *session_->state_;
  const Session::State::Running running(state);
  if (options_.terminate) fail(ErrorCode::Aborted, "the run was asked to terminate");
  const auto called = Profiler::Clock::now();
  const std::shared_ptr<Profiler> profiler = state.current_profiler();
  if (most && (!shapes_ || !runtime::may_be_brief(*shapes_, profiler != nullptr))) return std::nullopt;

  const SessionOptions& options = state.options;
  const runtime::FrameLease frame(state.frames);
  RunMemory memory(*frame, options.memory_limit);
  const Logger logger = state.logger.with(options_.log_severity.value_or(options.log_severity), options.log_id);
  ThreadPool& pool = state.engine->pool();
  kernel::RunContext context{.pool = &pool,
                             .max_threads = threads_of(options, pool.size()),
                             .dynamic_block_base = state.dynamic_block_base,
                             .cancel = cancel,
                             .deadline = deadline_,
                             .budget = memory.budget().get(),
                             .logger = &logger,
                             .profile = profiler.get(),
                             .allocator = &memory.scratch()};

  const FloatModeScope float_mode(true);
  const std::vector<Value> on_host = bring_to_host(*session_, state.model, feeds_);
  const auto inputs = order_feeds(state.model, on_host.empty() ? feeds_ : on_host);
  if (!shapes_) shapes_ = state.model.plan->specialise(inputs, {});
  runtime::RunHistory& history = shapes_->history_of(demand());
  context.expected_us = history.mean_us();
  std::vector<Tensor> targets;
  std::vector<tensor::Device> devices;
  place_outputs(targets, devices);

  const auto begin = Profiler::Clock::now();
  context.brief = most && shapes_->control_flow;
  if (context.brief) {
    context.deadline = std::min(context.deadline.value_or(begin + *most), begin + *most);
    targets.clear();  // a run that is given up has written nothing
  }
  const std::size_t inter_op = options.inter_op_threads == 0 ? pool.size() : options.inter_op_threads;
  const runtime::Execution execution{.plan = *state.model.plan,
                                     .shapes = *shapes_,
                                     .frame = *frame,
                                     .run = context,
                                     .inputs = inputs,
                                     .captures = {},
                                     .bound = targets,
                                     .devices = devices,
                                     .output_allocator = memory.outputs(),
                                     .budget = memory.budget(),
                                     .inter_op_threads = options.parallel ? inter_op : 1,
                                     .demand = demand()};
  auto made = context.brief ? try_briefly(execution, history) : runtime::execute(execution);
  if (!made) return std::nullopt;
  const auto end = Profiler::Clock::now();
  history.ended(std::chrono::duration<double, std::micro>(end - begin).count(), context.brief);
  if (profiler)
    profiler->add("Session", options.parallel ? "ParallelExecutor::Execute" : "SequentialExecutor::Execute", begin,
                  end);
  if (!text_of(options_.config, "memory.enable_memory_arena_shrinkage").empty()) (*frame).shrink();

  std::vector<Value> results;
  results.reserve(wanted_.size());
  for (const Wanted& wanted : wanted_) results.push_back(deliver((*made)[wanted.output], wanted));
  if (profiler) profiler->add("Session", "model_run", called, Profiler::Clock::now());
  return results;
}

/// A result in the memory that it was asked into, or on the device where it shall stay.
Value PreparedRun::deliver(Value made, const Wanted& to) const {
  if (!made.is_tensor()) return made;
  if (to.target && fits(made.tensor(), to.target) && to.target.bytes() > 0 &&
      made.tensor().buffer().data() != to.target.buffer().data()) {
    session_->copy(made.tensor(), to.target);
    made = to.target;
  }
  if (made.tensor().device() != to.device) {
    const Tensor moved = session_->allocate(made.tensor().dtype(), made.tensor().shape(), to.device);
    session_->copy(made.tensor(), moved);
    made = moved;
  }
  return made;
}

}  // namespace infernode::session
