#pragma once

// Included by blocked.amx.cpp only: how rows and steps are cut, and the operands that come of inputs and weights.

#include "microkernels/blocked/detail/pairs.h"
#include "microkernels/common/amx_tiles.h"
#include "microkernels/common/bf16_pairs.h"

namespace infernode::microkernels {

namespace {

constexpr std::size_t kPlaceBytes = 64;
constexpr std::size_t kImageBytes = 768 << 10;       // two images fit the second-level cache
constexpr std::size_t kSplitWeightFloats = 1 << 18;  // weights up to this size are split when they are packed
constexpr std::size_t kFewestCycles = 13;            // that products of four tiles take each, however few their rows

// A kernel of one point without borders: rows of positions are cut anywhere, as the AVX-512 loops do.
bool is_flat(const ConvShape& s) noexcept {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
         (s.out_h - 1) * s.stride_h < s.in_h && (s.out_w - 1) * s.stride_w < s.in_w;
}

std::size_t pairs_of_blocks(const ConvShape& s) noexcept { return divide_up(s.in_channels, 2 * kChannelBlock); }

// How steps go over a kernel. Where the input is in blocks, each takes a point and two blocks; of few planes a place
// holds all, and a step takes some columns.
struct Steps {
  Steps(const ConvShape& s, bool planar) noexcept {
    if (planar) {
      place_bytes = s.in_channels <= 2 ? 4 : s.in_channels <= 4 ? 8 : 16;
      width = kPlaceBytes / place_bytes;
      columns = divide_up(s.kernel_w, width);
    } else {
      place_bytes = kPlaceBytes;
      width = s.dilation_w;
      columns = s.kernel_w;
    }
    points = s.kernel_h * columns;
    count = points * (planar ? 1 : pairs_of_blocks(s));
  }

  std::size_t place_bytes;
  std::size_t width, columns;  // places from one to the next of a row, and how many those are
  std::size_t points, count;
};

// Whether the input's planes are read as such.
bool is_thin(const ConvShape& s) noexcept {
  return s.in_channels <= kMostPlanes && s.dilation_w == 1 && s.kernel_h * s.kernel_w > 1;
}

// What does not depend on the range.
struct Plan {
  Plan(const ConvShape& s, bool planar, std::size_t pieces) noexcept
      : s(s),
        planar(planar),
        flat(!planar && is_flat(s)),
        pairs(planar ? 1 : pairs_of_blocks(s)),
        pieces(pieces),
        steps(s, planar) {
    rows = blocked_conv_table_avx512.grid(s).rows;
    width = flat ? divide_up(s.positions(), rows) : s.out_w;
    const std::size_t all_tiles = divide_up(width, kTileRows);
    tile_rows = divide_up(width, all_tiles);
    cut(all_tiles);
    runs = !flat && s.stride_h == 1 && s.stride_w == 1 && pitch < all_tiles * larger(tile_rows, kFewestCycles);
    if (runs) tile_rows = kTileRows;
    row_bytes = (flat ? 1 : s.stride_w) * steps.place_bytes;
    for (std::size_t tiles = all_tiles; !flat && !runs && tiles > 1 && !holds(kImageBytes, 1);)
      cut(tiles = divide_up(tiles, std::size_t{2}));
    while (band < rows && holds(kImageBytes, 2 * band)) band *= 2;
    for (std::size_t more = band / 2; more > 0; more /= 2) {
      if (band + more <= rows && holds(kImageBytes, band + more)) band += more;
    }
    fits = holds(kImageBytes, band);
  }

  // Strips of so many tiles of columns.
  void cut(std::size_t tiles) noexcept {
    column_tiles = tiles;
    strip = tiles * tile_rows;
    strips = divide_up(width, strip);
    const std::size_t before = (smaller(strip, width) - 1) * s.stride_w;
    pitch = flat ? width : planar ? before + steps.columns * steps.width : before + (s.kernel_w - 1) * s.dilation_w + 1;
  }

