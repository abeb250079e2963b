// Convolutions over channels in blocks of 16, [N, ceil(C / 16), H, W, 16], and what brings channels into that order and
// back: domain infernode, made by the layout pass.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "microkernels/blocked/blocked.h"
#include "microkernels/elementwise/convert.h"
#include "microkernels/transforms/transpose.h"
#include "microkernels/winograd/blocked_winograd.h"
#include "microkernels/winograd/winograd.h"
#include "ops/common/activation.h"
#include "ops/conv/window.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BlockedConvArgs;
using microkernels::BlockedGrid;
using microkernels::BlockedRange;
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
      : table_(microkernels::blocked_conv_table(info.cpu_rung(), precision(info))),
        winograd_table_(microkernels::blocked_winograd_table(info.cpu_rung(), precision(info))),
        window_(info.attributes()),
        groups_(info.attributes().get_int("group", 1)),
        activation_(read_activation(info.attributes())) {
    const Tensor* w = info.constant(1);
    if (w == nullptr || w->rank() != 4 || w->numel() == 0) return;
    w_shape_ = w->shape();
    const graph::ValueType& x = info.input_type(0);
    if (!x.shape) return;
    const bool planar = x.shape->size() == 4;
    // The matrix unit is faster than fewer products by vectors.
    winograd_ = info.cpu_rung() != CpuRung::Amx && !planar && groups_ == 1 && is_winograd_window() &&
                may_pay(*x.shape) &&
                microkernels::winograd_holds(size(w_shape_[0]), size(w_shape_[1]), w->data<float>());
    const char* const form = planar ? ".planar" : packs_for_winograd() ? ".winograd" : "";
    packed_ = info.packer().pack(info.node(), 1, cat("blocked.", table_.name, ".g", groups_, form),
                                 [&](const Tensor& weight) { return pack(weight.data<float>(), w_shape_, planar); });
    packed_planar_ = planar;
    info.release_constant(1);
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
    tensor::Buffer bias_hold, fresh;
    if (bias != nullptr) {
      if (bias->numel() != p.out_channels)
        fail(ErrorCode::ShapeMismatch,
             cat("BlockedConv's bias has ", bias->numel(), " elements for ", p.out_channels, " output channels"));
      args.bias = filled_up(ctx, bias->data<float>(), size(p.out_channels), bias_hold);
    }
    const Tensor* const z = ctx.optional_input(3);
    if (z != nullptr && z->shape() != shape)
      fail(ErrorCode::ShapeMismatch, cat("BlockedConv adds Z ", z->shape().to_string(), " to ", shape.to_string()));
    if (!packed_ || packed_planar_ != planar) {
      if (packed_)
        fail(ErrorCode::ShapeMismatch, cat("BlockedConv was built for another layout than ", x.shape().to_string()));
      fresh = pack(ctx.input(1).data<float>(), w, planar);
    }
    args.packed_weight = reinterpret_cast<const float*>((packed_ ? packed_ : fresh).data());
    if (planar && p.shape.in_channels > microkernels::kMostPlanes)
      fail(ErrorCode::UnsupportedOperator, cat("BlockedConv takes ", channels, " channels in blocks only"));
    if (groups_ == 1 && !table_.fits(p.shape))
      fail(ErrorCode::UnsupportedOperator, "BlockedConv's rows of input are too long to be kept at hand");
    check_types(x, z, out);
    (groups_ != 1                                 ? run_depthwise
     : winograd_ && winograd_table_.pays(p.shape) ? run_winograd
                                                  : run_dense)(*this, ctx, p, args, x, z, out);
  }

 private:
  static microkernels::Float32Precision precision(const KernelInfo& info) {
    return info.attributes().get_int("exact", 0) != 0 ? microkernels::Float32Precision::kHighest
                                                      : info.float32_precision();
  }

  /// Whether tiles of an input may be worth transforming: weights in a form for them take more memory.
  bool may_pay(const graph::SymShape& x) const {
    if (winograd_table_.pack_weight == nullptr) return true;
    microkernels::ConvShape s = channels_of(w_shape_);
    constexpr std::int64_t kUnknown = 1 << 10;
    s.out_h = size(x[2].known() ? x[2].value() : kUnknown);
    s.out_w = size(x[3].known() ? x[3].value() : kUnknown);
    return winograd_table_.pays(s);
  }
  bool packs_for_winograd() const { return winograd_ && winograd_table_.pack_weight != nullptr; }

  static microkernels::ConvShape channels_of(const Shape& weight) {
    microkernels::ConvShape s;
    s.out_channels = size(weight[0]);
    s.in_channels = size(weight[1]);
    s.kernel_h = size(weight[2]);
    s.kernel_w = size(weight[3]);
    return s;
  }

  /// Blocks may be of bfloat16 where the loops take them.
  void check_types(const Tensor& x, const Tensor* z, const Tensor& out) const {
    const auto narrow = [](const Tensor& t) { return t.dtype() == DType::BFloat16; };
    const bool any = narrow(x) || narrow(out) || (z != nullptr && narrow(*z));
    const bool all = narrow(x) && narrow(out) && (z == nullptr || narrow(*z));
    if (any && (!table_.takes_bf16 || (groups_ != 1 && !all) || (narrow(x) && x.rank() != 5)))
      fail(ErrorCode::UnsupportedOperator, "BlockedConv does not take these blocks of bfloat16 numbers here");
  }

  /// What an image reads and writes.
  static void set_blocks(BlockedConvArgs& args, std::size_t image, const Tensor& x, const Tensor* residual,
                         const Tensor& out) {
    const auto at = [&](const Tensor& t) { return image * (size(t.numel()) / size(t.dim(0))); };
    const auto halves = [&](const Tensor& t) { return static_cast<const std::uint16_t*>(t.raw()) + at(t); };
    if (x.dtype() == DType::BFloat16) {
      args.input_bf16 = halves(x);
    } else {
      args.input = x.data<float>() + at(x);
    }
    if (residual != nullptr && residual->dtype() == DType::BFloat16) {
      args.residual_bf16 = halves(*residual);
    } else if (residual != nullptr) {
      args.residual = residual->data<float>() + at(*residual);
    }
    if (out.dtype() == DType::BFloat16) {
      args.output_bf16 = static_cast<std::uint16_t*>(out.mutable_raw()) + at(out);
    } else {
      args.output = out.mutable_data<float>() + at(out);
    }
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

  tensor::Buffer pack(const float* weight, const Shape& shape, bool planar) const {
    const microkernels::ConvShape s = channels_of(shape);
    const std::size_t points = s.kernel_points();
    if (groups_ == 1) {
      const bool winograd = packs_for_winograd();
      const std::size_t floats = (winograd ? winograd_table_.packed_weight_floats : table_.packed_weight_floats)(s);
      tensor::Buffer packed = tensor::host_allocator().allocate(checked_mul(floats, sizeof(float)));
      auto* const to = reinterpret_cast<float*>(packed.data());
      if (winograd) {
        winograd_table_.pack_weight(s, weight, to);
      } else {
        table_.pack_weight(s, planar, weight, to);
      }
      return packed;
    }
    if (shape[0] != groups_ || shape[1] != 1 || planar) {
      fail(ErrorCode::UnsupportedOperator, cat("BlockedConv in groups takes blocks of one channel a group, got W ",
                                               shape.to_string(), ", group ", groups_));
    }
    const std::size_t all = align_up(s.out_channels, kChannelBlock);
    tensor::Buffer packed = tensor::host_allocator().allocate(checked_mul(all, points) * sizeof(float));
    auto* out = reinterpret_cast<float*>(packed.data());
    for (std::size_t c = 0; c < all; ++c) {
      for (std::size_t i = 0; i < points; ++i) {
        out[(c / kChannelBlock * points + i) * kChannelBlock + c % kChannelBlock] =
            c < s.out_channels ? weight[c * points + i] : 0.0f;
      }
    }
    return packed;
  }

  bool is_winograd_window() const {
    const auto all = [](const std::vector<std::int64_t>& values, std::int64_t value) {
      return std::all_of(values.begin(), values.end(), [=](std::int64_t v) { return v == value; });
    };
    return w_shape_[2] == 3 && w_shape_[3] == 3 && all(window_.strides, 1) && all(window_.dilations, 1);
  }

  static void run_dense(const BlockedConv& self, KernelContext& ctx, const ConvProblem& p, const BlockedConvArgs& all,
                        const Tensor& x, const Tensor* residual, const Tensor& out) {
    const microkernels::BlockedConvTable& table = self.table_;
    run_parts(ctx, p, all, x, residual, out, table.grid(p.shape), table.scratch_floats, table.conv);
  }

  static void run_winograd(const BlockedConv& self, KernelContext& ctx, const ConvProblem& p,
                           const BlockedConvArgs& all, const Tensor& x, const Tensor* residual, const Tensor& out) {
    const microkernels::BlockedWinogradTable& table = self.winograd_table_;
    run_parts(ctx, p, all, x, residual, out, table.grid(p.shape), table.scratch_floats(p.shape), table.conv);
  }

  /// Calls `conv` for parts of the grid of each image, in parallel.
  static void run_parts(KernelContext& ctx, const ConvProblem& p, const BlockedConvArgs& all, const Tensor& x,
                        const Tensor* residual, const Tensor& out, const BlockedGrid& grid, std::size_t scratch_floats,
                        void (*conv)(const BlockedConvArgs&, const BlockedRange&, float*) noexcept) {
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads), images = size(p.images);
    // Each part of rows reads all weights, each part of channels the input, so that both are cut as a product's are.
    const std::size_t channels = align_up(p.shape.out_channels, kChannelBlock), positions = p.shape.positions();
    const microkernels::GemmSplit split =
        microkernels::split_grid(ceil_div(positions, grid.rows), ceil_div(channels, grid.panels), positions, channels,
                                 p.shape.depth(), images >= 4 * threads ? 1 : threads, {8, 8});
    const std::size_t by_row = std::min(split.count_m, grid.rows), by_panel = std::min(split.count_n, grid.panels);
    const std::size_t parts = by_panel * by_row;
    const std::size_t stride = align_up(checked_mul(scratch_floats, sizeof(float)), 64);
    const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
    constexpr double kFlopsPerNs = 80;
    const double cost = 2.0 * static_cast<double>(p.shape.out_channels * p.shape.positions()) *
                        static_cast<double>(p.shape.depth()) / static_cast<double>(parts) / kFlopsPerNs;
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<std::size_t> rows_before(threads, kNone);  // by slot: of all images' parts of rows, the last
    ctx.parallel_for(images * parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t image = i / parts, row = i % parts / by_panel, panel = i % by_panel;
        BlockedConvArgs args = all;
        set_blocks(args, image, x, residual, out);
        args.again = std::exchange(rows_before[slot], i / by_panel) == i / by_panel;
        conv(args,
             {row * grid.rows / by_row, (row + 1) * grid.rows / by_row, panel * grid.panels / by_panel,
              (panel + 1) * grid.panels / by_panel},
             reinterpret_cast<float*>(scratch.data() + slot * stride));
      }
    });
  }

  static void run_depthwise(const BlockedConv& self, KernelContext& ctx, const ConvProblem& p,
                            const BlockedConvArgs& all, const Tensor& x, const Tensor* residual, const Tensor& out) {
    const std::size_t blocks = size(blocks_of(p.out_channels)), images = size(p.images);
    constexpr double kFlopsPerNs = 40;
    const double cost = 2.0 * static_cast<double>(kChannelBlock * p.shape.positions() * p.shape.kernel_points());
    ctx.parallel_for(images * blocks, cost / kFlopsPerNs, [&](std::size_t begin, std::size_t end, std::size_t) {
      while (begin < end) {
        const std::size_t image = begin / blocks, first = begin % blocks;
        const std::size_t count = std::min(end - begin, blocks - first);
        BlockedConvArgs args = all;
        set_blocks(args, image, x, residual, out);
        self.table_.depthwise(args, first, first + count);
        begin += count;
      }
    });
  }

  const microkernels::BlockedConvTable& table_;
  const microkernels::BlockedWinogradTable& winograd_table_;
  Window window_;
  std::int64_t groups_;
  microkernels::ActivationArgs activation_;
  Shape w_shape_;
  tensor::Buffer packed_;
  bool packed_planar_ = false;
  bool winograd_ = false;  // whether weights and window allow it
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

