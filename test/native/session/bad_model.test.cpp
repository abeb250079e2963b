// Models that contradict themselves: found when they load where the file shows it, when they run where it does not.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "graph/text.h"
#include "onnx/writer.h"
#include "session/engine.h"
#include "session/prepared_run.h"

using namespace infernode;
using tensor::Tensor;
using tensor::Value;

namespace {

std::shared_ptr<session::Session> load(std::string_view text) {
  static const auto engine = session::Engine::create(2);
  const auto bytes =
      std::make_shared<const std::vector<std::byte>>(onnx::write_model_bytes(graph::parse_model(text, 17)));
  session::ModelSource source;
  source.bytes = tensor::Buffer(const_cast<std::byte*>(bytes->data()), bytes->size(), bytes, {}, false);
  session::SessionOptions options;
  options.log_severity = LogSeverity::Fatal;
  return session::Session::create(engine, std::move(source), std::move(options));
}

std::vector<Value> run(std::string_view text, const std::vector<Value>& feeds) {
  const auto session = load(text);
  session::PreparedRun prepared = session->prepare(feeds);
  for (std::size_t i = 0; i < session->outputs().size(); ++i) prepared.want(i);
  return prepared.execute();
}

void check_fails(std::string_view text, const std::vector<Value>& feeds, ErrorCode code, std::string_view part) {
  CAPTURE(text);
  try {
    run(text, feeds);
    FAIL_CHECK("it ran");
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, cat(to_string(error.code()), ": ", error.message()));
    CHECK_MESSAGE(error.message().find(part) != std::string::npos, error.message());
  }
}

Tensor floats(std::initializer_list<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values);
}
Tensor flag(bool value) { return Tensor::scalar<bool>(value); }

}  // namespace

TEST_CASE("branches that give different types are met where the value is made") {
  constexpr std::string_view text =
      "g (bool c, float[N] x) => (y) { t = If<then_branch = a () => (p) { p = Neg(x) }, "
      "else_branch = b () => (q) { q = Cast<to = 3>(x) }>(c) y = Exp(t) }";
  CHECK(run(text, {flag(true), floats({0, 0})})[0].tensor().data<float>()[1] == 1.0f);
  check_fails(text, {flag(false), floats({1, 2})}, ErrorCode::InvalidModel, "'t' is tensor(float), but it is int8[2]");
}

TEST_CASE("a loop whose state changes its type ends there") {
  check_fails(
      "g (float[N] x) => (y) { y = Loop<body = b (int64 i, bool k, float[M] v) => (o, w) { o = Identity(k) "
      "w = Cast<to = 3>(v) }>(n, , x) n = Constant<value_int = 3>() }",
      {floats({1, 2, 3})}, ErrorCode::InvalidModel, "int8[3]");
}

TEST_CASE("a required input that is left out") {
  check_fails("g (float[N] x) => (y) { y = Where(, x, x) }", {floats({1})}, ErrorCode::InvalidModel, "'condition'");
  check_fails("g (float[N] x) => (y) { y = Concat<axis = 0>(x, , x) }", {floats({1})}, ErrorCode::InvalidModel,
              "nothing for its input 1");
}

TEST_CASE("graph inputs say what they take") {
  check_fails("g (x) => (y) { y = Neg(x) }", {floats({1})}, ErrorCode::InvalidModel, "input 'x' declares no element");
  check_fails("g (int64[2] x = {1, 2}, float[2] z) => (y) <float[2] x = {1, 2}> { y = Add(x, z) }", {},
              ErrorCode::InvalidModel, "x");
}

TEST_CASE("an optional input that is not fed is an empty optional") {
  const auto out =
      run("g (optional(float[2]) x) => (h, y, x) { h = OptionalHasElement(x) y = Identity(x) }", {Value()});
  CHECK_FALSE(out[0].tensor().data<bool>()[0]);
  for (const Value& value : {out[1], out[2]}) {
    REQUIRE(value.is_optional());
    CHECK(value.optional().item == nullptr);
  }
}

TEST_CASE("bodies give and take what their node does") {
  check_fails(
      "g (float[4,2] x) => (y) { s = SplitToSequence<axis = 0>(x) "
      "y = SequenceMap<body = b (float[K,2] v) => () { o = Neg(v) }>(s) }",
      {Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, ErrorCode::InvalidModel, "gives 0 outputs");
}

TEST_CASE("an empty optional says what it could hold") {
  check_fails("g (float[N] x) => (y) { c = Optional() y = Mul(x, c) }", {floats({1})}, ErrorCode::InvalidModel,
              "'type'");
  check_fails("g (float[N] x) => (y) { c = Optional<type = float[2]>() y = Mul(x, c) }", {floats({1})},
              ErrorCode::InvalidModel, "optional");
}
