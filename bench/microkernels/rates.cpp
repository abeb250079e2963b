// How near products of matrices come to the rate at which this CPU multiplies and adds: `bench_rates` prints, for each
// kind of instructions that it has, GFLOP/s of multiply-adds alone and of a product of 1024^3 with packed weights, one
// thread each. On the matrix unit a float32 product of precision `highest` is six of bfloat16: the rate is a sixth.
#include <cstdio>
#include <cstdlib>

#include "base/cpu_features.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "multiply_add.h"
#include "timing.h"

using namespace infernode;
using namespace infernode::bench;
using namespace infernode::microkernels;

namespace {

struct Target {
  const char* name;
  CpuRung rung;
  std::size_t (*multiply_add)(std::size_t turns, float& sum) noexcept;
  double products;  ///< of the instructions, for one of float32
};

constexpr Target kTargets[] = {{"avx2", CpuRung::Avx2, multiply_add_avx2, 1},
                               {"avx512", CpuRung::Avx512, multiply_add_avx512, 1},
                               {"amx", CpuRung::Amx, multiply_add_amx, 6}};

double peak(const Target& target) {
  constexpr std::size_t kTurns = 1'000'000;
  float sum = 0;
  std::size_t operations = 0;
  const double seconds = best_seconds([&] { operations = target.multiply_add(kTurns, sum); });
  if (!(sum == sum)) std::abort();  // used, so that it is computed
  return static_cast<double>(operations) / target.products / seconds * 1e-9;
}

double product(const Target& target) {
  constexpr std::size_t kSize = 1024;
  const GemmTable& table = kernel_set(target.rung).gemm;
  Buffer a(kSize * kSize), b(kSize * kSize), c(kSize * kSize), scratch(table.scratch_floats);
  Buffer packed(table.weights.bytes(kSize, kSize) / sizeof(float));
  table.weights.pack(kSize, kSize, b.data(), FloatType::kF32, kSize, false, packed.data(), 0, kSize);
  GemmArgs args;
  args.m = args.n = args.k = args.lda = args.ldb = args.ldc = kSize;
  args.a = a.data();
  args.b = b.data();
  args.packed_b = table.weights.packed(kSize, kSize, packed.data());
  args.c = c.data();
  const double seconds = best_seconds([&] { table.gemm(args, {0, kSize, 0, kSize}, scratch.data()); });
  return 2.0 * kSize * kSize * kSize / seconds * 1e-9;
}

}  // namespace

int main() {
  for (const Target& target : kTargets) {
    if (target.rung > detect_cpu_rung()) continue;
    std::printf("%s multiply-add %.1f product %.1f\n", target.name, peak(target), product(target));
  }
}
