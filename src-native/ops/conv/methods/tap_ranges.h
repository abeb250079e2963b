#pragma once
// Which kernel points see input, and which see padding alone: along each axis the output falls into ranges of positions
// that the same points of the kernel reach.

#include <array>
#include <cstddef>
#include <vector>

#include "microkernels/conv/conv.h"

namespace infernode::ops {

/// Output positions [begin, end) along an axis and the kernel points [first, last) that are counted there; those
/// outside see padding.
struct TapRange {
  std::size_t begin, end, first, last;
  std::size_t count() const { return end - begin; }
  std::size_t points() const { return last - first; }
};

/// Input place of the kernel's first point at output position `at`.
constexpr std::ptrdiff_t first_place(std::size_t at, std::size_t stride, std::ptrdiff_t pad) {
  return static_cast<std::ptrdiff_t>(at * stride) - pad;
}

struct TapRanges {
  explicit TapRanges(const microkernels::ConvShape& shape);

  std::array<std::vector<TapRange>, 3> along;  ///< depth, height, width
  /// Whether that leaves kernel points out.
  bool parted() const { return parted_; }
  /// Positions, each as often as kernel points are counted there.
  double seen() const;
  /// Pairs of a part of the output and a kernel point that is counted there.
  double products() const;

 private:
  bool parted_ = false;
};

}  // namespace infernode::ops
