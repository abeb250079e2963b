#include "microkernels/gemm.h"

#include "microkernels/activate.simd.h"
#include "microkernels/gemm_output.simd.h"
#include "microkernels/gemm_tiles.h"
#include "microkernels/register_tile.simd.h"
#include "microkernels/simd_file.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kMaxRows = 192;           // rows of A that are packed at a time; a multiple of every kMr
constexpr std::size_t kLda = kGemmBlockK + 16;  // spreads the rows of a packed A over the cache sets
constexpr std::size_t kSkinny = 4;              // up to this many rows the product is bound by reading B
static_assert(kMaxRows % kMr == 0 && kMr * kNr <= GemmTiles::kMaxFloats && kNv <= GemmTiles::kMaxVectors);

constexpr std::size_t kScratchA = kMaxRows * kLda;
constexpr std::size_t kScratchB = kGemmBlockK * kNr;

template <std::size_t kRows, std::size_t kVectors>
void accumulate(std::size_t k, const float* a, std::size_t lda, const float* b, std::size_t ldb, float* tile) noexcept {
  sum_tile<kRows, kVectors>(
      k, a, lda, [=](std::size_t p) { return b + p * ldb; }, true, tile);
}

// The same of a whole panel of packed weights, while lines of the next one, which begins at `ahead`, are fetched: with
// each row of B every kEvery-th of them from there on.
constexpr std::size_t kLine = 16;
template <std::size_t kRows, std::size_t kEvery>
void accumulate_ahead(std::size_t k, const float* a, std::size_t lda, const float* b, const float* ahead,
                      float* tile) noexcept {
  sum_tile<kRows, kNv>(
      k, a, lda, [=](std::size_t p) { return b + p * kNr; }, true, tile, kNr,
      [=](std::size_t p) {
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < kNr; i += kEvery * kLine) __builtin_prefetch(ahead + p * kNr + i, 0, 2);
      });
}

// Tiles of whole vectors: most of them. Activations that are no clamp are applied to all of the tile
// at once, in place.
template <bool kLoad, bool kLast, bool kResidual>
void finish_whole(const TileOutput& out, float* tile) noexcept {
  const VecF alpha = set(out.alpha), residual_scale = set(out.residual_scale);
  const ClampBounds bounds = clamp_bounds(out.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  const float* residual = out.residual;
  VecF bias_n[kNv];
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kNv; ++v) bias_n[v] = kLast && out.bias_n ? load(out.bias_n + v * kLanes) : zero();
  const bool activate = kLast && !is_clamp(out.activation);
  float* const whole = tile;
  float* c = out.c;
  for (std::size_t r = 0; r < out.rows; ++r, c += out.ldc, tile += kNr) {
    float* const to = activate ? tile : c;
    const VecF bias_m = set(kLast && out.bias_m ? out.bias_m[r] : 0.0f);
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      VecF x = load(tile + v * kLanes) * alpha;
      if constexpr (kLoad) x = x + load(c + v * kLanes);
      if constexpr (kResidual) x = fma(load(residual + v * kLanes), residual_scale, x);
      if constexpr (kLast) x = clamp(x + bias_m + bias_n[v], low, high);
      store(to + v * kLanes, x);
    }
    if constexpr (kResidual) residual += out.ld_residual;
  }
  if (!activate) return;
  activate_row(out.activation, whole, out.rows * kNr);
  c = out.c;
  for (const float* from = whole; from != tile; from += kNr, c += out.ldc) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) store(c + v * kLanes, load(from + v * kLanes));
  }
}

