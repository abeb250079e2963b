#include <string>
#include <utility>

#include "bench.h"
#include "microkernels/elementwise/elementwise.h"

namespace infernode::bench {

void bench_elementwise(const Bench& bench) {
  const std::size_t n = 4096;
  Buffer x(n), y(n), z(n);
  const microkernels::ElementwiseTable& table = bench.kernels.elementwise;
  using microkernels::UnaryOp;
  const std::pair<const char*, UnaryOp> ops[] = {
      {"exp", UnaryOp::kExp},         {"log", UnaryOp::kLog},   {"erf", UnaryOp::kErf}, {"tanh", UnaryOp::kTanh},
      {"sigmoid", UnaryOp::kSigmoid}, {"gelu", UnaryOp::kGelu}, {"sin", UnaryOp::kSin}, {"relu", UnaryOp::kRelu}};
  for (const auto& [name, op] : ops) {
    bench.run(std::string("unary ") + name, static_cast<double>(n) * 8, "Gelem/s", [&] {
      for (int i = 0; i < 8; ++i) table[op](x.data(), y.data(), n, 0, 0);
    });
  }
  bench.run("binary add", static_cast<double>(n) * 8, "Gelem/s", [&] {
    for (int i = 0; i < 8; ++i) table.vector_vector[0](x.data(), y.data(), z.data(), n);
  });
}

}  // namespace infernode::bench
