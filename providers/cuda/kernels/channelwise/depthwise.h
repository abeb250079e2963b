#pragma once

#include <optional>

#include "providers/cuda/kernels/epilogue.h"
#include "providers/cuda/kernels/weights.h"

namespace infernode::cuda {

/// A convolution of every channel with its own kernel, over images with the channels last. Sizes are {height, width}.
struct DepthwiseProblem {
  std::int64_t images = 1, channels = 0;
  std::int64_t in[2] = {1, 1}, out[2] = {1, 1}, kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1}, pad[2] = {0, 0}, dilation[2] = {1, 1};  ///< pad: before the first element
  DevicePtr input = 0;
  Element type = Element::f16;
  std::int64_t pixel = 0;  ///< elements between pixels of the input
  DevicePtr weights = 0;   ///< as depthwise_weights lays them out
  Epilogue epilogue;       ///< rows are output pixels
  DevicePtr sums = 0;      ///< where DepthwiseSums are written to; 0: nowhere
};

/// Sums over the pixels of the output, float32 [image][part][row], each part over some of the pixels.
struct DepthwiseSums {
  std::int64_t parts = 0, row = 0;
};

/// Weights as kernels read them: float32, a row of channels for each tap. Pack them with a source whose rows are taps.
WeightLayout depthwise_weights(std::int64_t channels, std::int64_t taps);

/// What the kernel for a problem can give of them, on the way; nothing where it gives none.
std::optional<DepthwiseSums> depthwise_sums(const Target& target, const DepthwiseProblem& problem);

std::vector<Launch> plan_depthwise(const Target& target, const DepthwiseProblem& problem);

}  // namespace infernode::cuda
