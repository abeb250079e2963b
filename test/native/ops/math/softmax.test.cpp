#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("Softmax sums to one along its axis") {
  const Tensor x = f32({2, 3}, {0, std::log(2.0f), std::log(5.0f), 1000, 1000, -kInf});
  check_op("(float[N,3] X) => (float[N,3] Y) { Y = Softmax(X) }", 13, {x},
           {f32({2, 3}, {0.125, 0.25, 0.625, 0.5, 0.5, 0})});
  check_op("(float[N,3] X) => (float[N,3] Y) { Y = Softmax<axis=0>(X) }", 13,
           {f32({2, 3}, {0, std::log(3.0f), 7, 0, 0, 7})}, {f32({2, 3}, {0.5, 0.75, 0.5, 0.5, 0.25, 0.5})});
  check_op("(float[2] X) => (float[2] Y) { Y = LogSoftmax(X) }", 13, {f32({2}, {0, std::log(3.0f)})},
           {f32({2}, {std::log(0.25f), std::log(0.75f)})});
}

TEST_CASE("Before version 13 Softmax takes all dims from axis on as one") {
  const Tensor x = f32({2, 2, 2}, {0, 0, 0, 0, 5, 5, 5, 5});
  const Tensor quarter = f32({2, 2, 2}, {0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25});
  check_op("(float[2,2,2] X) => (float[2,2,2] Y) { Y = Softmax(X) }", 11, {x}, {quarter});
  check_op("(float[2,2,2] X) => (float[2,2,2] Y) { Y = Softmax<axis=-2>(X) }", 11, {x}, {quarter});
  check_op("(float[2,2] X) => (float[2,2] Y) { Y = Hardmax<axis=0>(X) }", 1, {f32({2, 2}, {1, 3, 2, 3})},
           {f32({2, 2}, {0, 1, 0, 0})});
  check_op("(float[2,2] X) => (float[2,2] Y) { Y = Hardmax<axis=0>(X) }", 13, {f32({2, 2}, {1, 3, 2, 3})},
           {f32({2, 2}, {0, 1, 1, 0})});
}

TEST_CASE("Softmax, LogSoftmax and Hardmax agree in all floating types") {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    for (const int axis : {0, 1, 2, -1}) {
      const std::string text = cat("(X) => (Y) { Y = ", op, "<axis=", axis, ">(X) }");
      CAPTURE(text);
      check_float_types(text, 13, {noise({3, 37, 5}, 3)});
      check_threads(text, 13, {noise({3, 300, 50}, 3)});
    }
  }
}

TEST_CASE("Softmax of short rows and of few columns") {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const Shape& shape : {Shape{300, 2, 1}, Shape{37, 31, 1}, Shape{5, 100, 3}, Shape{70, 3, 15}, Shape{1, 9, 2},
                               Shape{3, 2000, 7}, Shape{1, 1, 1}, Shape{300, 1, 4}}) {
      const std::string text = cat("(X) => (Y) { Y = ", op, "<axis=1>(X) }");
      CAPTURE(text);
      CAPTURE(shape.to_string());
      check_float_types(text, 13, {noise(shape, 3)});
      check_threads(text, 13, {noise(shape, 3)});
    }
  }
}

TEST_CASE("A row of -infinity has no softmax, NaN spreads over its row only") {
  check_op("(float[3,2] X) => (float[3,2] Y) { Y = Softmax(X) }", 13, {f32({3, 2}, {-kInf, -kInf, kNaN, 1, 2, 2})},
           {f32({3, 2}, {kNaN, kNaN, kNaN, kNaN, 0.5, 0.5})});
  check_op("(float[2,3] X) => (float[2,3] Y) { Y = Softmax<axis=0>(X) }", 13,
           {f32({2, 3}, {-kInf, kNaN, 2, -kInf, 1, 2})}, {f32({2, 3}, {kNaN, kNaN, 0.5, kNaN, kNaN, 0.5})});
}

TEST_CASE("Softmax of nothing") {
  check_op("(float[0,3] X) => (float[0,3] Y) { Y = Softmax(X) }", 13, {f32({0, 3}, {})}, {f32({0, 3}, {})});
  check_op("(float[3,0] X) => (float[3,0] Y) { Y = Softmax(X) }", 13, {f32({3, 0}, {})}, {f32({3, 0}, {})});
}

TEST_CASE("Softmax refuses an axis out of range") {
  check_op_fails("(float[2] X) => (float[2] Y) { Y = Softmax<axis=1>(X) }", 13, {f32({2}, {1, 2})},
                 ErrorCode::InvalidArgument, "axis");
}

}  // namespace
}  // namespace infernode::test
