#include "session/session.h"

#include <fstream>
#include <thread>

#include "base/mapped_file.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kModel =
    "<ir_version: 8, producer_name: \"test\", opset_import: [\"\" : 17], metadata_props: [\"k\": \"v\"]> "
    "net (float[N,2] x, float[2] w = {10, 20}) => (float[N,2] y, int64[2] s) { y = Mul(x, w)  s = Shape(y) }";
constexpr const char* kLong =
    "(int64 n, bool go, float[2] x) => (y) { y = Loop<body = b (int64 i, bool c, float[2] a) => (c, d) { d = Neg(a) }>"
    "(n, go, x) }";
std::vector<Value> forever() {
  return {Tensor::scalar<std::int64_t>(std::int64_t{1} << 40), Tensor::scalar(true), Tensor::of<float>({2}, {1, 2})};
}
}  // namespace

TEST_CASE("a session says what it takes and gives") {
  const auto s = open(kModel);
  REQUIRE(s->feeds().size() == 2);
  CHECK(s->input_count() == 1);
  CHECK(s->feeds()[0].name == "x");
  CHECK(graph::to_string(*s->feeds()[0].type.shape) == "[N,2]");
  CHECK_FALSE(s->feeds()[0].overridable);
  CHECK(s->feeds()[1].name == "w");
  CHECK(s->feeds()[1].overridable);
  REQUIRE(s->outputs().size() == 2);
  CHECK(s->outputs()[1].name == "s");
  CHECK(s->outputs()[1].type.elem == DType::Int64);
  CHECK(s->info().producer_name == "test");
  CHECK(s->info().opsets.at("") == 17);
  CHECK(s->info().metadata.at(0).second == "v");
  CHECK(s->info().graph_name == "net");
}

TEST_CASE("a run gives what is wanted, in the order asked for") {
  const auto s = open(kModel);
  const std::vector<Value> inputs{Tensor::of<float>({1, 2}, {1, 2}), {}};
  const auto results = prepare(*s, inputs, {1, 0}).execute();
  CHECK(tensor::to_int64_vector(results[0].tensor()) == std::vector<std::int64_t>{1, 2});
  CHECK(tensor::to_float_vector(results[1].tensor()) == std::vector<float>{10, 40});
}

TEST_CASE("an initializer that is an input may be fed") {
  const auto s = open(kModel);
  const auto results = run(*s, {Tensor::of<float>({1, 2}, {1, 2}), Tensor::of<float>({2}, {3, 4})});
  CHECK(tensor::to_float_vector(results[0].tensor()) == std::vector<float>{3, 8});
}

TEST_CASE("a model loads from a file and from memory alike") {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  write_file(path, model_bytes(kModel));
  const auto from_file = Session::create(engine(), {.path = path}, {});
  const std::vector<Value> inputs{noise(DType::Float32, {3, 2}, 1), {}};
  check_same(run(*from_file, inputs), run(*open(kModel), inputs), 0);
}

TEST_CASE("a file that is written to while it loads is refused, one that is replaced is not") {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  write_file(path, model_bytes(kModel));
  SessionOptions options;
  options.progress = [&](std::string_view, std::size_t, std::size_t) noexcept {
    write_file(path, model_bytes(kModel));  // beside it, and renames
  };
  CHECK_NOTHROW(Session::create(engine(), {.path = path}, options));
  options.progress = [&](std::string_view, std::size_t, std::size_t) noexcept {
    std::ofstream(path, std::ios::app | std::ios::binary) << "more";
  };
  const Error error = error_of([&] { Session::create(engine(), {.path = path}, options); });
  CHECK(error.code() == ErrorCode::Io);
  CHECK(error.context().path == path);
  CHECK(error.message().find("was changed while it was loaded") != std::string::npos);
}

