#include "microkernels/gemm/gemm.h"

#include "gemm_cases.h"
#include "microkernels/activations.h"

namespace infernode::microkernels::test {
namespace {

TEST_CASE("gemm agrees with a scalar product for every shape of the register tile") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (std::size_t m = 1; m <= 2 * table.mr + 1; ++m) {
      for (const std::size_t n : {1u, 3u, 4u, 7u, 8u, 15u, 16u, 17u, 31u, 32u, 33u, 65u}) check(table, {m, n, 19});
    }
  });
}

TEST_CASE("gemm handles transposes, packing, accumulation and epilogues together") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (int bits = 0; bits < 32; ++bits) {
      for (const std::size_t m : {1u, 2u, 3u, 4u, 5u, 29u}) {
        Case c{m, 45, 37};
        c.trans_a = bits & 1;
        c.trans_b = bits & 2;
        c.packed = bits & 4;
        c.accumulate = bits & 8;
        c.epilogue = bits & 16;
        c.alpha = bits & 1 ? 1.0f : 0.75f;
        c.pad = static_cast<std::size_t>(bits) % 3;
        check(table, c);
      }
    }
  });
}

TEST_CASE("gemm sums K in blocks and rows in blocks") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (const std::size_t k : {383u, 384u, 385u, 1000u}) {
      for (const bool packed : {false, true}) {
        Case c{205, 50, k};
        c.packed = packed;
        c.epilogue = true;
        check(table, c);
        c.m = 2;
        check(table, c);
        c.accumulate = true;
        c.alpha = 2.0f;
        c.m = 30;
        check(table, c);
      }
    }
  });
}

TEST_CASE("gemm with K = 0 applies the epilogue to zeros") {
  for_each_target([](CpuRung rung) {
    for (const std::size_t m : {1u, 9u}) {
      Case c{m, 21, 0};
      c.epilogue = true;
      check(kernel_set(rung).gemm, c);
      c.accumulate = true;
      check(kernel_set(rung).gemm, c);
    }
  });
}

TEST_CASE("gemm converts float16 and bfloat16 operands") {
  for_each_target([](CpuRung rung) {
    for (const FloatType type : {FloatType::kF16, FloatType::kBf16}) {
      for (const std::size_t m : {1u, 3u, 23u}) {
        for (int bits = 0; bits < 8; ++bits) {
          Case c{m, 37, 45};
          c.trans_a = bits & 1;
          c.trans_b = bits & 2;
          c.packed = bits & 4;
          c.b_type = type;
          check(kernel_set(rung).gemm, c);
          c.a_type = type;
          check(kernel_set(rung).gemm, c);
        }
      }
    }
  });
}

TEST_CASE("gemm expands an 8-bit B with one scale and zero point, or one for each column") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (const std::size_t m : {1u, 2u, 4u, 5u, 23u}) {
      for (int bits = 0; bits < 8; ++bits) {
        const std::size_t n = 37, k = 45;
        QuantizedB q;
        q.is_signed = bits & 1;
        q.per_column = bits & 2;
        const bool trans_b = bits & 4;
        CAPTURE(m);
        CAPTURE(bits);
        Random random(m + n + static_cast<std::size_t>(bits));
        Guarded<float> a(m * k), scales(q.per_column ? n : 1), zeros(q.per_column ? n : 1), out(m * n), bias(n),
            codes(n * k);
        Guarded<std::uint8_t> b(n * k);
        random.fill(a);
        random.fill(bias);
        random.fill(codes);
        random.fill(scales);
        random.fill(zeros);
        for (float& z : zeros) z = std::round(z * 100);
        for (std::size_t i = 0; i < n * k; ++i)
          b[i] = static_cast<std::uint8_t>(static_cast<int>(codes[i] * 127) + 128);
        GemmArgs args{.m = m, .n = n, .k = k, .alpha = 0.5f, .a = a.data(), .lda = k, .epilogue = {}};
        args.b = b.data();
        args.ldb = trans_b ? k : n;
        args.trans_b = trans_b;
        q.scales = scales.data();
        q.zeros = zeros.data();
        args.b_quantized = &q;
        args.c = out.data();
        args.ldc = n;
        args.epilogue.bias_n = bias.data();
        Scratch<float> scratch(table.scratch_floats);
        const GemmSplit split = split_gemm(table, m, n, k, 3);
        for (std::size_t i = 0; i < split.count(); ++i) table.gemm(args, split.range(i, m, n), scratch.data());
        double worst = 0;
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t p = 0; p < k; ++p) {
              const std::uint8_t byte = b[trans_b ? j * k + p : p * n + j];
              const double code = q.is_signed ? static_cast<std::int8_t>(byte) : byte;
              sum += a[i * k + p] * (code - zeros[q.per_column ? j : 0]) * scales[q.per_column ? j : 0];
            }
            worst = std::max(worst, std::abs(0.5 * sum + bias[j] - out[i * n + j]));
          }
        }
        CHECK(worst < 2e-3);  // of sums around 1e3
      }
    }
  });
}

