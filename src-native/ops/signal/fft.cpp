#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/checked.h"
#include "ops/signal/fft.h"

namespace infernode::ops::signal {
namespace {

/// Prime factors up to this are passes of their own; a length with a larger one goes through Bluestein's algorithm.
constexpr std::size_t kLargestRadix = 13;
/// Elements between two looks.
constexpr std::size_t kSlice = std::size_t{1} << 18;

struct Angle {
  double re, im;
};
/// exp(-2 pi i numerator / denominator), numerator < denominator.
Angle unit(std::size_t numerator, std::size_t denominator) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), std::sin(angle)};
}

/// Factors in the order of the passes; empty where a prime factor is too large.
std::vector<std::size_t> factors(std::size_t n) {
  std::vector<std::size_t> out;
  for (const std::size_t radix : {4, 2, 3, 5, 7, 11, 13}) {
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  }
  static_assert(kLargestRadix == 13);
  if (n > 1) out.clear();
  return out;
}

/// So many zeros, with looks in between.
template <class List>
void fill_up(List& list, std::size_t count, Look look) {
  for (list.reserve(count); list.size() < count; look()) list.resize(std::min(count, list.size() + kSlice));
}

}  // namespace

template <class T>
std::size_t FftPlan<T>::bytes_of(std::size_t length) {
  constexpr std::size_t kGrowth = 2;  // of a vector beyond what it holds
  if (length == 1 || !factors(length).empty()) return checked_mul(length, kGrowth * sizeof(Complex));
  const std::size_t convolution = std::bit_ceil(2 * length - 1);
  return checked_add(checked_mul(length, sizeof(Complex)),
                     checked_mul(convolution, 4 * sizeof(T) + (1 + kGrowth) * sizeof(Complex)));
}

template <class T>
FftPlan<T>::FftPlan(std::size_t length, Look look) : length_(length) {
  const auto complex = [](Angle a) { return Complex{static_cast<T>(a.re), static_cast<T>(a.im)}; };
  std::size_t size = length, stride = 1;
  const std::vector<std::size_t> radices = factors(length);
  if (!radices.empty()) twiddles_.reserve(length);
  for (const std::size_t radix : radices) {
    const std::size_t groups = size / radix;
    passes_.push_back({radix, groups, stride, twiddles_.size()});
    for (std::size_t p = 0; p < groups; ++p) {
      if (p % (kSlice / 16) == 0) look();
      for (std::size_t k = 1; k < radix; ++k) twiddles_.push_back(complex(unit(p * k, size)));
    }
    size = groups;
    stride *= radix;
  }
  if (!passes_.empty() || length == 1) return;

  const std::size_t convolution = std::bit_ceil(2 * length - 1);
  chirp_ = std::make_unique<const FftPlan>(convolution, look);
  fill_up(chirp_factors_, length, look);
  std::vector<T> buffer;
  fill_up(buffer, 4 * convolution, look);
  const Split<T> filter{buffer.data(), buffer.data() + convolution};
  for (std::size_t k = 0; k < length; ++k) {
    if (k % (kSlice / 8) == 0) look();
    // exp(-pi i k^2 / n): the square is reduced before it grows inexact.
    const Angle a = unit(k * k % (2 * length), 2 * length);
    chirp_factors_[k] = complex(a);
    filter.re[k] = static_cast<T>(a.re);
    filter.im[k] = static_cast<T>(-a.im);
    if (k > 0) {
      filter.re[convolution - k] = filter.re[k];
      filter.im[convolution - k] = filter.im[k];
    }
  }
  const Split<T> spectrum =
      chirp_->forward(filter, {buffer.data() + 2 * convolution, buffer.data() + 3 * convolution}, 1, look);
  fill_up(chirp_spectrum_, convolution, look);
  const T scale = T(1) / static_cast<T>(convolution);
  for (std::size_t k = 0; k < convolution; ++k) {
    if (k % kSlice == 0) look();
    chirp_spectrum_[k] = {spectrum.re[k] * scale, spectrum.im[k] * scale};
  }
}

