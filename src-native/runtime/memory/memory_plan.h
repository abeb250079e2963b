#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace infernode::runtime {

/// When a block of memory is in use: from the step that makes it through the last step that reads it, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// Where each block lies in one arena.
struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< parallel to the lifetimes, multiples of kArenaAlignment
  std::size_t arena_bytes = 0;
};

inline constexpr std::size_t kArenaAlignment = 64;

/// Offsets such that blocks alive at the same step do not overlap. Largest first, each at the lowest gap that holds it.
/// A pure function.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace infernode::runtime
