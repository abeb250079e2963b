#include "microkernels/qgemm/qgemm.h"

#include <cmath>
#include <limits>

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

struct Case {
  std::size_t m, n, k;
  bool a_signed = false, b_signed = false, trans_b = false, row_zeros = false, column_zeros = false;
  QgemmOutput output = QgemmOutput::kS32;
  bool extreme = false;  // operands at the ends of their ranges, where 16-bit sums would saturate
  Activation activation = Activation::kNone;
  bool residual = false;
};

float activated(Activation activation, float x) {
  if (activation == Activation::kRelu) return std::max(x, 0.0f);
  if (activation == Activation::kGelu) return 0.5f * x * (1 + std::erf(x * 0.70710678f));
  return x;
}

/// Whether place `at` of an output has what follows from the sum of products, `f` after scales and all.
bool holds(const QgemmArgs& args, const std::uint8_t* out, std::size_t at, std::int64_t sum, float f) {
  const auto rounded = static_cast<std::int64_t>(std::nearbyint(f)) + args.out_zero;
  switch (args.output) {
    case QgemmOutput::kS32:
      return reinterpret_cast<const std::int32_t*>(out)[at] ==
             static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
    case QgemmOutput::kF32:
      return !(std::abs(reinterpret_cast<const float*>(out)[at] - f) > 1e-5f * (1 + std::abs(f)));
    case QgemmOutput::kU8:
      return out[at] == static_cast<std::uint8_t>(std::clamp<std::int64_t>(rounded, 0, 255));
    case QgemmOutput::kS8:
      return static_cast<std::int8_t>(out[at]) ==
             static_cast<std::int8_t>(std::clamp<std::int64_t>(rounded, -128, 127));
  }
  return false;
}

