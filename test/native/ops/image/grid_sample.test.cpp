#include "ops/op_test.h"

namespace infernode::test {
namespace {

/// Samples a row of four pixels at one height; x runs over the coordinates given.
void check_row(const char* attributes, const Tensor& row, std::initializer_list<float> at,
               std::initializer_list<float> expected) {
  const auto n = static_cast<std::int64_t>(at.size());
  Tensor grid = Tensor::make(DType::Float32, {1, 1, n, 2});
  float* to = grid.mutable_data<float>();
  for (float x : at) {
    *to++ = x;
    *to++ = 0;
  }
  check_op(cat("(float[N,C,H,W] X, float[A,B,D,2] g) => (float[E,F,G,I] Y) { Y = GridSample<", attributes, ">(X, g) }"),
           20, {row, grid}, {f32({1, 1, 1, n}, expected)});
}

TEST_CASE("GridSample reads between pixels and beyond the edges") {
  const Tensor row = f32({1, 1, 1, 4}, {1, 2, 3, 4});
  // Without aligned corners pixel i stands at (2i + 1) / 4 - 1.
  check_row("mode=\"linear\"", row, {-0.75f, -0.5f, 0.75f, 1.0f, -1.25f, 9}, {1, 1.5f, 4, 2, 0, 0});
  check_row("mode=\"linear\", padding_mode=\"border\"", row, {-9, 1.0f, 9, kInf}, {1, 4, 4, 4});
  check_row("mode=\"linear\", padding_mode=\"reflection\"", row, {-1.25f, 1.25f, 1.75f}, {1, 4, 3});
  check_row("mode=\"linear\", align_corners=1", row, {-1, 0, 1}, {1, 2.5f, 4});
  check_row("mode=\"linear\", align_corners=1, padding_mode=\"reflection\"", row, {-1.5f, 1.5f}, {1.75f, 3.25f});
  check_row("mode=\"nearest\"", row, {-0.8f, 0.3f, -1.3f}, {1, 3, 0});
  check_row("mode=\"nearest\", padding_mode=\"reflection\"", row, {-1.3f, 1.8f}, {1, 3});
  check_row("mode=\"cubic\", padding_mode=\"border\"", row, {-0.25f, 0.25f}, {2, 3});
  // Just outside, the cubic filter still reaches the second pixel: weights -0.09375, 0.59375, 0.59375 and -0.09375.
  check_row("mode=\"cubic\", padding_mode=\"border\"", row, {-1, -9, 9, kInf}, {0.90625f, 1, 4, 4});
  check_row("mode=\"linear\"", row, {kNaN, 1e30f}, {0, 0});
  check_row("mode=\"linear\", padding_mode=\"border\"", row, {kNaN}, {1});
}

TEST_CASE("GridSample samples all channels of volumes") {
  const Tensor x = iota(DType::Float32, {1, 2, 2, 2, 2});
  check_op("(float[N,C,D,H,W] X, float[A,B,E,F,3] g) => (float Y) { Y = GridSample<align_corners=1>(X, g) }", 20,
           {x, f32({1, 1, 1, 2, 3}, {0, 0, 0, 1, -1, 1})}, {f32({1, 2, 1, 1, 2}, {3.5f, 5, 11.5f, 13})});
  check_op("(double[N,C,H,W] X, double[A,B,D,2] g) => (double Y) { Y = GridSample<mode=\"bilinear\">(X, g) }", 16,
           {f64({1, 1, 2, 2}, {1, 2, 3, 4}), f64({1, 1, 1, 2}, {0, 0})}, {f64({1, 1, 1, 1}, {2.5})});
  check_op("(int32[N,C,H,W] X, float[A,B,D,2] g) => (int32 Y) { Y = GridSample<mode=\"nearest\">(X, g) }", 20,
           {i32({1, 1, 1, 2}, {7, 1 << 30}), f32({1, 1, 1, 2}, {0.5f, 0})}, {i32({1, 1, 1, 1}, {1 << 30})});
}

TEST_CASE("GridSample takes elements of any type, and sums of those that have them") {
  const auto row = [](const char* type, const char* mode) {
    return cat("(", type, "[N,C,H,W] X, float[A,B,D,2] g) => (", type, " Y) { Y = GridSample<", mode, ">(X, g) }");
  };
  const Tensor grid = f32({1, 1, 4, 2}, {-0.75f, 0, 0, 0, 3, 0, 0.3f, 0}), half = f16({1, 1, 1, 2}, {0, 0});
  const Tensor words = str({1, 1, 1, 4}, {"a", "b", "c", "d"});
  check_op(row("string", "mode=\"nearest\""), 22, {words, grid}, {str({1, 1, 1, 4}, {"a", "c", "", "c"})});
  check_op(row("string", "mode=\"nearest\", padding_mode=\"border\""), 22, {words, grid},
           {str({1, 1, 1, 4}, {"a", "c", "d", "c"})});
  check_op("(string[N,C,H,W] X, float16[A,B,D,2] g) => (Y) { Y = GridSample<mode=\"nearest\">(X, g) }", 22,
           {words, half}, {str({1, 1, 1, 1}, {"c"})});
  for (const char* mode : {"mode=\"linear\"", "mode=\"cubic\""})
    check_op_fails(row("string", mode), 22, {words, grid}, ErrorCode::InvalidModel, "mode 'nearest'");
  const Tensor flags = b8({1, 1, 1, 4}, {false, true, false, false});
  check_op(row("bool", "mode=\"nearest\""), 22, {flags, grid}, {b8({1, 1, 1, 4}, {false, false, false, false})});
  check_op(row("bool", "mode=\"linear\""), 22, {flags, grid}, {b8({1, 1, 1, 4}, {false, true, false, false})});
  check_op(row("bool", "mode=\"cubic\""), 22, {flags, grid}, {b8({1, 1, 1, 4}, {false, true, false, true})});
  const Tensor x = Tensor::make(DType::Complex64, {1, 1, 1, 4}), y = Tensor::make(DType::Complex64, {1, 1, 1, 4});
  constexpr float kIn[] = {0, 1, 1, 0, 2, 0, 0, 3}, kOut[] = {0, 1, 1.5f, 0, 0, 0, 1.8f, 0.3f};
  std::copy_n(kIn, 8, static_cast<float*>(x.mutable_raw()));
  std::copy_n(kOut, 8, static_cast<float*>(y.mutable_raw()));
  check_op(row("complex64", "mode=\"linear\""), 22, {x, grid}, {y});
  // No digit of a whole number is lost.
  check_op(row("int64", "mode=\"nearest\""), 22,
           {i64({1, 1, 1, 2}, {0, 9007199254740993}), f32({1, 1, 1, 2}, {0.5f, 0})},
           {i64({1, 1, 1, 1}, {9007199254740993})});
  check_op(row("int32", "mode=\"linear\""), 22, {i32({1, 1, 1, 2}, {16777217, 16777219}), f32({1, 1, 1, 2}, {0, 0})},
           {i32({1, 1, 1, 1}, {16777218})});
}

TEST_CASE("GridSample refuses grids that do not fit and modes it does not know") {
  const Tensor x = iota(DType::Float32, {1, 1, 2, 2});
  check_op_fails("(float[N,C,H,W] X, float[A,B,D,E] g) => (Y) { Y = GridSample(X, g) }", 20,
                 {x, f32({1, 1, 1, 3}, {0, 0, 0})}, ErrorCode::ShapeMismatch, "does not fit");
  check_op_fails("(float[N,C,H,W] X, float[A,B,D,E] g) => (Y) { Y = GridSample<mode=\"lanczos\">(X, g) }", 20,
                 {x, f32({1, 1, 1, 2}, {0, 0})}, ErrorCode::InvalidModel, "lanczos");
}

TEST_CASE("AffineGrid maps the corners by theta") {
  check_op("(float[N,2,3] t, int64[4] s) => (float Y) { Y = AffineGrid<align_corners=1>(t, s) }", 20,
           {f32({1, 2, 3}, {2, 0, 1, 0, 1, 0}), i64({4}, {1, 1, 1, 2})}, {f32({1, 1, 2, 2}, {-1, 0, 3, 0})});
  check_op("(double[N,2,3] t, int64[4] s) => (double Y) { Y = AffineGrid(t, s) }", 20,
           {f64({1, 2, 3}, {1, 0, 0, 0, 1, 0}), i64({4}, {1, 1, 2, 2})},
           {f64({1, 2, 2, 2}, {-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5})});
  check_op_fails("(float[N,2,3] t, int64[5] s) => (Y) { Y = AffineGrid(t, s) }", 20,
                 {f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), i64({5}, {1, 1, 2, 2, 2})}, ErrorCode::ShapeMismatch, "theta");
}

}  // namespace
}  // namespace infernode::test
