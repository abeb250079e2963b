#include "microkernels/blocked/blocked.h"

#include "microkernels/common/targets.h"

namespace infernode::microkernels {

INFERNODE_DECLARE_TABLES(BlockedConvTable, blocked_conv_table)

#if defined(__x86_64__) || defined(_M_X64)
extern const BlockedConvTable blocked_conv_table_bf16, blocked_conv_table_amx[3];

const BlockedConvTable& blocked_conv_table(CpuRung rung, Float32Precision precision) noexcept {
  if (rung >= CpuRung::Amx) return blocked_conv_table_amx[static_cast<std::size_t>(precision)];
  return rung == CpuRung::Bf16 && precision == Float32Precision::kMedium
             ? blocked_conv_table_bf16
             : INFERNODE_PICK_TABLE(blocked_conv_table, rung);
}
#else
const BlockedConvTable& blocked_conv_table(CpuRung rung, Float32Precision) noexcept {
  return INFERNODE_PICK_TABLE(blocked_conv_table, rung);
}
#endif

}  // namespace infernode::microkernels
