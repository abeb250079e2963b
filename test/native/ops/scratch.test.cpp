// Scratch memory of kernels counts against a run's memoryLimit, where it does not come from the run's allocator, too.

#include "ops/limits.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("containers of kernels count against memoryLimit before they are filled") {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
  check_beyond_budget("(float[1,1,h,w] X, float[n,4] R, int64[n] B) => (float[n,1,1,1] Y) { Y = RoiAlign(X, R, B) }",
                      17, {noise({1, 1, 4, 4}), f32({1, 4}, {0, 0, 4000, 4000}), i64({1}, {0})}, 64 * kMegabyte);
  check_beyond_budget("(float[1,n,1] X) => (float[1,n,2] Y) { Y = DFT<axis=1>(X) }", 17, {noise({1, 1000003, 1})},
                      16 * kMegabyte);
  check_beyond_budget("(float[n] X, int64[1] K) => (float[k] V, int64[k] I) { V, I = TopK(X, K) }", 17,
                      {noise({1000000}), i64({1}, {1000000})}, 4 * kMegabyte);
  check_beyond_budget("(float[n,n] X) => (float D) { D = Det(X) }", 17, {noise({1000, 1000})}, 4 * kMegabyte);
  check_beyond_budget("(float[n,n] X) => (float[n,n] Y) { Y = com.microsoft.Inverse(X) }", 17, {noise({1000, 1000})},
                      4 * kMegabyte);
  constexpr std::int64_t kBoxes = 100000;
  check_beyond_budget("(float[1,n,4] B, float[1,c,n] S, int64 M) => (int64[m,3] Y) { Y = NonMaxSuppression(B, S, M) }",
                      11, {Tensor::make(DType::Float32, {1, kBoxes, 4}), noise({1, 1, kBoxes}), i64({}, {kBoxes})},
                      kMegabyte);
}

TEST_CASE("scratch of kernels comes from the run's allocator") {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
  constexpr std::int64_t kMany = 1000000;
  const auto ones = [](DType type, const Shape& dims) { return iota(type, dims, 1, 0); };
  check_beyond_limit(
      "(float[1,w] X, float[e] R, float[s] S) => (float[1,p] Y) { Y = Resize<mode=\"linear\", antialias=1>(X, R, S) }",
      18, {noise({1, kMany}), f32({0}, {}), f32({2}, {1, 0.001f})}, 16 * kMegabyte);
  check_beyond_limit("(uint8[1,w] X, float[e] R, float[s] S) => (uint8[1,p] Y) { Y = Resize(X, R, S) }", 18,
                     {ones(DType::UInt8, {1, 4}), f32({0}, {}), f32({2}, {1, 1000000})}, 16 * kMegabyte);
  check_beyond_limit("(uint8[1,w] X, int64[4] P) => (uint8[1,p] Y) { Y = Pad<mode=\"edge\">(X, P) }", 18,
                     {ones(DType::UInt8, {1, 4}), i64({4}, {0, 0, 0, 4 * kMany})}, 16 * kMegabyte);
  check_beyond_limit("(float[n] X) => (float[m] Y) { Y = Unique(X) }", 17, {noise({kMany})}, 16 * kMegabyte);
  check_beyond_limit("(float[a,n,b] X) => (float[1,n,1] Y) { Y = ReduceSum<axes=[0,2]>(X) }", 11,
                     {noise({2, kMany, 2})}, 8 * kMegabyte);
  check_beyond_limit("(float[n] X, int64[1] K) => (float[k] V, int64[k] I) { V, I = TopK(X, K) }", 17,
                     {noise({kMany}), i64({1}, {kMany})}, 32 * kMegabyte);
  check_beyond_limit(
      "(float[1,n] X, float[1,m] S, uint8[1,m] Z) => (uint8[1,n] Y) { Y = QuantizeLinear<block_size=2>(X, S, Z) }", 21,
      {noise({1, 2 * kMany}), ones(DType::Float32, {1, kMany}), ones(DType::UInt8, {1, kMany})}, 4 * kMegabyte);
  check_beyond_limit("(uint8[1,n] X, float16[1,m] S) => (float16[1,n] Y) { Y = DequantizeLinear<block_size=2>(X, S) }",
                     21, {ones(DType::UInt8, {1, 2 * kMany}), ones(DType::Float16, {1, kMany})}, 6 * kMegabyte);
  check_beyond_limit("(int32[n] I, int64 D, uint8[2] V) => (uint8[n,d] Y) { Y = OneHot(I, D, V) }", 11,
                     {ones(DType::Int32, {kMany}), i64({}, {1}), ones(DType::UInt8, {2})}, 4 * kMegabyte);
  check_beyond_limit("(float[n,c] X, int32[n] T) => (float L) { L = SoftmaxCrossEntropyLoss(X, T) }", 13,
                     {noise({kMany, 2}), ones(DType::Int32, {kMany})}, 8 * kMegabyte);
  check_beyond_limit(
      "(int32[1,n] I, float[2,c] W, float[n,c] P, float[c] G, float[c] B) => (float[1,n,c] Y) { Y = "
      "com.microsoft.EmbedLayerNormalization(I, \"\", W, P, \"\", G, B) }",
      17, {ones(DType::Int32, {1, kMany}), noise({2, 1}), noise({kMany, 1}), noise({1}), noise({1})}, 8 * kMegabyte);
  check_beyond_limit(
      "(float16[1,1,w] Q, float16[1,1,w] K, int32[1] L, int32[1] T, float16[1,1,1,n] B) => (float16[1,1,w] Y) { Y = "
      "com.microsoft.GroupQueryAttention<num_heads=1, kv_num_heads=1>(Q, K, K, \"\", \"\", L, T, \"\", \"\", \"\", B) "
      "}",
      17,
      {ones(DType::Float16, {1, 1, 8}), ones(DType::Float16, {1, 1, 8}), iota(DType::Int32, {1}, 0, 0),
       ones(DType::Int32, {1}), ones(DType::Float16, {1, 1, 1, kMany})},
      2 * kMegabyte);
}

