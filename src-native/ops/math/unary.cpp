// Mathematical functions of one tensor: Abs, Neg, Sign, rounding, roots, exponentials, trigonometry, IsNaN, IsInf.

#include <algorithm>
#include <cmath>

#include "kernel/op_registrar.h"
#include "ops/common/arithmetic.h"
#include "ops/common/elementwise.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::UnaryOp;
using tensor::Tensor;
using tensor::TypeTag;

constexpr auto kSign = [](auto x) { return static_cast<decltype(x)>(x > 0 ? 1 : x < 0 ? -1 : x); };  // NaN and -0 stay
constexpr auto kAbs = [](auto x) {
  using T = decltype(x);
  if constexpr (std::is_unsigned_v<T>)
    return x;
  else if constexpr (std::is_integral_v<T>)
    return x < 0 ? wrap_multiply<T>(x, T(-1)) : x;
  else
    return std::fabs(x);
};
constexpr auto kNeg = [](auto x) {
  using T = decltype(x);
  if constexpr (std::is_integral_v<T>)
    return wrap_multiply<T>(x, static_cast<T>(-1));
  else
    return -x;
};

/// A function with a float32 microkernel; F for double.
template <UnaryOp Op, auto F>
class TableUnary final : public Kernel {
 public:
  explicit TableUnary(KernelInfo& info) : loops_(info.kernels()), name_(info.node().op_type) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const auto loop = loops_.elementwise[Op];
    map_floats(
        ctx, loops_, in, ctx.output(0, in.shape()), 1.0, name_.c_str(),
        [loop](const float* x, float* y, std::size_t n) { loop(x, y, n, 0.0f, 0.0f); }, F);
  }

 private:
  FloatLoops loops_;
  std::string name_;
};

/// A function without one: F serves float and double.
template <auto F>
class ScalarUnary final : public Kernel {
 public:
  explicit ScalarUnary(KernelInfo& info) : loops_(info.kernels()), name_(info.node().op_type) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    map_floats(
        ctx, loops_, in, ctx.output(0, in.shape()), 10.0, name_.c_str(),
        [](const float* x, float* y, std::size_t n) {
          for (std::size_t i = 0; i < n; ++i) y[i] = F(x[i]);
        },
        F);
  }

 private:
  FloatLoops loops_;
  std::string name_;
};

/// A function of integers too.
template <UnaryOp Op, auto F>
class NumericUnary final : public Kernel {
 public:
  explicit NumericUnary(KernelInfo& info) : loops_(info.kernels()), name_(info.node().op_type) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    if (tensor::is_floating(in.dtype())) {
      const auto loop = loops_.elementwise[Op];
      return map_floats(
          ctx, loops_, in, out, 0.2, name_.c_str(),
          [loop](const float* x, float* y, std::size_t n) { loop(x, y, n, 0.0f, 0.0f); }, F);
    }
    tensor::dispatch_ints(in.dtype(), name_.c_str(),
                          [&]<class T>(TypeTag<T>) { map_elements<T, T>(ctx, in, out, 0.3, F); });
  }

 private:
  FloatLoops loops_;
  std::string name_;
};

constexpr auto kErfOfAny = [](auto x) {
  using T = decltype(x);
  if constexpr (std::is_integral_v<T>)
    return convert<T>(std::erf(static_cast<double>(x)));
  else
    return std::erf(x);
};

/// Calls f(TypeTag) for the types that IsNaN and IsInf know.
template <class F>
void dispatch_with_float8(tensor::DType type, const char* what, F&& f) {
  tensor::dispatch<float, double, Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>(
      type, what, static_cast<F&&>(f));
}

template <class T>
auto widened(T x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return static_cast<float>(x);
}

class IsNaN final : public Kernel {
 public:
  explicit IsNaN(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, tensor::DType::Bool, in.shape());
    dispatch_with_float8(in.dtype(), "IsNaN", [&]<class T>(TypeTag<T>) {
      map_elements<T, bool>(ctx, in, out, 0.5, [](T x) { return std::isnan(widened(x)); });
    });
  }
};

class IsInf final : public Kernel {
 public:
  explicit IsInf(KernelInfo& info)
      : negative_(info.attributes().get_int("detect_negative", 1) != 0),
        positive_(info.attributes().get_int("detect_positive", 1) != 0) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, tensor::DType::Bool, in.shape());
    dispatch_with_float8(in.dtype(), "IsInf", [&]<class T>(TypeTag<T>) {
      map_elements<T, bool>(ctx, in, out, 0.5, [negative = negative_, positive = positive_](T v) {
        const auto x = widened(v);
        return std::isinf(x) && (x < 0 ? negative : positive);
      });
    });
  }

 private:
  bool negative_, positive_;
};

void infer_bool(kernel::InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::Bool);
  if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

void infer_neg(kernel::InferContext& ctx) {
  kernel::infer_same_as_first(ctx);
  auto contents = ctx.input_contents(0);
  if (!contents || std::ranges::all_of(*contents, &graph::Dim::known)) return;
  for (graph::Dim& element : *contents) element = graph::Dim(0) - element;
  ctx.set_output_contents(0, std::move(*contents));
}

