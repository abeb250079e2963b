#pragma once

#include "microkernels/common/activate.simd.h"
#include "microkernels/common/register_tile.simd.h"
#include "microkernels/common/tiles.h"

// Where the sums of a register tile become elements of C.
namespace infernode::microkernels {
namespace {

// Tiles of whole vectors: most of them. Activations that are no clamp are applied to all of the tile
// at once, in place.
template <bool kLoad, bool kLast, bool kResidual>
void finish_whole(const TileOutput& out, float* tile) noexcept {
  const VecF alpha = set(out.alpha), residual_scale = set(out.residual_scale);
  const ClampBounds bounds = clamp_bounds(out.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  const float* residual = out.residual;
  VecF bias_n[kNv];
  INFERNODE_UNROLL
  for (std::size_t v = 0; v < kNv; ++v) bias_n[v] = kLast && out.bias_n ? load(out.bias_n + v * kLanes) : zero();
  const bool activate = kLast && !is_clamp(out.activation);
  float* const whole = tile;
  float* c = out.c;
  for (std::size_t r = 0; r < out.rows; ++r, c += out.ldc, tile += kNr) {
    float* const to = activate ? tile : c;
    const VecF bias_m = set(kLast && out.bias_m ? out.bias_m[r] : 0.0f);
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) {
      VecF x = load(tile + v * kLanes) * alpha;
      if constexpr (kLoad) x = x + load(c + v * kLanes);
      if constexpr (kResidual) x = fma(load(residual + v * kLanes), residual_scale, x);
      if constexpr (kLast) x = clamp(x + bias_m + bias_n[v], low, high);
      store(to + v * kLanes, x);
    }
    if constexpr (kResidual) residual += out.ld_residual;
  }
  if (!activate) return;
  activate_row(out.activation, whole, out.rows * kNr);
  c = out.c;
  for (const float* from = whole; from != tile; from += kNr, c += out.ldc) {
    INFERNODE_UNROLL
    for (std::size_t v = 0; v < kNv; ++v) store(c + v * kLanes, load(from + v * kLanes));
  }
}

void finish(const TileOutput& out, float* tile) noexcept {
  if (out.cols == kNr) {
    if (out.last && out.residual)
      return out.load_c ? finish_whole<true, true, true>(out, tile) : finish_whole<false, true, true>(out, tile);
    if (out.last)
      return out.load_c ? finish_whole<true, true, false>(out, tile) : finish_whole<false, true, false>(out, tile);
    return out.load_c ? finish_whole<true, false, false>(out, tile) : finish_whole<false, false, false>(out, tile);
  }
  const VecF alpha = set(out.alpha), residual_scale = set(out.residual_scale);
  const ClampBounds bounds = clamp_bounds(out.activation);
  const VecF low = set(bounds.low), high = set(bounds.high);
  for (std::size_t r = 0; r < out.rows; ++r) {
    float* c = out.c + r * out.ldc;
    const float* residual = out.last && out.residual ? out.residual + r * out.ld_residual : nullptr;
    const VecF bias = set(out.last && out.bias_m ? out.bias_m[r] : 0.0f);
    for (std::size_t i = 0; i < out.cols; i += kLanes) {
      const std::size_t n = smaller(kLanes, out.cols - i);
      const bool whole = n == kLanes;
      VecF v = load(tile + r * kNr + i) * alpha;
      if (out.load_c) v = v + (whole ? load(c + i) : load_partial(c + i, n));
      if (out.last) {
        if (residual) v = fma(whole ? load(residual + i) : load_partial(residual + i, n), residual_scale, v);
        v = v + bias;
        if (out.bias_n) v = v + (whole ? load(out.bias_n + i) : load_partial(out.bias_n + i, n));
        v = clamp(v, low, high);
      }
      if (whole) {
        store(c + i, v);
      } else {
        store_partial(c + i, v, n);
      }
    }
    if (out.last && !is_clamp(out.activation)) activate_row(out.activation, c, out.cols);
  }
}

}  // namespace
}  // namespace infernode::microkernels
