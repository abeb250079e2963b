// Rows are looked up before they are expanded: a table of 8-bit codes is not made float32 for the few rows that are
// read.

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

bool looks_up_rows(const Match& match) {
  const tensor::Tensor& codes = *match.constant("c_q");
  const std::int64_t axis = match.maker("y").attributes.get_int("axis", 0);
  return codes.rank() >= 1 && (codes.dtype() == tensor::DType::Int8 || codes.dtype() == tensor::DType::UInt8) &&
         (axis == 0 || axis == -static_cast<std::int64_t>(codes.rank()));
}

/// One scale and zero point for the whole table.
bool guard_dequantize(const Match& match) {
  const tensor::Tensor* zero = match.constant("o_z");
  return looks_up_rows(match) && match.constant("c_s")->rank() == 0 &&
         (!match.has("o_z") || (zero && zero->rank() == 0));
}
/// One scale, or one for each row.
bool guard_cast_scale(const Match& match) {
  const tensor::Tensor &codes = *match.constant("c_q"), &scale = *match.constant("c_s");
  if (!looks_up_rows(match)) return false;
  return scale.rank() == 0 ||
         (scale.rank() == codes.rank() && scale.dim(0) == codes.dim(0) && scale.numel() == scale.dim(0));
}

graph::ValueId add(const Match& match, graph::GraphPatch& patch, graph::Node node, const char* hint,
                   tensor::DType type) {
  graph::ValueType out = match.type("y");
  out.elem = type;
  const graph::ValueId value = patch.add_value(hint, std::move(out));
  node.outputs = {value};
  patch.add_node(std::move(node), match.nodes());
  return value;
}
graph::ValueId look_up(const Match& match, graph::GraphPatch& patch, const char* table, const char* hint) {
  graph::Node node = match.maker("y");
  node.inputs = {match.value(table), match.value("i")};
  graph::ValueType type = graph::ValueType::tensor(match.type(table).elem);
  const graph::ValueId value = patch.add_value(hint, std::move(type));
  node.outputs = {value};
  patch.add_node(std::move(node), match.nodes());
  return value;
}

std::vector<graph::ValueId> replace_dequantize(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = match.maker("s_m");
  node.inputs[0] = look_up(match, patch, "c_q", "codes");
  return put(match, patch, std::move(node));
}

std::vector<graph::ValueId> replace_cast_scale(const Match& match, graph::GraphPatch& patch) {
  graph::Node cast = match.maker("f"), scale = match.maker("s_m");
  cast.inputs = {look_up(match, patch, "c_q", "codes")};
  const graph::ValueId rows = add(match, patch, std::move(cast), "rows", match.type("y").elem);
  const bool one = match.constant("c_s")->rank() == 0;
  scale.inputs = {rows, one ? match.value("c_s") : look_up(match, patch, "c_s", "scales")};
  return put(match, patch, std::move(scale));
}

}  // namespace

void register_gather_dequantize(FusionRegistry& registry) {
  registry.describe({"GatherDequantizeFusion"}, "gathers codes and dequantizes those",
                    "scales lie along the gathered axis");
  registry.add({"GatherDequantizeFusion", 1,
                "(c_q, c_s, o_z, i) => (y) { s_m = DequantizeLinear(c_q, c_s, o_z)  y = Gather(s_m, i) }",
                guard_dequantize, replace_dequantize});
  registry.add({"GatherDequantizeFusion", 1,
                "(c_q, c_s, i) => (y) { f = Cast(c_q)  s_m = Mul(f, c_s)  y = Gather(s_m, i) }", guard_cast_scale,
                replace_cast_scale});
}

}  // namespace infernode::fusions