TEST_CASE("gemm is as exact as its precision says, whatever the numbers") {
  const std::size_t m = 70, n = 70, k = 500;
  enum Kind { kRandom, kCancelling, kWide, kTiny, kDenormal };
  for (const Kind kind : {kRandom, kCancelling, kWide, kTiny, kDenormal}) {
    CAPTURE(static_cast<int>(kind));
    Random random(static_cast<std::uint32_t>(kind) + 1);
    std::vector<float> a(m * k), b(k * n), spread(m * k + k * n), out(m * n);
    random.fill(a);
    random.fill(b);
    random.fill(spread);
    const auto stretch = [&](std::vector<float>& x, std::size_t offset) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (kind == kWide) x[i] = std::ldexp(x[i], static_cast<int>(spread[offset + i] * 60));
        if (kind == kTiny) x[i] = std::ldexp(x[i], -110);
        if (kind == kDenormal) x[i] = std::ldexp(x[i], -130);
      }
    };
    stretch(a, 0);
    if (kind == kWide) stretch(b, a.size());
    if (kind == kCancelling) {  // pairs of k whose products nearly cancel
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t p = 0; p + 1 < k; p += 2) a[i * k + p + 1] = -a[i * k + p];
      for (std::size_t p = 0; p + 1 < k; p += 2)
        for (std::size_t j = 0; j < n; ++j) b[(p + 1) * n + j] = b[p * n + j] * (1 + spread[j] * 1e-5f);
    }
    const auto error = [&](const GemmTable& table) {
      GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = n, .epilogue = {}};
      args.c = out.data();
      args.ldc = n;
      Scratch<float> scratch(table.scratch_floats);
      table.gemm(args, {0, m, 0, n}, scratch.data());
      return worst_share(args, b.data());
    };
    const double plain = error(kernel_set(CpuRung::Baseline).gemm);
    for_each_target([&](CpuRung rung) {
      CHECK(error(kernel_set(rung).gemm_float32) <= 2 * plain);
      CHECK(error(kernel_set(rung, Float32Precision::kHigh).gemm_float32) <= std::ldexp(1.0, -15));
      CHECK(error(kernel_set(rung, Float32Precision::kMedium).gemm_float32) <= std::ldexp(1.0, -7));
    });
  }
}

TEST_CASE("gemm gives the same bits however C is cut") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (const std::size_t m : {1u, 4u, 100u}) {
      const std::size_t n = m == 100 ? 300 : 1500, k = 500;
      Random random(3);
      std::vector<float> a(m * k), b(k * n), one(m * n), many(m * n);
      random.fill(a);
      random.fill(b);
      Scratch<float> scratch(table.scratch_floats);
      GemmArgs args;
      args.m = m;
      args.n = n;
      args.k = k;
      args.a = a.data();
      args.lda = k;
      args.b = b.data();
      args.ldb = n;
      args.ldc = n;
      args.c = one.data();
      table.gemm(args, {0, m, 0, n}, scratch.data());
      args.c = many.data();
      const GemmSplit split = split_gemm(table, m, n, k, 7);
      CHECK(split.count() > 1);
      for (std::size_t i = 0; i < split.count(); ++i) table.gemm(args, split.range(i, m, n), scratch.data());
      CHECK(one == many);
    }
  });
}

