#include "microkernels/blocked.h"

#include "microkernels/amx_tiles.h"
#include "microkernels/bf16_pairs.h"
#include "microkernels/blocked_pairs.h"

// Dense convolutions over blocks of channels on the matrix unit. Rows of the padded input are split into images whose
// places hold one piece of two blocks of channels, 64 bytes: any positions at equal distances are then a tile of A,
// whatever kernel point reads them, and a tile of sums, 16 positions by 16 channels, is what the output holds of a
// block. Images of the next rows are made, weights split and sums finished beside the products.
//
// Rows that read numbers which cannot be split are computed by the AVX-512 loops; so the grid is theirs, and weights of
// several pieces begin with what they take. One piece holds whatever a bfloat16 does. Planar inputs go to the loops for
// vectors of either.
namespace infernode::microkernels {

extern const BlockedConvTable blocked_conv_table_avx512, blocked_conv_table_bf16;
extern const BlockedDepthwiseTable blocked_depthwise_table_bf16;

namespace {

constexpr std::size_t kPlaceBytes = 64;
constexpr std::size_t kImageBytes = 768 << 10;       // two images fit the second-level cache
constexpr std::size_t kSplitWeightFloats = 1 << 18;  // weights up to this size are split when they are packed
constexpr std::size_t kTileFloats = kTileRows * 16;  // of sums
constexpr std::size_t kMostTiles = 4;                // of positions in a group
constexpr std::size_t kFewestCycles = 13;            // that products of four tiles take each, however few their rows
constexpr std::size_t kWorkingBands = 4, kLeastGroups = 4;

// Steps of 32 channels at a kernel point that are summed before the output is read and written: of one piece all, as
// blocks of bfloat16 numbers hold no sums. Those of an image that is small enough are no more.
template <int kPieces>
inline constexpr std::size_t kMostSteps = kPieces == 1 ? kImageBytes / kPlaceBytes : kGemmBlockK / kTileDepth;

// A kernel of one point without borders: rows of positions are cut anywhere, as the AVX-512 loops do.
bool is_flat(const ConvShape& s) noexcept {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
         (s.out_h - 1) * s.stride_h < s.in_h && (s.out_w - 1) * s.stride_w < s.in_w;
}

std::size_t pairs_of_blocks(const ConvShape& s) noexcept { return divide_up(s.in_channels, 2 * kChannelBlock); }

// What does not depend on the range.
struct Plan {
  Plan(const ConvShape& s, std::size_t pieces) noexcept
      : s(s), flat(is_flat(s)), pairs(pairs_of_blocks(s)), points(s.kernel_points()), steps(pairs * points) {
    rows = blocked_conv_table_avx512.grid(s).rows;
    width = flat ? divide_up(s.positions(), rows) : s.out_w;
    pitch = flat ? width : (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
    column_tiles = divide_up(width, kTileRows);
    tile_rows = divide_up(width, column_tiles);
    runs = !flat && s.stride_h == 1 && s.stride_w == 1 && pitch < column_tiles * larger(tile_rows, kFewestCycles);
    if (runs) tile_rows = kTileRows;
    row_bytes = (flat ? 1 : s.stride_w) * kPlaceBytes;
    const std::size_t place_bytes = pairs * pieces * kPlaceBytes;
    while (band < rows && places(2 * band) * place_bytes <= kImageBytes) band *= 2;
    for (std::size_t more = band / 2; more > 0; more /= 2) {
      if (band + more <= rows && places(band + more) * place_bytes <= kImageBytes) band += more;
    }
    fits = places(band) * place_bytes <= kImageBytes;
  }

  std::size_t seen_rows(std::size_t out_rows) const noexcept {
    return (out_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
  }
  // Places of an image of so many rows of the grid, and behind them what tiles read that are not full. An odd number:
  // images of pairs of blocks lie in different sets of the cache.
  std::size_t places(std::size_t count) const noexcept {
    return (count * (flat ? width : 0) + (flat ? 0 : seen_rows(count) * pitch) +
            kTileRows * (row_bytes / kPlaceBytes)) |
           1;
  }
  // Positions before a row.
  std::size_t position(std::size_t row) const noexcept { return smaller(row * width, s.positions()); }

  const ConvShape& s;
  bool flat;
  std::size_t pairs, points, steps;
  std::size_t rows, width;  // of the grid
  std::size_t pitch;        // places of an image's row
  std::size_t column_tiles, tile_rows;
  bool runs;              // whether tiles run through the image's rows, with the places between them
  std::size_t row_bytes;  // between rows of a tile
  std::size_t band = 1;   // rows of the grid whose image is small enough
  bool fits;
};

// ---- Weights: for each panel, step and block of its channels the pieces, a tile each ----

template <int kPieces>
struct WeightLayout {
  explicit WeightLayout(const ConvShape& s) noexcept
      : panel_bytes(2 * pairs_of_blocks(s) * s.kernel_points() * kPieces * kTileBytes),
        plain_floats(divide_up(blocked_conv_table_avx512.packed_weight_floats(s), std::size_t{16}) * 16),
        split(kPieces == 1 || plain_floats <= kSplitWeightFloats) {
    const std::size_t tiles =
        split ? channel_blocks(s.out_channels) * (panel_bytes / 2 / sizeof(float)) : std::size_t{0};
    floats = kPieces == 1 ? larger(blocked_conv_table_bf16.packed_weight_floats(s), tiles) : plain_floats + 16 + tiles;
  }
  // Whether all weights could be split.
  float* mark(float* weight) const noexcept { return weight + plain_floats; }
  std::uint8_t* tiles(float* weight, std::size_t panel) const noexcept {
    return reinterpret_cast<std::uint8_t*>(weight + (kPieces == 1 ? 0 : plain_floats + 16)) + panel * panel_bytes;
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
        watch_.see(_mm512_castps_si512(x));
        watch_.see(_mm512_castps_si512(y));
        split_pair<kPieces>(x, y, out_ + block * kPieces * kTileBytes + row_ * 64);
      }
      _mm_prefetch(reinterpret_cast<const char*>(even_ + row_ * columns) + kAhead, _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(odd_ + row_ * columns) + kAhead, _MM_HINT_T0);
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
  return WeightLayout<kPieces>(s).floats;
}

// One piece: a word holds two channels that follow each other, as places do.
void round_weight(const ConvShape& s, const float* weight, std::uint8_t* out) noexcept {
  const std::size_t all = channel_blocks(s.out_channels) * kChannelBlock, points = s.kernel_points();
  for (std::size_t n0 = 0; n0 < all; n0 += kPanelColumns) {
    for (std::size_t c0 = 0; c0 < s.in_channels; c0 += kTileDepth) {
      for (std::size_t point = 0; point < points; ++point) {
        for (std::size_t n = n0; n < smaller(n0 + kPanelColumns, all); n += kChannelBlock) {
          for (std::size_t c = c0; c < c0 + kTileDepth; c += 2, out += 64) {
            alignas(64) float even[16] = {}, odd[16] = {};
            for (std::size_t i = 0; i < 16 && n + i < s.out_channels; ++i) {
              const float* const from = weight + ((n + i) * s.in_channels + c) * points + point;
              if (c < s.in_channels) even[i] = from[0];
              if (c + 1 < s.in_channels) odd[i] = from[points];
            }
            _mm512_storeu_si512(out, round_pairs(_mm512_load_ps(even), _mm512_load_ps(odd)));
          }
        }
      }
    }
  }
}

template <int kPieces>
void pack_weight(const ConvShape& s, bool planar, const float* weight, float* out) noexcept {
  const WeightLayout<kPieces> layout(s);
  if constexpr (kPieces == 1) {
    if (planar) return blocked_conv_table_bf16.pack_weight(s, planar, weight, out);
    return round_weight(s, weight, layout.tiles(out, 0));
  }
  blocked_conv_table_avx512.pack_weight(s, planar, weight, out);
  if (planar) return;
  const std::size_t steps = pairs_of_blocks(s) * s.kernel_points();
  alignas(64) std::uint8_t step_tiles[kPanelTiles * kPieces * kTileBytes];
  bool splits = true;
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
  ImageSplit(const Plan& plan, const BlockedConvArgs& args, std::size_t begin, std::size_t end,
             std::uint8_t* out) noexcept
      : s_(&plan.s),
        input_(args.input),
        rounded_(args.input_bf16),
        out_(out),
        plane_(plan.s.in_h * plan.s.in_w * kChannelBlock),
        piece_bytes_(plan.places(end - begin) * kPlaceBytes),
        flat_(plan.flat),
        lines_(plan.flat ? 1 : plan.seen_rows(end - begin)),
        length_(plan.flat ? plan.position(end) - plan.position(begin) : plan.pitch),
        left_(plan.pairs * lines_ * length_),
        first_(static_cast<std::ptrdiff_t>(plan.flat ? plan.position(begin) : begin * plan.s.stride_h) -
               (plan.flat ? 0 : plan.s.pad_top)) {
    enter();
  }

  std::size_t left() const noexcept { return left_; }
  bool splits() const noexcept { return watch_.splits(); }

  // Splits `count` more places, or all that are left.
  void advance(std::size_t count) noexcept {
    for (count = smaller(count, left_), left_ -= count; count > 0;) {
      const std::size_t n = smaller(count, length_ - column_);
      std::uint8_t* const to = out_ + (line_ * length_ + column_) * kPlaceBytes;
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
    const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(column_) - s_->pad_left,
                         end = begin + static_cast<std::ptrdiff_t>(n);
    if (row < 0 || row >= static_cast<std::ptrdiff_t>(s_->in_h) || begin >= width || end <= 0) return clear(n, to);
    const auto before = static_cast<std::size_t>(begin < 0 ? -begin : 0),
               behind = static_cast<std::size_t>(end > width ? end - width : 0);
    clear(before, to);
    to += before * kPlaceBytes;
    const std::size_t some = n - before - behind;
    split(static_cast<std::size_t>(row * width + begin) + before, 1, some, to);
    clear(behind, to + some * kPlaceBytes);
  }

  void clear(std::size_t n, std::uint8_t* to) noexcept {
    for (; n > 0; --n, to += kPlaceBytes) {
      INFERNODE_UNROLL
      for (std::size_t piece = 0; piece < kPieces; ++piece)
        _mm512_storeu_si512(to + piece * piece_bytes_, _mm512_setzero_si512());
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
  std::size_t plane_ = 0, piece_bytes_ = 0;
  std::size_t even_ = 0, odd_ = 0;  // where the pair's blocks begin
  bool flat_ = false;
  std::size_t lines_ = 0, length_ = 0, left_ = 0;
  std::ptrdiff_t first_ = 0;  // position, or row of the input
  std::size_t pair_ = 0, line_ = 0, column_ = 0;
  __mmask16 even_lanes_ = 0, odd_lanes_ = 0;  // channels that exist
  RangeWatch watch_;
};

// ---- Products ----

// Tiles of positions' rows are in registers 4 and 5, those of weights in 6 and 7, sums in 0 to 3.
#define INFERNODE_LOAD_A(to, i, piece) _tile_loadd(to, a[i] + at + (piece)*piece_bytes, row_bytes)
#define INFERNODE_LOAD_B(to, i, piece) _tile_loadd(to, b + ((i)*kPieces + (piece)) * kTileBytes, 64)

struct Operands {
  const std::uint8_t* a[kMostTiles];  // tiles of positions
  std::size_t piece_bytes, row_bytes;
  const std::size_t* offsets;  // from there to what each step reads
  std::size_t steps;
  const std::uint8_t* b;
};

// Two blocks of channels by one or two tiles of positions. The order of what is summed is the same for all shapes.
template <int kPieces, int kTiles, typename Beside>
INFERNODE_SIMD void multiply_two_blocks(const Operands& o, float* sums, const Beside& beside) noexcept {
  const std::uint8_t* const(&a)[kMostTiles] = o.a, *b = o.b;
  const std::size_t piece_bytes = o.piece_bytes, row_bytes = o.row_bytes;
#define INFERNODE_LOAD_ROWS(piece) \
  INFERNODE_LOAD_A(4, 0, piece);   \
  if constexpr (kTiles == 2) INFERNODE_LOAD_A(5, 1, piece)
#define INFERNODE_LOAD_COLUMNS(piece) \
  INFERNODE_LOAD_B(6, 0, piece);      \
  INFERNODE_LOAD_B(7, 1, piece)
#define INFERNODE_MULTIPLY()   \
  _tile_dpbf16ps(0, 4, 6);     \
  _tile_dpbf16ps(1, 4, 7);     \
  if constexpr (kTiles == 2) { \
    _tile_dpbf16ps(2, 5, 6);   \
    _tile_dpbf16ps(3, 5, 7);   \
  }
  __asm__ volatile("" ::: "memory");  // the loads below do not tell the compiler what they read
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTiles == 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::size_t step = 0; step < o.steps; ++step, b += 2 * kPieces * kTileBytes) {
    const std::size_t at = o.offsets[step];
    if constexpr (kPieces == 3) {
      INFERNODE_LOAD_ROWS(2);
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_ROWS(1);
      INFERNODE_MULTIPLY();
      beside();
      INFERNODE_LOAD_COLUMNS(1);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_ROWS(0);
      INFERNODE_MULTIPLY();
      beside();
      INFERNODE_LOAD_COLUMNS(2);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
    } else if constexpr (kPieces == 2) {
      INFERNODE_LOAD_ROWS(1);
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_ROWS(0);
      INFERNODE_MULTIPLY();
      INFERNODE_LOAD_COLUMNS(1);
      INFERNODE_MULTIPLY();
    } else {
      INFERNODE_LOAD_ROWS(0);
      INFERNODE_LOAD_COLUMNS(0);
      INFERNODE_MULTIPLY();
    }
    beside();
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileFloats, 64);
  if constexpr (kTiles == 2) {
    _tile_stored(2, sums + 2 * kTileFloats, 64);
    _tile_stored(3, sums + 3 * kTileFloats, 64);
  }
#undef INFERNODE_LOAD_ROWS
#undef INFERNODE_LOAD_COLUMNS
#undef INFERNODE_MULTIPLY
}

// One block of channels by four tiles of positions.
template <int kPieces, typename Beside>
INFERNODE_SIMD void multiply_one_block(const Operands& o, float* sums, const Beside& beside) noexcept {
  const std::uint8_t* const(&a)[kMostTiles] = o.a, *b = o.b;
  const std::size_t piece_bytes = o.piece_bytes, row_bytes = o.row_bytes;
#define INFERNODE_LOAD_AND_MULTIPLY(i, j, piece, with) \
  INFERNODE_LOAD_A(4, i, piece);                       \
  INFERNODE_LOAD_A(5, j, piece);                       \
  _tile_dpbf16ps(i, 4, with);                          \
  _tile_dpbf16ps(j, 5, with)
#define INFERNODE_MULTIPLY_AGAIN(i, j, with) \
  _tile_dpbf16ps(i, 4, with);                \
  _tile_dpbf16ps(j, 5, with)
  __asm__ volatile("" ::: "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::size_t step = 0; step < o.steps; ++step, b += kPieces * kTileBytes) {
    const std::size_t at = o.offsets[step];
    INFERNODE_LOAD_B(6, 0, 0);
    if constexpr (kPieces == 3) {
      INFERNODE_LOAD_B(7, 0, 1);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 2, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 2, 6);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 1, 6);
      INFERNODE_MULTIPLY_AGAIN(0, 1, 7);
      beside();
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 1, 6);
      INFERNODE_MULTIPLY_AGAIN(2, 3, 7);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 7);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 7);
      beside();
      INFERNODE_LOAD_B(7, 0, 2);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 7);
      INFERNODE_MULTIPLY_AGAIN(0, 1, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 7);
      INFERNODE_MULTIPLY_AGAIN(2, 3, 6);
    } else if constexpr (kPieces == 2) {
      INFERNODE_LOAD_B(7, 0, 1);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 1, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 1, 6);
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 6);
      INFERNODE_MULTIPLY_AGAIN(0, 1, 7);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 6);
      INFERNODE_MULTIPLY_AGAIN(2, 3, 7);
    } else {
      INFERNODE_LOAD_AND_MULTIPLY(0, 1, 0, 6);
      INFERNODE_LOAD_AND_MULTIPLY(2, 3, 0, 6);
    }
    beside();
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileFloats, 64);
  _tile_stored(2, sums + 2 * kTileFloats, 64);
  _tile_stored(3, sums + 3 * kTileFloats, 64);