void finish(const TileOutput& out, float* tile) noexcept {
  if (out.cols == kNr) {
    if (out.last && out.residual)
      return out.load_c ? finish_whole<true, true, true>(out, tile) : finish_whole<false, true, true>(out, tile);
    if (out.last)
      return out.load_c ? finish_whole<true, true, false>(out, tile) : finish_whole<false, true, false>(out, tile);
    return out.load_c ? finish_whole<true, false, false>(out, tile) : finish_whole<false, false, false>(out, tile);
  }
  const VecF alpha = set(out.alpha), residual_scale = set(out.residual_scale);
  const ClampBounds bounds = clamp_bounds(out.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  for (std::size_t r = 0; r < out.rows; ++r) {
    float* c = out.c + r * out.ldc;
    const float* residual = out.last && out.residual ? out.residual + r * out.ld_residual : nullptr;
    const VecF bias = set(out.last && out.bias_m ? out.bias_m[r] : 0.0f);
    for (std::size_t i = 0; i < out.cols; i += kLanes) {
      const std::size_t n = smaller(kLanes, out.cols - i);
      const bool whole = n == kLanes;
      VecF v = load(tile + r * kNr + i) * alpha;
      if (out.load_c) v = v + (whole ? load(c + i) : load_partial(c + i, n));
      if (out.last) {
        if (residual) v = fma(whole ? load(residual + i) : load_partial(residual + i, n), residual_scale, v);
        v = v + bias;
        if (out.bias_n) v = v + (whole ? load(out.bias_n + i) : load_partial(out.bias_n + i, n));
        v = clamp(v, low, high);
      }
      if (whole) {
        store(c + i, v);
      } else {
        store_partial(c + i, v, n);
      }
    }
    if (out.last && !is_clamp(out.activation)) activate_row(out.activation, c, out.cols);
  }
}

constexpr GemmTiles make_tiles() {
  GemmTiles tiles{kMr, kNr, kLanes, {}, finish};
  fill_by_size(tiles.accumulate, []<std::size_t kRows, std::size_t kVectors>() { return accumulate<kRows, kVectors>; });
  return tiles;
}
constexpr GemmTiles kTiles = make_tiles();

// By rows - 1, and whether it fetches every line or every other one.
struct AheadTiles {
  void (*accumulate[kMr][2])(std::size_t k, const float* a, std::size_t lda, const float* b, const float* ahead,
                             float* tile) noexcept;
};
template <std::size_t kRows = kMr>
constexpr void fill_ahead(AheadTiles& tiles) {
  if constexpr (kRows > 0) {
    tiles.accumulate[kRows - 1][0] = accumulate_ahead<kRows, 1>;
    tiles.accumulate[kRows - 1][1] = accumulate_ahead<kRows, 2>;
    fill_ahead<kRows - 1>(tiles);
  }
}
constexpr AheadTiles make_ahead() {
  AheadTiles tiles{};
  fill_ahead(tiles);
  return tiles;
}
constexpr AheadTiles kAheadTiles = make_ahead();

// ---- Reading operands of any type ----

enum class Stored { kF32, kF16, kBf16, kS8, kU8 };

template <Stored kType>
constexpr bool kIsCode = kType == Stored::kS8 || kType == Stored::kU8;

template <Stored kType>
INFERNODE_SIMD VecF load_as(const void* p, std::size_t i) {
  if constexpr (kType == Stored::kF32) return load(static_cast<const float*>(p) + i);
  if constexpr (kType == Stored::kF16) return load_f16(static_cast<const std::uint16_t*>(p) + i);
  if constexpr (kType == Stored::kBf16) return load_bf16(static_cast<const std::uint16_t*>(p) + i);
  if constexpr (kType == Stored::kS8) return to_float(load_s8(static_cast<const std::int8_t*>(p) + i));
  if constexpr (kType == Stored::kU8) return to_float(load_u8(static_cast<const std::uint8_t*>(p) + i));
}
template <Stored kType>
INFERNODE_SIMD VecF load_partial_as(const void* p, std::size_t i, std::size_t n) {
  if constexpr (kType == Stored::kF32) {
    return load_partial(static_cast<const float*>(p) + i, n);
  } else {
    constexpr std::size_t kBytes = kIsCode<kType> ? 1 : 2;
    std::uint8_t whole[kLanes * kBytes] = {};
    for (std::size_t j = 0; j < n * kBytes; ++j) whole[j] = static_cast<const std::uint8_t*>(p)[i * kBytes + j];
    return load_as<kType>(whole, 0);
  }
}
// Converts n elements from index i on.
template <Stored kType>
INFERNODE_SIMD void copy_as(const void* p, std::size_t i, std::size_t n, float* out) {
  for (; n >= kLanes; n -= kLanes, i += kLanes, out += kLanes) store(out, load_as<kType>(p, i));
  if (n) store_partial(out, load_partial_as<kType>(p, i, n), n);
}
// Calls fn with the type as a constant.
template <typename Fn>
INFERNODE_SIMD void with_type(FloatType type, Fn fn) {
  switch (type) {
    case FloatType::kF32:
      fn.template operator()<Stored::kF32>();
      break;
    case FloatType::kF16:
      fn.template operator()<Stored::kF16>();
      break;
    case FloatType::kBf16:
      fn.template operator()<Stored::kBf16>();
      break;
  }
}
template <typename Fn>
INFERNODE_SIMD void with_b_type(const GemmArgs& g, Fn fn) {
  if (!g.b_quantized) {
    with_type(g.b_type, fn);
  } else if (g.b_quantized->is_signed) {
    fn.template operator()<Stored::kS8>();
  } else {
    fn.template operator()<Stored::kU8>();
  }
}

// Zero and scale of kLanes columns from n0 on, of which n exist.
struct Dequantizer {
  VecF zero, scale;
  VecF operator()(VecF code) const { return (code - zero) * scale; }
};
INFERNODE_SIMD Dequantizer dequantizer(const QuantizedB& q, std::size_t n0, std::size_t n) {
  if (!q.per_column) return {set(q.zeros[0]), set(q.scales[0])};
  return {load_partial(q.zeros + n0, n), load_partial(q.scales + n0, n)};
}

// out[c * ld_out + r] = x[(r0 + r) * ldx + c0 + c]
template <Stored kType>
void transpose_block(const void* x, std::size_t ldx, std::size_t r0, std::size_t c0, std::size_t rows, std::size_t cols,
                     float* out, std::size_t ld_out) noexcept {
  std::size_t r = 0;
  if constexpr (kType == Stored::kF32) {
    const float* base = static_cast<const float*>(x) + r0 * ldx + c0;
    for (; r + 4 <= rows; r += 4) {
      std::size_t c = 0;
      for (; c + 4 <= cols; c += 4) transpose4(base + r * ldx + c, ldx, out + c * ld_out + r, ld_out);
      for (; c < cols; ++c) {
        for (std::size_t i = r; i < r + 4; ++i) out[c * ld_out + i] = base[i * ldx + c];
      }
    }
    for (; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) out[c * ld_out + r] = base[r * ldx + c];
    }
  } else {
    for (; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; c += kLanes) {
        float part[kLanes];
        const std::size_t n = smaller(kLanes, cols - c);
        const std::size_t at = (r0 + r) * ldx + c0 + c;
        store(part, n == kLanes ? load_as<kType>(x, at) : load_partial_as<kType>(x, at, n));
        for (std::size_t i = 0; i < n; ++i) out[(c + i) * ld_out + r] = part[i];
      }
    }
  }
}

