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
  DevicePtr sums = 0;       ///< over the pixels
  DepthwiseSums layout;     ///< of those
  Layer first{}, second{};  ///< the second has no weights where the first alone is known
  DevicePtr out = 0;
  std::int64_t out_row = 0;
};

/// Constant weights [rows][channels] that are to be multiplied with an image's gates: a 1x1 convolution's behind them.
struct ScaledWeights {
  WeightLayout layout;
  DevicePtr weights = 0, scaled = 0;  ///< scaled: [image][layout.bytes]
};

/// Whether there is a kernel for it, and it is worth while.
bool can_gate_channels(const Target& target, const ChannelGate& gate);
/// Into `out`.
Launch plan_channel_gate(const Target& target, const ChannelGate& gate);
/// Into weights instead.
Launch plan_scaled_weights(const Target& target, const ChannelGate& gate, const ScaledWeights& weights);

/// out[image][channel] = mean of the image's pixels. Layers are not read.
Launch plan_pixel_means(const ChannelGate& means);

}  // namespace infernode::cuda
