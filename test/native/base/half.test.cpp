#include "base/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace infernode;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The value of a code by the definition of the format.
double by_definition(uint32_t magnitude, int mantissa_bits, int bias) {
  const int exponent = static_cast<int>(magnitude >> mantissa_bits);
  const double fraction = std::ldexp(magnitude & ((1u << mantissa_bits) - 1), -mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
}

/// Checks every finite code: its value, and that what lies between it and the next rounds to nearest, ties to even.
template <class Decode, class Encode>
size_t count_wrong(uint32_t max_code, int mantissa_bits, int bias, uint32_t sign_bit, Decode decode, Encode encode) {
  size_t wrong = 0;
  for (uint32_t code = 0; code <= max_code; ++code) {
    const float value = static_cast<float>(by_definition(code, mantissa_bits, bias));
    wrong += decode(code) != value;
    wrong += encode(value) != code;
    if (code != 0) {
      wrong += decode(code | sign_bit) != -value;
      wrong += encode(-value) != (code | sign_bit);
    }
    if (code == max_code) break;
    const double next = by_definition(code + 1, mantissa_bits, bias);
    const double exact_middle = (static_cast<double>(value) + next) / 2;
    const float middle = static_cast<float>(exact_middle);
    if (middle != exact_middle) continue;  // below the smallest float
    wrong += encode(middle) != (code % 2 == 0 ? code : code + 1);
    wrong += encode(std::nextafter(middle, 0.0f)) != code;
    wrong += encode(std::nextafter(middle, kInf)) != code + 1;
    wrong += encode(-middle) != ((code % 2 == 0 ? code : code + 1) == 0 ? encode(-0.0f) : (code + code % 2) | sign_bit);
  }
  return wrong;
}

}  // namespace

