// Scaled dot-product attention: softmax(scale * Q * K' + mask) * V, the transpositions around it, and the heads of K
// and V repeated for groups of queries.

#include <algorithm>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

/// Dims of a value of rank 4, nullptr where it is none.
const graph::SymShape* dims(const Match& match, std::string_view name) {
  const graph::ValueType& type = match.type(name);
  return rank_of(type) == 4u ? &*type.shape : nullptr;
}

bool is_last_axis(const graph::Node& softmax, std::size_t rank) {
  const std::int64_t axis = softmax.attributes.get_int("axis", softmax.opset >= 13 ? -1 : 1);
  return axis == -1 || axis + 1 == static_cast<std::int64_t>(rank);
}

/// Whether something takes the place of the probabilities `p` in the product with V.
bool zeroes_nan(const Match& match) { return match.last().inputs[0] != match.value("p"); }

/// Operands are [batch, heads, rows, columns], or all [batch, rows, columns].
bool guard(const Match& match) {
  const auto &q = match.type("q").shape, &k = match.type("k").shape, &v = match.type("v").shape;
  if (!q || !k || !v || !may_fuse_sums(match, "q")) return false;
  const std::size_t rank = q->size();
  if ((rank != 3 && rank != 4) || k->size() != rank || v->size() != rank) return false;
  const graph::Node& scores = match.maker("t");
  if (scores.attributes.get_int("transB", 0) == 0 || scores.attributes.has("activation")) return false;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (!((*q)[i] == (*k)[i]) || !((*q)[i] == (*v)[i])) return false;
  }
  if (zeroes_nan(match) && !is_scalar(match, "c_zero", "p", 0)) return false;
  return is_last_axis(match.maker("p"), rank);
}
/// The mask does not widen batch and heads; the operator sees to rows and columns.
bool guard_masked(const Match& match) {
  const graph::ValueType& mask = match.type("m");
  if (!guard(match)) return false;
  const graph::SymShape& q = *match.type("q").shape;
  if (mask.elem != match.type("q").elem || rank_of(mask).value_or(5) > q.size()) return false;
  for (std::ptrdiff_t i = 3; i <= std::ssize(*mask.shape); ++i) {
    const graph::Dim& dim = mask.shape->end()[-i];
    if (!dim.is(1) && !(dim == q.end()[-i])) return false;
  }
  return true;
}

graph::Node attention(const Match& match, graph::ValueId mask) {
  graph::Node node =
      make_node(match, kOwn, "FusedAttention", {match.value("q"), match.value("k"), match.value("v"), mask});
  node.opset = 1;
  node.attributes.set("scale", match.maker("t").attributes.get_float("alpha", 1));
  if (zeroes_nan(match)) node.attributes.set("zero_nan", std::int64_t{1});
  return node;
}
std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, attention(match, graph::kNoValue));
}
std::vector<graph::ValueId> replace_masked(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, attention(match, match.value("m")));
}
/// The probabilities have other readers, too.
std::vector<graph::ValueId> keep_probabilities(const Match& match, graph::GraphPatch& patch, graph::Node node) {
  node.outputs = {match.value("y"), match.value("p")};
  patch.add_node(std::move(node), match.nodes());
  return {match.value("y"), match.value("p")};
}
std::vector<graph::ValueId> replace_kept(const Match& match, graph::GraphPatch& patch) {
  return keep_probabilities(match, patch, attention(match, graph::kNoValue));
}
std::vector<graph::ValueId> replace_masked_kept(const Match& match, graph::GraphPatch& patch) {
  return keep_probabilities(match, patch, attention(match, match.value("m")));
}

bool exchanges_heads_and_rows(const graph::Node& transpose) {
  return transpose.attributes.get_ints("perm") == std::vector<std::int64_t>{0, 2, 1, 3};
}

/// The attention that makes a value, with one operand in the other order.
graph::Node reordered(const Match& match, const char* made, const char* flag) {
  graph::Node node = match.maker(made);
  node.attributes.set(flag, 1 - node.attributes.get_int(flag, 0));
  return node;
}

bool guard_input(const Match& match) { return exchanges_heads_and_rows(match.maker("t")); }
template <std::size_t Input>
std::vector<graph::ValueId> replace_input(const Match& match, graph::GraphPatch& patch) {
  constexpr const char* kFlags[] = {"q_rows_first", "k_rows_first", "v_rows_first"};
  graph::Node node = reordered(match, "y", kFlags[Input]);
  node.inputs[Input] = match.value("x");
  return put(match, patch, std::move(node));
}

bool guard_output(const Match& match) { return exchanges_heads_and_rows(match.maker("y")); }
std::vector<graph::ValueId> replace_output(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, reordered(match, "t", "y_rows_first"));
}

