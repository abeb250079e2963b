#include "tensor/shape.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace infernode;
using namespace infernode::tensor;

namespace {
ErrorCode code_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}
}  // namespace

TEST_CASE("element counts") {
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{2, 3, 4}.numel() == 24);
  CHECK(Shape{2, 3, 4}.numel(1, 3) == 12);
  CHECK(Shape{2, 0}.numel() == 0);
  CHECK(Shape{INT64_MAX, INT64_MAX, 0}.numel() == 0);
  CHECK(code_of([] { (void)Shape{INT64_MAX, 2}.numel(); }) == ErrorCode::OutOfMemory);
  CHECK(code_of([] { (void)Shape{2, -1}.numel(); }) == ErrorCode::InvalidArgument);
}

TEST_CASE("strides and text") {
  CHECK(Shape{2, 3, 4}.strides() == Shape{12, 4, 1});
  CHECK(Shape{}.strides() == Shape{});
  CHECK(Shape{1, 3, 224}.to_string() == "[1,3,224]");
  CHECK(Shape{1, 2, 3, 4, 5, 6, 7, 8}.numel() == 40320);
}

TEST_CASE("axes count from either end") {
  CHECK(normalize_axis(-1, 3) == 2);
  CHECK(normalize_axis(0, 3) == 0);
  CHECK(code_of([] { (void)normalize_axis(3, 3); }) == ErrorCode::InvalidArgument);
  CHECK(code_of([] { (void)normalize_axis(0, 0); }) == ErrorCode::InvalidArgument);
}

TEST_CASE("broadcasting") {
  CHECK(broadcast(Shape{2, 1, 4}, Shape{3, 1}) == Shape{2, 3, 4});
  CHECK(broadcast(Shape{}, Shape{5}) == Shape{5});
  CHECK(broadcast(Shape{1}, Shape{0}) == Shape{0});
  CHECK(code_of([] { (void)broadcast(Shape{2}, Shape{3}); }) == ErrorCode::ShapeMismatch);
  CHECK(broadcast_strides(Shape{3, 1}, Shape{2, 3, 4}) == Shape{0, 1, 0});
  CHECK(broadcast_strides(Shape{2, 1, 4}, Shape{2, 3, 4}) == Shape{4, 0, 1});
  CHECK(code_of([] { (void)broadcast_strides(Shape{2, 3}, Shape{3}); }) == ErrorCode::ShapeMismatch);
}
