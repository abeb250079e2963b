#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_rung.h"
#include "microkernels/common/activation.h"
#include "microkernels/common/precision.h"

// Dense matrix products. All matrices are row-major with a leading dimension counted in elements.
// The caller owns parallelism: it cuts C into ranges (split_gemm) and calls `gemm` for each of them, from any
// thread, with scratch of its own. A result never depends on how C was cut.
namespace infernode::microkernels {

enum class FloatType : std::uint8_t { kF32, kF16, kBf16 };

// Applied once to each finished element, in this order:
//   v = alpha * sum + residual_scale * residual[m][n] + bias_m[m] + bias_n[n];  C = activation(v)
struct GemmEpilogue {
  const float* bias_n = nullptr;    // [n]
  const float* bias_m = nullptr;    // [m]
  const float* residual = nullptr;  // [m][ld_residual]; must not alias C
  std::size_t ld_residual = 0;
  float residual_scale = 1.0f;
  ActivationArgs activation;
};

// An 8-bit B: element [k][n] is (code - zeros[n]) * scales[n].
struct QuantizedB {
  bool is_signed = false;
  bool per_column = false;  // false: scales[0] and zeros[0] serve all columns
  const float* scales = nullptr;
  const float* zeros = nullptr;
};

struct GemmArgs {
  std::size_t m = 0, n = 0, k = 0;
  float alpha = 1.0f;
  const void* a = nullptr;  // [m][lda], or [k][lda] when trans_a
  std::size_t lda = 0;
  bool trans_a = false;
  FloatType a_type = FloatType::kF32;
  const void* b = nullptr;  // [k][ldb], or [n][ldb] when trans_b; unused when packed_b is set
  std::size_t ldb = 0;
  bool trans_b = false;
  FloatType b_type = FloatType::kF32;
  const QuantizedB* b_quantized = nullptr;  // B holds 8-bit codes, whatever b_type says
  const float* packed_b = nullptr;          // from pack_b of the same table
  const std::uint8_t* split_b = nullptr;    // beside b: from split_b of the same table and precision
  std::size_t packed_k = 0;                 // that it was packed or split with, where k, then even, takes fewer; 0: k
  bool a_again = false;                     // the call before had the same arguments and scratch, a range of these rows
  float* c = nullptr;                       // [m][ldc]
  std::size_t ldc = 0;
  bool accumulate = false;  // C is added to instead of overwritten
  Float32Precision precision = Float32Precision::kHighest;
  GemmEpilogue epilogue;

  std::size_t packed_depth() const noexcept { return packed_k > 0 ? packed_k : k; }
};

// Part of C. n_begin is a multiple of the table's nr.
struct GemmRange {
  std::size_t m_begin, m_end, n_begin, n_end;
};

struct DgemmArgs {
  std::size_t m = 0, n = 0, k = 0;
  double alpha = 1.0;
  const double* a = nullptr;
  std::size_t lda = 0;
  bool trans_a = false;
  const double* b = nullptr;
  std::size_t ldb = 0;
  bool trans_b = false;
  double* c = nullptr;
  std::size_t ldc = 0;
  bool accumulate = false;
};

struct GemmTiles;

// For a B that several calls multiply by: its numbers split into the pieces that the matrix unit multiplies.
struct GemmSplitting {
  std::size_t (*bytes)(std::size_t n, std::size_t k, Float32Precision precision) noexcept;
  // B of float32 numbers; `out` is 64-byte aligned.
  void (*split_b)(std::size_t n, std::size_t k, const float* b, std::size_t ldb, bool trans_b,
                  Float32Precision precision, std::uint8_t* out) noexcept;
};

struct GemmTable {
  const char* name;            // target, for logs and benchmarks
  std::size_t mr, nr;          // register tile
  std::size_t scratch_floats;  // scratch that `gemm` and `dgemm` need per call, in floats
  // Floats of the packed form of a whole B (columns padded to nr).
  std::size_t (*packed_b_floats)(std::size_t n, std::size_t k) noexcept;
  // Packs columns [n_begin, n_end) of B into their place in `out`; n_begin is a multiple of nr.
  void (*pack_b)(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, float* out,
                 std::size_t n_begin, std::size_t n_end) noexcept;
  // `scratch` is 64-byte aligned and not shared between threads.
  void (*gemm)(const GemmArgs& args, const GemmRange& range, float* scratch) noexcept;
  void (*dgemm)(const DgemmArgs& args, const GemmRange& range, float* scratch) noexcept;
  const GemmTiles* tiles;  // for other families' drivers (gemm_tiles.h); null in a table that has none of its own
  const GemmSplitting* splitting = nullptr;  // null where numbers are multiplied whole
};

// The fastest that is as exact as asked. Tables of different names pack B differently.
const GemmTable& gemm_table(CpuRung rung, Float32Precision precision = Float32Precision::kHighest) noexcept;

// A grid of equal ranges over C for `workers` threads: ranges [i * tile_m, ...) x [j * tile_n, ...).
struct GemmSplit {
  std::size_t tile_m, tile_n;    // rows and columns of one range; tile_n is a multiple of nr
  std::size_t count_m, count_n;  // ranges along each side

  std::size_t count() const noexcept { return count_m * count_n; }
  GemmRange range(std::size_t index, std::size_t m, std::size_t n) const noexcept {
    const std::size_t i = index / count_n, j = index % count_n;
    const std::size_t m_end = (i + 1) * tile_m, n_end = (j + 1) * tile_n;
    return {i * tile_m, m_end < m ? m_end : m, j * tile_n, n_end < n ? n_end : n};
  }
};

GemmSplit split_gemm(const GemmTable& table, std::size_t m, std::size_t n, std::size_t k, std::size_t workers) noexcept;

}  // namespace infernode::microkernels
