#include "microkernels/reduce/reduce.h"

#include <utility>

#include "microkernels/common/simd_file.h"
#include "microkernels/reduce/detail/order.simd.h"
#include "simd/math.h"

namespace infernode::microkernels {
namespace {

constexpr float kInfinity = __builtin_inff();

// What one step of a reduction does; sums add pairs of partial sums, so that their error grows slowly.
constexpr float neutral(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMax:
      return -kInfinity;
    case ReduceOp::kMin:
      return kInfinity;
    case ReduceOp::kProd:
      return 1.0f;
    default:
      return 0.0f;
  }
}
// Takes element x into the accumulator.
INFERNODE_SIMD VecF take(ReduceOp op, VecF sum, VecF x) {
  switch (op) {
    case ReduceOp::kSumSquare:
      return fma(x, x, sum);
    case ReduceOp::kSumAbs:
      return sum + abs(x);
    case ReduceOp::kMax:
      return max_nan(x, sum);
    case ReduceOp::kMin:
      return min_nan(x, sum);
    case ReduceOp::kProd:
      return sum * x;
    default:
      return sum + x;
  }
}
// Joins two accumulators.
INFERNODE_SIMD VecF join(ReduceOp op, VecF a, VecF b) {
  const bool sums = op == ReduceOp::kSumSquare || op == ReduceOp::kSumAbs;
  return sums ? a + b : take(op, a, b);
}
INFERNODE_SIMD float join_lanes(ReduceOp op, VecF v) {
  switch (op) {
    case ReduceOp::kMax:
      return any(is_nan(v)) ? __builtin_nanf("") : reduce_max(v);
    case ReduceOp::kMin:
      return any(is_nan(v)) ? __builtin_nanf("") : reduce_min(v);
    case ReduceOp::kProd: {
      float lanes[kLanes], product = 1.0f;
      store(lanes, v);
      for (std::size_t i = 0; i < kLanes; ++i) product *= lanes[i];
      return product;
    }
    default:
      return reduce_add(v);
  }
}
INFERNODE_SIMD VecF load_padded(const float* x, std::size_t n, float padding) {
  const Mask inside = set(static_cast<std::int32_t>(n)) > iota();
  return select(inside, load_partial(x, n), set(padding));
}

// Reduces fn(x[i]) with several accumulators.
template <typename Fn>
INFERNODE_SIMD VecF reduce_mapped(ReduceOp op, const float* x, std::size_t n, Fn fn) {
  const VecF start = set(neutral(op));
  VecF s0 = start, s1 = start, s2 = start, s3 = start;
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = take(op, s0, fn(load(x + i)));
    s1 = take(op, s1, fn(load(x + i + kLanes)));
    s2 = take(op, s2, fn(load(x + i + 2 * kLanes)));
    s3 = take(op, s3, fn(load(x + i + 3 * kLanes)));
  }
  for (; i + kLanes <= n; i += kLanes) s0 = take(op, s0, fn(load(x + i)));
  if (i < n) {
    const Mask inside = set(static_cast<std::int32_t>(n - i)) > iota();
    s1 = select(inside, take(op, s1, fn(load_partial(x + i, n - i))), s1);
  }
  return join(op, join(op, s0, s1), join(op, s2, s3));
}

// Long sums are cut into blocks whose totals are added in float64, which bounds the rounding error.
constexpr std::size_t kSumBlock = 4096;
constexpr std::size_t kSumRows = 128;  // of columns: each block's sum is added to the others' at its end

template <ReduceOp kOp>
float row(const float* x, std::size_t n) noexcept {
  const auto same = [](VecF v) { return v; };
  if constexpr (kOp == ReduceOp::kMax || kOp == ReduceOp::kMin || kOp == ReduceOp::kProd) {
    return join_lanes(kOp, reduce_mapped(kOp, x, n, same));
  }
  if (n <= kSumBlock) return reduce_add(reduce_mapped(kOp, x, n, same));
  double total = 0.0;
  for (std::size_t i = 0; i < n; i += kSumBlock) {
    total += static_cast<double>(reduce_add(reduce_mapped(kOp, x + i, smaller(kSumBlock, n - i), same)));
  }
  return static_cast<float>(total);
}