  std::size_t seen_rows(std::size_t out_rows) const noexcept {
    return (out_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
  }
  // Of an image of so many rows of the grid, with what tiles read behind it that are not full. Pieces and pairs of
  // blocks that are read together lie in different sets of the cache.
  std::size_t piece_bytes(std::size_t count) const noexcept {
    constexpr std::size_t kSets = 64, kShift = 17;
    const std::size_t places = flat ? count * width : seen_rows(count) * pitch;
    std::size_t lines = divide_up(places * steps.place_bytes + kTileRows * row_bytes + kPlaceBytes, kPlaceBytes) | 1;
    if (lines > 2 * kSets) lines += (kSets + kShift - lines % kSets) % kSets;
    return lines * kPlaceBytes;
  }
  // Whether an image of so many rows takes no more.
  bool holds(std::size_t bytes, std::size_t count) const noexcept {
    return pairs * pieces * piece_bytes(count) <= bytes;
  }
  // Positions before a row.
  std::size_t position(std::size_t row) const noexcept { return smaller(row * width, s.positions()); }

  const ConvShape& s;
  bool planar, flat;
  std::size_t pairs, pieces;
  Steps steps;
  std::size_t rows, width;  // of the grid
  // Images are of a strip of the columns at a time: of how many of those and tiles; places of an image's row.
  std::size_t strips, strip, column_tiles, pitch;
  std::size_t tile_rows;
  bool runs;              // whether tiles run through the image's rows, with the places between them
  std::size_t row_bytes;  // between rows of a tile
  std::size_t band = 1;   // rows of the grid whose image is small enough
  bool fits;
};

// ---- Weights: for each panel, step and block of its channels the pieces, a tile each ----

template <int kPieces>
struct WeightLayout {
  WeightLayout(const ConvShape& s, bool planar) noexcept
      : panel_bytes(2 * Steps(s, planar).count * kPieces * kTileBytes),
        plain_floats(divide_up(kPieces > 1 ? blocked_conv_table_avx512.packed_weight_floats(s)
                               : planar    ? blocked_conv_table_bf16_medium.packed_weight_floats(s)
                                           : 0,
                               std::size_t{16}) *
                     16),
        split(kPieces == 1 || planar || plain_floats <= kSplitWeightFloats),
        floats(plain_floats + 16) {
    if (split && (!planar || is_thin(s))) floats += channel_blocks(s.out_channels) * (panel_bytes / 2 / sizeof(float));
  }
  // Behind the weights of the vector loops: whether all could be split, and the tiles.
  float* mark(float* weight) const noexcept { return weight + plain_floats; }
  std::uint8_t* tiles(float* weight, std::size_t panel) const noexcept {
    return reinterpret_cast<std::uint8_t*>(weight + plain_floats + 16) + panel * panel_bytes;
  }

  std::size_t panel_bytes, plain_floats;
  bool split;
  std::size_t floats;
};

// Splits steps of a panel's weights, which lie as the AVX-512 loops read them, some words of all columns at a time. A
// word holds a channel of the one block and that of the other.
template <int kPieces>
class WeightSplit {
 public:
  WeightSplit() = default;
  WeightSplit(const ConvShape& s, const float* weight, std::size_t panel, std::size_t step, std::size_t count,
              std::uint8_t* out) noexcept
      : from_(weight + panel * kPanelColumns * s.depth()),
        out_(out),
        channels_(s.in_channels),
        points_(s.kernel_points()),
        blocks_(smaller(channel_blocks(s.out_channels) - panel * kPanelTiles, kPanelTiles)),
        pair_(step / points_),
        point_(step % points_),
        left_(count * kChannelBlock) {
    enter();
  }

  std::size_t left() const noexcept { return left_; }
  bool splits() const noexcept { return watch_.splits(); }

