// infernode.FusedAttention: Y = softmax(scale * Q * K' + mask) * V.

#include <utility>

#include "base/error.h"
#include "providers/cuda/kernels/attention.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/kernels/simple/rows.h"
#include "providers/cuda/lowering/products.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

/// An operand as [batch, heads, rows, columns], with strides in elements.
struct Operand4 {
  DevicePtr at = 0;
  DType dtype{};
  std::int64_t batch = 1, heads = 1, rows = 1, columns = 1;
  std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

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

/// A view will do where each row is contiguous and begins at a multiple of 16 bytes.
DeviceTensor rows_of(Builder& b, std::size_t i) {
  const DeviceTensor t = b.input_strided(i);
  if (t.strides.empty()) return t;
  const auto step = static_cast<std::int64_t>(16 / t.element_bytes());
  bool fits = t.at % 16 == 0 && t.strides.back() == 1;
  for (std::size_t d = 0; d + 1 < t.strides.size(); ++d) fits = fits && t.strides[d] % step == 0;
  return fits ? t : b.input(i);
}

bool can_attend(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0);
  return (rank == 3 || rank == 4) && node.input_rank(1) == rank && node.input_rank(2) == rank &&
         kProductTypes.contains(node.input_dtype(0)) && node.all_of({node.input_dtype(0)}) && !node.has_output(1) &&
         node.attributes().get_int("zero_nan", 0) == 0;
}

/// The mask with strides for [batch, heads, queries, keys]; its last dim is whole.
Operand4 mask_of(Builder& b, const Shape& scores) {
  if (!b.has_input(3)) return {};
  DeviceTensor mask = b.input(3);
  if (b.input_shape(0).rank() == 3 && mask.shape.rank() == 3) {
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
                     const Operand4& y) {
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
  scores.epilogue.alpha = b.attributes().get_float("scale", 1);
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

cuda::Heads heads_of(const Operand4& o) {
  return {.address = o.at, .at = {.row = o.row_stride, .head = o.head_stride, .batch = o.batch_stride}};
}

AttentionProblem whole_problem(Builder& b, const Operand4& q, const Operand4& k, const Operand4& v,
                               const Operand4& mask, const Operand4& y) {
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
  p.scale = b.attributes().get_float("scale", 1);
  if (mask.at != 0) {
    p.bias = heads_of(mask);
    p.bias_type = element_of(mask.dtype);
  }
  return p;
}

void check_fit(const Operand4& q, const Operand4& k, const Operand4& v) {
  if (k.heads == 0 || q.heads % k.heads != 0 || v.rows != k.rows || v.heads != k.heads || q.columns != k.columns) {
    fail(ErrorCode::ShapeMismatch, "Q, K and V do not fit together");
  }
}

void launch_attention(Builder& b, AttentionProblem problem) {
  if (const std::size_t bytes = attention_workspace(b.target(), problem); bytes > 0) {
    problem.workspace = b.scratch(bytes);
  }
  b.launch(plan_attention(b.target(), problem));
}

/// Keys and values that wait to be joined with those of earlier steps: a kernel that reads them writes them, too.
/// False, and nothing done, where there is none.
bool attend_joined(Builder& b) {
  const Deferred *wait_k = b.deferred(1), *wait_v = b.deferred(2);
  const auto flag = [&](const char* name) { return b.attributes().get_int(name, 0) != 0; };
  if (wait_k == nullptr || wait_v == nullptr || !wait_k->joins_rows || !wait_v->joins_rows || flag("k_rows_first") ||
      flag("v_rows_first")) {
    return false;
  }
  const Operand4 q = operand_of(rows_of(b, 0), flag("q_rows_first"));
  Operand4 k = operand_of(wait_k->reads[0], false), v = operand_of(wait_v->reads[0], false);
  const Operand4 new_k = operand_of(wait_k->reads[1], false), new_v = operand_of(wait_v->reads[1], false);
  if (k.rows != v.rows) return false;
  AttentionJoin join{.k = heads_of(new_k), .v = heads_of(new_v), .all_k = {}, .all_v = {}, .past = k.rows};
  join.past_given = wait_k->reads_given && wait_v->reads_given;
  k.rows += new_k.rows, v.rows += new_v.rows;
  check_fit(q, k, v);
  AttentionProblem whole = whole_problem(b, q, k, v, {}, {});
  whole.join = join;
  if (attention_choices(b.target(), whole).empty()) return false;
  const DeviceTensor all_k = b.take_deferred(1), all_v = b.take_deferred(2);
  const Operand4 mask = mask_of(b, Shape{q.batch, q.heads, q.rows, k.rows});
  whole = whole_problem(b, q, k, v, mask, operand_of(b.output(0), flag("y_rows_first")));
  join.all_k = heads_of(operand_of(all_k, false));
  join.all_v = heads_of(operand_of(all_v, false));
  whole.join = join;
  launch_attention(b, whole);
  return true;
}

void lower_attention(Builder& b) {
  if (attend_joined(b)) return;
  const auto flag = [&](const char* name) { return b.attributes().get_int(name, 0) != 0; };
  const Operand4 q = operand_of(rows_of(b, 0), flag("q_rows_first")),
                 k = operand_of(rows_of(b, 1), flag("k_rows_first")),
                 v = operand_of(rows_of(b, 2), flag("v_rows_first"));
  check_fit(q, k, v);
  const Operand4 mask = mask_of(b, Shape{q.batch, q.heads, q.rows, k.rows});
  const DeviceTensor out = b.output(0);
  if (out.numel() == 0) return;
  const Operand4 y = operand_of(out, flag("y_rows_first"));
  const AttentionProblem whole = whole_problem(b, q, k, v, mask, y);
  if (!attention_choices(b.target(), whole).empty()) return launch_attention(b, whole);
  attend_in_steps(b, q, repeat_heads(b, k, q.heads), repeat_heads(b, v, q.heads), mask, y);
}

}  // namespace

void register_attention(Lowerings& lowerings) {
  lowerings.push_back({"infernode", "FusedAttention", can_attend, lower_attention});
}

}  // namespace infernode::cuda
