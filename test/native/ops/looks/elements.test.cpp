// Cancellation reaches into operators that treat elements, or move them, in a loop that is cut for threads and looks
// between two slices.

#include <cmath>

#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr auto kFloat = DType::Float32, kBytes = DType::UInt8, kTruth = DType::Bool, kInts = DType::Int64;

/// An operator of tensors of one shape.
struct OfElements {
  const char* name;  ///< with attributes
  std::int64_t opset;
  DType in = kFloat, out = kFloat;
  std::size_t inputs = 1;
};

std::string text_of(const OfElements& op) {
  std::string parameters, arguments;
  for (std::size_t i = 0; i < op.inputs; ++i) {
    parameters += cat(i == 0 ? "" : ", ", tensor::onnx_name(op.in), "[1,1,1,n] X", i);
    arguments += cat(i == 0 ? "" : ", ", "X", i);
  }
  return cat("(", parameters, ") => (", tensor::onnx_name(op.out), "[1,1,1,n] Y) { Y = ", op.name, "(", arguments,
             ") }");
}

const OfElements kOfElements[] = {
    {"Abs", 17},
    {"Acos", 17},
    {"Acosh", 17},
    {"Affine<alpha=2.0, beta=1.0>", 1},
    {"Asin", 17},
    {"Asinh", 17},
    {"Atan", 17},
    {"Atanh", 17},
    {"Bernoulli", 17},
    {"BitwiseNot", 18, kBytes, kBytes},
    {"Cast<to=7>", 17, kFloat, kInts},
    {"Ceil", 17},
    {"Celu", 17},
    {"Clip", 17},
    {"Cos", 17},
    {"Cosh", 17},
    {"Dropout", 17},
    {"Elu", 17},
    {"Erf", 17},
    {"Exp", 17},
    {"Floor", 17},
    {"Gelu", 20},
    {"HardSigmoid", 17},
    {"HardSwish", 17},
    {"ImageScaler<scale=2.0, bias=[1.0]>", 1},
    {"IsInf", 17, kFloat, kTruth},
    {"IsNaN", 17, kFloat, kTruth},
    {"LeakyRelu", 17},
    {"Log", 17},
    {"Mish", 22},
    {"Neg", 17},
    {"Not", 17, kTruth, kTruth},
    {"ParametricSoftplus<alpha=1.0, beta=1.0>", 1},
    {"RandomNormalLike", 17},
    {"RandomUniformLike", 17},
    {"Reciprocal", 17},
    {"Relu", 17},
    {"Round", 17},
    {"Scale<scale=2.0>", 1},
    {"ScaledTanh<alpha=1.0, beta=1.0>", 1},
    {"Selu", 17},
    {"Shrink", 17},
    {"Sigmoid", 17},
    {"Sign", 17},
    {"Sin", 17},
    {"Sinh", 17},
    {"Softplus", 17},
    {"Softsign", 17},
    {"Sqrt", 17},
    {"Swish", 24},
    {"Tan", 17},
    {"Tanh", 17},
    {"ThresholdedRelu", 17},
    {"com.microsoft.FastGelu", 17},
    {"com.microsoft.Gelu", 17},
    {"com.microsoft.QuickGelu", 17},
    {"ai.onnx.ml.Binarizer", 17},
    {"Add", 17, kFloat, kFloat, 2},
    {"And", 17, kTruth, kTruth, 2},
    {"BitShift<direction=\"LEFT\">", 17, kBytes, kBytes, 2},
    {"BitwiseAnd", 18, kBytes, kBytes, 2},
    {"BitwiseOr", 18, kBytes, kBytes, 2},
    {"BitwiseXor", 18, kBytes, kBytes, 2},
    {"CastLike", 17, kFloat, kFloat, 2},
    {"Div", 17, kFloat, kFloat, 2},
    {"Equal", 17, kInts, kTruth, 2},
    {"Greater", 17, kFloat, kTruth, 2},
    {"GreaterOrEqual", 17, kFloat, kTruth, 2},
    {"Less", 17, kFloat, kTruth, 2},
    {"LessOrEqual", 17, kFloat, kTruth, 2},
    {"Max", 17, kFloat, kFloat, 3},
    {"Mean", 17, kFloat, kFloat, 3},
    {"Min", 17, kFloat, kFloat, 3},
    {"Mod", 17, kInts, kInts, 2},
    {"Mul", 17, kFloat, kFloat, 2},
    {"Or", 17, kTruth, kTruth, 2},
    {"PRelu", 17, kFloat, kFloat, 2},
    {"Pow", 17, kFloat, kFloat, 2},
    {"Sub", 17, kFloat, kFloat, 2},
    {"Sum", 17, kFloat, kFloat, 3},
    {"SwiGLU", 28, kFloat, kFloat, 2},
    {"Xor", 17, kTruth, kTruth, 2},
};

