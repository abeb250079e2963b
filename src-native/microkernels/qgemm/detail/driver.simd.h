#pragma once

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/codes.simd.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/qgemm/qgemm.h"

// The integer product's packing, loops and output, shared by the targets' kernels. A Kernel says how many consecutive k
// it multiplies at a time and how it wants A:
//   static constexpr std::size_t kGroup;            // k that lie together: 2, 4 or 8
//   static constexpr std::size_t kStep;             // k are filled up to a multiple of it
//   static constexpr std::size_t kRows;             // rows of its largest tile
//   using Element;                                  // of packed A
//   static constexpr std::int32_t kSignedShift;     // what is added to int8 elements of A
//   static constexpr std::int32_t kUnsignedShift;   // and to uint8 ones
//   struct Session;                                 // lives while products are made
//   static void multiply(rows, vectors, groups, a, lda, panel, tile)   // tile[row * kNr + column]
// `a` has memory for kRows rows whatever `rows` says.
//
// Packed B: one block per panel of kNr columns: kNr int32 column sums, a header, then [k / kGroup][kNr][kGroup] int8.
// uint8 columns are stored less 128. Missing k and columns are 0.
namespace infernode::microkernels {
namespace {

struct PanelHeader {
  std::int32_t sums[kNr];  // of the stored bytes, per column
  std::int32_t shift;      // what was taken from every element
  std::int32_t unused[15];
};

template <typename Kernel>
struct Qgemm {
  static constexpr std::size_t kGroup = Kernel::kGroup;
  using Element = typename Kernel::Element;
  static constexpr std::size_t kRows = Kernel::kRows;
  static constexpr std::size_t kMaxRows = 96;             // rows of A packed at a time ...
  static constexpr std::size_t kPackedBytes = 512 << 10;  // ... unless they exceed this

  static constexpr std::size_t groups(std::size_t k) { return divide_up(k, Kernel::kStep) * (Kernel::kStep / kGroup); }
  static constexpr std::size_t panel_bytes(std::size_t k) { return sizeof(PanelHeader) + groups(k) * kNr * kGroup; }
  // Elements of a packed row of A: an odd number of cache lines, so that rows spread over the cache.
  static constexpr std::size_t row_elements(std::size_t k) {
    return (divide_up(groups(k) * kGroup * sizeof(Element), std::size_t{64}) | 1) * 64 / sizeof(Element);
  }
  static constexpr std::size_t rows_at_once(std::size_t k) {
    const std::size_t fit = kPackedBytes / (row_elements(k) * sizeof(Element)) / kRows * kRows;
    return larger(kRows, smaller(kMaxRows, fit));
  }

  static std::size_t scratch_bytes(std::size_t k) noexcept {
    return rows_at_once(k) * row_elements(k) * sizeof(Element);
  }
  static std::size_t packed_bytes(std::size_t n, std::size_t k) noexcept { return divide_up(n, kNr) * panel_bytes(k); }

  static void pack_b(std::size_t n, std::size_t k, const void* b, bool b_signed, std::size_t ldb, bool trans_b,
                     void* out, std::size_t n_begin, std::size_t n_end) noexcept {
    const auto* source = static_cast<const std::uint8_t*>(b);
    // Flipping the top bit of a uint8 is subtracting 128.
    const std::uint8_t flip = b_signed ? 0 : 0x80;
    for (std::size_t n0 = n_begin; n0 < n_end; n0 += kNr) {
      auto* block = static_cast<std::uint8_t*>(out) + n0 / kNr * panel_bytes(k);
      auto* header = reinterpret_cast<PanelHeader*>(block);
      auto* data = reinterpret_cast<std::int8_t*>(block + sizeof(PanelHeader));
      header->shift = b_signed ? 0 : 128;
      for (std::int32_t& sum : header->sums) sum = 0;
      for (std::size_t g = 0; g < groups(k); ++g) {
        for (std::size_t c = 0; c < kNr; ++c) {
          for (std::size_t i = 0; i < kGroup; ++i, ++data) {
            const std::size_t row = g * kGroup + i, column = n0 + c;
            if (row < k && column < n) {
              *data = static_cast<std::int8_t>(source[trans_b ? column * ldb + row : row * ldb + column] ^ flip);
              header->sums[c] += *data;
            } else {
              *data = 0;
            }
          }
        }
      }
    }
  }

