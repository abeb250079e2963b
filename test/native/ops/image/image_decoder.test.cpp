#include "ops/image/image.h"

#include <algorithm>
#include <random>

#include "ops/image/samples.h"
#include "ops/op_test.h"

namespace infernode::test {
namespace {

using Encoded = std::vector<std::uint8_t>;

Encoded from_text(std::string_view text) { return Encoded(text.begin(), text.end()); }

std::string refusal(const Encoded& file, ErrorCode code = ErrorCode::InvalidArgument) {
  try {
    ops::image::decode_image(file, {});
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.message();
  }
  return "";
}

TEST_CASE("Images decode to the very pixels that other decoders give") {
  for (const EncodedSample& sample : kSamples) {
    CAPTURE(sample.name);
    const ops::image::Image image = ops::image::decode_image(from_hex(sample.hex), {});
    CHECK(image.width == 11);
    CHECK(image.height == 9);
    std::uint32_t hash = 2166136261u;
    for (std::size_t i = 0; i < image.width * image.height; ++i) {
      for (std::size_t c = 0; c < sample.channels; ++c) {
        hash = (hash ^ image.pixels[i * image.channels + (image.channels == 1 ? 0 : c)]) * 16777619u;
      }
    }
    CHECK(hash == sample.hash);
  }
}

TEST_CASE("PNM images of all six kinds decode") {
  const auto pixels = [](const Encoded& file) { return ops::image::decode_image(file, {}).pixels; };
  CHECK(pixels(from_text("P1 # a comment\n3 1\n101")) == Encoded{0, 255, 0});
  CHECK(pixels(from_text("P2\n2 1 15\n0 15\n")) == Encoded{0, 255});
  CHECK(pixels(from_text("P3\n1 1 255\n1 2 3")) == Encoded{1, 2, 3});
  CHECK(pixels(from_text(std::string_view("P4\n3 1\n\xA0", 8))) == Encoded{0, 255, 0});
  CHECK(pixels(from_text("P5\n2 1 255\nAB")) == Encoded{65, 66});
  CHECK(pixels(from_text(std::string_view("P5\n1 1 65535\n\x80\x00", 15))) == Encoded{128});
  CHECK(pixels(from_text("P6\n1 1 255\nABC")) == Encoded{65, 66, 67});
}

TEST_CASE("ImageDecoder gives red first, blue first or grey") {
  const Encoded file = from_text("P6\n2 1 255\n\x0A\x14\x1E\x28\x32\x3C");
  const Tensor x = Tensor::of<std::uint8_t>({static_cast<std::int64_t>(file.size())}, file);
  check_op("(uint8[N] X) => (uint8[H,W,3] Y) { Y = ImageDecoder(X) }", 20, {x},
           {u8({1, 2, 3}, {10, 20, 30, 40, 50, 60})});
  check_op("(uint8[N] X) => (uint8[H,W,3] Y) { Y = ImageDecoder<pixel_format=\"BGR\">(X) }", 20, {x},
           {u8({1, 2, 3}, {30, 20, 10, 60, 50, 40})});
  check_op("(uint8[N] X) => (uint8[H,W,1] Y) { Y = ImageDecoder<pixel_format=\"Grayscale\">(X) }", 20, {x},
           {u8({1, 2, 1}, {18, 48})});
  check_op_fails("(uint8[N] X) => (uint8[H,W,C] Y) { Y = ImageDecoder<pixel_format=\"YUV\">(X) }", 20, {x},
                 ErrorCode::InvalidModel, "YUV");
  check_op_fails("(uint8[N] X) => (uint8[H,W,C] Y) { Y = ImageDecoder(X) }", 20, {u8({0}, {})},
                 ErrorCode::InvalidArgument, "0 bytes");
}

TEST_CASE("Formats that are not supported are named") {
  constexpr ErrorCode kCode = ErrorCode::UnsupportedOperator;
  CHECK(refusal(from_text("RIFF\1\1\1\1WEBPVP8 "), kCode).find("WebP images are not supported") != std::string::npos);
  CHECK(refusal(from_text("\xFF\x4F\xFF\x51"), kCode).find("JPEG 2000 images are not supported") != std::string::npos);
  CHECK(refusal(from_text("<html>")).find("are no PNG") != std::string::npos);
}

TEST_CASE("Dimensions are held against the size of the file") {
  CHECK(refusal(from_text("P5 100000 100000 255\nab")).find("cut off") != std::string::npos);
  CHECK(refusal(from_text("P5 0 4 255\n")).find("no pixels") != std::string::npos);
  Encoded jpeg = from_hex(kSamples[0].hex);
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (jpeg[i] == 0xFF && jpeg[i + 1] == 0xC0) std::fill_n(jpeg.begin() + static_cast<std::ptrdiff_t>(i) + 5, 4, 0x20);
  }
  CHECK(refusal(jpeg).find("too short for its dimensions") != std::string::npos);
}

TEST_CASE("Images of more than 2^27 pixels are refused, of any format") {
  const auto made = [](std::uint64_t width, std::uint64_t height) {
    std::string message;
    try {
      ops::image::make_image({}, "PNG", width, height, 3);
    } catch (const Error& error) {
      message = error.what();
    }
    return message;
  };
  CHECK(made(16385, 8192).find("16385 x 8192 pixels are more than the limit of 134217728") != std::string::npos);
  CHECK(made(std::uint64_t{1} << 40, std::uint64_t{1} << 40).find("limit of 134217728") != std::string::npos);
  CHECK(made(3, 2).empty());
}

TEST_CASE("Damaged images decode or end in an error") {
  std::mt19937 random(1);
  for (const EncodedSample& sample : kSamples) {
    const Encoded whole = from_hex(sample.hex);
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      const Encoded cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK_NOTHROW(refusal(cut));
    }
    for (int i = 0; i < 100; ++i) {
      Encoded changed = whole;
      for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      CHECK_NOTHROW(refusal(changed));
    }
  }
}

}  // namespace
}  // namespace infernode::test
