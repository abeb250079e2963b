#include <cmath>
#include <limits>

#include "gemm_cases.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"

// Products whose B was split into pieces beforehand: for several calls, or, at precision `high`, when it was packed.
namespace infernode::microkernels::test {
namespace {

template <typename Fn>
void with_high_table(Fn fn) {
  for_each_target([&](CpuRung rung) {
    const GemmTable& table = kernel_set(rung, Float32Precision::kHigh).gemm;
    if (table.weights.form(100) == PackedForm::kBf16Pieces) fn(table);
  });
}

// As float64 sums it, and bit for bit what the same call makes of a B that is split as it goes.
TEST_CASE("gemm multiplies by a B that was split beforehand") {
  const auto try_table = [](const GemmTable& table, Float32Precision precision) {
    if (table.operand.form(100) != PackedForm::kBf16Pieces) return;
    for (const std::size_t m : {8u, 17u, 32u, 33u, 70u}) {
      for (const std::size_t all : {33u, 90u, 1500u}) {
        for (int bits = 0; bits < 8; ++bits) {
          const bool trans = bits & 1, shorter = bits & 2, residual = bits & 4;
          const std::size_t columns = 75, ldb = (trans ? all : columns) + 3;
          const std::size_t n = shorter ? 40 : columns, k = shorter ? std::max<std::size_t>(32, all / 2 - 1) : all;
          CAPTURE(m);
          CAPTURE(k);
          CAPTURE(bits);
          Random random(m + all);
          Guarded<float> a(m * k), b(((trans ? columns : all) - 1) * ldb + (trans ? all : columns)), out(m * n);
          std::vector<float> same(m * n), bias(m * n);
          random.fill(a);
          random.fill(b);
          random.fill(bias);
          Scratch<std::uint8_t> split(table.operand.bytes(columns, all));
          table.operand.pack(columns, all, b.data(), FloatType::kF32, ldb, trans, split.data(), 0, columns);
          Scratch<float> scratch(table.scratch_floats);
          GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .epilogue = {}};
          args.b = b.data();
          args.ldb = ldb;
          args.trans_b = trans;
          args.ldc = n;
          if (residual) args.epilogue.residual = bias.data();
          args.epilogue.ld_residual = n;
          args.c = same.data();
          table.gemm(args, {0, m, 0, n}, scratch.data());
          args.packed_b = table.operand.packed(columns, all, split.data());
          args.c = out.data();
          table.gemm(args, {0, m, 0, n}, scratch.data());
          CHECK(worst_share(args, b.data()) < (precision == Float32Precision::kHighest ? 6e-7 : 0x1p-15));
          if (m >= 32) CHECK(std::equal(out.begin(), out.end(), same.begin()));
        }
      }
    }
  };
  for_each_target([&](CpuRung rung) {
    for (const Float32Precision precision : {Float32Precision::kHighest, Float32Precision::kHigh})
      try_table(kernel_set(rung, precision).gemm, precision);
  });
}

TEST_CASE("gemm multiplies whole what cannot be split, also where B was packed or split beforehand") {
  const auto try_table = [](const GemmTable& table, Float32Precision precision) {
    const std::size_t n = 75, k = 100;
    const double most = precision == Float32Precision::kHighest ? 6e-7 : 0x1p-15;
    for (const float odd : {0x1p-120f, 0x1.fffffep+127f, 0x1p-149f, std::numeric_limits<float>::infinity()}) {
      for (int bits = 0; bits < 24; ++bits) {
        const bool in_a = bits & 1, trans = bits & 2;
        const std::size_t m = bits & 4 ? 70 : 3;
        CAPTURE(odd);
        CAPTURE(bits);
        Random random(7);
        Guarded<float> a(m * k), b(n * k), out(m * n);
        random.fill(a);
        random.fill(b);
        (in_a ? a : b)[in_a ? 2 * k + 60 : trans ? 60 * k + 40 : 40 * n + 60] = odd;
        std::vector<float> packed(table.weights.bytes(n, k) / sizeof(float));
        table.weights.pack(n, k, b.data(), FloatType::kF32, trans ? k : n, trans, packed.data(), 0, n);
        Scratch<std::uint8_t> split(table.operand.bytes(n, k));
        table.operand.pack(n, k, b.data(), FloatType::kF32, trans ? k : n, trans, split.data(), 0, n);
        Scratch<float> scratch(table.scratch_floats);
        GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .epilogue = {}};
        args.b = b.data();
        args.ldb = trans ? k : n;
        args.trans_b = trans;
        if (bits / 8 == 1) {
          args.packed_b = table.weights.packed(n, k, packed.data());
          args.b = nullptr;
        }
        if (bits / 8 == 2) args.packed_b = table.operand.packed(n, k, split.data());
        args.c = out.data();
        args.ldc = n;
        table.gemm(args, {0, m, 0, n}, scratch.data());
        CHECK(worst_share(args, b.data()) < most);
      }
    }
  };
  for_each_target([&](CpuRung rung) {
    for (const Float32Precision precision : {Float32Precision::kHighest, Float32Precision::kHigh})
      try_table(kernel_set(rung, precision).gemm, precision);
  });
}

