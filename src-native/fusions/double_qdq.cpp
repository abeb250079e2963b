// Dequantizing what is quantized the same way again gives what was there.

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

using tensor::DType;

/// The zero point, 0 where there is none; nullopt where it is not one known number.
std::optional<std::int64_t> zero_point(const Match& match, const char* name) {
  if (!match.has(name)) return 0;
  const tensor::Tensor* t = match.constant(name);
  if (t == nullptr || t->numel() != 1) return std::nullopt;
  return tensor::to_int64_scalar(*t);
}

/// 16 bits survive a product and a quotient by the same scale, as long as neither leaves float's range: together the
/// roundings are less than half a step.
bool guard(const Match& match) {
  const DType type = match.type("x").elem;
  const bool code = type == DType::Int8 || type == DType::UInt8 || type == DType::Int16 || type == DType::UInt16;
  if (!code || match.type("y").elem != type) return false;
  for (const char* name : {"c_s", "c_t"}) {
    const tensor::Tensor* scale = match.constant(name);
    if (scale == nullptr || scale->dtype() != DType::Float32 || scale->numel() != 1) return false;
  }
  const float s = *match.constant("c_s")->data<float>(), t = *match.constant("c_t")->data<float>();
  if (s != t || !(s > 1e-30f && s < 1e30f)) return false;
  const auto before = zero_point(match, "o_z"), after = zero_point(match, "o_v");
  return before && after && *before == *after;
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch&) { return {match.value("x")}; }

}  // namespace

void register_double_qdq(FusionRegistry& registry) {
  registry.describe({"DoubleQDQPairsRemover"}, "drops a dequantizing and quantizing that give what was there",
                    "scales or zero points differ");
  registry.add({"DoubleQDQPairsRemover", 1,
                "(x, c_s, o_z, c_t, o_v) => (y) { s_d = DequantizeLinear(x, c_s, o_z)  "
                "y = QuantizeLinear(s_d, c_t, o_v) }",
                guard, replace});
}

}  // namespace infernode::fusions
