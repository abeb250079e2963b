#include "microkernels/pool/pool.h"
#include "bench.h"

namespace infernode::bench {

void bench_pool(const Bench& bench) {
  using microkernels::kPlace;
  const microkernels::PoolShape s{.in_h = 56,
                                  .in_w = 56,
                                  .out_h = 28,
                                  .out_w = 28,
                                  .kernel_h = 3,
                                  .kernel_w = 3,
                                  .stride_h = 2,
                                  .stride_w = 2,
                                  .pad_top = 1,
                                  .pad_left = 1};
  const double seen = static_cast<double>(s.out_h * s.out_w * s.kernel_h * s.kernel_w);
  Buffer x(s.in_h * s.in_w * kPlace), y(s.out_h * s.out_w * kPlace);
  const microkernels::PoolTable& pool = bench.kernels.pool;
  bench.run("pool max 3x3 s2 56x56", seen, "Gelem/s", [&] { pool.max(s, x.data(), y.data()); });
  bench.run("pool average 3x3 s2 56x56", seen, "Gelem/s", [&] { pool.average(s, false, x.data(), y.data()); });
  bench.run("pool max of 16 planes 3x3 s2 56x56", seen * kPlace, "Gelem/s",
            [&] { pool.max_places(s, x.data(), y.data()); });
}

}  // namespace infernode::bench
