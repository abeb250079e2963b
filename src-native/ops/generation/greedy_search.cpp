#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "microkernels/reduce/reduce.h"
#include "ops/generation/token_rules.h"
#include "ops/math/random.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kAttentionMask = 6, kSeed = 8;

/// Tokens of which one is drawn: attributes temperature, top_p and the like of Sampling.
class Draw {
 public:
  explicit Draw(const graph::Attributes& attributes)
      : temperature_(attributes.get_float("temperature", 1)),
        top_p_(attributes.get_float("top_p", 0)),
        filter_(attributes.get_float("filter_value", -1e20f)),
        presence_penalty_(attributes.get_float("presence_penalty", 0)),
        keep_(std::max<std::int64_t>(1, attributes.get_int("min_tokens_to_keep", 0))) {
    if (!(temperature_ > 0)) fail(ErrorCode::InvalidModel, cat("Sampling: temperature is ", temperature_));
    if (!(top_p_ >= 0 && top_p_ <= 1)) fail(ErrorCode::InvalidModel, cat("Sampling: top_p is ", top_p_));
  }
  float temperature() const { return temperature_; }
  float presence_penalty() const { return presence_penalty_; }

  /// Gives the scores of all but the likeliest tokens, whose probabilities together reach top_p, the filter's value.
  void filter(const microkernels::KernelSet& kernels, std::span<float> scores, std::vector<float>& soft,
              std::vector<std::size_t>& order) const {
    if (top_p_ >= 1) return;
    soft.resize(scores.size());
    kernels.reduce.softmax(scores.data(), soft.data(), scores.size());
    order.resize(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t i) { return soft[i] >= 0 ? soft[i] : -1.0f; };  // NaN last
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
    float sum = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (sum >= top_p_ && static_cast<std::int64_t>(i) >= keep_) scores[order[i]] = filter_;
      sum += soft[order[i]];
    }
  }

 private:
  float temperature_, top_p_, filter_, presence_penalty_;
  std::int64_t keep_;
};

/// com.microsoft's GreedySearch, which takes the likeliest token at each step, and Sampling, which draws one.
template <bool Draws>
class GreedySearch final : public kernel::Kernel {
 public:
  explicit GreedySearch(KernelInfo& info)
      : kernels_(info.kernels()),
        model_(info, kName),
        phrase_(info.attributes().get_int("no_repeat_ngram_size", 0)),
        draw_(info.attributes()) {}

