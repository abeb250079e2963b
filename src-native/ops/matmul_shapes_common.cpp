#include "ops/matmul_shapes.h"

#include "base/error.h"

namespace infernode::ops {

void infer_matmul_shape(kernel::InferContext& ctx, std::size_t a, std::size_t b) {
  const graph::SymShape* left = ctx.input_shape(a);
  const graph::SymShape* right = ctx.input_shape(b);
  if (left == nullptr || right == nullptr) return;
  if (left->empty() || right->empty()) {
    fail(ErrorCode::ShapeMismatch,
         cat(ctx.node().op_type, " takes no scalars: ", graph::to_string(*left), " x ", graph::to_string(*right)));
  }
  const graph::Dim& k = left->back();
  const graph::Dim& other = right->size() == 1 ? (*right)[0] : (*right)[right->size() - 2];
  if (k.known() && other.known() && k.value() != other.value()) {
    fail(ErrorCode::ShapeMismatch,
         cat(ctx.node().op_type, " dimension mismatch: ", graph::to_string(*left), " x ", graph::to_string(*right)));
  }
  const graph::SymShape left_batch(left->begin(), left->end() - (left->size() == 1 ? 1 : 2));
  const graph::SymShape right_batch(right->begin(), right->end() - (right->size() == 1 ? 1 : 2));
  const graph::SymShape* batches[] = {&left_batch, &right_batch};
  graph::SymShape out = kernel::broadcast_shapes(batches);
  if (left->size() > 1) out.push_back((*left)[left->size() - 2]);
  if (right->size() > 1) out.push_back(right->back());
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace infernode::ops
