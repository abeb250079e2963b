#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_rung.h"

// Softmax of products of queries and keys, multiplied by values.
namespace infernode::microkernels {

// Neighbouring queries of one head. Matrices are row-major; strides are counted in elements.
struct AttentionStrip {
  std::size_t rows = 0, keys = 0, head = 0, v_head = 0;
  const float* q = nullptr;  // [rows][ldq], of `head` columns
  std::size_t ldq = 0;
  const float* k = nullptr;  // as AttentionTable::pack_keys made it
  const float* v = nullptr;  // [keys][ldv], of which v_head columns, filled up to whole vectors, may be read
  std::size_t ldv = 0;
  float scale = 1;              // > 0, finite
  const float* mask = nullptr;  // [rows][ld_mask], added to scale * q * k; null: nothing is
  std::size_t ld_mask = 0;      // 0: one row serves all
  bool causal = false;          // row r sees the first `first_keys` + r keys, else all of them
  std::size_t first_keys = 0;
  float* scores = nullptr;  // scratch, AttentionTable::scores_floats
  float* y = nullptr;       // [rows][ldy], of v_head columns
  std::size_t ldy = 0;
};

struct AttentionTable {
  const char* name;
  std::size_t rows, columns;  // of a register tile: strips are best made of whole ones
  std::size_t lanes;          // numbers of a vector
  std::size_t (*keys_floats)(std::size_t keys, std::size_t head) noexcept;
  // k [keys][ldk] as strips read it; `out` is 64-byte aligned.
  void (*pack_keys)(const float* k, std::size_t ldk, std::size_t keys, std::size_t head, float* out) noexcept;
  std::size_t (*values_stride)(std::size_t v_head) noexcept;
  // v [keys][ldv] in rows of whole vectors, values_stride apart.
  void (*pack_values)(const float* v, std::size_t ldv, std::size_t keys, std::size_t v_head, float* out) noexcept;
  std::size_t (*scores_floats)(std::size_t rows, std::size_t keys) noexcept;
  // False where a number of y is not finite, as where no key counts. A row's bits do not depend on how rows were cut
  // into strips.
  bool (*attend)(const AttentionStrip& strip) noexcept;
};

// Of a CPU's float32 numbers, whatever the precision of products.
const AttentionTable& attention_table(CpuRung rung) noexcept;

// The powers of a softmax for products of bfloat16: as exact as those need.
struct PowerTable {
  const char* name;
  // y = exp(scale * (x - the greatest of x)), scale > 0, as bfloat16; returns their sum, before they were rounded. y
  // may begin where x does. NaN in x, and a row of only -infinity, give a sum of NaN.
  float (*powers)(const float* x, std::uint16_t* y, std::size_t n, float scale) noexcept;
};

}  // namespace infernode::microkernels
