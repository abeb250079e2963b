#include <algorithm>

#include "base/checked.h"
#include "kernel/watch.h"
#include "ops/matmul/expanded_gemm.h"

namespace infernode::ops {

void multiply_expanded(kernel::KernelContext& ctx, const microkernels::GemmTable& table, std::size_t m, std::size_t n,
                       std::size_t k, const float* a, const float* bias, float* y,
                       FunctionRef<void(std::size_t, float*)> expand) {
  const std::size_t columns = table.nr * 2, parts = ceil_div(n, columns);
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
  const std::size_t own = align_up(checked_mul(checked_mul(columns, k), sizeof(float)), 64);
  const std::size_t stride = checked_add(own, align_up(table.scratch_floats * sizeof(float), 64));
  const tensor::Buffer memory = ctx.scratch(checked_mul(stride, threads));
  constexpr double kProductsPerNs = 15;
  // Rows multiplied between two looks: so many that the columns are packed for them once in a while.
  const std::size_t rows =
      align_up(std::clamp<std::size_t>((std::size_t{1} << 26) / (columns * k + 1), 64, m + 64), table.mr);
  const double cost = static_cast<double>(columns * k) * (1 + static_cast<double>(m) / kProductsPerNs);
  ctx.parallel_for(parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    auto* expanded = reinterpret_cast<float*>(memory.data() + slot * stride);
    auto* scratch = reinterpret_cast<float*>(memory.data() + slot * stride + own);
    kernel::Watch watch(ctx.run());
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t first = i * columns, count = std::min(columns, n - first);
      for (std::size_t c = 0; c < count; ++c) {
        expand(first + c, expanded + c * k);
        watch.did(static_cast<double>(k));
      }
      microkernels::GemmArgs args{.m = m,
                                  .n = count,
                                  .k = k,
                                  .a = a,
                                  .lda = k,
                                  .b = expanded,
                                  .ldb = k,
                                  .trans_b = true,
                                  .c = y + first,
                                  .ldc = n,
                                  .epilogue = {}};
      args.epilogue.bias_n = bias == nullptr ? nullptr : bias + first;
      for (std::size_t row = 0; row < m; row += rows) {
        const std::size_t last = std::min(m, row + rows);
        table.gemm(args, {row, last, 0, count}, scratch);
        watch.did(static_cast<double>((last - row) * count) * static_cast<double>(k) / kProductsPerNs);
      }
    }
  });
}

void infer_expanded_gemm(kernel::InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape* a = ctx.input_shape(0);
  if (a == nullptr || a->empty()) return;
  graph::SymShape out = *a;
  out.back() = ctx.attributes().get_int("N");
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace infernode::ops
