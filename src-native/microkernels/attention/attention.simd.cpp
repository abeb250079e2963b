#include "microkernels/attention/attention.h"

#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/tiles.h"
#include "microkernels/common/transpose_square.simd.h"
#include "simd/math.h"

namespace infernode::microkernels {
namespace {

constexpr float kInfinity = __builtin_inff();
constexpr std::size_t kMostRows = 96;        // of a strip
constexpr std::size_t kBlock = kGemmBlockK;  // keys whose values are summed up in registers

// ---- Operands ----

std::size_t keys_floats(std::size_t keys, std::size_t head) noexcept { return divide_up(keys, kNr) * kNr * head; }

// Panels of kNr keys, each with all of `head`; zeros for keys beyond the last.
void pack_keys(const float* k, std::size_t ldk, std::size_t keys, std::size_t head, float* out) noexcept {
  for (std::size_t n0 = 0; n0 < keys; n0 += kNr, out += kNr * head) {
    for (std::size_t c = 0; c < head; c += kSquare) {
      for (std::size_t r = 0; r < kNr; r += kSquare) {
        const std::size_t rows = n0 + r < keys ? smaller(kSquare, keys - n0 - r) : 0;
        const float* const from = k + (rows > 0 ? n0 + r : n0) * ldk + c;
        transpose_square(from, ldk, rows, smaller(kSquare, head - c), out + c * kNr + r, kNr);
      }
    }
  }
}

std::size_t values_stride(std::size_t v_head) noexcept { return divide_up(v_head, kLanes) * kLanes; }

void pack_values(const float* v, std::size_t ldv, std::size_t keys, std::size_t v_head, float* out) noexcept {
  const std::size_t whole = v_head / kLanes * kLanes, left = v_head - whole;
  for (std::size_t r = 0; r < keys; ++r, v += ldv) {
    for (std::size_t c = 0; c < whole; c += kLanes, out += kLanes) store(out, load(v + c));
    if (left == 0) continue;
    store(out, load_partial(v + whole, left));
    out += kLanes;
  }
}

// Rows of scores start on lines of memory, and not all of them on the same lines of a cache.
std::size_t scores_stride(std::size_t keys) noexcept {
  const std::size_t whole = divide_up(keys, kNr) * kNr;
  return whole % 256 == 0 ? whole + 16 : whole;
}
std::size_t scores_floats(std::size_t rows, std::size_t keys) noexcept { return rows * scores_stride(keys); }

// ---- Scores ----

template <std::size_t kRows, std::size_t kVectors>
void scores_tile(std::size_t head, const float* q, std::size_t ldq, const float* keys, float* out,
                 std::size_t ld) noexcept {
  sum_tile<kRows, kVectors>(
      head, q, ldq, [=](std::size_t p) { return keys + p * kNr; }, true, out, ld);
}
template <std::size_t kRows, std::size_t kVectors>
void values_tile(std::size_t keys, const float* powers, std::size_t ld, const float* v, std::size_t ldv,
                 float* tile) noexcept {
  sum_tile<kRows, kVectors>(
      keys, powers, ld, [=](std::size_t p) { return v + p * ldv; }, true, tile);
}

// By rows - 1 and vectors - 1.
struct Tiles {
  void (*scores[kMr][kNv])(std::size_t head, const float* q, std::size_t ldq, const float* keys, float* out,
                           std::size_t ld) noexcept;
  void (*values[kMr][kNv])(std::size_t keys, const float* powers, std::size_t ld, const float* v, std::size_t ldv,
                           float* tile) noexcept;
};
constexpr Tiles make_tiles() {
  Tiles tiles{};
  fill_by_size(tiles.scores, []<std::size_t kRows, std::size_t kVectors>() { return scores_tile<kRows, kVectors>; });
  fill_by_size(tiles.values, []<std::size_t kRows, std::size_t kVectors>() { return values_tile<kRows, kVectors>; });
  return tiles;
}
constexpr Tiles kTiles = make_tiles();

// How many keys row r of a strip sees.
std::size_t keys_of(const AttentionStrip& s, std::size_t r) noexcept {
  return s.causal ? smaller(s.keys, s.first_keys + r) : s.keys;
}

void make_scores(const AttentionStrip& s, std::size_t ld) noexcept {
  const std::size_t step = tile_rows(s.rows);
  for (std::size_t n0 = 0; n0 < s.keys; n0 += kNr) {
    const std::size_t vectors = divide_up(smaller(kNr, s.keys - n0), kLanes);
    const float* const keys = s.k + n0 * s.head;
    for (std::size_t r = 0; r < s.rows; r += step) {
      const std::size_t rows = smaller(step, s.rows - r);
      if (keys_of(s, r + rows - 1) <= n0) continue;
      kTiles.scores[rows - 1][vectors - 1](s.head, s.q + r * s.ldq, s.ldq, keys, s.scores + r * ld + n0, ld);
    }
  }
}

// ---- Softmax ----

// Scores of `n` keys, behind which numbers up to whole vectors become -infinity; returns the greatest, NaN left aside.
template <bool kMask>
INFERNODE_SIMD float prepare(float* x, std::size_t n, const float* mask, float scale) {
  constexpr std::size_t kChains = 4;
  const VecF factor = set(scale);
  VecF best[kChains];
  for (VecF& b : best) b = set(-kInfinity);
  const auto get = [&](std::size_t i) {
    VecF v = load(x + i);
    if constexpr (kMask) {
      v = fma(v, factor, load(mask + i));
      store(x + i, v);
    }
    return v;
  };
  std::size_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) best[c] = max(get(i + c * kLanes), best[c]);
  }
  for (; i + kLanes <= n; i += kLanes) best[0] = max(get(i), best[0]);
  if (i < n) {
    VecF v = load(x + i);
    if constexpr (kMask) v = fma(v, factor, load_partial(mask + i, n - i));
    v = select(set(static_cast<std::int32_t>(n - i)) > iota(), v, set(-kInfinity));
    store(x + i, v);
    best[1] = max(v, best[1]);
  }
  return reduce_max(max(max(best[0], best[1]), max(best[2], best[3])));
}

