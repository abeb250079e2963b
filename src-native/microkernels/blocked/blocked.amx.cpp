#include "microkernels/blocked/detail/amx_images.h"
#include "microkernels/blocked/detail/amx_tiles.h"
#include "microkernels/blocked/detail/amx_weights.h"
#include "microkernels/blocked/detail/pairs.h"

// Dense convolutions over blocks of channels on the matrix unit. Rows of the padded input are split into images whose
// places hold one piece of two blocks of channels, 64 bytes: any positions at equal distances are then a tile of A,
// whatever kernel point reads them, and a tile of sums, 16 positions by 16 channels, is what the output holds of a
// block. Of few planes a place holds all, and 64 bytes are some places of a row. Images of the next rows are made,
// weights split and sums finished beside the products.
//
// Rows that read numbers which cannot be split are computed by the vector loops, whose weights are packed too, and the
// grid is that of the AVX-512 loops. One piece holds whatever a bfloat16 does; of planes rows with infinities or NaN go
// there nevertheless, as steps read columns beside the kernel's.
namespace infernode::microkernels {

namespace {

// Whose weights are packed, too.
template <int kPieces>
constexpr const BlockedConvTable& kVectorTable =
    kPieces == 1 ? blocked_conv_table_bf16_medium : blocked_conv_table_avx512;

constexpr std::size_t kWorkingBands = 4, kLeastGroups = 4;

// Steps that are summed before the output is read and written: of one piece all, as blocks of bfloat16 numbers hold no
// sums. Those of an image that is small enough are no more.
template <int kPieces>
inline constexpr std::size_t kMostSteps = kPieces == 1 ? kImageBytes / kPlaceBytes : kGemmBlockK / kTileDepth;

// Configurations of the tiles, by how many rows the tiles of positions and of sums have.
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
                                               sizeof(StepPlaces)) /
                                              sizeof(float);

// The part of an output that one call computes.
template <int kPieces>
class Product {
 public:
  Product(const BlockedConvArgs& args, const Plan& plan, const BlockedRange& range, const WeightLayout<kPieces>& layout,
          float* scratch) noexcept
      : args_(args),
        plan_(plan),
        range_(range),
        layout_(layout),
        bounds_(clamp_bounds(args.activation)),
        images_(reinterpret_cast<std::uint8_t*>(scratch)),
        weights_(images_ + 2 * kImageBytes),
        places_(reinterpret_cast<StepPlaces*>(weights_ + 2 * kWeightBytes<kPieces>)),
        plane_(args.shape.positions() * kChannelBlock) {
    const std::size_t rows = range.row_end - range.row_begin;
    band_ = smaller(plan.band, rows);
    if (layout_.split && rows > 1) {  // the first image is waited for
      const std::size_t tiles_in_row = plan.runs ? divide_up(plan.pitch, kTileRows) : plan.column_tiles;
      band_ = smaller(band_, larger(divide_up(rows, kWorkingBands), divide_up(2 * kLeastGroups, tiles_in_row)));
    }
    // Weights that are split on the way are read once, where an image fits the place of two.
    if (!layout_.split && plan.strips == 1 && plan.holds(2 * kImageBytes, rows)) band_ = rows;
    band_ = divide_up(rows, divide_up(rows, band_));
    chunk_ = divide_up(plan.steps.count, divide_up(plan.steps.count, kMostSteps<kPieces>));
  }