TEST_CASE("gemm of high precision agrees with a scalar product for every shape of the register tile") {
  with_high_table([](const GemmTable& table) {
    for (std::size_t m = 1; m <= 2 * table.mr + 1; ++m) {
      for (const std::size_t n : {1u, 15u, 17u, 32u, 65u}) {
        for (const std::size_t k : {7u, 32u, 33u, 66u}) {
          Case c{m, n, k};
          c.bfloat16 = true;
          c.packed = true;
          c.trans_b = m % 3 == 0;
          check(table, c);
        }
      }
    }
  });
}

TEST_CASE("gemm of high precision handles transposes, packing, accumulation, epilogues and types together") {
  with_high_table([](const GemmTable& table) { check_options(table, {1, 4, 7, 8, 45}); });
}

TEST_CASE("gemm of high precision sums K in blocks and rows in blocks, for several threads") {
  with_high_table([](const GemmTable& table) {
    for (const std::size_t k : {768u, 769u, 1537u, 2000u}) {
      for (const std::size_t m : {2u, 6u, 30u, 300u}) {
        for (const bool trans : {false, true}) {
          Case c{m, 90, k};
          c.bfloat16 = true;
          c.packed = true;
          c.epilogue = true;
          c.trans_a = trans;
          c.workers = 3;
          check(table, c);
        }
      }
    }
  });
}

TEST_CASE("packed weights of high precision take four bytes each and are within 2^-15") {
  with_high_table([](const GemmTable& table) {
    const std::size_t n = 96, k = 640;
    CHECK(table.weights.bytes(n, k) / sizeof(float) <= n * k + n);
    for (const std::size_t m : {1u, 5u, 8u, 70u}) {
      Random random(m);
      Guarded<float> a(m * k), b(n * k), out(m * n);
      random.fill(a);
      random.fill(b);
      Scratch<float> packed(table.weights.bytes(n, k) / sizeof(float)), scratch(table.scratch_floats);
      table.weights.pack(n, k, b.data(), FloatType::kF32, n, false, packed.data(), 0, n);
      GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .epilogue = {}};
      args.packed_b = table.weights.packed(n, k, packed.data());
      args.c = out.data();
      args.ldc = n;
      table.gemm(args, {0, m, 0, n}, scratch.data());
      args.ldb = n;
      CHECK(worst_share(args, b.data()) <= 0x1p-15);
      std::vector<float> cut(m * n);  // the same bits however C is cut
      args.c = cut.data();
      const GemmSplit split = split_gemm(table, m, n, k, 4);
      for (std::size_t i = split.count(); i-- > 0;) table.gemm(args, split.range(i, m, n), scratch.data());
      CHECK(std::equal(cut.begin(), cut.end(), out.begin()));
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
