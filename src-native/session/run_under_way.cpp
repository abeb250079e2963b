#include "session/run_under_way.h"

#include <algorithm>

#include "base/float_mode.h"

namespace infernode::session {

using runtime::Profiler;
using tensor::Tensor;
using tensor::Value;

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

namespace {

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

}  // namespace

PreparedRun::UnderWay::UnderWay(PreparedRun& prepared, std::shared_ptr<Profiler> profiler,
                                const kernel::CancelToken* cancel, std::optional<Microseconds> most)
    : state_(*prepared.session_->state_),
      running_(state_),
      profiler_(std::move(profiler)),
      frame_(state_.frames),
      memory_(*frame_, state_.options.memory_limit),
      logger_(state_.logger.with(prepared.options_.log_severity.value_or(state_.options.log_severity),
                                 state_.options.log_id)),
      context_{.pool = &state_.engine->pool(),
               .max_threads = threads_of(state_.options, state_.engine->pool().size()),
               .dynamic_block_base = state_.dynamic_block_base,
               .cancel = cancel,
               .deadline = prepared.deadline_,
               .budget = memory_.budget().get(),
               .logger = &logger_,
               .profile = profiler_.get(),
               .allocator = &memory_.scratch()},
      on_host_(bring_to_host(*prepared.session_, state_.model, prepared.feeds_)),
      inputs_(order_feeds(state_.model, on_host_.empty() ? prepared.feeds_ : on_host_)),
      demand_(prepared.demand()) {
  const FloatModeScope float_mode(true);
  if (!prepared.shapes_) prepared.shapes_ = state_.model.plan->specialise(inputs_, {});
  shapes_ = prepared.shapes_;
  context_.expected_us = history().mean_us();
  prepared.place_outputs(targets_, devices_);
  begin_ = Clock::now();
  context_.brief = most && shapes_->control_flow;
  if (!context_.brief) return;
  context_.deadline = std::min(context_.deadline.value_or(begin_ + *most), begin_ + *most);
  targets_.clear();  // a run that is given up has written nothing
}

void PreparedRun::UnderWay::run_steps() {
  const FloatModeScope float_mode(true);
  const std::size_t pool = state_.engine->pool().size();
  const std::size_t inter_op = state_.options.inter_op_threads == 0 ? pool : state_.options.inter_op_threads;
  execution_.emplace(runtime::Execution{.plan = *state_.model.plan,
                                        .shapes = *shapes_,
                                        .frame = *frame_,
                                        .run = context_,
                                        .inputs = inputs_,
                                        .captures = {},
                                        .bound = targets_,
                                        .devices = devices_,
                                        .output_allocator = memory_.outputs(),
                                        .budget = memory_.budget(),
                                        .inter_op_threads = state_.options.parallel ? inter_op : 1,
                                        .demand = demand_});
  traversal_.emplace(*execution_);
  traversal_->run_steps();
  history().steps_ended(since_begin());
}

std::vector<Value> PreparedRun::UnderWay::results(bool late) {
  const FloatModeScope float_mode(true);
  std::vector<Value> made = traversal_->results();
  traversal_.reset();
  const auto end = Clock::now();
  if (late) {
    history().ended_late(since_begin());
  } else {
    history().ended(since_begin(), context_.brief);
  }
  if (profiler_) {
    const char* executor = state_.options.parallel ? "ParallelExecutor::Execute" : "SequentialExecutor::Execute";
    profiler_->add("Session", executor, begin_, end);
  }
  return made;
}

std::optional<std::vector<Value>> PreparedRun::UnderWay::run() {
  try {
    return frame_.watch([&] {
      run_steps();
      return results();
    });
  } catch (const Error& error) {
    if (!context_.brief || error.code() != ErrorCode::Aborted) throw;
    history().given_up();
    return std::nullopt;
  }
}

}  // namespace infernode::session
