#include "ops/image/jpeg.h"

#include <algorithm>
#include <memory>

namespace infernode::ops::image {
namespace jpeg {
namespace {

class Decoder {
 public:
  explicit Decoder(Bytes file) : file_(file), in_(file, kJpeg, true) {}

  Image run() {
    in_.seek(2);
    bool scanned = false;
    for (;;) {
      const unsigned marker = next_marker();
      if (marker == 0xD9) break;  // end of image
      if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7)) continue;
      if (marker == 0xDA) {
        scan();
        scanned = true;
        // Files without the end marker are common and whole.
        if (in_.left() < 2) break;
        continue;
      }
      const unsigned length = in_.u16();
      if (length < 2) fail_image(kJpeg, "a segment is damaged");
      segment(marker, in_.take(length - 2));
    }
    if (!scanned) fail_image(kJpeg, "it holds no picture");
    return picture();
  }

 private:
  unsigned next_marker() {
    unsigned byte = in_.u8();
    if (byte != 0xFF) fail_image(kJpeg, "a marker is missing");
    while (byte == 0xFF) byte = in_.u8();
    return byte;
  }

  void segment(unsigned marker, Bytes body) {
    Reader in(body, kJpeg, true);
    switch (marker) {
      case 0xC0:
      case 0xC1:
      case 0xC2:
        return frame(in, marker == 0xC2);
      case 0xC4:
        while (in.left() > 0) huffman(in);
        return;
      case 0xDB:
        while (in.left() > 0) quantization(in);
        return;
      case 0xDD:
        restart_interval_ = in.u16();
        return;
      case 0xE0:
        jfif_ = jfif_ || (body.size() >= 5 && std::equal(body.begin(), body.begin() + 5, "JFIF"));
        return;
      case 0xEE:
        if (body.size() >= 12 && std::equal(body.begin(), body.begin() + 5, "Adobe")) adobe_ = body[11];
        return;
      default:
        break;
    }
    if (marker >= 0xC0 && marker <= 0xCF) {
      const bool lossless = marker == 0xC3 || marker == 0xC7 || marker == 0xCB || marker == 0xCF;
      fail_image(kJpeg, lossless        ? "lossless JPEG is not supported"
                        : marker > 0xC8 ? "arithmetic coding is not supported"
                                        : "hierarchical JPEG is not supported");
    }
  }

  void huffman(Reader& in) {
    const unsigned which = in.u8();
    if (which >> 4 > 1 || (which & 15) > 3) fail_image(kJpeg, "a Huffman table is damaged");
    const Bytes counts = in.take(16);
    std::size_t total = 0;
    for (const std::uint8_t count : counts) total += count;
    if (total > 256) fail_image(kJpeg, "a Huffman table is damaged");
    tables_[which >> 4][which & 15] = std::make_unique<HuffmanTable>(counts, in.take(total));
  }

  void quantization(Reader& in) {
    const unsigned which = in.u8();
    if (which >> 4 > 1 || (which & 15) > 3) fail_image(kJpeg, "a quantization table is damaged");
    auto& table = quantization_[which & 15].emplace();
    for (const std::uint8_t place : kZigzag) table[place] = which >> 4 == 1 ? in.u16() : in.u8();
  }