// out[r * kLda + p] = A[m0 + r][k0 + p]
template <Stored kType>
void pack_a(const void* a, std::size_t lda, bool trans, std::size_t m0, std::size_t rows, std::size_t k0, std::size_t k,
            float* out) noexcept {
  if (trans) {
    transpose_block<kType>(a, lda, k0, m0, k, rows, out, kLda);
  } else {
    for (std::size_t r = 0; r < rows; ++r) copy_as<kType>(a, (m0 + r) * lda + k0, k, out + r * kLda);
  }
}

// One panel: out[p * kNr + c] = B[k0 + p][n0 + c], zero for c >= cols.
template <Stored kType>
void pack_b_panel(const void* b, std::size_t ldb, bool trans, std::size_t k0, std::size_t k, std::size_t n0,
                  std::size_t cols, float* out) noexcept {
  if (trans) {
    transpose_block<kType>(b, ldb, n0, k0, cols, k, out, kNr);
    if (cols < kNr) {
      for (std::size_t p = 0; p < k; ++p) {
        for (std::size_t c = cols; c < kNr; ++c) out[p * kNr + c] = 0.0f;
      }
    }
    return;
  }
  for (std::size_t p = 0; p < k; ++p, out += kNr) {
    const std::size_t row = (k0 + p) * ldb + n0;
    if (cols == kNr) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kNv; ++v) store(out + v * kLanes, load_as<kType>(b, row + v * kLanes));
    } else {
      copy_as<kType>(b, row, cols, out);
      for (std::size_t c = cols; c < kNr; ++c) out[c] = 0.0f;
    }
  }
}

