#include "base/checked.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/method.h"

// Convolutions whose kernel sees padding alone at every position, as with dilations that are longer than the input:
// outputs are the bias.
namespace infernode::ops {

namespace {

using microkernels::ConvShape;

class ConvPadding final : public ConvRunner {
 public:
  ConvPadding(kernel::KernelInfo& info, const ConvSite& site) : table_(site.kernels().conv) {
    info.release_constant(1);
  }
  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    // The sum of no taps.
    ConvShape image;
    image.in_d = p.shape.out_d, image.in_h = p.shape.out_h, image.in_w = p.shape.out_w;
    image.kernel_w = 0;
    const std::size_t positions = p.shape.positions(), channels = static_cast<std::size_t>(p.out_channels);
    ctx.parallel_for(static_cast<std::size_t>(p.images) * channels, 0.1 * number(positions),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) {
                         table_.sum_taps({.shape = image,
                                          .bias = o.bias == nullptr ? 0.0f : o.bias[i % channels],
                                          .residual = o.residual == nullptr ? nullptr : o.residual + i * positions,
                                          .activation = activation,
                                          .output = o.y + i * positions},
                                         nullptr);
                       }
                     });
  }

 private:
  const microkernels::ConvTable& table_;
};

bool can_run(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const bool sees_depth = seen_share(s.out_d, s.in_d, s.kernel_d, s.stride_d, s.dilation_d, s.pad_front) > 0;
  return site.weight != nullptr && site.certain && site.rung == site.cpu &&
         !(sees_depth && seen_rows_share(s) > 0 && seen_columns_share(s) > 0);
}

double nanoseconds(const ConvSite& site) {
  return block_conversion_time(site.cpu, site.precision, number(site.groups) * output_floats(site.shape));
}

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvPadding>(info, site);
}

}  // namespace

void register_conv_padding(ConvMethods& methods) {
  ConvMethod method{"padding", 5, can_run, nullptr, make};
  method.nanoseconds = nanoseconds;
  methods.add(method);
}

}  // namespace infernode::ops
