// Activation functions of the standard that take one tensor, and PRelu.

#include <cmath>

#include "kernel/op_registrar.h"
#include "ops/common/arithmetic.h"
#include "ops/common/binary.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using kernel::Bounds;
using kernel::FusedActivation;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using kernel::NodeConstants;
using microkernels::BinaryOp;
using microkernels::UnaryOp;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

/// Parameters of a loop: see UnaryOp for their meaning.
struct Parameters {
  float a = 0, b = 0;
};

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

// Each activation: its float32 loop, its parameters and its formula in double.
struct Sigmoid {
  static constexpr UnaryOp kLoop = UnaryOp::kSigmoid;
  static Parameters read(const Attributes&) { return {}; }
  static double apply(double x, Parameters) { return sigmoid(x); }
};
struct LeakyRelu {
  static constexpr UnaryOp kLoop = UnaryOp::kLeakyRelu;
  static Parameters read(const Attributes& attributes) { return {attributes.get_float("alpha", 0.01f)}; }
  static double apply(double x, Parameters p) { return x < 0 ? p.a * x : x; }
};
struct ThresholdedRelu {
  static constexpr UnaryOp kLoop = UnaryOp::kThresholdedRelu;
  static Parameters read(const Attributes& attributes) { return {attributes.get_float("alpha", 1.0f)}; }
  static double apply(double x, Parameters p) { return x > p.a ? x : 0; }
};
struct Elu {
  static constexpr UnaryOp kLoop = UnaryOp::kElu;
  static Parameters read(const Attributes& attributes) { return {attributes.get_float("alpha", 1.0f)}; }
  static double apply(double x, Parameters p) { return x < 0 ? p.a * std::expm1(x) : x; }
};
struct Celu {
  static constexpr UnaryOp kLoop = UnaryOp::kCelu;
  static Parameters read(const Attributes& attributes) { return {attributes.get_float("alpha", 1.0f)}; }
  static double apply(double x, Parameters p) { return x < 0 ? p.a * std::expm1(x / p.a) : x; }
};
struct Selu {
  static constexpr UnaryOp kLoop = UnaryOp::kSelu;
  static Parameters read(const Attributes& attributes) {
    return {attributes.get_float("alpha", 1.67326319217681884765625f),
            attributes.get_float("gamma", 1.05070102214813232421875f)};
  }
  static double apply(double x, Parameters p) { return p.b * (x > 0 ? x : p.a * std::expm1(x)); }
};
/// Version 1 has shorter constants.
struct OldSelu : Selu {
  static Parameters read(const Attributes& attributes) {
    return {attributes.get_float("alpha", 1.6732f), attributes.get_float("gamma", 1.0507f)};
  }
};
struct HardSigmoid {
  static constexpr UnaryOp kLoop = UnaryOp::kHardSigmoid;
  static Parameters read(const Attributes& attributes) {
    return {attributes.get_float("alpha", 0.2f), attributes.get_float("beta", 0.5f)};
  }
  static double apply(double x, Parameters p) {
    const double y = p.a * x + p.b;
    return y < 0 ? 0 : y > 1 ? 1 : y;
  }
};
struct HardSwish {
  static constexpr UnaryOp kLoop = UnaryOp::kHardSwish;
  static Parameters read(const Attributes&) { return {}; }
  static double apply(double x, Parameters) {
    const double gate = x / 6 + 0.5;
    return x * (gate < 0 ? 0 : gate > 1 ? 1 : gate);
  }
};
struct Softplus {
  static constexpr UnaryOp kLoop = UnaryOp::kSoftplus;
  static Parameters read(const Attributes&) { return {}; }
  static double apply(double x, Parameters) { return softplus(x); }
};
struct Softsign {
  static constexpr UnaryOp kLoop = UnaryOp::kSoftsign;
  static Parameters read(const Attributes&) { return {}; }
  static double apply(double x, Parameters) { return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::fabs(x)); }
};
struct Mish {
  static constexpr UnaryOp kLoop = UnaryOp::kMish;
  static Parameters read(const Attributes&) { return {}; }
  static double apply(double x, Parameters) { return x * std::tanh(softplus(x)); }
};
struct Swish {
  static constexpr UnaryOp kLoop = UnaryOp::kQuickGelu;
  static Parameters read(const Attributes& attributes) { return {attributes.get_float("alpha", 1.0f)}; }
  static double apply(double x, Parameters p) { return x * sigmoid(p.a * x); }
};

