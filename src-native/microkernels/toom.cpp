#include "microkernels/toom.h"

#include <algorithm>
#include <cmath>

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(ToomTable, toom_table)

namespace infernode::microkernels {

bool toom_holds(std::size_t out_channels, std::size_t depth, const float* weight) noexcept {
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

bool toom_even(float sum, float square) noexcept {
  constexpr float kEven = 96;
  return sum == 0 || (sum * sum >= kEven * square && square > 1e-30f && sum < 1e15f);
}

}  // namespace infernode::microkernels
