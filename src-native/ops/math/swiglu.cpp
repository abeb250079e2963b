#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"

namespace infernode::ops {
namespace {

void infer_swiglu(kernel::InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape *a = ctx.input_shape(0), *b = ctx.input_shape(1);
  if (a == nullptr) return;
  if (b == nullptr) return ctx.set_output_shape(0, *a);
  if (a->size() != b->size()) fail(ErrorCode::ShapeMismatch, "SwiGLU takes two tensors of the same shape");
  graph::SymShape shape;
  for (std::size_t axis = 0; axis < a->size(); ++axis) shape.push_back(merge_dims((*a)[axis], (*b)[axis], "SwiGLU"));
  ctx.set_output_shape(0, std::move(shape));
}

}  // namespace

void register_swiglu(kernel::OpRegistrar& r) {
  r.op("SwiGLU")
      .version(28, "A:T, B:T -> Y:T; T = floats_bf16")
      .infer(infer_swiglu)
      .function(
          "SwiGLU <alpha: float = 1.0> (A, B) => (Y) {"
          "  gate = Swish <alpha: float = @alpha> (A)"
          "  Y = Mul(gate, B)"
          "}");
}

}  // namespace infernode::ops
