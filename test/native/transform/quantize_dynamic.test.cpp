#include "transform/tensor_codes.h"
#include "transform/transform_test.h"

using namespace infernode;
using namespace infernode::test;
using transform::Report;
using transform::Setting;
using transform::Settings;
using transform::TensorCodes;
using transform::TensorFormat;

namespace {

Settings settings(std::initializer_list<std::pair<const std::string, Setting>> changes = {}) {
  return changed({{"opTypesToQuantize", Texts{"MatMul", "Gemm", "Conv", "Gather"}},
                  {"perChannel", false},
                  {"reduceRange", false},
                  {"weightType", std::string("QInt8")},
                  {"nodesToQuantize", Texts{}},
                  {"nodesToExclude", Texts{}},
                  {"EnableSubgraph", false},
                  {"MatMulConstBOnly", true},
                  {"WeightSymmetric", true}},
                 changes);
}

Report quantize(graph::Model& model, const Settings& given = settings()) {
  return transform_model("quantizeDynamic", model, given);
}

std::string check(std::string_view text, const Weights& weights, const Settings& given = settings(),
                  double tolerance = 0.02) {
  return check_transformed("quantizeDynamic", text, weights, given, tolerance);
}

Tensor random(const Shape& shape, std::uint32_t seed = 2) { return noise(DType::Float32, shape, seed); }

std::vector<std::int64_t> codes_of(const std::vector<float>& values, const TensorFormat& format, float scale,
                                   std::int64_t zero) {
  const Tensor tensor = Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  const TensorCodes made = transform::make_tensor_codes(tensor, format, kernel::RunContext{});
  CHECK(tensor::to_float_scalar(made.scale) == doctest::Approx(scale));
  CHECK(tensor::to_int64_scalar(made.zero) == zero);
  return tensor::to_int64_vector(made.codes);
}

}  // namespace

TEST_CASE("codes of 8 bits are those of onnxruntime's quantizers") {
  using Codes = std::vector<std::int64_t>;
  CHECK(codes_of({-1.27f, 0.635f, 0.005f, 0}, {}, 0.01f, 0) == Codes{-127, 64, 0, 0});
  CHECK(codes_of({-0.64f, 0.1f}, {.reduced = true}, 0.01f, 0) == Codes{-64, 10});
  CHECK(codes_of({-0.5f, 2.05f}, {.symmetric = false}, 0.01f, -78) == Codes{-128, 127});
  CHECK(codes_of({-0.5f, 2.05f}, {.type = DType::UInt8, .symmetric = false}, 0.01f, 50) == Codes{0, 255});
  CHECK(codes_of({1, 2.55f}, {.type = DType::UInt8, .symmetric = false}, 0.01f, 0) == Codes{100, 255});
  CHECK(codes_of({1.27f, -1.27f}, {.type = DType::UInt8, .symmetric = false, .reduced = true}, 0.02f, 64) ==
        Codes{127, 0});
  CHECK(codes_of({0, 0}, {}, 1, 0) == Codes{0, 0});
  const TensorCodes channels = transform::make_tensor_codes(Tensor::of<float>({2, 2}, {1.27f, -2, 0.5f, 25.4f}),
                                                            {.axis = 1}, kernel::RunContext{});
  CHECK(channels.scale.shape() == Shape{2});
  CHECK(tensor::to_int64_vector(channels.codes) == Codes{127, -10, 50, 127});
  CHECK_THROWS_WITH_AS(codes_of({1, std::numeric_limits<float>::infinity()}, {}, 1, 0),
                       "an element is no finite number", Error);
}

TEST_CASE("products are computed on codes") {
  const Weights weights{{"w", random({48, 6})}, {"t", random({6, 48})}, {"c", random({6})}};
  const std::string text = "g (float[2,48] x, w) => (y) { [\"p\"] y = MatMul(x, w) }";
  CHECK(check(text, weights) == R"(x_quantized, x_scale, x_zero_point = DynamicQuantizeLinear (x)
y_output_quantized = MatMulInteger (x_quantized, w_quantized, x_zero_point, w_zero_point)
y_output_quantized_cast_output = Cast <to = 1> (y_output_quantized)
x_scale_w_scale_mul = Mul (x_scale, w_scale)
y = Mul (y_output_quantized_cast_output, x_scale_w_scale_mul))");
  check(text, weights, settings({{"perChannel", true}}));
  check(text, weights, settings({{"reduceRange", true}}), 0.04);
  check(text, weights, settings({{"weightType", std::string("QUInt8")}, {"WeightSymmetric", false}}));
  check("g (float[2,48] x, w, c) => (y) { y = Gemm(x, w, c) }", weights);
  check("g (float[2,48] x, t, c) => (y) { y = Gemm <transB = 1>(x, t, c) }", weights, settings({{"perChannel", true}}));
  check("g (float[5,2,48] x, w) => (y) { y = MatMul(x, w) }", weights);
}

