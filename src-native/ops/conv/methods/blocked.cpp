#include "ops/conv/methods/blocked.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "microkernels/common/split.h"
#include "microkernels/winograd/winograd.h"
#include "ops/conv/methods/blocked_terms.h"
#include "ops/conv/methods/counts.h"

namespace infernode::ops {

using microkernels::BlockedConvArgs;
using microkernels::BlockedGrid;
using microkernels::ConvShape;
using microkernels::kChannelBlock;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

ConvShape channels_of(const Shape& weight) {
  ConvShape s;
  s.out_channels = size(weight[0]);
  s.in_channels = size(weight[1]);
  s.kernel_h = size(weight[2]);
  s.kernel_w = size(weight[3]);
  return s;
}

/// Groups whose channels together fill blocks on both sides; 0 where none do.
std::size_t joined_groups(std::size_t groups, std::size_t in_channels, std::size_t out_channels) {
  for (std::size_t count = 1; count <= kChannelBlock && count <= groups; ++count) {
    if (groups % count == 0 && count * in_channels % kChannelBlock == 0 && count * out_channels % kChannelBlock == 0)
      return count;
  }
  return 0;
}

}  // namespace

std::size_t groups_in_blocks(const ConvSite& site) {
  return joined_groups(site.groups, site.shape.in_channels, site.shape.out_channels);
}

void set_blocks(BlockedConvArgs& args, std::size_t part, std::size_t parts, const Tensor& x, const Tensor* residual,
                const Tensor& out) {
  const auto at = [&](const Tensor& t) { return part * (size(t.numel()) / parts); };
  const auto halves = [&](const Tensor& t) { return static_cast<const std::uint16_t*>(t.raw()) + at(t); };
  if (x.dtype() == DType::BFloat16) {
    args.input_bf16 = halves(x);
  } else {
    args.input = x.data<float>() + at(x);
  }
  if (residual != nullptr && residual->dtype() == DType::BFloat16) {
    args.residual_bf16 = halves(*residual);
  } else if (residual != nullptr) {
    args.residual = residual->data<float>() + at(*residual);
  }
  if (out.dtype() == DType::BFloat16) {
    args.output_bf16 = static_cast<std::uint16_t*>(out.mutable_raw()) + at(out);
  } else {
    args.output = out.mutable_data<float>() + at(out);
  }
}

BlockedDense::BlockedDense(kernel::KernelInfo& info, const ConvSite& site, Way way)
    : table_(site.kernels().blocked_conv),
      winograd_table_(site.kernels().blocked_winograd),
      reduce_(site.kernels().reduce),
      way_(way),
      groups_(site.groups) {
  if (site.weight == nullptr) return;
  const Shape shape = site.weight->shape();
  const ConvShape joined = joined_shape(shape);
  packed_ =
      PackedWeight(info, 1, "conv", packing(site.planes).packed(joined, nullptr), size(shape[0]) / joined.out_channels,
                   [&](const Tensor& weight, std::size_t join, std::byte* to) {
                     pack(weight.data<float>(), shape, site.planes, join, to);
                   });
  info.release_constant(1);
}

/// Groups that are convolved as one.
ConvShape BlockedDense::joined_shape(const Shape& shape) const {
  ConvShape s = channels_of(shape);
  if (groups_ == 1) return s;
  const std::size_t made = s.out_channels / groups_, count = joined_groups(groups_, s.in_channels, made);
  s.out_channels = count * made;
  s.in_channels *= count;
  return s;
}

const microkernels::ConvPacking& BlockedDense::packing(bool planar) const {
  return planar ? table_.plane_weights : way_ == Way::Winograd ? *winograd_table_.weights : table_.weights;
}

/// Groups that are convolved as one see nothing of each other: zeros.
void BlockedDense::pack(const float* weight, const Shape& shape, bool planar, std::size_t join, std::byte* to) const {
  if (groups_ == 1) return packing(planar).pack(channels_of(shape), weight, to);
  const ConvShape s = joined_shape(shape);
  const std::size_t made = size(shape[0]) / groups_, seen = size(shape[1]) * s.kernel_points();
  std::vector<float> joined(s.out_channels * s.depth(), 0.0f);
  for (std::size_t m = 0; m < s.out_channels; ++m) {
    std::copy_n(weight + (join * s.out_channels + m) * seen, seen, joined.data() + m * s.depth() + m / made * seen);
  }
  packing(planar).pack(s, joined.data(), to);
}

