#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "kernel/kernel.h"
#include "providers/cuda/plan/device_plan.h"

namespace infernode::cuda {

/// A claimed subgraph: one device plan for each set of input shapes, the least recently used ones dropped.
class CompiledKernel final : public kernel::Kernel {
 public:
  /// `precision`: of float32 products.
  CompiledKernel(PlanContext context, microkernels::Float32Precision precision)
      : context_(std::move(context)), precision_(precision) {}
  void run(kernel::KernelContext& ctx) const override;

 private:
  struct Cached {
    std::vector<tensor::Shape> shapes;
    std::shared_ptr<DevicePlan> plan;
  };
  std::shared_ptr<DevicePlan> plan_for(std::vector<tensor::Shape> shapes) const;

  PlanContext context_;
  microkernels::Float32Precision precision_;
  mutable std::mutex mutex_;
  mutable std::list<Cached> plans_;  // most recent first
};

}  // namespace infernode::cuda
