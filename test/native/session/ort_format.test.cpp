// ORT format: files of ONNX Runtime's converter answer as the models they were made of; what is saved loads again.
#include <cstring>
#include <fstream>
#include <iterator>

#include "onnx/reader.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

std::string fixture(std::string_view name) { return cat(INFERNODE_TEST_FIXTURES, "/ort/", name); }

std::shared_ptr<Session> load(const std::string& path, SessionOptions options = {}) {
  return Session::create(engine(), {.path = path}, std::move(options));
}

/// Noise of the declared types; symbols are 2, flags true.
std::vector<Value> feeds_of(const Session& session) {
  std::vector<Value> out;
  for (const auto& feed : session.feeds()) {
    Shape shape;
    for (const graph::Dim& dim : *feed.type.shape) shape.push_back(dim.known() ? dim.value() : 2);
    if (feed.type.elem == DType::Int64)
      out.emplace_back(Tensor::of<std::int64_t>(shape, {3}));
    else
      out.emplace_back(noise(feed.type.elem, shape, static_cast<std::uint32_t>(out.size() + 1)));
  }
  return out;
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string head(const std::string& path) {
  const auto bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()) + 4, 4};
}

constexpr const char* kPairs[][2] = {{"conv.onnx", "conv.ort"},
                                     {"conv.onnx", "conv-v5-runtime.ort"},
                                     {"qdq.onnx", "qdq-runtime.ort"},
                                     {"loop.onnx", "loop.ort"}};

}  // namespace

TEST_CASE("files in ORT format answer as the models they were made of") {
  for (const auto& [onnx, ort] : kPairs) {
    CAPTURE(ort);
    for (const auto level : {passes::Level::Disabled, passes::Level::All}) {
      const auto original = load(fixture(onnx), {.level = level}), converted = load(fixture(ort), {.level = level});
      REQUIRE(converted->feeds().size() == original->feeds().size());
      for (std::size_t i = 0; i < original->feeds().size(); ++i)
        CHECK(converted->feeds()[i].name == original->feeds()[i].name);
      const auto inputs = feeds_of(*original);
      check_same(run(*converted, inputs), run(*original, inputs), 1e-5);
    }
  }
}

TEST_CASE("a model saved as .ort answers alike, at every level, also from bytes") {
  for (const char* name : {"conv.onnx", "qdq.onnx", "loop.onnx"}) {
    CAPTURE(name);
    const auto original = load(fixture(name), {.level = passes::Level::Disabled});
    const auto inputs = feeds_of(*original);
    const auto expected = run(*original, inputs);
    for (const auto level : {passes::Level::Disabled, passes::Level::Basic, passes::Level::All}) {
      const TemporaryFolder folder;
      const std::string path = folder / "saved.ort";
      load(fixture(name), {.level = level, .optimized_model_path = path});
      CHECK(head(path) == "ORTM");
      check_same(run(*load(path), inputs), expected, 1e-5);
      const auto from_bytes = Session::create(engine(), source_of(read_file(path)), {.level = passes::Level::Disabled});
      check_same(run(*from_bytes, inputs), expected, 1e-5);
    }
  }
}

TEST_CASE("options say which format is read and written") {
  const TemporaryFolder folder;
  const std::string path = folder / "saved.bin", onnx = folder / "saved.onnx";
  SessionOptions options{.optimized_model_path = path};
  options.config["session.save_model_format"] = "ORT";
  options.config["session.use_ort_model_bytes_directly"] = "1";
  load(fixture("conv.onnx"), options);
  CHECK(head(path) == "ORTM");
  options.optimized_model_path = folder / "no.ort";
  options.config["session.save_model_format"] = "ONNX";
  load(fixture("conv.ort"), options);
  CHECK(head(folder / "no.ort") != "ORTM");
  SessionOptions as_ort, as_onnx, wrong;
  as_ort.config["session.load_model_format"] = "ORT";
  as_onnx.config["session.load_model_format"] = "ONNX";
  wrong.config["session.load_model_format"] = "TFLITE";
  CHECK(load(path, as_ort)->outputs().size() == 2);
  CHECK(error_of([&] { load(fixture("conv.onnx"), as_ort); }).code() == ErrorCode::InvalidModel);
  CHECK(error_of([&] { load(path, as_onnx); }).code() == ErrorCode::InvalidModel);
  CHECK(error_of([&] { load(path, wrong); }).code() == ErrorCode::InvalidArgument);
}

