// Convolutions over channels in blocks of 16, [N, ceil(C / 16), H, W, 16], and what brings channels into that order and
// back: domain infernode, made by the layout pass.

#include <algorithm>

#include "base/checked.h"
#include "graph/operator_names.h"
#include "kernel/op_registrar.h"
#include "microkernels/convert/convert.h"
#include "microkernels/transpose/transpose.h"
#include "ops/common/activation.h"
#include "ops/conv/methods/method.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BlockedConvArgs;
using microkernels::kChannelBlock;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr auto kBlock = static_cast<std::int64_t>(kChannelBlock);

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
std::int64_t blocks_of(std::int64_t channels) { return (channels + kBlock - 1) / kBlock; }

/// [N, C, H, W] of a blocked tensor.
Shape planar_shape(const Shape& blocked, std::int64_t channels) {
  if (blocked.rank() != 5 || blocked[4] != kBlock || channels < 0 || blocked[1] != blocks_of(channels))
    fail(ErrorCode::ShapeMismatch, cat(blocked.to_string(), " does not hold ", channels, " channels in blocks of 16"));
  return {blocked[0], channels, blocked[2], blocked[3]};
}
Shape blocked_shape(const Shape& planar) { return {planar[0], blocks_of(planar[1]), planar[2], planar[3], kBlock}; }

class BlockedConv final : public kernel::Kernel {
 public:
  explicit BlockedConv(KernelInfo& info)
      : window_(info.attributes()),
        groups_(info.attributes().get_int("group", 1)),
        activation_(read_activation(info.attributes())) {
    const Tensor* const w = info.constant(1);
    if (w != nullptr) w_shape_ = w->shape();
    if (const std::optional<ConvSite> site = site_of(info, w)) runner_ = make_blocked_conv(info, *site);
  }

  static std::vector<std::string> methods(const KernelInfo& info) {
    const std::optional<ConvSite> site = site_of(info, info.constant(1));
    return site ? method_names(*site, ConvLayout::Blocked) : std::vector<std::string>();
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Shape& w = w_shape_.rank() > 0 ? w_shape_ : ctx.input(1).shape();
    const bool planar = x.rank() == 4;
    if (w.rank() != 4) fail(ErrorCode::ShapeMismatch, cat("BlockedConv takes W [M,C/group,H,W], got ", w.to_string()));
    const std::int64_t channels = checked_mul(w[1], groups_);
    const ConvProblem p = plan_conv(window_, groups_, planar ? x.shape() : planar_shape(x.shape(), channels), w);
    const Shape shape = blocked_shape(p.out);
    const Tensor out = ctx.output(0, shape);
    if (out.numel() == 0) return;
    BlockedConvArgs args;
    args.shape = p.shape;
    args.planar = planar;
    args.activation = activation_;
    const Tensor* const bias = ctx.optional_input(2);
    tensor::Buffer bias_hold;
    if (bias != nullptr) {
      if (bias->numel() != p.out_channels)
        fail(ErrorCode::ShapeMismatch,
             cat("BlockedConv's bias has ", bias->numel(), " elements for ", p.out_channels, " output channels"));
      args.bias = filled_up(ctx, bias->data<float>(), size(p.out_channels), bias_hold);
    }
    const Tensor* const z = ctx.optional_input(3);
    if (z != nullptr && z->shape() != shape)
      fail(ErrorCode::ShapeMismatch, cat("BlockedConv adds Z ", z->shape().to_string(), " to ", shape.to_string()));
    if (runner_ == nullptr) refuse(planar, channels, w);
    check_types(x, z, out);
    // A weight that was packed is not held any more.
    runner_->run(ctx, p, args, x, ctx.has_input(1) ? ctx.input(1) : Tensor{}, z, out);
  }

 private:
  /// Of the planar tensor that the input is the blocks of.
  static std::optional<ConvSite> site_of(const KernelInfo& info, const Tensor* w) {
    graph::ValueType input = info.input_type(0);
    std::optional<Shape> weight;
    if (w != nullptr) {
      weight = w->shape();
    } else if (info.input_type(1).shape) {
      weight = graph::to_known(*info.input_type(1).shape);
    }
    if (!input.shape || !weight || weight->rank() != 4) return std::nullopt;
    const bool planar = input.shape->size() == 4;
    if (!planar && input.shape->size() != 5) return std::nullopt;
    if (!planar) input.shape->pop_back();
    std::optional<ConvSite> site =
        conv_site(info.node(), input, *weight, info.kernels().rung, info.kernels().precision);
    if (!site) return std::nullopt;
    site->planes = planar;
    if (w != nullptr && w->dtype() == DType::Float32) site->weight = w;
    return site;
  }

