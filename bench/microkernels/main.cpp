// Rates of the microkernels on one thread, for every target of the CPU: GFLOP/s of products and convolutions, GB/s of
// streaming loops. `bench_microkernels [filter]` runs the benchmarks whose names contain the filter.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#if !defined(_WIN32)
#include <time.h>
#endif

#include "base/cpu_features.h"
#include "microkernels/gemm.h"

using namespace infernode;
using namespace infernode::microkernels;

namespace {

// Processor time of this thread, so that other processes disturb less.
double thread_seconds() {
#if defined(_WIN32)
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
#else
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
#endif
}

// Best of several runs that together last about a fifth of a second.
template <typename Fn>
double best_seconds(Fn fn) {
  double best = 1e9, total = 0;
  for (int i = 0; i < 1000 && (total < 0.2 || i < 3); ++i) {
    const double start = thread_seconds();
    fn();
    const double seconds = thread_seconds() - start;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

class Buffer {
 public:
  explicit Buffer(std::size_t floats) : storage_(floats + 16) {
    for (std::size_t i = 0; i < storage_.size(); ++i) storage_[i] = static_cast<float>(i % 31) * 0.03f - 0.4f;
    const auto at = reinterpret_cast<std::uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - at % 64) % 64 / sizeof(float);
  }
  float* data() { return data_; }

 private:
  std::vector<float> storage_;
  float* data_;
};

struct Bench {
  std::string filter;
  CpuRung rung;

  template <typename Fn>
  void run(const std::string& name, double amount, const char* unit, Fn fn) const {
    if (name.find(filter) == std::string::npos) return;
    const double seconds = best_seconds(fn);
    std::printf("%-10s %-40s %10.1f %-8s %10.1f us\n", to_string(rung), name.c_str(), amount / seconds * 1e-9, unit,
                seconds * 1e6);
  }
};

void gemm(const Bench& bench, std::size_t m, std::size_t n, std::size_t k, bool packed, bool trans_b) {
  const GemmTable& table = gemm_table(bench.rung);
  Buffer a(m * k), b(n * k), c(m * n), scratch(table.scratch_floats), pack(table.packed_b_floats(n, k));
  GemmArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a.data();
  args.lda = k;
  args.b = b.data();
  args.ldb = trans_b ? k : n;
  args.trans_b = trans_b;
  args.c = c.data();
  args.ldc = n;
  if (packed) {
    table.pack_b(n, k, args.b, FloatType::kF32, args.ldb, trans_b, pack.data(), 0, n);
    args.packed_b = pack.data();
  }
  const std::string name = "gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                           (packed    ? " packed"
                            : trans_b ? " trans_b"
                                      : " plain");
  const auto call = [&] { table.gemm(args, {0, m, 0, n}, scratch.data()); };
  bench.run(name, 2.0 * static_cast<double>(m * n) * static_cast<double>(k), "GFLOP/s", call);
  if (m <= 4) bench.run(name + " (read B)", 4.0 * static_cast<double>(n * k), "GB/s", call);
}

}  // namespace

int main(int argc, char** argv) {
  for (const CpuRung rung : {CpuRung::Baseline, CpuRung::Avx2, CpuRung::Avx512, CpuRung::Vnni}) {
    if (rung > detect_cpu_rung()) continue;
    const Bench bench{argc > 1 ? argv[1] : "", rung};
    gemm(bench, 1024, 1024, 1024, true, false);
    gemm(bench, 1024, 1024, 1024, false, false);
    gemm(bench, 128, 3072, 768, true, false);
    gemm(bench, 128, 768, 3072, true, false);
    gemm(bench, 128, 128, 64, false, true);
    gemm(bench, 128, 64, 128, false, false);
    for (const std::size_t m : {1u, 4u}) {
      gemm(bench, m, 3072, 768, true, false);
      gemm(bench, m, 3072, 768, false, false);
      gemm(bench, m, 3072, 768, false, true);
    }
    gemm(bench, 1, 32000, 2048, true, false);
  }
}
