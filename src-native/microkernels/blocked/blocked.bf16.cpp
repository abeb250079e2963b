#include "microkernels/blocked/detail/kernel_points.h"
#include "microkernels/blocked/detail/pairs.h"
#include "microkernels/common/bf16_pairs.h"
#include "microkernels/common/register_tile.simd.h"

// Dense convolutions of medium precision where the CPU multiplies bfloat16 but has no matrix unit. Operands are words
// of two channels. Blocks of bfloat16 numbers hold such words and are read where they lie; rows that need borders are
// copied, and rows of float32 rounded, before panels of channels pass over them.
#if defined(__clang__)
#define INFERNODE_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#elif defined(__GNUC__)
#define INFERNODE_UNROLL_4 _Pragma("GCC unroll 4")
#else
#define INFERNODE_UNROLL_4
#endif

namespace infernode::microkernels {

namespace {

constexpr std::size_t kScratchWords = 98304;  // rounded rows of input: they fit a second-level cache
constexpr std::size_t kFlatRow = 5 * kMr;     // positions of a row where rows may be cut anywhere
constexpr std::size_t kBlockWords = kChannelBlock / 2;

static_assert(kNr == kPairColumns && kNr == 2 * kChannelBlock && kLanes == kChannelBlock);

// Positions are the input's own: rows may be cut anywhere.
bool is_flat(const ConvShape& s) noexcept {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.in_h == s.out_h && s.in_w == s.out_w;
}

// Columns and rows from the first that the kernel sees to the last.
std::size_t seen_columns(const ConvShape& s) noexcept {
  return (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
}
std::size_t seen_rows(const ConvShape& s, std::size_t out_rows) noexcept {
  return (out_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
}

// Words of all channels at one place, in either form of input.
std::size_t place_words(const ConvShape& s) noexcept { return channel_blocks(s.in_channels) * kBlockWords; }

bool fits(const ConvShape& s) noexcept {
  return s.in_d == 1 && s.kernel_d == 1 && s.out_d == 1 && s.positions() > 0 &&
         (is_flat(s) ? 1 : SeenLines(s, 1).count * seen_columns(s)) * place_words(s) <= kScratchWords;
}

std::size_t row_length(const ConvShape& s) noexcept {
  if (!is_flat(s)) return s.out_w;
  const std::size_t most = smaller(kFlatRow, larger(kScratchWords / place_words(s), std::size_t{1}));
  return divide_up(s.positions(), divide_up(s.positions(), most));
}

BlockedGrid grid(const ConvShape& s) noexcept {
  return {is_flat(s) ? divide_up(s.positions(), row_length(s)) : s.out_h,
          divide_up(channel_blocks(s.out_channels) * kChannelBlock, kNr)};
}

// ---- Weights: a panel of channels after the other, each [words][channels], in the order in which a tile reads words
// ----

PackedForm packed_form(const ConvShape&) noexcept { return PackedForm::kBf16Pairs; }

std::size_t packed_bytes(const ConvShape& s) noexcept {
  return channel_blocks(s.out_channels) * kChannelBlock * pairs_of(s.in_channels) * s.kernel_points() *
         sizeof(std::uint32_t);
}

// Planes are one block of all channels.
template <bool kPlanar>
void pack(const ConvShape& s, const float* weight, void* out) noexcept {
  const std::size_t all = channel_blocks(s.out_channels) * kChannelBlock, points = s.kernel_points();
  const std::size_t block = kPlanar ? pairs_of(s.in_channels) * 2 : kChannelBlock;
  auto* words = static_cast<std::uint32_t*>(out);
  for (std::size_t n0 = 0; n0 < all; n0 += kNr) {
    const std::size_t cols = smaller(kNr, all - n0);
    for (std::size_t c0 = 0; c0 < s.in_channels; c0 += block) {
      for (std::size_t point = 0; point < points; ++point) {
        for (std::size_t c = c0; c < smaller(c0 + block, s.in_channels); c += 2, words += cols) {
          for (std::size_t n = n0; n < n0 + cols; n += 16) {
            alignas(64) float even[16] = {}, odd[16] = {};
            for (std::size_t i = 0; i < 16 && n + i < s.out_channels; ++i) {
              const float* const from = weight + ((n + i) * s.in_channels + c) * points + point;
              even[i] = from[0];
              if (c + 1 < s.in_channels) odd[i] = from[points];
            }
            _mm512_storeu_si512(words + (n - n0), round_pairs(_mm512_load_ps(even), _mm512_load_ps(odd)));
          }
        }
      }
    }
  }
}

// ---- Input ----

void fill_zero(std::uint32_t* out, std::size_t n) noexcept {
  for (; n >= 16; n -= 16, out += 16) _mm512_storeu_si512(out, _mm512_setzero_si512());
  if (n > 0) _mm512_mask_storeu_epi32(out, first_lanes(n), _mm512_setzero_si512());
}

// Of words of a place, those that hold one of `channels` channels.
__m512i kept_words(std::size_t channels) noexcept {
  alignas(64) std::uint32_t keep[16];
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t c = i % kBlockWords * 2;
    keep[i] = c + 1 < channels ? 0xffffffffu : c < channels ? 0xffffu : 0;
  }
  return _mm512_load_si512(keep);
}

// `count` places of a block. Of the last block only `channels` count: what lies behind them may be anything.
void copy_places(const std::uint16_t* x, std::size_t count, std::size_t channels, std::uint32_t* out) noexcept {
  const __m512i mask = kept_words(channels);
  std::size_t n = count * kBlockWords;
  for (; n >= 16; n -= 16, x += 32, out += 16) _mm512_storeu_si512(out, _mm512_and_si512(mask, _mm512_loadu_si512(x)));
  if (n > 0) {
    const __mmask16 lanes = first_lanes(n);
    _mm512_mask_storeu_epi32(out, lanes, _mm512_and_si512(mask, _mm512_maskz_loadu_epi32(lanes, x)));
  }
}
void round_places(const float* x, std::size_t count, std::size_t channels, std::uint32_t* out) noexcept {
  std::size_t n = count * kChannelBlock;
  if (channels == kChannelBlock) return round_whole_row(x, n, out);
  const __m512i mask = kept_words(channels);
  for (; n >= 32; n -= 32, x += 32, out += 16) _mm512_storeu_si512(out, _mm512_and_si512(mask, round_row(x, 32)));
  if (n > 0) _mm512_mask_storeu_epi32(out, first_lanes(n / 2), _mm512_and_si512(mask, round_row(x, n)));
}

// Places of a row of three or four planes: two words each.
void round_few_planes(const float* x, std::size_t plane, std::size_t channels, std::size_t count,
                      std::uint32_t* out) noexcept {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  for (std::size_t w = 0; w < count; w += 16, out += 32) {
    const __mmask16 lanes = first_lanes(smaller(count - w, std::size_t{16}));
    __m512 number[4];
    INFERNODE_UNROLL
    for (std::size_t c = 0; c < 4; ++c) {
      number[c] = c < channels ? _mm512_maskz_loadu_ps(lanes, x + c * plane + w) : _mm512_setzero_ps();
    }
    const __m512i first = round_pairs(number[0], number[1]), second = round_pairs(number[2], number[3]);
    const std::size_t left = 2 * (count - w);
    _mm512_mask_storeu_epi32(out, first_lanes(smaller(left, std::size_t{16})),
                             _mm512_permutex2var_epi32(first, low, second));
    if (left > 16)
      _mm512_mask_storeu_epi32(out + 16, first_lanes(smaller(left - 16, std::size_t{16})),
                               _mm512_permutex2var_epi32(first, high, second));
  }
}

// Places of a row of planes: words of two planes each.
void round_planes(const float* x, std::size_t plane, std::size_t channels, std::size_t count,
                  std::uint32_t* out) noexcept {
  if (channels == 3 || channels == 4) return round_few_planes(x, plane, channels, count, out);
  const std::size_t words = pairs_of(channels);
  for (std::size_t i = 0; i < words; ++i, x += 2 * plane) {
    for (std::size_t w = 0; w < count; w += 16) {
      const __mmask16 lanes = first_lanes(smaller(count - w, std::size_t{16}));
      const __m512 even = _mm512_maskz_loadu_ps(lanes, x + w),
                   odd = 2 * i + 1 < channels ? _mm512_maskz_loadu_ps(lanes, x + plane + w) : _mm512_setzero_ps();
      alignas(64) std::uint32_t pairs[16];
      _mm512_store_si512(pairs, round_pairs(even, odd));
      for (std::size_t j = 0; j < smaller(count - w, std::size_t{16}); ++j) out[(w + j) * words + i] = pairs[j];
    }
  }
}

// From the input's number `at` on.
void take_places(const BlockedConvArgs& args, std::size_t at, std::size_t count, std::size_t channels,
                 std::uint32_t* out) noexcept {
  if (args.input_bf16) return copy_places(args.input_bf16 + at, count, channels, out);
  round_places(args.input + at, count, channels, out);
}

// Whether words are read where the input has them: no kernel point reads a border, and no word holds half a pair.
bool is_in_place(const BlockedConvArgs& args) noexcept {
  const ConvShape& s = args.shape;
  return args.input_bf16 && s.in_channels % 2 == 0 && s.pad_top == 0 && s.pad_left == 0 && seen_columns(s) <= s.in_w &&
         seen_rows(s, s.out_h) <= s.in_h;
}

// Lines of input from row h0 on as the kernel sees them, zero where there is no input, block after block.
void take_rows(const BlockedConvArgs& args, std::ptrdiff_t h0, const SeenLines& lines, std::uint32_t* out) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t pitch = seen_columns(s), plane = s.in_h * s.in_w;
  const std::size_t words = args.planar ? pairs_of(s.in_channels) : kBlockWords;
  const std::size_t left = s.pad_left > 0 ? smaller(static_cast<std::size_t>(s.pad_left), pitch) : 0;
  const std::size_t skipped = s.pad_left < 0 ? static_cast<std::size_t>(-s.pad_left) : 0;
  const std::size_t count = s.in_w > skipped ? smaller(s.in_w - skipped, pitch - left) : 0;
  for (std::size_t c0 = 0; c0 < s.in_channels; c0 += args.planar ? s.in_channels : kChannelBlock) {
    for (std::size_t line = 0; line < lines.count; ++line, out += pitch * words) {
      const std::ptrdiff_t h = h0 + static_cast<std::ptrdiff_t>(lines.row(line));
      if (h < 0 || h >= static_cast<std::ptrdiff_t>(s.in_h) || count == 0) {
        fill_zero(out, pitch * words);
        continue;
      }
      const std::size_t at = static_cast<std::size_t>(h) * s.in_w + skipped;
      fill_zero(out, left * words);
      if (args.planar) {
        round_planes(args.input + at, plane, s.in_channels, count, out + left * words);
      } else {
        take_places(args, c0 * plane + at * kChannelBlock, count, smaller(kChannelBlock, s.in_channels - c0),
                    out + left * words);
      }
      fill_zero(out + (left + count) * words, (pitch - left - count) * words);
    }
  }
}

// ---- Products ----

// Some positions of a row by a panel of channels. The input is read in runs: for each block of channels and each row
// and column of the kernel, `length` consecutive words from the position's place on. Rows and columns of which no
// position sees any input are left out.
struct Tile {
  const std::uint32_t* x;  // of the first row and column
  std::size_t step;        // words between positions
  std::size_t blocks, block_step;
  std::size_t rows, row_step, columns, column_step;  // of the kernel
  KernelBlock block, last;                           // each block but the last, the last
  const std::uint32_t* weight;
  const float* bias;  // of the panel's channels, or null
  // The first position's first channel, in its block: of float32 or of bfloat16. No residual: both are null.
  const float* residual;
  const std::uint16_t* residual_bf16;
  float* y;
  std::uint16_t* y_bf16;
  std::size_t plane;  // numbers between the output's blocks
  bool clamps;        // to the bounds
  float low, high;
  const ActivationArgs* activation;  // null: the bounds are all of it
  Ahead ahead;
};

template <std::size_t kRows, std::size_t kVectors>
void blocked_tile(const Tile& t) noexcept {
  __m512 sum[kRows][kVectors];
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) {
    const __m512 bias = t.bias ? _mm512_loadu_ps(t.bias + v * kLanes) : _mm512_setzero_ps();
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) sum[r][v] = bias;
  }
  const std::uint32_t *w = t.weight, *from = t.x;
  const std::size_t step = t.step;
  Ahead ahead = t.ahead;
  for (std::size_t b = 0; b < t.blocks; ++b, from += t.block_step) {
    const KernelBlock& block = b + 1 == t.blocks ? t.last : t.block;
    const std::size_t length = block.length;
    const std::uint32_t* const next = w + block.weights;
    w += block.lead;
    for (std::size_t h = 0; h < t.rows; ++h, w += block.row_gap) {
      for (std::size_t c = 0; c < t.columns; ++c) {
        const std::uint32_t* x = from + h * t.row_step + c * t.column_step;
        INFERNODE_UNROLL_4
        for (std::size_t i = 0; i < length; ++i, ++x, w += kVectors * 16) {
          fetch(ahead);
          __m512i row[kVectors];
          INFERNODE_UNROLL
          for (std::size_t v = 0; v < kVectors; ++v) row[v] = _mm512_loadu_si512(w + v * 16);
          INFERNODE_UNROLL
          for (std::size_t r = 0; r < kRows; ++r) {
            const __m512i at = _mm512_set1_epi32(static_cast<int>(x[r * step]));
            INFERNODE_UNROLL
            for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = multiply_pairs(sum[r][v], at, row[v]);
          }
        }
      }
    }
    w = next;
  }
  const VecF low = set(t.low), high = set(t.high);
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) {
    VecF made[kRows];
    INFERNODE_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::size_t at = v * t.plane + r * kChannelBlock;
      made[r] = {sum[r][v]};
      if (t.residual) made[r] = made[r] + load(t.residual + at);
      if (t.residual_bf16) made[r] = made[r] + load(t.residual_bf16 + at);
      if (t.clamps) made[r] = clamp(made[r], low, high);
    }
    if (t.activation) activate_tile<kRows>(*t.activation, made);
    if (t.y_bf16) {
      store_rows<kRows>(t.y_bf16 + v * t.plane, made);
    } else {
      INFERNODE_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) store(t.y + v * t.plane + r * kChannelBlock, made[r]);
    }
  }
}

