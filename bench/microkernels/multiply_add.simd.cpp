#include "multiply_add.h"

#include "simd/simd.h"

namespace infernode::bench {

using namespace simd::INFERNODE_TARGET;

std::size_t INFERNODE_SIMD_CAT(multiply_add_, INFERNODE_TARGET)(std::size_t turns, float& sum) noexcept {
  // Known when the program runs only, so that nothing is computed before it does.
  const volatile float factor = 0.999f, term = 0.001f;
  const VecF a = set(factor), b = set(term);
  VecF sums[kSums];
  for (std::size_t i = 0; i < kSums; ++i) sums[i] = set(static_cast<float>(i));
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < kSums; ++i) sums[i] = fma(sums[i], a, b);
  }
  for (std::size_t i = 0; i < kSums; ++i) sum += reduce_add(sums[i]);
  return turns * kSums * kLanes * 2;
}

}  // namespace infernode::bench
