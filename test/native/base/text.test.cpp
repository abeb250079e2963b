#include <doctest/doctest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "base/task.h"
#include "base/text/edit_distance.h"
#include "base/text/json.h"

using namespace infernode;

TEST_CASE("JSON strings escape what JSON forbids and repair broken UTF-8") {
  CHECK(json_string("") == "\"\"");
  CHECK(json_string("a\"b\\c\n\t\r") == R"("a\"b\\c\n\t\r")");
  CHECK(json_string(std::string_view("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\x7f\"");
  CHECK(json_string("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  const std::string bad = "\xef\xbf\xbd";
  for (const char* text : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xc3"}) {
    std::string expected = "\"";
    for (const char* c = text; *c != '\0'; ++c) expected += bad;
    CHECK(json_string(text) == expected + '"');
  }
}

TEST_CASE("edit distance counts edits and swaps, ignoring case") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("teh", "the") == 1);
  CHECK(edit_distance("ABC", "abc") == 0);
}

TEST_CASE("the nearest name is found when one is near, and only then") {
  const std::vector<std::string> options{"intraOpNumThreads", "interOpNumThreads", "enableCpuMemArena", "logId"};
  CHECK(nearest_name("intraOpNumThread", options) == "intraOpNumThreads");
  CHECK(nearest_name("interOpNumThread", options) == "interOpNumThreads");
  CHECK(nearest_name("enableCPUMemArena", options) == "enableCpuMemArena");
  CHECK(nearest_name("logID", options) == "logId");
  CHECK(nearest_name("logId", options) == "logId");
  CHECK(nearest_name("somethingElse", options).empty());
  CHECK(nearest_name(std::string(100000, 'x'), options).empty());
  CHECK(nearest_name("x", std::vector<std::string>{}).empty());
  const std::array<std::string_view, 2> short_names{"a", "b"};
  CHECK(nearest_name("z", std::span<const std::string_view>(short_names)).empty());
}

TEST_CASE("a logger passes on what reaches its threshold") {
  std::vector<std::string> lines;
  const Logger logger(LogSeverity::Warning, "main",
                      [&](LogSeverity severity, std::string_view category, std::string_view text) {
                        lines.push_back(cat(to_string(severity), "|", category, "|", text));
                      });
  logger.log(LogSeverity::Info, "c", "no");
  logger.write(LogSeverity::Warning, "planner", "arena ", 12, " bytes");
  const Logger verbose = logger.with(LogSeverity::Verbose, "session");
  verbose.write(LogSeverity::Verbose, "", "v");
  CHECK(lines == std::vector<std::string>{"warning|planner|arena 12 bytes", "verbose||v"});
  CHECK(verbose.id() == "session");
  CHECK(logger.enabled(LogSeverity::Fatal));
  CHECK_FALSE(logger.enabled(LogSeverity::Info));
}

TEST_CASE("a logger writes control characters as text") {
  std::string line;
  const Logger logger(LogSeverity::Verbose, {},
                      [&](LogSeverity, std::string_view, std::string_view text) { line = text; });
  logger.write(LogSeverity::Warning, "c", "a\nb\x1b[2Jc\x7f\t\xc2\x9b \xc3\xa9");
  CHECK(line == "a\\nb\\x1b[2Jc\\x7f\\x09\xc2\\x9b \xc3\xa9");
}

TEST_CASE("a logger may be used from several threads, and a sink that throws is survived") {
  size_t messages = 0;
  const Logger logger(LogSeverity::Verbose, {}, [&](LogSeverity, std::string_view, std::string_view) {
    if (++messages % 2 == 0) throw std::string("sink");
  });
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([logger] {
      for (int i = 0; i < 100; ++i) logger.log(LogSeverity::Error, "t", "message");
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(messages == 300);
}

namespace {
int twice(int x) { return 2 * x; }
int call(FunctionRef<int(int)> f, int x) { return f(x); }
}  // namespace

TEST_CASE("FunctionRef calls lambdas, functions and const callables without copying them") {
  int calls = 0;
  auto counting = [&calls](int x) mutable {
    ++calls;
    return x + 1;
  };
  CHECK(call(counting, 1) == 2);
  CHECK(call(twice, 4) == 8);
  CHECK(call(&twice, 5) == 10);
  const auto constant = [](int x) { return -x; };
  CHECK(call(constant, 3) == -3);
  CHECK(calls == 1);
  CHECK_FALSE(FunctionRef<void()>());
}

TEST_CASE("a task owns move-only things and frees them") {
  auto value = std::make_shared<int>(1);
  {
    Task task = [held = std::make_unique<std::shared_ptr<int>>(value)] { ++**held; };
    Task moved = std::move(task);
    CHECK_FALSE(task);
    moved();
    CHECK(value.use_count() == 2);
  }
  CHECK(*value == 2);
  CHECK(value.use_count() == 1);
}
