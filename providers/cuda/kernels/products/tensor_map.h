#pragma once

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/gemm.h"

namespace infernode::cuda {

/// A matrix whose rows are contiguous along K, with two batch parts.
struct TiledView {
  DevicePtr address = 0;
  Element type = Element::f16;
  std::int64_t k = 0, rows = 0, batch[2] = {1, 1};
  std::int64_t row_stride = 0, batch_stride[2] = {0, 0};  ///< elements
};

/// Boxes of 128 bytes by `box_rows` rows. Addresses and strides are multiples of 16 bytes. A batch part that repeats
/// (stride 0) has one place. Without an API (tests of plans) the map is empty.
TensorMap tiled_map(const Target& target, const TiledView& view, int box_rows);

/// Columns of 128 bytes of channels by `pixels` output pixels of an image, channels last.
TensorMap pixel_map(const Target& target, DevicePtr address, Element type, std::int64_t channels, std::int64_t images,
                    const ConvParams& conv, int pixels);

}  // namespace infernode::cuda
