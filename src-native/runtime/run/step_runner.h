#pragma once

#include <vector>

#include "kernel/profile.h"
#include "runtime/run/executor.h"

namespace infernode::runtime {

/// Puts the time from `begin` on into the run's trace, if there is one: the run waited for devices.
void record_wait(const kernel::RunContext& run, kernel::ProfileSink::Clock::time_point begin);

/// Runs single steps of one execution. One runner per thread; the frame's values are shared.
class StepRunner final : private kernel::OutputSink {
 public:
  /// `use_arena`: outputs go where the shape plan puts them, which is only right when steps run in plan order.
  StepRunner(const Execution& execution, bool use_arena) : execution_(execution), use_arena_(use_arena) {}

  /// Runs step `index` and stores its outputs in the frame. Throws with the node named.
  void run(std::size_t index);
  /// Drops the values that nobody reads after step `index` (plan order). Throws Aborted where the run is to end.
  void free_after(std::size_t index);

 private:
  tensor::Tensor allocate_output(std::size_t o, tensor::DType dtype, const tensor::Shape& shape) override;
  const tensor::Value* find(graph::ValueId id) const;
  bool pass_on(const Step& step) const;
  tensor::Tensor reuse_input(const Step& step, std::size_t o, tensor::DType dtype, const tensor::Shape& shape) const;
  /// What a step that is profiled runs with.
  struct Measured {
    /// Work of a device may go on when the step is over, with the run's own allocator.
    Measured(const kernel::RunContext& shared, const Step& step) : run(shared), scratch(*shared.allocator) {
      run.loops = &loops;
      if (step.provider == nullptr) run.allocator = &scratch;
    }
    kernel::RunContext run;
    CountingAllocator scratch;
    kernel::LoopProfile loops;
    const kernel::ProfileSink::Clock::time_point begin = kernel::ProfileSink::Clock::now();
  };
  tensor::Tensor allocate_for_copy(const provider::Provider& provider, tensor::DType dtype,
                                   const tensor::Shape& shape) const;
  void keep_outputs(const Step& step) noexcept;
  /// Where devices' streams give the host what the step reads.
  void wait_for_inputs(const Step& step) const;
  void run_kernel(const Step& step, std::size_t index, kernel::RunContext& run, const bool* wanted);
  void record(const Step& step, std::size_t index, const Measured& measured) const;

  const Execution& execution_;
  const bool use_arena_;
  const Step* step_ = nullptr;
  std::vector<const tensor::Value*> inputs_, implicit_;
  std::vector<tensor::Value> outputs_;
};

}  // namespace infernode::runtime
