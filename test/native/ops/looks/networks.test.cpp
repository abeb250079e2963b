// Cancellation reaches into what networks are made of: attention, products of packed weights, convolutions of constant
// ones, mixtures of experts, recurrence. Steps are counted, not time.

#include <cmath>

#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

Tensor codes(const Shape& shape) { return repeated(DType::UInt8, shape, 1); }
Tensor floats(const Shape& shape) { return repeated(DType::Float32, shape, 0.5); }
Tensor zero_code() { return u8({}, {0}); }
Tensor one() { return f32({}, {1}); }

/// Blocks of a lower triangle, as rows of a sparse layout: where each begins, and its columns.
Tensor block_rows(std::int64_t blocks) {
  const Tensor out = Tensor::make(DType::Int32, {1, blocks + 1});
  for (std::int32_t i = 0; i <= blocks; ++i) out.mutable_data<std::int32_t>()[i] = i * (i + 1) / 2;
  return out;
}
Tensor block_columns(std::int64_t blocks) {
  const Tensor out = Tensor::make(DType::Int32, {1, blocks * (blocks + 1) / 2});
  auto* to = out.mutable_data<std::int32_t>();
  for (std::int32_t i = 0; i < blocks; ++i)
    for (std::int32_t j = 0; j <= i; ++j) *to++ = j;
  return out;
}

constexpr double kHeads = 8, kRows = 1024, kHead = 64;
constexpr double kAttention = 2 * kHeads * kRows * kRows * kHead;

std::vector<Value> heads() {
  const Tensor all = noise({1, 8, 1024, 64});
  return values({all, all, all});
}
std::vector<Value> joined_heads() {
  const Tensor all = noise({1, 1024, 512});
  return values({all, all, all});
}

const LongOp kAttentions[] = {
    {"(float[b,h,s,d] Q, float[b,h,n,d] K, float[b,h,n,d] V) => (float[b,h,s,d] Y) { Y = Attention(Q, K, V) }", 23,
     heads, kAttention, kFast},
    {"(float[b,h,s,d] Q, float[b,h,n,d] K, float[b,h,n,d] V) => (Y) { Y = infernode.FusedAttention(Q, K, V) }", 17,
     heads, kAttention, kFast},
    {"(float[b,h,s,d] Q, float[b,h,n,d] K, float[b,h,n,d] V) => (Y) { Y = ai.onnx.preview.FlexAttention(Q, K, V) }", 26,
     heads, kAttention, kFast},
    {"(float[b,s,d] Q, float[b,n,d] K, float[b,n,d] V) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=8>(Q, "
     "K, V) }",
     17, joined_heads, kAttention, kFast},
    {"(float[b,s,d] Q, float[b,n,d] K, float[b,n,d] V, int32[b] L, int32 T) => (Y) { Y = "
     "com.microsoft.GroupQueryAttention<num_heads=8, kv_num_heads=2>(Q, K, V, , , L, T) }",
     17,
     [] {
       return values(
           {noise({1, 1024, 512}), noise({1, 1024, 128}), noise({1, 1024, 128}), i32({1}, {1023}), i32({}, {1024})});
     },
     kAttention / 2, kFast},
    {"(float[b,s,i] X, float[i,h] W, float[h] B) => (Y) { Y = com.microsoft.Attention<num_heads=8>(X, W, B) }", 17,
     [] {
       return values({noise({1, 1024, 512}), noise({512, 1536}), noise({1536})});
     },
     kAttention + 1024.0 * 512 * 1536, kFast},
    {"(uint8[b,s,i] X, uint8[i,h] W, float[h] B, float D) => (Y) { Y = com.microsoft.QAttention<num_heads=8>(X, W, B, "
     "D, D) }",
     17,
     [] {
       return values({codes({1, 1024, 512}), codes({512, 1536}), floats({1536}), f32({}, {0.01f})});
     },
     kAttention + 1024.0 * 512 * 1536, kFast},
    // One query over very many keys.
    {"(float[b,s,d] Q, float[b,h,n,k] K) => (Y) { Y = com.microsoft.DecoderMaskedMultiHeadAttention<num_heads=1>(Q, K, "
     "K) }",
     17,
     [] {
       return values({floats({1, 1, 8}), floats({1, 1, 1 << 22, 8})});
     },
     2.0 * 8 * (1 << 22), kSlow},
    {"(float[b,s,d] Q, float[b,h,n,d] P, int32[l,r] R, int32[l,c] C, int32 T, int32[b] L) => (Y, K, V) { Y, K, V = "
     "com.microsoft.SparseAttention<num_heads=1, kv_num_heads=1, sparse_block_size=64>(Q, Q, Q, P, P, R, C, T, L) }",
     17,
     [] {
       return values({noise({1, 4096, 64}), noise({1, 1, 4096, 64}), block_rows(64), block_columns(64), i32({}, {4096}),
                      i32({1}, {4096})});
     },
     4096.0 * 4096 * 64, kFast},
    {"(float[t,d] Q, float[p,r,h,d] C, int32[q] S, int32[b] P, int32[b,n] T) => (Y) { Y = "
     "com.microsoft.PagedAttention<num_heads=1, kv_num_heads=1>(Q, Q, Q, C, C, S, P, T) }",
     17,
     [] {
       return values({noise({4096, 64}), noise({256, 16, 1, 64}), i32({2}, {0, 4096}), i32({1}, {0}),
                      iota(DType::Int32, {1, 256})});
     },
     4096.0 * 4096 * 64, kFast},
    {"(float[b,s,d] Q) => (Y, S) { Y, S = LinearAttention<q_num_heads=1, kv_num_heads=1, update_rule=\"linear\">(Q, Q, "
     "Q) }",
     27,
     [] {
       return values({noise({1, 4096, 128})});
     },
     2 * 4096.0 * 128 * 128, kSlow / 2},
    {"(float[b,n,s,d] X, float[m,h] C, int64[b,s] P) => (Y) { Y = RotaryEmbedding(X, C, C, P) }", 23,
     [] {
       return values({floats({1, 1, 100000, 128}), floats({1, 64}), repeated(DType::Int64, {1, 100000}, 0)});
     },
     100000.0 * 128, kSlow / 4},
};

