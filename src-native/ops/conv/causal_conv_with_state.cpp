#include <algorithm>
#include <cmath>
#include <string>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/contents.h"
#include "ops/common/mover.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// Each channel of [batch, channels, length] convolved with its own kernel over itself and what lies before: the past
/// state's width - 1 columns, or zeros. The present state is the last width - 1 columns of both together.
class CausalConvWithState final : public Kernel {
 public:
  explicit CausalConvWithState(KernelInfo& info) : kernels_(info.kernels()) {
    const std::string activation = info.attributes().get_string("activation", "none");
    silu_ = activation == "silu" || activation == "swish";
    if (!silu_ && activation != "none") {
      fail(ErrorCode::InvalidModel,
           cat("CausalConvWithState: activation is '", activation, "' instead of 'none', 'silu' or 'swish'"));
    }
  }

  void run(KernelContext& ctx) const override {
    const Tensor &in = ctx.input(0), &weight = ctx.input(1);
    if (in.rank() != 3) fail(ErrorCode::ShapeMismatch, cat("CausalConvWithState: input is ", in.to_string()));
    const std::int64_t batch = in.dim(0), channels = in.dim(1), length = in.dim(2);
    if (weight.rank() != 3 || weight.dim(0) != channels || weight.dim(1) != 1 || weight.dim(2) < 1)
      unfit(weight, "weight", in);
    const std::int64_t width = weight.dim(2);
    const Tensor *bias = ctx.optional_input(2), *past = ctx.optional_input(3);
    if (bias != nullptr && bias->shape() != Shape{channels}) unfit(*bias, "bias", in);
    const Shape state{batch, channels, width - 1};
    if (past != nullptr && past->shape() != state) unfit(*past, "past_state", in);

    const Tensor y = ctx.output(0, in.dtype(), in.shape());
    const Tensor present = ctx.wants_output(1) ? ctx.output(1, in.dtype(), state) : Tensor();
    const RealInput<float> x(ctx, kernels_, in), w(ctx, kernels_, weight), b(ctx, kernels_, bias),
        before(ctx, kernels_, past);
    const RealOutput<float> out(ctx, kernels_, y), after(ctx, kernels_, present);
    const auto n = static_cast<std::size_t>(length), k = static_cast<std::size_t>(width);
    ctx.parallel_for(static_cast<std::size_t>(batch * channels),
                     static_cast<double>(n * k) + (silu_ ? 10.0 * static_cast<double>(n) : 0),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       const kernel::Scratch<float> line(ctx.run(), checked_add(n, k - 1));
                       Mover mover(ctx.run());
                       kernel::Watch watch(ctx.run());
                       const auto tail = static_cast<std::int64_t>(k - 1);
                       for (std::size_t row = begin; row < end; ++row) {
                         const std::size_t channel = row % static_cast<std::size_t>(channels);
                         float* const fresh = before.data() != nullptr
                                                  ? mover.copy(before.data() + row * (k - 1), tail, line.data())
                                                  : mover.fill(line.data(), tail, 0.0f);
                         mover.copy(x.data() + row * n, length, fresh);
                         float* to = out.data() + row * n;
                         const double cost = static_cast<double>(k) + (silu_ ? 10.0 : 0.0);
                         in_pieces(watch, n, cost, [&](std::size_t first, std::size_t last) {
                           std::fill(to + first, to + last, b.data() != nullptr ? b.data()[channel] : 0.0f);
                           for (std::size_t tap = 0; tap < k; ++tap) {
                             const float factor = w.data()[channel * k + tap];
                             for (std::size_t i = first; i < last; ++i) to[i] += factor * line[i + tap];
                           }
                           if (silu_) activate(in.dtype(), to + first, last - first);
                         });
                         if (after.data() != nullptr) mover.copy(line.data() + n, tail, after.data() + row * (k - 1));
                       }
                     });
    out.store();
    after.store();
  }

 private:
  [[noreturn]] static void unfit(const Tensor& t, const char* what, const Tensor& input) {
    fail(ErrorCode::ShapeMismatch,
         cat("CausalConvWithState: ", what, " ", t.to_string(), " does not fit input ", input.to_string()));
  }

  /// The convolution's result has the tensor's type before it is activated.
  static void activate(DType type, float* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      if (type == DType::Float16) x[i] = static_cast<float>(Float16(x[i]));
      if (type == DType::BFloat16) x[i] = static_cast<float>(BFloat16(x[i]));
      x[i] = x[i] / (1 + std::exp(-x[i]));
    }
  }

  const microkernels::KernelSet& kernels_;
  bool silu_ = false;
};

void infer_causal_conv(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  if (ctx.has_output(1)) ctx.set_output_dtype(1, ctx.input_dtype(0));
  const graph::SymShape *in = ctx.input_shape(0), *weight = ctx.input_shape(1);
  if (in == nullptr) return;
  if (in->size() != 3) fail(ErrorCode::ShapeMismatch, "CausalConvWithState: the input must have rank 3");
  ctx.set_output_shape(0, *in);
  if (!ctx.has_output(1)) return;
  Dim columns = weight != nullptr && weight->size() == 3 ? (*weight)[2] - Dim(1) : Dim::unknown();
  const graph::SymShape* past = ctx.input_shape(3);  // of the same shape
  if (!is_told(columns) && past != nullptr && past->size() == 3) columns = (*past)[2];
  ctx.set_output_shape(1, graph::SymShape{(*in)[0], (*in)[1], columns});
}

}  // namespace

void register_causal_conv_with_state(kernel::OpRegistrar& r) {
  r.op("CausalConvWithState")
      .version(27, "input:T, weight:T, bias:T?, past_state:T? -> output:T, present_state:T; T = bfloat16|float16|float")
      .infer(infer_causal_conv)
      .kernel<CausalConvWithState>();
}

}  // namespace infernode::ops
