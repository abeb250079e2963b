#pragma once

#include <cstddef>
#include <cstdint>

#include "microkernels/common/activation.h"
#include "microkernels/common/packed.h"
#include "microkernels/common/split.h"

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

// A way to pack B.
struct GemmPacking {
  const char* name;        // with the family's; of packings that make the same, the same
  std::size_t depth_unit;  // a product takes all rows of a packed B, or first ones in a multiple of this number
  PackedForm (*form)(std::size_t k) noexcept;
  std::size_t (*bytes)(std::size_t n, std::size_t k) noexcept;
  // Packs columns [n_begin, n_end) of B into their place in `out`, which is 64-byte aligned; n_begin is a multiple of
  // the table's nr.
  void (*pack)(std::size_t n, std::size_t k, const void* b, FloatType type, std::size_t ldb, bool trans_b, void* out,
               std::size_t n_begin, std::size_t n_end) noexcept;

  PackedOperand packed(std::size_t n, std::size_t k, const void* data) const noexcept {
    return {form(k), data, bytes(n, k), n, k, name};
  }
};

// Rows of A in the form in which a table multiplies them, for calls that differ in the columns of their range only. The
// first of them makes it, where the rows fit; with other rows, or another A, `ready` is to be false.
struct PreparedA {
  float* memory = nullptr;  // GemmTable::prepared_floats of them, 64-byte aligned
  bool ready = false;
};

// How a product is made: sums of different ways differ in their last bits. A way that a table has not, or that cannot
// make the product, is kAny.
enum class GemmWay : std::uint8_t {
  kAny,         // what the table takes to be the quickest
  kTiles,       // register tiles of vectors
  kFewRows,     // B is read once
  kFewColumns,  // A is read once
  kUnit,        // tiles of the matrix unit
};

struct GemmArgs {
  GemmWay way = GemmWay::kAny;
  std::size_t m = 0, n = 0, k = 0;
  float alpha = 1.0f;
  const void* a = nullptr;  // [m][lda], or [k][lda] when trans_a
  std::size_t lda = 0;
  bool trans_a = false;
  FloatType a_type = FloatType::kF32;
  PreparedA* prepared_a = nullptr;  // null: nothing is kept
  const void* b = nullptr;          // [k][ldb], or [n][ldb] when trans_b; needed beside an operand's packing only
  std::size_t ldb = 0;
  bool trans_b = false;
  FloatType b_type = FloatType::kF32;
  const QuantizedB* b_quantized = nullptr;  // B holds 8-bit codes, whatever b_type says
  PackedOperand packed_b = {};              // of as many columns, and of k rows or more (GemmPacking::depth_unit)
  float* c = nullptr;                       // [m][ldc]
  std::size_t ldc = 0;
  bool accumulate = false;  // C is added to instead of overwritten
  GemmEpilogue epilogue;
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

// A table says how exact its products are and how it packs B; all are used alike.
struct GemmTable {
  const char* name;             // target, for logs and benchmarks
  std::size_t mr, nr;           // register tile
  std::size_t scratch_floats;   // scratch that `gemm` and `dgemm` need per call, in floats
  std::size_t prepared_floats;  // memory of a PreparedA; 0: the table makes none
  bool matrix_unit;             // products of many rows are made by the matrix unit
  bool splits;          // it multiplies pieces of numbers; tiles with numbers that have none are multiplied whole
  bool rounds;          // the operands of all but short sums are rounded to words of two bfloat16 numbers
  double row_cost;      // of a range, beside its area, in multiply-adds per element of K
  GemmPacking weights;  // for a B that stays: takes no more memory than its numbers do
  GemmPacking operand;  // of float32 numbers, for a B that some calls of a run share and that they are given, too
  // `scratch` is 64-byte aligned and not shared between threads.
  void (*gemm)(const GemmArgs& args, const GemmRange& range, float* scratch) noexcept;
  void (*dgemm)(const DgemmArgs& args, const GemmRange& range, float* scratch) noexcept;
  const GemmTiles* tiles;  // for other families' drivers (common/tiles.h); null in a table that has none of its own
};

// For `workers` threads.
GemmSplit split_gemm(const GemmTable& table, std::size_t m, std::size_t n, std::size_t k, std::size_t workers) noexcept;

}  // namespace infernode::microkernels
