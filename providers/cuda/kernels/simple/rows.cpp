#include "providers/cuda/kernels/simple/rows.h"

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"

namespace infernode::cuda {

namespace {

constexpr int kWarps = 4;  ///< of a block

/// A row for each warp.
template <class P>
Launch row_launch(std::string kernel, std::int64_t rows, const P& params) {
  return launch_of_blocks(std::move(kernel), rows, kWarps, kWarps * 32, param_bytes(params));
}

}  // namespace

Launch plan_normalize(const Target&, tensor::DType dtype, NormalizeParams p) {
  p.per_column = 1.0f / static_cast<float>(p.columns);
  const std::size_t pack = 16 * 8 / tensor::bit_size(dtype);
  const bool in_registers = p.columns % pack == 0 && p.columns <= kWarps * kNormalizedInWarp;
  p.warps = in_registers && p.columns > kNormalizedInWarp ? kWarps : 1;
  return row_launch(cat("normalize_", kernel_suffix(dtype)), p.warps == 1 ? p.rows : p.rows * kWarps, p);
}

Launch plan_softmax(const Target&, tensor::DType dtype, const SoftmaxParams& p) {
  return row_launch(cat("softmax_", kernel_suffix(dtype)), p.rows, p);
}

Launch plan_reduce(const Target&, tensor::DType dtype, const ReduceParams& p) {
  return row_launch(cat("reduce_", kernel_suffix(dtype)), p.outputs, p);
}

Launch plan_scan(const Target&, tensor::DType dtype, const ScanParams& p) {
  Launch launch = row_launch(cat("scan_", kernel_suffix(dtype)), p.rows, p);
  if (p.inner != 1) launch.grid.x = static_cast<std::uint32_t>((p.rows + 127) / 128);
  return launch;
}

}  // namespace infernode::cuda
