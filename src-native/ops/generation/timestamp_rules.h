#pragma once
// Which tokens may follow in a transcript of speech that says when things are said, as Whisper writes it.

#include <cstdint>
#include <span>

#include "kernel/kernel.h"
#include "ops/generation/text_model.h"

namespace infernode::ops {

/// Timestamps are the tokens from `beginning_timestamp_token_id` on. They stand in pairs, the end of a piece and the
/// beginning of the next, but for the first one and the one in front of the end, and never go back.
class TimestampRules {
 public:
  /// Reads the attributes; a token that is not given does not exist.
  explicit TimestampRules(const kernel::KernelInfo& info);

  /// Throws InvalidModel where the first timestamp is not known.
  void check(const char* op) const;
  /// `scores` [rows, vocabulary] of `run`'s next token are logarithms of probabilities.
  void apply(const kernel::KernelContext& ctx, const TextRun& run, float* scores) const;

 private:
  void apply(std::span<const std::int32_t> tokens, std::span<float> scores) const;
  std::int64_t first_, no_timestamps_, start_of_lm_, start_, translate_, transcribe_, eos_;
};

}  // namespace infernode::ops
