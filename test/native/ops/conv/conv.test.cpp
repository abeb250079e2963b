#include <cmath>
#include <functional>
#include <numbers>

#include "microkernels/common/evenness.h"
#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("Conv slides its weights over the input") {
  const Tensor x = iota(DType::Float32, {1, 1, 3, 3}), w = f32({1, 1, 2, 2}, {1, 0, 0, 1});
  check_op("(float[N,1,3,3] X, float[1,1,2,2] W) => (float[N,1,2,2] Y) { Y = Conv(X, W) }", 11, {x, w},
           {f32({1, 1, 2, 2}, {4, 6, 10, 12})});
  check_op(
      "(float[1,1,3,3] X, float[1,1,2,2] W, float[1] B) => (float[1,1,4,4] Y) { Y = Conv<pads=[1,1,1,1]>(X, W, B) }",
      11, {x, w, f32({1}, {1})}, {f32({1, 1, 4, 4}, {1, 2, 3, 1, 4, 5, 7, 3, 7, 11, 13, 6, 1, 7, 8, 9})});
  check_op(
      "(float[1,1,3,3] X, float[1,1,2,2] W) => (float[1,1,2,2] Y) { Y = Conv<auto_pad=\"SAME_UPPER\", "
      "strides=[2,2]>(X, W) }",
      11, {x, w}, {f32({1, 1, 2, 2}, {4, 2, 6, 8})});
  check_op(
      "(float[1,1,3,3] X, float[1,1,2,2] W) => (float[1,1,2,2] Y) { Y = Conv<auto_pad=\"SAME_LOWER\", "
      "strides=[2,2]>(X, W) }",
      1, {x, w}, {f32({1, 1, 2, 2}, {0, 2, 6, 12})});
  check_op(
      "(float[1,1,3,3] X, float[1,1,2,2] W) => (float[1,1,1,1] Y) { Y = Conv<auto_pad=\"VALID\", strides=[2,2]>(X, W) "
      "}",
      1, {x, w}, {f32({1, 1, 1, 1}, {4})});
}

