#include "providers/cuda/kernels/gemm.h"

#include "providers/cuda/kernels/pack.h"

namespace infernode::cuda {

namespace {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// The product that kernels see, the copies it needs, and where scratch memory is free.
struct Prepared {
  Product product;
  std::vector<Launch> copies;
  std::size_t used = 0;
};

bool legal(const Matrix& m) {
  const std::int64_t size = element_size(m.type);
  return m.k_stride == 1 && m.address % 16 == 0 && m.row_stride * size % 16 == 0 &&
         m.batch_stride[0] * size % 16 == 0 && m.batch_stride[1] * size % 16 == 0;
}

/// Copies a matrix into scratch memory, in rows padded to 64 elements.
Operand copied(Prepared& to, const GemmProblem& g, const Matrix& m, std::int64_t rows, int pieces) {
  PackParams p{};
  p.in = m.address;
  p.out = g.workspace + to.used;
  p.in_row = m.row_stride;
  p.in_channel = m.k_stride;
  p.rows = static_cast<std::int32_t>(rows);
  p.taps = 1;
  p.channels = static_cast<std::int32_t>(g.k);
  p.columns = p.channels_padded = static_cast<std::int32_t>(round_up(g.k, 64));
  p.pieces = pieces;
  p.in_type = m.type;
  p.out_type = pieces > 1 ? Element::bf16 : m.type;
  const std::int64_t parts[2] = {m.batch_stride[0] ? g.batch[0] : 1, m.batch_stride[1] ? g.batch[1] : 1};
  p.batch_inner = static_cast<std::int32_t>(parts[0]);
  for (int i = 0; i < 2; i++) p.in_batch[i] = m.batch_stride[i];
  p.out_row = p.columns;
  p.out_plane = rows * p.out_row;
  p.out_batch = p.out_plane * pieces;
  Operand o{p.out, p.out_type, p.out_row, {0, 0}, pieces, pieces > 1 ? p.out_plane : 0};
  if (m.batch_stride[0]) o.batch[0] = p.out_batch;
  if (m.batch_stride[1]) o.batch[1] = p.out_batch * parts[0];
  to.used += static_cast<std::size_t>(round_up(parts[0] * parts[1] * p.out_batch * element_size(p.out_type), 256));
  to.copies.push_back(pack_launch(p, parts[0] * parts[1]));
  return o;
}

Operand in_place(const Matrix& m) {
  return {m.address, m.type, m.row_stride, {m.batch_stride[0], m.batch_stride[1]}, 1, 0};
}

Prepared prepare(const Target& target, const GemmProblem& g) {
  Prepared r;
  Product& p = r.product;
  p.m = g.m;
  p.n = g.n;
  p.k = g.k;
  p.batch[0] = g.batch[0];
  p.batch[1] = g.batch[1];
  p.b_constant = g.b_constant;
  p.precision = g.precision;
  p.norm = g.norm;
  p.epilogue = g.epilogue;
  p.a = legal(g.a) ? in_place(g.a) : copied(r, g, g.a, g.m, 1);
  if (g.b_packed) {
    const WeightLayout& w = *g.b_packed;
    p.b = {g.b_address, w.type, w.row, {0, 0}, w.pieces, w.plane};
    return r;
  }
  const WeightLayout wanted = weight_layout(target, g.a.type, g.precision, g.n, 1, g.k);
  if (wanted.pieces == 1 && legal(g.b) && g.b.type == g.a.type) {
    p.b = in_place(g.b);
  } else {
    p.b = copied(r, g, g.b, g.n, wanted.pieces);
    p.b_constant = false;
  }
  return r;
}

GemmChoice chosen(const Target& target, const Product& p, const std::optional<GemmChoice>& choice) {
  return choice ? *choice : product_choices(target, p).front();
}

}  // namespace

bool can_normalize_rows(const Target& target, const GemmProblem& g) {
  return legal(g.a) && !gemm_choices(target, g).empty();
}

std::vector<GemmChoice> gemm_choices(const Target& target, const GemmProblem& g) {
  return product_choices(target, prepare(target, g).product);
}

std::size_t gemm_workspace(const Target& target, const GemmProblem& g, const std::optional<GemmChoice>& choice) {
  const Prepared r = prepare(target, g);
  return r.used + product_workspace(r.product, chosen(target, r.product, choice));
}

std::vector<Launch> plan_gemm(const Target& target, const GemmProblem& g, const std::optional<GemmChoice>& choice) {
  Prepared r = prepare(target, g);
  plan_product(target, r.product, chosen(target, r.product, choice), g.workspace + r.used, r.copies);
  return r.copies;
}

}  // namespace infernode::cuda
