#include "microkernels/winograd/winograd.h"

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/columns.simd.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/common/tiles.h"
#include "microkernels/common/winograd_transforms.simd.h"

namespace infernode::microkernels {

namespace {

constexpr std::size_t kMostRows = 64;  // rows of tiles in a block

constexpr std::size_t round_up(std::size_t n, std::size_t to) noexcept { return divide_up(n, to) * to; }

// ---- Weights ----

std::size_t plane_floats(std::size_t in_channels) noexcept { return round_up(in_channels, kLine); }
std::size_t kernel_floats(std::size_t in_channels) noexcept { return spread(9 * plane_floats(in_channels)); }
std::size_t transformed_row(std::size_t in_channels) noexcept { return spread(plane_floats(in_channels)); }

PackedForm packed_form(const ConvShape&) noexcept { return PackedForm::kFloats; }

std::size_t packed_bytes(const ConvShape& s) noexcept {
  return s.out_channels * kernel_floats(s.in_channels) * sizeof(float);
}

void pack(const ConvShape& s, const float* weight, void* to) noexcept {
  const std::size_t in_channels = s.in_channels, plane = plane_floats(in_channels), kernel = kernel_floats(in_channels);
  auto* out = static_cast<float*>(to);
  for (std::size_t m = 0; m < s.out_channels; ++m, weight += 9 * in_channels, out += kernel) {
    fill_zero(out, kernel);
    for (std::size_t c = 0; c < in_channels; ++c) {
      for (std::size_t i = 0; i < 9; ++i) out[i * plane + c] = weight[c * 9 + i];
    }
  }
}

std::size_t transformed_floats(std::size_t out_channels, std::size_t in_channels) noexcept {
  return kPoints * out_channels * transformed_row(in_channels);
}

// out[point][out_channels][transformed_row] = G w G^T
void transform_weight(const PackedOperand& weights, std::size_t m_begin, std::size_t m_end, float* out) noexcept {
  const std::size_t in_channels = weights.k / 9, plane = plane_floats(in_channels), row = transformed_row(in_channels),
                    step = weights.n * row;
  for (std::size_t m = m_begin; m < m_end; ++m) {
    const float* from = weights.floats() + m * kernel_floats(in_channels);
    for (std::size_t c = 0; c < plane; c += kLanes) {
      VecF columns[3][4], u[4];
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 3; ++i) {
        transform3(load(from + i * plane + c), load(from + (3 + i) * plane + c), load(from + (6 + i) * plane + c),
                   columns[i]);
      }
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < 4; ++i) {
        transform3(columns[0][i], columns[1][i], columns[2][i], u);
        INFERNODE_UNROLL
        for (std::size_t j = 0; j < 4; ++j) store(out + (4 * i + j) * step + m * row + c, u[j]);
      }
    }
  }
}

// ---- One block's memory ----

struct Layout {
  Layout(const ConvShape& s, const WinogradBlock& b) noexcept
      : rows(b.row_end - b.row_begin),
        columns(b.column_end - b.column_begin),
        pitch(spread(rows * columns + kLanes)),
        half(round_up(columns + 1, kLanes) + kLanes),
        inputs(kPoints * s.in_channels * pitch),
        sums(kPoints * kMr * pitch),
        phases((2 * rows + 2) * 2 * half),
        evenness(phases),
        direct(s.in_channels * 4 * (2 * columns + 2) + 2 * kNr) {}

  std::size_t rows, columns;
  std::size_t pitch;                                   // of rows of tiles' points
  std::size_t half;                                    // of rows of every second input
  std::size_t inputs, sums, phases, evenness, direct;  // floats

  std::size_t floats() const noexcept { return larger(inputs, direct) + sums + phases + evenness; }
};

std::size_t scratch_floats(const ConvShape& shape, const WinogradBlock& block) noexcept {
  return Layout(shape, block).floats();
}

// ---- Inputs ----

// A row of tiles of one channel. `rows` points at four input rows, each its even columns and, `half` on, its odd ones.
// `out` takes a point each `step`.
void transform_row(const float* rows, std::size_t half, std::size_t columns, std::size_t step, float* out) noexcept {
  for (std::size_t j = 0; j < columns; j += kLanes) {
    VecF across[4][4];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 4; ++r) {
      const float* even = rows + 2 * r * half + j;
      transform4(load(even), load(even + half), load(even + 1), load(even + half + 1), across[r]);
    }
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      VecF v[4];
      transform4(across[0][i], across[1][i], across[2][i], across[3][i], v);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < 4; ++r) store(out + (4 * r + i) * step + j, v[r]);
    }
  }
}