/// Calls `each(image, block)` for all of them, in parallel.
template <class Each>
void for_each_block(KernelContext& ctx, const Shape& planar, Each each) {
  const std::size_t blocks = size(blocks_of(planar[1]));
  constexpr double kNsPerElement = 0.1;
  const double cost = kNsPerElement * static_cast<double>(planar[2] * planar[3] * kBlock);
  ctx.parallel_for(size(planar[0]) * blocks, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) each(i / blocks, i % blocks);
  });
}

constexpr std::size_t kRoundedPlaces = 64;  // of a block that are converted at a time

class BlockChannels final : public kernel::Kernel {
 public:
  explicit BlockChannels(KernelInfo& info)
      : transpose_(microkernels::transpose_table(info.cpu_rung()).bytes4),
        round_(microkernels::convert_table(info.cpu_rung()).f32_to_bf16) {}
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 4)
      fail(ErrorCode::ShapeMismatch, cat("BlockChannels takes [N,C,H,W], got ", x.shape().to_string()));
    const Tensor out = ctx.output(0, blocked_shape(x.shape()));
    if (out.numel() == 0) return;
    const std::size_t channels = size(x.dim(1)), plane = size(x.dim(2) * x.dim(3)), blocks = size(out.dim(1));
    const auto* from = reinterpret_cast<const std::uint32_t*>(x.data<float>());
    const bool rounds = out.dtype() == DType::BFloat16;
    for_each_block(ctx, x.shape(), [&](std::size_t image, std::size_t block) {
      const std::size_t first = block * kChannelBlock, count = std::min(kChannelBlock, channels - first);
      const std::uint32_t* const planes = from + (image * channels + first) * plane;
      const std::size_t at = (image * blocks + block) * plane * kChannelBlock;
      if (!rounds) {
        fill(planes, plane, count, plane, reinterpret_cast<std::uint32_t*>(out.mutable_data<float>()) + at);
        return;
      }
      std::uint32_t places[kRoundedPlaces * kChannelBlock];
      for (std::size_t i = 0; i < plane; i += kRoundedPlaces) {
        const std::size_t n = std::min(kRoundedPlaces, plane - i);
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
      : transpose_(microkernels::transpose_table(info.cpu_rung()).bytes4),
        widen_(microkernels::convert_table(info.cpu_rung()).bf16_to_f32),
        channels_(info.attributes().get_int("channels", -1)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor out = ctx.output(0, planar_shape(x.shape(), channels_));
    if (out.numel() == 0) return;
    const std::size_t channels = size(channels_), plane = size(out.dim(2) * out.dim(3)), blocks = size(x.dim(1));
    const bool rounded = x.dtype() == DType::BFloat16;
    auto* to = reinterpret_cast<std::uint32_t*>(out.mutable_data<float>());
    for_each_block(ctx, out.shape(), [&](std::size_t image, std::size_t block) {
      const std::size_t first = block * kChannelBlock, count = std::min(kChannelBlock, channels - first);
      const std::size_t at = (image * blocks + block) * plane * kChannelBlock;
      std::uint32_t* const planes = to + (image * channels + first) * plane;
      if (!rounded) {
        transpose_(reinterpret_cast<const std::uint32_t*>(x.data<float>()) + at, kChannelBlock, planes, plane, plane,
                   count);
        return;
      }
      std::uint32_t places[kRoundedPlaces * kChannelBlock];
      for (std::size_t i = 0; i < plane; i += kRoundedPlaces) {
        const std::size_t n = std::min(kRoundedPlaces, plane - i);
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
  constexpr const char* kDomain = "infernode";
  r.op("BlockedConv", kDomain)
      .version(1, "X:T, W:float, B:float?, Z:U? -> Y:V; T = float|bfloat16, U = float|bfloat16, V = float|bfloat16")
      .infer(infer_blocked_conv)
      .kernel<BlockedConv>();
  r.op("BlockChannels", kDomain)
      .version(1, "X:float -> Y:T; T = float|bfloat16")
      .infer(infer_block_channels)
      .kernel<BlockChannels>();
  r.op("UnblockChannels", kDomain)
      .version(1, "X:T -> Y:float; T = float|bfloat16")
      .infer(infer_unblock_channels)
      .kernel<UnblockChannels>();
}

}  // namespace infernode::ops
