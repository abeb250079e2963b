#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/run_context.h"
#include "microkernels/kernel_set.h"

namespace infernode::ops {

/// How interleaved 8-bit pixels become the elements of a tensor: a part of the picture, scaled to another size, each
/// channel multiplied and shifted.
struct ImagePreparation {
  std::size_t width = 0, height = 0, channels = 0;  ///< of the pixels; channels from 1 to 4
  /// The part that is taken, within the picture.
  std::size_t left = 0, top = 0, part_width = 0, part_height = 0;
  std::size_t to_width = 0, to_height = 0;
  bool nearest = false;  ///< else bilinear, over as many pixels as become one where the picture shrinks
  /// By channel of the result: which channel of the pixels it is, or kOpaque.
  std::array<std::size_t, 4> order{};
  std::size_t to_channels = 0;
  std::array<float, 4> factor{}, shift{};    ///< result = pixel * factor + shift
  bool planar = true;                        ///< channels one after another (NCHW), else interleaved (NHWC)
  static constexpr std::size_t kOpaque = 4;  ///< a channel of 255
};

/// Throws InvalidArgument where the sizes do not fit each other, and OutOfMemory where the result fits no memory.
/// Returns how many elements the result has.
std::size_t checked_elements(const ImagePreparation& how, std::size_t pixel_bytes);

/// Writes them: of float, or of std::uint8_t (rounded and saturated). `kernels` are those
/// of this CPU. `how` has been checked. Throws Aborted where `run` is cancelled.
template <class T>
void prepare_image(const ImagePreparation& how, std::span<const std::uint8_t> pixels, std::span<T> out,
                   const microkernels::KernelSet& kernels, const kernel::RunContext& run);

}  // namespace infernode::ops