void BlockedDense::run(kernel::KernelContext& ctx, const ConvProblem& p, BlockedConvArgs args, const Tensor& x,
                       const Tensor& w, const Tensor* residual, const Tensor& out) const {
  const microkernels::ConvPacking& reader = packing(args.planar);
  if (packed_ && !packed_.made_by(reader.name))
    fail(ErrorCode::ShapeMismatch, cat("BlockedConv was built for another layout than ", x.shape().to_string()));
  if (args.planar && p.shape.in_channels > microkernels::kMostPlanes)
    fail(ErrorCode::UnsupportedOperator, cat("BlockedConv takes ", p.shape.in_channels, " channels in blocks only"));
  ConvShape shape = p.shape;
  if (groups_ > 1) {
    const std::size_t count = joined_groups(groups_, shape.in_channels, shape.out_channels);
    shape.in_channels *= count;
    shape.out_channels *= count;
  }
  if (!table_.fits(shape))
    fail(ErrorCode::UnsupportedOperator, "BlockedConv's rows of input are too long to be kept at hand");
  const std::size_t joins = size(p.out_channels) / shape.out_channels;
  const auto fill = [&](std::size_t join, std::size_t, std::size_t, std::byte* to) {
    pack(w.data<float>(), w.shape(), args.planar, join, to);
  };
  const ConvShape joined = packed_ ? ConvShape{} : joined_shape(w.shape());
  const PackedWeight weight =
      packed_ ? packed_ : PackedWeight(ctx.run(), reader.packed(joined, nullptr), joins, joined.out_channels, fill);
  std::vector<microkernels::PackedOperand> weights(joins);
  for (std::size_t i = 0; i < joins; ++i) weights[i] = weight.read(reader.name, i);
  run_parts(ctx, p, shape, args, weights, x, residual, out);
  if (shape.in_channels > p.shape.in_channels) run_apart(ctx, p, shape, args, weights, x, residual, out);
}

/// Once more where the input holds NaN or infinities, which the zeros between groups that are convolved as one would
/// carry from one into another: each group of such a part with nothing beside it.
void BlockedDense::run_apart(kernel::KernelContext& ctx, const ConvProblem& p, const ConvShape& shape,
                             const BlockedConvArgs& all, Operands weights, const Tensor& x, const Tensor* residual,
                             const Tensor& out) const {
  const std::size_t joins = weights.size(), parts = size(p.images) * joins;
  const std::size_t count = shape.in_channels / p.shape.in_channels;
  ConvProblem one = p;
  one.images = 1;
  one.out_channels = static_cast<std::int64_t>(shape.out_channels);
  const auto part_over = [&](const Tensor& t, tensor::Buffer buffer) {
    const Shape of{1, t.dim(1) / static_cast<std::int64_t>(joins), t.dim(2), t.dim(3), t.dim(4)};
    return Tensor(t.dtype(), of, std::move(buffer));
  };
  const auto fresh = [&](const Tensor& like) { return part_over(like, ctx.scratch(like.bytes() / parts)); };
  for (const std::size_t part : beyond_numbers(ctx, reduce_, x, parts)) {
    const auto of = [&](const Tensor& t) {
      const std::size_t bytes = t.bytes() / parts;
      return part_over(t, t.buffer().slice(part * bytes, bytes));
    };
    BlockedConvArgs args = all;
    if (args.bias != nullptr) args.bias += part % joins * shape.out_channels;
    const Tensor whole = of(x), alone = fresh(x), result = fresh(out),
                 z = residual != nullptr ? of(*residual) : Tensor{};
    for (std::size_t group = 0; group < count; ++group) {
      take_group(whole, alone, p.shape.in_channels, count, group, true);
      run_parts(ctx, one, shape, args, weights.subspan(part % joins, 1), alone, residual != nullptr ? &z : nullptr,
                result);
      take_group(result, of(out), p.shape.out_channels, count, group, false);
    }
  }
}

/// Parts of the grid of each image, or of each of the groups that are convolved as one, in parallel.
void BlockedDense::run_parts(kernel::KernelContext& ctx, const ConvProblem& p, const ConvShape& shape,
                             const BlockedConvArgs& all, Operands weights, const Tensor& x, const Tensor* residual,
                             const Tensor& out) const {
  const bool winograd = way_ == Way::Winograd && winograd_table_.pays(shape);
  const BlockedGrid grid = (winograd ? winograd_table_.grid : table_.grid)(shape);
  const std::size_t scratch_floats = winograd ? winograd_table_.scratch_floats(shape) : table_.scratch_floats;
  const auto conv = winograd ? winograd_table_.conv : table_.conv;
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads), joins = weights.size(),
                    images = size(p.images) * joins;
  // Each part of rows reads all weights, each part of channels the input, so that both are cut as a product's are.
  const std::size_t channels = align_up(shape.out_channels, kChannelBlock), positions = shape.positions();
  const microkernels::GemmSplit split =
      microkernels::split_grid(ceil_div(positions, grid.rows), ceil_div(channels, grid.panels), positions, channels,
                               shape.depth(), images >= 4 * threads ? 1 : threads, {8, 8});
  const std::size_t by_row = std::min(split.count_m, grid.rows), by_panel = std::min(split.count_n, grid.panels);
  const std::size_t parts = by_panel * by_row;
  const std::size_t stride = align_up(checked_mul(scratch_floats, sizeof(float)), 64);
  const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
  constexpr double kFlopsPerNs = 80;
  const double cost = 2.0 * multiply_adds(shape) / number(parts) / kFlopsPerNs;
  struct Kept {
    microkernels::KeptInput input;
    std::size_t rows = static_cast<std::size_t>(-1);  // whose it is, of all images' parts of rows
  };
  std::vector<Kept> kept(threads);
  ctx.parallel_for(images * parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t image = i / parts, row = i % parts / by_panel, panel = i % by_panel, group = image % joins;
      BlockedConvArgs args = all;
      args.shape = shape;
      args.weights = weights[group];
      if (args.bias != nullptr) args.bias += group * shape.out_channels;
      set_blocks(args, image, images, x, residual, out);
      if (std::exchange(kept[slot].rows, i / by_panel) != i / by_panel) kept[slot].input.ready = false;
      args.kept_input = &kept[slot].input;
      conv(args,
           {row * grid.rows / by_row, (row + 1) * grid.rows / by_row, panel * grid.panels / by_panel,
            (panel + 1) * grid.panels / by_panel},
           reinterpret_cast<float*>(scratch.data() + slot * stride));
    }
  });
}

