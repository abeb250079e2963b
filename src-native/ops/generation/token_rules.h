#pragma once
// What is allowed as the next token, and what is less welcome.

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/kernel.h"
#include "ops/generation/text_model.h"

namespace infernode::ops {

/// Changes scores of the next token, in this order: by what has been said, by words that are left out, by the least
/// length, by temperature, by tokens that are said to be present.
class TokenRules {
 public:
  /// Where inputs of the operator stand; kNone: it has none.
  struct Inputs {
    std::size_t min_length, repetition_penalty, vocab_mask, prefix_vocab_mask, presence_mask;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  TokenRules(const kernel::KernelContext& ctx, const char* op, const Inputs& inputs, std::int64_t no_repeat_ngram_size,
             std::int32_t eos_token);
  void soften(float temperature) { temperature_ = temperature; }
  void discourage(float presence_penalty) { presence_penalty_ = presence_penalty; }

  /// `scores` [rows, vocabulary] of `run`'s next token, each prompt with as many rows; `first`: none is generated yet.
  void apply(const TextRun& run, std::size_t batch, bool first, float* scores) const;

 private:
  void repeat_less(std::span<const std::int32_t> tokens, std::span<float> scores, std::vector<bool>& seen) const;
  void repeat_no_phrase(std::span<const std::int32_t> tokens, std::span<float> scores) const;
  static void shut_out(const tensor::Tensor& mask, std::size_t row, std::span<float> scores);
  void check_mask(const char* name, const tensor::Tensor* mask, std::size_t rows, std::size_t vocabulary) const;

  const kernel::KernelContext& ctx_;
  const char* op_;
  std::int64_t min_length_, phrase_;
  std::int32_t eos_;
  float repetition_, temperature_ = 1, presence_penalty_ = 0;
  const tensor::Tensor *vocab_mask_ = nullptr, *prefix_mask_ = nullptr, *presence_ = nullptr;
};

/// Length of what is generated, the prompt included: input `i`. Throws InvalidArgument where it leaves no room behind
/// `length` tokens.
std::size_t max_length(const kernel::KernelContext& ctx, const char* op, std::size_t i, std::size_t length);

}  // namespace infernode::ops
