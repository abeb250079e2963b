#include <cstring>

#include "gemm_cases.h"
#include "microkernels/gemm/gemm.h"

// Products of medium precision where they have loops of their own: operands rounded to bfloat16, sums of float32.
namespace infernode::microkernels::test {
namespace {

template <typename Fn>
void with_table(Fn fn) {
  for_each_target([&](CpuRung rung) {
    const GemmTable& table = kernel_set(rung, Float32Precision::kMedium).gemm;
    if (table.rounds) fn(table);
  });
}

// C of a whole product, cut for so many workers; B packed or as it is.
std::vector<float> product(const GemmTable& table, GemmArgs args, bool packed, std::size_t workers) {
  std::vector<float> c(args.m * args.n);
  Scratch<float> memory(packed ? table.weights.bytes(args.n, args.k) / sizeof(float) : 0),
      scratch(table.scratch_floats);
  if (packed) {
    table.weights.pack(args.n, args.k, args.b, args.b_type, args.ldb, args.trans_b, memory.data(), 0, args.n);
    args.packed_b = table.weights.packed(args.n, args.k, memory.data());
    args.b = nullptr;
  }
  args.c = c.data();
  args.ldc = args.n;
  const GemmSplit split = split_gemm(table, args.m, args.n, args.k, workers);
  for (std::size_t i = 0; i < split.count(); ++i) table.gemm(args, split.range(i, args.m, args.n), scratch.data());
  return c;
}

TEST_CASE("tables of other precisions and rungs stay what they were") {
  for_each_target([](CpuRung rung) {
    CHECK((&kernel_set(rung, Float32Precision::kHigh).gemm == &kernel_set(rung).gemm) == (rung != CpuRung::Amx));
    const bool own = rung == CpuRung::Bf16 || rung == CpuRung::Amx || rung == ArmRung::kBf16;
    CHECK((&kernel_set(rung, Float32Precision::kMedium).gemm == &kernel_set(rung).gemm) == !own);
  });
}

TEST_CASE("gemm of bfloat16 numbers agrees with a scalar product for every shape of the register tile") {
  with_table([](const GemmTable& table) {
    for (std::size_t m = 1; m <= 2 * table.mr + 1; ++m) {
      for (const std::size_t n : {1u, 3u, 15u, 16u, 17u, 31u, 32u, 33u, 65u}) {
        for (const std::size_t k : {32u, 33u, 63u, 66u}) {
          Case c{m, n, k};
          c.bfloat16 = true;
          c.packed = (m + n + k) % 2 == 0;
          c.trans_b = m % 3 == 0;
          check(table, c);
        }
      }
    }
  });
}

TEST_CASE("gemm of bfloat16 numbers handles transposes, packing, accumulation, epilogues and types together") {
  with_table([](const GemmTable& table) { check_options(table, {1, 2, 3, 4, 5, 29}); });
}

TEST_CASE("gemm of bfloat16 numbers sums K in blocks and rows in blocks") {
  with_table([](const GemmTable& table) {
    for (const std::size_t k : {1535u, 1536u, 1537u, 4001u}) {
      for (const bool packed : {false, true}) {
        Case c{205, 50, k};
        c.bfloat16 = true;
        c.packed = packed;
        c.epilogue = true;
        check(table, c);
        c.m = 2;
        check(table, c);
        c.accumulate = true;
        c.alpha = 2.0f;
        c.m = 30;
        check(table, c);
        c.trans_a = c.trans_b = true;
        check(table, c);
      }
    }
    Case c{4, 40, 90001};  // rows too long to be rounded at once
    c.bfloat16 = true;
    c.packed = true;
    check(table, c);
    c = Case{5, 33, 0};
    c.epilogue = true;
    check(table, c);
    c.m = 1;
    c.packed = true;
    check(table, c);
  });
}

TEST_CASE("gemm of medium precision rounds both operands to the nearest bfloat16") {
  with_table([](const GemmTable& table) {
    for (const std::size_t m : {1u, 3u, 7u, 40u}) {
      for (const bool trans_b : {false, true}) {
        const std::size_t n = 67, k = 301;
        Random random(m);
        std::vector<float> a(m * k), b(k * n);
        random.fill(a, -3.0f, 3.0f);
        random.fill(b, -3.0f, 3.0f);
        GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .epilogue = {}};
        args.ldb = trans_b ? k : n;
        args.trans_b = trans_b;
        const std::vector<float> c = product(table, args, true, 1);
        double worst = 0;
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t p = 0; p < k; ++p)
              sum += static_cast<double>(rounded(a[i * k + p])) * rounded(b[trans_b ? j * k + p : p * n + j]);
            worst = std::max(worst, std::abs(sum - c[i * n + j]));
          }
        }
        CHECK(worst < 1e-3);
        if (m > 4) CHECK(product(table, args, false, 1) == c);  // packed beforehand or not
      }
    }
  });
}

