#include "transform/block_codes.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "base/packed.h"
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;
using transform::BlockCodes;
using transform::BlockFormat;
using transform::Lines;

namespace {

BlockCodes codes_of(const Tensor& matrix, const BlockFormat& format, Lines lines = Lines::Rows) {
  return transform::make_block_codes(matrix, lines, format, kernel::RunContext{});
}

int code(const BlockCodes& codes, const BlockFormat& format, std::size_t line, std::size_t i) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes.codes.data()) + line * codes.line_bytes;
  return format.bits == 4 ? get_packed<4>(bytes, i) : bytes[i];
}

float value(const BlockCodes& codes, const BlockFormat& format, std::size_t line, std::size_t i) {
  const std::size_t block = line * codes.blocks + i / format.block;
  const int zero = format.symmetric ? 1 << (format.bits - 1) : codes.zeros.at(block);
  return static_cast<float>(code(codes, format, line, i) - zero) * tensor::to_float_vector(codes.scales).at(block);
}

Tensor row(std::vector<float> values, std::size_t length) {
  values.resize(length);
  return Tensor::of<float>({1, static_cast<std::int64_t>(length)}, std::span<const float>(values));
}

/// The numbers as another type has them.
template <class T>
Tensor as(const Tensor& tensor) {
  const Tensor out = Tensor::make(tensor::kDTypeOf<T>, tensor.shape());
  const std::span<T> to = out.mutable_span<T>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = T(tensor.data<float>()[i]);
  return out;
}

}  // namespace

TEST_CASE("symmetric codes give the element of largest magnitude code 0") {
  const BlockFormat format{.bits = 4, .block = 16, .symmetric = true};
  const BlockCodes down = codes_of(row({-4, 3.5f, 1, -0.2f, 0.3f}, 16), format);
  CHECK(tensor::to_float_vector(down.scales) == std::vector<float>{0.5f});
  CHECK(down.zeros.empty());
  const int expected[] = {0, 15, 10, 8, 9, 8};
  for (std::size_t i = 0; i < std::size(expected); ++i) CHECK(code(down, format, 0, i) == expected[i]);
  const BlockCodes up = codes_of(row({4, -3.5f}, 16), format);
  CHECK(tensor::to_float_vector(up.scales) == std::vector<float>{-0.5f});
  CHECK(code(up, format, 0, 0) == 0);
  CHECK(code(up, format, 0, 1) == 15);
}

TEST_CASE("other codes cover the block's range, with 0 in it") {
  const BlockFormat format{.bits = 4, .block = 16, .symmetric = false};
  const BlockCodes positive = codes_of(row({1, 2, 15, 7.4f}, 16), format);
  CHECK(tensor::to_float_vector(positive.scales) == std::vector<float>{1});
  CHECK(positive.zeros == std::vector<std::uint8_t>{0});
  CHECK(code(positive, format, 0, 2) == 15);
  CHECK(code(positive, format, 0, 3) == 7);
  const BlockCodes both = codes_of(row({-5, 10}, 16), format);
  CHECK(both.zeros == std::vector<std::uint8_t>{5});
  CHECK(code(both, format, 0, 0) == 0);
  CHECK(code(both, format, 0, 1) == 15);
  CHECK(code(both, format, 0, 2) == 5);
}

TEST_CASE("every element is within half a step, in rows and columns, of every type") {
  for (const DType type : {DType::Float32, DType::Float16, DType::BFloat16}) {
    for (const int bits : {4, 8}) {
      for (const bool symmetric : {false, true}) {
        CAPTURE(tensor::name(type));
        CAPTURE(bits);
        CAPTURE(symmetric);
        const BlockFormat format{.bits = bits, .block = 32, .symmetric = symmetric};
        const Tensor drawn = noise(DType::Float32, {70, 37}, 3);  // 37: a block of 32 and one of 5
        const Tensor matrix = type == DType::Float16    ? as<Float16>(drawn)
                              : type == DType::BFloat16 ? as<BFloat16>(drawn)
                                                        : drawn;
        const BlockCodes rows = codes_of(matrix, format), columns = codes_of(matrix, format, Lines::Columns);
        CHECK(rows.scales.shape() == Shape{70, 2});
        CHECK(columns.scales.shape() == Shape{37, 3});
        const std::vector<float> all = tensor::to_float_vector(matrix);
        const std::vector<float> scales = tensor::to_float_vector(rows.scales);
        const std::vector<float> column_scales = tensor::to_float_vector(columns.scales);
        // The last code of the side without a 0 stands for a whole step; scales of 16 bits are rounded.
        const float most = (symmetric ? 1.0f : 0.5f) + (type == DType::Float32 ? 0.01f : bits == 4 ? 0.1f : 1.1f);
        float worst = 0, worst_column = 0;
        for (std::size_t i = 0; i < 70; ++i) {
          for (std::size_t j = 0; j < 37; ++j) {
            const float expected = all[i * 37 + j];
            worst = std::max(worst, std::abs((value(rows, format, i, j) - expected) / scales[i * 2 + j / 32]));
            worst_column = std::max(
                worst_column, std::abs((value(columns, format, j, i) - expected) / column_scales[j * 3 + i / 32]));
          }
        }
        CHECK(worst < most);
        CHECK(worst_column < most);
      }
    }
  }
}

TEST_CASE("blocks of zeros, of the smallest and of the largest numbers") {
  constexpr float kLeast = std::numeric_limits<float>::denorm_min(), kMost = std::numeric_limits<float>::max();
  for (const bool symmetric : {false, true}) {
    const BlockFormat format{.bits = 8, .block = 16, .symmetric = symmetric};
    const BlockCodes zeros = codes_of(row({}, 16), format), least = codes_of(row({kLeast, -kLeast}, 16), format);
    for (std::size_t i = 0; i < 16; ++i) {
      CHECK(value(zeros, format, 0, i) == 0);
      CHECK(std::abs(value(least, format, 0, i)) <= 256 * kLeast);
    }
    const BlockCodes most = codes_of(row({kMost, -kMost, 1}, 16), format);
    CHECK(value(most, format, 0, 0) == doctest::Approx(kMost).epsilon(0.01));
    CHECK(value(most, format, 0, 1) == doctest::Approx(-kMost).epsilon(0.01));
  }
}

TEST_CASE("what is no finite number has no code") {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    CHECK_THROWS_WITH_AS(codes_of(row({1, odd}, 16), {}), "an element is no finite number", Error);
}

TEST_CASE("zeros of a line fill whole bytes") {
  const BlockFormat format{.bits = 4, .block = 16, .symmetric = false};
  const BlockCodes codes = codes_of(noise(DType::Float32, {3, 48}, 1), format);
  const Tensor packed = transform::packed_zeros(codes, 4);
  CHECK(packed.shape() == Shape{3, 2});
  for (std::size_t line = 0; line < 3; ++line) {
    for (std::size_t b = 0; b < 3; ++b)
      CHECK(get_packed<4>(packed.data<std::uint8_t>() + line * 2, b) == codes.zeros[line * 3 + b]);
  }
}
