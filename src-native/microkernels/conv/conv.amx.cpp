#include "microkernels/conv/conv.h"

#include "microkernels/common/amx_tiles.h"
#include "microkernels/conv/detail/columns.simd.h"

// Convolutions of enough channels on the matrix unit, without a matrix of columns. The input is split into images of
// pairs of channels: a word holds one piece of two channels at one position, so that any 16 consecutive words of 16
// pairs of channels are a tile of B, whatever kernel point they are read for. Output positions are counted in rows as
// wide as the images' (kernel points shift them): some of them lie between the rows and are dropped. With strides there
// is an image for every remainder of coordinates that the kernel sees.
//
// Weights are split when they are packed. Other convolutions go to the AVX-512 kernels.
namespace infernode::microkernels {

namespace {

constexpr std::size_t kBlockChannels = kTileDepth;
constexpr std::size_t kBlockSteps = kGemmBlockK / kTileDepth;  // summed before C is read and written
constexpr std::size_t kPositions = kPanelColumns;              // output positions of a tile of sums
constexpr std::size_t kImageBytes = 768 << 10;                 // split images: two fit the second-level cache
constexpr std::size_t kMostUnits = 32 << 10;                   // vectors of 16 columns in an image
constexpr std::size_t kMostPoints = 1024;                      // of a kernel

bool suits(std::size_t out_channels, std::size_t in_channels) noexcept {
  return out_channels >= 2 * kTileRows && in_channels >= 24;
}

// ---- Weights: whether each 16 channels could be split, then their tiles: blocks of input channels, kernel points.
// Those that could not be split stay float32, in the order of the definition. ----

struct WeightLayout {
  WeightLayout(std::size_t out_channels, std::size_t in_channels, std::size_t points) noexcept
      : points(points),
        depth(in_channels * points),
        tiles(divide_up(out_channels, kTileRows)),
        tile_bytes(divide_up(in_channels, kBlockChannels) * points * 3 * kTileBytes),
        header_bytes(divide_up(tiles, std::size_t{64}) * 64),
        bytes(header_bytes + tiles * tile_bytes) {}

  const std::uint8_t* at(const void* weight, std::size_t m) const noexcept {
    return static_cast<const std::uint8_t*>(weight) + header_bytes + m / kTileRows * tile_bytes;
  }
  bool splits(const void* weight, std::size_t m) const noexcept {
    return static_cast<const std::uint8_t*>(weight)[m / kTileRows] != 0;
  }
  // The weight of channel m at index k of the definition.
  float value(const void* weight, std::size_t m, std::size_t k) const noexcept {
    const std::uint8_t* tile = at(weight, m);
    if (!splits(weight, m)) return reinterpret_cast<const float*>(tile)[m % kTileRows * depth + k];
    const std::size_t channel = k / points;
    tile += (channel / kBlockChannels * points + k % points) * 3 * kTileBytes + m % kTileRows * 64 +
            channel % kBlockChannels * 2;
    float sum = 0;
    for (std::size_t piece = 3; piece-- > 0;) {
      const std::uint32_t bits =
          static_cast<std::uint32_t>(*reinterpret_cast<const std::uint16_t*>(tile + piece * kTileBytes)) << 16;
      sum += __builtin_bit_cast(float, bits);
    }
    return sum;
  }

