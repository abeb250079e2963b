#pragma once
// Convolutions by the loops of microkernels/conv: dot products of few positions, shifted rows of the padded input,
// packed columns, or images on the matrix unit. Groups are convolved one after the other.

#include "ops/common/packed_weight.h"
#include "ops/conv/methods/method.h"

namespace infernode::ops {

class ConvDense final : public ConvRunner {
 public:
  /// Takes the constant weight where there is one.
  ConvDense(kernel::KernelInfo& info, const ConvSite& site, microkernels::ConvWay way);
  /// Of a weight that is read and packed at run, whichever way suits it.
  ConvDense(const microkernels::ConvTable& table, std::int64_t groups);

  bool reads_weight() const override { return !packed_; }
  void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& operands,
           const microkernels::ActivationArgs& activation) const override;

 private:
  void pack(const microkernels::ConvShape& shape, const float* weight, std::size_t group, std::byte* to) const;

  const microkernels::ConvTable& table_;
  microkernels::ConvWay way_;
  std::size_t groups_;
  PackedWeight packed_;
};

}  // namespace infernode::ops
