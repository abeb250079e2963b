// Products of 8-bit matrices with what comes before and after them: infernode.FusedMatMulInteger
//   Y = activation((A - a_zero_point)(B - b_zero_point) * (a_scale * b_scale) + bias + residual)
// Where A is float32, DynamicQuantizeLinear is part of it.

#include "base/error.h"
#include "fusions/activation.h"

namespace infernode::fusions {
namespace {

using graph::kNoValue;
using graph::ValueId;

constexpr std::size_t kBias = 6, kResidual = 7, kInputs = 8;

bool is_one(const graph::ValueType& type) {
  return type.elem == tensor::DType::Float32 && type.shape && type.shape->size() <= 1 &&
         (type.shape->empty() || type.shape->front().is(1));
}
/// One number, or one for each column of the product.
bool is_column_scale(const graph::ValueType& type, const graph::ValueType& product) {
  return is_one(type) || (type.elem == tensor::DType::Float32 && is_row(type, product));
}
bool is_zero_point(const Match& match, std::string_view name, const graph::ValueType* product) {
  if (!match.has(name)) return true;
  const graph::ValueType& type = match.type(name);
  const auto rank = rank_of(type);
  if (!rank) return false;
  return *rank == 0 || (*rank == 1 && type.shape->front().is(1)) || (product != nullptr && is_row(type, *product));
}

std::vector<ValueId> finish(const Match& match, graph::GraphPatch& patch, graph::Node node) {
  while (node.inputs.back() == kNoValue) node.inputs.pop_back();
  return put(match, patch, std::move(node));
}

/// The sums become floats by a scale that is the same for all rows.
bool guard_product(const Match& match) {
  const graph::ValueType& sums = match.type("t");
  return match.type("f").elem == tensor::DType::Float32 && rank_of(match.type("a")).value_or(0) >= 2 &&
         rank_of(match.type("b")).value_or(0) >= 2 && is_zero_point(match, "o_az", nullptr) &&
         is_zero_point(match, "o_bz", &sums);
}
bool guard_scales(const Match& match) {
  return guard_product(match) && is_one(match.type("as")) && is_column_scale(match.type("bs"), match.type("t"));
}
bool guard_scale(const Match& match) {
  return guard_product(match) && is_column_scale(match.type("s"), match.type("t"));
}

std::vector<ValueId> make_product(const Match& match, graph::GraphPatch& patch, ValueId a_scale, ValueId b_scale) {
  graph::Node node =
      make_node(match, kOwn, "FusedMatMulInteger",
                {match.value("a"), match.value("b"), a_scale, b_scale, match.value("o_az"), match.value("o_bz")});
  node.name = match.maker("t").name;
  node.opset = 1;
  return put(match, patch, std::move(node));
}
std::vector<ValueId> replace_scales(const Match& match, graph::GraphPatch& patch) {
  return make_product(match, patch, match.value("as"), match.value("bs"));
}
std::vector<ValueId> replace_scale(const Match& match, graph::GraphPatch& patch) {
  return make_product(match, patch, kNoValue, match.value("s"));
}

graph::Node fused(const Match& match) {
  graph::Node node = match.maker("t");
  node.inputs.resize(kInputs, kNoValue);
  return node;
}
/// One whose epilogue still takes something.
bool is_open(const Match& match, std::size_t input) {
  const graph::Node& node = match.maker("t");
  return !node.attributes.has("activation") && (input >= node.inputs.size() || node.inputs[input] == kNoValue);
}

/// A bias goes before the residual.
bool guard_bias(const Match& match) {
  return is_open(match, kBias) && is_open(match, kResidual) && match.type("c").elem == tensor::DType::Float32 &&
         is_row(match.type("c"), match.type("t"));
}
std::vector<ValueId> replace_bias(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = fused(match);
  node.inputs[kBias] = match.value("c");
  return finish(match, patch, std::move(node));
}

bool guard_residual(const Match& match) {
  return is_open(match, kResidual) && same_shape(match.type("r"), match.type("t"));
}
std::vector<ValueId> replace_residual(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = fused(match);
  node.inputs[kResidual] = match.value("r");
  return finish(match, patch, std::move(node));
}

bool guard_activation(const Match& match) {
  return is_open(match, kInputs) && read_activation(match, match.maker("y"));
}
std::vector<ValueId> replace_activation(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = fused(match);
  read_activation(match, match.maker("y"))->set(node.attributes);
  return finish(match, patch, std::move(node));
}

std::vector<ValueId> replace_quantizer(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = match.maker("y");
  node.inputs[0] = match.value("x");
  node.inputs[2] = node.inputs[4] = kNoValue;
  return finish(match, patch, std::move(node));
}

}  // namespace

void register_matmul_integer(FusionRegistry& registry) {
  registry.describe({"DynamicQuantizeMatMulFusion"},
                    "DynamicQuantizeLinear goes into the one `FusedMatMulInteger` that reads it", "several readers");
  registry.describe({"MatMulIntegerToFloatFusion"},
                    "MatMulInteger, Cast and the product with scales become `FusedMatMulInteger`, which bias, residual "
                    "and activation join",
                    "a scale or zero point for each row; sums with other readers");
  const std::string sums = "t = MatMulInteger(a, b, o_az, o_bz)  f = Cast(t)  ";
  registry.add({"MatMulIntegerToFloatFusion", 2,
                "(a, b, o_az, o_bz, as, bs) => (y) { " + sums + "s = Mul(as, bs)  y = Mul(f, s) }", guard_scales,
                replace_scales});
  registry.add({"MatMulIntegerToFloatFusion", 2, "(a, b, o_az, o_bz, s) => (y) { " + sums + "y = Mul(f, s) }",
                guard_scale, replace_scale});
  const std::string inputs = "(a, b, o_as, bs, o_az, o_bz, o_c, o_r",
                    product = "t = infernode.FusedMatMulInteger(a, b, o_as, bs, o_az, o_bz, o_c, o_r)  ";
  registry.add(
      {"MatMulBiasFusion", 2, inputs + ", c) => (y) { " + product + "y = Add(t, c) }", guard_bias, replace_bias});
  registry.add({"MatMulResidualFusion", 2, inputs + ", r) => (y) { " + product + "y = Add(t, r) }", guard_residual,
                replace_residual});
  for (const auto& [activation, more] : activation_patterns(registry.operators())) {
    registry.add({"MatMulActivationFusion", 2, cat(inputs, more, ") => (y) { ", product, activation, " }"),
                  guard_activation, replace_activation});
  }
  registry.add({"DynamicQuantizeMatMulFusion", 2,
                "(x, b, bs, o_bz, o_c, o_r) => (y) { q, as, az = DynamicQuantizeLinear(x)  "
                "y = infernode.FusedMatMulInteger(q, b, as, bs, az, o_bz, o_c, o_r) }",
                nullptr, replace_quantizer});
}

}  // namespace infernode::fusions