  void multiply() noexcept {
    Part part{range_.row_begin, smaller(range_.row_begin + band_, range_.row_end), 0, range_.panel_begin, 0};
    bool odd_image = false, odd_weights = false, splits = true, fresh = true;
    next_ = split_rows(part, odd_image);
    next_.advance(next_.left());
    if (!next_.splits()) {  // products may be for nothing
      if (!any_row_splits()) return compute_plain(range_.row_begin, range_.row_end);
      next_ = split_rows(part, odd_image);
    }
    coming_ = split_weights(part, odd_weights);
    for (;;) {
      if (fresh) {
        next_.advance(next_.left());
        splits = splits && next_.splits();
        Part behind = part;
        next_ = forward_band(behind) ? split_rows(behind, !odd_image) : ImageSplit<kPieces>();
        enter_band(part);
      }
      coming_.advance(coming_.left());
      Part following = part;
      const bool last = !forward(following);
      coming_ = last ? WeightSplit<kPieces>() : split_weights(following, !odd_weights);
      multiply_part(part, last ? nullptr : &following, images_ + (odd_image ? kImageBytes : 0),
                    layout_.split ? tiles_at(part) : weights_ + (odd_weights ? kWeightBytes<kPieces> : 0));
      if (last) break;
      fresh = following.row_begin != part.row_begin || following.strip != part.strip;
      if (fresh) odd_image = !odd_image;
      odd_weights = !odd_weights;
      part = following;
    }
    finish();
    if (!splits) compute_plain_rows();
  }

 private:
  // Rows of the grid, or a strip of them, by a panel, summed over some steps.
  struct Part {
    std::size_t row_begin, row_end, strip, panel, step;
  };
  // Sums of positions that follow each other.
  struct Run {
    const float* sums;
    std::size_t count, position;
  };

  std::size_t steps_of(const Part& part) const noexcept { return smaller(chunk_, plan_.steps.count - part.step); }
  std::size_t blocks_of(const Part& part) const noexcept {
    return smaller(channel_blocks(args_.shape.out_channels) - part.panel * kPanelTiles, kPanelTiles);
  }
  const std::uint8_t* tiles_at(const Part& part) const noexcept {
    return layout_.tiles(args_.weights.data, part.panel) + part.step * blocks_of(part) * kPieces * kTileBytes;
  }

  // The next part; false behind the last.
  bool forward(Part& part) const noexcept {
    if ((part.step += chunk_) < plan_.steps.count) return true;
    part.step = 0;
    if (++part.panel < range_.panel_end) return true;
    part.panel = range_.panel_begin;
    return forward_band(part);
  }
  bool forward_band(Part& part) const noexcept {
    part.row_begin = part.row_end;
    if (part.row_begin == range_.row_end) {
      part.row_begin = range_.row_begin;
      ++part.strip;
    }
    part.row_end = smaller(part.row_begin + band_, range_.row_end);
    return part.strip < plan_.strips;
  }

  ImageSplit<kPieces> split_rows(const Part& part, bool odd) const noexcept {
    return {plan_, args_, part.row_begin, part.row_end, part.strip, images_ + (odd ? kImageBytes : 0)};
  }
  WeightSplit<kPieces> split_weights(const Part& part, bool odd) const noexcept {
    if (layout_.split) return {};
    return {args_.shape, args_.weights.floats(), part.panel,
            part.step,   steps_of(part),         weights_ + (odd ? kWeightBytes<kPieces> : 0)};
  }

