#include "ops/op_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("Scan along other axes and backwards") {
  check_op(
      "(float[2] s, float[2,3] x) => (float[2] f, float[2,3] y) { f, y = Scan<num_scan_inputs = 1, scan_input_axes = "
      "[1], scan_output_axes = [-1], scan_input_directions = [1], body = b (float[2] a, float[2] e) => (g, h) { g = "
      "Add(a, e) h = Identity(g) }>(s, x) }",
      13, {f32({2}, {0, 0}), f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {f32({2}, {6, 15}), f32({2, 3}, {3, 5, 6, 6, 11, 15})});
}

TEST_CASE("Scan refuses attributes that do not fit its inputs and outputs") {
  const auto text = [](std::string_view attributes) {
    return cat("(float[2] s, float[3,2] x) => (f, y) { f, y = Scan<", attributes,
               ", body = b (float[2] a, float[2] e) => (g, h) { g = Add(a, e) h = Identity(g) }>(s, x) }");
  };
  const std::vector<Value> inputs{f32({2}, {0, 0}), f32({3, 2}, {1, 2, 3, 4, 5, 6})};
  const auto refused = [&](std::string_view attributes, ErrorCode code, std::string_view part) {
    check_op_fails(text(attributes), 13, inputs, code, part);
  };
  refused("num_scan_inputs = 0", ErrorCode::InvalidModel, "num_scan_inputs is 0");
  refused("num_scan_inputs = 3", ErrorCode::InvalidModel, "num_scan_inputs is 3");
  refused("num_scan_inputs = 2305843009213693952", ErrorCode::InvalidModel, "num_scan_inputs");
  refused("num_scan_inputs = 1, scan_input_axes = [0, 1]", ErrorCode::InvalidModel, "scan_input_axes has 2 elements");
  refused("num_scan_inputs = 1, scan_output_directions = [0, 1]", ErrorCode::InvalidModel, "scan_output_directions");
  refused("num_scan_inputs = 1, scan_input_axes = [2]", ErrorCode::InvalidArgument, "scan_input_axes 2");
  refused("num_scan_inputs = 1, scan_output_axes = [3]", ErrorCode::InvalidArgument, "scan_output_axes 3");
}

TEST_CASE("Scan of version 8 takes the lengths of its batches") {
  constexpr std::string_view text =
      "(int64[B] n, float[B,1] s, float[B,T,1] x) => (f, y) { f, y = Scan<num_scan_inputs = 1, body = b (float[1] a, "
      "float[1] e) => (g, h) { g = Add(a, e) h = Identity(g) }>(n, s, x) }";
  const Tensor s = f32({2, 1}, {0, 10}), x = f32({2, 2, 1}, {1, 2, 3, 4});
  check_op(text, 8, {i64({2}, {2, 1}), s, x}, {f32({2, 1}, {3, 13}), f32({2, 2, 1}, {1, 3, 13, 0})});
  check_op_fails(text, 8, {i64({2}, {2, 3}), s, x}, ErrorCode::ShapeMismatch, "3 and 2 elements");
  check_op_fails(text, 8, {i64({2}, {2, -1}), s, x}, ErrorCode::InvalidArgument, "-1");
  check_op_fails(text, 8, {i64({1}, {2}), s, x}, ErrorCode::ShapeMismatch, "shorter than the batch");
  check_op(
      "(float[B,1] s, float[B,T,1] x) => (f) { f = Scan<num_scan_inputs = 1, body = b (float[1] a, float[1] e) => "
      "(g, h) { g = Add(a, e) h = Identity(g) }>(, s, x) }",
      8, {s, x}, {f32({2, 1}, {3, 17})});
}

TEST_CASE("a Scan over nothing has its outputs' dims from its inputs and from what its body declares") {
  const auto scan = [](std::string_view one) {
    return cat("(float[T,k] x) => (s) { s = Scan<num_scan_inputs = 1, body = b (", one, " e) => (", one,
               " h) { h = Add(e, e) }>(x) }");
  };
  for (const char* one : {"float[2]", "float[q]", "float"}) {
    CAPTURE(one);
    check_op(scan(one), 17, {f32({0, 2}, {})}, {f32({0, 2}, {})});
  }
  check_op(
      "(float[a] s, float[a,T] x) => (f, y) { f, y = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes "
      "= [-1], body = b (float[q] a, float[q] e) => (g, h) { g = Add(a, e) h = Identity(g) }>(s, x) }",
      17, {f32({3}, {1, 2, 3}), f32({3, 0}, {})}, {f32({3}, {1, 2, 3}), f32({3, 0}, {})});
}

TEST_CASE("Scan of version 8 takes batches and sequences of none") {
  constexpr std::string_view text =
      "(int64[B] n, float[B,k] s, float[B,T,k] x) => (f, y) { f, y = Scan<num_scan_inputs = 1, body = b (float[q] a, "
      "float[q] e) => (g, h) { g = Add(a, e) h = Identity(g) }>(n, s, x) }";
  check_op(text, 8, {i64({2}, {0, 1}), f32({2, 1}, {5, 10}), f32({2, 2, 1}, {1, 2, 3, 4})},
           {f32({2, 1}, {5, 13}), f32({2, 2, 1}, {0, 0, 13, 0})});
  check_op(text, 8, {i64({0}, {}), f32({0, 2}, {}), f32({0, 3, 2}, {})}, {f32({0, 2}, {}), f32({0, 3, 2}, {})});
}
