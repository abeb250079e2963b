#include <algorithm>

#include "base/checked.h"
#include "kernel/watch.h"
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
    const std::size_t positions = p.shape.positions(), channels = static_cast<std::size_t>(p.out_channels);
    const tensor::Buffer hold = ctx.scratch(checked_mul(channels, sizeof(float)));
    auto* const values = reinterpret_cast<float*>(hold.data());
    if (o.residual == nullptr) sum_no_taps(channels, 0.0f, o.bias, activation, values);
    // Planes go by in pieces, so that a thread looks between two whether the run is to end.
    const std::size_t pieces = ceil_div(positions, kernel::kPiece);
    ctx.parallel_for(
        static_cast<std::size_t>(p.images) * channels * pieces, 0.1 * number(std::min(positions, kernel::kPiece)),
        [&](std::size_t begin, std::size_t end, std::size_t) {
          for (std::size_t i = begin; i < end; ++i) {
            const std::size_t plane = i / pieces, channel = plane % channels, first = i % pieces * kernel::kPiece,
                              n = std::min(kernel::kPiece, positions - first), at = plane * positions + first;
            if (o.residual == nullptr) {
              std::fill_n(o.y + at, n, values[channel]);
            } else {
              sum_no_taps(n, o.bias == nullptr ? 0.0f : o.bias[channel], o.residual + at, activation, o.y + at);
            }
          }
        });
  }

 private:
  /// y[i] = activation(bias + added[i]).
  void sum_no_taps(std::size_t n, float bias, const float* added, const microkernels::ActivationArgs& activation,
                   float* y) const {
    ConvShape row;
    row.in_w = n;
    row.kernel_w = 0;
    table_.sum_taps({.shape = row, .bias = bias, .residual = added, .activation = activation, .output = y}, nullptr);
  }

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
  ConvMethod method{
      "padding", "writes the bias where the kernel sees padding alone at every position", 5, can_run, nullptr, make};
  method.nanoseconds = nanoseconds;
  methods.add(method);
}

}  // namespace infernode::ops
