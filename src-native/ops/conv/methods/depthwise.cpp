#include "ops/conv/methods/depthwise.h"

#include <algorithm>

#include "base/checked.h"
#include "kernel/watch.h"
#include "microkernels/conv/conv.h"
#include "ops/conv/methods/counts.h"

namespace infernode::ops {

using microkernels::ConvShape;

namespace {

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

constexpr double kFlopsPerNs = 8;

}  // namespace

std::size_t depthwise_bands(const ConvShape& plane) {
  constexpr double kBandFlops = kFlopsPerNs * kernel::kLookEveryNs;
  if (plane.in_d > 1 || plane.out_d > 1) return 1;
  return std::clamp<std::size_t>(
      static_cast<std::size_t>(2.0 * number(plane.positions() * plane.kernel_points()) / kBandFlops), 1,
      std::max<std::size_t>(1, plane.out_h));
}

void run_bands(const kernel::RunContext& run, const microkernels::ConvTable& table,
               const microkernels::DepthwiseArgs& args, std::size_t bands) {
  if (bands == 1) return table.depthwise(args);
  const ConvShape& s = args.shape;
  const std::size_t rows = ceil_div(s.out_h, bands);
  for (std::size_t h = 0; h < s.out_h; h += rows) {
    run.check();
    microkernels::DepthwiseArgs band = args;
    band.shape.out_h = std::min(rows, s.out_h - h);
    band.shape.pad_top = s.pad_top - static_cast<std::ptrdiff_t>(h * s.stride_h);
    if (args.residual != nullptr) band.residual += h * s.out_w;
    band.output += h * s.out_w;
    table.depthwise(band);
  }
}

void ConvDepthwise::run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
                        const microkernels::ActivationArgs& activation) const {
  const std::size_t planes = size(p.images * p.out_channels), out_channels = size(p.out_channels),
                    positions = p.shape.positions();
  const std::size_t points = p.shape.kernel_points(), multiplier = p.shape.out_channels;
  const std::size_t in_size = p.shape.in_d * p.shape.in_h * p.shape.in_w;
  ConvShape plane = p.shape;
  plane.out_channels = 1;
  const std::size_t bands = depthwise_bands(plane);
  ctx.parallel_for(
      planes, 2.0 * number(positions * points) / kFlopsPerNs, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin, count = 1; i < end; i += count) {
          const std::size_t channel = i % out_channels, image = i / out_channels;
          count = bands == 1 ? std::min(end - i, out_channels - channel) : 1;
          microkernels::DepthwiseArgs args{.shape = plane,
                                           .input = o.x + (image * size(p.channels) + channel / multiplier) * in_size,
                                           .weight = o.w + channel * points,
                                           .residual = o.residual == nullptr ? nullptr : o.residual + i * positions,
                                           .activation = activation,
                                           .output = o.y + i * positions,
                                           .planes = count,
                                           .biases = o.bias == nullptr ? nullptr : o.bias + channel,
                                           .made = multiplier,
                                           .before = channel % multiplier};
          run_bands(ctx.run(), table_, args, bands);
        }
      });
}

namespace {

bool is_strided(const ConvShape& s) { return s.stride_h != 1 || s.stride_w != 1; }
/// Those of AVX-512 are those of the matrix unit's table.
bool is_depthwise(const ConvSite& site) { return site.depthwise() && site.rung != CpuRung::Amx; }

/// Channels made, multiply-adds of whole vectors, floats of the input's planes laid out by phase, rows of them, rows
/// written, floats from far away.
template <bool kOfRows>
cost::Terms terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const double planes = number(site.groups * s.out_channels), rows = planes * number(s.out_h * s.out_d);
  const std::size_t pitch = phase_pitch(s);
  // The loops of any window go on from row to row.
  const double width = kOfRows ? whole(s.out_w, counted_lanes(site)) : number(pitch);
  const double laid = number(site.groups) * number(s.in_d) * number(phase_rows(s));
  return {planes, rows * width * number(s.kernel_points()), laid * number(pitch), laid, rows, far_floats(site)};
}

bool is_apart(const ConvSite& site) { return microkernels::parts_in_registers(site.shape, vector_lanes(site)); }

/// Planes, multiply-adds of whole vectors, floats read, vectors written, floats from far away. Rows of the input that
/// two rows of outputs see are read once for both.
cost::Terms apart_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const double planes = number(site.groups * s.out_channels), width = whole(s.out_w, counted_lanes(site)),
               outputs = planes * number(s.out_h) * width;
  const double rows =
      s.dilation_h == 1 && s.kernel_h > s.stride_h ? number(s.kernel_h + s.stride_h) / 2 : number(s.kernel_h);
  return {planes, outputs * number(s.kernel_points()), outputs * rows * number(s.stride_w),
          outputs / number(counted_lanes(site)), far_floats(site)};
}

/// Planes, pairs of rows of outputs, taps of them, rows of the input that they read, floats from far away.
cost::Terms short_terms(const ConvSite& site) {
  const ConvShape& s = site.shape;
  const double planes = number(site.groups * s.out_channels), pairs = planes * number(ceil_div(s.out_h, 2));
  return {planes, pairs, pairs * number(s.kernel_points()), pairs * number(2 * s.kernel_h), far_floats(site)};
}

std::unique_ptr<ConvRunner> make(kernel::KernelInfo&, const ConvSite& site) {
  return std::make_unique<ConvDepthwise>(site.kernels().conv);
}

enum class Loops : std::uint8_t { Any, Rows, WideRows, Apart, Short };
template <Loops kLoops, bool kStrided>
bool can_run(const ConvSite& site) {
  constexpr std::size_t kWide = 7;
  const ConvShape& s = site.shape;
  const Loops loops = microkernels::pairs_rows(s, counted_lanes(site)) ? Loops::Short
                      : is_apart(site)                                 ? Loops::Apart
                      : !microkernels::has_row_loops(s)                ? Loops::Any
                      : s.kernel_h < kWide                             ? Loops::Rows
                                                                       : Loops::WideRows;
  return is_depthwise(site) && loops == kLoops && is_strided(s) == kStrided;
}

}  // namespace

void register_conv_depthwise(ConvMethods& methods) {
  methods.add({"depthwise.rows", "one channel a group, windows of 2 to 5 rows that move by one: several rows at once",
               100, can_run<Loops::Rows, false>, terms<true>, make});
  methods.add({"depthwise.rows.strided", "the same for windows of 2 to 5 rows that move by 2 to 4", 102,
               can_run<Loops::Rows, true>, terms<true>, make});
  methods.add({"depthwise.wide", "the same for windows of 7, 9 or 11 rows", 104, can_run<Loops::WideRows, false>,
               terms<true>, make});
  methods.add({"depthwise.wide.strided", "the same for windows of 7, 9 or 11 rows, with strides", 106,
               can_run<Loops::WideRows, true>, terms<true>, make});
  methods.add({"depthwise.short",
               "one channel a group with strides, where a vector takes a row of the input and another two rows of the "
               "output: by permutations (AVX-512)",
               107, can_run<Loops::Short, true>, short_terms, make});
  methods.add({"depthwise.apart",
               "one channel a group, windows that are hardly wider than their stride of 2 to 4: rows are read where "
               "they lie and parted in registers",
               108, can_run<Loops::Apart, true>, apart_terms, make});
  methods.add(
      {"depthwise.strided", "one channel a group, with strides", 110, can_run<Loops::Any, true>, terms<false>, make});
  methods.add({"depthwise", "one channel a group", 120, can_run<Loops::Any, false>, terms<false>, make});
}

}  // namespace infernode::ops
