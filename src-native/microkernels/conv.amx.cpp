#include "microkernels/conv.h"

#include "microkernels/amx_tiles.h"
#include "microkernels/conv_columns.simd.h"

// Convolutions of enough channels on the matrix unit: weights are split when they are packed, columns as they are made.
// Others go to the AVX-512 kernels.
namespace infernode::microkernels {

extern const GemmTable gemm_table_avx512;
extern const ConvTable conv_table_avx512;

namespace {

constexpr std::size_t kGroup = 8;  // panels of columns that are split before weights pass over them

bool suits(std::size_t out_channels, std::size_t depth) noexcept {
  return out_channels >= 2 * kTileRows && depth >= kTileDepth;
}

// ---- Weights: whether each tile of each block could be split, then the tiles; those that could not stay float32 ----

struct WeightLayout {
  WeightLayout(std::size_t out_channels, std::size_t depth) noexcept
      : block(gemm_block_k(depth)),
        tiles(divide_up(out_channels, kTileRows)),
        tile_bytes(split_bytes(block, 1, 3)),
        header_bytes(divide_up(divide_up(depth, block) * tiles, std::size_t{64}) * 64),
        bytes(header_bytes + divide_up(depth, block) * tiles * tile_bytes) {}

  std::size_t tile(std::size_t k0, std::size_t m) const noexcept { return k0 / block * tiles + m / kTileRows; }
  const std::uint8_t* at(const void* weight, std::size_t k0, std::size_t m) const noexcept {
    return static_cast<const std::uint8_t*>(weight) + header_bytes + tile(k0, m) * tile_bytes;
  }
  bool splits(const void* weight, std::size_t k0, std::size_t m) const noexcept {
    return static_cast<const std::uint8_t*>(weight)[tile(k0, m)] != 0;
  }

