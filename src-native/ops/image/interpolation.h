#pragma once
// Which elements of an axis a resampled one is made of, and with what weights.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernel/scratch.h"

namespace infernode::ops {

/// How a place on the resized axis maps to the original one (Resize's coordinate_transformation_mode).
enum class Coordinates : std::uint8_t {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  TfHalfPixelForNn,
  TfCropAndResize
};
/// How a fractional place becomes an element (Resize's nearest_mode).
enum class Rounding : std::uint8_t { PreferFloor, PreferCeil, Floor, Ceil };
/// Throw InvalidModel for unknown names.
Coordinates parse_coordinates(std::string_view name);
Rounding parse_rounding(std::string_view name);

struct ResizedAxis {
  std::int64_t in = 1, out = 1;
  float scale = 1.0f;
  bool exact = false;                      ///< the scale is out / in, whatever float makes of it
  float roi_begin = 0.0f, roi_end = 1.0f;  ///< of TfCropAndResize
  float cropped = 1.0f;                    ///< the part of the axis that the scale applies to
  Coordinates coordinates = Coordinates::HalfPixel;

  /// The place in the original axis, in elements.
  float source(std::int64_t i) const;
  /// The same for sums that are cut to whole numbers, which a place that is rounded to float would make one too small:
  /// the scale is the ratio that its float stands for, 1 / 3 where that rounds to it.
  double exact_source(std::int64_t i) const;
  /// Beyond the original axis, where TfCropAndResize takes the extrapolation value.
  bool outside(float source) const {
    return coordinates == Coordinates::TfCropAndResize && (source < 0 || source > static_cast<float>(in - 1));
  }
  bool identity() const {
    const bool crops = coordinates == Coordinates::TfCropAndResize && (roi_begin != 0.0f || roi_end != 1.0f);
    return in == out && scale == 1.0f && !crops && coordinates != Coordinates::TfHalfPixelForNn;
  }
};

/// The nearest element for each place; -1 outside.
kernel::Scratch<std::int64_t> nearest_map(const kernel::RunContext& run, const ResizedAxis& axis, Rounding rounding);

/// Cubic convolution weights (Keys) of the four elements around a place `ratio` past the second one.
std::array<double, 4> cubic_weights(double ratio, double a);

/// out[i] = sum over k of weight[i * count + k] * in[index[i * count + k]]. W is float or double.
template <class W>
struct Taps {
  std::size_t count = 0;
  kernel::Scratch<std::int64_t> index;
  kernel::Scratch<W> weight;
};

struct TapOptions {
  std::optional<float> cubic_a;  ///< cubic with this coefficient; linear where empty
  bool antialias = false;        ///< stretch the filter when shrinking
  bool exclude_outside = false;  ///< elements beyond the edges weigh nothing, instead of repeating the edge
  bool exact = false;            ///< by ResizedAxis::exact_source
};

template <class W>
Taps<W> make_taps(const kernel::RunContext& run, const ResizedAxis& axis, const TapOptions& options);

}  // namespace infernode::ops
