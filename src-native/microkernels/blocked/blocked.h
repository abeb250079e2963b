#pragma once

#include <cstddef>
#include <cstdint>

#include "microkernels/conv/conv.h"

// Float32 convolution in a plane over tensors whose channels lie in blocks: [blocks][h][w][kChannelBlock], the last
// block filled up. Vectors hold channels, so that any number of positions fills them, windows of any stride read
// consecutive floats, and nothing is packed. One image per call.
namespace infernode::microkernels {

inline constexpr std::size_t kChannelBlock = 16;
// Channels of an input that is not in blocks: of more, `fits` does not say whether they do.
inline constexpr std::size_t kMostPlanes = 8;

constexpr std::size_t channel_blocks(std::size_t channels) noexcept {
  return (channels + kChannelBlock - 1) / kChannelBlock;
}

// What a call leaves in scratch of the inputs of its range's rows, for calls that differ in the panels of their range
// only. The call sets it; with other rows, inputs or scratch `ready` is to be false.
struct KeptInput {
  bool ready = false;
};

struct BlockedConvArgs {
  ConvShape shape;               // without depth; of a depthwise convolution in_channels = out_channels
  const float* input = nullptr;  // blocked; planar [in_channels][in_h][in_w] where `planar` says so
  bool planar = false;
  // Planar, too, but put into blocks when it is laid out, and with their weights: for windows of more than one point
  // and tables of float32.
  bool turned = false;
  PackedOperand weights = {};       // of a depthwise convolution by depthwise_packing()
  const float* bias = nullptr;      // for every channel of the output's blocks
  const float* residual = nullptr;  // like output, added before the activation; must not alias output
  ActivationArgs activation;
  float* output = nullptr;  // blocked; channels beyond the last hold what the activation makes of 0
  // In their place, where not null: blocks of bfloat16 numbers. For tables that take them.
  const std::uint16_t *input_bf16 = nullptr, *residual_bf16 = nullptr;
  std::uint16_t* output_bf16 = nullptr;
  KeptInput* kept_input = nullptr;  // null: nothing is kept
};

// Part of an output: rows of positions and panels of channels, as BlockedConvTable::grid counts them.
struct BlockedRange {
  std::size_t row_begin, row_end, panel_begin, panel_end;
};
struct BlockedGrid {
  std::size_t rows, panels;
};

struct BlockedConvTable {
  const char* name;
  std::size_t scratch_floats;  // per call of `conv`
  // Whether what the kernel sees at a position fits scratch, which is all that `conv` asks for, whatever the image.
  bool (*fits)(const ConvShape& shape) noexcept;
  BlockedGrid (*grid)(const ConvShape& shape) noexcept;
  ConvPacking weights;
  ConvPacking plane_weights;  // of an input that is not in blocks
  void (*conv)(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept;
  // Blocks [begin, end) of a depthwise convolution.
  void (*depthwise)(const BlockedConvArgs& args, std::size_t begin, std::size_t end) noexcept;
  // Whether blocks may be of bfloat16 numbers: of a depthwise convolution all of them or none, else any.
  bool takes_bf16 = false;
};

// Of depthwise weights [out_channels][kernel_points], for all tables: [blocks][kernel points][kChannelBlock] of
// float32.
const ConvPacking& depthwise_packing() noexcept;

}  // namespace infernode::microkernels