TEST_CASE("an activation, and a weight, that several nodes read is quantized once") {
  const std::string made = check("g (float[2,48] x, w) => (y) { a = MatMul(x, w) b = MatMul(x, w) y = Add(a, b) }",
                                 {{"w", random({48, 48})}});
  CHECK(made.find("DynamicQuantizeLinear", made.find("DynamicQuantizeLinear") + 1) == std::string::npos);
  CHECK(made.find("w_quantized_") == std::string::npos);
  CHECK(made.find("Mul (x_scale, w_scale)", made.find("Mul (x_scale, w_scale)") + 1) == std::string::npos);
}

TEST_CASE("convolutions of any rank, with a bias or without") {
  const Weights weights{{"w", random({4, 3, 3, 3})}, {"v", random({4, 3, 3})}, {"b", random({4})}};
  check("g (float[1,3,8,8] x, w) => (y) { y = Conv <pads = [1, 1, 1, 1]>(x, w) }", weights);
  check("g (float[1,3,8,8] x, w, b) => (y) { y = Conv <strides = [2, 2]>(x, w, b) }", weights);
  check("g (float[1,3,8,8] x, float[4] a, w) => (y) { y = Conv(x, w, a) }", weights);
  const std::string made =
      check("g (float[1,3,8] x, v, b) => (y) { y = Conv(x, v, b) }", weights, settings({{"perChannel", true}}));
  CHECK(made.find("ConvInteger") != std::string::npos);
  CHECK(made.find("y = Add (y_scaled, b_reshaped)") != std::string::npos);
}

TEST_CASE("tables are picked from as codes") {
  CHECK(check("g (int64[2,3] i, w) => (y) { y = Gather(w, i) }", {{"w", random({9, 8})}}) ==
        "y_quantized = Gather (w_quantized, i)\ny = DequantizeLinear (y_quantized, w_scale, w_zero_point)");
}

TEST_CASE("products of activations, and bodies, are quantized where that is asked for") {
  const std::string text = "g (float[2,8] x, float[8,3] v) => (y) { y = MatMul(x, v) }";
  CHECK(check(text, {}, settings({{"MatMulConstBOnly", false}})).find("MatMulInteger") != std::string::npos);
  const std::string branch =
      "g (float[2,48] x, w, bool c) => (y) { a = MatMul(x, w) y = If <then_branch = t () => (p) { p = MatMul(a, w) }, "
      "else_branch = e () => (q) { q = Neg(a) }>(c) }";
  const Weights weights{{"w", random({48, 48})}};
  const auto quantized = [&](bool on) {
    return check(branch, weights, settings({{"EnableSubgraph", on}})).find("p_output_quantized") != std::string::npos;
  };
  CHECK(quantized(true));
  CHECK_FALSE(quantized(false));
}

TEST_CASE("what stays of a model, and what is refused") {
  graph::Model model = model_with(R"(g (float[2,48] x, float[48,48] v, w) => (y, z) {
      ["free"] a = MatMul(x, v) ["product"] y = MatMul(a, w) ["alpha"] z = Gemm <alpha = 0.5>(a, w) })",
                                  {{"w", random({48, 48})}});
  std::map<std::string, std::string> outcomes;
  for (const auto& node : quantize(model).nodes) outcomes[node.node] = node.became + node.reason;
  CHECK(outcomes == std::map<std::string, std::string>{{"free", "its weight is no constant"},
                                                       {"product", "MatMulInteger"},
                                                       {"alpha", "its alpha is not 1"}});
  const std::string text = "g (float[2,48] x, w) => (y) { y = MatMul(x, w) }";
  graph::Model old = model_with(text, {{"w", random({48, 48})}}, 10);
  CHECK_THROWS_WITH_AS(quantize(old), doctest::Contains("its operator set is older than version 11"), Error);
  graph::Model done = model_with(text, {{"w", random({48, 48})}});
  quantize(done);
  CHECK_THROWS_WITH_AS(quantize(done), doctest::Contains("The model is quantized already: 2 of its nodes are."), Error);
  graph::Model other = model_with(text, {{"w", random({48, 48})}});
  CHECK_THROWS_WITH_AS(quantize(other, settings({{"weightType", std::string("QInt4")}})),
                       "weightType is 'QInt4'; it may be 'QInt8' or 'QUInt8'", Error);
}
