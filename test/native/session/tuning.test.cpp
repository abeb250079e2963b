// SessionOptions::tuning.
#include <fstream>
#include <iterator>

#include "session/loader.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;
using session::Tuning;

namespace {

/// Two convolutions of images of `size`.
std::string model(std::string_view size) {
  return cat("(float[N,24,", size, "] x) => (y) <", weight("v", {32, 24, 3, 3}, 1), ", ",
             weight("w", {40, 32, 3, 3}, 2),
             "> { t = Conv <pads = [1,1,1,1]> (x, v)  u = Relu(t)  y = Conv <pads = [1,1,1,1]> (u, w) }");
}

const std::vector<Value>& inputs() {
  static const std::vector<Value> one{noise(DType::Float32, {2, 24, 20, 20}, 3)};
  return one;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The trace of a run.
std::string trace(Session& session) {
  session.start_profiling();
  run(session, inputs());
  return session.end_profiling().json;
}

constexpr std::string_view kMeasured = "\"method_tuning\":\"measured\"",
                           kKept = "\"method_tuning\":\"measured earlier\"";

std::vector<std::filesystem::path> method_files(const TemporaryFolder& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".methods") out.push_back(entry.path());
  return out;
}

}  // namespace

TEST_CASE("measured methods give the answers of those that the model chooses, and stand in the trace") {
  const TemporaryFolder folder;
  for (const passes::Level level : {passes::Level::Basic, passes::Level::All}) {
    SessionOptions options{.level = level, .profile_prefix = folder / "trace"};
    const auto plain = open(model("20,20"), options);
    options.tuning = Tuning::kMeasure;
    const auto measured = open(model("20,20"), options);
    check_same(run(*measured, inputs()), run(*plain, inputs()), 1e-4);
    CHECK(count(trace(*measured), kMeasured) == 2);
    CHECK(count(trace(*measured), "\"method\":\"") == 2);
    CHECK(count(trace(*plain), "\"method") == 0);
  }
}

TEST_CASE("a profile from the load on names the methods that the model expects to be the quickest") {
  const TemporaryFolder folder;
  for (const passes::Level level : {passes::Level::Basic, passes::Level::All}) {
    const auto session = open(model("20,20"), {.level = level, .profiling = true, .profile_prefix = folder / "trace"});
    run(*session, inputs());
    const std::string json = session->end_profiling().json;
    CHECK(count(json, "\"expected_method\":\"") == 2);
    CHECK(count(json, "\"method") == 0);
  }
}

TEST_CASE("sizes that are not known leave the choice to the model") {
  const TemporaryFolder folder;
  SessionOptions options{.profile_prefix = folder / "trace", .tuning = Tuning::kMeasure};
  CHECK(count(trace(*open(model("H,W"), options)), "\"method") == 0);
  options.free_dimensions = {{"H", 20}, {"W", 20}};
  CHECK(count(trace(*open(model("H,W"), options)), kMeasured) == 2);
}

TEST_CASE("what was measured is kept in the cache's folder, by threads") {
  const TemporaryFolder folder;
  SessionOptions options{
      .profile_prefix = folder / "trace", .model_cache_dir = folder.path().string(), .tuning = Tuning::kMeasure};
  const auto first = open(model("20,20"), options);
  CHECK(count(trace(*first), kMeasured) == 2);
  CHECK(method_files(folder).size() == 1);
  const auto second = open(model("20,20"), options);
  CHECK(count(trace(*second), kKept) == 2);
  check_same(run(*second, inputs()), run(*first, inputs()), 0);

  std::fstream(method_files(folder)[0], std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-2, std::ios::end)
      .put('?');
  options.log_severity = LogSeverity::Error;
  CHECK(count(trace(*open(model("20,20"), options)), kMeasured) == 2);
  CHECK(count(trace(*open(model("20,20"), options)), kKept) == 2);

  options.intra_op_threads = 1;
  CHECK(count(trace(*open(model("20,20"), options)), kMeasured) == 2);
  CHECK(method_files(folder).size() == 2);
  options.tuning = Tuning::kOff;
  CHECK(count(trace(*open(model("20,20"), options)), "\"method") == 0);
}

TEST_CASE("products of known sizes are measured where there is a matrix unit") {
  const TemporaryFolder folder;
  const std::size_t measured = engine()->cpu_rung() == CpuRung::Amx ? 1 : 0;
  const std::vector<Value> x{noise(DType::Float32, {40, 75}, 1)};
  for (const char* nodes : {"y = MatMul(x, w)", "y = Gemm(x, w)", "t = MatMul(x, w)  y = Relu(t)"}) {
    CAPTURE(nodes);
    const std::string text = cat("(float[40,75] x) => (y) <", weight("w", {75, 50}, 2), "> { ", nodes, " }");
    SessionOptions options{.profile_prefix = folder / "trace"};
    const auto plain = open(text, options);
    options.tuning = Tuning::kMeasure;
    const auto tuned = open(text, options);
    check_same(run(*tuned, x), run(*plain, x), 1e-4);
    tuned->start_profiling();
    run(*tuned, x);
    CHECK(count(tuned->end_profiling().json, kMeasured) == measured);
  }
  const auto symbols = open(cat("(float[N,75] x) => (y) <", weight("w", {75, 50}, 2), "> { y = MatMul(x, w) }"),
                            {.profile_prefix = folder / "trace", .tuning = Tuning::kMeasure});
  symbols->start_profiling();
  run(*symbols, x);
  CHECK(count(symbols->end_profiling().json, kMeasured) == 0);
}

TEST_CASE("nodes that a provider takes are not measured") {
  const TemporaryFolder folder;
  const SessionOptions options{
      .providers = {{"null", {}}}, .profile_prefix = folder / "trace", .tuning = Tuning::kMeasure};
  const std::string json = trace(*open(model("20,20"), options));
  CHECK(has(json, "\"provider\":\"null\""));
  CHECK(count(json, "\"method") == 0);
}
