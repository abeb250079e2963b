#pragma once
// What the fusions that fold a per-channel operation into a convolution's weights share.

#include <optional>
#include <span>
#include <vector>

#include "fusions/fusion.h"

namespace infernode::fusions {

/// A scale and a shift per output channel, to be applied to a convolution's result.
struct ChannelAffine {
  std::vector<float> scale, shift;
};

/// Elements of a float32 constant that says one number per output channel of a convolution whose result has `rank`
/// dims: shapes [C,1,..], [1,C,1,..] or one element. nullopt where it says something else.
std::optional<std::vector<float>> per_channel(const tensor::Tensor& constant, std::int64_t channels, std::size_t rank);

/// Whether W ([M, C/group, ...] float32 constant) and, where there is one, its bias can be folded.
bool foldable_weights(const Match& match);

/// Adds a convolution with weights W * scale and bias B * scale + shift in place of the match's first node (the Conv);
/// gives its output. Pattern names: c_w, o_b, y.
graph::ValueId replace_conv(const Match& match, graph::GraphPatch& patch, const ChannelAffine& affine);

}  // namespace infernode::fusions
