#include "microkernels/common/evenness.h"

#include <algorithm>
#include <cmath>

namespace infernode::microkernels {

bool many_weights_matter(std::size_t out_channels, std::size_t depth, const float* weight) noexcept {
  const double least = std::max(128.0, static_cast<double>(depth) / 4);
  for (std::size_t m = 0; m < out_channels; ++m, weight += depth) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < depth; ++i) {
      const double w = std::abs(static_cast<double>(weight[i]));
      sum += w;
      squares += w * w;
    }
    if (sum != 0 && !(sum * sum >= least * squares && sum > 1e-12 && sum < 1e15)) return false;
  }
  return true;
}

}  // namespace infernode::microkernels
