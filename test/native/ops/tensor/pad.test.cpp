#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Pad adds a constant, from attributes or inputs") {
  const Tensor x = f32({1, 2}, {1, 2});
  const Tensor y = f32({2, 4}, {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 1, 2, 0.5f});
  check_op("(float[A,B] X) => (float[C,D] Y) { Y = Pad<paddings=[1,1,0,1], value=0.5>(X) }", 1, {x}, {y});
  check_op("(float[A,B] X) => (float[C,D] Y) { Y = Pad<pads=[1,1,0,1], value=0.5>(X) }", 2, {x}, {y});
  for (const std::int64_t opset : {11, 13, 18, 19, 21, 25}) {
    check_op("(float[A,B] X, int64[4] p, float v) => (float[C,D] Y) { Y = Pad(X, p, v) }", opset,
             {x, i64({4}, {1, 1, 0, 1}), f32({}, {0.5f})}, {y});
  }
  check_op("(float[A,B] X, int64[2] p, int32[1] a) => (float[C,D] Y) { Y = Pad(X, p, , a) }", 18,
           {x, i64({2}, {1, 2}), i32({1}, {-1})}, {f32({1, 5}, {0, 1, 2, 0, 0})});
}

TEST_CASE("Pad repeats elements in its other modes") {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const auto run = [&](const char* mode, std::int64_t begin, std::int64_t end, const Tensor& y) {
    check_op(cat("(float[A] X, int64[2] p) => (float[B] Y) { Y = Pad<mode=\"", mode, "\">(X, p) }"), 19,
             {x, i64({2}, {begin, end})}, {y});
  };
  run("reflect", 2, 3, f32({9}, {3, 2, 1, 2, 3, 4, 3, 2, 1}));
  run("reflect", 5, 0, f32({9}, {2, 3, 4, 3, 2, 1, 2, 3, 4}));
  run("edge", 2, 1, f32({7}, {1, 1, 1, 2, 3, 4, 4}));
  run("wrap", 2, 5, f32({11}, {3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1}));
  run("constant", -1, -2, f32({1}, {2}));
  run("reflect", -1, 1, f32({4}, {2, 3, 4, 3}));
}

TEST_CASE("Pad treats inner and outer axes of every kind of element") {
  const Tensor x = iota(DType::Int32, {2, 2, 2});
  check_op("(int32[A,B,C] X, int64[6] p, int32 v) => (int32[D,E,F] Y) { Y = Pad(X, p, v) }", 13,
           {x, i64({6}, {0, 1, 0, 0, 0, 0}), i32({}, {9})}, {i32({2, 3, 2}, {9, 9, 0, 1, 2, 3, 9, 9, 4, 5, 6, 7})});
  check_op("(int32[A,B,C] X, int64[6] p) => (int32[D,E,F] Y) { Y = Pad<mode=\"edge\">(X, p) }", 13,
           {x, i64({6}, {1, 0, 1, 0, 0, 0})}, {i32({3, 2, 3}, {0, 0, 1, 2, 2, 3, 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7})});
  check_op("(string[A] X, int64[2] p, string v) => (string[B] Y) { Y = Pad(X, p, v) }", 13,
           {str({1}, {"a"}), i64({2}, {1, 1}), str({}, {"-"})}, {str({3}, {"-", "a", "-"})});
  check_op("(int4[A] X, int64[2] p, int4 v) => (int4[B] Y) { Y = Pad(X, p, v) }", 21,
           {tensor_as(DType::Int4, {3}, {1, -2, 3}), i64({2}, {1, 1}), tensor_as(DType::Int4, {}, {-8})},
           {tensor_as(DType::Int4, {5}, {-8, 1, -2, 3, -8})});
  check_op("(float[A,B] X, int64[4] p) => (float[C,D] Y) { Y = Pad(X, p) }", 13,
           {f32({0, 2}, {}), i64({4}, {1, 0, 0, 0})}, {f32({1, 2}, {0, 0})});
  check_op("(float X, int64[0] p) => (float Y) { Y = Pad(X, p) }", 13, {f32({}, {3}), i64({0}, {})}, {f32({}, {3})});
}

TEST_CASE("Pad refuses pads that do not fit") {
  const Tensor x = f32({2}, {1, 2});
  check_op_fails("(float[A] X, int64[3] p) => (Y) { Y = Pad(X, p) }", 13, {x, i64({3}, {1, 1, 1})},
                 ErrorCode::InvalidArgument, "pads has 3");
  check_op_fails("(float[A,B] X, int64[4] p) => (Y) { Y = Pad<mode=\"edge\">(X, p) }", 13,
                 {f32({0, 2}, {}), i64({4}, {1, 0, 0, 0})}, ErrorCode::InvalidArgument, "no elements to repeat");
  check_op_fails("(float[A] X, int64[2] p) => (Y) { Y = Pad<mode=\"mirror\">(X, p) }", 13, {x, i64({2}, {1, 1})},
                 ErrorCode::InvalidModel, "unknown mode 'mirror'");
}

TEST_CASE("Pad adds to symbolic dims") {
  CHECK(infer_op("(float[N,4] X, int64[4] p) => (Y) { Y = Pad(X, p) }", 13, {Value{}, i64({4}, {1, 0, 2, 3})}) ==
        "tensor(float)[N + 3,7]");
  CHECK(infer_op("(float[N,4] X, int64[2] p, int64[1] a) => (Y) { Y = Pad(X, p, , a) }", 18,
                 {Value{}, i64({2}, {1, 1}), i64({1}, {-1})}) == "tensor(float)[N,6]");
}

TEST_CASE("Pad of com.microsoft takes its pads as an input") {
  check_op(
      "<ir_version: 8, opset_import: [\"\" : 13, \"com.microsoft\" : 1]> g (float[A] X, int64[2] p) => (float[B] Y)"
      " { Y = com.microsoft.Pad(X, p) }",
      13, {f32({1}, {4}), i64({2}, {1, 0})}, {f32({2}, {0, 4})});
}

TEST_CASE("CenterCropPad crops and pads around the middle") {
  const Tensor x = iota(DType::Float32, {4, 3}, 1);
  check_op("(float[A,B] X, int64[2] s) => (float[C,D] Y) { Y = CenterCropPad(X, s) }", 18, {x, i64({2}, {2, 5})},
           {f32({2, 5}, {0, 4, 5, 6, 0, 0, 7, 8, 9, 0})});
  check_op("(float[A,B] X, int32[1] s) => (float[C,D] Y) { Y = CenterCropPad<axes=[-1]>(X, s) }", 18,
           {x, i32({1}, {2})}, {f32({4, 2}, {1, 2, 4, 5, 7, 8, 10, 11})});
  check_op_fails("(float[A,B] X, int64[1] s) => (Y) { Y = CenterCropPad(X, s) }", 18, {x, i64({1}, {2})},
                 ErrorCode::InvalidArgument, "2 axes");
}

}  // namespace
}  // namespace infernode::test
