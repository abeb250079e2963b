#pragma once

#include "microkernels/gemm/detail/finish.simd.h"
#include "microkernels/gemm/detail/operands.simd.h"
#include "microkernels/gemm/detail/output.simd.h"

// Products of few columns, which are bound by reading A: dot products of its rows with columns of B, which lie
// together.
namespace infernode::microkernels {
namespace {

constexpr std::size_t kNarrow = 4;  // up to so many columns

bool is_narrow(const GemmArgs& g) noexcept {
  return g.n <= kNarrow && g.k >= kLanes && g.a_type == FloatType::kF32 && !g.trans_a && !g.b_quantized;
}

// Columns [n_begin, n_end) of B, one after the other: out[c * ld + p].
void gather_columns(const GemmArgs& g, std::size_t n_begin, std::size_t n_end, float* out, std::size_t ld) noexcept {
  for (std::size_t n = n_begin; n < n_end; ++n, out += ld) {
    if (const float* const packed = g.packed_b.floats()) {
      for (std::size_t p = 0; p < g.k; ++p) out[p] = packed[n / kNr * kNr * g.packed_b.k + p * kNr + n % kNr];
      continue;
    }
    with_type(g.b_type, [&]<Stored kType>() {
      if (g.trans_b) return copy_as<kType>(g.b, n * g.ldb, g.k, out);
      if constexpr (kType == Stored::kF32) {
        for (std::size_t p = 0; p < g.k; ++p) out[p] = static_cast<const float*>(g.b)[p * g.ldb + n];
      } else {
        for (std::size_t p = 0; p < g.k; ++p) copy_as<kType>(g.b, p * g.ldb + n, 1, out + p);
      }
    });
  }
}

// Rows of the range by kColumns columns from n on.
template <std::size_t kColumns>
void narrow_columns(const GemmArgs& g, const GemmRange& range, const float* b, std::size_t ld) noexcept {
  constexpr std::size_t kRows = 4;
  alignas(64) float tile[GemmTiles::kMaxFloats];
  for (std::size_t m = range.m_begin; m < range.m_end; m += kRows) {
    const std::size_t rows = smaller(kRows, range.m_end - m);
    const float* a[kRows];  // missing rows repeat the last one
    for (std::size_t r = 0; r < kRows; ++r) a[r] = static_cast<const float*>(g.a) + (m + smaller(r, rows - 1)) * g.lda;
    VecF sum[kRows][kColumns];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = zero();
    }
    std::size_t p = 0;
    for (; p + kLanes <= g.k; p += kLanes) {
      VecF column[kColumns];
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) column[c] = load(b + c * ld + p);
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        const VecF x = load(a[r] + p);
        INFERNODE_UNROLL
        for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = fma(x, column[c], sum[r][c]);
      }
    }
    if (const std::size_t left = g.k - p; left > 0) {
      for (std::size_t r = 0; r < kRows; ++r) {
        const VecF x = load_partial(a[r] + p, left);
        for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = fma(x, load_partial(b + c * ld + p, left), sum[r][c]);
      }
    }
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      INFERNODE_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) tile[r * kNr + c] = reduce_add(sum[r][c]);
    }
    finish(output_at(g, m, rows, range.n_begin, kColumns, true, true), tile);
  }
}

// `scratch` has room for the columns, each in whole vectors.
void narrow(const GemmArgs& g, const GemmRange& range, float* scratch) noexcept {
  const std::size_t ld = divide_up(g.k, kLanes) * kLanes;
  gather_columns(g, range.n_begin, range.n_end, scratch, ld);
  switch (range.n_end - range.n_begin) {
    case 1:
      return narrow_columns<1>(g, range, scratch, ld);
    case 2:
      return narrow_columns<2>(g, range, scratch, ld);
    case 3:
      return narrow_columns<3>(g, range, scratch, ld);
    default:
      return narrow_columns<4>(g, range, scratch, ld);
  }
}

}  // namespace
}  // namespace infernode::microkernels