TEST_CASE("Conv agrees with plain loops over 1 to 3 axes, groups, strides, dilations and pads") {
  const struct {
    Shape x, w;
    const char* attributes;
  } cases[] = {
      {{2, 3, 11}, {5, 3, 3}, "pads=[1,2]"},
      {{1, 4, 17}, {6, 2, 5}, "group=2, strides=[3], dilations=[2], pads=[4,4]"},
      {{2, 3, 9, 10}, {7, 3, 3, 3}, "pads=[1,1,1,1]"},
      {{1, 8, 13, 12}, {16, 8, 1, 1}, "strides=[1,1]"},
      {{1, 8, 13, 12}, {9, 8, 1, 1}, "strides=[2,2]"},
      {{1, 6, 12, 9}, {9, 2, 3, 2}, "group=3, strides=[2,1], dilations=[1,3], pads=[0,2,1,3]"},
      {{2, 5, 14, 14}, {5, 1, 3, 3}, "group=5, pads=[1,1,1,1]"},
      {{2, 5, 14, 15}, {5, 1, 3, 3}, "group=5, strides=[2,2], pads=[0,0,1,1]"},
      {{1, 4, 10, 10}, {8, 1, 5, 5}, "group=4, pads=[2,2,2,2], strides=[2,2]"},
      {{1, 4, 10, 10}, {4, 1, 3, 3}, "group=4, pads=[2,2,2,2], dilations=[2,2]"},
      {{1, 2, 5, 6, 7}, {3, 2, 3, 2, 2}, "pads=[1,0,1,1,1,0], strides=[2,1,2]"},
      {{1, 4, 5, 5, 5}, {4, 1, 3, 3, 3}, "group=4, pads=[1,1,1,1,1,1]"},
      {{1, 2, 1, 1}, {3, 2, 3, 3}, "pads=[1,1,1,1]"},
      {{1, 3, 20, 20}, {4, 3, 7, 7}, "pads=[3,3,3,3], strides=[2,2]"},
      {{1, 2, 8, 8}, {2, 2, 3, 3}, "pads=[-1,-1,0,0]"},
      {{2, 3, 40, 1}, {5, 3, 5, 1}, "pads=[1,0,2,0]"},
      {{1, 5, 14, 14}, {13, 5, 3, 3}, "pads=[1,1,1,1]"},
      {{1, 3, 20, 41}, {5, 3, 3, 5}, "pads=[2,1,0,3], dilations=[2,1]"},
      {{3, 40, 1, 1}, {12, 40, 1, 1}, ""},
      {{2, 5, 3, 3}, {12, 5, 3, 3}, ""},
      {{2, 9, 7, 7}, {70, 9, 3, 3}, "pads=[1,1,1,1]"},
      {{2, 9, 7, 6}, {64, 9, 1, 1}, ""},
      {{1, 9, 8, 8}, {65, 9, 3, 2}, "strides=[2,1], dilations=[1,2]"},
      {{2, 33, 14, 19}, {25, 33, 3, 3}, "pads=[1,0,2,1]"},
      {{1, 24, 30, 11}, {24, 24, 3, 3}, "auto_pad=\"SAME_UPPER\""},
      {{1, 40, 3, 3}, {30, 40, 3, 3}, "pads=[1,1,1,1]"},
      {{2, 48, 75}, {41, 48, 5}, "pads=[2,1]"},
      {{1, 64, 70, 1}, {32, 64, 3, 1}, "pads=[1,0,2,0]"},
      {{2, 48, 1, 90}, {37, 48, 1, 5}, "pads=[0,-1,0,3]"},
      {{1, 64, 20}, {40, 64, 3}, "pads=[25,30]"},
      {{1, 64, 101}, {40, 64, 3}, "auto_pad=\"SAME_UPPER\""},
      {{1, 48, 60, 1}, {32, 48, 5, 1}, "pads=[0,1,0,1]"},
  };
  for (const auto& c : cases) {
    const std::string text = cat("(X, W, B) => (Y) { Y = Conv<", c.attributes, ">(X, W, B) }");
    CAPTURE(text);
    check_float_types(text, 22, {noise(c.x), noise(c.w, 1, 2), noise({c.w[0]}, 1, 3)},
                      {DType::Float16, DType::BFloat16}, kLongSumTolerance);
  }
}

/// Rows of a windowed Fourier transform: cosines, sines with the sign, or both.
Tensor transform_rows(std::int64_t length, std::int64_t bins, bool cosines, double sine_sign) {
  const Tensor w = Tensor::make(DType::Float32, {(cosines ? bins : 0) + (sine_sign != 0 ? bins : 0), 1, length});
  float* at = w.mutable_data<float>();
  for (const bool sine : {false, true}) {
    if (sine ? sine_sign == 0 : !cosines) continue;
    for (std::int64_t k = 0; k < bins; ++k) {
      for (std::int64_t n = 0; n < length; ++n) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(length);
        const double window = 0.5 - 0.5 * std::cos(angle), turn = angle * static_cast<double>(k);
        *at++ = static_cast<float>(window * (sine ? sine_sign * std::sin(turn) : std::cos(turn)));
      }
    }
  }
  return w;
}

/// X [N,1,L] convolved by W [M,1,K].
Tensor convolve(const Tensor& x, const Tensor& w, std::int64_t stride, std::int64_t pad) {
  const std::int64_t length = x.dim(2), kernel = w.dim(2), frames = (length + 2 * pad - kernel) / stride + 1;
  const Tensor y = Tensor::make(DType::Float32, {x.dim(0), w.dim(0), frames});
  float* at = y.mutable_data<float>();
  for (std::int64_t i = 0; i < x.dim(0); ++i) {
    for (std::int64_t m = 0; m < w.dim(0); ++m) {
      for (std::int64_t f = 0; f < frames; ++f) {
        double sum = 0;
        for (std::int64_t n = 0; n < kernel; ++n) {
          const std::int64_t from = f * stride - pad + n;
          if (from < 0 || from >= length) continue;
          sum += static_cast<double>(x.data<float>()[i * length + from]) *
                 static_cast<double>(w.data<float>()[m * kernel + n]);
        }
        *at++ = static_cast<float>(sum);
      }
    }
  }
  return y;
}

