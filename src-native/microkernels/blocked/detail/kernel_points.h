#pragma once

#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/conv/conv.h"

// Which points of a kernel see input at which positions, so that the loops over blocks leave out the others.
namespace infernode::microkernels {
namespace {

// The rows of input that `out_rows` rows of output see, laid out as lines one after the other: those that lie between
// what two rows of a dilated kernel see are left out.
struct SeenLines {
  SeenLines(const ConvShape& s, std::size_t out_rows) noexcept
      : dilation(s.dilation_h),
        of_row((out_rows - 1) * s.stride_h + 1),
        step(smaller(s.dilation_h, of_row)),
        count((s.kernel_h - 1) * step + of_row) {}

  // Rows from that of the first line to that of another.
  std::size_t row(std::size_t line) const noexcept {
    return step == dilation ? line : line / of_row * dilation + line % of_row;
  }

  std::size_t dilation;
  std::size_t of_row;  // lines that one row of the kernel sees
  std::size_t step;    // lines from what a row of the kernel sees to what the next one does
  std::size_t count;
};

// Rows of output, one at least, that see no more lines.
[[maybe_unused]] std::size_t rows_that_see(const ConvShape& s, std::size_t lines) noexcept {
  const std::size_t reach = (s.kernel_h - 1) * s.dilation_h, each = lines / s.kernel_h;
  const std::size_t dense = lines <= reach ? 1 : (lines - reach - 1) / s.stride_h + 1;
  const std::size_t apart = each == 0 ? 1 : (smaller(each, s.dilation_h) - 1) / s.stride_h + 1;
  return larger(dense, apart);
}

// Kernel points [first, end) of one axis that have input at an output.
struct Reach {
  std::size_t first, end;
};
Reach reach(std::size_t out, std::size_t stride, std::size_t kernel, std::size_t dilation, std::ptrdiff_t pad,
            std::size_t size) noexcept {
  const auto start = static_cast<std::ptrdiff_t>(out * stride) - pad, step = static_cast<std::ptrdiff_t>(dilation),
             most = static_cast<std::ptrdiff_t>(kernel), limit = static_cast<std::ptrdiff_t>(size);
  if (start >= 0 && start + (most - 1) * step < limit) return {0, kernel};
  const std::ptrdiff_t first = start >= 0 ? 0 : smaller(most, (-start + step - 1) / step);
  const std::ptrdiff_t end = start >= limit ? first : larger(first, smaller(most, (limit - 1 - start) / step + 1));
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(end)};
}

// Of some output of [begin, end), and what lies between.
[[maybe_unused]] Reach reach_of(std::size_t begin, std::size_t end, std::size_t stride, std::size_t kernel,
                                std::size_t dilation, std::ptrdiff_t pad, std::size_t size) noexcept {
  Reach all{kernel, 0};
  for (std::size_t at = begin; at < end; ++at) {
    const Reach some = reach(at, stride, kernel, dilation, pad, size);
    if (some.first == some.end) continue;
    all = {smaller(all.first, some.first), larger(all.end, some.end)};
  }
  return all.first < all.end ? all : Reach{0, 0};
}

// Positions [begin, end) of a row, and the columns of the kernel that see input there.
struct Piece {
  std::size_t begin, end;
  Reach columns;
};

// The piece from `begin` on of a row that ends at `row_end`, of at most `most` positions. Dilated kernels see borders
// by fewer columns: positions that see the same of them are parted from others, unless they are too few for a tile.
[[maybe_unused]] Piece piece_of_row(const ConvShape& s, std::size_t begin, std::size_t row_end,
                                    std::size_t most) noexcept {
  constexpr std::size_t kFewest = 4;
  const std::size_t end = smaller(begin + most, row_end);
  const auto reach_at = [&](std::size_t w) {
    return reach(w, s.stride_w, s.kernel_w, s.dilation_w, s.pad_left, s.in_w);
  };
  const Reach seen = reach_at(begin);
  // The position from which on `tap` reads at `place` of the input or behind it.
  const auto sees_from = [&](std::size_t tap, std::ptrdiff_t place) {
    const auto stride = static_cast<std::ptrdiff_t>(s.stride_w);
    return (place + s.pad_left - static_cast<std::ptrdiff_t>(tap * s.dilation_w) + stride - 1) / stride;
  };
  auto change = static_cast<std::ptrdiff_t>(row_end);
  if (seen.first > 0) change = smaller(change, sees_from(seen.first - 1, 0));
  if (seen.end > seen.first) change = smaller(change, sees_from(seen.end - 1, static_cast<std::ptrdiff_t>(s.in_w)));
  const auto same = static_cast<std::size_t>(change);
  if (same >= end) return {begin, end, seen};
  if (same >= begin + kFewest) return {begin, begin + tile_rows(same - begin, most), seen};
  return {begin, end, reach_of(begin, end, s.stride_w, s.kernel_w, s.dilation_w, s.pad_left, s.in_w)};
}

// How a panel of channels goes over rows of positions.
struct Panel {
  std::size_t cols;
  std::size_t rows, columns;  // of the kernel, columns of one run as one
  bool narrow = false;        // whether it is one vector and its tiles have more rows
};

// Of a block of channels: numbers of a run, and words of weights: all of them, before the first that is read, after
// each row of the kernel.
struct KernelBlock {
  std::size_t length, weights, lead, row_gap;
};

// Has the tile read these rows and columns of the kernel, of the input from `x` on.
template <typename Tile, typename Word>
void take_points(const Panel& panel, const Reach& rows, const Reach& columns, const Word* x, Tile& t) noexcept {
  t.x = x + rows.first * t.row_step + columns.first * t.column_step;
  t.rows = rows.end - rows.first;
  t.columns = columns.end - columns.first;
  for (KernelBlock* const block : {&t.block, &t.last}) {
    const std::size_t run = block->length * panel.cols;
    block->weights = panel.rows * panel.columns * run;
    block->lead = (rows.first * panel.columns + columns.first) * run;
    block->row_gap = (panel.columns - t.columns) * run;
  }
}

}  // namespace
}  // namespace infernode::microkernels