  std::size_t points, depth, tiles, tile_bytes, header_bytes, bytes;
};

std::size_t packed_weight_floats(std::size_t out_channels, std::size_t in_channels, std::size_t points) noexcept {
  if (!suits(out_channels, in_channels))
    return conv_table_avx512.packed_weight_floats(out_channels, in_channels, points);
  return WeightLayout(out_channels, in_channels, points).bytes / sizeof(float);
}

void pack_weight(std::size_t out_channels, std::size_t in_channels, std::size_t points, const float* weight,
                 float* out) noexcept {
  if (!suits(out_channels, in_channels))
    return conv_table_avx512.pack_weight(out_channels, in_channels, points, weight, out);
  const WeightLayout layout(out_channels, in_channels, points);
  for (std::size_t m = 0; m < out_channels; m += kTileRows) {
    const std::size_t rows = smaller(kTileRows, out_channels - m);
    const float* from = weight + m * layout.depth;
    auto* const tiles = const_cast<std::uint8_t*>(layout.at(out, m));
    std::uint8_t* to = tiles;
    bool splits = true;
    for (std::size_t c0 = 0; c0 < in_channels; c0 += kBlockChannels) {
      const std::size_t channels = smaller(kBlockChannels, in_channels - c0);
      for (std::size_t point = 0; point < points; ++point, to += 3 * kTileBytes) {
        float tile[kTileRows][kBlockChannels];
        for (std::size_t r = 0; r < kTileRows; ++r) {
          for (std::size_t c = 0; c < kBlockChannels; ++c)
            tile[r][c % 2 * 16 + c / 2] =  // channels that images pair
                r < rows && c < channels ? from[r * layout.depth + (c0 + c) * points + point] : 0.0f;
        }
        if (!split_rows<3>(tile[0], kBlockChannels, kTileRows, kBlockChannels, to)) splits = false;
      }
    }
    reinterpret_cast<std::uint8_t*>(out)[m / kTileRows] = splits ? 1 : 0;
    if (splits) continue;
    auto* plain = reinterpret_cast<float*>(tiles);
    for (std::size_t i = 0; i < kTileRows * layout.depth; ++i) plain[i] = i < rows * layout.depth ? from[i] : 0.0f;
  }
}

// ---- Images ----

// Kernel index i of one dimension reads, for output o, image `phase` at o + shift; image index j lies at input
// coordinate j * stride + phase - pad.
struct Axis {
  Axis() = default;
  Axis(std::size_t kernel, std::size_t stride, std::size_t dilation) noexcept : stride(stride), dilation(dilation) {
    for (std::size_t i = 0; i < kernel && i < stride; ++i) images += first(i) ? 1 : 0;
    most = (kernel - 1) * dilation / stride;
  }
  std::size_t phase(std::size_t i) const noexcept { return i * dilation % stride; }
  std::size_t shift(std::size_t i) const noexcept { return i * dilation / stride; }
  // Whether no smaller index reads the same image.
  bool first(std::size_t i) const noexcept {
    for (std::size_t j = 0; j < i; ++j) {
      if (phase(j) == phase(i)) return false;
    }
    return true;
  }
  // Images are numbered by the first index that reads them.
  std::size_t image(std::size_t i) const noexcept {
    std::size_t number = 0;
    for (std::size_t j = 0; phase(j) != phase(i); ++j) number += first(j) ? 1 : 0;
    return number;
  }
  std::size_t phase_of_image(std::size_t number) const noexcept {
    std::size_t i = 0;
    while (!first(i) || number-- > 0) ++i;
    return phase(i);
  }

