#include "microkernels/toom.h"

#include "microkernels/evenness.h"
#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(ToomTable, toom_table)

namespace infernode::microkernels {

bool toom_holds(std::size_t out_channels, std::size_t depth, const float* weight) noexcept {
  return many_weights_matter(out_channels, depth, weight);
}

bool toom_even(float sum, float square) noexcept {
  constexpr float kEven = 96;
  return sum == 0 || (sum * sum >= kEven * square && square > 1e-30f && sum < 1e15f);
}

}  // namespace infernode::microkernels
