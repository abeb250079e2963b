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

TEST_CASE("weights that are fed count against memoryLimit where they are packed or converted") {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
  const auto codes = [](tensor::Shape shape) { return iota(DType::UInt8, shape, 1, 0); };
  const Tensor scale = f32({}, {0.5f}), zero = iota(DType::UInt8, {}, 1, 0);
  check_beyond_limit("(uint8[n,k] A, uint8[k,m] B) => (int32[n,m] C) { C = MatMulInteger(A, B) }", 17,
                     {codes({1, 2048}), codes({2048, 2048})}, kMegabyte);
  check_beyond_limit(
      "(float[n,k] A, uint8[k,m] B, float S) => (float[n,m] C) { C = com.microsoft.DynamicQuantizeMatMul(A, B, S) }",
      17, {noise({1, 2048}), codes({2048, 2048}), scale}, kMegabyte);
  check_beyond_limit(
      "(uint8[n,k] A, float S, uint8 Z, uint8[k,m] B) => (float[n,m] C) { C = com.microsoft.QGemm(A, S, Z, B, S, Z) }",
      17, {codes({1, 2048}), scale, zero, codes({2048, 2048})}, kMegabyte);
  // Sums of a product whose rows have scales of their own, and operands of 8-bit floats.
  const char* const product =
      "(uint8[n,k] A, float[r] R, uint8[r] Q, uint8[k,m] B, float S, uint8 Z) => (uint8[n,m] C) { C = QLinearMatMul(A, "
      "R, Q, B, S, Z, S, Z) }";
  check_beyond_limit(product, 17,
                     {codes({1024, 1}), noise({1024}), iota(DType::UInt8, {1024}, 1, 0), codes({1, 1024}), scale, zero},
                     3 * kMegabyte);
  check_beyond_limit(
      "(float8e4m3fn[n,k] A, float S, float8e4m3fn Z, float8e4m3fn[k,m] B) => (float8e4m3fn[n,m] C) { C = "
      "QLinearMatMul(A, S, Z, B, S, Z, S, Z) }",
      21,
      {iota(DType::Float8E4M3FN, {1, 1024}, 1, 0), scale, iota(DType::Float8E4M3FN, {}, 1, 0),
       iota(DType::Float8E4M3FN, {1024, 1024}, 1, 0)},
      3 * kMegabyte);
  check_beyond_limit("(float[1,c,l] X, float[m,c,k] W) => (float[1,m,o] Y) { Y = Conv(X, W) }", 17,
                     {noise({1, 1024, 1}), noise({1024, 1024, 1})}, 3 * kMegabyte);
  check_beyond_limit("(uint8[1,c,l] X, uint8[m,c,k] W) => (int32[1,m,o] Y) { Y = ConvInteger(X, W) }", 17,
                     {codes({1, 2048, 1}), codes({2048, 2048, 1})}, kMegabyte);
  const std::vector<Value> recurrent[] = {
      {noise({1, 1, 1024}), noise({1, 1024, 1024}), noise({1, 1024, 256})},
      {noise({1, 1, 1024}), noise({1, 768, 1024}), noise({1, 768, 256})},
      {noise({1, 1, 1024}), noise({1, 1024, 1024}), noise({1, 1024, 1024})},
  };
  check_beyond_limit(
      "(float[t,b,i] X, float[1,g,i] W, float[1,g,h] R) => (float[t,1,b,h] Y) { Y = LSTM<hidden_size=256>("
      "X, W, R) }",
      17, recurrent[0], 2 * kMegabyte);
  check_beyond_limit(
      "(float[t,b,i] X, float[1,g,i] W, float[1,g,h] R) => (float[t,1,b,h] Y) { Y = GRU<hidden_size=256>("
      "X, W, R) }",
      17, recurrent[1], kMegabyte);
  check_beyond_limit(
      "(float[t,b,i] X, float[1,g,i] W, float[1,g,h] R) => (float[t,1,b,h] Y) { Y = RNN<hidden_size=1024"
      ">(X, W, R) }",
      17, recurrent[2], 2 * kMegabyte);
  check_beyond_limit(
      "(float[t,b,i] X, uint8[1,i,g] W, uint8[1,h,g] R, float[d] S, uint8[d] Z) => (float[t,1,b,h] Y) { Y = "
      "com.microsoft.DynamicQuantizeLSTM<hidden_size=256>(X, W, R, , , , , , S, Z, S, Z) }",
      17,
      {noise({1, 1, 2048}), codes({1, 2048, 1024}), codes({1, 256, 1024}), f32({1}, {0.5f}),
       iota(DType::UInt8, {1}, 1, 0)},
      kMegabyte);
}
