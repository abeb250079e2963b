#include "microkernels/dft/dft.h"

#include <vector>

#include "bench.h"

namespace infernode::bench {

void bench_dft(const Bench& bench) {
  constexpr std::size_t kLength = 512, kFrames = 64, kStep = 128, kBins = kLength / 2 + 1;
  const std::vector<double> window(kLength, 1.0);
  std::vector<float> table(microkernels::dft_table_floats(kLength));
  microkernels::dft_fill_table(kLength, window.data(), table.data());
  Buffer signal(kLength + (kFrames - 1) * kStep), real(kBins * kFrames), imag(kBins * kFrames);
  const microkernels::DftTable& dft = bench.kernels.dft;
  std::vector<float> scratch(microkernels::dft_scratch_floats(dft, kLength));
  const microkernels::DftArgs args{.length = kLength,
                                   .bins = kBins,
                                   .table = table.data(),
                                   .signal = signal.data(),
                                   .step = kStep,
                                   .frames = kFrames,
                                   .real = real.data(),
                                   .imag = imag.data()};
  bench.run("dft 512, 64 frames", static_cast<double>(kLength * kFrames), "Gelem/s", [&] {
    for (std::size_t first = 0; first < kFrames; first += dft.lanes) dft.transform(args, first, scratch.data());
  });
}

}  // namespace infernode::bench
