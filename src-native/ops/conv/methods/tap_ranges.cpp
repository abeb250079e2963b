#include "ops/conv/methods/tap_ranges.h"

#include <algorithm>

namespace infernode::ops {

namespace {

/// A range costs as much as this many positions more, since products of few rows are slow.
constexpr std::size_t kRangeCost = 2;

std::size_t cost(const TapRange& range) { return (range.count() + kRangeCost) * range.points(); }

TapRange joined(const TapRange& a, const TapRange& b) {
  return {a.begin, b.end, std::min(a.first, b.first), std::max(a.last, b.last)};
}

std::vector<TapRange> ranges_of(std::size_t out, std::size_t in, std::size_t kernel, std::size_t stride,
                                std::size_t dilation, std::ptrdiff_t pad) {
  std::vector<TapRange> ranges;
  const auto step = static_cast<std::ptrdiff_t>(dilation), length = static_cast<std::ptrdiff_t>(in);
  const auto points = static_cast<std::ptrdiff_t>(kernel);
  for (std::size_t at = 0; at < out; ++at) {
    const std::ptrdiff_t place = first_place(at, stride, pad);
    std::ptrdiff_t first = place >= 0 ? 0 : std::min(points, (-place + step - 1) / step);
    std::ptrdiff_t last = place >= length ? first : std::max(first, std::min(points, (length - 1 - place) / step + 1));
    if (first >= last) {  // one point stands for none of them: it sees zeros
      first = std::min(first, points - 1);
      last = first + 1;
    }
    const TapRange here{at, at + 1, static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
    if (!ranges.empty() && ranges.back().first == here.first && ranges.back().last == here.last) {
      ++ranges.back().end;
    } else {
      ranges.push_back(here);
    }
  }
  // Neighbours that are cheaper as one become one, the best pair first.
  for (;;) {
    std::size_t best = 0;
    std::ptrdiff_t most = -1;
    for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
      const auto gain = static_cast<std::ptrdiff_t>(cost(ranges[i]) + cost(ranges[i + 1])) -
                        static_cast<std::ptrdiff_t>(cost(joined(ranges[i], ranges[i + 1])));
      if (gain > most) {
        most = gain;
        best = i;
      }
    }
    if (most < 0) return ranges;
    ranges[best] = joined(ranges[best], ranges[best + 1]);
    ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

}  // namespace

TapRanges::TapRanges(const microkernels::ConvShape& s)
    : along{ranges_of(s.out_d, s.in_d, s.kernel_d, s.stride_d, s.dilation_d, s.pad_front),
            ranges_of(s.out_h, s.in_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top),
            ranges_of(s.out_w, s.in_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)} {
  const std::array<std::size_t, 3> kernel{s.kernel_d, s.kernel_h, s.kernel_w};
  for (std::size_t axis = 0; axis < along.size(); ++axis)
    for (const TapRange& range : along[axis]) parted_ = parted_ || range.points() < kernel[axis];
}

double TapRanges::seen() const {
  double product = 1;
  for (const std::vector<TapRange>& axis : along) {
    double sum = 0;
    for (const TapRange& range : axis) sum += static_cast<double>(range.count() * range.points());
    product *= sum;
  }
  return product;
}

double TapRanges::products() const {
  double product = 1;
  for (const std::vector<TapRange>& axis : along) {
    double sum = 0;
    for (const TapRange& range : axis) sum += static_cast<double>(range.points());
    product *= sum;
  }
  return product;
}

}  // namespace infernode::ops