  // Counts a band's tiles, the kernel's points of which it sees input, and how much of the next image is made at a
  // time.
  void enter_band(const Part& part) noexcept {
    const std::size_t rows = part.row_end - part.row_begin;
    piece_bytes_ = plan_.piece_bytes(rows);
    line_step_ = SeenLines(plan_.s, rows).step;
    seen_rows_ = {0, plan_.s.kernel_h};
    seen_columns_ = {0, plan_.steps.columns};
    if (!plan_.flat) {
      const ConvShape& s = plan_.s;
      seen_rows_ = reach_of(part.row_begin, part.row_end, s.stride_h, s.kernel_h, s.dilation_h, s.pad_top, s.in_h);
      const std::size_t column = part.strip * plan_.strip;
      if (!plan_.planar)
        seen_columns_ = reach_of(column, smaller(column + plan_.strip, plan_.width), s.stride_w, s.kernel_w,
                                 s.dilation_w, s.pad_left, s.in_w);
    }
    if (plan_.runs) {
      tiles_ = divide_up((rows - 1) * plan_.pitch + plan_.width, kTileRows);
    } else {
      const std::size_t last =
          plan_.flat ? plan_.position(part.row_end) - plan_.position(part.row_end - 1) : plan_.strip;
      tiles_ = (rows - 1) * plan_.column_tiles + divide_up(last, plan_.tile_rows);
    }
    const std::size_t panels = range_.panel_end - range_.panel_begin;
    units_ = divide_up(next_.left(), panels * divide_up(tiles_, kMostTiles) * seen_steps() * kCallsBeside<kPieces>);
  }
  // Of a band, or one where it sees nothing.
  std::size_t seen_steps() const noexcept {
    const std::size_t points = (seen_rows_.end - seen_rows_.first) * (seen_columns_.end - seen_columns_.first);
    return larger(points * (plan_.steps.count / plan_.steps.points), std::size_t{1});
  }
  // Where the steps of a part read that see input; how many they are.
  std::size_t place_steps(const Part& part, std::size_t blocks) noexcept {
    const Steps& all = plan_.steps;
    std::size_t count = 0;
    for (std::size_t i = 0; i < steps_of(part); ++i) {
      const std::size_t point = (part.step + i) % all.points, pair = (part.step + i) / all.points;
      const std::size_t row = point / all.columns, column = point % all.columns;
      if (row < seen_rows_.first || row >= seen_rows_.end || column < seen_columns_.first ||
          column >= seen_columns_.end)
        continue;
      const std::size_t place = row * line_step_ * plan_.pitch + column * all.width;
      places_[count++] = {pair * kPieces * piece_bytes_ + place * all.place_bytes, i * blocks * kPieces * kTileBytes};
    }
    return count;
  }

