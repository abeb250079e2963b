// SessionOptions::float32_precision: sessions of different precision over one model keep to their own weights.

#include <cstring>
#include <fstream>

#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;
using microkernels::Float32Precision;

namespace {

struct Model {
  std::string name;
  std::string text;
  std::vector<Value> inputs;
  std::int64_t depth;  ///< of the sums
};

std::vector<Model> models() {
  std::vector<Model> all;
  for (const std::int64_t rows : {1, 3, 20}) {
    all.push_back({"MatMul",
                   cat("(float[N,75] x) => (y) <", weight("w", {75, 50}, 1), "> { y = MatMul(x, w) }"),
                   {noise(DType::Float32, {rows, 75}, 2)},
                   75});
    all.push_back({"Gemm",
                   cat("(float[N,75] x) => (y) <", weight("w", {50, 75}, 1), ", ", weight("b", {50}, 3),
                       "> { t = Gemm <transB = 1> (x, w, b)  y = Relu(t) }"),
                   {noise(DType::Float32, {rows, 75}, 2)},
                   75});
  }
  all.push_back({"two inputs",
                 "(float[2,20,33] x, float[2,33,19] z) => (y) { y = MatMul(x, z) }",
                 {noise(DType::Float32, {2, 20, 33}, 1), noise(DType::Float32, {2, 33, 19}, 2)},
                 33});
  all.push_back(
      {"Conv",
       cat("(float[1,3,20,20] x) => (y) <", weight("v", {32, 3, 3, 3}, 1), ", ", weight("w", {40, 32, 3, 3}, 2),
           "> { t = Conv <pads = [1,1,1,1]> (x, v)  u = Relu(t)  y = Conv <pads = [1,1,1,1]> (u, w) }"),
       {noise(DType::Float32, {1, 3, 20, 20}, 3)},
       288 * 4});
  // Blocks between nodes: residuals, windows of 3x3, depthwise ones, pools, channels that fill no block.
  all.push_back({"blocks",
                 cat("(float[2,3,37,35] x) => (y) <", weight("a", {24, 3, 3, 3}, 1), ", ", weight("b", {24}, 2), ", ",
                     weight("d", {24, 1, 3, 3}, 3), ", ", weight("e", {40, 24, 1, 1}, 4), ", ",
                     weight("f", {40, 40, 3, 3}, 5), ", ", weight("g", {32, 40, 1, 1}, 6), ", ",
                     weight("h", {32, 32, 3, 3}, 7), ", ", weight("i", {40, 64, 3, 3}, 8),
                     "> { s = Conv <pads = [1,1,1,1], strides = [2,2]> (x, a, b)  t = Relu(s) "
                     "p = MaxPool <kernel_shape = [3,3], pads = [1,1,1,1]> (t) "
                     "u = Conv <group = 24, pads = [1,1,1,1]> (p, d)  k = Relu(u)  v = Conv(k, e) "
                     "w = Conv <pads = [1,1,1,1]> (v, f)  z = Add(w, v)  c = Relu(z)  m = Conv(c, g) "
                     "n = Conv <pads = [1,1,1,1]> (m, h)  o = Sigmoid(n)  l = Mul(n, o)  q = Add(l, m) "
                     "r = Concat <axis = 1> (l, q)  y = Conv <strides = [2,2]> (r, i) }"),
                 {noise(DType::Float32, {2, 3, 37, 35}, 3)},
                 std::int64_t{1} << 34});  // each sum is of numbers larger than the one before
  all.push_back(
      {"along a line",
       cat("(float[2,20,75] x) => (y) <", weight("w", {40, 20, 3}, 1), ", ", weight("b", {40}, 2), ", ",
           weight("v", {40, 40, 5}, 3), ", ", weight("u", {40, 40, 2}, 4),
           "> { t = Conv <pads = [1,1]> (x, w, b)  g = Relu(t)  r = Conv <pads = [2,2]> (g, v)  a = Add(r, t) "
           "s = Conv <pads = [-1,4], strides = [3]> (a, u)  y = Relu(s) }"),
       {noise(DType::Float32, {2, 20, 75}, 3)},
       20000});
  all.push_back({"few positions",
                 cat("(float[1,64,4,4] x) => (y) <", weight("w", {64, 64, 1, 1}, 1), "> { y = Conv(x, w) }"),
                 {noise(DType::Float32, {1, 64, 4, 4}, 3)},
                 64});
  all.push_back({"LSTM",
                 cat("(float[6,2,40] x) => (y) <", weight("w", {1, 144, 40}, 1), ", ", weight("r", {1, 144, 36}, 2),
                     "> { y = LSTM <hidden_size = 36> (x, w, r) }"),
                 {noise(DType::Float32, {6, 2, 40}, 3)},
                 76});
  for (const int causal : {0, 1}) {
    all.push_back(
        {"attention",
         cat("(float[1,75,80] q, float[1,75,80] k, float[1,75,80] v) => (y) { y = com.microsoft.MultiHeadAttention ",
             "<num_heads = 2, unidirectional = ", causal, "> (q, k, v) }"),
         {noise(DType::Float32, {1, 75, 80}, 1), noise(DType::Float32, {1, 75, 80}, 2),
          noise(DType::Float32, {1, 75, 80}, 3)},
         75});
  }
  return all;
}

std::string write(const TemporaryFolder& folder, const Model& model) {
  const std::string path = folder / "model.onnx";
  const std::vector<std::byte> bytes = model_bytes(model.text);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::vector<float> answer(Session& session, const Model& model) {
  const Tensor y = run(session, model.inputs)[0].tensor();
  return {y.data<float>(), y.data<float>() + y.numel()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("answers of lower precision lie within it") {
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const std::vector<float> exact = answer(*open(model.text), model);
    const std::vector<float> high = answer(*open(model.text, {.float32_precision = Float32Precision::kHigh}), model);
    const std::vector<float> medium =
        answer(*open(model.text, {.float32_precision = Float32Precision::kMedium}), model);
    const double scale = std::sqrt(static_cast<double>(model.depth));  // noise is below 1
    CHECK(largest_difference(high, exact) <= std::ldexp(scale, -14));
    CHECK(largest_difference(medium, exact) <= std::ldexp(scale, -7));
    if (engine()->cpu_rung() != CpuRung::Bf16) continue;
    CHECK(high == exact);
    CHECK(medium != exact);
  }
}

TEST_CASE("answers of medium precision have the same bits whatever the thread count") {
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const auto with = [&](std::size_t threads) {
      return answer(*open(model.text, {.intra_op_threads = threads, .float32_precision = Float32Precision::kMedium}),
                    model);
    };
    CHECK(with(1) == with(2));
  }
}

TEST_CASE("sessions of different precision over one file do not read each other's weights") {
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const TemporaryFolder folder;
    const session::ModelSource source{.path = write(folder, model)};
    const SessionOptions medium{.float32_precision = Float32Precision::kMedium};
    const std::vector<float> exact = answer(*open(model.text), model),
                             rounded = answer(*open(model.text, medium), model);
    for (const bool medium_first : {false, true}) {
      const auto first = Session::create(engine(), source, medium_first ? medium : SessionOptions{});
      const auto second = Session::create(engine(), source, medium_first ? SessionOptions{} : medium);
      for (int i = 0; i < 2; ++i) {
        CHECK(answer(*first, model) == (medium_first ? rounded : exact));
        CHECK(answer(*second, model) == (medium_first ? exact : rounded));
      }
    }
  }
}

TEST_CASE("sessions of different precision share a cache of packed weights and nothing in it") {
  for (const Model& model : models()) {
    CAPTURE(model.name);
    const TemporaryFolder folder;
    const session::ModelSource source{.path = write(folder, model)};
    const std::vector<float> exact = answer(*open(model.text), model),
                             rounded =
                                 answer(*open(model.text, {.float32_precision = Float32Precision::kMedium}), model);
    for (int i = 0; i < 3; ++i) {
      for (const Float32Precision precision : {Float32Precision::kHighest, Float32Precision::kMedium}) {
        const SessionOptions options{.float32_precision = precision, .model_cache_dir = folder / "cache"};
        const auto session = Session::create(engine(), source, options);
        CHECK(answer(*session, model) == (precision == Float32Precision::kMedium ? rounded : exact));
      }
    }
  }
}
