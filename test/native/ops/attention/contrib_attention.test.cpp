// com.microsoft's attention operators: answers of onnxruntime (test/fixtures/contrib-attention.txt, written by
// test/generators/contrib/attention_edges.py), and inputs that tell lies.

#include <limits>

#include "ops/written_cases.h"

namespace infernode::test {
namespace {

TEST_CASE("Attention operators of com.microsoft answer as onnxruntime does") {
  check_cases("contrib-attention.txt", 40);
}

const Value kNone;

TEST_CASE("GroupQueryAttention refuses lengths and positions that are not there") {
  const char* plain = "num_heads=2, kv_num_heads=1";
  const Tensor q = noise({1, 2, 4}), k = noise({1, 2, 2}), past = noise({1, 1, 3, 2});
  const auto lengths = [&](const char* attributes, std::int32_t last, std::int32_t total, ErrorCode code,
                           const char* what) {
    refuses("GroupQueryAttention", attributes, {q, k, k, past, past, i32({1}, {last}), i32({}, {total})}, code, what);
  };
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max(), kLeast = -kMost - 1;
  lengths(plain, 5, 6, ErrorCode::InvalidArgument, "a total of 6");
  lengths(plain, kMost, kMost, ErrorCode::InvalidArgument, "in the cache");
  lengths(plain, 2, kMost, ErrorCode::InvalidArgument, "in the cache");
  lengths(plain, -2, 4, ErrorCode::InvalidArgument, "seqlens_k[0] is -2");
  lengths(plain, kLeast, 4, ErrorCode::InvalidArgument, "seqlens_k[0]");
  lengths(plain, 4, 4, ErrorCode::InvalidArgument, "seqlens_k[0] is 4");
  lengths(plain, 0, 1, ErrorCode::InvalidArgument, "a total of 1");
  lengths(plain, 0, -1, ErrorCode::InvalidArgument, "a total of -1");
  lengths("num_heads=2, kv_num_heads=1, local_window_size=4, sliding_window_cache=1", 2, 3, ErrorCode::InvalidArgument,
          "a window of 4");
  lengths("num_heads=2, kv_num_heads=1, sliding_window_cache=1", 2, 3, ErrorCode::InvalidModel, "local_window_size");
  lengths("num_heads=2, kv_num_heads=1, local_window_size=2, causal=0", 2, 3, ErrorCode::InvalidModel, "causal");
  lengths("num_heads=3, kv_num_heads=2", 2, 3, ErrorCode::InvalidModel, "do not share");
  lengths("num_heads=0, kv_num_heads=1", 2, 3, ErrorCode::InvalidModel, "do not share");
  lengths("num_heads=2, kv_num_heads=1, k_quant_type=\"PER_TENSOR\"", 2, 3, ErrorCode::InvalidModel, "quantized cache");
  lengths("num_heads=2, kv_num_heads=1, k_quant_type=\"ODD\"", 2, 3, ErrorCode::InvalidModel, "ODD");

  const Tensor two = i32({2}, {3, 3}), total = i32({}, {4}), last = i32({1}, {3});
  const auto call = [&](std::vector<Value> inputs, ErrorCode code, const char* what, const char* more = "") {
    refuses("GroupQueryAttention", cat(plain, more).c_str(), inputs, code, what);
  };
  call({q, k, k, past, past, two, total}, ErrorCode::InvalidArgument, "2 sequence lengths");
  call({q, k, k, past, kNone, last, total}, ErrorCode::InvalidArgument, "together");
  call({q, k, k, noise({1, 1, 3}), past, last, total}, ErrorCode::ShapeMismatch, "past_key is");
  call({q, k, k, past, noise({1, 1, 2, 2}), last, total}, ErrorCode::ShapeMismatch, "the past is");
  call({q, noise({1, 2, 4}), k, past, past, last, total}, ErrorCode::ShapeMismatch, "input 1");
  call({noise({2, 4}), k, k, past, past, last, total}, ErrorCode::ShapeMismatch, "query is");
  call({noise({1, 2, 5}), k, k, past, past, last, total}, ErrorCode::ShapeMismatch, "does not divide");
  call({q, k, k, past, past, last, total, kNone, kNone, kNone, noise({1, 3, 2, 4})}, ErrorCode::ShapeMismatch, "");
  call({q, k, k, past, past, last, total, kNone, kNone, kNone, noise({2, 4})}, ErrorCode::ShapeMismatch,
       "attention_bias is");
  call({q, k, k, past, past, last, total, kNone, kNone, kNone, kNone, noise({3})}, ErrorCode::ShapeMismatch,
       "head_sink");
  const Tensor table = noise({4, 1});
  const auto turned = [&](const Value& cos, const Value& sin, const Value& positions, ErrorCode code,
                          const char* what) {
    call({q, k, k, past, past, last, total, cos, sin, positions}, code, what, ", do_rotary=1");
  };
  turned(kNone, kNone, kNone, ErrorCode::InvalidArgument, "needs cos_cache");
  turned(noise({3, 1}), noise({3, 1}), kNone, ErrorCode::InvalidArgument, "position 3");
  turned(noise({0, 1}), noise({0, 1}), kNone, ErrorCode::InvalidArgument, "position");
  turned(noise({4, 2}), noise({4, 2}), kNone, ErrorCode::ShapeMismatch, "rotary caches");
  turned(table, noise({3, 1}), kNone, ErrorCode::ShapeMismatch, "rotary caches");
  turned(table, table, i64({1, 2}, {0, 4}), ErrorCode::InvalidArgument, "position 4");
  turned(table, table, i64({1, 2}, {-1, 0}), ErrorCode::InvalidArgument, "position -1");
  turned(table, table, i64({1, 2}, {INT64_MAX, INT64_MIN}), ErrorCode::InvalidArgument, "position");
  turned(table, table, i64({1, 3}, {0, 1, 2}), ErrorCode::ShapeMismatch, "position_ids");

  const auto padded = [&](std::initializer_list<std::int32_t> valid, std::int32_t tokens, std::int32_t most,
                          const char* what) {
    std::vector<Value> inputs(17);
    inputs[0] = q, inputs[1] = inputs[2] = k, inputs[3] = inputs[4] = past;
    inputs[5] = i32({1}, {tokens - 1}), inputs[6] = i32({}, {most});
    inputs[16] = i32({static_cast<std::int64_t>(valid.size())}, valid);
    call(inputs, ErrorCode::InvalidArgument, what);
  };
  padded({-1}, 2, 4, "-1 of 2 queries");
  padded({3}, 3, 4, "3 of 2 queries");
  padded({2}, 1, 4, "2 of 2 queries");
  padded({0}, 4, 4, "0 of 2 queries");  // the cache holds three
  padded({0}, 3, 4, "0 of 2 queries");  // no room for the padding
  padded({1, 1}, 3, 4, "sequence lengths");
}

TEST_CASE("MultiHeadAttention refuses masks, caches and beams that do not fit") {
  const Tensor q = noise({2, 3, 4}), k = noise({2, 2, 4}), past = noise({2, 2, 2, 2});
  const auto call = [&](std::vector<Value> inputs, ErrorCode code, const char* what, const char* more = "") {
    refuses("MultiHeadAttention", cat("num_heads=2", more).c_str(), inputs, code, what);
  };
  call({q}, ErrorCode::InvalidArgument, "needs keys");
  call({q, k}, ErrorCode::InvalidArgument, "needs values");
  call({q, k, noise({2, 3, 4})}, ErrorCode::ShapeMismatch, "do not fit");
  call({q, noise({1, 2, 4}), noise({1, 2, 4})}, ErrorCode::ShapeMismatch, "do not fit");
  call({noise({2, 3, 5}), k, k}, ErrorCode::ShapeMismatch, "query is");
  call({noise({3}), k, k}, ErrorCode::ShapeMismatch, "query is");
  call({q, k, k, noise({11})}, ErrorCode::ShapeMismatch, "bias");
  call({q, k, k, kNone, i32({2, 3}, {1, 1, 1, 1, 1, 1})}, ErrorCode::ShapeMismatch, "attention mask");
  call({q, k, k, kNone, i32({}, {1})}, ErrorCode::ShapeMismatch, "attention mask");
  // A mask by position has no rows for queries before the first key.
  call({q, k, k, kNone, i32({2, 1, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1})}, ErrorCode::ShapeMismatch, "attention mask");
  call({q, k, k, kNone, kNone, noise({2, 2, 3, 3})}, ErrorCode::ShapeMismatch, "");
  call({q, k, k, kNone, kNone, kNone, past}, ErrorCode::InvalidArgument, "together");
  call({q, k, k, kNone, kNone, kNone, past, noise({2, 2, 1, 2})}, ErrorCode::ShapeMismatch, "the past is");
  call({q, k, k, kNone, kNone, kNone, noise({2, 2, 2}), past}, ErrorCode::ShapeMismatch, "past_key is");
  const auto shared = [&](std::int32_t length, const char* what) {
    call({q, k, k, kNone, kNone, kNone, past, past, i32({1}, {length})}, ErrorCode::InvalidArgument, what);
  };
  shared(-1, "past_sequence_length is -1");
  shared(3, "past_sequence_length is 3");
  shared(1, "do not fit a cache");
  shared(std::numeric_limits<std::int32_t>::max(), "past_sequence_length");
  call({q, k, k, kNone, kNone, kNone, kNone, kNone, i32({1}, {1})}, ErrorCode::InvalidModel, "shared cache");
  const Tensor one = noise({2, 1, 4});
  const auto beams = [&](const Tensor& which, ErrorCode code, const char* what) {
    call({one, one, one, kNone, kNone, kNone, past, past, i32({1}, {1}), which}, code, what);
  };
  beams(i32({1, 2, 2}, {0, 0, 2, 0}), ErrorCode::InvalidArgument, "beam 2 of 2");
  beams(i32({1, 2, 2}, {-1, 0, 0, 0}), ErrorCode::InvalidArgument, "beam -1 of 2");
  beams(i32({1, 3, 2}, {0, 0, 0, 0, 0, 0}), ErrorCode::ShapeMismatch, "cache_indirection");
  beams(i32({1, 2, 0}, {}), ErrorCode::ShapeMismatch, "cache_indirection");
  beams(i32({4}, {0, 0, 0, 0}), ErrorCode::ShapeMismatch, "cache_indirection");
  refuses("DecoderMaskedMultiHeadAttention", "num_heads=2", {q, k, k}, ErrorCode::ShapeMismatch, "one query each");
  refuses("DecoderMaskedMultiHeadAttention", "num_heads=2", {noise({2, 1, 8})}, ErrorCode::ShapeMismatch,
          "no keys and values");
}

TEST_CASE("RotaryEmbedding refuses positions that its cache lacks") {
  const Tensor x = noise({1, 3, 4}), table = noise({3, 2});
  const auto at = [&](const Tensor& positions, ErrorCode code, const char* what) {
    refuses("RotaryEmbedding", "", {x, positions, table, table}, code, what, "Y");
  };
  at(i64({1}, {1}), ErrorCode::InvalidArgument, "position 3");
  at(i64({1}, {INT64_MAX}), ErrorCode::InvalidArgument, "outside a cache of 3 rows");
  at(i64({1}, {INT64_MIN}), ErrorCode::InvalidArgument, "outside a cache of 3 rows");
  at(i64({1, 3}, {0, 1, -1}), ErrorCode::InvalidArgument, "position -1");
  at(i64({1, 2}, {0, 1}), ErrorCode::ShapeMismatch, "positions");
  refuses("RotaryEmbedding", "", {x, i64({1}, {0}), table, noise({2, 2})}, ErrorCode::ShapeMismatch, "differ", "Y");
  refuses("RotaryEmbedding", "num_heads=3", {x, i64({1}, {0}), table, table}, ErrorCode::ShapeMismatch, "3 heads", "Y");
}

}  // namespace
}  // namespace infernode::test