struct BlockedTiles {
  void (*sum[kMr][kNv])(const Tile& tile) noexcept;
};
constexpr BlockedTiles make_tiles() {
  BlockedTiles tiles{};
  fill_by_size(tiles.sum, []<std::size_t kRows, std::size_t kVectors>() { return blocked_tile<kRows, kVectors>; });
  return tiles;
}
constexpr BlockedTiles kBlockedTiles = make_tiles();

// Has the tile write from the output's number `at` on.
void write_from(const BlockedConvArgs& args, std::size_t at, Tile& t) noexcept {
  t.y = args.output_bf16 ? nullptr : args.output + at;
  t.y_bf16 = args.output_bf16 ? args.output_bf16 + at : nullptr;
  t.residual = args.residual ? args.residual + at : nullptr;
  t.residual_bf16 = args.residual_bf16 ? args.residual_bf16 + at : nullptr;
}

void conv(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const bool flat = is_flat(s), joined = s.dilation_w == 1 && (args.planar || s.in_channels % kChannelBlock == 0),
             in_place = is_in_place(args);
  const bool parted = !in_place && s.dilation_w > 1 && s.kernel_w > 1, shortened = !in_place && s.kernel_h > 1;
  const std::size_t words = args.planar ? pairs_of(s.in_channels) : kBlockWords;  // of a place in a block
  const std::size_t blocks = args.planar ? 1 : channel_blocks(s.in_channels);
  const std::size_t rest = args.planar ? 0 : s.in_channels % kChannelBlock;
  const std::size_t positions = s.positions(), width = row_length(s),
                    depth = pairs_of(s.in_channels) * s.kernel_points();
  const std::size_t all = channel_blocks(s.out_channels) * kChannelBlock, pitch = in_place ? s.in_w : seen_columns(s);
  const ClampBounds bounds = clamp_bounds(args.activation);
  auto* const rounded = reinterpret_cast<std::uint32_t*>(scratch);

  Tile t{};
  t.step = s.stride_w * words;
  t.blocks = blocks;
  t.column_step = s.dilation_w * words;
  t.block.length = joined ? s.kernel_w * words : words;
  t.last.length = rest == 0 ? t.block.length : pairs_of(rest);
  t.plane = positions * kChannelBlock;
  t.clamps = args.activation.kind == Activation::kRelu || args.activation.kind == Activation::kClip;
  t.low = bounds.low;
  t.high = bounds.high;
  t.activation = is_clamp(args.activation) ? nullptr : &args.activation;

  // Rows of output whose input fits scratch.
  const std::size_t most = kScratchWords / ((flat ? width : pitch) * blocks * words);
  const std::size_t band = flat ? larger(most, std::size_t{1}) : rows_that_see(s, most);
  for (std::size_t r0 = range.row_begin; r0 < range.row_end; r0 += band) {
    const std::size_t r1 = smaller(range.row_end, r0 + band);
    const SeenLines lines(s, r1 - r0);
    const std::uint32_t* base = rounded;
    t.row_step = (in_place ? s.dilation_h : lines.step) * pitch * words;
    if (in_place) {
      t.block_step = s.in_h * s.in_w * words;
      base = reinterpret_cast<const std::uint32_t*>(args.input_bf16) + r0 * (flat ? width : s.stride_h * pitch) * words;
    } else if (flat) {
      const std::size_t p0 = r0 * width, count = smaller(positions, r1 * width) - p0;
      t.block_step = count * words;
      if (args.planar) {
        round_planes(args.input + p0, positions, s.in_channels, count, rounded);
      } else {
        for (std::size_t b = 0; b < blocks; ++b)
          take_places(args, (b * positions + p0) * kChannelBlock, count,
                      smaller(kChannelBlock, s.in_channels - b * kChannelBlock), rounded + b * t.block_step);
      }
    } else {
      t.block_step = lines.count * pitch * words;
      take_rows(args, static_cast<std::ptrdiff_t>(r0 * s.stride_h) - s.pad_top, lines, rounded);
    }
    for (std::size_t panel = range.panel_begin; panel < range.panel_end; ++panel) {
      const std::size_t n0 = panel * kNr, cols = smaller(kNr, all - n0);
      t.weight = args.weights.pairs() + n0 * depth;
      t.bias = args.bias ? args.bias + n0 : nullptr;
      const std::uint32_t* const next = panel + 1 < range.panel_end ? t.weight + cols * depth : nullptr;
      const std::size_t tiles = (r1 - r0) * divide_up(width, kMr);
      const Panel of{cols, s.kernel_h, joined ? 1 : s.kernel_w};
      Reach rows{0, s.kernel_h};
      for (std::size_t r = r0, tile = 0; r < r1; ++r) {
        const std::size_t count = smaller(width, positions - r * width), pieces = divide_up(count, kMr);
        const std::uint32_t* const row = base + (r - r0) * (flat ? width : s.stride_h * pitch) * words;
        if (shortened) rows = reach(r, s.stride_h, s.kernel_h, s.dilation_h, s.pad_top, s.in_h);
        for (std::size_t w0 = 0, i = 1; w0 < count; ++i, ++tile) {
          const Piece piece = parted ? piece_of_row(s, w0, count, divide_up(count, pieces))
                                     : Piece{w0, i * count / pieces, {0, of.columns}};
          const std::size_t at = n0 / kChannelBlock * t.plane + (r * width + w0) * kChannelBlock;
          take_points(of, rows, piece.columns, row + w0 * t.step, t);
          t.ahead = ahead_of(next, t.weight, depth, cols, smaller(tile, tiles - 1), tiles);
          write_from(args, at, t);
          kBlockedTiles.sum[piece.end - w0 - 1][cols / kLanes - 1](t);
          w0 = piece.end;
        }
      }
    }
  }
}

void depthwise(const BlockedConvArgs& args, std::size_t begin, std::size_t end) noexcept {
  (args.input_bf16 ? blocked_depthwise_table_bf16_medium.conv : blocked_conv_table_avx512.depthwise)(args, begin, end);
}

}  // namespace

INFERNODE_TABLE_OF(BlockedConvTable, blocked_conv, medium) = {
    "bf16",
    kScratchWords,
    fits,
    grid,
    {"blocked.bf16", packed_form, packed_bytes, pack<false>},
    {"blocked.planes.bf16", packed_form, packed_bytes, pack<true>},
    conv,
    depthwise,
    true};

}  // namespace infernode::microkernels
