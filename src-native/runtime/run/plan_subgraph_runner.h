#pragma once

#include <memory>

#include "kernel/kernel.h"
#include "runtime/plan/execution_plan.h"
#include "runtime/run/frame_pool.h"

namespace infernode::runtime {

/// Runs a body of If, Loop, Scan, ... with a plan and frames of its own. The plan is made over the node's own graph, so
/// that constants which its kernels have packed are given up there.
class PlanSubgraphRunner final : public kernel::SubgraphRunner {
 public:
  /// `first_capture`: where this body's captures begin among the node's implicit inputs.
  PlanSubgraphRunner(const std::shared_ptr<graph::Graph>& body, std::size_t first_capture,
                     const PlanEnvironment& environment);

  std::size_t input_count() const override { return plan_->graph().inputs().size(); }
  std::size_t output_count() const override { return plan_->graph().outputs().size(); }
  const graph::ValueType& output_type(std::size_t o) const override;
  std::vector<tensor::Value> run(kernel::KernelContext& ctx, std::vector<tensor::Value> inputs) const override;
  std::vector<graph::ValueType> output_types(kernel::KernelContext& ctx,
                                             std::span<const graph::ValueType> inputs) const override;

 private:
  std::span<const tensor::Value* const> captured(const kernel::KernelContext& ctx) const;

  std::unique_ptr<ExecutionPlan> plan_;
  std::size_t first_capture_;
  mutable FramePool frames_;
};

}  // namespace infernode::runtime
