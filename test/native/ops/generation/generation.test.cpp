// Operators that generate text: answers of onnxruntime (test/fixtures/contrib-generation.txt, written by
// test/generators/contrib/generation.py), and inputs that do not fit.

#include <algorithm>
#include <cmath>

#include "ops/looks/looks.h"
#include "ops/written_cases.h"

namespace infernode::test {
namespace {

/// A decoder whose logits are a table's row for the last token; its cache holds nothing of use.
const std::string kDecoder =
    "decoder = g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,1] past_0) "
    "=> "
    "(float[b,s,4] logits, float[2,b,1,p,1] present_0) "
    "<float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) "
    "present_0 = Identity(past_0) }";

/// What hears nothing, and the same table behind it.
const std::string kSpeech =
    "encoder = e (float[b,c,s] encoder_input_ids) => (float[b,s,c] encoder_hidden_states) { encoder_hidden_states = "
    "Transpose<perm = [0, 2, 1]>(encoder_input_ids) }, decoder = g (int32[b,d] input_ids) => (float[b,d,4] logits) "
    "<float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) }, "
    "decoder_start_token_id = 2";

const EdgeCases edges(R"(
  GreedySearch | no prompts | 17 | 1e-05
  y0 = com.microsoft.GreedySearch<decoder = g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,1] past_0) => (float[b,s,4] logits, float[2,b,1,p,1] present_0) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) present_0 = Identity(past_0) }, eos_token_id = 1, pad_token_id = 0>(x0, x1)
  int32[0,2] x0 = {}, int32[1] x1 = {4}
  int32[0,4] y0 = {}

  GreedySearch | rank 0 | 17 | 1e-05
  y0 = com.microsoft.GreedySearch<decoder = g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,1] past_0) => (float[b,s,4] logits, float[2,b,1,p,1] present_0) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) present_0 = Identity(past_0) }, eos_token_id = 1, pad_token_id = 0>(x0, x1)
  int32 x0 = {1}, int32[1] x1 = {4}
  refused

  Sampling | no prompts | 17 | 1e-05
  y0 = com.microsoft.Sampling<decoder = g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,1] past_0) => (float[b,s,4] logits, float[2,b,1,p,1] present_0) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) present_0 = Identity(past_0) }, eos_token_id = 1, pad_token_id = 0, top_p = 0.5>(x0, x1)
  int32[0,2] x0 = {}, int32[1] x1 = {4}
  int32[0,4] y0 = {}

  Sampling | rank 0 | 17 | 1e-05
  y0 = com.microsoft.Sampling<decoder = g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,1] past_0) => (float[b,s,4] logits, float[2,b,1,p,1] present_0) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) present_0 = Identity(past_0) }, eos_token_id = 1, pad_token_id = 0>(x0, x1)
  int32 x0 = {1}, int32[1] x1 = {4}
  refused

  BeamSearch | no prompts | 17 | 1e-05
  y0, y1 = com.microsoft.BeamSearch<decoder = g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,1] past_0) => (float[b,s,4] logits, float[2,b,1,p,1] present_0) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) present_0 = Identity(past_0) }, eos_token_id = 1, pad_token_id = 0>(x0, x1, , x3, x4)
  int32[0,2] x0 = {}, int32[1] x1 = {4}, int32[1] x3 = {2}, int32[1] x4 = {1}
  int32[0,1,4] y0 = {}, float[0,1] y1 = {}

  BeamSearch | rank 0 | 17 | 1e-05
  y0 = com.microsoft.BeamSearch<decoder = g (int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,1] past_0) => (float[b,s,4] logits, float[2,b,1,p,1] present_0) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) present_0 = Identity(past_0) }, eos_token_id = 1, pad_token_id = 0>(x0, x1, , x3, x4)
  int32 x0 = {1}, int32[1] x1 = {4}, int32[1] x3 = {2}, int32[1] x4 = {1}
  refused

  WhisperBeamSearch | no prompts | 17 | 1e-05
  y0, y1, , , y4 = com.microsoft.WhisperBeamSearch<encoder = e (float[b,c,s] encoder_input_ids) => (float[b,s,c] encoder_hidden_states) { encoder_hidden_states = Transpose<perm = [0, 2, 1]>(encoder_input_ids) }, decoder = g (int32[b,d] input_ids) => (float[b,d,4] logits) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) }, decoder_start_token_id = 2, eos_token_id = 1, pad_token_id = 0, no_speech_token_id = 3>(x0, x1, , x3, x4)
  float[0,2,3] x0 = {}, int32[1] x1 = {4}, int32[1] x3 = {2}, int32[1] x4 = {1}
  int32[0,1,4] y0 = {}, float[0,1] y1 = {}, float[0] y4 = {}

  WhisperBeamSearch | rank 0 | 17 | 1e-05
  y0 = com.microsoft.WhisperBeamSearch<encoder = e (float[b,c,s] encoder_input_ids) => (float[b,s,c] encoder_hidden_states) { encoder_hidden_states = Transpose<perm = [0, 2, 1]>(encoder_input_ids) }, decoder = g (int32[b,d] input_ids) => (float[b,d,4] logits) <float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 0, 1, 5, 0, 2, 4, 0, 3, 1}> { logits = Gather(E, input_ids) }, decoder_start_token_id = 2, eos_token_id = 1, pad_token_id = 0>(x0, x1, , x3, x4)
  float x0 = {1}, int32[1] x1 = {4}, int32[1] x3 = {2}, int32[1] x4 = {1}
  refused
)");