TEST_CASE("gemm gives the same bits where few rows are cut") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    const std::size_t n = 70, k = 101;
    for (const std::size_t m : {2u, 3u, 4u}) {
      Random random(m);
      std::vector<float> a(m * k), b(k * n), packed(table.weights.bytes(n, k) / sizeof(float)), residual(m * n),
          bias(m);
      for (std::vector<float>* numbers : {&a, &b, &residual, &bias}) random.fill(*numbers);
      Scratch<float> scratch(table.scratch_floats);
      for (const bool trans_b : {false, true}) {
        table.weights.pack(n, k, b.data(), FloatType::kF32, trans_b ? k : n, trans_b, packed.data(), 0, n);
        for (const PackedOperand& packed_b : {PackedOperand(), table.weights.packed(n, k, packed.data())}) {
          std::vector<float> whole(m * n), cut(m * n);
          GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .epilogue = {}};
          args.ldb = trans_b ? k : n;
          args.trans_b = trans_b;
          args.packed_b = packed_b;
          args.ldc = n;
          args.epilogue.bias_m = bias.data();
          args.epilogue.residual = residual.data();
          args.epilogue.ld_residual = n;
          args.c = whole.data();
          table.gemm(args, {0, m, 0, n}, scratch.data());
          args.c = cut.data();
          for (std::size_t row = 0; row < m; ++row) table.gemm(args, {row, row + 1, 0, n}, scratch.data());
          CHECK(whole == cut);
        }
      }
    }
  });
}

TEST_CASE("gemm takes the first rows of a B that was packed with more") {
  const auto try_table = [](const GemmTable& table) {
    for (const std::size_t m : {1u, 3u, 40u}) {
      for (const std::size_t all : {20u, 101u, 1701u}) {
        const std::size_t n = 70;
        Random random(all);
        std::vector<float> a(m * all), b(n * all), packed(table.weights.bytes(n, all) / sizeof(float)), c(m * n);
        random.fill(a);
        random.fill(b);
        for (float& x : a) x = rounded(x);
        for (float& x : b) x = rounded(x);
        table.weights.pack(n, all, b.data(), FloatType::kF32, n, false, packed.data(), 0, n);
        Scratch<float> scratch(table.scratch_floats);
        for (const std::size_t k : {std::size_t{2}, std::size_t{18}, all / 4 * 2}) {
          GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = all, .epilogue = {}};
          args.packed_b = table.weights.packed(n, all, packed.data());
          args.c = c.data();
          args.ldc = n;
          table.gemm(args, {0, m, 0, n}, scratch.data());
          double worst = 0;
          for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
              double sum = 0;
              for (std::size_t p = 0; p < k; ++p) sum += static_cast<double>(a[i * all + p]) * b[p * n + j];
              worst = std::max(worst, std::abs(sum - c[i * n + j]));
            }
          }
          CHECK(worst < 1e-4);
        }
      }
    }
  };
  for_each_target([&](CpuRung rung) {
    try_table(kernel_set(rung).gemm);
    try_table(kernel_set(rung, Float32Precision::kMedium).gemm);
  });
}

