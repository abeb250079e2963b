#include "ops/generation/timestamp_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace infernode::ops {
namespace {

constexpr float kShut = std::numeric_limits<float>::lowest();
/// A transcript begins within a second: so many steps of 20 ms.
constexpr std::int64_t kLatestBegin = 50;

/// Tokens [from, to), as far as they exist.
void shut_out(std::span<float> scores, std::int64_t from, std::int64_t to) {
  const auto count = static_cast<std::int64_t>(scores.size());
  for (std::int64_t i = std::max<std::int64_t>(0, from); i < std::min(to, count); ++i)
    scores[static_cast<std::size_t>(i)] = kShut;
}
void shut_out(std::span<float> scores, std::int64_t token) { shut_out(scores, token, token + 1); }

/// The logarithm of the sum of what scores are the logarithms of.
float together(std::span<const float> scores) {
  const float most = *std::ranges::max_element(scores);
  if (most == kShut) return kShut;
  float sum = 0;
  for (const float score : scores) {
    if (score > kShut) sum += std::exp(score - most);
  }
  return std::log(sum) + most;
}

}  // namespace

TimestampRules::TimestampRules(const kernel::KernelInfo& info) {
  const auto token = [&](const char* name) { return info.attributes().get_int(name, -1); };
  first_ = token("beginning_timestamp_token_id");
  no_timestamps_ = token("no_timestamps_token_id");
  start_of_lm_ = token("start_of_lm_token_id");
  start_ = token("decoder_start_token_id");
  translate_ = token("translate_token_id");
  transcribe_ = token("transcribe_token_id");
  eos_ = token("eos_token_id");
}

void TimestampRules::check(const char* op) const {
  if (first_ < 0 || first_ > std::numeric_limits<std::int32_t>::max())
    fail(ErrorCode::InvalidModel, cat(op, ": beginning_timestamp_token_id is ", first_));
}

void TimestampRules::apply(const kernel::KernelContext& ctx, const TextRun& run, float* scores) const {
  const std::size_t n = run.vocabulary();
  ctx.parallel_for(run.rows(), static_cast<double>(n + run.length()),
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     for (std::size_t r = begin; r < end; ++r) apply(run.tokens(r), {scores + r * n, n});
                   });
}

void TimestampRules::apply(std::span<const std::int32_t> tokens, std::span<float> scores) const {
  const auto is_time = [&](std::int32_t token) { return token >= first_; };
  const auto count = static_cast<std::int64_t>(scores.size());
  // Text begins behind the first timestamp; before there is one, with the next token.
  const auto first_time = std::ranges::find_if(tokens, is_time);
  const bool fresh = first_time == tokens.end() || first_time + 1 == tokens.end();
  shut_out(scores, no_timestamps_);
  shut_out(scores, start_of_lm_);
  if (!fresh) {
    for (const std::int64_t token : {start_, translate_, transcribe_}) shut_out(scores, token);
  }
  const bool after_time = !tokens.empty() && is_time(tokens.back());
  const bool paired = fresh || is_time(tokens[tokens.size() - 2]);
  if (after_time && paired) shut_out(scores, first_, count);
  if (after_time && !paired) shut_out(scores, 0, eos_);
  const auto last_time = std::find_if(tokens.rbegin(), tokens.rend(), is_time);
  if (last_time != tokens.rend()) shut_out(scores, first_, *last_time + (after_time && !paired ? 0 : 1));
  if (fresh) shut_out(scores, first_ + kLatestBegin + 1, count);
  if (first_ == 0 || first_ >= count) return;
  const std::span<float> text = scores.first(static_cast<std::size_t>(first_));
  if (together(scores.subspan(text.size())) > *std::ranges::max_element(text)) std::ranges::fill(text, kShut);
}

}  // namespace infernode::ops
