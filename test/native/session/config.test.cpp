#include "session/config.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "session_test.h"

using namespace infernode;
using session::Config;

TEST_CASE("an entry is text, a switch or a number") {
  const Config config{{"name", "weights.bin"}, {"on", "1"}, {"off", "0"}, {"size", "4096"}, {"negative", "-1"}};
  CHECK(session::text_of(config, "name") == "weights.bin");
  CHECK(session::text_of(config, "absent").empty());
  CHECK(session::is_on(config, "on"));
  CHECK_FALSE(session::is_on(config, "off"));
  CHECK_FALSE(session::is_on(config, "absent"));
  CHECK(session::number_of<std::size_t>(config, "size", "a size", session::kAnyNumber) == 4096);
  CHECK(session::number_of<std::int64_t>(config, "negative", "a number", session::kAnyNumber) == -1);
  CHECK_FALSE(session::number_of<std::size_t>(config, "absent", "a size", session::kAnyNumber));
}

TEST_CASE("what is no number, or none that may be, is refused") {
  const auto small = [](std::size_t n) { return n < 10; };
  for (const char* text : {"", "x", "1x", " 1", "-1", "0x10", "99999999999999999999", "10"}) {
    try {
      (void)session::number_of<std::size_t>(Config{{"size", text}}, "size", "a number under 10", small);
      FAIL("taken: ", text);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::InvalidArgument);
      CHECK(error.message() == cat("size is '", text, "', a number under 10 is expected"));
      CHECK(error.context().expected == "a number under 10");
      CHECK(error.context().actual == text);
    }
  }
}