// A whole panel of codes as numbers.
template <Stored kType>
void pack_codes(const QuantizedB& q, const void* b, std::size_t ldb, std::size_t k0, std::size_t k, std::size_t n0,
                float* out) noexcept {
  Dequantizer dequantize[kNv];
  for (std::size_t v = 0; v < kNv; ++v) dequantize[v] = dequantizer(q, n0 + v * kLanes, kLanes);
  for (std::size_t p = 0; p < k; ++p, out += kNr) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v)
      store(out + v * kLanes, dequantize[v](load_as<kType>(b, (k0 + p) * ldb + n0 + v * kLanes)));
  }
}

// Codes of a panel become numbers.
void dequantize_panel(const QuantizedB& q, std::size_t k, std::size_t n0, std::size_t cols, float* panel) noexcept {
  for (std::size_t i = 0; i < cols; i += kLanes) {
    const Dequantizer dequantize = dequantizer(q, n0 + i, smaller(kLanes, cols - i));
    for (float *p = panel + i, *end = p + k * kNr; p != end; p += kNr) store(p, dequantize(load(p)));
  }
}

std::size_t packed_b_floats(std::size_t n, std::size_t k) noexcept { return divide_up(n, kNr) * kNr * k; }

// Panel after panel of kNr columns, each with all of K.
void pack_b(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, float* out,
            std::size_t n_begin, std::size_t n_end) noexcept {
  with_type(type, [&]<Stored kType>() {
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kNr) {
      pack_b_panel<kType>(b, ldb, trans_b, 0, k, n0, smaller(kNr, n - n0), out + n0 * k);
    }
  });
}

// ---- Drivers ----

// Rows [m0, m0 + rows) of C, all columns of the range, in blocks of K.
void multiply_rows(const GemmArgs& g, std::size_t m0, std::size_t rows, std::size_t n_begin, std::size_t n_end,
                   float* scratch) noexcept {
  float* const packed_a = scratch;
  float* const panel = scratch + kScratchA;
  alignas(64) float tile[GemmTiles::kMaxFloats];
  const std::size_t block = larger(gemm_block_k(g.k), std::size_t{1});
  // Rows are dealt out evenly over the register tiles: no tile is much emptier than another.
  const std::size_t tiles = divide_up(rows, kMr);
  std::size_t k0 = 0;
  do {
    const std::size_t k = smaller(block, g.k - k0);
    const bool first = k0 == 0, last = k0 + k == g.k;
    with_type(g.a_type, [&]<Stored kType>() { pack_a<kType>(g.a, g.lda, g.trans_a, m0, rows, k0, k, packed_a); });
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kNr) {
      const std::size_t cols = smaller(kNr, n_end - n0);
      const float* b = panel;
      std::size_t ldb = kNr;
      if (g.packed_b) {
        b = g.packed_b + n0 * g.packed_depth() + k0 * kNr;
      } else if (tiles == 1 && cols == kNr && !g.trans_b && g.b_type == FloatType::kF32 && !g.b_quantized) {
        b = static_cast<const float*>(g.b) + k0 * g.ldb + n0;
        ldb = g.ldb;
      } else {
        with_b_type(g, [&]<Stored kType>() {
          if constexpr (kIsCode<kType>) {
            if (!g.trans_b && cols == kNr) return pack_codes<kType>(*g.b_quantized, g.b, g.ldb, k0, k, n0, panel);
          }
          pack_b_panel<kType>(g.b, g.ldb, g.trans_b, k0, k, n0, cols, panel);
          if (g.b_quantized) dequantize_panel(*g.b_quantized, k, n0, cols, panel);
        });
      }
      const std::size_t vectors = divide_up(cols, kLanes);
      for (std::size_t t = 0; t < tiles; ++t) {
        const std::size_t r0 = t * rows / tiles, r1 = (t + 1) * rows / tiles;
        // The next panel comes from far away: the first tiles, that read this one from near, fetch it.
        if (g.packed_b && n0 + kNr < n_end && t < 2 && (t == 0 || kNr > kLine)) {
          const float* const ahead = b + kNr * g.packed_depth() + t * kLine;
          kAheadTiles.accumulate[r1 - r0 - 1][tiles > 1](k, packed_a + r0 * kLda, kLda, b, ahead, tile);
        } else {
          kTiles.accumulate[r1 - r0 - 1][vectors - 1](k, packed_a + r0 * kLda, kLda, b, ldb, tile);
        }
        finish(output_at(g, m0 + r0, r1 - r0, n0, cols, first, last), tile);
      }
    }
    k0 += k;
  } while (k0 < g.k);
}

