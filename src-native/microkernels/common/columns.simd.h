#pragma once

#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// The columns of a convolution: for each position of the output, what the kernel sees there.
namespace infernode::microkernels {
namespace {

// A run of output positions of one output row inside a panel.
struct Segment {
  std::size_t column, length;
  std::size_t d, h, w;  // first output position
};

std::size_t find_segments(const ConvShape& s, std::size_t n0, std::size_t cols, Segment* segments) noexcept {
  std::size_t count = 0, w = n0 % s.out_w, h = n0 / s.out_w % s.out_h, d = n0 / s.out_w / s.out_h;
  for (std::size_t column = 0; column < cols; ++count) {
    const std::size_t length = smaller(s.out_w - w, cols - column);
    segments[count] = {column, length, d, h, w};
    column += length;
    w = 0;
    if (++h == s.out_h) {
      h = 0;
      ++d;
    }
  }
  return count;
}

INFERNODE_SIMD void fill_zero(float* out, std::size_t n) {
  for (; n >= kLanes; n -= kLanes, out += kLanes) store(out, zero());
  if (n) store_partial(out, zero(), n);
}
// Elements 0, kStride, 2 * kStride, ...
template <std::size_t kStride>
INFERNODE_SIMD VecF load_apart(const float* x) {
  if constexpr (kStride == 1) return load(x);
  if constexpr (kStride == 2) return load_stride2(x);
  if constexpr (kStride == 3) return load_stride3(x);
  if constexpr (kStride == 4) return load_stride4(x);
}
// out[i] = x[i * kStride]; what lies before `end` may be read.
template <std::size_t kStride>
INFERNODE_SIMD void copy_apart(const float* x, std::size_t n, float* out, const float* end) {
  const bool long_enough = n >= kLanes;
  for (; n >= kLanes; n -= kLanes, x += kStride * kLanes, out += kLanes) store(out, load_apart<kStride>(x));
  if (n == 0) return;
  if constexpr (kStride == 1) {
    store_partial(out, load_partial(x, n), n);
  } else if (long_enough) {  // the last vector once more, ending with the last element
    store(out + n - kLanes, load_apart<kStride>(x + kStride * n - kStride * kLanes));
  } else if (n > kStride * kLanes / 8 && end != nullptr && static_cast<std::size_t>(end - x) > kStride * (kLanes - 1)) {
    store_partial(out, load_apart<kStride>(x), n);
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = x[i * kStride];
  }
}
// A function of its own, so that what it needs in registers does not take them from its callers.
template <std::size_t kStride>
[[gnu::noinline]] void copy_long_apart(const float* x, std::size_t n, float* out, const float* end) noexcept {
  copy_apart<kStride>(x, n, out, end);
}
// out[i] = x[i * stride]; what lies before `end` may be read.
INFERNODE_SIMD void copy_strided(const float* x, std::size_t stride, std::size_t n, float* out,
                                 const float* end = nullptr) {
  if (stride == 1) return copy_apart<1>(x, n, out, end);
  if (stride == 2) return copy_apart<2>(x, n, out, end);
  if (n < kLanes || stride > 4) {
    for (std::size_t i = 0; i < n; ++i) out[i] = x[i * stride];
  } else if (stride == 3) {
    copy_long_apart<3>(x, n, out, end);
  } else {
    copy_long_apart<4>(x, n, out, end);
  }
}
// What of n places start, start + stride, ... lies in a row: places [first, end).
struct RowPart {
  std::ptrdiff_t start;
  std::size_t first, end;
};
RowPart part_in_row(std::ptrdiff_t width, std::ptrdiff_t start, std::ptrdiff_t stride, std::size_t n) noexcept {
  const auto length = static_cast<std::ptrdiff_t>(n);
  if (start >= 0 && start + (length - 1) * stride < width) return {start, 0, n};
  const std::ptrdiff_t first = start >= 0 ? 0 : smaller(length, (-start + stride - 1) / stride);
  const std::ptrdiff_t end = start >= width ? first : larger(first, smaller(length, (width - 1 - start) / stride + 1));
  return {start, static_cast<std::size_t>(first), static_cast<std::size_t>(end)};
}
// Writes those n places, zero outside of the row; what lies before `input_end` may be read.
INFERNODE_SIMD void copy_part(const float* row, const RowPart& part, std::size_t stride, std::size_t n, float* out,
                              const float* input_end) {
  if (part.first > 0) fill_zero(out, part.first);
  if (part.end > part.first) {
    copy_strided(row + part.start + static_cast<std::ptrdiff_t>(part.first * stride), stride, part.end - part.first,
                 out + part.first, input_end);
  }
  if (n > part.end) fill_zero(out + part.end, n - part.end);
}
// The same of so many rows, of the input `step` floats apart and of out `pitch`.
struct PartRows {
  const float* row;
  RowPart part;
  std::size_t step, rows, n;
  float* out;
  std::size_t pitch;
  const float* input_end;
};
template <std::size_t kStride>
[[gnu::noinline]] void copy_part_rows_apart(const PartRows& p) noexcept {
  const std::ptrdiff_t start = p.part.start + static_cast<std::ptrdiff_t>(p.part.first * kStride);
  for (std::size_t r = 0; r < p.rows; ++r) {
    const float* const row = p.row + r * p.step;
    float* const out = p.out + r * p.pitch;
    if (p.part.first > 0) fill_zero(out, p.part.first);
    if (p.part.end > p.part.first)
      copy_apart<kStride>(row + start, p.part.end - p.part.first, out + p.part.first, p.input_end);
    if (p.n > p.part.end) fill_zero(out + p.part.end, p.n - p.part.end);
  }
}
[[maybe_unused]] void copy_part_rows(const PartRows& p, std::size_t stride) noexcept {
  switch (stride) {
    case 1:
      return copy_part_rows_apart<1>(p);
    case 2:
      return copy_part_rows_apart<2>(p);
    case 3:
      return copy_part_rows_apart<3>(p);
    case 4:
      return copy_part_rows_apart<4>(p);
    default:
      for (std::size_t r = 0; r < p.rows; ++r)
        copy_part(p.row + r * p.step, p.part, stride, p.n, p.out + r * p.pitch, p.input_end);
  }
}
// out[i] = row[start + i * stride], zero where that is outside of [0, width); what lies before `input_end` may
// be read.
INFERNODE_SIMD void copy_padded(const float* row, std::ptrdiff_t width, std::ptrdiff_t start, std::ptrdiff_t stride,
                                std::size_t n, float* out, const float* input_end = nullptr) {
  copy_part(row, part_in_row(width, start, stride, n), static_cast<std::size_t>(stride), n, out, input_end);
}

// Whether the columns are the input itself.
[[maybe_unused]] bool sees_input_as_it_is(const ConvShape& s) noexcept {
  return s.kernel_points() == 1 && s.pad_front == 0 && s.pad_top == 0 && s.pad_left == 0 && s.stride_d == 1 &&
         s.stride_h == 1 && s.stride_w == 1 && s.in_d * s.in_h * s.in_w == s.positions();
}

constexpr std::size_t kFetched = 16;          // floats that are fetched at a time
constexpr std::size_t kFetchAhead = 4 * kNr;  // how far ahead rows of an input that are read a few floats at a time are

constexpr std::size_t kKeptParts = 16;  // of as many columns of the kernel what lies in a row is computed once

// Rows [k0, k0 + k) of the columns at positions [n0, n0 + cols): out[p * kNr + c].
[[maybe_unused]] void pack_columns(const ConvShape& s, const float* input, std::size_t k0, std::size_t k,
                                   std::size_t n0, std::size_t cols, float* out) noexcept {
  if (cols < kNr) {
    for (std::size_t p = 0; p < k; ++p) {
      for (std::size_t c = cols; c < kNr; ++c) out[p * kNr + c] = 0.0f;
    }
  }
  const std::size_t plane = s.in_d * s.in_h * s.in_w;
  if (sees_input_as_it_is(s)) {
    for (std::size_t p = 0; p < k; ++p) {
      const float* const from = input + (k0 + p) * plane + n0;
      for (std::size_t i = 0; i < kNr; i += kFetched) __builtin_prefetch(from + kFetchAhead + i, 0, 2);
      copy_strided(from, 1, cols, out + p * kNr);
    }
    return;
  }
  const float* const end = input + s.in_channels * plane;
  // Strided windows pass over much input: what they see some panels later is fetched from each row.
  const auto place = [&](std::size_t n) {
    const std::size_t w = n % s.out_w, h = n / s.out_w % s.out_h, d = n / s.out_w / s.out_h;
    return (d * s.stride_d * s.in_h + h * s.stride_h) * s.in_w + w * s.stride_w;
  };
  const bool fetches = s.stride_w > 1 && n0 + kFetchAhead < s.positions();
  const std::size_t ahead = fetches ? place(n0 + kFetchAhead) - place(n0) : 0;
  Segment segments[kNr];
  const std::size_t count = find_segments(s, n0, cols, segments);
  for (std::size_t i = 0; i < count; ++i) {
    const Segment& segment = segments[i];
    std::size_t kw = k0 % s.kernel_w, kh = k0 / s.kernel_w % s.kernel_h;
    std::size_t kd = k0 / s.kernel_w / s.kernel_h % s.kernel_d, c = k0 / s.kernel_points();
    const auto d0 = static_cast<std::ptrdiff_t>(segment.d * s.stride_d) - s.pad_front;
    const auto h0 = static_cast<std::ptrdiff_t>(segment.h * s.stride_h) - s.pad_top;
    const auto w0 = static_cast<std::ptrdiff_t>(segment.w * s.stride_w) - s.pad_left;
    float* to = out + segment.column;
    const auto part_of = [&](std::size_t column) {
      return part_in_row(static_cast<std::ptrdiff_t>(s.in_w), w0 + static_cast<std::ptrdiff_t>(column * s.dilation_w),
                         static_cast<std::ptrdiff_t>(s.stride_w), segment.length);
    };
    RowPart parts[kKeptParts];
    for (std::size_t column = 0; column < smaller(s.kernel_w, kKeptParts); ++column) parts[column] = part_of(column);
    for (std::size_t p = 0; p < k;) {
      const std::ptrdiff_t d = d0 + static_cast<std::ptrdiff_t>(kd * s.dilation_d);
      const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(kh * s.dilation_h);
      const bool inside =
          d >= 0 && d < static_cast<std::ptrdiff_t>(s.in_d) && h >= 0 && h < static_cast<std::ptrdiff_t>(s.in_h);
      const float* row =
          inside ? input + c * plane + (static_cast<std::size_t>(d) * s.in_h + static_cast<std::size_t>(h)) * s.in_w
                 : nullptr;
      for (std::size_t at = 0; fetches && row && i == 0 && at < kNr * s.stride_w; at += kFetched)
        __builtin_prefetch(row + w0 + static_cast<std::ptrdiff_t>(ahead + at), 0, 2);
      for (; kw < s.kernel_w && p < k; ++kw, ++p, to += kNr) {
        if (row) {
          copy_part(row, kw < kKeptParts ? parts[kw] : part_of(kw), s.stride_w, segment.length, to, end);
        } else {
          fill_zero(to, segment.length);
        }
      }
      kw = 0;
      if (++kh == s.kernel_h) {
        kh = 0;
        if (++kd == s.kernel_d) {
          kd = 0;
          ++c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace infernode::microkernels
