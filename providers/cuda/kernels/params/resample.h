#pragma once

#include <cstdint>

namespace infernode::cuda {

/// out[o][i][k] = sum over t of weight[i * taps + t] * in[o][index[i * taps + t]][k]. Grid: x blocks of 256 elements.
struct ResampleParams {
  std::uint64_t in, out;
  std::uint64_t index, weight;  ///< int64, float32
  std::int64_t count;           ///< of out
  std::int64_t in_size, out_size, inner;
  std::int32_t taps;
};

}  // namespace infernode::cuda
