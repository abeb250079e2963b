#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/reduce/reduce.h"
#include "ops/common/reals.h"
#include "ops/generation/beams.h"
#include "ops/generation/timestamp_rules.h"
#include "ops/generation/token_rules.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

enum Input : std::size_t {
  kMaxLength = 1,
  kMinLength,
  kBeams,
  kReturned,
  kLengthPenalty,
  kRepetitionPenalty,
  kVocabMask,
  kPrefixVocabMask,
  kAttentionMask,
  kDecoderIds,
  kLogitsProcessor,
  kCrossHeads,
  kExtraIds,
  kTemperature
};

std::int64_t dim(std::size_t v) { return static_cast<std::int64_t>(v); }

/// com.microsoft's BeamSearch.
class BeamSearch : public kernel::Kernel {
 public:
  explicit BeamSearch(KernelInfo& info) : BeamSearch(info, "BeamSearch", 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    const Tensor* forced = model_.encodes() ? ctx.optional_input(kDecoderIds) : nullptr;
    if (input.rank() < 2 || (forced != nullptr && forced->rank() != 2))
      fail(ErrorCode::ShapeMismatch, cat(op_, ": input_ids is ", input.to_string()));
    prepare(ctx);
    const auto batch = static_cast<std::size_t>(input.dim(0));
    const std::size_t prompt = !model_.encodes()   ? static_cast<std::size_t>(input.dim(1))
                               : forced != nullptr ? static_cast<std::size_t>(forced->dim(1))
                                                   : 1;
    const std::size_t most = max_length(ctx, op_, kMaxLength, prompt);
    const BeamOptions options = options_of(ctx);
    const std::size_t returned = returned_of(ctx, options.beams);
    TokenRules rules(ctx, op_, {kMinLength, kRepetitionPenalty, kVocabMask, kPrefixVocabMask, TokenRules::kNone},
                     phrase_, model_.eos_token());
    const float temperature = scalar_input(ctx, kTemperature, 1.0f);
    if (!(temperature > 0)) fail(ErrorCode::InvalidArgument, cat(op_, ": temperature is ", temperature));
    rules.soften(temperature);
    const Tensor y = ctx.output(0, Shape{input.dim(0), dim(returned), dim(most)});
    std::fill_n(y.mutable_data<std::int32_t>(), y.numel(), model_.pad_token());
    const std::size_t rows = checked_mul(batch, options.beams);
    const kernel::Charge charge(ctx.run(), checked_mul(checked_mul(rows, most), 5 * sizeof(std::int32_t)));
    std::vector<Beams> all(batch, Beams(options));
    TextRun text(ctx, model_);
    if (batch > 0) {
      text.start(input, ctx.optional_input(kAttentionMask), forced, options.beams);
      begun(ctx, text, batch);
      search(ctx, text, rules, most, all);
    } else {
      begun(ctx, text, 0);
      if (ctx.wants_output(2)) ctx.output(2, Shape{dim(most - prompt), 0, dim(options.beams), 0});
    }
    keep(ctx, all, returned, most, y);
  }

 protected:
  BeamSearch(KernelInfo& info, const char* op, std::int64_t model_type)
      : op_(op),
        kernels_(info.kernels()),
        model_(info, op, model_type),
        phrase_(info.attributes().get_int("no_repeat_ngram_size", 0)),
        early_(info.attributes().get_int("early_stopping", 0) != 0) {}

  /// Throws where inputs ask for what there is not.
  virtual void prepare(const KernelContext& ctx) const {
    if (scalar_input(ctx, kLogitsProcessor, std::int64_t{0}) != 0)
      fail(ErrorCode::UnsupportedOperator, cat(op_, " with a logits_processor"));
  }
  /// Sees the logits behind the prompts.
  virtual void begun(KernelContext&, const TextRun&, std::size_t /*batch*/) const {}
  /// Changes the logarithms of the next token's probabilities.
  virtual void process(const KernelContext&, const TextRun&, float* /*scores*/) const {}

  const char* op_;
  const microkernels::KernelSet& kernels_;

 private:
  BeamOptions options_of(const KernelContext& ctx) const {
    const std::int64_t beams = scalar_input(ctx, kBeams, std::int64_t{1});
    constexpr std::int64_t kMost = 1 << 16;
    if (beams < 1 || beams > kMost) fail(ErrorCode::InvalidArgument, cat(op_, ": num_beams is ", beams));
    return {static_cast<std::size_t>(beams), scalar_input(ctx, kLengthPenalty, 1.0f), early_, model_.eos_token(),
            model_.pad_token()};
  }
  std::size_t returned_of(const KernelContext& ctx, std::size_t beams) const {
    const std::int64_t returned = scalar_input(ctx, kReturned, std::int64_t{1});
    if (returned < 1 || returned > dim(beams))
      fail(ErrorCode::InvalidArgument, cat(op_, ": num_return_sequences is ", returned, ", num_beams is ", beams));
    return static_cast<std::size_t>(returned);
  }

