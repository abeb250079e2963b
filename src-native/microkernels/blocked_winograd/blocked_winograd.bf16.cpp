#include "microkernels/blocked_winograd/detail/blocked_winograd.simd.h"

#include "microkernels/blocked/blocked.h"
#include "microkernels/common/bf16_pairs.h"
#include "microkernels/common/quick_activations.h"

// Winograd's F(2x2, 3x3) with products of bfloat16: inputs and weights are transformed in float32 and then rounded.
namespace infernode::microkernels {

namespace {

constexpr std::size_t kBandFloats = 128 * 1024;  // transformed inputs and sums of a band
constexpr std::size_t kBlockWords = kChannelBlock / 2;
constexpr std::size_t kFinished = 8;  // tiles of a row whose outputs are made at a time

static_assert(kNr == 2 * kChannelBlock && kLanes == kChannelBlock);

bool pays(const ConvShape& s) noexcept { return pays_from(s, 32); }
std::size_t band_rows(const ConvShape& s) noexcept { return rows_of_band(s, kBlockWords, kBandFloats); }

Layout layout_of(const ConvShape& s, std::size_t rows) noexcept {
  const std::size_t tiles = rows * tile_columns(s);
  return {s, rows, divide_up(tiles, divide_up(tiles, kMr)), kBlockWords};
}

// ---- Weights: those of the direct loops, then a panel of channels after the other, each [point][word][channels] ----

PackedForm packed_form(const ConvShape&) noexcept { return PackedForm::kBf16Pairs; }

// Of the direct loops.
std::size_t direct_words(const ConvShape& s) noexcept {
  return blocked_conv_table_bf16_medium.weights.bytes(s) / sizeof(std::uint32_t);
}

std::size_t packed_bytes(const ConvShape& s) noexcept {
  return (direct_words(s) + out_floats(s) * pairs_of(s.in_channels) * kPoints) * sizeof(std::uint32_t);
}

// Of channels [n, n + 16) of the output and one of the input.
void transform_weight(const ConvShape& s, const float* weight, std::size_t n, std::size_t c, VecF* u) noexcept {
  alignas(64) float taps[9][kLanes] = {};
  for (std::size_t i = 0; c < s.in_channels && i < kLanes && n + i < s.out_channels; ++i) {
    for (std::size_t p = 0; p < 9; ++p) taps[p][i] = weight[((n + i) * s.in_channels + c) * 9 + p];
  }
  VecF columns[3][4];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < 3; ++i) transform3(load(taps[i]), load(taps[3 + i]), load(taps[6 + i]), columns[i]);
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < 4; ++i) transform3(columns[0][i], columns[1][i], columns[2][i], u + 4 * i);
}

void pack(const ConvShape& s, const float* weight, void* out) noexcept {
  blocked_conv_table_bf16_medium.weights.pack(s, weight, out);
  auto* words = static_cast<std::uint32_t*>(out) + direct_words(s);
  const std::size_t all = out_floats(s), pairs = pairs_of(s.in_channels);
  for (std::size_t n0 = 0; n0 < all; n0 += kNr) {
    const std::size_t cols = smaller(kNr, all - n0);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      for (std::size_t n = 0; n < cols; n += kLanes) {
        VecF even[kPoints], odd[kPoints];
        transform_weight(s, weight, n0 + n, 2 * pair, even);
        transform_weight(s, weight, n0 + n, 2 * pair + 1, odd);
        for (std::size_t p = 0; p < kPoints; ++p)
          _mm512_storeu_si512(words + (p * pairs + pair) * cols + n, round_pairs(even[p].v, odd[p].v));
      }
    }
    words += kPoints * pairs * cols;
  }
}

// ---- Inputs ----

// A block of a row of tiles, the first of which is number `tile` of its band.
template <typename T>
void transform_row(const Layout& l, const T* const* rows, std::ptrdiff_t w0, std::ptrdiff_t width, __mmask16 lanes,
                   std::size_t block, std::size_t tile, float* measures, std::uint32_t* inputs) noexcept {
  const std::size_t step = l.input_point;
  transform_tiles(
      l, block, tile, w0, width, measures,
      [&](std::size_t r, std::size_t w) __attribute__((always_inline)) {
        return VecF{_mm512_maskz_mov_ps(lanes, load(rows[r] + w * kChannelBlock).v)};
      },
      [=](std::size_t place, std::size_t point, VecF v) __attribute__((always_inline)) {
        store(reinterpret_cast<std::uint16_t*>(inputs + place + point * step), v);
      });
}

