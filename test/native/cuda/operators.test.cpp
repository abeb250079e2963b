#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("functions of one number") {
  const OnDouble undo;
  for (const char* op :
       {"Abs",         "Neg",       "Exp",  "Floor",   "Ceil", "Round",    "Sign",           "Erf",
        "Sin",         "Cos",       "Tanh", "Sigmoid", "Relu", "Softplus", "Softsign",       "HardSwish",
        "HardSigmoid", "LeakyRelu", "Elu",  "Selu",    "Celu", "Mish",     "ThresholdedRelu"}) {
    same_as_cpu(cat("(float[3,5] x) => (y) { y = ", op, "(x) }"), {numbers({3, 5})}, 1e-4, 18);
    if (std::string_view(op) == "Celu") continue;  // of float32 alone
    same_as_cpu(cat("(float16[3,4] x) => (y) { y = ", op, "(x) }"), {numbers<Float16>({3, 4})}, 4e-3, 18);
  }
  same_as_cpu("(float[8] x) => (y) <float low = {-0.5}, float high = {1}> { y = Clip(x, low, high) }", {numbers({8})});
}

TEST_CASE("functions of two numbers broadcast") {
  const OnDouble undo;
  for (const char* op : {"Add", "Sub", "Mul", "Div", "PRelu", "Max", "Min"}) {
    same_as_cpu(cat("(float[2,3,4] x, float[4] z) => (y) { y = ", op, "(x, z) }"),
                {numbers({2, 3, 4}), numbers({4}, 2)});
    same_as_cpu(cat("(float[2,3,4] x, float[3,1] z) => (y) { y = ", op, "(x, z) }"),
                {numbers({2, 3, 4}), numbers({3, 1}, 2)});
  }
  same_as_cpu("(float16[2,8] x, float16[2,8] z) => (y) { y = Add(x, z) }",
              {numbers<Float16>({2, 8}), numbers<Float16>({2, 8}, 2)}, 2e-3);
  same_as_cpu("(int64[6] x, int64[1] z) => (y) { y = Mul(x, z) }",
              {Tensor::of<std::int64_t>({6}, {1, -2, 3, 4, 5, 6}), Tensor::of<std::int64_t>({1}, {7})});
}

TEST_CASE("before version 7 operands broadcast along an axis, on the CPU") {
  const OnDouble undo;
  const char* text = "(float[2,3] x, float[2] z) => (y) { y = Add<broadcast=1, axis=0>(x, z) }";
  const auto session = open(text, on_cuda(), 6);
  CHECK(nodes_on_device(*session) == 0);
  const std::vector<Value> inputs{numbers({2, 3}), numbers({2}, 2)};
  const Tensor x = run(*session, inputs)[0].tensor();
  CHECK(x.data<float>()[2] == inputs[0].tensor().data<float>()[2] + inputs[1].tensor().data<float>()[0]);
}

TEST_CASE("comparisons, choices and conversions") {
  const OnDouble undo;
  same_as_cpu("(float[2,3] x, float[3] z) => (y) { c = Less(x, z)  n = Not(c)  y = Where(n, x, z) }",
              {numbers({2, 3}), numbers({3}, 2)});
  same_as_cpu("(float[7] x) => (a, b) { a = Cast<to=6>(x)  h = Cast<to=10>(x)  b = Cast<to=1>(h) }", {numbers({7})},
              2e-3);
}

