#pragma once

#include <optional>

#include "runtime/run/executor.h"
#include "session/prepared_run.h"
#include "session/run_memory.h"
#include "session/session_state.h"

namespace infernode::session {

/// Feeds in the order of the graph's inputs: null where an overridable initializer is not fed.
std::vector<const tensor::Value*> order_feeds(const LoadedModel& model, std::span<const tensor::Value> feeds);

/// What a run holds from its first step to its results. Made, used and destroyed by one thread at a time.
class PreparedRun::UnderWay {
 public:
  /// `most`: where it is to be a brief run.
  UnderWay(PreparedRun& prepared, std::shared_ptr<runtime::Profiler> profiler, const kernel::CancelToken* cancel,
           std::optional<Microseconds> most);

  /// Computes, or puts a device's work into its stream.
  void run_steps();
  /// After run_steps(): by output of the model. `late`: nobody may have waited for their end.
  std::vector<tensor::Value> results(bool late = false);
  /// Both; nullopt where a brief run was given up, or is past its deadline.
  std::optional<std::vector<tensor::Value>> run();
  void shrink() { (*frame_).shrink(); }

 private:
  using Clock = runtime::Profiler::Clock;
  runtime::RunHistory& history() const { return shapes_->history_of(demand_); }
  double since_begin() const { return std::chrono::duration<double, std::micro>(Clock::now() - begin_).count(); }

  Session::State& state_;
  const Session::State::Running running_;
  const std::shared_ptr<runtime::Profiler> profiler_;
  const runtime::FrameLease frame_;
  RunMemory memory_;
  const Logger logger_;
  kernel::RunContext context_;
  const std::vector<tensor::Value> on_host_;  ///< feeds, where some lay on a device but are read on the host
  const std::vector<const tensor::Value*> inputs_;
  const runtime::Demand* const demand_;
  std::shared_ptr<const runtime::ShapePlan> shapes_;
  std::vector<tensor::Tensor> targets_;
  std::vector<tensor::Device> devices_;
  Clock::time_point begin_;
  std::optional<runtime::Execution> execution_;
  std::optional<runtime::Traversal> traversal_;
};

}  // namespace infernode::session
