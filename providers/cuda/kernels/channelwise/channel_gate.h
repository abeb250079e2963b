#pragma once

#include "providers/cuda/kernels/channelwise/depthwise.h"
#include "providers/cuda/kernels/params/channel_gate.h"

namespace infernode::cuda {

/// out[image][channel] = second(first(mean of the image's pixels)), each a dense layer with bias and activation: the
/// gates of squeeze-and-excitation. Types of 16 bits.
struct ChannelGate {
  struct Layer {
    WeightLayout layout;              ///< of a matrix, rows are outputs
    DevicePtr weights = 0, bias = 0;  ///< bias: constant float32, or 0
    Activation activation = Activation::none;
    float a = 0, b = 0;
  };
  std::int64_t images = 1, pixels = 1, channels = 0, hidden = 0;
  Element type = Element::f16;
  DevicePtr sums = 0;    ///< over the pixels
  DepthwiseSums layout;  ///< of those
  Layer first{}, second{};
  DevicePtr out = 0;
  std::int64_t out_row = 0;
};

/// Whether there is a kernel for it, and it is worth while.
bool can_gate_channels(const Target& target, const ChannelGate& gate);
Launch plan_channel_gate(const Target& target, const ChannelGate& gate);

/// out[image][channel] = mean of the image's pixels. Layers are not read.
Launch plan_pixel_means(const ChannelGate& means);

}  // namespace infernode::cuda
