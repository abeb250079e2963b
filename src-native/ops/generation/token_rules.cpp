#include "ops/generation/token_rules.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace infernode::ops {

using tensor::Tensor;

namespace {

constexpr float kShut = std::numeric_limits<float>::lowest();

bool within(std::int32_t token, std::span<const float> scores) {
  return token >= 0 && static_cast<std::size_t>(token) < scores.size();
}

}  // namespace

TokenRules::TokenRules(const kernel::KernelContext& ctx, const char* op, const Inputs& inputs,
                       std::int64_t no_repeat_ngram_size, std::int32_t eos_token)
    : ctx_(ctx),
      op_(op),
      min_length_(scalar_input(ctx, inputs.min_length, std::int64_t{0})),
      phrase_(no_repeat_ngram_size),
      eos_(eos_token),
      repetition_(scalar_input(ctx, inputs.repetition_penalty, 1.0f)),
      vocab_mask_(ctx.optional_input(inputs.vocab_mask)),
      prefix_mask_(ctx.optional_input(inputs.prefix_vocab_mask)),
      presence_(ctx.optional_input(inputs.presence_mask)) {
  if (!(repetition_ > 0)) fail(ErrorCode::InvalidArgument, cat(op, ": repetition_penalty is ", repetition_));
  if (min_length_ < 0) fail(ErrorCode::InvalidArgument, cat(op, ": min_length is ", min_length_));
}

void TokenRules::check_mask(const char* name, const Tensor* mask, std::size_t rows, std::size_t vocabulary) const {
  if (mask == nullptr) return;
  const auto count = static_cast<std::int64_t>(vocabulary);
  const bool fits =
      rows == 0 ? mask->numel() == count : mask->shape() == tensor::Shape{static_cast<std::int64_t>(rows), count};
  if (!fits)
    fail(ErrorCode::ShapeMismatch, cat(op_, ": ", name, " is ", mask->to_string(), " for ", vocabulary, " tokens"));
}

void TokenRules::apply(const TextRun& run, std::size_t batch, bool first, float* scores) const {
  const std::size_t n = run.vocabulary(), copies = batch == 0 ? 1 : run.rows() / batch;
  check_mask("vocab_mask", vocab_mask_, 0, n);
  check_mask("prefix_vocab_mask", prefix_mask_, batch, n);
  check_mask("presence_mask", presence_, batch, n);
  const auto cost =
      static_cast<double>(n + run.length() * static_cast<std::size_t>(std::max<std::int64_t>(1, phrase_)));
  ctx_.parallel_for(run.rows(), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    std::vector<bool> seen;
    for (std::size_t r = begin; r < end; ++r) {
      const std::span<float> row(scores + r * n, n);
      const std::span<const std::int32_t> tokens = run.tokens(r);
      if (repetition_ != 1) repeat_less(tokens, row, seen);
      if (phrase_ > 0) repeat_no_phrase(tokens, row);
      if (vocab_mask_ != nullptr) shut_out(*vocab_mask_, 0, row);
      if (prefix_mask_ != nullptr && first) shut_out(*prefix_mask_, r / copies, row);
      if (within(eos_, row) && static_cast<std::int64_t>(tokens.size()) < min_length_)
        row[static_cast<std::size_t>(eos_)] = kShut;
      if (temperature_ != 1) {
        for (float& score : row) score /= temperature_;
      }
      if (presence_ == nullptr || presence_penalty_ == 0) continue;
      const std::int32_t* present = presence_->data<std::int32_t>() + r / copies * n;
      for (std::size_t i = 0; i < n; ++i) row[i] -= static_cast<float>(present[i]) * presence_penalty_;
    }
  });
}

/// Divides what speaks for each token that has been said, and multiplies what speaks against it.
void TokenRules::repeat_less(std::span<const std::int32_t> tokens, std::span<float> scores,
                             std::vector<bool>& seen) const {
  seen.assign(scores.size(), false);
  for (const std::int32_t token : tokens) {
    if (!within(token, scores) || seen[static_cast<std::size_t>(token)]) continue;
    seen[static_cast<std::size_t>(token)] = true;
    float& score = scores[static_cast<std::size_t>(token)];
    score = score < 0 ? score * repetition_ : score / repetition_;
  }
}

/// Shuts out tokens with which the last `phrase_` tokens would have been said before.
void TokenRules::repeat_no_phrase(std::span<const std::int32_t> tokens, std::span<float> scores) const {
  if (phrase_ > static_cast<std::int64_t>(tokens.size())) return;
  const auto before = static_cast<std::size_t>(phrase_) - 1;
  const std::span<const std::int32_t> last = tokens.last(before);
  for (std::size_t i = 0; i + before < tokens.size(); ++i) {
    const std::int32_t token = tokens[i + before];
    if (within(token, scores) && std::equal(last.begin(), last.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i)))
      scores[static_cast<std::size_t>(token)] = kShut;
  }
}

void TokenRules::shut_out(const Tensor& mask, std::size_t row, std::span<float> scores) {
  const std::int32_t* allowed = mask.data<std::int32_t>() + row * scores.size();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (allowed[i] == 0) scores[i] = kShut;
  }
}

std::size_t max_length(const kernel::KernelContext& ctx, const char* op, std::size_t i, std::size_t length) {
  const std::int64_t most = scalar_input(ctx, i, std::int64_t{0});
  if (most <= static_cast<std::int64_t>(length) || most > std::numeric_limits<std::int32_t>::max())
    fail(ErrorCode::InvalidArgument, cat(op, ": max_length is ", most, ", the prompt has ", length, " tokens"));
  return static_cast<std::size_t>(most);
}

}  // namespace infernode::ops
