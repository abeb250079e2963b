#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("ConvTranspose spreads each element by the kernel") {
  const Tensor x = f32({1, 1, 2}, {1, 10}), w = f32({1, 1, 3}, {1, 2, 3});
  check_op("(float[N,1,2] X, float[1,1,3] W) => (float[N,1,4] Y) { Y = ConvTranspose(X, W) }", 11, {x, w},
           {f32({1, 1, 4}, {1, 12, 23, 30})});
  check_op(
      "(float[1,1,2] X, float[1,1,3] W, float[1] B) => (float[1,1,6] Y) { "
      "Y = ConvTranspose<strides=[2], output_padding=[1]>(X, W, B) }",
      1, {x, w, f32({1}, {100})}, {f32({1, 1, 6}, {101, 102, 113, 120, 130, 100})});
  check_op("(float[1,1,2] X, float[1,1,3] W) => (float[1,1,3] Y) { Y = ConvTranspose<strides=[2], pads=[1,1]>(X, W) }",
           11, {x, w}, {f32({1, 1, 3}, {2, 13, 20})});
  check_op(
      "(float[1,1,2] X, float[1,1,3] W) => (float[1,1,4] Y) { "
      "Y = ConvTranspose<strides=[2], auto_pad=\"SAME_UPPER\">(X, W) }",
      11, {x, w}, {f32({1, 1, 4}, {1, 2, 13, 20})});
  check_op(
      "(float[1,1,2] X, float[1,1,3] W) => (float[1,1,4] Y) { "
      "Y = ConvTranspose<strides=[2], auto_pad=\"SAME_LOWER\">(X, W) }",
      11, {x, w}, {f32({1, 1, 4}, {2, 13, 20, 30})});
  check_op(
      "(float[1,1,2] X, float[1,1,3] W) => (float[1,1,4] Y) { Y = ConvTranspose<strides=[2], output_shape=[4]>(X, W) }",
      11, {x, w}, {f32({1, 1, 4}, {2, 13, 20, 30})});
}

TEST_CASE("ConvTranspose agrees with plain loops over 1 to 3 axes, groups, strides, dilations and pads") {
  const struct {
    Shape x, w;
    const char* attributes;
    std::int64_t outputs;
  } cases[] = {
      {{2, 3, 7}, {3, 5, 4}, "strides=[2], pads=[1,0]", 5},
      {{1, 4, 5, 6}, {4, 3, 3, 2}, "group=2, strides=[2,3], dilations=[2,1], pads=[1,1,0,1]", 6},
      {{2, 6, 4, 4}, {6, 1, 3, 3}, "group=6, strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]", 6},
      {{1, 2, 3, 4, 3}, {2, 2, 2, 3, 2}, "strides=[1,2,2]", 2},
      {{1, 8, 9, 9}, {8, 4, 2, 2}, "strides=[2,2]", 4},
      {{1, 3, 6, 6}, {3, 2, 1, 1}, "strides=[1,1]", 2},
      {{2, 24, 70, 75}, {24, 24, 2, 2}, "strides=[2,2]", 24},
      {{1, 6, 5, 19}, {6, 2, 2, 3}, "group=3, strides=[2,3]", 6},
      {{1, 6, 33}, {6, 5, 2}, "strides=[2]", 5},
      {{1, 3, 6, 6}, {3, 2, 2, 2}, "strides=[2,2], output_padding=[1,0]", 2},
  };
  for (const auto& c : cases) {
    const std::string text = cat("(X, W, B) => (Y) { Y = ConvTranspose<", c.attributes, ">(X, W, B) }");
    CAPTURE(text);
    check_float_types(text, 22, {noise(c.x), noise(c.w, 1, 2), noise({c.outputs}, 1, 3)});
    check_threads(text, 22, {noise(c.x), noise(c.w, 1, 2), noise({c.outputs}, 1, 3)});
  }
}

