// Image decoders hear that their run is to end, and what they hold counts against its memoryLimit.
#include <algorithm>
#include <array>

#include "kernel/profile.h"
#include "ops/image/image.h"
#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr std::uint32_t kSide = 4096;
constexpr std::size_t kPixels = std::size_t{kSide} * kSide;

using File = std::vector<std::uint8_t>;

void put(File& file, std::uint32_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

/// Grey pixels as text says them, or as bytes.
File pnm(char kind) {
  const std::string head = cat("P", std::string_view(&kind, 1), "\n", kSide, " ", kSide, kind == '1' ? "\n" : " 255\n");
  File file(head.begin(), head.end());
  file.resize(file.size() + kPixels, kind == '1' ? '1' : 7);
  return file;
}

File bmp() {
  File file{'B', 'M'};
  put(file, 0, 8);
  put(file, 14 + 40 + 1024, 4);
  put(file, 40, 4);
  put(file, kSide, 4);
  put(file, kSide, 4);
  put(file, 1, 2);
  put(file, 8, 2);
  file.resize(14 + 40 + 1024 + kPixels);
  return file;
}

/// One strip of grey bytes.
File tiff() {
  constexpr std::array<std::array<std::uint32_t, 2>, 7> kTags{
      {{256, kSide}, {257, kSide}, {258, 8}, {259, 1}, {262, 1}, {273, 8}, {278, kSide}}};
  File file{'I', 'I', '*', 0};
  put(file, static_cast<std::uint32_t>(8 + kPixels), 4);
  file.resize(8 + kPixels);
  put(file, static_cast<std::uint32_t>(kTags.size()), 2);
  for (const auto& [tag, value] : kTags) {
    put(file, tag, 2);
    put(file, 4, 2);
    put(file, 1, 4);
    put(file, value, 4);
  }
  put(file, 0, 4);
  return file;
}

/// One scan of a progressive JPEG, grey all over: its blocks are a bit each.
File progressive_jpeg() {
  File file{0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
  file.resize(file.size() + 64, 1);
  file.insert(file.end(), {0xff, 0xc2, 0, 11, 8, kSide >> 8, kSide & 0xff, kSide >> 8, kSide & 0xff, 1, 1, 0x11, 0});
  file.insert(file.end(), {0xff, 0xc4, 0, 20, 0, 1});  // one code: no difference
  file.resize(file.size() + 16, 0);
  file.insert(file.end(), {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0});
  file.resize(file.size() + kPixels / 64 / 8, 0);
  file.insert(file.end(), {0xff, 0xd9});
  return file;
}

constexpr const char* kDecoder = "(uint8[N] X) => (uint8[H,W,1] Y) { Y = ImageDecoder<pixel_format=\"Grayscale\">(X) }";

const CountedGraphs kGraphs([] { return CountedGraphs::Texts{kDecoder}; });

}  // namespace

TEST_CASE("image decoders hear the end of a run within 20 ms and count their buffers") {
  constexpr std::size_t kBetweenLooks = std::size_t{1} << 21;
  const auto check = [](const char* name, const File& file) {
    CAPTURE(name);
    const std::vector<Value> inputs{Tensor::of<std::uint8_t>({static_cast<std::int64_t>(file.size())}, file)};
    CHECK(looks_of(kDecoder, 20, inputs) >= kPixels / kBetweenLooks);
    CHECK(looks_of(kDecoder, 20, inputs, true) == 1);
    check_beyond_budget(kDecoder, 20, inputs, kPixels / 2);
  };
  check("text", pnm('1'));
  check("bytes", pnm('5'));
  check("BMP", bmp());
  check("TIFF", tiff());
}

TEST_CASE("a progressive JPEG becomes pixels within looks, too") {
  // Its bytes in pieces; pixels, and samples and coefficients of two bytes, zeroed; samples filled; one transform a
  // block; then pixels in steps.
  constexpr std::size_t kPieces = 8, kZeroed = 4 * kPixels >> 20, kFilled = kPixels >> 20, kTransforms = 4;
  constexpr std::size_t kSteps = kPixels >> 18, kLooks = kPieces + kZeroed + kFilled + kTransforms + kSteps;
  const File file = progressive_jpeg();
  kernel::LoopProfile profile;
  kernel::RunContext run;
  run.loops = &profile;
  const ops::image::Image image = ops::image::decode_image(file, run);
  CHECK(image.channels == 1);
  CHECK(image.width * image.height == kPixels);
  CHECK(std::ranges::all_of(image.pixels, [](std::uint8_t v) { return v == 128; }));
  CHECK(profile.looks() >= kLooks);
  CHECK(profile.looks() < 2 * kLooks);
}

namespace {

/// A baseline JPEG of blocks that are all alike: brightness grey, colors (of one sample to 2 x 2 pixels) a wave along
/// the rows of a block.
File waves(std::uint32_t width, std::uint32_t height) {
  File file{0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
  file.resize(file.size() + 64, 16);
  const auto u16 = [](std::uint32_t v) {
    return std::array{static_cast<std::uint8_t>(v >> 8), static_cast<std::uint8_t>(v)};
  };
  const auto [h1, h0] = u16(height);
  const auto [w1, w0] = u16(width);
  file.insert(file.end(), {0xff, 0xc0, 0, 17, 8, h1, h0, w1, w0, 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0});
  file.insert(file.end(), {0xff, 0xc4, 0, 20, 0, 1});  // differences of the mean: 0 is none
  file.resize(file.size() + 16, 0);
  file.insert(file.end(), {0xff, 0xc4, 0, 21, 0x10, 1, 1});  // the rest: 0 is the end, 10 the second one, of 3 bits
  file.resize(file.size() + 14, 0);
  file.insert(file.end(), {0x00, 0x13});
  file.insert(file.end(), {0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0});
  std::uint32_t bits = 0, count = 0;
  const auto write = [&](std::uint32_t value, std::uint32_t size) {
    for (std::uint32_t i = size; i-- > 0;) {
      bits = bits << 1 | (value >> i & 1);
      if (++count % 8 == 0) file.push_back(static_cast<std::uint8_t>(bits));
    }
  };
  for (std::size_t mcu = 0; mcu < std::size_t{(width + 15) / 16} * ((height + 15) / 16); ++mcu) {
    write(0, 8);                                                  // four blocks: no difference, the end
    for (int color = 0; color < 2; ++color) write(0b0101110, 7);  // no difference, 10, 7 times 16, the end
  }
  write(0x7f, (8 - count % 8) % 8);
  file.insert(file.end(), {0xff, 0xd9});
  return file;
}

}  // namespace

TEST_CASE("the colors of a JPEG are the same whatever the step that makes them") {
  constexpr std::size_t kPeriod = 16;
  for (const auto [width, height] : {std::array{1000u, 2001u}, std::array{601u, 1500u}, std::array{64u, 9000u}}) {
    CAPTURE(height);
    const ops::image::Image image = ops::image::decode_image(waves(width, height), {});
    REQUIRE(image.pixels.size() == std::size_t{3} * width * height);
    const std::size_t row = std::size_t{3} * width;
    CHECK_FALSE(std::equal(image.pixels.begin(), image.pixels.begin() + 1, image.pixels.begin() + row * 8));
    for (std::size_t y = 1; y + kPeriod + 1 < height; ++y) {
      const auto at = image.pixels.begin() + static_cast<std::ptrdiff_t>(y * row);
      REQUIRE(std::equal(at, at + static_cast<std::ptrdiff_t>(row), at + static_cast<std::ptrdiff_t>(kPeriod * row)));
    }
    kernel::LoopProfile profile;
    kernel::RunContext run;
    run.loops = &profile;
    ops::image::decode_image(waves(width, height), run);
    CHECK(profile.looks() >= image.pixels.size() / 3 >> 18);
  }
}
