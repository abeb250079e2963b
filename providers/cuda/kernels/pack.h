#pragma once

#include <algorithm>

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/pack.h"

namespace infernode::cuda {

/// Copies, transposes, converts, pads: see PackParams.
inline Launch pack_launch(PackParams p, std::int64_t batch) {
  Launch launch;
  p.batch = static_cast<std::int32_t>(batch);
  p.batch_blocks = std::min(p.batch, 65535);
  launch.kernel = "pack";
  const std::int64_t tiles = (std::int64_t{p.rows} + 31) / 32 * ((std::int64_t{p.columns} + 31) / 32);
  launch.grid = {static_cast<std::uint32_t>(tiles), 1, static_cast<std::uint32_t>(p.batch_blocks)};
  launch.block = {256, 1, 1};
  launch.programmatic = true;
  launch.params = param_bytes(p);
  return launch;
}

}  // namespace infernode::cuda
