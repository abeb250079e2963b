// Operators of com.microsoft that onnxruntime's optimizer makes for GPUs: a sum, then what follows it. Functions of the
// operators that they replaced.

#include "base/error.h"
#include "graph/operator_names.h"
#include "kernel/op_registrar.h"

namespace infernode::ops {
namespace {

/// The gate is the second half of each row.
void infer_split_gelu(kernel::InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  graph::SymShape shape = *x;
  if (shape.empty() || (shape.back().known() && shape.back().value() % 2 != 0))
    fail(ErrorCode::ShapeMismatch, cat("BiasSplitGelu halves its last dim, got ", graph::to_string(shape)));
  shape.back() = floor_div(shape.back(), graph::Dim(2));
  ctx.set_output_shape(0, std::move(shape));
}

}  // namespace

void register_biased(kernel::OpRegistrar& r) {
  using graph::kMicrosoft;
  r.op("BiasSoftmax", kMicrosoft)
      .version(1, "data:T, bias:T -> output:T; T = floats")
      .infer(kernel::infer_same_as_first)
      .function(
          "<opset_import: [\"\" : 12]> BiasSoftmax <axis: int = 1, is_inner_broadcast: int = 0> (data, bias) => "
          "(output) {"
          "  sum = Add(data, bias)"
          "  output = Softmax <axis: int = @axis> (sum)"
          "}");
  r.op("BiasAdd", kMicrosoft)
      .version(1, "X:T, bias:T, skip:T -> Y:T; T = float|float16")
      .infer(kernel::infer_same_as_first)
      .function(
          "<opset_import: [\"\" : 14]> BiasAdd (X, bias, skip) => (Y) {"
          "  sum = Add(X, bias)"
          "  Y = Add(sum, skip)"
          "}");
  r.op("BiasSplitGelu", kMicrosoft)
      .version(1, "X:T, bias:T -> Y:T; T = float|float16")
      .infer(infer_split_gelu)
      .function(
          "<opset_import: [\"\" : 20]> BiasSplitGelu (X, bias) => (Y) {"
          "  sum = Add(X, bias)"
          "  half, gate = Split <axis = -1, num_outputs = 2> (sum)"
          "  open = Gelu(gate)"
          "  Y = Mul(half, open)"
          "}");
}

}  // namespace infernode::ops
