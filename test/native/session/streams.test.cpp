// Work on a device is done late: when the host needs what it gives, or when the run is over.

#include "session/session_test.h"

#include <algorithm>
#include <thread>

#include "runtime/plan/execution_plan.h"

using namespace infernode;
using namespace infernode::test;

namespace {

SessionOptions on_null(const std::string& ops = "", bool parallel = false) {
  SessionOptions options;
  options.providers = {{"null", ops.empty() ? provider::ProviderOptions{} : provider::ProviderOptions{{"ops", ops}}}};
  options.parallel = parallel;
  return options;
}

/// How often a run of the session waits for its device.
std::size_t waits(Session& session, const std::vector<Value>& inputs) {
  session.start_profiling();
  run(session, inputs);
  const std::string trace = session.end_profiling().json;
  std::size_t n = 0;
  for (std::size_t at = trace.find("device_wait"); at != std::string::npos; at = trace.find("device_wait", at + 1)) ++n;
  return n;
}

/// Host steps between those of the device, whose memory they would take over if it were free.
constexpr const char* kMixed =
    "(float[N] x) => (y, z) { a = Exp(x)  b = Neg(a)  c = Abs(a)  d = Exp(c)  e = Neg(d)  f = Abs(d)  g = Log(f)"
    "  h = Add(g, b)  y = Neg(h)  z = Add(e, g) }";

}  // namespace

TEST_CASE("a run waits once before each host step that needs it, and at its end") {
  const TemporaryFolder folder;
  const std::vector<Value> inputs{noise(DType::Float32, {5}, 1)};
  const auto open_on = [&](const char* text, const char* ops) {
    SessionOptions options = on_null(ops);
    options.profile_prefix = folder / "trace";
    return open(text, std::move(options));
  };
  CHECK(waits(*open_on("(float[N] x) => (y) { y = Neg(x) }", ""), inputs) == 1);
  CHECK(waits(*open_on("(float[N] x) => (y, z) { a = Neg(x)  b = Exp(a)  c = Abs(a)  y = Neg(b)  z = Neg(c) }", ""),
              inputs) == 1);
  CHECK(waits(*open_on("(float[N] x) => (y) { a = Neg(x)  b = Exp(a)  y = Neg(b) }", "Neg"), inputs) == 2);
  CHECK(waits(*open_on("(float[N] x) => (y) { a = Exp(x)  b = Neg(a)  y = Exp(b) }", "Neg"), inputs) == 1);
  CHECK(waits(*open_on("(float[N] x) => (y) { y = Exp(x) }", "Neg"), inputs) == 0);
}

TEST_CASE("late work reads and writes what it was given") {
  const auto plain = open(kMixed);
  for (const bool parallel : {false, true}) {
    for (const char* ops : {"", "Neg", "Exp", "Abs,Add", "Log,Neg"}) {
      const auto s = open(kMixed, on_null(ops, parallel));
      for (const std::int64_t n : {3, 1000, 3, 50'000}) {
        const std::vector<Value> inputs{noise(DType::Float32, {n}, static_cast<std::uint64_t>(n))};
        check_same(run(*s, inputs), run(*plain, inputs));
      }
    }
  }
}

TEST_CASE("late work may have sizes that only the data tells") {
  const char* text = "(float[N] x) => (y) { a = Neg(x)  i = NonZero(a)  j = Cast<to = 1>(i)  y = Neg(j) }";
  const std::vector<Value> inputs{Tensor::of<float>({4}, {0, 1, 2, 0})};
  for (const char* ops : {"", "Neg", "NonZero"})
    check_same(run(*open(text, on_null(ops)), inputs), run(*open(text), inputs));
}

TEST_CASE("outputs of a device are written where they were asked into") {
  const auto s = open("(float[N] x) => (y) { y = Neg(x) }", on_null());
  const Tensor target = Tensor::of<float>({2}, {0, 0});
  const auto results = prepare(*s, {Tensor::of<float>({2}, {1, 2})}, {0}, {target}).execute();
  CHECK(results[0].tensor().raw() == target.raw());
  CHECK(tensor::to_float_vector(target) == std::vector<float>{-1, -2});
}

TEST_CASE("what a device compiled is control flow only where nodes of it are") {
  const auto has_control_flow = [](const char* text) {
    bool found = false;
    open(text, on_null())->inspect([&](const runtime::ExecutionPlan& plan, const Session::Memory&) {
      found = std::ranges::any_of(plan.steps(), &runtime::Step::control_flow);
    });
    return found;
  };
  CHECK_FALSE(has_control_flow("(float[N] x) => (y) { a = Neg(x)  y = Exp(a) }"));
  CHECK(
      has_control_flow("(bool c, float[N] x) => (y) { a = Neg(x)  y = If<then_branch = t () => (u) { u = Exp(a) }, "
                       "else_branch = e () => (v) { v = Log(a) }>(c) }"));
}

TEST_CASE("a run that was begun is awaited by another thread, or by nobody") {
  const auto s = open("(float[N] x) => (y) { a = Neg(x)  y = Exp(a) }", on_null());
  const std::vector<Value> inputs{noise(DType::Float32, {1000}, 3)};
  const auto expected = run(*s, inputs);
  for (int i = 0; i < 40; ++i) run(*s, inputs);  // until it is known that the steps take no time
  for (const bool awaited : {true, false, true}) {
    session::PreparedRun begun = prepare(*s, inputs, {0});
    begun.begin();
    if (!awaited) continue;
    std::vector<Value> results;
    std::thread([&] { results = begun.execute(); }).join();
    check_same(results, expected);
    check_same(begun.execute(), expected);
  }
  check_same(run(*s, inputs), expected);
}

TEST_CASE("what fails late names its node, and the next run is none the worse") {
  const auto s = open("(float[N] x, int64[K] i) => (y) { a = Neg(x)  [\"pick\"] y = Gather(a, i) }", on_null());
  const Value x = Tensor::of<float>({2}, {1, 2});
  const Error error = error_of([&] { run(*s, {x, Tensor::of<std::int64_t>({1}, {9})}); });
  CHECK(error.context().op_type == "Gather");
  CHECK(error.context().node == "pick");
  const auto results = run(*s, {x, Tensor::of<std::int64_t>({1}, {1})});
  CHECK(tensor::to_float_vector(results[0].tensor()) == std::vector<float>{-2});
}

TEST_CASE("memory for copies counts in the run's limit") {
  SessionOptions options = on_null("Neg");
  options.memory_limit = 100'000;
  const auto s = open("(float[N] x) => (y) { a = Exp(x)  y = Neg(a) }", std::move(options));
  CHECK(run(*s, {noise(DType::Float32, {1000}, 1)}).size() == 1);
  CHECK(error_of([&] { run(*s, {noise(DType::Float32, {50'000}, 1)}); }).code() == ErrorCode::OutOfMemory);
}
