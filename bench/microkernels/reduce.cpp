#include "microkernels/reduce/reduce.h"
#include "bench.h"

namespace infernode::bench {

void bench_reduce(const Bench& bench) {
  const std::size_t n = 4096;
  Buffer x(n), y(n), z(n);
  const microkernels::ReduceTable& reduce = bench.kernels.reduce;
  bench.run("softmax 4096", static_cast<double>(n), "Gelem/s", [&] { reduce.softmax(x.data(), y.data(), n); });
  constexpr int kTimes = 64;  // what is short is repeated: the clock takes a part of a microsecond
  bench.run("softmax 128", 128.0 * kTimes, "Gelem/s", [&] {
    for (int i = 0; i < kTimes; ++i) reduce.softmax(x.data(), y.data(), 128);
  });
  bench.run("layer_norm 768", 768.0 * kTimes, "Gelem/s", [&] {
    for (int i = 0; i < kTimes; ++i)
      reduce.layer_norm(x.data(), z.data(), z.data(), y.data(), 768, 1e-5f, nullptr, nullptr);
  });
}

}  // namespace infernode::bench