// Adds |x| and, `half` on, x^2 of the pairs of columns of an input row.
INFERNODE_SIMD void measure_row(const float* row, std::size_t half, std::size_t pairs, float* sums) {
  for (std::size_t j = 0; j < pairs; j += kLanes) {
    const VecF even = load(row + j), odd = load(row + half + j);
    store(sums + j, load(sums + j) + (abs(even) + abs(odd)));
    store(sums + half + j, fma(even, even, fma(odd, odd, load(sums + half + j))));
  }
}

// Whether in each tile of a row enough numbers matter, by (sum |x|)^2 / sum x^2 over the channels, and all are finite.
// `sums` points at the measures of the row's four input rows.
bool is_even(const float* sums, std::size_t half, std::size_t columns) noexcept {
  const VecF least = set(static_cast<float>(kEvenInputs)), tiny = set(1e-30f), huge = set(1e15f);
  for (std::size_t j = 0; j < columns; j += kLanes) {
    const std::size_t n = smaller(kLanes, columns - j);
    VecF sum = zero(), square = zero();
    for (std::size_t r = 0; r < 4; ++r, sums += 2 * half) {
      sum = sum + (load_partial(sums + j, n) + load_partial(sums + j + 1, n));
      square = square + (load_partial(sums + half + j, n) + load_partial(sums + half + j + 1, n));
    }
    sums -= 8 * half;
    const Mask even = (sum * sum >= least * square) & (square > tiny) & (sum < huge);
    if (!all(even | (sum == zero()))) return false;
  }
  return true;
}

// inputs[point][channel][tile] = B^T d B
void transform_inputs(const ConvArgs& args, const WinogradBlock& block, const Layout& l, float* inputs, float* phases,
                      float* evenness) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t in_rows = 2 * l.rows + 2, step = s.in_channels * l.pitch;
  const auto h0 = static_cast<std::ptrdiff_t>(2 * block.row_begin) - s.pad_top;
  const auto w0 = static_cast<std::ptrdiff_t>(2 * block.column_begin) - s.pad_left;
  fill_zero(phases, l.phases);
  fill_zero(evenness, l.evenness);
  for (std::size_t c = 0; c < s.in_channels; ++c) {
    for (std::size_t r = 0; r < in_rows; ++r) {
      const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(r);
      float* to = phases + 2 * r * l.half;
      if (h < 0 || h >= static_cast<std::ptrdiff_t>(s.in_h)) continue;  // stays zero
      const float* row = args.input + (c * s.in_h + static_cast<std::size_t>(h)) * s.in_w;
      const auto width = static_cast<std::ptrdiff_t>(s.in_w);
      copy_padded(row, width, w0, 2, l.columns + 1, to);
      copy_padded(row, width, w0 + 1, 2, l.columns + 1, to + l.half);
      measure_row(to, l.half, l.columns + 1, evenness + 2 * r * l.half);
    }
    for (std::size_t r = 0; r < l.rows; ++r) {
      transform_row(phases + 4 * r * l.half, l.half, l.columns, step, inputs + c * l.pitch + r * l.columns);
    }
  }
}

// ---- Products ----

template <std::size_t kRows, std::size_t kVectors>
void multiply(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb, bool start, float* tile,
              std::size_t ld) noexcept {
  sum_tile<kRows, kVectors>(
      k, a, lda, [=](std::size_t p) { return b + p * ldb; }, start, tile, ld);
}

struct Products {
  void (*multiply[kMr][kNv])(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb,
                             bool start, float* tile, std::size_t ld) noexcept;
};
constexpr Products make_products() {
  Products products{};
  fill_by_size(products.multiply, []<std::size_t kRows, std::size_t kVectors>() { return multiply<kRows, kVectors>; });
  return products;
}
constexpr Products kProducts = make_products();

