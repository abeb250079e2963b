#pragma once
// Convolutions of one channel a group, whose loops read the weights as they are.

#include "ops/conv/methods/method.h"

namespace infernode::ops {

/// Bands of rows that a plane takes, each of them no longer than may pass between two looks.
std::size_t depthwise_bands(const microkernels::ConvShape& plane);
/// One call in so many bands, with a look between two whether the run is to end; of one plane where they are several.
void run_bands(const kernel::RunContext& run, const microkernels::ConvTable& table,
               const microkernels::DepthwiseArgs& args, std::size_t bands);

class ConvDepthwise final : public ConvRunner {
 public:
  explicit ConvDepthwise(const microkernels::ConvTable& table) : table_(table) {}
  bool reads_weight() const override { return true; }
  void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& operands,
           const microkernels::ActivationArgs& activation) const override;

 private:
  const microkernels::ConvTable& table_;
};

}  // namespace infernode::ops
