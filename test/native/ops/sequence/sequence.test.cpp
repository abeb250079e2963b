// Values that are no tensors: sequences, optionals, maps, and what holds them.

#include "ops/op_test.h"

namespace infernode::test {
namespace {

using tensor::Map;
using tensor::Optional;
using tensor::Sequence;

Value sequence(DType type, std::vector<Value> items) { return Sequence{.elem = type, .items = std::move(items)}; }
Value floats(std::vector<Value> items) { return sequence(DType::Float32, std::move(items)); }
Value optional(Value item) { return Optional{std::make_shared<const Value>(std::move(item))}; }
const Value kNothing = Optional{};

TEST_CASE("sequences are built, read and changed, and the old ones stay as they are") {
  const Tensor a = f32({2}, {1, 2}), b = f32({1}, {3});
  check_op(
      "(float[2] A, float[1] B) => (S, T, U, N) { S = SequenceConstruct(A, B, A) T = SequenceErase(S) "
      "P = Constant<value_int=-2>() U = SequenceInsert(T, A, P) N = SequenceLength(U) }",
      21, {a, b}, {floats({a, b, a}), floats({a, b}), floats({a, a, b}), i64({}, {3})});
  check_op("(seq(float[N]) S, int64 I) => (X, T) { X = SequenceAt(S, I) T = SequenceErase(S, I) }", 21,
           {floats({a, b}), i64({}, {-1})}, {b, floats({a})});
  const Tensor words = str({2}, {"a", "b"});
  check_op("(seq(string[N]) S, string[M] X) => (T) { T = SequenceInsert(S, X) }", 21,
           {sequence(DType::String, {}), words}, {sequence(DType::String, {words})});
  check_op_fails("(seq(float[N]) S, int64[1] X) => (T) { T = SequenceInsert(S, X) }", 21, {floats({a}), i64({1}, {1})},
                 ErrorCode::InvalidArgument, "a int64 tensor into a sequence of float32");
}

TEST_CASE("ConcatFromSequence takes parts without elements whatever their shape") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const Tensor& none : {f32({0, 0}, {}), f32({0, 3}, {}), f32({0}, {}), f32({0, 1, 3}, {})}) {
    check_op("(a, b) => (Y) { S = SequenceConstruct(a, b) Y = ConcatFromSequence<axis=0>(S) }", 13, {x, none}, {x});
    check_op("(a, b) => (Y) { S = SequenceConstruct(a, b) Y = ConcatFromSequence<axis=-1>(S) }", 13, {none, x}, {x});
  }
}

TEST_CASE("SplitToSequence and ConcatFromSequence undo each other") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  check_op("(float[2,3] X) => (S, Y) { S = SplitToSequence<axis=1>(X) Y = ConcatFromSequence<axis=1>(S) }", 21, {x},
           {floats({f32({2, 1}, {1, 4}), f32({2, 1}, {2, 5}), f32({2, 1}, {3, 6})}), x});
  check_op(
      "(float[2,3] X) => (S, Y) { S = SplitToSequence<axis=0, keepdims=0>(X) Y = ConcatFromSequence<axis=0, "
      "new_axis=1>(S) }",
      21, {x}, {floats({f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6})}), x});
}

TEST_CASE("SequenceMap maps sequences side by side, with captured values and tensors for all") {
  const Value s = floats({f32({2}, {1, 2}), f32({1}, {3})}), t = floats({f32({2}, {10, 20}), f32({1}, {30})});
  check_op(
      "(seq(float[N]) S, seq(float[N]) T, float Z, float W) => (P, Q) { "
      "P, Q = SequenceMap<body = b (float[N] u, float[N] v, float z) => (p, q) { r = Add(u, v) p = Mul(r, z) "
      "q = Sub(v, W) }>(S, T, Z) }",
      21, {s, t, f32({}, {2}), f32({}, {1})},
      {floats({f32({2}, {22, 44}), f32({1}, {66})}), floats({f32({2}, {9, 19}), f32({1}, {29})})});
  // A map within a map: each element is added to all.
  check_op(
      "(seq(float[N]) S) => (P) { P = SequenceMap<body = b (float[N] u) => (p) { "
      "T = SequenceMap<body = c (float[M] v) => (q) { m = ReduceSum<keepdims=0>(v) q = Add(m, u) }>(S) "
      "p = ConcatFromSequence<axis=0>(T) }>(S) }",
      21, {s}, {floats({f32({4}, {4, 5, 4, 5}), f32({2}, {6, 6})})});
  check_op("(seq(float[N]) S) => (P) { P = SequenceMap<body = b (float[N] u) => (p) { p = Neg(u) }>(S) }", 21,
           {floats({})}, {floats({})});
}

