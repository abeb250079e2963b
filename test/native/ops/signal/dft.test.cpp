#include <complex>
#include <numbers>

#include "ops/op_test.h"

namespace infernode::test {
namespace {

using Complexes = std::vector<std::complex<double>>;

/// The definition, in double precision.
Complexes slow_dft(const Complexes& x, std::size_t length, bool inverse) {
  Complexes out(length);
  for (std::size_t k = 0; k < length; ++k) {
    for (std::size_t n = 0; n < std::min(length, x.size()); ++n) {
      const double turn = 2 * std::numbers::pi * static_cast<double>(k * n % length) / static_cast<double>(length);
      out[k] += x[n] * std::polar(1.0, inverse ? turn : -turn);
    }
    if (inverse) out[k] /= static_cast<double>(length);
  }
  return out;
}

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> out;
  for (const float v : tensor::to_float_vector(t)) out.push_back(v);
  return out;
}

/// Checks the DFT of noise [rows, present, parts] of `type` along axis 1.
void check_length(DType type, const char* name, std::int64_t rows, std::int64_t present, std::int64_t length,
                  std::int64_t parts, bool inverse, double tolerance) {
  const Tensor plain = noise({rows, present, parts});
  const Tensor x = tensor_as(type, plain.shape(), numbers(plain));
  const std::vector<double> values = numbers(x);
  std::vector<double> expected;
  for (std::int64_t r = 0; r < rows; ++r) {
    Complexes row;
    for (std::int64_t k = 0; k < present; ++k) {
      const auto at = static_cast<std::size_t>((r * present + k) * parts);
      row.emplace_back(values[at], parts == 2 ? values[at + 1] : 0.0);
    }
    for (const auto& v : slow_dft(row, static_cast<std::size_t>(length), inverse)) {
      expected.push_back(v.real());
      expected.push_back(v.imag());
    }
  }
  CAPTURE(length);
  CAPTURE(rows);
  check_op(std::string("(") + name + "[A,B,C] X, int64 n) => (" + name +
               "[A,D,2] Y) { Y = DFT<axis=1, inverse=" + (inverse ? "1" : "0") + ">(X, n) }",
           17, {x, i64({}, {length})}, {tensor_as(type, {rows, length, 2}, expected)}, tolerance);
}

TEST_CASE("DFT of any length is that of the definition") {
  for (const std::int64_t n :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 19, 26, 31, 32, 45, 64, 97, 100, 121, 128, 210, 251, 256}) {
    check_length(DType::Float64, "double", 1, n, n, 1, false, 1e-12);
    check_length(DType::Float32, "float", 1, n, n, 2, false, 2e-5);
    check_length(DType::Float32, "float", 11, n, n, 2, true, 1e-5);
    check_length(DType::Float32, "float", 5, n, n, 1, false, 2e-5);
  }
  check_length(DType::Float32, "float", 2, 1000, 1000, 1, false, 1e-4);
}

TEST_CASE("DFT pads with zeros or drops what is beyond dft_length") {
  check_length(DType::Float64, "double", 3, 5, 8, 1, false, 1e-12);
  check_length(DType::Float64, "double", 3, 5, 9, 2, true, 1e-12);
  check_length(DType::Float64, "double", 3, 9, 4, 1, false, 1e-12);
  check_length(DType::Float64, "double", 3, 9, 5, 1, false, 1e-12);
}

TEST_CASE("DFT takes 16-bit floats") {
  check_length(DType::Float16, "float16", 2, 8, 8, 1, false, 2e-3);
  check_length(DType::BFloat16, "bfloat16", 2, 12, 12, 2, false, 2e-2);
}

TEST_CASE("DFT runs along any axis but the last") {
  const Tensor x = iota(DType::Float32, {2, 3, 1, 1});
  check_op("(float[2,3,1,1] X, int64 a) => (float[A,B,C,D] Y) { Y = DFT(X, , a) }", 20, {x, i64({}, {0})},
           {f32({2, 3, 1, 2}, {3, 0, 5, 0, 7, 0, -3, 0, -3, 0, -3, 0})});
  check_op("(float[2,3,1,1] X, int64 a) => (float[A,B,C,D] Y) { Y = DFT(X, , a) }", 20, {x, i64({}, {-4})},
           {f32({2, 3, 1, 2}, {3, 0, 5, 0, 7, 0, -3, 0, -3, 0, -3, 0})});
  check_op("(float[A,B,1,1] X) => (float[A,B,1,2] Y) { Y = DFT(X) }", 20, {x},
           {f32({2, 3, 1, 2}, {0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0})});
  check_op_fails("(float[A,B] X, int64 a) => (float[C,D] Y) { Y = DFT(X, , a) }", 20,
                 {f32({2, 1}, {1, 2}), i64({}, {1})}, ErrorCode::InvalidArgument, "axis 1");
}

