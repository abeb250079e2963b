#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "ops/image/image.h"

namespace infernode::ops::image {
namespace {

constexpr std::string_view kTiff = "TIFF";

enum Tag : std::uint16_t {
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamples = 277,
  kRowsPerStrip = 278,
  kStripBytes = 279,
  kPlanar = 284,
  kPredictor = 317,
  kColorMap = 320,
  kTileWidth = 322,
  kTileHeight = 323,
  kTileOffsets = 324,
  kTileBytes = 325,
  kSampleFormat = 339,
};

using Tags = std::map<std::uint16_t, std::vector<std::uint32_t>>;

/// Integers of the first directory.
Tags read_tags(Bytes file, bool big) {
  Reader in(file, kTiff, big);
  in.seek(4);
  in.seek(in.u32());
  const unsigned count = in.u16();
  Tags tags;
  std::size_t total = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint16_t tag = in.u16();
    const unsigned type = in.u16();
    const std::uint32_t values = in.u32();
    const std::size_t size = type == 1 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 0;
    if (size == 0 || values == 0) {
      in.take(4);
      continue;
    }
    Reader at = in;
    if (size * values > 4) at.seek(at.u32());
    if (std::uint64_t{values} * size > at.left() || (total += values) > file.size())
      fail_image(kTiff, "the file is cut off");
    auto& list = tags[tag];
    list.clear();
    for (std::uint32_t v = 0; v < values; ++v) list.push_back(size == 1 ? at.u8() : size == 2 ? at.u16() : at.u32());
    in.take(4);
  }
  return tags;
}

std::uint32_t get(const Tags& tags, Tag tag, std::uint32_t fallback) {
  const auto found = tags.find(tag);
  return found == tags.end() ? fallback : found->second[0];
}

const std::vector<std::uint32_t>& list(const Tags& tags, Tag tag) {
  const auto found = tags.find(tag);
  if (found == tags.end()) fail_image(kTiff, cat("tag ", static_cast<unsigned>(tag), " is missing"));
  return found->second;
}

std::vector<std::uint8_t> unpack_bits(Bytes data, std::size_t size) {
  if (size / 128 > data.size()) fail_image(kTiff, "its compressed data is too short");
  std::vector<std::uint8_t> out;
  out.reserve(size + 128);
  Reader in(data, kTiff, true);
  while (out.size() < size) {
    const unsigned n = in.u8();
    if (n < 128) {
      const Bytes literal = in.take(n + 1);
      out.insert(out.end(), literal.begin(), literal.end());
    } else if (n > 128) {
      out.insert(out.end(), 257 - n, in.u8());
    }
  }
  out.resize(size);
  return out;
}

/// TIFF's LZW: codes of 9 to 12 bits, highest bit first, that grow one code early.
std::vector<std::uint8_t> unpack_lzw(Bytes data, std::size_t size) {
  constexpr unsigned kClear = 256, kEnd = 257, kFirst = 258, kMost = 4096;
  if (size / 4096 > data.size()) fail_image(kTiff, "its compressed data is too short");
  std::vector<std::uint8_t> out;
  out.reserve(size);
  struct Entry {
    std::size_t at;  ///< where its text stands in `out`
    std::size_t length;
  };
  std::vector<Entry> entries(kMost);
  unsigned next = kFirst, width = 9, held = 0;
  std::uint32_t bits = 0;
  std::size_t at = 0;
  Entry previous{0, 0};
  while (out.size() < size) {
    while (held < width) {
      if (at >= data.size()) fail_image(kTiff, "its compressed data ends too early");
      bits = bits << 8 | data[at++];
      held += 8;
    }
    held -= width;
    const unsigned code = bits >> held & ((1u << width) - 1);
    if (code == kEnd) break;
    if (code == kClear) {
      next = kFirst;
      width = 9;
      previous.length = 0;
      continue;
    }
    const Entry here{out.size(), 0};
    std::size_t length = 1;
    if (code < 256) {
      out.push_back(static_cast<std::uint8_t>(code));
    } else {
      // A code may name the entry that it completes: the text before it and that text's first byte.
      const bool known = code < next;
      if ((!known && code != next) || previous.length == 0) fail_image(kTiff, "its compressed data is damaged");
      const Entry from = known ? entries[code] : Entry{previous.at, previous.length + 1};
      length = std::min(from.length, size - out.size());
      for (std::size_t i = 0; i < length; ++i) out.push_back(out[from.at + i]);
    }
    if (previous.length > 0 && next < kMost) entries[next++] = {previous.at, previous.length + 1};
    previous = {here.at, length};
    if (next + 1 >= 1u << width && width < 12) ++width;
  }
  if (out.size() < size) fail_image(kTiff, "its compressed data ends too early");
  return out;
}

std::vector<std::uint8_t> unpack(Bytes data, std::uint32_t compression, std::size_t size) {
  switch (compression) {
    case 1:
      if (data.size() < size) fail_image(kTiff, "the file is cut off");
      return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    case 5:
      return unpack_lzw(data, size);
    case 8:
    case 32946:
      return zlib_decompress(data, size, kTiff);
    case 32773:
      return unpack_bits(data, size);
    default:
      fail_image(kTiff, cat("compression ", compression, compression == 6 || compression == 7 ? " (JPEG)" : "",
                            " is not supported: save it uncompressed, or with LZW, Deflate or PackBits"));
  }
}

}  // namespace

bool matches_tiff(Bytes file) {
  return file.size() >= 8 && (std::memcmp(file.data(), "II*\0", 4) == 0 || std::memcmp(file.data(), "MM\0*", 4) == 0);
}

