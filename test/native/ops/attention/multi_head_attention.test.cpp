#include "ops/float_types.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 23, \"com.microsoft\" : 1]> g ";

/// What the standard's Attention makes of [batch, rows, heads * head] inputs.
Value standard(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t heads, const char* attributes = "") {
  return run_op(cat("(Q, K, V) => (Y) { Y = Attention<", attributes, " q_num_heads=", heads, ", kv_num_heads=", heads,
                    ">(Q, K, V) }"),
                23, {q, k, v})[0];
}

/// Columns [first, first + count) of the last axis.
Tensor columns(const Tensor& t, std::int64_t first, std::int64_t count) {
  Shape shape = t.shape();
  shape[t.rank() - 1] = count;
  Tensor out = Tensor::make(DType::Float32, shape);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.mutable_data<float>()[i] = t.data<float>()[i / count * t.shape().back() + first + i % count];
  return out;
}

TEST_CASE("MultiHeadAttention agrees with Attention, plain and packed") {
  const Tensor q = noise({2, 5, 12}), k = noise({2, 7, 12}, 1, 2), v = noise({2, 7, 8}, 1, 3);
  check_op(cat(kHeader, "(Q, K, V) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=2>(Q, K, V) }"), 23,
           {q, k, v}, {standard(q, k, v, 2)});
  check_op(
      cat(kHeader, "(Q, K, V) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=2, unidirectional=1>(Q, K, V) }"),
      23, {q, q, q}, {standard(q, q, q, 2, "is_causal=1,")});
  // Queries are the last of the rows that keys are given for.
  const std::string causal =
      cat(kHeader, "(Q, K, V) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=1, unidirectional=1>(Q, K, V) }");
  const Tensor keys = noise({1, 5, 1}), values = f32({1, 5, 1}, {0, 1, 2, 3, 4});
  check_op(causal, 23, {f32({1, 1, 1}, {0}), keys, values}, {f32({1, 1, 1}, {2})});
  check_op(causal, 23, {f32({1, 2, 1}, {0, 0}), keys, values}, {f32({1, 2, 1}, {1.5f, 2})});
  // [batch, rows, heads, 3, head] holds query, key and value of each head.
  const Tensor packed = noise({1, 4, 2, 3, 5});
  const auto part = [&](std::int64_t which) {
    Tensor out = Tensor::make(DType::Float32, {1, 4, 10});
    for (std::int64_t i = 0; i < 40; ++i)
      out.mutable_data<float>()[i] = packed.data<float>()[(i / 5 * 3 + which) * 5 + i % 5];
    return out;
  };
  check_op(cat(kHeader, "(Q) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=2>(Q) }"), 23, {packed},
           {standard(part(0), part(1), part(2), 2)});
}

TEST_CASE("MultiHeadAttention adds biases, masks keys and keeps a past") {
  const Tensor q = f32({1, 1, 1}, {0}), k = f32({1, 2, 1}, {1, 2}), v = f32({1, 2, 1}, {2, 6});
  check_op(cat(kHeader, "(Q, K, V, B) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=1>(Q, K, V, B) }"), 23,
           {q, k, v, f32({3}, {0, 0, 10})}, {f32({1, 1, 1}, {14})});
  check_op(cat(kHeader, "(Q, K, V, M) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=1>(Q, K, V, , M) }"), 23,
           {q, k, v, i32({1, 2}, {0, 1})}, {f32({1, 1, 1}, {6})});
  check_op(cat(kHeader, "(Q, K, V, M) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=1>(Q, K, V, , M) }"), 23,
           {q, k, v, i32({1}, {1})}, {f32({1, 1, 1}, {2})});
  check_op(cat(kHeader, "(Q, K, V, A) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=1>(Q, K, V, , , A) }"),
           23, {q, k, v, f32({1, 1, 1, 2}, {std::log(3.0f), 0})}, {f32({1, 1, 1}, {3})});
  check_op(cat(kHeader,
               "(Q, K, V, P, R) => (Y, C, D) { Y, C, D = com.microsoft.MultiHeadAttention<num_heads=1>(Q, K, V, , , , "
               "P, R) }"),
           23, {q, k, v, f32({1, 1, 1, 1}, {7}), f32({1, 1, 1, 1}, {1})},
           {f32({1, 1, 1}, {3}), f32({1, 1, 3, 1}, {7, 1, 2}), f32({1, 1, 3, 1}, {1, 2, 6})});
  check_op_fails(
      cat(kHeader, "(Q, K, V, M) => (Y) { Y = com.microsoft.MultiHeadAttention<num_heads=1>(Q, K, V, , M) }"), 23,
      {q, k, v, i32({4}, {1, 1, 1, 1})}, ErrorCode::ShapeMismatch, "attention mask");
}

TEST_CASE("Attention of com.microsoft projects first") {
  const Tensor x = noise({2, 3, 6}), w = noise({6, 24}, 1, 2), b = noise({24}, 1, 3);
  const Tensor all = run_op("(X, W, B) => (Y) { Z = MatMul(X, W) Y = Add(Z, B) }", 23, {x, w, b})[0].tensor();
  const Value expected = standard(columns(all, 0, 8), columns(all, 8, 8), columns(all, 16, 8), 4);
  check_op(cat(kHeader, "(X, W, B) => (Y) { Y = com.microsoft.Attention<num_heads=4>(X, W, B) }"), 23, {x, w, b},
           {expected});
  check_op(
      cat(kHeader,
          "(X, W, B, P) => (Y, Z) { Y, Z = com.microsoft.Attention<num_heads=1, unidirectional=1>(X, W, B, , P) }"),
      23, {f32({1, 1, 1}, {1}), f32({1, 3}, {0, 5, 3}), f32({3}, {0, 0, 0}), f32({2, 1, 1, 1, 1}, {4, 1})},
      {f32({1, 1, 1}, {2}), f32({2, 1, 1, 2, 1}, {4, 5, 1, 3})});
  check_op_fails(cat(kHeader, "(X, W, B) => (Y) { Y = com.microsoft.Attention<num_heads=5>(X, W, B) }"), 23, {x, w, b},
                 ErrorCode::ShapeMismatch, "do not divide");
}

}  // namespace
}  // namespace infernode::test
