#pragma once
// A convolution node may be computed by other convolutions, whose weights are made of the node's.

#include <functional>
#include <memory>
#include <string>

#include "ops/conv/methods/method.h"

namespace infernode::ops {

/// One such convolution, computed by the method that is quickest for it.
class DerivedConv {
 public:
  /// `site` says all but the weight [out_channels, in_channels of a group, ...], which is made of the node's input 1;
  /// `name` tells it from others of the same node.
  DerivedConv(kernel::KernelInfo& info, ConvSite site, std::string name, tensor::Tensor weight);

  /// x [images, groups * in_channels, ...] to y alike; the bias may be null.
  void run(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, std::int64_t images, const float* x,
           const float* bias, float* y) const;

  /// The same of all that a node has but its weight.
  void run(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, std::int64_t images, ConvOperands operands,
           const microkernels::ActivationArgs& activation) const;

  /// What that takes; huge where no method can run it.
  static double nanoseconds(const ConvSite& site);

 private:
  std::int64_t groups_;
  tensor::Tensor weight_;  ///< where the method reads it at run
  std::unique_ptr<ConvRunner> runner_;
};

/// The same over blocks of channels; the weight has four dims.
class DerivedBlockedConv {
 public:
  DerivedBlockedConv(kernel::KernelInfo& info, ConvSite site, const std::string& name, const tensor::Tensor& weight);

  /// What BlockedRunner has of it.
  const BlockedRunner& runner() const { return *runner_; }

  static double nanoseconds(const ConvSite& site);

 private:
  std::unique_ptr<BlockedRunner> runner_;
};

}  // namespace infernode::ops