  void multiply_part(const Part& part, const Part* following, const std::uint8_t* image,
                     const std::uint8_t* b) noexcept {
    const std::size_t blocks = blocks_of(part), group = blocks == 2 ? 2 : kMostTiles;
    Operands o{};
    o.piece_bytes = piece_bytes_;
    o.row_bytes = plan_.row_bytes;
    o.places = places_;
    o.steps = place_steps(part, blocks);
    o.b = b;
    const std::size_t groups = divide_up(tiles_, group),
                      calls = larger(o.steps, std::size_t{1}) * kCallsBeside<kPieces>;
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
      for (std::size_t i = 0; i < group; ++i)
        o.a[i] = image + place_of(tile + smaller(i, count - 1)) * plan_.steps.place_bytes;
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
    last_ = part.step + chunk_ >= plan_.steps.count;
  }
  void add_runs(const Part& part, std::size_t tile, const float* sums) noexcept {
    if (!plan_.runs) {
      const std::size_t row = part.row_begin + tile / plan_.column_tiles,
                        begin = plan_.position(row) + part.strip * plan_.strip +
                                tile % plan_.column_tiles * plan_.tile_rows,
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

  // Whether all that a row reads can be split. It takes the place of the first image.
  bool row_splits(std::size_t row) const noexcept {
    for (std::size_t strip = 0; strip < plan_.strips; ++strip) {
      ImageSplit<kPieces> image(plan_, args_, row, row + 1, strip, images_);
      image.advance(image.left());
      if (!image.splits()) return false;
    }
    return true;
  }
  bool any_row_splits() const noexcept {
    for (std::size_t row = range_.row_begin; row < range_.row_end; ++row) {
      if (row_splits(row)) return true;
    }
    return false;
  }

  void compute_plain(std::size_t begin, std::size_t end) const noexcept {
    if (begin == end) return;
    kVectorTable<kPieces>.conv(args_, {begin, end, range_.panel_begin, range_.panel_end},
                               reinterpret_cast<float*>(images_));
  }

  // Rows that read what cannot be split, as many at a time as follow each other.
  void compute_plain_rows() const noexcept {
    std::size_t first = range_.row_begin;
    for (std::size_t row = range_.row_begin; row < range_.row_end; ++row) {
      if (!row_splits(row)) continue;
      compute_plain(first, row);
      first = row + 1;
    }
    compute_plain(first, range_.row_end);
  }

  const BlockedConvArgs& args_;
  const Plan& plan_;
  const BlockedRange& range_;
  const WeightLayout<kPieces>& layout_;
  ClampBounds bounds_;
  std::uint8_t *images_, *weights_;
  StepPlaces* places_;
  std::size_t plane_;  // floats of a block of the output
  std::size_t band_ = 1, chunk_ = 1;
  // Of the band.
  std::size_t tiles_ = 0, piece_bytes_ = 0, units_ = 0;
  std::size_t line_step_ = 1;                   // of its image, between rows of the kernel
  Reach seen_rows_{0, 0}, seen_columns_{0, 0};  // of the kernel
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
  return s.in_d == 1 && s.kernel_d == 1 && s.out_d == 1 && s.positions() > 0 && s.in_channels <= kMostChannels &&
         (s.in_channels > kMostPlanes || blocked_conv_table_bf16_medium.fits(s)) && Plan(s, false, kPieces).fits;
}

BlockedGrid grid(const ConvShape& s) noexcept { return blocked_conv_table_avx512.grid(s); }

template <int kPieces>
void conv(const BlockedConvArgs& args, const BlockedRange& range, float* scratch) noexcept {
  if (range.row_begin >= range.row_end || range.panel_begin >= range.panel_end) return;
  const ConvShape& s = args.shape;
  const Plan plan(s, args.planar, kPieces);
  const WeightLayout<kPieces> layout(s, args.planar);
  // Six products of half a tile take longer than what it holds takes the vector loops.
  const bool sparse = kPieces == 3 && s.depth() <= kTileDepth && (s.in_channels <= 16 || s.out_channels <= 16);
  if ((args.planar ? !is_thin(s) : sparse) || !plan.fits || !layout.splits(args.weights.data)) {
    // The same part of a grid that may be another.
    const std::size_t rows = kVectorTable<kPieces>.grid(s).rows, of = plan.rows;
    return kVectorTable<kPieces>.conv(
        args, {range.row_begin * rows / of, range.row_end * rows / of, range.panel_begin, range.panel_end}, scratch);
  }
  const TileSession session(kConfigs.of[plan.tile_rows]);
  Product<kPieces>(args, plan, range, layout, scratch).multiply();
}

void depthwise(const BlockedConvArgs& args, std::size_t begin, std::size_t end) noexcept {
  (args.input_bf16 ? blocked_depthwise_table_bf16_medium.conv : blocked_conv_table_avx512.depthwise)(args, begin, end);
}

template <int kPieces>
constexpr BlockedConvTable table_of(const char* name, const char* weights, const char* plane_weights) {
  return {name,
          kScratchFloats<kPieces>,
          fits<kPieces>,
          grid,
          {weights, packed_form<kPieces, false>, packed_bytes<kPieces, false>, pack<kPieces, false>},
          {plane_weights, packed_form<kPieces, true>, packed_bytes<kPieces, true>, pack<kPieces, true>},
          conv<kPieces>,
          depthwise,
          kPieces == 1};
}

}  // namespace

INFERNODE_TABLE_OF(BlockedConvTable, blocked_conv, highest) = table_of<3>("amx", "blocked.amx", "blocked.planes.amx");
INFERNODE_TABLE_OF(BlockedConvTable, blocked_conv, high) = table_of<2>("amx.high", "blocked.amx.high",
                                                                       "blocked.planes.amx.high");
INFERNODE_TABLE_OF(BlockedConvTable, blocked_conv, medium) = table_of<1>("amx.medium", "blocked.amx.medium",
                                                                         "blocked.planes.amx.medium");

}  // namespace infernode::microkernels
