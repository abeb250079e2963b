#pragma once

#include <cstddef>
#include <cstdint>

// Conversions between element types over contiguous arrays. float16 and bfloat16 are given by their bits.
namespace infernode::microkernels {

struct ConvertTable {
  const char* name;
  void (*f16_to_f32)(const std::uint16_t* x, float* y, std::size_t n) noexcept;
  void (*f32_to_f16)(const float* x, std::uint16_t* y, std::size_t n) noexcept;  // round to nearest even
  void (*bf16_to_f32)(const std::uint16_t* x, float* y, std::size_t n) noexcept;
  void (*f32_to_bf16)(const float* x, std::uint16_t* y, std::size_t n) noexcept;  // round to nearest even
  void (*bool_to_f32)(const std::uint8_t* x, float* y, std::size_t n) noexcept;   // 1 for every byte but 0
  void (*u8_to_f32)(const std::uint8_t* x, float* y, std::size_t n) noexcept;
  void (*s8_to_f32)(const std::int8_t* x, float* y, std::size_t n) noexcept;
  void (*s32_to_f32)(const std::int32_t* x, float* y, std::size_t n) noexcept;
  // y = saturate(round_even(x / scale) + zero); NaN gives zero's value clamped, as for 0.
  void (*quantize_u8)(const float* x, std::uint8_t* y, std::size_t n, float scale, std::int32_t zero) noexcept;
  void (*quantize_s8)(const float* x, std::int8_t* y, std::size_t n, float scale, std::int32_t zero) noexcept;
  // y = (x - zero) * scale
  void (*dequantize_u8)(const std::uint8_t* x, float* y, std::size_t n, float scale, std::int32_t zero) noexcept;
  void (*dequantize_s8)(const std::int8_t* x, float* y, std::size_t n, float scale, std::int32_t zero) noexcept;
  void (*dequantize_s32)(const std::int32_t* x, float* y, std::size_t n, float scale, std::int32_t zero) noexcept;
  // Smallest and greatest element; NaN elements are skipped; n = 0 gives +infinity and -infinity.
  void (*min_max)(const float* x, std::size_t n, float* min, float* max) noexcept;
};

}  // namespace infernode::microkernels
