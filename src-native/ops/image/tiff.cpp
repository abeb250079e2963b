#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "ops/image/image.h"

namespace infernode::ops::image {
namespace {

constexpr std::string_view kTiff = "TIFF";
constexpr double kByteNs = 2, kPixelNs = 5;  // rough times of one

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

std::vector<std::uint8_t> unpack_bits(Bytes data, std::size_t size, kernel::Watch& watch) {
  if (size / 128 > data.size()) fail_image(kTiff, "its compressed data is too short");
  std::vector<std::uint8_t> out;
  out.reserve(size + 128);
  Reader in(data, kTiff, true);
  while (out.size() < size) {
    const unsigned n = in.u8();
    watch.did(kByteNs);
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
std::vector<std::uint8_t> unpack_lzw(Bytes data, std::size_t size, kernel::Watch& watch) {
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
    watch.did(kByteNs * static_cast<double>(previous.length + 1));
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

/// What is unpacked counts at the caller's.
std::vector<std::uint8_t> unpack(const RunContext& run, Bytes data, std::uint32_t compression, std::size_t size) {
  kernel::Watch watch(run);
  switch (compression) {
    case 1:
      if (data.size() < size) fail_image(kTiff, "the file is cut off");
      return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    case 5:
      return unpack_lzw(data, size, watch);
    case 8:
    case 32946:
      return zlib_decompress(run, data, size, kTiff);
    case 32773:
      return unpack_bits(data, size, watch);
    default:
      fail_image(kTiff, cat("compression ", compression, compression == 6 || compression == 7 ? " (JPEG)" : "",
                            " is not supported: save it uncompressed, or with LZW, Deflate or PackBits"));
  }
}

/// What the directory says of the picture, checked.
struct Layout {
  bool big = false, planar = false, palette = false, tiled = false;
  std::uint32_t width = 0, height = 0, bits = 0, samples = 0, photometric = 0, compression = 0, predictor = 0;
  std::size_t colors = 0;                ///< samples of a pixel that are colors: 1 or 3
  std::span<const std::uint32_t> map{};  ///< red, then green, then blue of all entries, where there is a palette
  std::uint64_t tile_width = 0, tile_height = 0, across = 0, down = 0;
  std::span<const std::uint32_t> offsets{}, sizes{};  ///< of strips or tiles, plane by plane; sizes may be missing

  std::size_t tiles() const { return static_cast<std::size_t>(across * down); }
  /// Samples that stand together.
  std::size_t per_pixel() const { return planar ? 1 : samples; }
  std::size_t row_bytes() const { return static_cast<std::size_t>((tile_width * per_pixel() * bits + 7) / 8); }
};

void read_samples(const Tags& tags, Layout& t) {
  t.width = get(tags, kWidth, 0);
  t.height = get(tags, kHeight, 0);
  t.bits = get(tags, kBits, 1);
  t.samples = get(tags, kSamples, 1);
  t.photometric = get(tags, kPhotometric, 1);
  t.compression = get(tags, kCompression, 1);
  t.predictor = get(tags, kPredictor, 1);
  t.planar = get(tags, kPlanar, 1) == 2 && t.samples > 1;
  t.palette = t.photometric == 3;
  t.colors = t.photometric == 2 ? 3 : 1;
  if (t.photometric > 3) fail_image(kTiff, cat("photometric interpretation ", t.photometric, " is not supported"));
  if ((t.bits != 1 && t.bits != 2 && t.bits != 4 && t.bits != 8 && t.bits != 16) || get(tags, kSampleFormat, 1) != 1)
    fail_image(kTiff, cat("samples of ", t.bits, " bits of that kind are not supported"));
  if (const auto all = tags.find(kBits); all != tags.end()) {
    for (const std::uint32_t b : all->second) {
      if (b != t.bits) fail_image(kTiff, "samples of different sizes are not supported");
    }
  }
  if (t.samples < t.colors || t.samples > 16)
    fail_image(kTiff, cat(t.samples, " samples per pixel do not fit its colors"));
  if (t.predictor > 2 || (t.predictor == 2 && t.bits < 8))
    fail_image(kTiff, cat("predictor ", t.predictor, " is not supported"));
  if (!t.palette) return;
  t.map = list(tags, kColorMap);
  if (t.bits > 8 || t.map.size() < std::size_t{3} << t.bits) fail_image(kTiff, "its palette is missing");
}

/// Strips are tiles as wide as the image.
void read_tiles(const RunContext& run, const Tags& tags, Layout& t) {
  t.tiled = tags.contains(kTileWidth);
  t.tile_width = t.tiled ? get(tags, kTileWidth, 0) : t.width;
  t.tile_height = t.tiled ? get(tags, kTileHeight, 0)
                          : std::min(std::max(get(tags, kRowsPerStrip, t.height), 1u), std::max(t.height, 1u));
  if (std::uint64_t{t.width} * t.height > kMaxPixels || t.width == 0 || t.height == 0)
    make_image(run, kTiff, t.width, t.height, 1);  // throws
  if (t.tile_width == 0 || t.tile_height == 0 || t.tile_width > kMaxPixels ||
      t.tile_height > kMaxPixels / t.tile_width ||
      t.tile_width * t.tile_height * t.samples * t.bits / 8 > kMaxPixels * 8)
    fail_image(kTiff, "the size of its tiles is not supported");
  t.across = (t.width + t.tile_width - 1) / t.tile_width;
  t.down = (t.height + t.tile_height - 1) / t.tile_height;
  t.offsets = list(tags, t.tiled ? kTileOffsets : kStripOffsets);
  if (const auto sizes = tags.find(t.tiled ? kTileBytes : kStripBytes); sizes != tags.end()) t.sizes = sizes->second;
  if (t.offsets.size() < t.tiles() * (t.planar ? t.samples : 1)) fail_image(kTiff, "it lacks strips or tiles");
}

/// Big-endian samples as they were before they were predicted.
void restore(const Layout& t, std::uint8_t* row, kernel::Watch& watch) {
  const std::size_t row_bytes = t.row_bytes();
  if (t.bits == 16 && !t.big) {
    for (std::size_t i = 0; i + 1 < row_bytes; i += 2) std::swap(row[i], row[i + 1]);
  }
  if (t.predictor != 2) return;
  const std::size_t step = t.per_pixel() * t.bits / 8;
  for (std::size_t i = step; i < row_bytes; i += t.bits / 8) {
    watch.did(kByteNs);
    if (t.bits == 8) {
      row[i] = static_cast<std::uint8_t>(row[i] + row[i - step]);
    } else {
      const unsigned sum = (row[i] << 8 | row[i + 1]) + (row[i - step] << 8 | row[i - step + 1]);
      row[i] = static_cast<std::uint8_t>(sum >> 8);
      row[i + 1] = static_cast<std::uint8_t>(sum);
    }
  }
}

/// Puts `count` pixels of a tile's row into the image; `plane`: the only sample there, where planes stand apart.
void put_row(const Layout& t, const std::uint8_t* row, std::size_t count, std::size_t plane, std::size_t channels,
             std::uint8_t* to, kernel::Watch& watch) {
  const BitSamples values(row, t.bits);
  const std::size_t per_pixel = t.per_pixel();
  for (std::size_t x = 0; x < count; ++x, to += channels) {
    watch.did(kPixelNs);
    if (t.palette) {
      for (std::size_t c = 0; c < 3; ++c)
        to[c] = static_cast<std::uint8_t>(t.map[(c << t.bits) + values[x * per_pixel]] >> 8);
    } else if (t.planar) {
      to[plane] = values.scaled(x);
    } else {
      for (std::size_t c = 0; c < t.colors; ++c) to[c] = values.scaled(x * per_pixel + c);
    }
    if (t.photometric == 0) to[0] = static_cast<std::uint8_t>(255 - to[0]);
  }
}

}  // namespace

bool matches_tiff(Bytes file) {
  return file.size() >= 8 && (std::memcmp(file.data(), "II*\0", 4) == 0 || std::memcmp(file.data(), "MM\0*", 4) == 0);
}

Image decode_tiff(Bytes file, const RunContext& run) {
  Layout t;
  t.big = file[0] == 'M';
  const Tags tags = read_tags(file, t.big);
  read_samples(tags, t);
  read_tiles(run, tags, t);

  kernel::Watch watch(run);
  Image out;
  const std::size_t channels = t.palette ? 3 : t.colors;
  const std::size_t planes = t.planar ? std::min<std::size_t>(t.samples, t.colors) : 1, row_bytes = t.row_bytes();
  for (std::size_t tile = 0; tile < t.tiles() * planes; ++tile) {
    const std::size_t plane = tile / t.tiles(), place = tile % t.tiles();
    const std::size_t x0 = place % t.across * t.tile_width, y0 = place / t.across * t.tile_height;
    const std::size_t rows = t.tiled ? t.tile_height : std::min<std::size_t>(t.tile_height, t.height - y0);
    Reader at(file, kTiff, t.big);
    at.seek(t.offsets[tile]);
    const std::size_t stated = tile < t.sizes.size() ? t.sizes[tile] : at.left();
    const kernel::Charge charge(run, rows * row_bytes);
    std::vector<std::uint8_t> data = unpack(run, at.take(std::min(stated, at.left())), t.compression, rows * row_bytes);
    if (out.pixels.empty())
      out = make_image(run, kTiff, t.width, t.height, channels);  // after the first tile proved to be there
    for (std::size_t y = 0; y < rows && y0 + y < t.height; ++y) {
      std::uint8_t* row = data.data() + y * row_bytes;
      restore(t, row, watch);
      put_row(t, row, std::min<std::size_t>(t.tile_width, t.width - x0), plane, channels,
              out.pixels.data() + ((y0 + y) * out.width + x0) * channels, watch);
    }
  }
  return out;
}

}  // namespace infernode::ops::image
