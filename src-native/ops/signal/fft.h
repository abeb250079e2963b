#pragma once
// Fast Fourier transforms of any length. Real and imaginary parts lie apart, and several transforms of one length run
// side by side: element k of transform j stands at [k * lanes + j], so that every loop over lanes is a vector loop.

#include <complex>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace infernode::ops::signal {

/// Longest transform: tables and scratch stay within a few gigabytes.
inline constexpr std::size_t kMaxLength = std::size_t{1} << 26;

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
  explicit FftPlan(std::size_t length);
  std::size_t length() const { return length_; }
  /// Elements per lane that each part of both buffers given to `forward` must hold; not below length().
  std::size_t work_length() const { return chirp_ ? chirp_->length() : length_; }
  /// Transforms the first length() elements of `data`, not normalised. The result stands in the buffer returned, which
  /// is one of the two given; both are overwritten. (Swap re and im before and after for the inverse.)
  Split<T> forward(Split<T> data, Split<T> other, std::size_t lanes) const;

 private:
  /// One step of Stockham's algorithm: sub-transforms of `radix * groups` elements, `stride` of them interleaved.
  struct Pass {
    std::size_t radix, groups, stride;
    std::size_t twiddles;  ///< index of the first: [group][1 .. radix)
  };
  struct Complex {
    T re, im;
  };

  void run_pass(const Pass& pass, Split<T> in, Split<T> out, std::size_t lanes) const;
  Split<T> forward_chirp(Split<T> data, Split<T> other, std::size_t lanes) const;

  std::size_t length_;
  std::vector<Pass> passes_;
  std::vector<Complex> twiddles_;
  /// Bluestein: lengths with large prime factors are convolutions with a chirp, done by a plan of a handy length.
  std::unique_ptr<const FftPlan> chirp_;
  std::vector<Complex> chirp_factors_, chirp_spectrum_;
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

/// Tables for transforms of `length` elements that are real or complex. Real ones of even length are done at half of
/// it: even elements as real parts, odd ones as imaginary parts.
template <class T>
class DftPlan {
 public:
  DftPlan(std::size_t length, bool real);
  std::size_t length() const { return length_; }
  bool real() const { return real_; }
  bool halved() const { return !turns_.empty(); }
  const FftPlan<T>& fft() const { return fft_; }
  /// Element k of the spectrum, 0 <= k < length(), from what `fft` gave for one lane.
  std::complex<T> spectrum(const T* re, const T* im, std::size_t lanes, std::size_t k) const {
    if (!halved()) return {re[k * lanes], im[k * lanes]};
    const std::size_t half = length_ / 2;
    if (k > half) return std::conj(spectrum(re, im, lanes, length_ - k));
    const std::size_t a = k == half ? 0 : k, b = k == 0 || k == half ? 0 : half - k;
    const T ar = re[a * lanes], ai = im[a * lanes], br = re[b * lanes], bi = -im[b * lanes];
    const T even_re = (ar + br) / 2, even_im = (ai + bi) / 2, odd_re = (ai - bi) / 2, odd_im = (br - ar) / 2;
    const std::complex<T> turn = turns_[k];
    return {even_re + odd_re * turn.real() - odd_im * turn.imag(),
            even_im + odd_re * turn.imag() + odd_im * turn.real()};
  }

 private:
  std::size_t length_;
  bool real_;
  FftPlan<T> fft_;
  std::vector<std::complex<T>> turns_;  ///< exp(-2 pi i k / length), k <= length / 2
};

extern template class DftPlan<float>;
extern template class DftPlan<double>;

/// Keeps the plan used last: a node's length seldom changes from run to run.
template <class T>
class DftPlanCache {
 public:
  std::shared_ptr<const DftPlan<T>> get(std::size_t length, bool real) const {
    {
      const std::lock_guard lock(mutex_);
      if (plan_ && plan_->length() == length && plan_->real() == real) return plan_;
    }
    auto plan = std::make_shared<const DftPlan<T>>(length, real);
    const std::lock_guard lock(mutex_);
    return plan_ = plan;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const DftPlan<T>> plan_;
};

}  // namespace infernode::ops::signal