  // Returns the row's sum.
  static std::int32_t pack_a_row(const QgemmArgs& q, std::size_t row, Element* out) noexcept {
    const std::size_t k = q.k, padded = groups(k) * kGroup;
    std::int32_t sum = 0;
    if (q.a_signed) {
      const auto* a = static_cast<const std::int8_t*>(q.a) + row * q.lda;
      for (std::size_t p = 0; p < k; ++p) {
        const std::int32_t x = a[p] + Kernel::kSignedShift;
        out[p] = static_cast<Element>(x);
        sum += x;
      }
    } else {
      const auto* a = static_cast<const std::uint8_t*>(q.a) + row * q.lda;
      for (std::size_t p = 0; p < k; ++p) {
        const std::int32_t x = a[p] + Kernel::kUnsignedShift;
        out[p] = static_cast<Element>(x);
        sum += x;
      }
    }
    for (std::size_t p = k; p < padded; ++p) out[p] = 0;
    return sum;
  }

  // A register tile's sums, and where they lie in C.
  struct Tile {
    std::size_t m0, rows, n0, cols;
    const PanelHeader* header;
    const std::int32_t *row_sums, *sums;
  };

  // What the zero points add to the sums:  sum (a - za)(b - zb) = sum ab - za sum b - zb (sum a - K za).
  struct ZeroPoints {
    VecI a, rest;
    ZeroPoints(const QgemmArgs& q, std::size_t m, std::int32_t row_sum) {
      a = set((q.a_zeros ? q.a_zeros[m] : q.a_zero) + (q.a_signed ? Kernel::kSignedShift : Kernel::kUnsignedShift));
      rest = set(row_sum) - set(static_cast<std::int32_t>(static_cast<std::uint32_t>(q.k))) * a;
    }
  };

  static void finish(const QgemmArgs& q, const Tile& t) noexcept {
    if (t.cols != kNr) return finish_columns(q, t);
    switch (q.output) {
      case QgemmOutput::kS32:
        return finish_whole<QgemmOutput::kS32>(q, t);
      case QgemmOutput::kF32:
        return finish_whole<QgemmOutput::kF32>(q, t);
      case QgemmOutput::kU8:
        return finish_whole<QgemmOutput::kU8>(q, t);
      case QgemmOutput::kS8:
        return finish_whole<QgemmOutput::kS8>(q, t);
    }
  }

