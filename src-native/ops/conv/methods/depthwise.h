#pragma once
// Convolutions of one channel a group, whose loops read the weights as they are.

#include "ops/conv/methods/method.h"

namespace infernode::ops {

class ConvDepthwise final : public ConvRunner {
 public:
  explicit ConvDepthwise(const microkernels::ConvTable& table) : table_(table) {}
  bool reads_weight() const override { return true; }
  void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& operands,
           const microkernels::ActivationArgs& activation) const override;

 private:
  void run_bands(const kernel::RunContext& run, const microkernels::DepthwiseArgs& args, std::size_t bands) const;

  const microkernels::ConvTable& table_;
};

}  // namespace infernode::ops
