#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;
using runtime::ShapePlan;

TEST_CASE("activations lie in the arena, inputs and outputs do not") {
  const Planned p("(float[N,8] x) => (y) { a = Exp(x)  b = Softmax(a)  c = Exp(b)  y = Softmax(c) }");
  const auto inputs = feeds(p.plan->graph(), {{"N", 16}});
  const auto shapes = p.shapes(inputs);
  CHECK(p.offset(*shapes, "x") == ShapePlan::kNowhere);
  CHECK(p.offset(*shapes, "y") == ShapePlan::kNowhere);
  for (const char* name : {"a", "b", "c"}) CHECK(p.offset(*shapes, name) != ShapePlan::kNowhere);
  CHECK(shapes->arena_bytes <= 2 * 16 * 8 * 4);
  CHECK(shapes->arena_bytes >= 16 * 8 * 4);
}

TEST_CASE("an output takes over the place of an input that ends") {
  const Planned p("(float[64] x) => (y) { a = Softmax(x)  b = Exp(a)  c = Neg(b)  y = Softmax(c) }");
  const auto shapes = p.shapes(feeds(p.plan->graph()));
  CHECK(p.offset(*shapes, "a") == p.offset(*shapes, "b"));
  CHECK(p.offset(*shapes, "b") == p.offset(*shapes, "c"));
  CHECK(shapes->arena_bytes == 256);
}

TEST_CASE("an input that is still read is not written over") {
  const Planned p("(float[64] x) => (y) { a = Softmax(x)  b = Exp(a)  y = Add(a, b) }");
  const auto shapes = p.shapes(feeds(p.plan->graph()));
  CHECK(p.offset(*shapes, "a") != p.offset(*shapes, "b"));
  check_plan("(float[64] x) => (y) { a = Softmax(x)  b = Exp(a)  y = Add(a, b) }");
  check_plan("(float[64] x) => (y) { a = Softmax(x)  b = Add(a, a)  c = Exp(b)  y = Mul(c, c) }");
}

TEST_CASE("views share the block of what they look at") {
  const char* text =
      "(float[N,8] x) => (y) <int64[2] s = {4, -1}, int64[1] u = {-1}> { a = Softmax(x)  b = Reshape(a, s)  "
      "c = Reshape(b, u)  d = Exp(a)  e = Reshape(d, u)  f = Add(c, e)  y = Softmax(f) }";
  const Planned p(text);
  const auto shapes = p.shapes(feeds(p.plan->graph(), {{"N", 8}}));
  CHECK(p.offset(*shapes, "b") == p.offset(*shapes, "a"));
  CHECK(p.offset(*shapes, "c") == p.offset(*shapes, "a"));
  CHECK(p.offset(*shapes, "d") != p.offset(*shapes, "a"));  // c reads it later
  check_plan(text, {{"N", 8}});
}

TEST_CASE("a block that a view carries out of the frame is no part of the arena") {
  const char* text = "(float[4,8] x) => (y) <int64[1] s = {-1}> { a = Exp(x)  b = Reshape(a, s)  y = Reshape(b, s) }";
  const Planned p(text);
  const auto shapes = p.shapes(feeds(p.plan->graph()));
  CHECK(p.offset(*shapes, "a") == ShapePlan::kNowhere);
  check_plan(text);
}

TEST_CASE("outputs share no memory with inputs, constants, other runs or the frame") {
  const Planned p(
      "(float[2] x) => (i, k, v, s) <float[2] c = {1, 2}, int64[1] n = {-1}> { i = Identity(x)  k = Identity(c)  "
      "e = Exp(x)  v = Reshape(e, n)  s = Shape(x) }");
  const std::vector<Value> inputs{Tensor::of<float>({2}, {5, 6})};
  runtime::Frame frame(true);
  for (int again = 0; again < 2; ++again) {
    const std::vector<Value> results = p.run(inputs, {.frame = &frame});
    CHECK(tensor::to_float_vector(results[0].tensor()) == std::vector<float>{5, 6});
    CHECK(tensor::to_float_vector(results[1].tensor()) == std::vector<float>{1, 2});
    CHECK(tensor::to_int64_vector(results[3].tensor()) == std::vector<std::int64_t>{2});
    for (const Value& result : results) {  // spoil them: the next run must not notice
      std::fill_n(static_cast<std::uint8_t*>(result.tensor().mutable_raw()), result.bytes(), std::uint8_t{0xff});
    }
  }
  CHECK(tensor::to_float_vector(inputs[0].tensor()) == std::vector<float>{5, 6});
}

TEST_CASE("steps that make only shapes are skipped") {
  const Planned p(
      "(float[N,M] x) => (y) <int64 zero = {0}, int64[1] axis = {0}, int64[1] rest = {-1}> { s = Shape(x)  "
      "g = Gather(s, zero)  u = Unsqueeze(g, axis)  c = Concat<axis = 0>(u, rest)  e = Exp(x)  y = Reshape(e, c) }");
  const auto shapes = p.shapes(feeds(p.plan->graph(), {{"N", 4}, {"M", 6}}));
  std::vector<std::string> run;
  for (std::size_t s = 0; s < p.plan->steps().size(); ++s) {
    if (!shapes->skip[s]) run.push_back(p.plan->graph().node(p.plan->steps()[s].node).op_type);
  }
  CHECK(run == std::vector<std::string>{"Exp", "Reshape"});
  REQUIRE(shapes->outputs.size() == 1);
  CHECK(graph::to_string(*shapes->outputs[0].shape) == "[4,6]");
}

