#include "microkernels/blocked_winograd.h"

#include "microkernels/activate.simd.h"
#include "microkernels/conv_columns.simd.h"
#include "microkernels/register_tile.simd.h"
#include "microkernels/simd_file.h"
#include "microkernels/winograd_transforms.simd.h"

namespace infernode::microkernels {

extern const BlockedConvTable INFERNODE_TABLE(blocked_conv_table);

namespace {

constexpr std::size_t kBandFloats = 256 * 1024;  // transformed inputs and sums of a band
constexpr std::size_t kGroupBlocks = 8;          // of channels whose weights are transformed at a time
constexpr std::size_t kMostRows = 64;            // rows of tiles in a band

std::size_t out_floats(const ConvShape& s) noexcept { return channel_blocks(s.out_channels) * kChannelBlock; }
std::size_t tile_columns(const ConvShape& s) noexcept { return divide_up(s.out_w, 2); }
std::size_t tile_rows_of(const ConvShape& s) noexcept { return divide_up(s.out_h, 2); }

BlockedGrid grid(const ConvShape& s) noexcept { return {tile_rows_of(s), divide_up(out_floats(s), kNr)}; }

bool pays(const ConvShape& s) noexcept {
  return s.out_channels >= 24 && s.in_channels >= 24 && tile_rows_of(s) * tile_columns(s) >= 16;
}

std::size_t band_rows(const ConvShape& s) noexcept {
  const std::size_t row = kPoints * tile_columns(s) * (channel_blocks(s.in_channels) * kChannelBlock + kNr);
  const std::size_t most = smaller(larger(kBandFloats / row, std::size_t{1}), kMostRows), all = tile_rows_of(s);
  return divide_up(all, divide_up(all, most));
}

// Memory of a band of `rows` rows of tiles. Transformed inputs: [point][piece of tiles][block][tile][kChannelBlock];
// sums of a panel: [point][tile][kNr].
struct Layout {
  Layout(const ConvShape& s, std::size_t rows) noexcept
      : rows(rows),
        columns(tile_columns(s)),
        tiles(rows * columns),
        piece(tile_rows(tiles)),
        blocks(channel_blocks(s.in_channels)),
        input_point(spread(blocks * tiles * kChannelBlock)),
        sum_point(spread(tiles * kNr)),
        seen(2 * columns + 2) {}

  std::size_t rows, columns, tiles;
  std::size_t piece;  // tiles of a register tile
  std::size_t blocks;
  std::size_t input_point, sum_point;  // floats of a point
  std::size_t seen;                    // columns of input

  std::size_t measures() const noexcept { return rows * seen * 2 * kLanes; }
  std::size_t inputs() const noexcept { return kPoints * input_point; }
  std::size_t sums() const noexcept { return kPoints * sum_point; }
};

// ---- Weights: [point][channel][channels of the panel], of some blocks ----

std::size_t group_channels(const ConvShape& s) noexcept { return smaller(kGroupBlocks * kChannelBlock, s.in_channels); }
std::size_t weight_point(const ConvShape& s) noexcept { return spread(group_channels(s) * kNr); }

// `packed` is the panel's, from the first of the blocks on; `cols` its channels.
void transform_weight(const float* packed, std::size_t channels, std::size_t cols, std::size_t point,
                      float* out) noexcept {
  for (std::size_t c0 = 0; c0 < channels; c0 += kChannelBlock) {
    const std::size_t tap = smaller(kChannelBlock, channels - c0) * cols;
    for (std::size_t at = 0; at < tap; at += kLanes, out += kLanes) {
      VecF columns[3][4], u[4];
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 3; ++i) {
        const float* const top = packed + at + i * tap;
        transform3(load(top), load(top + 3 * tap), load(top + 6 * tap), columns[i]);
      }
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 4; ++i) {
        transform3(columns[0][i], columns[1][i], columns[2][i], u);
        INFERNODE_UNROLL
        for (std::size_t j = 0; j < 4; ++j) store(out + (4 * i + j) * point, u[j]);
      }
    }
    packed += 9 * tap;
  }
}

// ---- Inputs ----

// Two columns of a row of tiles, transformed down them, and what they add to the measures.
struct Columns {
  VecF v[2][4];
};