std::optional<kernel::FusedActivation> as_tanh(const kernel::NodeConstants&) { return kernel::FusedActivation{"Tanh"}; }

template <class K>
kernel::OpBuilder& describe_old(kernel::OpBuilder&& op) {
  return op.version(1, "X:T -> Y:T; T = floats")
      .version(6, "X:T -> Y:T; T = floats")
      .version(13, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<K>()
      .in_place(0, 0)
      .elementwise();
}

template <class K>
kernel::OpBuilder& describe_since(kernel::OpBuilder&& op, std::int64_t first) {
  return op.version(first, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<K>()
      .in_place(0, 0)
      .elementwise();
}

}  // namespace

void register_unary(kernel::OpRegistrar& r) {
  r.op("Abs")
      .version(1, "X:T -> Y:T; T = floats")
      .version(6, "X:T -> Y:T; T = numeric")
      .version(13, "X:T -> Y:T; T = numeric_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<NumericUnary<UnaryOp::kAbs, kAbs>>()
      .in_place(0, 0)
      .elementwise();
  r.op("Neg")
      .version(1, "X:T -> Y:T; T = floats")
      .version(6, "X:T -> Y:T; T = floats|sints")
      .version(13, "X:T -> Y:T; T = floats_bf16|sints")
      .infer(infer_neg)
      .kernel<NumericUnary<UnaryOp::kNeg, kNeg>>()
      .in_place(0, 0)
      .elementwise();
  r.op("Sign")
      .version(9, "X:T -> Y:T; T = numeric")
      .version(13, "X:T -> Y:T; T = numeric_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<NumericUnary<UnaryOp::kSign, kSign>>()
      .in_place(0, 0)
      .elementwise();
  r.op("Erf")
      .version(9, "X:T -> Y:T; T = numeric")
      .version(13, "X:T -> Y:T; T = floats_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<NumericUnary<UnaryOp::kErf, kErfOfAny>>()
      .in_place(0, 0)
      .elementwise();

  describe_old<TableUnary<UnaryOp::kCeil, [](double x) { return std::ceil(x); }>>(r.op("Ceil"));
  describe_old<TableUnary<UnaryOp::kFloor, [](double x) { return std::floor(x); }>>(r.op("Floor"));
  describe_old<TableUnary<UnaryOp::kSqrt, [](double x) { return std::sqrt(x); }>>(r.op("Sqrt"));
  describe_old<TableUnary<UnaryOp::kReciprocal, [](double x) { return 1 / x; }>>(r.op("Reciprocal"));
  describe_old<TableUnary<UnaryOp::kExp, [](double x) { return std::exp(x); }>>(r.op("Exp"));
  describe_old<TableUnary<UnaryOp::kLog, [](double x) { return std::log(x); }>>(r.op("Log"));
  describe_old<TableUnary<UnaryOp::kTanh, [](double x) { return std::tanh(x); }>>(r.op("Tanh")).activation(as_tanh);

  describe_since<TableUnary<UnaryOp::kRoundEven, [](double x) { return std::nearbyint(x); }>>(r.op("Round"), 11);
  describe_since<TableUnary<UnaryOp::kSin, [](double x) { return std::sin(x); }>>(r.op("Sin"), 7);
  describe_since<TableUnary<UnaryOp::kCos, [](double x) { return std::cos(x); }>>(r.op("Cos"), 7);
  describe_since<ScalarUnary<[](auto x) { return std::tan(x); }>>(r.op("Tan"), 7);
  describe_since<ScalarUnary<[](auto x) { return std::asin(x); }>>(r.op("Asin"), 7);
  describe_since<ScalarUnary<[](auto x) { return std::acos(x); }>>(r.op("Acos"), 7);
  describe_since<ScalarUnary<[](auto x) { return std::atan(x); }>>(r.op("Atan"), 7);
  describe_since<ScalarUnary<[](auto x) { return std::sinh(x); }>>(r.op("Sinh"), 9);
  describe_since<ScalarUnary<[](auto x) { return std::cosh(x); }>>(r.op("Cosh"), 9);
  describe_since<ScalarUnary<[](auto x) { return std::asinh(x); }>>(r.op("Asinh"), 9);
  describe_since<ScalarUnary<[](auto x) { return std::acosh(x); }>>(r.op("Acosh"), 9);
  describe_since<ScalarUnary<[](auto x) { return std::atanh(x); }>>(r.op("Atanh"), 9);

  r.op("IsNaN")
      .version(9, "X:T1 -> Y:T2; T1 = floats, T2 = bool")
      .version(13, "X:T1 -> Y:T2; T1 = floats_bf16, T2 = bool")
      .version(20, "X:T1 -> Y:T2; T1 = floats_bf16|float8, T2 = bool")
      .infer(infer_bool)
      .kernel<IsNaN>()
      .elementwise();
  r.op("IsInf")
      .version(10, "X:T1 -> Y:T2; T1 = float|double, T2 = bool")
      .version(20, "X:T1 -> Y:T2; T1 = floats_bf16|float8, T2 = bool")
      .infer(infer_bool)
      .kernel<IsInf>()
      .elementwise();
}

}  // namespace infernode::ops
