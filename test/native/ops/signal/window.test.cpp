#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Windows are periodic or symmetric") {
  check_op("(int64 n) => (float[A] Y) { Y = HannWindow(n) }", 17, {i64({}, {4})}, {f32({4}, {0, 0.5f, 1, 0.5f})});
  check_op("(int32 n) => (float[A] Y) { Y = HannWindow<periodic=0>(n) }", 17, {i32({}, {3})}, {f32({3}, {0, 1, 0})});
  check_op("(int64 n) => (double[A] Y) { Y = HammingWindow<output_datatype=11>(n) }", 17, {i64({}, {2})},
           {f64({2}, {4.0 / 46, 1})}, 1e-12);
  check_op("(int64 n) => (float[A] Y) { Y = BlackmanWindow<periodic=0>(n) }", 17, {i64({}, {5})},
           {f32({5}, {0, 0.34f, 1, 0.34f, 0})});
}

TEST_CASE("Windows come in every type") {
  check_op("(int64 n) => (uint8[A] Y) { Y = HannWindow<output_datatype=2>(n) }", 17, {i64({}, {4})},
           {u8({4}, {0, 0, 1, 0})});
  check_op("(int64 n) => (int64[A] Y) { Y = HammingWindow<output_datatype=7>(n) }", 17, {i64({}, {2})},
           {i64({2}, {0, 1})});
  check_op("(int64 n) => (float16[A] Y) { Y = HannWindow<output_datatype=10>(n) }", 17, {i64({}, {4})},
           {f16({4}, {0, 0.5, 1, 0.5})});
  check_op("(int64 n) => (bfloat16[A] Y) { Y = BlackmanWindow<output_datatype=16>(n) }", 17, {i64({}, {2})},
           {bf16({2}, {0, 1})});
}

TEST_CASE("Windows of no and of one sample, and of negative size") {
  check_op("(int64 n) => (float[A] Y) { Y = HannWindow(n) }", 17, {i64({}, {0})}, {f32({0}, {})});
  check_op("(int64 n) => (float[A] Y) { Y = HannWindow<periodic=0>(n) }", 17, {i64({}, {1})}, {f32({1}, {1})});
  check_op_fails("(int64 n) => (float[A] Y) { Y = HannWindow(n) }", 17, {i64({}, {-1})}, ErrorCode::InvalidArgument,
                 "negative: -1");
  check_op_fails("(int64 n) => (Y) { Y = HannWindow<output_datatype=8>(n) }", 17, {i64({}, {1})},
                 ErrorCode::InvalidModel, "output_datatype 8");
}

TEST_CASE("MelWeightMatrix has triangles of height one") {
  const std::string_view text =
      "(int64 b, int64 n, int64 r, float l, float u) => (float[A,B] Y) { Y = MelWeightMatrix(b, n, r, l, u) }";
  const auto feeds = [](std::int64_t bands, std::int64_t length, std::int64_t rate, float lower, float upper) {
    return std::vector<Value>{i64({}, {bands}), i64({}, {length}), i64({}, {rate}), f32({}, {lower}), f32({}, {upper})};
  };
  const Tensor y = run_op(text, 17, feeds(8, 16, 8192, 0, 4096))[0].tensor();
  REQUIRE(y.shape() == Shape{9, 8});
  const float first[] = {1, 1, 0, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < 8; ++i) CHECK(y.data<float>()[i] == first[i]);
  for (std::size_t band = 0; band < 8; ++band) {
    float peak = 0;
    for (std::size_t bin = 0; bin < 9; ++bin) peak = std::max(peak, y.data<float>()[bin * 8 + band]);
    CHECK(peak == 1);
  }
  check_op_fails(text, 17, feeds(2, 16, 8192, 0, 50000), ErrorCode::InvalidArgument, "upper_edge_hertz");
  check_op_fails(text, 17, feeds(2, 16, 8192, kNaN, 4096), ErrorCode::InvalidArgument, "edges");
  check_op_fails(text, 17, feeds(2, 16, 0, 0, 4096), ErrorCode::InvalidArgument, "sample_rate 0");
  check_op_fails(text, 17, feeds(-1, 16, 8192, 0, 4096), ErrorCode::InvalidArgument, "num_mel_bins -1");
}

}  // namespace
}  // namespace infernode::test
