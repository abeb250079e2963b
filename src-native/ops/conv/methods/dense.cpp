#include <algorithm>

#include "base/checked.h"
#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/dense.h"

namespace infernode::ops {

using microkernels::ConvShape;
using microkernels::ConvWay;

namespace {

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
const microkernels::ConvTable& table_of(const ConvSite& site) { return site.kernels().conv; }

}  // namespace

ConvDense::ConvDense(kernel::KernelInfo& info, const ConvSite& site, ConvWay way)
    : table_(table_of(site)), way_(way), groups_(site.groups) {
  if (site.weight == nullptr) return;
  packed_ = PackedWeight(info, 1, "conv", table_.weights.packed(site.shape, nullptr), groups_,
                         [&](const tensor::Tensor& weight, std::size_t group, std::byte* to) {
                           pack(site.shape, weight.data<float>(), group, to);
                         });
  info.release_constant(1);
}

ConvDense::ConvDense(const microkernels::ConvTable& table, std::int64_t groups)
    : table_(table), way_(ConvWay::kAny), groups_(size(groups)) {}

void ConvDense::pack(const ConvShape& shape, const float* weight, std::size_t group, std::byte* to) const {
  table_.weights.pack(shape, weight + group * shape.out_channels * shape.depth(), to);
}

namespace {

/// Output channels of a fed weight that are packed at a time, and convolved as if they were all: so few that a look at
/// whether the run is to end does not wait long, so many that the columns they share cost little.
std::size_t channels_at_once(const ConvShape& s) {
  constexpr std::size_t kFloats = std::size_t{1} << 20, kLeast = 64;
  const std::size_t most = std::max(kLeast, kFloats / std::max<std::size_t>(1, s.depth()));
  if (s.out_channels <= most) return std::max<std::size_t>(1, s.out_channels);
  return align_up(ceil_div(s.out_channels, ceil_div(s.out_channels, most)), kLeast);
}

/// Ranges of the outputs. The loops over shifted rows make whole rows, whatever part of them a range has: theirs are of
/// rows.
microkernels::GemmSplit split_of(const microkernels::ConvTable& table, const microkernels::ConvShape& s, ConvWay way,
                                 std::size_t workers) {
  if (way != ConvWay::kDirect || !table.runs(way, s)) return microkernels::split_conv(table, s, workers);
  microkernels::GemmSplit split =
      microkernels::split_grid(table.mr, 1, s.out_channels, s.out_d * s.out_h, s.depth() * s.out_w, workers, {4, 32});
  split.tile_n *= s.out_w;
  return split;
}

}  // namespace

void ConvDense::run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
                    const microkernels::ActivationArgs& activation) const {
  const std::size_t depth = p.shape.depth(), positions = p.shape.positions(), groups = size(p.groups);
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads), made = p.shape.out_channels;
  const std::size_t channels = packed_ ? made : channels_at_once(p.shape);
  const std::size_t pieces = packed_ ? 1 : ceil_div(made, channels), products = size(p.images) * groups * pieces;
  const auto piece_of = [&](std::size_t piece) {
    ConvShape shape = p.shape;
    shape.out_channels = std::min(channels, made - piece * channels);
    return shape;
  };
  ConvShape whole = p.shape;
  whole.out_channels = channels;
  const auto fill = [&](std::size_t i, std::size_t, std::size_t, std::byte* to) {
    const std::size_t first = i / pieces * made + i % pieces * channels;
    table_.weights.pack(piece_of(i % pieces), o.w + first * depth, to);
  };
  const PackedWeight weights =
      packed_ ? packed_
              : PackedWeight(ctx.run(), table_.weights.packed(whole, nullptr), groups * pieces, channels, fill);
  const microkernels::GemmSplit split = split_of(table_, whole, way_, ceil_div(threads, std::min(products, threads)));
  const std::size_t stride = align_up(table_.scratch_floats * sizeof(float), 64);
  const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
  const std::size_t in_size = p.shape.in_channels * p.shape.in_d * p.shape.in_h * p.shape.in_w;
  constexpr double kFlopsPerNs = 40;
  const double cost = 2.0 * number(channels * positions) * number(depth) / number(split.count()) / kFlopsPerNs;
  ctx.parallel_for(products * split.count(), cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    auto* memory = reinterpret_cast<float*>(scratch.data() + slot * stride);
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t product = i / split.count() / pieces, piece = i / split.count() % pieces,
                        group = product % groups, first = piece * channels;
      const std::size_t at = (product * made + first) * positions;
      const ConvShape shape = piece_of(piece);
      const microkernels::ConvArgs args{
          .shape = shape,
          .input = o.x + product * in_size,
          .weights = table_.weights.packed(shape, weights.read(table_.weights.name, group * pieces + piece).data),
          .bias = o.bias == nullptr ? nullptr : o.bias + group * made + first,
          .residual = o.residual == nullptr ? nullptr : o.residual + at,
          .activation = activation,
          .output = o.y + at,
          .way = way_,
      };
      table_.conv(args, split.range(i % split.count(), shape.out_channels, positions), memory);
    }
  });
}

