// Runs for callers that must not wait.

#include <limits>

#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr const char* kChoice =
    "(bool c, float[N] x) => (a, y) { a = Neg(x)  y = If<then_branch = t () => (u) { u = Exp(x) }, else_branch = e () "
    "=> (v) { w = Exp(x)  v = Log(w) }>(c) }";
constexpr std::chrono::microseconds kMinute{60'000'000};
const std::vector<std::size_t> kBoth{0, 1};

std::vector<Value> choice(bool c) { return {Tensor::scalar(c), Tensor::of<float>({2}, {1, 2})}; }

/// Outputs of a brief run; none where it was given up.
std::vector<Value> briefly(Session& session, const std::vector<Value>& inputs, const std::vector<Value>& targets = {}) {
  return prepare(session, inputs, kBoth, targets).execute_briefly(kMinute).value_or(std::vector<Value>());
}

}  // namespace

TEST_CASE("a brief run gives what another gives, or nothing") {
  const auto s = open(kChoice);
  CHECK(briefly(*s, choice(true)).empty());
  const auto expected = run(*s, choice(true));
  check_same(briefly(*s, choice(true)), expected, 0);
  CHECK(briefly(*s, choice(false)).empty());
  check_same(briefly(*s, choice(true)), expected, 0);
  const auto other = run(*s, choice(false));
  check_same(briefly(*s, choice(false)), other, 0);
}

TEST_CASE("a brief run that is given up leaves preallocated outputs as they were") {
  const auto s = open(kChoice);
  run(*s, choice(true));
  const Tensor a = Tensor::of<float>({2}, {7, 7}), y = Tensor::of<float>({2}, {7, 7});
  CHECK(briefly(*s, choice(false), {a, y}).empty());
  CHECK(tensor::to_float_vector(a) == std::vector<float>{7, 7});
  CHECK(tensor::to_float_vector(y) == std::vector<float>{7, 7});
  const auto results = briefly(*s, choice(true), {a, y});
  REQUIRE(results.size() == 2);
  CHECK(results[0].tensor().raw() == a.raw());
  CHECK(tensor::to_float_vector(a) == std::vector<float>{-1, -2});
  CHECK(results[1].tensor().raw() == y.raw());
}

TEST_CASE("a brief run may write over what it reads") {
  const auto s = open(kChoice);
  run(*s, choice(true));
  const std::vector<Value> inputs = choice(false);
  const Tensor x = inputs[1].tensor();
  CHECK(briefly(*s, inputs, {x}).empty());
  CHECK(tensor::to_float_vector(x) == std::vector<float>{1, 2});
  const std::vector<Value> known = choice(true);
  const auto results = briefly(*s, known, {known[1]});
  REQUIRE(results.size() == 2);
  CHECK(tensor::to_float_vector(known[1].tensor()) == std::vector<float>{-1, -2});
  check_same({results[1]}, {run(*s, choice(true))[1]}, 0);
}

TEST_CASE("what is traced is run once") {
  const TemporaryFolder folder;
  const auto s = open(kChoice, {.profile_prefix = folder / "trace"});
  run(*s, choice(true));
  s->start_profiling();
  CHECK(briefly(*s, choice(true)).empty());
  run(*s, choice(true));
  const std::string trace = s->end_profiling().json;
  const std::size_t first = trace.find("\"op_name\":\"If\"");
  REQUIRE(first != std::string::npos);
  CHECK(trace.find("\"op_name\":\"If\"", first + 1) == std::string::npos);
}

TEST_CASE("how long a run takes is not guessed after brief ones that were given up") {
  const auto s = open(kChoice);
  run(*s, choice(true));
  REQUIRE(expected_us(*s, choice(false)));
  CHECK(*expected_us(*s, choice(false)) < std::numeric_limits<double>::infinity());
  CHECK(briefly(*s, choice(false)).empty());
  CHECK(expected_us(*s, choice(false)) == std::numeric_limits<double>::infinity());
  run(*s, choice(false));
  CHECK(*expected_us(*s, choice(false)) < std::numeric_limits<double>::infinity());
}

TEST_CASE("a brief run of a model without control flow is like any other") {
  const auto s = open("(float[N] x) => (y, z) { y = Neg(x)  z = Exp(x) }");
  const std::vector<Value> inputs{Tensor::of<float>({2}, {1, 2})};
  CHECK(briefly(*s, inputs).empty());  // nothing is known of it yet
  const auto expected = run(*s, inputs);
  const auto results = prepare(*s, inputs, kBoth).execute_briefly(std::chrono::microseconds(0));
  REQUIRE(results);
  check_same(*results, expected, 0);
}
