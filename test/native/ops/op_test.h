#pragma once
// How operators are tested: a graph in ONNX's text form, inputs, expected outputs.
//
//   TEST_CASE("Trilu keeps the upper triangle") {
//     check_op("(float[2,3] X, int64 k) => (float[2,3] Y) { Y = Trilu<upper=1>(X, k) }", 14,
//              {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({}, {1})}, {f32({2, 3}, {0, 2, 3, 0, 0, 6})});
//   }
//
// A case runs with its inputs as feeds, with its inputs as initializers (the kernel may then pack them, inference then
// knows their contents) and its inferred types, symbolic dims and contents are compared with what the kernels really
// made.

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/value_type.h"
#include "kernel/registry.h"
#include "tensor/value.h"

namespace infernode::test {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

inline constexpr double kTolerance = 1e-5;
inline constexpr double kLongSumTolerance = 4e-5;  ///< of many products, of which some cancel others
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// All operators of ops/.
const kernel::Registry& registry();

/// Runs the graph in `text` (the graph's name may be missing) at `opset` and compares every output. Elements of
/// floating types agree within `tolerance` * max(1, |expected|), NaN equals NaN; others are equal.
void check_op(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
              const std::vector<Value>& expected, double tolerance = kTolerance);
/// Inference or run ends in an Error of this code whose message contains `fragment`.
void check_op_fails(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs, ErrorCode code,
                    std::string_view fragment);
/// The outputs, for tests that look at them in their own way.
std::vector<Value> run_op(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                          bool as_constants = false);
/// Inferred type of output 0 without running: "tensor(float)[N,4]"; inputs given here (not empty) count as
/// initializers.
std::string infer_op(std::string_view text, std::int64_t opset, const std::vector<Value>& constants = {});
/// Inferred elements of output 0: "[N,2*M]", or "?" where nothing is known of them.
std::string infer_contents(std::string_view text, std::int64_t opset, const std::vector<Value>& constants = {});
/// The comparison of check_op; empty where they agree, else the first difference.
std::string difference(const Value& actual, const Value& expected, double tolerance = kTolerance);

/// A tensor of any numeric or bool type (8-bit floats and packed types too) from numbers.
Tensor tensor_as(DType type, const Shape& shape, const std::vector<double>& values);
/// First, first + step, ...
Tensor iota(DType type, const Shape& shape, double first = 0, double step = 1);
/// Pseudo-random floats in [-scale, scale), the same for the same seed.
Tensor noise(const Shape& shape, float scale = 1.0f, std::uint32_t seed = 1);

inline Tensor f32(const Shape& shape, std::initializer_list<float> v) { return Tensor::of<float>(shape, v); }
inline Tensor f64(const Shape& shape, std::initializer_list<double> v) { return Tensor::of<double>(shape, v); }
inline Tensor i64(const Shape& shape, std::initializer_list<std::int64_t> v) {
  return Tensor::of<std::int64_t>(shape, v);
}
inline Tensor i32(const Shape& shape, std::initializer_list<std::int32_t> v) {
  return Tensor::of<std::int32_t>(shape, v);
}
inline Tensor i8(const Shape& shape, std::initializer_list<std::int8_t> v) { return Tensor::of<std::int8_t>(shape, v); }
inline Tensor u8(const Shape& shape, std::initializer_list<std::uint8_t> v) {
  return Tensor::of<std::uint8_t>(shape, v);
}
inline Tensor b8(const Shape& shape, std::initializer_list<bool> v) { return Tensor::of<bool>(shape, v); }
inline Tensor str(const Shape& shape, std::initializer_list<std::string> v) {
  return Tensor::of<std::string>(shape, v);
}
inline Tensor f16(const Shape& shape, const std::vector<double>& v) { return tensor_as(DType::Float16, shape, v); }
inline Tensor bf16(const Shape& shape, const std::vector<double>& v) { return tensor_as(DType::BFloat16, shape, v); }

}  // namespace infernode::test
