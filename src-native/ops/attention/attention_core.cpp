#include "ops/attention/attention_core.h"

#include <algorithm>

#include "microkernels/kernel_set.h"
#include "ops/attention/methods/method.h"

namespace infernode::ops {

void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const AttentionCall<float>& call,
                   std::string_view method) {
  if (call.batch == 0 || call.q_heads == 0 || call.q_len == 0) return;
  const AttentionSite site = attention_site(call);
  AttentionChoice best = quickest_attention(site, kernels);
  if (!method.empty() && best.name(kernels.rung) != method) {
    for (const AttentionChoice& choice : attention_choices(site, kernels)) {
      if (choice.name(kernels.rung) != method) continue;
      best = choice;
      break;
    }
  }
  best.method->run(ctx, *best.kernels, call, best.rows);
}

template <>
void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels,
                   const AttentionCall<float>& call) {
  run_attention(ctx, kernels, call, {});
}

template <>
void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels,
                   const AttentionCall<double>& call) {
  if (call.batch == 0 || call.q_heads == 0 || call.q_len == 0) return;
  // Scores of a block stay in a second-level cache.
  constexpr std::size_t kMostRows = 64, kMostScores = 64 << 10;
  const std::size_t rows = std::clamp<std::size_t>(kMostScores / std::max<std::size_t>(1, call.kv_len), 1, kMostRows);
  run_attention_products(ctx, kernels, call, rows);
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

}  // namespace infernode::ops
