#include "kernel/op_registrar.h"
#include "ops/common/binary.h"
#include "ops/quant/qlinear.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BinaryOp;
using tensor::Tensor;

/// c = quantize(dequantize(a) op dequantize(b)) with numpy's broadcasting.
template <BinaryOp Op>
class QLinearBinary final : public kernel::Kernel {
 public:
  explicit QLinearBinary(KernelInfo& info) : loops_(info.kernels()) {}

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(3);
    const Tensor c = ctx.output(0, tensor::broadcast(a.shape(), b.shape()));
    const Quantized8 qa(ctx.input(1), ctx.optional_input(2), a.dtype()),
        qb(ctx.input(4), ctx.optional_input(5), b.dtype()), qc(ctx.input(6), ctx.optional_input(7), c.dtype());
    const BroadcastPlan plan(c.shape(), {&a.shape(), &b.shape()});
    const std::uint8_t *x = bytes_of(a), *y = bytes_of(b);
    std::uint8_t* z = mutable_bytes_of(c);
    plan.for_each_run(ctx.run(), 0.5, [&](std::size_t o, const std::size_t* in, std::size_t n) {
      float left[kHalfPiece], right[kHalfPiece];
      for (std::size_t i = 0; i < n; i += kHalfPiece) {
        const std::size_t m = std::min(kHalfPiece, n - i);
        const auto load = [&](const Quantized8& q, const std::uint8_t* from, bool still, float* to) {
          q.load(loops_.convert, from + (still ? 0 : i), to, still ? 1 : m);
        };
        load(qa, x + in[0], plan.still(0), left);
        load(qb, y + in[1], plan.still(1), right);
        float* const result = plan.still(0) ? right : left;
        float_run(loops_.elementwise, Op, left, right, result, m, plan.still(0), plan.still(1));
        qc.store(loops_.convert, result, z + o + i, m);
      }
    });
  }

 private:
  FloatLoops loops_;
};

void infer_qlinear_binary(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape* const shapes[] = {ctx.input_shape(0), ctx.input_shape(3)};
  if (shapes[0] != nullptr && shapes[1] != nullptr) ctx.set_output_shape(0, kernel::broadcast_shapes(shapes));
}

}  // namespace

void register_qlinear_binary(kernel::OpRegistrar& r) {
  constexpr const char* kSignature =
      "A:T, A_scale:float, A_zero_point:T?, B:T, B_scale:float, B_zero_point:T?, C_scale:float, C_zero_point:T? -> "
      "C:T; T = int8|uint8";
  r.op("QLinearAdd", "com.microsoft")
      .version(1, kSignature)
      .infer(infer_qlinear_binary)
      .kernel<QLinearBinary<BinaryOp::kAdd>>();
  r.op("QLinearMul", "com.microsoft")
      .version(1, kSignature)
      .infer(infer_qlinear_binary)
      .kernel<QLinearBinary<BinaryOp::kMul>>();
}

}  // namespace infernode::ops
