#include "microkernels/conv/conv.h"

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/columns.simd.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/simd_file.h"
#include "microkernels/common/tiles.h"
#include "microkernels/conv/detail/depthwise.simd.h"
#include "microkernels/conv/detail/direct.simd.h"
#include "microkernels/conv/detail/few_positions.simd.h"
#include "microkernels/conv/detail/tap_rows.simd.h"
#include "microkernels/conv/detail/tap_sums.simd.h"

namespace infernode::microkernels {

namespace {

constexpr std::size_t kGroup = 4;  // panels that are packed before weights pass over them; of small panels more, for
constexpr std::size_t kGroupFloats = 24576, kMostPanels = 64;  // rows of the output to be written in long runs
constexpr std::size_t kScratchFloats = larger(kGroup * kGemmBlockK * kNr, kDirectFloats);
static_assert(kGroupFloats <= kScratchFloats);

std::size_t panels_at_once(std::size_t block) noexcept {
  return smaller(larger(kGroupFloats / (block * kNr), kGroup), kMostPanels);
}
constexpr std::size_t kRowPad = 16;  // floats between rows of packed weights, against conflicts in the cache

// ---- Weights: a block of K after the other, each [out_channels][block + kRowPad] ----

PackedForm packed_form(const ConvShape&) noexcept { return PackedForm::kFloats; }

std::size_t packed_bytes(const ConvShape& s) noexcept {
  const std::size_t depth = s.depth(), block = larger(gemm_block_k(depth), std::size_t{1});
  return divide_up(depth, block) * s.out_channels * (block + kRowPad) * sizeof(float);
}

void pack(const ConvShape& s, const float* weight, void* to) noexcept {
  const std::size_t depth = s.depth(), block = larger(gemm_block_k(depth), std::size_t{1});
  auto* out = static_cast<float*>(to);
  for (std::size_t k0 = 0; k0 < depth; k0 += block) {
    const std::size_t k = smaller(block, depth - k0);
    for (std::size_t m = 0; m < s.out_channels; ++m, out += block + kRowPad) {
      for (std::size_t i = 0; i < block + kRowPad; ++i) out[i] = i < k ? weight[m * depth + k0 + i] : 0.0f;
    }
  }
}

bool runs(ConvWay way, const ConvShape& s) noexcept {
  return way == ConvWay::kFew      ? is_few(s, kScratchFloats)
         : way == ConvWay::kDirect ? is_direct(s)
                                   : way != ConvWay::kUnit;
}

void conv(const ConvArgs& args, const GemmRange& range, float* scratch) noexcept {
  const ConvShape& s = args.shape;
  if (range.m_begin >= range.m_end || range.n_begin >= range.n_end) return;
  const GemmTiles& tiles = *INFERNODE_TABLE_NAME(gemm).tiles;
  const std::size_t depth = s.depth(), positions = s.positions();
  const std::size_t block = larger(gemm_block_k(depth), std::size_t{1}), lda = block + kRowPad;
  const bool any = args.way == ConvWay::kAny || !runs(args.way, s);
  const bool whole = range.n_begin == 0 && range.n_end == positions;
  if ((any || args.way == ConvWay::kFew) && is_few(s, kScratchFloats) && whole)
    return few(args, tiles, range, block, lda, scratch);
  if ((any || args.way == ConvWay::kDirect) && is_direct(s)) return direct(args, tiles, range, block, lda, scratch);
  const std::size_t rows = range.m_end - range.m_begin, row_tiles = divide_up(rows, kMr);
  // Panels of which few tiles of rows read are read as they lie in the input.
  const bool in_place = row_tiles <= 2 && sees_input_as_it_is(s);
  alignas(64) float tile[GemmTiles::kMaxFloats];
  const std::size_t step = panels_at_once(block) * kNr;
  for (std::size_t g0 = range.n_begin; g0 < range.n_end; g0 += step) {
    const std::size_t g1 = smaller(range.n_end, g0 + step);
    const float* weight = args.weights.floats();
    std::size_t k0 = 0;
    do {
      const std::size_t k = smaller(block, depth - k0);
      for (std::size_t n0 = g0; n0 < g1; n0 += kNr) {
        if (in_place && g1 - n0 >= kNr) continue;
        pack_columns(s, args.input, k0, k, n0, smaller(kNr, g1 - n0), scratch + (n0 - g0) * block);
      }
      for (std::size_t t = 0; t < row_tiles; ++t) {
        const std::size_t m0 = range.m_begin + t * rows / row_tiles, m1 = range.m_begin + (t + 1) * rows / row_tiles;
        for (std::size_t n0 = g0; n0 < g1; n0 += kNr) {
          const std::size_t cols = smaller(kNr, g1 - n0), at = m0 * positions + n0;
          if (in_place && cols == kNr) {
            kInPlace.accumulate[m1 - m0 - 1](k, weight + m0 * lda, lda, args.input + k0 * positions + n0, positions,
                                             tile);
          } else {
            tiles.accumulate[m1 - m0 - 1][divide_up(cols, kLanes) - 1](k, weight + m0 * lda, lda,
                                                                       scratch + (n0 - g0) * block, kNr, tile);
          }
          tiles.finish({args.output + at, positions, m1 - m0, cols, 1.0f, k0 > 0, k0 + k == depth,
                        args.bias ? args.bias + m0 : nullptr, nullptr, args.residual ? args.residual + at : nullptr,
                        positions, 1.0f, args.activation},
                       tile);
        }
      }
      weight += s.out_channels * lda;
      k0 += k;
    } while (k0 < depth);
  }
}

}  // namespace

INFERNODE_TABLE(ConvTable, conv) = {INFERNODE_TARGET_NAME(INFERNODE_TARGET),
                                    kMr,
                                    kNr,
                                    kScratchFloats,
                                    {"conv." INFERNODE_TARGET_NAME(INFERNODE_TARGET), packed_form, packed_bytes, pack},
                                    runs,
                                    conv,
                                    depthwise,
                                    sum_taps,
                                    sum_tap_rows,
                                    interleave};

}  // namespace infernode::microkernels