TEST_CASE("Conv by rows of a Fourier transform") {
  const Tensor cosines = transform_rows(128, 65, true, 0), sines = transform_rows(128, 65, false, 1),
               both = transform_rows(64, 33, true, -1), some = transform_rows(64, 10, true, 1);
  const std::string plain = "(X, W) => (Y) { Y = Conv<strides = [40]>(X, W) }",
                    padded = "(X, W) => (Y) { Y = Conv<strides = [16], pads = [20, 20]>(X, W) }";
  for (const Tensor& w : {cosines, sines, both, some}) {
    const Tensor x = noise({2, 1, 900}, 1, 3);
    check_op(plain, 17, {x, w}, {convolve(x, w, 40, 0)}, 2e-5);
    check_op(padded, 17, {x, w}, {convolve(x, w, 16, 20)}, 2e-5);
    check_threads(padded, 17, {noise({3, 1, 20000}), w});
  }
  // Silence, a click, and numbers that are not finite.
  const Tensor x = noise({1, 1, 400}, 1, 4);
  std::fill_n(x.mutable_data<float>(), 300, 0.0f);
  check_op(plain, 17, {x, cosines}, {convolve(x, cosines, 40, 0)}, 2e-5);
  for (const float odd : {1.0f, 1e30f, kInf, kNaN}) {
    x.mutable_data<float>()[101] = odd;
    check_op(plain, 17, {x, cosines}, {convolve(x, cosines, 40, 0)}, 2e-5);
  }
  // Frames that are each odd in their way, among others.
  const Tensor mixed = noise({2, 1, 4000}, 1, 6);
  float* const at = mixed.mutable_data<float>();
  at[150] = kNaN;
  at[700] = kInf;
  at[1300] = -kInf;
  at[1310] = kInf;
  at[2200] = 1e7f;
  std::fill_n(at + 3000, 900, 0.0f);
  at[3400] = 1e-20f;
  at[3800] = 3;
  for (const Tensor& w : {cosines, sines, both}) check_op(plain, 17, {mixed, w}, {convolve(mixed, w, 40, 0)}, 2e-5);
  // One weight is another.
  const Tensor changed = cosines.clone();
  changed.mutable_data<float>()[5 * 128 + 50] += 1e-3f;
  const Tensor y = noise({1, 1, 400}, 1, 5);
  check_op(plain, 17, {y, changed}, {convolve(y, changed, 40, 0)}, 2e-5);
}

/// How far y is from the convolution of x by w, as the largest error over the sum of absolute products.
double error_of(const Value& y, const Tensor& x, const Tensor& w) {
  const auto exact = [](const Tensor& a, const Tensor& b) {
    return run_op("(X, W) => (Y) { Y = Conv(X, W) }", 22, {as_type(a, DType::Float64), as_type(b, DType::Float64)})[0];
  };
  const auto absolute = [](const Tensor& t) {
    const Tensor out = t.clone();
    for (float& v : out.mutable_span<float>()) v = std::abs(v);
    return out;
  };
  const Value sums = exact(x, w), magnitudes = exact(absolute(x), absolute(w));
  double worst = 0;
  for (std::int64_t i = 0; i < sums.tensor().numel(); ++i) {
    const double most = magnitudes.tensor().data<double>()[i];
    const double error = std::abs(static_cast<double>(y.tensor().data<float>()[i]) - sums.tensor().data<double>()[i]);
    if (most > 0) worst = std::max(worst, error / most);
  }
  return worst;
}