namespace {

/// With loops of a lower rung only where all loops of the CPU's read float32 blocks, too.
bool has_loops(const ConvSite& site) {
  return site.axes == 2 && site.shape.in_d == 1 &&
         (site.rung == site.cpu || !microkernels::kernel_set(site.cpu, site.loop_precision()).blocked_conv.takes_bf16);
}

bool fits(const ConvSite& site, const ConvShape& shape) {
  return has_loops(site) && site.kernels().blocked_conv.fits(shape);
}

bool can_run_blocks(const ConvSite& site) { return site.groups == 1 && !site.planes && fits(site, site.shape); }
bool can_run_points(const ConvSite& site) { return can_run_blocks(site) && is_point(site.shape); }
bool can_run_windows(const ConvSite& site) {
  constexpr double kMostTimes = 6;
  return can_run_blocks(site) && !is_point(site.shape) && times_laid(site, site.shape) <= kMostTimes;
}
bool can_run_planes(const ConvSite& site) {
  const bool takes_columns = site.shape.dilation_w == 1 && site.shape.kernel_points() > 1;  // as the unit's steps do
  return site.groups == 1 && (takes_columns || site.rung != CpuRung::Amx) && site.planes &&
         site.shape.in_channels <= microkernels::kMostPlanes && fits(site, site.shape);
}
bool can_run_winograd(const ConvSite& site) {
  const ConvShape& s = site.shape;
  return can_run_windows(site) && site.weight != nullptr && site.rung != CpuRung::Amx && is_winograd_window(s) &&
         site.kernels().blocked_winograd.pays(s);
}
bool fits_winograd(const ConvSite& site) {
  return microkernels::winograd_holds(site.shape.out_channels, site.shape.in_channels, site.weight->data<float>());
}
ConvShape joined_shape(const ConvSite& site) {
  ConvShape s = site.shape;
  const std::size_t count = groups_in_blocks(site);
  s.in_channels *= count;
  s.out_channels *= count;
  return s;
}
bool can_run_groups(const ConvSite& site) {
  return site.groups > 1 && !site.planes && !site.depthwise() && groups_in_blocks(site) > 0 &&
         fits(site, joined_shape(site));
}

cost::Terms group_terms(const ConvSite& site) {
  return blocked_terms(site, joined_shape(site), number(site.groups / groups_in_blocks(site)));
}

/// Calls, multiply-adds of tiles, inputs of tiles, floats written, weights transformed, floats from far away.
cost::Terms winograd_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const double tiles = whole(s.out_h, 2) / 2 * whole(s.out_w, 2) / 2, made = whole(s.out_channels, kChannelBlock),
               seen = whole(s.in_channels, kChannelBlock);
  return {1, 16 * made * seen * tiles, 16 * seen * tiles, made * number(s.positions()), made * seen, far_floats(site)};
}

template <BlockedDense::Way kWay>
std::unique_ptr<BlockedRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<BlockedDense>(info, site, kWay);
}
cost::Terms terms(const ConvSite& site) { return blocked_terms(site, site.shape, 1); }

}  // namespace

void register_conv_blocked(ConvMethods& methods) {
  methods.add_unit(
      {"blocked",
       "windows over rows of positions, channels in blocks. Of dilated windows only the rows of input that they see "
       "are laid out, and rows and columns of the kernel that see padding alone are left out: by rows of positions, on "
       "the matrix unit by bands of them. Where rows of output are short, tiles take positions of several",
       150, can_run_windows, terms, nullptr, make<BlockedDense::Way::Windows>});
  methods.add_unit({"blocked.points", "the same for windows of one place", 140, can_run_points, terms, nullptr,
                    make<BlockedDense::Way::Windows>});
  methods.add_unit({"blocked.planes", "the same for a first layer's few channels, which are read plane by plane", 160,
                    can_run_planes, terms, nullptr, make<BlockedDense::Way::Windows>});
  methods.add({"blocked.winograd", "transformed tiles, channels in blocks", 130, can_run_winograd, winograd_terms,
               nullptr, make<BlockedDense::Way::Winograd>, fits_winograd});
  methods.add_unit({"blocked.groups", "as many groups convolved as one as fill blocks", 170, can_run_groups,
                    group_terms, nullptr, make<BlockedDense::Way::Groups>});
}

}  // namespace infernode::ops
