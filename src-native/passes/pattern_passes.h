#pragma once
// Rewrites of small patterns that a text pattern cannot say: chains of any length, inputs in any order.

#include "passes/pass.h"

namespace infernode::passes {

/// The constant tensor that a value is; null for any other value and for none.
inline const tensor::Tensor* constant(const graph::Graph& graph, graph::ValueId id) {
  if (id == graph::kNoValue) return nullptr;
  const graph::ValueInfo& value = graph.value(id);
  return value.is_constant() && value.constant.is_tensor() ? &value.constant.tensor() : nullptr;
}

/// Casts between floating types become one to the last type. Roundings on the way are lost with them, so that this is
/// for who asks for it.
bool eliminate_cast_chains(graph::Graph& graph, const PassOptions& options);
/// Slices that take every second row and column of an image, four ways, and a Concat of them become a SpaceToDepth; an
/// order of the four that it does not have goes into the weights of the convolution after it, or into a Gather.
bool fuse_slices_to_depth(graph::Graph& graph, const PassOptions& options);
/// What only moves elements, or takes the largest, does so before they are dequantized and after they were quantized.
bool propagate_quantization(graph::Graph& graph, const PassOptions& options);
/// Products with weights that are dequantized from 2, 4 or, in blocks, 8 bits become MatMulNBits. Takes nodes of the
/// CPU and of no provider.
bool fuse_dequantized_products(graph::Graph& graph, const PassOptions& options);

}  // namespace infernode::passes
