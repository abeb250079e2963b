#pragma once
// Transposed convolutions by forward ones.

#include <memory>
#include <vector>

#include "ops/conv/methods/derived.h"
#include "ops/conv/methods/tap_rows.h"

namespace infernode::ops {

/// y = bias + sums of `products`, [channels][kernel points][positions]: `shape` is the forward convolution from y's
/// image to positions; the bias may be null.
void sum_products(kernel::KernelContext& ctx, const microkernels::ConvTable& table,
                  const microkernels::ConvShape& shape, std::size_t channels, const float* products, const float* bias,
                  float* y);

/// A transposed convolution of a constant weight [groups * C, M, ...], in the quickest of three ways:
/// - by phases: output positions that lie a stride apart are a convolution of stride 1 by every so many taps;
/// - by products: a convolution of one point makes a channel for each tap, and these are summed up;
/// - by rows: the same with the channels of a place beside each other.
class TransposedConv {
 public:
  /// `usual` is the forward convolution from y to x of one group at usual sizes; `site` says the rest of it.
  TransposedConv(kernel::KernelInfo& info, ConvSite site, const microkernels::ConvShape& usual);

  /// x [images, groups * C, ...] to y [images, groups * M, ...]; the bias may be null.
  void run(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, std::int64_t images, const float* x,
           const float* bias, float* y) const;

 private:
  void run_phases(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, const float* x, const float* bias,
                  float* y) const;

  const microkernels::ConvTable& table_;
  std::size_t groups_;
  std::unique_ptr<TapRows> rows_;                     ///< null: in another way
  std::unique_ptr<DerivedConv> products_;             ///< null: by phases or rows
  std::vector<std::unique_ptr<DerivedConv>> phases_;  ///< null: of no taps
};

}  // namespace infernode::ops