#undef INFERNODE_LOAD_AND_MULTIPLY
#undef INFERNODE_MULTIPLY_AGAIN
}
#undef INFERNODE_LOAD_A
#undef INFERNODE_LOAD_B

// By the rows that tiles of positions and sums have.
struct Configs {
  TileConfig of[kTileRows + 1];
};
constexpr Configs make_configs() {
  Configs configs{};
  for (std::size_t rows = 0; rows <= kTileRows; ++rows) {
    for (std::size_t tile = 0; tile < 6; ++tile) configs.of[rows].rows[tile] = static_cast<std::uint8_t>(rows);
  }
  return configs;
}
constexpr Configs kConfigs = make_configs();

template <int kPieces>
inline constexpr std::size_t kWeightBytes = kPieces == 1 ? 0 : kMostSteps<kPieces>* kPanelTiles* kPieces* kTileBytes;

// Images, split weights and where steps read. The vector loops need no more.
template <int kPieces>
inline constexpr std::size_t kScratchFloats = (2 * (kImageBytes + kWeightBytes<kPieces>)+kMostSteps<kPieces> *
                                               sizeof(std::size_t)) /
                                              sizeof(float);

// The part of an output that one call computes.
template <int kPieces>
class Product {
 public:
  Product(const BlockedConvArgs& args, const Plan& plan, const BlockedRange& range, float* scratch) noexcept
      : args_(args),
        plan_(plan),
        range_(range),
        layout_(args.shape),
        bounds_(clamp_bounds(args.activation)),
        weight_(const_cast<float*>(args.packed_weight)),
        images_(reinterpret_cast<std::uint8_t*>(scratch)),
        weights_(images_ + 2 * kImageBytes),
        offsets_(reinterpret_cast<std::size_t*>(weights_ + 2 * kWeightBytes<kPieces>)),
        plane_(args.shape.positions() * kChannelBlock) {
    const std::size_t rows = range.row_end - range.row_begin;
    band_ = smaller(plan.band, rows);
    if (layout_.split && rows > 1) {  // the first image is waited for
      const std::size_t tiles_in_row = plan.runs ? divide_up(plan.pitch, kTileRows) : plan.column_tiles;
      band_ = smaller(band_, larger(divide_up(rows, kWorkingBands), divide_up(2 * kLeastGroups, tiles_in_row)));
    }
    band_ = divide_up(rows, divide_up(rows, band_));
    chunk_ = divide_up(plan.steps, divide_up(plan.steps, kMostSteps<kPieces>));
  }