TEST_CASE("containers of kernels that grow count against memoryLimit as they do") {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
  const std::string text(1 << 20, 'a');
  std::string spaced;
  for (std::size_t i = 0; i < text.size() / 2; ++i) spaced += "a ";
  // Pieces of 16 bytes each, half a million or a million of them.
  check_beyond_budget("(string[n] X) => (string[n,k] Y, int64[n] N) { Y, N = StringSplit(X) }", 20,
                      {str({1}, {spaced})}, 6 * kMegabyte);
  check_beyond_budget("(string[n] X) => (string[n,k] Y, int64[n] N) { Y, N = StringSplit<delimiter=\" \">(X) }", 20,
                      {str({1}, {spaced})}, 6 * kMegabyte);
  for (const char* how : {"separators=[\"\"]", "separators=[\" \"]", "tokenexp=\"a\""}) {
    check_beyond_budget(cat("(string[n] X) => (string[n,k] Y) { Y = com.microsoft.Tokenizer<mark=0, mincharnum=1, ",
                            "pad_value=\"\", ", how, ">(X) }"),
                        17, {str({1}, {spaced})}, 6 * kMegabyte);
  }
  check_beyond_budget("(string[n] X) => (string[m] Y) { Y = StringNormalizer(X) }", 17,
                      {Tensor::make(DType::String, {100000})}, kMegabyte / 2);
  check_beyond_budget(
      "(int64[n] X) => (float[1] Y) { Y = TfIdfVectorizer<max_gram_length=1, max_skip_count=0, "
      "min_gram_length=1, mode=\"TF\", ngram_counts=[0], ngram_indexes=[0], pool_int64s=[1]>(X) }",
      17, {Tensor::make(DType::Int64, {1000000})}, 3 * kMegabyte);
  check_beyond_budget("(float[n] X) => (seq(float[m]) Y) { Y = SplitToSequence(X) }", 17, {noise({100000})},
                      kMegabyte / 2);
  check_beyond_budget("(float16[n] X) => (float16[n] Y) { Y = Softmax(X) }", 17,
                      {Tensor::make(DType::Float16, {1000000})}, 3 * kMegabyte);
}