  std::size_t stride = 1, dilation = 1, images = 0, most = 0;  // most: the largest shift
};

// What does not depend on the range: how positions and channels are cut.
struct Plan {
  explicit Plan(const ConvShape& shape) noexcept : s(shape) {
    const std::size_t plane = s.in_d * s.in_h * s.in_w;
    if (s.kernel_points() == 1 && s.pad_front == 0 && s.pad_top == 0 && s.pad_left == 0 && s.stride_d == 1 &&
        s.stride_h == 1 && s.stride_w == 1 && plane == s.positions()) {
      s.in_d = s.out_d = 1;  // only the count of positions matters
      s.in_w = s.out_w = kPositions;
      s.in_h = s.out_h = divide_up(plane, kPositions);
    }
    in_plane = plane;
    out_positions = shape.positions();
    h = Axis(s.kernel_h, s.stride_h, s.dilation_h);
    w = Axis(s.kernel_w, s.stride_w, s.dilation_w);
    points = s.kernel_points();
    width = s.out_w + w.most;
    halo = h.most * width + w.most;
    images = s.kernel_d * h.images * w.images;
    slice_tiles = divide_up((s.out_h - 1) * width + s.out_w, kPositions);
    const std::size_t blocks = divide_up(s.in_channels, kBlockChannels);
    const std::size_t most = larger(std::size_t{1}, smaller(blocks, kBlockSteps / points));
    block = divide_up(blocks, divide_up(blocks, most));
    const std::size_t position_bytes = images * block * (kBlockChannels / 2) * 3 * sizeof(std::uint32_t);
    const std::size_t positions = kImageBytes / position_bytes, around = halo + 4 * 16;
    const std::size_t units_in_row = divide_up(width, std::size_t{16});
    group = positions > around ? (positions - around) / kPositions : 0;
    // Units of a group's image: its rows' vectors.
    while (group > 0 && ((group * kPositions + halo) / width + 2) * units_in_row > kMostUnits) --group;
    fits = group > 0 && points <= kMostPoints;
    group = fits ? divide_up(slice_tiles, divide_up(slice_tiles, group)) : slice_tiles;
    length = divide_up(group * kPositions + halo + 32, std::size_t{16}) * 16;
    if (length / 16 % 2 == 0) length += 16;  // planes start in different sets of the cache
  }

  std::size_t q_of(std::size_t position) const noexcept { return position / s.out_w * width + position % s.out_w; }

  ConvShape s;
  Axis h, w;
  std::size_t in_plane, out_positions;  // floats of an input channel; output positions
  std::size_t points, width, halo, images;
  std::size_t slice_tiles;  // of an output slice
  bool fits;                // whether images of a tile are small enough
  std::size_t group;        // tiles whose images are split at a time
  std::size_t block;        // blocks of channels that are summed before C is read and written
  std::size_t length;       // words of a plane of pairs of channels
};

// Tiles [tile_begin, tile_end) of an output slice, summed over some blocks of channels.
struct Part {
  std::size_t slice, tile_begin, tile_end, block_begin, block_end;
};

// Splits the images that a part reads, some vectors at a time: out[image][pair of channels][piece][length].
template <int kPieces>
class ImageSplit {
 public:
  ImageSplit() = default;
  ImageSplit(const Plan& plan, const float* input, const Part& part, std::uint32_t* out, std::uint8_t* flags) noexcept
      : plan_(&plan), input_(input), out_(out), flags_(flags), part_(part) {
    const std::size_t q0 = part.tile_begin * kPositions, q1 = part.tile_end * kPositions + plan.halo;
    per_row_ = divide_up(plan.width, std::size_t{16});
    first_ = unit_of(q0);
    units_ = unit_of(q1 - 1) + 1 - first_;
    pairs_ = (part.block_end - part.block_begin) * (kBlockChannels / 2);
    left_ = plan.images * pairs_ * units_;
    for (std::size_t i = 0; i < units_; ++i) flags_[i] = 0;
    enter();
  }

  std::size_t left() const noexcept { return left_; }

  void advance(std::size_t count) noexcept {
    for (count = smaller(count, left_), left_ -= count; count > 0; --count) {
      split_unit();
      if (++unit_ < units_) continue;
      unit_ = 0;
      if (++pair_ == pairs_) {
        pair_ = 0;
        ++image_;
      }
      if (image_ < plan_->images) enter();
    }
  }

  // Whether all that a tile reads could be split.
  bool splits(std::size_t tile) const noexcept {
    if (!any_) return true;
    const std::size_t q = tile * kPositions, end = unit_of(q + kPositions - 1 + plan_->halo) - first_;
    for (std::size_t i = unit_of(q) - first_; i <= end; ++i) {
      if (flags_[i]) return false;
    }
    return true;
  }

 private:
  std::size_t unit_of(std::size_t q) const noexcept { return q / plan_->width * per_row_ + q % plan_->width / 16; }

