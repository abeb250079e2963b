#pragma once

// Included by conv.amx.cpp only: how positions and channels are cut, and the operands that come of inputs.

#include "microkernels/conv/detail/amx_weights.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kBlockSteps = kGemmBlockK / kTileDepth;  // summed before C is read and written
constexpr std::size_t kPositions = kPanelColumns;              // output positions of a tile of sums
constexpr std::size_t kImageBytes = 768 << 10;                 // split images: two fit the second-level cache
constexpr std::size_t kMostUnits = 32 << 10;                   // vectors of 16 columns in an image
constexpr std::size_t kMostPoints = 1024;                      // of a kernel

// Kernel index i of one dimension reads, for output o, image `phase` at o + shift; image index j lies at input
// coordinate j * stride + phase - pad.
struct Axis {
  Axis() = default;
  Axis(std::size_t kernel, std::size_t stride, std::size_t dilation) noexcept
      : stride(stride), dilation(dilation), images(1), most((kernel - 1) * dilation / stride) {
    while (images < kernel && phase(images) != 0) ++images;
  }
  std::size_t phase(std::size_t i) const noexcept { return i * dilation % stride; }
  std::size_t shift(std::size_t i) const noexcept { return i * dilation / stride; }
  // Phases repeat: indices below `images` see one each, and number it.
  std::size_t image(std::size_t i) const noexcept { return i % images; }

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
    y_ = static_cast<std::ptrdiff_t>(plan_->h.phase(ih)) - s.pad_top;
    x_ = static_cast<std::ptrdiff_t>(plan_->w.phase(iw)) - s.pad_left;
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

}  // namespace
}  // namespace infernode::microkernels