  // Splits `count` more words, or all that are left.
  void advance(std::size_t count) noexcept {
    for (count = smaller(count, left_), left_ -= count; count > 0; --count) {
      const std::size_t columns = blocks_ * kChannelBlock;
      INFERNODE_UNROLL
      for (std::size_t block = 0; block < kPanelTiles; ++block) {
        if (block >= blocks_) break;
        const float *even = even_ + row_ * columns + block * 16, *odd = odd_ + row_ * columns + block * 16;
        const __m512 x = row_ < even_rows_ ? _mm512_loadu_ps(even) : _mm512_setzero_ps(),
                     y = row_ < odd_rows_ ? _mm512_loadu_ps(odd) : _mm512_setzero_ps();
        _mm_prefetch(reinterpret_cast<const char*>(even) + kAhead, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(odd) + kAhead, _MM_HINT_T0);
        watch_.see(_mm512_castps_si512(x));
        watch_.see(_mm512_castps_si512(y));
        split_pair<kPieces>(x, y, out_ + block * kPieces * kTileBytes + row_ * 64);
      }
      if (++row_ < kChannelBlock) continue;
      row_ = 0;
      out_ += blocks_ * kPieces * kTileBytes;
      if (++point_ == points_) {
        point_ = 0;
        ++pair_;
      }
      enter();
    }
  }

 private:
  static constexpr std::size_t kAhead = 4096;  // bytes: weights come from memory

  void enter() noexcept {
    const std::size_t columns = blocks_ * kChannelBlock;
    even_rows_ = channels_of(2 * pair_);
    odd_rows_ = channels_of(2 * pair_ + 1);
    even_ = from_ + (2 * pair_ * kChannelBlock * points_ + point_ * even_rows_) * columns;
    odd_ = from_ + ((2 * pair_ + 1) * kChannelBlock * points_ + point_ * odd_rows_) * columns;
  }
  std::size_t channels_of(std::size_t block) const noexcept {
    const std::size_t first = block * kChannelBlock;
    return first >= channels_ ? 0 : smaller(channels_ - first, kChannelBlock);
  }

