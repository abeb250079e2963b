#include "microkernels/conv/conv.h"

namespace infernode::microkernels {

GemmSplit split_conv(const ConvTable& table, const ConvShape& shape, std::size_t workers) noexcept {
  // Cutting channels repeats the packing of columns, which costs more than reading weights again.
  return split_grid(table.mr, table.nr, shape.out_channels, shape.positions(), shape.depth(), workers, {4, 32});
}

}  // namespace infernode::microkernels