double activated(Activation kind, double x) {
  switch (kind) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return x * std::erfc(-x / std::sqrt(2.0)) / 2;
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    case Activation::kTanh:
      return std::tanh(x);
    default:
      return x;
  }
}

TEST_CASE("gemm of medium precision ends with residuals, biases and activations") {
  with_table([](const GemmTable& table) {
    std::size_t index = 0;
    for (const Activation kind : {Activation::kNone, Activation::kRelu, Activation::kSigmoid, Activation::kSilu,
                                  Activation::kGelu, Activation::kGeluTanh, Activation::kTanh}) {
      for (const std::size_t k : {40u, 1601u}) {  // in one block and in several
        for (unsigned with = 0; with < 16; ++with) {
          CAPTURE(++index);
          const std::size_t m = 25, n = 77;
          Random random(index);
          std::vector<float> a(m * k), b(k * n), bias_n(n), bias_m(m), residual(m * n), before(m * n), c(m * n);
          random.fill(a);
          random.fill(b, -0.2f, 0.2f);
          for (std::vector<float>* x : {&bias_n, &bias_m, &residual, &before}) random.fill(*x, -3, 3);
          c = before;
          GemmArgs args{.m = m, .n = n, .k = k, .alpha = 0.5f, .a = a.data(), .lda = k, .epilogue = {}};
          std::vector<float> packed(table.weights.bytes(n, k) / sizeof(float));
          table.weights.pack(n, k, b.data(), FloatType::kF32, n, false, packed.data(), 0, n);
          args.packed_b = table.weights.packed(n, k, packed.data());
          args.c = c.data();
          args.ldc = n;
          args.accumulate = (with & 1u) != 0;
          if ((with & 2u) != 0) args.epilogue.bias_n = bias_n.data();
          if ((with & 4u) != 0) args.epilogue.bias_m = bias_m.data();
          if ((with & 8u) != 0) args.epilogue.residual = residual.data();
          args.epilogue.ld_residual = n;
          args.epilogue.residual_scale = 0.75f;
          args.epilogue.activation.kind = kind;
          Scratch<float> scratch(table.scratch_floats);
          table.gemm(args, {0, m, 0, n}, scratch.data());
          double worst = 0;
          for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
              double sum = 0;
              for (std::size_t p = 0; p < k; ++p)
                sum += static_cast<double>(rounded(a[i * k + p])) * rounded(b[p * n + j]);
              double x = sum / 2;
              if ((with & 1u) != 0) x += before[i * n + j];
              if ((with & 2u) != 0) x += bias_n[j];
              if ((with & 4u) != 0) x += bias_m[i];
              if ((with & 8u) != 0) x += 0.75 * residual[i * n + j];
              x = activated(kind, x);
              worst = std::max(worst, std::abs(x - c[i * n + j]) / (1 + std::abs(x)));
            }
          }
          CHECK(worst < 2e-4);
        }
      }
    }
  });
}

TEST_CASE("gemm of medium precision ends with activations far out, and of NaN") {
  with_table([](const GemmTable& table) {
    const std::size_t k = 32, n = 32;
    std::vector<float> b(k * n), packed(table.weights.bytes(n, k) / sizeof(float)), c(6 * n);
    for (std::size_t j = 0; j < n; ++j) b[j] = j == 31 ? std::nanf("") : static_cast<float>(j) * 20 - 300;
    b[0] = -INFINITY;
    b[1] = INFINITY;
    table.weights.pack(n, k, b.data(), FloatType::kF32, n, false, packed.data(), 0, n);
    std::vector<float> a(6 * k);
    for (std::size_t i = 0; i < 6; ++i) a[i * k] = 1;
    GemmArgs args{.m = 6, .n = n, .k = k, .a = a.data(), .lda = k, .epilogue = {}};
    args.packed_b = table.weights.packed(n, k, packed.data());
    args.c = c.data();
    args.ldc = n;
    Scratch<float> scratch(table.scratch_floats);
    for (const Activation kind : {Activation::kSigmoid, Activation::kSilu, Activation::kGelu, Activation::kGeluTanh}) {
      args.epilogue.activation.kind = kind;
      table.gemm(args, {0, 6, 0, n}, scratch.data());
      CHECK(c[1] == (kind == Activation::kSigmoid ? 1.0f : INFINITY));
      CHECK(std::isnan(c[31]));
      for (std::size_t j = 2; j < 31; ++j)
        CHECK(c[j] == doctest::Approx(activated(kind, static_cast<double>(rounded(b[j])))).epsilon(2e-4));
    }
  });
}