template <ReduceOp kOp>
void columns(const float* x, std::size_t rows, std::size_t stride, std::size_t cols, float* out) noexcept {
  // A strip of four vectors goes down all rows before the next: each cache line is read once.
  std::size_t c = 0;
  const VecF start = set(neutral(kOp));
  for (; c + 4 * kLanes <= cols; c += 4 * kLanes) {
    VecF s0 = start, s1 = start, s2 = start, s3 = start;
    const float* p = x + c;
    for (std::size_t r0 = 0; r0 < rows; r0 += kSumRows) {
      VecF t0 = start, t1 = start, t2 = start, t3 = start;
      for (std::size_t r = smaller(kSumRows, rows - r0); r > 0; --r, p += stride) {
        t0 = take(kOp, t0, load(p));
        t1 = take(kOp, t1, load(p + kLanes));
        t2 = take(kOp, t2, load(p + 2 * kLanes));
        t3 = take(kOp, t3, load(p + 3 * kLanes));
      }
      s0 = join(kOp, s0, t0);
      s1 = join(kOp, s1, t1);
      s2 = join(kOp, s2, t2);
      s3 = join(kOp, s3, t3);
    }
    store(out + c, s0);
    store(out + c + kLanes, s1);
    store(out + c + 2 * kLanes, s2);
    store(out + c + 3 * kLanes, s3);
  }
  for (; c < cols; c += kLanes) {
    const std::size_t n = smaller(kLanes, cols - c);
    VecF sum = start;
    const float* p = x + c;
    for (std::size_t r0 = 0; r0 < rows; r0 += kSumRows) {
      VecF part = start;
      for (std::size_t r = smaller(kSumRows, rows - r0); r > 0; --r, p += stride)
        part = take(kOp, part, load_partial(p, n));
      sum = join(kOp, sum, part);
    }
    store_partial(out + c, sum, n);
  }
}

// ---- Rows ----

// Greatest element, NaN left aside: a NaN reaches the result through the exponentials.
float row_max_ignoring_nan(const float* x, std::size_t n) noexcept {
  constexpr std::size_t kChains = 4;
  VecF best[kChains];
  for (VecF& b : best) b = set(-kInfinity);
  std::size_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) best[c] = max(load(x + i + c * kLanes), best[c]);
  }
  for (; i + kLanes <= n; i += kLanes) best[0] = max(load(x + i), best[0]);
  if (i < n) best[1] = max(load_padded(x + i, n - i, -kInfinity), best[1]);
  return reduce_max(max(max(best[0], best[1]), max(best[2], best[3])));
}

// y = exp((x - top) * scale) of kCount vectors, of which the last has `last` elements; adds them to the sums.
template <std::size_t kCount>
INFERNODE_SIMD void raise(const float* x, float* y, std::size_t last, VecF top, VecF scale, VecF (&sums)[4]) {
  const auto e = exp_nonpositive(each<kCount>([&](std::size_t c) {
    const bool whole = c + 1 < kCount || last == kLanes;
    const VecF v = whole ? load(x + c * kLanes) : load_padded(x + c * kLanes, last, -kInfinity);
    return (v - top) * scale;
  }));
  INFERNODE_UNROLL
  for (std::size_t c = 0; c < kCount; ++c) {
    if (c + 1 < kCount || last == kLanes) {
      store(y + c * kLanes, e.v[c]);
      sums[c] = sums[c] + e.v[c];
    } else {
      store_partial(y + c * kLanes, e.v[c], last);
      sums[c] = sums[c] + select(set(static_cast<std::int32_t>(last)) > iota(), e.v[c], zero());
    }
  }
}

float exponentials(const float* x, float* y, std::size_t n, float factor) noexcept {
  const float greatest = row_max_ignoring_nan(x, n);
  const VecF top = set(greatest), scale = set(factor);
  VecF sums[4] = {zero(), zero(), zero(), zero()};
  std::size_t i = 0;
  for (; i + kSideBySide * kLanes <= n; i += kSideBySide * kLanes)
    raise<kSideBySide>(x + i, y + i, kLanes, top, scale, sums);
  const std::size_t vectors = divide_up(n - i, kLanes), last = n - i - (vectors - 1) * kLanes;
  if constexpr (kSideBySide == 4) {
    if (vectors == 4) raise<4>(x + i, y + i, last, top, scale, sums);
    if (vectors == 3) raise<3>(x + i, y + i, last, top, scale, sums);
  }
  if (vectors == 2) raise<2>(x + i, y + i, last, top, scale, sums);
  if (vectors == 1) raise<1>(x + i, y + i, last, top, scale, sums);
  return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void softmax(const float* x, float* y, std::size_t n) noexcept {
  const VecF scale = set(1.0f / exponentials(x, y, n, 1.0f));
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(y + i) * scale);
  if (i < n) store_partial(y + i, load_partial(y + i, n - i) * scale, n - i);
}

void log_softmax(const float* x, float* y, std::size_t n) noexcept {
  const float greatest = row_max_ignoring_nan(x, n);
  const VecF top = set(greatest);
  const VecF sums = reduce_mapped(ReduceOp::kSum, x, n, [&](VecF v) { return exp_nonpositive(v - top); });
  float logs[kLanes];
  store(logs, log(set(reduce_add(sums))));
  const VecF log_sum = set(logs[0]);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t count = smaller(kLanes, n - i);
    store_partial(y + i, (load_partial(x + i, count) - top) - log_sum, count);
  }
}

