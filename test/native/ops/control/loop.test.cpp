#include "ops/op_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// A Loop of `n` iterations over v, whose body declares what it carries and what it collects as given.
std::string loop(std::string_view carried, std::string_view scanned) {
  return cat("(int64 n, float[k] v) => (o, s) { o, s = Loop<body = b (int64 i, bool c, ", carried, " w) => (bool co, ",
             carried, " wo, ", scanned, " sc) { co = Identity(c) wo = Add(w, w) sc = Identity(wo) }>(n, \"\", v) }");
}

}  // namespace

TEST_CASE("a Loop that never runs has the scan outputs' dims from what it carries and what its body declares") {
  const Tensor v = f32({2}, {1, 2});
  for (const auto& [carried, scanned] :
       {std::pair("float[2]", "float[2]"), std::pair("float[q]", "float[2]"), std::pair("float[q]", "float[q]"),
        std::pair("float[q]", "float[p]"), std::pair("float", "float[2]")}) {
    CAPTURE(carried);
    check_op(loop(carried, scanned), 17, {i64({}, {0}), v}, {v, f32({0, 2}, {})});
    check_op(loop(carried, scanned), 17, {i64({}, {1}), v}, {f32({2}, {2, 4}), f32({1, 2}, {2, 4})});
  }
  check_op(
      "(int64 n, bool go, float[a,b] x) => (s) { s = Loop<body = b (int64 i, bool c) => (c, sc) { sc = Transpose(x) "
      "}>(n, go) }",
      17, {i64({}, {3}), b8({}, {false}), f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {f32({0, 3, 2}, {})});
  check_op(
      "(int64 n, bool go, float[k] x) => (o, s) { o, s = Loop<body = b (int64 i, bool c, float[q] w) => (c, w, "
      "float[p,q] "
      "sc) { z = NonZero(w) f = Cast<to=1>(z) g = Transpose(f) sc = MatMul(g, f) }>(n, go, x) }",
      17, {i64({}, {0}), b8({}, {true}), f32({2}, {1, 2})}, {f32({2}, {1, 2}), f32({0, 0, 2}, {})});
}

TEST_CASE("what a Loop that never ran collects goes on") {
  check_op(
      "(int64 n, float[k] v, float[2,3] w, float[1,2] r) => (m, c) { o, s = Loop<body = b (int64 i, bool c, float[2] "
      "w) => (bool co, float[2] wo, float[2] sc) { co = Identity(c) wo = Add(w, w) sc = Identity(wo) }>(n, \"\", v) m "
      "= MatMul(s, w) c = Concat<axis=0>(s, r) }",
      17, {i64({}, {0}), f32({2}, {1, 2}), iota(DType::Float32, {2, 3}), f32({1, 2}, {7, 8})},
      {f32({0, 3}, {}), f32({1, 2}, {7, 8})});
}

TEST_CASE("a value that a Loop that never ran collects twice keeps its dims both times") {
  check_op(
      "(int64 n, float[k] v) => (o, s, t) { o, s, t = Loop<body = b (int64 i, bool c, float[k] w) => (bool co, "
      "float[k] "
      "wo, float[k] sc, float[k] sc) { co = Identity(c) wo = Add(w, w) sc = Neg(w) }>(n, \"\", v) }",
      17, {i64({}, {0}), f32({2}, {1, 2})}, {f32({2}, {1, 2}), f32({0, 2}, {}), f32({0, 2}, {})});
}