  void multiply() noexcept {
    Part part{range_.row_begin, smaller(range_.row_begin + band_, range_.row_end), range_.panel_begin, 0};
    bool odd_image = false, odd_weights = false, splits = true, fresh = true;
    next_ = split_rows(part, odd_image);
    coming_ = split_weights(part, odd_weights);
    for (;;) {
      if (fresh) {
        next_.advance(next_.left());
        splits = splits && next_.splits();
        Part behind = part;
        behind.row_begin = part.row_end;
        behind.row_end = smaller(part.row_end + band_, range_.row_end);
        next_ = behind.row_begin < range_.row_end ? split_rows(behind, !odd_image) : ImageSplit<kPieces>();
        enter_band(part);
      }
      coming_.advance(coming_.left());
      Part following = part;
      const bool last = !forward(following);
      coming_ = last ? WeightSplit<kPieces>() : split_weights(following, !odd_weights);
      multiply_part(part, last ? nullptr : &following, images_ + (odd_image ? kImageBytes : 0),
                    layout_.split ? tiles_at(part) : weights_ + (odd_weights ? kWeightBytes<kPieces> : 0));
      if (last) break;
      fresh = following.row_begin != part.row_begin;
      if (fresh) odd_image = !odd_image;
      odd_weights = !odd_weights;
      part = following;
    }
    finish();
    if (!splits) compute_plain_rows();
  }

