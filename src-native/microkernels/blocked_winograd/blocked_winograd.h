#pragma once

#include <cstddef>

#include "microkernels/blocked/blocked.h"

// Winograd's F(2x2, 3x3) over channels in blocks: 3x3 windows of stride 1, from blocks to blocks, with the weights as
// BlockedConvTable packs them, or in a form of their own. Rows of tiles in which few inputs matter are convolved by
// that table; see winograd.h.
namespace infernode::microkernels {

struct BlockedWinogradTable {
  const char* name;
  // Whether it is the faster of the two, for shapes of its kind.
  bool (*pays)(const ConvShape& shape) noexcept;
  // The BlockedConvTable's of the same name, or one whose weights those loops read, too.
  const ConvPacking* weights;
  // Of the whole output: rows of tiles, each two rows of positions, and panels of channels.
  BlockedGrid (*grid)(const ConvShape& shape) noexcept;
  std::size_t (*scratch_floats)(const ConvShape& shape) noexcept;  // per call of `conv`
  // The range counts as `grid` does. Weights that are not packed transformed are so on the way, once for all of the
  // rows that fit a cache.
  void (*conv)(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept;
};

}  // namespace infernode::microkernels
