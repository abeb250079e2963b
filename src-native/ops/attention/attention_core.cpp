#include "ops/attention/attention_core.h"

#include <algorithm>

#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "ops/attention/methods/method.h"
#include "ops/matmul/methods/method.h"

namespace infernode::ops {

namespace {

/// On a CPU with a matrix unit also the loops of vectors may make the products of a head the quickest.
const microkernels::KernelSet& quickest_loops(const microkernels::KernelSet& kernels, const AttentionSite& site) {
  if (!kernels.gemm.matrix_unit) return kernels;
  const ProductLoops loops(kernels);
  const ProductSite scores{.m = site.q_len, .n = site.kv_len, .k = site.head, .trans_b = true},
      values{.m = site.q_len, .n = site.v_head, .k = site.kv_len};
  const auto time = [&](bool unit) { return loops.time(scores, unit) + loops.time(values, unit); };
  return time(true) <= time(false) ? kernels : microkernels::kernel_set(CpuRung::Avx512);
}

}  // namespace

std::vector<std::string> attention_method_names(const AttentionSite& site, const microkernels::KernelSet& kernels) {
  std::vector<std::string> names;
  for (const AttentionChoice& choice : attention_choices(site, quickest_loops(kernels, site)))
    if (std::ranges::find(names, choice.method->name) == names.end()) names.emplace_back(choice.method->name);
  return names;
}

void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const AttentionCall<float>& call,
                   std::string_view method) {
  if (call.batch == 0 || call.q_heads == 0 || call.q_len == 0) return;
  const AttentionSite site = attention_site(call);
  const microkernels::KernelSet& loops = quickest_loops(kernels, site);
  AttentionChoice best = quickest_attention(site, loops);
  if (!method.empty() && best.method->name != method) {
    for (const AttentionChoice& choice : attention_choices(site, loops)) {
      if (choice.method->name != method) continue;
      best = choice;
      break;
    }
  }
  best.method->run(ctx, loops, call, best.rows);
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
  run_attention_products(ctx, kernels, call, 0);
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
