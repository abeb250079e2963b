#include <algorithm>

#include "base/checked.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/derived.h"
#include "ops/conv/methods/method.h"
#include "ops/conv/methods/tap_rows.h"

// Convolutions of stride 1 of few output channels: a convolution of one point makes a channel for each tap, from the
// input as it lies, and these are shifted and summed up.
namespace infernode::ops {

namespace {

using microkernels::ConvShape;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kMostFloats = std::size_t{1} << 20;  // of products, which are written and read

ConvShape product_shape(const ConvShape& s) {
  ConvShape to;
  to.in_channels = s.in_channels;
  to.out_channels = s.out_channels * s.kernel_points();
  to.in_d = to.out_d = s.in_d, to.in_h = to.out_h = s.in_h, to.in_w = to.out_w = s.in_w;
  return to;
}

/// [out_channels * kernel points, in_channels, 1...], taps in the other order.
Tensor product_weight(const ConvShape& s, const Tensor& weight) {
  const std::int64_t points = static_cast<std::int64_t>(s.kernel_points()), seen = weight.dim(1);
  Tensor out =
      Tensor::make(tensor::DType::Float32, Shape{weight.dim(0) * points, seen, 1, 1, 1}, tensor::host_allocator());
  const float* const from = weight.data<float>();
  float* to = out.mutable_data<float>();
  for (std::int64_t m = 0; m < weight.dim(0); ++m)
    for (std::int64_t point = points; point-- > 0;)
      for (std::int64_t c = 0; c < seen; ++c) *to++ = from[(m * seen + c) * points + point];
  return out;
}

ConvSite product_site(ConvSite site) {
  site.shape = product_shape(site.shape);
  site.residual = false;
  return site;
}

class ConvTaps final : public ConvRunner {
 public:
  ConvTaps(kernel::KernelInfo& info, const ConvSite& site)
      : table_(site.kernels().conv),
        products_(info, product_site(site), "taps", product_weight(site.shape, *site.weight)) {
    info.release_constant(1);
  }

  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    const ConvShape& s = p.shape;
    ConvShape back = backwards(s);
    back.in_channels = back.out_channels = 1;
    const auto channels = static_cast<std::size_t>(p.out_channels);
    const std::size_t places = back.positions(), points = s.kernel_points(), positions = s.positions(),
                      threads = std::max<std::size_t>(1, ctx.run().max_threads),
                      row_floats = align_up(microkernels::tap_sum_floats(back), std::size_t{16});
    const tensor::Buffer hold = ctx.scratch(
        checked_mul(checked_add(checked_mul(channels * points, places), row_floats * threads), sizeof(float)));
    auto* const products = reinterpret_cast<float*>(hold.data());
    float* const rows = products + channels * points * places;
    for (std::size_t i = 0; i < static_cast<std::size_t>(p.images); ++i) {
      ctx.run().check();
      products_.run(ctx, product_shape(s), 1, o.x + i * static_cast<std::size_t>(p.channels) * places, nullptr,
                    products);
      ctx.parallel_for(channels, 0.2 * number(points * places),
                       [&](std::size_t begin, std::size_t end, std::size_t slot) {
                         for (std::size_t c = begin; c < end; ++c) {
                           const std::size_t at = (i * channels + c) * positions;
                           table_.sum_taps({.shape = back,
                                            .products = products + c * points * places,
                                            .bias = o.bias == nullptr ? 0.0f : o.bias[c],
                                            .residual = o.residual == nullptr ? nullptr : o.residual + at,
                                            .activation = activation,
                                            .output = o.y + at},
                                           rows + slot * row_floats);
                         }
                       });
    }
  }

 private:
  const microkernels::ConvTable& table_;
  DerivedConv products_;
};

bool can_run(const ConvSite& site) {
  const ConvShape& s = site.shape;
  return site.weight != nullptr && site.certain && site.rung == site.cpu && !site.depthwise() &&
         s.kernel_points() > 1 && s.stride_d == 1 && s.stride_h == 1 && s.stride_w == 1 &&
         number(site.groups * s.out_channels * s.kernel_points()) * number(product_shape(s).positions()) <
             number(kMostFloats);
}

cost::Terms terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  return tap_terms(site.groups, s.in_channels, s.out_channels * s.kernel_points(), product_shape(s).positions(),
                   s.in_w);
}

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvTaps>(info, site);
}

}  // namespace

void register_conv_taps(ConvMethods& methods) {
  methods.add({"taps",
               "a convolution of one point makes a channel for each tap, and these are shifted and summed up: for few "
               "output channels at stride 1",
               55, can_run, terms, make});
}

}  // namespace infernode::ops