 private:
  // Rows of the grid by a panel, summed over some steps.
  struct Part {
    std::size_t row_begin, row_end, panel, step;
  };
  // Sums of positions that follow each other.
  struct Run {
    const float* sums;
    std::size_t count, position;
  };

  std::size_t steps_of(const Part& part) const noexcept { return smaller(chunk_, plan_.steps - part.step); }
  std::size_t blocks_of(const Part& part) const noexcept {
    return smaller(channel_blocks(args_.shape.out_channels) - part.panel * kPanelTiles, kPanelTiles);
  }
  const std::uint8_t* tiles_at(const Part& part) const noexcept {
    return layout_.tiles(weight_, part.panel) + part.step * blocks_of(part) * kPieces * kTileBytes;
  }

  // The next part; false behind the last.
  bool forward(Part& part) const noexcept {
    if ((part.step += chunk_) < plan_.steps) return true;
    part.step = 0;
    if (++part.panel < range_.panel_end) return true;
    part.panel = range_.panel_begin;
    part.row_begin = part.row_end;
    part.row_end = smaller(part.row_begin + band_, range_.row_end);
    return part.row_begin < range_.row_end;
  }

  ImageSplit<kPieces> split_rows(const Part& part, bool odd) const noexcept {
    return {plan_, args_, part.row_begin, part.row_end, images_ + (odd ? kImageBytes : 0)};
  }
  WeightSplit<kPieces> split_weights(const Part& part, bool odd) const noexcept {
    if (layout_.split) return {};
    return {args_.shape, weight_, part.panel, part.step, steps_of(part), weights_ + (odd ? kWeightBytes<kPieces> : 0)};
  }