// ---- Few rows ----

// Few rows times packed panels: several sums per element hide the latency of the multiply-add.
template <std::size_t kRows>
void skinny_panel(std::size_t k, const float* a, std::size_t lda, const float* b, float* tile) noexcept {
  constexpr std::size_t kChains = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  VecF sum[kChains][kRows][kNv];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) {
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kNv; ++v) sum[i][r][v] = zero();
    }
  }
  std::size_t p = 0;
  for (; p + kChains <= k; p += kChains) {
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kChains; ++i) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kNv; ++v) {
        const VecF row = load(b + (p + i) * kNr + v * kLanes);
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kRows; ++r) sum[i][r][v] = fma(set(a[r * lda + p + i]), row, sum[i][r][v]);
      }
    }
  }
  for (; p < k; ++p) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      const VecF row = load(b + p * kNr + v * kLanes);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) sum[0][r][v] = fma(set(a[r * lda + p]), row, sum[0][r][v]);
    }
  }
  INFERNODE_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      VecF total = sum[0][r][v];
      INFERNODE_UNROLL
      for (std::size_t i = 1; i < kChains; ++i) total = total + sum[i][r][v];
      store(tile + r * kNr + v * kLanes, total);
    }
  }
}

// C = sums of kDepth rows of B at a time, each read once from end to end.
template <Stored kType, std::size_t kRows>
void skinny_plain(const GemmArgs& g, const GemmRange& range) noexcept {
  constexpr std::size_t kDepth = kRows <= 2 ? 8 : 4;
  const float* a = static_cast<const float*>(g.a);
  for (std::size_t k0 = 0; k0 < g.k; k0 += kDepth) {
    const std::size_t depth = smaller(kDepth, g.k - k0);
    const bool start = k0 == 0 && !g.accumulate;
    // One scale of all codes goes into A.
    const bool scaled = kIsCode<kType> && !g.b_quantized->per_column;
    const float factor = scaled ? g.alpha * g.b_quantized->scales[0] : g.alpha;
    float x[kRows][kDepth];
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t i = 0; i < depth; ++i) x[r][i] = factor * a[r * g.lda + k0 + i];
    }
    std::size_t n0 = range.n_begin;
    // Lines of memory at a time; rows lie far from each other.
    constexpr std::size_t kVectors = kRows <= 2 ? 4 : 2, kAhead = 1024;
    for (; depth == kDepth && n0 + kVectors * kLanes <= range.n_end; n0 += kVectors * kLanes) {
      VecF sum[kRows][kVectors];
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = start ? zero() : load(g.c + r * g.ldc + n0 + v * kLanes);
      }
      [[maybe_unused]] Dequantizer dequantize[kVectors];
      if constexpr (kIsCode<kType>) {
        for (std::size_t v = 0; v < kVectors; ++v) dequantize[v] = dequantizer(*g.b_quantized, n0 + v * kLanes, kLanes);
      }
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < kDepth; ++i) {
        const std::size_t at = (k0 + i) * g.ldb + n0;
        if constexpr (kIsCode<kType>) __builtin_prefetch(static_cast<const std::uint8_t*>(g.b) + at + kAhead);
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) {
          VecF row = load_as<kType>(g.b, at + v * kLanes);
          if constexpr (kIsCode<kType>) row = scaled ? row - dequantize[v].zero : dequantize[v](row);
          INFERNODE_UNROLL
          for (std::size_t r = 0; r < kRows; ++r) sum[r][v] = fma(set(x[r][i]), row, sum[r][v]);
        }
      }
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) store(g.c + r * g.ldc + n0 + v * kLanes, sum[r][v]);
      }
    }
    for (; n0 < range.n_end; n0 += kLanes) {
      const std::size_t n = smaller(kLanes, range.n_end - n0);
      VecF sum[kRows];
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) sum[r] = start ? zero() : load_partial(g.c + r * g.ldc + n0, n);
      [[maybe_unused]] Dequantizer dequantize;
      if constexpr (kIsCode<kType>) dequantize = dequantizer(*g.b_quantized, n0, n);
      const auto number = [&](VecF x) {
        if constexpr (kIsCode<kType>) return scaled ? x - dequantize.zero : dequantize(x);
        return x;
      };
      if (n == kLanes && depth == kDepth) {
        INFERNODE_UNROLL
        for (std::size_t i = 0; i < kDepth; ++i) {
          const VecF row = number(load_as<kType>(g.b, (k0 + i) * g.ldb + n0));
          INFERNODE_UNROLL
          for (std::size_t r = 0; r < kRows; ++r) sum[r] = fma(set(x[r][i]), row, sum[r]);
        }
      } else {
        for (std::size_t i = 0; i < depth; ++i) {
          const VecF row = number(load_partial_as<kType>(g.b, (k0 + i) * g.ldb + n0, n));
          INFERNODE_UNROLL
          for (std::size_t r = 0; r < kRows; ++r) sum[r] = fma(set(x[r][i]), row, sum[r]);
        }
      }
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) store_partial(g.c + r * g.ldc + n0, sum[r], n);
    }
  }
}

