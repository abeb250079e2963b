#pragma once
// Products of all taps at a position, which are summed up where they overlap, with the channels of a place beside each
// other: the way of "taps" for images of short rows.

#include <string>

#include "ops/common/packed_weight.h"
#include "ops/conv/methods/method.h"

namespace infernode::ops {

/// `shape` is everywhere the convolution of one group from an image to positions, as microkernels::TapRowArgs has it.
class TapRows {
 public:
  /// Products of most floats that are kept at once.
  static constexpr std::size_t kMostFloats = std::size_t{1} << 20;

  /// `weight` is [groups, kernel points * in_channels, out_channels], channels of the image fastest; `what` names how
  /// it is taken from the node's.
  TapRows(kernel::KernelInfo& info, const ConvSite& site, std::string_view what, const tensor::Tensor& weight);

  /// x [images, groups * out_channels, positions] to y [images, groups * in_channels, image]; the bias may be null.
  void run(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, std::size_t images, const float* x,
           const float* bias, const microkernels::ActivationArgs& activation, float* y) const;

  static bool can_run(const microkernels::ConvShape& shape);
  /// Nanoseconds that it is expected to take; `site` says of which groups and CPU.
  static double nanoseconds(const ConvSite& site, const microkernels::ConvShape& shape);
  static cost::Terms terms(const ConvSite& site, const microkernels::ConvShape& shape);

 private:
  const microkernels::KernelSet& kernels_;
  std::size_t groups_;
  PackedWeight packed_;
};

/// The convolution from outputs to inputs, whose taps are in the other order; of stride 1.
microkernels::ConvShape backwards(const microkernels::ConvShape& shape);

}  // namespace infernode::ops