const std::string kTokens = ", eos_token_id = 1, pad_token_id = 0";
const Value kNone;

void call(const char* op, const std::string& attributes, const std::vector<Value>& inputs, ErrorCode code,
          const char* what) {
  refuses(op, attributes.c_str(), inputs, code, what, "Y");
}

TEST_CASE("Operators that generate text answer as onnxruntime does") { check_cases("contrib-generation.txt", 34); }

TEST_CASE("Generation refuses lengths, beams and masks that do not fit") {
  const Tensor ids = i32({1, 2}, {2, 3}), five = i32({1}, {5}), two = i32({1}, {2}), one = i32({1}, {1});
  const std::string plain = kDecoder + kTokens;
  const auto bad = ErrorCode::InvalidArgument, shape = ErrorCode::ShapeMismatch, model = ErrorCode::InvalidModel;
  call("GreedySearch", plain, {ids, two}, bad, "max_length is 2");
  call("GreedySearch", plain, {ids, i32({1}, {-1})}, bad, "max_length is -1");
  call("GreedySearch", plain, {ids, i32({2}, {5, 5})}, shape, "not one number");
  call("GreedySearch", plain, {i32({1, 0}, {}), five}, shape, "no tokens");
  call("GreedySearch", plain, {ids, five, i32({1}, {-1})}, bad, "min_length is -1");
  call("GreedySearch", plain, {ids, five, kNone, f32({1}, {0})}, bad, "repetition_penalty is 0");
  call("GreedySearch", plain, {ids, five, kNone, kNone, one}, shape, "vocab_mask");
  call("GreedySearch", plain, {ids, five, kNone, kNone, kNone, i32({4}, {1, 1, 1, 1})}, shape, "prefix_vocab_mask");
  call("GreedySearch", plain, {ids, five, kNone, kNone, kNone, kNone, i32({1, 3}, {1, 1, 1})}, shape, "attention_mask");
  call("GreedySearch", plain + ", vocab_size = 5", {ids, five}, model, "vocab_size is 5");
  call("GreedySearch", plain + ", model_type = 3", {ids, five}, model, "model_type is 3");
  call("GreedySearch", plain + ", model_type = 1", {ids, five}, model, "encoder");
  call("GreedySearch", kDecoder, {ids, five}, model, "pad_token_id");
  call("Sampling", plain + ", temperature = 0.0", {ids, five}, model, "temperature is 0");
  call("Sampling", plain + ", top_p = 1.5", {ids, five}, model, "top_p is 1.5");
  call("BeamSearch", plain, {ids, five, kNone, i32({1}, {0}), one}, bad, "num_beams is 0");
  call("BeamSearch", plain, {ids, five, kNone, one, two}, bad, "num_return_sequences is 2");
  call("BeamSearch", plain, {ids, two, kNone, two, one}, bad, "max_length is 2");
  std::vector<Value> timestamps(12);
  timestamps[0] = ids, timestamps[1] = five, timestamps[3] = two, timestamps[4] = one, timestamps[11] = one;
  call("BeamSearch", plain, timestamps, ErrorCode::UnsupportedOperator, "logits_processor");
}