TEST_CASE("gemm of medium precision takes an A of bfloat16") {
  with_table([](const GemmTable& table) {
    for (const std::size_t m : {1u, 3u, 50u}) {
      for (const std::size_t k : {33u, 64u, 1999u}) {
        const std::size_t n = 70, lda = k + 3;
        Random random(k);
        std::vector<float> a(m * lda), b(k * n), packed(table.weights.bytes(n, k) / sizeof(float)), c(m * n),
            expected(m * n);
        random.fill(a);
        random.fill(b);
        std::vector<std::uint16_t> bits(a.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          if (i % lda >= k) a[i] = std::nanf("");
          bits[i] = BFloat16(a[i]).bits;
        }
        table.weights.pack(n, k, b.data(), FloatType::kF32, n, false, packed.data(), 0, n);
        GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = lda, .epilogue = {}};
        args.packed_b = table.weights.packed(n, k, packed.data());
        args.ldc = n;
        Scratch<float> scratch(table.scratch_floats);
        args.c = expected.data();
        table.gemm(args, {0, m, 0, n}, scratch.data());
        args.c = c.data();
        args.a = bits.data();
        args.a_type = FloatType::kBf16;
        table.gemm(args, {0, m, 0, n}, scratch.data());
        CHECK(c == expected);
      }
    }
  });
}

TEST_CASE("gemm of medium precision keeps rows that a call before prepared") {
  with_table([](const GemmTable& table) {
    for (const std::size_t m : {3u, 17u, 128u, 200u, 400u}) {
      for (const std::size_t k : {20u, 65u, 1600u, 3300u}) {  // short, in one block, in two and in three or four
        for (const bool trans_a : {false, true}) {
          const std::size_t n = 4 * table.nr + 3, lda = trans_a ? m : k;
          Random random(m + k);
          std::vector<float> a(m * k), b(k * n), packed(table.weights.bytes(n, k) / sizeof(float)), c(m * n),
              expected(m * n);
          random.fill(a);
          random.fill(b);
          table.weights.pack(n, k, b.data(), FloatType::kF32, n, false, packed.data(), 0, n);
          GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = lda, .trans_a = trans_a, .epilogue = {}};
          args.packed_b = table.weights.packed(n, k, packed.data());
          args.ldc = n;
          Scratch<float> scratch(table.scratch_floats), memory(table.prepared_floats);
          args.c = expected.data();
          table.gemm(args, {0, m, 0, n}, scratch.data());
          args.c = c.data();
          for (const auto& [begin, end] : {std::pair{std::size_t{0}, m / 2}, std::pair{m / 2, m}}) {
            PreparedA prepared{memory.data()};
            args.prepared_a = &prepared;
            for (std::size_t j = 0; j < n; j += 2 * table.nr) {
              table.gemm(args, {begin, end, j, std::min(n, j + 2 * table.nr)}, scratch.data());
              const bool keeps = table.prepared_floats > 0 && m > 4 && k >= 32 && (end - begin) * k < 400 * 1600;
              CHECK(prepared.ready == keeps);
            }
          }
          CHECK(c == expected);
        }
      }
    }
  });
}

TEST_CASE("gemm of medium precision gives the same bits however C is cut") {
  with_table([](const GemmTable& table) {
    for (const std::size_t m : {1u, 4u, 5u, 100u, 400u}) {
      for (const bool packed : {false, true}) {
        const std::size_t n = m >= 100 ? 300 : 1500, k = 1701;
        Random random(3);
        std::vector<float> a(m * k), b(k * n);
        random.fill(a);
        random.fill(b);
        const GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = n, .epilogue = {}};
        CHECK(split_gemm(table, m, n, k, 7).count() > 1);
        CHECK(product(table, args, packed, 1) == product(table, args, packed, 7));
      }
    }
  });
}

