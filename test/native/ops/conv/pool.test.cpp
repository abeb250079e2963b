#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("MaxPool and its indices") {
  const Tensor x = iota(DType::Float32, {1, 2, 3, 4});
  check_op(
      "(float[N,2,3,4] X) => (float[N,2,2,2] Y, int64[N,2,2,2] I) { Y, I = MaxPool<kernel_shape=[2,2], "
      "strides=[1,2]>(X) }",
      12, {x}, {f32({1, 2, 2, 2}, {5, 7, 9, 11, 17, 19, 21, 23}), i64({1, 2, 2, 2}, {5, 7, 9, 11, 17, 19, 21, 23})});
  check_op(
      "(float[1,2,3,4] X) => (float[1,2,2,2] Y, int64[1,2,2,2] I) { "
      "Y, I = MaxPool<kernel_shape=[2,2], strides=[1,2], storage_order=1>(X) }",
      8, {x}, {f32({1, 2, 2, 2}, {5, 7, 9, 11, 17, 19, 21, 23}), i64({1, 2, 2, 2}, {4, 10, 5, 11, 16, 22, 17, 23})});
}

TEST_CASE("MaxPool picks the first of equals, and NaN before numbers") {
  check_op("(float[1,1,4] X) => (float[1,1,2] Y, int64[1,1,2] I) { Y, I = MaxPool<kernel_shape=[2], strides=[2]>(X) }",
           12, {f32({1, 1, 4}, {3, 3, 5, kNaN})}, {f32({1, 1, 2}, {3, kNaN}), i64({1, 1, 2}, {0, 3})});
  check_op("(float[1,1,4] X) => (float[1,1,2] Y) { Y = MaxPool<kernel_shape=[2], strides=[2]>(X) }", 12,
           {f32({1, 1, 4}, {-kInf, -kInf, 5, kNaN})}, {f32({1, 1, 2}, {-kInf, kNaN})});
}

TEST_CASE("MaxPool pads, dilates and rounds up") {
  const Tensor x = f32({1, 1, 5}, {-1, -2, -3, -4, -5});
  check_op("(float[1,1,5] X) => (float[1,1,3] Y) { Y = MaxPool<kernel_shape=[2], strides=[2], pads=[1,1]>(X) }", 1,
           {f32({1, 1, 5}, {-1, -2, -3, -4, -5})}, {f32({1, 1, 3}, {-1, -2, -4})});
  check_op("(float[1,1,5] X) => (float[1,1,1] Y) { Y = MaxPool<kernel_shape=[3], dilations=[2]>(X) }", 10, {x},
           {f32({1, 1, 1}, {-1})});
  check_op("(float[1,1,5] X) => (float[1,1,3] Y) { Y = MaxPool<kernel_shape=[2], strides=[2], ceil_mode=1>(X) }", 10,
           {x}, {f32({1, 1, 3}, {-1, -3, -5})});
  // The last window would begin in the padding: it does not count.
  check_op(
      "(float[1,1,4] X) => (float[1,1,2] Y) { Y = MaxPool<kernel_shape=[1], strides=[3], pads=[0,2], ceil_mode=1>(X) }",
      22, {f32({1, 1, 4}, {1, 2, 3, 4})}, {f32({1, 1, 2}, {1, 4})});
}

TEST_CASE("MaxPool of 8-bit integers") {
  check_op("(int8[1,1,4] X) => (int8[1,1,3] Y, int64[1,1,3] I) { Y, I = MaxPool<kernel_shape=[2]>(X) }", 12,
           {i8({1, 1, 4}, {-128, -128, 127, 3})}, {i8({1, 1, 3}, {-128, 127, 127}), i64({1, 1, 3}, {0, 2, 2})});
  check_op("(uint8[1,1,2,2] X) => (uint8[1,1,1,1] Y) { Y = MaxPool<kernel_shape=[2,2]>(X) }", 22,
           {u8({1, 1, 2, 2}, {1, 200, 3, 4})}, {u8({1, 1, 1, 1}, {200})});
}

TEST_CASE("AveragePool counts pads or does not") {
  const Tensor x = f32({1, 1, 3}, {3, 6, 12});
  check_op("(float[1,1,3] X) => (float[1,1,3] Y) { Y = AveragePool<kernel_shape=[3], pads=[1,1]>(X) }", 7, {x},
           {f32({1, 1, 3}, {4.5, 7, 9})});
  check_op(
      "(float[1,1,3] X) => (float[1,1,3] Y) { Y = AveragePool<kernel_shape=[3], pads=[1,1], count_include_pad=1>(X) }",
      7, {x}, {f32({1, 1, 3}, {3, 7, 6})});
  check_op(
      "(float[1,1,3] X) => (float[1,1,2] Y) { Y = AveragePool<kernel_shape=[2], strides=[2], ceil_mode=1, "
      "count_include_pad=1>(X) }",
      10, {x}, {f32({1, 1, 2}, {4.5, 12})});
  check_op("(float[1,1,3] X) => (float[1,1,1] Y) { Y = AveragePool<kernel_shape=[2], dilations=[2]>(X) }", 19, {x},
           {f32({1, 1, 1}, {7.5})});
  check_op(
      "(float[1,1,3] X) => (float[1,1,2] Y) { Y = AveragePool<kernel_shape=[2], strides=[2], "
      "auto_pad=\"SAME_LOWER\">(X) }",
      11, {x}, {f32({1, 1, 2}, {3, 9})});
}