  // Begins a pair of channels of an image.
  void enter() noexcept {
    const ConvShape& s = plan_->s;
    const std::size_t iw = image_ % plan_->w.images, ih = image_ / plan_->w.images % plan_->h.images;
    const std::size_t kd = image_ / plan_->w.images / plan_->h.images;
    const auto z = static_cast<std::ptrdiff_t>(part_.slice * s.stride_d + kd * s.dilation_d) - s.pad_front;
    y_ = static_cast<std::ptrdiff_t>(plan_->h.phase_of_image(ih)) - s.pad_top;
    x_ = static_cast<std::ptrdiff_t>(plan_->w.phase_of_image(iw)) - s.pad_left;
    const std::size_t channel = part_.block_begin * kBlockChannels + 2 * pair_;
    const bool inside = z >= 0 && z < static_cast<std::ptrdiff_t>(s.in_d);
    channels_ = !inside || channel >= s.in_channels ? 0 : smaller(s.in_channels - channel, std::size_t{2});
    offset_ = inside ? static_cast<std::size_t>(z) * s.in_h * s.in_w : 0;
    from_ = input_ + smaller(channel, s.in_channels - 1) * plan_->in_plane + offset_;
    row_ = first_ / per_row_;
    column_ = first_ % per_row_ * 16;
    enter_row();
  }

  // Begins a row of an image: `line_` is the input's, null outside of it, and `limit_` its length. The last row of a
  // plane that was cut into rows may be shorter.
  void enter_row() noexcept {
    const ConvShape& s = plan_->s;
    const std::ptrdiff_t y = static_cast<std::ptrdiff_t>(row_ * s.stride_h) + y_;
    line_ = nullptr;
    if (channels_ == 0 || y < 0 || y >= static_cast<std::ptrdiff_t>(s.in_h)) return;
    const std::size_t at = static_cast<std::size_t>(y) * s.in_w;
    line_ = from_ + at;
    limit_ = static_cast<std::ptrdiff_t>(smaller(s.in_w, plan_->in_plane - offset_ - at));
  }

  void split_unit() noexcept {
    const auto stride = static_cast<std::ptrdiff_t>(plan_->s.stride_w);
    const std::ptrdiff_t x = static_cast<std::ptrdiff_t>(column_) * stride + x_;
    __m512 even = _mm512_setzero_ps(), odd = even;
    if (line_ && x < limit_) {
      const float* from = line_ + x;
      if (stride <= 2 && x >= 0 && x + 16 * stride <= limit_) {
        even = load_whole(from, stride);
        if (channels_ > 1) odd = load_whole(from + plan_->in_plane, stride);
      } else {  // inputs [begin, end) from x on exist
        const std::ptrdiff_t begin = x < 0 ? -x : 0, end = limit_ - x;
        even = load(from, begin, end, stride);
        if (channels_ > 1) odd = load(from + plan_->in_plane, begin, end, stride);
      }
      if (!RangeWatch::splits(_mm512_castps_si512(even), _mm512_castps_si512(odd))) {
        flags_[unit_] = 1;
        any_ = true;
      }
    }
    const auto q = static_cast<std::ptrdiff_t>(row_ * plan_->width + column_) -
                   static_cast<std::ptrdiff_t>(part_.tile_begin * kPositions);
    // A vector may begin before the part; rows overwrite what the ones before them left behind their ends.
    const __mmask16 mask =
        static_cast<__mmask16>((plan_->width - column_ >= 16 ? 0xffffu : (1u << (plan_->width - column_)) - 1) &
                               (q >= 0 ? 0xffffu : 0xffffu << -q));
    std::uint32_t* to = out_ + (image_ * pairs_ + pair_) * kPieces * plan_->length;
    INFERNODE_UNROLL
    for (int piece = 0; piece < kPieces; ++piece, to += plan_->length) {
      const __m512i low = _mm512_srli_epi32(next_piece(even, piece), 16), high = next_piece(odd, piece);
      _mm512_mask_storeu_epi32(to + q, mask, _mm512_or_si512(low, high));
    }
    column_ += 16;
    if (column_ >= plan_->width) {
      column_ = 0;
      ++row_;
      enter_row();
    }
  }