TEST_CASE("gemm of medium precision gives the same bits where few rows are cut") {
  with_table([](const GemmTable& table) {
    for (const std::size_t m : {2u, 3u, 4u}) {
      const std::size_t n = 70, k = 101;
      Random random(m);
      std::vector<float> a(m * k), b(k * n), packed(table.weights.bytes(n, k) / sizeof(float)), c(m * n);
      random.fill(a);
      random.fill(b);
      GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = n, .epilogue = {}};
      const std::vector<float> whole = product(table, args, true, 1);
      table.weights.pack(n, k, b.data(), FloatType::kF32, n, false, packed.data(), 0, n);
      args.packed_b = table.weights.packed(n, k, packed.data());
      args.c = c.data();
      args.ldc = n;
      Scratch<float> scratch(table.scratch_floats);
      for (std::size_t row = 0; row < m; ++row) table.gemm(args, {row, row + 1, 0, n}, scratch.data());
      CHECK(whole == c);
    }
  });
}

TEST_CASE("gemm of medium precision gives what bfloat16 gives for infinities, NaN and numbers that round to infinity") {
  with_table([](const GemmTable& table) {
    for (const std::size_t m : {1u, 6u}) {
      const std::size_t n = 5, k = 33;
      std::vector<float> a(m * k, 1.0f), b(k * n, 1.0f);
      b[0] = std::nanf("");
      b[1] = INFINITY;
      b[2] = std::numeric_limits<float>::max();  // beyond the largest bfloat16
      b[3] = -INFINITY;
      b[32 * n + 3] = INFINITY;
      std::uint32_t payload = 0x7f800001;  // a NaN whose upper half alone would be an infinity
      std::memcpy(&b[32 * n + 4], &payload, 4);
      GemmArgs args{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .b = b.data(), .ldb = n, .epilogue = {}};
      for (const bool relu : {false, true}) {
        if (relu) args.epilogue.activation.kind = Activation::kRelu;
        const std::vector<float> c = product(table, args, true, 1);
        for (std::size_t i = 0; i < m; ++i) {
          CHECK(std::isnan(c[i * n]));
          CHECK(c[i * n + 1] == INFINITY);
          CHECK(c[i * n + 2] == INFINITY);
          CHECK(std::isnan(c[i * n + 3]));
          CHECK(std::isnan(c[i * n + 4]));
        }
      }
      b.assign(k * n, 1.0f);
      a[0] = std::nanf("");
      a[(m - 1) * k + 32] = m == 1 ? 1.0f : -INFINITY;
      args.epilogue.activation.kind = Activation::kNone;
      const std::vector<float> c = product(table, args, true, 1);
      CHECK(std::isnan(c[0]));
      if (m > 1) {
        CHECK(c[n] == 33.0f);
        CHECK(c[(m - 1) * n] == -INFINITY);
      }
    }
  });
}

TEST_CASE("gemm of medium precision does not round the operands of short sums") {
  with_table([](const GemmTable& table) {
    for (const std::size_t m : {1u, 40u}) {
      for (const bool packed : {false, true}) {
        Case c{m, 50, 31};
        c.packed = packed;
        c.epilogue = true;
        check(table, c);
        c.k = 1;
        check(table, c);
      }
    }
  });
}

TEST_CASE("packed weights of medium precision take two bytes each") {
  with_table([](const GemmTable& table) {
    CHECK(table.weights.bytes(64, 100) == 2 * 64 * 100);
    const std::size_t unit = table.weights.depth_unit;
    CHECK(table.weights.bytes(33, 77) ==
          2 * ((33 + table.nr - 1) / table.nr * table.nr) * ((77 + unit - 1) / unit * unit));
    // In parts as at once.
    const std::size_t n = 100, k = 37;
    Random random(5);
    std::vector<float> b(n * k), whole(table.weights.bytes(n, k) / sizeof(float)), parts(whole.size());
    random.fill(b);
    for (const bool trans_b : {false, true}) {
      const std::size_t ldb = trans_b ? k : n;
      table.weights.pack(n, k, b.data(), FloatType::kF32, ldb, trans_b, whole.data(), 0, n);
      for (std::size_t n0 = 0; n0 < n; n0 += table.nr)
        table.weights.pack(n, k, b.data(), FloatType::kF32, ldb, trans_b, parts.data(), n0, std::min(n, n0 + table.nr));
      CHECK(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)) == 0);
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