TEST_CASE("LpPool takes norms") {
  check_op("(float[1,1,3] X) => (float[1,1,2] Y) { Y = LpPool<kernel_shape=[2]>(X) }", 2, {f32({1, 1, 3}, {-3, 4, 0})},
           {f32({1, 1, 2}, {5, 4})});
  check_op("(float[1,1,3] X) => (float[1,1,2] Y) { Y = LpPool<kernel_shape=[2], p=1>(X) }", 18,
           {f32({1, 1, 3}, {-3, 4, 0})}, {f32({1, 1, 2}, {7, 4})});
  check_op("(float[1,1,2] X) => (float[1,1,1] Y) { Y = LpPool<kernel_shape=[2], p=3.0>(X) }", 1,
           {f32({1, 1, 2}, {-3, 3})}, {f32({1, 1, 1}, {std::cbrt(54.0f)})});
}

TEST_CASE("Poolings agree in all floating types over 1 to 3 axes") {
  const struct {
    Shape x;
    const char* attributes;
  } cases[] = {
      {{2, 3, 19}, "kernel_shape=[4], strides=[3], pads=[2,1]"},
      {{1, 2, 13, 11}, "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]"},
      {{1, 2, 13, 11}, "kernel_shape=[3,2], strides=[2,3], pads=[1,0,1,1], ceil_mode=1, dilations=[2,1]"},
      {{1, 2, 13, 30}, "kernel_shape=[3,3], auto_pad=\"SAME_UPPER\", strides=[2,2]"},
      {{1, 2, 6, 7, 8}, "kernel_shape=[2,3,3], strides=[2,1,2], pads=[0,1,1,1,1,1]"},
  };
  for (const auto& c : cases) {
    for (const char* op : {"MaxPool<", "AveragePool<", "AveragePool<count_include_pad=1, ", "LpPool<"}) {
      const std::string text = cat("(X) => (Y) { Y = ", op, c.attributes, ">(X) }");
      CAPTURE(text);
      check_float_types(text, 22, {noise(c.x, 3)});
    }
  }
}

TEST_CASE("MaxPool over places of 16 elements gives what it gives of planes") {
  const Tensor x = noise({2, 32, 9, 10});
  for (const char* type : {"1", "16"}) {
    for (const auto& [plane, places] :
         {std::pair("kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]",
                    "kernel_shape=[3,3,1], strides=[2,2,1], pads=[1,1,0,1,1,0]"),
          {"kernel_shape=[5,5], pads=[2,2,2,2]", "kernel_shape=[5,5,1], pads=[2,2,0,2,2,0]"},
          {"kernel_shape=[2,3], dilations=[2,1], ceil_mode=1", "kernel_shape=[2,3,1], dilations=[2,1,1], ceil_mode=1"},
          {"auto_pad=\"SAME_UPPER\", kernel_shape=[3,2]", "auto_pad=\"SAME_UPPER\", kernel_shape=[3,2,1]"},
          {"kernel_shape=[20000,1], pads=[10000,0,10000,0]", "kernel_shape=[20000,1,1], pads=[10000,0,0,10000,0,0]"}}) {
      CAPTURE(plane);
      const std::vector<Value> expected = run_op(
          cat("(X) => (Y) { H = Cast<to=", type, ">(X)  M = MaxPool<", plane, ">(H)  Y = Cast<to=1>(M) }"), 22, {x});
      const std::string back = cat("(X) => (Y) { B = infernode.BlockChannels<to=", type, ">(X)  M = MaxPool<", places,
                                   ">(B)  Y = infernode.UnblockChannels<channels=32>(M) }");
      check_op(back, 22, {x}, expected);
    }
  }
}

TEST_CASE("A window far larger than its input sees the input") {
  const Tensor x = f32({1, 1, 3}, {1, 5, 3});
  const char* window = "kernel_shape=[1000000000], pads=[500000000,500000000]";
  check_op(cat("(X) => (Y) { Y = MaxPool<", window, ">(X) }"), 12, {x}, {f32({1, 1, 4}, {5, 5, 5, 5})});
  check_op(cat("(X) => (Y) { Y = AveragePool<", window, ">(X) }"), 11, {x}, {f32({1, 1, 4}, {3, 3, 3, 3})});
}

TEST_CASE("Pooling shapes") {
  CHECK(infer_op("(float[N,C,H,W] X) => (Y) { Y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(X) }", 12) ==
        "tensor(float)[N,C,H,W]");
  check_op("(float[0,2,4] X) => (float[0,2,3] Y) { Y = MaxPool<kernel_shape=[2]>(X) }", 12, {f32({0, 2, 4}, {})},
           {f32({0, 2, 3}, {})});
  check_op_fails("(X) => (Y) { Y = MaxPool<kernel_shape=[5]>(X) }", 12, {noise({1, 1, 4})}, ErrorCode::ShapeMismatch,
                 "does not fit");
  check_op_fails("(X) => (Y) { Y = MaxPool<kernel_shape=[2]>(X) }", 12, {noise({1, 1, 4, 4})}, ErrorCode::ShapeMismatch,
                 "kernel_shape");
  check_op_fails("(X) => (Y) { Y = AveragePool<kernel_shape=[2]>(X) }", 12, {noise({4, 4})}, ErrorCode::ShapeMismatch,
                 "[N,C,...]");
}

}  // namespace
}  // namespace infernode::test
