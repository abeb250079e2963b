#pragma once
// Convolutions along one axis, of stride 1 and three or five weights a channel, in fewer multiplications than the
// definition says, at no loss of accuracy: as products whose rows are pairs of positions
// (microkernels/winograd/toom.h).

#include <array>

#include "microkernels/elementwise/elementwise.h"
#include "microkernels/winograd/toom.h"
#include "ops/conv/window.h"
#include "ops/matmul/product.h"

namespace infernode::ops {

class ConvToom {
 public:
  ConvToom() = default;
  /// Takes the constant weight, input 1, of a convolution without groups and without anything to add but a bias, where
  /// its channels are many and its numbers are fit for it; otherwise the object stays empty.
  ConvToom(kernel::KernelInfo& info, const Window& window, std::int64_t groups);
  explicit operator bool() const { return static_cast<bool>(packed_); }

  /// `o.residual` is null.
  void run(kernel::KernelContext& ctx, const ConvProblem& problem, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const;

 private:
  struct Line;
  bool even(kernel::KernelContext& ctx, const Line& line, const float* rows) const;
  void direct(kernel::KernelContext& ctx, const Line& line, microkernels::GemmArgs args, const float* rows) const;
  tensor::Buffer middle_weights(kernel::KernelContext& ctx, const Line& line) const;
  void pairs(kernel::KernelContext& ctx, const Line& line, microkernels::GemmArgs args, const float* rows,
             const float* middle, float* scratch) const;
  const float* weights() const { return reinterpret_cast<const float*>(packed_.data()); }

  CpuRung rung_{};
  const microkernels::GemmTable* table_ = nullptr;
  const microkernels::ToomTable* toom_ = nullptr;
  microkernels::BinaryLoop add_ = nullptr, subtract_ = nullptr;
  std::size_t taps_ = 0;
  std::array<float, 5> shares_{};  ///< of the taps: toom_shares
  tensor::Buffer packed_;          ///< of the product's right side, [taps in kOrder][channels], whole
};

}  // namespace infernode::ops