template <bool kWhole>
INFERNODE_SIMD void read_columns(const float* const* rows, std::ptrdiff_t w, std::ptrdiff_t width, std::size_t lanes,
                                 float* measures, Columns& out) {
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < 2; ++i, ++w, measures += 2 * kLanes) {
    if (w < 0 || w >= width) {
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < 4; ++r) out.v[i][r] = zero();
      continue;
    }
    VecF x[4];
    const std::size_t at = static_cast<std::size_t>(w) * kChannelBlock;
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 4; ++r) x[r] = kWhole ? load(rows[r] + at) : load_partial(rows[r] + at, lanes);
    transform4(x[0], x[1], x[2], x[3], out.v[i]);
    store(measures, load(measures) + ((abs(x[0]) + abs(x[1])) + (abs(x[2]) + abs(x[3]))));
    store(measures + kLanes, fma(x[0], x[0], fma(x[1], x[1], load(measures + kLanes))) + fma(x[2], x[2], x[3] * x[3]));
  }
}

// Some lanes of a block of a row of tiles, the first of which is number `tile` of its band.
template <bool kWhole>
void transform_row(const Layout& l, const float* const* rows, std::ptrdiff_t w0, std::ptrdiff_t width,
                   std::size_t lanes, std::size_t block, std::size_t tile, float* measures, float* inputs) noexcept {
  Columns left, right;
  read_columns<kWhole>(rows, w0, width, lanes, measures, left);
  for (std::size_t j = 0; j < l.columns; ++j, ++tile) {
    measures += 4 * kLanes;
    w0 += 2;
    read_columns<kWhole>(rows, w0, width, lanes, measures, right);
    const std::size_t piece = tile / l.piece, first = piece * l.piece, count = smaller(l.piece, l.tiles - first);
    float* const to = inputs + (first * l.blocks + block * count + tile - first) * kChannelBlock;
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 4; ++r) {
      VecF v[4];
      transform4(left.v[0][r], left.v[1][r], right.v[0][r], right.v[1][r], v);
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 4; ++i) store(to + (4 * r + i) * l.input_point, v[i]);
    }
    left = right;
  }
}

// `empty` holds a row of zeros.
void transform_inputs(const BlockedConvArgs& args, std::size_t row_begin, const Layout& l, const float* empty,
                      float* inputs, float* measures) noexcept {
  const ConvShape& s = args.shape;
  fill_zero(measures, l.measures());
  for (std::size_t r = 0; r < l.rows; ++r) {
    for (std::size_t block = 0; block < l.blocks; ++block) {
      const float* rows[4];
      for (std::size_t i = 0; i < 4; ++i) {
        const auto h = static_cast<std::ptrdiff_t>(2 * (row_begin + r) + i) - s.pad_top;
        const bool inside = h >= 0 && h < static_cast<std::ptrdiff_t>(s.in_h);
        rows[i] = inside ? args.input + (block * s.in_h + static_cast<std::size_t>(h)) * s.in_w * kChannelBlock : empty;
      }
      const std::size_t channels = smaller(kChannelBlock, s.in_channels - block * kChannelBlock);
      for (std::size_t lane = 0; lane < channels; lane += kLanes) {
        const std::size_t lanes = smaller(kLanes, channels - lane);
        (lanes == kLanes ? transform_row<true>
                         : transform_row<false>)(l, rows, -s.pad_left, static_cast<std::ptrdiff_t>(s.in_w), lanes,
                                                 block, r * l.columns, measures + r * l.seen * 2 * kLanes,
                                                 inputs + lane);
        for (const float*& row : rows) row += kLanes;
      }
    }
  }
}

// Whether in each tile of a row enough numbers matter, by (sum |x|)^2 / sum x^2 over the channels, and all are finite.
bool is_even(const float* measures, std::size_t columns) noexcept {
  for (std::size_t j = 0; j < columns; ++j, measures += 4 * kLanes) {
    VecF sums = zero(), squares = zero();
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      sums = sums + load(measures + 2 * i * kLanes);
      squares = squares + load(measures + (2 * i + 1) * kLanes);
    }
    const float sum = reduce_add(sums), square = reduce_add(squares);
    const bool even = sum * sum >= static_cast<float>(kEvenInputs) * square && square > 1e-30f && sum < 1e15f;
    if (!even && sum != 0) return false;
  }
  return true;
}