TEST_CASE("elements move") {
  const OnDouble undo;
  same_as_cpu("(float[2,3,4] x) => (y) { y = Transpose<perm=[2,0,1]>(x) }", {numbers({2, 3, 4})});
  same_as_cpu("(float[2,40,50] x) => (y) { t = Transpose<perm=[0,2,1]>(x)  y = Neg(t) }", {numbers({2, 40, 50})});
  same_as_cpu("(float[2,3] x, float[2,1] z) => (y) { y = Concat<axis=1>(x, z) }",
              {numbers({2, 3}), numbers({2, 1}, 2)});
  same_as_cpu("(float[2,6] x) => (a, b) <int64[2] s = {2, 4}> { a, b = Split<axis=1>(x, s) }", {numbers({2, 6})});
  same_as_cpu(
      "(float[4,6] x) => (y) <int64[2] b = {3, 1}, int64[2] e = {-9, 6}, int64[2] a = {0, 1}, int64[2] s = {-2, 3}> { "
      "y = Slice(x, b, e, a, s) }",
      {numbers({4, 6})});
  same_as_cpu("(float[2,1,3] x) => (y) <int64[3] s = {2, 4, 3}> { y = Expand(x, s) }", {numbers({2, 1, 3})});
  same_as_cpu("(float[5,3] x, int64[2,2] i) => (y) { y = Gather(x, i) }",
              {numbers({5, 3}), Tensor::of<std::int64_t>({2, 2}, {0, 4, -1, 2})});
  same_as_cpu("(float[2,3] x) => (y) <int64[4] p = {1, 0, 0, 2}, float v = {9}> { y = Pad(x, p, v) }",
              {numbers({2, 3})});
}

TEST_CASE("onnxruntime's forms of products and moves") {
  const OnDouble undo;
  const Value a = numbers({2, 3, 4}), b = numbers({2, 4, 5}, 2);
  same_as_cpu("(float[2,3,4] a, float[2,4,5] b) => (y) { y = com.microsoft.FusedMatMul<alpha=0.5>(a, b) }", {a, b});
  same_as_cpu("(float[2,4,3] a, float[2,5,4] b) => (y) { y = com.microsoft.FusedMatMul<transA=1, transB=1>(a, b) }",
              {numbers({2, 4, 3}), numbers({2, 5, 4}, 2)});
  same_as_cpu(
      "(float[3,2,4] a, float[4,2,5] b) => (y) {"
      " y = com.microsoft.FusedMatMul<transBatchA=1, transBatchB=1>(a, b) }",
      {numbers({3, 2, 4}), numbers({4, 2, 5}, 2)});
  same_as_cpu(
      "(float[4,2,3] a, float[4] b) => (y) { y = com.microsoft.FusedMatMul<transBatchA=1, transA=1, transB=1>(a, b) }",
      {numbers({4, 2, 3}), numbers({4}, 2)});
  same_as_cpu("(float[2,3,4] a, float[2,4,5] b) => (y) { y = com.microsoft.TransposeMatMul(a, b) }", {a, b});
  same_as_cpu("(float[3,4] x) => (y) <int32 axis = {1}> { y = com.microsoft.ExpandDims(x, axis) }", {numbers({3, 4})});
  same_as_cpu("(float[3,4] x) => (y) <int64[4] p = {1, 0, 0, 2}> { y = com.microsoft.Pad(x, p) }", {numbers({3, 4})});
  same_as_cpu("(float[2,3,4] x, int64[2,2] i) => (y) { y = com.microsoft.GatherND(x, i) }",
              {numbers({2, 3, 4}), Tensor::of<std::int64_t>({2, 2}, {0, 2, 1, 0})});
}

TEST_CASE("old images are cropped") {
  const OnDouble undo;
  same_as_cpu("(float[2,3,5,6] x) => (y) { y = Crop<border=[1, 2, 3, 1]>(x) }", {numbers({2, 3, 5, 6})}, 0, 1);
  same_as_cpu("(float[2,3,5,6] x) => (y) { y = Crop<border=[1, 2, 0, 0], scale=[2, 4]>(x) }", {numbers({2, 3, 5, 6})},
              0, 1);
}

