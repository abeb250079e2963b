#include "microkernels/attention/attention.h"

#include "microkernels/common/bf16_pairs.h"
#include "microkernels/common/quick_activations.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kChains = 4;  // vectors side by side
constexpr float kInfinity = __builtin_inff();

float greatest_of(const float* x, std::size_t n) noexcept {
  __m512 most[kChains];
  for (__m512& m : most) m = _mm512_set1_ps(-kInfinity);
  std::size_t i = 0;
  for (; i + kChains * 16 <= n; i += kChains * 16) {
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) most[c] = _mm512_max_ps(_mm512_loadu_ps(x + i + c * 16), most[c]);
  }
  for (; i < n; i += 16) {
    const __m512 v =
        _mm512_mask_loadu_ps(_mm512_set1_ps(-kInfinity), first_lanes(smaller(n - i, std::size_t{16})), x + i);
    most[0] = _mm512_max_ps(v, most[0]);
  }
  return reduce_max(max(max(VecF{most[0]}, VecF{most[1]}), max(VecF{most[2]}, VecF{most[3]})));
}

float powers(const float* x, std::uint16_t* y, std::size_t n, float scale) noexcept {
  const VecF factor = set(kLog2OfE * scale), top = set(greatest_of(x, n));
  __m512 sum[kChains];
  for (__m512& s : sum) s = _mm512_setzero_ps();
  std::size_t i = 0;
  for (; i + kChains * 16 <= n; i += kChains * 16) {
    __m512 p[kChains];
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) {
      p[c] = power_of_2((load(x + i + c * 16) - top) * factor).v;
      sum[c] = _mm512_add_ps(sum[c], p[c]);
    }
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kChains; c += 2) _mm512_storeu_si512(y + i + c * 16, round_in_order(p[c], p[c + 1]));
  }
  for (; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(smaller(n - i, std::size_t{16}));
    const __m512 p = power_of_2((VecF{_mm512_maskz_loadu_ps(lanes, x + i)} - top) * factor).v;
    sum[0] = _mm512_mask_add_ps(sum[0], lanes, sum[0], p);
    _mm256_mask_storeu_epi16(y + i, lanes, (__m256i)_mm512_cvtneps_pbh(p));
  }
  return reduce_add((VecF{sum[0]} + VecF{sum[1]}) + (VecF{sum[2]} + VecF{sum[3]}));
}

}  // namespace

INFERNODE_TABLE_OF(PowerTable, powers, medium) = {"bf16", powers};

}  // namespace infernode::microkernels