void check(const QgemmTable& table, const Case& c) {
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(c.a_signed);
  CAPTURE(c.b_signed);
  Random random(c.m + c.n * 7 + c.k * 31);
  const std::size_t lda = c.k + 3, ldb = (c.trans_b ? c.k : c.n) + 1, b_rows = c.trans_b ? c.n : c.k;
  Guarded<std::uint8_t> a(c.m * lda), b(b_rows * ldb);
  for (auto& x : a) x = static_cast<std::uint8_t>(c.extreme ? (c.a_signed ? 0x80 : 0xff) : random.bits());
  for (auto& x : b) x = static_cast<std::uint8_t>(c.extreme ? (c.b_signed ? 0x80 : 0xff) : random.bits());
  Guarded<std::int32_t> a_zeros(c.m), b_zeros(c.n), bias(c.n);
  Guarded<float> scales(c.n), bias_f32(c.n);
  for (auto& x : a_zeros) x = static_cast<std::int32_t>(random.bits() % 100) + (c.a_signed ? -50 : 50);
  for (auto& x : b_zeros) x = static_cast<std::int32_t>(random.bits() % 100) + (c.b_signed ? -50 : 50);
  for (auto& x : bias) x = static_cast<std::int32_t>(random.bits() % 20000) - 10000;
  random.fill(scales, 1e-4f, 2e-3f);
  random.fill(bias_f32, -5, 5);

  Guarded<std::uint8_t> packed(table.weights.bytes(c.n, c.k));
  for (std::size_t n0 = 0; n0 < c.n; n0 += table.nr) {
    table.weights.pack(c.n, c.k, b.data(), c.b_signed, ldb, c.trans_b, packed.data(), n0, std::min(c.n, n0 + table.nr));
  }
  const bool wide = c.output == QgemmOutput::kS32 || c.output == QgemmOutput::kF32;
  Guarded<std::uint8_t> out(c.m * c.n * (wide ? 4 : 1));
  Scratch<std::uint8_t> scratch(table.scratch_bytes(c.k));
  QgemmArgs args;
  args.m = c.m;
  args.n = c.n;
  args.k = c.k;
  args.a = a.data();
  args.lda = lda;
  args.a_signed = c.a_signed;
  args.a_zero = 7;
  args.a_zeros = c.row_zeros ? a_zeros.data() : nullptr;
  args.packed_b = table.weights.packed(c.n, c.k, packed.data());
  args.b_zero = -3;
  args.b_zeros = c.column_zeros ? b_zeros.data() : nullptr;
  args.c = out.data();
  args.ldc = c.n;
  args.output = c.output;
  args.bias = bias.data();
  args.scale = 1e-3f;
  args.scales = c.column_zeros ? scales.data() : nullptr;
  args.bias_f32 = bias_f32.data();
  const std::size_t ld_residual = c.n + 5;
  Guarded<float> residual(c.residual ? c.m * ld_residual : 0);
  random.fill(residual, -3, 3);
  args.factor = c.residual ? 0.75f : 1.0f;
  args.residual = c.residual ? residual.data() : nullptr;
  args.ld_residual = ld_residual;
  args.activation = {.kind = c.activation};
  args.out_zero = c.output == QgemmOutput::kU8 ? 128 : 3;
  table.qgemm(args, {0, c.m / 2, 0, c.n}, scratch.data());
  table.qgemm(args, {c.m / 2, c.m, 0, c.n}, scratch.data());

  std::size_t wrong = 0;
  for (std::size_t i = 0; i < c.m; ++i) {
    for (std::size_t j = 0; j < c.n; ++j) {
      std::int64_t sum = bias[j];
      for (std::size_t p = 0; p < c.k; ++p) {
        const std::uint8_t x = a[i * lda + p], y = b[c.trans_b ? j * ldb + p : p * ldb + j];
        const std::int64_t xs = c.a_signed ? static_cast<std::int8_t>(x) : x,
                           ys = c.b_signed ? static_cast<std::int8_t>(y) : y;
        sum += (xs - (c.row_zeros ? a_zeros[i] : 7)) * (ys - (c.column_zeros ? b_zeros[j] : -3));
      }
      const std::size_t at = i * c.n + j;
      const float scaled = static_cast<float>(sum) * (args.factor * (c.column_zeros ? scales[j] : 1e-3f)) + bias_f32[j];
      const float f = activated(c.activation, scaled + (c.residual ? residual[i * ld_residual + j] : 0.0f));
      wrong += !holds(args, out.data(), at, sum, f);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("qgemm is exact for every signedness, layout and zero point") {
  for_each_target([](CpuRung rung) {
    for (int bits = 0; bits < 32; ++bits) {
      for (const std::size_t k : {1u, 2u, 3u, 4u, 5u, 67u}) {
        Case c{9, 37, k};
        c.a_signed = bits & 1;
        c.b_signed = bits & 2;
        c.trans_b = bits & 4;
        c.row_zeros = bits & 8;
        c.column_zeros = bits & 16;
        check(kernel_set(rung).qgemm, c);
      }
    }
  });
}

TEST_CASE("qgemm does not saturate at the ends of the operands' ranges") {
  for_each_target([](CpuRung rung) {
    for (int bits = 0; bits < 4; ++bits) {
      Case c{5, 40, 2000};
      c.a_signed = bits & 1;
      c.b_signed = bits & 2;
      c.extreme = true;
      check(kernel_set(rung).qgemm, c);
    }
  });
}

TEST_CASE("qgemm handles every shape of the register tile, many rows and long sums") {
  for_each_target([](CpuRung rung) {
    const QgemmTable& table = kernel_set(rung).qgemm;
    for (std::size_t m = 1; m <= table.mr + 1; ++m) {
      for (const std::size_t n : {1u, 4u, 8u, 9u, 16u, 17u, 31u, 32u, 33u, 65u}) check(table, {m, n, 10});
    }
    check(table, {230, 33, 50});
    check(table, {40, 20, 9000, true, false, true, true, true});
  });
}

TEST_CASE("qgemm converts its sums to float, uint8 and int8") {
  for_each_target([](CpuRung rung) {
    for (const QgemmOutput output : {QgemmOutput::kF32, QgemmOutput::kU8, QgemmOutput::kS8}) {
      for (const bool columns : {false, true}) {
        Case c{13, 45, 20, false, true, false, false, columns, output};
        check(kernel_set(rung).qgemm, c);
      }
    }
  });
}

TEST_CASE("qgemm adds a residual and activates floats") {
  for_each_target([](CpuRung rung) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu}) {
      for (const bool residual : {false, true}) {
        for (const bool columns : {false, true}) {
          for (const std::size_t n : {5u, 32u, 64u, 77u}) {
            Case c{29, n, 21, false, true, false, false, columns, QgemmOutput::kF32};
            c.activation = activation;
            c.residual = residual;
            check(kernel_set(rung).qgemm, c);
          }
        }
      }
    }
  });
}

TEST_CASE("qgemm makes the zero point of NaN, the ends of infinities") {
  constexpr std::size_t kColumns = 21;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for_each_target([](CpuRung rung) {
    const QgemmTable& table = kernel_set(rung).qgemm;
    const std::uint8_t a[] = {1};
    std::int8_t b[kColumns];
    for (std::size_t j = 0; j < kColumns; ++j) b[j] = static_cast<std::int8_t>(static_cast<int>(j % 3) - 1);
    Guarded<std::uint8_t> packed(table.weights.bytes(kColumns, 1)), out(kColumns);
    Scratch<std::uint8_t> scratch(table.scratch_bytes(1));
    table.weights.pack(kColumns, 1, b, true, kColumns, false, packed.data(), 0, kColumns);
    for (const float scale : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
      for (const QgemmOutput output : {QgemmOutput::kU8, QgemmOutput::kS8}) {
        QgemmArgs args{.m = 1, .n = kColumns, .k = 1, .a = a, .lda = 1};
        args.packed_b = table.weights.packed(kColumns, 1, packed.data());
        args.c = out.data();
        args.ldc = kColumns;
        args.output = output;
        args.scale = scale;
        args.out_zero = 9;
        table.qgemm(args, {0, 1, 0, kColumns}, scratch.data());
        const std::uint8_t least = output == QgemmOutput::kU8 ? 0 : 0x80,
                           most = output == QgemmOutput::kU8 ? 255 : 0x7f;
        for (std::size_t j = 0; j < kColumns; ++j) {
          const float value = static_cast<float>(b[j]) * scale;
          CHECK(out[j] == (std::isnan(value) ? 9 : value > 0 ? most : least));
        }
      }
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