TEST_CASE("WhisperBeamSearch says how likely there is no speech") {
  const double all = std::exp(1) + std::exp(5) + std::exp(0) + std::exp(2);  // row 2 of the decoder
  check_op(
      cat("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (float[b,c,s] X, int32[1] L, int32[1] "
          "N) => (Y, P) { Y, , , , P = com.microsoft.WhisperBeamSearch<",
          kSpeech, kTokens, ", no_speech_token_id = 3>(X, L, , N, N) }"),
      17, {f32({1, 1, 1}, {1}), i32({1}, {3}), i32({1}, {1})},
      {i32({1, 1, 3}, {2, 0, 0}), f32({1}, {static_cast<float>(std::exp(2) / all)})});
}

TEST_CASE("WhisperBeamSearch refuses what it lacks and tokens that there are not") {
  const Tensor sound = f32({1, 1, 1}, {1}), five = i32({1}, {5}), one = i32({1}, {1});
  const std::string plain = kSpeech + kTokens;
  std::vector<Value> inputs(15);
  inputs[0] = sound, inputs[1] = five, inputs[3] = one, inputs[4] = one;
  const auto with = [&](std::size_t i, const Value& value) {
    std::vector<Value> more = inputs;
    more[i] = value;
    return more;
  };
  call("WhisperBeamSearch", plain, with(11, i32({1}, {2})), ErrorCode::UnsupportedOperator, "logits_processor of 2");
  call("WhisperBeamSearch", plain, with(11, one), ErrorCode::InvalidModel, "beginning_timestamp_token_id is -1");
  call("WhisperBeamSearch", plain, with(13, i32({1, 1}, {1})), ErrorCode::UnsupportedOperator, "extra_decoding_ids");
  call("WhisperBeamSearch", plain, with(14, f32({1}, {0})), ErrorCode::InvalidArgument, "temperature is 0");
  call("WhisperBeamSearch", plain + ", model_type = 1", inputs, ErrorCode::InvalidModel, "model_type is 1");
}

TEST_CASE("Generation refuses subgraphs that it cannot feed") {
  const Tensor ids = i32({1, 2}, {2, 3}), five = i32({1}, {5});
  const auto decoder = [&](const char* inputs, const char* outputs, const char* body, ErrorCode code,
                           const char* what) {
    call("GreedySearch",
         cat("decoder = g (", inputs, ") => (", outputs,
             ") <float[4,4] E = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5}> { ", body, " }", kTokens),
         {ids, five}, code, what);
  };
  const char* logits = "logits = Gather(E, input_ids)";
  decoder("int32[b,s] input_ids, int32[1] past_sequence_length", "float[b,s,4] logits", logits,
          ErrorCode::UnsupportedOperator, "past_sequence_length");
  decoder("int32[b,s] input_ids", "float[b,s,4] scores", "scores = Gather(E, input_ids)", ErrorCode::InvalidModel,
          "no output 'logits'");
  decoder("int32[b,s] input_ids, float[2,b,1,p,1] past_0", "float[b,s,4] logits", logits, ErrorCode::InvalidModel,
          "nothing gives 'present_0'");
  decoder("int32[b,s] input_ids, float[2,b,h,p,1] past_0", "float[b,s,4] logits, float[2,b,h,p,1] present_0",
          "logits = Gather(E, input_ids) present_0 = Identity(past_0)", ErrorCode::InvalidModel, "must be a number");
  decoder("int32[b,s] input_ids", "float[b,4] logits",
          "logits = ReduceMax<axes = [1], keepdims = 0>(x) x = Gather(E, input_ids)", ErrorCode::ShapeMismatch,
          "logits are");
}

TEST_CASE("Decoders without caches are given all tokens") {
  const std::string node =
      cat("com.microsoft.GreedySearch<decoder = g (int32[b,s] input_ids) => (float[b,s,4] logits) "
          "<float[4,4] E = {0, 1, 3, 2, 0, 0, 0, 9, 1, 5, 0, 2, 4, 0, 3, 1}> "
          "{ logits = Gather(E, input_ids) }, eos_token_id = -1, pad_token_id = 0>(X, L)");
  check_op(cat("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (int32[b,s] X, int32[1] L) => (Y) "
               "{ Y = ",
               node, " }"),
           17, {i32({2, 1}, {1, 2}), i32({1}, {5})}, {i32({2, 5}, {1, 3, 0, 2, 1, 2, 1, 3, 0, 2})});
}

