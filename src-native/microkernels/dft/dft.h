#pragma once

#include <cstddef>

// Discrete Fourier transforms of overlapping frames of a real signal, by a fast algorithm over frames side by side: a
// vector holds the same element of as many frames. For convolutions whose weights are the rows of a windowed transform.
namespace infernode::microkernels {

inline constexpr std::size_t kShortestDft = 64, kLongestDft = 8192;

// Whether the length is a power of two in [kShortestDft, kLongestDft].
bool dft_has(std::size_t length) noexcept;

// The window and the twiddles of one length, as `frames` reads them.
std::size_t dft_table_floats(std::size_t length) noexcept;
void dft_fill_table(std::size_t length, const double* window, float* table) noexcept;

struct DftArgs {
  std::size_t length = 0, bins = 0;  // bins <= length / 2 + 1
  const float* table = nullptr;
  const float* signal = nullptr;           // frame f: elements [f * step, f * step + length)
  std::size_t step = 0, frames = 0;        // of all
  float imag_sign = 1.0f;                  // what imaginary parts are multiplied by
  float *real = nullptr, *imag = nullptr;  // [bins][frames], or null where not wanted
};

struct DftTable {
  const char* name;
  std::size_t lanes;
  // Computes frames [first, first + lanes) as far as there are such, from at least scratch_floats(length) floats of
  // scratch. False, with nothing written, where a frame has infinities, NaN or so few elements that matter that sums of
  // all could lose what a bin's own few contribute.
  bool (*transform)(const DftArgs& args, std::size_t first, float* scratch) noexcept;
};

constexpr std::size_t dft_scratch_floats(const DftTable& table, std::size_t length) noexcept {
  return 2 * length * table.lanes;
}

}  // namespace infernode::microkernels
