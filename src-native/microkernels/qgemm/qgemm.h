#pragma once

#include <cstddef>
#include <cstdint>

#include "microkernels/common/activation.h"
#include "microkernels/gemm/gemm.h"

// 8-bit integer products with exact 32-bit sums:  C[m][n] = sum_k (A[m][k] - a_zero) * (B[k][n] - b_zero[n]).
// Sums wrap modulo 2^32, as the ONNX integer operators do.
namespace infernode::microkernels {

enum class QgemmOutput : std::uint8_t { kS32, kF32, kU8, kS8 };

struct QgemmArgs {
  std::size_t m = 0, n = 0, k = 0;
  const void* a = nullptr;  // [m][lda], uint8 or int8
  std::size_t lda = 0;
  bool a_signed = false;
  std::int32_t a_zero = 0;                // zero point of A
  const std::int32_t* a_zeros = nullptr;  // per row [m]; overrides a_zero
  PackedOperand packed_b = {};            // by the table's packing
  std::int32_t b_zero = 0;                // zero point of B in the type that was packed
  const std::int32_t* b_zeros = nullptr;  // per column [n]; overrides b_zero
  void* c = nullptr;                      // [m][ldc] of the output type
  std::size_t ldc = 0;
  QgemmOutput output = QgemmOutput::kS32;
  const std::int32_t* bias = nullptr;  // [n], added to the sums
  // For float and 8-bit outputs:  f = (sum + bias) * (factor * scale) + bias_f32;  8-bit: saturate(round_even(f) +
  // out_zero), NaN as 0;  float: activation(f + residual).
  float factor = 1.0f;
  float scale = 1.0f;
  const float* scales = nullptr;    // per column [n]; overrides scale
  const float* bias_f32 = nullptr;  // [n]
  const float* residual = nullptr;  // [m][ld_residual]; must not alias C
  std::size_t ld_residual = 0;
  ActivationArgs activation = {};
  std::int32_t out_zero = 0;
};

// A way to pack B.
struct QgemmPacking {
  const char* name;  // with the family's
  std::size_t (*bytes)(std::size_t n, std::size_t k) noexcept;
  // Packs columns [n_begin, n_end) of B ([k][ldb], or [n][ldb] when trans_b); n_begin is a multiple of the table's nr.
  void (*pack)(std::size_t n, std::size_t k, const void* b, bool b_signed, std::size_t ldb, bool trans_b, void* out,
               std::size_t n_begin, std::size_t n_end) noexcept;

  PackedOperand packed(std::size_t n, std::size_t k, const void* data) const noexcept {
    return {PackedForm::kCodes, data, bytes(n, k), n, k, name};
  }
};

struct QgemmTable {
  const char* name;
  std::size_t mr, nr;
  std::size_t (*scratch_bytes)(std::size_t k) noexcept;  // per call; 64-byte aligned
  QgemmPacking weights;
  void (*qgemm)(const QgemmArgs& args, const GemmRange& range, void* scratch) noexcept;
};

}  // namespace infernode::microkernels
