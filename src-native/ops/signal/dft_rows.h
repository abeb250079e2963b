#pragma once
// Many transforms of one length: groups of rows go through the plan side by side, groups run in parallel.

#include <algorithm>
#include <cmath>

#include "kernel/run_context.h"
#include "ops/signal/fft.h"
#include "tensor/dispatch.h"

namespace infernode::ops::signal {

/// The type transforms of elements of type E compute in.
template <class E>
using RealOf = std::conditional_t<std::is_same_v<E, double>, double, float>;

/// One row of numbers in memory, zeros behind its end; imaginary parts follow the real ones where there are any.
template <class E>
struct RowSource {
  using T = RealOf<E>;
  const E* data;
  std::size_t count, step;  ///< elements present; distance between them
  bool complex;
  const E* window = nullptr;

  T scale(std::size_t k) const { return window ? static_cast<T>(window[k]) : T(1); }
  T re(std::size_t k) const { return k < count ? static_cast<T>(data[k * step]) * scale(k) : T(0); }
  T im(std::size_t k) const { return complex && k < count ? static_cast<T>(data[k * step + 1]) * scale(k) : T(0); }
};

/// Calls store(row, spectrum) for each row; spectrum(bins, f) calls f(k, re, im) for the first elements of the
/// transform of source(row). The inverse is not normalised. `hermitian`: rows hold the first half of a spectrum, the
/// rest of which mirrors it.
template <class E, class Source, class Store>
void transform_rows(const kernel::RunContext& run, const FftPlan<RealOf<E>>& fft, std::size_t rows, bool inverse,
                    bool hermitian, Source source, Store store) {
  using T = RealOf<E>;
  constexpr std::size_t kLanes = 8, kLongestInLanes = 512;
  const std::size_t lanes = rows >= kLanes / 2 && fft.work_length() <= kLongestInLanes ? kLanes : 1;
  const std::size_t n = fft.length(), work = fft.work_length() * lanes;
  const double cost = 2.0 * static_cast<double>(work) * std::log2(static_cast<double>(n) + 1);
  constexpr std::size_t kSlice = std::size_t{1} << 18;  // elements between two looks
  const auto look = [&run] { run.check(); };
  run.parallel_for((rows + lanes - 1) / lanes, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    const tensor::Buffer memory = run.allocator->allocate(4 * work * sizeof(T));
    T* base = reinterpret_cast<T*>(memory.data());
    const bool complex = source(0).complex;
    const Split<T> first{base, base + work}, second{base + 2 * work, base + 3 * work};
    for (std::size_t group = begin; group < end; ++group) {
      run.check();
      const std::size_t used = std::min(lanes, rows - group * lanes);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        T *re = first.re + lane, *im = first.im + lane;
        if (lane >= used) {
          for (std::size_t k = 0; k < fft.length(); ++k) re[k * lanes] = im[k * lanes] = 0;
          continue;
        }
        const RowSource<E> row = source(group * lanes + lane);
        if (hermitian) {
          for (std::size_t k = 0; k <= n / 2; ++k) {
            if (k % kSlice == 0) look();
            const bool self = k == 0 || 2 * k == n;
            const T x = row.re(k), y = self ? T(0) : row.im(k);
            re[k * lanes] = x;
            im[k * lanes] = y;
            if (self) continue;
            re[(n - k) * lanes] = x;
            im[(n - k) * lanes] = -y;
          }
        } else {
          for (std::size_t k = 0; k < n; ++k) {
            if (k % kSlice == 0) look();
            re[k * lanes] = row.re(k);
            im[k * lanes] = row.im(k);
          }
        }
      }
      // The inverse: real and imaginary parts change places on the way in and out.
      Split<T> result = inverse ? fft.forward({first.im, first.re}, {second.im, second.re}, lanes, look)
                                : fft.forward(first, second, lanes, look);
      if (inverse) std::swap(result.re, result.im);
      for (std::size_t lane = 0; lane < used; ++lane) {
        if (!complex) {  // exactly real, whatever was rounded on the way
          result.im[lane] = 0;
          if (n % 2 == 0) result.im[n / 2 * lanes + lane] = 0;
        }
        store(group * lanes + lane, [&, re = result.re + lane, im = result.im + lane](std::size_t bins, auto&& f) {
          for (std::size_t k = 0; k < bins; ++k) {
            if (k % kSlice == 0) look();
            f(k, re[k * lanes], im[k * lanes]);
          }
        });
      }
    }
  });
}

/// Throws where there is no plan for transforms of this length.
inline void check_length(std::int64_t length) {
  INFERNODE_CHECK(length > 0, ErrorCode::InvalidArgument, "the transform's length must be positive, got ", length);
  INFERNODE_CHECK(static_cast<std::uint64_t>(length) <= kMaxLength, ErrorCode::OutOfMemory, "a transform of ", length,
                  " elements is too long: at most ", kMaxLength);
}

/// Bytes of the plan for elements of type E.
template <class E>
std::size_t plan_bytes(std::int64_t length) {
  check_length(length);
  return FftPlan<RealOf<E>>::bytes_of(static_cast<std::size_t>(length));
}

/// Plans of both precisions.
struct FftPlans {
  FftPlanCache<float> single;
  FftPlanCache<double> precise;
  template <class E>
  auto get(const kernel::RunContext& run, std::int64_t length) const {
    const auto look = [&run] { run.check(); };
    check_length(length);
    if constexpr (std::is_same_v<E, double>)
      return precise.get(static_cast<std::size_t>(length), look);
    else
      return single.get(static_cast<std::size_t>(length), look);
  }
};

}  // namespace infernode::ops::signal
