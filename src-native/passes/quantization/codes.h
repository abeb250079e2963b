#pragma once
// What passes that move quantizing and dequantizing ask of such nodes.

#include "graph/patch.h"
#include "passes/operators.h"

namespace infernode::passes {

using graph::Consumers;

inline bool quantizes(const graph::Node& node) { return !node.removed && is_quantizer(node); }
inline bool dequantizes(const graph::Node& node) { return !node.removed && is_dequantizer(node); }
/// Of 8 or 16 bits.
inline bool is_code(tensor::DType type) {
  using tensor::DType;
  return type == DType::Int8 || type == DType::UInt8 || type == DType::Int16 || type == DType::UInt16;
}
inline graph::ValueId zero_point(const graph::Node& node) {
  return node.inputs.size() > 2 ? node.inputs[2] : graph::kNoValue;
}
/// Whether quantizing by the second gives what the first was given. The roundings of a product and a quotient by one
/// float32 scale cancel over 16 bits.
bool undoes(const graph::Graph& graph, const graph::Node& dequantize, const graph::Node& quantize);

}  // namespace infernode::passes
