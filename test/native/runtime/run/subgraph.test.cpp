// Bodies of control flow in a plan: captures, constants, frames of their own.

#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kBranches =
    "(bool c, float[N,2] x) => (y) <float[2,2] w = {1, 2, 3, 4}, float[2] b = {5, 6}> { k = Exp(x)  y = If<"
    "then_branch = t () => (u) { m = MatMul(k, w)  u = Add(m, b) }, else_branch = e () => (v) { v = Neg(k) }>(c) }";
constexpr const char* kLoop =
    "(int64 n, bool go, float[2] x) => (last, all) <float[2,2] w = {1, 0, 1, 1}> { last, all = Loop<body = step "
    "(int64 i, bool c, float[2] a) => (c, next, out) { next = MatMul(a, w)  out = Add(next, x) }>(n, go, x) }";
}  // namespace

TEST_CASE("If, Loop and Scan with captures run as the reference does") {
  check_plan(kBranches);
  check_plan(
      "(float[4,2] x, float[2] s) => (f, y) { f, y = Scan<num_scan_inputs = 1, body = b (float[2] a, float[2] e) "
      "=> (g, h) { g = Add(a, e)  h = Mul(g, s) }>(s, x) }");
  const Planned p(kLoop);
  const std::vector<Value> inputs{Tensor::scalar<std::int64_t>(5), Tensor::scalar(true), noise(DType::Float32, {2}, 3)};
  check_same(p.run(inputs), evaluate(*parse(kLoop).graph, inputs));
}

TEST_CASE("constants that a body captures are packed there and given up outside") {
  const Planned p(kBranches);
  CHECK(p.constant_bytes() == 0);
  CHECK(p.plan->graph().value(p.id("w")).constant.empty());
  const graph::Node& node = p.plan->graph().node(p.plan->steps().back().node);
  const auto body = node.attributes.get_graph("then_branch");
  CHECK(body->captures().size() == 1);  // k
  for (const graph::ValueInfo& value : body->values()) {
    if (value.type.is_tensor() && value.type.shape && value.type.shape->size() == 2 && value.producer == graph::kNoNode)
      CHECK_FALSE(value.has_constant());  // w: packed
  }
}

TEST_CASE("constants reach bodies of bodies") {
  const char* text =
      "(bool c, bool d, float[N,2] x) => (y) <float[2,2] w = {1, 2, 3, 4}> { y = If<then_branch = t () => (u) { "
      "u = If<then_branch = tt () => (p) { p = MatMul(x, w) }, else_branch = te () => (q) { q = Exp(x) }>(d) }, "
      "else_branch = e () => (v) { v = Neg(x) }>(c) }";
  check_plan(text);
  const Planned p(text);
  CHECK(p.constant_bytes() == 0);
  std::vector<Value> inputs{Tensor::scalar(true), Tensor::scalar(true), noise(DType::Float32, {3, 2}, 1)};
  check_same(p.run(inputs), evaluate(*parse(text).graph, inputs));
}

TEST_CASE("a captured initializer that can be fed stays a capture") {
  const char* text =
      "(bool c, float[2,2] x, float[2,2] w = {1, 2, 3, 4}) => (y) { y = If<then_branch = t () => (u) { "
      "u = MatMul(x, w) }, else_branch = e () => (v) { v = Neg(x) }>(c) }";
  const Planned p(text);
  const Value yes = Tensor::scalar(true), x = Tensor::of<float>({2, 2}, {1, 0, 0, 1});
  CHECK(tensor::to_float_vector(p.run({yes, x, Value()})[0].tensor()) == std::vector<float>{1, 2, 3, 4});
  CHECK(tensor::to_float_vector(p.run({yes, x, Tensor::of<float>({2, 2}, {5, 6, 7, 8})})[0].tensor()) ==
        std::vector<float>{5, 6, 7, 8});
}

TEST_CASE("a fault in a body names the node there") {
  const Planned p(
      "(bool c, float[4] x, int64[1] i) => (y) { [\"branch\"] y = If<then_branch = t () => (u) { "
      "[\"pick\"] u = Gather(x, i) }, else_branch = e () => (v) { v = Neg(x) }>(c) }");
  try {
    (void)p.run({Tensor::scalar(true), noise(DType::Float32, {4}, 1), Tensor::of<std::int64_t>({1}, {9})});
    FAIL("it ran");
  } catch (const Error& error) {
    CHECK(error.context().node == "pick");
    CHECK(error.context().op_type == "Gather");
  }
}

TEST_CASE("a long loop can be cancelled") {
  const Planned p(
      "(int64 n, bool go, float[2] x) => (y) { y = Loop<body = b (int64 i, bool c, float[2] a) => (c, d) "
      "{ d = Neg(a) }>(n, go, x) }");
  kernel::CancelToken token;
  token.cancel();
  CHECK_THROWS_AS(p.run({Tensor::scalar<std::int64_t>(1 << 30), Tensor::scalar(true), noise(DType::Float32, {2}, 1)},
                        {.cancel = &token}),
                  Error);
}

TEST_CASE("what a body hands out survives later iterations") {
  const char* text =
      "(int64 n, bool go, float[3] x) => (y, all) { y, all = Loop<body = b (int64 i, bool c, float[3] a) => "
      "(c, d, e) { f = Exp(a)  d = Softmax(f)  e = Neg(d) }>(n, go, x) }";
  const Planned p(text);
  const std::vector<Value> inputs{Tensor::scalar<std::int64_t>(6), Tensor::scalar(true), noise(DType::Float32, {3}, 2)};
  check_same(p.run(inputs), evaluate(*parse(text).graph, inputs));
}

TEST_CASE("a Loop whose body gives sequences to be stacked is the model's fault, also where it never runs") {
  const Planned p(
      "(int64 n, bool go, float[2] x) => (all) { all = Loop<body = b (int64 i, bool c) => (c, s) "
      "{ s = SequenceConstruct(x, x) }>(n, go) }");
  for (const std::int64_t trips : {0, 2}) {
    CAPTURE(trips);
    try {
      (void)p.run({Tensor::scalar(trips), Tensor::scalar(true), noise(DType::Float32, {2}, 1)});
      FAIL("it ran");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::InvalidModel);
    }
  }
}
