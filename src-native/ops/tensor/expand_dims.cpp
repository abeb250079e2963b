#include "base/error.h"
#include "kernel/op_registrar.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// com.microsoft's ExpandDims: a dim of 1 before axis `axis` (an input) of the result.
class ExpandDims final : public kernel::Kernel {
 public:
  explicit ExpandDims(KernelInfo&) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const std::size_t axis = tensor::normalize_axis(tensor::to_int64_scalar(ctx.input(1)), x.rank() + 1);
    Shape shape;
    for (std::size_t i = 0; i <= x.rank(); ++i) shape.push_back(i == axis ? 1 : x.dim(i < axis ? i : i - 1));
    ctx.forward(0, 0, shape);
  }
};

void infer_expand_dims(InferContext& ctx) {
  const graph::SymShape* x = ctx.input_shape(0);
  const auto axis = ctx.input_contents(1);
  if (x == nullptr || !axis || axis->size() != 1 || !axis->front().known()) return;
  graph::SymShape out = *x;
  const std::size_t at = tensor::normalize_axis(axis->front().value(), x->size() + 1);
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), 1);
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_expand_dims(kernel::OpRegistrar& r) {
  r.op("ExpandDims", "com.microsoft")
      .version(1, "X:T, axis:int32 -> Y:T; T = all_ir4")
      .infer(infer_expand_dims)
      .kernel<ExpandDims>()
      .alias(0, 0);
}

}  // namespace infernode::ops
