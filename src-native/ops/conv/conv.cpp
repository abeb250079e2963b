#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/common/activation.h"
#include "ops/common/definition.h"
#include "ops/common/reals.h"
#include "ops/conv/methods/method.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::ConvShape;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// Conv and com.microsoft's FusedConv (an activation, and input Z added before it).
class Conv final : public kernel::Kernel {
 public:
  explicit Conv(KernelInfo& info)
      : kernels_(info.kernels()),
        window_(info.attributes()),
        groups_(info.attributes().get_int("group", 1)),
        activation_(read_activation(info.attributes())) {
    if (const Tensor* const w = info.constant(1)) w_shape_ = w->shape();
    runner_ = make_conv(info);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const ConvProblem p = plan_conv(window_, groups_, x.shape(), w_shape_.rank() > 0 ? w_shape_ : ctx.input(1).shape());
    const Tensor out = ctx.output(0, p.out);
    if (out.numel() == 0) return;
    if (x.dtype() == DType::Float64) return run_double(ctx, p, x, out);
    tensor::Buffer x_hold, w_hold, b_hold, z_hold, y_hold;
    ConvOperands o{};
    o.x = as_float(ctx, x, x_hold);
    if (runner_->reads_weight()) o.w = as_float(ctx, ctx.input(1), w_hold);
    if (const Tensor* b = ctx.optional_input(2)) {
      if (b->numel() != p.out_channels) {
        fail(ErrorCode::ShapeMismatch,
             cat("Conv's bias has ", b->numel(), " elements for ", p.out_channels, " output channels"));
      }
      o.bias = as_float(ctx, *b, b_hold);
    }
    if (const Tensor* z = ctx.optional_input(3)) {
      if (z->shape() != p.out)
        fail(ErrorCode::ShapeMismatch, cat("FusedConv adds Z ", z->shape().to_string(), " to ", p.out.to_string()));
      o.residual = as_float(ctx, *z, z_hold);
    }
    o.y = float_target(ctx, out, y_hold);
    runner_->run(ctx, p, o, activation_);
    if (out.dtype() != DType::Float32) narrow(ctx, kernels_, o.y, out);
  }

 private:
  const float* as_float(KernelContext& ctx, const Tensor& t, tensor::Buffer& hold) const {
    if (t.dtype() == DType::Float32) return t.data<float>();
    hold = ctx.scratch(checked_mul(size(t.numel()), sizeof(float)));
    auto* to = reinterpret_cast<float*>(hold.data());
    convert_reals(ctx.run(), kernels_, t.dtype(), t.raw(), DType::Float32, to, size(t.numel()));
    return to;
  }

  /// float64, by the definition.
  void run_double(KernelContext& ctx, const ConvProblem& p, const Tensor& x, const Tensor& out) const {
    const double* input = x.data<double>();
    const double* weight = ctx.input(1).data<double>();
    const double* bias = ctx.has_input(2) ? ctx.input(2).data<double>() : nullptr;
    double* y = out.mutable_data<double>();
    const ConvShape& s = p.shape;
    const std::size_t in_plane = s.in_d * s.in_h * s.in_w, depth = s.depth(), positions = s.positions();
    ctx.parallel_for(
        size(out.numel()), static_cast<double>(depth), [&](std::size_t begin, std::size_t end, std::size_t) {
          for (std::size_t i = begin; i < end; ++i) {
            const std::size_t plane = i / positions, channel = plane % size(p.out_channels),
                              image = plane / size(p.out_channels);
            const double* first =
                input + (image * size(p.channels) + channel / s.out_channels * s.in_channels) * in_plane;
            y[i] =
                (bias == nullptr ? 0.0 : bias[channel]) + window_sum(s, first, weight + channel * depth, i % positions);
          }
        });
  }

