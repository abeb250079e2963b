#pragma once

#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/transpose_square.simd.h"
#include "microkernels/gemm/gemm.h"

// Operands of a product as the register tile reads them, whatever type they have and however they lie.
namespace infernode::microkernels {
namespace {

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

// out[c * ld_out + r] = x[(r0 + r) * ldx + c0 + c]; rows of `out` are written in whole squares, zeros behind `rows`.
template <Stored kType>
void transpose_block(const void* x, std::size_t ldx, std::size_t r0, std::size_t c0, std::size_t rows, std::size_t cols,
                     float* out, std::size_t ld_out) noexcept {
  if constexpr (kType == Stored::kF32) {
    const float* const base = static_cast<const float*>(x) + r0 * ldx + c0;
    for (std::size_t c = 0; c < cols; c += kSquare) {
      for (std::size_t r = 0; r < rows; r += kSquare)
        transpose_square(base + r * ldx + c, ldx, smaller(kSquare, rows - r), smaller(kSquare, cols - c),
                         out + c * ld_out + r, ld_out);
    }
  } else {
    const std::size_t filled = divide_up(rows, kSquare) * kSquare;
    for (std::size_t r = 0; r < filled; ++r) {
      for (std::size_t c = 0; c < cols; c += kLanes) {
        float part[kLanes];
        const std::size_t n = smaller(kLanes, cols - c), at = (r0 + r) * ldx + c0 + c;
        store(part, r >= rows ? zero() : n == kLanes ? load_as<kType>(x, at) : load_partial_as<kType>(x, at, n));
        for (std::size_t i = 0; i < n; ++i) out[(c + i) * ld_out + r] = part[i];
      }
    }
  }
}

// out[r * ld_out + p] = A[m0 + r][k0 + p]
template <Stored kType>
void pack_a(const void* a, std::size_t lda, bool trans, std::size_t m0, std::size_t rows, std::size_t k0, std::size_t k,
            float* out, std::size_t ld_out) noexcept {
  if (trans) {
    transpose_block<kType>(a, lda, k0, m0, k, rows, out, ld_out);
  } else {
    for (std::size_t r = 0; r < rows; ++r) copy_as<kType>(a, (m0 + r) * lda + k0, k, out + r * ld_out);
  }
}

// kSquare zeros.
INFERNODE_SIMD void fill_square_row(float* out) noexcept {
  if constexpr (kSquare == kLanes) {
    store(out, zero());
  } else {
    for (std::size_t i = 0; i < kSquare; ++i) out[i] = 0.0f;
  }
}

// One panel: out[p * kNr + c] = B[k0 + p][n0 + c], zero for c >= cols.
template <Stored kType>
void pack_b_panel(const void* b, std::size_t ldb, bool trans, std::size_t k0, std::size_t k, std::size_t n0,
                  std::size_t cols, float* out) noexcept {
  static_assert(kNr % kSquare == 0);
  if (trans) {
    transpose_block<kType>(b, ldb, n0, k0, cols, k, out, kNr);
    const std::size_t filled = divide_up(cols, kSquare) * kSquare;
    for (std::size_t p = 0; filled < kNr && p < k; ++p) {
      for (std::size_t c = filled; c < kNr; c += kSquare) fill_square_row(out + p * kNr + c);
    }
    return;
  }
  if (cols == kNr) {
    for (std::size_t p = 0; p < k; ++p, out += kNr) {
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kNv; ++v)
        store(out + v * kLanes, load_as<kType>(b, (k0 + p) * ldb + n0 + v * kLanes));
    }
    return;
  }
  const std::size_t whole = cols / kLanes, left = cols % kLanes;
  for (std::size_t p = 0; p < k; ++p, out += kNr) {
    const std::size_t row = (k0 + p) * ldb + n0;
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      store(out + v * kLanes, v < whole                ? load_as<kType>(b, row + v * kLanes)
                              : v == whole && left > 0 ? load_partial_as<kType>(b, row + v * kLanes, left)
                                                       : zero());
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

}  // namespace
}  // namespace infernode::microkernels
