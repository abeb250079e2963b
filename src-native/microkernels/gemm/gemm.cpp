#include "microkernels/gemm/gemm.h"

namespace infernode::microkernels {

GemmSplit split_gemm(const GemmTable& table, std::size_t m, std::size_t n, std::size_t k,
                     std::size_t workers) noexcept {
  // Cutting rows repeats the reading of B, cutting columns the packing of A: the squarest ranges do least of both.
  return split_grid(table.mr, table.nr, m, n, k, workers, {table.row_cost, 8});
}

}  // namespace infernode::microkernels
