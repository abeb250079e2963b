#include "providers/cuda/lowering/parts/attention.h"

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/kernels/simple/rows.h"
#include "providers/cuda/lowering/parts/attention_mask.h"

namespace infernode::cuda {

using tensor::DType;
using tensor::Shape;

Operand4 operand_of(const DeviceTensor& t, bool rows_first) {
  Operand4 o{.at = t.at, .dtype = t.dtype};
  const Shape& s = t.shape;
  const std::vector<std::int64_t> strides = strides_of(t);
  if (s.rank() == 3) {
    o.batch = s[0], o.rows = s[1], o.columns = s[2];
    o.batch_stride = strides[0], o.row_stride = strides[1];
    return o;
  }
  const std::size_t heads = rows_first ? 2 : 1, rows = rows_first ? 1 : 2;
  o.batch = s[0], o.heads = s[heads], o.rows = s[rows], o.columns = s[3];
  o.batch_stride = strides[0], o.head_stride = strides[heads], o.row_stride = strides[rows];
  return o;
}

DeviceTensor rows_of(Builder& b, std::size_t i) {
  const DeviceTensor t = b.input_strided(i);
  if (t.strides.empty()) return t;
  const auto step = static_cast<std::int64_t>(16 / t.element_bytes());
  bool fits = t.at % 16 == 0 && t.strides.back() == 1;
  for (std::size_t d = 0; d + 1 < t.strides.size(); ++d) fits = fits && t.strides[d] % step == 0;
  return fits ? t : b.input(i);
}

void check_fit(const Operand4& q, const Operand4& k, const Operand4& v) {
  if (k.heads == 0 || q.heads % k.heads != 0 || v.rows != k.rows || v.heads != k.heads || q.columns != k.columns) {
    fail(ErrorCode::ShapeMismatch, "Q, K and V do not fit together");
  }
}

Operand4 mask_of(Builder& b, std::size_t input, std::size_t query_rank, const Shape& scores) {
  if (!b.has_input(input)) return {};
  DeviceTensor mask = b.input(input);
  if (query_rank == 3 && mask.shape.rank() == 3) {
    mask.shape = Shape{mask.shape[0], 1, mask.shape[1], mask.shape[2]};
  }
  Shape strides = tensor::broadcast_strides(mask.shape, scores);
  Operand4 h{.at = mask.at, .dtype = mask.dtype};
  if (strides[3] == 0 && scores[3] > 1) {
    Shape whole = scores;
    for (std::size_t d = 0; d < 3; ++d) whole[d] = strides[d] == 0 ? 1 : scores[d];
    const Shape dense = whole.strides();
    h.at = b.scratch(tensor::byte_size(mask.dtype, whole.numel()));
    b.launch(plan_strided_copy(b.target(), {.from = mask.at,
                                            .to = h.at,
                                            .element_bytes = mask.element_bytes(),
                                            .dims = whole,
                                            .from_stride = {strides.begin(), strides.end()},
                                            .to_stride = {dense.begin(), dense.end()}}));
    strides = tensor::broadcast_strides(whole, scores);
  }
  h.batch_stride = strides[0], h.head_stride = strides[1], h.row_stride = strides[2];
  return h;
}

namespace {

Matrix matrix_of(const Operand4& h, bool columns_are_rows) {
  Matrix m{.address = h.at,
           .type = element_of(h.dtype),
           .row_stride = columns_are_rows ? 1 : h.row_stride,
           .k_stride = columns_are_rows ? h.row_stride : 1};
  m.batch_stride[0] = h.head_stride;
  m.batch_stride[1] = h.batch_stride;
  return m;
}

GemmProblem problem_of(const Operand4& q, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.batch[0] = q.heads;
  p.batch[1] = q.batch;
  return p;
}

/// Scores, their softmax and the product with V, one after the other.
void attend_in_steps(Builder& b, const Operand4& q, const Operand4& k, const Operand4& v, const Operand4& mask,
                     const Operand4& y, float scale) {
  Operand4 p{.dtype = q.dtype, .batch = q.batch, .heads = q.heads, .rows = q.rows, .columns = k.rows};
  p.row_stride = p.columns, p.head_stride = p.rows * p.columns, p.batch_stride = p.heads * p.head_stride;
  const std::int64_t count = p.batch * p.batch_stride;
  p.at = b.scratch(tensor::byte_size(p.dtype, count));

  GemmProblem scores = problem_of(q, q.rows, k.rows, q.columns);
  scores.a = matrix_of(q, false);
  scores.b = matrix_of(k, false);
  scores.b_constant = false;
  scores.precision = precision_of(b);
  scores.epilogue.out = p.at;
  scores.epilogue.out_type = element_of(p.dtype);
  scores.epilogue.out_row = p.row_stride;
  scores.epilogue.out_batch[0] = p.head_stride;
  scores.epilogue.out_batch[1] = p.batch_stride;
  scores.epilogue.alpha = scale;
  if (mask.at != 0) {
    scores.epilogue.residual = mask.at;
    scores.epilogue.residual_type = element_of(mask.dtype);
    scores.epilogue.residual_row = mask.row_stride;
    scores.epilogue.residual_batch[0] = mask.head_stride;
    scores.epilogue.residual_batch[1] = mask.batch_stride;
  }
  launch_gemm(b, scores);

  b.launch(plan_softmax(b.target(), p.dtype,
                        {.in = p.at,
                         .out = p.at,
                         .rows = count / p.columns,
                         .columns = static_cast<std::int32_t>(p.columns),
                         .inner = 1,
                         .logarithm = 0}));

  GemmProblem sums = problem_of(q, q.rows, v.columns, k.rows);
  sums.a = matrix_of(p, false);
  sums.b = matrix_of(v, true);
  sums.b_constant = false;
  sums.precision = scores.precision;
  sums.epilogue.out = y.at;
  sums.epilogue.out_type = element_of(y.dtype);
  sums.epilogue.out_row = y.row_stride;
  sums.epilogue.out_batch[0] = y.head_stride;
  sums.epilogue.out_batch[1] = y.batch_stride;
  launch_gemm(b, sums);
}

/// Keys or values whose heads serve groups of queries, one for each query head.
Operand4 repeat_heads(Builder& b, const Operand4& h, std::int64_t heads) {
  if (h.heads == heads) return h;
  const std::int64_t group = heads / h.heads;
  Operand4 all{.dtype = h.dtype, .batch = h.batch, .heads = heads, .rows = h.rows, .columns = h.columns};
  all.row_stride = h.columns, all.head_stride = h.rows * h.columns, all.batch_stride = heads * all.head_stride;
  const Shape dims{h.batch, h.heads, group, h.rows, h.columns};
  const Shape dense = dims.strides();
  all.at = b.scratch(tensor::byte_size(h.dtype, dims.numel()));
  b.launch(plan_strided_copy(b.target(), {.from = h.at,
                                          .to = all.at,
                                          .element_bytes = tensor::bit_size(h.dtype) / 8,
                                          .dims = dims,
                                          .from_stride = {h.batch_stride, h.head_stride, 0, h.row_stride, 1},
                                          .to_stride = {dense.begin(), dense.end()}}));
  return all;
}

}  // namespace

Heads heads_of(const Operand4& o) {
  return {.address = o.at, .at = {.row = o.row_stride, .head = o.head_stride, .batch = o.batch_stride}};
}

AttentionProblem attention_problem(const Operand4& q, const Operand4& k, const Operand4& v, const Operand4& mask,
                                   const Operand4& y, const Attending& how) {
  AttentionProblem p;
  p.batch = q.batch;
  p.heads = q.heads;
  p.kv_heads = k.heads;
  p.queries = q.rows;
  p.keys = k.rows;
  p.d = q.columns;
  p.dv = v.columns;
  p.type = element_of(q.dtype);
  p.q = heads_of(q);
  p.k = heads_of(k);
  p.v = heads_of(v);
  p.out = heads_of(y);
  p.scale = how.scale;
  p.causal = how.causal;
  p.causal_offset = how.causal_offset;
  p.window = how.window;
  p.lengths = how.lengths;
  if (mask.at != 0) {
    p.bias = heads_of(mask);
    p.bias_type = element_of(mask.dtype);
  }
  return p;
}

void launch_attention(Builder& b, AttentionProblem problem) {
  if (const std::size_t bytes = attention_workspace(b.target(), problem); bytes > 0) {
    problem.workspace = b.scratch(bytes);
  }
  b.launch(plan_attention(b.target(), problem));
}

void attend(Builder& b, const Operand4& q, const Operand4& k, const Operand4& v, const Operand4& mask,
            const Operand4& y, const Attending& how) {
  const AttentionProblem whole = attention_problem(q, k, v, mask, y, how);
  if (!attention_choices(b.target(), whole).empty()) return launch_attention(b, whole);
  const Operand4 keys = repeat_heads(b, k, q.heads), values = repeat_heads(b, v, q.heads);
  if (!how.causal && how.lengths == 0) return attend_in_steps(b, q, keys, values, mask, y, how.scale);
  AttentionMaskParams p = open_mask(k.rows);
  if (mask.at != 0) {
    p.added = {.at = mask.at,
               .type = number_of(mask.dtype).value(),
               .stride = {mask.batch_stride, mask.head_stride, mask.row_stride, 1}};
  }
  p.ends = how.lengths;
  p.right = how.causal ? 0 : -1;
  p.left = how.causal && how.window > 0 ? static_cast<std::int32_t>(how.window - 1) : -1;
  p.place = how.lengths != 0 ? -1 : static_cast<std::int32_t>(how.causal_offset);
  const Operand4 whole_mask = make_mask(b, p, Shape{q.batch, mask.head_stride != 0 ? q.heads : 1, q.rows, k.rows});
  attend_in_steps(b, q, keys, values, whole_mask, y, how.scale);
  clear_shut_queries(b, q, k, whole_mask, y, {});
}

}  // namespace infernode::cuda