TEST_CASE("DFT gives half a spectrum and takes one") {
  check_op("(float[A,B,1] X) => (float[A,C,2] Y) { Y = DFT<onesided=1>(X) }", 17, {f32({1, 4, 1}, {1, 2, 3, 4})},
           {f32({1, 3, 2}, {10, 0, -2, 2, -2, 0})});
  check_op("(float[A,B,1] X) => (float[A,C,2] Y) { Y = DFT<onesided=1>(X) }", 20, {f32({1, 3, 1}, {1, 1, 1})},
           {f32({1, 2, 2}, {3, 0, 0, 0})});
  check_op("(float[A,B,2] X) => (float[A,C,1] Y) { Y = DFT<onesided=1, inverse=1>(X) }", 17,
           {f32({1, 3, 2}, {10, 5, -2, 2, -2, 7})}, {f32({1, 4, 1}, {1, 2, 3, 4})});
  check_op("(float[A,B,2] X, int64 n) => (float[A,C,1] Y) { Y = DFT<onesided=1, inverse=1>(X, n) }", 20,
           {f32({1, 2, 2}, {3, 0, 0, 0}), i64({}, {3})}, {f32({1, 3, 1}, {1, 1, 1})});
  CHECK(infer_op("(float[N,512,1] X) => (Y) { Y = DFT<onesided=1>(X) }", 20) == "tensor(float)[N,257,2]");
}

TEST_CASE("DFT of a real signal is exactly real at frequency zero and at half the rate") {
  const Tensor y = run_op("(float[A,B,C,1] X) => (float[A,B,C,2] Y) { Y = DFT<axis=1>(X) }", 17,
                          {iota(DType::Float32, {1, 10, 10, 1})})[0]
                       .tensor();
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(y.data<float>()[2 * i + 1] == 0);
    CHECK(y.data<float>()[100 + 2 * i + 1] == 0);
    CHECK(y.data<float>()[100 + 2 * i] == doctest::Approx(-50));
  }
}

TEST_CASE("One row's NaN stays in that row") {
  const Tensor x = f32({2, 2, 1}, {kNaN, 1, 1, 1});
  const Tensor y = run_op("(float[A,B,1] X) => (float[A,B,2] Y) { Y = DFT(X) }", 20, {x})[0].tensor();
  REQUIRE(y.shape() == Shape{2, 2, 2});
  CHECK(std::isnan(y.data<float>()[0]));
  const float second[] = {2, 0, 0, 0};
  for (std::size_t i = 0; i < 4; ++i) CHECK(y.data<float>()[4 + i] == second[i]);
}

TEST_CASE("DFT of an empty batch is empty, one of length zero an error") {
  check_op("(float[0,4,1] X) => (float[A,B,C] Y) { Y = DFT(X) }", 20, {f32({0, 4, 1}, {})}, {f32({0, 4, 2}, {})});
  const auto fails = [](const Tensor& x, std::int64_t n, ErrorCode code, std::string_view fragment) {
    check_op_fails("(float[A,B,C] X, int64 n) => (float[D,E,F] Y) { Y = DFT(X, n) }", 20, {x, i64({}, {n})}, code,
                   fragment);
  };
  fails(f32({1, 1, 1}, {1}), 0, ErrorCode::InvalidArgument, "length must be positive");
  fails(f32({1, 1, 1}, {1}), -5, ErrorCode::InvalidArgument, "length must be positive");
  fails(f32({1, 1, 3}, {1, 2, 3}), 2, ErrorCode::ShapeMismatch, "last axis");
  check_op_fails("(float[A,B,C] X) => (float[D,E,F] Y) { Y = DFT(X) }", 20, {f32({1, 0, 1}, {})},
                 ErrorCode::InvalidArgument, "length must be positive");
}

}  // namespace
}  // namespace infernode::test
