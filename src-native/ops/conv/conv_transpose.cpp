#include <algorithm>
#include <array>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/conv/conv.h"
#include "ops/common/mover.h"
#include "ops/common/reals.h"
#include "ops/conv/transposed.h"
#include "ops/conv/window.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::ConvShape;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kMostAxes = 3;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// The attributes: those of a forward convolution from Y to X, and how large Y is.
struct Geometry {
  Window window;
  std::vector<std::int64_t> output_shape, output_padding;

  explicit Geometry(const graph::Attributes& attributes)
      : window(attributes),
        output_shape(attributes.get_ints("output_shape")),
        output_padding(attributes.get_ints("output_padding")) {
    for (const auto* list : {&output_shape, &output_padding}) {
      for (const std::int64_t v : *list) {
        if (v < 0 || v > std::int64_t{1} << 40)
          fail(ErrorCode::InvalidModel, cat("ConvTranspose's attributes hold the size ", v));
      }
    }
  }
  void complete(std::size_t axes, std::span<const std::int64_t> kernel) {
    window.complete(axes, kernel);
    if (output_padding.empty()) output_padding.assign(axes, 0);
    if (output_shape.size() == axes + 2) output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
    if (output_padding.size() != axes || (!output_shape.empty() && output_shape.size() != axes)) {
      fail(ErrorCode::ShapeMismatch,
           cat("ConvTranspose: output_padding (", output_padding.size(), ") and output_shape (", output_shape.size(),
               ") do not fit ", axes, " spatial axes"));
    }
  }
  bool same() const {
    return window.auto_pad == Window::AutoPad::SameUpper || window.auto_pad == Window::AutoPad::SameLower;
  }
  /// Sum of output_padding and of what the kernel reaches beyond one step.
  std::int64_t reach(std::size_t i) const {
    return output_padding[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
  }
  /// Size of Y along an axis and the pads at its begin.
  std::pair<std::int64_t, std::int64_t> axis(std::size_t i, std::int64_t in) const {
    const std::int64_t full = checked_add(checked_mul(in - 1, window.strides[i]), reach(i));
    if (output_shape.empty() && !same()) {
      const std::int64_t out = full - window.pads[i] - window.pads[i + window.kernel.size()];
      if (out < 0) fail(ErrorCode::ShapeMismatch, cat("ConvTranspose's pads leave ", out, " elements of ", full));
      return {out, window.pads[i]};
    }
    const std::int64_t out = output_shape.empty() ? checked_mul(in, window.strides[i]) : output_shape[i];
    const std::int64_t total = std::max<std::int64_t>(0, full - out);
    return {out, window.auto_pad == Window::AutoPad::SameUpper ? total / 2 : total - total / 2};
  }
  Dim infer_axis(std::size_t i, const Dim& in) const {
    if (!output_shape.empty()) return output_shape[i];
    if (in.known()) return axis(i, in.value()).first;
    if (same()) return in * Dim(window.strides[i]);
    return (in - Dim(1)) * Dim(window.strides[i]) +
           Dim(reach(i) - window.pads[i] - window.pads[i + window.kernel.size()]);
  }
};

struct Problem {
  std::int64_t images, channels, out_channels, groups;
  Shape out;
  ConvShape shape;  ///< of the forward convolution of one group, from Y's channels to X's
};

Problem plan(Geometry geometry, std::int64_t groups, const Shape& x, const Shape& w) {
  if (x.rank() < 3 || w.rank() != x.rank()) {
    fail(ErrorCode::ShapeMismatch, cat("ConvTranspose takes X [N,C,...] and W [C,M/group,...] of equal rank, got ",
                                       x.to_string(), " and ", w.to_string()));
  }
  const std::size_t axes = x.rank() - 2;
  if (axes > kMostAxes) {
    fail(ErrorCode::UnsupportedOperator,
         cat("ConvTranspose over ", axes, " spatial axes; up to ", kMostAxes, " are supported"));
  }
  if (groups < 1 || x[1] != w[0] || x[1] % groups != 0) {
    fail(ErrorCode::ShapeMismatch,
         cat("ConvTranspose's channels do not fit: X ", x.to_string(), ", W ", w.to_string(), ", group ", groups));
  }
  geometry.complete(axes, w.dims().subspan(2));
  if (!std::equal(geometry.window.kernel.begin(), geometry.window.kernel.end(), w.begin() + 2))
    fail(ErrorCode::ShapeMismatch, cat("kernel_shape does not match W ", w.to_string()));
  Problem p{.images = x[0],
            .channels = x[1],
            .out_channels = checked_mul(w[1], groups),
            .groups = groups,
            .out = {},
            .shape = {}};
  ConvShape& s = p.shape;
  s.in_channels = size(w[1]);
  s.out_channels = size(x[1] / groups);
  p.out = Shape{p.images, p.out_channels};
  struct Fields {
    std::size_t *in, *out, *kernel, *stride, *dilation;
    std::ptrdiff_t* pad;
  };
  const Fields fields[kMostAxes] = {
      {&s.in_d, &s.out_d, &s.kernel_d, &s.stride_d, &s.dilation_d, &s.pad_front},
      {&s.in_h, &s.out_h, &s.kernel_h, &s.stride_h, &s.dilation_h, &s.pad_top},
      {&s.in_w, &s.out_w, &s.kernel_w, &s.stride_w, &s.dilation_w, &s.pad_left},
  };
  for (std::size_t i = 0; i < axes; ++i) {
    const Fields& f = fields[kMostAxes - axes + i];
    const auto [out, pad] = geometry.axis(i, x[i + 2]);
    p.out.push_back(out);
    *f.in = size(out);
    *f.out = size(x[i + 2]);
    *f.kernel = size(geometry.window.kernel[i]);
    *f.stride = size(geometry.window.strides[i]);
    *f.dilation = size(geometry.window.dilations[i]);
    *f.pad = pad;
  }
  return p;
}

/// What is known of a node of a constant weight, with the shape of its forward convolution; nullopt where that does not
/// fit together.
std::optional<ConvSite> usual_site(const KernelInfo& info, const Geometry& geometry, std::int64_t groups,
                                   const Shape& w) {
  const graph::ValueType& input = info.input_type(0);
  if (w.rank() < 3 || w.rank() > kMostAxes + 2 || w.numel() == 0 || (input.shape && input.shape->size() != w.rank()))
    return std::nullopt;
  ConvSite site;
  site.axes = w.rank() - 2;
  site.certain = input.shape.has_value();
  Shape x{1, w[0]};
  for (std::size_t i = 2; i < w.rank(); ++i) {
    const Dim dim = input.shape ? (*input.shape)[i] : Dim::unknown();
    site.certain = site.certain && dim.known();
    x.push_back(usual_length(dim, site.axes));
  }
  try {
    site.shape = plan(geometry, groups, x, w).shape;
  } catch (const Error&) {  // the run says so
    return std::nullopt;
  }
  if (site.shape.in_d * site.shape.in_h * site.shape.in_w == 0) return std::nullopt;
  site.groups = size(groups);
  site.line = site.axes == 1;
  site.bias = info.has_input(2);
  site.cpu = site.rung = info.kernels().rung;
  site.precision = info.kernels().precision;
  return site;
}

class ConvTranspose final : public kernel::Kernel {
 public:
  explicit ConvTranspose(KernelInfo& info)
      : kernels_(info.kernels()),
        gemm_(product_table(info)),
        conv_(info.kernels().exact().conv),
        geometry_(info.attributes()),
        groups_(info.attributes().get_int("group", 1)) {
    const Tensor* const w = info.constant(1);
    if (w == nullptr || w->dtype() != DType::Float32) return;
    if (const std::optional<ConvSite> site = usual_site(info, geometry_, groups_, w->shape())) {
      w_shape_ = w->shape();
      forward_ = std::make_unique<TransposedConv>(info, *site, site->shape);
    }
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Problem p = plan(geometry_, groups_, x.shape(), forward_ ? w_shape_ : ctx.input(1).shape());
    const Tensor* bias = ctx.optional_input(2);
    if (bias != nullptr && bias->numel() != p.out_channels) {
      fail(ErrorCode::ShapeMismatch,
           cat("ConvTranspose's bias has ", bias->numel(), " elements for ", p.out_channels, " output channels"));
    }
    const Tensor y = ctx.output(0, p.out);
    if (y.numel() == 0) return;
    if (x.numel() == 0) return fill_with_bias(ctx, p, bias, y);  // weights that were packed are not there
    if (forward_) {
      return forward_->run(ctx, p.shape, p.images, x.data<float>(), bias == nullptr ? nullptr : bias->data<float>(),
                           y.mutable_data<float>());
    }
    const Tensor& w = ctx.input(1);
    dispatch_reals(x.dtype(), "ConvTranspose", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x), weight(ctx, kernels_, w), add(ctx, kernels_, bias);
      const RealOutput<T> out(ctx, kernels_, y);
      for (std::size_t i = 0; i < size(p.images * p.groups); ++i) {
        ctx.run().check();
        const std::size_t group = i % size(p.groups), channels = p.shape.in_channels;
        const T* x_part = in + i * p.shape.out_channels * p.shape.positions();
        const T* w_part = weight + group * p.shape.out_channels * p.shape.depth();
        const T* bias_part = add ? add + group * channels : nullptr;
        T* y_part = out + i * channels * image_size(p.shape);
        spread(ctx, p.shape, x_part, w_part, bias_part, y_part);
      }
      out.store();
    });
  }

 private:
  static std::size_t image_size(const ConvShape& s) { return s.in_d * s.in_h * s.in_w; }

  /// What an empty X gives.
  void fill_with_bias(KernelContext& ctx, const Problem& p, const Tensor* bias, const Tensor& y) const {
    dispatch_reals(y.dtype(), "ConvTranspose", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> add(ctx, kernels_, bias);
      const RealOutput<T> out(ctx, kernels_, y);
      const std::size_t plane = image_size(p.shape), channels = size(p.out_channels);
      Mover mover(ctx.run());
      for (std::size_t i = 0; i < size(p.images) * channels; ++i)
        mover.fill(out + i * plane, static_cast<std::int64_t>(plane), add ? add.data()[i % channels] : T(0));
      out.store();
    });
  }

  /// One image and group: columns = W' * X, added up where they overlap.
  void spread(KernelContext& ctx, const ConvShape& s, const float* x, const float* w, const float* bias,
              float* y) const {
    const tensor::Buffer memory = ctx.scratch(checked_mul(checked_mul(s.depth(), s.positions()), sizeof(float)));
    auto* const columns = reinterpret_cast<float*>(memory.data());
    multiply(ctx, s, x, w, columns);
    sum_products(ctx, conv_, s, s.in_channels, columns, bias, y);
  }
  void spread(KernelContext& ctx, const ConvShape& s, const double* x, const double* w, const double* bias,
              double* y) const {
    const std::size_t positions = s.positions(), plane = image_size(s), points = s.kernel_points();
    const tensor::Buffer memory = ctx.scratch(checked_mul(checked_mul(s.depth(), positions), sizeof(double)));
    auto* const columns = reinterpret_cast<double*>(memory.data());
    multiply(ctx, s, x, w, columns);
    ctx.parallel_for(s.in_channels, static_cast<double>(points * positions + plane),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       for (std::size_t c = begin; c < end; ++c) {
                         std::fill_n(y + c * plane, plane, bias == nullptr ? 0.0 : bias[c]);
                         add_columns(s, columns + c * points * positions, y + c * plane, watch);
                       }
                     });
  }

  void multiply(KernelContext& ctx, const ConvShape& s, const float* x, const float* w, float* columns) const {
    run_gemm(ctx, gemm_,
             {.m = s.depth(),
              .n = s.positions(),
              .k = s.out_channels,
              .a = w,
              .lda = s.depth(),
              .trans_a = true,
              .b = x,
              .ldb = s.positions(),
              .c = columns,
              .ldc = s.positions(),
              .epilogue = {}});
  }
  void multiply(KernelContext& ctx, const ConvShape& s, const double* x, const double* w, double* columns) const {
    run_dgemm(ctx, gemm_,
              {.m = s.depth(),
               .n = s.positions(),
               .k = s.out_channels,
               .a = w,
               .lda = s.depth(),
               .trans_a = true,
               .b = x,
               .ldb = s.positions(),
               .c = columns,
               .ldc = s.positions()});
  }

  static void add_columns(const ConvShape& s, const double* columns, double* image, kernel::Watch& watch) {
    constexpr std::size_t kBetweenLooks = 256;
    constexpr double kElementNs = 4;
    const auto at = [](std::size_t out, std::size_t stride, std::size_t k, std::size_t dilation, std::ptrdiff_t pad) {
      return static_cast<std::ptrdiff_t>(out * stride + k * dilation) - pad;
    };
    const auto inside = [](std::ptrdiff_t i, std::size_t n) { return i >= 0 && i < static_cast<std::ptrdiff_t>(n); };
    for (std::size_t k = 0; k < s.kernel_points(); ++k) {
      const std::size_t kw = k % s.kernel_w, kh = k / s.kernel_w % s.kernel_h, kd = k / s.kernel_w / s.kernel_h;
      for (std::size_t o = 0; o < s.positions(); ++o, ++columns) {
        if (o % kBetweenLooks == 0) watch.did(kBetweenLooks * kElementNs);
        const std::ptrdiff_t w = at(o % s.out_w, s.stride_w, kw, s.dilation_w, s.pad_left);
        const std::ptrdiff_t h = at(o / s.out_w % s.out_h, s.stride_h, kh, s.dilation_h, s.pad_top);
        const std::ptrdiff_t d = at(o / s.out_w / s.out_h, s.stride_d, kd, s.dilation_d, s.pad_front);
        if (!inside(d, s.in_d) || !inside(h, s.in_h) || !inside(w, s.in_w)) continue;
        image[(static_cast<std::size_t>(d) * s.in_h + static_cast<std::size_t>(h)) * s.in_w +
              static_cast<std::size_t>(w)] += *columns;
      }
    }
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& gemm_;
  const microkernels::ConvTable& conv_;
  Geometry geometry_;
  std::int64_t groups_;
  Shape w_shape_;
  std::unique_ptr<TransposedConv> forward_;  ///< of a constant weight
};

