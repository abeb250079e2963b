#pragma once
// Convolutions of one channel whose weights are the rows of a windowed Fourier transform (the spectrograms of models
// that hear), by a fast transform of each window's place.

#include <vector>

#include "kernel/kernel.h"
#include "microkernels/dft.h"
#include "ops/conv.h"

namespace infernode::ops {

class ConvDft {
 public:
  ConvDft() = default;
  /// Looks at the constant weight, input 1, of a convolution along one axis: [rows, 1, .., length], whose rows are
  /// window[n] * cos(2 pi k n / length) for k = 0, 1, ..., or the sines, or the ones after the others. The object stays
  /// empty where they differ by more than such numbers are rounded, or where there is anything to add or activate.
  explicit ConvDft(kernel::KernelInfo& info);
  explicit operator bool() const { return table_ != nullptr; }

  /// False where the signal's shape or its numbers do not fit; the output may then hold anything.
  bool run(kernel::KernelContext& ctx, const ConvProblem& problem, const float* x, float* y) const;

 private:
  const microkernels::DftTable* table_ = nullptr;
  std::size_t length_ = 0, bins_ = 0;
  bool real_ = false, imag_ = false;
  std::vector<float> numbers_;
};

}  // namespace infernode::ops