  [[noreturn]] void refuse(bool planar, std::int64_t channels, const Shape& w) const {
    if (planar && channels > static_cast<std::int64_t>(microkernels::kMostPlanes))
      fail(ErrorCode::UnsupportedOperator, cat("BlockedConv takes ", channels, " channels in blocks only"));
    if (groups_ != 1)
      fail(ErrorCode::UnsupportedOperator,
           cat("BlockedConv takes groups of one channel a group, or such as fill blocks together, got W ",
               w.to_string(), ", group ", groups_));
    fail(ErrorCode::UnsupportedOperator, "BlockedConv's rows of input are too long to be kept at hand");
  }

  /// Blocks may be of bfloat16 where the loops take them.
  void check_types(const Tensor& x, const Tensor* z, const Tensor& out) const {
    const auto narrow = [](const Tensor& t) { return t.dtype() == DType::BFloat16; };
    const bool any = narrow(x) || narrow(out) || (z != nullptr && narrow(*z));
    const bool all = narrow(x) && narrow(out) && (z == nullptr || narrow(*z));
    if (any && (!runner_->takes_bf16() || (!runner_->takes_both_types() && !all) || (narrow(x) && x.rank() != 5)))
      fail(ErrorCode::UnsupportedOperator, "BlockedConv does not take these blocks of bfloat16 numbers here");
  }

  /// `count` floats and zeros up to whole blocks.
  static const float* filled_up(KernelContext& ctx, const float* from, std::size_t count, tensor::Buffer& hold) {
    const std::size_t all = align_up(count, kChannelBlock);
    if (all == count) return from;
    hold = ctx.scratch(all * sizeof(float));
    auto* to = reinterpret_cast<float*>(hold.data());
    std::fill(std::copy_n(from, count, to), to + all, 0.0f);
    return to;
  }

  Window window_;
  std::int64_t groups_;
  microkernels::ActivationArgs activation_;
  Shape w_shape_;
  std::unique_ptr<BlockedRunner> runner_;
};

/// What blocks are made of.
void infer_block_type(InferContext& ctx) {
  ctx.set_output_dtype(0, static_cast<DType>(ctx.attributes().get_int("to", static_cast<int>(DType::Float32))));
}

void infer_blocked_conv(InferContext& ctx) {
  infer_block_type(ctx);
  const graph::SymShape* x = ctx.input_shape(0);
  const graph::SymShape* w = ctx.input_shape(1);
  if (x == nullptr || w == nullptr || w->size() != 4 || (x->size() != 4 && x->size() != 5)) return;
  Window window(ctx.attributes());
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 2; i < 4; ++i) {
    if (!(*w)[i].known()) return;
    kernel.push_back((*w)[i].value());
  }
  window.complete(2, kernel);
  ctx.set_output_shape(0, {(*x)[0], ceil_div((*w)[0], graph::Dim(kBlock)), window.infer_axis(0, (*x)[2]),
                           window.infer_axis(1, (*x)[3]), graph::Dim(kBlock)});
}

/// Calls `each(image, block, begin, end)` for all of them, and for all of a plane's places in parts, in parallel.
template <class Each>
void for_each_block(KernelContext& ctx, const Shape& planar, Each each) {
  constexpr std::size_t kMostPlaces = std::size_t{1} << 15;
  const std::size_t blocks = size(blocks_of(planar[1])), plane = size(planar[2] * planar[3]),
                    parts = std::max<std::size_t>(1, ceil_div(plane, kMostPlaces)), places = ceil_div(plane, parts);
  constexpr double kNsPerElement = 0.1;
  const double cost = kNsPerElement * static_cast<double>(places * kChannelBlock);
  ctx.parallel_for(size(planar[0]) * blocks * parts, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t first = i % parts * places;
      each(i / parts / blocks, i / parts % blocks, std::min(first, plane), std::min(first + places, plane));
    }
  });
}

constexpr std::size_t kRoundedPlaces = 64;  // of a block that are converted at a time

