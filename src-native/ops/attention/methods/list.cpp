#include <algorithm>
#include <cmath>
#include <limits>

#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "ops/attention/methods/method.h"

namespace infernode::ops {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// Calls each(choice) for all that can run; of two that are expected to take as long, the former one is to be taken.
template <class Each>
void for_each(const AttentionSite& site, const microkernels::KernelSet& kernels, Each each) {
  const std::span<const cost::Row> rates = cost::table(kernels.rung, kernels.precision);
  for (const AttentionMethod* const method : {&kAttentionStrips, &kAttentionProducts}) {
    if (!method->can_run(site, kernels)) continue;
    const cost::Row* const row = cost::find(rates, method->name);
    for (const std::size_t block : method->blocks) {
      const std::size_t rows = std::min(block, site.q_len);
      const double time = row == nullptr ? kUnknown : cost::nanoseconds(method->terms(site, rows, kernels), row->rates);
      each(AttentionChoice{method, rows, time});
      if (rows == site.q_len) break;
    }
  }
}

}  // namespace

AttentionSite attention_site(const AttentionCall<float>& call) {
  using tensor::DType;
  const auto negative = [](std::int64_t offset) { return offset < 0; };
  const bool scales = call.scale > 0 && std::isfinite(static_cast<float>(call.scale));
  return {.heads = call.batch * call.q_heads,
          .groups = call.batch * call.kv_heads,
          .q_len = call.q_len,
          .kv_len = call.kv_len,
          .head = call.head,
          .v_head = call.v_head,
          .masked = call.mask.data != nullptr,
          .causal = call.causal,
          .plain = scales && call.softcap <= 0 && call.left_window < 0 && call.right_window < 0 &&
                   call.scores == nullptr && call.sinks == nullptr && call.precision == DType::Undefined &&
                   call.softmax_precision != DType::Float16 && call.softmax_precision != DType::BFloat16 &&
                   std::none_of(call.offsets.begin(), call.offsets.end(), negative),
          .values_lie = call.v.row == call.v_head};
}

std::vector<AttentionChoice> attention_choices(const AttentionSite& site, const microkernels::KernelSet& kernels) {
  std::vector<AttentionChoice> choices;
  for_each(site, kernels, [&](const AttentionChoice& choice) { choices.push_back(choice); });
  std::ranges::stable_sort(choices, {}, &AttentionChoice::nanoseconds);
  return choices;
}

AttentionChoice quickest_attention(const AttentionSite& site, const microkernels::KernelSet& kernels) {
  AttentionChoice best{&kAttentionProducts, 0, kUnknown};
  for_each(site, kernels, [&](const AttentionChoice& choice) {
    if (choice.nanoseconds < best.nanoseconds) best = choice;
  });
  return best;
}

}  // namespace infernode::ops