template <std::size_t kCount>
INFERNODE_SIMD void raise(float* x, VecF top, VecF factor, VecF (&sums)[4]) {
  // Zero below the normal range, as of keys that do not count: where a scaling of AVX-512 underflows, Intel's CPUs take
  // as long as for a hundred other instructions.
  constexpr bool kCutsOff = INFERNODE_SIMD_ID == 3;
  const VecF low = set(-126.0f);
  const auto from = each<kCount>([&](std::size_t c) { return (load(x + c * kLanes) - top) * factor; });
  const auto e =
      exp2_nonpositive(each<kCount>([&](std::size_t c) { return kCutsOff ? max(low, from.v[c]) : from.v[c]; }));
  INFERNODE_UNROLL
  for (std::size_t c = 0; c < kCount; ++c) {
    const VecF power = kCutsOff ? select(from.v[c] < low, zero(), e.v[c]) : e.v[c];
    store(x + c * kLanes, power);
    sums[c] = sums[c] + power;
  }
}

// x = exp(scale * (x - top)) of whole vectors; returns their sum.
INFERNODE_SIMD float powers(float* x, std::size_t vectors, float top, float scale) {
  const VecF most = set(top), factor = set(scale * 0x1.715476p+0f);
  VecF sums[4] = {zero(), zero(), zero(), zero()};
  for (; vectors >= kSideBySide; vectors -= kSideBySide, x += kSideBySide * kLanes)
    raise<kSideBySide>(x, most, factor, sums);
  if constexpr (kSideBySide == 4) {
    if (vectors == 3) raise<3>(x, most, factor, sums);
    if (vectors == 2) raise<2>(x, most, factor, sums);
  }
  if (vectors == 1) raise<1>(x, most, factor, sums);
  return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Scores to powers, zeros for keys that a row does not see; 1 / their sum in `factors`.
void make_powers(const AttentionStrip& s, std::size_t ld, float* factors) noexcept {
  const std::size_t most = keys_of(s, s.rows - 1);
  for (std::size_t r = 0; r < s.rows; ++r) {
    float* const x = s.scores + r * ld;
    const std::size_t n = keys_of(s, r), vectors = divide_up(n, kLanes);
    const float top = s.mask ? prepare<true>(x, n, s.mask + r * s.ld_mask, s.scale) : prepare<false>(x, n, nullptr, 1);
    factors[r] = 1.0f / powers(x, vectors, top, s.mask ? 1.0f : s.scale);
    for (std::size_t i = vectors * kLanes; i < most; i += kLanes) store(x + i, zero());
  }
}

// ---- Values ----

// Sums of a block of keys are added to y; the last block's, are multiplied by the rows' factors. NaN in `odd` where one
// is not finite.
INFERNODE_SIMD void finish_tile(const float* tile, std::size_t rows, std::size_t cols, const float* factors, bool first,
                                bool last, float* y, std::size_t ldy, VecF& odd) {
  for (std::size_t r = 0; r < rows; ++r, tile += kNr, y += ldy) {
    const VecF factor = set(last ? factors[r] : 1.0f);
    for (std::size_t c = 0; c < cols; c += kLanes) {
      const std::size_t count = smaller(kLanes, cols - c);
      const bool whole = count == kLanes;
      VecF v = load(tile + c);
      if (!first) v = v + (whole ? load(y + c) : load_partial(y + c, count));
      v = v * factor;
      odd = fma(v, zero(), odd);
      if (whole) {
        store(y + c, v);
      } else {
        store_partial(y + c, v, count);
      }
    }
  }
}

bool multiply_values(const AttentionStrip& s, std::size_t ld, const float* factors) noexcept {
  alignas(64) float tile[kMr * kNr];
  VecF odd = zero();
  const std::size_t step = tile_rows(s.rows);
  for (std::size_t k0 = 0; k0 < s.keys; k0 += kBlock) {
    for (std::size_t c0 = 0; c0 < s.v_head; c0 += kNr) {
      const std::size_t cols = smaller(kNr, s.v_head - c0), vectors = divide_up(cols, kLanes);
      for (std::size_t r = 0; r < s.rows; r += step) {
        const std::size_t rows = smaller(step, s.rows - r), keys = keys_of(s, r + rows - 1);
        if (keys <= k0) continue;
        kTiles.values[rows - 1][vectors - 1](smaller(kBlock, keys - k0), s.scores + r * ld + k0, ld,
                                             s.v + k0 * s.ldv + c0, s.ldv, tile);
        finish_tile(tile, rows, cols, factors + r, k0 == 0, keys - k0 <= kBlock, s.y + r * s.ldy + c0, s.ldy, odd);
      }
    }
  }
  return !any(is_nan(odd));
}

bool attend(const AttentionStrip& strip) noexcept {
  const std::size_t ld = scores_stride(strip.keys);
  float factors[kMostRows];
  AttentionStrip part = strip;
  bool good = true;
  for (std::size_t r = 0; r < strip.rows; r += kMostRows) {
    part.rows = smaller(kMostRows, strip.rows - r);
    part.q = strip.q + r * strip.ldq;
    part.y = strip.y + r * strip.ldy;
    if (strip.mask) part.mask = strip.mask + r * strip.ld_mask;
    part.first_keys = strip.first_keys + r;
    make_scores(part, ld);
    make_powers(part, ld, factors);
    good = multiply_values(part, ld, factors) && good;
  }
  return good;
}

}  // namespace

INFERNODE_TABLE(AttentionTable, attention) = {.name = INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                              .rows = kMr,
                                              .columns = kNr,
                                              .lanes = kLanes,
                                              .keys_floats = keys_floats,
                                              .pack_keys = pack_keys,
                                              .values_stride = values_stride,
                                              .pack_values = pack_values,
                                              .scores_floats = scores_floats,
                                              .attend = attend};

}  // namespace infernode::microkernels