TEST_CASE("freeDimensionOverrides fix a symbol everywhere") {
  const auto s = open(kModel, {.free_dimensions = {{"N", 4}}});
  CHECK(graph::to_string(*s->feeds()[0].type.shape) == "[4,2]");
  CHECK(graph::to_string(*s->outputs()[0].type.shape) == "[4,2]");
  const Error error = error_of([&] { run(*s, {noise(DType::Float32, {3, 2}, 1), {}}); });
  CHECK(error.code() == ErrorCode::ShapeMismatch);
}

TEST_CASE("feeds that do not fit are refused by name") {
  const auto s = open(kModel);
  const auto refuse = [&](std::vector<Value> inputs) { return error_of([&] { run(*s, inputs); }); };
  const Error missing = refuse({{}, {}});
  CHECK(missing.code() == ErrorCode::InvalidArgument);
  CHECK(missing.message() == "input 'x' is missing in 'feeds'.");
  CHECK(missing.context().input == "x");
  const Error dtype = refuse({Tensor::of<std::int64_t>({1, 2}, {1, 2}), {}});
  CHECK(dtype.code() == ErrorCode::InvalidArgument);
  CHECK(dtype.context().input == "x");
  CHECK(dtype.context().expected == "tensor(float)");
  CHECK(dtype.context().actual == "tensor(int64)");
  CHECK(dtype.message() ==
        "input 'x': Unexpected input data type. Actual: (tensor(int64)) , expected: (tensor(float))");
  const Error rank = refuse({noise(DType::Float32, {2}, 1), {}});
  CHECK(rank.code() == ErrorCode::ShapeMismatch);
  CHECK(rank.message() ==
        "Invalid rank for input: x Got: 1 Expected: 2 ([2] for [N,2]). "
        "Please fix either the inputs/outputs or the model.");
  CHECK(rank.context().expected == "[N,2]");
  CHECK(rank.context().actual == "[2]");
  const Error dim = refuse({noise(DType::Float32, {1, 3}, 1), {}});
  CHECK(dim.code() == ErrorCode::ShapeMismatch);
  CHECK(dim.message() ==
        "Got invalid dimensions for input: x for the following indices\n index: 1 Got: 3 Expected: 2\n "
        "Please fix either the inputs/outputs or the model.");
  const Error kind = refuse({tensor::Sequence{DType::Float32, {}}, {}});
  CHECK(kind.code() == ErrorCode::InvalidArgument);
  CHECK(kind.context().input == "x");
  const Error initializer = refuse({noise(DType::Float32, {1, 2}, 1), noise(DType::Float32, {3}, 1)});
  CHECK(initializer.context().input == "w");
  CHECK(run(*s, {noise(DType::Float32, {1, 2}, 1), {}}).size() == 2);
}

TEST_CASE("one element satisfies a declared scalar") {
  const auto s = open("(float x) => (y) { y = Neg(x) }");
  CHECK(tensor::to_float_vector(run(*s, {Tensor::of<float>({1}, {3})})[0].tensor()) == std::vector<float>{-3});
}

TEST_CASE("inputs may give one symbol two sizes") {
  const auto s = open("(float[N] a, float[N] b) => (y) { y = Concat<axis = 0>(a, b) }");
  CHECK(run(*s, {noise(DType::Float32, {2}, 1), noise(DType::Float32, {5}, 1)})[0].tensor().numel() == 7);
}

TEST_CASE("outputs are forecast where shapes tell") {
  const auto s = open("(float[N,3] x) => (y, z) { t = Transpose(x)  y = Softmax(t)  z = NonZero(x) }");
  const std::vector<Value> inputs{noise(DType::Float32, {4, 3}, 1)};
  const auto forecasts = prepare(*s, inputs, {0, 1}).result_shapes();
  CHECK(forecasts[0].dtype == DType::Float32);
  CHECK(forecasts[0].shape == Shape{3, 4});
  CHECK(forecasts[1].dtype == DType::Undefined);
  const auto unequal = open("(float[N] x, float[M] w) => (y) { y = Add(x, w) }");
  const std::vector<Value> wrong{noise(DType::Float32, {4}, 1), noise(DType::Float32, {3}, 1)};
  CHECK(prepare(*unequal, wrong, {0}).result_shapes()[0].dtype == DType::Undefined);
}