constexpr double kProduct = 1024.0 * 1024 * 1024;

std::vector<Value> matrices() { return values({noise({1024, 1024}), noise({1024, 1024})}); }

const LongOp kProducts[] = {
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = MatMul(A, B) }", 17, matrices, kProduct, kFast, true},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = Gemm(A, B) }", 17, matrices, kProduct, kFast, true},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = com.microsoft.FusedMatMul<transA=1>(A, B) }", 17, matrices,
     kProduct, kFast},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = com.microsoft.TransposeMatMul<transB=1>(A, B) }", 17,
     matrices, kProduct, kFast},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = com.microsoft.FusedGemm<activation=\"Relu\">(A, B) }", 17,
     matrices, kProduct, kFast, true},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = infernode.FusedMatMul<activation=\"Relu\">(A, B) }", 17,
     matrices, kProduct, kFast, true},
    // Very many products of few numbers, and one of very many rows.
    {"(float[b,n,d] A, float[b,d,m] B) => (float[b,n,m] C) { C = MatMul(A, B) }", 17,
     [] {
       return values({floats({2000000, 1, 2}), floats({2000000, 2, 1})});
     },
     2e6, kSlow / 64},
    {"(float[n,k] A, float[k,m] B) => (float[n,m] C) { C = MatMul(A, B) }", 17,
     [] {
       return values({floats({8000000, 1}), floats({1, 2})});
     },
     1.6e7, kSlow / 8},
    {"(float[n,k] A, float[k,m] B, float[m] C) => (float[n,m] Y) { Y = Gemm(A, B, C) }", 17,
     [] {
       return values({floats({1, 1 << 24}), floats({1 << 24, 1}), floats({1})});
     },
     1 << 24, kSlow / 8},
    {"(double[n,k] A, double[k,m] B, double C) => (double[n,m] Y) { Y = Gemm(A, B, C) }", 17,
     [] {
       return values({repeated(DType::Float64, {4000, 1}, 1), repeated(DType::Float64, {1, 4000}, 1), f64({}, {1})});
     },
     1.6e7, kSlow / 4},
    {"(int64[n,k] A, int64[k,m] B, int64 C) => (int64[n,m] Y) { Y = Gemm(A, B, C) }", 17,
     [] {
       return values({repeated(DType::Int64, {300, 300}, 1), repeated(DType::Int64, {300, 300}, 1), i64({}, {1})});
     },
     2.7e7, kSlow / 4},
    {"(float16[n,k] A, float16[k,m] B) => (float16[n,m] C) { C = MatMul(A, B) }", 17,
     [] {
       return values({repeated(DType::Float16, {8000, 1}, 1), repeated(DType::Float16, {1, 8000}, 1)});
     },
     6.4e7, kSlow},
    {"(float[n,k] A, uint8[k,m] B, float S) => (C) { C = com.microsoft.DynamicQuantizeMatMul(A, B, S) }", 17,
     [] {
       return values({noise({1024, 1024}), codes({1024, 1024}), one()});
     },
     kProduct, kFast, true},
    {"(uint8[n,k] A, uint8[k,m] B, float S) => (C) { C = com.microsoft.MatMulIntegerToFloat(A, B, S, S) }", 17,
     [] {
       return values({codes({1024, 1024}), codes({1024, 1024}), one()});
     },
     kProduct, kFast, true},
    {"(uint8[n,k] A, uint8[k,m] B, float S) => (C) { C = infernode.FusedMatMulInteger(A, B, S, S) }", 17,
     [] {
       return values({codes({1024, 1024}), codes({1024, 1024}), one()});
     },
     kProduct, kFast, true},
    {"(float[n,k] A, uint8[m,b,c] B, float[s] S) => (float[n,m] C) { C = com.microsoft.MatMulNBits<K=1024, N=1024, "
     "bits=4, block_size=32>(A, B, S) }",
     17,
     [] {
       return values({noise({1024, 1024}), codes({1024, 32, 16}), floats({1024 * 32})});
     },
     kProduct, kFast},
    {"(float[n,k] A, uint8[c] B, float[s] S) => (float[n,m] C) { C = com.microsoft.MatMulBnb4<K=1024, N=1024, "
     "block_size=32, quant_type=1>(A, B, S) }",
     17,
     [] {
       return values({noise({1024, 1024}), codes({512 * 1024}), floats({1024 * 32})});
     },
     kProduct, kFast},
    {"(float[t,h] X, float[t,e] R, float[e,i,h] W, float[e,h,i] V) => (float[t,h] Y) { Y = com.microsoft.MoE<k=1>(X, "
     "R, "
     "W, , V) }",
     17,
     [] {
       return values({noise({1024, 512}), noise({1024, 2}), noise({2, 1024, 512}), noise({2, 512, 1024})});
     },
     kProduct, kFast},
    {"(float[t,h] X, float[t,e] R, uint8[e,i,h] W, float[e,i] S, uint8[e,h,i] V, float[e,h] T) => (float[t,h] Y) { Y = "
     "com.microsoft.QMoE<k=1, expert_weight_bits=8>(X, R, W, S, , V, T) }",
     17,
     [] {
       return values({noise({1024, 512}), noise({1024, 2}), codes({2, 1024, 512}), floats({2, 1024}),
                      codes({2, 512, 1024}), floats({2, 512})});
     },
     kProduct, kFast},
};

