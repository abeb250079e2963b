#include "ops/conv/methods/blocked_terms.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "ops/conv/methods/counts.h"

namespace infernode::ops {

using microkernels::ConvShape;
using microkernels::kChannelBlock;

namespace {

constexpr std::size_t kPointRow = 48;       // positions of a row where they all lie in one
constexpr std::size_t kBandFloats = 98304;  // of input that a band of the vector loops sees

/// Bands of an output, and rows of input that all of them see, those that two see twice.
struct Bands {
  std::size_t count, rows;  ///< of the output
  double places;            ///< of the input
};

std::size_t reach_w(const ConvShape& s) { return (s.kernel_w - 1) * s.dilation_w; }
std::size_t seen_width(const ConvShape& s) { return (s.out_w - 1) * s.stride_w + reach_w(s) + 1; }

/// Rows of input that are laid out for so many of the output: of a dilated kernel those that its rows see.
std::size_t lines_of(const ConvShape& s, std::size_t rows) {
  const std::size_t of_row = (rows - 1) * s.stride_h + 1;
  return (s.kernel_h - 1) * std::min(s.dilation_h, of_row) + of_row;
}

/// Where a row of input takes `row` of `most`.
Bands bands(const ConvShape& s, std::size_t row, std::size_t most) {
  if (is_point(s)) {
    const std::size_t rows = ceil_div(s.positions(), kPointRow);
    return {ceil_div(rows, std::max<std::size_t>(1, most / row)), s.out_h, number(s.positions())};
  }
  const std::size_t strips = std::max<std::size_t>(1, ceil_div(row * s.kernel_h, most)), kept = most * strips / row;
  const std::size_t reach = (s.kernel_h - 1) * s.dilation_h, each = std::max<std::size_t>(1, kept / s.kernel_h);
  const std::size_t dense = kept <= reach ? 1 : (kept - reach - 1) / s.stride_h + 1,
                    apart = (std::min(each, s.dilation_h) - 1) / s.stride_h + 1;
  const std::size_t band = std::min(s.out_h, std::max(dense, apart));
  const std::size_t count = ceil_div(s.out_h, band);
  return {count * strips, band, number(count * lines_of(s, band)) * number(seen_width(s))};
}

/// Channels that the loops sum up before others: fewer than all where the weights of a panel would not stay near.
std::size_t channels_at_once(const ConvSite& site, const ConvShape& s) {
  constexpr std::size_t kNearWeights = 98304, kLongSum = 256;
  const std::size_t all = align_up(s.in_channels, site.planes ? 1 : kChannelBlock);
  if (site.planes || is_point(s) || site.kernels().conv.nr * s.depth() <= kNearWeights) return all;
  const std::size_t fitting = kBandFloats / kChannelBlock / (lines_of(s, s.out_h) * seen_width(s));
  return std::min(all, kChannelBlock * std::max(fitting, ceil_div(kLongSum, kChannelBlock * s.kernel_points())));
}

Bands vector_bands(const ConvSite& site, const ConvShape& s) {
  constexpr std::size_t kPointFloats = 65536;
  const std::size_t channels = channels_at_once(site, s);
  return is_point(s) ? bands(s, channels * kPointRow, kPointFloats) : bands(s, channels * seen_width(s), kBandFloats);
}

/// Of bytes of images.
Bands unit_bands(const ConvSite& site, const ConvShape& s) {
  constexpr std::size_t kBandBytes = 768 << 10, kPlaceBytes = 64;
  const std::size_t channels = align_up(s.in_channels, site.planes ? 1 : 2 * kChannelBlock),
                    pieces = 3 - static_cast<std::size_t>(site.loop_precision());
  const std::size_t place_bytes = pieces * kPlaceBytes * ceil_div(channels, 2 * kChannelBlock);
  return bands(s, place_bytes * (is_point(s) ? kPointRow : seen_width(s)), kBandBytes);
}

/// Positions of rows that tiles of at most `most` compute, of several rows where these are short, and how many tiles
/// they are: a tile of fewer than four waits for its sums as long as one of four.
struct Tiles {
  double positions, count;
};
Tiles tiles_of(std::size_t rows, std::size_t width, std::size_t most) {
  constexpr std::size_t kMostLines = 6;
  constexpr double kFewest = 4;
  const std::size_t count = ceil_div(width, most), of_row = ceil_div(width, count), last = width - (count - 1) * of_row;
  const std::size_t groups = ceil_div(rows, std::min(kMostLines, most / of_row));
  const double lines = number(rows) / number(groups);
  return {number(groups) *
              (number(count - 1) * std::max(number(of_row) * lines, kFewest) + std::max(number(last) * lines, kFewest)),
          number(groups * count)};
}

/// Whether the input is read where it lies.
bool reads_in_place(const ConvShape& s) {
  if (is_point(s)) return s.stride_h == 1 && s.stride_w == 1 && s.out_h == s.in_h && s.out_w == s.in_w;
  return s.pad_top == 0 && s.pad_left == 0 && seen_width(s) <= s.in_w &&
         (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h < s.in_h;
}

/// Of the weights that a panel of channels reads, the share that no cache of one core keeps from row to row.
double far_share(double panel_floats) {
  constexpr double kNear = 98304;
  return std::max(0.0, 1 - kNear / panel_floats);
}

cost::Terms vector_terms(const ConvSite& site, const ConvShape& s, double calls) {
  const std::size_t channels = align_up(s.in_channels, site.planes ? 1 : kChannelBlock);
  const double made = whole(s.out_channels, kChannelBlock), depth = number(s.depth());
  const bool point = is_point(s);
  // The loops leave out channels that fill the last block, rows of the kernel in padding, and columns where it is
  // dilated.
  const double seen = depth * seen_rows_share(s) * (s.dilation_w > 1 && s.kernel_w > 1 ? seen_columns_share(s) : 1);
  const Bands cut = vector_bands(site, s);
  const std::size_t most = site.kernels().conv.mr, point_rows = ceil_div(s.positions(), kPointRow);
  Tiles tiles = tiles_of(point ? 1 : s.out_h, point ? ceil_div(s.positions(), point_rows) : s.out_w, most);
  if (point) tiles = {tiles.positions * number(point_rows), tiles.count * number(point_rows)};
  const double tile_weights = calls * made * seen * tiles.count;
  return {calls,
          calls * made * seen * tiles.positions,
          tile_weights,
          reads_in_place(s) ? 0 : calls * number(channels) * cut.places,
          calls * made * number(s.positions()),
          calls * made * depth * number(cut.count),
          far_floats(site),
          channels_at_once(site, s) < channels ? 0 : tile_weights * far_share(number(site.kernels().conv.nr) * depth)};
}

/// Products that the unit sums up for one output. Its steps take 32 inputs: two blocks of channels, or of planes the
/// columns of a row of the kernel that so many values hold.
std::size_t unit_depth(const ConvSite& site, const ConvShape& s) {
  constexpr std::size_t kStep = 2 * kChannelBlock;
  if (!site.planes) return align_up(s.in_channels, kStep) * s.kernel_points();
  const std::size_t columns = kStep / std::bit_ceil(std::max<std::size_t>(2, s.in_channels));
  return kStep * s.kernel_h * ceil_div(s.kernel_w, columns);
}

cost::Terms unit_terms(const ConvSite& site, const ConvShape& s, double calls) {
  constexpr std::size_t kTile = 16, kFewestCycles = 13;
  const std::size_t block = site.planes ? 1 : 2 * kChannelBlock, channels = align_up(s.in_channels, block);
  const double made = whole(s.out_channels, kChannelBlock), depth = number(unit_depth(site, s));
  const bool point = is_point(s);
  const Bands cut = unit_bands(site, s);
  const double seen = depth * seen_rows_share(s, cut.rows);  // bands leave out rows of the kernel in padding
  const std::size_t positions = s.positions(), point_rows = ceil_div(positions, kPointRow),
                    width = point ? ceil_div(positions, point_rows) : s.out_w, tiles = ceil_div(width, kTile),
                    rows = ceil_div(width, tiles);
  double cycles = number((point ? point_rows : s.out_h) * tiles * std::max(rows, kFewestCycles));
  const bool runs = !point && s.stride_h == 1 && s.stride_w == 1;  // tiles may go on from row to row
  if (runs) cycles = std::min(cycles, whole(s.out_h * seen_width(s), kTile));
  return {calls,
          calls * made * seen * cycles,
          calls * number(channels) * cut.places,
          calls * made * number(positions),
          calls * made * depth * number(cut.count),
          calls * made * seen * number(positions),
          far_floats(site)};
}

}  // namespace

bool is_point(const ConvShape& s) { return s.kernel_points() == 1 && s.pad_top == 0 && s.pad_left == 0; }

double times_laid(const ConvSite& site, const ConvShape& s) {
  if (is_point(s)) return 1;
  const double places = site.rung == CpuRung::Amx ? unit_bands(site, s).places : vector_bands(site, s).places;
  return places / (number(s.in_h) * number(s.in_w));
}

cost::Terms blocked_terms(const ConvSite& site, const ConvShape& s, double calls) {
  return site.rung == CpuRung::Amx ? unit_terms(site, s, calls) : vector_terms(site, s, calls);
}

}  // namespace infernode::ops