TEST_CASE("how long a run takes is known once it ran") {
  const auto s = open("(float[N] x) => (y) { y = Softmax(x) }");
  const std::vector<Value> four{noise(DType::Float32, {4}, 1)}, five{noise(DType::Float32, {5}, 1)};
  CHECK_FALSE(expected_us(*s, four));
  run(*s, four);
  REQUIRE(expected_us(*s, four));
  CHECK(*expected_us(*s, four) > 0);
  CHECK_FALSE(expected_us(*s, five));
}

TEST_CASE("how long a run takes is known for the outputs that it was for") {
  const auto s = open("(float[N] x) => (y, z) { y = Neg(x)  z = Softmax(x) }");
  const std::vector<Value> four{noise(DType::Float32, {4}, 1)};
  (void)prepare(*s, four, {0}).execute();
  CHECK(prepare(*s, four, {0}).expected_us());
  CHECK_FALSE(prepare(*s, four, {1}).expected_us());
  CHECK_FALSE(expected_us(*s, four));
}

TEST_CASE("how long a run takes is not guessed where the data decides") {
  const auto n = [](std::int64_t count) { return std::vector<Value>{Tensor::scalar<std::int64_t>(count)}; };
  const auto s = open(
      "(int64 n) => (y) { zero = Constant<value = int64 {0}>()  one = Constant<value = int64 {1}>()"
      "  y = Range(zero, n, one) }");
  run(*s, n(3));
  CHECK(expected_us(*s, n(3)) == std::numeric_limits<double>::infinity());
}

TEST_CASE("preallocated outputs are written where they fit") {
  const auto s = open("(float[N] x) => (y, i) { y = Neg(x)  i = Identity(x) }");
  const Tensor x = Tensor::of<float>({2}, {1, 2});
  const std::vector<Value> inputs{x};
  const std::vector<std::size_t> wanted{0, 1};
  const std::vector<Value> targets{Tensor::of<float>({2}, {7, 7}), Tensor::of<float>({2}, {8, 8})};
  const auto results = prepare(*s, inputs, wanted, targets).execute();
  for (std::size_t i = 0; i < 2; ++i) CHECK(results[i].tensor().raw() == targets[i].tensor().raw());
  CHECK(tensor::to_float_vector(targets[0].tensor()) == std::vector<float>{-1, -2});
  CHECK(tensor::to_float_vector(targets[1].tensor()) == std::vector<float>{1, 2});
  const std::vector<Value> short_one{Tensor::of<float>({1}, {7})};
  const auto own = prepare(*s, inputs, wanted, short_one).execute();
  CHECK(own[0].tensor().raw() != short_one[0].tensor().raw());
  CHECK(tensor::to_float_vector(short_one[0].tensor()) == std::vector<float>{7});
}

TEST_CASE("outputs that are written over one another leave the others right") {
  const auto s = open(
      "(float[3] x) => (a, b, c) <float one = {1}, float two = {2}, float ten = {10}> { a = Add(x, one)  "
      "b = Mul(x, two)  c = Mul(a, ten) }");
  const Tensor memory = Tensor::of<float>({4}, {0, 0, 0, 0});
  const auto part = [&](std::size_t first) {
    return Tensor(DType::Float32, {3}, memory.buffer().slice(first * sizeof(float), 3 * sizeof(float)));
  };
  for (const std::size_t first : {0, 1}) {
    const std::vector<Value> targets{part(0), part(first)};
    const auto results = prepare(*s, {Tensor::of<float>({3}, {0, 1, 2})}, {0, 1, 2}, targets).execute();
    CHECK(tensor::to_float_vector(results[2].tensor()) == std::vector<float>{10, 20, 30});
    CHECK(tensor::to_float_vector(part(first)) == std::vector<float>{0, 2, 4});  // the last one
  }
}

