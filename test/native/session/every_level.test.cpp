// What has to hold at every level of optimization.

#include "onnx/reader.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr passes::Level kLevels[] = {passes::Level::Disabled, passes::Level::Basic, passes::Level::Extended,
                                     passes::Level::All};

void check_at_every_level(std::string_view text, const std::vector<Value>& inputs, const std::vector<Value>& expected) {
  for (const passes::Level level : kLevels) {
    CAPTURE(static_cast<int>(level));
    check_same(run(*open(text, {.level = level}), inputs), expected);
  }
}

/// What exporters make of atan2(y, x).
std::string arc_tangent(std::string_view zero, std::string_view pi) {
  return cat("q = Div(y, x)  a = Atan(q)  above = Greater(y, ", zero, ")  up = Add(a, ", pi, ")  down = Sub(a, ", pi,
             ")  half = Where(above, up, down)  left = Less(x, ", zero, ")  angle = Where(left, half, a)");
}

}  // namespace

TEST_CASE("a branch that never runs may be wrong") {
  constexpr std::string_view text =
      "(float[2,3] x, int64[1] one) => (y) <int64 i = {1}, int64 n = {1}, int64[1] ax = {1}> { s = Shape(x)  "
      "d = Gather(s, i)  c = Equal(d, n)  y = If<then_branch = t () => (u) { u = Squeeze(x, ax) }, "
      "else_branch = e () => (v) { v = Identity(x) }>(c) }";
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  check_at_every_level(text, {x, Tensor::of<std::int64_t>({1}, {1})}, {x});
  // Where the branch is chosen by what is fed, the fault is told when it is taken.
  constexpr std::string_view fed =
      "(float[2,3] x, bool c) => (y) <int64[1] ax = {1}> { y = If<then_branch = t () => (u) { [\"wrong\"] u = "
      "Squeeze(x, ax) }, else_branch = e () => (v) { v = Identity(x) }>(c) }";
  check_at_every_level(fed, {x, Tensor::scalar(false)}, {x});
  for (const passes::Level level : kLevels) {
    CAPTURE(static_cast<int>(level));
    try {
      (void)run(*open(fed, {.level = level}), {x, Tensor::scalar(true)});
      FAIL("it ran");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::ShapeMismatch);
      CHECK(error.context().node == "wrong");
    }
  }
}

TEST_CASE("caches that hold nothing are joined with what comes") {
  constexpr std::string_view text =
      "(float[batch,4,past,64] k, float[1,4,sequence,64] n) => (y, s) { y = Concat<axis = 2>(k, n)  s = Shape(y) }";
  const Tensor n = noise(DType::Float32, {1, 4, 5, 64}, 1);
  check_at_every_level(text, {Tensor::make(DType::Float32, {0, 4, 0, 64}), n},
                       {n, Tensor::of<std::int64_t>({4}, {1, 4, 5, 64})});
  const auto session = open(text);
  for (const std::int64_t past : {0, 2, 7}) {
    const auto results = run(*session, {Tensor::make(DType::Float32, {past > 0 ? 1 : 0, 4, past, 64}), n});
    CHECK(results[0].tensor().shape() == Shape{1, 4, past + 5, 64});
  }
}

TEST_CASE("a Loop that never runs keeps its body's dims, in a model that was written too") {
  constexpr std::string_view text =
      "(int64 n, float[k] v) => (s) { o, s = Loop<body = b (int64 i, bool c, float[2] w) => (bool co, float[2] wo, "
      "float[2] sc) { co = Identity(c)  wo = Add(w, w)  sc = Identity(wo) }>(n, \"\", v) }";
  const Tensor none = Tensor::make(DType::Float32, {0, 2});
  const std::vector<Value> inputs{Tensor::scalar<std::int64_t>(0), Tensor::of<float>({2}, {1, 2})};
  check_at_every_level(text, inputs, {none});
  for (const passes::Level level : {passes::Level::Disabled, passes::Level::Basic, passes::Level::Extended}) {
    CAPTURE(static_cast<int>(level));
    const TemporaryFolder folder;
    const std::string path = folder / "written.onnx";
    open(text, {.level = level, .optimized_model_path = path});
    const graph::Model model = onnx::read_model_file(path);
    const auto body = graph::subgraphs(model.graph->node(0)).at(0);
    for (const std::size_t o : {1, 2}) {
      const auto& shape = body->value(body->outputs()[o]).type.shape;
      REQUIRE(shape);
      CHECK(graph::to_string(*shape) == "[2]");
    }
  }
}

