#pragma once
// The subgraphs of operators that generate text, and their run over growing sequences.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/infer_context.h"
#include "kernel/kernel.h"

namespace infernode::ops {

/// A decoder (attribute `decoder`, for the prompt `init_decoder` where there is one), alone or behind an `encoder`.
/// Values of subgraphs are told apart by their names; caches go in as past<name> and come out as present<name>.
class TextModel {
 public:
  /// `model_type`: where the attribute is absent.
  TextModel(kernel::KernelInfo& info, const char* op, std::int64_t model_type = 0);
  bool encodes() const { return encoder_.runner != nullptr; }
  std::int32_t pad_token() const { return pad_token_; }
  std::int32_t eos_token() const { return eos_token_; }

 private:
  friend class TextRun;
  struct Parameter {
    std::string name;
    graph::ValueType type;
  };
  struct Part {
    std::unique_ptr<kernel::SubgraphRunner> runner;
    std::vector<Parameter> inputs;
    std::vector<std::string> outputs;
    bool gives(std::string_view name) const;
  };
  Part part(kernel::KernelInfo& info, const char* attribute) const;

  const char* op_;
  const microkernels::KernelSet& kernels_;
  std::int32_t start_token_, pad_token_, eos_token_;
  std::int64_t vocab_size_;
  bool whole_ = true;  ///< the decoder is given all tokens at each step, not the last one
  Part decoder_, first_, encoder_;
};

/// One run of a model over rows of tokens, of which each stands for a prompt or for one of its continuations.
class TextRun {
 public:
  TextRun(kernel::KernelContext& ctx, const TextModel& model) : ctx_(ctx), m_(model) {}

  /// Reads the prompts: input_ids [batch, length] or, of a model that encodes, what the encoder takes, and the
  /// decoder's first tokens. `mask` [batch, length] may be null. Every prompt then has `copies` rows.
  void start(const tensor::Tensor& input, const tensor::Tensor* mask, const tensor::Tensor* decoder_ids,
             std::size_t copies);
  /// Adds a token to each row, which continues row `parents[row]` of the same prompt; empty: itself. `more`: logits of
  /// the token behind it are wanted.
  void step(std::span<const std::int32_t> tokens, std::span<const std::size_t> parents, bool more);

  std::size_t rows() const { return rows_; }
  std::size_t length() const { return rows_ == 0 ? first_length_ : tokens_.size() / rows_; }
  std::size_t vocabulary() const { return vocabulary_; }
  /// The tokens of a row so far.
  std::span<const std::int32_t> tokens(std::size_t row) const { return {tokens_.data() + row * length(), length()}; }
  /// Of the next token: [rows, vocabulary].
  float* logits() const { return logits_.mutable_data<float>(); }

 private:
  void run(const TextModel::Part& part, const tensor::Tensor* input, std::size_t fresh, std::size_t copies);
  tensor::Value feed(const TextModel::Parameter& parameter, const tensor::Tensor* input, std::size_t fresh) const;
  tensor::Tensor integers(tensor::DType type, std::span<const std::int32_t> values, std::size_t last) const;
  tensor::Tensor empty_cache(const TextModel::Parameter& parameter) const;
  tensor::Tensor repeated(const tensor::Tensor& t, std::size_t axis, std::size_t copies) const;
  tensor::Tensor picked(const tensor::Tensor& t, std::size_t axis, std::span<const std::size_t> rows) const;
  void keep_logits(const tensor::Tensor& logits, std::size_t copies);
  void spread(std::size_t copies);

  kernel::KernelContext& ctx_;
  const TextModel& m_;
  std::size_t rows_ = 0, vocabulary_ = 0, first_length_ = 0;
  std::vector<std::int32_t> tokens_, positions_, mask_, encoder_mask_;  ///< [rows, any]
  std::vector<std::pair<std::string, tensor::Tensor>> caches_;          ///< by what follows "past"
  tensor::Tensor hidden_, logits_;
};

/// Element 0 of input `i` of a node, an integer; `fallback` where it is absent.
std::int64_t scalar_input(const kernel::KernelContext& ctx, std::size_t i, std::int64_t fallback);
/// The same of a floating type.
float scalar_input(const kernel::KernelContext& ctx, std::size_t i, float fallback);
/// A size that input `i` gives; unknown where the input is, or gives none.
graph::Dim scalar_contents(const kernel::InferContext& ctx, std::size_t i);
/// Infers the subgraphs for inputs as they declare them.
void infer_text_model(kernel::InferContext& ctx);

}  // namespace infernode::ops
