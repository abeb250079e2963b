#include "microkernels/convert/convert.h"

#include <bit>

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

TEST_CASE("every float16 and bfloat16 converts to float32 and back") {
  for_each_target([](CpuRung rung) {
    const ConvertTable& table = kernel_set(rung).convert;
    std::vector<std::uint16_t> bits(65536), back(65536);
    std::vector<float> wide(65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    for (const FloatType type : {FloatType::kF16, FloatType::kBf16}) {
      const bool half = type == FloatType::kF16;
      (half ? table.f16_to_f32 : table.bf16_to_f32)(bits.data(), wide.data(), bits.size());
      (half ? table.f32_to_f16 : table.f32_to_bf16)(wide.data(), back.data(), bits.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const float expected = widen(bits[i], type);
        if (std::isnan(expected)) {
          wrong += !std::isnan(wide[i]) || !std::isnan(widen(back[i], type));
        } else {
          wrong += wide[i] != expected || back[i] != bits[i];
        }
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("float32 rounds to the nearest even float16 and bfloat16") {
  for_each_target([](CpuRung rung) {
    const ConvertTable& table = kernel_set(rung).convert;
    std::vector<float> x = {0.0f,          -0.0f,    65519.0f, 65520.0f, 65504.0f,  -70000.0f, 1e-8f, 2.98e-8f,
                            2.9802322e-8f, 5.96e-8f, 6.1e-5f,  INFINITY, -INFINITY, 3.4e38f,   1e-40f};
    Random random(1);
    for (int i = 0; i < 20000; ++i) {
      // Every exponent, and ties between neighbours.
      std::uint32_t u = random.bits();
      if (i % 3 == 0) u = (u & 0xffffe000u) | 0x1000u;
      if (i % 3 == 1) u = (u & 0xffff0000u) | 0x8000u;
      const float f = std::bit_cast<float>(u);
      if (!std::isnan(f)) x.push_back(f);
    }
    std::vector<std::uint16_t> half(x.size()), brain(x.size());
    table.f32_to_f16(x.data(), half.data(), x.size());
    table.f32_to_bf16(x.data(), brain.data(), x.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      wrong += half[i] != narrow(x[i], FloatType::kF16);
      wrong += brain[i] != narrow(x[i], FloatType::kBf16);
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("quantize and dequantize rows of every length") {
  for_each_target([](CpuRung rung) {
    const ConvertTable& table = kernel_set(rung).convert;
    for (std::size_t n = 0; n < 70; n += n < 36 ? 1 : 11) {
      Guarded<float> x(n), back(n);
      Guarded<std::uint8_t> u(n);
      Guarded<std::int8_t> s(n);
      Guarded<std::int32_t> w(n);
      Random random(n);
      random.fill(x, -40, 40);
      if (n > 2) {
        x[0] = 0.5f * 0.25f;  // ties go to even
        x[1] = 1.5f * 0.25f;
        x[2] = 1e30f;
      }
      for (auto& v : w) v = static_cast<std::int32_t>(random.bits());
      table.quantize_u8(x.data(), u.data(), n, 0.25f, 100);
      table.quantize_s8(x.data(), s.data(), n, 0.25f, -5);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double q = std::nearbyint(x[i] / 0.25f);
        wrong += u[i] != std::clamp(q + 100, 0.0, 255.0);
        wrong += s[i] != std::clamp(q - 5, -128.0, 127.0);
      }
      table.dequantize_u8(u.data(), back.data(), n, 0.25f, 100);
      for (std::size_t i = 0; i < n; ++i) wrong += back[i] != (u[i] - 100) * 0.25f;
      table.dequantize_s8(s.data(), back.data(), n, 0.25f, -5);
      for (std::size_t i = 0; i < n; ++i) wrong += back[i] != (s[i] + 5) * 0.25f;
      table.dequantize_s32(w.data(), back.data(), n, 0.5f, 0);
      for (std::size_t i = 0; i < n; ++i) wrong += back[i] != static_cast<float>(w[i]) * 0.5f;
      table.bool_to_f32(u.data(), back.data(), n);
      for (std::size_t i = 0; i < n; ++i) wrong += back[i] != (u[i] != 0 ? 1.0f : 0.0f);
      table.u8_to_f32(u.data(), back.data(), n);
      for (std::size_t i = 0; i < n; ++i) wrong += back[i] != u[i];
      table.s8_to_f32(s.data(), back.data(), n);
      for (std::size_t i = 0; i < n; ++i) wrong += back[i] != s[i];
      table.s32_to_f32(w.data(), back.data(), n);
      for (std::size_t i = 0; i < n; ++i) wrong += back[i] != static_cast<float>(w[i]);
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("quantize takes NaN as 0 and infinities as the ends") {
  for_each_target([](CpuRung rung) {
    const float x[3] = {std::nanf(""), INFINITY, -INFINITY};
    std::uint8_t u[3];
    std::int8_t s[3];
    kernel_set(rung).convert.quantize_u8(x, u, 3, 1.0f, 9);
    kernel_set(rung).convert.quantize_s8(x, s, 3, 1.0f, 9);
    CHECK((u[0] == 9 && u[1] == 255 && u[2] == 0));
    CHECK((s[0] == 9 && s[1] == 127 && s[2] == -128));
  });
}

TEST_CASE("min_max skips NaN") {
  for_each_target([](CpuRung rung) {
    for (std::size_t n = 0; n < 50; ++n) {
      Guarded<float> x(n);
      Random random(n);
      random.fill(x);
      if (n > 1) x[n / 2] = std::nanf("");
      float low = INFINITY, high = -INFINITY, actual_low = 0, actual_high = 0;
      for (const float v : x) {
        if (std::isnan(v)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
      kernel_set(rung).convert.min_max(x.data(), n, &actual_low, &actual_high);
      CHECK((actual_low == low && actual_high == high));
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
