#include "microkernels/conv.h"

#include "microkernels/gemm_tiles.h"
#include "microkernels/targets.h"

namespace infernode::microkernels {

INFERNODE_DECLARE_TABLES(ConvTable, conv_table)
#if defined(__x86_64__) || defined(_M_X64)
extern const ConvTable conv_table_amx;
#endif

const ConvTable& conv_table(CpuRung rung) noexcept {
#if defined(__x86_64__) || defined(_M_X64)
  if (rung >= CpuRung::Amx) return conv_table_amx;
#endif
  return INFERNODE_PICK_TABLE(conv_table, rung);
}

GemmSplit split_conv(const ConvTable& table, const ConvShape& shape, std::size_t workers) noexcept {
  // Cutting channels repeats the packing of columns, which costs more than reading weights again.
  return split_grid(table.mr, table.nr, shape.out_channels, shape.positions(), shape.depth(), workers, {4, 32});
}

}  // namespace infernode::microkernels
