// Gelu of the standard, and com.microsoft's Gelu, FastGelu, BiasGelu and QuickGelu.

#include <cmath>

#include "graph/operator_names.h"
#include "kernel/op_registrar.h"
#include "ops/common/binary.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BinaryOp;
using microkernels::UnaryOp;
using tensor::Tensor;
using tensor::TypeTag;

enum class Form { kExact, kTanh, kQuick };

double gelu(Form form, double x, double alpha) {
  switch (form) {
    case Form::kExact:
      return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
    case Form::kTanh:
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    default:
      return x / (1 + std::exp(-alpha * x));
  }
}

/// gelu(x + bias): the bias, where there is one, runs along the last axis.
class Gelu final : public Kernel {
 public:
  explicit Gelu(KernelInfo& info) : loops_(info.kernels()) {
    const std::string& op = info.node().op_type;
    if (op == "FastGelu") form_ = Form::kTanh;
    if (op == "QuickGelu") {
      form_ = Form::kQuick;
      alpha_ = info.attributes().get_float("alpha", 1.702f);
    }
    const std::string approximate = info.attributes().get_string("approximate", "none");
    if (approximate == "tanh")
      form_ = Form::kTanh;
    else if (approximate != "none")
      fail(ErrorCode::InvalidModel, cat("Gelu: approximate must be none or tanh, not '", approximate, "'"));
    loop_ = loops_.elementwise[form_ == Form::kExact  ? UnaryOp::kGelu
                               : form_ == Form::kTanh ? UnaryOp::kGeluTanh
                                                      : UnaryOp::kQuickGelu];
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor* bias = ctx.optional_input(1);
    const Tensor out = ctx.output(0, in.shape());
    if (bias) return run_biased(ctx, in, *bias, out);
    map_floats(
        ctx, loops_, in, out, 2.0, "Gelu",
        [this](const float* x, float* y, std::size_t n) { loop_(x, y, n, alpha_, 0.0f); },
        [this](double x) { return gelu(form_, x, alpha_); });
  }

 private:
  void run_biased(KernelContext& ctx, const Tensor& in, const Tensor& bias, const Tensor& out) const {
    if (bias.rank() != 1 || in.rank() == 0 || bias.dim(0) != in.dim(in.rank() - 1))
      fail(ErrorCode::ShapeMismatch,
           cat("a bias of shape ", bias.shape().to_string(), " does not fit ", in.shape().to_string()));
    const BroadcastPlan plan(in.shape(), {&in.shape(), &bias.shape()});
    const auto add = static_cast<std::size_t>(BinaryOp::kAdd);
    tensor::dispatch_floats(in.dtype(), "BiasGelu", [&]<class T>(TypeTag<T>) {
      const T *x = in.data<T>(), *b = bias.data<T>();
      T* y = out.mutable_data<T>();
      plan.for_each_run(ctx.run(), 2.5, [&](std::size_t o, const std::size_t* at, std::size_t n) {
        if constexpr (std::is_same_v<T, float>) {
          float_run(loops_.elementwise, BinaryOp::kAdd, x + at[0], b + at[1], y + o, n, plan.still(0), plan.still(1));
          loop_(y + o, y + o, n, alpha_, 0.0f);
        } else if constexpr (std::is_same_v<T, double>) {
          for (std::size_t i = 0; i < n; ++i)
            y[o + i] = gelu(form_, x[at[0] + i] + b[at[1] + (plan.still(1) ? 0 : i)], alpha_);
        } else {
          float p[kHalfPiece], q[kHalfPiece];
          for (std::size_t i = 0; i < n; i += kHalfPiece) {
            const std::size_t m = std::min(kHalfPiece, n - i);
            loops_.load(x + at[0] + i, p, m);
            loops_.load(b + at[1] + (plan.still(1) ? 0 : i), q, plan.still(1) ? 1 : m);
            (plan.still(1) ? loops_.elementwise.vector_scalar : loops_.elementwise.vector_vector)[add](p, q, p, m);
            loop_(p, p, m, alpha_, 0.0f);
            loops_.store(p, y + o + i, m);
          }
        }
      });
    });
  }

  FloatLoops loops_;
  microkernels::UnaryLoop loop_ = nullptr;
  Form form_ = Form::kExact;
  float alpha_ = 1.0f;
};

using kernel::FusedActivation;
using kernel::NodeConstants;

std::optional<FusedActivation> as_gelu(const NodeConstants& node) {
  const bool tanh = node.attributes().get_string("approximate", "none") == "tanh";
  return FusedActivation{tanh ? "GeluTanh" : "Gelu"};
}
std::optional<FusedActivation> as_quick_gelu(const NodeConstants& node) {
  if (node.attributes().get_float("alpha", 1.702f) != 1.0f) return std::nullopt;
  return FusedActivation{"Silu"};
}
std::optional<FusedActivation> as_fast_gelu(const NodeConstants& node) {
  if (node.has_input(1)) return std::nullopt;
  return FusedActivation{"GeluTanh"};
}

}  // namespace

void register_gelu(kernel::OpRegistrar& r) {
  using graph::kMicrosoft;
  r.op("Gelu")
      .version(20, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<Gelu>()
      .in_place(0, 0)
      .elementwise()
      .activation(as_gelu);
  r.op("Gelu", kMicrosoft)
      .version(1, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<Gelu>()
      .in_place(0, 0)
      .elementwise()
      .activation(as_gelu);
  r.op("QuickGelu", kMicrosoft)
      .version(1, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<Gelu>()
      .in_place(0, 0)
      .elementwise()
      .activation(as_quick_gelu);
  r.op("FastGelu", kMicrosoft)
      .version(1, "X:T, bias:T? -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<Gelu>()
      .in_place(0, 0)
      .activation(as_fast_gelu);
  r.op("BiasGelu", kMicrosoft)
      .version(1, "A:T, B:T -> C:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<Gelu>()
      .in_place(0, 0);
}

}  // namespace infernode::ops
