#include "microkernels/attention/attention.h"

#include "bench.h"

namespace infernode::bench {

void bench_attention(const Bench& bench) {
  const microkernels::PowerTable* const table = bench.kernels.powers;
  if (table == nullptr) return;
  const std::size_t n = 1500;
  constexpr int kTimes = 8;
  Buffer x(n), y(n);
  bench.run("powers 1500", static_cast<double>(n) * kTimes, "Gelem/s", [&] {
    for (int i = 0; i < kTimes; ++i) table->powers(x.data(), reinterpret_cast<std::uint16_t*>(y.data()), n, 0.125f);
  });
}

}  // namespace infernode::bench
