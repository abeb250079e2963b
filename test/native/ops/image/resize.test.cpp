#include "ops/op_test.h"

namespace infernode::test {
namespace {

constexpr const char* kScales = "(float[A] X, float[1] s) => (float[B] Y) { Y = Resize<%>(X, , s) }";
constexpr const char* kSizes = "(float[A] X, int64[1] s) => (float[B] Y) { Y = Resize<%>(X, , , s) }";

std::string with(std::string_view text, std::string_view attributes) {
  const std::size_t at = text.find('%');
  return cat(text.substr(0, at), attributes, text.substr(at + 1));
}

TEST_CASE("Resize rounds to the nearest element in four ways") {
  const Tensor x = f32({4}, {0, 1, 2, 3});
  const auto run = [&](const char* attributes, const Tensor& y) {
    check_op(with(kSizes, attributes), 19, {x, i64({1}, {8})}, {y});
  };
  run("mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"round_prefer_floor\"",
      f32({8}, {0, 0, 1, 1, 2, 2, 3, 3}));
  run("mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"round_prefer_ceil\"",
      f32({8}, {0, 1, 1, 2, 2, 3, 3, 3}));
  run("mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"",
      f32({8}, {0, 0, 1, 1, 2, 2, 3, 3}));
  run("mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"ceil\"",
      f32({8}, {0, 1, 1, 2, 2, 3, 3, 3}));
  run("mode=\"nearest\"", f32({8}, {0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST_CASE("Resize to given sizes meets ties exactly") {
  // 1 / (2 / 7) is 3.5, though not in float.
  check_op(with(kSizes, "nearest_mode=\"round_prefer_ceil\", coordinate_transformation_mode=\"asymmetric\""), 19,
           {iota(DType::Float32, {7}), i64({1}, {2})}, {f32({2}, {0, 4})});
}

TEST_CASE("Resize interpolates linearly under every coordinate transformation") {
  const Tensor x = f32({3}, {0, 1, 2});
  const auto run = [&](const char* mode, const Tensor& y) {
    check_op(with(kSizes, cat("mode=\"linear\", coordinate_transformation_mode=\"", mode, "\"")), 19,
             {x, i64({1}, {6})}, {y});
  };
  run("half_pixel", f32({6}, {0, 0.25f, 0.75f, 1.25f, 1.75f, 2}));
  run("half_pixel_symmetric", f32({6}, {0, 0.25f, 0.75f, 1.25f, 1.75f, 2}));
  run("pytorch_half_pixel", f32({6}, {0, 0.25f, 0.75f, 1.25f, 1.75f, 2}));
  run("align_corners", f32({6}, {0, 0.4f, 0.8f, 1.2f, 1.6f, 2}));
  run("asymmetric", f32({6}, {0, 0.5f, 1, 1.5f, 2, 2}));
  check_op(with(kSizes, "mode=\"linear\", coordinate_transformation_mode=\"pytorch_half_pixel\""), 19,
           {f32({3}, {5, 1, 2}), i64({1}, {1})}, {f32({1}, {5})});
}

TEST_CASE("Resize crops as TensorFlow does") {
  const Tensor x = f32({4}, {0, 1, 2, 3});
  check_op(
      "(float[A] X, float[2] r, int64[1] s) => (float[B] Y) { Y = Resize<mode=\"linear\", extrapolation_value=9.0, "
      "coordinate_transformation_mode=\"tf_crop_and_resize\">(X, r, , s) }",
      19, {x, f32({2}, {0.5f, 1.5f}), i64({1}, {3})}, {f32({3}, {1.5f, 3, 9})});
  check_op(
      "(int32[A] X, float[2] r, int64[1] s) => (int32[B] Y) { Y = Resize<mode=\"nearest\", extrapolation_value=9.0, "
      "coordinate_transformation_mode=\"tf_crop_and_resize\">(X, r, , s) }",
      19, {i32({4}, {0, 1, 2, 3}), f32({2}, {0, 2}), i64({1}, {3})}, {i32({3}, {0, 3, 9})});
}

TEST_CASE("Resize scales what is left after it cropped") {
  constexpr std::string_view text =
      "(float[1,1,A,B] X, float[8] r, float[4] s) => (float[1,1,C,D] Y) { Y = Resize<mode=\"linear\", "
      "coordinate_transformation_mode=\"tf_crop_and_resize\">(X, r, s) }";
  const Tensor x = iota(DType::Float32, {1, 1, 8, 8}), roi = f32({8}, {0, 0, 0.25f, 0.25f, 1, 1, 0.75f, 1.25f}),
               scales = f32({4}, {1, 1, 1.5f, 0.75f});
  // Rows from 1.75 on by 0.7, columns from 1.75 on by 1.4, of which the last two lie beyond the picture.
  check_op(text, 13, {x, roi, scales},
           {f32({1, 1, 6, 6}, {15.75f, 17.15f, 18.55f, 19.95f, 0, 0, 21.35f, 22.75f, 24.15f, 25.55f, 0, 0,
                               26.95f, 28.35f, 29.75f, 31.15f, 0, 0, 32.55f, 33.95f, 35.35f, 36.75f, 0, 0,
                               38.15f, 39.55f, 40.95f, 42.35f, 0, 0, 43.75f, 45.15f, 46.55f, 47.95f, 0, 0})});
  check_op(
      "(float[A] X, float[2] r, float[1] s) => (float[B] Y) { Y = Resize<mode=\"linear\", extrapolation_value=9.0, "
      "coordinate_transformation_mode=\"tf_crop_and_resize\">(X, r, s) }",
      13, {f32({4}, {0, 1, 2, 3}), f32({2}, {0.5f, 1.25f}), f32({1}, {1})}, {f32({3}, {1.5f, 2.625f, 9})});
  CHECK(infer_op(text, 13, {Value{}, roi, scales}) == "tensor(float)[1,1,C,D]");
  check_op_fails(text, 13, {x, f32({8}, {0, 0, 0.75f, 0, 1, 1, 0.25f, 1}), scales}, ErrorCode::InvalidArgument, "roi");
}

TEST_CASE("Resize of integers rounds where it filters, and cuts off where it interpolates linearly") {
  const auto resized = [](std::string_view attributes, const Tensor& x, const Tensor& y) {
    const std::string type(onnx_name(x.dtype()));
    check_op(cat("(", type, "[A] X, float[1] s) => (", type, "[B] Y) { Y = Resize<", attributes, ">(X, , s) }"), 19,
             {x, f32({1}, {1.7f})}, {y});
  };
  const Tensor x = u8({4}, {0, 1, 2, 7});
  resized("mode=\"linear\", antialias=1", x, u8({6}, {0, 0, 1, 2, 3, 6}));
  resized("mode=\"linear\"", x, u8({6}, {0, 0, 0, 1, 2, 5}));
  resized("mode=\"cubic\"", x, u8({6}, {0, 0, 1, 1, 3, 6}));
  resized("mode=\"cubic\", antialias=1", i32({4}, {3, 10, 200, 255}), i32({6}, {2, -7, 6, 112, 222, 249}));
  resized("mode=\"cubic\"", u8({4}, {3, 10, 200, 255}), u8({6}, {2, 0, 6, 112, 222, 249}));
  resized("mode=\"linear\", antialias=1", i8({4}, {-128, -127, -126, -121}),
          i8({6}, {-128, -128, -127, -126, -125, -122}));
}

TEST_CASE("Resize of integers is exact where the exact result is whole") {
  constexpr std::int64_t kRows = 200, kIn = 9;
  const auto check = [](DType type, std::int64_t out, const char* by, const char* inputs, const Tensor& how) {
    CAPTURE(by);
    CAPTURE(out);
    std::vector<double> x, y;
    for (std::int64_t i = 0; i < kRows * kIn; ++i) x.push_back(static_cast<double>((i * i * 11 + i * 37) % 127));
    // By whole numbers: between elements `left` and `left + 1`, `part` of 2 * out parts past the first.
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t i = 0; i < out; ++i) {
        const std::int64_t place = (2 * i + 1) * kIn - out + 2 * out, left = place / (2 * out) - 1,
                           part = place % (2 * out);
        const auto at = [&](std::int64_t element) {
          const auto index = row * kIn + std::clamp<std::int64_t>(element, 0, kIn - 1);
          return static_cast<std::int64_t>(x[static_cast<std::size_t>(index)]);
        };
        y.push_back(static_cast<double>((at(left) * (2 * out - part) + at(left + 1) * part) / (2 * out)));
      }
    }
    const std::string name(onnx_name(type));
    check_op(
        cat("(", name, "[A,B] X, ", by, ") => (", name, "[C,D] Y) { Y = Resize<mode=\"linear\">(X, ", inputs, ") }"),
        19, {tensor_as(type, {kRows, kIn}, x), how}, {tensor_as(type, {kRows, out}, y)});
  };
  for (const DType type : {DType::UInt8, DType::Int8, DType::UInt16, DType::Int32, DType::Int64}) {
    for (const std::int64_t out : {3, 6, 11, 15, 21, 27, 63, 90}) {
      check(type, out, "int64[2] s", ", , s", i64({2}, {kRows, out}));
      check(type, out, "float[2] s", ", s", f32({2}, {1, static_cast<float>(out) / static_cast<float>(kIn)}));
    }
  }
}

TEST_CASE("Resize interpolates cubically and with a stretched filter") {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  check_op(
      with(kScales, "mode=\"cubic\""), 19, {x, f32({1}, {2})},
      {f32({8}, {0.89453125f, 1.19140625f, 1.66796875f, 2.296875f, 2.703125f, 3.33203125f, 3.80859375f, 4.10546875f})});
  check_op(with(kScales, "mode=\"cubic\", exclude_outside=1, cubic_coeff_a=-0.5"), 19,
           {f32({2}, {3, 3}), f32({1}, {2})}, {f32({4}, {3, 3, 3, 3})});
  check_op(with(kScales, "mode=\"linear\", antialias=1"), 19, {f32({4}, {0, 0, 8, 8}), f32({1}, {0.5f})},
           {f32({2}, {1, 7})});
  check_op_fails(with(kScales, "mode=\"nearest\", antialias=1"), 19, {x, f32({1}, {2})}, ErrorCode::InvalidModel,
                 "antialias");
}

TEST_CASE("Resize treats planes, inner axes and any set of axes alike") {
  // A plane that is linear in both directions stays so inside, whatever the layout.
  const std::int64_t h = 7, w = 9;
  Tensor planes = Tensor::make(DType::Float32, {2, 3, h, w}), pixels = Tensor::make(DType::Float32, {2, h, w, 3});
  Tensor planes_out = Tensor::make(DType::Float32, {2, 3, 2 * h - 1, 2 * w - 1}),
         pixels_out = Tensor::make(DType::Float32, {2, 2 * h - 1, 2 * w - 1, 3});
  const auto fill = [](const Tensor& first, const Tensor& last, std::int64_t rows, std::int64_t columns, float step) {
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t c = 0; c < 3; ++c) {
        for (std::int64_t y = 0; y < rows; ++y) {
          for (std::int64_t x = 0; x < columns; ++x) {
            const float v = static_cast<float>(n * 3 + c) + (static_cast<float>(y) * 2 - static_cast<float>(x)) * step;
            first.mutable_data<float>()[((n * 3 + c) * rows + y) * columns + x] = v;
            last.mutable_data<float>()[((n * rows + y) * columns + x) * 3 + c] = v;
          }
        }
      }
    }
  };
  fill(planes, pixels, h, w, 1.0f);
  fill(planes_out, pixels_out, 2 * h - 1, 2 * w - 1, 0.5f);
  const char* attributes = "mode=\"linear\", coordinate_transformation_mode=\"align_corners\"";
  check_op(
      with("(float[N,C,H,W] X, int64[2] s) => (float[A,B,D,E] Y) { Y = Resize<axes=[2,-1], %>(X, , , s) }", attributes),
      18, {planes, i64({2}, {2 * h - 1, 2 * w - 1})}, {planes_out});
  check_op(with("(float[N,H,W,C] X, int64[4] s) => (float[A,B,D,E] Y) { Y = Resize<%>(X, , , s) }", attributes), 13,
           {pixels, i64({4}, {2, 2 * h - 1, 2 * w - 1, 3})}, {pixels_out});
  check_op(with("(float[H,W,C] X, int64[2] s) => (float[A,B,D] Y) { Y = Resize<axes=[0,1], %>(X, , , s) }", attributes),
           18, {Tensor(DType::Float32, {h, w, 3}, pixels.buffer()), i64({2}, {2 * h - 1, 2 * w - 1})},
           {Tensor(DType::Float32, {2 * h - 1, 2 * w - 1, 3}, pixels_out.buffer())});
}

TEST_CASE("Resize keeps the aspect ratio on demand") {
  const Tensor x = iota(DType::Float32, {2, 4});
  check_op(
      "(float[A,B] X, int64[2] s) => (float[C,D] Y) { Y = Resize<keep_aspect_ratio_policy=\"not_larger\">(X, , , s) }",
      19, {x, i64({2}, {1, 8})}, {f32({1, 2}, {0, 2})});
  check_op(
      "(float[A,B] X, int64[2] s) => (float[C,D] Y) { Y = Resize<keep_aspect_ratio_policy=\"not_smaller\">(X, , , s) }",
      18, {x, i64({2}, {2, 8})},
      {f32({4, 8}, {0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 4, 4, 5, 5, 6, 6, 7, 7})});
}

TEST_CASE("Resize computes in other types") {
  check_op("(uint8[A] X, float[1] s) => (uint8[B] Y) { Y = Resize<mode=\"linear\">(X, , s) }", 13,
           {u8({2}, {0, 200}), f32({1}, {2})}, {u8({4}, {0, 50, 150, 200})});
  check_op("(float16[A] X, float[1] s) => (float16[B] Y) { Y = Resize<mode=\"linear\">(X, , s) }", 13,
           {f16({2}, {0, 2}), f32({1}, {2})}, {f16({4}, {0, 0.5, 1.5, 2})});
  check_op("(string[A] X, float[1] s) => (string[B] Y) { Y = Resize(X, , s) }", 13,
           {str({2}, {"a", "b"}), f32({1}, {2})}, {str({4}, {"a", "a", "b", "b"})});
  check_op_fails("(string[A] X, float[1] s) => (Y) { Y = Resize<mode=\"linear\">(X, , s) }", 13,
                 {str({2}, {"a", "b"}), f32({1}, {2})}, ErrorCode::UnsupportedOperator, "");
}

TEST_CASE("Resize 10, 11 and Upsample take their older arguments") {
  const Tensor x = f32({1, 1, 1, 2}, {1, 2}), twice = f32({1, 1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2});
  check_op("(float[N,C,H,W] X) => (float[A,B,D,E] Y) { Y = Upsample<height_scale=2.0, width_scale=2.0>(X) }", 1, {x},
           {twice});
  check_op("(float[N,C,H,W] X) => (float[A,B,D,E] Y) { Y = Upsample<scales=[1.0, 1.0, 2.0, 2.0]>(X) }", 7, {x},
           {twice});
  check_op("(float[N,C,H,W] X, float[4] s) => (float[A,B,D,E] Y) { Y = Upsample(X, s) }", 9,
           {x, f32({4}, {1, 1, 2, 2})}, {twice});
  check_op("(float[N,C,H,W] X, float[4] s) => (float[A,B,D,E] Y) { Y = Resize(X, s) }", 10, {x, f32({4}, {1, 1, 2, 2})},
           {twice});
  check_op("(float[N,C,H,W] X, float[4] s) => (float[A,B,D,E] Y) { Y = Resize<mode=\"linear\">(X, s) }", 10,
           {x, f32({4}, {1, 1, 1, 2})}, {f32({1, 1, 1, 4}, {1, 1.5f, 2, 2})});
  check_op(
      "(float[A] X, float[0] r, float[0] s, int64[1] z) => (float[B] Y) { Y = "
      "Resize<coordinate_transformation_mode=\"tf_half_pixel_for_nn\", "
      "nearest_mode=\"floor\">(X, r, s, z) }",
      11, {f32({4}, {1, 2, 3, 4}), f32({0}, {}), f32({0}, {}), i64({1}, {2})}, {f32({2}, {2, 4})});
  check_op_fails("(float[N,C,H,W] X, float[4] s) => (Y) { Y = Upsample(X, s) }", 10, {x, f32({4}, {1, 1, 2, 2})},
                 ErrorCode::UnsupportedOperator, "deprecated");
}

TEST_CASE("Resize 10 rounds up on axes that shrink") {
  check_op("(float[A] X, float[1] s) => (float[B] Y) { Y = Resize(X, s) }", 10,
           {f32({5}, {0, 1, 2, 3, 4}), f32({1}, {0.7f})}, {f32({3}, {0, 2, 3})});
}

TEST_CASE("Resize to one element takes the first under pytorch_half_pixel") {
  check_op(with(kSizes, "mode=\"cubic\", coordinate_transformation_mode=\"pytorch_half_pixel\""), 19,
           {f32({3}, {5, 1, 2}), i64({1}, {1})}, {f32({1}, {5})});
}

TEST_CASE("Resize refuses scales and sizes that make no sense") {
  const Tensor x = f32({2}, {1, 2});
  check_op_fails(with(kScales, "mode=\"nearest\""), 19, {x, f32({1}, {-1})}, ErrorCode::InvalidArgument, "scale");
  check_op_fails(with(kScales, "mode=\"nearest\""), 19, {x, f32({1}, {kNaN})}, ErrorCode::InvalidArgument, "scale");
  check_op_fails("(float[A] X, float[2] s) => (Y) { Y = Resize(X, , s) }", 19, {x, f32({2}, {1, 1})},
                 ErrorCode::InvalidArgument, "2 elements for 1");
  check_op_fails("(float[A] X) => (Y) { Y = Resize(X) }", 19, {x}, ErrorCode::InvalidArgument,
                 "neither scales nor sizes");
  check_op_fails(with(kSizes, "mode=\"nearest\""), 19, {f32({0}, {}), i64({1}, {2})}, ErrorCode::InvalidArgument,
                 "nothing to enlarge");
}

TEST_CASE("Resize keeps symbols where scales are whole") {
  CHECK(infer_op("(float[N,3,H,W] X, float[4] s) => (Y) { Y = Resize(X, , s) }", 13,
                 {Value{}, f32({4}, {1, 1, 2, 0.5f})}) == "tensor(float)[N,3,2*H,?]");
  CHECK(infer_op("(float[N,3,H,W] X, int64[2] s) => (Y) { Y = Resize<axes=[2,3]>(X, , , s) }", 18,
                 {Value{}, i64({2}, {10, 20})}) == "tensor(float)[N,3,10,20]");
}

}  // namespace
}  // namespace infernode::test
