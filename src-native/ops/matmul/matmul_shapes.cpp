#include <algorithm>

#include "base/error.h"
#include "kernel/watch.h"
#include "ops/matmul/matmul_shapes.h"

namespace infernode::ops {

using tensor::Shape;

kernel::CountedVector<std::int64_t> broadcast_offsets(const kernel::RunContext& run, const Shape& from, const Shape& to,
                                                      std::int64_t scale) {
  const Shape strides = tensor::broadcast_strides(from, to);
  const auto count = static_cast<std::size_t>(to.numel());
  kernel::CountedVector<std::int64_t> offsets(run);
  offsets.reserve(count);
  kernel::Watch watch(run);
  Shape at;  // of the next element
  at.resize(to.rank(), 0);
  std::int64_t offset = 0;
  each_in_pieces(watch, count, 3.0, [&](std::size_t) {
    offsets.push_back(offset * scale);
    for (std::size_t axis = to.rank(); axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < to[axis]) break;
      offset -= at[axis] * strides[axis];
      at[axis] = 0;
    }
  });
  return offsets;
}

MatMulGeometry plan_matmul(const kernel::RunContext& run, const Shape& a, const Shape& b, const char* what,
                           bool merge) {
  if (a.rank() == 0 || b.rank() == 0)
    fail(ErrorCode::ShapeMismatch, cat(what, " takes no scalars: ", a.to_string(), " x ", b.to_string()));
  MatMulGeometry g(run);
  const bool a_row = a.rank() == 1, b_column = b.rank() == 1;
  const std::int64_t k = a.back(), b_k = b_column ? b[0] : b[b.rank() - 2];
  if (k != b_k) {
    fail(ErrorCode::ShapeMismatch, cat(what, " dimension mismatch: ", a.to_string(), " x ", b.to_string()),
         {.expected = cat("inner dimension ", k), .actual = cat(b_k)});
  }
  g.k = static_cast<std::size_t>(k);
  g.m = a_row ? 1 : static_cast<std::size_t>(a[a.rank() - 2]);
  g.n = b_column ? 1 : static_cast<std::size_t>(b.back());
  const Shape a_batch(a.dims().first(a.rank() - std::min<std::size_t>(a.rank(), 2)));
  const Shape b_batch(b.dims().first(b.rank() - std::min<std::size_t>(b.rank(), 2)));
  const Shape batch = tensor::broadcast(a_batch, b_batch);
  g.out = batch;
  if (!a_row) g.out.push_back(static_cast<std::int64_t>(g.m));
  if (!b_column) g.out.push_back(static_cast<std::int64_t>(g.n));
  const bool b_shared = merge && b_batch.numel() == 1 && a_batch.numel() == batch.numel();
  if (b_shared && g.out.numel() > 0) {
    g.m *= static_cast<std::size_t>(batch.numel());
    return g;
  }
  g.count = g.out.numel() == 0 ? 0 : static_cast<std::size_t>(batch.numel());
  if (g.count > 0) {
    g.a_offsets = broadcast_offsets(run, a_batch, batch, static_cast<std::int64_t>(g.m * g.k));
    g.b_offsets = broadcast_offsets(run, b_batch, batch, static_cast<std::int64_t>(g.k * g.n));
  }
  return g;
}

graph::SymShape matmul_shape(const graph::SymShape& left, const graph::SymShape& right, std::string_view what) {
  if (left.empty() || right.empty()) {
    fail(ErrorCode::ShapeMismatch,
         cat(what, " takes no scalars: ", graph::to_string(left), " x ", graph::to_string(right)));
  }
  const graph::Dim& k = left.back();
  const graph::Dim& other = right.size() == 1 ? right[0] : right[right.size() - 2];
  if (k.known() && other.known() && k.value() != other.value()) {
    fail(ErrorCode::ShapeMismatch,
         cat(what, " dimension mismatch: ", graph::to_string(left), " x ", graph::to_string(right)));
  }
  const graph::SymShape left_batch(left.begin(), left.end() - (left.size() == 1 ? 1 : 2));
  const graph::SymShape right_batch(right.begin(), right.end() - (right.size() == 1 ? 1 : 2));
  const graph::SymShape* batches[] = {&left_batch, &right_batch};
  graph::SymShape out = kernel::broadcast_shapes(batches);
  if (left.size() > 1) out.push_back(left[left.size() - 2]);
  if (right.size() > 1) out.push_back(right.back());
  return out;
}

void infer_matmul_shape(kernel::InferContext& ctx, std::size_t a, std::size_t b) {
  const graph::SymShape* left = ctx.input_shape(a);
  const graph::SymShape* right = ctx.input_shape(b);
  if (left == nullptr || right == nullptr) return;
  ctx.set_output_shape(0, matmul_shape(*left, *right, ctx.node().op_type));
}

}  // namespace infernode::ops
