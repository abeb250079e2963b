#pragma once
// Convolutions of one channel whose weights are the rows of a windowed Fourier transform (the spectrograms of models
// that hear), by a fast transform of each window's place.

#include <vector>

#include "kernel/kernel.h"
#include "microkernels/transforms/dft.h"
#include "ops/conv/window.h"

namespace infernode::ops {

/// What the rows of a convolution's weight [rows, 1, .., length] are: window[n] * cos(2 pi k n / length) for k = 0, 1,
/// ..., the sines, of either sign, or the ones after the others; none where they differ from that by more than such
/// numbers are rounded.
enum class DftRows : std::uint8_t { None, Cosines, Sines, Both };
DftRows dft_rows(const tensor::Tensor& weight);

class ConvDft {
 public:
  ConvDft() = default;
  /// Looks at the constant weight, input 1, of a convolution along one axis; the object stays empty where its rows are
  /// none of `DftRows`, or where there is anything to add or activate.
  explicit ConvDft(kernel::KernelInfo& info);
  explicit operator bool() const { return table_ != nullptr; }

  /// False where the signal's shape or its numbers do not fit; the output may then hold anything.
  bool run(kernel::KernelContext& ctx, const ConvProblem& problem, const float* x, float* y) const;

 private:
  const microkernels::DftTable* table_ = nullptr;
  std::size_t length_ = 0, bins_ = 0;
  bool real_ = false, imag_ = false, negative_ = false;
  std::vector<float> numbers_;
};

}  // namespace infernode::ops
