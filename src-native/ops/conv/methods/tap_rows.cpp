#include "ops/conv/methods/tap_rows.h"

#include <limits>

#include "base/checked.h"
#include "ops/conv/methods/counts.h"
#include "ops/matmul/product.h"

namespace infernode::ops {

using microkernels::ConvShape;
using microkernels::GemmArgs;
using tensor::Shape;
using tensor::Tensor;

namespace {

constexpr const char* kName = "taps.rows";

std::size_t image_size(const ConvShape& s) { return s.in_d * s.in_h * s.in_w; }

}  // namespace

TapRows::TapRows(kernel::KernelInfo& info, const ConvSite& site, std::string_view what, const Tensor& weight)
    : kernels_(site.kernels()), groups_(static_cast<std::size_t>(weight.dim(0))) {
  const auto n = static_cast<std::size_t>(weight.dim(1)), k = static_cast<std::size_t>(weight.dim(2));
  const microkernels::GemmPacking& packing = kernels_.gemm.weights;
  packed_ = PackedWeight(
      info, 1, what, packing.packed(n, k, nullptr), groups_, [&](const Tensor&, std::size_t group, std::byte* to) {
        packing.pack(n, k, weight.data<float>() + group * n * k, microkernels::FloatType::kF32, k, true, to, 0, n);
      });
}

void TapRows::run(kernel::KernelContext& ctx, const ConvShape& s, std::size_t images, const float* x, const float* bias,
                  const microkernels::ActivationArgs& activation, float* y) const {
  const std::size_t positions = s.positions(), seen = s.out_channels, made = s.in_channels, image = image_size(s),
                    n = s.kernel_points() * made;
  const std::size_t floats =
      checked_add(checked_add(checked_mul(positions, seen), checked_mul(positions, n)), checked_mul(image, made));
  const tensor::Buffer hold = ctx.scratch(checked_mul(floats, sizeof(float)));
  auto* const inputs = reinterpret_cast<float*>(hold.data());
  float *const products = inputs + positions * seen, *const rows = products + positions * n;
  for (std::size_t i = 0; i < images * groups_; ++i, x += positions * seen, y += image * made) {
    ctx.run().check();
    const std::size_t group = i % groups_;
    transpose_rows(ctx, kernels_, x, positions, inputs, seen, seen, positions);
    GemmArgs args{.m = positions, .n = n, .k = seen, .a = inputs, .lda = seen, .ldc = n, .epilogue = {}};
    args.packed_b = packed_.read(kernels_.gemm.weights.name, group);
    args.c = products;
    run_gemm(ctx, kernels_.gemm, args);
    const microkernels::TapRowArgs sums{.shape = s,
                                        .channels = made,
                                        .products = products,
                                        .bias = bias == nullptr ? nullptr : bias + group * made,
                                        .activation = activation,
                                        .rows = rows};
    ctx.parallel_for(
        image, 0.1 * number(n * positions) / number(image),
        [&](std::size_t begin, std::size_t end, std::size_t) { kernels_.conv.sum_tap_rows(sums, begin, end); });
    transpose_rows(ctx, kernels_, rows, made, y, image, image, made);
  }
}

bool TapRows::can_run(const ConvShape& s) {
  return number(s.positions()) * number(s.kernel_points() * s.in_channels) < number(kMostFloats) &&
         number(image_size(s)) * number(s.in_channels) < number(kMostFloats);
}

/// Calls, multiply-adds of whole vectors of products, floats turned, products, places of the image, their taps,
/// products from far away.
cost::Terms TapRows::terms(const ConvSite& site, const ConvShape& s) {
  const double groups = number(site.groups), positions = number(s.positions()), points = number(s.kernel_points()),
               places = number(image_size(s)), made = number(s.in_channels);
  return {groups,
          groups * whole(s.kernel_points() * s.in_channels, counted_lanes(site)) * number(s.out_channels) * positions,
          groups * (number(s.out_channels) * positions + made * places),
          groups * positions * points * made,
          groups * places,
          groups * positions * points,
          groups * far_floats(positions * points * made)};
}

double TapRows::nanoseconds(const ConvSite& site, const ConvShape& s) {
  const cost::Row* const row = can_run(s) ? cost::find(cost::table(site.cpu, site.precision), kName) : nullptr;
  return row == nullptr ? std::numeric_limits<double>::max() : cost::nanoseconds(terms(site, s), row->rates);
}

ConvShape backwards(const ConvShape& s) {
  ConvShape to = s;
  const auto pad = [](std::size_t kernel, std::size_t dilation, std::ptrdiff_t before) {
    return static_cast<std::ptrdiff_t>((kernel - 1) * dilation) - before;
  };
  to.in_channels = s.out_channels, to.out_channels = s.in_channels;
  to.in_d = s.out_d, to.in_h = s.out_h, to.in_w = s.out_w;
  to.out_d = s.in_d, to.out_h = s.in_h, to.out_w = s.in_w;
  to.pad_front = pad(s.kernel_d, s.dilation_d, s.pad_front);
  to.pad_top = pad(s.kernel_h, s.dilation_h, s.pad_top);
  to.pad_left = pad(s.kernel_w, s.dilation_w, s.pad_left);
  return to;
}

namespace {

/// [groups, kernel points * out_channels, in_channels], taps in the other order.
Tensor row_weight(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const std::size_t points = s.kernel_points(), made = s.out_channels, seen = s.in_channels;
  Tensor out = Tensor::make(tensor::DType::Float32,
                            Shape{static_cast<std::int64_t>(site.groups), static_cast<std::int64_t>(points * made),
                                  static_cast<std::int64_t>(seen)},
                            tensor::host_allocator());
  const float* const w = site.weight->data<float>();
  float* to = out.mutable_data<float>();
  for (std::size_t group = 0; group < site.groups; ++group)
    for (std::size_t point = points; point-- > 0;)
      for (std::size_t m = group * made; m < (group + 1) * made; ++m)
        for (std::size_t c = 0; c < seen; ++c) *to++ = w[(m * seen + c) * points + point];
  return out;
}

class ConvTapRows final : public ConvRunner {
 public:
  ConvTapRows(kernel::KernelInfo& info, const ConvSite& site) : rows_(info, site, kName, row_weight(site)) {
    info.release_constant(1);
  }
  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    rows_.run(ctx, backwards(p.shape), static_cast<std::size_t>(p.images), o.x, o.bias, activation, o.y);
  }

 private:
  TapRows rows_;
};

bool can_run(const ConvSite& site) {
  const ConvShape& s = site.shape;
  return site.weight != nullptr && site.certain && !site.residual && !site.depthwise() && s.kernel_points() > 1 &&
         s.stride_d == 1 && s.stride_h == 1 && s.stride_w == 1 && TapRows::can_run(backwards(s));
}

cost::Terms terms(const ConvSite& site) { return TapRows::terms(site, backwards(site.shape)); }

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvTapRows>(info, site);
}

}  // namespace

void register_conv_tap_rows(ConvMethods& methods) {
  methods.add_unit({kName, "`taps` with the channels of a place beside each other: for rows of few places", 56, can_run,
                    terms, make});
}

}  // namespace infernode::ops