  void frame(Reader& in, bool progressive) {
    if (!frame_.components.empty()) fail_image(kJpeg, "it has two frames");
    const unsigned precision = in.u8();
    if (precision != 8) fail_image(kJpeg, cat("samples of ", precision, " bits are not supported"));
    frame_.progressive = progressive;
    frame_.height = in.u16();
    frame_.width = in.u16();
    const unsigned count = in.u8();
    if (count != 1 && count != 3 && count != 4) fail_image(kJpeg, cat(count, " components are not supported"));
    if (frame_.width == 0 || frame_.height == 0 || frame_.width * frame_.height > kMaxPixels) {
      make_image(kJpeg, frame_.width, frame_.height, 1);  // throws
    }
    for (unsigned i = 0; i < count; ++i) {
      Component c;
      c.id = in.u8();
      const unsigned sampling = in.u8();
      c.h = sampling >> 4;
      c.v = sampling & 15;
      c.quantization = in.u8();
      if (c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.quantization > 3) fail_image(kJpeg, "its frame is damaged");
      if (count == 1) c.h = c.v = 1;  // says nothing where there is one
      frame_.most_h = std::max(frame_.most_h, c.h);
      frame_.most_v = std::max(frame_.most_v, c.v);
      frame_.components.push_back(c);
    }
    const auto divide = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
    frame_.mcu_columns = divide(frame_.width, 8 * frame_.most_h);
    frame_.mcu_rows = divide(frame_.height, 8 * frame_.most_v);
    std::size_t blocks = 0;
    for (Component& c : frame_.components) {
      if (frame_.most_h % c.h != 0 || frame_.most_v % c.v != 0) {
        fail_image(kJpeg, "components whose sizes are no multiples of each other are not supported");
      }
      c.columns = divide(frame_.width * c.h, frame_.most_h);
      c.rows = divide(frame_.height * c.v, frame_.most_v);
      c.block_columns = divide(c.columns, 8);
      c.block_rows = divide(c.rows, 8);
      c.stride = frame_.mcu_columns * c.h;
      c.stored_rows = frame_.mcu_rows * c.v;
      blocks += c.block_columns * c.block_rows;
    }
    // Each block takes a bit at least: a small file cannot ask for much memory.
    if (blocks / 8 > file_.size()) fail_image(kJpeg, "the file is too short for its dimensions");
    for (Component& c : frame_.components) c.coefficients.resize(c.stride * c.stored_rows * 64);
  }

  void scan() {
    const unsigned length = in_.u16();
    if (length < 2) fail_image(kJpeg, "a segment is damaged");
    Reader in(in_.take(length - 2), kJpeg, true);
    // Files that repeat scans for ever would take long; no encoder writes more than a few per coefficient.
    if (++scans_ > 1000) fail_image(kJpeg, "it has too many scans");
    Scan scan;
    scan.restart_interval = restart_interval_;
    const unsigned count = in.u8();
    if (count < 1 || count > 4 || frame_.components.empty()) fail_image(kJpeg, "a scan is damaged");
    std::size_t blocks = 0;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned id = in.u8(), tables = in.u8();
      Component* component = nullptr;
      for (Component& c : frame_.components) {
        if (c.id == id && !component) component = &c;
      }
      const bool twice = std::any_of(scan.parts.begin(), scan.parts.end(),
                                     [&](const Scan::Part& p) { return p.component == component; });
      if (!component || twice || tables >> 4 > 3 || (tables & 15) > 3) fail_image(kJpeg, "a scan is damaged");
      blocks += component->h * component->v;
      scan.parts.push_back({component, tables_[0][tables >> 4].get(), tables_[1][tables & 15].get()});
    }
    if (count > 1 && blocks > 10) fail_image(kJpeg, "a scan has too many blocks in a unit");
    scan.first = in.u8();
    scan.last = in.u8();
    const unsigned approximation = in.u8();
    scan.high = approximation >> 4;
    scan.low = approximation & 15;
    if (!frame_.progressive) {
      scan.first = scan.high = scan.low = 0;
      scan.last = 63;
    }
    const bool ac = scan.last > 0, dc = scan.first == 0;
    if (scan.last > 63 || scan.first > scan.last || scan.low > 13 || (frame_.progressive && dc && ac) ||
        (frame_.progressive && ac && count > 1)) {
      fail_image(kJpeg, "a scan is damaged");
    }
    for (const Scan::Part& part : scan.parts) {
      if ((dc && scan.high == 0 && !part.dc) || (ac && !part.ac))
        fail_image(kJpeg, "a scan names a missing Huffman table");
      auto& table = quantization_[part.component->quantization];
      // The table in force when a component is first scanned is its own.
      if (table && !latched_[part.component]) part.component->table = *table;
      latched_[part.component] = latched_[part.component] || table.has_value();
    }
    in_.take(decode_scan(frame_, scan, file_.subspan(in_.at())));
    // What some encoders leave between a scan and the next marker says nothing.
    for (Bytes rest = file_.subspan(in_.at()); rest.size() >= 2 && (rest[0] != 0xFF || rest[1] == 0);) {
      in_.take(1);
      rest = rest.subspan(1);
    }
  }