// ---- Products ----

// sums[row][vector], which `start` says are 0 so far, over some channels; `x` holds blocks of kRows tiles.
template <std::size_t kRows, std::size_t kVectors>
void multiply(std::size_t channels, const float* x, const float* weight, bool start, float* sums) noexcept {
  VecF sum[kRows][kVectors];
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = start ? zero() : load(sums + r * kNr + v * kLanes);
  }
  for (std::size_t c0 = 0; c0 < channels; c0 += kChannelBlock, x += kRows * kChannelBlock) {
    const std::size_t count = smaller(kChannelBlock, channels - c0);
    for (std::size_t c = 0; c < count; ++c, weight += kVectors * kLanes) {
      VecF row[kVectors];
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) row[v] = load(weight + v * kLanes);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        const VecF at = set(x[r * kChannelBlock + c]);
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = fma(at, row[v], sum[r][v]);
      }
    }
  }
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) store(sums + r * kNr + v * kLanes, sum[r][v]);
  }
}

struct Products {
  void (*multiply[kMr][kNv])(std::size_t channels, const float* x, const float* weight, bool start,
                             float* sums) noexcept;
};
constexpr Products make_products() {
  Products products{};
  fill_by_size(products.multiply, []<std::size_t kRows, std::size_t kVectors>() { return multiply<kRows, kVectors>; });
  return products;
}
constexpr Products kProducts = make_products();

// All sums of a panel, whose packed weights `packed` holds; `weight` is memory for transformed ones.
void multiply_panel(const ConvShape& s, const Layout& l, const float* packed, std::size_t cols, const float* inputs,
                    float* weight, float* sums) noexcept {
  const std::size_t group = group_channels(s), weights = weight_point(s);
  for (std::size_t c0 = 0; c0 < s.in_channels; c0 += group) {
    const std::size_t channels = smaller(group, s.in_channels - c0);
    transform_weight(packed + 9 * c0 * cols, channels, cols, weights, weight);
    for (std::size_t point = 0; point < kPoints; ++point) {
      for (std::size_t t = 0; t < l.tiles; t += l.piece) {
        const std::size_t count = smaller(l.piece, l.tiles - t);
        const float* const x = inputs + point * l.input_point + t * l.blocks * kChannelBlock + c0 * count;
        kProducts.multiply[count - 1][cols / kLanes - 1](channels, x, weight + point * weights, c0 == 0,
                                                         sums + point * l.sum_point + t * kNr);
      }
    }
  }
}

// ---- Outputs ----

// Two rows of a vector of channels, A^T m A for A^T = [1 1 1 0; 0 1 -1 -1]; `out` and `residual` (or null) point at the
// first position.
struct Finish {
  const float* sums;
  std::size_t point;          // floats between points
  std::size_t rows, columns;  // of positions
  std::size_t pitch;          // floats between rows of positions
  const float* residual;
  float* out;
};

void finish_row(const Finish& f, VecF bias, const ClampBounds& bounds) noexcept {
  const VecF low = set(bounds.low), high = set(bounds.high);
  const float* sums = f.sums;
  for (std::size_t w = 0; w < f.columns; w += 2, sums += kNr) {
    VecF half[2][4];
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      const VecF m0 = load(sums + i * f.point), m1 = load(sums + (4 + i) * f.point);
      const VecF m2 = load(sums + (8 + i) * f.point), m3 = load(sums + (12 + i) * f.point);
      half[0][i] = m0 + (m1 + m2);
      half[1][i] = (m1 - m2) - m3;
    }
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 2; ++r) {
      if (r >= f.rows) break;
      const VecF* const t = half[r];
      VecF value[2] = {t[0] + (t[1] + t[2]) + bias, (t[1] - t[2]) - t[3] + bias};
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 2; ++i) {
        if (w + i >= f.columns) break;
        const std::size_t at = r * f.pitch + (w + i) * kChannelBlock;
        if (f.residual) value[i] = value[i] + load(f.residual + at);
        store(f.out + at, clamp(value[i], low, high));
      }
    }
  }
}

