#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "microkernels/gemm/gemm.h"
#include "microkernels/support.h"

// Products of random matrices, held against sums in float64.
namespace infernode::microkernels::test {

struct Case {
  std::size_t m, n, k;
  bool trans_a = false, trans_b = false, packed = false, accumulate = false, epilogue = false;
  float alpha = 1.0f;
  FloatType a_type = FloatType::kF32, b_type = FloatType::kF32;
  std::size_t pad = 0;      // leading dimensions exceed the widths by it
  std::size_t workers = 1;  // C is cut for so many
  bool bfloat16 = false;    // operands hold numbers of 8 bits, whatever their type
};

// A matrix in float32 and, when the type asks for it, in 16 bits; the float32 copy holds what the 16 bits stand for.
struct Matrix {
  Matrix(std::size_t rows, std::size_t ld, std::size_t cols, FloatType type, bool bfloat16, Random& random)
      : type(type), wide(rows ? (rows - 1) * ld + cols : 0), narrowed(type == FloatType::kF32 ? 0 : wide.size()) {
    random.fill(wide);
    if (bfloat16) {
      for (float& x : wide) x = rounded(x);
    }
    for (std::size_t i = 0; i < narrowed.size(); ++i) {
      narrowed[i] = narrow(wide[i], type);
      wide[i] = widen(narrowed[i], type);
    }
  }
  const void* pointer() const {
    return type == FloatType::kF32 ? static_cast<const void*>(wide.data()) : narrowed.data();
  }

  FloatType type;
  Guarded<float> wide;
  Guarded<std::uint16_t> narrowed;
};

inline void check(const GemmTable& table, const Case& c) {
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(c.trans_a);
  CAPTURE(c.trans_b);
  CAPTURE(c.packed);
  CAPTURE(c.accumulate);
  CAPTURE(c.epilogue);
  Random random(c.m * 131 + c.n * 17 + c.k);
  const std::size_t a_rows = c.trans_a ? c.k : c.m, a_cols = c.trans_a ? c.m : c.k;
  const std::size_t b_rows = c.trans_b ? c.n : c.k, b_cols = c.trans_b ? c.k : c.n;
  const std::size_t lda = a_cols + c.pad, ldb = b_cols + c.pad, ldc = c.n + c.pad;
  Matrix a(a_rows, lda, a_cols, c.a_type, c.bfloat16, random), b(b_rows, ldb, b_cols, c.b_type, c.bfloat16, random);
  Guarded<float> out((c.m - 1) * ldc + c.n), bias_m(c.m), bias_n(c.n), residual(c.m * c.n);
  random.fill(out);
  random.fill(bias_m);
  random.fill(bias_n);
  random.fill(residual);
  const std::vector<float> before(out.begin(), out.end());

  GemmArgs args;
  args.m = c.m;
  args.n = c.n;
  args.k = c.k;
  args.alpha = c.alpha;
  args.a = a.pointer();
  args.lda = lda;
  args.trans_a = c.trans_a;
  args.a_type = c.a_type;
  args.b = b.pointer();
  args.ldb = ldb;
  args.trans_b = c.trans_b;
  args.b_type = c.b_type;
  args.c = out.data();
  args.ldc = ldc;
  args.accumulate = c.accumulate;
  if (c.epilogue) {
    args.epilogue = {bias_n.data(), bias_m.data(), residual.data(), c.n, 0.5f, {Activation::kLeakyRelu, 0.1f, 0}};
  }
  Guarded<float> packed(c.packed ? table.weights.bytes(c.n, c.k) / sizeof(float) : 0);
  if (c.packed) {
    for (std::size_t n0 = 0; n0 < c.n; n0 += 2 * table.nr) {
      table.weights.pack(c.n, c.k, args.b, c.b_type, ldb, c.trans_b, packed.data(), n0,
                         std::min(c.n, n0 + 2 * table.nr));
    }
    args.packed_b = table.weights.packed(c.n, c.k, packed.data());
    args.b = nullptr;
  }
  Scratch<float> scratch(table.scratch_floats);
  const GemmSplit split = split_gemm(table, c.m, c.n, c.k, c.workers);
  for (std::size_t i = 0; i < split.count(); ++i) table.gemm(args, split.range(i, c.m, c.n), scratch.data());

  double worst = 0;
  bool padding_kept = true;
  for (std::size_t i = 0; i < c.m; ++i) {
    for (std::size_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (std::size_t p = 0; p < c.k; ++p) {
        sum += static_cast<double>(a.wide[c.trans_a ? p * lda + i : i * lda + p]) *
               b.wide[c.trans_b ? j * ldb + p : p * ldb + j];
      }
      double value = c.alpha * sum + (c.accumulate ? before[i * ldc + j] : 0.0);
      if (c.epilogue) {
        value += 0.5 * residual[i * c.n + j] + bias_m[i] + bias_n[j];
        if (value < 0) value *= 0.1f;
      }
      worst = std::max(worst, std::abs(value - out[i * ldc + j]));
    }
    for (std::size_t j = c.n; j < ldc && i + 1 < c.m; ++j)
      padding_kept = padding_kept && out[i * ldc + j] == before[i * ldc + j];
  }
  CHECK(worst <= 2e-6 * std::sqrt(static_cast<double>(c.k) + 1) + 1e-6);
  CHECK(padding_kept);
}

// Transposes, packing, accumulation, epilogues and types together, of products of so many rows.
inline void check_options(const GemmTable& table, std::initializer_list<std::size_t> rows) {
  for (int bits = 0; bits < 128; ++bits) {
    for (const std::size_t m : rows) {
      Case c{m, 45, 37};
      c.bfloat16 = true;
      c.trans_a = bits & 1;
      c.trans_b = bits & 2;
      c.packed = bits & 4;
      c.accumulate = bits & 8;
      c.epilogue = bits & 16;
      if (bits & 32) c.a_type = FloatType::kBf16;
      if (bits & 64) c.b_type = FloatType::kBf16;
      c.alpha = bits & 1 ? 1.0f : 0.75f;
      c.pad = static_cast<std::size_t>(bits) % 3;
      check(table, c);
    }
  }
}

// How far C of float32 operands lies from float64 sums at most, as a share of the sum of its terms' magnitudes. Where
// float32 cannot hold these, it need not be close, but as infinite as they are.
inline double worst_share(const GemmArgs& g, const float* b) {
  const auto* const a = static_cast<const float*>(g.a);
  double worst = 0;
  for (std::size_t i = 0; i < g.m; ++i) {
    for (std::size_t j = 0; j < g.n; ++j) {
      double sum = g.epilogue.residual ? g.epilogue.residual[i * g.epilogue.ld_residual + j] : 0, terms = std::abs(sum);
      for (std::size_t p = 0; p < g.k; ++p) {
        const double term = static_cast<double>(a[i * g.lda + p]) * b[g.trans_b ? j * g.ldb + p : p * g.ldb + j];
        sum += term;
        terms += std::abs(term);
      }
      const float c = g.c[i * g.ldc + j];
      if (terms < 3e38) {
        if (terms > 0) worst = std::max(worst, std::abs(sum - c) / terms);
      } else if (!std::isfinite(sum) && c != static_cast<float>(sum)) {
        worst = std::numeric_limits<double>::infinity();
      }
    }
  }
  return worst;
}

}  // namespace infernode::microkernels::test
