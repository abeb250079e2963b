#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/cpu_rung.h"

namespace infernode {

/// "baseline", "avx2", "avx512", "vnni", "bf16", "amx"; of ArmRung "neon", "dotprod", "i8mm", "bf16".
const char* to_string(CpuRung rung) noexcept;

/// What both the processor and the operating system support. Fields of the other architecture are false.
struct CpuFeatures {
  bool sse42 = false, popcnt = false, avx = false, avx2 = false, fma = false, f16c = false, bmi = false;
  bool avx512 = false;  ///< F, CD, BW, DQ and VL together
  bool avx512_vnni = false, avx512_bf16 = false;
  bool amx_tile = false, amx_int8 = false, amx_bf16 = false;
  bool neon = false, dotprod = false, i8mm = false, neon_bf16 = false;
};

/// Asks the processor, and requests the system's permission to use AMX tiles for the process.
CpuFeatures detect_cpu_features() noexcept;

/// Highest rung whose requirements `features` meets. Throws Error(ProviderUnavailable) below the lowest rung.
CpuRung rung_of(const CpuFeatures& features);
CpuRung detect_cpu_rung();

/// `env_value` is the text of INFERNODE_CPU, null or empty for no choice. Throws Error(InvalidArgument) naming the
/// known rungs for an unknown name, and saying what the CPU has for a rung it lacks.
CpuRung cpu_rung_from(const char* env_value, CpuRung detected);

/// cpu_rung_from(getenv("INFERNODE_CPU"), detect_cpu_rung()). The Engine asks once and hands its answer to passes and
/// kernels; constants that are computed while a graph is built have no engine, so kernel/evaluate.cpp asks here, too.
CpuRung cpu_rung();

/// "AMD EPYC 9654", or the architecture's name where the processor does not tell.
std::string cpu_name();

}  // namespace infernode
