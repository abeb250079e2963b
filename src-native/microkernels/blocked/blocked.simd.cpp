#include "microkernels/blocked/blocked.h"

#include "microkernels/blocked/detail/depthwise.simd.h"
#include "microkernels/blocked/detail/kernel_points.h"
#include "microkernels/blocked/detail/lay_out.simd.h"
#include "microkernels/blocked/detail/tiles.simd.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/common/tiles.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kScratchFloats = 98304;  // padded rows of input: they fit a second-level cache
constexpr std::size_t kGroupFloats = 65536;    // of input that panels of channels pass over at a time
constexpr std::size_t kMostPlaces = 512;       // of a window that are listed
constexpr std::size_t kFlatRow = 4 * kMr;      // positions of a row where rows may be cut anywhere

static_assert(kChannelBlock % kLanes == 0 && (kNr % kChannelBlock == 0 || kChannelBlock % kNr == 0));

// Columns of input from the first that `count` positions see to the last.
std::size_t seen_columns(const ConvShape& s, std::size_t count) noexcept {
  return (count - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
}

// What the kernel sees of the input: of each axis from the first position to the last.
std::size_t seen_width(const ConvShape& s) noexcept { return seen_columns(s, s.out_w); }
std::size_t seen_rows(const ConvShape& s, std::size_t out_rows) noexcept {
  return (out_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
}
// Whether all of that is there.
bool is_inside(const ConvShape& s) noexcept {
  return s.pad_top == 0 && s.pad_left == 0 && seen_width(s) <= s.in_w && seen_rows(s, s.out_h) <= s.in_h;
}

// A kernel of one point without borders: rows of positions may be cut anywhere.
bool is_flat(const ConvShape& s) noexcept { return s.kernel_h == 1 && s.kernel_w == 1 && is_inside(s); }
// Positions are the input's own.
bool is_whole(const ConvShape& s) noexcept {
  return is_flat(s) && s.stride_h == 1 && s.stride_w == 1 && s.in_h == s.out_h && s.in_w == s.out_w;
}

std::size_t input_floats(const ConvShape& s) noexcept { return channel_blocks(s.in_channels) * kChannelBlock; }

// Channels of the output that are computed: of kernels of one point whole vectors, where panels are of whole blocks.
// Winograd's loops read the weights of others, by blocks.
std::size_t made_channels(const ConvShape& s) noexcept {
  const bool vectors = s.kernel_points() == 1 && kNr % kChannelBlock == 0 && kLanes < kChannelBlock;
  const std::size_t of = vectors ? kLanes : kChannelBlock;
  return divide_up(s.out_channels, of) * of;
}

// Positions of a row of the grid.
std::size_t row_length(const ConvShape& s) noexcept {
  if (!is_flat(s)) return s.out_w;
  const std::size_t most = is_whole(s) ? kFlatRow : smaller(kFlatRow, kScratchFloats / input_floats(s));
  const std::size_t rows = divide_up(s.positions(), most);
  return divide_up(s.positions(), rows > 1 ? rows + rows % 2 : rows);  // for two threads to share
}

// Columns of the output that are worked on at a time, by `floats` of each place: all of them where scratch holds the
// rows of input they need.
std::size_t strip_width(const ConvShape& s, bool copies, std::size_t floats) noexcept {
  const std::size_t most = kScratchFloats / (SeenLines(s, 1).count * floats), kernel = seen_columns(s, 1);
  if (!copies || seen_width(s) <= most) return s.out_w;
  return divide_up(s.out_w, divide_up(s.out_w, (most - kernel) / s.stride_w + 1));
}

bool fits(const ConvShape& s) noexcept {
  return s.in_d == 1 && s.kernel_d == 1 && s.out_d == 1 &&
         SeenLines(s, 1).count * seen_columns(s, 1) * input_floats(s) <= kScratchFloats;
}

BlockedGrid grid(const ConvShape& s) noexcept {
  return {is_flat(s) ? divide_up(s.positions(), row_length(s)) : s.out_h, divide_up(made_channels(s), kNr)};
}

// ---- Weights: a panel of channels after the other, each [k][channels]; k runs over what a tile reads, in its order
// ----

PackedForm packed_form(const ConvShape&) noexcept { return PackedForm::kFloats; }

std::size_t packed_bytes(const ConvShape& s) noexcept { return made_channels(s) * s.depth() * sizeof(float); }

// Of an input that lies in blocks of so many channels.
template <std::size_t kBlock>
void pack(const ConvShape& s, const float* weight, void* to) noexcept {
  const std::size_t all = made_channels(s), points = s.kernel_points();
  auto* out = static_cast<float*>(to);
  for (std::size_t n0 = 0; n0 < all; n0 += kNr) {
    const std::size_t cols = smaller(kNr, all - n0);
    for (std::size_t c0 = 0; c0 < s.in_channels; c0 += kBlock) {
      for (std::size_t point = 0; point < points; ++point) {
        for (std::size_t c = c0; c < smaller(c0 + kBlock, s.in_channels); ++c, out += cols) {
          for (std::size_t n = n0; n < n0 + cols; ++n)
            out[n - n0] = n < s.out_channels ? weight[(n * s.in_channels + c) * points + point] : 0.0f;
        }
      }
    }
  }
}

// ---- Dense ----

// Rows [r0, r1) of the grid and columns [c0, c1) of them, whose input lies from `base` on.
struct Band {
  const float* base;
  std::size_t row_floats;  // of the input, from a row to the next
  std::size_t r0, r1, c0, c1;
  std::size_t width;  // of rows of the grid
  bool shortened;     // some rows see only some rows of the kernel,
  bool parted;        // some positions only some columns
  bool finishes;      // whether no blocks of input follow
  std::size_t lines;  // that tiles take positions of at a time
};

// Blocks of input that are summed up before others: all of them, or as many as make long sums where a panel's weights
// do not stay near from band to band and there are several bands.
std::size_t blocks_at_once(const BlockedConvArgs& args) noexcept {
  constexpr std::size_t kNearWeights = 98304, kLongSum = 256;
  const ConvShape& s = args.shape;
  const std::size_t all = channel_blocks(s.in_channels), of_block = kChannelBlock * s.kernel_points();
  if (is_flat(s) || kNr * s.depth() <= kNearWeights) return all;
  const std::size_t places = SeenLines(s, s.out_h).count * seen_width(s),
                    fitting = kScratchFloats / kChannelBlock / places;
  return smaller(all, larger(fitting, divide_up(kLongSum, of_block)));
}

// The tile computes `count` positions of each of `lines` rows and moves on to those that follow.
void compute_tile(const Panel& panel, std::size_t lines, std::size_t count, Tile& t) noexcept {
  const std::size_t v = panel.cols / kLanes - 1;
  (lines > 1      ? kBlockedTiles.joined[lines - 2][count - 1][v]
   : panel.narrow ? kBlockedTiles.narrow[count - 1]
                  : kBlockedTiles.sum[count - 1][v])(t);
  advance(t, count, t.step);
}

std::size_t tile_positions(const Panel& panel, std::size_t lines, std::size_t count) noexcept {
  return tile_rows(count, lines > 1 ? kMr / lines : panel.narrow ? kNarrowMr : kMr);
}

// Positions [begin, end) of some output rows, from t.x to t.y.
void conv_rows(const Panel& panel, std::size_t lines, std::size_t begin, std::size_t end, Tile& t) noexcept {
  const std::size_t most = tile_positions(panel, lines, end - begin);
  const bool point = t.rows * t.columns == 1 && t.step == kChannelBlock && t.block.length == kChannelBlock,
             listed = t.places && t.rows == panel.rows && t.columns == panel.columns;
  if ((point || listed) && t.blocks <= t.group && lines == 1 && most <= kMr) {
    const auto& tiles = listed ? kBlockedTiles.listed : kBlockedTiles.points;
    if (const TilesFunction all = tiles[most - 1][panel.cols / kLanes - 1]) {
      const std::size_t count = (end - begin) / most;
      all(t, count);
      begin += count * most;
    }
  }
  for (; begin < end; begin += most) compute_tile(panel, lines, smaller(most, end - begin), t);
}

// The same of a dilated kernel whose columns see padding; the first position sees the input from `x` on.
void conv_dilated_rows(const ConvShape& s, const Panel& panel, const Reach& rows, std::size_t lines, std::size_t begin,
                       std::size_t end, const float* x, Tile& t) noexcept {
  const std::size_t most = tile_positions(panel, lines, end - begin);
  while (begin < end) {
    const Piece piece = piece_of_row(s, begin, end, most);
    take_points(panel, rows, piece.columns, x, t);
    compute_tile(panel, lines, piece.end - begin, t);
    x += (piece.end - begin) * t.step;
    begin = piece.end;
  }
}

// Of how many rows a tile takes positions: more than one where that of a row, about, leaves room for as many again.
std::size_t lines_at_once(const ConvShape& s, const Band& band) noexcept {
  std::size_t pieces = 0, width = band.c1 - band.c0;
  if (band.parted) {
    for (std::size_t w = band.c0; w < band.c1; ++pieces) w = piece_of_row(s, w, band.c1, kMr).end;
  }
  const std::size_t positions = divide_up(width, larger(pieces, divide_up(width, tile_rows(width))));
  const std::size_t rows = band.r1 - band.r0, most = smaller(kMostLines, kMr / positions);
  return divide_up(rows, divide_up(rows, most));
}

// How many rows from r on, up to band.lines, see the same rows of the kernel, or about the same where it is not
// dilated; `seen` becomes those rows of the kernel.
std::size_t lines_alike(const ConvShape& s, const Band& band, std::size_t r, Reach& seen) noexcept {
  std::size_t lines = smaller(band.lines, band.r1 - r);
  if (!band.shortened) return lines;
  const auto rows_of = [&](std::size_t from, std::size_t to) {
    return reach_of(from, to, s.stride_h, s.kernel_h, s.dilation_h, s.pad_top, s.in_h);
  };
  seen = rows_of(r, r + 1);
  if (s.dilation_h == 1) {
    seen = rows_of(r, r + lines);
  } else {
    for (Reach last = rows_of(r + lines - 1, r + lines); last.first != seen.first || last.end != seen.end;
         last = rows_of(r + lines - 1, r + lines))
      --lines;
  }
  return lines;
}

// Lists the places of a window whose runs are short, for tiles to go over in one loop.
void list_places(const Panel& panel, std::uint32_t* places, Tile& t) noexcept {
  std::uint32_t* place = places;
  for (std::size_t b = 0; b < t.blocks; ++b) {
    const std::size_t length = (b + 1 == t.blocks ? t.last : t.block).length;
    for (std::size_t h = 0; h < panel.rows; ++h) {
      for (std::size_t c = 0; c < panel.columns; ++c) {
        for (std::size_t i = 0; i < length; ++i)
          *place++ = static_cast<std::uint32_t>(b * t.block_step + h * t.row_step + c * t.column_step + i);
      }
    }
  }
  t.places = places;
  t.places_end = place;
}

// All of a band by a panel, whose first place in the output is `block`; its weights from t.weight on.
void conv_panel(const BlockedConvArgs& args, const Band& band, const Panel& panel, std::size_t block,
                Tile& t) noexcept {
  const ConvShape& s = args.shape;
  const float* ahead = t.ahead;
  const float* row = band.base;
  Reach seen{0, s.kernel_h};
  take_points(panel, seen, {0, panel.columns}, row, t);
  for (std::size_t r = band.r0; r < band.r1;) {
    const std::size_t lines = lines_alike(s, band, r, seen);
    const std::size_t first = r * band.width, end = smaller(band.c1, s.positions() - first);
    const std::size_t at = block + (first + band.c0) * kChannelBlock;
    t.y = args.output + at;
    t.residual = band.finishes && args.residual ? args.residual + at : nullptr;
    t.ahead = ahead;
    if (band.parted) {
      conv_dilated_rows(s, panel, seen, lines, band.c0, end, row, t);
    } else {
      if (band.shortened) {
        take_points(panel, seen, {0, panel.columns}, row, t);
      } else {
        t.x = row;
      }
      conv_rows(panel, lines, band.c0, end, t);
    }
    ahead += t.ahead_lines * t.blocks * kLine * divide_up(band.width, kMr);
    row += lines * band.row_floats;
    r += lines;
  }
}

// Blocks of input, or planes, that are summed up together.
struct Part {
  std::size_t first, blocks;
  bool finishes;  // whether no others follow
};

// What tiles of all bands and panels have in common. `joined`: columns of the kernel are one run.
Tile tile_of(const BlockedConvArgs& args, const Part& part, bool joined) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t channels = args.planar ? 1 : kChannelBlock;
  const bool whole = args.planar || !part.finishes || s.in_channels % kChannelBlock == 0;
  const ClampBounds bounds = clamp_bounds(part.finishes ? args.activation : ActivationArgs{});
  Tile t{};
  t.step = is_flat(s) ? channels : s.stride_w * channels;
  t.blocks = part.blocks;
  t.column_step = s.dilation_w * channels;
  t.block.length = joined ? s.kernel_w * channels : channels;
  t.last.length = whole ? t.block.length : s.in_channels % kChannelBlock;
  t.group = larger(kGemmBlockK / (channels * s.kernel_points()), std::size_t{1});
  t.plane = s.positions() * kChannelBlock;
  t.line = row_length(s) * kChannelBlock;
  t.low = bounds.low;
  t.high = bounds.high;
  t.activation = !part.finishes || is_clamp(args.activation) ? nullptr : &args.activation;
  t.adds = part.first > 0;
  return t;
}

void conv_blocks(BlockedConvArgs args, const BlockedRange& range, const Part& some, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  args.input += some.first * kChannelBlock * s.in_h * s.in_w;
  const bool flat = is_flat(s), copies = args.turned || (flat ? !is_whole(s) : !is_inside(s));
  const std::size_t channels = args.planar ? 1 : kChannelBlock;  // of a place in the input
  const std::size_t positions = s.positions(), width = row_length(s), depth = s.depth();
  const std::size_t all = made_channels(s);
  const std::size_t place_floats = args.planar ? input_floats(s) : some.blocks * kChannelBlock;
  const bool joined = s.dilation_w == 1 && (args.planar || s.in_channels % kChannelBlock == 0);
  Tile t = tile_of(args, some, joined);
  const bool lists = !flat && depth <= kMostPlaces && t.last.length < kChannelBlock && t.blocks <= t.group;
  std::uint32_t places[kMostPlaces];

  // Rows of output whose input is used while it is near.
  const std::size_t strip = flat ? width : strip_width(s, copies, place_floats),
                    seen_floats = place_floats * seen_columns(s, strip);
  std::size_t band = larger(kGroupFloats / (place_floats * width), std::size_t{1});
  if (!flat) {
    const std::size_t seen = (copies ? kScratchFloats : kGroupFloats) / seen_floats, kernel = seen_rows(s, 1);
    band = copies ? rows_that_see(s, seen) : seen < kernel ? 1 : (seen - kernel) / s.stride_h + 1;
  }
  for (std::size_t c0 = 0; c0 < width; c0 += strip) {
    const std::size_t c1 = smaller(c0 + strip, width), pitch = copies ? seen_columns(s, c1 - c0) : s.in_w;
    for (std::size_t r0 = range.row_begin; r0 < range.row_end; r0 += band) {
      const std::size_t r1 = smaller(range.row_end, r0 + band);
      const SeenLines lines(s, r1 - r0);
      const float* base = args.input;
      t.row_step = (copies ? lines.step : s.dilation_h) * pitch * channels;
      t.block_step = (copies ? lines.count : s.in_h) * pitch * channels;
      if (flat && copies) {
        const std::size_t end = smaller(r1 * width, positions);
        t.block_step = (end - r0 * width) * channels;
        gather_positions(args, r0 * width, end, t.blocks, channels, scratch);
        base = scratch;
      } else if (args.turned) {
        turn_rows(args, static_cast<std::ptrdiff_t>(r0 * s.stride_h) - s.pad_top, lines,
                  static_cast<std::ptrdiff_t>(c0 * s.stride_w) - s.pad_left, pitch,
                  smaller(some.blocks * kChannelBlock, s.in_channels - some.first * kChannelBlock), scratch);
        base = scratch;
      } else if (copies) {
        pad_rows(args, static_cast<std::ptrdiff_t>(r0 * s.stride_h) - s.pad_top, lines,
                 static_cast<std::ptrdiff_t>(c0 * s.stride_w) - s.pad_left, pitch, t.blocks, channels, scratch);
        base = scratch;
      } else {
        base += (flat ? r0 * width : r0 * s.stride_h * pitch) * channels;
      }
      Band part{base,
                (flat ? width : s.stride_h * pitch) * channels,
                r0,
                r1,
                c0,
                c1,
                width,
                copies && s.kernel_h > 1,
                copies && s.dilation_w > 1 && s.kernel_w > 1,
                some.finishes,
                1};
      if (!flat) part.lines = lines_at_once(s, part);
      t.line_step = part.row_floats;
      if (lists) list_places({kNr, s.kernel_h, joined ? 1 : s.kernel_w}, places, t);
      for (std::size_t panel = range.panel_begin; panel < range.panel_end; ++panel) {
        const std::size_t n0 = panel * kNr, cols = smaller(kNr, all - n0);
        t.blank = n0 + cols < all ? 0 : channel_blocks(s.out_channels) * kChannelBlock - all;
        t.weight = args.weights.floats() + n0 * depth + some.first * kChannelBlock * s.kernel_points() * cols;
        t.bias = some.finishes && args.bias ? args.bias + n0 : nullptr;
        const Panel of{cols, s.kernel_h, joined ? 1 : s.kernel_w,
                       cols == kLanes && t.step == kChannelBlock && part.lines == 1};
        // The next panel's weights, evenly over this one's tiles.
        const std::size_t coming =
            panel + 1 < range.panel_end ? divide_up(cols * s.kernel_points() * some.blocks * channels, kLine) : 0;
        t.ahead = t.weight + cols * depth;
        t.ahead_lines = divide_up(coming, divide_up(r1 - r0, part.lines) * divide_up(width, kMr) * t.blocks);
        t.ahead_rows = panel == range.panel_begin && flat && !copies;
        conv_panel(args, part, of, n0 / kChannelBlock * t.plane + n0 % kChannelBlock, t);
      }
    }
  }
}

void conv(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept {
  const std::size_t all = args.planar ? args.shape.in_channels : channel_blocks(args.shape.in_channels);
  const std::size_t step = args.planar ? all : blocks_at_once(args);
  std::size_t first = 0;
  do {
    const std::size_t blocks = smaller(step, all - first);
    conv_blocks(args, range, {first, blocks, first + blocks == all}, scratch);
    first += blocks;
  } while (first < all);
}

void depthwise(const BlockedConvArgs& args, std::size_t begin, std::size_t end) noexcept {
  depthwise_blocks<float>(args, args.input, args.residual, args.output, begin, end);
}

}  // namespace

INFERNODE_TABLE(BlockedConvTable, blocked_conv) = {
    INFERNODE_TARGET_NAME(INFERNODE_TARGET),
    kScratchFloats,
    fits,
    grid,
    {"blocked." INFERNODE_TARGET_NAME(INFERNODE_TARGET), packed_form, packed_bytes, pack<kChannelBlock>},
    {"blocked.planes." INFERNODE_TARGET_NAME(INFERNODE_TARGET), packed_form, packed_bytes, pack<1>},
    conv,
    depthwise};

}  // namespace infernode::microkernels