namespace {

/// b = DFT of radix R over a (real parts ar, imaginary ai), by symmetry between elements j and R - j.
template <class T, std::size_t R>
inline void butterfly(const T (&ar)[R], const T (&ai)[R], T (&br)[R], T (&bi)[R], const T* cosines, const T* sines) {
  if constexpr (R == 2) {
    br[0] = ar[0] + ar[1];
    bi[0] = ai[0] + ai[1];
    br[1] = ar[0] - ar[1];
    bi[1] = ai[0] - ai[1];
  } else if constexpr (R == 4) {
    const T sr = ar[0] + ar[2], si = ai[0] + ai[2], dr = ar[0] - ar[2], di = ai[0] - ai[2];
    const T tr = ar[1] + ar[3], ti = ai[1] + ai[3], ur = ar[1] - ar[3], ui = ai[1] - ai[3];
    br[0] = sr + tr;
    bi[0] = si + ti;
    br[1] = dr + ui;
    bi[1] = di - ur;
    br[2] = sr - tr;
    bi[2] = si - ti;
    br[3] = dr - ui;
    bi[3] = di + ur;
  } else {
    constexpr std::size_t kHalf = R / 2;
    T sr[kHalf], si[kHalf], dr[kHalf], di[kHalf];
    br[0] = ar[0];
    bi[0] = ai[0];
    for (std::size_t j = 0; j < kHalf; ++j) {
      sr[j] = ar[j + 1] + ar[R - 1 - j];
      si[j] = ai[j + 1] + ai[R - 1 - j];
      dr[j] = ar[j + 1] - ar[R - 1 - j];
      di[j] = ai[j + 1] - ai[R - 1 - j];
      br[0] += sr[j];
      bi[0] += si[j];
    }
    for (std::size_t k = 1; k <= kHalf; ++k) {
      T xr = ar[0], xi = ai[0], yr = 0, yi = 0;
      for (std::size_t j = 0; j < kHalf; ++j) {
        const std::size_t turn = (j + 1) * k % R;
        xr += sr[j] * cosines[turn];
        xi += si[j] * cosines[turn];
        yr += di[j] * sines[turn];
        yi += dr[j] * sines[turn];
      }
      br[k] = xr + yr;
      bi[k] = xi - yi;
      br[R - k] = xr - yr;
      bi[R - k] = xi + yi;
    }
  }
}

template <class T, std::size_t R, class Twiddle>
void stockham(std::size_t groups, std::size_t width, const Twiddle* twiddles, Split<T> in, Split<T> out, Look look) {
  T cosines[R], sines[R];
  for (std::size_t k = 0; k < R; ++k) {
    const Angle a = unit(k, R);
    cosines[k] = static_cast<T>(a.re);
    sines[k] = static_cast<T>(-a.im);
  }
  const std::size_t part = std::min(width, kSlice / R);
  std::size_t done = 0;
  for (std::size_t i = 0; i < groups * ceil_div(width, part); ++i) {
    const std::size_t p = i / ceil_div(width, part), first = i % ceil_div(width, part) * part;
    const std::size_t last = std::min(first + part, width);
    if ((done += (last - first) * R) >= kSlice) {
      look();
      done = 0;
    }
    const Twiddle* const turns = twiddles + p * (R - 1);
    const T *xr = in.re + p * width, *xi = in.im + p * width;
    T *yr = out.re + p * R * width, *yi = out.im + p * R * width;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (std::size_t q = first; q < last; ++q) {
      T ar[R], ai[R], br[R], bi[R];
      for (std::size_t j = 0; j < R; ++j) {
        ar[j] = xr[j * groups * width + q];
        ai[j] = xi[j * groups * width + q];
      }
      butterfly<T, R>(ar, ai, br, bi, cosines, sines);
      yr[q] = br[0];
      yi[q] = bi[0];
      for (std::size_t k = 1; k < R; ++k) {
        const T wr = turns[k - 1].re, wi = turns[k - 1].im;
        yr[k * width + q] = br[k] * wr - bi[k] * wi;
        yi[k * width + q] = br[k] * wi + bi[k] * wr;
      }
    }
  }
}

}  // namespace

template <class T>
void FftPlan<T>::run_pass(const Pass& pass, Split<T> in, Split<T> out, std::size_t lanes, Look look) const {
  const std::size_t width = pass.stride * lanes;
  const Complex* twiddles = twiddles_.data() + pass.twiddles;
  const auto run = [&]<std::size_t R>(std::integral_constant<std::size_t, R>) {
    stockham<T, R>(pass.groups, width, twiddles, in, out, look);
  };
  switch (pass.radix) {
    case 2:
      return run(std::integral_constant<std::size_t, 2>{});
    case 3:
      return run(std::integral_constant<std::size_t, 3>{});
    case 4:
      return run(std::integral_constant<std::size_t, 4>{});
    case 5:
      return run(std::integral_constant<std::size_t, 5>{});
    case 7:
      return run(std::integral_constant<std::size_t, 7>{});
    case 11:
      return run(std::integral_constant<std::size_t, 11>{});
    default:
      return run(std::integral_constant<std::size_t, 13>{});
  }
}

template <class T>
Split<T> FftPlan<T>::forward(Split<T> data, Split<T> other, std::size_t lanes, Look look) const {
  if (chirp_) return forward_chirp(data, other, lanes, look);
  for (const Pass& pass : passes_) {
    run_pass(pass, data, other, lanes, look);
    std::swap(data, other);
  }
  return data;
}

template <class T>
Split<T> FftPlan<T>::forward_chirp(Split<T> data, Split<T> other, std::size_t lanes, Look look) const {
  const auto multiply = [lanes, look](Split<T> x, const std::vector<Complex>& factors) {
    for (std::size_t k = 0; k < factors.size(); ++k) {
      if (k % kSlice == 0) look();
      const T fr = factors[k].re, fi = factors[k].im;
      T *re = x.re + k * lanes, *im = x.im + k * lanes;
      for (std::size_t j = 0; j < lanes; ++j) {
        const T r = re[j], i = im[j];
        re[j] = r * fr - i * fi;
        im[j] = r * fi + i * fr;
      }
    }
  };
  multiply(data, chirp_factors_);
  std::fill(data.re + length_ * lanes, data.re + chirp_->length() * lanes, T(0));
  std::fill(data.im + length_ * lanes, data.im + chirp_->length() * lanes, T(0));
  Split<T> spectrum = chirp_->forward(data, other, lanes, look);
  multiply(spectrum, chirp_spectrum_);
  // The inverse transform: real and imaginary parts change places.
  Split<T> rest = spectrum.re == data.re ? other : data;
  const Split<T> swapped = chirp_->forward({spectrum.im, spectrum.re}, {rest.im, rest.re}, lanes, look);
  const Split<T> result{swapped.im, swapped.re};
  multiply(result, chirp_factors_);
  return result;
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace infernode::ops::signal
