#pragma once

#include "microkernels/common/columns.simd.h"
#include "microkernels/common/phase_rows.simd.h"
#include "microkernels/common/tiles.h"

// Convolutions in a plane, without columns: some rows of the padded input are laid out once, parted by phase where
// there are strides, and what a kernel point sees of consecutive output positions are consecutive floats there.
// Positions are counted along the padded rows; sums at a row's end that belong to no position are dropped.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kDirectFloats = 65536;   // padded rows and offsets: they fit a second-level cache
constexpr std::size_t kDirectSlack = 2 * kNr;  // floats that the last tile reads too many

// How many phases of an axis the kernel sees: its point k sees phase k * dilation % stride, and the phases repeat after
// that many points.
constexpr std::size_t phases_seen(std::size_t kernel, std::size_t stride, std::size_t dilation) noexcept {
  std::size_t count = 1;
  while (count < kernel && count * dilation % stride != 0) ++count;
  return count;
}

struct DirectLayout {
  explicit DirectLayout(const ConvShape& s) noexcept
      : reach((s.kernel_h - 1) * s.dilation_h / s.stride_h),
        pitch(s.out_w + (s.kernel_w - 1) * s.dilation_w / s.stride_w),
        phases_h(phases_seen(s.kernel_h, s.stride_h, s.dilation_h)),
        phases_w(phases_seen(s.kernel_w, s.stride_w, s.dilation_w)),
        offset_floats(divide_up(s.depth(), std::size_t{16}) * 16) {
    const std::size_t rest = kDirectFloats - smaller(kDirectFloats, offset_floats + kDirectSlack);
    const std::size_t rows = rest / (s.in_channels * phases_h * phases_w * pitch);
    band = rows > reach ? rows - reach : 0;
  }

  std::size_t reach;               // rows of a phase that a kernel covers beyond its first
  std::size_t pitch;               // of padded rows
  std::size_t phases_h, phases_w;  // that are laid out
  std::size_t offset_floats;       // memory for the kernel points' offsets
  std::size_t band;                // output rows whose input fits; 0: none
};

bool is_direct(const ConvShape& s) noexcept {
  const bool plain = s.kernel_points() == 1 && s.stride_h == 1 && s.stride_w == 1;
  if (s.in_channels == 0 || plain || s.in_d != 1 || s.kernel_d != 1 || s.out_d != 1 || s.pad_front != 0) return false;
  const DirectLayout layout(s);
  return layout.band >= smaller(s.out_h, larger(layout.reach, std::size_t{2})) && layout.pitch <= 2 * s.out_w + 16;
}

// tile[r * kNr + c] = (start ? 0 : tile) + sum over p < k of a[r * lda + p] * b[offsets[p] + c].
template <std::size_t kRows, std::size_t kVectors>
void accumulate_shifted(std::size_t k, const float* a, std::size_t lda, const float* b, const std::int32_t* offsets,
                        bool start, float* tile) noexcept {
  sum_tile<kRows, kVectors>(
      k, a, lda, [=](std::size_t p) { return b + offsets[p]; }, start, tile);
}

struct ShiftedTiles {
  void (*accumulate[kMr][kNv])(std::size_t k, const float* a, std::size_t lda, const float* b,
                               const std::int32_t* offsets, bool start, float* tile) noexcept;
};
constexpr ShiftedTiles make_shifted() {
  ShiftedTiles tiles{};
  fill_by_size(tiles.accumulate,
               []<std::size_t kRows, std::size_t kVectors>() { return accumulate_shifted<kRows, kVectors>; });
  return tiles;
}
constexpr ShiftedTiles kShifted = make_shifted();

// Lays out what output rows [h0, h1) see of all channels: rows of each phase of rows, `in_rows` of them, by phases of
// columns.
void lay_out(const ConvArgs& args, const DirectLayout& layout, std::size_t h0, std::size_t in_rows,
             float* rows) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t pitch = layout.pitch, plane = in_rows * pitch;
  const float* const end = args.input + s.in_channels * s.in_h * s.in_w;
  const bool parted = sees_phase_rows(s.kernel_w, s.stride_w, s.dilation_w);
  const std::size_t at_once = parted ? layout.phases_w : 1, phases = layout.phases_h * layout.phases_w;
  for (std::size_t phase = 0; phase < phases; phase += at_once) {
    const std::size_t phase_h = phase / layout.phases_w * s.dilation_h % s.stride_h,
                      phase_w = phase % layout.phases_w * s.dilation_w % s.stride_w;
    const RowPart columns =
        part_in_row(static_cast<std::ptrdiff_t>(s.in_w), static_cast<std::ptrdiff_t>(phase_w) - s.pad_left,
                    static_cast<std::ptrdiff_t>(s.stride_w), pitch);
    const RowPart lines = part_in_row(static_cast<std::ptrdiff_t>(s.in_h),
                                      static_cast<std::ptrdiff_t>(h0 * s.stride_h + phase_h) - s.pad_top,
                                      static_cast<std::ptrdiff_t>(s.stride_h), in_rows);
    const auto first_row =
        static_cast<std::size_t>(lines.start + static_cast<std::ptrdiff_t>(lines.first * s.stride_h));
    const std::size_t step = s.stride_h * s.in_w, count = lines.end - lines.first;
    for (std::size_t c = 0; c < s.in_channels; ++c) {
      float* const to = rows + (c * phases + phase) * plane;
      for (std::size_t i = 0; i < at_once; ++i) {
        fill_zero(to + i * plane, lines.first * pitch);
        fill_zero(to + i * plane + lines.end * pitch, (in_rows - lines.end) * pitch);
      }
      if (count == 0) continue;
      const float* const from = args.input + (c * s.in_h + first_row) * s.in_w;
      float* const out = to + lines.first * pitch;
      if (parted) {
        part_rows({from, s.in_w, step, count, s.pad_left, out, pitch, plane}, s.stride_w);
      } else {
        copy_part_rows({from, columns, step, count, pitch, out, pitch, end}, s.stride_w);
      }
    }
  }
}