  // from[i * stride] of a stride of 1 or 2.
  static __m512 load_whole(const float* from, std::ptrdiff_t stride) noexcept {
    if (stride == 1) return _mm512_loadu_ps(from);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(_mm512_loadu_ps(from), even, _mm512_loadu_ps(from + 16));
  }

  // Lanes i with begin <= i * stride < end: from[i * stride]; others 0.
  static __m512 load(const float* from, std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t stride) noexcept {
    if (stride == 1) return _mm512_maskz_loadu_ps(lanes(begin, end), from);
    if (stride == 2) {
      const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      return _mm512_permutex2var_ps(_mm512_maskz_loadu_ps(lanes(begin, end), from), even,
                                    _mm512_maskz_loadu_ps(lanes(begin - 16, end - 16), from + 16));
    }
    alignas(64) float out[16];
    for (std::ptrdiff_t i = 0; i < 16; ++i) out[i] = i * stride >= begin && i * stride < end ? from[i * stride] : 0.0f;
    return _mm512_load_ps(out);
  }
  // Bits [begin, end) of 16.
  static __mmask16 lanes(std::ptrdiff_t begin, std::ptrdiff_t end) noexcept {
    if (begin >= 16 || end <= 0) return 0;
    const unsigned below = end >= 16 ? 0xffffu : (1u << end) - 1;
    return static_cast<__mmask16>(begin > 0 ? below & (0xffffu << begin) : below);
  }

  const Plan* plan_ = nullptr;
  const float* input_ = nullptr;
  std::uint32_t* out_ = nullptr;
  std::uint8_t* flags_ = nullptr;  // of units: not to be split
  Part part_{};
  bool any_ = false;
  std::size_t per_row_ = 0, first_ = 0, units_ = 0, pairs_ = 0, left_ = 0;
  std::size_t image_ = 0, pair_ = 0, unit_ = 0;
  // Of the pair: its first channel's slice, channels that exist, the slice's offset, coordinates of image index 0.
  const float* from_ = nullptr;
  std::size_t channels_ = 0, offset_ = 0;
  std::ptrdiff_t y_ = 0, x_ = 0;
  std::size_t row_ = 0, column_ = 0;  // of the next vector
  const float* line_ = nullptr;
  std::ptrdiff_t limit_ = 0;
};

// ---- Products ----

constexpr std::size_t kScratchFloats =
    2 * kImageBytes / sizeof(float) + 2 * kMostUnits / sizeof(float) + 2 * kGemmBlockK * kPanelColumns + kMostPoints;

// The part of C that one call computes.
template <int kPieces>
class Product {
 public:
  Product(const ConvArgs& args, const Plan& plan, const GemmRange& range, float* scratch) noexcept
      : args_(args),
        plan_(plan),
        range_(range),
        layout_(args.shape.out_channels, args.shape.in_channels, plan.points),
        images_(reinterpret_cast<std::uint32_t*>(scratch)),
        flags_(reinterpret_cast<std::uint8_t*>(images_ + 2 * kImageBytes / sizeof(std::uint32_t))),
        columns_(reinterpret_cast<float*>(flags_ + 2 * kMostUnits)),
        rows_(columns_ + kGemmBlockK * kPanelColumns),
        offsets_(reinterpret_cast<std::uint32_t*>(rows_ + kGemmBlockK * 2 * kTileRows)) {}

