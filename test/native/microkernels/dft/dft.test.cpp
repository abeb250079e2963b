#include "microkernels/dft/dft.h"

#include <array>
#include <numbers>

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

struct Frames {
  Frames(std::size_t length, std::size_t bins, std::size_t step, std::size_t frames, std::uint64_t seed)
      : length(length), bins(bins), step(step), frames(frames), window(length), signal((frames - 1) * step + length) {
    Random random(seed);
    random.fill(window, 0.1f, 1.0f);
    random.fill(signal);
  }
  /// The outputs of all frames; false where a frame is not fit.
  bool run(CpuRung rung, Guarded<float>* real, Guarded<float>* imag) const {
    const DftTable& table = kernel_set(rung).dft;
    std::vector<float> numbers(dft_table_floats(length));
    dft_fill_table(length, window.data(), numbers.data());
    const DftArgs args{.length = length,
                       .bins = bins,
                       .table = numbers.data(),
                       .signal = signal.data(),
                       .step = step,
                       .frames = frames,
                       .real = real ? real->data() : nullptr,
                       .imag = imag ? imag->data() : nullptr};
    bool fit = true;
    for (std::size_t first = 0; first < frames; first += table.lanes) {
      Guarded<float> scratch(dft_scratch_floats(table, length));
      fit = table.transform(args, first, scratch.data()) && fit;
    }
    return fit;
  }
  std::size_t length, bins, step, frames;
  std::vector<double> window;
  Guarded<float> signal;
};

TEST_CASE("transforms of frames agree with the definition") {
  for_each_target([](CpuRung rung) {
    for (const auto& [length, bins, step, frames] : {std::array<std::size_t, 4>{64, 33, 16, 21},
                                                     {128, 65, 128, 1},
                                                     {256, 100, 3, 4},
                                                     {512, 257, 160, 17},
                                                     {1024, 513, 1, 5},
                                                     {2048, 7, 50, 3}}) {
      CAPTURE(length);
      const Frames problem(length, bins, step, frames, length + frames);
      Guarded<float> real(bins * frames), imag(bins * frames);
      REQUIRE(problem.run(rung, &real, &imag));
      double worst = 0;
      for (std::size_t f = 0; f < frames; ++f) {
        for (std::size_t k = 0; k < bins; ++k) {
          double re = 0, im = 0, sum = 0;
          for (std::size_t n = 0; n < length; ++n) {
            const double x = problem.window[n] * static_cast<double>(problem.signal[f * step + n]);
            const double angle =
                2 * std::numbers::pi * static_cast<double>(k * n % length) / static_cast<double>(length);
            re += x * std::cos(angle);
            im -= x * std::sin(angle);
            sum += std::abs(x);
          }
          worst = std::max({worst, std::abs(re - static_cast<double>(real[k * frames + f])) / sum,
                            std::abs(im - static_cast<double>(imag[k * frames + f])) / sum});
        }
      }
      CHECK(worst < 0x1p-23);
      // One part alone is the same.
      Guarded<float> alone(bins * frames);
      REQUIRE(problem.run(rung, nullptr, &alone));
      CHECK(std::equal(alone.begin(), alone.end(), imag.begin()));
    }
  });
}

TEST_CASE("frames whose transform is not to be trusted are refused") {
  for_each_target([](CpuRung rung) {
    Guarded<float> out(65 * 9);
    Frames problem(128, 65, 40, 9, 3);
    REQUIRE(problem.run(rung, &out, nullptr));
    const float kept = problem.signal[200];
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e9f, 1e30f}) {
      problem.signal[200] = bad;
      CHECK_FALSE(problem.run(rung, &out, nullptr));
    }
    problem.signal[200] = kept;
    std::fill(problem.signal.begin(), problem.signal.end(), 0.0f);
    REQUIRE(problem.run(rung, &out, nullptr));
    CHECK(std::all_of(out.begin(), out.end(), [](float x) { return x == 0; }));
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