void infer_conv_transpose(InferContext& ctx) {
  const graph::SymShape* x = ctx.input_shape(0);
  const graph::SymShape* w = ctx.input_shape(1);
  if (x == nullptr || w == nullptr) return;
  if (x->size() < 3 || x->size() != w->size()) {
    fail(ErrorCode::ShapeMismatch, cat("ConvTranspose takes X [N,C,...] and W [C,M/group,...] of equal rank, got ",
                                       graph::to_string(*x), " and ", graph::to_string(*w)));
  }
  Geometry geometry(ctx.attributes());
  graph::SymShape out{(*x)[0], (*w)[1] * Dim(ctx.attributes().get_int("group", 1))};
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 2; i < w->size() && (*w)[i].known(); ++i) kernel.push_back((*w)[i].value());
  if (geometry.window.kernel.empty() && kernel.size() + 2 != w->size()) {
    while (out.size() < x->size()) out.push_back(Dim::unknown());
  } else {
    geometry.complete(x->size() - 2, kernel);
    for (std::size_t i = 0; i + 2 < x->size(); ++i) out.push_back(geometry.infer_axis(i, (*x)[i + 2]));
  }
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_conv_transpose(kernel::OpRegistrar& r) {
  r.op("ConvTranspose")
      .version(1, "X:T, W:T, B:T? -> Y:T; T = floats")
      .version(11, "X:T, W:T, B:T? -> Y:T; T = floats")
      .version(22, "X:T, W:T, B:T? -> Y:T; T = floats_bf16")
      .infer(infer_conv_transpose)
      .kernel<ConvTranspose>()
      .product(kernel::Product::Convolution);
}

}  // namespace infernode::ops