  // Tiles of whole vectors: what belongs to columns is read once.
  template <QgemmOutput kOutput>
  static void finish_whole(const QgemmArgs& q, const Tile& t) noexcept {
    const VecI b_shift = set(t.header->shift), out_zero = set(q.out_zero);
    const VecF factor = set(q.factor);
    VecI zb[kNv], column_sums[kNv], bias[kNv];
    VecF scale[kNv], bias_f32[kNv];
    bool no_b_zero = true;
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      const std::size_t i = v * kLanes, column = t.n0 + i;
      zb[v] = (q.b_zeros ? load(q.b_zeros + column) : set(q.b_zero)) - b_shift;
      no_b_zero = no_b_zero && all(zb[v] == set(0));
      column_sums[v] = load(t.header->sums + i);
      bias[v] = q.bias ? load(q.bias + column) : set(0);
      scale[v] = factor * (q.scales ? load(q.scales + column) : set(q.scale));
      bias_f32[v] = q.bias_f32 ? load(q.bias_f32 + column) : zero();
    }
    const bool activate = kOutput == QgemmOutput::kF32 && q.activation.kind != Activation::kNone;
    alignas(64) float values[kRows * kNr];  // what is activated
    for (std::size_t r = 0; r < t.rows; ++r) {
      const std::size_t m = t.m0 + r;
      const ZeroPoints zeros(q, m, t.row_sums[r]);
      const std::int32_t* const sums = t.sums + r * kNr;
      const std::size_t at = m * q.ldc + t.n0;
      INFERNODE_UNROLL
      for (std::size_t v = 0; v < kNv; ++v) {
        const std::size_t i = v * kLanes;
        VecI x = load(sums + i) - zeros.a * column_sums[v] + bias[v];
        if (!no_b_zero) x = x - zb[v] * zeros.rest;
        if constexpr (kOutput == QgemmOutput::kS32) {
          store(static_cast<std::int32_t*>(q.c) + at + i, x);
        } else {
          VecF f = to_float(x) * scale[v];
          if (q.bias_f32) f = f + bias_f32[v];
          if constexpr (kOutput == QgemmOutput::kF32) {
            if (q.residual) f = f + load(q.residual + m * q.ld_residual + t.n0 + i);
            store((activate ? values + r * kNr : static_cast<float*>(q.c) + at) + i, f);
          } else {
            store_codes<kOutput>(f, out_zero, static_cast<std::uint8_t*>(q.c) + at + i);
          }
        }
      }
    }
    if constexpr (kOutput == QgemmOutput::kF32) {
      if (!activate) return;
      activate_row(q.activation, values, t.rows * kNr);
      for (std::size_t r = 0; r < t.rows; ++r) {
        float* const to = static_cast<float*>(q.c) + (t.m0 + r) * q.ldc + t.n0;
        INFERNODE_UNROLL
        for (std::size_t v = 0; v < kNv; ++v) store(to + v * kLanes, load(values + r * kNr + v * kLanes));
      }
    }
  }

  template <QgemmOutput kOutput>
  INFERNODE_SIMD void store_codes(VecF f, VecI zero, std::uint8_t* to) {
    // Clamped to what int32 can hold with room for the zero point; the stores saturate.
    const VecI quantized = to_codes(f, set(-65536.0f), set(65536.0f)) + zero;
    if constexpr (kOutput == QgemmOutput::kU8) {
      store_u8(to, quantized);
    } else {
      store_s8(reinterpret_cast<std::int8_t*>(to), quantized);
    }
  }

  static void finish_columns(const QgemmArgs& q, const Tile& t) noexcept {
    const VecI b_shift = set(t.header->shift), out_zero = set(q.out_zero);
    const VecF factor = set(q.factor);
    for (std::size_t r = 0; r < t.rows; ++r) {
      const std::size_t m = t.m0 + r;
      const ZeroPoints zeros(q, m, t.row_sums[r]);
      for (std::size_t i = 0; i < t.cols; i += kLanes) {
        const std::size_t n = smaller(kLanes, t.cols - i), column = t.n0 + i;
        const VecI zb = (q.b_zeros ? load_partial(q.b_zeros + column, n) : set(q.b_zero)) - b_shift;
        VecI v = load(t.sums + r * kNr + i) - zeros.a * load(t.header->sums + i) - zb * zeros.rest;
        if (q.bias) v = v + load_partial(q.bias + column, n);
        const std::size_t at = m * q.ldc + column;
        if (q.output == QgemmOutput::kS32) {
          store_partial(static_cast<std::int32_t*>(q.c) + at, v, n);
          continue;
        }
        VecF f = to_float(v) * (factor * (q.scales ? load_partial(q.scales + column, n) : set(q.scale)));
        if (q.bias_f32) f = f + load_partial(q.bias_f32 + column, n);
        if (q.output == QgemmOutput::kF32) {
          if (q.residual) f = f + load_partial(q.residual + m * q.ld_residual + column, n);
          store_partial(static_cast<float*>(q.c) + at, f, n);
          continue;
        }
        std::uint8_t bytes[kLanes];
        if (q.output == QgemmOutput::kU8) {
          store_codes<QgemmOutput::kU8>(f, out_zero, bytes);
        } else {
          store_codes<QgemmOutput::kS8>(f, out_zero, bytes);
        }
        for (std::size_t j = 0; j < n; ++j) static_cast<std::uint8_t*>(q.c)[at + j] = bytes[j];
      }
      if (q.output == QgemmOutput::kF32)
        activate_row(q.activation, static_cast<float*>(q.c) + m * q.ldc + t.n0, t.cols);
    }
  }

