#pragma once
// Fast Fourier transforms of any length. Real and imaginary parts lie apart, and several transforms of one length run
// side by side: element k of transform j stands at [k * lanes + j], so that every loop over lanes is a vector loop.

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/function_ref.h"

namespace infernode::ops::signal {

/// Longest transform: tables and scratch stay within a few gigabytes.
inline constexpr std::size_t kMaxLength = std::size_t{1} << 26;

/// Called about every quarter of a million elements of a pass; throws where the work is to end.
using Look = FunctionRef<void()>;

template <class T>
struct Split {
  T* re;
  T* im;
};

/// The tables for one length; immutable. T is float or double.
template <class T>
class FftPlan {
 public:
  /// 0 < length <= kMaxLength.
  FftPlan(std::size_t length, Look look);
  std::size_t length() const { return length_; }
  /// Most bytes that a plan of this length takes while it is made and afterwards.
  static std::size_t bytes_of(std::size_t length);
  /// Elements per lane that each part of both buffers given to `forward` must hold; not below length().
  std::size_t work_length() const { return chirp_ ? chirp_->length() : length_; }
  /// Transforms the first length() elements of `data`, not normalised. The result stands in the buffer returned, which
  /// is one of the two given; both are overwritten. (Swap re and im before and after for the inverse.)
  Split<T> forward(Split<T> data, Split<T> other, std::size_t lanes, Look look) const;

 private:
  /// One step of Stockham's algorithm: sub-transforms of `radix * groups` elements, `stride` of them interleaved.
  struct Pass {
    std::size_t radix, groups, stride;
    std::size_t twiddles;  ///< index of the first: [group][1 .. radix)
  };
  struct Complex {
    T re, im;
  };

  void run_pass(const Pass& pass, Split<T> in, Split<T> out, std::size_t lanes, Look look) const;
  Split<T> forward_chirp(Split<T> data, Split<T> other, std::size_t lanes, Look look) const;

  std::size_t length_;
  std::vector<Pass> passes_;
  std::vector<Complex> twiddles_;
  /// Bluestein: lengths with large prime factors are convolutions with a chirp, done by a plan of a handy length.
  std::unique_ptr<const FftPlan> chirp_;
  std::vector<Complex> chirp_factors_, chirp_spectrum_;
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

/// Keeps the plan used last: a node's length seldom changes from run to run.
template <class T>
class FftPlanCache {
 public:
  std::shared_ptr<const FftPlan<T>> get(std::size_t length, Look look) const {
    {
      const std::lock_guard lock(mutex_);
      if (plan_ && plan_->length() == length) return plan_;
    }
    auto plan = std::make_shared<const FftPlan<T>>(length, look);
    const std::lock_guard lock(mutex_);
    return plan_ = plan;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const FftPlan<T>> plan_;
};

}  // namespace infernode::ops::signal
