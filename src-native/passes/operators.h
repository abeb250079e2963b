#pragma once
// Operators whose meaning passes are about, by name, and what passes ask of nodes again and again. What else there is
// to know of an operator, it says itself: `traits_of` (kernel/op_traits.h).

#include <string_view>

#include "graph/graph.h"
#include "graph/operator_names.h"
#include "kernel/registry.h"

namespace infernode::passes {

using graph::kFusedConv;
using graph::kMaxPool;
using graph::kMicrosoft;
using graph::kOwn;

inline constexpr const char *kCast = "Cast", *kConcat = "Concat", *kConstant = "Constant", *kConv = "Conv",
                            *kDequantize = "DequantizeLinear", *kDropout = "Dropout", *kGather = "Gather",
                            *kGemm = "Gemm", *kGlobalAveragePool = "GlobalAveragePool", *kIdentity = "Identity",
                            *kIf = "If", *kMatMul = "MatMul", *kQuantize = "QuantizeLinear",
                            *kReduceMean = "ReduceMean", *kReshape = "Reshape", *kShape = "Shape", *kSlice = "Slice",
                            *kSpaceToDepth = "SpaceToDepth", *kSplit = "Split", *kTranspose = "Transpose",
                            *kUnsqueeze = "Unsqueeze", *kWhere = "Where";

/// Of our own domain: what works on blocks of channels (ops/conv).
inline constexpr const char *kBlockChannels = "BlockChannels", *kUnblockChannels = "UnblockChannels",
                            *kBlockedConv = "BlockedConv";

/// Reshape takes its dims as an input from this version on.
inline constexpr std::int64_t kShapeIsInput = 5;

/// Whether the node is this operator of ONNX.
inline bool is(const graph::Node& node, std::string_view op) { return node.op_type == op && node.domain.empty(); }
/// Or of com.microsoft: both have quantizers, which mean the same.
inline bool is_of_either_domain(const graph::Node& node, std::string_view op) {
  return node.op_type == op && (node.domain.empty() || node.domain == kMicrosoft);
}
inline bool is_quantizer(const graph::Node& node) { return is_of_either_domain(node, kQuantize); }
inline bool is_dequantizer(const graph::Node& node) { return is_of_either_domain(node, kDequantize); }

/// Whether the CPU has the node, or nobody yet.
inline bool runs_on_cpu(const graph::Node& node) { return node.provider.empty() || node.provider == "cpu"; }

/// The constant tensor that a value is; null for any other value and for none.
inline const tensor::Tensor* constant(const graph::Graph& graph, graph::ValueId id) {
  if (id == graph::kNoValue) return nullptr;
  const graph::ValueInfo& value = graph.value(id);
  return value.is_constant() && value.constant.is_tensor() ? &value.constant.tensor() : nullptr;
}

}  // namespace infernode::passes