  const float *from_ = nullptr, *even_ = nullptr, *odd_ = nullptr;  // the panel; a step's rows
  std::uint8_t* out_ = nullptr;
  std::size_t channels_ = 0, points_ = 1, blocks_ = 0, pair_ = 0, point_ = 0, left_ = 0;
  std::size_t row_ = 0, even_rows_ = 0, odd_rows_ = 0;
  RangeWatch watch_;
};

template <int kPieces>
std::size_t packed_weight_floats(const ConvShape& s) noexcept {
  return larger(WeightLayout<kPieces>(s, false).floats, WeightLayout<kPieces>(s, true).floats);
}

// Calls fill(panel's block, step, row of words, even weights, odd weights) for all tiles' rows, in the order in which
// they lie; weight_of(channel, step, k) of a step's 32.
template <typename WeightOf, typename Fill>
void for_each_row(const ConvShape& s, std::size_t steps, WeightOf weight_of, Fill fill) noexcept {
  const std::size_t all = channel_blocks(s.out_channels) * kChannelBlock;
  for (std::size_t n0 = 0; n0 < all; n0 += kPanelColumns) {
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t n = n0; n < smaller(n0 + kPanelColumns, all); n += kChannelBlock) {
        for (std::size_t row = 0; row < 16; ++row) {
          alignas(64) float even[16] = {}, odd[16] = {};
          for (std::size_t i = 0; i < 16 && n + i < s.out_channels; ++i) {
            even[i] = weight_of(n + i, step, 2 * row);
            odd[i] = weight_of(n + i, step, 2 * row + 1);
          }
          fill(row, _mm512_load_ps(even), _mm512_load_ps(odd));
        }
      }
    }
  }
}

// Of tiles whose words hold two channels that follow each other, as places of one piece or of planes do.
template <int kPieces>
bool pack_tiles(const ConvShape& s, bool planar, const float* weight, std::uint8_t* out) noexcept {
  const Steps steps(s, planar);
  const auto weight_of = [&](std::size_t n, std::size_t step, std::size_t k) {
    const std::size_t point = step % steps.points, kh = point / steps.columns;
    std::size_t c = step / steps.points * kTileDepth + k, kw = point % steps.columns;
    if (planar) {
      kw = kw * steps.width + k / (steps.place_bytes / 2);
      c = k % (steps.place_bytes / 2);
    }
    return c < s.in_channels && kw < s.kernel_w ? weight[((n * s.in_channels + c) * s.kernel_h + kh) * s.kernel_w + kw]
                                                : 0.0f;
  };
  RangeWatch watch;
  for_each_row(s, steps.count, weight_of, [&](std::size_t row, __m512 even, __m512 odd) {
    if constexpr (kPieces == 1) {
      _mm512_storeu_si512(out + row * 64, round_pairs(even, odd));
    } else {
      watch.see(_mm512_castps_si512(even));
      watch.see(_mm512_castps_si512(odd));
      split_pair<kPieces>(even, odd, out + row * 64);
    }
    if (row == 15) out += kPieces * kTileBytes;
  });
  return watch.splits();
}

template <int kPieces>
void pack_weight(const ConvShape& s, bool planar, const float* weight, float* out) noexcept {
  const WeightLayout<kPieces> layout(s, planar);
  if constexpr (kPieces > 1) {
    blocked_conv_table_avx512.pack_weight(s, planar, weight, out);
  } else if (planar) {
    blocked_conv_table_bf16_medium.pack_weight(s, planar, weight, out);
  }
  bool splits = true;
  if (kPieces == 1 || planar) {
    if (!planar || is_thin(s)) splits = pack_tiles<kPieces>(s, planar, weight, layout.tiles(out, 0));
    *layout.mark(out) = splits ? 1.0f : 0.0f;
    return;
  }
  const std::size_t steps = Steps(s, planar).count;
  alignas(64) std::uint8_t step_tiles[kPanelTiles * kPieces * kTileBytes];
  for (std::size_t panel = 0; panel * kPanelTiles < channel_blocks(s.out_channels); ++panel) {
    if (layout.split) {
      WeightSplit<kPieces> split(s, out, panel, 0, steps, layout.tiles(out, panel));
      split.advance(split.left());
      splits = splits && split.splits();
      continue;
    }
    for (std::size_t step = 0; step < steps; ++step) {
      WeightSplit<kPieces> split(s, out, panel, step, 1, step_tiles);
      split.advance(split.left());
      splits = splits && split.splits();
    }
  }
  *layout.mark(out) = splits ? 1.0f : 0.0f;
}

// ---- Images: for each pair of blocks the pieces of all places ----

template <int kPieces>
class ImageSplit {
 public:
  ImageSplit() = default;
  // Of rows [begin, end) of the grid.
  ImageSplit(const Plan& plan, const BlockedConvArgs& args, std::size_t begin, std::size_t end, std::size_t strip,
             std::uint8_t* out) noexcept
      : s_(&plan.s),
        input_(args.input),
        rounded_(args.input_bf16),
        out_(out),
        plane_(plan.s.in_h * plan.s.in_w * (plan.planar ? 1 : kChannelBlock)),
        place_bytes_(plan.steps.place_bytes),
        piece_bytes_(plan.piece_bytes(end - begin)),
        planar_(plan.planar),
        flat_(plan.flat),
        lines_(plan.flat ? 1 : plan.seen_rows(end - begin)),
        length_(plan.flat ? plan.position(end) - plan.position(begin) : plan.pitch),
        left_(plan.pairs * lines_ * length_),
        first_(static_cast<std::ptrdiff_t>(plan.flat ? plan.position(begin) : begin * plan.s.stride_h) -
               (plan.flat ? 0 : plan.s.pad_top)),
        first_column_(static_cast<std::ptrdiff_t>(strip * plan.strip * plan.s.stride_w) - plan.s.pad_left) {
    enter();
  }

  std::size_t left() const noexcept { return left_; }
  bool splits() const noexcept { return watch_.splits(); }

  // Splits `count` more places, or all that are left.
  void advance(std::size_t count) noexcept {
    for (count = smaller(count, left_), left_ -= count; count > 0;) {
      const std::size_t n = smaller(count, length_ - column_);
      std::uint8_t* const to = out_ + (line_ * length_ + column_) * place_bytes_;
      if (flat_) {
        split_positions(static_cast<std::size_t>(first_) + column_, n, to);
      } else {
        split_columns(first_ + static_cast<std::ptrdiff_t>(line_), n, to);
      }
      count -= n;
      if ((column_ += n) < length_) continue;
      column_ = 0;
      if (++line_ < lines_) continue;
      line_ = 0;
      ++pair_;
      out_ += kPieces * piece_bytes_;
      if (left_ > 0 || count > 0) enter();
    }
  }