// sums[point][row][tile] of output channels [m0, m1)
void multiply_channels(const ConvShape& s, const float* transformed, std::size_t m0, std::size_t m1, const Layout& l,
                       const float* inputs, float* sums) noexcept {
  const std::size_t row = transformed_row(s.in_channels), tiles = l.rows * l.columns;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const float* a = transformed + (i * s.out_channels + m0) * row;
    for (std::size_t n0 = 0; n0 < tiles; n0 += kNr) {
      const std::size_t vectors = divide_up(smaller(kNr, tiles - n0), kLanes);
      kProducts.multiply[m1 - m0 - 1][vectors - 1](s.in_channels, a, row, inputs + i * s.in_channels * l.pitch + n0,
                                                   l.pitch, true, sums + i * kMr * l.pitch + n0, l.pitch);
    }
  }
}

// ---- Outputs ----

struct Target {
  float* out;
  const float* residual;  // or null
  std::size_t width;      // of the row from here on
};

INFERNODE_SIMD void put(const Target& to, std::size_t at, VecF v, VecF bias, VecF low, VecF high) {
  if (at >= to.width) return;
  const std::size_t n = smaller(kLanes, to.width - at);
  if (n == kLanes) {
    if (to.residual) v = v + load(to.residual + at);
    store(to.out + at, clamp(v + bias, low, high));
  } else {
    if (to.residual) v = v + load_partial(to.residual + at, n);
    store_partial(to.out + at, clamp(v + bias, low, high), n);
  }
}

// Two rows of outputs, A^T m A for A^T = [1 1 1 0; 0 1 -1 -1]; `sums` has a point each `step`.
void finish_row(const float* sums, std::size_t step, std::size_t columns, VecF bias, const ClampBounds& bounds,
                const Target* rows, std::size_t row_count) noexcept {
  const VecF low = set(bounds.low), high = set(bounds.high);
  for (std::size_t j = 0; j < columns; j += kLanes) {
    VecF upper[4], lower[4];
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      const VecF m0 = load(sums + i * step + j), m1 = load(sums + (4 + i) * step + j);
      const VecF m2 = load(sums + (8 + i) * step + j), m3 = load(sums + (12 + i) * step + j);
      upper[i] = m0 + (m1 + m2);
      lower[i] = (m1 - m2) - m3;
    }
    const VecF* halves[2] = {upper, lower};
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < 2; ++r) {
      if (r >= row_count) continue;
      const VecF* t = halves[r];
      const VecF even = t[0] + (t[1] + t[2]), odd = (t[1] - t[2]) - t[3];
      put(rows[r], 2 * j, zip_low(even, odd), bias, low, high);
      put(rows[r], 2 * j + kLanes, zip_high(even, odd), bias, low, high);
    }
  }
}

void finish_channels(const ConvArgs& args, const WinogradBlock& block, std::size_t m0, std::size_t m1, const Layout& l,
                     const bool* even, const float* sums) noexcept {
  const ConvShape& s = args.shape;
  const ClampBounds bounds = clamp_bounds(args.activation);
  const std::size_t w = 2 * block.column_begin, width = smaller(2 * l.columns, s.out_w - w);
  for (std::size_t m = m0; m < m1; ++m, sums += l.pitch) {
    const VecF bias = set(args.bias ? args.bias[m] : 0.0f);
    for (std::size_t r = 0; r < l.rows; ++r) {
      if (!even[r]) continue;
      const std::size_t h = 2 * (block.row_begin + r), count = smaller(std::size_t{2}, s.out_h - h);
      Target rows[2];
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = (m * s.out_h + h + i) * s.out_w + w;
        rows[i] = {args.output + at, args.residual ? args.residual + at : nullptr, width};
      }
      finish_row(sums + r * l.columns, kMr * l.pitch, l.columns, bias, bounds, rows, count);
      if (is_clamp(args.activation)) continue;
      for (std::size_t i = 0; i < count; ++i) activate_row(args.activation, rows[i].out, width);
    }
  }
}

// ---- Directly ----