// Lanes of sums of a's in the even places, of b's in the odd ones, each of two as reduce_add adds them first.
INFERNODE_SIMD VecF fold(VecF a, VecF b) { return zip_low(a, b) + zip_high(a, b); }

// Dot products of one row with rows [n0, n_end) of a transposed B, as many at a time as a vector has lanes, whose sums
// are added up together, in reduce_add's order. Returns the first row that is left over.
template <Stored kType>
std::size_t dots_of_row(const GemmArgs& g, std::size_t n0, std::size_t n_end) noexcept {
  const float* const a = static_cast<const float*>(g.a);
  const std::size_t whole = g.k / kLanes * kLanes, left = g.k - whole;
  const VecF alpha = set(g.alpha), rest = left ? load_partial(a + whole, left) : zero();
  for (; n0 + kLanes <= n_end; n0 += kLanes) {
    VecF eighths[2][2];
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      VecF sum[4];
      std::size_t start[4];
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < 4; ++c) {
        sum[c] = zero();
        start[c] = (n0 + i + c % 2 * 8 + c / 2 * 4) * g.ldb;
      }
      for (std::size_t p = 0; p < whole; p += kLanes) {
        const VecF x = load(a + p);
        INFERNODE_UNROLL
        for (std::size_t c = 0; c < 4; ++c) {
          if constexpr (kType == Stored::kF32)
            __builtin_prefetch(static_cast<const float*>(g.b) + start[c] + p + 2 * kLanes * g.ldb);
          sum[c] = fma(x, load_as<kType>(g.b, start[c] + p), sum[c]);
        }
      }
      INFERNODE_UNROLL
      for (std::size_t c = 0; left && c < 4; ++c)
        sum[c] = fma(rest, load_partial_as<kType>(g.b, start[c] + whole, left), sum[c]);
      eighths[i % 2][i / 2] = fold(fold(sum[0], sum[1]), fold(sum[2], sum[3]));
    }
    const VecF dots = fold(fold(eighths[0][0], eighths[0][1]), fold(eighths[1][0], eighths[1][1]));
    const VecF value = alpha * dots;
    store(g.c + n0, g.accumulate ? load(g.c + n0) + value : value);
  }
  return n0;
}