TEST_CASE("an output may be written over the feed it is made from") {
  const auto s = open("(float[2,2] x) => (y) { y = MatMul(x, x) }");
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const std::vector<Value> both{x};
  const auto results = prepare(*s, both, {0}, both).execute();
  CHECK(results[0].tensor().raw() == x.raw());
  CHECK(tensor::to_float_vector(x) == std::vector<float>{7, 10, 15, 22});
}

TEST_CASE("all unknown operators are reported at once") {
  const Error error = error_of([] {
    open(
        "(float[2] x) => (y) { [\"one\"] a = NoSuch(x)  [\"two\"] b = far.away.Op(a)  [\"three\"] c = Reluu(b)  y = "
        "Neg(c) }");
  });
  CHECK(error.code() == ErrorCode::UnsupportedOperator);
  CHECK(error.context().details.size() == 3);
  for (const char* part : {"NoSuch", "far.away", "Reluu"}) CHECK(has(error.message(), part));
}

TEST_CASE("an opset from the future is refused") {
  const Error error = error_of([] { open("(float[2] x) => (y) { y = Neg(x) }", {}, 999); });
  CHECK(error.code() == ErrorCode::InvalidModel);
  CHECK(has(error.message(), "999"));
}

TEST_CASE("a fault at run names the node, and the session goes on") {
  const auto s = open("(float[4] x, int64[1] i) => (y) { [\"pick\"] y = Gather(x, i) }");
  const Error error = error_of([&] { run(*s, {noise(DType::Float32, {4}, 1), Tensor::of<std::int64_t>({1}, {9})}); });
  CHECK(error.context().node == "pick");
  CHECK(error.context().op_type == "Gather");
  CHECK(run(*s, {noise(DType::Float32, {4}, 1), Tensor::of<std::int64_t>({1}, {0})}).size() == 1);
}

TEST_CASE("a run ends when it is cancelled, out of time or told to terminate") {
  const auto s = open(kLong);
  kernel::CancelToken token;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    token.cancel();
  });
  CHECK(error_of([&] { run(*s, forever(), {}, &token); }).code() == ErrorCode::Aborted);
  canceller.join();
  CHECK(error_of([&] { run(*s, forever(), {.timeout_ms = 20}); }).code() == ErrorCode::Aborted);
  CHECK(error_of([&] { run(*s, forever(), {.terminate = true}); }).code() == ErrorCode::Aborted);
  std::vector<Value> brief = forever();
  brief[0] = Tensor::scalar<std::int64_t>(3);
  CHECK(run(*s, brief, {.timeout_ms = 60000}).size() == 1);
}

TEST_CASE("what is allocated for the user holds zeros") {
  const auto s = open("(float[N] x) => (y) { y = Neg(x) }");
  for (int again = 0; again < 3; ++again) {
    const Tensor made = s->allocate(DType::Float32, {1000}, {});
    for (const float value : made.span<float>()) REQUIRE(value == 0);
    std::fill_n(made.buffer().data(), made.bytes(), std::byte{0x5a});
  }
}

TEST_CASE("outputs are described by the symbols that the file declares") {
  const auto s = open("(float[batch] x) => (float[rows] y, z) { y = Neg(x)  z = Neg(x) }");
  const auto symbol = [&](std::size_t i) { return (*s->outputs()[i].type.shape)[0].symbol_name(); };
  CHECK(symbol(0) == "rows");
  CHECK(symbol(1) == "batch");
}

TEST_CASE("a run stays within its memory limit") {
  const auto s = open("(float[N] x) => (y) { a = Exp(x)  y = Softmax(a) }", {.memory_limit = 10000});
  CHECK(run(*s, {noise(DType::Float32, {100}, 1)}).size() == 1);
  CHECK(s->memory_bytes() > 0);
  const Error error = error_of([&] { run(*s, {noise(DType::Float32, {100000}, 1)}); });
  CHECK(s->memory_bytes() == 0);  // which keeps none of a run that lacked memory
  CHECK(error.code() == ErrorCode::OutOfMemory);
  CHECK(has(error.message(), "of the 10000 bytes of its memoryLimit"));
  for (int again = 0; again < 5; ++again) CHECK(run(*s, {noise(DType::Float32, {100}, 1)}).size() == 1);
}

