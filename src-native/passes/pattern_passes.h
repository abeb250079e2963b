#pragma once
// Rewrites of small patterns that a text pattern cannot say: chains of any length, inputs in any order.

#include <set>

#include "passes/operators.h"
#include "passes/pass.h"

namespace infernode::passes {

/// Casts between floating types become one to the last type. Roundings on the way are lost with them, so that this is
/// for who asks for it.
bool eliminate_cast_chains(graph::Graph& graph, const PassOptions& options);
/// Slices that take every second row and column of an image, four ways, and a Concat of them become a SpaceToDepth; an
/// order of the four that it does not have goes into the weights of the convolution after it, or into a Gather.
bool fuse_slices_to_depth(graph::Graph& graph, const PassOptions& options);
/// What only moves elements, or takes the largest, does so before they are dequantized and after they were quantized.
bool propagate_quantization(graph::Graph& graph, const PassOptions& options);
/// A QuantizeLinear and the DequantizeLinears that undo it go, and the floats stay unrounded: for who asks for it. Not
/// where a node beside them has codes on its other side too (or is a product): it is meant to work on codes.
bool drop_quantization(graph::Graph& graph, const PassOptions& options);
/// Float weights and biases of Conv, ConvTranspose and Gemm between a DequantizeLinear and a QuantizeLinear are rounded
/// to 8 and 32 bits. Runs once, before weights that are codes are folded: those are not rounded again.
bool quantize_weights(graph::Graph& graph, const PassOptions& options);
/// Whether it may find something: not where all weights and biases are codes.
bool may_quantize_weights(const graph::Graph& graph, const PassOptions& options);
/// The constant number that a Where takes in the place of a dequantized element is dequantized, too, where all becomes
/// codes behind it. For the end of level basic: folding would undo it.
bool quantize_where_constants(graph::Graph& graph, const PassOptions& options);
/// Each input of a node that reads what a DequantizeLinear makes has one of its own; bodies of nodes and outputs of the
/// graph keep the one that is there. For files: merging common subexpressions would undo it.
bool separate_dequantizers(graph::Graph& graph, const PassOptions& options);
/// Products with weights that are dequantized from 2, 4 or, in blocks, 8 bits become MatMulNBits. Takes nodes of the
/// CPU and of no provider.
bool fuse_dequantized_products(graph::Graph& graph, const PassOptions& options);
/// Two convolutions of one input whose weights are the cosines and the sines of a Fourier transform become one with
/// both and a Split: the CPU's transform makes both at once. Takes nodes of the CPU and of no provider.
bool merge_transforms(graph::Graph& graph, const PassOptions& options);
/// Convolutions, and what stands between them, work on channels in blocks of 16 where that takes less time than it does
/// to convert what goes in and out. Takes nodes of the CPU and of no provider, last of all: no other rewrite knows
/// them.
bool block_channels(graph::Graph& graph, const PassOptions& options);
/// Blocks between nodes that all take them so are kept as bfloat16, where products are of such numbers anyway. After
/// block_channels.
bool round_blocks(graph::Graph& graph, const PassOptions& options);
/// Nodes between DequantizeLinears and a QuantizeLinear become the operators that compute on codes (QLinearConv, QGemm,
/// ...), products without a QuantizeLinear those that make floats of codes. Takes nodes of the CPU and of no provider.
bool fuse_quantized_units(graph::Graph& graph, const PassOptions& options);
/// The DequantizeLinears whose codes those operators would read.
std::set<graph::NodeId> dequantizers_of_units(const graph::Graph& graph, const PassOptions& options);

}  // namespace infernode::passes