const LongOp kConvolutions[] = {
    // Of weights that are constants: by tiles of Winograd's, by points, of one channel a group.
    {"(float[n,c,h,w] X, float[m,c,i,j] W) => (float[n,m,p,q] Y) { Y = Conv(X, W) }", 17,
     [] {
       return values({noise({1, 64, 258, 258}), noise({64, 64, 3, 3})});
     },
     256.0 * 256 * 64 * 64 * 9 / 4, kFast, true},
    {"(float[n,c,h,w] X, float[m,c,i,j] W) => (float[n,m,p,q] Y) { Y = Conv(X, W) }", 17,
     [] {
       return values({noise({1, 128, 256, 256}), noise({128, 128, 1, 1})});
     },
     256.0 * 256 * 128 * 128, kFast, true},
    {"(float[n,c,h,w] X, float[c,1,i,j] W) => (float[n,c,p,q] Y) { Y = Conv<group=2>(X, W) }", 17,
     [] {
       return values({noise({1, 2, 2000, 2000}), noise({2, 1, 9, 9})});
     },
     2 * 1992.0 * 1992 * 81, kFast, true},
    {"(float[n,c,l] X, float[m,c,k] W) => (float[n,m,o] Y) { Y = Conv(X, W) }", 17,
     [] {
       return values({noise({1, 64, 100000}), noise({64, 64, 5})});
     },
     100000.0 * 64 * 64 * 5, kFast, true},
    {"(float[n,c,h,w] X, float[m,c,i,j] W) => (float[n,m,p,q] Y) { Y = com.microsoft.FusedConv<activation=\"Relu\", "
     "strides=[2,2]>(X, W) }",
     17,
     [] {
       return values({noise({1, 64, 402, 402}), noise({64, 64, 3, 3})});
     },
     200.0 * 200 * 64 * 64 * 9, kFast, true},
    {"(float[n,c,h,w] X, float[m,c,i,j] W) => (float[n,m,p,q] Y) { Y = infernode.FusedConv<activation=\"Relu\", "
     "strides=[2,2]>(X, W) }",
     17,
     [] {
       return values({noise({1, 64, 402, 402}), noise({64, 64, 3, 3})});
     },
     200.0 * 200 * 64 * 64 * 9, kFast, true},
    {"(float[n,c,h,w,k] X, float[m,d,i,j] W) => (Y) { Y = infernode.BlockedConv(X, W) }", 17,
     [] {
       return values({noise({1, 4, 258, 258, 16}), noise({64, 64, 3, 3})});
     },
     256.0 * 256 * 64 * 64 * 9 / 4, kFast, true},
    {"(float[n,c,h,w,k] X, float[m,d,i,j] W) => (Y) { Y = infernode.BlockedConv<group=16>(X, W) }", 17,
     [] {
       return values({noise({1, 1, 1002, 1002, 16}), noise({16, 1, 3, 3})});
     },
     16.0 * 1000 * 1000 * 9, kFast / 4, true},
    {"(float[n,c,h,w] X) => (Y) { Y = infernode.BlockChannels(X) }", 17,
     [] {
       return values({floats({1, 16, 1000, 1000})});
     },
     1.6e7, kSlow / 4},
    {"(float[n,c,h,w,k] X) => (Y) { Y = infernode.UnblockChannels<channels=16>(X) }", 17,
     [] {
       return values({floats({1, 1, 1000, 1000, 16})});
     },
     1.6e7, kSlow / 4},
    {"(uint8[n,c,h,w] X, float S, uint8 Z, uint8[m,c,i,j] W) => (uint8[n,m,p,q] Y) { Y = QLinearConv(X, S, Z, W, S, Z, "
     "S, Z) }",
     17,
     [] {
       return values({codes({1, 64, 202, 202}), one(), zero_code(), codes({64, 64, 3, 3})});
     },
     200.0 * 200 * 64 * 64 * 9, kFast, true},
    {"(uint8[n,c,h,w] X, float S, uint8 Z, uint8[c,1,i,j] W) => (uint8[n,c,p,q] Y) { Y = QLinearConv<group=2>(X, S, Z, "
     "W, S, Z, S, Z) }",
     17,
     [] {
       return values({codes({1, 2, 2002, 2002}), one(), zero_code(), codes({2, 1, 3, 3})});
     },
     2 * 2000.0 * 2000 * 9, kSlow, true},
    {"(uint8[n,h,w,c] X, float S, uint8 Z, uint8[m,c,i,j] W) => (uint8[n,p,q,m] Y) { Y = "
     "com.microsoft.QLinearConv<channels_last=1>(X, S, Z, W, S, Z, S, Z) }",
     17,
     [] {
       return values({codes({1, 202, 202, 64}), one(), zero_code(), codes({64, 64, 3, 3})});
     },
     200.0 * 200 * 64 * 64 * 9, kFast, true},
    // Its kernel sees padding alone.
    {"(float[1,1,1,1] X, float[1,1,2,2] W) => (float[n,m,p,q] Y) { Y = Conv<dilations=[4001,4001], "
     "pads=[4000,4000,4000,4000]>(X, W) }",
     17,
     [] {
       return values({floats({1, 1, 1, 1}), floats({1, 1, 2, 2})});
     },
     4000.0 * 4000, kSlow / 8, true},
    {"(float[n,c,l] X, float[c,1,k] W) => (float[n,c,l] Y, float[n,c,p] S) { Y, S = CausalConvWithState(X, W) }", 27,
     [] {
       return values({floats({1, 1, 8000000}), floats({1, 1, 4})});
     },
     4 * 8e6, kSlow},
};

