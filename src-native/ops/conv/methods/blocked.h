#pragma once
// Convolutions between tensors whose channels lie in blocks: what their methods share.

#include <span>

#include "microkernels/blocked_winograd/blocked_winograd.h"
#include "ops/common/packed_weight.h"
#include "ops/conv/methods/method.h"

namespace infernode::ops {

/// Where an image, or a group of its blocks, lies: `part` of `parts` equal ones of all of a tensor's.
void set_blocks(microkernels::BlockedConvArgs& args, std::size_t part, std::size_t parts, const tensor::Tensor& x,
                const tensor::Tensor* residual, const tensor::Tensor& out);

/// Windows over rows of positions, transformed tiles of 3x3 windows of stride 1, and groups, of which as many are
/// convolved as one as fill blocks.
class BlockedDense final : public BlockedRunner {
 public:
  enum class Way : std::uint8_t { Windows, Winograd, Groups };
  /// Takes the constant weight where there is one.
  BlockedDense(kernel::KernelInfo& info, const ConvSite& site, Way way);

  bool takes_bf16() const override { return table_.takes_bf16; }
  void run(kernel::KernelContext& ctx, const ConvProblem& problem, microkernels::BlockedConvArgs args,
           const tensor::Tensor& x, const tensor::Tensor& w, const tensor::Tensor* residual,
           const tensor::Tensor& out) const override;

 private:
  /// By groups that are convolved as one.
  using Operands = std::span<const microkernels::PackedOperand>;

  const microkernels::ConvPacking& packing(bool planar) const;
  void pack(const float* weight, const tensor::Shape& shape, bool planar, std::size_t join, std::byte* to) const;
  microkernels::ConvShape joined_shape(const tensor::Shape& shape) const;
  void run_parts(kernel::KernelContext& ctx, const ConvProblem& p, const microkernels::ConvShape& shape,
                 const microkernels::BlockedConvArgs& all, Operands weights, const tensor::Tensor& x,
                 const tensor::Tensor* residual, const tensor::Tensor& out) const;
  void run_apart(kernel::KernelContext& ctx, const ConvProblem& p, const microkernels::ConvShape& shape,
                 const microkernels::BlockedConvArgs& all, Operands weights, const tensor::Tensor& x,
                 const tensor::Tensor* residual, const tensor::Tensor& out) const;

  const microkernels::BlockedConvTable& table_;
  const microkernels::BlockedWinogradTable& winograd_table_;
  const microkernels::ReduceTable& reduce_;
  Way way_;
  std::size_t groups_;
  PackedWeight packed_;
};

/// Of one channel a group.
class BlockedDepthwise final : public BlockedRunner {
 public:
  BlockedDepthwise(kernel::KernelInfo& info, const ConvSite& site);
  bool takes_bf16() const override { return table_.takes_bf16; }
  bool takes_both_types() const override { return false; }
  void run(kernel::KernelContext& ctx, const ConvProblem& problem, microkernels::BlockedConvArgs args,
           const tensor::Tensor& x, const tensor::Tensor& w, const tensor::Tensor* residual,
           const tensor::Tensor& out) const override;

 private:
  void run_bands(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, std::size_t bands,
                 const microkernels::BlockedConvArgs& args, std::size_t blocks, std::size_t images,
                 const tensor::Tensor& x, const tensor::Tensor* residual, const tensor::Tensor& out) const;

  const microkernels::BlockedConvTable& table_;
  const microkernels::ConvPacking& packing_;
  PackedWeight packed_;
};

/// Equal parts of blocks, of float32 or bfloat16, in which some element is NaN or infinite, or whose sum is.
std::vector<std::size_t> beyond_numbers(kernel::KernelContext& ctx, const microkernels::ReduceTable& reduce,
                                        const tensor::Tensor& x, std::size_t parts);
/// Takes over the channels of one group of each `count` groups of `width` channels; clears all others where asked.
void take_group(const tensor::Tensor& from, const tensor::Tensor& to, std::size_t width, std::size_t count,
                std::size_t group, bool clear_others);

/// Groups that together fill blocks on both sides; 0 where none do.
std::size_t groups_in_blocks(const ConvSite& site);

}  // namespace infernode::ops
