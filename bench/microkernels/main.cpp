// Rates of the microkernels on one thread, for every target of the CPU: GFLOP/s of products and convolutions, GB/s of
// streaming loops. `bench_microkernels [filter [target]]` runs the benchmarks whose names contain the filter, of
// targets whose names contain the other.
#include <string>
#include <utility>

#include "base/arm_rung.h"
#include "base/cpu_features.h"
#include "bench.h"

using namespace infernode;
using microkernels::Float32Precision;

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "", wanted = argc > 2 ? argv[2] : "";
  constexpr Float32Precision kHighest = Float32Precision::kHighest, kMedium = Float32Precision::kMedium;
#if defined(__aarch64__) || defined(_M_ARM64)
  constexpr std::pair<CpuRung, Float32Precision> kTargets[] = {
      {ArmRung::kNeon, kHighest}, {ArmRung::kDotprod, kHighest}, {ArmRung::kI8mm, kHighest}, {ArmRung::kBf16, kMedium}};
#else
  constexpr std::pair<CpuRung, Float32Precision> kTargets[] = {{CpuRung::Baseline, kHighest},
                                                               {CpuRung::Avx2, kHighest},
                                                               {CpuRung::Avx512, kHighest},
                                                               {CpuRung::Vnni, kHighest},
                                                               {CpuRung::Bf16, kMedium},
                                                               {CpuRung::Amx, kHighest},
                                                               {CpuRung::Amx, Float32Precision::kHigh},
                                                               {CpuRung::Amx, kMedium}};
#endif
  for (const auto& [rung, precision] : kTargets) {
    if (rung > detect_cpu_rung()) continue;
    const char* const suffix = precision == kHighest ? "" : precision == kMedium ? ".medium" : ".high";
    const bench::Bench bench{filter, microkernels::kernel_set(rung, precision), to_string(rung) + std::string(suffix)};
    if (bench.target.find(wanted) == std::string::npos) continue;
    for (const auto family :
         {bench::bench_gemm, bench::bench_attention, bench::bench_conv, bench::bench_blocked, bench::bench_winograd,
          bench::bench_qgemm, bench::bench_elementwise, bench::bench_reduce, bench::bench_pool, bench::bench_rnn,
          bench::bench_dft, bench::bench_transpose, bench::bench_trees})
      family(bench);
  }
}
