#include "transform/tensor_codes.h"
#include "transform/transform_test.h"

using namespace infernode;
using namespace infernode::test;
using transform::Range;
using transform::Report;
using transform::Scale;
using transform::Setting;
using transform::Settings;
using transform::TensorCodes;
using transform::TensorFormat;

namespace {

using Changes = std::initializer_list<std::pair<const std::string, Setting>>;
using Ranges = std::map<std::string, std::pair<double, double>>;

const Texts kOperators{"Conv",    "Gemm",    "MatMul", "Add",    "Relu",  "Clip", "MaxPool",
                       "Softmax", "Reshape", "Gather", "Concat", "Split", "Pad",  "LayerNormalization",
                       "Where"};

Settings settings(const Ranges& ranges, Changes changes = {}) {
  Texts names;
  std::vector<double> numbers;
  for (const auto& [name, range] : ranges) {
    names.push_back(name);
    numbers.insert(numbers.end(), {range.first, range.second});
  }
  return changed({{"opTypesToQuantize", kOperators},
                  {"nodesToQuantize", Texts{}},
                  {"nodesToExclude", Texts{}},
                  {"perChannel", false},
                  {"reduceRange", false},
                  {"activationType", std::string("QUInt8")},
                  {"weightType", std::string("QInt8")},
                  {"ActivationSymmetric", false},
                  {"ActivationRestrictedAsymmetric", false},
                  {"WeightSymmetric", true},
                  {"ForceQuantizeNoInputCheck", false},
                  {"MatMulConstBOnly", false},
                  {"AddQDQPairToWeight", false},
                  {"OpTypesToExcludeOutputQuantization", Texts{}},
                  {"DedicatedQDQPair", false},
                  {"QDQOpTypePerChannelSupportToAxis", Texts{}},
                  {"UseQDQContribOps", false},
                  {"MinimumRealRange", 0.0},
                  {"QDQKeepRemovableActivations", false},
                  {"QDQDisableWeightAdjustForInt32Bias", false},
                  {"QuantizeBias", true},
                  {"rangeNames", names},
                  {"ranges", numbers}},
                 changes);
}

Tensor random(const Shape& shape, std::uint32_t seed = 2) { return noise(DType::Float32, shape, seed); }

/// The nodes that become of a graph, whose answers stay near. Inputs are drawn from -1 to 1.
std::string check(std::string_view text, const Weights& weights, const Ranges& ranges, Changes changes = {},
                  double tolerance = 0.05) {
  return check_transformed("quantizeStatic", text, weights, settings(ranges, changes), tolerance);
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<std::string> outcomes(std::string_view text, const Weights& weights, const Ranges& ranges,
                                  Changes changes = {}) {
  graph::Model model = model_with(text, weights);
  std::vector<std::string> found;
  for (const auto& node : transform_model("quantizeStatic", model, settings(ranges, changes)).nodes)
    found.push_back(node.became + node.reason);
  return found;
}

}  // namespace

TEST_CASE("codes of 4 and 16 bits, and those along an inner axis") {
  const Tensor values = Tensor::of<float>({2, 3}, {-1, 0.5f, 1, 0.25f, -0.5f, 0});
  const kernel::RunContext run;
  const auto codes = [&](const TensorFormat& format) { return transform::make_tensor_codes(values, format, run); };
  using Codes = std::vector<std::int64_t>;
  CHECK(tensor::to_int64_vector(codes({.type = DType::Int16}).codes) == Codes{-32767, 16384, 32767, 8192, -16384, 0});
  const TensorCodes wide = codes({.type = DType::UInt16, .symmetric = false});
  CHECK(tensor::to_int64_vector(wide.codes) == Codes{0, 49152, 65535, 40960, 16384, 32768});
  CHECK(tensor::to_int64_scalar(wide.zero) == 32768);
  const TensorCodes narrow = codes({.type = DType::Int4});
  CHECK(narrow.codes.dtype() == DType::Int4);
  CHECK(tensor::to_float_scalar(narrow.scale) == doctest::Approx(2.0 / 15));
  CHECK(tensor::to_int64_vector(narrow.codes) == Codes{-7, 4, 7, 2, -4, 0});
  CHECK(tensor::to_int64_vector(codes({.type = DType::UInt4, .symmetric = false}).codes) == Codes{1, 12, 15, 10, 4, 8});
  const TensorCodes rows = codes({.axis = 0});
  CHECK(tensor::to_float_vector(rows.scale) == std::vector<float>{1 / 127.0f, 0.5f / 127});
  CHECK(tensor::to_int64_vector(rows.codes) == Codes{-127, 64, 127, 64, -127, 0});
}

TEST_CASE("scales of ranges") {
  const auto check_scale = [](const Scale& made, float scale, int zero) {
    CHECK(made.scale == doctest::Approx(scale));
    CHECK(made.zero == zero);
  };
  const TensorFormat bytes{.type = DType::UInt8, .symmetric = false};
  check_scale(transform::scale_of({-1, 1.55f}, bytes), 0.01f, 100);
  check_scale(transform::scale_of({0, 0}, bytes), 1, 0);
  const TensorFormat wide{.type = DType::UInt8, .symmetric = false, .least_length = 2.55f};
  check_scale(transform::scale_of({0, 0.001f}, wide), 0.01f, 0);
  check_scale(transform::restricted_scale_of({0, 2.55f}, bytes), 0.01f, 0);
  check_scale(transform::restricted_scale_of({-1.28f, 0.1f}, bytes), 0.01f, 128);
  check_scale(transform::restricted_scale_of({-0.1f, 2.54f}, bytes), 0.02f, 128);
}

TEST_CASE("values of products pass through QuantizeLinear and DequantizeLinear") {
  const Weights weights{{"w", random({48, 6})}};
  const Ranges ranges{{"x", {-1, 1}}, {"y", {-8, 8}}};
  const std::string text = "g (float[2,48] x, w) => (y) { y = MatMul(x, w) }";
  CHECK(check(text, weights, ranges, {}, 0.1) == R"(x_QuantizeLinear_Output = QuantizeLinear (x, x_scale, x_zero_point)
x_DequantizeLinear_Output = DequantizeLinear (x_QuantizeLinear_Output, x_scale, x_zero_point)
w_DequantizeLinear_Output = DequantizeLinear (w_quantized, w_scale, w_zero_point)
y_DequantizeLinear_Output = MatMul (x_DequantizeLinear_Output, w_DequantizeLinear_Output)
y_QuantizeLinear_Output = QuantizeLinear (y_DequantizeLinear_Output, y_scale, y_zero_point)
y = DequantizeLinear (y_QuantizeLinear_Output, y_scale, y_zero_point))");
  for (const char* type : {"QInt8", "QUInt8", "QInt16", "QUInt16"}) {
    CAPTURE(type);
    const double tolerance = std::string(type).ends_with("16") ? 0.05 : 0.1;
    if (type != std::string("QInt8")) check(text, weights, ranges, {{"weightType", std::string(type)}}, 0.1);
    check(text, weights, ranges, {{"activationType", std::string(type)}, {"perChannel", true}}, tolerance);
  }
  check(text, weights, ranges, {{"weightType", std::string("QInt4")}, {"perChannel", true}}, 1.5);
  check(text, weights, ranges, {{"weightType", std::string("QUInt4")}, {"WeightSymmetric", false}}, 1.5);
  check(text, weights, ranges, {{"reduceRange", true}, {"ActivationSymmetric", true}}, 0.15);
  CHECK(count(check(text, weights, ranges, {{"AddQDQPairToWeight", true}}, 0.1), "QuantizeLinear (w, ") == 1);
  CHECK(count(check(text, weights, ranges, {{"UseQDQContribOps", true}}, 0.1), "com.microsoft.DequantizeLinear") == 3);
  const Changes open{{"OpTypesToExcludeOutputQuantization", Texts{"MatMul"}}};
  CHECK(count(check(text, weights, ranges, open, 0.1), "y = MatMul") == 1);
}

TEST_CASE("biases have the scale of the products that they are added to") {
  const Weights weights{{"w", random({4, 3, 3, 3})}, {"b", random({4})}, {"z", Tensor::of<float>({4}, {0, 0, 0, 0})}};
  const Ranges ranges{{"x", {-1, 1}}, {"y", {-12, 12}}, {"u", {-12, 12}}, {"v", {-12, 12}}};
  const std::string text = "g (float[1,3,8,8] x, w, b) => (y) { y = Conv(x, w, b) }";
  for (const bool per_channel : {false, true}) {
    const std::string made = check(text, weights, ranges, {{"perChannel", per_channel}}, 0.15);
    CHECK(count(made, "DequantizeLinear (b_quantized, b_quantized_scale)") == (per_channel ? 0 : 1));
    CHECK(count(made, "(b_quantized") == 1);
  }
  CHECK(count(check(text, weights, ranges, {{"QuantizeBias", false}}, 0.15), "b_quantized") == 0);
  // One for each of two nodes, also where it passes through an Identity; none of zeros.
  const std::string both =
      check("g (float[1,3,8,8] x, w, b) => (y) { c = Identity(b) u = Conv(x, w, b) v = Conv(x, w, c) y = Add(u, v) }",
            weights, {{"x", {-1, 1}}, {"u", {-12, 12}}, {"v", {-12, 12}}, {"y", {-24, 24}}}, {}, 0.4);
  CHECK(count(both, "= DequantizeLinear (b_quantized") == 2);
  CHECK(count(check("g (float[1,3,8,8] x, w, z) => (y) { y = Conv(x, w, z) }", weights, ranges, {}, 0.15), "z_") == 0);
}

TEST_CASE("a weight's scale grows where codes of its bias would not fit 32 bits") {
  const Weights weights{{"w", Tensor::of<float>({2, 2}, {1e-6f, 2e-6f, -1e-6f, 1e-6f})},
                        {"b", Tensor::of<float>({2}, {100, -300})}};
  const std::string text = "g (float[2,2] x, w, b) => (y) { y = Gemm(x, w, b) }";
  const Ranges ranges{{"x", {-0.001, 0.001}}, {"y", {-300, 300}}};
  check(text, weights, ranges, {}, 2.5);
  graph::Model model = model_with(text, weights);
  transform_model("quantizeStatic", model, settings(ranges, {{"QDQDisableWeightAdjustForInt32Bias", true}}));
  const graph::ValueId codes = model.graph->find_value("b_quantized");
  CHECK(tensor::to_int64_vector(model.graph->value(codes).constant.tensor()).back() ==
        std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("activations that the range of codes replaces go") {
  const Weights weights{{"w", random({48, 6})}, {"low", Tensor::scalar(0.0f)}, {"six", Tensor::scalar(6.0f)}};
  const Ranges ranges{{"x", {-1, 1}}, {"a", {-8, 8}}, {"b", {0, 6}}, {"c", {0, 6}}, {"y", {0, 6}}};
  const std::string relu = "g (float[2,48] x, w) => (y) { a = MatMul(x, w) y = Relu(a) }";
  CHECK(count(check(relu, weights, ranges, {}, 0.1), "Relu") == 0);
  CHECK(count(check(relu, weights, ranges, {{"QDQKeepRemovableActivations", true}}, 0.1), "Relu") == 1);
  CHECK(count(check(relu, weights, ranges, {{"ActivationSymmetric", true}}, 0.1), "Relu") == 1);
  const std::string two =
      "g (float[2,48] x, w, low, six) => (y) { a = MatMul(x, w) b = Relu(a) y = Clip(b, low, six) }";
  CHECK(count(check(two, weights, ranges, {}, 0.1), "Clip") == 0);
  // One whose numbers do not hold 0 stays, and so does one whose input others read.
  const Weights above{{"w", random({48, 6})}, {"low", Tensor::scalar(1.0f)}, {"six", Tensor::scalar(6.0f)}};
  const std::string far = "g (float[2,48] x, w, low, six) => (y) { a = MatMul(x, w) y = Clip(a, low, six) }";
  CHECK(count(check(far, above, {{"x", {-1, 1}}, {"a", {-8, 8}}, {"y", {1, 6}}}, {}, 0.1), "Clip") == 1);
  CHECK(count(check(relu, weights, {{"x", {-1, 1}}, {"a", {-8, 8}}, {"y", {-6, 6}}}, {}, 0.2), "Relu") == 1);
  const std::string shared = "g (float[2,48] x, w) => (y, a) { a = MatMul(x, w) y = Relu(a) }";
  CHECK(count(check(shared, weights, ranges, {}, 0.1), "Relu") == 1);
}

TEST_CASE("operators that pass values on share their scale, where those have codes") {
  const Weights weights{{"w", random({48, 6})}, {"t", random({9, 8})}, {"to", Tensor::of<std::int64_t>({1}, {-1})}};
  const Ranges ranges{{"x", {-1, 1}}, {"a", {-8, 8}}, {"y", {-8, 8}}};
  const std::string made =
      check("g (float[2,48] x, w, to) => (y) { a = MatMul(x, w) y = Reshape(a, to) }", weights, ranges, {}, 0.1);
  CHECK(count(made, "y = DequantizeLinear (y_QuantizeLinear_Output, a_scale, a_zero_point)") == 1);
  CHECK(count(check("g (int64[2,3] i, t) => (y) { y = Gather(t, i) }", weights, {{"y", {-1, 1}}}), "t_scale") == 3);
  using Outcomes = std::vector<std::string>;
  const std::string pool = "g (float[1,1,4,4] x) => (z) { y = MaxPool <kernel_shape = [2, 2]>(x) z = Add(y, y) }";
  const Ranges pooled{{"x", {-1, 1}}, {"y", {-1, 1}}, {"z", {-2, 2}}};
  CHECK(outcomes(pool, {}, pooled) == Outcomes{"its input is not quantized", "QDQ Add"});
  CHECK(outcomes(pool, {}, pooled, {{"ForceQuantizeNoInputCheck", true}}) == Outcomes{"QDQ MaxPool", "QDQ Add"});
  const std::string free = "g (float[2,8] x, float[8,3] v) => (z) { y = MatMul(x, v) z = Add(y, y) }";
  const Ranges products{{"x", {-1, 1}}, {"v", {-1, 1}}, {"y", {-8, 8}}, {"z", {-9, 9}}};
  CHECK(outcomes(free, {}, products, {{"MatMulConstBOnly", true}}) ==
        Outcomes{"its second input is no constant", "QDQ Add"});
}

TEST_CASE("each reader has a pair of its own where that is asked for") {
  const Weights weights{{"w", random({48, 6})}, {"v", random({48, 6}, 3)}};
  const std::string text = "g (float[2,48] x, w, v) => (y) { a = MatMul(x, w) b = MatMul(x, v) y = Add(a, b) }";
  const Ranges ranges{{"x", {-1, 1}}, {"a", {-8, 8}}, {"b", {-8, 8}}, {"y", {-16, 16}}};
  CHECK(count(check(text, weights, ranges, {}, 0.3), "= QuantizeLinear (x,") == 1);
  CHECK(count(check(text, weights, ranges, {{"DedicatedQDQPair", true}}, 0.3), "= QuantizeLinear (x,") == 2);
}

TEST_CASE("what is refused") {
  const std::string text = "g (float[2,48] x, w) => (y) { y = MatMul(x, w) }";
  const Weights weights{{"w", random({48, 6})}};
  const Ranges ranges{{"x", {-1, 1}}, {"y", {-8, 8}}};
  const auto quantize = [&](const Settings& given, std::int64_t opset = 17) {
    graph::Model model = model_with(text, weights, opset);
    transform_model("quantizeStatic", model, given);
    transform_model("quantizeStatic", model, given);
  };
  CHECK_THROWS_WITH_AS(quantize(settings(ranges)), "the model is quantized already: 2 of its nodes are", Error);
  CHECK_THROWS_WITH_AS(quantize(settings({{"x", {-1, 1}}})), doctest::Contains("lack that of 'y'"), Error);
  CHECK_THROWS_WITH_AS(quantize(settings({{"x", {1, -1}}, {"y", {0, 1}}})),
                       "the range of 'x' is no range of finite numbers", Error);
  CHECK_THROWS_WITH_AS(quantize(settings(ranges), 9), doctest::Contains("QuantizeLinear needs 10"), Error);
  CHECK_THROWS_WITH_AS(quantize(settings(ranges, {{"perChannel", true}}), 11), doctest::Contains("need 13"), Error);
  CHECK_THROWS_WITH_AS(
      quantize(settings(ranges, {{"activationType", std::string("QInt8")}, {"weightType", std::string("QUInt8")}})),
      doctest::Contains("needs an activationType that is unsigned"), Error);
  CHECK_THROWS_WITH_AS(quantize(settings(ranges, {{"weightType", std::string("Q8")}})),
                       "weightType is 'Q8', which is no type of codes", Error);
  CHECK_THROWS_WITH_AS(quantize(settings(ranges, {{"QDQOpTypePerChannelSupportToAxis", Texts{"MatMul"}}})),
                       doctest::Contains("no operator and axis as MatMul:1"), Error);
  CHECK_THROWS_WITH_AS(quantize(settings(ranges, {{"opTypesToQuantize", Texts{"Conv"}}})),
                       doctest::Contains("there is nothing to quantize"), Error);
}

TEST_CASE("activations become outputs, once each, before they are quantized") {
  graph::Model model =
      model_with("g (float[2,48] x, w, int64[2] i) => (y) { a = MatMul(x, w) b = Relu(a) c = Add(i, i) y = Neg(b) }",
                 {{"w", random({48, 6})}});
  transform_model("observeTensors", model,
                  {{"opTypesToQuantize", kOperators}, {"nodesToQuantize", Texts{}}, {"nodesToExclude", Texts{}}});
  std::vector<std::string> names;
  for (const graph::ValueId id : model.graph->outputs()) names.push_back(model.graph->value(id).name);
  CHECK(names == std::vector<std::string>{"y", "x", "a", "b"});
}
