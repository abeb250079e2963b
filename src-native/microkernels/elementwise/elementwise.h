#pragma once

#include <cstddef>
#include <cstdint>

// Float32 loops over contiguous arrays. Output may be the same array as an input, but not overlap one otherwise.
namespace infernode::microkernels {

enum class UnaryOp : std::uint8_t {
  kAbs,
  kNeg,
  kReciprocal,
  kSqrt,
  kRsqrt,
  kFloor,
  kCeil,
  kRoundEven,
  kExp,
  kLog,
  kSin,
  kCos,
  kTanh,
  kErf,
  kSigmoid,
  kSilu,
  kQuickGelu,  // x * sigmoid(a * x)
  kGelu,
  kGeluTanh,
  kRelu,
  kLeakyRelu,        // a = slope
  kThresholdedRelu,  // a = threshold
  kElu,              // a = alpha
  kSelu,             // a = alpha, b = gamma
  kCelu,             // a = alpha
  kHardSigmoid,      // clamp(a * x + b, 0, 1)
  kHardSwish,
  kSoftplus,
  kSoftsign,
  kMish,
  kClip,    // a = minimum, b = maximum
  kAffine,  // a * x + b
  kSquare,
  kSign,
  kCount,
};

enum class BinaryOp : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,  // NaN if either is NaN
  kMax,  // NaN if either is NaN
  kPow,
  kPrelu,  // x < 0 ? x * slope : x
  kCount,
};

enum class Relation : std::uint8_t { kEqual, kLess, kLessOrEqual, kCount };

using UnaryLoop = void (*)(const float* x, float* y, std::size_t n, float a, float b) noexcept;
using BinaryLoop = void (*)(const float* x, const float* y, float* out, std::size_t n) noexcept;

// out[i] = 1 where x[i] and y[i] are so related, 0 elsewhere; a still side is one element.
using CompareLoop = void (*)(const float* x, bool still_x, const float* y, bool still_y, std::uint8_t* out,
                             std::size_t n) noexcept;
// out[i] = c[i] != 0 ? x[i] : y[i], of elements that are only moved; a still side is one element. `out` overlaps none.
template <typename T>
using ChooseLoop = void (*)(const std::uint8_t* c, const T* x, bool still_x, const T* y, bool still_y, T* out,
                            std::size_t n) noexcept;

struct ElementwiseTable {
  const char* name;
  UnaryLoop unary[static_cast<std::size_t>(UnaryOp::kCount)];
  BinaryLoop vector_vector[static_cast<std::size_t>(BinaryOp::kCount)];
  BinaryLoop vector_scalar[static_cast<std::size_t>(BinaryOp::kCount)];  // y points to one element
  BinaryLoop scalar_vector[static_cast<std::size_t>(BinaryOp::kCount)];  // x points to one element
  // out = x * y + z, all of length n.
  void (*multiply_add)(const float* x, const float* y, const float* z, float* out, std::size_t n) noexcept;
  // out = the rest of x / y, with x's sign, as C's fmod has it; a still side is one element.
  void (*remainder)(const float* x, bool still_x, const float* y, bool still_y, float* out, std::size_t n) noexcept;
  CompareLoop compare[static_cast<std::size_t>(Relation::kCount)];
  ChooseLoop<std::uint8_t> choose1;
  ChooseLoop<std::uint16_t> choose2;
  ChooseLoop<std::uint32_t> choose4;
  ChooseLoop<std::uint64_t> choose8;

  UnaryLoop operator[](UnaryOp op) const noexcept { return unary[static_cast<std::size_t>(op)]; }
};

}  // namespace infernode::microkernels
