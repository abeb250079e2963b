#include <limits>

#include "kernel/op_registrar.h"
#include "ops/common/arithmetic.h"
#include "ops/common/elementwise.h"

namespace infernode::ops {
namespace {

using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;
using tensor::TypeTag;

/// min(max(x, low), high), so high wins where low is above it; NaN stays. Bounds are attributes before version 11,
/// inputs of one element since.
class Clip final : public Kernel {
 public:
  explicit Clip(KernelInfo& info) : loops_(info.kernels()), by_input_(info.since_version() >= 11) {
    if (by_input_) return;
    low_ = info.attributes().get_float("min", low_);
    high_ = info.attributes().get_float("max", high_);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    const Tensor* low = by_input_ ? ctx.optional_input(1) : nullptr;
    const Tensor* high = by_input_ ? ctx.optional_input(2) : nullptr;
    for (const Tensor* bound : {low, high}) {
      if (bound && bound->numel() != 1)
        fail(ErrorCode::ShapeMismatch, cat("Clip: a bound must be one number, got ", bound->shape().to_string()));
    }
    tensor::dispatch_numeric(in.dtype(), "Clip", [&]<class T>(TypeTag<T>) {
      using C = tensor::ComputeTypeOf<T>;
      using Limits = std::numeric_limits<C>;
      const C below = std::is_integral_v<C> ? Limits::lowest() : by_input_ ? -Limits::infinity() : static_cast<C>(low_);
      const C above = std::is_integral_v<C> ? Limits::max() : by_input_ ? Limits::infinity() : static_cast<C>(high_);
      const C least = low ? static_cast<C>(*low->data<T>()) : below,
              most = high ? static_cast<C>(*high->data<T>()) : above;
      if constexpr (std::is_same_v<C, float>) {
        const auto loop = loops_.elementwise[microkernels::UnaryOp::kClip];
        map_floats(
            ctx, loops_, in, out, 0.2, "Clip",
            [=](const float* x, float* y, std::size_t n) { loop(x, y, n, least, most); }, [](double x) { return x; });
      } else {
        map_elements<T, T>(ctx, in, out, 0.4, [=](T x) {
          const T raised = x < least ? least : x;
          return raised > most ? most : raised;
        });
      }
    });
  }

 private:
  FloatLoops loops_;
  bool by_input_;
  float low_ = -std::numeric_limits<float>::infinity(), high_ = std::numeric_limits<float>::infinity();
};

/// An attribute up to version 6, an input since; an absent one is the type's own limit. nullopt where it is no
/// constant.
std::optional<float> bound(const kernel::NodeConstants& node, const char* name, std::size_t input, float absent) {
  return node.has_input(input) ? node.scalar(input) : node.attributes().get_float(name, absent);
}

std::optional<kernel::Bounds> bounds_of_clip(const kernel::NodeConstants& node) {
  const kernel::Bounds none;
  const auto low = bound(node, "min", 1, none.low), high = bound(node, "max", 2, none.high);
  return low && high ? std::optional(kernel::Bounds{*low, *high}) : std::nullopt;
}

std::optional<kernel::FusedActivation> as_clip(const kernel::NodeConstants& node) {
  const auto bounds = bounds_of_clip(node);
  return bounds ? std::optional(kernel::FusedActivation{"Clip", {bounds->low, bounds->high}}) : std::nullopt;
}

}  // namespace

void register_clip(kernel::OpRegistrar& r) {
  r.op("Clip")
      .version(1, "input:T -> output:T; T = floats")
      .version(6, "input:T -> output:T; T = floats")
      .version(11, "input:T, min:T?, max:T? -> output:T; T = floats")
      .version(12, "input:T, min:T?, max:T? -> output:T; T = numeric")
      .version(13, "input:T, min:T?, max:T? -> output:T; T = numeric_bf16")
      .infer(kernel::infer_same_as_first)
      .kernel<Clip>()
      .in_place(0, 0)
      .elementwise()
      .bounds(bounds_of_clip)
      .activation(as_clip);
}

}  // namespace infernode::ops