  void search(KernelContext& ctx, TextRun& text, const TokenRules& rules, std::size_t most,
              std::vector<Beams>& all) const {
    const std::size_t batch = all.size(), beams = text.rows() / batch, n = text.vocabulary(), prompt = text.length();
    std::vector<float> sums(text.rows(), -1e9f);  // beams of a prompt begin alike: the first alone counts
    for (std::size_t b = 0; b < batch; ++b) sums[b * beams] = 0;
    std::vector<std::size_t> parents(text.rows());
    std::vector<std::int32_t> tokens(text.rows());
    const Tensor scores =
        ctx.wants_output(2) ? ctx.output(2, Shape{dim(most - prompt), dim(batch), dim(beams), dim(n)}) : Tensor();
    const RealOutput<float> store(ctx, kernels_, scores);
    if (scores) std::fill_n(store.data(), scores.numel(), 0.0f);
    while (text.length() < most) {
      const std::size_t step = text.length() - prompt;
      add_probabilities(ctx, text, rules, batch, step == 0, sums);
      if (scores) std::copy_n(text.logits(), text.rows() * n, store + step * text.rows() * n);
      ctx.parallel_for(batch, static_cast<double>(beams * n) * 2, [&](std::size_t begin, std::size_t end, std::size_t) {
        std::vector<Beams::Next> next(beams);
        for (std::size_t b = begin; b < end; ++b) {
          all[b].advance(
              {text.logits() + b * beams * n, beams * n},
              [&](std::size_t beam) { return text.tokens(b * beams + beam); }, next);
          for (std::size_t k = 0; k < beams; ++k) {
            const std::size_t r = b * beams + k;
            sums[r] = next[k].sum, parents[r] = b * beams + next[k].parent, tokens[r] = next[k].token;
          }
        }
      });
      if (std::all_of(all.begin(), all.end(), [](const Beams& b) { return b.done(); })) break;
      text.step(tokens, parents, text.length() + 1 < most);
    }
    for (std::size_t b = 0; b < batch; ++b) {
      all[b].end({sums.data() + b * beams, beams}, [&](std::size_t beam) { return text.tokens(b * beams + beam); });
    }
    store.store();
  }

  /// Turns logits into the sums of log-probabilities of what each beam may go on to say.
  void add_probabilities(const KernelContext& ctx, const TextRun& text, const TokenRules& rules, std::size_t batch,
                         bool first, const std::vector<float>& sums) const {
    const std::size_t n = text.vocabulary();
    float* logits = text.logits();
    ctx.parallel_for(text.rows(), static_cast<double>(n), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) kernels_.reduce.log_softmax(logits + r * n, logits + r * n, n);
    });
    rules.apply(text, batch, first, logits);
    process(ctx, text, logits);
    constexpr auto kAdd = static_cast<std::size_t>(microkernels::BinaryOp::kAdd);
    for (std::size_t r = 0; r < text.rows(); ++r)
      kernels_.elementwise.vector_scalar[kAdd](logits + r * n, &sums[r], logits + r * n, n);
  }

  void keep(KernelContext& ctx, const std::vector<Beams>& all, std::size_t returned, std::size_t most,
            const Tensor& y) const {
    const Tensor scores = ctx.wants_output(1) ? ctx.output(1, Shape{dim(all.size()), dim(returned)}) : Tensor();
    const RealOutput<float> store(ctx, kernels_, scores);
    for (std::size_t b = 0; b < all.size(); ++b) {
      for (std::size_t k = 0; k < returned; ++k) {
        const bool there = k < all[b].ended().size();  // fewer where a prompt is done at once
        if (scores) store[b * returned + k] = there ? all[b].ended()[k].score : 0;
        if (!there) continue;
        const std::vector<std::int32_t>& tokens = all[b].ended()[k].tokens;
        std::copy(tokens.begin(), tokens.end(), y.mutable_data<std::int32_t>() + (b * returned + k) * most);
      }
    }
    store.store();
  }

  TextModel model_;
  std::int64_t phrase_;
  bool early_;
};

/// com.microsoft's WhisperBeamSearch, without the weights of cross attention.
class WhisperBeamSearch final : public BeamSearch {
 public:
  explicit WhisperBeamSearch(KernelInfo& info)
      : BeamSearch(info, "WhisperBeamSearch", 2),
        times_(info),
        silence_(info.attributes().get_int("no_speech_token_id", -1)) {
    if (info.attributes().get_int("model_type", 2) != 2)
      fail(ErrorCode::InvalidModel, cat(op_, ": model_type is ", info.attributes().get_int("model_type")));
    if (info.has_output(kCrossQk) || info.has_input(kExtraIds))
      fail(ErrorCode::UnsupportedOperator, cat(op_, " with cross_qk or extra_decoding_ids"));
  }

