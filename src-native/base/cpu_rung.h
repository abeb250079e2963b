#pragma once

#include <cstdint>

namespace infernode {

/// Steps of the instruction-set ladder; each includes all below it on the same architecture, so `rung >=
/// CpuRung::Avx512` is the test. x86-64: Baseline = x86-64-v2 (SSE4.2, POPCNT); Avx2 = x86-64-v3 (with FMA, F16C, BMI);
/// Avx512 = F, CD, BW, DQ, VL; Vnni = AVX512_VNNI; Bf16 = AVX512_BF16; Amx = AMX tile, int8, bf16.
/// AArch64: Neon = ARMv8.0. It stands above all of x86-64: `rung >= X` holds for it, and `rung < X` does not.
enum class CpuRung : std::uint8_t { Baseline = 0, Avx2, Avx512, Vnni, Bf16, Amx, Neon = 16 };

}  // namespace infernode
