// Every method that can make a product makes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/cpu_features.h"
#include "microkernels/kernel_set.h"
#include "ops/matmul/methods/method.h"
#include "ops/op_test.h"

namespace infernode::ops {
namespace {

using microkernels::Float32Precision;
using microkernels::FloatType;
using microkernels::GemmArgs;
using tensor::Shape;
using tensor::Tensor;
using test::noise;

struct Case {
  std::int64_t m, n, k;
  bool constant, trans_a, trans_b;
};

std::vector<double> definition(const Case& c, const float* a, const float* b) {
  std::vector<double> y;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < c.k; ++p)
        sum += static_cast<double>(a[c.trans_a ? p * c.m + i : i * c.k + p]) * b[c.trans_b ? j * c.k + p : p * c.n + j];
      y.push_back(sum);
    }
  }
  return y;
}

/// What all methods make of it, each of which is to be as exact as `tolerance` says.
void check(const Case& c, CpuRung rung, Float32Precision precision, double tolerance) {
  const auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  const Tensor a = noise({c.m, c.k}), b = noise({c.k, c.n}, 1.0f, 2);
  const std::vector<double> expected = definition(c, a.data<float>(), b.data<float>());
  const ProductLoops loops(microkernels::kernel_set(rung, precision));
  const microkernels::GemmPacking& packing = loops.packing().weights;
  const std::size_t m = size(c.m), n = size(c.n), k = size(c.k);
  GemmArgs args{.m = m, .n = n, .k = k, .a = a.raw(), .lda = c.trans_a ? m : k, .trans_a = c.trans_a, .epilogue = {}};
  const tensor::Buffer packed = tensor::host_allocator().allocate(packing.bytes(n, k));
  const std::size_t ldb = c.trans_b ? k : n;
  if (c.constant) {
    packing.pack(n, k, b.raw(), FloatType::kF32, ldb, c.trans_b, packed.data(), 0, n);
    args.packed_b = packing.packed(n, k, packed.data());
  } else {
    args.b = b.raw();
    args.ldb = ldb;
    args.trans_b = c.trans_b;
  }
  const std::vector<ProductChoice> choices = loops.choices(product_site(args));
  REQUIRE(!choices.empty());
  const ProductWay quickest = loops.quickest(product_site(args));
  CHECK(quickest.table == (choices[0].row != nullptr ? choices[0].table : &loops.packing()));
  CHECK(quickest.way == (choices[0].row != nullptr ? choices[0].method->way : microkernels::GemmWay::kAny));
  for (const ProductChoice& choice : choices) {
    CAPTURE(choice.name);
    std::vector<float> y(expected.size());
    const tensor::Buffer scratch = tensor::host_allocator().allocate(choice.table->scratch_floats * sizeof(float));
    args.way = choice.method->way;
    args.c = y.data();
    args.ldc = n;
    choice.table->gemm(args, {0, m, 0, n}, reinterpret_cast<float*>(scratch.data()));
    double worst = 0;
    for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(expected[i] - y[i]));
    CHECK(worst <= tolerance * std::sqrt(static_cast<double>(c.k)));
  }
}

TEST_CASE("every method of products agrees with the definition") {
  for (const CpuRung rung : {CpuRung::Baseline, CpuRung::Avx2, CpuRung::Avx512, CpuRung::Bf16, CpuRung::Amx}) {
    if (rung > cpu_rung()) continue;
    for (const Float32Precision precision :
         {Float32Precision::kHighest, Float32Precision::kHigh, Float32Precision::kMedium}) {
      const double tolerance = precision == Float32Precision::kHighest ? 2e-6
                               : precision == Float32Precision::kHigh  ? 1e-4
                                                                       : 3e-2;
      for (const std::int64_t m : {1, 3, 4, 5, 13, 33, 50})
        for (const std::int64_t n : {1, 3, 10, 33, 100})
          for (const std::int64_t k : {8, 33, 100})
            for (int bits = 0; bits < 8; ++bits)
              check({m, n, k, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}, rung, precision, tolerance);
    }
  }
}

TEST_CASE("long products, and those of many columns, agree with the definition by every method") {
  constexpr double kLongTolerance = 4e-6;  // the worst of 60,000 sums
  for (const bool constant : {false, true}) {
    for (const bool trans_b : {false, true}) {
      check({14, 230, 1600, constant, false, trans_b}, cpu_rung(), Float32Precision::kHighest, kLongTolerance);
      check({205, 300, 1024, constant, false, trans_b}, cpu_rung(), Float32Precision::kHighest, kLongTolerance);
      check({77, 2, 3000, constant, false, trans_b}, cpu_rung(), Float32Precision::kHighest, kLongTolerance);
    }
  }
}

}  // namespace
}  // namespace infernode::ops
