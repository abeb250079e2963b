// Feeds and outputs that lie where they are read and written: in memory of the caller, or on a device.

#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
const tensor::Device kHost{};
const tensor::Device kNull{"null", 0};
const TemporaryFolder traces;
SessionOptions on_null(std::string ops = "") {
  SessionOptions options;
  options.profile_prefix = traces / "trace";
  options.providers = {{"null", ops.empty() ? provider::ProviderOptions{} : provider::ProviderOptions{{"ops", ops}}}};
  return options;
}
/// Values for runs of a session by the names they have there.
struct Bound {
  explicit Bound(const std::shared_ptr<Session>& s) : session(s), feeds(s->feeds().size()) {}
  void input(std::string_view name, Value value) { feeds[index(session->feeds(), name)] = std::move(value); }
  void output(std::string_view name, Tensor target) {
    outputs.push_back({index(session->outputs(), name), target.device(), target});
  }
  void output(std::string_view name, tensor::Device device) {
    outputs.push_back({index(session->outputs(), name), device, {}});
  }
  /// All outputs where none is bound.
  std::vector<Value> run() const {
    session::PreparedRun prepared = session->prepare(feeds);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      prepared.want(outputs[i].index, outputs[i].device);
      prepared.write_into(i, outputs[i].target);
    }
    for (std::size_t i = 0; outputs.empty() && i < session->outputs().size(); ++i) prepared.want(i);
    return prepared.execute();
  }

  static std::size_t index(const std::vector<session::ValueMetadata>& values, std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(values, name, &session::ValueMetadata::name) - values.begin());
  }
  struct Output {
    std::size_t index;
    tensor::Device device;
    Tensor target;
  };
  std::shared_ptr<Session> session;
  std::vector<Value> feeds;
  std::vector<Output> outputs;
};
std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
/// Copies in each direction that a run made.
std::pair<std::size_t, std::size_t> copies(Session& session, const Bound& bound) {
  session.start_profiling();
  bound.run();
  const std::string trace = session.end_profiling().json;
  return {count(trace, "\"op_name\":\"CopyToDevice\""), count(trace, "\"op_name\":\"CopyToHost\"")};
}
}  // namespace

TEST_CASE("bound tensors on the host are read and written where they lie") {
  const auto s = open("(float[N] x) => (y, z) { y = Neg(x)  z = Exp(x) }");
  Bound bound(s);
  const Tensor x = Tensor::of<float>({2}, {1, 2}), y = Tensor::of<float>({2}, {0, 0});
  bound.input("x", x);
  bound.output("y", y);
  const auto results = bound.run();
  REQUIRE(results.size() == 1);
  CHECK(results[0].tensor().raw() == y.raw());
  CHECK(tensor::to_float_vector(y) == std::vector<float>{-1, -2});
  x.mutable_data<float>()[0] = 5;
  bound.run();
  CHECK(tensor::to_float_vector(y) == std::vector<float>{-5, -2});
}

TEST_CASE("with no output bound all come, on the host") {
  const auto s = open("(float[N] x) => (y, z) { y = Neg(x)  z = Exp(x) }", on_null());
  Bound bound(s);
  bound.input("x", Tensor::of<float>({2}, {1, 2}));
  const auto results = bound.run();
  REQUIRE(results.size() == 2);
  for (const Value& result : results) CHECK(result.tensor().device().is_host());
}

TEST_CASE("values that stay on the device are not copied") {
  const auto s = open("(float[N] x) => (y) { a = Neg(x)  y = Exp(a) }", on_null());
  const Tensor host = Tensor::of<float>({2}, {1, 2}), device = s->allocate(DType::Float32, {2}, kNull);
  s->copy(host, device);
  Bound bound(s);

  bound.input("x", host);
  CHECK(copies(*s, bound) == std::pair<std::size_t, std::size_t>{1, 1});
  bound.input("x", device);
  CHECK(copies(*s, bound) == std::pair<std::size_t, std::size_t>{0, 1});
  bound.output("y", kNull);
  CHECK(copies(*s, bound) == std::pair<std::size_t, std::size_t>{0, 0});

  const auto results = bound.run();
  CHECK(results[0].tensor().device() == kNull);
  const Tensor back = Tensor::make(DType::Float32, {2});
  s->copy(results[0].tensor(), back);
  check_same({back}, run(*open("(float[N] x) => (y) { a = Neg(x)  y = Exp(a) }"), {host}));

  Bound next(s);  // a result serves as input
  next.input("x", results[0]);
  next.output("y", kNull);
  CHECK(copies(*s, next) == std::pair<std::size_t, std::size_t>{0, 0});
}

TEST_CASE("a tensor bound on the device receives the output") {
  const auto s = open("(float[N] x) => (y) { y = Neg(x) }", on_null());
  const Tensor target = s->allocate(DType::Float32, {2}, kNull), back = Tensor::make(DType::Float32, {2});
  Bound bound(s);
  bound.input("x", Tensor::of<float>({2}, {1, 2}));
  bound.output("y", target);
  CHECK(bound.run()[0].tensor().raw() == target.raw());
  s->copy(target, back);
  CHECK(tensor::to_float_vector(back) == std::vector<float>{-1, -2});
}

TEST_CASE("values cross between devices once for each direction") {
  const auto s =
      open("(float[N] x) => (y, z) { a = Neg(x)  b = Exp(a)  c = Abs(a)  y = Neg(b)  z = Neg(c) }", on_null("Neg"));
  Bound bound(s);
  bound.input("x", Tensor::of<float>({2}, {1, 2}));
  // x, b and c go there; a, y and z come back.
  CHECK(copies(*s, bound) == std::pair<std::size_t, std::size_t>{3, 3});
}

TEST_CASE("a device tensor that the host reads is brought there") {
  const auto s = open("(float[N] x) => (y) { a = Exp(x)  y = Neg(a) }", on_null("Neg"));
  const Tensor host = Tensor::of<float>({2}, {1, 2}), device = s->allocate(DType::Float32, {2}, kNull);
  s->copy(host, device);
  Bound bound(s);
  bound.input("x", device);
  check_same(bound.run(), run(*s, {host}), 0);
}

TEST_CASE("devices have names") {
  const auto s = open("(float[N] x) => (y) { y = Neg(x) }", on_null());
  CHECK(s->device("cpu") == kHost);
  CHECK(s->device("null") == kNull);
  CHECK(s->device("null:0") == kNull);
  const Error error = error_of([&] { s->device("cuda"); });
  CHECK(error.code() == ErrorCode::InvalidArgument);
  CHECK(has(error.message(), "'null:0'"));
  CHECK_THROWS_AS(s->allocate(DType::Float32, {2}, {"cuda", 0}), Error);
}