// The variance is that of the differences from the mean (two passes): exact also for means far from zero.
void mean_variance(const float* x, std::size_t n, float* mean, float* variance) noexcept {
  const float scale = 1.0f / static_cast<float>(n);
  const float m = row<ReduceOp::kSum>(x, n) * scale;
  const VecF center = set(m);
  double squares = 0.0;
  for (std::size_t i = 0; i < n; i += kSumBlock) {
    squares += static_cast<double>(reduce_add(
        reduce_mapped(ReduceOp::kSumSquare, x + i, smaller(kSumBlock, n - i), [&](VecF v) { return v - center; })));
  }
  *mean = m;
  *variance = static_cast<float>(squares) * scale;
}

INFERNODE_SIMD float inverse_root(float x) { return 1.0f / __builtin_sqrtf(x); }

// y = ((x - mean) * scale) * gamma + beta
INFERNODE_SIMD void scale_row(const float* x, const float* gamma, const float* beta, float* y, std::size_t n, VecF mean,
                              VecF scale) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t count = smaller(kLanes, n - i);
    const bool whole = count == kLanes;
    const auto get = [&](const float* p) { return whole ? load(p + i) : load_partial(p + i, count); };
    VecF v = (get(x) - mean) * scale;
    if (gamma) v = v * get(gamma);
    if (beta) v = v + get(beta);
    if (whole) {
      store(y + i, v);
    } else {
      store_partial(y + i, v, count);
    }
  }
}

void layer_norm(const float* x, const float* gamma, const float* beta, float* y, std::size_t n, float epsilon,
                float* mean, float* inv_std) noexcept {
  float m, variance;
  mean_variance(x, n, &m, &variance);
  const float scale = inverse_root(variance + epsilon);
  scale_row(x, gamma, beta, y, n, set(m), set(scale));
  if (mean) *mean = m;
  if (inv_std) *inv_std = scale;
}

void rms_norm(const float* x, const float* gamma, float* y, std::size_t n, float epsilon, float* inv_rms) noexcept {
  const float scale = inverse_root(row<ReduceOp::kSumSquare>(x, n) / static_cast<float>(n) + epsilon);
  scale_row(x, gamma, nullptr, y, n, zero(), set(scale));
  if (inv_rms) *inv_rms = scale;
}

template <bool kGreatest>
std::size_t arg_extreme(const float* x, std::size_t n, bool last) noexcept {
  constexpr ReduceOp kOp = kGreatest ? ReduceOp::kMax : ReduceOp::kMin;
  const float value = row<kOp>(x, n);
  const bool nan = value != value;
  const VecF wanted = set(value);
  const auto matches = [&](std::size_t i) { return nan ? x[i] != x[i] : x[i] == value; };
  const auto block_matches = [&](std::size_t i) {
    const VecF v = load(x + i);
    return any(nan ? is_nan(v) : v == wanted);
  };
  if (last) {
    std::size_t i = n;
    while (i >= kLanes && !block_matches(i - kLanes)) i -= kLanes;
    while (i > 0 && !matches(i - 1)) --i;
    return i > 0 ? i - 1 : 0;
  }
  std::size_t i = 0;
  while (i + kLanes <= n && !block_matches(i)) i += kLanes;
  while (i + 1 < n && !matches(i)) ++i;
  return i;
}

float dot(const float* x, const float* y, std::size_t n) noexcept {
  VecF s0 = zero(), s1 = zero();
  std::size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    s0 = fma(load(x + i), load(y + i), s0);
    s1 = fma(load(x + i + kLanes), load(y + i + kLanes), s1);
  }
  for (; i < n; i += kLanes) {
    const std::size_t count = smaller(kLanes, n - i);
    s0 = fma(load_partial(x + i, count), load_partial(y + i, count), s0);
  }
  return reduce_add(s0 + s1);
}

template <std::size_t... kOps>
constexpr ReduceTable make_table(std::index_sequence<kOps...>) {
  return {INFERNODE_TARGET_NAME(INFERNODE_TARGET),
          {row<static_cast<ReduceOp>(kOps)>...},
          {columns<static_cast<ReduceOp>(kOps)>...},
          softmax,
          exponentials,
          log_softmax,
          layer_norm,
          rms_norm,
          mean_variance,
          arg_extreme<true>,
          arg_extreme<false>,
          dot,
          order_keys,
          ranks,
          best_columns<kMostBest>};
}

using EveryOp = std::make_index_sequence<static_cast<std::size_t>(ReduceOp::kCount)>;

}  // namespace

INFERNODE_TABLE(ReduceTable, reduce) = make_table(EveryOp());

}  // namespace infernode::microkernels