// One row of tiles by the definition, with the accuracy of any other convolution.
void convolve_row(const ConvArgs& args, const WinogradBlock& block, std::size_t tile_row, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const GemmTiles& tiles = *INFERNODE_TABLE_NAME(gemm).tiles;
  const std::size_t h0 = 2 * tile_row, rows = smaller(std::size_t{2}, s.out_h - h0), w0 = 2 * block.column_begin;
  const std::size_t width = smaller(2 * block.column_end, s.out_w) - w0, pitch = width + 2, plane = (rows + 2) * pitch;
  for (std::size_t c = 0; c < s.in_channels; ++c) {
    for (std::size_t r = 0; r < rows + 2; ++r) {
      const auto h = static_cast<std::ptrdiff_t>(h0 + r) - s.pad_top;
      float* to = scratch + c * plane + r * pitch;
      if (h < 0 || h >= static_cast<std::ptrdiff_t>(s.in_h)) {
        fill_zero(to, pitch);
      } else {
        copy_padded(args.input + (c * s.in_h + static_cast<std::size_t>(h)) * s.in_w,
                    static_cast<std::ptrdiff_t>(s.in_w), static_cast<std::ptrdiff_t>(w0) - s.pad_left, 1, pitch, to);
      }
    }
  }
  fill_zero(scratch + s.in_channels * plane, 2 * kNr);
  const std::size_t kernel = kernel_floats(s.in_channels), taps = plane_floats(s.in_channels);
  const std::size_t channels = block.m_end - block.m_begin, row_tiles = divide_up(channels, kMr);
  alignas(64) float tile[GemmTiles::kMaxFloats];
  for (std::size_t t = 0; t < row_tiles; ++t) {
    const std::size_t m0 = block.m_begin + t * channels / row_tiles,
                      m1 = block.m_begin + (t + 1) * channels / row_tiles;
    for (std::size_t h = 0; h < rows; ++h) {
      for (std::size_t q = 0; q < width; q += kNr) {
        const std::size_t cols = smaller(kNr, width - q);
        const auto multiply = kProducts.multiply[m1 - m0 - 1][divide_up(cols, kLanes) - 1];
        for (std::size_t i = 0; i < 9; ++i) {
          multiply(s.in_channels, args.weights.floats() + m0 * kernel + i * taps, kernel,
                   scratch + (h + i / 3) * pitch + i % 3 + q, plane, i == 0, tile, kNr);
        }
        const std::size_t at = (m0 * s.out_h + h0 + h) * s.out_w + w0 + q;
        tiles.finish(
            {args.output + at, s.positions(), m1 - m0, cols, 1.0f, false, true, args.bias ? args.bias + m0 : nullptr,
             nullptr, args.residual ? args.residual + at : nullptr, s.positions(), 1.0f, args.activation},
            tile);
      }
    }
  }
}

void conv(const ConvArgs& args, const float* transformed, const WinogradBlock& block, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const Layout l(s, block);
  float* const sums = scratch + larger(l.inputs, l.direct);
  float* const phases = sums + l.sums;
  float* const evenness = phases + l.phases;
  bool even[kMostRows] = {}, any_even = false;
  if (transformed != nullptr && l.rows <= kMostRows) {
    transform_inputs(args, block, l, scratch, phases, evenness);
    for (std::size_t r = 0; r < l.rows; ++r) {
      even[r] = is_even(evenness + 4 * r * l.half, l.half, l.columns);
      any_even = any_even || even[r];
    }
  }
  if (any_even) {
    const std::size_t channels = block.m_end - block.m_begin, row_tiles = divide_up(channels, kMr);
    for (std::size_t t = 0; t < row_tiles; ++t) {
      const std::size_t m0 = block.m_begin + t * channels / row_tiles,
                        m1 = block.m_begin + (t + 1) * channels / row_tiles;
      multiply_channels(s, transformed, m0, m1, l, scratch, sums);
      finish_channels(args, block, m0, m1, l, even, sums);
    }
  }
  for (std::size_t r = 0; r < l.rows; ++r) {
    if (!even[r < kMostRows ? r : 0] || l.rows > kMostRows) convolve_row(args, block, block.row_begin + r, scratch);
  }
}

}  // namespace

INFERNODE_TABLE(WinogradTable, winograd) = {
    INFERNODE_TARGET_NAME(INFERNODE_TARGET),
    kMr,
    kLanes,
    {"winograd." INFERNODE_TARGET_NAME(INFERNODE_TARGET), packed_form, packed_bytes, pack},
    transformed_floats,
    transform_weight,
    scratch_floats,
    conv};

}  // namespace infernode::microkernels