// C = dot products with rows of a transposed B, four rows at a time.
template <Stored kType, std::size_t kRows>
void skinny_dots(const GemmArgs& g, const GemmRange& range) noexcept {
  constexpr std::size_t kColumns = 4;
  const float* a = static_cast<const float*>(g.a);
  std::size_t n0 = range.n_begin;
  if constexpr (kRows == 1 && kLanes == 16 && !kIsCode<kType>) n0 = dots_of_row<kType>(g, n0, range.n_end);
  for (; n0 < range.n_end; n0 += kColumns) {
    const std::size_t columns = smaller(kColumns, range.n_end - n0);
    VecF sum[kRows][kColumns];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = zero();
    }
    // Missing columns repeat the last one.
    std::size_t start[kColumns];
    [[maybe_unused]] VecF zeros[kColumns];
    [[maybe_unused]] float scales[kColumns];
    for (std::size_t c = 0; c < kColumns; ++c) {
      const std::size_t column = n0 + smaller(c, columns - 1);
      start[c] = column * g.ldb;
      if constexpr (kIsCode<kType>) {
        zeros[c] = set(g.b_quantized->zeros[g.b_quantized->per_column ? column : 0]);
        scales[c] = g.b_quantized->scales[g.b_quantized->per_column ? column : 0];
      }
    }
    std::size_t p = 0;
    for (; p + kLanes <= g.k; p += kLanes) {
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) {
        VecF row = load_as<kType>(g.b, start[c] + p);
        if constexpr (kType == Stored::kF32)
          __builtin_prefetch(static_cast<const float*>(g.b) + start[c] + p + kColumns * g.k * 2);
        if constexpr (kIsCode<kType>) row = row - zeros[c];
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kRows; ++r) sum[r][c] = fma(load(a + r * g.lda + p), row, sum[r][c]);
      }
    }
    if (p < g.k) {
      const std::size_t n = g.k - p;
      for (std::size_t c = 0; c < kColumns; ++c) {
        VecF row = load_partial_as<kType>(g.b, start[c] + p, n);
        if constexpr (kIsCode<kType>) row = row - zeros[c];
        for (std::size_t r = 0; r < kRows; ++r) sum[r][c] = fma(load_partial(a + r * g.lda + p, n), row, sum[r][c]);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        float* out = g.c + r * g.ldc + n0 + c;
        float value = g.alpha * reduce_add(sum[r][c]);
        if constexpr (kIsCode<kType>) value *= scales[c];
        *out = g.accumulate ? *out + value : value;
      }
    }
  }
}

// Sums all of the product's kRows rows, whose number decides how, and finishes those of the range.
template <std::size_t kRows>
void skinny_packed(const GemmArgs& g, const GemmRange& range) noexcept {
  alignas(64) float tile[GemmTiles::kMaxFloats];
  for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kNr) {
    skinny_panel<kRows>(g.k, static_cast<const float*>(g.a), g.lda, g.packed_b + n0 * g.packed_depth(), tile);
    finish(output_at(g, range.m_begin, range.m_end - range.m_begin, n0, smaller(kNr, range.n_end - n0), true, true),
           tile + range.m_begin * kNr);
  }
}

// A product of kRows rows by a B that is not packed; what becomes of a row does not depend on kRows.
template <std::size_t kRows>
void skinny_rows(const GemmArgs& g, const GemmRange& range) noexcept {
  with_b_type(g, [&]<Stored kType>() {
    if (g.trans_b) {
      skinny_dots<kType, kRows>(g, range);
    } else {
      skinny_plain<kType, kRows>(g, range);
    }
  });
  const GemmEpilogue& e = g.epilogue;
  if (!e.bias_m && !e.bias_n && !e.residual && e.activation.kind == Activation::kNone) return;
  alignas(64) float tile[GemmTiles::kMaxFloats];
  for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kNr) {
    const std::size_t cols = smaller(kNr, range.n_end - n0);
    for (std::size_t r = 0; r < kRows; ++r) copy_as<Stored::kF32>(g.c + r * g.ldc + n0, 0, cols, tile + r * kNr);
    TileOutput out = output_at(g, 0, kRows, n0, cols, true, true);
    out.alpha = 1.0f;
    out.load_c = false;
    finish(out, tile);
  }
}

bool is_skinny(const GemmArgs& g) noexcept {
  return g.m <= kSkinny && g.k > 0 && g.a_type == FloatType::kF32 && !g.trans_a;
}

// Calls fn with a number of rows up to kSkinny as a constant.
template <class Fn>
INFERNODE_SIMD void with_rows(std::size_t rows, Fn fn) {
  switch (rows) {
    case 1:
      return fn.template operator()<1>();
    case 2:
      return fn.template operator()<2>();
    case 3:
      return fn.template operator()<3>();
    default:
      return fn.template operator()<4>();
  }
}

// The product of the range's rows alone.
GemmArgs rows_of(const GemmArgs& g, const GemmRange& range) noexcept {
  GemmArgs part = g;
  part.m = range.m_end - range.m_begin;
  part.a = static_cast<const float*>(g.a) + range.m_begin * g.lda;
  part.c = g.c + range.m_begin * g.ldc;
  if (g.epilogue.bias_m) part.epilogue.bias_m = g.epilogue.bias_m + range.m_begin;
  if (g.epilogue.residual) part.epilogue.residual = g.epilogue.residual + range.m_begin * g.epilogue.ld_residual;
  return part;
}

