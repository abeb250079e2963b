#include "ops/math/random.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/op_test.h"

namespace infernode::test {
namespace {

using ops::Philox;

Tensor only(const std::vector<Value>& outputs) { return outputs.at(0).tensor(); }

struct Moments {
  double mean = 0, variance = 0, least = 0, most = 0;
};

Moments moments(const Tensor& t) {
  const std::vector<float> x = tensor::to_float_vector(t);
  Moments m;
  for (const float v : x) m.mean += static_cast<double>(v) / static_cast<double>(x.size());
  for (const float v : x) m.variance += std::pow(static_cast<double>(v) - m.mean, 2) / static_cast<double>(x.size());
  m.least = static_cast<double>(*std::min_element(x.begin(), x.end()));
  m.most = static_cast<double>(*std::max_element(x.begin(), x.end()));
  return m;
}

bool same(const Tensor& a, const Tensor& b) { return difference(a, b, 0).empty(); }

}  // namespace

TEST_CASE("Philox gives the published answers") {
  // Known answers of the authors' Random123 distribution.
  CHECK(Philox::block({0, 0, 0, 0}, 0, 0) == Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox::block({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u) == Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox::block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Draws are the same on every platform") {
  CHECK(Philox(1).uniform(0) == 0.89468471633509239);
  CHECK(Philox(1).uniform(1) == 0.71126807657669433);
  for (const double x : {-0.25, -1.0, -17.5, -600.0}) CHECK(std::abs(ops::portable_exp(x) / std::exp(x) - 1) < 1e-14);
  for (const double x : {1.0, 0.999, 0.5, 1e-3, 0x1p-53}) CHECK(std::abs(ops::portable_log(x) - std::log(x)) < 1e-14);
  for (double u = 0; u < 1; u += 1.0 / 64) {
    const auto [cosine, sine] = ops::portable_turn(u);
    CHECK(std::abs(cosine - std::cos(u * 2 * 3.14159265358979323846)) < 1e-15 * 8);
    CHECK(std::abs(sine - std::sin(u * 2 * 3.14159265358979323846)) < 1e-15 * 8);
  }
}

TEST_CASE("RandomUniform draws within its bounds, the same for the same seed") {
  const char* text = "() => (float[1000] Y) { Y = RandomUniform<shape=[1000], low=-2.0, high=3.0, seed=7.0>() }";
  const Tensor y = only(run_op(text, 22, {}));
  const Moments m = moments(y);
  CHECK(m.least >= -2);
  CHECK(m.most < 3);
  CHECK(std::abs(m.mean - 0.5) < 0.2);
  CHECK(std::abs(m.variance - 25.0 / 12) < 0.25);
  CHECK(same(y, only(run_op(text, 1, {}))));
  CHECK_FALSE(
      same(y, only(run_op("() => (float[1000] Y) { Y = RandomUniform<shape=[1000], low=-2.0, high=3.0, seed=8.0>() }",
                          22, {}))));
}

TEST_CASE("RandomUniform without a seed draws afresh at every run") {
  const char* text = "() => (Y) { Y = RandomUniform<shape=[16]>() }";
  CHECK_FALSE(same(only(run_op(text, 22, {})), only(run_op(text, 22, {}))));
}

TEST_CASE("RandomUniform stays below its bound in 16-bit types") {
  for (const char* code : {"10", "16"}) {
    const Tensor y =
        only(run_op(cat("() => (Y) { Y = RandomUniform<shape=[4096], seed=1.0, dtype=", code, ">() }"), 22, {}));
    CHECK(moments(y).most < 1);
  }
}

TEST_CASE("RandomNormal has its mean and deviation") {
  for (const char* code : {"1", "11", "10"}) {
    const Tensor y = only(
        run_op(cat("() => (Y) { Y = RandomNormal<shape=[50, 80], mean=1.0, scale=2.0, seed=3.0, dtype=", code, ">() }"),
               1, {}));
    CHECK(y.shape() == Shape{50, 80});
    const Moments m = moments(y);
    CHECK(std::abs(m.mean - 1) < 0.15);
    CHECK(std::abs(m.variance - 4) < 0.4);
  }
  CHECK(infer_op("() => (Y) { Y = RandomNormal<shape=[2, 3], dtype=11>() }", 1) == "tensor(double)[2,3]");
  check_op_fails("() => (Y) { Y = RandomNormal<shape=[2, -3]>() }", 1, {}, ErrorCode::InvalidModel, "negative dim -3");
}

TEST_CASE("Draws like a tensor take its shape and, where it is a float, its type") {
  CHECK(infer_op("(double[N,3] X) => (Y) { Y = RandomNormalLike(X) }", 22) == "tensor(double)[N,3]");
  CHECK(infer_op("(int64[N,3] X) => (Y) { Y = RandomUniformLike<dtype=1>(X) }", 22) == "tensor(float)[N,3]");
  const Tensor y =
      only(run_op("(X) => (Y) { Y = RandomUniformLike<seed=1.0, dtype=1>(X) }", 1, {str({2}, {"a", "b"})}));
  CHECK(y.to_string() == "float32[2]");
  CHECK(only(run_op("(X) => (Y) { Y = RandomNormalLike(X) }", 1, {f32({0, 4}, {})})).shape() == Shape{0, 4});
  CHECK_THROWS_AS(run_op("(X) => (Y) { Y = RandomNormalLike(X) }", 1, {i64({2}, {1, 2})}), Error);
}

TEST_CASE("Bernoulli draws ones as often as its input says") {
  std::vector<double> p(3000, 0.3);
  p[0] = 0;
  p[1] = 1;
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    const Tensor x = tensor_as(type, {3000}, p);
    const Tensor y = only(run_op("(X) => (Y) { Y = Bernoulli<seed=5.0>(X) }", 22, {x}));
    CHECK(y.dtype() == type);
    CHECK(std::abs(moments(y).mean - 0.3) < 0.05);
    const std::vector<float> values = tensor::to_float_vector(y);
    CHECK(values[0] == 0);
    CHECK(values[1] == 1);
    CHECK(std::all_of(values.begin(), values.end(), [](float v) { return v == 0 || v == 1; }));
  }
  for (const char* code : {"2", "3", "4", "5", "6", "7", "9", "12", "13"}) {
    const Tensor y = only(run_op(cat("(X) => (Y) { Y = Bernoulli<seed=5.0, dtype=", code, ">(X) }"), 15,
                                 {tensor_as(DType::Float32, {3000}, p)}));
    const std::vector<std::int64_t> values = tensor::to_int64_vector(y);
    CHECK(std::count(values.begin(), values.end(), 1) > 750);
    CHECK(std::count(values.begin(), values.end(), 1) < 1050);
  }
  CHECK(infer_op("(float[N] X) => (Y) { Y = Bernoulli<dtype=9>(X) }", 15) == "tensor(bool)[N]");
}

TEST_CASE("Multinomial draws classes by their weights") {
  const float ln2 = std::log(2.0f), ln5 = std::log(5.0f);
  const Tensor x = f32({2, 4}, {0, ln2, -kInf, ln5, 100, -100, -100, -100});
  const Tensor y = only(run_op("(X) => (Y) { Y = Multinomial<sample_size=4000, seed=2.0, dtype=7>(X) }", 7, {x}));
  CHECK(y.to_string() == "int64[2,4000]");
  const std::vector<std::int64_t> drawn = tensor::to_int64_vector(y);
  const auto share = [&](std::int64_t c) {
    return static_cast<double>(std::count(drawn.begin(), drawn.begin() + 4000, c)) / 4000;
  };
  CHECK(std::abs(share(0) - 0.125) < 0.03);
  CHECK(std::abs(share(1) - 0.25) < 0.03);
  CHECK(share(2) == 0);
  CHECK(std::abs(share(3) - 0.625) < 0.03);
  CHECK(std::count(drawn.begin() + 4000, drawn.end(), 0) == 4000);
  CHECK(infer_op("(double[N,C] X) => (Y) { Y = Multinomial<sample_size=3>(X) }", 22) == "tensor(int32)[N,3]");
  check_op_fails("(X) => (Y) { Y = Multinomial(X) }", 7, {f32({1, 2}, {kNaN, 0})}, ErrorCode::InvalidArgument, "row 0");
  check_op_fails("(X) => (Y) { Y = Multinomial(X) }", 7, {f32({1, 0}, {})}, ErrorCode::InvalidArgument, "row 0");
  check_op_fails("(X) => (Y) { Y = Multinomial(X) }", 7, {f32({2}, {1, 0})}, ErrorCode::ShapeMismatch,
                 "[batch, classes]");
}

}  // namespace infernode::test
