#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace infernode::runtime {

struct Step;

/// Which values share a block of the arena, and how long each block is in use. It depends on the steps that run and on
/// which values take equally many bytes, not on how many.
struct ArenaLayout {
  static constexpr std::size_t kNoSize = SIZE_MAX;
  struct Block {
    std::size_t size;  ///< what stands for its bytes
    std::uint32_t first, last;
  };
  struct Place {
    graph::ValueId value;
    std::uint32_t block;
    bool is_view;  ///< of another value's memory: none of its own
  };
  std::vector<Block> blocks;
  std::vector<Place> places;
};

/// `sizes` by ValueId stand for the bytes of values: equal ones for equally many; kNoSize where not known beforehand.
/// `pinned` values never lie in the arena; `skip` tells by step which do not run.
ArenaLayout lay_out_arena(std::span<const Step> steps, const std::vector<bool>& skip, const std::vector<bool>& pinned,
                          std::span<const std::size_t> sizes);

}  // namespace infernode::runtime
