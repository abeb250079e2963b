#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace infernode::tensor {

/// Where a tensor's elements lie: [begin, end).
struct ByteRange {
  const std::byte *begin = nullptr, *end = nullptr;
};

inline ByteRange byte_range(const Tensor& t) { return {t.buffer().data(), t.buffer().data() + t.bytes()}; }

/// Many ranges, asked which others share bytes with one of them.
class ByteRanges {
 public:
  ByteRanges() = default;
  explicit ByteRanges(std::vector<ByteRange> ranges);
  bool meet(const ByteRange& other) const;

 private:
  std::vector<ByteRange> ranges_;  ///< by begin; `end` is the farthest one so far
};

}  // namespace infernode::tensor
