#include "passes/quantization/codes.h"

#include <optional>

namespace infernode::passes {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using tensor::DType;
using tensor::Tensor;

bool undoes(const Graph& graph, const Node& dequantize, const Node& quantize) {
  const Tensor *s = constant(graph, dequantize.inputs[1]), *t = constant(graph, quantize.inputs[1]);
  if (s == nullptr || t == nullptr || s->numel() != 1 || t->numel() != 1 || s->dtype() != DType::Float32 ||
      t->dtype() != DType::Float32 || *s->data<float>() != *t->data<float>())
    return false;
  if (graph.value(dequantize.inputs[0]).type.elem != graph.value(quantize.outputs[0]).type.elem) return false;
  const auto zero = [&](const Node& node) -> std::optional<std::int64_t> {
    if (zero_point(node) == kNoValue) return 0;
    const Tensor* z = constant(graph, zero_point(node));
    return z != nullptr && z->numel() == 1 ? std::optional(tensor::to_int64_scalar(*z)) : std::nullopt;
  };
  return zero(dequantize) && zero(dequantize) == zero(quantize);
}

}  // namespace infernode::passes
