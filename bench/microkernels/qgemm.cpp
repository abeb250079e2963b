#include <string>
#include <vector>

#include "bench.h"
#include "microkernels/qgemm/qgemm.h"

namespace infernode::bench {
namespace {

using namespace microkernels;

void product(const Bench& bench, std::size_t m, std::size_t n, std::size_t k) {
  const QgemmTable& table = bench.kernels.qgemm;
  std::vector<std::uint8_t> a(m * k, 3), b(n * k, 5), packed(table.weights.bytes(n, k));
  Buffer scratch(table.scratch_bytes(k) / 4 + 1), c(m * n);
  table.weights.pack(n, k, b.data(), true, n, false, packed.data(), 0, n);
  QgemmArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a.data();
  args.lda = k;
  args.packed_b = table.weights.packed(n, k, packed.data());
  args.c = c.data();
  args.ldc = n;
  bench.run("qgemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
            2.0 * static_cast<double>(m * n) * static_cast<double>(k), "GOP/s", [&] {
              table.qgemm(args, {0, m, 0, n}, scratch.data());
            });
}

}  // namespace

void bench_qgemm(const Bench& bench) {
  product(bench, 128, 3072, 768);
  product(bench, 1500, 384, 384);
  product(bench, 1500, 384, 1536);
  product(bench, 1, 3072, 768);
  product(bench, 1, 384, 384);
  product(bench, 1, 1536, 384);
  product(bench, 1, 384, 1536);
}

}  // namespace infernode::bench