  Image picture() {
    for (Component& c : frame_.components) {
      if (!latched_[&c]) fail_image(kJpeg, "a component or its quantization table is missing");
    }
    const std::size_t count = frame_.components.size();
    std::vector<Upsampler> channels;
    for (Component& c : frame_.components) channels.emplace_back(frame_, c);
    Image out = make_image(kJpeg, frame_.width, frame_.height, count == 1 ? 1 : 3);
    const auto& parts = frame_.components;
    const bool named_rgb = parts.size() == 3 && parts[0].id == 'R' && parts[1].id == 'G' && parts[2].id == 'B';
    const bool luma = count == 3 ? jfif_ || (adobe_ ? *adobe_ != 0 : !named_rgb) : adobe_ && *adobe_ == 2;
    for (std::size_t y = 0; y < out.height; ++y) {
      std::uint8_t* to = out.pixels.data() + y * out.width * out.channels;
      const std::uint8_t* rows[4];
      for (std::size_t c = 0; c < count; ++c) rows[c] = channels[c].row(y);
      if (count == 1) {
        std::copy_n(rows[0], out.width, to);
        continue;
      }
      for (std::size_t x = 0; x < out.width; ++x, to += 3) {
        for (std::size_t c = 0; c < 3; ++c) to[c] = rows[c][x];
        if (luma) to_rgb(to);
        if (count == 3) continue;
        // Adobe's files hold CMYK inverted, others as it is; YCCK is CMY by way of RGB.
        const unsigned black = adobe_ ? rows[3][x] : 255u - rows[3][x];
        for (std::size_t c = 0; c < 3; ++c) {
          const unsigned light = adobe_ && !luma ? to[c] : 255u - to[c];
          to[c] = static_cast<std::uint8_t>(light * black / 255);
        }
      }
    }
    return out;
  }

  /// JFIF's conversion, in 16-bit fixed point.
  static void to_rgb(std::uint8_t* pixel) {
    const int y = pixel[0], cb = pixel[1] - 128, cr = pixel[2] - 128, half = 1 << 15;
    const auto clamp = [](int v) { return static_cast<std::uint8_t>(std::clamp(v, 0, 255)); };
    pixel[0] = clamp(y + ((91881 * cr + half) >> 16));
    pixel[1] = clamp(y + ((-22554 * cb - 46802 * cr + half) >> 16));
    pixel[2] = clamp(y + ((116130 * cb + half) >> 16));
  }

  struct Latches {
    std::vector<std::pair<const Component*, bool>> items{};
    bool& operator[](const Component* c) {
      for (auto& [key, value] : items) {
        if (key == c) return value;
      }
      return items.emplace_back(c, false).second;
    }
  };

  Bytes file_;
  Reader in_;
  Frame frame_;
  std::unique_ptr<HuffmanTable> tables_[2][4];  ///< [AC][number]
  std::optional<std::array<std::uint16_t, 64>> quantization_[4];
  std::size_t restart_interval_ = 0, scans_ = 0;
  bool jfif_ = false;
  std::optional<unsigned> adobe_;
  Latches latched_;
};

}  // namespace
}  // namespace jpeg

bool matches_jpeg(Bytes file) { return file.size() >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF; }

Image decode_jpeg(Bytes file) { return jpeg::Decoder(file).run(); }

}  // namespace infernode::ops::image
