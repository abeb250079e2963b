// executionProviders: choice, fallback, report.

#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kModel =
    "(float[N] x) => (y) { [\"a\"] a = Neg(x)  [\"b\"] b = Exp(a)  [\"c\"] c = Neg(b)  [\"d\"] y = Softmax(c) }";
SessionOptions with(std::vector<session::ProviderChoice> providers,
                    std::map<std::string, std::string, std::less<>> config = {}) {
  SessionOptions options;
  options.providers = std::move(providers);
  options.config = std::move(config);
  return options;
}
std::string where(const Session& session) {
  std::string text;
  for (const provider::Placement& placement : session.placements())
    text += (text.empty() ? "" : " ") + placement.node + ":" + placement.provider;
  return text;
}
}  // namespace

TEST_CASE("every node's place is reported") {
  CHECK(where(*open(kModel)) == "a:cpu b:cpu c:cpu d:cpu");
  CHECK(where(*open(kModel, with({{"cpu", {}}}))) == "a:cpu b:cpu c:cpu d:cpu");
  CHECK(where(*open(kModel, with({{"null", {}}, {"cpu", {}}}))) == "a:null b:null c:null d:null");
  CHECK(where(*open(kModel, with({{"null", {{"ops", "Neg,Softmax"}}}}))) == "a:null b:cpu c:null d:null");
  CHECK(where(*open(kModel, with({{"cpu", {}}, {"null", {}}}))) == "a:cpu b:cpu c:cpu d:cpu");
}

TEST_CASE("answers do not depend on the provider") {
  const std::vector<Value> inputs{noise(DType::Float32, {7}, 1)};
  const auto expected = run(*open(kModel), inputs);
  for (const char* ops : {"", "Neg", "Exp", "Softmax,Neg", "Exp,Neg"}) {
    const auto options = *ops == 0 ? provider::ProviderOptions{} : provider::ProviderOptions{{"ops", ops}};
    const auto s = open(kModel, with({{"null", options}}));
    for (int again = 0; again < 2; ++again) check_same(run(*s, inputs), expected);
    check_same(run(*open(kModel,
                         [&] {
                           SessionOptions o = with({{"null", options}});
                           o.parallel = true;
                           return o;
                         }()),
                   inputs),
               expected);
  }
}

TEST_CASE("a provider that cannot start leaves its place to the next") {
  const provider::ProviderOptions broken{{"unavailable", "the fan is stuck"}};
  CHECK(where(*open(kModel, with({{"null", broken}, {"cpu", {}}}))) == "a:cpu b:cpu c:cpu d:cpu");
  const Error alone = error_of([&] { open(kModel, with({{"null", broken}})); });
  CHECK(alone.code() == ErrorCode::ProviderUnavailable);
  CHECK(has(alone.message(), "the fan is stuck"));
  const Error strict = error_of([&] {
    open(kModel, with({{"null", broken}, {"cpu", {}}}, {{"session.disable_provider_fallback", "1"}}));
  });
  CHECK(has(strict.message(), "the fan is stuck"));
}

TEST_CASE("providers of other platforms and unknown ones say why") {
  for (const char* name : {"tensorrt", "dml", "coreml", "nnapi", "webgpu", "qnn", "xnnpack"}) {
    const Error error = error_of([&] { open(kModel, with({{name, {}}})); });
    CHECK(error.code() == ErrorCode::ProviderUnavailable);
    CHECK(has(error.message(), name));
  }
  const Error unknown = error_of([] { open(kModel, with({{"abacus", {}}})); });
  CHECK(unknown.code() == ErrorCode::ProviderUnavailable);
  CHECK(has(unknown.message(), "no available backend found"));
}

TEST_CASE("fallback to the CPU can be forbidden") {
  const Error error = error_of([] {
    open(kModel, with({{"null", {{"ops", "Neg"}}}}, {{"session.disable_cpu_ep_fallback", "1"}}));
  });
  CHECK(error.code() == ErrorCode::ProviderUnavailable);
  CHECK(error.context().details == std::vector<std::string>{"Exp 'b'", "Softmax 'd'"});
  CHECK(where(*open(kModel, with({{"null", {}}}, {{"session.disable_cpu_ep_fallback", "1"}}))) ==
        "a:null b:null c:null d:null");
}

TEST_CASE("an option that the provider does not have") {
  const Error error = error_of([] { open(kModel, with({{"null", {{"speed", "11"}}}})); });
  CHECK(error.code() == ErrorCode::InvalidArgument);
  CHECK(has(error.message(), "'speed'"));
}

TEST_CASE("control flow stays on the CPU") {
  const char* text =
      "(bool c, float[N] x) => (y) { [\"n\"] a = Neg(x)  [\"if\"] y = If<then_branch = t () => (u) { "
      "u = Exp(a) }, else_branch = e () => (v) { v = Abs(a) }>(c) }";
  const auto s = open(text, with({{"null", {}}}));
  CHECK(where(*s) == "n:null if:cpu");
  const std::vector<Value> inputs{Tensor::scalar(true), noise(DType::Float32, {3}, 1)};
  check_same(run(*s, inputs), run(*open(text), inputs));
}

TEST_CASE("an optimized model of a session with a provider is the one before it took its share") {
  const TemporaryFolder folder;
  SessionOptions options = with({{"null", {}}});
  options.optimized_model_path = folder / "m.onnx";
  open(kModel, options);
  const std::vector<Value> inputs{noise(DType::Float32, {7}, 1)};
  check_same(run(*Session::create(engine(), {.path = folder / "m.onnx"}, {}), inputs), run(*open(kModel), inputs));
}

TEST_CASE("memory on a device outlives its session's release, but is out of reach") {
  const auto s = open(kModel, with({{"null", {}}, {"cpu", {}}}));
  const Tensor there = s->allocate(DType::Float32, {3}, s->device("null")), here = Tensor::make(DType::Float32, {3});
  s->copy(Tensor::of<float>({3}, {1, 2, 3}), there);
  s->release();
  CHECK(error_of([&] { s->copy(there, here); }).code() == ErrorCode::Disposed);
  CHECK(error_of([&] { (void)s->device("null"); }).code() == ErrorCode::Disposed);
}
