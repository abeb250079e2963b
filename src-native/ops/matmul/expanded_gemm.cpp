#include <algorithm>

#include "base/checked.h"
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
  const double cost = static_cast<double>(columns * k) * (1 + static_cast<double>(m) / 15);
  ctx.parallel_for(parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    auto* expanded = reinterpret_cast<float*>(memory.data() + slot * stride);
    auto* scratch = reinterpret_cast<float*>(memory.data() + slot * stride + own);
    for (std::size_t i = begin; i < end; ++i) {
      ctx.run().check();
      const std::size_t first = i * columns, count = std::min(columns, n - first);
      for (std::size_t c = 0; c < count; ++c) expand(first + c, expanded + c * k);
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
      table.gemm(args, {0, m, 0, count}, scratch);
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