  void multiply() noexcept {
    slice_positions_ = plan_.s.out_h * plan_.s.out_w;
    Part part{range_.n_begin / slice_positions_, 0, 0, 0, 0};
    enter_slice(part);
    bool odd = false;
    next_ = split(part, odd);
    for (;;) {
      next_.advance(next_.left());
      const ImageSplit<kPieces> ready = next_;
      Part following = part;
      const bool last = !forward(following);
      next_ = last ? ImageSplit<kPieces>() : split(following, !odd);
      multiply_part(part, ready, images_ + (odd ? kImageBytes / sizeof(std::uint32_t) : 0));
      if (last) break;
      part = following;
      odd = !odd;
    }
    finish();
  }

 private:
  // Positions of the range in a slice, counted from its first.
  std::size_t begin_in(std::size_t slice) const noexcept {
    return larger(range_.n_begin, slice * slice_positions_) - slice * slice_positions_;
  }
  std::size_t end_in(std::size_t slice) const noexcept {
    return smaller(range_.n_end - slice * slice_positions_, slice_positions_);
  }
  void enter_slice(Part& part) const noexcept {
    part.tile_begin = plan_.q_of(begin_in(part.slice)) / kPositions;
    start_group(part);
  }
  void start_group(Part& part) const noexcept {
    const std::size_t end = plan_.q_of(end_in(part.slice) - 1) / kPositions + 1;
    part.tile_end = smaller(part.tile_begin + plan_.group, end);
    part.block_begin = 0;
    part.block_end = smaller(plan_.block, blocks());
  }
  std::size_t blocks() const noexcept { return divide_up(plan_.s.in_channels, kBlockChannels); }

  // The next part; false behind the last.
  bool forward(Part& part) const noexcept {
    if (part.block_end < blocks()) {
      part.block_begin = part.block_end;
      part.block_end = smaller(part.block_begin + plan_.block, blocks());
      return true;
    }
    if (part.tile_end <= plan_.q_of(end_in(part.slice) - 1) / kPositions) {
      part.tile_begin = part.tile_end;
      start_group(part);
      return true;
    }
    ++part.slice;
    if (part.slice * slice_positions_ >= range_.n_end) return false;
    enter_slice(part);
    return true;
  }

  ImageSplit<kPieces> split(const Part& part, bool odd) const noexcept {
    if (!plan_.fits) return {};
    return {plan_, args_.input, part, images_ + (odd ? kImageBytes / sizeof(std::uint32_t) : 0),
            flags_ + (odd ? kMostUnits : 0)};
  }