Image decode_tiff(Bytes file) {
  const bool big = file[0] == 'M';
  const Tags tags = read_tags(file, big);
  const std::uint32_t width = get(tags, kWidth, 0), height = get(tags, kHeight, 0), bits = get(tags, kBits, 1),
                      samples = get(tags, kSamples, 1), photometric = get(tags, kPhotometric, 1),
                      compression = get(tags, kCompression, 1), predictor = get(tags, kPredictor, 1);
  const bool planar = get(tags, kPlanar, 1) == 2 && samples > 1, palette = photometric == 3;
  if (photometric > 3) fail_image(kTiff, cat("photometric interpretation ", photometric, " is not supported"));
  if ((bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16) || get(tags, kSampleFormat, 1) != 1) {
    fail_image(kTiff, cat("samples of ", bits, " bits of that kind are not supported"));
  }
  if (const auto all = tags.find(kBits); all != tags.end()) {
    for (const std::uint32_t b : all->second) {
      if (b != bits) fail_image(kTiff, "samples of different sizes are not supported");
    }
  }
  const std::size_t colors = photometric == 2 ? 3 : 1;
  if (samples < colors || samples > 16) fail_image(kTiff, cat(samples, " samples per pixel do not fit its colors"));
  if (predictor > 2 || (predictor == 2 && bits < 8))
    fail_image(kTiff, cat("predictor ", predictor, " is not supported"));
  std::span<const std::uint32_t> map;
  if (palette) {
    map = list(tags, kColorMap);
    if (bits > 8 || map.size() < std::size_t{3} << bits) fail_image(kTiff, "its palette is missing");
  }

  // Strips are tiles as wide as the image.
  const bool tiled = tags.contains(kTileWidth);
  const std::uint64_t tile_width = tiled ? get(tags, kTileWidth, 0) : width;
  const std::uint64_t tile_height =
      tiled ? get(tags, kTileHeight, 0)
            : std::min(std::max(get(tags, kRowsPerStrip, height), 1u), std::max(height, 1u));
  if (std::uint64_t{width} * height > kMaxPixels || width == 0 || height == 0)
    make_image(kTiff, width, height, 1);  // throws
  if (tile_width == 0 || tile_height == 0 || tile_width > kMaxPixels || tile_height > kMaxPixels / tile_width) {
    fail_image(kTiff, "the size of its tiles is not supported");
  }
  if (tile_width * tile_height * samples * bits / 8 > kMaxPixels * 8)
    fail_image(kTiff, "the size of its tiles is not supported");
  const auto& offsets = list(tags, tiled ? kTileOffsets : kStripOffsets);
  const auto sizes = tags.find(tiled ? kTileBytes : kStripBytes);
  const std::uint64_t across = (width + tile_width - 1) / tile_width, down = (height + tile_height - 1) / tile_height;
  const std::size_t planes = planar ? samples : 1, per_pixel = planar ? 1 : samples;
  if (offsets.size() < across * down * planes) fail_image(kTiff, "it lacks strips or tiles");

  Image out;
  const std::size_t channels = palette ? 3 : colors, used = planar ? std::min<std::size_t>(planes, colors) : 1;
  const std::size_t row_bytes = static_cast<std::size_t>((tile_width * per_pixel * bits + 7) / 8);
  for (std::size_t tile = 0; tile < across * down * used; ++tile) {
    const std::size_t plane = tile / (across * down), place = tile % (across * down);
    const std::size_t x0 = place % across * tile_width, y0 = place / across * tile_height;
    const std::size_t rows = tiled ? tile_height : std::min<std::size_t>(tile_height, height - y0);
    Reader at(file, kTiff, big);
    at.seek(offsets[tile]);
    const std::size_t stated = sizes != tags.end() && tile < sizes->second.size() ? sizes->second[tile] : at.left();
    std::vector<std::uint8_t> data = unpack(at.take(std::min(stated, at.left())), compression, rows * row_bytes);
    if (out.pixels.empty())
      out = make_image(kTiff, width, height, channels);  // after the first tile proved to be there
    for (std::size_t y = 0; y < rows && y0 + y < height; ++y) {
      std::uint8_t* row = data.data() + y * row_bytes;
      if (bits == 16 && !big) {
        for (std::size_t i = 0; i + 1 < row_bytes; i += 2) std::swap(row[i], row[i + 1]);
      }
      if (predictor == 2) {
        const std::size_t step = per_pixel * bits / 8;
        for (std::size_t i = step; i < row_bytes; i += bits / 8) {
          if (bits == 8) {
            row[i] = static_cast<std::uint8_t>(row[i] + row[i - step]);
          } else {
            const unsigned sum = (row[i] << 8 | row[i + 1]) + (row[i - step] << 8 | row[i - step + 1]);
            row[i] = static_cast<std::uint8_t>(sum >> 8);
            row[i + 1] = static_cast<std::uint8_t>(sum);
          }
        }
      }
      const BitSamples values(row, bits);
      std::uint8_t* to = out.pixels.data() + ((y0 + y) * out.width + x0) * channels;
      for (std::size_t x = 0; x < tile_width && x0 + x < width; ++x, to += channels) {
        if (palette) {
          for (std::size_t c = 0; c < 3; ++c)
            to[c] = static_cast<std::uint8_t>(map[(c << bits) + values[x * per_pixel]] >> 8);
        } else if (planar) {
          to[plane] = values.scaled(x);
        } else {
          for (std::size_t c = 0; c < colors; ++c) to[c] = values.scaled(x * per_pixel + c);
        }
        if (photometric == 0) to[0] = static_cast<std::uint8_t>(255 - to[0]);
      }
    }
  }
  return out;
}

}  // namespace infernode::ops::image
