#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/run_context.h"
#include "runtime/plan/execution_plan.h"
#include "runtime/run/frame_pool.h"

namespace infernode::runtime {

/// One walk through a plan.
struct Execution {
  const ExecutionPlan& plan;
  const ShapePlan& shapes;
  Frame& frame;
  kernel::RunContext& run;
  std::span<const tensor::Value* const>
      inputs;  ///< of graph.inputs(); null: the value's constant (an overridable initializer not fed)
  std::span<const tensor::Value* const> captures;  ///< of graph.captures()
  std::span<const tensor::Tensor> bound;           ///< by output: memory to write into where it fits; may be shorter
  std::span<const tensor::Device> devices;         ///< by output: where it shall stay; may be shorter (host)
  tensor::Allocator& output_allocator;             ///< of the graph's outputs, which outlive the frame
  std::shared_ptr<kernel::MemoryBudget> budget = nullptr;  ///< of the run's memory for copies; null: no limit
  std::size_t inter_op_threads = 1;                        ///< above 1: independent steps run at once
  const Demand* demand = nullptr;                          ///< null: all outputs are wanted

  /// The memory that an output was given beforehand, where it fits; else null.
  const tensor::Tensor* bound_to(std::size_t output, tensor::DType dtype, const tensor::Shape& shape) const {
    if (output >= bound.size() || !bound[output]) return nullptr;
    const tensor::Tensor& to = bound[output];
    return to.dtype() == dtype && to.shape() == shape && to.device().is_host() ? &to : nullptr;
  }
  bool runs(std::size_t step) const { return !shapes.skip[step] && (demand == nullptr || demand->steps[step]); }
};

/// Runs every step that is needed; returns the graph's outputs (those that are not wanted empty), which share memory
/// with nothing of the plan, the frame or the inputs (unless they stay on a device), so that they may be written to.
/// What steps put into devices' streams is done when it returns, and when it throws.
/// Kernel faults get the node's name and op type; the frame is left reusable either way.
std::vector<tensor::Value> execute(const Execution& execution);

}  // namespace infernode::runtime