TEST_CASE("ConvTranspose of constant weights, by phases and by products, agrees with the definition") {
  const struct {
    Shape x, w;
    const char* attributes;
  } cases[] = {
      {{2, 24, 9, 10}, {24, 20, 4, 4}, "strides=[2,2], pads=[1,1,1,1]"},
      {{1, 64, 11, 19}, {64, 3, 4, 4}, "strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]"},
      {{1, 16, 12, 7}, {16, 40, 3, 3}, "strides=[1,1], pads=[1,1,1,1]"},
      {{1, 16, 12, 7}, {16, 8, 3, 3}, "strides=[2,2], pads=[0,1,1,0]"},
      {{1, 8, 13, 20}, {8, 24, 2, 2}, "strides=[2,2]"},
      {{1, 8, 6, 40}, {8, 12, 4, 4}, "strides=[4,4]"},
      {{1, 8, 5, 33}, {8, 12, 2, 3}, "strides=[3,4]"},  // some phases have no taps
      {{1, 16, 9, 9}, {16, 16, 5, 5}, "strides=[2,2], pads=[4,3,4,4]"},
      {{1, 12, 9, 9}, {12, 6, 3, 3}, "strides=[2,3], dilations=[2,2], pads=[1,1,2,2]"},
      {{1, 12, 9, 9}, {12, 6, 3, 3}, "dilations=[3,2], pads=[3,2,3,2]"},
      {{1, 24, 8, 8}, {24, 8, 4, 4}, "group=3, strides=[2,2], pads=[1,1,1,1]"},
      {{1, 24, 15, 8}, {24, 1, 4, 4}, "group=24, strides=[2,2], pads=[1,1,1,1]"},
      {{2, 32, 50}, {32, 16, 16}, "strides=[8], pads=[4,4]"},
      {{1, 64, 37}, {64, 32, 7}, "pads=[3,3]"},
      {{1, 4, 9}, {4, 2, 300}, "strides=[100], pads=[50,50]"},
      {{1, 8, 4, 5, 6}, {8, 8, 3, 2, 4}, "strides=[1,2,2], pads=[1,0,1,1,0,1]"},
  };
  for (const auto& c : cases) {
    const std::string text = cat("(X, W, B) => (Y) { Y = ConvTranspose<", c.attributes, ">(X, W, B) }");
    CAPTURE(text);
    const bool grouped = text.find("group=") != std::string::npos;
    const std::int64_t channels = grouped ? 24 : c.w[1];
    const Tensor x = noise(c.x), w = noise(c.w, 1, 2), bias = noise({channels}, 1, 3);
    const std::vector<Value> exact =
        run_op(text, 22, {as_type(x, DType::Float64), as_type(w, DType::Float64), as_type(bias, DType::Float64)});
    const std::vector<Value> made = run_op(text, 22, {x, w, bias}, true);
    const Tensor &y = made[0].tensor(), &expected = exact[0].tensor();
    REQUIRE(y.shape() == expected.shape());
    double most = 0;
    for (std::int64_t i = 0; i < y.numel(); ++i)
      most = std::max(most, std::abs(static_cast<double>(y.data<float>()[i]) - expected.data<double>()[i]));
    CHECK(most < 1e-4);
    check_threads(text, 22, {x, w, bias});
  }
}

TEST_CASE("ConvTranspose over nothing makes what the formula says") {
  const Tensor x = f32({1, 1, 0}, {}), w = f32({1, 1, 3}, {1, 2, 3});
  check_op("(float[1,1,N] X, W, float[1] B) => (float[1,1,M] Y) { Y = ConvTranspose<strides=[2]>(X, W, B) }", 11,
           {x, w, f32({1}, {5})}, {f32({1, 1, 1}, {5})});
  check_op("(float[1,1,N] X, W) => (float[1,1,M] Y) { Y = ConvTranspose(X, W) }", 11, {x, w}, {f32({1, 1, 2}, {0, 0})});
  check_op("(float[1,1,N] X, W) => (float[1,1,M] Y) { Y = ConvTranspose<strides=[2], auto_pad=\"SAME_UPPER\">(X, W) }",
           11, {x, w}, {f32({1, 1, 0}, {})});
  check_op_fails("(float[1,1,N] X, W) => (float[1,1,M] Y) { Y = ConvTranspose<strides=[4]>(X, W) }", 11, {x, w},
                 ErrorCode::ShapeMismatch, "-1 elements");
}

