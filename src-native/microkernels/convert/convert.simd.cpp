#include "microkernels/convert/convert.h"

#include "microkernels/common/codes.simd.h"
#include "microkernels/common/simd_file.h"

namespace infernode::microkernels {
namespace {

// Calls step(x, y) on whole vectors of elements; the rest goes through small arrays of a vector's length.
template <typename X, typename Y, typename Step>
INFERNODE_SIMD void convert(const X* x, Y* y, std::size_t n, Step step) {
  for (; n >= kLanes; n -= kLanes, x += kLanes, y += kLanes) step(x, y);
  if (n == 0) return;
  X in[kLanes] = {};
  Y out[kLanes];
  for (std::size_t i = 0; i < n; ++i) in[i] = x[i];
  step(in, out);
  for (std::size_t i = 0; i < n; ++i) y[i] = out[i];
}

void f16_to_f32(const std::uint16_t* x, float* y, std::size_t n) noexcept {
  convert(x, y, n, [](const std::uint16_t* a, float* b) { store(b, load_f16(a)); });
}
void f32_to_f16(const float* x, std::uint16_t* y, std::size_t n) noexcept {
  convert(x, y, n, [](const float* a, std::uint16_t* b) { store_f16(b, load(a)); });
}
void bf16_to_f32(const std::uint16_t* x, float* y, std::size_t n) noexcept {
  convert(x, y, n, [](const std::uint16_t* a, float* b) { store(b, load_bf16(a)); });
}
void f32_to_bf16(const float* x, std::uint16_t* y, std::size_t n) noexcept {
  convert(x, y, n, [](const float* a, std::uint16_t* b) { store_bf16(b, load(a)); });
}

INFERNODE_SIMD VecI load_int(const std::uint8_t* p) { return load_u8(p); }
INFERNODE_SIMD VecI load_int(const std::int8_t* p) { return load_s8(p); }
INFERNODE_SIMD VecI load_int(const std::int32_t* p) { return load(p); }
INFERNODE_SIMD void store_int(std::uint8_t* p, VecI v) { store_u8(p, v); }
INFERNODE_SIMD void store_int(std::int8_t* p, VecI v) { store_s8(p, v); }

template <typename T>
void to_f32(const T* x, float* y, std::size_t n) noexcept {
  convert(x, y, n, [](const T* a, float* b) { store(b, to_float(load_int(a))); });
}

void bool_to_f32(const std::uint8_t* x, float* y, std::size_t n) noexcept {
  const VecF one = set(1.0f);
  convert(x, y, n, [&](const std::uint8_t* a, float* b) { store(b, min(to_float(load_u8(a)), one)); });
}

template <typename T, std::int32_t kLow, std::int32_t kHigh>
void quantize(const float* x, T* y, std::size_t n, float scale, std::int32_t zero_point) noexcept {
  const VecF divisor = set(scale);
  const VecI offset = set(zero_point);
  // Clamped before the conversion, which could not represent more.
  const VecF low = set(static_cast<float>(kLow - zero_point)), high = set(static_cast<float>(kHigh - zero_point));
  convert(x, y, n, [&](const float* a, T* b) { store_int(b, to_codes(load(a) / divisor, low, high) + offset); });
}

// Differences of 8-bit values are exact in float32; those of int32 are taken as the integers that they are.
template <typename T>
void dequantize(const T* x, float* y, std::size_t n, float scale, std::int32_t zero_point) noexcept {
  const VecF factor = set(scale);
  const VecI offset = set(zero_point);
  convert(x, y, n, [&](const T* a, float* b) { store(b, to_float(load_int(a) - offset) * factor); });
}

void min_max(const float* x, std::size_t n, float* least, float* greatest) noexcept {
  const VecF top = set(__builtin_inff()), bottom = set(-__builtin_inff());
  VecF low = top, high = bottom;
  // min and max return their second argument when the first is NaN.
  const auto take = [&](VecF v) {
    low = min(v, low);
    high = max(v, high);
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) take(load(x + i));
  if (i < n) {
    const Mask inside = set(static_cast<std::int32_t>(n - i)) > iota();
    const VecF v = load_partial(x + i, n - i);
    low = min(select(inside, v, top), low);
    high = max(select(inside, v, bottom), high);
  }
  *least = reduce_min(low);
  *greatest = reduce_max(high);
}

}  // namespace

INFERNODE_TABLE(ConvertTable, convert) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                          f16_to_f32,
                                          f32_to_f16,
                                          bf16_to_f32,
                                          f32_to_bf16,
                                          bool_to_f32,
                                          to_f32<std::uint8_t>,
                                          to_f32<std::int8_t>,
                                          to_f32<std::int32_t>,
                                          quantize<std::uint8_t, 0, 255>,
                                          quantize<std::int8_t, -128, 127>,
                                          dequantize<std::uint8_t>,
                                          dequantize<std::int8_t>,
                                          dequantize<std::int32_t>,
                                          min_max};

}  // namespace infernode::microkernels
