#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

/// Storage types below 32 bits. Each is its bits; arithmetic happens in float. `static_cast<float>(x)` is exact.
/// Constructors take float or double and round to nearest, ties to even, once (also from double); from_bits takes the
/// encoding. Construction from integers is rejected, so an encoding is never mistaken for a value.
namespace infernode {

/// The float nearest to `value` among those from which rounding on to any format of at most 22 mantissa bits gives what
/// rounding `value` itself would (round to odd).
float round_to_odd(double value) noexcept;

struct Float16 {
  uint16_t bits;

  Float16() = default;
  template <std::same_as<float> F>
  explicit constexpr Float16(F value) noexcept : bits(encode(value)) {}
  template <std::same_as<double> F>
  explicit Float16(F value) noexcept : bits(encode(round_to_odd(value))) {}
  static constexpr Float16 from_bits(uint16_t bits) noexcept {
    Float16 out{0.0f};
    out.bits = bits;
    return out;
  }
  explicit constexpr operator float() const noexcept {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t rest = static_cast<uint32_t>(bits & 0x7fffu) << 13;
    if (rest >= 0x7c00u << 13) return std::bit_cast<float>(sign | rest | 0x7f800000u);
    if (rest < 0x400u << 13) {
      // Denormal: the mantissa counts units of 2^-24; the product is exact and normal in float.
      const float magnitude = static_cast<float>(bits & 0x3ffu) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | (rest + (112u << 23)));
  }
  /// Bit equality: NaN equals itself and -0 differs from 0.
  friend constexpr bool operator==(Float16 a, Float16 b) noexcept = default;

