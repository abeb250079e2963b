#include <algorithm>

#include "base/checked.h"
#include "microkernels/winograd/winograd.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/method.h"

// Planar 3x3 convolutions of stride 1 by Winograd's transformation, where that is fewer multiplications at no loss of
// accuracy.
namespace infernode::ops {

namespace {

using microkernels::ConvShape;
using microkernels::WinogradSplit;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

class ConvWinograd final : public ConvRunner {
 public:
  ConvWinograd(kernel::KernelInfo& info, const ConvSite& site) : table_(site.kernels().winograd) {
    packed_ = PackedWeight(info, 1, "conv", table_.weights.packed(site.shape, nullptr), 1,
                           [&](const tensor::Tensor& weight, std::size_t, std::byte* to) {
                             table_.weights.pack(site.shape, weight.data<float>(), to);
                           });
    info.release_constant(1);
  }

  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    const ConvShape& s = p.shape;
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads), images = size(p.images);
    const microkernels::PackedOperand weights = packed_.read(table_.weights.name);
    tensor::Buffer hold;
    float* transformed = nullptr;
    if (microkernels::winograd_pays(table_, s)) {
      hold = ctx.scratch(checked_mul(table_.transformed_floats(s.out_channels, s.in_channels), sizeof(float)));
      transformed = reinterpret_cast<float*>(hold.data());
      ctx.parallel_for(s.out_channels, static_cast<double>(s.in_channels),
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         table_.transform_weight(weights, begin, end, transformed);
                       });
    }
    const WinogradSplit split = split_winograd(table_, s, ceil_div(threads, std::min(images, threads)));
    const std::size_t stride = align_up(checked_mul(table_.scratch_floats(s, split.block(0)), sizeof(float)), 64);
    const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
    const std::size_t in_size = s.in_channels * s.in_h * s.in_w, out_size = s.out_channels * s.positions();
    constexpr double kFlopsPerNs = 80;
    const double cost = 2.0 * static_cast<double>(out_size) * static_cast<double>(s.depth()) /
                        static_cast<double>(split.count()) / kFlopsPerNs;
    ctx.parallel_for(images * split.count(), cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      auto* memory = reinterpret_cast<float*>(scratch.data() + slot * stride);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t image = i / split.count();
        const microkernels::ConvArgs args{
            .shape = s,
            .input = o.x + image * in_size,
            .weights = weights,
            .bias = o.bias,
            .residual = o.residual == nullptr ? nullptr : o.residual + image * out_size,
            .activation = activation,
            .output = o.y + image * out_size,
        };
        table_.conv(args, transformed, split.block(i % split.count()), memory);
      }
    });
  }

 private:
  const microkernels::WinogradTable& table_;
  PackedWeight packed_;
};

bool can_run(const ConvSite& site) {
  const ConvShape& s = site.shape;
  return site.weight != nullptr && site.groups == 1 && site.axes == 2 && site.rung != CpuRung::Amx &&
         is_winograd_window(s) && microkernels::winograd_pays(site.kernels().winograd, s);
}
bool fits_weight(const ConvSite& site) {
  return microkernels::winograd_holds(site.shape.out_channels, site.shape.in_channels, site.weight->data<float>());
}

/// Calls, multiply-adds of tiles, inputs of tiles, outputs, weights transformed.
cost::Terms terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const double tiles = whole(s.out_h, 2) / 2 * whole(s.out_w, 2) / 2, weights = number(s.out_channels * s.in_channels);
  return {1, 16 * weights * tiles, 16 * number(s.in_channels) * tiles, output_floats(s), weights};
}

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvWinograd>(info, site);
}

}  // namespace

void register_conv_winograd(ConvMethods& methods) {
  methods.add(
      {"winograd", "transformed tiles for 3x3 windows of stride 1", 30, can_run, terms, make, nullptr, fits_weight});
}

}  // namespace infernode::ops