TEST_CASE("elements that stay in order are not moved") {
  const OnDouble undo;
  const std::vector<Value> inputs{numbers({2, 0}), numbers({2, 3}, 2)};
  const char* text = "(float[2,0] x, float[2,3] z) => (y, n) { y = Concat<axis=1>(x, z)  n = Neg(y) }";
  same_as_cpu(text, inputs);
  same_as_cpu("(float[3,0] x, float[2,3] z) => (y, n) { t = Transpose(z)  y = Concat<axis=1>(x, t)  n = Neg(y) }",
              {numbers({3, 0}), inputs[1]});
}

TEST_CASE("views of views need no copies") {
  const OnDouble undo;
  const char* text =
      "(float[1,6,24] x) => (y) <int64[5] s = {1, 6, 3, 2, 4}, int64 one = {1}> { r = Reshape(x, s)  t = "
      "Transpose<perm=[2,0,3,1,4]>(r)  q = Gather<axis=0>(t, one)  y = Neg(q) }";
  same_as_cpu(text, {numbers({1, 6, 24})});
  cuda_double::state().launches.clear();
  SessionOptions as_written = on_cuda();
  as_written.level = passes::Level::Disabled;  // else the transposition moves behind Neg
  run(*open(text, as_written), {numbers({1, 6, 24})});
  CHECK(cuda_double::state().launches.size() == 1);
}

TEST_CASE("rows are normalized, reduced and summed up") {
  const OnDouble undo;
  same_as_cpu("(float[3,8] x, float[8] s, float[8] b) => (y) { y = LayerNormalization(x, s, b) }",
              {numbers({3, 8}), numbers({8}, 2), numbers({8}, 3)}, 1e-4);
  same_as_cpu("(float[3,7] x, float[7] s) => (y) { y = LayerNormalization(x, s) }", {numbers({3, 7}), numbers({7}, 2)},
              1e-4);
  same_as_cpu("(float[2,5] x) => (y) { y = Softmax(x) }", {numbers({2, 5})}, 1e-4);
  same_as_cpu("(float[2,5,3] x) => (y) { y = LogSoftmax<axis=1>(x) }", {numbers({2, 5, 3})}, 1e-4);
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare"}) {
    same_as_cpu(cat("(float[2,3,4,5] x) => (y) { y = ", op, "<axes=[0,2]>(x) }"), {numbers({2, 3, 4, 5})}, 1e-4);
  }
  // In the registers of a warp, of a block, and read again.
  for (const std::int64_t columns : {200, 256, 264, 768, 770, 1024, 1032, 1100}) {
    const std::string c = cat(columns);
    same_as_cpu(cat("(float[3,", c, "] x, float[", c, "] s, float[", c,
                    "] b) => (y) { y = LayerNormalization<epsilon=0.01>(x, s, b) }"),
                {numbers({3, columns}), numbers({columns}, 2), numbers({columns}, 3)}, 1e-4);
    same_as_cpu(cat("(float16[3,", c, "] x, float16[", c, "] s) => (y) { y = LayerNormalization(x, s) }"),
                {numbers<Float16>({3, columns}), numbers<Float16>({columns}, 2)}, 4e-3);
  }
}

TEST_CASE("rows with a bias are normalized") {
  const OnDouble undo;
  const std::vector<Value> inputs{numbers({2, 3, 8}), numbers({2, 3, 8}, 2), numbers({8}, 3), numbers({8}, 4),
                                  numbers({8}, 5)};
  same_as_cpu(
      "(float[2,3,8] x, float[2,3,8] r, float[8] g, float[8] b, float[8] a) => (y, s) {"
      " y, , , s = com.microsoft.SkipLayerNormalization(x, r, g, b, a) }",
      inputs, 1e-4);
  same_as_cpu(
      "(float[2,3,8] x, float[2,3,8] r, float[8] g, float[8] a) => (y, s) {"
      " y, , , s = com.microsoft.SkipSimplifiedLayerNormalization(x, r, g, a) }",
      {inputs[0], inputs[1], inputs[2], inputs[4]}, 1e-4);
}