 private:
  // Begins a pair of blocks.
  void enter() noexcept {
    const std::size_t first = pair_ * 2 * kChannelBlock, second = first + kChannelBlock;
    even_ = odd_ = 2 * pair_ * plane_;
    even_lanes_ = first_lanes(s_->in_channels - smaller(first, s_->in_channels));
    odd_lanes_ = 0;
    if (second >= s_->in_channels) return;
    odd_lanes_ = first_lanes(s_->in_channels - second);
    odd_ += plane_;
  }

  // What a kernel of one point sees at `n` positions.
  void split_positions(std::size_t position, std::size_t n, std::uint8_t* to) noexcept {
    if (s_->stride_h == 1 && s_->stride_w == 1 && s_->in_w == s_->out_w) return split(position, 1, n, to);
    for (std::size_t some; n > 0; n -= some, position += some, to += some * kPlaceBytes) {
      const std::size_t column = position % s_->out_w;
      some = smaller(n, s_->out_w - column);
      split(position / s_->out_w * s_->stride_h * s_->in_w + column * s_->stride_w, s_->stride_w, some, to);
    }
  }
  // `n` places of a padded row of the input.
  void split_columns(std::ptrdiff_t row, std::size_t n, std::uint8_t* to) noexcept {
    const auto width = static_cast<std::ptrdiff_t>(s_->in_w);
    const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(column_) + first_column_,
                         end = begin + static_cast<std::ptrdiff_t>(n);
    if (row < 0 || row >= static_cast<std::ptrdiff_t>(s_->in_h) || begin >= width || end <= 0) return clear(n, to);
    const auto before = static_cast<std::size_t>(begin < 0 ? -begin : 0),
               behind = static_cast<std::size_t>(end > width ? end - width : 0);
    clear(before, to);
    to += before * place_bytes_;
    const std::size_t some = n - before - behind;
    const std::size_t place = static_cast<std::size_t>(row) * s_->in_w +
                              static_cast<std::size_t>(begin + static_cast<std::ptrdiff_t>(before));
    if (planar_) {
      split_planes(place, some, to);
    } else {
      split(place, 1, some, to);
    }
    clear(behind, to + some * place_bytes_);
  }

  void clear(std::size_t n, std::uint8_t* to) noexcept {
    for (std::size_t words = n * (place_bytes_ / 4); words > 0; words -= smaller(words, std::size_t{16}), to += 64) {
      INFERNODE_UNROLL
      for (std::size_t piece = 0; piece < kPieces; ++piece)
        _mm512_mask_storeu_epi32(to + piece * piece_bytes_, first_lanes(words), _mm512_setzero_si512());
    }
  }

  // Places of all planes that follow each other.
  void split_planes(std::size_t place, std::size_t n, std::uint8_t* to) noexcept {
    const std::size_t words = place_bytes_ / 4;
    for (; n > 0; n -= smaller(n, std::size_t{16}), place += 16, to += 16 * place_bytes_) {
      const __mmask16 lanes = first_lanes(n);
      __m512i word[kPieces][kMostPlanes / 2];
      for (std::size_t i = 0; i < words; ++i) {
        __m512 even = load_plane(2 * i, place, lanes), odd = load_plane(2 * i + 1, place, lanes);
        watch_.see(_mm512_castps_si512(even));
        watch_.see(_mm512_castps_si512(odd));
        if constexpr (kPieces == 1) {
          word[0][i] = round_pairs(even, odd);
        } else {
          INFERNODE_UNROLL
          for (int piece = 0; piece < kPieces; ++piece) {
            const __m512i low = _mm512_srli_epi32(next_piece(even, piece), 16), high = next_piece(odd, piece);
            word[piece][i] = _mm512_or_si512(low, high);
          }
        }
      }
      INFERNODE_UNROLL
      for (std::size_t piece = 0; piece < kPieces; ++piece)
        store_words(words, word[piece], smaller(n, std::size_t{16}), to + piece * piece_bytes_);
    }
  }
  __m512 load_plane(std::size_t plane, std::size_t place, __mmask16 lanes) const noexcept {
    if (plane >= s_->in_channels) return _mm512_setzero_ps();
    return _mm512_maskz_loadu_ps(lanes, input_ + plane * plane_ + place);
  }
  // Words [i][place] as [place][i].
  static void store_words(std::size_t count, const __m512i* word, std::size_t n, std::uint8_t* to) noexcept {
    const auto put = [&](std::size_t vector, __m512i x) {
      const std::size_t before = vector * 16, all = n * count;
      if (before < all) _mm512_mask_storeu_epi32(to + vector * 64, first_lanes(all - before), x);
    };
    if (count == 1) return put(0, word[0]);
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                  high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const __m512i first[2] = {_mm512_permutex2var_epi32(word[0], low, word[1]),
                              _mm512_permutex2var_epi32(word[0], high, word[1])};
    if (count == 2) {
      put(0, first[0]);
      return put(1, first[1]);
    }
    const __m512i second[2] = {_mm512_permutex2var_epi32(word[2], low, word[3]),
                               _mm512_permutex2var_epi32(word[2], high, word[3])};
    const __m512i low_pairs = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  high_pairs = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    INFERNODE_UNROLL
    for (std::size_t half = 0; half < 2; ++half) {
      put(2 * half, _mm512_permutex2var_epi64(first[half], low_pairs, second[half]));
      put(2 * half + 1, _mm512_permutex2var_epi64(first[half], high_pairs, second[half]));
    }
  }

