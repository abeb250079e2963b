#include <string>

#include "bench.h"
#include "microkernels/gemm/gemm.h"

namespace infernode::bench {
namespace {

using namespace microkernels;

void product(const Bench& bench, std::size_t m, std::size_t n, std::size_t k, bool packed, bool trans_b) {
  const GemmTable& table = bench.kernels.gemm;
  Buffer a(m * k), b(n * k), c(m * n), scratch(table.scratch_floats), pack(table.weights.bytes(n, k) / sizeof(float));
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
    table.weights.pack(n, k, args.b, FloatType::kF32, args.ldb, trans_b, pack.data(), 0, n);
    args.packed_b = table.weights.packed(n, k, pack.data());
    args.b = nullptr;
  }
  const std::string name = "gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                           (packed    ? " packed"
                            : trans_b ? " trans_b"
                                      : " plain");
  const auto call = [&] { table.gemm(args, {0, m, 0, n}, scratch.data()); };
  bench.run(name, 2.0 * static_cast<double>(m * n) * static_cast<double>(k), "GFLOP/s", call);
  if (m <= 4)
    bench.run(name + " (read B)",
              (packed ? static_cast<double>(table.weights.bytes(n, k)) : 4.0 * static_cast<double>(n * k)), "GB/s",
              call);
}

}  // namespace

void bench_gemm(const Bench& bench) {
  product(bench, 1024, 1024, 1024, true, false);
  product(bench, 1024, 1024, 1024, false, false);
  product(bench, 128, 3072, 768, true, false);
  product(bench, 128, 768, 3072, true, false);
  product(bench, 197, 3072, 768, true, false);
  product(bench, 1500, 2048, 512, true, false);
  product(bench, 256, 50257, 768, true, false);
  product(bench, 128, 128, 64, false, true);
  product(bench, 128, 64, 128, false, false);
  product(bench, 48, 1500, 64, true, true);
  product(bench, 48, 64, 1500, true, false);
  product(bench, 43, 1500, 64, false, true);
  product(bench, 43, 64, 1500, false, false);
  product(bench, 1500, 1500, 64, false, true);
  product(bench, 1500, 64, 1500, false, false);
  for (const std::size_t m : {1u, 4u}) {
    product(bench, m, 3072, 768, true, false);
    product(bench, m, 3072, 768, false, false);
    product(bench, m, 3072, 768, false, true);
  }
  for (const std::size_t m : {8u, 16u, 24u}) product(bench, m, 1536, 384, true, false);
  product(bench, 1, 32000, 2048, true, false);
}

}  // namespace infernode::bench
