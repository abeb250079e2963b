#include "base/error.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <vector>

#include "base/checked.h"

using namespace infernode;

TEST_CASE("an error carries its code, message and context, and callers up the stack can add to it") {
  try {
    try {
      fail(ErrorCode::ShapeMismatch, "bad dims", {.expected = "[2,3]", .actual = "[3,2]"});
    } catch (Error& e) {
      e.context().node = "conv1";
      e.context().details.push_back("first");
      e.prepend("node conv1: ");
      throw;
    }
    FAIL("did not throw");
  } catch (const std::exception& caught) {
    const auto& e = dynamic_cast<const Error&>(caught);
    CHECK(e.code() == ErrorCode::ShapeMismatch);
    CHECK(std::string(e.what()) == "node conv1: bad dims");
    CHECK(e.context().node == "conv1");
    CHECK(e.context().expected == "[2,3]");
    CHECK(e.context().details == std::vector<std::string>{"first"});
    CHECK(e.context().path.empty());
  }
}

TEST_CASE("every code has its stable name") {
  const std::pair<ErrorCode, const char*> names[] = {{ErrorCode::InvalidModel, "INVALID_MODEL"},
                                                     {ErrorCode::UnsupportedOperator, "UNSUPPORTED_OPERATOR"},
                                                     {ErrorCode::InvalidArgument, "INVALID_ARGUMENT"},
                                                     {ErrorCode::ShapeMismatch, "SHAPE_MISMATCH"},
                                                     {ErrorCode::ProviderUnavailable, "PROVIDER_UNAVAILABLE"},
                                                     {ErrorCode::Aborted, "ABORTED"},
                                                     {ErrorCode::Disposed, "DISPOSED"},
                                                     {ErrorCode::OutOfMemory, "OUT_OF_MEMORY"},
                                                     {ErrorCode::Io, "IO"},
                                                     {ErrorCode::Internal, "INTERNAL"}};
  for (const auto& [code, name] : names) CHECK(std::string(to_string(code)) == name);
}

TEST_CASE("cat joins text, numbers, bools and integer sequences") {
  const std::vector<int64_t> dims{1, -1, 3};
  const std::array<uint8_t, 2> bytes{0, 255};
  const std::vector<int32_t> none;
  CHECK(cat() == "");
  CHECK(cat("a", std::string("b"), std::string_view("c"), 'd') == "abcd");
  CHECK(cat(1, " ", -2, " ", uint8_t{200}, " ", int8_t{-3}, " ", size_t{7}) == "1 -2 200 -3 7");
  CHECK(cat(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()) ==
        "-9223372036854775808 18446744073709551615");
  CHECK(cat(true, false) == "truefalse");
  CHECK(cat(1.5f, " ", 0.1, " ", 0.1f) == "1.5 0.1 0.1");
  CHECK(cat("dims ", dims, bytes, none, std::span(dims).first(1)) == "dims [1,-1,3][0,255][][1]");
  const char* missing = nullptr;
  CHECK(cat(missing) == "(null)");
}

TEST_CASE("INFERNODE_CHECK builds its message only on failure") {
  int built = 0;
  const auto part = [&] {
    ++built;
    return 5;
  };
  INFERNODE_CHECK(1 + 1 == 2, ErrorCode::Internal, "never ", part());
  CHECK(built == 0);
  const auto failing = [&] { INFERNODE_CHECK(built == 1, ErrorCode::InvalidArgument, "got ", part()); };
  CHECK_THROWS_WITH_AS(failing(), "got 5", Error);
}

TEST_CASE_TEMPLATE("checked arithmetic throws exactly where the result does not fit", T, int8_t, uint8_t, int16_t) {
  const int low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const int step = sizeof(T) == 1 ? 1 : 257;
  size_t wrong = 0;
  const auto agrees = [&](int exact, auto compute) {
    try {
      const T got = compute();
      return got == exact && exact >= low && exact <= high;
    } catch (const Error&) {
      return exact < low || exact > high;
    }
  };
  for (int a = low; a <= high; a += step) {
    for (int b = low; b <= high; b += step) {
      const T x = static_cast<T>(a), y = static_cast<T>(b);
      wrong += !agrees(a + b, [&] { return checked_add<T>(x, y); });
      wrong += !agrees(a - b, [&] { return checked_sub<T>(x, y); });
      wrong += !agrees(a * b, [&] { return checked_mul<T>(x, y); });
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("checked arithmetic reports the code that the caller chose") {
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::Internal;
  };
  CHECK(code_of([] { return checked_mul(SIZE_MAX, 2); }) == ErrorCode::OutOfMemory);
  CHECK(code_of([] { return checked_add(INT64_MAX, 1, ErrorCode::InvalidModel); }) == ErrorCode::InvalidModel);
  CHECK(code_of([] { return checked_cast<size_t>(-1); }) == ErrorCode::InvalidArgument);
  CHECK(checked_cast<uint8_t>(int64_t{255}) == 255);
  CHECK_THROWS_AS(checked_cast<int32_t>(int64_t{1} << 31), Error);
}

TEST_CASE("align_up and ceil_div") {
  CHECK(align_up<size_t>(0, 64) == 0);
  CHECK(align_up<size_t>(1, 64) == 64);
  CHECK(align_up<size_t>(64, 64) == 64);
  CHECK(align_up<size_t>(65, 64) == 128);
  CHECK_THROWS_AS(align_up<size_t>(SIZE_MAX, 64), Error);
  CHECK(ceil_div(0, 3) == 0);
  CHECK(ceil_div(7, 3) == 3);
  CHECK(ceil_div(INT64_MAX, 2) == (int64_t{1} << 62));
}
