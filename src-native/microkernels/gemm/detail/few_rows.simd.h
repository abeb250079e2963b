#pragma once

#include "microkernels/gemm/detail/finish.simd.h"
#include "microkernels/gemm/detail/operands.simd.h"
#include "microkernels/gemm/detail/output.simd.h"

// Products of few rows, which are bound by reading B: it is read once, from end to end.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kSkinny = 4;  // up to so many rows

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
  constexpr std::size_t kDepth = 8;
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
    skinny_panel<kRows>(g.k, static_cast<const float*>(g.a), g.lda, g.packed_b.floats() + n0 * g.packed_b.k, tile);
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

}  // namespace
}  // namespace infernode::microkernels
