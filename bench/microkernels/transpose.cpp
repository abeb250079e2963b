#include "microkernels/transpose/transpose.h"

#include <cstdint>

#include "bench.h"

namespace infernode::bench {

void bench_transpose(const Bench& bench) {
  constexpr std::size_t kSide = 256;
  Buffer x(kSide * kSide), y(kSide * kSide);
  const auto run = [&](const char* name, auto transpose, auto* from, auto* to) {
    bench.run(name, 2.0 * kSide * kSide * sizeof *from, "GB/s",
              [&] { transpose(from, kSide, to, kSide, kSide, kSide); });
  };
  const microkernels::TransposeTable& table = bench.kernels.transpose;
  run("transpose 256x256 of 1 byte", table.bytes1, reinterpret_cast<const std::uint8_t*>(x.data()),
      reinterpret_cast<std::uint8_t*>(y.data()));
  run("transpose 256x256 of 4 bytes", table.bytes4, reinterpret_cast<const std::uint32_t*>(x.data()),
      reinterpret_cast<std::uint32_t*>(y.data()));
}

}  // namespace infernode::bench
