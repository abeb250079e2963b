#pragma once

#include <cstddef>

#include "microkernels/conv/conv.h"

// Planar 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3): a tile of 2x2 outputs costs 16 multiplications per
// pair of channels instead of 36 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks").
//
// Each output reads exactly the inputs that its window covers, so infinities and NaN stay where the definition has
// them. Sums are a third as long as the direct ones and usually more exact, but terms of one channel's window are
// mixed: where a few terms dominate a sum, the mixture can lose what a small one contributes. So weights must be even
// (winograd_holds), and rows of tiles whose inputs are not (or are not finite) are convolved directly, from the same
// packed weights.
namespace infernode::microkernels {

// Rows and columns of tiles, and output channels, that one call computes.
struct WinogradBlock {
  std::size_t row_begin, row_end, column_begin, column_end, m_begin, m_end;
};

// Shapes are planar, 3x3, of stride and dilation 1 and without groups.
struct WinogradTable {
  const char* name;
  std::size_t mr, lanes;
  ConvPacking weights;  // [out_channels][9][in_channels], padded
  // Transformed weights, which take more memory and are made anew by each run: those of channels [m_begin, m_end) go to
  // their place in `out`.
  std::size_t (*transformed_floats)(std::size_t out_channels, std::size_t in_channels) noexcept;
  void (*transform_weight)(const PackedOperand& weights, std::size_t m_begin, std::size_t m_end, float* out) noexcept;
  std::size_t (*scratch_floats)(const ConvShape& shape, const WinogradBlock& block) noexcept;
  // `transformed` null: all of the block directly.
  void (*conv)(const ConvArgs& args, const float* transformed, const WinogradBlock& block, float* scratch) noexcept;
};

// Whether sums with these weights [out_channels][in_channels][9] keep the accuracy of direct ones: every output channel
// has many weights of comparable size.
bool winograd_holds(std::size_t out_channels, std::size_t in_channels, const float* weight) noexcept;
// Whether the tiles are worth transforming.
bool winograd_pays(const WinogradTable& table, const ConvShape& shape) noexcept;

// A grid of blocks for `workers` threads. Columns are cut by the shape alone: inputs are judged by rows of a block.
struct WinogradSplit {
  std::size_t rows, columns, channels;  // of a block
  std::size_t row_blocks, column_blocks, channel_blocks;
  std::size_t tile_rows, tile_columns, out_channels;

  std::size_t count() const noexcept { return row_blocks * column_blocks * channel_blocks; }
  WinogradBlock block(std::size_t index) const noexcept;
};
WinogradSplit split_winograd(const WinogradTable& table, const ConvShape& shape, std::size_t workers) noexcept;

}  // namespace infernode::microkernels
