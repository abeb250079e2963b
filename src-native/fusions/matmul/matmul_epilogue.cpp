// Matrix products of any rank with what comes before and after them: infernode.FusedMatMul
//   Y = activation(alpha * A * B' + bias + residual), B' = B or, with transB, B with its last two dims exchanged.
// B may stay 8-bit: its scales and zero points are the inputs after the residual.

#include <algorithm>
#include <cmath>

#include "fusions/activation.h"

namespace infernode::fusions {
namespace {

constexpr const char* kProducts[] = {"t = MatMul(a, b)", "t = infernode.FusedMatMul(a, b, o_c, o_r, o_bs, o_bz)",
                                     "t = Gemm(a, b, o_c)"};

/// The product's node `t` as a FusedMatMul with its attributes; the caller changes inputs and attributes.
graph::Node fused_matmul(const Match& match) {
  const graph::Node& product = match.maker("t");
  graph::Node node = make_node(match, kOwn, kFusedMatMul, product.inputs);
  node.name = product.name;
  node.opset = 1;
  node.inputs.resize(6, graph::kNoValue);
  for (const char* name : {"alpha", "activation", "activation_params", "transB"}) {
    if (const graph::Attribute* value = product.attributes.find(name)) node.attributes.set(name, *value);
  }
  return node;
}

std::vector<graph::ValueId> finish(const Match& match, graph::GraphPatch& patch, graph::Node node) {
  while (node.inputs.back() == graph::kNoValue) node.inputs.pop_back();
  return put(match, patch, std::move(node));
}

/// A product that FusedMatMul can say.
bool is_expressible(const Match& match) {
  const graph::Node& product = match.maker("t");
  if (!may_fuse_sums(match, "t") || match.type("a").elem != match.type("t").elem ||
      rank_of(match.type("a")).value_or(0) < 2 || rank_of(match.graph().value(product.inputs[1]).type).value_or(0) < 2)
    return false;
  if (product.op_type != "Gemm") return true;
  const bool plain = product.attributes.get_int("transA", 0) == 0 && product.attributes.get_float("beta", 1) == 1;
  return plain && (!match.has("o_c") || is_row(match.type("o_c"), match.type("t")));
}
/// One whose epilogue still takes something.
bool is_open(const Match& match) { return is_expressible(match) && !match.maker("t").attributes.has("activation"); }

bool has_input(const Match& match, std::size_t i) {
  const graph::Node& product = match.maker("t");
  return i < product.inputs.size() && product.inputs[i] != graph::kNoValue;
}

bool guard_bias(const Match& match) {
  return is_open(match) && !has_input(match, 2) && is_row(match.type("c"), match.type("t"));
}
std::vector<graph::ValueId> replace_bias(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = fused_matmul(match);
  node.inputs[2] = match.value("c");
  return finish(match, patch, std::move(node));
}

/// A sum with a tensor of the product's shape. Batches of B would need as many calls.
bool guard_residual(const Match& match) {
  return is_open(match) && !has_input(match, 3) && rank_of(match.type("b")) == 2u &&
         same_shape(match.type("r"), match.type("t"));
}
std::vector<graph::ValueId> replace_residual(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = fused_matmul(match);
  node.inputs[3] = match.value("r");
  return finish(match, patch, std::move(node));
}

bool guard_activation(const Match& match) { return is_open(match) && read_activation(match, match.maker("y")); }
std::vector<graph::ValueId> replace_activation(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = fused_matmul(match);
  read_activation(match, match.maker("y"))->set(node.attributes);
  return finish(match, patch, std::move(node));
}

/// A factor (or divisor) of the product or of one operand goes into alpha.
bool takes_factor(const Match& match, const char* beside) {
  const auto factor = scalar(match, "c_s", beside);
  return is_open(match) && !has_input(match, 3) && factor && std::isfinite(*factor) && *factor != 0;
}
/// The factor of a sum is one of the bias too.
bool guard_scale(const Match& match) {
  const tensor::Tensor* bias = match.constant("o_c");
  return takes_factor(match, "t") && (!has_input(match, 2) || (bias && bias->dtype() == tensor::DType::Float32));
}
bool guard_operand_scale(const Match& match) { return takes_factor(match, "x"); }

float factor_of(const Match& match) {
  const float factor = tensor::to_float_scalar(*match.constant("c_s"));
  return contains(match, kDiv) ? 1 / factor : factor;
}
graph::Node scaled(const Match& match) {
  graph::Node node = fused_matmul(match);
  node.attributes.set("alpha", node.attributes.get_float("alpha", 1) * factor_of(match));
  return node;
}
std::vector<graph::ValueId> replace_scale(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = scaled(match);
  if (has_input(match, 2)) {
    const tensor::Tensor bias = match.constant("o_c")->clone();
    for (float& v : bias.mutable_span<float>()) v *= factor_of(match);
    node.inputs[2] = patch.add_constant(match.graph().value(match.value("o_c")).name + "_scaled", bias);
  }
  return finish(match, patch, std::move(node));
}
std::vector<graph::ValueId> replace_scale_a(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = scaled(match);
  node.inputs[0] = match.value("x");
  return finish(match, patch, std::move(node));
}
std::vector<graph::ValueId> replace_scale_b(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = scaled(match);
  node.inputs[1] = match.value("x");
  return finish(match, patch, std::move(node));
}

bool is_code(const tensor::Tensor& t) {
  return t.rank() == 2 && (t.dtype() == tensor::DType::Int8 || t.dtype() == tensor::DType::UInt8);
}
/// The axis of an 8-bit factor along which the columns of B' lie.
std::size_t column_axis(const Match& match) { return match.maker("t").attributes.get_int("transB", 0) != 0 ? 0 : 1; }
std::vector<graph::ValueId> replace_codes(const Match& match, graph::GraphPatch& patch, graph::ValueId scale) {
  graph::Node node = fused_matmul(match);
  node.inputs[1] = match.value("c_q");
  node.inputs[4] = scale;
  node.inputs[5] = match.value("o_z");
  return finish(match, patch, std::move(node));
}

/// Weights kept in 8 bits: one scale, or one for each column of B'.
bool guard_dequantize(const Match& match) {
  const graph::Node& expand = match.maker("s_b");
  const tensor::Tensor *codes = match.constant("c_q"), *scale = match.constant("c_s"), *zero = match.constant("o_z");
  if (!is_expressible(match) || !is_code(*codes) || scale->dtype() != tensor::DType::Float32 ||
      (match.has("o_z") && (zero == nullptr || zero->numel() != scale->numel())) ||
      expand.attributes.get_int("block_size", 0) != 0)
    return false;
  const std::int64_t axis = expand.attributes.get_int("axis", 1);
  return scale->numel() == 1 ||
         (scale->rank() == 1 && axis == (axis < 0 ? -2 : 0) + static_cast<std::int64_t>(column_axis(match)));
}
std::vector<graph::ValueId> replace_dequantize(const Match& match, graph::GraphPatch& patch) {
  return replace_codes(match, patch, match.value("c_s"));
}

/// The same spelt as a cast and a product with [1, N] (or [N, 1] where B is transposed, or one element).
bool guard_cast_scale(const Match& match) {
  const tensor::Tensor *codes = match.constant("c_q"), *scale = match.constant("c_s");
  if (!is_expressible(match) || !is_code(*codes) || scale->dtype() != tensor::DType::Float32 || scale->rank() > 2)
    return false;
  if (scale->numel() == 1) return true;
  const std::size_t axis = column_axis(match), from_end = 2 - axis;
  return scale->rank() >= from_end && scale->dim(scale->rank() - from_end) == codes->dim(axis) &&
         scale->numel() == codes->dim(axis);
}
std::vector<graph::ValueId> replace_cast_scale(const Match& match, graph::GraphPatch& patch) {
  const tensor::Tensor& scale = *match.constant("c_s");
  const std::string name = match.graph().value(match.value("c_s")).name + "_vector";
  return replace_codes(match, patch, patch.add_constant(name, scale.reshaped(tensor::Shape{scale.numel()})));
}

/// The permutation of B's transposition with the last two dims exchanged back, where that keeps rows whole.
std::vector<std::int64_t> rest_of_transpose(const Match& match) {
  std::vector<std::int64_t> perm = match.maker("b").attributes.get_ints("perm");
  if (perm.size() < 2) return {};
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return perm.back() == static_cast<std::int64_t>(perm.size()) - 1 ? perm : std::vector<std::int64_t>{};
}
bool guard_transpose(const Match& match) {
  return is_open(match) && match.maker("t").attributes.get_int("transB", 0) == 0 && !rest_of_transpose(match).empty();
}
std::vector<graph::ValueId> replace_transpose(const Match& match, graph::GraphPatch& patch) {
  const std::vector<std::int64_t> perm = rest_of_transpose(match);
  graph::Node node = fused_matmul(match);
  node.attributes.set("transB", std::int64_t{1});
  node.inputs[1] = match.value("x");
  if (!std::is_sorted(perm.begin(), perm.end())) {
    graph::Node transpose = match.maker("b");
    transpose.attributes.set("perm", perm);
    transpose.provenance.clear();
    const graph::ValueInfo& b = match.graph().value(match.value("b"));
    graph::ValueType type = b.type;
    if (type.shape) std::swap(type.shape->end()[-1], type.shape->end()[-2]);
    const graph::ValueId out = patch.add_value(b.name + "_rows", std::move(type));
    transpose.outputs = {out};
    patch.add_node(std::move(transpose), match.nodes());
    node.inputs[1] = out;
  }
  return finish(match, patch, std::move(node));
}

}  // namespace

void register_matmul_epilogue(FusionRegistry& registry) {
  registry.describe({"DequantizeMatMulFusion"}, "a product with 8-bit weights reads the codes",
                    "weights of other types or rank, scales along another axis");
  registry.describe({"MatMulBiasFusion", "MatMulResidualFusion", "MatMulActivationFusion", "MatMulScaleFusion",
                     "MatmulTransposeFusion"},
                    "what surrounds a product becomes part of it", "what is already inside leaves no room for it");
  const std::vector<ActivationPattern> activations = activation_patterns(registry.operators());
  for (const std::string product : kProducts) {
    const std::string inputs = "(a, b, o_c, o_r, o_bs, o_bz";
    registry.add(
        {"MatMulBiasFusion", 2, inputs + ", c) => (y) { " + product + "  y = Add(t, c) }", guard_bias, replace_bias});
    registry.add({"MatMulResidualFusion", 2, inputs + ", r) => (y) { " + product + "  y = Add(t, r) }", guard_residual,
                  replace_residual});
    for (const auto& [activation, more] : activations) {
      registry.add({"MatMulActivationFusion", 2, inputs + more + ") => (y) { " + product + "  " + activation + " }",
                    guard_activation, replace_activation});
    }
    registry.add({"MatMulScaleFusion", 2, inputs + ", c_s) => (y) { " + product + "  y = Mul(t, c_s) }", guard_scale,
                  replace_scale});
    registry.add({"MatMulScaleFusion", 2, inputs + ", c_s) => (y) { " + product + "  y = Div(t, c_s) }", guard_scale,
                  replace_scale});
  }
  // Weights may have other readers: this product needs no floats of them all the same.
  for (const std::string product :
       {"t = MatMul(a, s_b)", "t = infernode.FusedMatMul(a, s_b, o_c, o_r)", "t = Gemm(a, s_b, o_c)"}) {
    const std::string inputs = "(a, c_q, c_s, o_z, o_c, o_r) => (t) { ";
    registry.add({"DequantizeMatMulFusion", 2, inputs + "s_b = DequantizeLinear(c_q, c_s, o_z)  " + product + " }",
                  guard_dequantize, replace_dequantize});
    registry.add({"DequantizeMatMulFusion", 2, inputs + "f = Cast(c_q)  s_b = Mul(f, c_s)  " + product + " }",
                  guard_cast_scale, replace_cast_scale});
  }
  for (const std::string op : {"MatMul(a, b)", "infernode.FusedMatMul(a, b)"}) {
    for (const std::string scale : {"Mul(x, c_s)", "Div(x, c_s)"}) {
      registry.add({"MatMulScaleFusion", 2, "(x, c_s, b) => (t) { a = " + scale + "  t = " + op + " }",
                    guard_operand_scale, replace_scale_a});
      registry.add({"MatMulScaleFusion", 2, "(x, c_s, a) => (t) { b = " + scale + "  t = " + op + " }",
                    guard_operand_scale, replace_scale_b});
    }
    registry.add({"MatmulTransposeFusion", 2, "(x, a) => (t) { b = Transpose(x)  t = " + op + " }", guard_transpose,
                  replace_transpose});
  }
}

}  // namespace infernode::fusions
