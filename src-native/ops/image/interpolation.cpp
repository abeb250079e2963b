#include "ops/image/interpolation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/watch.h"

namespace infernode::ops {

Coordinates parse_coordinates(std::string_view name) {
  if (name == "half_pixel") return Coordinates::HalfPixel;
  if (name == "half_pixel_symmetric") return Coordinates::HalfPixelSymmetric;
  if (name == "pytorch_half_pixel") return Coordinates::PytorchHalfPixel;
  if (name == "align_corners") return Coordinates::AlignCorners;
  if (name == "asymmetric") return Coordinates::Asymmetric;
  if (name == "tf_half_pixel_for_nn") return Coordinates::TfHalfPixelForNn;
  if (name == "tf_crop_and_resize") return Coordinates::TfCropAndResize;
  fail(ErrorCode::InvalidModel, cat("unknown coordinate_transformation_mode '", name, "'"));
}

Rounding parse_rounding(std::string_view name) {
  if (name == "round_prefer_floor") return Rounding::PreferFloor;
  if (name == "round_prefer_ceil") return Rounding::PreferCeil;
  if (name == "floor") return Rounding::Floor;
  if (name == "ceil") return Rounding::Ceil;
  fail(ErrorCode::InvalidModel, cat("unknown nearest_mode '", name, "'"));
}

namespace {

/// What a float stands for: the first fraction on the way to it that rounds to it, or the float itself.
struct Ratio {
  double over, under = 1;
  double value() const { return over / under; }
};
Ratio ratio_of(float scale) {
  constexpr double kMostUnder = 4096, kMostOver = 0x1p40;
  double over = 1, under = 0, last_over = 0, last_under = 1;  // its continued fraction's
  for (double rest = scale;;) {
    const double whole = std::floor(rest);
    last_over = std::exchange(over, whole * over + last_over);
    last_under = std::exchange(under, whole * under + last_under);
    if (!(under <= kMostUnder && over <= kMostOver)) return {scale};
    if (static_cast<float>(over / under) == scale) return {over, under};
    rest = 1 / (rest - whole);
  }
}

/// The place of element i of an axis in the original one, in numbers of type F. `begin` and `end` are the roi's,
/// `resized` is the original length scaled, which may have a fraction that the axis lacks, `unscaled` undoes the scale.
template <class F, class Unscaled>
F source_of(const ResizedAxis& axis, std::int64_t i, F begin, F end, F resized, const Unscaled& unscaled) {
  const auto x = static_cast<F>(i), length = static_cast<F>(axis.in), half = static_cast<F>(0.5);
  switch (axis.coordinates) {
    case Coordinates::HalfPixel:
      return unscaled(x + half) - half;
    case Coordinates::HalfPixelSymmetric: {
      const F offset = length / 2 * (1 - static_cast<F>(axis.out) / resized);
      return offset + unscaled(x + half) - half;
    }
    case Coordinates::PytorchHalfPixel:
      return axis.out > 1 ? unscaled(x + half) - half : 0;
    case Coordinates::AlignCorners:
      return resized == 1 ? 0 : x * (length - 1) / (resized - 1);
    case Coordinates::Asymmetric:
      return unscaled(x);
    case Coordinates::TfHalfPixelForNn:
      return unscaled(x + half);
    case Coordinates::TfCropAndResize:
      if (resized == 1) return half * (begin + end) * (length - 1);
      return begin * (length - 1) + x * (end - begin) * (length - 1) / (resized - 1);
  }
  return x;
}

}  // namespace

float ResizedAxis::source(std::int64_t i) const {
  return source_of(*this, i, roi_begin, roi_end, scale * static_cast<float>(in) * cropped, [this](float place) {
    return exact ? static_cast<float>(static_cast<double>(place) * static_cast<double>(in) / static_cast<double>(out))
                 : place / scale;
  });
}

double ResizedAxis::exact_source(std::int64_t i) const {
  const Ratio ratio = exact ? Ratio{static_cast<double>(out), static_cast<double>(in)} : ratio_of(scale);
  const double resized = static_cast<double>(in) * ratio.over / ratio.under * ratio_of(cropped).value();
  return source_of(*this, i, ratio_of(roi_begin).value(), ratio_of(roi_end).value(), resized,
                   [&](double place) { return place * ratio.under / ratio.over; });
}

namespace {

/// A place as an index that fits; what lies far beyond the axis is as good as its edge.
std::int64_t to_index(double place, std::int64_t length) {
  if (std::isnan(place)) return 0;
  return static_cast<std::int64_t>(
      std::clamp(place, -2.0 * static_cast<double>(length) - 8, 3.0 * static_cast<double>(length) + 8));
}

double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
  return 0;
}

}  // namespace