TEST_CASE("each signature of shapes is planned once") {
  const Planned p("(float[N] x) => (y) { a = Exp(x)  y = Softmax(a) }");
  const auto four = p.shapes(feeds(p.plan->graph(), {{"N", 4}}));
  const auto five = p.shapes(feeds(p.plan->graph(), {{"N", 5}}));
  CHECK(four != five);
  CHECK(p.shapes(feeds(p.plan->graph(), {{"N", 4}})) == four);
  CHECK(p.shapes(feeds(p.plan->graph(), {{"N", 5}})) == five);
}

TEST_CASE("the cache of plans is bounded") {
  const Planned p("(float[N] x) => (y) { a = Exp(x)  y = Softmax(a) }");
  const std::weak_ptr<const ShapePlan> first = p.shapes(feeds(p.plan->graph(), {{"N", 1}}));
  for (std::int64_t n = 2; n < 200; ++n) (void)p.shapes(feeds(p.plan->graph(), {{"N", n}}));
  CHECK(first.expired());
}

TEST_CASE("shapes that change from run to run in one frame") {
  const Planned p(
      "(float[N,4] x, float[M,4] past) => (y, now) "
      "{ now = Concat<axis = 0>(past, x)  e = Exp(now)  t = Softmax(e)  y = MatMul(x, r)  "
      "r = Transpose(t) }");
  runtime::Frame frame(true);
  Value past = Tensor::of<float>({0, 4}, {});
  for (std::int64_t step = 1; step < 20; ++step) {
    const std::vector<Value> inputs{noise(DType::Float32, {1, 4}, static_cast<std::uint32_t>(step)), past};
    const std::vector<Value> results = p.run(inputs, {.frame = &frame});
    CHECK(results[1].tensor().dim(0) == step);
    CHECK(results[0].tensor().shape() == Shape{1, step});
    past = results[1];
  }
}

TEST_CASE("inputs that disagree on a symbol run as they are") {
  const Planned p("(float[N] x, float[N] y) => (z) { a = Exp(x)  b = Exp(y)  z = Concat<axis = 0>(a, b) }");
  const std::vector<Value> results = p.run({noise(DType::Float32, {2}, 1), noise(DType::Float32, {5}, 2)});
  CHECK(results[0].tensor().shape() == Shape{7});
}

TEST_CASE("values whose shape depends on data are allocated when made") {
  const char* text =
      "(float[N] x) => (y, z) { r = Relu(x)  n = NonZero(r)  t = Transpose(n)  g = Cast<to = 1>(t)  "
      "y = Neg(g)  e = Exp(x)  z = Softmax(e) }";
  const Planned p(text);
  const auto shapes = p.shapes(feeds(p.plan->graph(), {{"N", 9}}));
  CHECK(p.offset(*shapes, "n") == ShapePlan::kNowhere);
  CHECK(p.offset(*shapes, "e") != ShapePlan::kNowhere);
  check_plan(text, {{"N", 9}});
}

TEST_CASE("sequences may hold their inputs beyond the step") {
  check_plan(
      "(float[3] x, float[3] z) => (y) <int64 one = {1}> { a = Exp(x)  b = Neg(z)  s = SequenceConstruct(a, b)  "
      "c = Exp(b)  d = Softmax(c)  e = SequenceAt(s, one)  f = Mul(d, e)  y = Softmax(f) }");
}

TEST_CASE("an overridable initializer takes a feed, or its own value") {
  const Planned p("(float[2] x, float[2] w = {10, 20}) => (y) { y = Add(x, w) }");
  const Value x = Tensor::of<float>({2}, {1, 2}), w = Tensor::of<float>({2}, {5, 6});
  CHECK(tensor::to_float_vector(p.run({x, Value()})[0].tensor()) == std::vector<float>{11, 22});
  CHECK(tensor::to_float_vector(p.run({x, w})[0].tensor()) == std::vector<float>{6, 8});
  CHECK(tensor::to_float_vector(p.run({x, Value()})[0].tensor()) == std::vector<float>{11, 22});
}

TEST_CASE("weights that are packed give up their unpacked form") {
  const Planned p(
      "(float[N,2] x) => (y) <float[2,2] w = {1, 2, 3, 4}, float[2] b = {1, 1}> { t = MatMul(x, w)  y = Add(t, b) }");
  CHECK(p.constant_bytes() == 8);
  CHECK(p.plan->graph().value(p.id("w")).constant.empty());
  CHECK(tensor::to_float_vector(p.run({Tensor::of<float>({1, 2}, {1, 1})})[0].tensor()) == std::vector<float>{5, 7});
}

TEST_CASE("a weight with another reader stays") {
  const Planned p("(float[N,2] x) => (y, k) <float[2,2] w = {1, 2, 3, 4}> { y = MatMul(x, w)  k = Neg(w) }");
  CHECK(p.constant_bytes() == 16);
}

TEST_CASE("all operators without a kernel are listed at once") {
  graph::Model model = parse("(float[2] x) => (y) { [\"one\"] a = Exp(x)  [\"two\"] y = Sqrt(a) }");
  for (graph::NodeId id : {0, 1}) model.graph->node(id).op_type = id == 0 ? "NoSuch" : "NorThis";
  try {
    const Planned p(std::move(model), {});
    FAIL("it was planned");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::UnsupportedOperator);
    CHECK(error.context().details.size() == 2);
    CHECK(error.message().find("NoSuch") != std::string::npos);
    CHECK(error.message().find("NorThis") != std::string::npos);
    CHECK(error.context().node == "one");
  }
}