TEST_CASE("Conv along one axis is as exact by pairs of positions, relative to the terms of each sum") {
  std::uint32_t state = 1;
  const auto uniform = [&] { return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24f; };
  const auto scale = [&](float most) { return std::exp2((2 * uniform() - 1) * most); };
  using Change = std::function<float(float v, std::int64_t position)>;
  const std::pair<const char*, Change> inputs[] = {
      {"normal", [](float v, std::int64_t) { return v; }},
      {"positive", [](float v, std::int64_t) { return std::abs(v); }},
      {"sparse", [&](float v, std::int64_t) { return uniform() < 0.1f ? v : 0.0f; }},
      {"very sparse", [&](float v, std::int64_t) { return uniform() < 0.01f ? v : 0.0f; }},
      {"wide", [&](float v, std::int64_t) { return v * scale(20); }},
      {"spikes", [&](float v, std::int64_t) { return uniform() < 0.003f ? v * 1e6f : v; }},
      {"steep", [](float v, std::int64_t position) { return v * std::exp2(static_cast<float>(position % 40)); }},
      {"tiny", [](float v, std::int64_t) { return v * 0x1p-90f; }},
      {"huge", [](float v, std::int64_t) { return v * 0x1p90f; }},
  };
  const std::string_view text = "(X, W) => (Y) { Y = Conv(X, W) }";
  for (const auto& [channels, points] : {std::pair<std::int64_t, std::int64_t>{64, 3}, {48, 5}, {256, 5}}) {
    const Tensor w = noise({40, channels, points}, 1, 7);
    REQUIRE(microkernels::many_weights_matter(40, static_cast<std::size_t>(channels * points), w.data<float>()));
    for (const auto& [name, change] : inputs) {
      CAPTURE(std::string(name));
      CAPTURE(channels);
      const Tensor x = noise({1, channels, 131}, 1, 8);
      for (std::int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] = change(x.data<float>()[i], i % 131);
      const Value plain = run_op(text, 22, {x, w})[0], fast = run_op(text, 22, {x, w}, true)[0];
      CHECK(error_of(fast, x, w) <= 2 * error_of(plain, x, w));
    }
  }
}

TEST_CASE("Conv along one axis is as exact where only small taps see anything") {
  const std::string_view text = "(X, W) => (Y) { Y = Conv(X, W) }";
  for (const std::int64_t points : {3, 5}) {
    for (const float small : {0.3f, 0.1f, 1e-3f, 1e-6f}) {
      CAPTURE(points);
      CAPTURE(small);
      // How a sum rounds is chance: the measure is the worst of the plain ones, over the taps.
      double plain = 0, fast = 0;
      for (const std::int64_t tap : {std::int64_t{0}, points / 2, points - 1}) {
        const Tensor w = noise({40, 64, points}, 1, 7), x = noise({1, 64, 101}, 1, 8);
        for (std::int64_t i = tap; i < w.numel(); i += points) w.mutable_data<float>()[i] *= small;
        for (std::int64_t i = 0; i < x.numel(); ++i) {
          if (i % 101 < 50 || i % 101 % 7 == 0) x.mutable_data<float>()[i] = 0;  // silence, and gaps
        }
        plain = std::max(plain, error_of(run_op(text, 22, {x, w})[0], x, w));
        fast = std::max(fast, error_of(run_op(text, 22, {x, w}, true)[0], x, w));
      }
      CHECK(fast <= 2 * plain);
    }
  }
}

TEST_CASE("Conv over two axes is as exact where only small taps see anything") {
  for (const float small : {0.3f, 0.1f, 1e-3f, 1e-6f}) {
    for (const std::int64_t tap : {0, 1, 2}) {
      for (const bool rows : {false, true}) {
        CAPTURE(small);
        CAPTURE(tap);
        CAPTURE(rows);
        const Tensor w = noise({40, 64, 3, 3}, 1, 7), x = noise({1, 64, 24, 24}, 1, 8);
        for (std::int64_t i = 0; i < w.numel(); ++i)
          if ((rows ? i % 9 / 3 : i % 3) == tap) w.mutable_data<float>()[i] *= small;
        for (std::int64_t i = 0; i < x.numel(); ++i) {
          const std::int64_t at = rows ? i / 24 % 24 : i % 24;
          if (at < 11 || at % 7 == 0) x.mutable_data<float>()[i] = 0;  // silence, and gaps
        }
        const std::string_view text = "(X, W) => (Y) { Y = Conv(X, W) }";
        const Value plain = run_op(text, 22, {x, w})[0], fast = run_op(text, 22, {x, w}, true)[0];
        CHECK(error_of(fast, x, w) <= 2 * error_of(plain, x, w));
      }
    }
  }
}