TEST_CASE("optionals hold tensors and sequences, or nothing") {
  const Tensor x = f32({2}, {1, 2});
  const Value s = floats({x, x});
  check_op("(float[2] X) => (O, H, Y) { O = Optional(X) H = OptionalHasElement(O) Y = OptionalGetElement(O) }", 18, {x},
           {optional(x), b8({}, {true}), x});
  check_op(
      "(seq(float[2]) S) => (O, H, N) { O = Optional(S) H = OptionalHasElement(O) T = OptionalGetElement(O) "
      "N = SequenceLength(T) }",
      18, {s}, {optional(s), b8({}, {true}), i64({}, {2})});
  check_op("(optional(seq(float[2])) O) => (T, P) { T = OptionalGetElement(O) P = Identity(O) }", 18, {optional(s)},
           {s, optional(s)});
  check_op("(optional(seq(float[2])) O) => (H, P) { H = OptionalHasElement(O) P = Identity(O) }", 18, {kNothing},
           {b8({}, {false}), kNothing});
  check_op("(optional(float[2]) O) => (H) { H = OptionalHasElement(O) }", 18, {kNothing}, {b8({}, {false})});
  check_op_fails("(optional(float[2]) O) => (X) { X = OptionalGetElement(O) }", 18, {kNothing},
                 ErrorCode::InvalidArgument, "the optional is empty");
  check_op_fails("() => (O) { O = Optional() }", 18, {}, ErrorCode::InvalidModel, "nor the attribute 'type'");
  const Tensor six = tensor_as(DType::Float6E3M2, {5}, {0, 1, -28, 0.0625, 4});
  check_op("(float6e3m2[5] X) => (O, Y) { O = Optional(X) Y = OptionalGetElement(O) }", 28, {six},
           {optional(six), six});
}

TEST_CASE("control flow carries sequences and optionals") {
  const Tensor x = f32({1}, {1});
  check_op(
      "(bool C, float[1] X) => (S) { S = If<then_branch = t () => (s) { s = SequenceConstruct(X, X) }, "
      "else_branch = e () => (s) { s = SequenceEmpty() }>(C) }",
      21, {b8({}, {true}), x}, {floats({x, x})});
  check_op(
      "(bool C, float[1] X) => (S) { S = If<then_branch = t () => (s) { s = SequenceConstruct(X, X) }, "
      "else_branch = e () => (s) { s = SequenceEmpty() }>(C) }",
      21, {b8({}, {false}), x}, {floats({})});
  check_op(
      "(int64 N, float[1] X) => (S) { E = SequenceEmpty() S = Loop<body = b (int64 i, bool c, seq(float[M]) s) => "
      "(d, t) { d = Identity(c) f = Cast<to=1>(i) y = Add(X, f) t = SequenceInsert(s, y) }>(N, , E) }",
      21, {i64({}, {3}), x}, {floats({f32({1}, {1}), f32({1}, {2}), f32({1}, {3})})});
  check_op(
      "(int64 N, optional(float[1]) O) => (P) { P = Loop<body = b (int64 i, bool c, optional(float[1]) o) => "
      "(d, p) { d = Identity(c) x = OptionalGetElement(o) y = Add(x, x) p = Optional(y) }>(N, , O) }",
      21, {i64({}, {2}), optional(x)}, {optional(f32({1}, {4}))});
}

TEST_CASE("ZipMap gives a sequence of maps of either key") {
  const auto scalar = [](float v) { return Value(f32({}, {v})); };
  const auto maps = [&](const Tensor& keys) {
    return sequence(DType::Undefined,
                    {Value(Map{keys, {scalar(1), scalar(2)}}), Value(Map{keys, {scalar(3), scalar(4)}})});
  };
  check_op("(float[2,2] X) => (Z) { Z = ai.onnx.ml.ZipMap<classlabels_int64s=[7,-1]>(X) }", 15,
           {f32({2, 2}, {1, 2, 3, 4})}, {maps(i64({2}, {7, -1}))});
  check_op("(float[2,2] X) => (Z) { Z = ai.onnx.ml.ZipMap<classlabels_strings=[\"a\",\"\"]>(X) }", 15,
           {f32({2, 2}, {1, 2, 3, 4})}, {maps(str({2}, {"a", ""}))});
  check_op("(float[0,2] X) => (Z) { Z = ai.onnx.ml.ZipMap<classlabels_int64s=[7,-1]>(X) }", 15, {f32({0, 2}, {})},
           {sequence(DType::Undefined, {})});
}

}  // namespace
}  // namespace infernode::test
