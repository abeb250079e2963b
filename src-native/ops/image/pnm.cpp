#include <algorithm>

#include "ops/image/image.h"

namespace infernode::ops::image {
namespace {

constexpr std::string_view kPnm = "PNM";
constexpr double kByteNs = 2;  // rough time of one

bool is_space(std::uint8_t c) { return c == ' ' || (c >= 9 && c <= 13); }

/// Reads up to the end of a comment's line.
void skip_comment(Reader& in, std::uint8_t& c, kernel::Watch& watch) {
  for (; c != '\n' && c != '\r'; c = in.u8()) watch.did(kByteNs);
}

/// Skips whitespace and comments.
void skip_space(Reader& in, std::uint8_t& c, kernel::Watch& watch) {
  while (is_space(c) || c == '#') {
    if (c == '#') skip_comment(in, c, watch);
    watch.did(kByteNs);
    c = in.u8();
  }
}

/// A decimal number and the one byte behind it.
std::uint32_t number(Reader& in, kernel::Watch& watch) {
  std::uint8_t c = in.u8();
  skip_space(in, c, watch);
  if (c < '0' || c > '9') fail_image(kPnm, "a number is missing");
  std::uint32_t value = 0;
  for (; c >= '0' && c <= '9'; c = in.left() > 0 ? in.u8() : std::uint8_t{' '}) {
    value = value * 10 + (c - '0');
    if (value > kMaxPixels) fail_image(kPnm, "a number is too large");
  }
  if (!is_space(c) && c != '#') fail_image(kPnm, "a number is followed by something else");
  if (c == '#') skip_comment(in, c, watch);
  return value;
}

}  // namespace

bool matches_pnm(Bytes file) {
  return file.size() >= 3 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6' &&
         (is_space(file[2]) || file[2] == '#');
}

Image decode_pnm(Bytes file, const RunContext& run) {
  kernel::Watch watch(run);
  Reader in(file, kPnm, true);
  in.seek(1);
  const unsigned kind = in.u8() - '0';
  const bool text = kind <= 3, bitmap = kind == 1 || kind == 4;
  const std::size_t channels = kind == 3 || kind == 6 ? 3 : 1;
  const std::uint32_t width = number(in, watch), height = number(in, watch), most = bitmap ? 1 : number(in, watch);
  if (most == 0 || most > 65535) fail_image(kPnm, cat("a largest value of ", most, " is not allowed"));
  // What is left must hold the samples, at least a bit or a digit each.
  const std::uint64_t samples = std::uint64_t{width} * height * channels;
  if (samples / 8 > in.left()) fail_image(kPnm, "the file is cut off");
  Image out = make_image(run, kPnm, width, height, channels);
  if (kind == 4) {
    for (std::size_t y = 0; y < height; ++y) {
      const BitSamples row(in.take((std::uint64_t{width} + 7) / 8).data(), 1);
      for (std::size_t x = 0; x < width; ++x) {
        watch.did(kByteNs);
        out.pixels[y * width + x] = row[x] ? 0 : 255;
      }
    }
    return out;
  }
  for (std::uint8_t& pixel : out.pixels) {
    std::uint32_t value;
    watch.did(kByteNs);
    if (kind == 1) {  // digits need no space between them
      std::uint8_t c = in.u8();
      skip_space(in, c, watch);
      if (c != '0' && c != '1') fail_image(kPnm, "a bitmap holds digits 0 and 1 only");
      pixel = c == '1' ? 0 : 255;
      continue;
    }
    value = text ? number(in, watch) : most > 255 ? in.u16() : in.u8();
    pixel = static_cast<std::uint8_t>((std::min(value, most) * 255 + most / 2) / most);
  }
  return out;
}

}  // namespace infernode::ops::image