 private:
  static constexpr uint16_t encode(float value) noexcept {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (word >> 16) & 0x8000u;
    const uint32_t magnitude = word & 0x7fffffffu;
    uint32_t out;
    if (magnitude > 0x7f800000u) {
      out = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // quiet NaN, payload kept
    } else if (magnitude >= 0x477ff000u) {
      out = 0x7c00u;  // from 65520 on the nearest is infinity
    } else if (magnitude < 0x38800000u) {
      // Below 2^-14: round the value in units of 2^-24 in integers, independent of the thread's floating-point mode.
      const uint32_t shift = 126u - (magnitude >> 23);
      if (shift > 24u) {
        out = 0;
      } else {
        const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        const uint32_t kept = mantissa >> shift, lost = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
        out = kept + (lost > half || (lost == half && (kept & 1u)) ? 1u : 0u);
      }
    } else {
      out = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    }
    return static_cast<uint16_t>(sign | out);
  }
};

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  template <std::same_as<float> F>
  explicit constexpr BFloat16(F value) noexcept : bits(encode(value)) {}
  template <std::same_as<double> F>
  explicit BFloat16(F value) noexcept : bits(encode(round_to_odd(value))) {}
  static constexpr BFloat16 from_bits(uint16_t bits) noexcept {
    BFloat16 out{0.0f};
    out.bits = bits;
    return out;
  }
  explicit constexpr operator float() const noexcept { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  friend constexpr bool operator==(BFloat16 a, BFloat16 b) noexcept = default;

 private:
  static constexpr uint16_t encode(float value) noexcept {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((word >> 16) | 0x40u);
    return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
};

/// The 8-bit floating-point formats of ONNX's Cast. `Fn`: no infinities; `Uz`: one zero, NaN is 0x80.
enum class Float8Format : uint8_t { E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ };

float decode_float8(Float8Format format, uint8_t bits) noexcept;
/// `saturate` as in Cast: what is out of range becomes the largest finite value instead of NaN or infinity.
uint8_t encode_float8(Float8Format format, float value, bool saturate) noexcept;

template <Float8Format Format>
struct Float8 {
  uint8_t bits;

  static constexpr Float8Format kFormat = Format;
  Float8() = default;
  /// Saturates, as Cast does unless told otherwise.
  template <std::same_as<float> F>
  explicit Float8(F value) noexcept : bits(encode_float8(Format, value, true)) {}
  template <std::same_as<double> F>
  explicit Float8(F value) noexcept : Float8(round_to_odd(value)) {}
  static Float8 from_float(float value, bool saturate) noexcept {
    return from_bits(encode_float8(Format, value, saturate));
  }
  static constexpr Float8 from_bits(uint8_t bits) noexcept { return std::bit_cast<Float8>(bits); }
  explicit operator float() const noexcept { return decode_float8(Format, bits); }
  friend constexpr bool operator==(Float8 a, Float8 b) noexcept = default;
};

using Float8E4M3FN = Float8<Float8Format::E4M3FN>;
using Float8E4M3FNUZ = Float8<Float8Format::E4M3FNUZ>;
using Float8E5M2 = Float8<Float8Format::E5M2>;
using Float8E5M2FNUZ = Float8<Float8Format::E5M2FNUZ>;

/// How Cast's `round_mode` brings a value between two powers of two to one of them.
enum class E8M0Rounding : uint8_t { Up, Down, Nearest };

uint8_t encode_e8m0(float value, bool saturate, E8M0Rounding rounding) noexcept;

/// A power of two, 2^(bits - 127); 0xff is NaN. No sign, no zero.
struct Float8E8M0 {
  uint8_t bits;

  Float8E8M0() = default;
  /// Saturates and rounds up, as Cast does unless told otherwise.
  template <std::same_as<float> F>
  explicit Float8E8M0(F value) noexcept : bits(encode_e8m0(value, true, E8M0Rounding::Up)) {}
  template <std::same_as<double> F>
  explicit Float8E8M0(F value) noexcept : Float8E8M0(round_to_odd(value)) {}
  static Float8E8M0 from_float(float value, bool saturate, E8M0Rounding rounding) noexcept {
    return from_bits(encode_e8m0(value, saturate, rounding));
  }
  static constexpr Float8E8M0 from_bits(uint8_t bits) noexcept { return std::bit_cast<Float8E8M0>(bits); }
  explicit constexpr operator float() const noexcept {
    // 2^-127 is a denormal float, built from bits so that flushing modes do not matter.
    const uint32_t word = bits == 0xff ? 0x7fc00000u : bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23;
    return std::bit_cast<float>(word);
  }
  friend constexpr bool operator==(Float8E8M0 a, Float8E8M0 b) noexcept = default;
};

uint8_t encode_float4(float value) noexcept;

/// One E2M1 code in the low four bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. Always saturates. For packed
/// arrays see packed.h.
struct Float4E2M1 {
  uint8_t bits;

  Float4E2M1() = default;
  template <std::same_as<float> F>
  explicit Float4E2M1(F value) noexcept : bits(encode_float4(value)) {}
  template <std::same_as<double> F>
  explicit Float4E2M1(F value) noexcept : bits(encode_float4(round_to_odd(value))) {}
  static constexpr Float4E2M1 from_bits(uint8_t bits) noexcept { return std::bit_cast<Float4E2M1>(bits); }
  explicit constexpr operator float() const noexcept {
    constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    const float magnitude = kMagnitudes[bits & 7];
    return bits & 8 ? -magnitude : magnitude;
  }
  friend constexpr bool operator==(Float4E2M1 a, Float4E2M1 b) noexcept = default;
};

uint8_t encode_float6(float value, uint32_t mantissa_bits) noexcept;

/// One 6-bit code in the low bits, a sign, an exponent and MantissaBits: E2M3 up to 7.5, E3M2 up to 28. Always
/// saturates; no infinities, no NaN. For packed arrays see packed.h.
template <uint32_t MantissaBits>
struct Float6 {
  uint8_t bits;

  Float6() = default;
  template <std::same_as<float> F>
  explicit Float6(F value) noexcept : bits(encode_float6(value, MantissaBits)) {}
  template <std::same_as<double> F>
  explicit Float6(F value) noexcept : Float6(round_to_odd(value)) {}
  static constexpr Float6 from_bits(uint8_t bits) noexcept { return std::bit_cast<Float6>(bits); }
  explicit constexpr operator float() const noexcept {
    constexpr uint32_t kBias = (1u << (4 - MantissaBits)) - 1;
    const uint32_t magnitude = bits & 31u, mantissa = magnitude & ((1u << MantissaBits) - 1);
    // A denormal counts steps of the least normal number's mantissa.
    constexpr float kStep = std::bit_cast<float>((128 - kBias - MantissaBits) << 23);
    const float value = magnitude >> MantissaBits == 0
                            ? static_cast<float>(mantissa) * kStep
                            : std::bit_cast<float>((magnitude << (23 - MantissaBits)) + ((127 - kBias) << 23));
    return bits & 32 ? -value : value;
  }
  friend constexpr bool operator==(Float6 a, Float6 b) noexcept = default;
};

using Float6E2M3 = Float6<3>;
using Float6E3M2 = Float6<2>;

}  // namespace infernode
