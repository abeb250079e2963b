#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("STFT transforms windowed frames") {
  const Tensor x = f32({1, 6, 1}, {1, 2, 3, 4, 5, 6});
  check_op("(float[A,B,1] X, int64 s, int64 n) => (float[A,C,D,2] Y) { Y = STFT(X, s, , n) }", 17,
           {x, i64({}, {2}), i64({}, {4})}, {f32({1, 2, 3, 2}, {10, 0, -2, 2, -2, 0, 18, 0, -2, 2, -2, 0})});
  check_op("(float[A,B,1] X, int64 s, float[W] w) => (float[A,C,D,2] Y) { Y = STFT<onesided=0>(X, s, w) }", 17,
           {x, i64({}, {3}), f32({2}, {1, 0.5f})}, {f32({1, 2, 2, 2}, {2, 0, 0, 0, 6.5f, 0, 1.5f, 0})});
  check_op("(double[A,B,2] X, int32 s) => (double[A,C,D,2] Y) { Y = STFT<onesided=0>(X, s) }", 17,
           {f64({1, 2, 2}, {1, 2, 3, -1}), i32({}, {1})}, {f64({1, 1, 2, 2}, {4, 1, -2, 3})});
}

TEST_CASE("STFT frames are alike one by one and side by side") {
  const Tensor x = noise({3, 400, 1});
  const auto rows = run_op("(float[A,B,1] X, int64 s, int64 n) => (float[A,C,D,2] Y) { Y = STFT(X, s, , n) }", 17,
                           {x, i64({}, {10}), i64({}, {100})})[0]
                        .tensor();
  REQUIRE(rows.shape() == Shape{3, 31, 51, 2});
  const auto one = run_op("(float[A,B,1] X) => (float[A,D,2] Y) { Y = DFT<onesided=1>(X) }", 17,
                          {Tensor::of<float>({1, 100, 1}, x.span<float>().subspan(400 + 70, 100))})[0]
                       .tensor();
  for (std::size_t i = 0; i < 102; ++i) {
    CHECK(rows.data<float>()[(31 + 7) * 102 + i] == doctest::Approx(one.data<float>()[i]).epsilon(1e-5).scale(10));
  }
}

TEST_CASE("STFT knows its shape before it runs") {
  CHECK(infer_op("(float[N,16000,1] X, int64 s, float[400] w) => (Y) { Y = STFT(X, s, w) }", 17,
                 {Value(), i64({}, {160})}) == "tensor(float)[N,98,201,2]");
}

TEST_CASE("STFT refuses frames that cannot be") {
  const auto fails = [](std::int64_t step, std::int64_t length, std::string_view fragment) {
    check_op_fails("(float[A,B,1] X, int64 s, int64 n) => (float[C,D,E,F] Y) { Y = STFT(X, s, , n) }", 17,
                   {f32({1, 4, 1}, {1, 2, 3, 4}), i64({}, {step}), i64({}, {length})}, ErrorCode::InvalidArgument,
                   fragment);
  };
  fails(0, 2, "frame_step");
  fails(-1, 2, "frame_step");
  fails(1, 0, "frame_length");
  fails(1, 5, "exceeds the signal's length");
  check_op_fails("(float[A,B,1] X, int64 s, float[W] w, int64 n) => (float[C,D,E,F] Y) { Y = STFT(X, s, w, n) }", 17,
                 {f32({1, 4, 1}, {1, 2, 3, 4}), i64({}, {1}), f32({3}, {1, 1, 1}), i64({}, {2})},
                 ErrorCode::ShapeMismatch, "the window has 3");
}

}  // namespace
}  // namespace infernode::test
