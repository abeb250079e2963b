#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// out[row][tap * channels_padded + channel] = in[row * in_row + tap * in_tap + channel * in_channel], zero where there
/// is no such channel or tap; in `pieces` planes of bfloat16 where that is above 1. Grid: x tiles of 32 by 32, z
/// batch, of which a block takes every so many.
struct PackParams {
  std::uint64_t in, out;
  std::int64_t in_row, in_tap, in_channel, in_batch[2];  ///< elements
  std::int64_t out_row, out_plane, out_batch;
  std::int32_t rows, taps, channels, channels_padded;
  std::int32_t columns;  ///< written of each row of out
  std::int32_t batch, batch_blocks, batch_inner, pieces;
  Element in_type, out_type;
};

}  // namespace infernode::cuda
