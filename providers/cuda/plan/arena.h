#pragma once

#include <cstddef>
#include <vector>

namespace infernode::cuda {

/// Memory that is needed from one step to another, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  ///< multiples of 256
  std::size_t bytes = 0;
};

/// Offsets such that what is needed at the same step does not overlap: the largest first, each at the lowest place.
ArenaLayout lay_out(const std::vector<Lifetime>& lifetimes);

}  // namespace infernode::cuda
