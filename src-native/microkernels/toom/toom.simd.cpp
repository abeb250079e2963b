#include "microkernels/toom/toom.h"

#include "microkernels/common/simd_file.h"

namespace infernode::microkernels {
namespace {

void middle(const float* w0, const float* w1, const float* w2, std::size_t n, float* sum, float* difference) noexcept {
  const VecF half = set(0.5f);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VecF outer = load(w0 + i) + load(w2 + i), inner = load(w1 + i);
    store(sum + i, (outer + inner) * half);
    store(difference + i, (outer - inner) * half);
  }
  for (; i < n; ++i) {
    const float outer = w0[i] + w2[i];
    sum[i] = (outer + w1[i]) * 0.5f;
    difference[i] = (outer - w1[i]) * 0.5f;
  }
}

void butterfly(float* p, float* q, std::size_t n) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VecF a = load(p + i), b = load(q + i);
    store(p + i, a + b);
    store(q + i, a - b);
  }
  for (; i < n; ++i) {
    const float a = p[i], b = q[i];
    p[i] = a + b;
    q[i] = a - b;
  }
}

void measure(const float* x, std::size_t n, float& sum, float& square) noexcept {
  VecF sums = zero(), squares = zero();
  for (std::size_t i = 0; i < n; i += kLanes) {
    const VecF v = load_partial(x + i, smaller(kLanes, n - i));
    sums = sums + abs(v);
    squares = fma(v, v, squares);
  }
  sum = reduce_add(sums);
  square = reduce_add(squares);
}

}  // namespace

INFERNODE_TABLE(ToomTable, toom) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET), middle, butterfly, measure};

}  // namespace infernode::microkernels
