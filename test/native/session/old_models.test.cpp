// Habits of old exporters, each as a model of its time.

#include "onnx/writer.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

Tensor floats(const Shape& shape, std::initializer_list<float> values) { return Tensor::of<float>(shape, values); }

/// The model's only output for these feeds, at level disabled and at all levels alike.
std::vector<float> answer(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs) {
  const auto plain = run(*open(text, {.level = passes::Level::Disabled}, opset), inputs);
  const auto optimized = run(*open(text, {}, opset), inputs);
  check_same(optimized, plain);
  return tensor::to_float_vector(plain.at(0).tensor());
}

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("a 0 in a reshape copies the dim, in the attribute and in the input") {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto shape = [&](std::string_view text, std::int64_t opset) {
    return run(*open(text, {}, opset), {x}).at(0).tensor().shape();
  };
  CHECK(shape("(float[2,3] x) => (y) { y = Reshape <shape = [0, 1, -1]> (x) }", 1) == Shape{2, 1, 3});
  CHECK(shape("(float[2,3] x) => (y) <int64[3] s = {0, -1, 1}> { y = Reshape(x, s) }", 5) == Shape{2, 3, 1});
  CHECK(shape("(float[N,3] x) => (y) <int64[3] s = {0, 1, -1}> { y = Reshape(x, s) }", 14) == Shape{2, 1, 3});
}

TEST_CASE("attributes of version 1 that mean nothing any more are passed over") {
  const Tensor x = floats({1, 2, 1, 2}, {-1, 2, 3, -4});
  CHECK(answer("(float[1,2,1,2] x) => (y) { y = Relu <consumed_inputs = [0]> (x) }", 1, {x}) == Floats{0, 2, 3, 0});
  CHECK(answer("(float[1,2,1,2] x, float[1,2,1,2] z) => (y) { y = Add <consumed_inputs = [0, 0]> (x, z) }", 1,
               {x, x}) == Floats{-2, 4, 6, -8});
  CHECK(answer("(float[1,2,1,2] x) => (y) <float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {0, 0}, float[2] v = "
               "{1, 1}> { y = BatchNormalization <consumed_inputs = [0, 0, 0, 1, 1], is_test = 1, epsilon = 0.0> "
               "(x, s, b, m, v) }",
               1, {x}) == Floats{-1, 2, 7, -7});
}