/// Unsqueeze, Expand and Reshape repeat each head of [batch, heads, rows, columns] for the queries of its group. Names
/// of the values: source, axes of Unsqueeze, what is expanded, what is reshaped.
bool repeats_heads(const Match& match, const char* from, const char* axes, const char* expanded, const char* to) {
  const graph::SymShape *x = dims(match, from), *repeated = dims(match, to);
  const graph::ValueType& wide_type = match.type(expanded);
  const tensor::Tensor* axis = match.constant(axes);
  if (x == nullptr || repeated == nullptr || rank_of(wide_type) != 5u || axis == nullptr ||
      tensor::to_int64_vector(*axis) != std::vector<std::int64_t>{2})
    return false;
  const graph::SymShape &narrow = *x, &wide = *wide_type.shape, &flat = *repeated;
  const bool counted = narrow[1].known() && narrow[3].known() && wide[2].known() && wide[2].value() > 0;
  // The rows of `wide` follow: the reshape keeps the count.
  return counted && narrow[0] == wide[0] && narrow[1] == wide[1] && narrow[3] == wide[4] &&
         graph::SymShape{narrow[0], narrow[1] * wide[2], narrow[2], narrow[3]} == flat;
}

bool guard_repeats(const Match& match) {
  const graph::Attributes& attributes = match.maker("y").attributes;
  return attributes.get_int("k_rows_first", 0) == 0 && attributes.get_int("v_rows_first", 0) == 0 &&
         repeats_heads(match, "k", "c_k_axes", "ke", "kr") && repeats_heads(match, "v", "c_v_axes", "ve", "vr") &&
         (*dims(match, "k"))[1] == (*dims(match, "v"))[1];
}

std::vector<graph::ValueId> replace_repeats(const Match& match, graph::GraphPatch& patch) {
  graph::Node node = match.maker("y");
  node.inputs[1] = match.value("k");
  node.inputs[2] = match.value("v");
  return put(match, patch, std::move(node));
}

}  // namespace

void register_attention(FusionRegistry& registry) {
  registry.describe({"AttentionFusion", "AttentionGroupFusion", "AttentionTransposeFusion"},
                    "scaled dot-product attention becomes `FusedAttention`, with the repeating of heads and the "
                    "Transposes around it; probabilities that others read are its second output",
                    "other than three or four dims of float32; a mask that widens batch or heads");
  const std::string plain = ") => (y) { t = infernode.FusedMatMul(q, k)  p = Softmax(t)  ",
                    masked = ", m) => (y) { t = infernode.FusedMatMul(q, k)  s = Add(t, m)  p = Softmax(s)  ";
  registry.add({"AttentionFusion", 2, "(q, k, v" + plain + "y = MatMul(p, v) }", guard, replace});
  registry.add({"AttentionFusion", 2, "(q, k, v" + masked + "y = MatMul(p, v) }", guard_masked, replace_masked});
  const auto kept = [](std::string pattern) { return pattern.replace(pattern.find("(y)"), 3, "(y, p)"); };
  registry.add({"AttentionFusion", 2, kept("(q, k, v" + plain + "y = MatMul(p, v) }"), guard, replace_kept});
  registry.add(
      {"AttentionFusion", 2, kept("(q, k, v" + masked + "y = MatMul(p, v) }"), guard_masked, replace_masked_kept});
  // Rows without keys, NaN to Softmax, are zeros to some exporters.
  const std::string zeroed = "n = IsNaN(p)  w = Where(n, c_zero, p)  y = MatMul(w, v) }";
  registry.add({"AttentionFusion", 2, "(q, k, v, c_zero" + plain + zeroed, guard, replace});
  registry.add({"AttentionFusion", 2, "(q, k, v, c_zero" + masked + zeroed, guard_masked, replace_masked});
  registry.add({"AttentionTransposeFusion", 2,
                "(x, k, v, o_m) => (y) { t = Transpose(x)  y = infernode.FusedAttention(t, k, v, o_m) }", guard_input,
                replace_input<0>});
  registry.add({"AttentionTransposeFusion", 2,
                "(q, x, v, o_m) => (y) { t = Transpose(x)  y = infernode.FusedAttention(q, t, v, o_m) }", guard_input,
                replace_input<1>});
  registry.add({"AttentionTransposeFusion", 2,
                "(q, k, x, o_m) => (y) { t = Transpose(x)  y = infernode.FusedAttention(q, k, t, o_m) }", guard_input,
                replace_input<2>});
  registry.add({"AttentionGroupFusion", 2,
                "(q, k, c_k_axes, ks, kd, v, c_v_axes, vs, vd, o_m) => (y) {"
                "  ku = Unsqueeze(k, c_k_axes)  ke = Expand(ku, ks)  kr = Reshape(ke, kd)"
                "  vu = Unsqueeze(v, c_v_axes)  ve = Expand(vu, vs)  vr = Reshape(ve, vd)"
                "  y = infernode.FusedAttention(q, kr, vr, o_m) }",
                guard_repeats, replace_repeats});
  registry.add({"AttentionTransposeFusion", 2,
                "(q, k, v, o_m) => (y) { t = infernode.FusedAttention(q, k, v, o_m)  y = Transpose(t) }", guard_output,
                replace_output});
}

}  // namespace infernode::fusions
