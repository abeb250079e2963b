#pragma once

#include <cstdint>

#include "base/inline_vector.h"

namespace infernode::ops {

/// One loop of a nest over two arrays: `n` steps of `from` elements in one and `to` elements in the other.
struct WalkAxis {
  std::int64_t n, from, to;
};

/// Offsets of a loop nest in row-major order from its `row`-th step on: one division per axis in all, none per step.
class Walk {
 public:
  Walk(const WalkAxis* axes, std::size_t count, std::int64_t row) : axes_(axes), count_(count), at_(count) {
    for (std::size_t d = count; d-- > 0;) {
      at_[d] = row % axes[d].n;
      row /= axes[d].n;
      from += at_[d] * axes[d].from;
      to += at_[d] * axes[d].to;
    }
  }
  void next() {
    for (std::size_t d = count_; d-- > 0;) {
      from += axes_[d].from;
      to += axes_[d].to;
      if (++at_[d] < axes_[d].n) return;
      from -= axes_[d].from * axes_[d].n;
      to -= axes_[d].to * axes_[d].n;
      at_[d] = 0;
    }
  }
  std::int64_t from = 0, to = 0;

 private:
  const WalkAxis* axes_;
  std::size_t count_;
  InlineVector<std::int64_t, 8> at_;
};

}  // namespace infernode::ops
