#pragma once
// Runs that the calling thread makes itself, JavaScript's in Node.js: which they are, and what they may enter. All that
// decides it stands here.
//
// A brief run (RunContext::brief) must not hold its thread up, and nobody can cancel it meanwhile. Without control flow
// it is like any other. With control flow it may take another way than those before it, so it goes on until its
// deadline, and enters a body or a step of any size only where that was short before; else it ends as a cancelled run
// does, and its caller begins it anew on a thread that may take its time.

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

#include "kernel/run_context.h"
#include "runtime/run/executor.h"
#include "runtime/shapes/shape_plan.h"

namespace infernode::runtime {

/// What earlier runs tell of the next one's duration in microseconds; nullopt where there was none, and infinity where
/// they tell nothing: the data decides, or runs that were to be brief were not.
std::optional<double> expected_us(const ShapePlan& shapes, const Demand* demand);

/// Whether a run is so short that the way to another thread and back costs more.
bool is_short(std::optional<double> expected_us);

/// For how long the calling thread may try a run; nullopt where the run belongs on another one. `copied`: bytes of the
/// inputs that a run elsewhere would have to copy first.
std::optional<std::chrono::microseconds> time_on_caller(std::optional<double> expected_us, std::size_t copied);

/// Whether the calling thread puts a run's work into devices' streams, and leaves to another one only to wait for it:
/// the way there then costs nothing.
bool may_begin_on_caller(const ExecutionPlan& plan, const ShapePlan& shapes, const Demand* demand);

/// Whether a run may be tried as a brief one: not where it has control flow and is traced, which shows a run that is
/// given up, or has sizes that the data decides.
bool may_be_brief(const ShapePlan& shapes, bool traced);

/// Before a brief run enters a body: throws Error(Aborted) unless that is expected to end by the run's deadline.
/// `shapes` is the body's plan, null where it did not run with these shapes yet.
void expect_brief_body(const kernel::RunContext& run, const ShapePlan* shapes);

/// A step whose inputs' or outputs' sizes do not follow from the shapes of its plan's inputs (ShapePlan::any_size). A
/// brief run enters it only where it was short with inputs of these shapes before, and where its size follows from
/// them; other runs note whether it was.
class WatchedStep {
 public:
  /// Just before the kernel runs. Throws Error(Aborted) where a brief run is not to enter it.
  WatchedStep(const Execution& execution, std::size_t index, std::span<const tensor::Value* const> inputs);
  /// Just after it.
  void ended(std::span<const tensor::Value* const> inputs) const;

 private:
  using Clock = std::chrono::steady_clock;
  const Execution& execution_;
  const std::size_t index_;
  const std::optional<std::uint64_t> key_;
  const Clock::time_point begin_;
};

}  // namespace infernode::runtime
