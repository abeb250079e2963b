#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "microkernels/elementwise/elementwise.h"
#include "ops/common/reals.h"
#include "ops/norm/float_rows.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using microkernels::BinaryOp;
using microkernels::UnaryOp;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// com.microsoft's GroupNorm: images are normalized over groups of channels, then scaled by channel, and may pass
/// through x * sigmoid(x). SkipGroupNorm normalizes the sum of an image, a second one (or one pixel of it) and a bias.
template <bool Skip>
class GroupNorm final : public kernel::Kernel {
 public:
  explicit GroupNorm(KernelInfo& info)
      : kernels_(info.kernels()),
        rows_(kernels_),
        groups_(info.attributes().get_int("groups")),
        epsilon_(info.attributes().get_float("epsilon", 1e-5f)),
        channels_last_(info.attributes().get_int("channels_last", 1) != 0) {
    const std::int64_t activation = info.attributes().get_int("activation");
    if (groups_ < 1) fail(ErrorCode::InvalidModel, cat(kName, ": groups is ", groups_));
    if (activation != 0 && activation != 1)
      fail(ErrorCode::InvalidModel, cat(kName, ": activation is ", activation, ", which is neither 0 nor 1"));
    silu_ = activation == 1;
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 4) fail(ErrorCode::ShapeMismatch, cat(kName, ": X is ", x.to_string(), ", not of rank 4"));
    const std::size_t axis = channels_last_ ? 3 : 1;
    const std::int64_t channels = x.dim(axis);
    if (channels % groups_ != 0)
      fail(ErrorCode::ShapeMismatch, cat(kName, ": ", channels, " channels do not divide into ", groups_, " groups"));
    for (const std::size_t i : {1, 2}) expect_channels(ctx.input(i), channels, i);
    Image image{size(x.dim(0)), size(channels), size(x.numel() == 0 ? 0 : x.numel() / x.dim(0) / channels)};
    const RealInput<float> in(ctx, kernels_, x), gamma(ctx, kernels_, ctx.input(1)), beta(ctx, kernels_, ctx.input(2)),
        skip(ctx, kernels_, Skip ? skip_of(ctx, x, channels, image) : nullptr),
        bias(ctx, kernels_, Skip ? ctx.optional_input(4) : nullptr);
    const Tensor y = ctx.output(0, x.shape()), s = Skip && ctx.wants_output(1) ? ctx.output(1, x.shape()) : Tensor();
    const RealOutput<float> out(ctx, kernels_, y), sum(ctx, kernels_, s);
    if (x.numel() == 0) return;
    image.x = in, image.gamma = gamma, image.beta = beta, image.skip = skip, image.bias = bias;
    image.y = out, image.sum = sum;
    const std::size_t groups = size(groups_), members = image.channels / groups, area = members * image.pixels;
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
    const std::size_t stride = align_up(area, 16);
    const tensor::Buffer memory = ctx.scratch(checked_mul(checked_mul(stride, threads), sizeof(float)));
    ctx.parallel_for(image.batch * groups, static_cast<double>(area) * 2,
                     [&](std::size_t begin, std::size_t end, std::size_t slot) {
                       auto* hold = reinterpret_cast<float*>(memory.data()) + slot * stride;
                       kernel::Watch watch(ctx.run());
                       for (std::size_t i = begin; i < end; ++i)
                         normalize(image, i / groups, i % groups * members, members, hold, watch);
                     });
    out.store();
    sum.store();
  }

 private:
  static constexpr const char* kName = Skip ? "SkipGroupNorm" : "GroupNorm";

  struct Image {
    std::size_t batch, channels, pixels;
    bool skip_is_pixel = false;  ///< one pixel stands for all of the second image
    const float *x = nullptr, *gamma = nullptr, *beta = nullptr, *skip = nullptr, *bias = nullptr;
    float *y = nullptr, *sum = nullptr;
  };

  static void expect_channels(const Tensor& t, std::int64_t channels, std::size_t input) {
    if (t.numel() != channels)
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": input ", input, " is ", t.to_string(), ", expected ", channels, " elements"));
  }

  const Tensor* skip_of(const KernelContext& ctx, const Tensor& x, std::int64_t channels, Image& image) const {
    const Tensor& skip = ctx.input(3);
    const Shape pixel = channels_last_ ? Shape{x.dim(0), 1, 1, channels} : Shape{x.dim(0), channels, 1, 1};
    image.skip_is_pixel = skip.shape() == pixel || skip.shape() == Shape{x.dim(0), channels};
    if (!image.skip_is_pixel && skip.shape() != x.shape())
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": skip ", skip.to_string(), " is neither ", x.shape().to_string(), " nor ", pixel.to_string()));
    if (const Tensor* bias = ctx.optional_input(4)) expect_channels(*bias, channels, 4);
    return &skip;
  }

  /// Channels [first, first + members) of image `n`. They are gathered into `hold`, in runs of what lies together: the
  /// channels of a pixel, or the pixels of a channel.
  void normalize(const Image& image, std::size_t n, std::size_t first, std::size_t members, float* hold,
                 kernel::Watch& watch) const {
    const std::size_t runs = channels_last_ ? image.pixels : members, length = channels_last_ ? members : image.pixels;
    const std::size_t origin = n * image.channels * image.pixels + first * (channels_last_ ? 1 : image.pixels);
    const std::size_t stride = channels_last_ ? image.channels : image.pixels;
    const microkernels::ElementwiseTable& loops = kernels_.elementwise;
    for (std::size_t r = 0; r < runs; ++r) {
      in_pieces(watch, length, 1.0, [&](std::size_t from, std::size_t to) {
        float* run = hold + r * length + from;
        const std::size_t at = origin + r * stride + from, count = to - from;
        std::memcpy(run, image.x + at, count * sizeof(float));
        if (!Skip) return;
        const std::size_t channel = channels_last_ ? first + from : first + r;
        const float* pixel = image.skip + n * image.channels + channel;
        add(run, image.skip_is_pixel ? pixel : image.skip + at, image.skip_is_pixel, count);
        if (image.bias != nullptr) add(run, image.bias + channel, true, count);
        if (image.sum != nullptr) std::memcpy(image.sum + at, run, count * sizeof(float));
      });
    }
    rows_.layer_norm(watch, hold, nullptr, nullptr, hold, runs * length, epsilon_, nullptr, nullptr);
    for (std::size_t r = 0; r < runs; ++r) {
      in_pieces(watch, length, 1.0, [&](std::size_t from, std::size_t to) {
        const float* run = hold + r * length + from;
        float* out = image.y + origin + r * stride + from;
        const std::size_t count = to - from;
        if (channels_last_) {
          loops.multiply_add(run, image.gamma + first + from, image.beta + first + from, out, count);
        } else {
          loops[UnaryOp::kAffine](run, out, count, image.gamma[first + r], image.beta[first + r]);
        }
        if (silu_) loops[UnaryOp::kSilu](out, out, count, 0, 0);
      });
    }
  }

  /// Adds to a run of elements what is given by channel, or element by element.
  void add(float* run, const float* value, bool by_channel, std::size_t length) const {
    constexpr auto kAdd = static_cast<std::size_t>(BinaryOp::kAdd);
    const bool alike = by_channel && !channels_last_;
    (alike ? kernels_.elementwise.vector_scalar : kernels_.elementwise.vector_vector)[kAdd](run, value, run, length);
  }

  const microkernels::KernelSet& kernels_;
  FloatRows rows_;
  std::int64_t groups_;
  float epsilon_;
  bool channels_last_, silu_ = false;
};

}  // namespace

void register_group_norm(kernel::OpRegistrar& r) {
  r.op("GroupNorm", "com.microsoft")
      .version(1, "X:T, gamma:M, beta:M -> Y:T; T = float|float16, M = float|float16")
      .infer(kernel::infer_same_as_first)
      .kernel<GroupNorm<false>>();
  r.op("SkipGroupNorm", "com.microsoft")
      .version(1, "X:T, gamma:M, beta:M, skip:T, bias:T? -> Y:T, S:T?; T = float|float16, M = float|float16")
      .infer(kernel::infer_same_as_first)
      .kernel<GroupNorm<true>>();
}

}  // namespace infernode::ops
