#include "ops/conv/methods/tap_ranges.h"

#include <doctest/doctest.h>

namespace infernode::ops {

namespace {

microkernels::ConvShape square(std::size_t size, std::size_t kernel, std::size_t dilation, std::ptrdiff_t pad) {
  microkernels::ConvShape s;
  s.in_h = s.in_w = size;
  s.kernel_h = s.kernel_w = kernel;
  s.dilation_h = s.dilation_w = dilation;
  s.pad_top = s.pad_left = pad;
  s.out_h = s.out_w = size + 2 * static_cast<std::size_t>(pad) - (kernel - 1) * dilation;
  return s;
}

}  // namespace

TEST_CASE("kernel points that see padding alone are left out") {
  const TapRanges only_middle(square(20, 3, 24, 24));
  CHECK(only_middle.parted());
  CHECK(only_middle.seen() == 400);
  CHECK(only_middle.products() == 1);

  const TapRanges some(square(20, 3, 12, 12));
  REQUIRE(some.along[1].size() == 3);
  CHECK(some.along[1][0].points() == 2);
  CHECK(some.along[1][1].points() == 1);
  CHECK(some.seen() == 36 * 36);
}

TEST_CASE("borders of a point or two are not worth products of their own") {
  CHECK(!TapRanges(square(56, 3, 1, 1)).parted());
  CHECK(!TapRanges(square(7, 7, 1, 3)).parted());
}

TEST_CASE("ranges follow each other, whatever they see") {
  for (const std::ptrdiff_t pad : {0, 1, 5, 30}) {
    microkernels::ConvShape s = square(9, 3, 4, pad);
    s.stride_h = 2;
    s.out_h = (s.out_h + 1) / 2;
    const TapRanges ranges(s);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      std::size_t at = 0;
      for (const TapRange& range : ranges.along[axis]) {
        CHECK(range.begin == at);
        CHECK(range.points() > 0);
        at = range.end;
      }
      CHECK(at == (axis == 0 ? 1 : axis == 1 ? s.out_h : s.out_w));
    }
  }
}

}  // namespace infernode::ops
