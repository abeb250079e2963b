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
// out[i] = x[i * stride]; what lies before `end` may be read.
INFERNODE_SIMD void copy_strided(const float* x, std::size_t stride, std::size_t n, float* out,
                                 const float* end = nullptr) {
  if (stride == 1) {
    for (; n >= kLanes; n -= kLanes, x += kLanes, out += kLanes) store(out, load(x));
    if (n) store_partial(out, load_partial(x, n), n);
    return;
  }
  if (stride == 2) {
    const bool long_enough = n >= kLanes;
    for (; n >= kLanes; n -= kLanes, x += 2 * kLanes, out += kLanes) store(out, load_stride2(x));
    if (long_enough && n > 0) {  // the last vector once more, ending with the last element
      store(out + n - kLanes, load_stride2(x + 2 * n - 2 * kLanes));
      return;
    }
    if (n > 2 && end != nullptr && static_cast<std::size_t>(end - x) >= 2 * kLanes) {
      store_partial(out, load_stride2(x), n);
      return;
    }
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i * stride];
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