TEST_CASE("a Loop that never runs keeps dims that its body's declaration alone tells") {
  check_at_every_level(
      "(int64 n, float[k, 1] x) => (s) { o, s = Loop<body = b (int64 i, bool c, float[3, 1] w) => (bool co, float[3, "
      "1] "
      "wo, float[3, 1] sc) { co = Identity(c)  wo = Tanh(w)  f = Flatten(w)  r = Squeeze(f)  g = Greater(r, r)  y = "
      "Compress<axis = 0>(w, g)  sc = Identity(y) }>(n, \"\", x) }",
      {Tensor::scalar<std::int64_t>(0), Tensor::of<float>({3, 1}, {1, 2, 3})},
      {Tensor::make(DType::Float32, {0, 3, 1})});
}

TEST_CASE("arc tangents of two zeros are 0 where exporters wrote atan2") {
  const std::string constants = "float zero = {0}, float pi = {3.14159274}";
  const Tensor y = Tensor::of<float>({8}, {0, 0, 0, 1, 1, -1, -1, 2}),
               x = Tensor::of<float>({8}, {0, 1, -1, 0, -1, 1, -1, 2});
  const float pi = 3.14159274f;
  const Tensor expected = Tensor::of<float>({8}, {0, 0, -pi, pi / 2, 3 * pi / 4, -pi / 4, -3 * pi / 4, pi / 4});
  check_at_every_level(cat("(float[N] y, float[N] x) => (angle) <", constants, "> { ", arc_tangent("zero", "pi"), " }"),
                       {y, x}, {expected});
  // Constants that nodes make, as exporters write them; in a body.
  check_at_every_level(
      cat("(float[N] y, float[N] x, bool c) => (out) { out = If<then_branch = t () => (angle) { k = Constant<value_int "
          "= 0>()  zero = Cast<to = 1>(k)  pi = Constant<value_float = 3.14159274>()  ",
          arc_tangent("zero", "pi"), " }, else_branch = e () => (v) { v = Neg(x) }>(c) }"),
      {y, x, Tensor::scalar(true)}, {expected});
  // Another constant: no atan2, so 0 / 0 stays what it is.
  const auto other = run(*open(cat("(float[N] y, float[N] x) => (angle) <float zero = {0}, float pi = {3}> { ",
                                   arc_tangent("zero", "pi"), " }")),
                         {y, x});
  CHECK(std::isnan(other[0].tensor().data<float>()[0]));
}

TEST_CASE("the phase of a tone with silence around it is a number everywhere") {
  const std::string text =
      cat("(float[1,L] signal) => (angle) <int64 step = {4}, int64 length = {16}, int64 re = {0}, int64 im = {1}, "
          "float zero = {0}, float pi = {3.14159274}> { f = STFT(signal, step, \"\", length)  t = Transpose<perm = [0, "
          "2, 1, "
          "3]>(f)  x = Gather<axis = 3>(t, re)  y = Gather<axis = 3>(t, im)  ",
          arc_tangent("zero", "pi"), " }");
  const Tensor signal = Tensor::make(DType::Float32, {1, 128});
  float* const at = signal.mutable_data<float>();
  for (std::int64_t i = 0; i < 128; ++i)
    at[i] = i >= 32 && i < 96 ? static_cast<float>(std::sin(static_cast<double>(i) * 0.78539816339744831)) : 0.0f;
  for (const passes::Level level : kLevels) {
    CAPTURE(static_cast<int>(level));
    const std::vector<Value> angle = run(*open(text, {.level = level}), {signal});
    CHECK(std::ranges::all_of(angle[0].tensor().span<float>(), [](float a) { return std::isfinite(a); }));
  }
}
