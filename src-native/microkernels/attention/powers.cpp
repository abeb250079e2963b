#include "microkernels/attention/powers.h"

#include "base/cpu_features.h"

namespace infernode::microkernels {

#if defined(__x86_64__) || defined(_M_X64)
extern const PowerTable power_table_bf16;

const PowerTable* power_table(CpuRung rung, Float32Precision precision) noexcept {
  return rung >= CpuRung::Bf16 && precision == Float32Precision::kMedium ? &power_table_bf16 : nullptr;
}
#else
const PowerTable* power_table(CpuRung, Float32Precision) noexcept { return nullptr; }
#endif

}  // namespace infernode::microkernels
