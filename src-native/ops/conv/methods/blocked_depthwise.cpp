#include <algorithm>

#include "base/checked.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/blocked.h"
#include "ops/conv/methods/counts.h"

namespace infernode::ops {

using microkernels::BlockedConvArgs;
using microkernels::kChannelBlock;
using tensor::Tensor;

namespace {

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

std::size_t packed_bytes(const tensor::Shape& shape) {
  const std::size_t channels = align_up(size(shape[0]), kChannelBlock);
  return checked_mul(checked_mul(channels, size(shape[2] * shape[3])), sizeof(float));
}

}  // namespace

BlockedDepthwise::BlockedDepthwise(kernel::KernelInfo& info, const ConvSite& site)
    : table_(site.kernels().blocked_conv) {
  if (site.weight == nullptr) return;
  const tensor::Shape shape = site.weight->shape();
  packed_ = packed_weight(info, 1, cat("blocked.", table_.name, ".depthwise"), packed_bytes(shape),
                          [&](const Tensor& weight) { return pack(weight.data<float>(), shape); });
  info.release_constant(1);
}

/// [blocks][kernel points][kChannelBlock]
tensor::Buffer BlockedDepthwise::pack(const float* weight, const tensor::Shape& shape) {
  const std::size_t channels = size(shape[0]), points = size(shape[2] * shape[3]),
                    all = align_up(channels, kChannelBlock);
  tensor::Buffer packed = tensor::host_allocator().allocate(packed_bytes(shape));
  auto* out = reinterpret_cast<float*>(packed.data());
  for (std::size_t c = 0; c < all; ++c) {
    for (std::size_t i = 0; i < points; ++i) {
      out[(c / kChannelBlock * points + i) * kChannelBlock + c % kChannelBlock] =
          c < channels ? weight[c * points + i] : 0.0f;
    }
  }
  return packed;
}

void BlockedDepthwise::run(kernel::KernelContext& ctx, const ConvProblem& p, BlockedConvArgs args, const Tensor& x,
                           const Tensor& w, const Tensor* residual, const Tensor& out) const {
  if (args.planar) fail(ErrorCode::UnsupportedOperator, "BlockedConv of one channel a group takes blocks only");
  tensor::Buffer fresh;
  if (!packed_) fresh = pack(w.data<float>(), w.shape());
  args.packed_weight = reinterpret_cast<const float*>((packed_ ? packed_ : fresh).data());
  const std::size_t blocks = ceil_div(size(p.out_channels), kChannelBlock), images = size(p.images);
  constexpr double kFlopsPerNs = 40;
  const double cost = 2.0 * number(kChannelBlock * p.shape.positions() * p.shape.kernel_points());
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
  const bool many_registers = site.rung >= CpuRung::Avx512 || site.rung == CpuRung::Neon;
  return has_own_loops(site.shape) && site.shape.dilation_w == 1 && many_registers ? kWideTile : kTile;
}

/// Blocks, multiply-adds of what is no padding, floats read, floats written, rows of the kernel at tiles of positions.
cost::Terms terms(const ConvSite& site) {
  const microkernels::ConvShape& s = site.shape;
  const std::size_t parts = has_own_loops(s) ? s.dilation_w : 1;  // of a row
  const double channels = whole(site.groups, kChannelBlock), blocks = channels / number(kChannelBlock);
  const double rows = number(s.out_h * s.kernel_h) * seen_rows_share(s);
  return {blocks, channels * rows * number(s.out_w * s.kernel_w) * seen_columns_share(s),
          channels * number(s.in_h * s.in_w), channels * number(s.positions()),
          blocks * rows * number(parts * ceil_div(ceil_div(s.out_w, parts), tile_of(site)))};
}

std::unique_ptr<BlockedRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<BlockedDepthwise>(info, site);
}

}  // namespace

void register_conv_blocked_depthwise(ConvMethods& methods) {
  methods.add({"blocked.depthwise", 180,
               [](const ConvSite& site) { return is_depthwise(site) && has_own_loops(site.shape); }, terms, nullptr,
               make});
  methods.add({"blocked.depthwise.any", 190,
               [](const ConvSite& site) { return is_depthwise(site) && !has_own_loops(site.shape); }, terms, nullptr,
               make});
}

}  // namespace infernode::ops
