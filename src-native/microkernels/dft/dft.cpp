#include "microkernels/dft/dft.h"

#include <cmath>
#include <numbers>

namespace infernode::microkernels {

bool dft_has(std::size_t length) noexcept {
  return length >= kShortestDft && length <= kLongestDft && (length & (length - 1)) == 0;
}

// [length] halves of the window; per pass of radix 4 or 2 over length / 2 complex elements and per group of it the
// factors of all outputs but the first; per pair of bins the factor that parts even and odd elements. Factors are
// (cosine, sine) of -2 pi i turn / size.
std::size_t dft_table_floats(std::size_t length) noexcept {
  std::size_t floats = length;
  for (std::size_t size = length / 2; size > 1;) {
    const std::size_t radix = size % 4 == 0 ? 4 : 2;
    floats += size / radix * (radix - 1) * 2;
    size /= radix;
  }
  return floats + (length / 4 + 1) * 2;
}

void dft_fill_table(std::size_t length, const double* window, float* table) noexcept {
  for (std::size_t n = 0; n < length; ++n) *table++ = static_cast<float>(window[n] / 2);
  const auto put = [&](std::size_t turn, std::size_t size) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(size);
    *table++ = static_cast<float>(std::cos(angle));
    *table++ = static_cast<float>(std::sin(angle));
  };
  for (std::size_t size = length / 2; size > 1;) {
    const std::size_t radix = size % 4 == 0 ? 4 : 2;
    for (std::size_t group = 0; group < size / radix; ++group) {
      for (std::size_t k = 1; k < radix; ++k) put(group * k, size);
    }
    size /= radix;
  }
  for (std::size_t bin = 0; bin <= length / 4; ++bin) put(bin, length);
}

}  // namespace infernode::microkernels
