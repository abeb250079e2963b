// Cancellation reaches into normalizations of many rows, of what embeddings sum up, and along columns.

#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

Tensor floats(const Shape& shape) { return repeated(DType::Float32, shape, 0.5); }
Tensor codes(const Shape& shape) { return repeated(DType::UInt8, shape, 1); }
Tensor ids(const Shape& shape) { return repeated(DType::Int32, shape, 0); }

constexpr double kElements = 1.6e7, kBetween = kSlow / 8;

std::vector<Value> scaled() { return values({floats({250000, 64}), floats({64})}); }
std::vector<Value> skipped() { return values({floats({1, 250000, 64}), floats({64})}); }

const LongOp kNorms[] = {
    {"(float[n,m] X, float[m] S) => (Y) { Y = SimplifiedLayerNormalization(X, S) }", 17, scaled, kElements, kBetween},
    {"(float[n,m] X, float[m] S) => (Y) { Y = com.microsoft.SimplifiedLayerNormalization(X, S) }", 17, scaled,
     kElements, kBetween},
    {"(float[b,n,m] X, float[m] S) => (Y) { Y = com.microsoft.SkipLayerNormalization(X, X, S) }", 17, skipped,
     kElements, kBetween},
    {"(float[b,n,m] X, float[m] S) => (Y) { Y = com.microsoft.SkipSimplifiedLayerNormalization(X, X, S) }", 17, skipped,
     kElements, kBetween},
    {"(float[b,h,w,c] X, float[c] S, float[b,c] K) => (Y) { Y = com.microsoft.SkipGroupNorm<groups=1, activation=1, "
     "channels_last=1>(X, S, S, K) }",
     17,
     [] {
       return values({floats({1, 500, 500, 64}), floats({64}), floats({1, 64})});
     },
     kElements, kBetween},
    {"(float[n,c] X, int64[n] T) => (float L) { L = NegativeLogLikelihoodLoss(X, T) }", 17,
     [] {
       return values({floats({4000000, 2}), repeated(DType::Int64, {4000000}, 0)});
     },
     4e6, kSlow / 16},
    {"(int32[b,s] I, uint8[v,c] W, uint8[s,c] P, uint8[c] G, float S, uint8 Z) => (Y, M) { Y, M = "
     "com.microsoft.QEmbedLayerNormalization(I, , W, P, , G, G, , S, S, , S, S, Z, Z, , Z, Z) }",
     17,
     [] {
       return values({ids({1, 500000}), codes({2, 8}), codes({500000, 8}), codes({8}), f32({}, {1}), u8({}, {0})});
     },
     4e6, kSlow / 32},
};

// Columns whose elements lie in a page each, which take as long as hundreds beside each other.
template <DType kType>
std::vector<Value> pages() {
  const std::int64_t columns = 4096 * 8 / static_cast<std::int64_t>(tensor::bit_size(kType));
  return values({repeated(kType, {20000, columns}, 1)});
}
constexpr double kDoubles = 20000.0 * 512, kFloats = 20000.0 * 1024, kPages = 1 << 14, kParts = 1 << 20;

const LongOp kColumns[] = {
    {"(double[n,m] X) => (double[n,m] Y) { Y = LogSoftmax<axis=0>(X) }", 17, pages<DType::Float64>, kDoubles, kPages},
    {"(double[n,m] X) => (double[n,m] Y) { Y = Softmax<axis=0>(X) }", 17, pages<DType::Float64>, kDoubles, kPages},
    {"(double[n,m] X) => (double[n,m] Y) { Y = LpNormalization<axis=0>(X) }", 17, pages<DType::Float64>, kDoubles,
     kPages},
    {"(double[n,m] X) => (double[n,m] Y) { Y = Hardmax<axis=0>(X) }", 17, pages<DType::Float64>, kDoubles, kPages},
    {"(double[n,m] X) => (double[1,m] Y) { A = Constant<value_ints = [0]>() Y = ReduceLogSumExp(X, A) }", 18,
     pages<DType::Float64>, kDoubles, kPages},
    // Several columns at once.
    {"(float[n,m] X) => (float[n,m] Y) { Y = LogSoftmax<axis=0>(X) }", 17, pages<DType::Float32>, kFloats, kParts},
    {"(float[n,m] X) => (float[n,m] Y) { A = Constant<value_int = 0>() Y = CumSum(X, A) }", 17, pages<DType::Float32>,
     kFloats, kParts},
    {"(int64[n,m] X) => (int64[m] Y) { Y = ArgMax<axis=0, keepdims=0>(X) }", 17, pages<DType::Int64>, kDoubles, kParts},
};

const CountedGraphs kGraphs[] = {CountedGraphs(kNorms), CountedGraphs(kColumns)};

}  // namespace

TEST_CASE("normalizations of many rows look whether their run is to end") { check_looks(kNorms); }
TEST_CASE("columns of elements that lie in a page each look whether their run is to end") { check_looks(kColumns); }
