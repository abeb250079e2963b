#pragma once

#include <cstdio>
#include <string>

#include "microkernels/kernel_set.h"
#include "timing.h"

// What each family's file is made of: bench_<family> times its loops for one target.
namespace infernode::bench {

struct Bench {
  std::string filter;
  const microkernels::KernelSet& kernels;
  std::string target;  // the rung, and the precision where it is not `highest`

  template <typename Fn>
  void run(const std::string& name, double amount, const char* unit, Fn fn) const {
    if (name.find(filter) == std::string::npos) return;
    const double seconds = best_seconds(fn);
    std::printf("%-10s %-40s %10.1f %-8s %10.1f us\n", target.c_str(), name.c_str(), amount / seconds * 1e-9, unit,
                seconds * 1e6);
  }
};

void bench_attention(const Bench& bench);
void bench_blocked(const Bench& bench);
void bench_conv(const Bench& bench);
void bench_elementwise(const Bench& bench);
void bench_gemm(const Bench& bench);
void bench_pool(const Bench& bench);
void bench_qgemm(const Bench& bench);
void bench_reduce(const Bench& bench);
void bench_rnn(const Bench& bench);
void bench_dft(const Bench& bench);
void bench_transpose(const Bench& bench);
void bench_trees(const Bench& bench);
void bench_winograd(const Bench& bench);

}  // namespace infernode::bench