// `empty` holds a row of zeros.
template <typename T>
void transform_inputs(const ConvShape& s, const T* input, std::size_t row_begin, const Layout& l, const T* empty,
                      std::uint32_t* inputs, float* measures) noexcept {
  for (std::size_t i = 0; i < l.measures(); i += kLanes) store(measures + i, zero());
  for (std::size_t r = 0; r < l.rows; ++r) {
    for (std::size_t block = 0; block < l.blocks; ++block) {
      const T* rows[4];
      for (std::size_t i = 0; i < 4; ++i) {
        const auto h = static_cast<std::ptrdiff_t>(2 * (row_begin + r) + i) - s.pad_top;
        const bool inside = h >= 0 && h < static_cast<std::ptrdiff_t>(s.in_h);
        rows[i] = inside ? input + (block * s.in_h + static_cast<std::size_t>(h)) * s.in_w * kChannelBlock : empty;
      }
      const std::size_t channels = smaller(kChannelBlock, s.in_channels - block * kChannelBlock);
      transform_row(l, rows, -s.pad_left, static_cast<std::ptrdiff_t>(s.in_w), first_lanes(channels), block,
                    r * l.columns, measures + r * l.seen * 2 * kLanes, inputs);
    }
  }
}

// ---- Products ----

// sums[row][vector] over `pairs` words of kRows tiles, of which x holds block after block.
template <std::size_t kRows, std::size_t kVectors>
void multiply(std::size_t pairs, const std::uint32_t* x, const std::uint32_t* weight, float* sums,
              Ahead ahead) noexcept {
  __m512 sum[kRows][kVectors];
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (; pairs > 0; x += kRows * kBlockWords) {
    const std::size_t count = smaller(kBlockWords, pairs);
    pairs -= count;
    for (std::size_t i = 0; i < count; ++i, weight += kVectors * 16) {
      fetch(ahead);
      __m512i row[kVectors];
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) row[v] = _mm512_loadu_si512(weight + v * 16);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        const __m512i at = _mm512_set1_epi32(static_cast<int>(x[r * kBlockWords + i]));
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = multiply_pairs(sum[r][v], at, row[v]);
      }
    }
  }
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + r * kNr + v * 16, sum[r][v]);
  }
}

struct Products {
  void (*multiply[kMr][kNv])(std::size_t pairs, const std::uint32_t* x, const std::uint32_t* weight, float* sums,
                             Ahead ahead) noexcept;
};
constexpr Products make_products() {
  Products products{};
  fill_by_size(products.multiply, []<std::size_t kRows, std::size_t kVectors>() { return multiply<kRows, kVectors>; });
  return products;
}
constexpr Products kProducts = make_products();

// All sums of a panel. Weights of the point that follows, or of the next panel, lie behind those of each point.
void multiply_panel(const ConvShape& s, const Layout& l, const std::uint32_t* weight, std::size_t cols,
                    const std::uint32_t* inputs, float* sums) noexcept {
  const std::size_t pairs = pairs_of(s.in_channels), pieces = divide_up(l.tiles, l.piece);
  for (std::size_t point = 0; point < kPoints; ++point, weight += pairs * cols) {
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t t = i * l.piece, count = smaller(l.piece, l.tiles - t);
      kProducts.multiply[count - 1][cols / kLanes - 1](
          pairs, inputs + point * l.input_point + t * l.blocks * kBlockWords, weight,
          sums + point * l.sum_point + t * kNr, ahead_of(weight + pairs * cols, weight, pairs, cols, i, pieces));
    }
  }
}

// ---- Outputs ----

// Some tiles of a row by a vector of channels.
struct Finish {
  const float* sums;
  std::size_t point;          // floats between points
  std::size_t rows, columns;  // of positions
  std::size_t pitch;          // numbers between rows of positions
  std::size_t at;             // the first position's place in the output
};

