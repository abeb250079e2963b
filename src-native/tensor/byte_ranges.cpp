#include "tensor/byte_ranges.h"

#include <algorithm>
#include <functional>

namespace infernode::tensor {

ByteRanges::ByteRanges(std::vector<ByteRange> ranges) : ranges_(std::move(ranges)) {
  std::erase_if(ranges_, [](const ByteRange& range) { return range.begin == range.end; });
  std::ranges::sort(ranges_, std::less(), &ByteRange::begin);
  for (std::size_t i = 1; i < ranges_.size(); ++i) ranges_[i].end = std::max(ranges_[i].end, ranges_[i - 1].end);
}

bool ByteRanges::meet(const ByteRange& other) const {
  if (other.begin == other.end) return false;
  const auto behind = std::ranges::lower_bound(ranges_, other.end, std::less(), &ByteRange::begin);
  return behind != ranges_.begin() && std::prev(behind)->end > other.begin;
}

}  // namespace infernode::tensor