  // Counts a band's tiles and how much of the next image is made at a time.
  void enter_band(const Part& part) noexcept {
    const std::size_t rows = part.row_end - part.row_begin;
    places_ = plan_.places(rows);
    if (plan_.runs) {
      tiles_ = divide_up((rows - 1) * plan_.pitch + plan_.width, kTileRows);
    } else {
      const std::size_t last = plan_.position(part.row_end) - plan_.position(part.row_end - 1);
      tiles_ = (rows - 1) * plan_.column_tiles + divide_up(last, plan_.tile_rows);
    }
    const std::size_t panels = range_.panel_end - range_.panel_begin;
    units_ = divide_up(next_.left(), panels * divide_up(tiles_, kMostTiles) * plan_.steps * kCallsBeside<kPieces>);
  }

  void multiply_part(const Part& part, const Part* following, const std::uint8_t* image,
                     const std::uint8_t* b) noexcept {
    const std::size_t blocks = blocks_of(part), group = blocks == 2 ? 2 : kMostTiles, steps = steps_of(part);
    const ConvShape& s = args_.shape;
    Operands o{};
    o.piece_bytes = places_ * kPlaceBytes;
    o.row_bytes = plan_.row_bytes;
    o.offsets = offsets_;
    o.steps = steps;
    o.b = b;
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t point = (part.step + i) % plan_.points, pair = (part.step + i) / plan_.points;
      offsets_[i] = pair * kPieces * o.piece_bytes +
                    (point / s.kernel_w * s.dilation_h * plan_.pitch + point % s.kernel_w * s.dilation_w) * kPlaceBytes;
    }
    const std::size_t groups = divide_up(tiles_, group), calls = steps * kCallsBeside<kPieces>;
    const std::size_t words = divide_up(coming_.left(), groups * calls);
    const std::size_t rows = divide_up(group * plan_.tile_rows, calls);
    // Weights that come next are fetched.
    const auto* line = reinterpret_cast<const char*>(layout_.split && following ? tiles_at(*following) : nullptr);
    const std::size_t lines =
        line ? steps_of(*following) * blocks_of(*following) * kPieces * (kTileBytes / 64) : std::size_t{0};
    const char* const lines_end = line + lines * 64;
    const std::size_t fetched = divide_up(lines, groups * calls);
    const auto beside = [&]() __attribute__((always_inline)) {
      finish_some(rows);
      coming_.advance(words);
      next_.advance(units_);
      for (std::size_t i = 0; i < fetched && line < lines_end; ++i, line += 64) _mm_prefetch(line, _MM_HINT_T1);
    };
    for (std::size_t tile = 0; tile < tiles_; tile += group) {
      const std::size_t count = smaller(group, tiles_ - tile);
      for (std::size_t i = 0; i < group; ++i) o.a[i] = image + place_of(tile + smaller(i, count - 1)) * kPlaceBytes;
      float* const sums = sums_[current_];
      if (blocks == 1) {
        multiply_one_block<kPieces>(o, sums, beside);
      } else if (count == 2) {
        multiply_two_blocks<kPieces, 2>(o, sums, beside);
      } else {
        multiply_two_blocks<kPieces, 1>(o, sums, beside);
      }
      finish();
      start_finish(part, blocks);
      for (std::size_t i = 0; i < count; ++i) add_runs(part, tile + i, sums + i * blocks * kTileFloats);
      current_ = 1 - current_;
    }
  }

  // Where a tile of the band begins in the image.
  std::size_t place_of(std::size_t tile) const noexcept {
    if (plan_.runs) return tile * kTileRows;
    const std::size_t row = tile / plan_.column_tiles, column = tile % plan_.column_tiles * plan_.tile_rows;
    return plan_.flat ? row * plan_.width + column : row * plan_.s.stride_h * plan_.pitch + column * plan_.s.stride_w;
  }

  // ---- Finishing ----

  void start_finish(const Part& part, std::size_t blocks) noexcept {
    runs_ = run_ = 0;
    finished_blocks_ = blocks;
    const std::size_t channel = part.panel * kPanelColumns;
    bias_ = args_.bias ? args_.bias + channel : nullptr;
    at_ = channel / kChannelBlock * plane_;
    adds_ = part.step > 0;
    last_ = part.step + chunk_ >= plan_.steps;
  }
  void add_runs(const Part& part, std::size_t tile, const float* sums) noexcept {
    if (!plan_.runs) {
      const std::size_t row = part.row_begin + tile / plan_.column_tiles,
                        begin = plan_.position(row) + tile % plan_.column_tiles * plan_.tile_rows,
                        end = smaller(begin + plan_.tile_rows, plan_.position(row + 1));
      if (begin < end) run_at_[runs_++] = {sums, end - begin, begin};
      return;
    }
    const std::size_t end = (tile + 1) * kTileRows;
    for (std::size_t place = tile * kTileRows, stop; place < end; place = stop) {
      const std::size_t row = part.row_begin + place / plan_.pitch, column = place % plan_.pitch;
      stop = smaller(end, place - column + plan_.pitch);
      const std::size_t row_end = smaller(place - column + plan_.width, stop);
      if (row < part.row_end && place < row_end) {
        run_at_[runs_++] = {sums + (place - tile * kTileRows) * kChannelBlock, row_end - place,
                            plan_.position(row) + column};
      }
    }
  }

  void finish_some(std::size_t rows) noexcept {
    if (run_ == runs_) return;
    Run& run = run_at_[run_];
    const std::size_t count =
        smaller(larger(rows, is_clamp(args_.activation) ? std::size_t{8} : std::size_t{4}), run.count);
    finish_rows(run, count);
    run.sums += count * kChannelBlock;
    run.position += count;
    if ((run.count -= count) == 0) ++run_;
  }
  void finish() noexcept {
    for (; run_ < runs_; ++run_) finish_rows(run_at_[run_], run_at_[run_].count);
  }

  void finish_rows(const Run& run, std::size_t count) noexcept {
    for (std::size_t block = 0; block < finished_blocks_; ++block) {
      const std::size_t at = at_ + block * plane_ + run.position * kChannelBlock;
      const float* from = run.sums + block * kTileFloats;
      float* const y = args_.output_bf16 ? nullptr : args_.output + at;
      const std::size_t floats = count * kChannelBlock;
      if (!last_) {
        for (std::size_t i = 0; i < floats; i += kChannelBlock)
          store(y + i, adds_ ? load(y + i) + load(from + i) : load(from + i));
        continue;
      }
      const VecF bias = bias_ ? load(bias_ + block * kChannelBlock) : zero(), low = set(bounds_.low),
                 high = set(bounds_.high);
      const float* const residual = args_.residual ? args_.residual + at : nullptr;
      const std::uint16_t* const rounded = args_.residual_bf16 ? args_.residual_bf16 + at : nullptr;
      const auto value_at = [&](std::size_t i) __attribute__((always_inline)) {
        VecF value = load(from + i);
        if (adds_) value = load(y + i) + value;
        value = value + bias;
        if (residual) value = value + load(residual + i);
        if (rounded) value = value + load(rounded + i);
        return clamp(value, low, high);
      };
      if (!args_.output_bf16) {
        for (std::size_t i = 0; i < floats; i += kChannelBlock) store(y + i, value_at(i));
        if (!is_clamp(args_.activation)) activate_row(args_.activation, y, floats);
        continue;
      }
      auto* const words = reinterpret_cast<std::uint32_t*>(args_.output_bf16 + at);
      if (!is_clamp(args_.activation)) {
        auto* const sums = const_cast<float*>(from);
        for (std::size_t i = 0; i < floats; i += kChannelBlock) store(sums + i, value_at(i));
        activate_row(args_.activation, sums, floats);
        round_whole_row(sums, floats, words);
        continue;
      }
      std::size_t i = 0;
      for (; i + 2 * kChannelBlock <= floats; i += 2 * kChannelBlock)
        _mm512_storeu_si512(words + i / 2, round_in_order(value_at(i).v, value_at(i + kChannelBlock).v));
      if (i < floats)
        _mm512_mask_storeu_epi32(words + i / 2, first_lanes(8), round_in_order(value_at(i).v, _mm512_setzero_ps()));
    }
  }

  // Rows that read what cannot be split.
  void compute_plain_rows() noexcept {
    for (std::size_t row = range_.row_begin; row < range_.row_end; ++row) {
      ImageSplit<kPieces> image(plan_, args_, row, row + 1, images_);
      image.advance(image.left());
      if (image.splits()) continue;
      blocked_conv_table_avx512.conv(args_, {row, row + 1, range_.panel_begin, range_.panel_end},
                                     reinterpret_cast<float*>(images_));
    }
  }

  const BlockedConvArgs& args_;
  const Plan& plan_;
  const BlockedRange& range_;
  WeightLayout<kPieces> layout_;
  ClampBounds bounds_;
  float* weight_;
  std::uint8_t *images_, *weights_;
  std::size_t* offsets_;
  std::size_t plane_;  // floats of a block of the output
  std::size_t band_ = 1, chunk_ = 1;
  // Of the band.
  std::size_t tiles_ = 0, places_ = 0, units_ = 0;
  ImageSplit<kPieces> next_;
  WeightSplit<kPieces> coming_;
  // What is finished.
  std::size_t current_ = 0, runs_ = 0, run_ = 0, finished_blocks_ = 0, at_ = 0;
  bool adds_ = false, last_ = false;
  const float* bias_ = nullptr;
  Run run_at_[kMostTiles * kTileRows];
  alignas(64) float sums_[2][kMostTiles * kTileFloats];
};