class BlockChannels final : public kernel::Kernel {
 public:
  explicit BlockChannels(KernelInfo& info)
      : transpose_(info.kernels().transpose.bytes4), round_(info.kernels().convert.f32_to_bf16) {}
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 4)
      fail(ErrorCode::ShapeMismatch, cat("BlockChannels takes [N,C,H,W], got ", x.shape().to_string()));
    const Tensor out = ctx.output(0, blocked_shape(x.shape()));
    if (out.numel() == 0) return;
    const std::size_t channels = size(x.dim(1)), plane = size(x.dim(2) * x.dim(3)), blocks = size(out.dim(1));
    const auto* from = reinterpret_cast<const std::uint32_t*>(x.data<float>());
    const bool rounds = out.dtype() == DType::BFloat16;
    for_each_block(ctx, x.shape(), [&](std::size_t image, std::size_t block, std::size_t begin, std::size_t end) {
      const std::size_t first = block * kChannelBlock, count = std::min(kChannelBlock, channels - first);
      const std::uint32_t* const planes = from + (image * channels + first) * plane;
      const std::size_t at = (image * blocks + block) * plane * kChannelBlock;
      if (!rounds) {
        fill(planes + begin, plane, count, end - begin,
             reinterpret_cast<std::uint32_t*>(out.mutable_data<float>()) + at + begin * kChannelBlock);
        return;
      }
      std::uint32_t places[kRoundedPlaces * kChannelBlock];
      for (std::size_t i = begin; i < end; i += kRoundedPlaces) {
        const std::size_t n = std::min(kRoundedPlaces, end - i);
        fill(planes + i, plane, count, n, places);
        round_(reinterpret_cast<const float*>(places),
               static_cast<std::uint16_t*>(out.mutable_raw()) + at + i * kChannelBlock, n * kChannelBlock);
      }
    });
  }

 private:
  /// `n` places of a block from `count` planes.
  void fill(const std::uint32_t* planes, std::size_t plane, std::size_t count, std::size_t n, std::uint32_t* y) const {
    transpose_(planes, plane, y, kChannelBlock, count, n);
    for (std::size_t i = 0; count < kChannelBlock && i < n; ++i)
      std::fill(y + i * kChannelBlock + count, y + (i + 1) * kChannelBlock, 0u);
  }

  microkernels::Transpose2d<std::uint32_t> transpose_;
  void (*round_)(const float*, std::uint16_t*, std::size_t) noexcept;
};

void infer_block_channels(InferContext& ctx) {
  infer_block_type(ctx);
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr || x->size() != 4) return;
  ctx.set_output_shape(0, {(*x)[0], ceil_div((*x)[1], graph::Dim(kBlock)), (*x)[2], (*x)[3], graph::Dim(kBlock)});
}

class UnblockChannels final : public kernel::Kernel {
 public:
  explicit UnblockChannels(KernelInfo& info)
      : transpose_(info.kernels().transpose.bytes4),
        widen_(info.kernels().convert.bf16_to_f32),
        channels_(info.attributes().get_int("channels", -1)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor out = ctx.output(0, planar_shape(x.shape(), channels_));
    if (out.numel() == 0) return;
    const std::size_t channels = size(channels_), plane = size(out.dim(2) * out.dim(3)), blocks = size(x.dim(1));
    const bool rounded = x.dtype() == DType::BFloat16;
    auto* to = reinterpret_cast<std::uint32_t*>(out.mutable_data<float>());
    for_each_block(ctx, out.shape(), [&](std::size_t image, std::size_t block, std::size_t begin, std::size_t end) {
      const std::size_t first = block * kChannelBlock, count = std::min(kChannelBlock, channels - first);
      const std::size_t at = (image * blocks + block) * plane * kChannelBlock;
      std::uint32_t* const planes = to + (image * channels + first) * plane;
      if (!rounded) {
        transpose_(reinterpret_cast<const std::uint32_t*>(x.data<float>()) + at + begin * kChannelBlock, kChannelBlock,
                   planes + begin, plane, end - begin, count);
        return;
      }
      std::uint32_t places[kRoundedPlaces * kChannelBlock];
      for (std::size_t i = begin; i < end; i += kRoundedPlaces) {
        const std::size_t n = std::min(kRoundedPlaces, end - i);
        widen_(static_cast<const std::uint16_t*>(x.raw()) + at + i * kChannelBlock, reinterpret_cast<float*>(places),
               n * kChannelBlock);
        transpose_(places, kChannelBlock, planes + i, plane, n, count);
      }
    });
  }

 private:
  microkernels::Transpose2d<std::uint32_t> transpose_;
  void (*widen_)(const std::uint16_t*, float*, std::size_t) noexcept;
  std::int64_t channels_;
};

void infer_unblock_channels(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Float32);
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr || x->size() != 5) return;
  ctx.set_output_shape(0, {(*x)[0], graph::Dim(ctx.attributes().get_int("channels", -1)), (*x)[2], (*x)[3]});
}

}  // namespace

void register_blocked_conv(kernel::OpRegistrar& r) {
  using graph::kOwn;
  r.op("BlockedConv", kOwn)
      .version(1, "X:T, W:float, B:float?, Z:U? -> Y:V; T = float|bfloat16, U = float|bfloat16, V = float|bfloat16")
      .infer(infer_blocked_conv)
      .kernel<BlockedConv>()
      .methods(BlockedConv::methods);
  r.op("BlockChannels", kOwn)
      .version(1, "X:float -> Y:T; T = float|bfloat16")
      .infer(infer_block_channels)
      .kernel<BlockChannels>();
  r.op("UnblockChannels", kOwn)
      .version(1, "X:T -> Y:float; T = float|bfloat16")
      .infer(infer_unblock_channels)
      .kernel<UnblockChannels>();
}

}  // namespace infernode::ops