TEST_CASE("vocab_size leaves out what logits hold behind it") {
  check_op(
      cat("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (int32[b,s] X, int32[1] L) => (Y) { Y = "
          "com.microsoft.GreedySearch<",
          kDecoder, ", eos_token_id = -1, pad_token_id = 0, vocab_size = 3>(X, L) }"),
      17, {i32({2, 1}, {0, 3}), i32({1}, {4})}, {i32({2, 4}, {0, 2, 1, 0, 3, 0, 2, 1})});
}

TEST_CASE("Sampling draws as often as probabilities say, and the same for a seed") {
  const auto draw = [&](std::int32_t seed) {
    const std::string text = cat(
        "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (int32[b,s] X, int32[1] L, int32[1] S) => "
        "(Y, Z) { Y, Z = com.microsoft.Sampling<decoder = g (int32[b,s] input_ids) => (float[b,s,4] logits) "
        "<float[4] E = {0, 1.0986123, -9, 0}, int64[3] d = {0, 0, 1}> { u = Unsqueeze(input_ids, t) c = Cast<to = "
        "1>(u) "
        "o = Mul(c, z) logits = Add(o, E) t = Constant<value_ints = [2]>() z = Constant<value_float = 0.0>() }, "
        "eos_token_id = -1, pad_token_id = 0, top_p = 0.9>(X, L, , , , , , , S) }");
    return run_op(text, 17, {iota(DType::Int32, Shape{2000, 1}, 0, 0), i32({1}, {2}), i32({1}, {seed})});
  };
  const std::vector<Value> first = draw(3);
  const Tensor tokens = first[0].tensor();
  std::size_t counts[4] = {};
  for (std::int64_t i = 0; i < 2000; ++i) ++counts[tokens.data<std::int32_t>()[2 * i + 1]];
  CHECK(counts[1] > 1100);  // of probability 3/5
  CHECK(counts[1] < 1300);
  CHECK(counts[0] > 320);
  CHECK(counts[2] == 0);
  CHECK(counts[3] > 320);
  CHECK(first[1].tensor().data<float>()[2] == -1e20f);
  CHECK(difference(draw(3)[0], first[0]).empty());
  CHECK_FALSE(difference(draw(4)[0], first[0]).empty());
}

/// A run of 199 steps that nothing ends.
std::string long_text(const char* op, const std::string& attributes, const char* inputs) {
  return cat("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (", inputs,
             ") => (Y) { Y = com.microsoft.", op, "<", attributes, ", eos_token_id = -1, pad_token_id = 0>(X, L",
             std::string_view(inputs).ends_with("N") ? ", , N, N" : "", ") }");
}

CountedGraphs::Texts long_texts() {
  constexpr const char *kPrompt = "int32[b,s] X, int32[1] L", *kBeams = "int32[b,s] X, int32[1] L, int32[1] N",
                       *kSound = "float[b,c,s] X, int32[1] L, int32[1] N";
  return {long_text("GreedySearch", kDecoder, kPrompt), long_text("Sampling", kDecoder, kPrompt),
          long_text("BeamSearch", kDecoder, kBeams), long_text("WhisperBeamSearch", kSpeech, kSound)};
}

const CountedGraphs kGraphs(long_texts);

TEST_CASE("Generation looks whether its run is to end, and counts what it holds") {
  for (const std::string& text : long_texts()) {
    CAPTURE(text);
    std::vector<Value> inputs{i32({1, 1}, {2}), i32({1}, {200})};
    if (text.find("float[b,c,s]") != std::string::npos) inputs[0] = f32({1, 1, 1}, {1});
    if (text.find("int32[1] N") != std::string::npos) inputs.push_back(i32({1}, {1}));
    CHECK(looks_of(text, 17, inputs) >= 199);
    CHECK(looks_of(text, 17, inputs, true) == 1);
  }
  check_beyond_budget(long_texts()[0], 17, {i32({1, 1}, {2}), i32({1}, {2000000})}, std::size_t{8} << 20);
}

}  // namespace
}  // namespace infernode::test
