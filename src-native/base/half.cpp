#include "base/half.h"

#include <array>

namespace infernode {
namespace {

/// Rounds a 24-bit significand (hidden bit included) to nearest even after dropping `shift` bits.
constexpr uint32_t shift_nearest_even(uint32_t significand, uint32_t shift) noexcept {
  if (shift > 24) return 0;
  const uint32_t kept = significand >> shift, lost = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
  return kept + (lost > half || (lost == half && (kept & 1u)) ? 1u : 0u);
}

/// Magnitude bits (sign cleared, finite) in a format with the given mantissa width and bias, exponent unbounded above.
constexpr uint32_t encode_magnitude(uint32_t magnitude, uint32_t mantissa_bits, uint32_t bias) noexcept {
  const uint32_t drop = 23 - mantissa_bits;
  const uint32_t rebias = 127 - bias;
  const uint32_t exponent = magnitude >> 23;
  if (exponent > rebias) {
    const uint32_t rebased = magnitude - (rebias << 23);
    return (rebased + (1u << (drop - 1)) - 1 + ((rebased >> drop) & 1u)) >> drop;
  }
  return shift_nearest_even((magnitude & 0x7fffffu) | 0x800000u, drop + 1 + rebias - exponent);
}

struct FormatTraits {
  uint32_t mantissa_bits;
  uint32_t bias;
  uint8_t max;       ///< largest finite magnitude
  uint8_t nan;       ///< magnitude of NaN, or the one NaN code of an unsigned-zero format
  uint8_t overflow;  ///< what exceeds max becomes when not saturating
  bool unsigned_zero;
};

// https://onnx.ai/onnx/technical/float8.html. Infinity saturates to the largest value in all formats, as in the
// conformance suite.
constexpr FormatTraits kFormats[4] = {
    {3, 7, 0x7e, 0x7f, 0x7f, false},
    {3, 8, 0x7f, 0x80, 0x80, true},
    {2, 15, 0x7b, 0x7e, 0x7c, false},
    {2, 16, 0x7f, 0x80, 0x80, true},
};

constexpr float decode(const FormatTraits& format, uint8_t bits) {
  const uint32_t magnitude = bits & 0x7fu;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  if (format.unsigned_zero && bits == 0x80) return std::bit_cast<float>(0x7fc00000u);
  if (magnitude > format.max) {
    const bool infinite = format.overflow == 0x7c && magnitude == 0x7c;
    return std::bit_cast<float>(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
  }
  const uint32_t exponent = magnitude >> format.mantissa_bits;
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((magnitude << (23 - format.mantissa_bits)) + ((127 - format.bias) << 23)));
  // Denormal: a count of units of 2^(1 - bias - mantissa_bits).
  const float unit = std::bit_cast<float>((127 + 1 - format.bias - format.mantissa_bits) << 23);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * unit));
}

constexpr std::array<std::array<float, 256>, 4> make_decode_tables() {
  std::array<std::array<float, 256>, 4> tables{};
  for (size_t f = 0; f < 4; ++f)
    for (uint32_t bits = 0; bits < 256; ++bits) tables[f][bits] = decode(kFormats[f], static_cast<uint8_t>(bits));
  return tables;
}

constexpr auto kDecoded = make_decode_tables();

}  // namespace

float round_to_odd(double value) noexcept {
  const uint64_t word = std::bit_cast<uint64_t>(value);
  const uint32_t sign = static_cast<uint32_t>(word >> 32) & 0x80000000u;
  const uint64_t fraction = word & ((uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>(word >> 52 & 0x7ff);
  uint32_t out;
  if (exponent == 0x7ff) {
    out = 0x7f800000u | static_cast<uint32_t>(fraction >> 29) | (fraction != 0 ? 0x400000u : 0u);
  } else if (const int rebased = exponent - 1023 + 127; rebased >= 255) {
    out = 0x7f7fffffu;
  } else if (rebased >= 1) {
    const bool inexact = (fraction & ((1u << 29) - 1)) != 0;
    out = static_cast<uint32_t>(rebased) << 23 | static_cast<uint32_t>(fraction >> 29) | (inexact ? 1u : 0u);
  } else {
    const uint64_t significand = exponent == 0 ? fraction : fraction | uint64_t{1} << 52;
    const int shift = 30 - rebased;
    if (shift > 53) {
      out = significand != 0 ? 1u : 0u;
    } else {
      const bool inexact = (significand & ((uint64_t{1} << shift) - 1)) != 0;
      out = static_cast<uint32_t>(significand >> shift) | (inexact ? 1u : 0u);
    }
  }
  return std::bit_cast<float>(sign | out);
}

float decode_float8(Float8Format format, uint8_t bits) noexcept { return kDecoded[static_cast<size_t>(format)][bits]; }

uint8_t encode_float8(Float8Format format, float value, bool saturate) noexcept {
  const FormatTraits& traits = kFormats[static_cast<size_t>(format)];
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu;
  const uint32_t sign = word >> 24 & 0x80u;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(traits.unsigned_zero ? traits.nan : sign | traits.nan);
  const uint32_t code =
      magnitude == 0x7f800000u ? 0xffffu : encode_magnitude(magnitude, traits.mantissa_bits, traits.bias);
  if (code > traits.max) {
    if (saturate) return static_cast<uint8_t>(sign | traits.max);
    return static_cast<uint8_t>(traits.unsigned_zero ? traits.overflow : sign | traits.overflow);
  }
  if (code == 0 && traits.unsigned_zero) return 0;
  return static_cast<uint8_t>(sign | code);
}

uint8_t encode_e8m0(float value, bool saturate, E8M0Rounding rounding) noexcept {
  // The sign is dropped; infinities and NaN become NaN whatever `saturate`. As in onnx.numpy_helper.to_float8e8m0.
  const uint32_t word = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  const uint32_t exponent = word >> 23, fraction = word & 0x7fffffu;
  if (exponent == 0xff) return 0xff;
  bool up = false;
  if (rounding == E8M0Rounding::Up) up = fraction != 0;
  if (rounding == E8M0Rounding::Nearest) up = exponent != 0 ? fraction >= 0x400000u : fraction > 0x400000u;
  if (up && saturate && exponent == 0xfe) up = false;
  return static_cast<uint8_t>(exponent + (up ? 1u : 0u));
}

uint8_t encode_float4(float value) noexcept {
  // NaN becomes -0, as in the conformance suite.
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x8;
  const uint32_t code = magnitude >= 0x40c00000u ? 7u : encode_magnitude(magnitude, 1, 1);
  return static_cast<uint8_t>((word >> 28 & 8u) | (code > 7 ? 7u : code));
}

uint8_t encode_float6(float value, uint32_t mantissa_bits) noexcept {
  // NaN becomes -0, as in ml_dtypes, on which the standard's reference relies.
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x20;
  const uint32_t bias = (1u << (4 - mantissa_bits)) - 1;
  const uint32_t code = magnitude >= 0x42000000u ? 31u : encode_magnitude(magnitude, mantissa_bits, bias);
  return static_cast<uint8_t>((word >> 26 & 32u) | (code > 31 ? 31u : code));
}

}  // namespace infernode