  static double window_sum(const ConvShape& s, const double* input, const double* weight, std::size_t position) {
    const auto ow = static_cast<std::ptrdiff_t>(position % s.out_w),
               oh = static_cast<std::ptrdiff_t>(position / s.out_w % s.out_h);
    const auto od = static_cast<std::ptrdiff_t>(position / s.out_w / s.out_h);
    const auto at = [](std::ptrdiff_t out, std::size_t stride, std::size_t k, std::size_t dilation,
                       std::ptrdiff_t pad) {
      return out * static_cast<std::ptrdiff_t>(stride) + static_cast<std::ptrdiff_t>(k * dilation) - pad;
    };
    const auto inside = [](std::ptrdiff_t i, std::size_t n) { return i >= 0 && i < static_cast<std::ptrdiff_t>(n); };
    double sum = 0;
    for (std::size_t c = 0; c < s.in_channels; ++c) {
      const double* plane = input + c * s.in_d * s.in_h * s.in_w;
      for (std::size_t kd = 0; kd < s.kernel_d; ++kd) {
        const std::ptrdiff_t d = at(od, s.stride_d, kd, s.dilation_d, s.pad_front);
        for (std::size_t kh = 0; kh < s.kernel_h; ++kh) {
          const std::ptrdiff_t h = at(oh, s.stride_h, kh, s.dilation_h, s.pad_top);
          for (std::size_t kw = 0; kw < s.kernel_w; ++kw, ++weight) {
            const std::ptrdiff_t w = at(ow, s.stride_w, kw, s.dilation_w, s.pad_left);
            if (!inside(d, s.in_d) || !inside(h, s.in_h) || !inside(w, s.in_w)) continue;
            sum += *weight * plane[(size(d) * s.in_h + size(h)) * s.in_w + size(w)];
          }
        }
      }
    }
    return sum;
  }

  const microkernels::KernelSet& kernels_;
  Window window_;
  std::int64_t groups_;
  microkernels::ActivationArgs activation_;
  Shape w_shape_;
  std::unique_ptr<ConvRunner> runner_;
};

std::vector<std::string> conv_methods_of(const KernelInfo& info) {
  if (info.input_type(0).elem != DType::Float32) return {};
  const std::optional<ConvSite> site = conv_site(info);
  return site ? method_names(*site, ConvLayout::Planar) : std::vector<std::string>();
}

void infer_conv(InferContext& ctx) { infer_conv_shape(ctx, 0, 1); }

/// Our own domain's; com.microsoft's is known elsewhere.
std::string define_conv(const graph::Graph& graph, const graph::Node& node) {
  Definition body(graph.value(node.inputs[0]).type.elem);
  const auto input = [&](std::size_t i) { return definition_input(node, i); };
  graph::Attributes attributes = node.attributes;
  attributes.erase("activation");
  attributes.erase("activation_params");
  const std::string conv = cat("Conv", graph::to_text(attributes));
  std::string t =
      input(2).empty() ? body.call(conv, {input(0), input(1)}) : body.call(conv, {input(0), input(1), input(2)});
  if (!input(3).empty()) t = body.call("Add", {t, input(3)});
  body.finish(body.activate(t, node.attributes));
  return body.text();
}

}  // namespace

void register_conv(kernel::OpRegistrar& r) {
  r.op("Conv")
      .version(1, "X:T, W:T, B:T? -> Y:T; T = floats")
      .version(11, "X:T, W:T, B:T? -> Y:T; T = floats")
      .version(22, "X:T, W:T, B:T? -> Y:T; T = floats_bf16")
      .infer(infer_conv)
      .kernel<Conv>()
      .methods(conv_methods_of)
      .product(kernel::Product::Convolution);
  for (const char* domain : {"com.microsoft", "infernode"}) {  // ours knows more activations
    r.op("FusedConv", domain)
        .version(1, "X:T, W:T, B:T?, Z:T? -> Y:T; T = float16|float")
        .infer(infer_conv)
        .kernel<Conv>()
        .methods(conv_methods_of)
        .product(kernel::Product::Convolution)
        .definition(define_conv);
  }
}

}  // namespace infernode::ops