void finish_tiles(const BlockedConvArgs& args, const Finish& f, VecF bias, const ClampBounds& bounds) noexcept {
  const VecF low = set(bounds.low), high = set(bounds.high);
  alignas(64) float made[2][2 * kFinished * kLanes];
  const float* sums = f.sums;
  for (std::size_t w = 0; w < f.columns; w += 2, sums += kNr) {
    VecF x[2][2];
    positions_of(sums, f.point, bias, x);
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 2; ++r) {
      store(made[r] + w * kLanes, x[r][0]);
      store(made[r] + (w + 1) * kLanes, x[r][1]);
    }
  }
  for (std::size_t r = 0; r < f.rows; ++r) {
    float* const row = made[r];
    const std::size_t at = f.at + r * f.pitch, n = f.columns * kLanes;
    for (std::size_t i = 0; i < n; i += kLanes) {
      VecF value = load(row + i);
      if (args.residual) value = value + load(args.residual + at + i);
      if (args.residual_bf16) value = value + load(args.residual_bf16 + at + i);
      store(row + i, clamp(value, low, high));
    }
    if (is_quick(args.activation)) {
      for (std::size_t i = 0; i < n; i += 4 * kLanes) {  // of the memory for whole tiles
        VecF x[4] = {load(row + i), load(row + i + kLanes), load(row + i + 2 * kLanes), load(row + i + 3 * kLanes)};
        activate_quickly<4>(args.activation, x);
        for (std::size_t j = 0; j < 4; ++j) store(row + i + j * kLanes, x[j]);
      }
    } else if (!is_clamp(args.activation)) {
      activate_row(args.activation, row, n);
    }
    for (std::size_t i = 0; i < n; i += kLanes) {
      if (args.output_bf16) {
        store(args.output_bf16 + at + i, load(row + i));
      } else {
        store(args.output + at + i, load(row + i));
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
    for (std::size_t n = n0; n < n0 + cols; n += kLanes) {
      const VecF bias = args.bias ? load(args.bias + n) : zero();
      for (std::size_t j = 0; j < l.columns; j += kFinished) {
        const std::size_t columns = smaller(2 * kFinished, s.out_w - 2 * j);
        const std::size_t at = (n / kChannelBlock * s.out_h + h) * pitch + 2 * j * kChannelBlock;
        finish_tiles(args, {sums + (r * l.columns + j) * kNr + n - n0, l.sum_point, rows, columns, pitch, at}, bias,
                     bounds);
      }
    }
  }
}

// ---- All of it ----

std::size_t scratch_floats(const ConvShape& s) noexcept {
  const Layout l = layout_of(s, band_rows(s));
  return larger(empty_floats(s) + l.measures() + l.inputs() + l.sums(), blocked_conv_table_bf16_medium.scratch_floats);
}

void conv(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t band = band_rows(s), pairs = pairs_of(s.in_channels);
  const bool keeps = args.kept_input && range.row_end - range.row_begin <= band;
  const bool ready = keeps && args.kept_input->ready;
  bool kept = keeps;
  const std::uint32_t* const weight = args.weights.pairs() + direct_words(s);
  for (std::size_t r0 = range.row_begin; r0 < range.row_end; r0 += band) {
    const Layout l = layout_of(s, smaller(band, range.row_end - r0));
    auto* const inputs = reinterpret_cast<std::uint32_t*>(scratch);
    float* const sums = scratch + l.inputs();
    float* const measures = sums + l.sums();
    float* const empty = measures + l.measures();
    if (!ready) {
      for (std::size_t i = 0; i < empty_floats(s); i += kLanes) store(empty + i, zero());
      if (args.input_bf16) {
        transform_inputs(s, args.input_bf16, r0, l, reinterpret_cast<const std::uint16_t*>(empty), inputs, measures);
      } else {
        transform_inputs(s, args.input, r0, l, empty, inputs, measures);
      }
    }
    bool even[kMostRows], any_even = false;
    for (std::size_t r = 0; r < l.rows; ++r) {
      even[r] = is_even(measures + r * l.seen * 2 * kLanes, l.columns);
      any_even = any_even || even[r];
    }
    for (std::size_t panel = range.panel_begin; any_even && panel < range.panel_end; ++panel) {
      const std::size_t n0 = panel * kNr, cols = smaller(kNr, out_floats(s) - n0);
      multiply_panel(s, l, weight + n0 * pairs * kPoints, cols, inputs, sums);
      finish_panel(args, r0, l, n0, cols, even, sums);
    }
    for (std::size_t r = 0; r < l.rows; ++r) {
      if (even[r]) continue;
      const std::size_t h = 2 * (r0 + r);
      kept = false;  // the direct loops have the same scratch
      blocked_conv_table_bf16_medium.conv(args, {h, smaller(h + 2, s.out_h), range.panel_begin, range.panel_end},
                                          scratch);
    }
  }
  if (args.kept_input) args.kept_input->ready = kept;
}

constexpr ConvPacking kPacking{"blocked.winograd.bf16", packed_form, packed_bytes, pack};

}  // namespace

INFERNODE_TABLE_OF(BlockedWinogradTable, blocked_winograd, medium) = {"bf16", pays,           &kPacking,
                                                                      grid,   scratch_floats, conv};

}  // namespace infernode::microkernels
