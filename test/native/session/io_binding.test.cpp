#include "session/io_binding.h"

#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;
using session::IoBinding;

namespace {
const tensor::Device kHost{};
const tensor::Device kNull{tensor::Device::Kind::Null, 0};
const TemporaryFolder traces;
SessionOptions on_null(std::string ops = "") {
  SessionOptions options;
  options.profile_prefix = traces / "trace";
  options.providers = {{"null", ops.empty() ? provider::ProviderOptions{} : provider::ProviderOptions{{"ops", ops}}}};
  return options;
}
std::vector<Value> run(IoBinding& binding) {
  std::vector<std::size_t> wanted;
  return binding.run({}, nullptr, wanted);
}
std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
/// Copies in each direction that a run made.
std::pair<std::size_t, std::size_t> copies(Session& session, IoBinding& binding) {
  session.start_profiling();
  run(binding);
  const std::string trace = session.end_profiling().json;
  return {count(trace, "\"op_name\":\"CopyToDevice\""), count(trace, "\"op_name\":\"CopyToHost\"")};
}
}  // namespace

TEST_CASE("bound tensors on the host are read and written where they lie") {
  const auto s = open("(float[N] x) => (y, z) { y = Neg(x)  z = Exp(x) }");
  IoBinding binding(s);
  const Tensor x = Tensor::of<float>({2}, {1, 2}), y = Tensor::of<float>({2}, {0, 0});
  binding.bind_input("x", x);
  binding.bind_output("y", y);
  std::vector<std::size_t> wanted;
  const auto results = binding.run({}, nullptr, wanted);
  CHECK(wanted == std::vector<std::size_t>{0});
  REQUIRE(results.size() == 1);
  CHECK(results[0].tensor().raw() == y.raw());
  CHECK(tensor::to_float_vector(y) == std::vector<float>{-1, -2});
  x.mutable_data<float>()[0] = 5;
  run(binding);
  CHECK(tensor::to_float_vector(y) == std::vector<float>{-5, -2});
}

TEST_CASE("with no output bound all come, on the host") {
  const auto s = open("(float[N] x) => (y, z) { y = Neg(x)  z = Exp(x) }", on_null());
  IoBinding binding(s);
  binding.bind_input("x", Tensor::of<float>({2}, {1, 2}));
  const auto results = run(binding);
  REQUIRE(results.size() == 2);
  for (const Value& result : results) CHECK(result.tensor().device().is_host());
}

TEST_CASE("names and shapes that do not fit are refused") {
  const auto s = open("(float[N,2] input) => (output) { output = Neg(input) }");
  IoBinding binding(s);
  const Error input = error_of([&] { binding.bind_input("inptu", Tensor::of<float>({1, 2}, {1, 2})); });
  CHECK(input.code() == ErrorCode::InvalidArgument);
  CHECK(has(input.message(), "did you mean 'input'"));
  CHECK(has(error_of([&] { binding.bind_output("outptu", kHost); }).message(), "did you mean 'output'"));
  CHECK(error_of([&] {
          binding.bind_input("input", Tensor::of<float>({2}, {1, 2}));
        }).code() == ErrorCode::ShapeMismatch);
  CHECK(error_of([&] { run(binding); }).context().input == "input");
  binding.bind_input("input", Tensor::of<float>({1, 2}, {1, 2}));
  binding.bind_output("output", Tensor::of<float>({2}, {0, 0}));
  const Error shape = error_of([&] { run(binding); });
  CHECK(shape.code() == ErrorCode::ShapeMismatch);
  CHECK(shape.context().output == "output");
  binding.clear_outputs();
  CHECK(run(binding).size() == 1);
  binding.clear_inputs();
  CHECK_THROWS_AS(run(binding), Error);
}

TEST_CASE("values that stay on the device are not copied") {
  const auto s = open("(float[N] x) => (y) { a = Neg(x)  y = Exp(a) }", on_null());
  const Tensor host = Tensor::of<float>({2}, {1, 2}), device = s->allocate(DType::Float32, {2}, kNull);
  s->copy(host, device);
  IoBinding binding(s);

  binding.bind_input("x", host);
  CHECK(copies(*s, binding) == std::pair<std::size_t, std::size_t>{1, 1});
  binding.bind_input("x", device);
  CHECK(copies(*s, binding) == std::pair<std::size_t, std::size_t>{0, 1});
  binding.bind_output("y", kNull);
  CHECK(copies(*s, binding) == std::pair<std::size_t, std::size_t>{0, 0});

  const auto results = run(binding);
  CHECK(results[0].tensor().device() == kNull);
  const Tensor back = Tensor::make(DType::Float32, {2});
  s->copy(results[0].tensor(), back);
  check_same({back}, run(*open("(float[N] x) => (y) { a = Neg(x)  y = Exp(a) }"), {host}));

  IoBinding next(s);  // a result serves as input
  next.bind_input("x", results[0]);
  next.bind_output("y", kNull);
  CHECK(copies(*s, next) == std::pair<std::size_t, std::size_t>{0, 0});
}

TEST_CASE("a tensor bound on the device receives the output") {
  const auto s = open("(float[N] x) => (y) { y = Neg(x) }", on_null());
  const Tensor target = s->allocate(DType::Float32, {2}, kNull), back = Tensor::make(DType::Float32, {2});
  IoBinding binding(s);
  binding.bind_input("x", Tensor::of<float>({2}, {1, 2}));
  binding.bind_output("y", target);
  CHECK(run(binding)[0].tensor().raw() == target.raw());
  s->copy(target, back);
  CHECK(tensor::to_float_vector(back) == std::vector<float>{-1, -2});
}

TEST_CASE("values cross between devices once for each direction") {
  const auto s =
      open("(float[N] x) => (y, z) { a = Neg(x)  b = Exp(a)  c = Abs(a)  y = Neg(b)  z = Neg(c) }", on_null("Neg"));
  IoBinding binding(s);
  binding.bind_input("x", Tensor::of<float>({2}, {1, 2}));
  // x, b and c go there; a, y and z come back.
  CHECK(copies(*s, binding) == std::pair<std::size_t, std::size_t>{3, 3});
}

TEST_CASE("a device tensor that the host reads is brought there") {
  const auto s = open("(float[N] x) => (y) { a = Exp(x)  y = Neg(a) }", on_null("Neg"));
  const Tensor host = Tensor::of<float>({2}, {1, 2}), device = s->allocate(DType::Float32, {2}, kNull);
  s->copy(host, device);
  IoBinding binding(s);
  binding.bind_input("x", device);
  check_same(run(binding), run(*s, {host}), 0);
}

TEST_CASE("devices have names") {
  const auto s = open("(float[N] x) => (y) { y = Neg(x) }", on_null());
  CHECK(s->device("cpu") == kHost);
  CHECK(s->device("null") == kNull);
  CHECK(s->device("null:0") == kNull);
  const Error error = error_of([&] { s->device("cuda"); });
  CHECK(error.code() == ErrorCode::InvalidArgument);
  CHECK(has(error.message(), "'null:0'"));
  CHECK_THROWS_AS(s->allocate(DType::Float32, {2}, {tensor::Device::Kind::Cuda, 0}), Error);
}