const LongOp kPools[] = {
    {"(float[n,c,h,w] X) => (float[n,c,p,q] Y) { Y = MaxPool<kernel_shape=[15,15]>(X) }", 17,
     [] {
       return values({floats({1, 1, 2000, 2000})});
     },
     1986.0 * 1986 * 225, kFast},
    {"(float[n,c,h,w] X) => (float[n,c,p,q] Y) { Y = AveragePool<kernel_shape=[15,15]>(X) }", 17,
     [] {
       return values({floats({1, 1, 2000, 2000})});
     },
     1986.0 * 1986 * 225, kFast},
    {"(float[n,c,w] X) => (float[n,c,q] Y) { Y = AveragePool<kernel_shape=[3]>(X) }", 17,
     [] {
       return values({floats({1, 1, 16000000})});
     },
     3 * 1.6e7, kSlow / 2},
    {"(float[n,c,w] X) => (float[n,c,q] Y) { Y = MaxPool<kernel_shape=[3], strides=[2]>(X) }", 17,
     [] {
       return values({floats({1, 1, 16000000})});
     },
     3 * 8e6, kSlow / 2},
    // One window over all.
    {"(float[n,c,h,w] X) => (float[n,c,p,q] Y) { Y = AveragePool<kernel_shape=[4000,4000]>(X) }", 17,
     [] {
       return values({floats({1, 1, 4000, 4000})});
     },
     1.6e7, kSlow / 8},
    {"(float[n,c,w] X) => (float[n,c,q] Y) { Y = MaxPool<kernel_shape=[16000000]>(X) }", 17,
     [] {
       return values({floats({1, 1, 16000000})});
     },
     1.6e7, kSlow / 8},
    {"(float[n,c,w] X) => (float[n,c,q] Y) { Y = LpPool<kernel_shape=[16000000]>(X) }", 17,
     [] {
       return values({floats({1, 1, 16000000})});
     },
     1.6e7, kSlow / 8},
    {"(uint8[n,c,w] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QLinearAveragePool<kernel_shape=[3]>(X, S, Z, S, "
     "Z) }",
     17,
     [] {
       return values({codes({1, 1, 4000000}), one(), zero_code()});
     },
     3 * 4e6, kSlow / 8},
    {"(uint8[n,c,w] X, float S, uint8 Z) => (Y) { Y = com.microsoft.QLinearGlobalAveragePool(X, S, Z, S, Z) }", 17,
     [] {
       return values({codes({1, 1, 16000000}), one(), zero_code()});
     },
     1.6e7, kSlow / 4},
    {"(uint8[n,w,c] X) => (Y) { Y = com.microsoft.NhwcMaxPool<kernel_shape=[3]>(X) }", 17,
     [] {
       return values({codes({1, 4000000, 1})});
     },
     3 * 4e6, kSlow / 8},
};

