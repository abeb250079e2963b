#pragma once
// What com.microsoft's attention operators compute once queries, keys and values are at hand.

#include <cstdint>
#include <optional>

#include "kernel/counted.h"
#include "kernel/kernel.h"
#include "ops/attention/attention_core.h"

namespace infernode::ops {

class MaskedAttention : public kernel::Kernel {
 protected:
  /// Reads num_heads, unidirectional, mask_filter_value and scale.
  explicit MaskedAttention(kernel::KernelInfo& info);

  double scale(std::size_t head) const;

  /// The bias on the scores that a mask of integers and an attention bias make together: [batch, heads or 1, q_len or
  /// 1, kv_len]. Masks: [batch] lengths, [2 * batch] ends and starts, [3 * batch + 2] lengths and starts, [batch,
  /// kv_len] or [batch, q_len, kv_len] zeros and ones, [batch, 1, most, most] zeros and ones by position.
  kernel::CountedVector<float> bias(kernel::KernelContext& ctx, const tensor::Tensor* mask, const tensor::Tensor* added,
                                    AttentionCall<float>& call) const;

  const microkernels::KernelSet& kernels_;
  std::int64_t heads_;
  bool causal_;

 private:
  void add_mask(const kernel::KernelContext& ctx, const tensor::Tensor& mask, const AttentionCall<float>& call,
                std::size_t heads, std::size_t rows, float* out) const;

  float filter_;
  std::optional<float> scale_;
};

}  // namespace infernode::ops
