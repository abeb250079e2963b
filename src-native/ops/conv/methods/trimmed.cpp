#include <algorithm>
#include <array>
#include <optional>

#include "ops/conv/methods/counts.h"
#include "ops/conv/methods/derived.h"
#include "ops/conv/methods/method.h"

// Convolutions of which some outer kernel points see padding at every position, as with dilations that are longer than
// the input: they are computed without those points, by whichever method is the quickest then.
namespace infernode::ops {

namespace {

using microkernels::ConvShape;
using tensor::Shape;
using tensor::Tensor;

/// Kernel points [first, end) of an axis, from the first that sees input to the last; one where none does.
struct Kept {
  std::size_t first, end;
};
Kept kept(std::size_t out, std::size_t in, std::size_t kernel, std::size_t stride, std::size_t dilation,
          std::ptrdiff_t pad) {
  const auto sees = [&](std::size_t k) {
    return seen_share(out, in, 1, stride, 1, pad - static_cast<std::ptrdiff_t>(k * dilation)) > 0;
  };
  Kept range{0, kernel};
  while (range.end > 1 && !sees(range.end - 1)) --range.end;
  while (range.first + 1 < range.end && !sees(range.first)) ++range.first;
  return range;
}

/// Depth, height, width.
std::array<Kept, 3> kept(const ConvShape& s) {
  return {kept(s.out_d, s.in_d, s.kernel_d, s.stride_d, s.dilation_d, s.pad_front),
          kept(s.out_h, s.in_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top),
          kept(s.out_w, s.in_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)};
}

ConvShape trimmed(ConvShape s, const std::array<Kept, 3>& keep) {
  const auto trim = [](const Kept& k, std::size_t& kernel, std::size_t dilation, std::ptrdiff_t& pad) {
    kernel = k.end - k.first;
    pad -= static_cast<std::ptrdiff_t>(k.first * dilation);
  };
  trim(keep[0], s.kernel_d, s.dilation_d, s.pad_front);
  trim(keep[1], s.kernel_h, s.dilation_h, s.pad_top);
  trim(keep[2], s.kernel_w, s.dilation_w, s.pad_left);
  return s;
}

ConvSite trimmed_site(ConvSite site) {
  site.shape = trimmed(site.shape, kept(site.shape));
  return site;
}

/// [out_channels, in_channels, depth, height, width] of what is kept.
Tensor trimmed_weight(const ConvShape& s, const std::array<Kept, 3>& keep, const Tensor& weight) {
  const auto count = [&](std::size_t axis) { return static_cast<std::int64_t>(keep[axis].end - keep[axis].first); };
  Tensor out = Tensor::make(tensor::DType::Float32, Shape{weight.dim(0), weight.dim(1), count(0), count(1), count(2)},
                            tensor::host_allocator());
  float* to = out.mutable_data<float>();
  const float* from = weight.data<float>();
  for (std::int64_t i = 0; i < weight.dim(0) * weight.dim(1); ++i, from += s.kernel_points()) {
    for (std::size_t d = keep[0].first; d < keep[0].end; ++d) {
      for (std::size_t h = keep[1].first; h < keep[1].end; ++h)
        to = std::copy_n(from + (d * s.kernel_h + h) * s.kernel_w + keep[2].first, count(2), to);
    }
  }
  return out;
}

class ConvTrimmed final : public ConvRunner {
 public:
  ConvTrimmed(kernel::KernelInfo& info, const ConvSite& site)
      : conv_(info, trimmed_site(site), "trimmed", trimmed_weight(site.shape, kept(site.shape), *site.weight)) {
    info.release_constant(1);
  }
  void run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
           const microkernels::ActivationArgs& activation) const override {
    conv_.run(ctx, trimmed(p.shape, kept(p.shape)), p.images, o, activation);
  }

 private:
  DerivedConv conv_;
};

/// The same over blocks.
class BlockedTrimmed final : public BlockedRunner {
 public:
  BlockedTrimmed(kernel::KernelInfo& info, const ConvSite& site)
      : conv_(info, trimmed_site(site), "trimmed",
              in_plane(trimmed_weight(site.shape, kept(site.shape), *site.weight))) {
    info.release_constant(1);
  }
  bool takes_bf16() const override { return conv_.runner().takes_bf16(); }
  bool takes_both_types() const override { return conv_.runner().takes_both_types(); }
  void run(kernel::KernelContext& ctx, const ConvProblem& problem, microkernels::BlockedConvArgs args, const Tensor& x,
           const Tensor&, const Tensor* residual, const Tensor& out) const override {
    ConvProblem p = problem;
    p.shape = args.shape = trimmed(p.shape, kept(p.shape));
    conv_.runner().run(ctx, p, args, x, {}, residual, out);
  }

 private:
  static Tensor in_plane(const Tensor& weight) {
    return Tensor(weight.dtype(), Shape{weight.dim(0), weight.dim(1), weight.dim(3), weight.dim(4)}, weight.buffer());
  }

  DerivedBlockedConv conv_;
};

bool can_run(const ConvSite& site) {
  return site.weight != nullptr && site.certain && site.rung == site.cpu &&
         trimmed_site(site).shape.kernel_points() < site.shape.kernel_points();
}

bool can_run_blocks(const ConvSite& site) {
  return can_run(site) && quickest_conv(trimmed_site(site), ConvLayout::Blocked).has_value();
}

double nanoseconds(const ConvSite& site) { return DerivedConv::nanoseconds(trimmed_site(site)); }

double blocked_nanoseconds(const ConvSite& site) { return DerivedBlockedConv::nanoseconds(trimmed_site(site)); }

std::unique_ptr<ConvRunner> make(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<ConvTrimmed>(info, site);
}

std::unique_ptr<BlockedRunner> make_blocked(kernel::KernelInfo& info, const ConvSite& site) {
  return std::make_unique<BlockedTrimmed>(info, site);
}

}  // namespace

void register_conv_trimmed(ConvMethods& methods) {
  ConvMethod method{
      "trimmed", "leaves out kernel points that see padding at every position, and computes the rest by any other",
      10,        can_run,
      nullptr,   make};
  method.nanoseconds = nanoseconds;
  methods.add(method);
  ConvMethod blocked{"blocked.trimmed", "`trimmed`, channels in blocks", 125, can_run_blocks, nullptr, nullptr,
                     make_blocked};
  blocked.nanoseconds = blocked_nanoseconds;
  methods.add(blocked);
}

}  // namespace infernode::ops