const LongOp kRecurrent[] = {
    {"(float[t,b,i] X, float[1,g,i] W, float[1,g,h] R) => (float[t,1,b,h] Y) { Y = GRU<hidden_size=1>(X, W, R) }", 17,
     [] {
       return values({floats({4, 400000, 1}), floats({1, 3, 1}), floats({1, 3, 1})});
     },
     4 * 4e5 * 3, kSlow / 32},
    {"(double[t,b,i] X, double[1,g,i] W, double[1,g,h] R) => (double[t,1,b,h] Y) { Y = RNN<hidden_size=1>(X, W, R) }",
     17,
     [] {
       return values({repeated(DType::Float64, {4, 1000000, 1}, 1), f64({1, 1, 1}, {1}), f64({1, 1, 1}, {1})});
     },
     4e6, kSlow / 32},
    {"(float[t,b,i] X, float[1,g,i] W, float[1,g,h] R) => (float[t,1,b,h] Y) { Y = LSTM<hidden_size=256>(X, W, R) }",
     17,
     [] {
       return values({noise({64, 32, 64}), noise({1, 1024, 64}), noise({1, 1024, 256})});
     },
     64.0 * 32 * 1024 * 320, kFast, true},
    {"(float[t,b,i] X, float[1,g,i] W, float[1,g,h] R) => (float[t,1,b,h] Y) { Y = GRU<hidden_size=256>(X, W, R) }", 17,
     [] {
       return values({noise({64, 32, 64}), noise({1, 768, 64}), noise({1, 768, 256})});
     },
     64.0 * 32 * 768 * 320, kFast, true},
};

const CountedGraphs kGraphs[] = {CountedGraphs(kAttentions), CountedGraphs(kProducts), CountedGraphs(kConvolutions),
                                 CountedGraphs(kPools), CountedGraphs(kRecurrent)};

}  // namespace

TEST_CASE("attention of every kind looks whether its run is to end") { check_looks(kAttentions); }
TEST_CASE("products of every kind look whether their run is to end") { check_looks(kProducts); }
TEST_CASE("convolutions of constant weights look whether their run is to end") { check_looks(kConvolutions); }
TEST_CASE("pools of planes and of one long line look whether their run is to end") { check_looks(kPools); }
TEST_CASE("recurrence over many rows or many steps looks whether its run is to end") { check_looks(kRecurrent); }
