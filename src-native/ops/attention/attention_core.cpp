#include "ops/attention/attention_core.h"

#include <algorithm>
#include <type_traits>

#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "ops/attention/methods/method.h"
#include "ops/matmul/methods/method.h"

namespace infernode::ops {

namespace {

/// On a CPU with a matrix unit also the loops of vectors may make the products of a head the quickest.
template <class T>
const microkernels::KernelSet& quickest_loops(const microkernels::KernelSet& kernels, const AttentionCall<T>& call) {
  if (std::is_same_v<T, double> || !kernels.gemm.matrix_unit) return kernels;
  const ProductLoops loops(kernels);
  const ProductSite scores{.m = call.q_len, .n = call.kv_len, .k = call.head, .trans_b = true},
      values{.m = call.q_len, .n = call.v_head, .k = call.kv_len};
  const auto time = [&](bool unit) { return loops.time(scores, unit) + loops.time(values, unit); };
  return time(true) <= time(false) ? kernels : microkernels::kernel_set(CpuRung::Avx512);
}

}  // namespace

template <class T>
void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const AttentionCall<T>& call) {
  if (call.batch == 0 || call.q_heads == 0 || call.q_len == 0) return;
  const microkernels::KernelSet& loops = quickest_loops(kernels, call);
  if constexpr (std::is_same_v<T, float>) {
    const AttentionChoice choice = quickest_attention(attention_site(call), loops);
    choice.method->run(ctx, loops, call, choice.rows);
  } else {
    run_attention_products(ctx, loops, call, 0);
  }
}

void join_rows(kernel::KernelContext& ctx, std::size_t batch, std::size_t heads, std::size_t head,
               const Heads<const float>& past, std::span<const std::size_t> past_lengths,
               const Heads<const float>& fresh, std::size_t fresh_rows, float* out, std::size_t rows) {
  ctx.parallel_for(batch * heads, static_cast<double>(rows * head) * 0.2,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     for (std::size_t i = begin; i < end; ++i) {
                       const std::size_t b = i / heads, h = i % heads, before = past_lengths[b];
                       float* to = out + i * rows * head;
                       for (std::size_t r = 0; r < before; ++r) {
                         const float* from = past.at(b, h, r);
                         if (from != to + r * head) std::copy_n(from, head, to + r * head);
                       }
                       for (std::size_t r = 0; r < fresh_rows; ++r)
                         std::copy_n(fresh.at(b, h, r), head, to + (before + r) * head);
                     }
                   });
}

template void run_attention(kernel::KernelContext&, const microkernels::KernelSet&, const AttentionCall<float>&);
template void run_attention(kernel::KernelContext&, const microkernels::KernelSet&, const AttentionCall<double>&);

}  // namespace infernode::ops
