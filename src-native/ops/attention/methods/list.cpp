#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "ops/attention/methods/method.h"

namespace infernode::ops {

namespace {

using microkernels::KernelSet;

constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// Calls each(choice) for all that can run.
template <class Each>
void for_each(const AttentionSite& site, const KernelSet& kernels, Each each) {
  const std::span<const cost::Row> rates = cost::table(kernels.rung, kernels.precision);
  const auto with = [&](const AttentionMethod& method, const KernelSet& loops) {
    if (!method.can_run(site, loops)) return;
    AttentionChoice choice{&method, &loops, 0, kUnknown};
    const cost::Row* const row = cost::find(rates, choice.name(kernels.rung));
    for (const std::size_t block : method.blocks(site, loops)) {
      choice.rows = std::min(block, site.q_len);
      if (row != nullptr) choice.nanoseconds = cost::nanoseconds(method.terms(site, choice.rows, loops), row->rates);
      each(choice);
      if (choice.rows == site.q_len) break;
    }
  };
  for (const AttentionMethod* const method : attention_methods()) {
    with(*method, kernels);
    if (kernels.gemm.matrix_unit) with(*method, microkernels::kernel_set(CpuRung::Avx512));
  }
}

}  // namespace

std::span<const AttentionMethod* const> attention_methods() {
  static constexpr const AttentionMethod* kAll[] = {&kAttentionStrips, &kAttentionProducts};
  return kAll;
}

std::string AttentionChoice::name(CpuRung cpu) const {
  return kernels->rung == cpu ? std::string(method->name) : cat(method->name, "@", to_string(kernels->rung));
}

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
          .causal = call.causal,
          .plain = scales && call.softcap <= 0 && call.left_window < 0 && call.right_window < 0 &&
                   call.scores == nullptr && call.sinks == nullptr && call.precision == DType::Undefined &&
                   call.softmax_precision != DType::Float16 && call.softmax_precision != DType::BFloat16 &&
                   std::none_of(call.offsets.begin(), call.offsets.end(), negative),
          .values_lie = call.v.row == call.v_head};
}

std::vector<AttentionChoice> attention_choices(const AttentionSite& site, const KernelSet& kernels) {
  std::vector<AttentionChoice> choices;
  for_each(site, kernels, [&](const AttentionChoice& choice) { choices.push_back(choice); });
  std::ranges::stable_sort(choices, {}, &AttentionChoice::nanoseconds);
  return choices;
}

AttentionChoice quickest_attention(const AttentionSite& site, const KernelSet& kernels) {
  const std::size_t most = kAttentionProducts.blocks(site, kernels).back();
  AttentionChoice best{&kAttentionProducts, &kernels, std::min(site.q_len, most), kUnknown};
  for_each(site, kernels, [&](const AttentionChoice& choice) {
    if (choice.nanoseconds < best.nanoseconds) best = choice;
  });
  return best;
}

std::vector<std::string> attention_method_names(const AttentionSite& site, const KernelSet& kernels) {
  std::vector<std::string> names;
  for (const AttentionChoice& choice : attention_choices(site, kernels)) {
    std::string name = choice.name(kernels.rung);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace infernode::ops
