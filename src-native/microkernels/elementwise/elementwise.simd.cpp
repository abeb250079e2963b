#include "microkernels/elementwise/elementwise.h"

#include <utility>

#include "microkernels/common/simd_file.h"
#include "microkernels/elementwise/detail/choose.simd.h"
#include "microkernels/elementwise/detail/remainder.simd.h"
#include "simd/math.h"

namespace infernode::microkernels {
namespace {

template <typename Fn>
INFERNODE_SIMD void map(const float* x, float* y, std::size_t n, Fn fn) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, fn(load(x + i)));
  if (i < n) store_partial(y + i, fn(load_partial(x + i, n - i)), n - i);
}

// ---- Unary ----

INFERNODE_SIMD VecF unary(UnaryOp op, VecF x, VecF a, VecF b) {
  const VecF one = set(1.0f);
  switch (op) {
    case UnaryOp::kAbs:
      return abs(x);
    case UnaryOp::kNeg:
      return -x;
    case UnaryOp::kReciprocal:
      return one / x;
    case UnaryOp::kSqrt:
      return sqrt(x);
    case UnaryOp::kRsqrt:
      return one / sqrt(x);
    case UnaryOp::kFloor:
      return floor(x);
    case UnaryOp::kCeil:
      return ceil(x);
    case UnaryOp::kRoundEven:
      return round_even(x);
    case UnaryOp::kExp:
      return exp(x);
    case UnaryOp::kLog:
      return log(x);
    case UnaryOp::kTanh:
      return tanh(x);
    case UnaryOp::kErf:
      return erf(x);
    case UnaryOp::kSigmoid:
      return sigmoid(x);
    case UnaryOp::kSilu:
      return silu(x);
    case UnaryOp::kQuickGelu:
      return x / (one + exp(-(x * a)));
    case UnaryOp::kGelu:
      return gelu(x);
    case UnaryOp::kGeluTanh:
      return gelu_tanh(x);
    case UnaryOp::kRelu:
      return max(zero(), x);
    case UnaryOp::kLeakyRelu:
      return select(x < zero(), x * a, x);
    case UnaryOp::kThresholdedRelu:
      return select(a < x, x, zero());
    case UnaryOp::kElu:
      return select(x < zero(), a * expm1_nonpositive(x), x);
    case UnaryOp::kSelu:
      return b * select(x < zero(), a * expm1_nonpositive(x), x);
    case UnaryOp::kCelu:
      return select(x < zero(), a * expm1_nonpositive(x / a), x);
    case UnaryOp::kHardSigmoid:
      return hard_sigmoid(x, a, b);
    case UnaryOp::kHardSwish:
      return hard_swish(x);
    case UnaryOp::kSoftplus:
      return softplus(x);
    case UnaryOp::kSoftsign:
      return select(abs(x) == set(__builtin_inff()), copysign(one, x), x / (one + abs(x)));
    case UnaryOp::kMish:
      return mish(x);
    case UnaryOp::kClip:
      return clamp(x, a, b);
    case UnaryOp::kAffine:
      return fma(a, x, b);
    case UnaryOp::kSquare:
      return x * x;
    case UnaryOp::kSign:
      return select(x > zero(), one, select(x < zero(), -one, select(is_nan(x), x, zero())));
    default:
      return x;
  }
}

template <UnaryOp kOp>
void unary_loop(const float* x, float* y, std::size_t n, float a, float b) noexcept {
  const VecF va = set(a), vb = set(b);
  map(x, y, n, [&](VecF v) { return unary(kOp, v, va, vb); });
}

// Arguments beyond the vector reduction's range, infinities and NaN take the C library's functions.
template <std::int32_t kQuarter>
void trig_loop(const float* x, float* y, std::size_t n, float, float) noexcept {
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t count = smaller(kLanes, n - i);
    const VecF v = load_partial(x + i, count);
    if (all(abs(v) <= set(kTrigLimit))) {
      store_partial(y + i, sincos_reduced(v, kQuarter), count);
      continue;
    }
    for (std::size_t j = i; j < i + count; ++j) y[j] = kQuarter ? __builtin_cosf(x[j]) : __builtin_sinf(x[j]);
  }
}

template <std::size_t... kOps>
constexpr void fill_unary(ElementwiseTable& table, std::index_sequence<kOps...>) {
  ((table.unary[kOps] = unary_loop<static_cast<UnaryOp>(kOps)>), ...);
}

// ---- Binary ----

INFERNODE_SIMD VecF binary(BinaryOp op, VecF x, VecF y) {
  switch (op) {
    case BinaryOp::kAdd:
      return x + y;
    case BinaryOp::kSub:
      return x - y;
    case BinaryOp::kMul:
      return x * y;
    case BinaryOp::kDiv:
      return x / y;
    case BinaryOp::kMin:
      return min_nan(x, y);
    case BinaryOp::kMax:
      return max_nan(x, y);
    case BinaryOp::kPrelu:
      return select(x < zero(), x * y, x);
    default:
      return x;
  }
}