TEST_CASE("ConvTranspose of axes, batches and channels of length 0 answers as onnxruntime does") {
  const struct {
    Shape x, w;
    const char* attributes;
    std::int64_t biases;  // 0: none
    Shape y;
  } cases[] = {
      {{1, 2, 0}, {2, 3, 3}, "", 3, {1, 3, 2}},
      {{1, 2, 0}, {2, 3, 3}, "strides=[2]", 3, {1, 3, 1}},
      {{1, 2, 0}, {2, 3, 3}, "group=2", 0, {1, 6, 2}},
      {{1, 1, 0}, {1, 1, 3}, "pads=[1,0]", 0, {1, 1, 1}},
      {{1, 1, 0}, {1, 1, 3}, "dilations=[2]", 0, {1, 1, 4}},
      {{1, 1, 0, 2}, {1, 1, 3, 3}, "", 0, {1, 1, 2, 4}},
      {{1, 1, 2, 0}, {1, 1, 3, 3}, "", 0, {1, 1, 4, 2}},
      {{1, 1, 0, 0}, {1, 1, 3, 3}, "", 0, {1, 1, 2, 2}},
      {{1, 1, 0, 2}, {1, 1, 3, 3}, "strides=[2,2]", 0, {1, 1, 1, 5}},
      {{2, 4, 0, 2}, {4, 2, 3, 3}, "group=2", 4, {2, 4, 2, 4}},
      {{1, 1, 2, 2, 0}, {1, 1, 2, 2, 2}, "", 0, {1, 1, 3, 3, 1}},
      {{1, 1, 0, 2, 2}, {1, 1, 2, 2, 2}, "", 1, {1, 1, 1, 3, 3}},  // ends its process
      {{1, 1, 2, 0, 2}, {1, 1, 2, 2, 2}, "", 1, {1, 1, 3, 1, 3}},  // the same
      {{0, 1, 2}, {1, 1, 3}, "", 0, {0, 1, 4}},
      {{0, 1, 0}, {1, 1, 3}, "", 0, {0, 1, 2}},
      {{0, 2, 3, 3}, {2, 3, 2, 2}, "", 3, {0, 3, 4, 4}},
      {{1, 0, 2}, {0, 3, 3}, "", 0, {1, 3, 4}},
      {{1, 0, 2}, {0, 3, 3}, "", 3, {1, 3, 4}},
      {{2, 0, 2, 3}, {0, 2, 2, 2}, "strides=[2,2]", 2, {2, 2, 4, 6}},
      {{1, 0, 0}, {0, 3, 3}, "", 3, {1, 3, 2}},
      {{1, 1, 2}, {1, 0, 3}, "", 0, {1, 0, 4}},
      {{1, 2, 2, 2}, {2, 0, 2, 2}, "", 0, {1, 0, 3, 3}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.x.to_string());
    CAPTURE(c.w.to_string());
    CAPTURE(std::string(c.attributes));
    std::vector<Value> inputs{noise(c.x), noise(c.w)};
    if (c.biases > 0) inputs.emplace_back(iota(DType::Float32, {c.biases}, 1));
    Tensor y = Tensor::make(DType::Float32, c.y);
    const std::int64_t positions = c.y.numel(2, c.y.rank());
    for (std::int64_t i = 0; i < y.numel(); ++i)
      y.mutable_data<float>()[i] = c.biases > 0 ? static_cast<float>(i / positions % c.biases + 1) : 0.0f;
    const char* names = c.biases > 0 ? "(X, W, B)" : "(X, W)";
    const std::string attributes = *c.attributes == 0 ? "" : cat("<", c.attributes, ">");
    check_op(cat(names, " => (Y) { Y = ConvTranspose", attributes, names, " }"), 22, inputs, {y});
  }
}

TEST_CASE("ConvTranspose infers symbolic sizes and refuses what does not fit") {
  CHECK(infer_op("(float[N,3,H,W] X, float[3,8,2,2] K) => (Y) { Y = ConvTranspose<strides=[2,2]>(X, K) }", 11) ==
        "tensor(float)[N,8,2*H,2*W]");
  check_op_fails("(X, W) => (Y) { Y = ConvTranspose(X, W) }", 11, {noise({1, 3, 4}), noise({2, 2, 2})},
                 ErrorCode::ShapeMismatch, "channels do not fit");
  check_op_fails("(X, W) => (Y) { Y = ConvTranspose<pads=[4,4]>(X, W) }", 11, {noise({1, 2, 4}), noise({2, 2, 2})},
                 ErrorCode::ShapeMismatch, "pads leave");
  check_op_fails("(X, W) => (Y) { Y = ConvTranspose<output_padding=[1,1]>(X, W) }", 11,
                 {noise({1, 2, 4}), noise({2, 2, 2})}, ErrorCode::ShapeMismatch, "output_padding");
}

}  // namespace
}  // namespace infernode::test
