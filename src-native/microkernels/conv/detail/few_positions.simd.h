#pragma once

#include "microkernels/common/columns.simd.h"
#include "microkernels/common/tiles.h"

// Convolutions of so few output positions that they would leave most of a vector empty: vectors run along what a kernel
// sees at a position instead, and each sum is a dot product with a row of weights.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kFewPositions = 8, kFewDepth = 64;
constexpr std::size_t kDotRows = 4, kDotColumns = INFERNODE_SIMD_ID == 3 ? 4 : 2;

std::size_t few_pitch(const ConvShape& s) noexcept { return divide_up(s.depth(), kLanes) * kLanes; }

bool is_few(const ConvShape& s, std::size_t scratch_floats) noexcept {
  return s.positions() <= kFewPositions && s.depth() >= kFewDepth && s.positions() * few_pitch(s) <= scratch_floats;
}

// out[k] = what the kernel sees at a position.
void gather_position(const ConvShape& s, const float* x, std::size_t position, float* out) noexcept {
  const auto place = [](std::size_t at, std::size_t stride, std::ptrdiff_t pad) {
    return static_cast<std::ptrdiff_t>(at * stride) - pad;
  };
  const auto inside = [](std::ptrdiff_t i, std::size_t n) { return i >= 0 && i < static_cast<std::ptrdiff_t>(n); };
  const std::ptrdiff_t w0 = place(position % s.out_w, s.stride_w, s.pad_left),
                       h0 = place(position / s.out_w % s.out_h, s.stride_h, s.pad_top),
                       d0 = place(position / s.out_w / s.out_h, s.stride_d, s.pad_front);
  std::size_t w_begin = 0, w_end = s.kernel_w;  // of the kernel, inside
  const auto column = [&](std::size_t kw) { return w0 + static_cast<std::ptrdiff_t>(kw * s.dilation_w); };
  while (w_begin < w_end && column(w_begin) < 0) ++w_begin;
  while (w_end > w_begin && !inside(column(w_end - 1), s.in_w)) --w_end;
  for (std::size_t c = 0; c < s.in_channels; ++c, x += s.in_d * s.in_h * s.in_w) {
    for (std::size_t kd = 0; kd < s.kernel_d; ++kd) {
      const std::ptrdiff_t d = d0 + static_cast<std::ptrdiff_t>(kd * s.dilation_d);
      for (std::size_t kh = 0; kh < s.kernel_h; ++kh, out += s.kernel_w) {
        const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(kh * s.dilation_h);
        const bool row = inside(d, s.in_d) && inside(h, s.in_h);
        const std::size_t end = row ? w_end : 0, begin = row ? w_begin : 0;
        for (std::size_t kw = 0; kw < begin; ++kw) out[kw] = 0.0f;
        if (end > begin) {
          const float* from = x + (static_cast<std::size_t>(d) * s.in_h + static_cast<std::size_t>(h)) * s.in_w +
                              static_cast<std::size_t>(column(begin));
          for (std::size_t kw = begin; kw < end; ++kw, from += s.dilation_w) out[kw] = *from;
        }
        for (std::size_t kw = end; kw < s.kernel_w; ++kw) out[kw] = 0.0f;
      }
    }
  }
}

// tile[r * kNr + c] = (start ? 0 : tile) + sum over p < k of a[r * lda + p] * b[c * ldb + p].
template <std::size_t kRows, std::size_t kColumns>
void dot_tile(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb, bool start,
              float* tile) noexcept {
  VecF sum[kRows][kColumns];
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = zero();
  }
  const auto add = [&](std::size_t p, auto read) {
    VecF row[kRows];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) row[r] = read(a + r * lda + p);
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      const VecF x = read(b + c * ldb + p);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) sum[r][c] = fma(row[r], x, sum[r][c]);
    }
  };
  std::size_t p = 0;
  for (; p + kLanes <= k; p += kLanes) add(p, [](const float* from) { return load(from); });
  if (p < k) add(p, [=](const float* from) { return load_partial(from, k - p); });
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      float* const to = tile + r * kNr + c;
      *to = (start ? 0.0f : *to) + reduce_add(sum[r][c]);
    }
  }
}

struct DotTiles {
  void (*of[kDotRows][kDotColumns])(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb,
                                    bool start, float* tile) noexcept;
};
template <std::size_t kRows = kDotRows, std::size_t kColumns = kDotColumns>
constexpr void fill_dots(DotTiles& tiles) {
  tiles.of[kRows - 1][kColumns - 1] = dot_tile<kRows, kColumns>;
  if constexpr (kColumns > 1) {
    fill_dots<kRows, kColumns - 1>(tiles);
  } else if constexpr (kRows > 1) {
    fill_dots<kRows - 1, kDotColumns>(tiles);
  }
}
constexpr DotTiles make_dots() {
  DotTiles tiles{};
  fill_dots(tiles);
  return tiles;
}
constexpr DotTiles kDots = make_dots();

// Channels [range.m_begin, range.m_end) at all positions. Weights are packed in blocks of `block` k, rows `lda` apart.
void few(const ConvArgs& args, const GemmTiles& tiles, const GemmRange& range, std::size_t block, std::size_t lda,
         float* columns) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t positions = s.positions(), depth = s.depth(), pitch = few_pitch(s);
  for (std::size_t i = 0; i < positions; ++i) gather_position(s, args.input, i, columns + i * pitch);
  alignas(64) float tile[GemmTiles::kMaxFloats];
  for (std::size_t m0 = range.m_begin; m0 < range.m_end; m0 += kDotRows) {
    const std::size_t rows = smaller(kDotRows, range.m_end - m0);
    const float* weight = args.weights.floats() + m0 * lda;
    for (std::size_t k0 = 0; k0 < depth; k0 += block, weight += s.out_channels * lda) {
      for (std::size_t n0 = 0; n0 < positions; n0 += kDotColumns) {
        kDots.of[rows - 1][smaller(kDotColumns, positions - n0) - 1](
            smaller(block, depth - k0), weight, lda, columns + n0 * pitch + k0, pitch, k0 == 0, tile + n0);
      }
    }
    const std::size_t at = m0 * positions;
    tiles.finish({args.output + at, positions, rows, positions, 1.0f, false, true, args.bias ? args.bias + m0 : nullptr,
                  nullptr, args.residual ? args.residual + at : nullptr, positions, 1.0f, args.activation},
                 tile);
  }
}

}  // namespace
}  // namespace infernode::microkernels
