#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

using tensor::DType;

/// Gemm takes matrices and an addend that broadcasts to the product: [N], [1,N] or [M,N].
bool guard(const Match& match) {
  const graph::ValueType &a = match.type("a"), &b = match.type("b"), &c = match.type("c");
  if (rank_of(a) != 2u || rank_of(b) != 2u || !c.shape || c.shape->size() > 2) return false;
  if (a.elem != DType::Float32 && a.elem != DType::Float16 && a.elem != DType::Float64) return false;
  const graph::Dim &m = (*a.shape)[0], &n = (*b.shape)[1];
  const graph::SymShape& dims = *c.shape;
  if (dims.empty()) return true;
  const graph::Dim& last = dims.back();
  if (!(last == n) && !last.is(1)) return false;
  return dims.size() == 1 || dims[0] == m || dims[0].is(1);
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  graph::Node gemm = make_node(match, "", "Gemm", {match.value("a"), match.value("b"), match.value("c")});
  gemm.name = match.node(0).name;
  return put(match, patch, std::move(gemm));
}

}  // namespace

/// Gemm before version 7 had other broadcasting.
void register_matmul_add(FusionRegistry& registry) {
  registry.describe({"MatMulAddFusion"}, "MatMul and Add become Gemm",
                    "other than two dims; a bias that widens the product");
  registry.add({"MatMulAddFusion", 1, "(a, b, c) => (y) { t = MatMul(a, b)  y = Add(t, c) }",
                [](const Match& match) { return match.node(0).opset >= 7 && guard(match); }, replace});
}

}  // namespace infernode::fusions