  void multiply_part(const Part& part, const ImageSplit<kPieces>& ready, const std::uint32_t* images) noexcept {
    const std::size_t blocks = part.block_end - part.block_begin, steps = blocks * plan_.points;
    const std::size_t pairs = blocks * (kBlockChannels / 2), plane = kPieces * plan_.length;
    for (std::size_t point = 0; point < plan_.points; ++point) {
      const std::size_t kw = point % plan_.s.kernel_w, kh = point / plan_.s.kernel_w % plan_.s.kernel_h,
                        kd = point / plan_.s.kernel_w / plan_.s.kernel_h;
      const std::size_t image = (kd * plan_.h.images + plan_.h.image(kh)) * plan_.w.images + plan_.w.image(kw);
      offsets_[point] =
          static_cast<std::uint32_t>(image * pairs * plane + plan_.h.shift(kh) * plan_.width + plan_.w.shift(kw));
    }
    const std::size_t row_pairs = divide_up(range_.m_end - range_.m_begin, 2 * kTileRows);
    const std::size_t calls = steps * kCallsBeside<kPieces>, tiles = part.tile_end - part.tile_begin;
    const std::size_t units = divide_up(next_.left(), row_pairs * tiles * calls),
                      finished = divide_up(2 * kTileRows, calls);
    const std::size_t lines = steps * 3 * kTileBytes / 64;  // of the cache, of 16 channels' weights
    const std::size_t fetched = divide_up(2 * lines, tiles * calls);
    for (std::size_t m0 = range_.m_begin; m0 < range_.m_end; m0 += 2 * kTileRows) {
      const std::size_t rows = smaller(2 * kTileRows, range_.m_end - m0);
      const bool two = rows > kTileRows;
      const bool whole = plan_.fits && layout_.splits(args_.packed_weight, m0) &&
                         (!two || layout_.splits(args_.packed_weight, m0 + kTileRows));
      const std::uint8_t* a = layout_.at(args_.packed_weight, m0) + part.block_begin * plan_.points * 3 * kTileBytes;
      const auto* const coming = reinterpret_cast<const char*>(a) + 2 * layout_.tile_bytes;  // weights
      std::size_t line = m0 + rows < range_.m_end ? 0 : 2 * lines;
      const auto beside = [&]() __attribute__((always_inline)) {
        finish_some(finished);
        next_.advance(units);
        for (const std::size_t end = smaller(line + fetched, 2 * lines); line < end; ++line)
          _mm_prefetch(coming + (line < lines ? line * 64 : layout_.tile_bytes + (line - lines) * 64), _MM_HINT_T1);
      };
      for (std::size_t tile = part.tile_begin; tile < part.tile_end; ++tile) {
        float* const sums = sums_[current_];
        const std::uint32_t* const here = images + (tile - part.tile_begin) * kPositions;
        std::size_t point = 0;
        const std::uint32_t* block = here;
        const auto at = [&](std::size_t) {
          const auto* from = reinterpret_cast<const std::uint8_t*>(block + offsets_[point]);
          if (++point == plan_.points) {
            point = 0;
            block += kBlockChannels / 2 * plane;
          }
          return from;
        };
        const TilesOfB<decltype(at)> b{at, plan_.length * sizeof(std::uint32_t), kTileRows * sizeof(std::uint32_t),
                                       plane * sizeof(std::uint32_t)};
        if (!whole || !ready.splits(tile)) {
          multiply_plain(part, tile, m0, rows, sums);
        } else if (two) {
          multiply_tiles<kPieces, 2, 3>(steps, a, a + layout_.tile_bytes, b, sums, beside);
        } else {
          multiply_tiles<kPieces, 1, 3>(steps, a, a, b, sums, beside);
        }
        finish();
        start_finish(part, tile, m0, rows, sums);
        current_ = 1 - current_;
      }
    }
  }

  // Calls fn(column, count, position) for each run of a tile's columns that are positions of the range.
  template <typename Fn>
  void for_each_run(const Part& part, std::size_t tile, Fn fn) const noexcept {
    const std::size_t begin = begin_in(part.slice), end = end_in(part.slice), first = part.slice * slice_positions_;
    const std::size_t q0 = tile * kPositions, q_end = q0 + kPositions, out_w = plan_.s.out_w;
    if (plan_.width == out_w) {  // no positions are dropped
      const std::size_t from = larger(q0, begin);
      return fn(from - q0, smaller(q_end, end) - from, first + from);
    }
    for (std::size_t q = q0, stop; q < q_end; q = stop) {
      const std::size_t row = q / plan_.width, column = q % plan_.width;
      stop = smaller(q_end, (row + 1) * plan_.width);
      const std::size_t from = larger(row * out_w + column, begin),
                        to = smaller(row * out_w + smaller(column + stop - q, out_w), end);
      if (column < out_w && from < to) fn(q - q0 + from - (row * out_w + column), to - from, first + from);
    }
  }

  // Finishing: the runs of one tile, one after the other.
  void start_finish(const Part& part, std::size_t tile, std::size_t m0, std::size_t rows, float* sums) noexcept {
    runs_ = run_ = 0;
    const bool last = part.block_end == blocks();
    for_each_run(part, tile, [&](std::size_t column, std::size_t count, std::size_t position) {
      const std::size_t at = m0 * plan_.out_positions + position;
      finishes_[runs_++] =
          TileFinish(*gemm_table_avx512.tiles,
                     {args_.output + at, plan_.out_positions, rows, count, 1.0f, part.block_begin > 0, last,
                      args_.bias ? args_.bias + m0 : nullptr, nullptr, args_.residual ? args_.residual + at : nullptr,
                      plan_.out_positions, 1.0f, args_.activation},
                     sums + column);
    });
  }
  void finish_some(std::size_t rows) noexcept {
    if (run_ == runs_) return;
    finishes_[run_].advance(larger(rows, finishes_[run_].portion()));
    if (finishes_[run_].done()) ++run_;
  }
  void finish() noexcept {
    for (; run_ < runs_; ++run_) finishes_[run_].complete();
  }

