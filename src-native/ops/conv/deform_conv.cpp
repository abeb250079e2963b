#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/reals.h"
#include "ops/conv/window.h"
#include "ops/matmul/product.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::ConvShape;
using tensor::Shape;
using tensor::Tensor;

/// A convolution over two axes whose taps are moved by offsets [N, groups * taps * 2 (y, x), H, W] and weighed by a
/// mask [N, groups * taps, H, W]. Elements between pixels are interpolated; outside the image is 0.
class DeformConv final : public kernel::Kernel {
 public:
  explicit DeformConv(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(product_table(info)),
        window_(info.attributes()),
        groups_(info.attributes().get_int("group", 1)),
        offset_groups_(info.attributes().get_int("offset_group", 1)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor* mask = ctx.optional_input(4);
    const Tensor* bias = ctx.optional_input(3);
    if (x.rank() != 4)
      fail(ErrorCode::UnsupportedOperator, cat("DeformConv over two axes takes X of rank 4, got ", x.to_string()));
    const ConvProblem p = plan_conv(window_, groups_, x.shape(), ctx.input(1).shape());
    if (offset_groups_ < 1 || p.channels % offset_groups_ != 0)
      fail(ErrorCode::ShapeMismatch,
           cat(p.channels, " channels do not divide into ", offset_groups_, " offset groups"));
    const auto taps = checked_mul(static_cast<std::int64_t>(p.shape.kernel_points()), offset_groups_);
    expect("offset", ctx.input(2), Shape{p.images, 2 * taps, p.out[2], p.out[3]});
    if (mask != nullptr) expect("mask", *mask, Shape{p.images, taps, p.out[2], p.out[3]});
    if (bias != nullptr) expect("B", *bias, Shape{p.out_channels});
    const Tensor y = ctx.output(0, p.out);
    if (y.numel() == 0) return;
    dispatch_reals(x.dtype(), "DeformConv", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x), w(ctx, kernels_, ctx.input(1)), offsets(ctx, kernels_, ctx.input(2)),
          add(ctx, kernels_, bias), weights(ctx, kernels_, mask);
      const RealOutput<T> out(ctx, kernels_, y);
      const std::size_t depth = p.shape.depth(), positions = p.shape.positions(), n = p.shape.out_channels;
      const tensor::Buffer memory = ctx.scratch(checked_mul(checked_mul(depth, positions), sizeof(T)));
      T* columns = reinterpret_cast<T*>(memory.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(p.images * p.groups); ++i) {
        ctx.run().check();
        sample<T>(ctx, p, i, in, offsets, weights, columns);
        const std::size_t group = i % static_cast<std::size_t>(p.groups);
        multiply(ctx, n, positions, depth, w + group * n * depth, columns, add ? add + group * n : nullptr,
                 out + i * n * positions);
      }
      out.store();
    });
  }

 private:
  static void expect(const char* what, const Tensor& t, const Shape& shape) {
    if (t.shape() != shape)
      fail(ErrorCode::ShapeMismatch,
           cat("DeformConv: ", what, " is ", t.to_string(), ", expected ", shape.to_string()));
  }

  /// What lies under the taps of one image and group: [channel][tap][position].
  template <class T>
  void sample(KernelContext& ctx, const ConvProblem& p, std::size_t product, const T* x, const T* offsets,
              const T* mask, T* columns) const {
    const ConvShape& s = p.shape;
    const std::size_t plane = s.in_h * s.in_w, positions = s.positions(), points = s.kernel_points();
    const auto groups = static_cast<std::size_t>(p.groups), offset_groups = static_cast<std::size_t>(offset_groups_);
    const std::size_t image = product / groups, per_offset = static_cast<std::size_t>(p.channels) / offset_groups;
    ctx.parallel_for(s.in_channels * points, static_cast<double>(positions) * kSampleNs,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t channel = product % groups * s.in_channels + i / points, tap = i % points;
                         const std::size_t at = (image * offset_groups + channel / per_offset) * points + tap;
                         const T* from = x + (image * static_cast<std::size_t>(p.channels) + channel) * plane;
                         const T* dy = offsets + 2 * at * positions;
                         const T* weight = mask == nullptr ? nullptr : mask + at * positions;
                         for (std::size_t o = 0; o < positions; ++o) {
                           if (o % kBetweenLooks == 0) watch.did(kBetweenLooks * kSampleNs);
                           const std::size_t row = o / s.out_w * s.stride_h + tap / s.kernel_w * s.dilation_h;
                           const std::size_t column = o % s.out_w * s.stride_w + tap % s.kernel_w * s.dilation_w;
                           const T v = between(from, s, static_cast<T>(row) - static_cast<T>(s.pad_top) + dy[o],
                                               static_cast<T>(column) - static_cast<T>(s.pad_left) + dy[positions + o]);
                           columns[i * positions + o] = weight == nullptr ? v : v * weight[o];
                         }
                       }
                     });
  }

  static constexpr std::size_t kBetweenLooks = 256;
  static constexpr double kSampleNs = 8;

  template <class T>
  static T between(const T* plane, const ConvShape& s, T h, T w) {
    const auto height = static_cast<T>(s.in_h), width = static_cast<T>(s.in_w);
    if (!(h > -1 && h < height && w > -1 && w < width)) return 0;
    const T top = std::floor(h), left = std::floor(w), down = h - top, right = w - left;
    const auto pixel = [&](T row, T column) {
      if (row < 0 || row >= height || column < 0 || column >= width) return T{0};
      return plane[static_cast<std::size_t>(row) * s.in_w + static_cast<std::size_t>(column)];
    };
    return (1 - down) * ((1 - right) * pixel(top, left) + right * pixel(top, left + 1)) +
           down * ((1 - right) * pixel(top + 1, left) + right * pixel(top + 1, left + 1));
  }

  void multiply(KernelContext& ctx, std::size_t m, std::size_t n, std::size_t k, const float* w, const float* columns,
                const float* bias, float* y) const {
    microkernels::GemmArgs args{
        .m = m, .n = n, .k = k, .a = w, .lda = k, .b = columns, .ldb = n, .c = y, .ldc = n, .epilogue = {}};
    args.epilogue.bias_m = bias;
    run_gemm(ctx, table_, args);
  }
  void multiply(KernelContext& ctx, std::size_t m, std::size_t n, std::size_t k, const double* w, const double* columns,
                const double* bias, double* y) const {
    ctx.parallel_for(m, static_cast<double>(n) * 0.3, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) std::fill_n(y + i * n, n, bias == nullptr ? 0 : bias[i]);
    });
    run_dgemm(ctx, table_,
              {.m = m, .n = n, .k = k, .a = w, .lda = k, .b = columns, .ldb = n, .c = y, .ldc = n, .accumulate = true});
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& table_;
  Window window_;
  std::int64_t groups_, offset_groups_;
};

void infer_deform_conv(kernel::InferContext& ctx) { infer_conv_shape(ctx, 0, 1); }

}  // namespace

void register_deform_conv(kernel::OpRegistrar& r) {
  r.op("DeformConv")
      .version(19, "X:T, W:T, offset:T, B:T?, mask:T? -> Y:T; T = floats")
      .version(22, "X:T, W:T, offset:T, B:T?, mask:T? -> Y:T; T = floats_bf16")
      .infer(infer_deform_conv)
      .kernel<DeformConv>();
}

}  // namespace infernode::ops
