#pragma once

#include "microkernels/blocked/blocked.h"
#include "microkernels/blocked/detail/kernel_points.h"
#include "microkernels/common/columns.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/common/transpose_square.simd.h"

// What a band of output rows sees of the input, laid out for the tiles that read it.
namespace infernode::microkernels {
namespace {

// Lines of input from row h0 on, of each `pitch` places from w0 on, zero where there is no input: blocks of `channels`
// floats a place.
void pad_rows(const BlockedConvArgs& args, std::ptrdiff_t h0, const SeenLines& lines, std::ptrdiff_t w0,
              std::size_t pitch, std::size_t blocks, std::size_t channels, float* out) noexcept {
  const ConvShape& s = args.shape;
  const auto floats = static_cast<std::ptrdiff_t>(channels);
  for (std::size_t b = 0; b < blocks; ++b) {
    const float* plane = args.input + b * s.in_h * s.in_w * channels;
    for (std::size_t line = 0; line < lines.count; ++line, out += pitch * channels) {
      const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(lines.row(line));
      if (h < 0 || h >= static_cast<std::ptrdiff_t>(s.in_h)) {
        fill_zero(out, pitch * channels);
      } else {
        copy_padded(plane + static_cast<std::size_t>(h) * s.in_w * channels,
                    static_cast<std::ptrdiff_t>(s.in_w) * floats, w0 * floats, 1, pitch * channels, out);
      }
    }
  }
}

// Consecutive rows of kChannelBlock planes, or of those that there are, as places of a block.
struct TurnedRows {
  const float* from;  // of the first plane, the first place that is taken of the first row
  std::size_t plane, planes;
  std::size_t rows, width, row_step;  // of the input: places that are taken of each row, and from a row to the next
  float* out;
  std::size_t pitch;  // places between rows of out
};

void turn_square(const TurnedRows& t, std::size_t at, std::size_t places, float* out) noexcept {
  INFERNODE_UNROLL
  for (std::size_t c = 0; c < kChannelBlock; c += kSquare)
    transpose_square(t.from + c * t.plane + at, t.plane, c < t.planes ? smaller(kSquare, t.planes - c) : 0, places,
                     out + c, kChannelBlock);
}

// Where rows lie close to each other, a square of kSquare places may hold the end of one row and the next row's begin.
[[gnu::noinline]] void turn_rows_of_block(const TurnedRows& t) noexcept {
  if (t.row_step >= t.width + kSquare) {
    for (std::size_t r = 0; r < t.rows; ++r) {
      for (std::size_t w = 0; w < t.width; w += kSquare)
        turn_square(t, r * t.row_step + w, smaller(kSquare, t.width - w), t.out + (r * t.pitch + w) * kChannelBlock);
    }
    return;
  }
  alignas(64) float square[kSquare * kChannelBlock];
  const std::size_t all = (t.rows - 1) * t.row_step + t.width;
  std::size_t r = 0, w = 0;
  for (std::size_t at = 0; at < all; at += kSquare) {
    const std::size_t places = smaller(kSquare, all - at);
    if (w + places <= t.width) {
      turn_square(t, at, places, t.out + (r * t.pitch + w) * kChannelBlock);
      w += places;
      continue;
    }
    turn_square(t, at, places, square);
    for (std::size_t i = 0; i < places; ++i) {
      if (w == t.row_step) {
        w = 0;
        ++r;
      }
      if (w++ >= t.width) continue;
      float* const to = t.out + (r * t.pitch + w - 1) * kChannelBlock;
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kChannelBlock; c += kLanes) store(to + c, load(square + i * kChannelBlock + c));
    }
  }
}

// What pad_rows lays out, in blocks of `channels` planes. Rows that no kernel sees, of those between which a
// stride passes over some, are left as they are.
void turn_rows(const BlockedConvArgs& args, std::ptrdiff_t h0, const SeenLines& lines, std::ptrdiff_t w0,
               std::size_t pitch, std::size_t channels, float* out) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t plane = s.in_h * s.in_w;
  const RowPart part = part_in_row(static_cast<std::ptrdiff_t>(s.in_w), w0, 1, pitch);
  const std::size_t period = s.dilation_h == 1 && s.kernel_h < s.stride_h ? s.stride_h : 0;
  for (std::size_t c0 = 0; c0 < channels; c0 += kChannelBlock, out += lines.count * pitch * kChannelBlock) {
    for (std::size_t line = 0; line < lines.count;) {
      float* const to = out + line * pitch * kChannelBlock;
      const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(lines.row(line));
      const std::size_t place = period > 0 ? line % period : 0;
      if (place >= s.kernel_h) {
        ++line;
        continue;
      }
      if (h < 0 || h >= static_cast<std::ptrdiff_t>(s.in_h) || part.first == part.end) {
        fill_zero(to, pitch * kChannelBlock);
        ++line;
        continue;
      }
      std::size_t rows = smaller(lines.count - line, s.in_h - static_cast<std::size_t>(h));
      if (lines.step != lines.dilation) rows = smaller(rows, lines.of_row - line % lines.of_row);
      if (period > 0) rows = smaller(rows, s.kernel_h - place);
      for (std::size_t r = 0; r < rows; ++r) {
        fill_zero(to + r * pitch * kChannelBlock, part.first * kChannelBlock);
        fill_zero(to + (r * pitch + part.end) * kChannelBlock, (pitch - part.end) * kChannelBlock);
      }
      const auto column = static_cast<std::size_t>(part.start + static_cast<std::ptrdiff_t>(part.first));
      turn_rows_of_block({args.input + c0 * plane + static_cast<std::size_t>(h) * s.in_w + column, plane,
                          smaller(kChannelBlock, channels - c0), rows, part.end - part.first, s.in_w,
                          to + part.first * kChannelBlock, pitch});
      line += rows;
    }
  }
}

// What a kernel of one point sees at positions [begin, end), in the same form.
void gather_positions(const BlockedConvArgs& args, std::size_t begin, std::size_t end, std::size_t blocks,
                      std::size_t channels, float* out) noexcept {
  const ConvShape& s = args.shape;
  for (std::size_t b = 0; b < blocks; ++b) {
    const float* plane = args.input + b * s.in_h * s.in_w * channels;
    for (std::size_t at = begin; at < end; ++at, out += channels) {
      const float* from = plane + (at / s.out_w * s.stride_h * s.in_w + at % s.out_w * s.stride_w) * channels;
      if (channels == 1) {
        *out = *from;
      } else {
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < kChannelBlock; i += kLanes) store(out + i, load(from + i));
      }
    }
  }
}

}  // namespace
}  // namespace infernode::microkernels