// Writes output rows [h0, h1), of which only positions [range.n_begin, range.n_end) count. `weights` are packed in
// blocks of `block` k, rows `lda` apart.
void direct_band(const ConvArgs& args, const GemmTiles& tiles, const DirectLayout& layout, const GemmRange& range,
                 std::size_t h0, std::size_t h1, std::size_t block, std::size_t lda, std::int32_t* offsets,
                 float* rows) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t pitch = layout.pitch, in_rows = h1 - h0 + layout.reach, plane = in_rows * pitch;
  const std::size_t phases = layout.phases_h * layout.phases_w, depth = s.depth(), positions = s.positions();
  lay_out(args, layout, h0, in_rows, rows);
  fill_zero(rows + s.in_channels * phases * plane, kDirectSlack);
  std::size_t i = 0;
  for (std::size_t c = 0; c < s.in_channels; ++c) {
    for (std::size_t kh = 0; kh < s.kernel_h; ++kh) {
      for (std::size_t kw = 0; kw < s.kernel_w; ++kw, ++i) {
        const std::size_t phase = c * phases + kh % layout.phases_h * layout.phases_w + kw % layout.phases_w;
        offsets[i] = static_cast<std::int32_t>(phase * plane + kh * s.dilation_h / s.stride_h * pitch +
                                               kw * s.dilation_w / s.stride_w);
      }
    }
  }
  const std::size_t count = (h1 - h0 - 1) * pitch + s.out_w;
  const std::size_t channels = range.m_end - range.m_begin, row_tiles = divide_up(channels, kMr);
  alignas(64) float tile[GemmTiles::kMaxFloats + 2 * kNr];
  for (std::size_t t = 0; t < row_tiles; ++t) {
    const std::size_t m0 = range.m_begin + t * channels / row_tiles,
                      m1 = range.m_begin + (t + 1) * channels / row_tiles;
    for (std::size_t q0 = 0; q0 < count; q0 += kNr) {
      const std::size_t cols = smaller(kNr, count - q0);
      const auto accumulate = kShifted.accumulate[m1 - m0 - 1][divide_up(cols, kLanes) - 1];
      const float* weight = args.weights.floats();
      for (std::size_t k0 = 0; k0 < depth; k0 += block, weight += s.out_channels * lda)
        accumulate(smaller(block, depth - k0), weight + m0 * lda, lda, rows + q0, offsets + k0, k0 == 0, tile);
      for (std::size_t q = q0; q < q0 + cols;) {
        const std::size_t h = q / pitch, w = q % pitch, end = smaller(q0 + cols, (h + 1) * pitch);
        const std::size_t first = (h0 + h) * s.out_w + w;
        const std::size_t from = larger(first, range.n_begin);
        const std::size_t to = smaller(smaller(first + (end - q), (h0 + h + 1) * s.out_w), range.n_end);
        if (from < to) {
          const std::size_t at = m0 * positions + from;
          tiles.finish(
              {args.output + at, positions, m1 - m0, to - from, 1.0f, false, true, args.bias ? args.bias + m0 : nullptr,
               nullptr, args.residual ? args.residual + at : nullptr, positions, 1.0f, args.activation},
              tile + (q - q0) + (from - first));
        }
        q = end;
      }
    }
  }
}

// As accumulate_shifted from 0 on, of rows that lie `ld` apart in an input, which is fetched ahead.
template <std::size_t kRows, std::size_t kVectors>
void accumulate_in_place(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ld,
                         float* tile) noexcept {
  sum_tile<kRows, kVectors>(
      k, a, lda, [=](std::size_t p) { return b + p * ld; }, true, tile, kNr,
      [=](std::size_t p) {
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < kNr; i += kFetched) __builtin_prefetch(b + p * ld + kFetchAhead + i, 0, 2);
      });
}

struct InPlaceTiles {
  void (*accumulate[kMr])(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ld,
                          float* tile) noexcept;
};
template <std::size_t kRows = kMr>
constexpr void fill_in_place(InPlaceTiles& tiles) {
  tiles.accumulate[kRows - 1] = accumulate_in_place<kRows, kNv>;
  if constexpr (kRows > 1) fill_in_place<kRows - 1>(tiles);
}
constexpr InPlaceTiles make_in_place() {
  InPlaceTiles tiles{};
  fill_in_place(tiles);
  return tiles;
}
constexpr InPlaceTiles kInPlace = make_in_place();

void direct(const ConvArgs& args, const GemmTiles& tiles, const GemmRange& range, std::size_t block, std::size_t lda,
            float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const DirectLayout layout(s);
  const std::size_t begin = range.n_begin / s.out_w, end = divide_up(range.n_end, s.out_w);
  const std::size_t bands = divide_up(end - begin, layout.band);
  for (std::size_t i = 0; i < bands; ++i) {
    direct_band(args, tiles, layout, range, begin + i * (end - begin) / bands, begin + (i + 1) * (end - begin) / bands,
                block, lda, reinterpret_cast<std::int32_t*>(scratch), scratch + layout.offset_floats);
  }
}

}  // namespace
}  // namespace infernode::microkernels