TEST_CASE("what broadcasts into products and rows is repeated") {
  const OnDouble undo;
  const auto gemm = [](const char* c) {
    return cat("(float[9,21] a, float[21,34] b, float[", c, "] c) => (y) { y = Gemm<alpha=0.5, beta=1.5>(a, b, c) }");
  };
  const Value a = numbers({9, 21}), b = numbers({21, 34}, 2);
  same_as_cpu(gemm("34"), {a, b, numbers({34}, 3)}, 1e-4);
  same_as_cpu(gemm("9,1"), {a, b, numbers({9, 1}, 3)}, 1e-4);
  same_as_cpu("(float[2,3,8] x, float[3,1] s) => (y) { y = LayerNormalization<axis=1>(x, s) }",
              {numbers({2, 3, 8}), numbers({3, 1}, 2)}, 1e-4);
  same_as_cpu("(float[2,5] x) => (y) <int64[0] axes = {}> { y = ReduceSumSquare<noop_with_empty_axes=1>(x, axes) }",
              {numbers({2, 5})}, 1e-5, 18);
}

TEST_CASE("running sums") {
  const OnDouble undo;
  for (const char* how : {"", "<exclusive=1>", "<reverse=1>", "<exclusive=1, reverse=1>"}) {
    same_as_cpu(cat("(int64[3,300] x) => (y) <int64 a = {1}> { y = CumSum", how, "(x, a) }"),
                {Tensor::of<std::int64_t>({3, 300}, std::vector<std::int64_t>(900, std::int64_t{1} << 33))});
    same_as_cpu(cat("(float[2,40] x) => (y) <int64 a = {1}> { y = CumSum", how, "(x, a) }"), {numbers({2, 40})}, 1e-4);
    same_as_cpu(cat("(float[2,5,3] x) => (y) <int64 a = {1}> { y = CumSum", how, "(x, a) }"), {numbers({2, 5, 3})},
                1e-4);
  }
}

TEST_CASE("copies that do not meet are one launch") {
  const OnDouble undo;
  const char* text = "(float[2,3] x, float[2,2] z) => (a, b) { a = Concat<axis=1>(x, z)  b = Concat<axis=1>(z, x) }";
  same_as_cpu(text, {numbers({2, 3}), numbers({2, 2}, 2)});
  cuda_double::state().launches.clear();
  run(*open(text, on_cuda()), {numbers({2, 3}), numbers({2, 2}, 2)});
  CHECK(cuda_double::state().launches.size() == 1);
  // The second reads what the first one writes.
  same_as_cpu("(float[2,3] x, float[2,2] z) => (b) { a = Concat<axis=1>(x, z)  b = Concat<axis=1>(a, x) }",
              {numbers({2, 3}), numbers({2, 2}, 2)});
}

namespace {

/// Kernels that a run launches, with a space behind each, once constants are packed.
std::string kernels_of(std::string_view text, const std::vector<Value>& inputs) {
  const auto session = open(text, on_cuda());
  run(*session, inputs);
  cuda_double::state().launches.clear();
  run(*session, inputs);
  std::string names;
  for (const auto& launch : cuda_double::state().launches) names += launch.kernel + " ";
  return names;
}

constexpr const char* kProductOfRows =
    "<float16[8] s = {1, 2, 3, 4, 5, 6, 7, 8}, float16[8,2] w = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> { n "
    "= LayerNormalization(x, s)  ";

}  // namespace