namespace {

/// Depthwise convolutions have their own loops, which are better where a channel makes one or two. Symbols' lengths are
/// not relied on: `conv` falls back where a way does not run.
bool can_run(const ConvSite& site, ConvWay way) {
  constexpr std::size_t kMostMade = 2;
  return (!site.depthwise() || site.shape.out_channels > kMostMade) &&
         (way == ConvWay::kUnit) == (site.rung == CpuRung::Amx) && table_of(site).runs(way, site.shape);
}
template <ConvWay kWay>
bool can_run_by(const ConvSite& site) {
  return can_run(site, kWay);
}
template <ConvWay kWay>
std::unique_ptr<ConvRunner> make_by(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvDense>(info, site, kWay);
}

/// Calls, multiply-adds, gathered floats, weights read.
cost::Terms few_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const double groups = number(site.groups);
  return {groups, groups * multiply_adds(s), groups * number(s.depth() * s.positions()),
          groups * number(s.out_channels) * number(s.depth())};
}

/// Calls, multiply-adds along padded rows, floats of padded rows, segments of rows written and laid out, places passed
/// over between those that are laid out, weights read, inputs from far away.
cost::Terms direct_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const std::size_t nr = table_of(site).nr, pitch = phase_pitch(s), places = (s.out_h - 1) * pitch + s.out_w;
  const double groups = number(site.groups), panels = number(ceil_div(places, nr));
  const double rows = groups * number(s.in_channels * phase_rows(s));
  const double laid = rows * number(pitch);
  return {groups,
          groups * number(s.out_channels) * number(s.depth()) * whole(places, counted_lanes(site)),
          laid,
          groups * number(s.out_channels) * (number(s.out_h) + panels) + rows,
          laid * number(s.stride_w - 1),
          groups * number(s.out_channels) * number(s.depth()) * panels,
          far_floats(groups * input_floats(s))};
}

/// Calls, multiply-adds, packed floats, runs of them, floats written once a block of k, places of rows of which only
/// some are packed, weights read, floats from far away.
cost::Terms columns_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const std::size_t nr = table_of(site).nr, positions = s.positions();
  constexpr std::size_t kBlock = 256;  // of k, about
  const double groups = number(site.groups), filled = whole(positions, nr), depth = number(s.depth());
  const bool plain = s.kernel_points() == 1 && s.stride_d == 1 && s.stride_h == 1 && s.stride_w == 1;
  const bool in_place = plain && s.out_channels <= 2 * table_of(site).mr;
  const double rows = number(s.out_h * s.out_d), panels = filled / number(nr);
  // In place are whole panels: the last one is packed where it is none.
  const double packed = !in_place ? panels : positions % nr == 0 ? 0 : 1;
  const double runs = plain ? packed : rows + panels;
  return {groups,
          groups * number(s.out_channels) * depth * whole(positions, counted_lanes(site)),
          groups * depth * packed * number(nr),
          groups * depth * runs,
          groups * output_floats(s) * whole(s.depth(), kBlock) / number(kBlock),
          s.stride_w > 1 ? groups * depth / number(s.kernel_w) * rows * number(s.in_w) : 0,
          groups * number(s.out_channels) * depth * panels,
          far_floats(site)};
}

/// Calls, multiply-adds of whole tiles, words split in whole vectors, floats written, floats from far away, words of
/// rows of longer strides that are read one by one.
cost::Terms unit_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  constexpr std::size_t kTile = 32, kVector = 16, kMostStride = 2;
  const std::size_t width = phase_pitch(s), rows = s.out_h + (s.kernel_h - 1) * s.dilation_h / s.stride_h;
  const double phases =
      number(phases_seen(s.kernel_h, s.stride_h, s.dilation_h) * phases_seen(s.kernel_w, s.stride_w, s.dilation_w));
  const double groups = number(site.groups), channels = whole(s.in_channels, kTile),
               planes = groups * channels * phases * number(s.kernel_d * s.out_d);
  const double places = whole((s.out_h - 1) * width + s.out_w, kTile) * number(s.out_d);
  const std::size_t input_rows = std::min(rows, ceil_div(s.in_h, s.stride_h)),
                    input_width = std::min(width, ceil_div(s.in_w, s.stride_w));
  return {groups,
          groups * whole(s.out_channels, kTile) * channels * number(s.kernel_points()) * places,
          planes * number(rows) * whole(width, kVector),
          groups * output_floats(s),
          far_floats(site),
          s.stride_w > kMostStride ? planes * number(input_rows) * whole(input_width, kVector) : 0};
}

}  // namespace

void register_conv_dense(ConvMethods& methods) {
  methods.add({"few", "dot products for up to eight positions", 60, can_run_by<ConvWay::kFew>, few_terms,
               make_by<ConvWay::kFew>});
  methods.add({"direct", "shifted rows of the padded input, parted by phase where there are strides", 70,
               can_run_by<ConvWay::kDirect>, direct_terms, make_by<ConvWay::kDirect>});
  methods.add({"columns",
               "packed columns: takes every shape; of windows of one point and few output channels the input is read "
               "as it lies",
               80, can_run_by<ConvWay::kColumns>, columns_terms, make_by<ConvWay::kColumns>});
  methods.add_unit(
      {"unit", "images on the matrix unit", 90, can_run_by<ConvWay::kUnit>, unit_terms, make_by<ConvWay::kUnit>});
}

}  // namespace infernode::ops
