// What stands next to a Gemm and is part of what it can do: a transpose of a matrix or of the product, a sum.

#include <utility>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

/// From version 11 on the addend may be absent.
constexpr std::int64_t kAddendIsOptional = 11;

bool swaps(const graph::Node& transpose, const graph::ValueType& type) {
  const auto perm = transpose.attributes.get_ints("perm");
  return rank_of(type) == 2u && (perm.empty() || perm == std::vector<std::int64_t>{1, 0});
}

void flip(graph::Node& gemm, const char* name) {
  gemm.attributes.set(name, std::int64_t{gemm.attributes.get_int(name, 0) == 0});
}

bool guard_input(const Match& match) { return swaps(match.maker("t"), match.type("x")); }

template <std::size_t kInput>
std::vector<graph::ValueId> replace_input(const Match& match, graph::GraphPatch& patch) {
  graph::Node gemm = match.last();
  gemm.inputs[kInput] = match.value("x");
  flip(gemm, kInput == 0 ? "transA" : "transB");
  return put(match, patch, std::move(gemm));
}

bool guard_output(const Match& match) { return swaps(match.last(), match.type("t")); }

/// (A B)' = B' A'.
std::vector<graph::ValueId> replace_output(const Match& match, graph::GraphPatch& patch) {
  graph::Node gemm = match.maker("t");
  std::swap(gemm.inputs[0], gemm.inputs[1]);
  const std::int64_t a = gemm.attributes.get_int("transA", 0), b = gemm.attributes.get_int("transB", 0);
  gemm.attributes.set("transA", std::int64_t{b == 0});
  gemm.attributes.set("transB", std::int64_t{a == 0});
  return put(match, patch, std::move(gemm));
}

/// The other summand has the product's type and does not widen it.
bool guard_sum(const Match& match) {
  const graph::ValueType &product = match.type("t"), &c = match.type("c");
  if (match.maker("t").opset < kAddendIsOptional || match.last().inputs.size() != 2) return false;
  if (!is_float(product) || c.elem != product.elem || rank_of(product) != 2u || rank_of(c).value_or(3) > 2)
    return false;
  const graph::SymShape &from = *c.shape, &to = *product.shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const graph::Dim& dim = from[from.size() - 1 - i];
    if (!dim.is(1) && !(dim == to[1 - i])) return false;
  }
  return true;
}

std::vector<graph::ValueId> replace_sum(const Match& match, graph::GraphPatch& patch) {
  graph::Node gemm = match.maker("t");
  gemm.inputs.resize(2);
  gemm.inputs.push_back(match.value("c"));
  gemm.attributes.set("beta", 1.0f);
  return put(match, patch, std::move(gemm));
}

}  // namespace

void register_gemm_chains(FusionRegistry& registry) {
  registry.describe({"GemmSumFusion"}, "a Sum after a Gemm becomes its C", "the Gemm has one; other dims");
  registry.describe({"GemmTransposeFusion"}, "Transposes around a Gemm become its transA and transB");
  registry.add({"GemmTransposeFusion", 1, "(x, b, o_c) => (y) { t = Transpose(x)  y = Gemm(t, b, o_c) }", guard_input,
                replace_input<0>});
  registry.add({"GemmTransposeFusion", 1, "(a, x, o_c) => (y) { t = Transpose(x)  y = Gemm(a, t, o_c) }", guard_input,
                replace_input<1>});
  registry.add(
      {"GemmTransposeFusion", 1, "(a, b) => (y) { t = Gemm(a, b)  y = Transpose(t) }", guard_output, replace_output});
  registry.add({"GemmSumFusion", 1, "(a, b, c) => (y) { t = Gemm(a, b)  y = Sum(t, c) }", guard_sum, replace_sum});
}

}  // namespace infernode::fusions