template <class A>
class ActivationKernel final : public Kernel {
 public:
  explicit ActivationKernel(KernelInfo& info) : loops_(info.kernels()), parameters_(A::read(info.attributes())) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const auto loop = loops_.elementwise[A::kLoop];
    map_floats(
        ctx, loops_, in, ctx.output(0, in.shape()), 1.0, "activations",
        [loop, p = parameters_](const float* x, float* y, std::size_t n) { loop(x, y, n, p.a, p.b); },
        [p = parameters_](double x) { return A::apply(x, p); });
  }

 private:
  FloatLoops loops_;
  Parameters parameters_;
};

class Relu final : public Kernel {
 public:
  explicit Relu(KernelInfo& info) : loops_(info.kernels()) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    if (tensor::is_floating(in.dtype())) {
      const auto loop = loops_.elementwise[UnaryOp::kRelu];
      return map_floats(
          ctx, loops_, in, out, 0.2, "Relu",
          [loop](const float* x, float* y, std::size_t n) { loop(x, y, n, 0.0f, 0.0f); },
          [](double x) { return x < 0 ? 0 : x; });
    }
    tensor::dispatch<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(
        in.dtype(), "Relu",
        [&]<class T>(TypeTag<T>) { map_elements<T, T>(ctx, in, out, 0.2, [](T x) { return x < 0 ? T(0) : x; }); });
  }

 private:
  FloatLoops loops_;
};

/// x + bias below -lambd, x - bias above lambd, 0 between.
class Shrink final : public Kernel {
 public:
  explicit Shrink(KernelInfo& info)
      : bias_(info.attributes().get_float("bias", 0.0f)), lambd_(info.attributes().get_float("lambd", 0.5f)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    tensor::dispatch_numeric(in.dtype(), "Shrink", [&]<class T>(TypeTag<T>) {
      map_elements<T, T>(ctx, in, out, 1.0, [bias = bias_, lambd = lambd_](T v) {
        using C = std::conditional_t<std::is_integral_v<T>, double, tensor::ComputeTypeOf<T>>;
        const auto x = static_cast<C>(v);
        return convert<T>(x < -static_cast<C>(lambd)  ? x + static_cast<C>(bias)
                          : x > static_cast<C>(lambd) ? x - static_cast<C>(bias)
                                                      : C(0));
      });
    });
  }

 private:
  float bias_, lambd_;
};

struct PReluOp {
  static constexpr BinaryOp kLoop = BinaryOp::kPrelu;
  static constexpr double kCost = 0.3;
  template <class T>
  static T apply(T x, T slope) {
    return x < 0 ? wrap_multiply(x, slope) : x;
  }
};

class PRelu final : public Kernel {
 public:
  explicit PRelu(KernelInfo& info) : loops_(info.kernels()), by_channel_(info.since_version() < 7) {}
  void run(KernelContext& ctx) const override {
    const Tensor &in = ctx.input(0), &slope = ctx.input(1);
    Shape slopes = slope.shape();
    // Up to version 6 a slope is one number, or one for each channel (axis 1).
    if (by_channel_ && slope.numel() != 1 && slope.rank() == 1 && in.rank() > 1) slopes.resize(in.rank() - 1, 1);
    if (!(tensor::broadcast(in.shape(), slopes) == in.shape()))
      fail(ErrorCode::ShapeMismatch, cat("PRelu: a slope of shape ", slope.shape().to_string(),
                                         " does not broadcast to ", in.shape().to_string()));
    const Tensor out = ctx.output(0, in.shape());
    binary_numeric<PReluOp>(ctx.run(), loops_, BroadcastPlan(in.shape(), {&in.shape(), &slopes}), in, slope, out,
                            "PRelu");
  }

 private:
  FloatLoops loops_;
  bool by_channel_;
};

