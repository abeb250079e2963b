#pragma once

#include "providers/cuda/kernels/products/product.h"

namespace infernode::cuda {

/// A convolution of one to three dimensions over images with the channels last: in[n][d][h][w][channel], groups side by
/// side. Sizes are {depth, height, width}; fewer dimensions have 1s in front.
struct ConvProblem {
  std::int64_t images = 1, groups = 1;
  std::int64_t channels = 0, outputs = 0;  ///< of a group
  std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};  ///< pad: before the first element
  bool transposed = false;  ///< weights as a convolution's of the same kernel: [group outputs][taps][channels]
  DevicePtr input = 0;
  Element type = Element::f16;
  std::int64_t pixel = 0;  ///< elements between pixels of the input
  WeightLayout weights;    ///< weight_layout(target, type, precision, groups * outputs, taps, channels, groups)
  DevicePtr weights_address = 0;
  bool weights_by_image = false;  ///< 1x1 without stride: each image has its own, which a kernel before writes
  Precision precision = Precision::highest;
  Epilogue epilogue;        ///< rows are output pixels; its batch strides are set here
  DevicePtr workspace = 0;  ///< conv_workspace bytes, 256-byte aligned
};

using ConvChoice = ProductChoice;

/// All that can compute it, the fastest by the model first.
std::vector<ConvChoice> conv_choices(const Target& target, const ConvProblem& problem);
std::size_t conv_workspace(const Target& target, const ConvProblem& problem,
                           const std::optional<ConvChoice>& choice = std::nullopt);
std::vector<Launch> plan_conv(const Target& target, const ConvProblem& problem,
                              const std::optional<ConvChoice>& choice = std::nullopt);

}  // namespace infernode::cuda
