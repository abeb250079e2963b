#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/reduce/reduce.h"
#include "ops/common/reals.h"
#include "ops/generation/beams.h"
#include "ops/generation/token_rules.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr const char* kName = "BeamSearch";
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
  kLogitsProcessor
};

std::int64_t dim(std::size_t v) { return static_cast<std::int64_t>(v); }

/// com.microsoft's BeamSearch.
class BeamSearch final : public kernel::Kernel {
 public:
  explicit BeamSearch(KernelInfo& info)
      : kernels_(info.kernels()),
        model_(info, kName),
        phrase_(info.attributes().get_int("no_repeat_ngram_size", 0)),
        early_(info.attributes().get_int("early_stopping", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    const Tensor* forced = model_.encodes() ? ctx.optional_input(kDecoderIds) : nullptr;
    if (input.rank() < 2 || (forced != nullptr && forced->rank() != 2))
      fail(ErrorCode::ShapeMismatch, cat(kName, ": input_ids is ", input.to_string()));
    if (scalar_input(ctx, kLogitsProcessor, std::int64_t{0}) != 0)
      fail(ErrorCode::UnsupportedOperator, cat(kName, " with a logits_processor"));
    const auto batch = static_cast<std::size_t>(input.dim(0));
    const std::size_t prompt = !model_.encodes()   ? static_cast<std::size_t>(input.dim(1))
                               : forced != nullptr ? static_cast<std::size_t>(forced->dim(1))
                                                   : 1;
    const std::size_t most = max_length(ctx, kName, kMaxLength, prompt);
    const BeamOptions options = options_of(ctx);
    const std::size_t returned = returned_of(ctx, options.beams);
    const TokenRules rules(ctx, kName,
                           {kMinLength, kRepetitionPenalty, kVocabMask, kPrefixVocabMask, TokenRules::kNone}, phrase_,
                           model_.eos_token());
    const Tensor y = ctx.output(0, Shape{input.dim(0), dim(returned), dim(most)});
    std::fill_n(y.mutable_data<std::int32_t>(), y.numel(), model_.pad_token());
    const std::size_t rows = checked_mul(batch, options.beams);
    const kernel::Charge charge(ctx.run(), checked_mul(checked_mul(rows, most), 5 * sizeof(std::int32_t)));
    std::vector<Beams> all(batch, Beams(options));
    TextRun text(ctx, model_);
    if (batch > 0) {
      text.start(input, ctx.optional_input(kAttentionMask), forced, options.beams);
      search(ctx, text, rules, most, all);
    } else if (ctx.wants_output(2)) {
      ctx.output(2, Shape{dim(most - prompt), 0, dim(options.beams), 0});
    }
    keep(ctx, all, returned, most, y);
  }

 private:
  BeamOptions options_of(const KernelContext& ctx) const {
    const std::int64_t beams = scalar_input(ctx, kBeams, std::int64_t{1});
    constexpr std::int64_t kMost = 1 << 16;
    if (beams < 1 || beams > kMost) fail(ErrorCode::InvalidArgument, cat(kName, ": num_beams is ", beams));
    return {static_cast<std::size_t>(beams), scalar_input(ctx, kLengthPenalty, 1.0f), early_, model_.eos_token(),
            model_.pad_token()};
  }
  static std::size_t returned_of(const KernelContext& ctx, std::size_t beams) {
    const std::int64_t returned = scalar_input(ctx, kReturned, std::int64_t{1});
    if (returned < 1 || returned > dim(beams))
      fail(ErrorCode::InvalidArgument, cat(kName, ": num_return_sequences is ", returned, ", num_beams is ", beams));
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

  const microkernels::KernelSet& kernels_;
  TextModel model_;
  std::int64_t phrase_;
  bool early_;
};

void infer_beam_search(InferContext& ctx) {
  infer_text_model(ctx);
  const DType real = ctx.input_dtype(0) == DType::Float16 ? DType::Float16 : DType::Float32;
  for (std::size_t o : {1, 2}) {
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
}

}  // namespace infernode::ops
