#include "ops/float_types.h"

namespace infernode::test {
namespace {

Tensor small_integers(DType type, const Shape& shape, std::uint32_t seed) {
  Tensor out = Tensor::make(type, shape);
  auto* to = static_cast<std::uint8_t*>(out.mutable_raw());
  const Tensor random = noise(shape, 120, seed);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const int v = static_cast<int>(random.data<float>()[i]);
    to[i] = static_cast<std::uint8_t>(type == DType::UInt8 ? v + 121 : v);
  }
  return out;
}

/// Elements less a zero point, as float64: products of these are exact.
Tensor shifted(const Tensor& t, double zero) {
  std::vector<double> values;
  for (const std::int64_t v : tensor::to_int64_vector(t)) values.push_back(static_cast<double>(v) - zero);
  return tensor_as(DType::Float64, t.shape(), values);
}

TEST_CASE("ConvInteger is exact over 1 to 3 axes, groups, strides, dilations and pads") {
  const struct {
    Shape x, w;
    const char* attributes;
  } cases[] = {
      {{2, 3, 11}, {5, 3, 3}, "pads=[1,2]"},
      {{1, 3, 9, 10}, {7, 3, 3, 3}, "pads=[1,1,1,1], strides=[2,2]"},
      {{2, 8, 7, 6}, {9, 8, 1, 1}, "strides=[1,1]"},
      {{1, 6, 12, 9}, {9, 2, 3, 2}, "group=3, strides=[2,1], dilations=[1,3], pads=[0,2,1,3]"},
      {{2, 5, 14, 14}, {5, 1, 3, 3}, "group=5, pads=[1,1,1,1]"},
      {{1, 3, 9, 8}, {6, 1, 3, 3}, "group=3, pads=[2,2,2,2], dilations=[2,2], strides=[1,2]"},
      {{1, 1, 9, 9}, {4, 1, 5, 5}, "auto_pad=\"SAME_UPPER\""},
      {{1, 2, 5, 6, 7}, {3, 2, 3, 2, 2}, "pads=[1,0,1,1,1,0], strides=[2,1,2]"},
      {{1, 4, 5, 5, 5}, {4, 1, 3, 3, 3}, "group=4, pads=[1,1,1,1,1,1]"},
      {{1, 16, 33, 35}, {24, 16, 3, 3}, "pads=[1,1,1,1]"},
  };
  for (const auto& c : cases) {
    for (const DType x_type : {DType::UInt8, DType::Int8}) {
      for (const DType w_type : {DType::UInt8, DType::Int8}) {
        CAPTURE(c.attributes);
        CAPTURE(tensor::name(x_type));
        CAPTURE(tensor::name(w_type));
        const Tensor x = small_integers(x_type, c.x, 1), w = small_integers(w_type, c.w, 2);
        const std::vector<Value> exact =
            run_op(cat("(X, W) => (Y) { Y = Conv<", c.attributes, ">(X, W) }"), 22, {shifted(x, 3), shifted(w, 5)});
        const Tensor& y = exact[0].tensor();
        const std::vector<double> values(y.data<double>(), y.data<double>() + y.numel());
        check_op(cat("(X, W, Z, V) => (Y) { Y = ConvInteger<", c.attributes, ">(X, W, Z, V) }"), 10,
                 {x, w, tensor_as(x_type, {}, {3}), tensor_as(w_type, {}, {5})},
                 {tensor_as(DType::Int32, y.shape(), values)});
      }
    }
  }
}

TEST_CASE("ConvInteger takes a zero point for each output channel") {
  check_op("(X, W, Z, V) => (Y) { Y = ConvInteger(X, W, Z, V) }", 10,
           {u8({1, 1, 1, 2}, {3, 4}), i8({2, 1, 1, 1}, {5, 6}), u8({}, {1}), i8({2}, {1, 2})},
           {i32({1, 2, 1, 2}, {8, 12, 8, 12})});
  check_op_fails("(X, W, Z, V) => (Y) { Y = ConvInteger(X, W, Z, V) }", 10,
                 {u8({1, 1, 1, 2}, {3, 4}), i8({2, 1, 1, 1}, {5, 6}), u8({}, {1}), i8({3}, {1, 2, 3})},
                 ErrorCode::ShapeMismatch, "neither one element nor 2");
  check_threads("(X, W) => (Y) { Y = ConvInteger<pads=[1,1,1,1]>(X, W) }", 10,
                {small_integers(DType::UInt8, {2, 16, 20, 20}, 1), small_integers(DType::Int8, {24, 16, 3, 3}, 2)});
}

TEST_CASE("QLinearConv requantizes, with a bias and scales by channel") {
  const char* text = "(X, XS, XZ, W, WS, WZ, YS, YZ, B) => (Y) { Y = QLinearConv(X, XS, XZ, W, WS, WZ, YS, YZ, B) }";
  // (x - 1) * w = 4 6, -4 -6; plus 1, 2; times 0.5 * {2, 4} / 2; plus 100.
  check_op(text, 10,
           {u8({1, 1, 1, 2}, {3, 4}), f32({}, {0.5}), u8({}, {1}), i8({2, 1, 1, 1}, {2, -2}), f32({2}, {2, 4}),
            i8({2}, {0, 0}), f32({}, {2}), u8({}, {100}), i32({2}, {1, 2})},
           {u8({1, 2, 1, 2}, {102, 104, 98, 96})});
  check_op("(X, XS, XZ, W, WS, WZ, YS, YZ, B) => (Y) { Y = QLinearConv<group=2>(X, XS, XZ, W, WS, WZ, YS, YZ, B) }", 10,
           {i8({1, 2, 1, 2}, {3, 4, 100, -100}), f32({}, {0.5}), i8({}, {1}), i8({2, 1, 1, 1}, {2, -2}),
            f32({2}, {2, 4}), i8({}, {0}), f32({}, {2}), i8({}, {10}), i32({2}, {1, 2})},
           {i8({1, 2, 1, 2}, {12, 14, -128, 127})});
}

TEST_CASE("QLinearConv of a channel a group, zero points by channel, and sums that floats do not hold") {
  const char* text =
      "(X, XS, XZ, W, WS, WZ, YS, YZ, B) => (Y) { Y = QLinearConv<group=2>(X, XS, XZ, W, WS, WZ, YS, YZ, B) }";
  // (x - 1) * (w - {1, -3}) = 2 3, 99 -101; plus the bias; times 0.5 * {2, 4} / 2; plus 10.
  const auto check = [&](std::vector<double> bias, float step, std::vector<double> expected) {
    check_op(text, 10,
             {i8({1, 2, 1, 2}, {3, 4, 100, -100}), f32({}, {0.5}), i8({}, {1}), i8({2, 1, 1, 1}, {2, -2}),
              f32({2}, {2, 4}), i8({2}, {1, -3}), f32({}, {step}), i8({}, {10}), tensor_as(DType::Int32, {2}, bias)},
             {tensor_as(DType::Int8, {1, 2, 1, 2}, expected)});
  };
  check({2, 1}, 2, {12, 12, 110, -90});
  check({16777215, -16777217}, 1 << 20, {26, 26, -22, -22});
}

}  // namespace
}  // namespace infernode::test