  static void run(const QgemmArgs& q, const GemmRange& range, void* scratch) noexcept {
    [[maybe_unused]] const typename Kernel::Session session;
    auto* packed_a = static_cast<Element*>(scratch);
    const std::size_t lda = row_elements(q.k), most = rows_at_once(q.k);
    std::int32_t row_sums[kMaxRows];
    alignas(64) std::int32_t tile[kRows * kNr];
    for (std::size_t m0 = range.m_begin; m0 < range.m_end; m0 += most) {
      const std::size_t rows = smaller(most, range.m_end - m0), tiles = divide_up(rows, kRows);
      for (std::size_t r = 0; r < rows; ++r) row_sums[r] = pack_a_row(q, m0 + r, packed_a + r * lda);
      for (std::size_t n0 = range.n_begin; n0 < range.n_end; n0 += kNr) {
        const std::size_t cols = smaller(kNr, range.n_end - n0);
        const auto* block = static_cast<const std::uint8_t*>(q.packed_b.data) + n0 / kNr * panel_bytes(q.k);
        const auto* header = reinterpret_cast<const PanelHeader*>(block);
        const auto* data = reinterpret_cast<const std::int8_t*>(block + sizeof(PanelHeader));
        for (std::size_t t = 0; t < tiles; ++t) {
          const std::size_t r0 = t * rows / tiles, r1 = (t + 1) * rows / tiles;
          Kernel::multiply(r1 - r0, divide_up(cols, kLanes), groups(q.k), packed_a + r0 * lda, lda, data, tile);
          finish(q, {m0 + r0, r1 - r0, n0, cols, header, row_sums + r0, tile});
        }
      }
    }
  }

  static constexpr QgemmTable table(const char* name, const char* packing) {
    return {name, kRows, kNr, scratch_bytes, {packing, packed_bytes, pack_b}, run};
  }
};

// For kernels that keep a tile of kMr x kNr sums in registers:
//   template <rows, vectors> static void accumulate(groups, a, lda, panel, tile)
template <typename Kernel, typename T>
struct InRegisters {
  using Element = T;
  static constexpr std::size_t kRows = kMr;
  struct Session {};

  static void multiply(std::size_t rows, std::size_t vectors, std::size_t groups, const Element* a, std::size_t lda,
                       const std::int8_t* panel, std::int32_t* tile) noexcept {
    static constexpr Kernels kKernels = make_kernels();
    kKernels.by_size[rows - 1][vectors - 1](groups, a, lda, panel, tile);
  }

 private:
  struct Kernels {
    void (*by_size[kMr][kNv])(std::size_t groups, const Element* a, std::size_t lda, const std::int8_t* panel,
                              std::int32_t* tile) noexcept;
  };
  static constexpr Kernels make_kernels() {
    Kernels kernels{};
    fill_by_size(kernels.by_size, []<std::size_t kCount, std::size_t kVectors>() {
      return Kernel::template accumulate<kCount, kVectors>;
    });
    return kernels;
  }
};

// One element of packed A group as a 32-bit word.
template <typename Element>
INFERNODE_SIMD std::int32_t load_group(const Element* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

}  // namespace
}  // namespace infernode::microkernels