TEST_CASE("products of few rows normalize them on the way") {
  const OnDouble undo;
  const std::string plain = cat("(float16[1,8] x) => (y) ", kProductOfRows, "y = MatMul(n, w) }");
  CHECK(kernels_of(plain, {numbers<Float16>({1, 8})}) == "gemv_norm_f16 ");
  const std::string viewed = cat("(float16[1,1,8] x) => (y) <int64[2] shape = {1, 8}, ",
                                 std::string(kProductOfRows + 1), "r = Reshape(n, shape)  y = MatMul(r, w) }");
  CHECK(kernels_of(viewed, {numbers<Float16>({1, 1, 8})}) == "gemv_norm_f16 ");
  const std::string read = cat("(float16[1,8] x) => (y, z) ", kProductOfRows, "y = MatMul(n, w)  z = Neg(n) }");
  CHECK(kernels_of(read, {numbers<Float16>({1, 8})}) == "gemv_norm_f16 normalize_f16 unary_f16_4 ");
  const std::string many = cat("(float16[9,8] x) => (y) ", kProductOfRows, "y = MatMul(n, w) }");
  CHECK(has(kernels_of(many, {numbers<Float16>({9, 8})}), "normalize_f16 "));
  same_as_cpu(cat("(float16[2,8] x) => (z) ", kProductOfRows, "z = Neg(n) }"), {numbers<Float16>({2, 8})}, 4e-3);
}

TEST_CASE("attention joins the keys of a decoder's cache") {
  const OnDouble undo;
  const auto step = [](const char* type) {
    return cat("(", type, "[1,2,1,8] q, ", type, "[1,2,5,8] pk, ", type, "[1,2,1,8] nk, ", type, "[1,2,5,8] pv, ", type,
               "[1,2,1,8] nv) => (y, k, v) { k = Concat<axis=-2>(pk, nk)  v = Concat<axis=-2>(pv, nv)  t = "
               "Transpose<perm=[0,1,3,2]>(k)  s = MatMul(q, t)  p = Softmax<axis=-1>(s)  y = MatMul(p, v) }");
  };
  const auto inputs = [](auto make) {
    return std::vector<Value>{make(tensor::Shape{1, 2, 1, 8}, 1), make(tensor::Shape{1, 2, 5, 8}, 2),
                              make(tensor::Shape{1, 2, 1, 8}, 3), make(tensor::Shape{1, 2, 5, 8}, 4),
                              make(tensor::Shape{1, 2, 1, 8}, 5)};
  };
  same_as_cpu(step("float"), inputs([](const auto& shape, unsigned seed) { return numbers(shape, seed); }), 1e-4);
  CHECK(kernels_of(step("float16"), inputs([](const auto& shape, unsigned seed) {
                     return numbers<Float16>(shape, seed);
                   })) == "attention_few_f16_64 ");
}

TEST_CASE("windows beside each other are rows of a product") {
  const OnDouble undo;
  const auto conv = [](const char* type, const char* attributes) {
    return cat("(", type, "[2,2,4,7] x) => (y) <", type,
               "[3,2,2,2] w = {1,2,3,4,5,6,7,8,-1,-2,-3,-4,5,6,7,8,1,0,2,0,3,0,4,0}, ", type,
               "[3] b = {1,2,3}> { y = Conv<", attributes, ">(x, w, b) }");
  };
  const auto kernels = [&](const char* attributes) {
    return kernels_of(conv("float16", attributes), {numbers<Float16>({2, 2, 4, 7})});
  };
  CHECK(has(kernels("strides=[2,2]"), "copy_"));
  CHECK(has(kernels("strides=[2,2], auto_pad=\"VALID\""), "copy_"));
  for (const char* other : {"strides=[2,1]", "strides=[2,2], pads=[0,1,0,1]", "strides=[2,2], dilations=[1,2]",
                            "strides=[2,2], auto_pad=\"SAME_UPPER\""}) {
    CAPTURE(other);
    CHECK(has(kernels(other), "pixels_2 "));
    same_as_cpu(conv("float", other), {numbers({2, 2, 4, 7})}, 1e-4);
  }
  same_as_cpu(conv("float", "strides=[2,2]"), {numbers({2, 2, 4, 7})}, 1e-4);
  same_as_cpu(conv("float", "strides=[2,2], auto_pad=\"VALID\""), {numbers({2, 2, 4, 7})}, 1e-4);
}

