#pragma once

#include "base/cpu_rung.h"

namespace infernode {

/// The ladder of AArch64; each rung includes all below it. kNeon = ARMv8.0; kDotprod = FEAT_DotProd (Cortex-A76,
/// Neoverse N1, Apple M1); kI8mm = FEAT_I8MM (Neoverse V1 and N2, Apple M2); kBf16 = FEAT_BF16, which the same
/// processors have.
struct ArmRung {
  static constexpr CpuRung kNeon = CpuRung::Neon, kDotprod{17}, kI8mm{18}, kBf16{19};
};
static_assert(static_cast<int>(ArmRung::kDotprod) == static_cast<int>(ArmRung::kNeon) + 1);

}  // namespace infernode