TEST_CASE("split_gemm covers C exactly once") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (const std::size_t m : {1u, 5u, 128u, 1000u}) {
      for (const std::size_t n : {1u, 63u, 768u, 3072u}) {
        for (const std::size_t workers : {1u, 2u, 7u, 64u}) {
          const GemmSplit split = split_gemm(table, m, n, 512, workers);
          std::size_t area = 0;
          bool aligned = true;
          for (std::size_t i = 0; i < split.count(); ++i) {
            const GemmRange r = split.range(i, m, n);
            aligned = aligned && r.n_begin % table.nr == 0 && r.m_begin < r.m_end && r.n_begin < r.n_end;
            area += (r.m_end - r.m_begin) * (r.n_end - r.n_begin);
          }
          CHECK(area == m * n);
          CHECK(aligned);
          // No more ranges than keep the workers busy, or than long products need to look whether their run is to end.
          const std::size_t looks = (m * n * 512 + (std::size_t{1} << 26) - 1) >> 26;
          CHECK(split.count() <= std::max(4 * workers, 2 * looks));
        }
      }
    }
  });
}

TEST_CASE("gemm activations match their definitions") {
  for_each_target([&](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    const std::size_t n = 67;
    std::vector<float> x(7 * n), c(7 * n);
    Random random(9);
    random.fill(x, -6.0f, 6.0f);
    Scratch<float> scratch(table.scratch_floats);
    for (const ActivationCase& activation : every_activation()) {
      GemmArgs args;
      args.m = 7;
      args.n = n;
      args.k = 0;
      args.c = c.data();
      args.ldc = n;
      args.epilogue.residual = x.data();
      args.epilogue.ld_residual = n;
      args.epilogue.activation = activation.args;
      table.gemm(args, {0, 7, 0, n}, scratch.data());
      double worst = 0;  // that of values above 6 by their size
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = activation.formula(x[i], activation.args.a, activation.args.b);
        worst = std::max(worst, std::abs(c[i] - expected) / std::max(1.0, std::abs(expected) / 6));
      }
      CAPTURE(activation.name);
      CHECK(worst < 2e-6);
    }
  });
}

TEST_CASE("gemm carries NaN and infinity through, clamping included") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (const std::size_t m : {1u, 6u}) {
      std::vector<float> a(m * 3, 1.0f), b = {1, 1, 1, std::nanf(""), 1, 1, 1, INFINITY, 1}, c(m * 3);
      Scratch<float> scratch(table.scratch_floats);
      GemmArgs args;
      args.m = m;
      args.n = args.k = args.lda = args.ldb = args.ldc = 3;
      args.a = a.data();
      args.b = b.data();
      args.c = c.data();
      args.epilogue.activation.kind = Activation::kRelu;
      table.gemm(args, {0, m, 0, 3}, scratch.data());
      CHECK(std::isnan(c[0]));
      CHECK(c[1] == INFINITY);
      CHECK(c[2] == 3.0f);
    }
  });
}

TEST_CASE("dgemm agrees with a scalar product") {
  for_each_target([](CpuRung rung) {
    const GemmTable& table = kernel_set(rung).gemm;
    for (int bits = 0; bits < 8; ++bits) {
      for (const std::size_t k : {0u, 5u, 300u}) {
        const std::size_t m = 11, n = 37;
        const bool ta = bits & 1, tb = bits & 2, add = bits & 4;
        Guarded<double> a(m * k), b(k * n), c(m * n);
        Random random(5);
        random.fill(a);
        random.fill(b);
        random.fill(c);
        const std::vector<double> before(c.begin(), c.end());
        Scratch<float> scratch(table.scratch_floats);
        DgemmArgs args{m, n, k, 0.5, a.data(), ta ? m : k, ta, b.data(), tb ? k : n, tb, c.data(), n, add};
        table.dgemm(args, {0, m, 0, n}, scratch.data());
        double worst = 0;
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t p = 0; p < k; ++p) sum += a[ta ? p * m + i : i * k + p] * b[tb ? j * k + p : p * n + j];
            worst = std::max(worst, std::abs(c[i * n + j] - (0.5 * sum + (add ? before[i * n + j] : 0.0))));
          }
        }
        CHECK(worst < 1e-13);
      }
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