TEST_CASE("images are pooled with channels last") {
  const OnDouble undo;
  const char* pooled = "(float16[2,3,5,7] x) => (y) { y = MaxPool<kernel_shape=[2,3]>(x) }";
  same_as_cpu(pooled, {numbers<Float16>({2, 3, 5, 7})});
  CHECK(has(kernels_of(pooled, {numbers<Float16>({2, 3, 5, 7})}), "pixels_2 "));
  for (const std::int64_t channels : {1, 7, 8, 9}) {
    same_as_cpu(cat("(float[2,", channels, ",5,3] x) => (y) { y = MaxPool<kernel_shape=[2,2]>(x) }"),
                {numbers({2, channels, 5, 3})});
  }
  same_as_cpu("(float[2,3,6,5] x) => (y) { y = MaxPool<kernel_shape=[3,2], strides=[2,1], pads=[1,0,1,1]>(x) }",
              {numbers({2, 3, 6, 5})});
  same_as_cpu(
      "(float[1,8,4,4] x) => (y) { y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x) }",
      {numbers({1, 8, 4, 4})}, 1e-4);
  same_as_cpu("(float[2,9,4,4] x) => (y) { r = Relu(x)  y = GlobalAveragePool(r) }", {numbers({2, 9, 4, 4})}, 1e-4);
}

TEST_CASE("squeeze-and-excitation is one kernel behind the sums of a depthwise convolution") {
  const OnDouble undo;
  const auto list = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += cat(i > 0 ? "," : "", i * 7 % 5 - 2);
    return text;
  };
  const auto model = [&](const char* outputs, const char* more) {
    return cat("(float16[2,24,19,6] x) => (", outputs, ") <float16[24,1,3,3] w = {", list(216),
               "}, float16[6,24,1,1] f = {", list(144), "}, float16[6] fb = {", list(6), "}, float16[24,6,1,1] s = {",
               list(144), "}, float16[8,24,1,1] p = {", list(192), "}, float16[24] sb = {", list(24),
               "}> { d = Conv<group=24, pads=[1,1,1,1]>(x, w)  m = GlobalAveragePool(d)  h = Conv(m, f, fb)  r = "
               "Relu(h)  e = Conv(r, s, sb)  g = Sigmoid(e)  y = Mul(d, g) ",
               more, "}");
  };
  const std::vector<Value> image{numbers<Float16>({2, 24, 19, 6})};
  same_as_cpu(model("y", ""), image, 2e-2);
  CHECK(has(kernels_of(model("y", ""), image), "depthwise_f16_3x3_s1_whole channel_gate_f16 binary_f16_"));
  // A convolution behind it takes scaled weights.
  const std::string behind = kernels_of(model("z", "z = Conv(y, p) "), image);
  CHECK(has(behind, "depthwise_f16_3x3_s1_whole channel_gate_f16 gemm_"));
  CHECK(!has(behind, "binary_f16_"));
  CHECK(has(kernels_of(model("z", "z = Conv<pads=[1,1,1,1]>(y, p) "), image), "binary_f16_"));
  // What is read elsewhere, too, is made.
  same_as_cpu(model("m", ""), image, 4e-3);
  CHECK(has(kernels_of(model("y, n", "n = Neg(m) "), image), "pixel_means_f16 "));
}

TEST_CASE("arithmetic on shapes stays on the host") {
  const OnDouble undo;
  const auto s = open(
      "(float[N,M] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] axes = {0}> { s = Shape(x)  n = Gather(s, "
      "zero)  m = Gather(s, one)  p = Mul(n, m)  u = Unsqueeze(p, axes)  r = Reshape(x, u)  y = Neg(r) }",
      on_cuda());
  for (const std::int64_t n : {2, 3}) {
    cuda_double::state().launches.clear();
    const auto results = run(*s, {numbers({n, 4})});
    CHECK(results[0].tensor().shape() == tensor::Shape{n * 4});
    CHECK(cuda_double::state().launches.size() == 1);
  }
}