void finish_panel(const BlockedConvArgs& args, std::size_t row_begin, const Layout& l, std::size_t n0, std::size_t cols,
                  const bool* even, const float* sums) noexcept {
  const ConvShape& s = args.shape;
  const ClampBounds bounds = clamp_bounds(args.activation);
  const std::size_t pitch = s.out_w * kChannelBlock;
  for (std::size_t r = 0; r < l.rows; ++r) {
    if (!even[r]) continue;
    const std::size_t h = 2 * (row_begin + r), rows = smaller(std::size_t{2}, s.out_h - h);
    for (std::size_t n = 0; n < cols; n += kLanes) {
      const std::size_t channel = n0 + n;
      const std::size_t at = (channel / kChannelBlock * s.out_h + h) * pitch + channel % kChannelBlock;
      finish_row({sums + r * l.columns * kNr + n, l.sum_point, rows, s.out_w, pitch,
                  args.residual ? args.residual + at : nullptr, args.output + at},
                 args.bias ? load(args.bias + channel) : zero(), bounds);
    }
    if (is_clamp(args.activation)) continue;
    for (std::size_t i = 0; i < rows; ++i) {
      if constexpr (kNr % kChannelBlock == 0) {
        for (std::size_t n = n0; n < n0 + cols; n += kChannelBlock)
          activate_row(args.activation, args.output + (n / kChannelBlock * s.out_h + h + i) * pitch, pitch);
      } else {
        float* const row = args.output + (n0 / kChannelBlock * s.out_h + h + i) * pitch + n0 % kChannelBlock;
        for (std::size_t w = 0; w < s.out_w; ++w) activate_row(args.activation, row + w * kChannelBlock, cols);
      }
    }
  }
}

// ---- All of it ----

std::size_t empty_floats(const ConvShape& s) noexcept { return s.in_w * kChannelBlock; }

std::size_t scratch_floats(const ConvShape& s) noexcept {
  const Layout l(s, band_rows(s));
  const std::size_t floats = empty_floats(s) + l.measures() + l.inputs() + l.sums() + kPoints * weight_point(s);
  return larger(floats, INFERNODE_TABLE(blocked_conv_table).scratch_floats);
}

void conv(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t band = band_rows(s);
  for (std::size_t r0 = range.row_begin; r0 < range.row_end; r0 += band) {
    const Layout l(s, smaller(band, range.row_end - r0));
    float* const inputs = scratch;
    float* const sums = inputs + l.inputs();
    float* const weight = sums + l.sums();
    float* const measures = weight + kPoints * weight_point(s);
    float* const empty = measures + l.measures();
    fill_zero(empty, empty_floats(s));
    transform_inputs(args, r0, l, empty, inputs, measures);
    bool even[kMostRows], any_even = false;
    for (std::size_t r = 0; r < l.rows; ++r) {
      even[r] = is_even(measures + r * l.seen * 2 * kLanes, l.columns);
      any_even = any_even || even[r];
    }
    for (std::size_t panel = range.panel_begin; any_even && panel < range.panel_end; ++panel) {
      const std::size_t n0 = panel * kNr, cols = smaller(kNr, out_floats(s) - n0);
      multiply_panel(s, l, args.packed_weight + n0 * s.depth(), cols, inputs, weight, sums);
      finish_panel(args, r0, l, n0, cols, even, sums);
    }
    for (std::size_t r = 0; r < l.rows; ++r) {
      if (even[r]) continue;
      const std::size_t h = 2 * (r0 + r);
      INFERNODE_TABLE(blocked_conv_table)
          .conv(args, {h, smaller(h + 2, s.out_h), range.panel_begin, range.panel_end}, scratch);
    }
  }
}

}  // namespace

extern const BlockedWinogradTable INFERNODE_TABLE(blocked_winograd_table);
constexpr BlockedWinogradTable INFERNODE_TABLE(blocked_winograd_table) = {
    INFERNODE_TARGET_NAME(INFERNODE_TARGET), pays, nullptr, nullptr, grid, scratch_floats, conv};

}  // namespace infernode::microkernels
