#include <algorithm>

#include "base/checked.h"
#include "kernel/watch.h"
#include "ops/conv/methods/blocked.h"
#include "ops/conv/methods/counts.h"

namespace infernode::ops {

using microkernels::BlockedConvArgs;
using microkernels::kChannelBlock;
using tensor::Tensor;

namespace {

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// Of all channels.
microkernels::ConvShape weight_shape(const tensor::Shape& weight) {
  microkernels::ConvShape s;
  s.out_channels = size(weight[0]);
  s.kernel_h = size(weight[2]);
  s.kernel_w = size(weight[3]);
  return s;
}

}  // namespace

BlockedDepthwise::BlockedDepthwise(kernel::KernelInfo& info, const ConvSite& site)
    : table_(site.kernels().blocked_conv), packing_(microkernels::depthwise_packing()) {
  if (site.weight == nullptr) return;
  const microkernels::ConvShape shape = weight_shape(site.weight->shape());
  packed_ = PackedWeight(
      info, 1, "conv", packing_.packed(shape, nullptr), 1,
      [&](const Tensor& weight, std::size_t, std::byte* to) { packing_.pack(shape, weight.data<float>(), to); });
  info.release_constant(1);
}

void BlockedDepthwise::run(kernel::KernelContext& ctx, const ConvProblem& p, BlockedConvArgs args, const Tensor& x,
                           const Tensor& w, const Tensor* residual, const Tensor& out) const {
  if (args.planar) fail(ErrorCode::UnsupportedOperator, "BlockedConv of one channel a group takes blocks only");
  PackedWeight fresh;
  if (!packed_) {
    const microkernels::ConvShape shape = weight_shape(w.shape());
    fresh = PackedWeight(
        ctx.run(), packing_.packed(shape, nullptr), 1, shape.out_channels,
        [&](std::size_t, std::size_t, std::size_t, std::byte* to) { packing_.pack(shape, w.data<float>(), to); });
  }
  args.weights = (packed_ ? packed_ : fresh).read(packing_.name);
  const std::size_t blocks = ceil_div(size(p.out_channels), kChannelBlock), images = size(p.images);
  constexpr double kFlopsPerNs = 40;
  const double cost = 2.0 * number(kChannelBlock * p.shape.positions() * p.shape.kernel_points());
  const auto bands = static_cast<std::size_t>(
      std::clamp(cost / kFlopsPerNs / kernel::kLookEveryNs, 1.0, static_cast<double>(p.shape.out_h)));
  if (bands > 1) return run_bands(ctx, p.shape, bands, args, blocks, images, x, residual, out);
  ctx.parallel_for(images * blocks, cost / kFlopsPerNs, [&](std::size_t begin, std::size_t end, std::size_t) {
    while (begin < end) {
      const std::size_t image = begin / blocks, first = begin % blocks;
      const std::size_t count = std::min(end - begin, blocks - first);
      BlockedConvArgs part = args;
      set_blocks(part, image, images, x, residual, out);
      table_.depthwise(part, first, first + count);
      begin += count;
    }
  });
}

/// Each block in bands of rows: they take too long for one look.
void BlockedDepthwise::run_bands(kernel::KernelContext& ctx, const microkernels::ConvShape& s, std::size_t bands,
                                 const BlockedConvArgs& args, std::size_t blocks, std::size_t images, const Tensor& x,
                                 const Tensor* residual, const Tensor& out) const {
  const std::size_t rows = ceil_div(s.out_h, bands), count = ceil_div(s.out_h, rows);
  ctx.parallel_for(images * blocks * count, kernel::kLookEveryNs, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t block = i / count % blocks, h = i % count * rows;
      BlockedConvArgs band = args;
      set_blocks(band, i / count / blocks, images, x, residual, out);
      band.shape.out_h = std::min(rows, s.out_h - h);
      band.shape.pad_top -= static_cast<std::ptrdiff_t>(h * s.stride_h);
      // The table takes earlier blocks to have as many rows as the band.
      const std::size_t before = (block * (s.out_h - band.shape.out_h) + h) * s.out_w * kChannelBlock;
      const auto skip = [&](auto*& from) {
        if (from != nullptr) from += before;
      };
      skip(band.output), skip(band.output_bf16), skip(band.residual), skip(band.residual_bf16);
      table_.depthwise(band, block, block + 1);
    }
  });
}

namespace {

/// The loops of a table with a matrix unit are those of AVX-512, or of bfloat16 numbers.
bool is_depthwise(const ConvSite& site) {
  return site.depthwise() && site.shape.out_channels == 1 && site.axes == 2 && !site.planes && site.rung == site.cpu;
}
/// Whether there are loops of its width of window.
bool has_own_loops(const microkernels::ConvShape& s) {
  const std::size_t widest = s.stride_w == 1 ? 9 : s.stride_w == 2 && s.dilation_w == 1 ? 7 : 0;
  return s.kernel_w % 2 == 1 && s.kernel_w >= 3 && s.kernel_w <= widest;
}

/// Positions that the loops make at once.
std::size_t tile_of(const ConvSite& site) {
  constexpr std::size_t kTile = 8, kWideTile = 14;
  return has_own_loops(site.shape) && site.shape.dilation_w == 1 && has_many_registers(site) ? kWideTile : kTile;
}

/// Blocks, multiply-adds of what is no padding, floats read, floats written, rows of the kernel at tiles of positions,
/// floats from far away.
cost::Terms terms(const ConvSite& site) {
  const microkernels::ConvShape& s = site.shape;
  const std::size_t parts = has_own_loops(s) ? s.dilation_w : 1;  // of a row
  const double channels = whole(site.groups, kChannelBlock), blocks = channels / number(kChannelBlock);
  const double rows = number(s.out_h * s.kernel_h) * seen_rows_share(s);
  return {blocks,
          channels * rows * number(s.out_w * s.kernel_w) * seen_columns_share(s),
          channels * number(s.in_h * s.in_w),
          channels * number(s.positions()),
          blocks * rows * number(parts * ceil_div(ceil_div(s.out_w, parts), tile_of(site))),
          far_floats(site)};
}

std::unique_ptr<BlockedRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<BlockedDepthwise>(info, site);
}

}  // namespace

void register_conv_blocked_depthwise(ConvMethods& methods) {
  methods.add({"blocked.depthwise", "one channel a group, channels in blocks, by loops for the window", 180,
               [](const ConvSite& site) { return is_depthwise(site) && has_own_loops(site.shape); }, terms, nullptr,
               make});
  methods.add({"blocked.depthwise.any", "one channel a group, channels in blocks, any window", 190,
               [](const ConvSite& site) { return is_depthwise(site) && !has_own_loops(site.shape); }, terms, nullptr,
               make});
}

}  // namespace infernode::ops