void gemm(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  const std::size_t rows = range.m_end - range.m_begin;
  if (is_skinny(g) && g.packed_b) {
    return with_rows(g.m, [&]<std::size_t kRows>() { skinny_packed<kRows>(g, range); });
  }
  if (is_skinny(g)) {
    const GemmArgs part = rows_of(g, range);
    return with_rows(rows, [&]<std::size_t kRows>() { skinny_rows<kRows>(part, range); });
  }
  const std::size_t blocks = divide_up(rows, kMaxRows);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t m0 = range.m_begin + i * rows / blocks, m1 = range.m_begin + (i + 1) * rows / blocks;
    multiply_rows(g, m0, m1 - m0, range.n_begin, range.n_end, scratch);
  }
}

// ---- float64 ----

constexpr std::size_t kDoubleRows = 4, kDoubleColumns = kNv * kDoubleLanes, kDoubleBlockK = 256;

void dgemm(const DgemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  double* const panel = reinterpret_cast<double*>(scratch);     // [kDoubleBlockK][kDoubleColumns]
  double* const rows = panel + kDoubleBlockK * kDoubleColumns;  // [kDoubleBlockK][kDoubleRows]
  std::size_t k0 = 0;
  do {
    const std::size_t k = smaller(kDoubleBlockK, g.k - k0);
    const bool add = k0 > 0 || g.accumulate;
    for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kDoubleColumns) {
      const std::size_t cols = smaller(kDoubleColumns, range.n_end - n0);
      for (std::size_t p = 0; p < k; ++p) {
        for (std::size_t c = 0; c < kDoubleColumns; ++c) {
          const std::size_t row = k0 + p, col = n0 + c;
          panel[p * kDoubleColumns + c] = c >= cols ? 0.0 : g.trans_b ? g.b[col * g.ldb + row] : g.b[row * g.ldb + col];
        }
      }
      for (std::size_t m0 = range.m_begin; m0 < range.m_end; m0 += kDoubleRows) {
        const std::size_t count = smaller(kDoubleRows, range.m_end - m0);
        for (std::size_t p = 0; p < k; ++p) {
          for (std::size_t r = 0; r < kDoubleRows; ++r) {
            const std::size_t row = m0 + r, col = k0 + p;
            rows[p * kDoubleRows + r] = r >= count ? 0.0 : g.trans_a ? g.a[col * g.lda + row] : g.a[row * g.lda + col];
          }
        }
        VecD sum[kDoubleRows][kNv];
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kDoubleRows; ++r) {
          INFERNODE_UNROLL
          for (std::size_t v = 0; v < kNv; ++v) sum[r][v] = set(0.0);
        }
        for (std::size_t p = 0; p < k; ++p) {
          INFERNODE_UNROLL
          for (std::size_t v = 0; v < kNv; ++v) {
            const VecD b = load(panel + p * kDoubleColumns + v * kDoubleLanes);
            INFERNODE_UNROLL
            for (std::size_t r = 0; r < kDoubleRows; ++r) sum[r][v] = fma(set(rows[p * kDoubleRows + r]), b, sum[r][v]);
          }
        }
        double tile[kDoubleRows][kDoubleColumns];
        INFERNODE_UNROLL
        for (std::size_t r = 0; r < kDoubleRows; ++r) {
          INFERNODE_UNROLL
          for (std::size_t v = 0; v < kNv; ++v) store(&tile[r][v * kDoubleLanes], sum[r][v]);
        }
        for (std::size_t r = 0; r < count; ++r) {
          double* c = g.c + (m0 + r) * g.ldc + n0;
          for (std::size_t i = 0; i < cols; ++i) c[i] = g.alpha * tile[r][i] + (add ? c[i] : 0.0);
        }
      }
    }
    k0 += k;
  } while (k0 < g.k);
}

static_assert(2 * kDoubleBlockK * (kDoubleColumns + kDoubleRows) <= kScratchA);

}  // namespace

extern const GemmTable INFERNODE_TABLE(gemm_table);
constexpr GemmTable INFERNODE_TABLE(gemm_table) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                                   kMr,
                                                   kNr,
                                                   kScratchA + kScratchB,
                                                   packed_b_floats,
                                                   pack_b,
                                                   gemm,
                                                   dgemm,
                                                   &kTiles};

}  // namespace infernode::microkernels