TEST_CASE("a saved .ort holds operators of other runtimes only") {
  const TemporaryFolder folder;
  const std::string path = folder / "saved.ort";
  open("(float[2,3,4] x, float[2,4,3] z) => (y) <float s = {0.25}> { t = MatMul(x, z)  y = Mul(t, s) }",
       {.optimized_model_path = path});
  const graph::Model saved = onnx::read_model_file(path);
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(saved.graph->node_count()); ++id)
    CHECK(saved.graph->node(id).domain != "infernode");
}

TEST_CASE("a saved .ort has initializers in the place of Constant nodes, in bodies and functions too") {
  const std::string_view text =
      "(float[3] x, bool c) => (y, w, g) { w = Constant <value = float[2] {1, 2}> () "
      "y = If(c) <then_branch = a () => (t) { k = Constant <value_float = 2.0> ()  t = Mul(x, k) }, "
      "else_branch = b () => (t) { t = Constant <value_floats = [7.0, 8.0, 9.0]> () }>  g = Gelu(x) }";
  const auto original = open(text, {.level = passes::Level::Disabled}, 20);
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3});
  for (const auto level : {passes::Level::Disabled, passes::Level::Basic, passes::Level::All}) {
    const TemporaryFolder folder;
    const std::string path = folder / "saved.ort";
    open(text, {.level = level, .optimized_model_path = path}, 20);
    const auto bytes = read_file(path);
    // The flatbuffer holds each operator's name as it is.
    CHECK_FALSE(has({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "Constant"));
    for (const bool c : {true, false}) {
      const std::vector<Value> inputs{x, Tensor::of<bool>({}, {c})};
      check_same(run(*load(path), inputs), run(*original, inputs), 1e-6);
    }
  }
}

TEST_CASE("large initializers go to the file that an option names, and come back") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  SessionOptions options{.optimized_model_path = path};
  options.config["session.optimized_model_external_initializers_file_name"] = "weights.bin";
  options.config["session.optimized_model_external_initializers_min_size_in_bytes"] = "100";
  const auto original = load(fixture("conv.onnx"), options);
  CHECK(std::filesystem::file_size(folder / "weights.bin") == 432);  // the convolution's weights, and nothing small
  const auto inputs = feeds_of(*original);
  check_same(run(*load(path), inputs), run(*original, inputs), 1e-5);
}

TEST_CASE("every tensor of external data begins at a multiple of 64, large ones at pages") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  graph::Model model =
      graph::parse_model("(float[3] x, float[3] a, float[512,600] b, float[3] c) => (y) { y = Sum(x, a, b, c) }");
  for (const char* name : {"a", "b", "c"}) {
    graph::ValueInfo& info = model.graph->value(model.graph->find_value(name));
    info.constant = noise(DType::Float32, graph::to_known(*info.type.shape).value(), 5);
  }
  onnx::write_model_file(model, path, {.external_threshold = 1, .external_name = "w"});
  const auto bytes = read_file(folder / "w");
  const auto position = [&](const char* name) {
    const Tensor& t = model.graph->value(model.graph->find_value(name)).constant.tensor();
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return all.find({static_cast<const char*>(t.raw()), t.bytes()});
  };
  CHECK(position("a") % 64 == 0);
  CHECK(position("b") == 4096);
  CHECK(position("c") % 64 == 0);
}

TEST_CASE("names and sizes that make no sense for external data are refused") {
  const TemporaryFolder folder;
  const auto fails = [&](const char* name, const char* size) {
    SessionOptions options{.optimized_model_path = folder / "model.onnx"};
    options.config["session.optimized_model_external_initializers_file_name"] = name;
    options.config["session.optimized_model_external_initializers_min_size_in_bytes"] = size;
    return error_of([&] { load(fixture("conv.onnx"), options); }).code() == ErrorCode::InvalidArgument;
  };
  CHECK(fails("../weights", "1"));
  CHECK(fails("/weights", "1"));
  CHECK(fails("..", "1"));
  CHECK(fails("model.onnx", "1"));
  CHECK(fails("weights", "1k"));
  CHECK(fails("weights", "-1"));
}