  // Without the matrix unit: a run of columns after the other.
  void multiply_plain(const Part& part, std::size_t tile, std::size_t m0, std::size_t rows, float* sums) noexcept {
    const GemmTiles& plain = *gemm_table_avx512.tiles;
    const std::size_t k_end = smaller(part.block_end * kBlockChannels * plan_.points, layout_.depth);
    for (std::size_t i = 0; i < 2 * kTileRows * kPanelColumns; ++i) sums[i] = 0;
    for (std::size_t k0 = part.block_begin * kBlockChannels * plan_.points; k0 < k_end; k0 += kGemmBlockK) {
      const std::size_t k = smaller(kGemmBlockK, k_end - k0);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t i = 0; i < k; ++i) rows_[r * k + i] = layout_.value(args_.packed_weight, m0 + r, k0 + i);
      }
      for_each_run(part, tile, [&](std::size_t column, std::size_t count, std::size_t position) {
        alignas(64) float tile_sums[GemmTiles::kMaxFloats];
        pack_columns(args_.shape, args_.input, k0, k, position, count, columns_);
        for (std::size_t r = 0; r < rows; r += plain.mr) {
          const std::size_t some = smaller(plain.mr, rows - r);
          plain.accumulate[some - 1][kPanelColumns / plain.lanes - 1](k, rows_ + r * k, k, columns_, kPanelColumns,
                                                                      tile_sums);
          for (std::size_t i = 0; i < some; ++i) {
            for (std::size_t c = 0; c < count; ++c)
              sums[(r + i) * kPanelColumns + column + c] += tile_sums[i * kPanelColumns + c];
          }
        }
      });
    }
  }

  const ConvArgs& args_;
  const Plan& plan_;
  const GemmRange& range_;
  WeightLayout layout_;
  std::uint32_t* images_;
  std::uint8_t* flags_;
  float *columns_, *rows_;
  std::uint32_t* offsets_;  // of kernel points in a block's images
  std::size_t slice_positions_ = 0, runs_ = 0, run_ = 0, current_ = 0;
  ImageSplit<kPieces> next_;
  TileFinish finishes_[kPositions];
  alignas(64) float sums_[2][2 * kTileRows * kPanelColumns + 16];  // partial vectors are read whole
};

void conv(const ConvArgs& args, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  if (!suits(args.shape.out_channels, args.shape.in_channels)) return conv_table_avx512.conv(args, range, scratch);
  const Plan plan(args.shape);
  const TileSession session;
  with_pieces(args.precision, [&]<int kPieces>() { Product<kPieces>(args, plan, range, scratch).multiply(); });
}

bool runs(ConvWay way, const ConvShape& s) noexcept {
  const bool unit = suits(s.out_channels, s.in_channels);
  return way == ConvWay::kAny ||
         (way == ConvWay::kUnit ? unit && Plan(s).fits : !unit && conv_table_avx512.runs(way, s));
}

void depthwise(const DepthwiseArgs& args) noexcept { conv_table_avx512.depthwise(args); }
void col2im(const ConvShape& shape, const float* columns, float* image) noexcept {
  conv_table_avx512.col2im(shape, columns, image);
}

}  // namespace

INFERNODE_TABLE(ConvTable, conv) = {"amx",       2 * kTileRows, kPanelColumns, kScratchFloats, packed_weight_floats,
                                    pack_weight, runs,          conv,          depthwise,      col2im};

}  // namespace infernode::microkernels
