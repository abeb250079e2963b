#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

inline constexpr int kGateThreads = 512, kMostGateHidden = 256;

/// A dense layer: weights of the kernel's type [outputs][row], rows of whole 16-byte words; bias float32, or 0.
struct GateLayer {
  std::uint64_t weights, bias;
  std::int32_t row;
  Activation activation;
  float a, b;
};

/// Two dense layers over the means of an image's pixels, as squeeze-and-excitation has them. Sums of the pixels come in
/// parts, float32 [image][part][sums_row]. Grid: x blocks, which share the channels and are a cluster, y images.
/// Dynamic shared memory: weights [hidden][slice] and [slice][hidden_row]; then floats, see channel_gate.cu. The
/// results go to `out`, or rows of constant weights are multiplied with them: scaled[image][i] = weights[i] * result.
struct ChannelGateParams {
  std::uint64_t sums, out;        ///< out: 0 where weights are scaled
  std::uint64_t weights, scaled;  ///< of the kernel's type, [rows][weights_row]; blocks' slices are whole rows together
  std::int32_t rows, weights_row;
  GateLayer first, second;
  std::int32_t channels, hidden, hidden_row;  ///< hidden_row: rounded up to eight
  std::int32_t slice, blocks;                 ///< channels of a block, a multiple of eight
  std::int32_t parts, sums_row, out_row;
  std::int32_t groups;  ///< of threads that add parts of the same channels
  float per_pixel;      ///< 1 / pixels
};

/// Means of an image's pixels out of such sums. Threads: a channel of an image each.
struct PixelMeansParams {
  std::uint64_t sums, out;
  std::int64_t threads;
  std::int32_t channels, parts, sums_row, out_row;
  float per_pixel;
};

/// Floats of a block's shared memory behind the weights.
constexpr int gate_floats(int slice, int hidden_row, int blocks) {
  return kGateThreads + 2 * slice + (blocks + 1) * hidden_row;
}

}  // namespace infernode::cuda