std::optional<FusedActivation> as_relu(const NodeConstants&) { return FusedActivation{"Relu"}; }
std::optional<FusedActivation> as_sigmoid(const NodeConstants&) { return FusedActivation{"Sigmoid"}; }
std::optional<FusedActivation> as_hard_swish(const NodeConstants&) { return FusedActivation{"HardSwish"}; }
std::optional<FusedActivation> as_leaky_relu(const NodeConstants& node) {
  return FusedActivation{"LeakyRelu", {node.attributes().get_float("alpha", 0.01f)}};
}
std::optional<FusedActivation> as_hard_sigmoid(const NodeConstants& node) {
  return FusedActivation{"HardSigmoid",
                         {node.attributes().get_float("alpha", 0.2f), node.attributes().get_float("beta", 0.5f)}};
}

template <class A>
kernel::OpBuilder& describe_since(kernel::OpBuilder&& op, std::int64_t first) {
  return op.version(first, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<ActivationKernel<A>>()
      .in_place(0, 0)
      .elementwise();
}

template <class A>
kernel::OpBuilder& describe_old(kernel::OpBuilder&& op, std::int64_t last) {
  return op.version(1, "X:T -> Y:T; T = floats")
      .version(6, "X:T -> Y:T; T = floats")
      .version(last, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<ActivationKernel<A>>()
      .in_place(0, 0)
      .elementwise();
}

}  // namespace

void register_activations(kernel::OpRegistrar& r) {
  r.op("Relu")
      .version(1, "X:T -> Y:T; T = floats")
      .version(6, "X:T -> Y:T; T = floats")
      .version(13, "X:T -> Y:T; T = floats_bf16")
      .version(14, "X:T -> Y:T; T = floats_bf16|sints")
      .infer(kernel::infer_same_as_first)
      .kernel<Relu>()
      .in_place(0, 0)
      .elementwise()
      .bounds([](const NodeConstants&) -> std::optional<Bounds> { return Bounds{.low = 0}; })
      .activation(as_relu);
  describe_old<Sigmoid>(r.op("Sigmoid"), 13).activation(as_sigmoid).on_codes("QLinearSigmoid");
  describe_old<LeakyRelu>(r.op("LeakyRelu"), 16).activation(as_leaky_relu);
  describe_old<Elu>(r.op("Elu"), 22);
  describe_old<HardSigmoid>(r.op("HardSigmoid"), 22).activation(as_hard_sigmoid);
  r.op("Selu")
      .version(1, "X:T -> Y:T; T = floats")
      .infer(kernel::infer_same_as_first)
      .kernel<ActivationKernel<OldSelu>>()
      .in_place(0, 0)
      .elementwise();
  r.op("Selu")
      .version(6, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<ActivationKernel<Selu>>()
      .in_place(0, 0)
      .elementwise();
  r.op("Celu")
      .version(12, "X:T -> Y:T; T = float")
      .version(28, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<ActivationKernel<Celu>>()
      .in_place(0, 0)
      .elementwise();
  describe_since<ThresholdedRelu>(r.op("ThresholdedRelu"), 10);
  r.op("ThresholdedRelu")  // before it was a part of the standard
      .version(1, "X:T -> Y:T; T = floats")
      .infer(kernel::infer_same_as_first)
      .kernel<ActivationKernel<ThresholdedRelu>>()
      .in_place(0, 0)
      .elementwise();
  describe_since<HardSwish>(r.op("HardSwish"), 14).activation(as_hard_swish);
  describe_since<Softplus>(r.op("Softplus"), 1);
  describe_since<Softsign>(r.op("Softsign"), 1);
  describe_since<Mish>(r.op("Mish"), 18);
  r.op("Swish")
      .version(24, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<ActivationKernel<Swish>>()
      .in_place(0, 0)
      .elementwise();
  r.op("Shrink")
      .version(9, "X:T -> Y:T; T = numeric")
      .infer(kernel::infer_same_as_first)
      .kernel<Shrink>()
      .in_place(0, 0)
      .elementwise();
  r.op("PRelu")
      .version(1, "X:T, slope:T -> Y:T; T = floats")
      .version(6, "X:T, slope:T -> Y:T; T = floats")
      .version(7, "X:T, slope:T -> Y:T; T = floats")
      .version(9, "X:T, slope:T -> Y:T; T = floats|int32|int64|uint32|uint64")
      .version(16, "X:T, slope:T -> Y:T; T = floats_bf16|int32|int64|uint32|uint64")
      .infer(kernel::infer_same_as_first)
      .kernel<PRelu>()
      .in_place(0, 0)
      .broadcasts(7);
}

}  // namespace infernode::ops
