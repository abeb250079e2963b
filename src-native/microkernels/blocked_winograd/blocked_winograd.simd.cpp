#include "microkernels/blocked_winograd/detail/blocked_winograd.simd.h"

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/columns.simd.h"

namespace infernode::microkernels {

namespace {

constexpr std::size_t kBandFloats = 256 * 1024;  // transformed inputs and sums of a band
constexpr std::size_t kGroupBlocks = 8;          // of channels whose weights are transformed at a time

bool pays(const ConvShape& s) noexcept { return pays_from(s, 24); }
std::size_t band_rows(const ConvShape& s) noexcept { return rows_of_band(s, kChannelBlock, kBandFloats); }

Layout layout_of(const ConvShape& s, std::size_t rows) noexcept {
  return {s, rows, tile_rows(rows * tile_columns(s)), kChannelBlock};
}

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

// Some lanes of a block of a row of tiles, the first of which is number `tile` of its band.
template <bool kWhole>
void transform_row(const Layout& l, const float* const* rows, std::ptrdiff_t w0, std::ptrdiff_t width,
                   std::size_t lanes, std::size_t block, std::size_t tile, float* measures, float* inputs) noexcept {
  const std::size_t step = l.input_point;
  transform_tiles(
      l, block, tile, w0, width, measures,
      [&](std::size_t r, std::size_t w) __attribute__((always_inline)) {
        const float* const at = rows[r] + w * kChannelBlock;
        return kWhole ? load(at) : load_partial(at, lanes);
      },
      [=](std::size_t place, std::size_t point, VecF v)
          __attribute__((always_inline)) { store(inputs + place + point * step, v); });
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

// Two rows of a vector of channels; `out` and `residual` (or null) point at the first position.
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
    VecF value[2][2];
    positions_of(sums, f.point, bias, value);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 2; ++r) {
      if (r >= f.rows) break;
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 2; ++i) {
        if (w + i >= f.columns) break;
        const std::size_t at = r * f.pitch + (w + i) * kChannelBlock;
        if (f.residual) value[r][i] = value[r][i] + load(f.residual + at);
        store(f.out + at, clamp(value[r][i], low, high));
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

std::size_t scratch_floats(const ConvShape& s) noexcept {
  const Layout l = layout_of(s, band_rows(s));
  const std::size_t floats = empty_floats(s) + l.measures() + l.inputs() + l.sums() + kPoints * weight_point(s);
  return larger(floats, INFERNODE_TABLE_NAME(blocked_conv).scratch_floats);
}

void conv(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t band = band_rows(s);
  const bool keeps = args.kept_input && range.row_end - range.row_begin <= band;
  const bool ready = keeps && args.kept_input->ready;
  bool kept = keeps;
  for (std::size_t r0 = range.row_begin; r0 < range.row_end; r0 += band) {
    const Layout l = layout_of(s, smaller(band, range.row_end - r0));
    float* const inputs = scratch;
    float* const sums = inputs + l.inputs();
    float* const weight = sums + l.sums();
    float* const measures = weight + kPoints * weight_point(s);
    float* const empty = measures + l.measures();
    if (!ready) {
      fill_zero(empty, empty_floats(s));
      transform_inputs(args, r0, l, empty, inputs, measures);
    }
    bool even[kMostRows], any_even = false;
    for (std::size_t r = 0; r < l.rows; ++r) {
      even[r] = is_even(measures + r * l.seen * 2 * kLanes, l.columns);
      any_even = any_even || even[r];
    }
    for (std::size_t panel = range.panel_begin; any_even && panel < range.panel_end; ++panel) {
      const std::size_t n0 = panel * kNr, cols = smaller(kNr, out_floats(s) - n0);
      multiply_panel(s, l, args.weights.floats() + n0 * s.depth(), cols, inputs, weight, sums);
      finish_panel(args, r0, l, n0, cols, even, sums);
    }
    for (std::size_t r = 0; r < l.rows; ++r) {
      if (even[r]) continue;
      const std::size_t h = 2 * (r0 + r);
      kept = false;  // the direct loops have the same scratch
      INFERNODE_TABLE_NAME(blocked_conv)
          .conv(args, {h, smaller(h + 2, s.out_h), range.panel_begin, range.panel_end}, scratch);
    }
  }
  if (args.kept_input) args.kept_input->ready = kept;
}

}  // namespace

INFERNODE_TABLE(BlockedWinogradTable, blocked_winograd) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                                           pays,
                                                           &INFERNODE_TABLE_NAME(blocked_conv).weights,
                                                           grid,
                                                           scratch_floats,
                                                           conv};

}  // namespace infernode::microkernels
