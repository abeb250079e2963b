// SessionOptions::model_cache_dir: packed weights of one load serve the next.

#include <cstring>
#include <fstream>

#include "base/content_hash.h"
#include "session/loader.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr const char* kModel =
    "(float[N,8] x) => (y) <float[8,6] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,"
    "2,3,4,5,6,7,8,9,1,2,3}, float[6] b = {1,2,3,4,5,6}> { t = MatMul(x, w)  u = Add(t, b)  y = Relu(u) }";

/// With another weight.
std::string changed() {
  std::string text = kModel;
  text.replace(text.find("{1,2,3,4,5,6,7"), 3, "{9,");
  return text;
}

std::size_t files(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// What a load tells of the cache.
std::string log_of(const session::ModelSource& source, const SessionOptions& options) {
  std::string log;
  const Logger logger(LogSeverity::Info, "",
                      [&](LogSeverity severity, std::string_view category, std::string_view text) {
                        if (category == "cache") log += cat(to_string(severity), ": ", text, "\n");
                      });
  session::load_model(*engine(), source, options, logger, nullptr, nullptr);
  return log;
}

std::string write(const TemporaryFolder& folder, std::string_view text) {
  const std::string path = folder / "model.onnx";
  const std::vector<std::byte> bytes = model_bytes(text);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

void check_same_bits(const session::ModelSource& source, const SessionOptions& options) {
  const std::vector<Value> inputs{noise(DType::Float32, {5, 8}, 1)};
  const auto expected = run(*Session::create(engine(), source, {}), inputs);
  const auto given = run(*Session::create(engine(), source, options), inputs);
  REQUIRE(given[0].tensor().bytes() == expected[0].tensor().bytes());
  CHECK(std::memcmp(given[0].tensor().raw(), expected[0].tensor().raw(), expected[0].tensor().bytes()) == 0);
}

}  // namespace

TEST_CASE("the second load of a file or of bytes takes its packed weights from the cache") {
  const TemporaryFolder folder;
  const std::string path = write(folder, kModel);
  for (const session::ModelSource& source : {session::ModelSource{.path = path}, source_of(model_bytes(kModel))}) {
    const SessionOptions options{.model_cache_dir = folder / (source.path.empty() ? "b" : "a")};
    CHECK(has(log_of(source, options), "info: packed weights were written to"));
    check_same_bits(source, options);
    CHECK(has(log_of(source, options), "info: 1 packed weights come from"));
    CHECK(!has(log_of(source, options), "written"));
    CHECK(files(options.model_cache_dir) == 1);
  }
}

TEST_CASE("a model that changed is packed anew, and its file in the cache replaced") {
  const TemporaryFolder folder;
  const SessionOptions options{.model_cache_dir = folder / "cache"};
  const session::ModelSource source{.path = write(folder, kModel)};
  log_of(source, options);
  write(folder, changed());
  check_same_bits(source, options);
  CHECK(has(log_of(source, options), "info: 1 packed weights come from"));
  CHECK(files(options.model_cache_dir) == 1);
}

TEST_CASE("other models and options have files of their own") {
  const TemporaryFolder folder;
  SessionOptions options{.model_cache_dir = folder / "cache"};
  const session::ModelSource source{.path = write(folder, kModel)};
  std::size_t count = 0;
  const auto check_new = [&](const session::ModelSource& of) {
    CHECK(has(log_of(of, options), "info: packed weights were written to"));
    check_same_bits(of, options);
    CHECK(files(options.model_cache_dir) == ++count);
  };
  check_new(source);
  check_new(source_of(model_bytes(kModel)));
  check_new(source_of(model_bytes(changed())));
  options.level = passes::Level::Disabled;
  check_new(source);
  options.free_dimensions = {{"N", 5}};
  check_new(source);
  options.config = {{"optimization.disable_specified_optimizers", "MatMulAddFusion"}};
  check_new(source);
}

TEST_CASE("a cache that cannot be written to is warned of, and the model runs") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  const SessionOptions options{.log_severity = LogSeverity::Error, .model_cache_dir = folder / "file"};
  const session::ModelSource source = source_of(model_bytes(kModel));
  CHECK(has(log_of(source, options), "warning: packed weights cannot be written to"));
  check_same_bits(source, options);
}

TEST_CASE("a session whose cache is deleted goes on") {
  const TemporaryFolder folder;
  const SessionOptions options{.model_cache_dir = folder / "cache"};
  const session::ModelSource source = source_of(model_bytes(kModel));
  log_of(source, options);
  const auto session = Session::create(engine(), source, options);
  const std::vector<Value> inputs{noise(DType::Float32, {5, 8}, 1)};
  const auto before = run(*session, inputs);
#ifndef _WIN32
  std::filesystem::remove_all(options.model_cache_dir);
#endif
  check_same(run(*session, inputs), before, 0);
}

TEST_CASE("a packed weight that is shorter than its kernel reads is packed anew") {
  const TemporaryFolder folder;
  const session::ModelSource source{.path = write(folder, kModel)};
  const SessionOptions options{.model_cache_dir = folder / "c"};
  log_of(source, options);
  const std::string path = std::filesystem::directory_iterator(options.model_cache_dir)->path().string();
  std::ifstream in(path, std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(in), {}};
  in.close();
  // The header: magic [16], sum [16], build [64], bytes of the table, where data begins, bytes of the file. An entry:
  // bytes of its key, where its data is, bytes of it; then the key and a check sum.
  constexpr std::size_t kSum = 16, kBuild = 32, kDataBegin = kBuild + 64 + 8, kEntry = kBuild + 64 + 24;
  const auto number = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  };
  const auto put = [&](std::size_t at, const auto& value) { std::memcpy(file.data() + at, &value, sizeof value); };
  const auto sum = [&](std::size_t from, std::size_t bytes) {
    return content_hash(std::as_bytes(std::span(file)).subspan(from, bytes));
  };
  const std::uint64_t few = 64;
  REQUIRE(number(kEntry + 16) > few);
  put(kEntry + 16, few);
  put(kEntry + 24 + number(kEntry), sum(number(kEntry + 8), few));
  put(kSum, sum(kBuild, number(kDataBegin) - kBuild));
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << file;
  CHECK(!has(log_of(source, options), "damaged"));
  check_same_bits(source, options);
}
