#include "ops/conv/window.h"

#include <algorithm>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "microkernels/conv/conv.h"
#include "microkernels/elementwise/convert.h"
#include "ops/common/activation.h"
#include "ops/common/definition.h"
#include "ops/conv/conv_dft.h"
#include "ops/conv/conv_line.h"
#include "ops/conv/conv_rows.h"
#include "ops/conv/conv_toom.h"
#include "ops/conv/conv_winograd.h"
#include "ops/matmul/product.h"
#include "tensor/dispatch.h"

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
      : rung_(info.cpu_rung()),
        table_(info.kernels().conv),
        convert_(microkernels::convert_table(rung_)),
        window_(info.attributes()),
        groups_(info.attributes().get_int("group", 1)),
        activation_(read_activation(info.attributes())) {
    const Tensor* w = info.constant(1);
    if (w != nullptr) w_shape_ = w->shape();
    dft_ = ConvDft(info);
    rows_ = ConvRows(info, groups_);
    if (rows_) return;
    line_ = ConvLine(info, window_, groups_);
    if (line_) return;
    toom_ = ConvToom(info, window_, groups_);
    if (toom_) return;
    winograd_ = ConvWinograd(info, groups_);
    if (winograd_) return;
    if (w == nullptr || w->rank() < 3 || w->dtype() != DType::Float32 || w->numel() == 0 || groups_ < 1 ||
        w->dim(0) % groups_ != 0)
      return;
    if (w->dim(1) == 1 && groups_ > 1) return;  // depthwise reads the weights as they are
    packed_ = info.packer().pack(info.node(), 1, cat("conv.", table_.name, ".g", groups_),
                                 [&](const Tensor& weight) { return pack(weight.data<float>(), w_shape_); });
    info.release_constant(1);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const ConvProblem p = plan_conv(window_, groups_, x.shape(), w_shape_.rank() > 0 ? w_shape_ : ctx.input(1).shape());
    const Tensor out = ctx.output(0, p.out);
    if (out.numel() == 0) return;
    if (x.dtype() == DType::Float64) return run_double(ctx, p, x, out);
    tensor::Buffer x_hold, w_hold, b_hold, z_hold, y_hold;
    Operands o;
    o.x = as_float(ctx, x, x_hold);
    if (!packed_ && !rows_ && !line_ && !toom_ && !winograd_) o.w = as_float(ctx, ctx.input(1), w_hold);
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
    if (dft_ && dft_.run(ctx, p, o.x, o.y)) {
      // the output is there
    } else if (rows_) {
      rows_.run(ctx, p, {o.x, o.bias, o.residual, o.y}, activation_);
    } else if (line_) {
      line_.run(ctx, p, {o.x, o.bias, o.residual, o.y}, activation_);
    } else if (toom_) {
      toom_.run(ctx, p, {o.x, o.bias, o.residual, o.y}, activation_);
    } else if (winograd_) {
      winograd_.run(ctx, p, {o.x, o.bias, o.residual, o.y}, activation_);
    } else if (p.depthwise()) {
      run_depthwise(ctx, p, o);
    } else {
      run_dense(ctx, p, o);
    }
    if (out.dtype() != DType::Float32) narrow(rung_, o.y, out);
  }

 private:
  struct Operands {
    const float *x = nullptr, *w = nullptr, *bias = nullptr, *residual = nullptr;
    float* y = nullptr;
  };

  tensor::Buffer pack(const float* weight, const Shape& shape) const {
    const std::size_t out_channels = size(shape[0] / groups_), in_channels = size(shape[1]),
                      points = size(shape.numel(2, shape.rank())), depth = in_channels * points;
    const std::size_t floats = table_.packed_weight_floats(out_channels, in_channels, points);
    tensor::Buffer packed =
        tensor::host_allocator().allocate(checked_mul(checked_mul(floats, size(groups_)), sizeof(float)));
    for (std::size_t g = 0; g < size(groups_); ++g) {
      table_.pack_weight(out_channels, in_channels, points, weight + g * out_channels * depth,
                         reinterpret_cast<float*>(packed.data()) + g * floats);
    }
    return packed;
  }

  const float* as_float(KernelContext& ctx, const Tensor& t, tensor::Buffer& hold) const {
    if (t.dtype() == DType::Float32) return t.data<float>();
    hold = ctx.scratch(checked_mul(size(t.numel()), sizeof(float)));
    auto* to = reinterpret_cast<float*>(hold.data());
    (t.dtype() == DType::Float16 ? convert_.f16_to_f32 : convert_.bf16_to_f32)(
        static_cast<const std::uint16_t*>(t.raw()), to, size(t.numel()));
    return to;
  }

  void run_dense(KernelContext& ctx, const ConvProblem& p, const Operands& o) const {
    const std::size_t depth = p.shape.depth(), positions = p.shape.positions(), groups = size(p.groups);
    const std::size_t products = size(p.images) * groups;
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
    const tensor::Buffer fresh = packed_
                                     ? tensor::Buffer()
                                     : pack(o.w, Shape{p.out_channels, static_cast<std::int64_t>(p.shape.in_channels),
                                                       static_cast<std::int64_t>(p.shape.kernel_points())});
    const auto* weights = reinterpret_cast<const float*>((packed_ ? packed_ : fresh).data());
    const std::size_t group_floats =
        table_.packed_weight_floats(p.shape.out_channels, p.shape.in_channels, p.shape.kernel_points());
    const microkernels::GemmSplit split =
        microkernels::split_conv(table_, p.shape, ceil_div(threads, std::min(products, threads)));
    const std::size_t stride = align_up(table_.scratch_floats * sizeof(float), 64);
    const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
    const std::size_t in_size = p.shape.in_channels * p.shape.in_d * p.shape.in_h * p.shape.in_w;
    const std::size_t out_size = p.shape.out_channels * positions;
    constexpr double kFlopsPerNs = 40;
    const double cost = 2.0 * static_cast<double>(p.shape.out_channels * positions) * static_cast<double>(depth) /
                        static_cast<double>(split.count()) / kFlopsPerNs;
    ctx.parallel_for(products * split.count(), cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      auto* memory = reinterpret_cast<float*>(scratch.data() + slot * stride);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t product = i / split.count(), group = product % groups;
        const microkernels::ConvArgs args{
            .shape = p.shape,
            .input = o.x + product * in_size,
            .packed_weight = weights + group * group_floats,
            .bias = o.bias == nullptr ? nullptr : o.bias + group * p.shape.out_channels,
            .residual = o.residual == nullptr ? nullptr : o.residual + product * out_size,
            .activation = activation_,
            .output = o.y + product * out_size,
        };
        table_.conv(args, split.range(i % split.count(), p.shape.out_channels, positions), memory);
      }
    });
  }

  void run_depthwise(KernelContext& ctx, const ConvProblem& p, const Operands& o) const {
    const std::size_t planes = size(p.images * p.out_channels), out_channels = size(p.out_channels),
                      positions = p.shape.positions();
    const std::size_t points = p.shape.kernel_points(), multiplier = p.shape.out_channels;
    const std::size_t in_size = p.shape.in_d * p.shape.in_h * p.shape.in_w;
    ConvShape plane = p.shape;
    plane.out_channels = 1;
    constexpr double kFlopsPerNs = 8;
    ctx.parallel_for(planes, 2.0 * static_cast<double>(positions * points) / kFlopsPerNs,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin, count = 1; i < end; i += count) {
                         const std::size_t channel = i % out_channels, image = i / out_channels;
                         // Without a multiplier the planes of an image follow each other on both sides.
                         count = multiplier == 1 ? std::min(end - i, out_channels - channel) : 1;
                         table_.depthwise({.shape = plane,
                                           .input = o.x + (image * size(p.channels) + channel / multiplier) * in_size,
                                           .weight = o.w + channel * points,
                                           .residual = o.residual == nullptr ? nullptr : o.residual + i * positions,
                                           .activation = activation_,
                                           .output = o.y + i * positions,
                                           .planes = count,
                                           .biases = o.bias == nullptr ? nullptr : o.bias + channel});
                       }
                     });
  }

  /// float64, by the definition.
  void run_double(KernelContext& ctx, const ConvProblem& p, const Tensor& x, const Tensor& out) const {
    const double* input = x.data<double>();
    const double* weight = ctx.input(1).data<double>();
    const double* bias = ctx.has_input(2) ? ctx.input(2).data<double>() : nullptr;
    double* y = out.mutable_data<double>();
    const ConvShape& s = p.shape;
    const std::size_t in_plane = s.in_d * s.in_h * s.in_w, depth = s.depth(), positions = s.positions();
    ctx.parallel_for(size(p.images * p.out_channels), static_cast<double>(positions * depth),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t plane = begin; plane < end; ++plane) {
                         const std::size_t channel = plane % size(p.out_channels), image = plane / size(p.out_channels);
                         const double* first =
                             input + (image * size(p.channels) + channel / s.out_channels * s.in_channels) * in_plane;
                         for (std::size_t at = 0; at < positions; ++at) {
                           y[plane * positions + at] = (bias == nullptr ? 0.0 : bias[channel]) +
                                                       window_sum(s, first, weight + channel * depth, at);
                         }
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

  CpuRung rung_;
  const microkernels::ConvTable& table_;
  const microkernels::ConvertTable& convert_;
  Window window_;
  std::int64_t groups_;
  microkernels::ActivationArgs activation_;
  Shape w_shape_;
  tensor::Buffer packed_;
  ConvRows rows_;
  ConvLine line_;
  ConvToom toom_;
  ConvWinograd winograd_;
  ConvDft dft_;
};

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
      .product(kernel::Product::Convolution);
  for (const char* domain : {"com.microsoft", "infernode"}) {  // ours knows more activations
    r.op("FusedConv", domain)
        .version(1, "X:T, W:T, B:T?, Z:T? -> Y:T; T = float16|float")
        .infer(infer_conv)
        .kernel<Conv>()
        .product(kernel::Product::Convolution)
        .definition(define_conv);
  }
}

}  // namespace infernode::ops
