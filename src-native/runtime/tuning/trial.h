#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "kernel/op_registrar.h"
#include "runtime/memory/frame_allocator.h"
#include "runtime/plan/plan_environment.h"

namespace infernode::runtime {

/// A node of the CPU whose kernels run outside of any plan, on inputs of its shapes that are made up. Nothing that they
/// pack or release counts. What it is given outlives it.
class Trial final : private kernel::OutputSink {
 public:
  Trial(const graph::Graph& graph, const graph::Node& node, const kernel::OpSchema& schema,
        const kernel::KernelDef& def, const PlanEnvironment& environment);

  const graph::Node& node() const { return node_; }
  /// What tells nodes apart that need to be measured by themselves: operator, attributes, types and shapes.
  std::string facts() const;
  /// Names of the methods that a kernel can be made with, the kernel's own choice first; none where there is none, or
  /// where inputs cannot be made up.
  std::vector<std::string> methods();
  /// Made as the plan's own will be.
  std::unique_ptr<kernel::Kernel> make(std::string_view method);
  /// Throws Aborted where the load was cancelled.
  void run(const kernel::Kernel& kernel);

 private:
  tensor::Tensor allocate_output(std::size_t o, tensor::DType dtype, const tensor::Shape& shape) override;
  /// Makes the inputs, once. False where a type is not known or no tensor of numbers, or where they are too large.
  bool make_inputs();

  const graph::Graph& graph_;
  const graph::Node& node_;
  const kernel::OpSchema& schema_;
  const kernel::KernelDef& def_;
  HeldBytes held_;
  PlanEnvironment environment_;  ///< without what the plan's kernels leave behind
  std::vector<std::atomic<int>> releases_;
  FrameAllocator scratch_;
  std::vector<tensor::Value> inputs_;          ///< by input, empty where there is none
  std::vector<const tensor::Value*> given_;    ///< the same, for kernels
  std::vector<tensor::Tensor> output_memory_;  ///< by output, kept from run to run
  std::vector<tensor::DType> output_dtypes_;
};

}  // namespace infernode::runtime