TEST_CASE("an axis says where the second operand is put") {
  const Tensor x = floats({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), b = floats({3}, {10, 20, 30});
  const Floats expected{10, 11, 22, 23, 34, 35, 16, 17, 28, 29, 40, 41};
  for (const std::int64_t opset : {1, 6})
    CHECK(answer("(float[2,3,2] x, float[3] b) => (y) { y = Add <broadcast = 1, axis = 1> (x, b) }", opset, {x, b}) ==
          expected);
  CHECK(answer("(float[2,3,2] x) => (y) <float[3] b = {10, 20, 30}> { y = Add <broadcast = 1, axis = -2> (x, b) }", 6,
               {x}) == expected);
  // Without the attribute, the last dims are aligned.
  CHECK(answer("(float[2,3,2] x) => (y) <float[2] b = {10, 20}> { y = Mul <broadcast = 1> (x, b) }", 6, {x}) ==
        Floats{0, 20, 20, 60, 40, 100, 60, 140, 80, 180, 100, 220});
}

TEST_CASE("BatchNormalization lists outputs of training, and is_test says that it does not train") {
  const Tensor x = floats({1, 2, 1, 2}, {-1, 2, 3, -4});
  const std::string head =
      "(float[1,2,1,2] x) => (y) <float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {0, 0}, float[2] v = {1, 1}> "
      "{ t, om, ov, sm, sv = BatchNormalization <epsilon = 0.0";
  const std::string tail = "> (x, s, b, m, v)  y = Neg(t) }";
  CHECK(answer(head + ", is_test = 1" + tail, 6, {x}) == Floats{1, -2, -7, 7});
}

TEST_CASE("BatchNormalization lists its outputs without is_test, and those that nobody reads change nothing") {
  const Tensor x = floats({1, 2, 1, 2}, {-1, 2, 3, -4});
  const std::string weights =
      "<float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {0, 0}, float[2] v = {1, 1}> { y";
  const auto normalized = [&](std::string_view rest, std::int64_t opset) {
    return answer(cat("(float[1,2,1,2] x) => (y) ", weights, rest), opset, {x});
  };
  CHECK(normalized(" = BatchNormalization <epsilon = 0.0, spatial = 1, momentum = 0.1> (x, s, b, m, v) }", 7) ==
        Floats{-1, 2, 7, -7});
  CHECK(normalized(", \"\", \"\" = BatchNormalization <epsilon = 0.0> (x, s, b, m, v) }", 14) == Floats{-1, 2, 7, -7});
  // Training: by the mean and variance of what is fed, which are 0.5, 2.25 and -0.5, 12.25.
  const Floats trained =
      normalized(", om, ov = BatchNormalization <epsilon = 0.0, training_mode = 1> (x, s, b, m, v) }", 14);
  REQUIRE(trained.size() == 4);
  for (const std::size_t i : {0, 1, 2, 3}) CHECK(trained[i] == doctest::Approx(Floats{-1, 1, 3, -1}[i]));
}

TEST_CASE("Dropout with its mask and is_test passes on what it gets") {
  const Tensor x = floats({3}, {1, 2, 3});
  CHECK(answer("(float[3] x) => (y) { y, m = Dropout <is_test = 1, ratio = 0.5> (x) }", 6, {x}) == Floats{1, 2, 3});
  for (const std::int64_t opset : {7, 10})
    CHECK(answer("(float[3] x) => (y) { y, m = Dropout <ratio = 0.5> (x) }", opset, {x}) == Floats{1, 2, 3});
}

TEST_CASE("optional outputs and inputs have empty names") {
  const Tensor x = floats({2, 2}, {3, 1, 2, 4});
  CHECK(answer("(float[2,2] x) => (y) { y, \"\" = MaxPool <kernel_shape = [1]> (u)  u = Unsqueeze <axes = [0]> (x) }",
               8, {x}) == Floats{3, 1, 2, 4});
  CHECK(answer("(float[2,2] x) => (y) <int64[1] k = {1}> { \"\", i = TopK(x, k)  y = Cast <to = 1> (i) }", 11, {x}) ==
        Floats{0, 1});
  CHECK(answer("(float[2,2] x) => (y) <float h = {2}> { y = Clip(x, \"\", h) }", 11, {x}) == Floats{2, 1, 2, 2});
  CHECK(answer("(float[2,2] x) => (y) { \"\", y = Split <axis = 0> (x) }", 11, {x}) == Floats{2, 4});
  CHECK(answer("(float[2,2] x) => (y) { \"\", i, \"\", c = Unique <sorted = 1> (x)  y = Cast <to = 1> (i) }", 11,
               {x}) == Floats{1, 2, 0, 3});
  CHECK(answer("(float[2,2] x) => (y) { \"\", s, z = DynamicQuantizeLinear(x)  y = Cast <to = 1> (z) }", 11, {x}) ==
        Floats{0});
  CHECK(answer("(float[2,2] x) => (y) <float h = {2}> { y = Clip(x, h, \"\") }", 11, {x}) == Floats{3, 2, 2, 4});
}

TEST_CASE("nodes come in any order and share names") {
  const Tensor x = floats({2}, {1, 2});
  CHECK(answer("(float[2] x) => (y) { y = Neg(b)  b = Exp(a)  a = Sub(x, x) }", 9, {x}) == Floats{-1, -1});
  graph::Model model = graph::parse_model("(float[2] x) => (y) { a = Neg(x)  b = Abs(a)  y = Add(a, b) }", 9);
  for (graph::NodeId id : {0, 1, 2}) model.graph->node(id).name = "node";
  const auto session = Session::create(engine(), source_of(onnx::write_model_bytes(model)), {});
  CHECK(tensor::to_float_vector(run(*session, {x}).at(0).tensor()) == Floats{0, 0});
}

TEST_CASE("a node that waits for itself is refused by name") {
  const Error error = error_of([] { open("(float[2] x) => (y) { a = Add(x, b)  b = Neg(a)  y = Abs(b) }", {}, 9); });
  CHECK(error.code() == ErrorCode::InvalidModel);
  CHECK(has(error.message(), "cycle"));
}

TEST_CASE("inputs and weights are outputs, and some nobody reads") {
  const Tensor x = floats({2}, {1, 2});
  const std::string_view text =
      "(float[2] x, float[3] unread) => (x, w, x2) <float[2] w = {3, 4}, float[9] idle> { x2 = Identity(x) }";
  for (const auto level : {passes::Level::Disabled, passes::Level::All}) {
    const auto outputs = run(*open(text, {.level = level}, 9), {x, floats({3}, {0, 0, 0})});
    REQUIRE(outputs.size() == 3);
    CHECK(tensor::to_float_vector(outputs[0].tensor()) == Floats{1, 2});
    CHECK(tensor::to_float_vector(outputs[1].tensor()) == Floats{3, 4});
    CHECK(tensor::to_float_vector(outputs[2].tensor()) == Floats{1, 2});
  }
}

TEST_CASE("what became inputs were attributes") {
  const Tensor x = floats({2, 3}, {3, 1, 2, -4, 0, 5});
  const auto y = [&](std::string_view node, std::int64_t opset) {
    return answer(cat("(float[2,3] x) => (y) { ", node, " }"), opset, {x});
  };
  CHECK(y("y = Clip <max = 2.0, min = -1.0> (x)", 6) == Floats{2, 1, 2, -1, 0, 2});
  CHECK(y("y = Slice <axes = [1], starts = [-2], ends = [9223372036854775807]> (x)", 1) == Floats{1, 2, 0, 5});
  CHECK(y("y, i = TopK <k = 1> (x)", 1) == Floats{3, 5});
  CHECK(y("a, y = Split <axis = 1, split = [1, 2]> (x)", 2) == Floats{1, 2, 0, 5});
  CHECK(y("y = Pad <paddings = [0, 0, 0, 1], value = 9.0> (x)", 1) == Floats{3, 1, 2, 9, -4, 0, 5, 9});
  CHECK(y("y = ReduceSum <axes = [1], keepdims = 0> (x)", 1) == Floats{6, 1});
  CHECK(y("i = Cast <to = \"INT32\"> (x)  y = Cast <to = \"FLOAT\"> (i)", 1) == Floats{3, 1, 2, -4, 0, 5});
  CHECK(y("u = Unsqueeze <axes = [0]> (x)  y = Squeeze <axes = [0]> (u)", 1) == Floats{3, 1, 2, -4, 0, 5});
  // All dims from the axis on are one: before version 13 of Softmax and its kin.
  CHECK(y("y = Hardmax <axis = 0> (x)", 1) == Floats{0, 0, 0, 0, 0, 1});
  CHECK(y("y = Concat(x, x)", 1) == Floats{3, 1, 2, 3, 1, 2, -4, 0, 5, -4, 0, 5});
}

TEST_CASE("Gemm says that its third operand may be spread") {
  const Tensor x = floats({1, 2}, {1, 2});
  CHECK(answer("(float[1,2] x) => (y) <float[2,2] w = {1, 2, 3, 4}, float[2] c = {10, 20}> "
               "{ y = Gemm <broadcast = 1, transB = 1> (x, w, c) }",
               6, {x}) == Floats{15, 31});
}

TEST_CASE("numbers of a dictionary may be declared as tensors of one element") {
  const auto session = open(
      "(map(string, float[1]) x) => (y) { y = ai.onnx.ml.DictVectorizer <string_vocabulary = [\"b\", \"a\"]> (x) }");
  const auto row = [](Value a, Value b) {
    return Value(tensor::Map{Tensor::of<std::string>({2}, {"a", "b"}), {std::move(a), std::move(b)}});
  };
  const Floats expected{2, 1};
  CHECK(tensor::to_float_vector(run(*session, {row(floats({}, {1}), floats({}, {2}))}).at(0).tensor()) == expected);
  CHECK(tensor::to_float_vector(run(*session, {row(floats({1}, {1}), floats({1}, {2}))}).at(0).tensor()) == expected);
  const Error error = error_of([&] { run(*session, {row(floats({2}, {1, 1}), floats({1}, {2}))}); });
  CHECK(error.code() == ErrorCode::ShapeMismatch);
}

TEST_CASE("weights come as Constant nodes") {
  const Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  for (const std::int64_t opset : {1, 9, 13}) {
    CHECK(answer("(float[1,1,2,2] x) => (y) { w = Constant <value = float[1,1,2,2] {1, 10, 100, 1000}> () "
                 "b = Constant <value = float[1] {0.5}> ()  y = Conv <kernel_shape = [2, 2]> (x, w, b) }",
                 opset, {x}) == Floats{4321.5});
  }
}

TEST_CASE("Upsample in its three versions") {
  const Tensor x = floats({1, 1, 1, 2}, {1, 2});
  const Floats expected{1, 1, 2, 2, 1, 1, 2, 2};
  CHECK(
      answer(
          "(float[1,1,1,2] x) => (y) { y = Upsample <height_scale = 2.0, width_scale = 2.0, mode = \"nearest\"> (x) }",
          1, {x}) == expected);
  CHECK(answer("(float[1,1,1,2] x) => (y) { y = Upsample <scales = [1.0, 1.0, 2.0, 2.0], mode = \"nearest\"> (x) }", 7,
               {x}) == expected);
  CHECK(answer("(float[1,1,1,2] x) => (y) <float[4] s = {1, 1, 2, 2}> { y = Upsample(x, s) }", 9, {x}) == expected);
}

TEST_CASE("Scatter is ScatterElements") {
  const Tensor x = floats({3}, {1, 2, 3});
  CHECK(answer("(float[3] x) => (y) <int64[2] i = {2, 0}, float[2] u = {7, 8}> { y = Scatter <axis = 0> (x, i, u) }", 9,
               {x}) == Floats{8, 2, 7});
}

TEST_CASE("initializers that are listed as inputs are constants up to version 3 of the format, defaults after it") {
  const std::string_view text = "(float[2] x, float[2] w = {10, 20}) => (y) { y = Add(x, w) }";
  const Tensor x = floats({2}, {1, 2});
  std::vector<std::byte> bytes = model_bytes(text, 8);
  REQUIRE(bytes[0] == std::byte{8});  // the version's field comes first
  bytes[1] = std::byte{3};
  const auto old = Session::create(engine(), source_of(bytes), {});
  CHECK(old->feeds().size() == 1);
  CHECK(tensor::to_float_vector(run(*old, {x}).at(0).tensor()) == Floats{11, 22});
  const auto newer = open(text, {}, 8);
  CHECK(newer->input_count() == 1);
  REQUIRE(newer->feeds().size() == 2);
  CHECK(newer->feeds()[1].overridable);
  CHECK(tensor::to_float_vector(run(*newer, {x, Value{}}).at(0).tensor()) == Floats{11, 22});
  CHECK(tensor::to_float_vector(run(*newer, {x, x}).at(0).tensor()) == Floats{2, 4});
}

TEST_CASE("initializers that are listed nowhere, values without types, outputs without shapes") {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  CHECK(answer("(float[N,M] x) => (y) <float[2,1] w = {1, 1}> { t = MatMul(x, w)  s = Shape(t)  u = Reshape(t, s)  "
               "y = Neg(u) }",
               9, {x}) == Floats{-3, -7});
}

TEST_CASE("names with spaces, slashes, colons and other letters") {
  graph::Model model = graph::parse_model("(float[2] x) => (y) <float[2] w = {1, 2}> { t = Add(x, w)  y = Neg(t) }", 9);
  const std::pair<const char*, const char*> names[] = {
      {"x", "in put/0:0"}, {"w", "model.w eight/\xc3\xa9"}, {"t", " "}, {"y", "out/put \"0\""}};
  for (const auto& [from, to] : names) model.graph->value(model.graph->find_value(from)).name = to;
  model.graph->node(0).name = "/a node/with space";
  const auto session = Session::create(engine(), source_of(onnx::write_model_bytes(model)), {});
  CHECK(session->feeds()[0].name == "in put/0:0");
  CHECK(session->outputs()[0].name == "out/put \"0\"");
  CHECK(tensor::to_float_vector(run(*session, {floats({2}, {1, 2})}).at(0).tensor()) == Floats{-2, -4});
}