  std::size_t block, tiles, tile_bytes, header_bytes, bytes;
};

std::size_t packed_weight_floats(std::size_t out_channels, std::size_t depth) noexcept {
  if (!suits(out_channels, depth)) return conv_table_avx512.packed_weight_floats(out_channels, depth);
  return WeightLayout(out_channels, depth).bytes / sizeof(float);
}

void pack_weight(std::size_t out_channels, std::size_t depth, const float* weight, float* out) noexcept {
  if (!suits(out_channels, depth)) return conv_table_avx512.pack_weight(out_channels, depth, weight, out);
  const WeightLayout layout(out_channels, depth);
  for (std::size_t k0 = 0; k0 < depth; k0 += layout.block) {
    const std::size_t k = smaller(layout.block, depth - k0);
    for (std::size_t m = 0; m < out_channels; m += kTileRows) {
      const std::size_t rows = smaller(kTileRows, out_channels - m);
      const float* from = weight + m * depth + k0;
      auto* to = const_cast<std::uint8_t*>(layout.at(out, k0, m));
      const bool splits = split_rows<3>(from, depth, rows, k, to);
      reinterpret_cast<std::uint8_t*>(out)[layout.tile(k0, m)] = splits ? 1 : 0;
      if (splits) continue;
      auto* plain = reinterpret_cast<float*>(to);
      for (std::size_t r = 0; r < kTileRows; ++r) {
        for (std::size_t i = 0; i < k; ++i) plain[r * k + i] = r < rows ? from[r * depth + i] : 0.0f;
      }
    }
  }
}

// ---- Products ----

constexpr std::size_t kPanelBytes = split_bytes(kGemmBlockK, kPanelTiles, 3);
constexpr std::size_t kPanelFloats = kGemmBlockK * kPanelColumns;
constexpr std::size_t kScratchFloats = kGroup * (kPanelBytes / sizeof(float) + kPanelFloats) + kTileRows * kGemmBlockK;

// Sums of the 16 rows from m on without the matrix unit.
void multiply_plain(const WeightLayout& layout, const void* weight, std::size_t k0, std::size_t k, std::size_t m,
                    const float* columns, float* rows, float* sums) noexcept {
  const GemmTiles& plain = *gemm_table_avx512.tiles;
  const float* a = reinterpret_cast<const float*>(layout.at(weight, k0, m));
  if (layout.splits(weight, k0, m)) {
    join_rows(layout.at(weight, k0, m), k, rows, k);
    a = rows;
  }
  for (std::size_t r = 0; r < kTileRows; r += plain.mr) {
    plain.accumulate[smaller(plain.mr, kTileRows - r) - 1][kPanelColumns / plain.lanes - 1](
        k, a + r * k, k, columns, kPanelColumns, sums + r * kPanelColumns);
  }
}

template <int kPieces>
void multiply(const ConvArgs& args, const GemmRange& range, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  const std::size_t depth = s.depth(), positions = s.positions();
  const WeightLayout layout(s.out_channels, depth);
  auto* split = reinterpret_cast<std::uint8_t*>(scratch);
  float* const floats = scratch + kGroup * kPanelBytes / sizeof(float);
  float* const joined = floats + kGroup * kPanelFloats;
  alignas(64) float sums[2 * kTileRows * kPanelColumns];
  const TileSession session;
  for (std::size_t g0 = range.n_begin; g0 < range.n_end; g0 += kGroup * kPanelColumns) {
    const std::size_t g1 = smaller(range.n_end, g0 + kGroup * kPanelColumns);
    for (std::size_t k0 = 0; k0 < depth; k0 += layout.block) {
      const std::size_t k = smaller(layout.block, depth - k0);
      bool splits[kGroup];
      for (std::size_t n0 = g0, i = 0; n0 < g1; n0 += kPanelColumns, ++i) {
        pack_columns(s, args.input, k0, k, n0, smaller(kPanelColumns, g1 - n0), floats + i * kPanelFloats);
        splits[i] = split_panel<kPieces>(floats + i * kPanelFloats, kPanelColumns, k, split + i * kPanelBytes);
      }
      for (std::size_t m0 = range.m_begin; m0 < range.m_end; m0 += 2 * kTileRows) {
        const std::size_t rows = smaller(2 * kTileRows, range.m_end - m0), m1 = m0 + kTileRows;
        const bool two = rows > kTileRows;
        const bool whole =
            layout.splits(args.packed_weight, k0, m0) && (!two || layout.splits(args.packed_weight, k0, m1));
        const std::uint8_t* a = layout.at(args.packed_weight, k0, m0);
        for (std::size_t n0 = g0, i = 0; n0 < g1; n0 += kPanelColumns, ++i) {
          const std::uint8_t* b = split + i * kPanelBytes;
          if (!whole || !splits[i]) {
            const float* columns = floats + i * kPanelFloats;
            multiply_plain(layout, args.packed_weight, k0, k, m0, columns, joined, sums);
            if (two)
              multiply_plain(layout, args.packed_weight, k0, k, m1, columns, joined, sums + kTileRows * kPanelColumns);
          } else if (two) {
            multiply_tiles<kPieces, 2, 3>(steps_of(k), a, a + layout.tile_bytes, b, sums);
          } else {
            multiply_tiles<kPieces, 1, 3>(steps_of(k), a, a, b, sums);
          }
          const std::size_t at = m0 * positions + n0;
          gemm_table_avx512.tiles->finish(
              {args.output + at, positions, rows, smaller(kPanelColumns, g1 - n0), 1.0f, k0 > 0, k0 + k == depth,
               args.bias ? args.bias + m0 : nullptr, nullptr, args.residual ? args.residual + at : nullptr, positions,
               1.0f, args.activation},
              sums);
        }
      }
    }
  }
}

void conv(const ConvArgs& args, const GemmRange& range, float* scratch) noexcept {
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  if (!suits(args.shape.out_channels, args.shape.depth())) return conv_table_avx512.conv(args, range, scratch);
  with_pieces(args.precision, [&]<int kPieces>() { multiply<kPieces>(args, range, scratch); });
}

void depthwise(const DepthwiseArgs& args) noexcept { conv_table_avx512.depthwise(args); }
void col2im(const ConvShape& shape, const float* columns, float* image) noexcept {
  conv_table_avx512.col2im(shape, columns, image);
}

}  // namespace

extern const ConvTable conv_table_amx;
constexpr ConvTable conv_table_amx = {"amx",       2 * kTileRows, kPanelColumns, kScratchFloats, packed_weight_floats,
                                      pack_weight, conv,          depthwise,     col2im};

}  // namespace infernode::microkernels
