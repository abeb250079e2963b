#include <algorithm>
#include <array>
#include <bit>

#include "ops/image/image.h"

namespace infernode::ops::image {
namespace {

constexpr std::string_view kBmp = "BMP";
constexpr double kPixelNs = 4;  // rough time of one
enum Compression : std::uint32_t { kNone = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3, kAlphaBitFields = 6 };

/// A channel of a pixel word: its bits, scaled to 8.
std::uint8_t channel(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const std::uint32_t most = mask >> std::countr_zero(mask);
  return static_cast<std::uint8_t>(std::uint64_t{(pixel & mask) >> std::countr_zero(mask)} * 255 / most);
}

/// Run-length coded palette indices, rows from the bottom; pixels skipped keep index 0.
std::vector<std::uint8_t> decode_runs(Reader& in, std::size_t width, std::size_t height, bool nibbles,
                                      kernel::Watch& watch) {
  std::vector<std::uint8_t> out(width * height);
  std::size_t x = 0, y = 0;
  const auto put = [&](unsigned index) {
    if (y < height && x < width) out[y * width + x] = static_cast<std::uint8_t>(index);
    ++x;
  };
  while (y < height) {
    const unsigned count = in.u8(), value = in.u8();
    watch.did(kPixelNs * std::max(count, 1u));
    if (count > 0) {
      for (unsigned i = 0; i < count; ++i) put(!nibbles ? value : i % 2 == 0 ? value >> 4 : value & 15);
    } else if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 1) {
      break;
    } else if (value == 2) {
      x += in.u8();
      y += in.u8();
    } else {
      const std::size_t bytes = nibbles ? (value + 1) / 2 : value;
      const Bytes data = in.take(bytes + bytes % 2);
      for (unsigned i = 0; i < value; ++i) put(!nibbles ? data[i] : i % 2 == 0 ? data[i / 2] >> 4 : data[i / 2] & 15u);
    }
  }
  return out;
}

}  // namespace

bool matches_bmp(Bytes file) { return file.size() >= 18 && file[0] == 'B' && file[1] == 'M'; }

Image decode_bmp(Bytes file, const RunContext& run) {
  Reader in(file, kBmp, false);
  in.seek(10);
  const std::uint32_t data_at = in.u32(), header_size = in.u32();
  const bool old = header_size == 12;
  if (!old && (header_size < 40 || header_size > 124))
    fail_image(kBmp, cat("a header of ", header_size, " bytes is unknown"));
  const std::uint32_t width = old ? in.u16() : in.u32(), height_field = old ? in.u16() : in.u32();
  const bool top_down = !old && height_field >> 31 != 0;
  const std::uint32_t height = top_down ? 0 - height_field : height_field;
  in.u16();  // planes
  const unsigned bits = in.u16();
  std::uint32_t compression = kNone, colors = 0;
  std::array<std::uint32_t, 3> masks = bits == 16 ? std::array<std::uint32_t, 3>{0x7C00, 0x3E0, 0x1F}
                                                  : std::array<std::uint32_t, 3>{0xFF0000, 0xFF00, 0xFF};
  if (!old) {
    compression = in.u32();
    in.seek(46);
    colors = in.u32();
    if (compression == kBitFields || compression == kAlphaBitFields) {
      in.seek(54);
      for (std::uint32_t& mask : masks) mask = in.u32();
    }
  }
  const bool runs = compression == kRle8 || compression == kRle4;
  const bool indexed = bits == 1 || bits == 4 || bits == 8;
  if (!indexed && bits != 16 && bits != 24 && bits != 32) fail_image(kBmp, cat(bits, " bits per pixel do not exist"));
  const bool fields = compression == kBitFields || compression == kAlphaBitFields;
  if (compression != kNone && !(fields && (bits == 16 || bits == 32)) && !(compression == kRle8 && bits == 8) &&
      !(compression == kRle4 && bits == 4)) {
    fail_image(kBmp, cat("compression ", compression, " with ", bits, " bits per pixel is not supported"));
  }

  Bytes palette;
  const std::size_t entry = old ? 3 : 4;
  if (indexed) {
    const std::uint32_t all = 1u << bits;
    if (colors == 0 || colors > all) colors = all;
    in.seek(std::uint64_t{14} + header_size + (fields && header_size == 40 ? 12 : 0));
    palette = in.take(std::min<std::uint64_t>(std::uint64_t{colors} * entry, in.left() / entry * entry));
  }
  in.seek(data_at);
  const std::uint64_t row_bytes = (std::uint64_t{width} * bits + 31) / 32 * 4;
  if (runs ? std::uint64_t{width} * height / 64 > in.left() * 255 : height > 0 && row_bytes > in.left() / height) {
    // The last row may lack its padding.
    if (runs || row_bytes * height > in.left() + 3) fail_image(kBmp, "the file is cut off");
  }
  Image out = make_image(run, kBmp, width, height, 3);
  kernel::Watch watch(run);
  const kernel::Charge charge(run, runs ? out.width * out.height : 0);
  const std::vector<std::uint8_t> indices =
      runs ? decode_runs(in, width, height, compression == kRle4, watch) : std::vector<std::uint8_t>();
  for (std::size_t y = 0; y < height; ++y) {
    std::uint8_t* to = out.pixels.data() + (top_down ? y : height - 1 - y) * out.width * 3;
    const Bytes row = runs ? Bytes(indices).subspan(y * width, width)
                           : in.take(std::min<std::uint64_t>(row_bytes, (y + 1 == height) ? in.left() : row_bytes));
    if (!runs && row.size() * 8 < std::uint64_t{width} * bits) fail_image(kBmp, "the file is cut off");
    const BitSamples samples(row.data(), runs ? 8 : bits);
    for (std::size_t x = 0; x < width; ++x, to += 3) {
      watch.did(kPixelNs);
      if (indexed) {
        const std::size_t at = samples[x] * entry;
        if (at + 2 >= palette.size()) fail_image(kBmp, "a pixel lies outside the palette");
        for (std::size_t c = 0; c < 3; ++c) to[c] = palette[at + 2 - c];
      } else if (bits == 24) {
        for (std::size_t c = 0; c < 3; ++c) to[c] = row[3 * x + 2 - c];
      } else {
        std::uint32_t pixel = 0;
        for (std::size_t b = bits / 8; b-- > 0;) pixel = pixel << 8 | row[x * (bits / 8) + b];
        for (std::size_t c = 0; c < 3; ++c) to[c] = channel(pixel, masks[c]);
      }
    }
  }
  return out;
}

}  // namespace infernode::ops::image