  // Places from `place` of the input on, every `step`th.
  void split(std::size_t place, std::size_t step, std::size_t n, std::uint8_t* to) noexcept {
    const std::size_t even_at = even_ + place * kChannelBlock, odd_at = odd_ + place * kChannelBlock;
    const __mmask16 even_lanes = even_lanes_, odd_lanes = odd_lanes_;
    const std::size_t piece_bytes = piece_bytes_;
    step *= kChannelBlock;
    if constexpr (kPieces == 1) {
      if (rounded_ != nullptr) {
        const std::uint16_t *even = rounded_ + even_at, *odd = rounded_ + odd_at;
        for (; n > 0; --n, even += step, odd += step, to += kPlaceBytes) {
          const __m256i x = _mm256_maskz_loadu_epi16(even_lanes, even), y = _mm256_maskz_loadu_epi16(odd_lanes, odd);
          _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1));
        }
        return;
      }
    }
    const float *even = input_ + even_at, *odd = input_ + odd_at;
    if constexpr (kPieces == 1) {
      for (; n > 0; --n, even += step, odd += step, to += kPlaceBytes) {
        const __m512 x = _mm512_maskz_loadu_ps(even_lanes, even), y = _mm512_maskz_loadu_ps(odd_lanes, odd);
        _mm512_storeu_si512(to, round_in_order(x, y));
      }
    } else {
      RangeWatch watch = watch_;
      for (; n > 0; --n, even += step, odd += step, to += kPlaceBytes) {
        __m512 x = _mm512_maskz_loadu_ps(even_lanes, even), y = _mm512_maskz_loadu_ps(odd_lanes, odd);
        watch.see(_mm512_castps_si512(x));
        watch.see(_mm512_castps_si512(y));
        INFERNODE_UNROLL
        for (int piece = 0; piece < kPieces; ++piece) {
          const __m512i low = _mm512_srli_epi32(next_piece(x, piece), 16), high = next_piece(y, piece);
          _mm512_storeu_si512(to + static_cast<std::size_t>(piece) * piece_bytes, _mm512_or_si512(low, high));
        }
      }
      watch_ = watch;
    }
  }

  const ConvShape* s_ = nullptr;
  const float* input_ = nullptr;
  const std::uint16_t* rounded_ = nullptr;  // in its place
  std::uint8_t* out_ = nullptr;             // of the pair
  std::size_t plane_ = 0, place_bytes_ = 0, piece_bytes_ = 0;
  bool planar_ = false;
  std::size_t even_ = 0, odd_ = 0;  // where the pair's blocks begin
  bool flat_ = false;
  std::size_t lines_ = 0, length_ = 0, left_ = 0;
  std::ptrdiff_t first_ = 0, first_column_ = 0;  // position, or row and column of the input
  std::size_t pair_ = 0, line_ = 0, column_ = 0;
  __mmask16 even_lanes_ = 0, odd_lanes_ = 0;  // channels that exist
  RangeWatch watch_;
};

}  // namespace
}  // namespace infernode::microkernels