 private:
  enum Output : std::size_t { kCrossQk = 3, kSilence };

  static bool timed(const KernelContext& ctx) { return scalar_input(ctx, kLogitsProcessor, std::int64_t{0}) == 1; }

  void prepare(const KernelContext& ctx) const override {
    const std::int64_t processor = scalar_input(ctx, kLogitsProcessor, std::int64_t{0});
    if (processor != 0 && processor != 1)
      fail(ErrorCode::UnsupportedOperator, cat(op_, " with a logits_processor of ", processor));
    if (timed(ctx)) times_.check(op_);
  }

  /// How likely there is no speech: the probability of the token that says so behind the prompt.
  void begun(KernelContext& ctx, const TextRun& text, std::size_t batch) const override {
    if (!ctx.wants_output(kSilence)) return;
    const Tensor y = ctx.output(kSilence, Shape{dim(batch)});
    if (batch == 0) return;
    const std::size_t n = text.vocabulary();
    if (silence_ < 0 || silence_ >= dim(n))
      fail(ErrorCode::InvalidModel, cat(op_, ": no_speech_token_id is ", silence_, " of ", n, " tokens"));
    const RealOutput<float> store(ctx, kernels_, y);
    std::vector<float> row(n);
    for (std::size_t b = 0; b < batch; ++b) {
      kernels_.reduce.log_softmax(text.logits() + b * (text.rows() / batch) * n, row.data(), n);
      store[b] = std::exp(row[static_cast<std::size_t>(silence_)]);
    }
    store.store();
  }

  void process(const KernelContext& ctx, const TextRun& text, float* scores) const override {
    if (timed(ctx)) times_.apply(ctx, text, scores);
  }

  TimestampRules times_;
  std::int64_t silence_;
};

void infer_beam_search(InferContext& ctx) {
  infer_text_model(ctx);
  const DType real = ctx.input_dtype(0) == DType::Float16 ? DType::Float16 : DType::Float32;
  for (std::size_t o : {1, 2, 3, 4}) {
    if (ctx.has_output(o) && ctx.output_type(o).elem == DType::Undefined) ctx.set_output_dtype(o, real);
  }
  ctx.set_output_dtype(0, DType::Int32);
  const graph::SymShape* ids = ctx.input_shape(0);
  if (ids == nullptr || ids->empty()) return;
  const auto number = [&](std::size_t i) { return scalar_contents(ctx, i); };
  ctx.set_output_shape(0, graph::SymShape{(*ids)[0], number(kReturned), number(kMaxLength)});
  if (ctx.has_output(1)) ctx.set_output_shape(1, graph::SymShape{(*ids)[0], number(kReturned)});
  const std::int64_t words = ctx.attributes().get_int("vocab_size", -1);
  if (ctx.has_output(2))
    ctx.set_output_shape(2, graph::SymShape{graph::Dim::unknown(), (*ids)[0], number(kBeams),
                                            words > 0 ? graph::Dim(words) : graph::Dim::unknown()});
}

}  // namespace

void register_beam_search(kernel::OpRegistrar& r) {
  r.op("BeamSearch", "com.microsoft")
      .version(1,
               "input_ids:F, max_length:I, min_length:I?, num_beams:I, num_return_sequences:I, length_penalty:T?, "
               "repetition_penalty:T?, vocab_mask:M?, prefix_vocab_mask:M?, attention_mask:I?, decoder_input_ids:I?, "
               "logits_processor:I? -> sequences:I, sequences_scores:T?, scores:T?; T = float|float16, "
               "F = float|int32|float16, I = int32, M = int32")
      .infer(infer_beam_search)
      .kernel<BeamSearch>();
  r.op("WhisperBeamSearch", "com.microsoft")
      .version(1,
               "input_ids:F, max_length:I, min_length:I?, num_beams:I, num_return_sequences:I, length_penalty:T?, "
               "repetition_penalty:T?, vocab_mask:M?, prefix_vocab_mask:M?, attention_mask:I?, decoder_input_ids:I?, "
               "logits_processor:I?, cross_qk_layer_head:I?, extra_decoding_ids:I?, temperature:T? -> sequences:I, "
               "sequences_scores:T?, scores:T?, cross_qk:V?, non_speech_probs:T?; T = float|float16, "
               "F = float|int32|float16, I = int32, M = int32, V = float")
      .infer(infer_beam_search)
      .kernel<WhisperBeamSearch>();
}

}  // namespace infernode::ops