namespace {

std::int64_t nearest(const ResizedAxis& axis, Rounding rounding, std::int64_t i) {
  const float place = axis.identity() ? static_cast<float>(i) : axis.source(i);
  if (axis.outside(place)) return -1;
  float rounded = place;
  switch (rounding) {
    case Rounding::PreferFloor:
      rounded = std::ceil(place - 0.5f);
      break;
    case Rounding::PreferCeil:
      rounded = std::floor(place + 0.5f);
      break;
    case Rounding::Floor:
      rounded = std::floor(place);
      break;
    case Rounding::Ceil:
      rounded = std::ceil(place);
      break;
  }
  return std::clamp<std::int64_t>(to_index(rounded, axis.in), 0, axis.in - 1);
}

}  // namespace

kernel::Scratch<std::int64_t> nearest_map(const kernel::RunContext& run, const ResizedAxis& axis, Rounding rounding) {
  constexpr double kNsPerPlace = 8;
  kernel::Scratch<std::int64_t> map(run, static_cast<std::size_t>(axis.out));
  run.parallel_for(map.size(), kNsPerPlace, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) map[i] = nearest(axis, rounding, static_cast<std::int64_t>(i));
  });
  return map;
}

std::array<double, 4> cubic_weights(double ratio, double a) {
  return {cubic(1 + ratio, a), cubic(ratio, a), cubic(1 - ratio, a), cubic(2 - ratio, a)};
}

namespace {

/// How far the filter is stretched: below 1 where it covers more.
double stretch_of(const ResizedAxis& axis, const TapOptions& options) {
  return options.antialias ? std::min<double>(axis.scale, 1.0) : 1.0;
}

/// The filter covers elements begin .. 1 - begin around the element to the left of the place.
std::int64_t filter_begin(const ResizedAxis& axis, const TapOptions& options) {
  const double reach = options.cubic_a ? 2.0 : 1.0;  // on each side
  return static_cast<std::int64_t>(
             std::max(std::floor(-reach / stretch_of(axis, options)), -2.0 * static_cast<double>(axis.in) - 8)) +
         1;
}

}  // namespace

template <class W>
Taps<W> make_taps(const kernel::RunContext& run, const ResizedAxis& axis, const TapOptions& options) {
  constexpr double kNsPerWeight = 4, kNsPerTap = kNsPerWeight + 2;
  const double stretch = stretch_of(axis, options);
  const std::int64_t first = filter_begin(axis, options);
  const auto places = static_cast<std::size_t>(axis.out), count = static_cast<std::size_t>(2 - 2 * first);
  const bool normalize = options.antialias || options.exclude_outside;
  const std::size_t total = checked_mul(places, count);
  Taps<W> taps{count, kernel::Scratch<std::int64_t>(run, total), kernel::Scratch<W>(run, total)};
  run.parallel_for(
      places, kNsPerTap * static_cast<double>(count), [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(run);
        const kernel::Scratch<double> weights(run, count);
        for (std::size_t i = begin; i < end; ++i) {
          const auto at_place = static_cast<std::int64_t>(i);
          const double place = options.exact ? axis.exact_source(at_place) : static_cast<double>(axis.source(at_place));
          // A place on an element counts as the far end of the step before it.
          const std::int64_t left = to_index(std::ceil(place) - 1, axis.in);
          const double ratio = std::clamp(place - static_cast<double>(left), 0.0, 1.0);
          double sum = 0;
          kernel::each_in_pieces(watch, count, kNsPerWeight, [&](std::size_t k) {
            const std::int64_t at = first + static_cast<std::int64_t>(k), index = left + at;
            const double distance = (static_cast<double>(at) - ratio) * stretch;
            double w = options.cubic_a ? cubic(distance, *options.cubic_a) : std::max(0.0, 1.0 - std::abs(distance));
            if (options.exclude_outside && (index < 0 || index >= axis.in)) w = 0;
            weights[k] = w;
            sum += w;
          });
          kernel::each_in_pieces(watch, count, kNsPerTap - kNsPerWeight, [&](std::size_t k) {
            const std::int64_t index = left + first + static_cast<std::int64_t>(k);
            taps.index[i * count + k] = std::clamp<std::int64_t>(index, 0, axis.in - 1);
            taps.weight[i * count + k] = static_cast<W>(normalize && sum != 0 ? weights[k] / sum : weights[k]);
          });
        }
      });
  return taps;
}

template Taps<float> make_taps(const kernel::RunContext&, const ResizedAxis&, const TapOptions&);
template Taps<double> make_taps(const kernel::RunContext&, const ResizedAxis&, const TapOptions&);

}  // namespace infernode::ops
