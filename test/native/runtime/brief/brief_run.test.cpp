// Runs that must not hold up their thread: what they enter, and when they end.

#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;
using Clock = std::chrono::steady_clock;

namespace {

Clock::time_point soon() { return Clock::now() + std::chrono::seconds(60); }

bool is_brief(const Planned& p, const std::vector<Value>& inputs, Clock::time_point until = soon()) {
  try {
    const auto results = p.run(inputs, {.brief_until = until});
    check_same(results, p.run(inputs), 0);
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::Aborted);
    return false;
  }
}

/// Runs until a brief run succeeds: each other run may have taken long, on a machine that is busy.
bool becomes_brief(const Planned& p, const std::vector<Value>& inputs) {
  for (int i = 0; i < 100; ++i) {
    (void)p.run(inputs);
    if (is_brief(p, inputs)) return true;
  }
  return false;
}

bool stays_long(const Planned& p, const std::vector<Value>& inputs) {
  for (int i = 0; i < 3; ++i) {
    (void)p.run(inputs);
    if (is_brief(p, inputs)) return false;
  }
  return true;
}

std::vector<Value> choice(bool c, std::int64_t n) { return {Tensor::scalar(c), noise(DType::Float32, {n}, 1)}; }

std::vector<Value> rounds(std::int64_t n) { return {Tensor::scalar(n), noise(DType::Float32, {1}, 1)}; }

/// y = exp of x and n copies of it.
constexpr const char* kGrowing =
    "(int64 n, float[1] x) => (y) <bool go = {1}> { v = Loop<body = b (int64 i, bool c, float[K] a) => (c, d) "
    "{ d = Concat<axis = 0>(a, x) }>(n, go, x)  y = Exp(v) }";

}  // namespace

TEST_CASE("a brief run enters a branch only where that ran before with these shapes") {
  const Planned p(
      "(bool c, float[N] x) => (y) { y = If<then_branch = t () => (u) { u = Neg(x) }, else_branch = e () => (v) "
      "{ w = Exp(x)  v = Log(w) }>(c) }");
  CHECK_FALSE(is_brief(p, choice(true, 3)));
  CHECK(becomes_brief(p, choice(true, 3)));
  CHECK_FALSE(is_brief(p, choice(false, 3)));
  CHECK_FALSE(is_brief(p, choice(true, 4)));
  CHECK(becomes_brief(p, choice(false, 3)));
  CHECK(is_brief(p, choice(true, 3)));
}

TEST_CASE("a brief run does not enter a body that takes longer than it has left") {
  const Planned p(
      "(int64 n, bool c, float[64,64] x) => (y) <bool go = {1}> { y = If<then_branch = t () => (u) { u = Loop<body = b "
      "(int64 i, bool d, float[64,64] a) => (d, e) { e = MatMul(a, x) }>(n, go, x) }, else_branch = e () => (v) "
      "{ v = Neg(x) }>(c) }");
  const std::vector<Value> inputs{Tensor::scalar<std::int64_t>(1000), Tensor::scalar(true),
                                  noise(DType::Float32, {64, 64}, 1)};
  (void)p.run(inputs);
  const auto begin = Clock::now();
  (void)p.run(inputs);
  const auto took = Clock::now() - begin;
  for (int i = 0; i < 20; ++i) (void)p.run(inputs);
  CHECK_FALSE(is_brief(p, inputs, Clock::now() + took / 100));
  CHECK(is_brief(p, inputs));
}

TEST_CASE("a brief run ends when its time is up") {
  const Planned p(
      "(int64 n, float[1] x) => (y) <bool go = {1}> { y = Loop<body = b (int64 i, bool c, float[1] a) => (c, d) "
      "{ d = Neg(a) }>(n, go, x) }");
  CHECK(becomes_brief(p, rounds(2)));
  CHECK(is_brief(p, rounds(3)));
  CHECK_FALSE(is_brief(p, rounds(std::int64_t{1} << 40), Clock::now() + std::chrono::milliseconds(20)));
  CHECK_FALSE(is_brief(p, rounds(2), Clock::now() - std::chrono::milliseconds(20)));
  CHECK(is_brief(p, rounds(2)));
}

TEST_CASE("steps after control flow are entered with the sizes they ran with") {
  const Planned p(kGrowing);
  CHECK(becomes_brief(p, rounds(3)));
  CHECK_FALSE(is_brief(p, rounds(2)));
  CHECK(becomes_brief(p, rounds(2)));
  CHECK(is_brief(p, rounds(3)));
}

TEST_CASE("a brief run leaves steps alone whose size data decides") {
  const Planned by_contents(
      "(bool c, float[N] x, int64[1] s) => (y) { u = If<then_branch = t () => (a) { a = Neg(x) }, else_branch = e () "
      "=> (b) { b = Concat<axis = 0>(x, x) }>(c)  y = Expand(u, s) }");
  CHECK(stays_long(by_contents,
                   {Tensor::scalar(true), noise(DType::Float32, {1}, 1), Tensor::of<std::int64_t>({1}, {4})}));
  const Planned in_branch(
      "(bool c, float[N] x) => (y) { y = If<then_branch = t () => (a) { a = NonZero(x) }, else_branch = e () => (b) "
      "{ d = Ceil(x)  b = NonZero(d) }>(c) }");
  CHECK(stays_long(in_branch, choice(true, 3)));
}

TEST_CASE("plans know which of their steps are uncertain") {
  const Planned plain("(float[N] x) => (y) { y = Exp(x) }");
  CHECK_FALSE(plain.shapes({noise(DType::Float32, {3}, 1)})->control_flow);
  CHECK_FALSE(plain.shapes({noise(DType::Float32, {3}, 1)})->data_decides);
  CHECK(plain.shapes({noise(DType::Float32, {3}, 1)})->short_steps == nullptr);
  const Planned growing(kGrowing);
  const auto shapes = growing.shapes(rounds(1));
  CHECK(shapes->control_flow);
  CHECK_FALSE(shapes->data_decides);
  CHECK(shapes->any_size == std::vector<bool>{false, true});
  const Planned indices("(float[N] x) => (z) { y = NonZero(x)  z = Neg(y) }");
  CHECK(indices.shapes({noise(DType::Float32, {3}, 1)})->data_decides);
}

TEST_CASE("brief runs that were given up make others wait, longer each time") {
  runtime::RunHistory history;
  CHECK(history.mean_us() < 0);
  history.ended(8, false);
  CHECK(history.mean_us() == 8);
  history.ended(4, true);
  CHECK(history.mean_us() == 7);
  for (const int others : {1, 2, 4, 8, 16, 32, 64, 64}) {
    CHECK(history.worth_a_try());
    history.given_up();
    for (int i = 0; i < others; ++i) {
      CHECK_FALSE(history.worth_a_try());
      history.ended(1, false);
    }
  }
  history.ended(1, true);
  history.given_up();
  history.ended(1, false);
  CHECK(history.worth_a_try());
}

TEST_CASE("short steps are remembered until a key takes their place") {
  runtime::ShortSteps steps(3);
  CHECK_FALSE(steps.holds(1, 5));
  steps.add(1, 5);
  steps.add(1, 6);
  CHECK(steps.holds(1, 5));
  CHECK_FALSE(steps.holds(0, 5));
  CHECK_FALSE(steps.holds(2, 5));
  steps.remove(1, 9);
  CHECK(steps.holds(1, 5));
  steps.add(1, 9);
  CHECK_FALSE(steps.holds(1, 5));
  steps.remove(1, 9);
  CHECK_FALSE(steps.holds(1, 9));
  CHECK(steps.holds(1, 6));
}