TEST_CASE("memoryLimit counts what strings hold, for as long as they live") {
  const auto s = open(
      "(string[N] x) => (string[N] y) { a = StringConcat(x, x)  b = StringConcat(a, a)  c = Identity(b)"
      "  d = StringConcat(c, c)  y = StringConcat(d, d) }",
      {.memory_limit = 100'000}, 20);
  const auto of = [](std::size_t bytes) { return Tensor::of<std::string>({1}, {std::string(bytes, 'x')}); };
  CHECK(run(*s, {of(1000)})[0].tensor().data<std::string>()->size() == 16000);
  const Error error = error_of([&] { run(*s, {of(10'000)}); });
  CHECK(error.code() == ErrorCode::OutOfMemory);
  CHECK(has(error.message(), "of the 100000 bytes of its memoryLimit"));
  CHECK(error.context().op_type == "StringConcat");
  for (int again = 0; again < 20; ++again) CHECK(run(*s, {of(1000)}).size() == 1);
}

TEST_CASE("what a loop gathers counts in the memory limit") {
  for (const char* kept : {"w = Identity(v)", "w = Exp(v)"}) {
    CAPTURE(kept);
    const auto s = open(cat("(float[N] x, int64 n) => (y, z) { go = Constant<value = bool {1}>()  y, z = Loop<body = g "
                            "(int64 i, bool c, float[N] v) => (bool d, float[N] u, float[N] w) "
                            "{ d = Identity(c)  u = Neg(v)  ",
                            kept, " }>(n, go, x) }"),
                        {.memory_limit = 1 << 20});
    const auto feeds = [](std::int64_t rounds) {
      return std::vector<Value>{noise(DType::Float32, {1000}, 1), Tensor::scalar<std::int64_t>(rounds)};
    };
    CHECK(run(*s, feeds(10))[1].tensor().numel() == 10000);
    const Error error = error_of([&] { run(*s, feeds(std::int64_t{1} << 40), {.timeout_ms = 60000}); });
    CHECK(error.code() == ErrorCode::OutOfMemory);
    CHECK(has(error.message(), "of the 1048576 bytes of its memoryLimit"));
  }
}

TEST_CASE("release waits for runs that have begun and refuses later ones") {
  const auto s = open(kLong);
  session::PreparedRun late = prepare(*s, forever(), all_outputs(*s));
  kernel::CancelToken token;
  std::atomic<bool> started{false}, ended{false};
  std::thread runner([&] {
    started = true;
    CHECK_THROWS_AS(run(*s, forever(), {}, &token), Error);
    ended = true;
  });
  while (!started) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK_FALSE(ended);
    token.cancel();
  });
  CHECK(s->release());
  CHECK(s->released());
  runner.join();
  canceller.join();
  CHECK_FALSE(s->release());
  CHECK(error_of([&] { run(*s, forever()); }).code() == ErrorCode::Disposed);
  CHECK(s->memory_bytes() == 0);
  CHECK_FALSE(late.expected_us());
  CHECK(error_of([&] { late.execute(); }).code() == ErrorCode::Disposed);
  CHECK(error_of([&] { s->end_profiling(); }).code() == ErrorCode::Disposed);
  CHECK(s->feeds().size() == 3);
}

TEST_CASE("runs of one session at once give the same bits as one after another") {
  const auto s = open("(float[N,8] x) => (y) { t = Transpose(x)  m = MatMul(x, t)  y = Softmax(m) }");
  std::vector<std::vector<Value>> inputs, expected;
  for (std::uint32_t i = 0; i < 4; ++i) {
    inputs.push_back({noise(DType::Float32, {5 + i % 2, 8}, i)});
    expected.push_back(run(*s, inputs.back()));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int again = 0; again < 25; ++again)
        wrong += difference(run(*s, inputs[t])[0], expected[t][0], 0).empty() ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("parallel mode gives the same answers") {
  const char* text = "(float[N,8] x) => (y) { a = Exp(x)  b = Neg(x)  c = Softmax(a)  d = Softmax(b)  y = Mul(c, d) }";
  const std::vector<Value> inputs{noise(DType::Float32, {6, 8}, 1)};
  check_same(run(*open(text, {.parallel = true}), inputs), run(*open(text), inputs), 0);
  check_same(run(*open(text, {.inter_op_threads = 3, .parallel = true}), inputs), run(*open(text), inputs), 0);
}

TEST_CASE("levels give the same answers") {
  const char* text =
      "(float[N,4] x) => (y) <float[4,4] w = {1,2,3,4,5,6,7,8,8,7,6,5,4,3,2,1}, float[4] b = {1,2,3,4}> "
      "{ t = MatMul(x, w)  a = Add(t, b)  s = Sigmoid(a)  m = Mul(a, s)  i = Identity(m)  y = Softmax(i) }";
  const std::vector<Value> inputs{noise(DType::Float32, {3, 4}, 1)};
  const auto expected = run(*open(text, {.level = passes::Level::Disabled}), inputs);
  for (const auto level : {passes::Level::Basic, passes::Level::Extended, passes::Level::Layout, passes::Level::All})
    check_same(run(*open(text, {.level = level}), inputs), expected, 1e-5);
}

TEST_CASE("loading can be cancelled") {
  kernel::CancelToken token;
  token.cancel();
  CHECK(error_of([&] { Session::create(engine(), source_of(model_bytes(kModel)), {}, &token); }).code() ==
        ErrorCode::Aborted);
}

TEST_CASE("what a session holds is counted, and given back") {
  const auto s = open("(float[N,4] x) => (y) <float[4] b = {1,2,3,4}> { a = Add(x, b)  c = Exp(a)  y = Softmax(c) }");
  CHECK(s->memory_bytes() == 16);
  run(*s, {noise(DType::Float32, {100, 4}, 1)});
  const std::size_t held = s->memory_bytes();
  CHECK(held > 16);
  run(*s, {noise(DType::Float32, {100, 4}, 1)}, {.config = {{"memory.enable_memory_arena_shrinkage", "cpu:0"}}});
  CHECK(s->memory_bytes() < held);
}

TEST_CASE("the trace has the load, the run and each node, and is written to the file that is named") {
  const TemporaryFolder folder;
  const auto s = open(kModel, {.profiling = true, .profile_prefix = folder / "trace"});
  run(*s, {noise(DType::Float32, {2, 2}, 1), {}});
  const session::ProfileSummary summary = s->end_profiling();
  CHECK(summary.path.starts_with(folder / "trace_"));
  std::ifstream file(summary.path);
  const std::string written((std::istreambuf_iterator<char>(file)), {});
  CHECK(written == summary.json);
  for (const char* name : {"model_loading_array", "session_initialization", "SequentialExecutor::Execute", "model_run",
                           "\"op_name\":\"Mul\""}) {
    CHECK_MESSAGE(has(written, name), name);
  }
  CHECK(s->end_profiling().json.empty());
  s->start_profiling();
  run(*s, {noise(DType::Float32, {2, 2}, 1), {}});
  const session::ProfileSummary again = s->end_profiling();
  CHECK(has(again.json, "model_run"));
  CHECK_FALSE(has(again.json, "session_initialization"));
}

TEST_CASE("a trace that cannot be written is still returned") {
  const TemporaryFolder folder;
  const auto s = open(kModel, {.profiling = true, .profile_prefix = folder / "no/such/folder/trace"});
  const session::ProfileSummary summary = s->end_profiling();
  CHECK(summary.path.empty());
  CHECK(has(summary.json, "session_initialization"));
}
