#include "microkernels/conv/conv.h"

#include "microkernels/common/columns.simd.h"
#include "microkernels/conv/detail/amx_images.h"

// Convolutions of enough channels on the matrix unit, without a matrix of columns. The input is split into images of
// pairs of channels: a word holds one piece of two channels at one position, so that any 16 consecutive words of 16
// pairs of channels are a tile of B, whatever kernel point they are read for. Output positions are counted in rows as
// wide as the images' (kernel points shift them): some of them lie between the rows and are dropped. With strides there
// is an image for every remainder of coordinates that the kernel sees.
//
// Weights are split when they are packed. Other convolutions go to the AVX-512 kernels.
namespace infernode::microkernels {

namespace {

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
      const bool whole = plan_.fits && layout_.splits(args_.weights.data, m0) &&
                         (!two || layout_.splits(args_.weights.data, m0 + kTileRows));
      const std::uint8_t* a = layout_.at(args_.weights.data, m0) + part.block_begin * plan_.points * 3 * kTileBytes;
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
        for (std::size_t i = 0; i < k; ++i) rows_[r * k + i] = layout_.value(args_.weights.data, m0 + r, k0 + i);
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

template <int kPieces>
void conv(const ConvArgs& args, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  if (!suits(args.shape.out_channels, args.shape.in_channels)) return conv_table_avx512.conv(args, range, scratch);
  const Plan plan(args.shape);
  const TileSession session;
  Product<kPieces>(args, plan, range, scratch).multiply();
}

bool runs(ConvWay way, const ConvShape& s) noexcept {
  const bool unit = suits(s.out_channels, s.in_channels);
  return way == ConvWay::kAny ||
         (way == ConvWay::kUnit ? unit && Plan(s).fits : !unit && conv_table_avx512.runs(way, s));
}

void depthwise(const DepthwiseArgs& args) noexcept { conv_table_avx512.depthwise(args); }
void sum_taps(const TapSumArgs& args, float* scratch) noexcept { conv_table_avx512.sum_taps(args, scratch); }
void sum_tap_rows(const TapRowArgs& args, std::size_t begin, std::size_t end) noexcept {
  conv_table_avx512.sum_tap_rows(args, begin, end);
}
void interleave(const float* rows, std::size_t ld, std::size_t count, std::size_t n, float* out) noexcept {
  conv_table_avx512.interleave(rows, ld, count, n, out);
}

// All of them pack weights alike.
template <int kPieces>
constexpr ConvTable kTable{
    "amx",     2 * kTileRows, kPanelColumns, kScratchFloats, {"conv.amx", packed_form, packed_bytes, pack},
    runs,      conv<kPieces>, depthwise,     sum_taps,       sum_tap_rows,
    interleave};

}  // namespace

INFERNODE_TABLE_OF(ConvTable, conv, highest) = kTable<3>;
INFERNODE_TABLE_OF(ConvTable, conv, high) = kTable<2>;
INFERNODE_TABLE_OF(ConvTable, conv, medium) = kTable<1>;

}  // namespace infernode::microkernels