  void run(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 2) fail(ErrorCode::ShapeMismatch, cat(kName, ": input_ids is ", input.to_string()));
    const auto batch = static_cast<std::size_t>(input.dim(0));
    const std::size_t prompt = model_.encodes() ? 1 : static_cast<std::size_t>(input.dim(1));
    const std::size_t most = max_length(ctx, kName, 1, prompt);
    TokenRules rules(ctx, kName, {2, 3, 4, 5, Draws ? 7 : TokenRules::kNone}, phrase_, model_.eos_token());
    if (Draws) {
      rules.soften(draw_.temperature());
      rules.discourage(draw_.presence_penalty());
    }
    const Tensor y = ctx.output(0, Shape{input.dim(0), static_cast<std::int64_t>(most)});
    std::fill_n(y.mutable_data<std::int32_t>(), y.numel(), model_.pad_token());
    if (batch == 0) return;
    const kernel::Charge charge(ctx.run(), checked_mul(checked_mul(batch, most), 4 * sizeof(std::int32_t)));
    TextRun text(ctx, model_);
    text.start(input, ctx.optional_input(kAttentionMask), nullptr, 1);
    const Philox random = philox_of(seed(ctx));
    std::vector<bool> done(batch, false);
    std::vector<std::int32_t> tokens(batch);
    for (std::uint64_t step = 0;; ++step) {
      rules.apply(text, batch, step == 0, text.logits());
      if (Draws) keep_likeliest(ctx, text);
      bool all = true;
      for (std::size_t r = 0; r < batch; ++r) {
        const std::span<const float> scores(text.logits() + r * text.vocabulary(), text.vocabulary());
        const auto token = static_cast<std::int32_t>(choose(scores, random.uniform(step * batch + r)));
        if (token == model_.eos_token()) done[r] = true;
        tokens[r] = done[r] ? model_.pad_token() : token;
        all = all && done[r];
      }
      const bool last = all || text.length() + 1 >= most;
      if (last && Draws) keep_scores(ctx, text);
      const std::size_t length = text.length();
      for (std::size_t r = 0; last && r < batch; ++r) {
        std::int32_t* row = y.mutable_data<std::int32_t>() + r * most;
        std::copy_n(text.tokens(r).begin(), length, row);
        row[length] = tokens[r];
      }
      if (last) return;
      text.step(tokens, {}, true);
    }
  }

 private:
  static constexpr const char* kName = Draws ? "Sampling" : "GreedySearch";

  static std::optional<std::uint64_t> seed(const KernelContext& ctx) {
    if (!Draws || !ctx.has_input(kSeed)) return Draws ? std::nullopt : std::optional<std::uint64_t>(0);
    return static_cast<std::uint64_t>(scalar_input(ctx, kSeed, std::int64_t{0}));
  }

  void keep_likeliest(const KernelContext& ctx, const TextRun& text) const {
    const std::size_t n = text.vocabulary();
    ctx.parallel_for(text.rows(), static_cast<double>(n) * 40, [&](std::size_t begin, std::size_t end, std::size_t) {
      std::vector<float> soft;
      std::vector<std::size_t> order;
      for (std::size_t r = begin; r < end; ++r) draw_.filter(kernels_, {text.logits() + r * n, n}, soft, order);
    });
  }

  /// Output filtered_logits: the scores that the last token is drawn from.
  static void keep_scores(KernelContext& ctx, const TextRun& text) {
    if (!ctx.wants_output(1)) return;
    const auto n = static_cast<std::int64_t>(text.vocabulary());
    const Tensor out = ctx.output(1, Shape{static_cast<std::int64_t>(text.rows()), n});
    std::copy_n(text.logits(), out.numel(), out.mutable_data<float>());
  }

  std::size_t choose(std::span<const float> scores, double uniform) const {
    if (!Draws) return kernels_.reduce.arg_max(scores.data(), scores.size(), false);
    std::vector<float> soft(scores.size());
    kernels_.reduce.softmax(scores.data(), soft.data(), scores.size());
    double sum = 0;
    std::size_t likeliest = 0;
    for (std::size_t i = 0; i < soft.size(); ++i) {
      sum += static_cast<double>(soft[i]);
      if (sum > uniform) return i;
      if (soft[i] > soft[likeliest]) likeliest = i;
    }
    return likeliest;  // where rounding, or NaN, leaves none
  }

  const microkernels::KernelSet& kernels_;
  TextModel model_;
  std::int64_t phrase_;
  Draw draw_;
};

void infer_greedy(InferContext& ctx) {
  infer_text_model(ctx);
  ctx.set_output_dtype(0, tensor::DType::Int32);
  if (ctx.has_output(1)) ctx.set_output_dtype(1, tensor::DType::Float32);
  const graph::SymShape* ids = ctx.input_shape(0);
  if (ids == nullptr || ids->size() != 2) return;
  ctx.set_output_shape(0, graph::SymShape{(*ids)[0], scalar_contents(ctx, 1)});
  if (!ctx.has_output(1)) return;
  const std::int64_t words = ctx.attributes().get_int("vocab_size", -1);
  ctx.set_output_shape(1, graph::SymShape{(*ids)[0], words > 0 ? graph::Dim(words) : graph::Dim::unknown()});
}

}  // namespace

void register_greedy_search(kernel::OpRegistrar& r) {
  r.op("GreedySearch", "com.microsoft")
      .version(1,
               "input_ids:I, max_length:I, min_length:I?, repetition_penalty:T?, vocab_mask:I?, prefix_vocab_mask:I?, "
               "attention_mask:I? -> sequences:I; T = float, I = int32")
      .infer(infer_greedy)
      .kernel<GreedySearch<false>>();
  r.op("Sampling", "com.microsoft")
      .version(1,
               "input_ids:I, max_length:I, min_length:I?, repetition_penalty:T?, vocab_mask:I?, prefix_vocab_mask:I?, "
               "attention_mask:I?, presence_mask:I?, seed:I? -> sequences:I, filtered_logits:T?; T = float, I = int32")
      .infer(infer_greedy)
      .nondeterministic()
      .kernel<GreedySearch<true>>();
}

}  // namespace infernode::ops
