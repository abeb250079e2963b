#pragma once

#include <memory>
#include <optional>
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
  /// The same on a device, where the output is what a device's step makes.
  const tensor::Tensor* bound_on_device(graph::ValueId made, tensor::Device device, tensor::DType dtype,
                                        const tensor::Shape& shape) const {
    const std::optional<std::size_t> output = plan.device_output(made);
    if (!output || *output >= bound.size() || !bound[*output]) return nullptr;
    const tensor::Tensor& to = bound[*output];
    return to.dtype() == dtype && to.shape() == shape && to.device() == device ? &to : nullptr;
  }
  bool runs(std::size_t step) const { return !shapes.skip[step] && (demand == nullptr || demand->steps[step]); }
};

/// An execution in two parts, which two threads may do: what steps put into devices' streams goes on in between. The
/// frame is left reusable, with nothing in its streams, when this ends.
class Traversal {
 public:
  explicit Traversal(const Execution& execution) : execution_(execution) {}
  ~Traversal();
  Traversal(const Traversal&) = delete;
  Traversal& operator=(const Traversal&) = delete;

  /// Runs every step that is needed. Kernel faults get the node's name and op type.
  void run_steps();
  /// Waits for the streams; returns the graph's outputs (those that are not wanted empty), which share memory with
  /// nothing of the plan, the frame or the inputs (unless they stay on a device), so that they may be written to.
  std::vector<tensor::Value> results();

 private:
  const Execution& execution_;
};

/// All of it.
std::vector<tensor::Value> execute(const Execution& execution);

}  // namespace infernode::runtime
