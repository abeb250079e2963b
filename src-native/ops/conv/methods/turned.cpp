#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "microkernels/blocked/blocked.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/blocked_terms.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/method.h"

// Windows in a plane by the loops over blocks of channels, from planes and to planes: rows of input become blocks when
// they are laid out for a band of rows of output, and what comes of that becomes planes while it is near. A stride, a
// dilation or short rows of output cost no columns.
namespace infernode::ops {

namespace {

using microkernels::BlockedConvArgs;
using microkernels::BlockedConvTable;
using microkernels::BlockedRange;
using microkernels::ConvShape;
using microkernels::kChannelBlock;

constexpr std::size_t kMostFloats = std::size_t{1} << 16;  // of output in blocks at a time

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
std::size_t in_blocks(std::size_t channels) { return align_up(channels, kChannelBlock); }

/// How the outputs of one group of one image are cut: bands of rows, and ranges of blocks of channels.
struct Cut {
  Cut(const ConvShape& s, std::size_t products, std::size_t threads)
      : bands(ceil_div(s.out_h,
                       std::clamp(kMostFloats / (in_blocks(s.out_channels) * s.out_w), std::size_t{1}, s.out_h))),
        ranges(std::min(in_blocks(s.out_channels) / kChannelBlock, ceil_div(threads, products * bands))),
        floats(ceil_div(s.out_h, bands) * s.out_w * in_blocks(s.out_channels)) {}

  std::size_t bands, ranges;
  std::size_t floats;  ///< of the blocks of a band
};

class ConvTurned final : public ConvRunner {
 public:
  ConvTurned(kernel::KernelInfo& info, const ConvSite& site)
      : table_(site.kernels().blocked_conv),
        panel_(site.kernels().conv.nr),
        move_(site.kernels().transpose.bytes4),
        groups_(site.groups) {
    const ConvShape shape = site.shape;
    packed_ = PackedWeight(info, 1, "conv", table_.weights.packed(shape, nullptr), groups_,
                           [&](const tensor::Tensor& weight, std::size_t group, std::byte* to) {
                             table_.weights.pack(shape,
                                                 weight.data<float>() + group * shape.out_channels * shape.depth(), to);
                           });
    info.release_constant(1);
  }

  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    const ConvShape& s = p.shape;
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads), products = size(p.images) * groups_;
    const Cut cut(s, products, threads);
    const std::size_t parts = cut.bands * cut.ranges;
    const std::vector<float> biases = filled_up(o.bias, s.out_channels);
    const std::size_t stride =
        align_up(checked_mul(checked_add(table_.scratch_floats, 2 * cut.floats), sizeof(float)), 64);
    const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
    constexpr double kFlopsPerNs = 80;
    const double cost = 2.0 * multiply_adds(s) / number(parts) / kFlopsPerNs;
    ctx.parallel_for(products * parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      auto* const memory = reinterpret_cast<float*>(scratch.data() + slot * stride);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t product = i / parts, band = i % parts / cut.ranges, range = i % cut.ranges;
        BlockedConvArgs args;
        args.shape = s;
        args.turned = true;
        args.input = o.x + product * s.in_channels * s.in_h * s.in_w;
        args.weights = packed_.read(table_.weights.name, product % groups_);
        args.bias = biases.empty() ? nullptr : biases.data() + product % groups_ * in_blocks(s.out_channels);
        args.activation = activation;
        const std::size_t first = product * s.out_channels * s.positions();
        run_part(args, cut, band, range, o.residual == nullptr ? nullptr : o.residual + first, o.y + first, memory);
      }
    });
  }

 private:
  /// The biases of each group, filled up to whole blocks; none where there are none.
  std::vector<float> filled_up(const float* bias, std::size_t channels) const {
    std::vector<float> filled(bias == nullptr ? 0 : groups_ * in_blocks(channels));
    for (std::size_t group = 0; bias != nullptr && group < groups_; ++group)
      std::copy_n(bias + group * channels, channels, filled.data() + group * in_blocks(channels));
    return filled;
  }

  /// A band of rows by a range of blocks of channels, from the planes of `args` to those of `y`.
  void run_part(BlockedConvArgs args, const Cut& cut, std::size_t band, std::size_t range, const float* residual,
                float* y, float* memory) const {
    ConvShape& s = args.shape;
    const std::size_t positions = s.positions(), channels = s.out_channels, blocks = ceil_div(channels, kChannelBlock);
    const std::size_t r0 = band * s.out_h / cut.bands, r1 = (band + 1) * s.out_h / cut.bands, at = r0 * s.out_w;
    const std::size_t b0 = range * blocks / cut.ranges, b1 = (range + 1) * blocks / cut.ranges;
    s.out_h = r1 - r0;
    s.pad_top -= static_cast<std::ptrdiff_t>(r0 * s.stride_h);
    const std::size_t count = s.positions(), plane = count * kChannelBlock;
    float* const made = memory + table_.scratch_floats;
    float* const added = made + cut.floats;
    args.output = made;
    args.residual = residual == nullptr ? nullptr : added;
    const auto words = [](const float* from) { return reinterpret_cast<const std::uint32_t*>(from); };
    // Ranges are of whole panels where these are wider than blocks: what comes of their other blocks is not taken.
    const BlockedRange whole{0, table_.grid(s).rows, b0 * kChannelBlock / panel_, ceil_div(b1 * kChannelBlock, panel_)};
    for (std::size_t b = b0; b < b1 && residual != nullptr; ++b) {
      const std::size_t c = b * kChannelBlock;
      move_(words(residual + c * positions + at), positions, reinterpret_cast<std::uint32_t*>(added + b * plane),
            kChannelBlock, std::min(kChannelBlock, channels - c), count);
    }
    table_.conv(args, whole, memory);
    for (std::size_t b = b0; b < b1; ++b) {
      const std::size_t c = b * kChannelBlock;
      move_(words(made + b * plane), kChannelBlock, reinterpret_cast<std::uint32_t*>(y + c * positions + at), positions,
            count, std::min(kChannelBlock, channels - c));
    }
  }

  const BlockedConvTable& table_;
  std::size_t panel_;  ///< channels of a panel of the table
  microkernels::Transpose2d<std::uint32_t> move_;
  std::size_t groups_;
  PackedWeight packed_;
};

/// By loops over blocks of float32: windows of more than one point, others being products, over so many channels that
/// blocks of them are not mostly empty.
bool can_run(const ConvSite& site) {
  const microkernels::BlockedConvTable& table = site.kernels().blocked_conv;
  return site.weight != nullptr && site.certain && !site.depthwise() && site.rung != CpuRung::Amx &&
         !table.takes_bf16 && site.shape.in_channels > microkernels::kMostPlanes && site.shape.kernel_points() > 1 &&
         table.fits(site.shape);
}

cost::Terms terms(const ConvSite& site) { return blocked_terms(site, site.shape, number(site.groups)); }

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvTurned>(info, site);
}

}  // namespace

void register_conv_turned(ConvMethods& methods) {
  methods.add({"turned",
               "the loops over blocks of channels from planes to planes: rows of input become blocks when they are "
               "laid out for a band of rows of output",
               75, can_run, terms, make});
}

}  // namespace infernode::ops