template <int kPieces>
bool fits(const ConvShape& s) noexcept {
  if constexpr (kPieces > 1) return blocked_conv_table_avx512.fits(s);
  constexpr std::size_t kMostChannels = 1 << 16;
  return blocked_conv_table_bf16.fits(s) && s.in_channels <= kMostChannels && Plan(s, kPieces).fits;
}

BlockedGrid grid(const ConvShape& s) noexcept { return blocked_conv_table_avx512.grid(s); }

template <int kPieces>
void conv(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept {
  if (range.row_begin >= range.row_end || range.panel_begin >= range.panel_end) return;
  const ConvShape& s = args.shape;
  if constexpr (kPieces == 1) {
    if (args.planar) {  // the same part of a grid of its own
      const std::size_t rows = blocked_conv_table_bf16.grid(s).rows, of = grid(s).rows;
      return blocked_conv_table_bf16.conv(
          args, {range.row_begin * rows / of, range.row_end * rows / of, range.panel_begin, range.panel_end}, scratch);
    }
  }
  const Plan plan(s, kPieces);
  if constexpr (kPieces > 1) {
    const bool splits = !args.planar && *WeightLayout<kPieces>(s).mark(const_cast<float*>(args.packed_weight)) != 0;
    if (!splits || !plan.fits) return blocked_conv_table_avx512.conv(args, range, scratch);
  }
  const TileSession session(kConfigs.of[plan.tile_rows]);
  Product<kPieces>(args, plan, range, scratch).multiply();
}

void depthwise(const BlockedConvArgs& args, std::size_t begin, std::size_t end) noexcept {
  (args.input_bf16 ? blocked_depthwise_table_bf16.conv : blocked_conv_table_avx512.depthwise)(args, begin, end);
}

template <int kPieces>
constexpr BlockedConvTable table_of(const char* name) {
  return {name,
          kScratchFloats<kPieces>,
          fits<kPieces>,
          grid,
          packed_weight_floats<kPieces>,
          pack_weight<kPieces>,
          conv<kPieces>,
          depthwise,
          kPieces == 1};
}

}  // namespace

// By Float32Precision.
extern const BlockedConvTable blocked_conv_table_amx[3];
constexpr BlockedConvTable blocked_conv_table_amx[3] = {table_of<3>("amx"), table_of<2>("amx.high"),
                                                        table_of<1>("amx.medium")};
static_assert(static_cast<int>(Float32Precision::kHighest) == 0 && static_cast<int>(Float32Precision::kMedium) == 2);

}  // namespace infernode::microkernels
