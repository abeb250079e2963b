#pragma once
// Planar 3x3 convolutions of stride 1 by Winograd's transformation, where that is fewer multiplications at no loss of
// accuracy.

#include "kernel/kernel.h"
#include "microkernels/winograd/winograd.h"
#include "ops/conv/window.h"

namespace infernode::ops {

class ConvWinograd {
 public:
  ConvWinograd() = default;
  /// Takes the constant weight, input 1, of a 3x3 convolution of stride 1 without groups, where its channels are many
  /// and its numbers are fit for it; otherwise the object stays empty.
  ConvWinograd(kernel::KernelInfo& info, std::int64_t groups);
  explicit operator bool() const { return static_cast<bool>(packed_); }

  void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& operands,
           const microkernels::ActivationArgs& activation) const;

 private:
  const microkernels::WinogradTable* table_ = nullptr;
  tensor::Buffer packed_;
};

}  // namespace infernode::ops
