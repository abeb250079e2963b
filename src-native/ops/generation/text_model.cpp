#include "ops/generation/text_model.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "graph/graph.h"

namespace infernode::ops {
namespace {

constexpr const char* kParts[] = {"decoder", "init_decoder", "encoder"};

std::int32_t token_attribute(const kernel::KernelInfo& info, const char* name, const char* op, std::int64_t fallback) {
  const std::int64_t token = info.attributes().get_int(name, fallback);
  if (token < std::numeric_limits<std::int32_t>::min() || token > std::numeric_limits<std::int32_t>::max())
    fail(ErrorCode::InvalidModel, cat(op, ": ", name, " is ", token));
  return static_cast<std::int32_t>(token);
}

}  // namespace

bool TextModel::Part::gives(std::string_view name) const {
  return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
}

TextModel::TextModel(kernel::KernelInfo& info, const char* op, std::int64_t model_type)
    : op_(op),
      kernels_(info.kernels()),
      start_token_(token_attribute(info, "decoder_start_token_id", op, -1)),
      pad_token_(token_attribute(info, "pad_token_id", op, 0)),
      eos_token_(token_attribute(info, "eos_token_id", op, 0)),
      vocab_size_(info.attributes().get_int("vocab_size", -1)) {
  for (const char* name : {"pad_token_id", "eos_token_id"}) info.attributes().get_int(name);  // which are required
  const std::int64_t type = info.attributes().get_int("model_type", model_type);
  if (type < 0 || type > 2) fail(ErrorCode::InvalidModel, cat(op, ": model_type is ", type));
  decoder_ = part(info, "decoder");
  if (info.attributes().has("init_decoder")) first_ = part(info, "init_decoder");
  if (type != 0) encoder_ = part(info, "encoder");
  const Part& prompt = encodes() && encoder_.gives("logits") ? encoder_ : first_.runner ? first_ : decoder_;
  if (!decoder_.gives("logits") || !prompt.gives("logits"))
    fail(ErrorCode::InvalidModel, cat(op, ": the decoder has no output 'logits'"));
  bool caches = false, one = !encodes();  // behind an encoder a decoder says by its dims that it takes one token
  for (const Parameter& input : decoder_.inputs) {
    const auto& shape = input.type.shape;
    if (input.name == "input_ids" && shape && shape->size() == 2 && (*shape)[1] == graph::Dim(1)) one = true;
    if (!input.name.starts_with("past")) continue;
    caches = true;
    const std::string present = "present" + input.name.substr(4);
    const bool made = decoder_.gives(present) && (&prompt == &decoder_ || prompt.gives(present));
    if (!made && !(encodes() && encoder_.gives(present)))
      fail(ErrorCode::InvalidModel, cat(op, ": nothing gives '", present, "' for the decoder's '", input.name, "'"));
  }
  whole_ = !caches || !one;
}

TextModel::Part TextModel::part(kernel::KernelInfo& info, const char* attribute) const {
  constexpr const char* kKnown[] = {"input_ids",         "position_ids",      "attention_mask",
                                    "encoder_input_ids", "decoder_input_ids", "encoder_hidden_states",
                                    "audio_features",    "input_features",    "encoder_attention_mask"};
  Part out;
  out.runner = info.subgraph(attribute);
  const std::shared_ptr<graph::Graph> graph = info.attributes().get_graph(attribute);
  for (const graph::ValueId id : graph->inputs()) out.inputs.push_back({graph->value(id).name, graph->value(id).type});
  for (const graph::ValueId id : graph->outputs()) out.outputs.push_back(graph->value(id).name);
  if (out.inputs.size() != out.runner->input_count())
    fail(ErrorCode::InvalidModel, cat(op_, ": inputs of ", attribute, " have initializers"));
  for (const Parameter& input : out.inputs) {
    const bool cache = input.name.starts_with("past") &&
                       (input.type.elem == tensor::DType::Float32 || input.type.elem == tensor::DType::Float16 ||
                        input.type.elem == tensor::DType::BFloat16);
    const bool known = std::find(std::begin(kKnown), std::end(kKnown), input.name) != std::end(kKnown);
    if (!cache && !known)
      fail(ErrorCode::UnsupportedOperator,
           cat(op_, ": ", attribute, " takes '", input.name, "', as decoders do whose caches keep their size"));
  }
  return out;
}

std::int64_t scalar_input(const kernel::KernelContext& ctx, std::size_t i, std::int64_t fallback) {
  const tensor::Tensor* t = ctx.optional_input(i);
  if (t == nullptr) return fallback;
  if (t->numel() != 1) fail(ErrorCode::ShapeMismatch, cat("input ", i, " is ", t->to_string(), ", not one number"));
  return tensor::to_int64_vector(*t)[0];
}

float scalar_input(const kernel::KernelContext& ctx, std::size_t i, float fallback) {
  const tensor::Tensor* t = ctx.optional_input(i);
  if (t == nullptr) return fallback;
  if (t->numel() != 1) fail(ErrorCode::ShapeMismatch, cat("input ", i, " is ", t->to_string(), ", not one number"));
  return tensor::to_float_vector(*t)[0];
}

graph::Dim scalar_contents(const kernel::InferContext& ctx, std::size_t i) {
  const auto contents = ctx.input_contents(i);
  if (!contents || contents->size() != 1) return graph::Dim::unknown();
  const graph::Dim& dim = contents->front();
  return dim.known() && dim.value() < 1 ? graph::Dim::unknown() : dim;
}

void infer_text_model(kernel::InferContext& ctx) {
  for (const char* name : kParts) {
    const std::shared_ptr<graph::Graph> graph = ctx.attributes().get_graph(name);
    if (graph == nullptr) continue;
    std::vector<graph::ValueType> types;
    for (const graph::ValueId id : graph->inputs()) types.push_back(graph->value(id).type);
    ctx.infer_subgraph(name, types);
  }
}

}  // namespace infernode::ops
