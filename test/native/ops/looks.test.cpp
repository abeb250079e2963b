// Cancellation reaches into every kernel: how much an operator computes between two looks at whether its run is to end
// is counted in the operator's own elementary steps, not timed.

#include <cmath>

#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// Numbers of a weight that is packed or converted.
constexpr double kPacked = 1 << 21;

Tensor square(DType type, std::int64_t n) { return iota(type, {n, n}, 1, 0); }

/// Steps of one long text: its characters, at up to 30 ns each.
constexpr double kTextStep = 1 << 18;
constexpr std::size_t kLength = std::size_t{1} << 22;
constexpr double kCharacters = kLength;
Tensor one_text(char c = 'a') { return str({1}, {std::string(kLength, c)}); }
std::vector<Value> long_text(char c = 'a') { return {one_text(c)}; }
std::vector<Value> two_long_texts() { return {one_text(), one_text()}; }

/// Many short texts; so many are made, filled or copied between two looks.
constexpr double kTexts = 1 << 16;
constexpr std::int64_t kMany = 1 << 18;
Tensor many_texts(const std::string& text = "a b") {
  const Tensor out = Tensor::make(DType::String, {kMany});
  for (std::string& each : out.mutable_span<std::string>()) each = text;
  return out;
}

const LongOp kLongOps[] = {
    {"(float[n,k] A, float[m,k] B) => (float[n,m] C) { C = com.microsoft.CDist(A, B) }", 17,
     [] {
       return values({noise({1500, 64}), noise({1500, 64})});
     },
     1500.0 * 1500 * 64, kSlow},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = MatMul(A, B) }", 17,
     [] {
       return values({noise({1200, 1200}), noise({1200, 1200})});
     },
     std::pow(1200.0, 3), kFast},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = Gemm(A, B) }", 17,
     [] {
       return values({noise({1200, 1200}), noise({1200, 1200})});
     },
     std::pow(1200.0, 3), kFast},
    {"(double[n,k] A, double[k,m] B) => (double[n,m] C) { C = MatMul(A, B) }", 17,
     [] {
       return values({square(DType::Float64, 700), square(DType::Float64, 700)});
     },
     std::pow(700.0, 3), kFast},
    {"(int64[n,k] A, int64[k,m] B) => (int64[n,m] C) { C = MatMul(A, B) }", 17,
     [] {
       return values({iota(DType::Int64, {1, 8000}), square(DType::Int64, 8000)});
     },
     8000.0 * 8000, kSlow},
    {"(uint8[n,k] A, uint8[k,m] B) => (int32[n,m] C) { C = MatMulInteger(A, B) }", 17,
     [] {
       return values({square(DType::UInt8, 1200), square(DType::UInt8, 1200)});
     },
     std::pow(1200.0, 3), kFast},
    {"(int64[n,k] A, int64[k,m] B) => (int64[n,m] C) { C = Einsum<equation=\"ab,bc->ac\">(A, B) }", 17,
     [] {
       return values({iota(DType::Int64, {1, 8000}), square(DType::Int64, 8000)});
     },
     8000.0 * 8000, kSlow},
    {"(float[1,c,l] X, float[m,c,k] W) => (float[1,m,o] Y) { Y = Conv(X, W) }", 17,
     [] {
       return values({noise({1, 64, 40000}), noise({64, 64, 9})});
     },
     64.0 * 39992 * 64 * 9, kFast},
    {"(double[1,c,h,w] X, double[m,c,i,j] W) => (double[1,m,p,q] Y) { Y = Conv(X, W) }", 17,
     [] {
       return values({iota(DType::Float64, {1, 8, 300, 300}), iota(DType::Float64, {1, 8, 9, 9})});
     },
     292.0 * 292 * 8 * 81, kSlow},
    {"(float[1,1,h,w] X, float[1,1,i,j] W) => (float[1,1,p,q] Y) { Y = Conv(X, W) }", 17,
     [] {
       return values({noise({1, 1, 1600, 1600}), noise({1, 1, 15, 15})});
     },
     1586.0 * 1586 * 225, kFast},
    {"(float[1,2,h,w] X, float[2,1,i,j] W) => (float[1,2,p,q] Y) { Y = Conv<group=2>(X, W) }", 17,
     [] {
       return values({noise({1, 2, 1600, 1600}), noise({2, 1, 15, 15})});
     },
     2 * 1586.0 * 1586 * 225, kFast},
    {"(float[1,1,h,w] X) => (float[1,1,p,q] Y) { Y = LpPool<kernel_shape=[15,15], p=3>(X) }", 17,
     [] {
       return values({noise({1, 1, 400, 400})});
     },
     386.0 * 386 * 225, kSlow},
    {"(float[1,1,h,w] X) => (float[1,1,1,1] Y) { Y = GlobalLpPool<p=3>(X) }", 17,
     [] {
       return values({noise({1, 1, 4000, 4000})});
     },
     4000.0 * 4000, kSlow},
    {"(double[1,1,h,w] X) => (double[1,1,p,q] Y) { Y = MaxPool<kernel_shape=[15,15]>(X) }", 17,
     [] {
       return values({iota(DType::Float64, {1, 1, 600, 600})});
     },
     586.0 * 586 * 225, kSlow},
    {"(float[1,c,h,w] X) => (float[1,c,h,w] Y) { Y = LRN<size=201>(X) }", 17,
     [] {
       return values({noise({1, 200, 120, 120})});
     },
     200.0 * 120 * 120 * 150, kFast},
    {"(float[1,1,h,w] X, float[n,5] R) => (float[n,1,p,q] Y) { Y = MaxRoiPool<pooled_shape=[2,2]>(X, R) }", 17,
     [] {
       return values({noise({1, 1, 8000, 8000}), f32({1, 5}, {0, 0, 0, 7999, 7999})});
     },
     8000.0 * 8000, kSlow / 8},
    {"(float[1,1,h,w] X, float[n,4] R, int64[n] B) => (float[n,1,p,q] Y) { Y = RoiAlign<output_height=4, "
     "output_width=4>(X, R, B) }",
     17,
     [] {
       return values({noise({1, 1, 3000, 3000}), f32({1, 4}, {0, 0, 2999, 2999}), i64({1}, {0})});
     },
     3000.0 * 3000 * 4, kSlow},
    {"(float[2,1,h,w] X, float[e] R, float[s] S) => (float[2,1,p,q] Y) { Y = Resize<mode=\"cubic\">(X, R, S) }", 17,
     [] {
       return values({noise({2, 1, 1000, 1000}), f32({0}, {}), f32({4}, {1, 1, 2.5, 2.5})});
     },
     2 * 2500.0 * 2500 * 8, kSlow},
    {"(float[n] X, int64[1] K) => (float[k] V, int64[k] I) { V, I = TopK(X, K) }", 17,
     [] {
       return values({noise({2000000}), i64({1}, {2000000})});
     },
     2e6 * 21, kSlow / 8},
    {"(float[n] X, int64[1] K) => (float[k] V, int64[k] I) { V, I = TopK<sorted=0>(X, K) }", 17,
     [] {
       return values({noise({2000000}), i64({1}, {1000000})});
     },
     1e6 * 20, kSlow / 8},
    {"(float[1,1,h,w] X, float[1,1,3,3] W, float[1,18,p,q] O) => (float[1,1,p,q] Y) { Y = DeformConv(X, W, O) }", 19,
     [] {
       return values({noise({1, 1, 1002, 1002}), noise({1, 1, 3, 3}), noise({1, 18, 1000, 1000})});
     },
     9e6, kSlow / 16},
    {"(double[1,1,h,w] X, double[1,1,9,9] W) => (double[1,1,p,q] Y) { Y = ConvTranspose(X, W) }", 17,
     [] {
       return values({iota(DType::Float64, {1, 1, 600, 600}), iota(DType::Float64, {1, 1, 9, 9})});
     },
     600.0 * 600 * 81, kSlow / 8},
    {"(float[1,n,1] X) => (float[1,n,2] Y) { Y = DFT<axis=1>(X) }", 17,
     [] {
       return values({noise({1, 1 << 21, 1})});
     },
     11.0 * (1 << 21), kSlow / 8},
    {"(float[1,n,1] X) => (float[1,n,2] Y) { Y = DFT<axis=1>(X) }", 17,
     [] {
       return values({noise({1, 1000003, 1})});
     },
     2 * 21.0 * (1 << 20), kSlow / 8},
    {"(float[1,n,4] B, float[1,1,n] S, int64 M, float I) => (int64[m,3] Y) { Y = NonMaxSuppression(B, S, M, I) }", 11,
     [] {
       constexpr std::int64_t kBoxes = 8000;
       std::vector<float> boxes;
       for (std::int64_t i = 0; i < kBoxes; ++i) boxes.insert(boxes.end(), {2.f * i, 0, 2.f * i + 1, 1});
       return values(
           {Tensor::of<float>({1, kBoxes, 4}, boxes), noise({1, 1, kBoxes}), i64({}, {kBoxes}), f32({}, {0.5f})});
     },
     8000.0 * 8000 / 2, kSlow / 8},
    {"(float[n] X) => (float[m] Y) { Y = Unique(X) }", 17, [] { return values({noise({1000000})}); }, 1e6 * 20,
     kSlow / 8},
    {"(float[1,w] X, float[e] R, float[s] S) => (float[1,p] Y) { Y = Resize<mode=\"linear\", antialias=1>(X, R, S) }",
     18,
     [] {
       return values({noise({1, 1 << 22}), f32({0}, {}), f32({2}, {1, 0x1p-21f})});
     },
     1 << 23, 1 << 21},
    {"(float[n] A, float[n] B, float[n] C) => (float Y) { Y = Einsum<equation=\"i,i,i->\">(A, B, C) }", 17,
     [] {
       return values({noise({1 << 23}), noise({1 << 23}), noise({1 << 23})});
     },
     1 << 23, 1 << 21},
    {"(uint8[1,w] X, float[e] R, float[s] S) => (uint8[1,p] Y) { Y = Resize(X, R, S) }", 18,
     [] {
       return values({iota(DType::UInt8, {1, 4}), f32({0}, {}), f32({2}, {1, 2000000})});
     },
     8e6 * 3, kSlow / 8},
    {"(uint8[1,w] X, float[e] R, float[s] S) => (uint8[1,p] Y) { Y = Resize<mode=\"linear\">(X, R, S) }", 18,
     [] {
       return values({iota(DType::UInt8, {1, 4}), f32({0}, {}), f32({2}, {1, 1000000})});
     },
     4e6 * 2, kSlow / 16},
    {"(uint8[1,w] X, int64[4] P) => (uint8[1,p] Y) { Y = Pad<mode=\"edge\">(X, P) }", 18,
     [] {
       return values({iota(DType::UInt8, {1, 4}), i64({4}, {0, 0, 0, 8000000})});
     },
     8e6 * 3, kSlow / 8},
    {"(float[1,n] X, float[1,m] S, uint8[1,m] Z) => (uint8[1,n] Y) { Y = QuantizeLinear<block_size=2>(X, S, Z) }", 21,
     [] {
       return values(
           {noise({1, 4000000}), iota(DType::Float32, {1, 2000000}, 1, 0), iota(DType::UInt8, {1, 2000000}, 1, 0)});
     },
     2e6 + 4e6, kSlow / 16},
    {"(float[n] X, float S, int4 Z) => (int4[n] Y) { Y = QuantizeLinear(X, S, Z) }", 21,
     [] {
       return values({noise({4000000}), f32({}, {1}), tensor_as(DType::Int4, {}, {0})});
     },
     2 * 4e6, kSlow / 16},
    {"(int32[n] I, int64 D, uint8[2] V) => (uint8[d,n] Y) { Y = OneHot<axis=0>(I, D, V) }", 11,
     [] {
       return values({iota(DType::Int32, {4000000}, 0, 0), i64({}, {1}), iota(DType::UInt8, {2})});
     },
     2 * 4e6, kSlow / 16},
    {"(float[n,c] X, int32[n] T) => (float L) { L = SoftmaxCrossEntropyLoss(X, T) }", 13,
     [] {
       return values({noise({1000000, 2}), iota(DType::Int32, {1000000}, 0, 0)});
     },
     4e6, kSlow / 32},
    {"(int32[1,n] I, float[2,c] W, float[n,c] P, float[c] G, float[c] B, int32[1,n] M) => (float[1,n,c] Y, int32[1] N) "
     "{ Y, N = com.microsoft.EmbedLayerNormalization(I, \"\", W, P, \"\", G, B, M) }",
     17,
     [] {
       return values({iota(DType::Int32, {1, 1000000}, 0, 0), noise({2, 2}), noise({1000000, 2}), noise({2}),
                      noise({2}), iota(DType::Int32, {1, 1000000}, 1, 0)});
     },
     4e6, kSlow / 32},
    {"(uint8[1,n] X, int64[n] L) => (uint8[1,n] Y) { Y = ReverseSequence(X, L) }", 10,
     [] {
       return values({iota(DType::UInt8, {1, 500000}, 1, 0), iota(DType::Int64, {500000}, 1, 0)});
     },
     5e5, kSlow / 512},
    {"(float[1,k,l] X, int64[2] I, int64[2] B) => (float[1,1,h,w] Y) { Y = Col2Im(X, I, B) }", 18,
     [] {
       return values({noise({1, 9, 1998 * 1998}), i64({2}, {2000, 2000}), i64({2}, {3, 3})});
     },
     9 * 1998.0 * 1998, kSlow / 8},
    {"(float[1,k,l] X, int64[1] I, int64[1] B) => (float[1,1,w] Y) { Y = Col2Im(X, I, B) }", 18,
     [] {
       return values({noise({1, 2, 7999999}), i64({1}, {8000000}), i64({1}, {2})});
     },
     2 * 7999999.0, kSlow / 8},
    {"(float[1,c,h,w] X, float[1,1,1,2] G) => (float[1,c,1,1] Y) { Y = GridSample<mode=\"cubic\">(X, G) }", 16,
     [] {
       return values({noise({1, 1000000, 2, 2}), f32({1, 1, 1, 2}, {0, 0})});
     },
     16e6, kSlow / 4},
    {"(float[1,2,3] T, int64[4] S) => (float[1,h,w,2] G) { G = AffineGrid(T, S) }", 20,
     [] {
       return values({f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), i64({4}, {1, 1, 2000, 1000})});
     },
     2e6, kSlow / 32},
    {"(float[n] D, int64[m,1] I, float[m] U) => (float[n] Y) { Y = ScatterND(D, I, U) }", 18,
     [] {
       return values({noise({1000000}), iota(DType::Int64, {1000000, 1}, 0, 0), noise({1000000})});
     },
     1e6, kSlow / 64},
    {"(bool[n] X) => (int64[1,m] Y) { Y = NonZero(X) }", 13,
     [] { return values({iota(DType::Bool, {8000000}, 0, 0)}); }, 8e6, kSlow / 8},
    {"(bool[n] X) => (int64[1,m] Y) { Y = NonZero(X) }", 13,
     [] { return values({repeated(DType::Bool, {4000000}, 1)}); }, 4e6, kSlow / 64},
    {"(float[n] X, bool[n] C) => (float[m] Y) { Y = Compress(X, C) }", 11,
     [] {
       return values({noise({8000000}), iota(DType::Bool, {8000000}, 0, 0)});
     },
     8e6, kSlow / 8},
    {"(uint8[n] X, bool[n] C) => (uint8[m] Y) { Y = Compress(X, C) }", 11,
     [] {
       return values({repeated(DType::UInt8, {8000000}, 1), repeated(DType::Bool, {8000000}, 1)});
     },
     2 * 8e6, kSlow / 16},
    {"(uint8[2,n] X, bool[n] C) => (uint8[2,m] Y) { Y = Compress<axis=1>(X, C) }", 11,
     [] {
       return values({repeated(DType::UInt8, {2, 8000000}, 1), repeated(DType::Bool, {8000000}, 1)});
     },
     3 * 8e6, kSlow / 8},
    {"(string[n] X, int32[n] I, string[n] U) => (string[n] Y) { Y = ScatterElements(X, I, U) }", 18,
     [] {
       return values({many_texts(), repeated(DType::Int32, {kMany}, 1), many_texts("c")});
     },
     2.0 * kMany, kTexts},
    {"(string[n] X, bool[n] C) => (string[m] Y) { Y = Compress(X, C) }", 11,
     [] {
       return values({many_texts(), repeated(DType::Bool, {kMany}, 1)});
     },
     1.0 * kMany, kTexts},
    {"(string[n] X) => (string[n,m] Y, int64[n] Z) { Y, Z = StringSplit(X) }", 20,
     [] { return values({many_texts()}); }, 2.0 * kMany, kTexts},
    {"(string[n] X) => (string[n,m] Y) { Y = com.microsoft.Tokenizer<mark=0, pad_value=\"\", mincharnum=1, "
     "separators=[\" \"]>(X) }",
     20, [] { return values({many_texts()}); }, 2.0 * kMany, kTexts},
    {"(string[n] X) => (string[n] Y) { Y = ai.onnx.ml.LabelEncoder<keys_strings=[\"k\"], values_strings=[\"v\"]>(X) }",
     17, [] { return values({many_texts()}); }, 1.0 * kMany, kTexts},
    {"(int32[n] X, int32[n] I) => (int32[n] Y) { Y = GatherElements(X, I) }", 13,
     [] {
       return values({repeated(DType::Int32, {8000000}, 1), repeated(DType::Int32, {8000000}, 0)});
     },
     8e6, kSlow / 8},
    {"(float[n,1] X) => (float[n,1] V, int64[n,1] I) { K = Constant<value_ints=[1]>() V, I = TopK(X, K) }", 17,
     [] {
       return values({repeated(DType::Float32, {4000000, 1}, 1)});
     },
     2 * 4e6, kSlow / 8},
    {"(float[n,m] X, int64[2] S) => (float[p,q] Y) { Y = CenterCropPad(X, S) }", 18,
     [] {
       return values({noise({1, 1}), i64({2}, {2, 8000000})});
     },
     16e6, kSlow / 8},
    {"(float[n] X) => (float[n] Y) { A = Constant<value_ints=[-1]>() B = Unsqueeze(X, A) Y = ReduceL2<keepdims=0>(B, "
     "A) }",
     18, [] { return values({repeated(DType::Float32, {8000000}, 1)}); }, 8e6, kSlow / 8},
    {"(float[n,c] X, float[c] S, float[c] B, float[c] M, float[c] V) => (float[n,c] Y) { Y = BatchNormalization(X, "
     "S, B, M, V) }",
     15,
     [] {
       const Tensor line = repeated(DType::Float32, {2000000}, 1);
       return values({repeated(DType::Float32, {1, 2000000}, 1), line, line, line, line});
     },
     2 * 2e6, kSlow / 16},
    {"(int64[n,k] X) => (float[n,t] Y) { Y = ai.onnx.ml.LinearRegressor<coefficients=[1.0, 2.0], targets=2, "
     "post_transform=\"SOFTMAX\">(X) }",
     17,
     [] {
       return values({repeated(DType::Int64, {1000000, 1}, 1)});
     },
     2e6, kSlow / 64},
    {"(int32[n,k] A, int32[k,m] B) => (int32[n,m] C) { C = com.microsoft.SparseToDenseMatMul(A, B) }", 17,
     [] {
       return values({repeated(DType::Int32, {1000, 4000}, 1), repeated(DType::Int32, {4000, 1}, 1)});
     },
     4 * 4e6, kSlow / 8},
    {"(uint8[n,m] X, int64[k] I, float[n,b] S) => (float[k,q] Y) { Y = com.microsoft.GatherBlockQuantized<bits=8, "
     "block_size=16>(X, I, S) }",
     17,
     [] {
       return values(
           {repeated(DType::UInt8, {1, 4000000}, 1), i64({1}, {0}), repeated(DType::Float32, {1, 250000}, 1)});
     },
     4e6, kSlow / 32},
    {"(string[n] X) => (string[n] Y) { Y = StringNormalizer<case_change_action=\"LOWER\">(X) }", 10,
     [] { return long_text('A'); }, kCharacters, kTextStep},
    {"(string[n] X) => (string[m] Y) { Y = StringNormalizer<stopwords=[\"a\"]>(X) }", 10, [] { return long_text(); },
     2 * kCharacters, kTextStep},
    {"(string[n] X) => (string[n,m] Y, int64[n] Z) { Y, Z = StringSplit(X) }", 20, [] { return long_text(); },
     2 * kCharacters, kTextStep},
    {"(string[n] X) => (string[n,m] Y, int64[n] Z) { Y, Z = StringSplit<delimiter=\"aab\">(X) }", 20,
     [] { return long_text(); }, 2 * kCharacters, kTextStep},
    {"(string[n] X, string[n] Y) => (string[n] Z) { Z = StringConcat(X, Y) }", 20, two_long_texts, 2 * kCharacters,
     kTextStep},
    {"(string[n] X) => (bool[n] Y) { Y = RegexFullMatch<pattern=\"[a-z]*\">(X) }", 20, [] { return long_text(); },
     kCharacters, kTextStep},
    {"(string[n] X) => (bool[n] Y) { Y = RegexFullMatch<pattern=\"(?:\\\\b|a)*\">(X) }", 20, [] { return long_text(); },
     kCharacters, kTextStep},
    {"(string[n] X) => (string[n,m] Y) { Y = com.microsoft.Tokenizer<mark=0, pad_value=\"\", mincharnum=1, "
     "tokenexp=\"a+\">(X) }",
     20, [] { return long_text(); }, 2 * kCharacters, kTextStep},
    {"(string[n] X) => (string[n,m] Y) { Y = com.microsoft.Tokenizer<mark=0, pad_value=\"\", mincharnum=5000000, "
     "separators=[\"b\"]>(X) }",
     20, [] { return long_text(); }, 2 * kCharacters, kTextStep},
    {"(string[n] X, string[n] Y) => (bool[n] Z) { Z = Equal(X, Y) }", 19, two_long_texts, kCharacters, kTextStep},
    {"(string[n] X) => (string[m] Y) { Y = Unique(X) }", 11,
     [] {
       return values({str({2}, {std::string(kLength, 'a'), std::string(kLength, 'a')})});
     },
     2 * kCharacters, kTextStep},
    {"(string[n] X, string[n] Y) => (string[m] Z) { Z = Concat<axis=0>(X, Y) }", 13, two_long_texts, 2 * kCharacters,
     kTextStep},
    {"(string[n] X, int64[1] I) => (string[m] Y) { Y = Gather(X, I) }", 13,
     [] {
       return values({one_text(), i64({1}, {0})});
     },
     kCharacters, kTextStep},
    {"(string[n] X, int64[1] I) => (string[m] Y) { Y = GatherElements(X, I) }", 13,
     [] {
       return values({one_text(), i64({1}, {0})});
     },
     kCharacters, kTextStep},
    {"(string[n] X, int64[1] I, string[n] U) => (string[n] Y) { Y = ScatterElements(X, I, U) }", 18,
     [] {
       return values({one_text(), i64({1}, {0}), one_text('b')});
     },
     2 * kCharacters, kTextStep},
    {"(bool[n] C, string[n] X, string[n] Y) => (string[n] Z) { Z = Where(C, X, Y) }", 16,
     [] {
       return values({iota(DType::Bool, {1}, 1, 0), one_text(), one_text('b')});
     },
     kCharacters, kTextStep},
    {"(string[n] X, int64[2] P, string V) => (string[m] Y) { Y = Pad(X, P, V) }", 18,
     [] {
       return values({one_text(), i64({2}, {1, 0}), str({}, {std::string(kLength, 'b')})});
     },
     2 * kCharacters, kTextStep},
    {"(string[n] X, int64[2] S) => (string[m] Y) { Y = Expand(X, S) }", 13,
     [] {
       return values({one_text(), i64({2}, {2, 1})});
     },
     2 * kCharacters, kTextStep},
    {"(string[n] X, bool[n] C) => (string[m] Y) { Y = Compress(X, C) }", 11,
     [] {
       return values({one_text(), iota(DType::Bool, {1}, 1, 0)});
     },
     kCharacters, kTextStep},
    {"(int64[n] I, int64 D, string[2] V) => (string[n,d] Y) { Y = OneHot(I, D, V) }", 11,
     [] {
       return values({i64({1}, {0}), i64({}, {2}), str({2}, {std::string(kLength, 'a'), std::string(kLength, 'b')})});
     },
     3 * kCharacters, kTextStep},
    {"(string[1,k,l] X, int64[1] I, int64[1] B) => (string[1,1,w] Y) { Y = Col2Im(X, I, B) }", 18,
     [] {
       return values({str({1, 1, 1}, {std::string(kLength, 'a')}), i64({1}, {1}), i64({1}, {1})});
     },
     kCharacters, kTextStep},
    {"(string[1,1,1,1] X, float[1,1,1,2] G) => (string[1,1,1,1] Y) { Y = GridSample<mode=\"nearest\">(X, G) }", 16,
     [] {
       return values({str({1, 1, 1, 1}, {std::string(kLength, 'a')}), f32({1, 1, 1, 2}, {0, 0})});
     },
     kCharacters, kTextStep},
    {"(string[n] X) => (float[n] Y) { Y = Cast<to=1>(X) }", 13,
     [] { return values({str({1}, {"1" + std::string(kLength, ' ')})}); }, kCharacters, kTextStep},
    // Weights that are fed, whose packing takes longer than their product: its numbers are the steps.
    {"(uint8[n,k] A, uint8[k,m] B) => (int32[n,m] C) { C = MatMulInteger(A, B) }", 17,
     [] {
       return values({iota(DType::UInt8, {1, 4096}, 1, 0), square(DType::UInt8, 4096)});
     },
     4096.0 * 4096, kPacked},
    {"(uint8[n,k] A, float S, uint8 Z, uint8[k,m] B) => (float[n,m] C) { C = com.microsoft.QGemm(A, S, Z, B, S, Z) }",
     17,
     [] {
       return values({iota(DType::UInt8, {1, 4096}, 1, 0), f32({}, {1}), iota(DType::UInt8, {}, 1, 0),
                      square(DType::UInt8, 4096)});
     },
     4096.0 * 4096, kPacked},
    {"(float8e4m3fn[n,k] A, float S, float8e4m3fn Z, float8e4m3fn[k,m] B) => (float8e4m3fn[n,m] C) { C = "
     "QLinearMatMul(A, S, Z, B, S, Z, S, Z) }",
     21,
     [] {
       return values({iota(DType::Float8E4M3FN, {1, 4096}, 0, 0), f32({}, {1}), iota(DType::Float8E4M3FN, {}, 0, 0),
                      iota(DType::Float8E4M3FN, {4096, 4096}, 0, 0)});
     },
     4096.0 * 4096, kPacked},
    {"(float[1,c,l] X, float[m,c,k] W) => (float[1,m,o] Y) { Y = Conv(X, W) }", 17,
     [] {
       return values({noise({1, 4096, 1}), noise({2048, 4096, 1})});
     },
     2048.0 * 4096, kPacked / 2},
    {"(uint8[1,c,l] X, uint8[m,c,k] W) => (int32[1,m,o] Y) { Y = ConvInteger(X, W) }", 17,
     [] {
       return values({iota(DType::UInt8, {1, 4096, 1}, 1, 0), iota(DType::UInt8, {4096, 4096, 1}, 1, 0)});
     },
     4096.0 * 4096, kPacked},
    {"(float[t,b,i] X, float[1,g,i] W, float[1,g,h] R) => (float[t,1,b,h] Y) { Y = LSTM<hidden_size=1024>(X, W, R) }",
     17,
     [] {
       return values({noise({1, 1, 4096}), noise({1, 4096, 4096}), noise({1, 4096, 1024})});
     },
     5120.0 * 4096, kPacked},
    {"(float[t,b,i] X, uint8[1,i,g] W, uint8[1,h,g] R, float[d] S, uint8[d] Z) => (float[t,1,b,h] Y) { Y = "
     "com.microsoft.DynamicQuantizeLSTM<hidden_size=1024>(X, W, R, , , , , , S, Z, S, Z) }",
     17,
     [] {
       return values({noise({1, 1, 4096}), iota(DType::UInt8, {1, 4096, 4096}, 1, 0),
                      iota(DType::UInt8, {1, 1024, 4096}, 1, 0), f32({1}, {1}), iota(DType::UInt8, {1}, 1, 0)});
     },
     5120.0 * 4096, kPacked},
    {"(float[n,n] X) => (float D) { D = Det(X) }", 17,
     [] {
       return values({noise({600, 600})});
     },
     std::pow(600.0, 3) / 3, kSlow},
    {"(float[n,n] X) => (float[n,n] Y) { Y = com.microsoft.Inverse(X) }", 17,
     [] {
       return values({noise({400, 400})});
     },
     2 * std::pow(400.0, 3), kSlow},
};

const CountedGraphs kGraphs{std::span<const LongOp>(kLongOps)};

}  // namespace

TEST_CASE("cancellation, timeout and worker.terminate() reach into every kernel") { check_looks(kLongOps); }
