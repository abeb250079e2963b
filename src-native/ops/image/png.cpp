#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "ops/image/image.h"

namespace infernode::ops::image {
namespace {

constexpr std::string_view kPng = "PNG";

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t n = 0; n < 256; ++n) {
    std::uint32_t c = n;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
    table[n] = c;
  }
  return table;
}();

std::uint32_t crc32(Bytes bytes) {
  std::uint32_t c = 0xFFFFFFFFu;
  for (const std::uint8_t b : bytes) c = kCrcTable[(c ^ b) & 0xFF] ^ c >> 8;
  return ~c;
}

struct Header {
  std::uint32_t width, height;
  unsigned bits, color;
  bool interlaced;
  std::size_t samples() const { return color == 2 ? 3 : color == 4 ? 2 : color == 6 ? 4 : 1; }
  std::size_t row_bytes(std::size_t pixels) const { return (pixels * samples() * bits + 7) / 8; }
};

Header read_header(Bytes chunk) {
  if (chunk.size() != 13) fail_image(kPng, "its header has a wrong length");
  Reader in(chunk, kPng, true);
  Header h{in.u32(), in.u32(), in.u8(), in.u8(), false};
  const unsigned compression = in.u8(), filter = in.u8(), interlace = in.u8();
  const bool depth_fits = h.color == 0 ? h.bits == 1 || h.bits == 2 || h.bits == 4 || h.bits == 8 || h.bits == 16
                          : h.color == 3
                              ? h.bits == 1 || h.bits == 2 || h.bits == 4 || h.bits == 8
                              : (h.color == 2 || h.color == 4 || h.color == 6) && (h.bits == 8 || h.bits == 16);
  if (!depth_fits) fail_image(kPng, cat("color type ", h.color, " with ", h.bits, " bits does not exist"));
  if (compression != 0 || filter != 0 || interlace > 1) fail_image(kPng, "its header names an unknown method");
  h.interlaced = interlace == 1;
  return h;
}

/// Undoes the filter of one row; `above` is the row before it (zeros for the first), `step` the bytes of a pixel.
void unfilter(unsigned type, std::uint8_t* row, const std::uint8_t* above, std::size_t count, std::size_t step) {
  for (std::size_t i = 0; i < count; ++i) {
    const int left = i >= step ? row[i - step] : 0, up = above[i], corner = i >= step ? above[i - step] : 0;
    int predicted = 0;
    switch (type) {
      case 0:
        return;
      case 1:
        predicted = left;
        break;
      case 2:
        predicted = up;
        break;
      case 3:
        predicted = (left + up) / 2;
        break;
      case 4: {
        const int p = left + up - corner, a = std::abs(p - left), b = std::abs(p - up), c = std::abs(p - corner);
        predicted = a <= b && a <= c ? left : b <= c ? up : corner;
        break;
      }
      default:
        fail_image(kPng, cat("filter ", type, " does not exist"));
    }
    row[i] = static_cast<std::uint8_t>(row[i] + predicted);
  }
}

struct Pass {
  std::size_t x, y, dx, dy;
};
constexpr Pass kWhole{0, 0, 1, 1};
constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

}  // namespace

bool matches_png(Bytes file) { return file.size() >= 8 && std::memcmp(file.data(), "\x89PNG\r\n\x1A\n", 8) == 0; }

Image decode_png(Bytes file) {
  Reader in(file, kPng, true);
  in.seek(8);
  Header header{};
  Bytes palette;
  std::vector<std::uint8_t> compressed;
  for (bool first = true, end = false; !end; first = false) {
    const std::uint32_t length = in.u32();
    const Bytes body = in.take(std::uint64_t{length} + 4);
    if (in.u32() != crc32(body)) fail_image(kPng, "a checksum does not match");
    const std::string_view type(reinterpret_cast<const char*>(body.data()), 4);
    const Bytes data = body.subspan(4);
    if (first != (type == "IHDR")) fail_image(kPng, "its header is missing or stands twice");
    if (type == "IHDR")
      header = read_header(data);
    else if (type == "PLTE")
      palette = data;
    else if (type == "IDAT")
      compressed.insert(compressed.end(), data.begin(), data.end());
    else if (type == "IEND")
      end = true;
    else if ((type[0] & 0x20) == 0)
      fail_image(kPng, cat("it needs the unknown chunk ", type));
  }
  if (header.color == 3 && (palette.empty() || palette.size() % 3 != 0)) fail_image(kPng, "its palette is missing");

  const std::size_t channels = header.color == 0 || header.color == 4 ? 1 : 3;
  // Dims are checked before the size of the data is computed from them, and memory is asked for only when it is there.
  if (std::uint64_t{header.width} * header.height > kMaxPixels) make_image(kPng, header.width, header.height, channels);
  const std::span<const Pass> passes = header.interlaced ? std::span<const Pass>(kAdam7) : std::span(&kWhole, 1);
  const auto count = [](std::size_t size, std::size_t begin, std::size_t step) {
    return size > begin ? (size - begin + step - 1) / step : 0;
  };
  std::size_t size = 0;
  for (const Pass& p : passes) {
    const std::size_t columns = count(header.width, p.x, p.dx);
    if (columns > 0) size += (header.row_bytes(columns) + 1) * count(header.height, p.y, p.dy);
  }
  std::vector<std::uint8_t> data = zlib_decompress(compressed, size, kPng);
  Image out = make_image(kPng, header.width, header.height, channels);

  const std::size_t step = std::max<std::size_t>(header.samples() * header.bits / 8, 1);
  std::uint8_t* row = data.data();
  for (const Pass& p : passes) {
    const std::size_t columns = count(header.width, p.x, p.dx), bytes = header.row_bytes(columns);
    if (columns == 0) continue;
    const std::vector<std::uint8_t> zeros(bytes);
    const std::uint8_t* above = zeros.data();
    for (std::size_t y = p.y; y < header.height; y += p.dy, row += bytes + 1) {
      unfilter(row[0], row + 1, above, bytes, step);
      above = row + 1;
      const BitSamples samples(row + 1, header.bits);
      for (std::size_t i = 0; i < columns; ++i) {
        std::uint8_t* to = out.pixels.data() + (y * out.width + p.x + i * p.dx) * channels;
        if (header.color == 3) {
          const std::size_t entry = samples[i];
          if (entry * 3 >= palette.size()) fail_image(kPng, "a pixel lies outside the palette");
          std::copy_n(palette.begin() + static_cast<std::ptrdiff_t>(entry * 3), 3, to);
        } else {
          for (std::size_t c = 0; c < channels; ++c) to[c] = samples.scaled(i * header.samples() + c);
        }
      }
    }
  }
  return out;
}

}  // namespace infernode::ops::image