template <BinaryOp kOp>
void vector_vector(const float* x, const float* y, float* out, std::size_t n) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, binary(kOp, load(x + i), load(y + i)));
  if (i < n) store_partial(out + i, binary(kOp, load_partial(x + i, n - i), load_partial(y + i, n - i)), n - i);
}
template <BinaryOp kOp>
void vector_scalar(const float* x, const float* y, float* out, std::size_t n) noexcept {
  const VecF b = set(*y);
  map(x, out, n, [&](VecF a) { return binary(kOp, a, b); });
}
template <BinaryOp kOp>
void scalar_vector(const float* x, const float* y, float* out, std::size_t n) noexcept {
  const VecF a = set(*x);
  map(y, out, n, [&](VecF b) { return binary(kOp, a, b); });
}

void pow_vector_vector(const float* x, const float* y, float* out, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = __builtin_powf(x[i], y[i]);
}
// Exponents that are a product, a quotient or a root apart are worth knowing.
void pow_vector_scalar(const float* x, const float* y, float* out, std::size_t n) noexcept {
  const float exponent = *y;
  const VecF one = set(1.0f);
  if (exponent == 1.0f) return map(x, out, n, [](VecF v) { return v; });
  if (exponent == 2.0f) return map(x, out, n, [](VecF v) { return v * v; });
  if (exponent == 3.0f) return map(x, out, n, [](VecF v) { return v * v * v; });
  if (exponent == -1.0f) return map(x, out, n, [&](VecF v) { return one / v; });
  if (exponent == 0.5f) {
    const VecF infinity = set(__builtin_inff());
    // pow(-infinity, 0.5) is infinity and pow(-0, 0.5) is 0, unlike the root.
    return map(x, out, n, [&](VecF v) { return select(v == -infinity, infinity, sqrt(v + zero())); });
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = __builtin_powf(x[i], exponent);
}
void pow_scalar_vector(const float* x, const float* y, float* out, std::size_t n) noexcept {
  const float base = *x;
  for (std::size_t i = 0; i < n; ++i) out[i] = __builtin_powf(base, y[i]);
}

void multiply_add(const float* x, const float* y, const float* z, float* out, std::size_t n) noexcept {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, fma(load(x + i), load(y + i), load(z + i)));
  if (i < n) {
    const std::size_t rest = n - i;
    store_partial(out + i, fma(load_partial(x + i, rest), load_partial(y + i, rest), load_partial(z + i, rest)), rest);
  }
}

template <std::size_t... kOps>
constexpr void fill_binary(ElementwiseTable& table, std::index_sequence<kOps...>) {
  ((table.vector_vector[kOps] = vector_vector<static_cast<BinaryOp>(kOps)>), ...);
  ((table.vector_scalar[kOps] = vector_scalar<static_cast<BinaryOp>(kOps)>), ...);
  ((table.scalar_vector[kOps] = scalar_vector<static_cast<BinaryOp>(kOps)>), ...);
}

template <std::size_t... kRelations>
constexpr void fill_compare(ElementwiseTable& table, std::index_sequence<kRelations...>) {
  ((table.compare[kRelations] = compare<static_cast<Relation>(kRelations)>), ...);
}

constexpr ElementwiseTable make_table() {
  ElementwiseTable table{};
  table.name = INFERNODE_TARGET_NAME(INFERNODE_TARGET);
  fill_unary(table, std::make_index_sequence<static_cast<std::size_t>(UnaryOp::kCount)>());
  table.unary[static_cast<std::size_t>(UnaryOp::kSin)] = trig_loop<0>;
  table.unary[static_cast<std::size_t>(UnaryOp::kCos)] = trig_loop<1>;
  fill_binary(table, std::make_index_sequence<static_cast<std::size_t>(BinaryOp::kCount)>());
  const auto pow = static_cast<std::size_t>(BinaryOp::kPow);
  table.vector_vector[pow] = pow_vector_vector;
  table.vector_scalar[pow] = pow_vector_scalar;
  table.scalar_vector[pow] = pow_scalar_vector;
  table.multiply_add = multiply_add;
  table.remainder = remainder;
  fill_compare(table, std::make_index_sequence<static_cast<std::size_t>(Relation::kCount)>());
  table.choose1 = choose<std::uint8_t>;
  table.choose2 = choose<std::uint16_t>;
  table.choose4 = choose<std::uint32_t>;
  table.choose8 = choose<std::uint64_t>;
  return table;
}

}  // namespace

INFERNODE_TABLE(ElementwiseTable, elementwise) = make_table();

}  // namespace infernode::microkernels