TEST_CASE("Conv along one axis leaves what is not finite where it is") {
  const Tensor w = noise({40, 48, 5}, 1, 9), x = noise({1, 48, 90}, 1, 10);
  for (const float odd : {kInf, -kInf, kNaN}) {
    x.mutable_data<float>()[7 * 90 + 33] = odd;
    check_float_types("(X, W) => (Y) { Y = Conv<pads=[2,2]>(X, W) }", 22, {x, w}, {});
  }
}

TEST_CASE("Conv does not depend on the number of threads") {
  check_threads("(X, W) => (Y) { Y = Conv<pads=[2,2]>(X, W) }", 11, {noise({2, 64, 301}), noise({70, 64, 5}, 1, 2)});
  check_threads("(X, W) => (Y) { Y = Conv<pads=[1,1]>(X, W) }", 11, {noise({1, 64, 300}), noise({70, 64, 3}, 1, 2)});
  check_threads("(X, W) => (Y) { Y = Conv<pads=[1,1,1,1]>(X, W) }", 11,
                {noise({1, 32, 30, 30}), noise({48, 32, 3, 3}, 1, 2)});
  check_threads("(X, W) => (Y) { Y = Conv<group=64, pads=[1,1,1,1]>(X, W) }", 11,
                {noise({2, 64, 28, 28}), noise({64, 1, 3, 3}, 1, 2)});
}

TEST_CASE("Conv of an empty batch or of no channels") {
  check_op("(float[0,1,3,3] X, float[2,1,2,2] W) => (float[0,2,2,2] Y) { Y = Conv(X, W) }", 11,
           {f32({0, 1, 3, 3}, {}), noise({2, 1, 2, 2})}, {f32({0, 2, 2, 2}, {})});
  for (const Shape& w : {Shape{4, 0, 3}, Shape{4, 0, 3, 2}, Shape{17, 0, 1, 5}}) {
    CAPTURE(w.to_string());
    const bool line = w.rank() == 3;
    const Tensor x = iota(DType::Float32, line ? Shape{3, 0, 6} : Shape{3, 0, 6, 7});
    const Shape out = line ? Shape{3, w[0], 4} : Shape{3, w[0], 7 - w[2], 8 - w[3]};
    check_op("(X, W) => (Y) { Y = Conv(X, W) }", 11, {x, iota(DType::Float32, w)}, {iota(DType::Float32, out, 0, 0)});
  }
}

TEST_CASE("Conv infers symbolic sizes") {
  CHECK(infer_op("(float[N,3,H,W] X, float[8,3,3,3] K) => (Y) { Y = Conv<pads=[1,1,1,1]>(X, K) }", 11) ==
        "tensor(float)[N,8,H,W]");
  CHECK(infer_op("(float[N,3,224,224] X, float[8,3,7,7] K) => (Y) { Y = Conv<pads=[3,3,3,3], strides=[2,2]>(X, K) }",
                 11) == "tensor(float)[N,8,112,112]");
}

TEST_CASE("Conv refuses what does not fit") {
  check_op_fails("(X, W) => (Y) { Y = Conv(X, W) }", 11, {noise({1, 3, 4, 4}), noise({2, 2, 2, 2})},
                 ErrorCode::ShapeMismatch, "channels do not fit");
  check_op_fails("(X, W) => (Y) { Y = Conv(X, W) }", 11, {noise({1, 2, 1, 1}), noise({2, 2, 2, 2})},
                 ErrorCode::ShapeMismatch, "does not fit");
  check_op_fails("(X, W) => (Y) { Y = Conv<strides=[0,1]>(X, W) }", 11, {noise({1, 2, 4, 4}), noise({2, 2, 2, 2})},
                 ErrorCode::InvalidModel, "strides");
  check_op_fails("(X, W) => (Y) { Y = Conv<kernel_shape=[3,3]>(X, W) }", 11, {noise({1, 2, 4, 4}), noise({2, 2, 2, 2})},
                 ErrorCode::ShapeMismatch, "kernel_shape");
  check_op_fails("(X, W, B) => (Y) { Y = Conv(X, W, B) }", 11, {noise({1, 2, 4, 4}), noise({2, 2, 2, 2}), noise({3})},
                 ErrorCode::ShapeMismatch, "bias");
}

