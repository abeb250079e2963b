#include "providers/cuda/kernels/simple/rows.h"

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"

namespace infernode::cuda {

namespace {

template <class P>
Launch row_launch(std::string kernel, std::int64_t rows, const P& params) {
  constexpr std::int64_t kWarps = 4;
  const std::int64_t blocks = (rows + kWarps - 1) / kWarps;
  if (blocks > INT32_MAX) fail(ErrorCode::Internal, cat("cuda: ", rows, " rows are too many for one launch"));
  return {.kernel = std::move(kernel),
          .grid = {static_cast<std::uint32_t>(blocks)},
          .block = {kWarps * 32},
          .cluster = {},
          .programmatic = true,
          .params = param_bytes(params)};
}

}  // namespace

Launch plan_normalize(const Target&, tensor::DType dtype, const NormalizeParams& p) {
  return row_launch(cat("normalize_", kernel_suffix(dtype)), p.rows, p);
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
