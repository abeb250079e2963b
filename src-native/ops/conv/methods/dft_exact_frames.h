#pragma once

#include <span>
#include <vector>

#include "microkernels/dft/dft.h"
#include "ops/signal/fft.h"
#include "tensor/buffer.h"

namespace infernode::ops {

/// Computes the frames that the fast transform leaves: those in which so few elements matter that sums of all in float
/// could lose what a bin's own few contribute, in double, by the weights where nearly all elements are zero; those with
/// NaN or infinities by what the definition gives, without its products. Costs about as much as the fast transform
/// does.
class DftExactFrames {
 public:
  /// `weight` holds the rows of the convolution, each of window.size() elements.
  DftExactFrames(std::vector<double> window, std::span<const float> weight);

  /// As DftTable::transform, for `count` frames from `first` on.
  void transform(const microkernels::DftArgs& args, std::size_t first, std::size_t count,
                 tensor::Allocator& allocator) const;

 private:
  void sum(const microkernels::DftArgs& args, std::span<const std::size_t> frames, tensor::Allocator& allocator) const;
  void sum_few(const microkernels::DftArgs& args, std::size_t frame, std::span<const std::size_t> places) const;
  void take_limits(const microkernels::DftArgs& args, std::size_t frame) const;
  float limit(std::size_t row, std::span<const std::size_t> places, const float* signal) const;

  std::vector<double> window_;
  std::vector<float> weight_;
  signal::FftPlanCache<double> plans_;
};

}  // namespace infernode::ops
