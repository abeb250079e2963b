#pragma once
// Convolutions of one channel whose weights are the rows of a windowed Fourier transform (the spectrograms of models
// that hear), by a fast transform of each window's place.

#include <cstdint>

#include "microkernels/dft/dft.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// What the rows of a convolution's weight [rows, 1, .., length] are: window[n] * cos(2 pi k n / length) for k = 0, 1,
/// ..., the sines, of either sign, or the ones after the others; none where they differ from that by more than such
/// numbers are rounded.
enum class DftRows : std::uint8_t { None, Cosines, Sines, Both };
DftRows dft_rows(const tensor::Tensor& weight);

}  // namespace infernode::ops