TEST_CASE("Conv refuses sizes whose products do not fit 64 bits") {
  const std::vector<Value> inputs{noise({1, 2, 4, 4}), noise({2, 2, 2, 2})};
  check_op_fails("(X, W) => (Y) { Y = Conv<dilations=[1099511627776,1]>(X, W) }", 11, inputs, ErrorCode::InvalidModel,
                 "dilations");
  check_op_fails("(X, W) => (Y) { Y = Conv<pads=[0,0,1099511627776,0]>(X, W) }", 11, inputs, ErrorCode::InvalidModel,
                 "pads");
  check_op_fails("(X, W) => (Y) { Y = Conv<dilations=[1073741824,1]>(X, W) }", 11, inputs, ErrorCode::ShapeMismatch,
                 "does not fit");
  check_op_fails("(X, W) => (Y) { Y = Conv<strides=[2,1]>(X, W) }", 11,
                 {noise({0, 2, std::int64_t{1} << 40, 4}), noise({2, 2, 2, 2})}, ErrorCode::ShapeMismatch,
                 "cannot slide over");
}

TEST_CASE("FusedConv adds Z before its activation") {
  const char* header = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";
  check_op(cat(header,
               "(float[1,1,2,2] X, float[1,1,1,1] W, float[1] B, float[1,1,2,2] Z) => (float[1,1,2,2] Y) { Y = "
               "com.microsoft.FusedConv<activation=\"Relu\">(X, W, B, Z) }"),
           17,
           {f32({1, 1, 2, 2}, {1, 2, 3, 4}), f32({1, 1, 1, 1}, {2}), f32({1}, {-5}), f32({1, 1, 2, 2}, {1, 1, 1, -9})},
           {f32({1, 1, 2, 2}, {0, 0, 2, 0})});
  // Enough channels for the few positions that rows take the positions' place.
  const Tensor x = Tensor::make(DType::Float32, {2, 1, 2, 2}), w = iota(DType::Float32, {64, 1, 1, 1}),
               b = Tensor::make(DType::Float32, {64}), z = Tensor::make(DType::Float32, {2, 64, 2, 2}),
               y = Tensor::make(DType::Float32, {2, 64, 2, 2});
  for (float& v : x.mutable_span<float>()) v = 1;
  for (float& v : b.mutable_span<float>()) v = 1;
  for (std::int64_t i = 0; i < z.numel(); ++i) {
    const auto channel = static_cast<float>(i / 4 % 64), position = static_cast<float>(i % 4);
    z.mutable_data<float>()[i] = position - channel - 2;
    y.mutable_data<float>()[i] = std::max(0.0f, w.data<float>()[0] + position - 1);
  }
  check_op(cat(header,
               "(float[2,1,2,2] X, float[64,1,1,1] W, float[64] B, float[2,64,2,2] Z) => (float[2,64,2,2] Y) { Y = "
               "com.microsoft.FusedConv<activation=\"Relu\">(X, W, B, Z) }"),
           17, {x, w, b, z}, {y});
}

TEST_CASE("FusedConv adds Z to tiles of enough channels to be transformed") {
  const Tensor x = Tensor::make(DType::Float32, {2, 32, 11, 12}), w = Tensor::make(DType::Float32, {24, 32, 3, 3}),
               b = iota(DType::Float32, {24}), z = iota(DType::Float32, {2, 24, 9, 10}),
               y = Tensor::make(DType::Float32, {2, 24, 9, 10});
  for (float& v : x.mutable_span<float>()) v = 1;
  for (float& v : w.mutable_span<float>()) v = -0.25f;
  for (std::int64_t i = 0; i < y.numel(); ++i)
    y.mutable_data<float>()[i] = std::max(0.0f, b.data<float>()[i / 90 % 24] + z.data<float>()[i] - 72);
  check_op(
      "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (float[2,32,11,12] X, float[24,32,3,3] W, "
      "float[24] B, float[2,24,9,10] Z) => (float[2,24,9,10] Y) { Y = com.microsoft.FusedConv<activation=\"Relu\">(X, "
      "W, "
      "B, Z) }",
      17, {x, w, b, z}, {y});
}

}  // namespace
}  // namespace infernode::test
