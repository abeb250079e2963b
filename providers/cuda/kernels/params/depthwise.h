#pragma once

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// A convolution of every channel with its own kernel, channels last. Threads: eight channels of a few output pixels of
/// a row, channels fastest.
struct DepthwiseParams {
  std::uint64_t in, weights;  ///< weights float32 [tap][weights_row]
  EpilogueParams e;
  std::int64_t pixel;  ///< elements between pixels of the input
  std::int32_t weights_row;
  std::int32_t images, channels, in_h, in_w, out_h, out_w;
  std::int32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  std::int32_t chunks, columns;  ///< chunks of eight channels, groups of output pixels of a row
  Element type;
  std::int32_t vector;  ///< pixels allow 16-byte loads
};

}  // namespace infernode::cuda