TEST_CASE("Float16 converts both ways as IEEE binary16, rounding to nearest even") {
  CHECK(count_wrong(
            0x7bff, 10, 15, 0x8000,
            [](uint32_t bits) { return float(Float16::from_bits(static_cast<uint16_t>(bits))); },
            [](float value) { return uint32_t{Float16(value).bits}; }) == 0);
  CHECK(Float16(-0.0f).bits == 0x8000);
  CHECK(Float16(65519.996f).bits == 0x7bff);
  CHECK(Float16(65520.0f).bits == 0x7c00);
  CHECK(Float16(-kInf).bits == 0xfc00);
  CHECK(Float16(0x1p-25f).bits == 0);
  CHECK(Float16(0x1.000002p-25f).bits == 1);
  CHECK(std::isnan(float(Float16(kNaN))));
  CHECK(std::isnan(float(Float16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(float(Float16::from_bits(0x7c00)) == kInf);
  CHECK(std::isnan(float(Float16::from_bits(0x7c01))));
  static_assert(float(Float16(1.5f)) == 1.5f);
}

TEST_CASE("BFloat16 rounds to nearest even and keeps NaN a NaN") {
  CHECK(count_wrong(
            0x7f7f, 7, 127, 0x8000,
            [](uint32_t bits) { return float(BFloat16::from_bits(static_cast<uint16_t>(bits))); },
            [](float value) { return uint32_t{BFloat16(value).bits}; }) == 0);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(BFloat16(-kInf).bits == 0xff80);
  CHECK(std::isnan(float(BFloat16(std::bit_cast<float>(0x7fffffffu)))));
  CHECK(std::isnan(float(BFloat16(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("rounding from double happens once") {
  // Rounded to float first, this would be a tie and go to the even neighbour below.
  const double above_tie = 1.0 + 0x1p-11 + 0x1p-40;
  CHECK(Float16(static_cast<float>(above_tie)).bits == 0x3c00);
  CHECK(Float16(above_tie).bits == 0x3c01);
  CHECK(Float16(1.0 + 0x1p-11).bits == 0x3c00);
  CHECK(Float16(-above_tie).bits == 0xbc01);
  CHECK(BFloat16(1.0 + 0x1p-8 + 0x1p-40).bits == 0x3f81);
  CHECK(Float16(1e300).bits == 0x7c00);
  CHECK(Float16(1e-300).bits == 0);
  CHECK(Float16(-0.0).bits == 0x8000);
  CHECK(BFloat16(0x1p-133).bits == 1);
  CHECK(BFloat16(0x1p-134 + 0x1p-180).bits == 1);
  CHECK(BFloat16(0x1p-134).bits == 0);
  CHECK(BFloat16(5e-324).bits == 0);
  CHECK(std::isnan(float(Float16(std::numeric_limits<double>::quiet_NaN()))));
  CHECK(float(Float16(-std::numeric_limits<double>::infinity())) == -kInf);
}

TEST_CASE("float8 formats decode and round as defined") {
  struct Case {
    Float8Format format;
    int mantissa_bits, bias;
    uint32_t max;
  };
  for (const Case& c : {Case{Float8Format::E4M3FN, 3, 7, 0x7e}, Case{Float8Format::E4M3FNUZ, 3, 8, 0x7f},
                        Case{Float8Format::E5M2, 2, 15, 0x7b}, Case{Float8Format::E5M2FNUZ, 2, 16, 0x7f}}) {
    for (const bool saturate : {false, true}) {
      CAPTURE(static_cast<int>(c.format));
      CHECK(count_wrong(
                c.max, c.mantissa_bits, c.bias, 0x80,
                [&](uint32_t bits) { return decode_float8(c.format, static_cast<uint8_t>(bits)); },
                [&](float value) { return uint32_t{encode_float8(c.format, value, saturate)}; }) == 0);
    }
  }
}

TEST_CASE("float8 special values follow Cast's tables") {
  struct Case {
    Float8Format format;
    float value;
    uint8_t saturated, unsaturated;
  };
  using enum Float8Format;
  const Case cases[] = {
      {E4M3FN, kNaN, 0x7f, 0x7f},   {E4M3FN, kInf, 0x7e, 0x7f},    {E4M3FN, -kInf, 0xfe, 0xff},
      {E4M3FN, 1e6f, 0x7e, 0x7f},   {E4M3FN, -1e6f, 0xfe, 0xff},   {E4M3FN, -0.0f, 0x80, 0x80},
      {E4M3FN, 464.0f, 0x7e, 0x7e}, {E4M3FN, 464.01f, 0x7e, 0x7f}, {E4M3FNUZ, kNaN, 0x80, 0x80},
      {E4M3FNUZ, kInf, 0x7f, 0x80}, {E4M3FNUZ, -kInf, 0xff, 0x80}, {E4M3FNUZ, 1e6f, 0x7f, 0x80},
      {E4M3FNUZ, -0.0f, 0, 0},      {E4M3FNUZ, -1e-9f, 0, 0},      {E5M2, kNaN, 0x7e, 0x7e},
      {E5M2, kInf, 0x7b, 0x7c},     {E5M2, -kInf, 0xfb, 0xfc},     {E5M2, 1e6f, 0x7b, 0x7c},
      {E5M2, -0.0f, 0x80, 0x80},    {E5M2FNUZ, kNaN, 0x80, 0x80},  {E5M2FNUZ, kInf, 0x7f, 0x80},
      {E5M2FNUZ, -0.0f, 0, 0},      {E5M2FNUZ, -1e6f, 0xff, 0x80},
  };
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.format));
    CAPTURE(c.value);
    CHECK(encode_float8(c.format, c.value, true) == c.saturated);
    CHECK(encode_float8(c.format, c.value, false) == c.unsaturated);
  }
  CHECK(std::isnan(float(Float8E4M3FN::from_bits(0x7f))));
  CHECK(std::isnan(float(Float8E4M3FN::from_bits(0xff))));
  CHECK(std::isnan(float(Float8E4M3FNUZ::from_bits(0x80))));
  CHECK(float(Float8E5M2::from_bits(0xfc)) == -kInf);
  CHECK(std::isnan(float(Float8E5M2::from_bits(0x7d))));
  CHECK(float(Float8E5M2(1e9f)) == 57344.0f);
  CHECK(float(Float8E4M3FN(-1e9)) == -448.0f);
}

TEST_CASE("float8e8m0 holds powers of two and rounds as asked") {
  using enum E8M0Rounding;
  for (int bits = 0; bits < 255; ++bits) {
    const float value = float(Float8E8M0::from_bits(static_cast<uint8_t>(bits)));
    CHECK(value == static_cast<float>(std::ldexp(1.0, bits - 127)));
    if (bits == 0) continue;
    for (const E8M0Rounding mode : {Up, Down, Nearest}) CHECK(encode_e8m0(value, true, mode) == bits);
  }
  CHECK(std::isnan(float(Float8E8M0::from_bits(0xff))));
  CHECK(encode_e8m0(1.1f, true, Up) == 0x80);
  CHECK(encode_e8m0(1.1f, true, Down) == 0x7f);
  CHECK(encode_e8m0(1.1f, true, Nearest) == 0x7f);
  CHECK(encode_e8m0(1.5f, true, Nearest) == 0x80);
  CHECK(encode_e8m0(-3.0f, true, Down) == 0x80);
  CHECK(encode_e8m0(0.0f, true, Up) == 0);
  CHECK(encode_e8m0(0x1.8p127f, true, Up) == 0xfe);
  CHECK(encode_e8m0(0x1.8p127f, false, Up) == 0xff);
  CHECK(encode_e8m0(kInf, true, Down) == 0xff);
  CHECK(encode_e8m0(kNaN, true, Up) == 0xff);
}

TEST_CASE("float6e2m3 and float6e3m2 round to nearest even and saturate") {
  CHECK(count_wrong(
            31, 3, 1, 32, [](uint32_t bits) { return float(Float6E2M3::from_bits(static_cast<uint8_t>(bits))); },
            [](float value) { return uint32_t{Float6E2M3(value).bits}; }) == 0);
  CHECK(count_wrong(
            31, 2, 3, 32, [](uint32_t bits) { return float(Float6E3M2::from_bits(static_cast<uint8_t>(bits))); },
            [](float value) { return uint32_t{Float6E3M2(value).bits}; }) == 0);
  CHECK(float(Float6E2M3::from_bits(31)) == 7.5f);
  CHECK(float(Float6E2M3::from_bits(33)) == -0.125f);
  CHECK(float(Float6E3M2::from_bits(31)) == 28.0f);
  CHECK(float(Float6E3M2::from_bits(1)) == 0.0625f);
  CHECK(Float6E2M3(1e9f).bits == 31);
  CHECK(Float6E2M3(31.9f).bits == 31);
  CHECK(Float6E3M2(-kInf).bits == 63);
  CHECK(Float6E3M2(-0.0f).bits == 32);
  CHECK(Float6E3M2(kNaN).bits == 32);
  CHECK(Float6E3M2(std::numeric_limits<float>::denorm_min()).bits == 0);
}

TEST_CASE("float4e2m1 rounds to nearest even and saturates") {
  CHECK(count_wrong(
            7, 1, 1, 8, [](uint32_t bits) { return float(Float4E2M1::from_bits(static_cast<uint8_t>(bits))); },
            [](float value) { return uint32_t{Float4E2M1(value).bits}; }) == 0);
  CHECK(Float4E2M1(1e9f).bits == 7);
  CHECK(Float4E2M1(-kInf).bits == 15);
  CHECK(Float4E2M1(-0.0f).bits == 8);
  CHECK(Float4E2M1(kNaN).bits == 8);
  CHECK(Float4E2M1(0.25f).bits == 0);
  CHECK(Float4E2M1(std::numeric_limits<float>::denorm_min()).bits == 0);
}
