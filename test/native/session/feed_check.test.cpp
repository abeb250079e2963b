#include "session/feed_check.h"

#include <doctest/doctest.h>

#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

Error named(ErrorCode code, const Session& session, const std::vector<Value>& feeds) {
  Error error(code, "it went wrong", {.node = "deep"});
  session::name_feeds(error, session.feeds(), feeds);
  return error;
}

}  // namespace

TEST_CASE("an error of a node says what the run was fed") {
  const auto s = open("(float[M, K] a, float[L, N] b) => (y) { n = Neg(a)  [\"deep\"] y = MatMul(n, b) }");
  const std::vector<Value> feeds{noise(DType::Float32, {1, 2}, 1), noise(DType::Float32, {3, 1}, 1)};
  for (int again = 0; again < 2; ++again) {
    const Error error = error_of([&] { run(*s, feeds); });
    CHECK(error.code() == ErrorCode::ShapeMismatch);
    CHECK(error.context().node == "deep");
    CHECK(error.message().ends_with(" The run was fed 'a' float32[1,2], 'b' float32[3,1]."));
  }
}

TEST_CASE("an error that a brief run ends with says what it was fed") {
  const auto s = open("(float[4] x, int64[1] i) => (y) { y = Gather(x, i) }");
  const auto pick = [&](std::int64_t index) {
    session::PreparedRun prepared =
        prepare(*s, {noise(DType::Float32, {4}, 1), Tensor::of<std::int64_t>({1}, {index})}, all_outputs(*s));
    return prepared.execute_briefly(std::chrono::seconds(10));
  };
  run(*s, {noise(DType::Float32, {4}, 1), Tensor::of<std::int64_t>({1}, {0})});
  REQUIRE(pick(3).has_value());
  CHECK(error_of([&] { pick(4); }).message().ends_with(" The run was fed 'x' float32[4], 'i' int64[1]."));
}

TEST_CASE("feeds are named where they may be what is wrong") {
  const auto s = open("(float[N] x, float[N] z) => (y) { y = Add(x, z) }");
  const std::vector<Value> feeds{noise(DType::Float32, {2}, 1), {}};
  for (const ErrorCode code : {ErrorCode::ShapeMismatch, ErrorCode::InvalidArgument, ErrorCode::OutOfMemory}) {
    const Error error = named(code, *s, feeds);
    CHECK(error.code() == code);
    CHECK(error.message() == "it went wrong. The run was fed 'x' float32[2].");
    CHECK(error.context().node == "deep");
  }
  CHECK(named(ErrorCode::Aborted, *s, feeds).message() == "it went wrong");
  CHECK(named(ErrorCode::Internal, *s, feeds).message() == "it went wrong");
  CHECK(named(ErrorCode::ShapeMismatch, *s, {}).message() == "it went wrong. The run was fed nothing.");
}

TEST_CASE("many feeds, long names and long shapes are cut short") {
  std::string inputs, list;
  for (int i = 0; i < 11; ++i) {
    inputs += cat(i == 0 ? "" : ", ", "float[N] x", i);
    list += cat(i == 0 ? "" : ", ", "x", i);
  }
  const auto many = open(cat("(", inputs, ") => (y) { y = Sum(", list, ") }"));
  const std::vector<Value> feeds(11, noise(DType::Float32, {1}, 1));
  CHECK(named(ErrorCode::ShapeMismatch, *many, feeds).message().ends_with(", 'x7' float32[1] and 3 more."));

  std::vector<session::ValueMetadata> declared(1);
  const std::string name(63, 'n');
  declared[0].name = cat(name, "\u00e4\u00e4");  // the cut would halve a character
  const std::vector<std::int64_t> dims(100, 1);
  std::string shown = "int8[1";
  for (int i = 1; i < 30; ++i) shown += ",1";
  Error error(ErrorCode::ShapeMismatch, "no");
  session::name_feeds(error, declared, std::vector<Value>{Tensor::make(DType::Int8, Shape(std::span(dims)))});
  CHECK(error.message() == cat("no. The run was fed '", name, "...' ", shown, "...."));
}