const CountedGraphs kElements([] {
  CountedGraphs::Texts texts;
  for (const OfElements& op : kOfElements) texts.push_back(text_of(op));
  return texts;
});

Tensor bytes(const Shape& shape) { return repeated(DType::UInt8, shape, 1); }
Tensor floats(const Shape& shape) { return repeated(DType::Float32, shape, 0.5); }
Tensor places(const Shape& shape) { return repeated(DType::Int64, shape, 0); }
Tensor one() { return f32({}, {1}); }
Tensor zero() { return u8({}, {0}); }

/// Bytes that are copied, or elements that are computed, between two looks.
constexpr double kCopied = 1 << 24, kMade = 1 << 22;
constexpr std::int64_t kMany = 1 << 26, kSome = 1 << 24;

std::vector<Value> many_bytes() { return values({bytes({2, kMany / 2})}); }
std::vector<Value> some_codes() { return values({bytes({kSome}), one(), zero()}); }
std::vector<Value> a_window() { return values({i64({}, {kSome})}); }

const LongOp kMoves[] = {
    {"(uint8[n,m] X) => (uint8[m,n] Y) { Y = Transpose(X) }", 17,
     [] {
       return values({bytes({8192, 8192})});
     },
     kMany, kCopied},
    {"(uint8[n,m] X) => (uint8[n,k] Y) { R = Constant<value_ints=[1,2]>() Y = Tile(X, R) }", 17, many_bytes, 2 * kMany,
     kCopied},
    {"(uint8[n,m] X) => (uint8[n,k] Y) { Y = Concat<axis=1>(X, X) }", 17, many_bytes, 2 * kMany, kCopied},
    {"(uint8[n,m] X) => (uint8[n,k] Y, uint8[n,l] Z) { Y, Z = Split<axis=1>(X) }", 13, many_bytes, kMany, kCopied},
    {"(uint8[n,m] X, int64[4] P) => (uint8[a,b] Y) { Y = Pad(X, P) }", 13,
     [] {
       return values({bytes({2, kMany / 2}), i64({4}, {0, 1, 0, 1})});
     },
     kMany, kCopied},
    {"(float[n,m] X, int64[4] P) => (Y) { Y = com.microsoft.Pad(X, P) }", 13,
     [] {
       return values({floats({2, kSome / 2}), i64({4}, {0, 1, 0, 1})});
     },
     4.0 * kSome, kCopied},
    {"(uint8[n,m] X) => (uint8[n,k] Y) { A = Constant<value_ints=[1]>() B = Constant<value_ints=[99999999]>() Y = "
     "Slice(X, A, B, A) }",
     13, many_bytes, kMany, kCopied},
    {"(float[n,m] X, int64[1] A, int64[1] B) => (Y) { Y = DynamicSlice(X, A, B) }", 1,
     [] {
       return values({floats({2, kSome / 2}), i64({1}, {0}), i64({1}, {2})});
     },
     4.0 * kSome, kCopied},
    {"(float[n,c,h,w] X) => (Y) { Y = Crop<border=[1, 0, 1, 0]>(X) }", 1,
     [] {
       return values({floats({1, 1, 2, kSome / 2})});
     },
     4.0 * kSome, kCopied},
    {"(uint8[n,m] X, int64[2] S) => (uint8[a,b] Y) { Y = Expand(X, S) }", 13,
     [] {
       return values({bytes({1, kMany / 2}), i64({2}, {2, 1})});
     },
     kMany, kCopied},
    {"(float[n,m] X) => (float[n,m] Y) { K = Constant<value_int=1>() Y = Trilu(X, K) }", 14,
     [] {
       return values({floats({4096, 4096})});
     },
     4.0 * kSome, kCopied},
    {"(float[n,m] X) => (Y) { Y = com.microsoft.Trilu(X) }", 14,
     [] {
       return values({floats({4096, 4096})});
     },
     4.0 * kSome, kCopied},
    {"(float[n,c,h,w] X) => (float[n,d,p,q] Y) { Y = SpaceToDepth<blocksize=2>(X) }", 13,
     [] {
       return values({floats({1, 1, 4096, 4096})});
     },
     4.0 * kSome, kCopied},
    {"(float[n,c,h,w] X) => (float[n,d,p,q] Y) { Y = DepthToSpace<blocksize=2>(X) }", 13,
     [] {
       return values({floats({1, 4, 2048, 2048})});
     },
     4.0 * kSome, kCopied},
    {"(float[n] X) => (seq(float[m]) Y) { S = Constant<value_int=9000000>() Y = SplitToSequence(X, S) }", 17,
     [] { return values({floats({kSome})}); }, 4.0 * kSome, kCopied},
    {"(float[n] X) => (float[m] Z) { S = Constant<value_int=9000000>() Y = SplitToSequence(X, S) Z = "
     "ConcatFromSequence<axis=0>(Y) }",
     17, [] { return values({floats({kSome})}); }, 8.0 * kSome, kCopied},
    {"(float[n,1] X) => (Y) { S = SplitToSequence(X) Y = SequenceMap<body = b (float[1,1] u) => (p) { p = Neg(u) }>(S) "
     "}",
     17,
     [] {
       return values({floats({1000, 1})});
     },
     1000, 1},
    {"(float[n,c,h,w] X, float[4] S) => (float[a,b,d,e] Y) { Y = Upsample(X, S) }", 9,
     [] {
       return values({floats({1, 1, 1024, 1024}), f32({4}, {1, 1, 4, 4})});
     },
     16.0 * 1024 * 1024, kMade},
    {"(float[n] X, int64[k,1] I) => (float[k] Y) { Y = GatherND(X, I) }", 13,
     [] {
       return values({floats({8}), places({kSome / 2, 1})});
     },
     kSome / 2, kMade / 2},
    {"(float[n] X, int64[k,1] I) => (Y) { Y = com.microsoft.GatherND(X, I) }", 13,
     [] {
       return values({floats({8}), places({kSome / 2, 1})});
     },
     kSome / 2, kMade / 2},
    {"(float[n] X, int64[k] I, float[k] U) => (float[n] Y) { Y = Scatter(X, I, U) }", 10,
     [] {
       return values({floats({8}), places({kSome / 4}), floats({kSome / 4})});
     },
     kSome / 4, kMade / 4},
    {"(float[b,n,d] X, float[b,s,d] U) => (float[b,n,d] Y) { Y = TensorScatter(X, U) }", 24,
     [] {
       return values({floats({1, kSome / 2, 1}), floats({1, kSome / 4, 1})});
     },
     3.0 * kSome, kCopied},
    {"(float[n] X, bool[n] C) => (float[n] Y) { Y = Where(C, X, X) }", 16,
     [] {
       return values({floats({kSome}), repeated(DType::Bool, {kSome}, 1)});
     },
     kSome, kMade},
    {"(float[n,m] X) => (float[n,m] Y) { A = Constant<value_int=1>() Y = CumSum(X, A) }", 14,
     [] {
       return values({floats({2, kSome / 2})});
     },
     kSome, kMade},
    {"(float[n,m] X) => (float[n,m] Y) { A = Constant<value_int=0>() Y = CumSum(X, A) }", 14,
     [] {
       return values({floats({2, kSome / 2})});
     },
     kSome, kMade},
    {"(float[n,m] X) => (float[n,m] Y) { A = Constant<value_int=1>() Y = CumProd(X, A) }", 26,
     [] {
       return values({floats({2, kSome / 2})});
     },
     kSome, kMade},
    {"(uint8[n] X, float S, uint8 Z) => (float[n] Y) { Y = DequantizeLinear(X, S, Z) }", 17, some_codes, kSome,
     2 * kMade},
    {"(uint8[n] X, float S, uint8 Z) => (Y) { Y = com.microsoft.DequantizeLinear(X, S, Z) }", 17, some_codes, kSome,
     2 * kMade},
    {"(float[n] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QuantizeLinear(X, S, Z) }", 17,
     [] {
       return values({floats({kSome}), one(), zero()});
     },
     kSome, 2 * kMade},
    {"(float[n] X) => (uint8[n] Y, float S, uint8 Z) { Y, S, Z = DynamicQuantizeLinear(X) }", 17,
     [] { return values({floats({kSome})}); }, 2.0 * kSome, 2 * kMade},
    {"(uint8[n] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QLinearAdd(X, S, Z, X, S, Z, S, Z) }", 17, some_codes,
     kSome, 2 * kMade},
    {"(uint8[n] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QLinearMul(X, S, Z, X, S, Z, S, Z) }", 17, some_codes,
     kSome, 2 * kMade},
    {"(uint8[n] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QLinearSigmoid(X, S, Z, S, Z) }", 17, some_codes, kSome,
     2 * kMade},
    {"(uint8[n] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QLinearLeakyRelu(X, S, Z, S, Z) }", 17, some_codes,
     kSome, 2 * kMade},
    {"(uint8[n] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QLinearConcat<axis=0>(S, Z, X, S, Z, X, S, Z) }", 17,
     some_codes, 2.0 * kSome, 2 * kMade},
    {"(uint8[n] X, float S, uint8 Z, bool[n] C) => (Y) { Y = com.microsoft.QLinearWhere(C, X, S, Z, X, S, Z, S, Z) }",
     17,
     [] {
       return values({bytes({kSome}), one(), zero(), repeated(DType::Bool, {kSome}, 1)});
     },
     kSome, 2 * kMade},
    {"(float[n,m] X, float[m] B) => (Y) { Y = com.microsoft.BiasSoftmax<axis=1, is_inner_broadcast=0>(X, B) }", 17,
     [] {
       return values({floats({1, kSome / 2}), floats({kSome / 2})});
     },
     kSome / 2, kMade},
    {"(float[b,s,d] X, float[m,h] C, int64[b,s] P) => (Y) { Y = com.microsoft.RotaryEmbedding<num_heads=1>(X, P, C, C) "
     "}",
     17,
     [] {
       return values({floats({1, 200000, 64}), floats({1, 32}), places({1, 200000})});
     },
     200000.0 * 64, kMade},
    {"(float[n,m] X, float[m] B) => (Y) { Y = com.microsoft.BiasGelu(X, B) }", 17,
     [] {
       return values({floats({1, kSome / 2}), floats({kSome / 2})});
     },
     kSome / 2, kMade},
    {"(int64 n) => (float[n] Y) { Y = BlackmanWindow(n) }", 17, a_window, kSome, kMade},
    {"(int64 n) => (float[n] Y) { Y = HammingWindow(n) }", 17, a_window, kSome, kMade},
    {"(int64 n) => (float[n] Y) { Y = HannWindow(n) }", 17, a_window, kSome, kMade},
    {"(int64 b, int64 n, int64 r, float l, float u) => (float[A,B] Y) { Y = MelWeightMatrix(b, n, r, l, u) }", 17,
     [] {
       return values({i64({}, {2}), i64({}, {kSome}), i64({}, {16000}), f32({}, {0}), f32({}, {8000})});
     },
     kSome, kMade},
    {"(float A, float B, float D) => (Y) { Y = com.microsoft.Range(A, B, D) }", 17,
     [] {
       return values({f32({}, {0}), f32({}, {1 << 24}), one()});
     },
     kSome, kMade},
    {"() => (float[n] Y) { Y = RandomNormal<shape=[16777216]>() }", 17, [] { return std::vector<Value>(); }, kSome,
     kMade},
    {"() => (float[n] Y) { Y = RandomUniform<shape=[16777216]>() }", 17, [] { return std::vector<Value>(); }, kSome,
     kMade},
    {"(float[n,w,1] X, int64 s, int64 f) => (float[a,b,c,2] Y) { Y = STFT(X, s, , f) }", 17,
     [] {
       return values({noise({1, 1 << 20, 1}), i64({}, {128}), i64({}, {1024})});
     },
     8192.0 * 1024 * 10, kSlow},
    {"(float[n,c,h,w] X, float[n,h,w,2] G) => (Y) { Y = com.microsoft.GridSample(X, G) }", 17,
     [] {
       return values({floats({1, 4, 16, 16}), repeated(DType::Float32, {1, 1000, 1000, 2}, 0)});
     },
     4e6, kSlow / 16},
    {"(float[n] X) => (Y) { Y, A, B = com.microsoft.Unique(X) }", 17, [] { return values({noise({1000000})}); },
     1e6 * 20, kSlow / 8},
    {"(float R, int64 T, float[n] X, float[n] G, float[n] H) => (Y, Z) { Y, Z = "
     "ai.onnx.preview.training.Adagrad<decay_factor=0.0, epsilon=1.0, norm_coefficient=0.0>(R, T, X, G, H) }",
     17,
     [] {
       return values({one(), i64({}, {1}), floats({kSome}), floats({kSome}), floats({kSome})});
     },
     kSome, kMade},
    {"(float R, int64 T, float[n] X, float[n] G, float[n] V, float[n] H) => (Y, Z, U) { Y, Z, U = "
     "ai.onnx.preview.training.Adam(R, T, X, G, V, H) }",
     17,
     [] {
       return values({one(), i64({}, {1}), floats({kSome}), floats({kSome}), floats({kSome}), floats({kSome})});
     },
     kSome, kMade},
    {"(float R, int64 T, float[n] X, float[n] G, float[n] V) => (Y, Z) { Y, Z = "
     "ai.onnx.preview.training.Momentum<alpha=0.9, beta=1.0, mode=\"standard\", norm_coefficient=0.0>(R, T, X, G, V) }",
     17,
     [] {
       return values({one(), i64({}, {1}), floats({kSome}), floats({kSome}), floats({kSome})});
     },
     kSome, kMade},
};

const CountedGraphs kMoved{std::span<const LongOp>(kMoves)};

}  // namespace

TEST_CASE("operators of elements look within a long tensor") {
  constexpr std::int64_t kLong = 1 << 22;
  for (const OfElements& op : kOfElements) {
    const std::string text = text_of(op);
    CAPTURE(text);
    const auto inputs = [&](std::int64_t n) { return std::vector<Value>(op.inputs, repeated(op.in, {1, 1, 1, n}, 1)); };
    CHECK(looks_of(text, op.opset, inputs(kLong)) > looks_of(text, op.opset, inputs(16)));
    CHECK(looks_of(text, op.opset, inputs(kLong), true) == 1);
  }
}

TEST_CASE("operators that move or make many elements look whether their run is to end") { check_looks(kMoves); }
