#include "ops/conv/transposed.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "ops/conv/methods/counts.h"

namespace infernode::ops {

namespace {

using microkernels::ConvShape;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kMostPhases = 64;

/// One axis of the forward convolution from an image to places.
struct Axis {
  std::size_t image, places, kernel, stride, dilation;
  std::ptrdiff_t pad;
};
using Axes = std::array<Axis, 3>;  // depth, height, width
Axes axes_of(const ConvShape& s) {
  return {{{s.in_d, s.out_d, s.kernel_d, s.stride_d, s.dilation_d, s.pad_front},
           {s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top},
           {s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left}}};
}

std::size_t remainder(std::ptrdiff_t value, std::size_t stride) {
  const auto step = static_cast<std::ptrdiff_t>(stride);
  return static_cast<std::size_t>((value % step + step) % step);
}

/// The taps k of an axis with k * dilation = residue mod stride: a phase's, whatever the pad. In the order in which a
/// forward convolution reads what they multiply.
std::vector<std::size_t> taps_of(const Axis& axis, std::size_t residue) {
  std::vector<std::size_t> taps;
  for (std::size_t k = axis.kernel; k-- > 0;)
    if (k * axis.dilation % axis.stride == residue) taps.push_back(k);
  return taps;
}

/// Of image positions first, first + stride, ...: a convolution of stride 1 over the places.
struct Phase {
  std::size_t residue, first, count;
  std::size_t taps, dilation;
  std::ptrdiff_t pad;
};
Phase phase_of(const Axis& axis, std::size_t first) {
  Phase p{};
  p.first = first;
  p.residue = remainder(static_cast<std::ptrdiff_t>(first) + axis.pad, axis.stride);
  p.count = first < axis.image ? ceil_div(axis.image - first, axis.stride) : 0;
  const std::vector<std::size_t> taps = taps_of(axis, p.residue);
  p.taps = taps.size();
  p.dilation = axis.dilation / std::gcd(axis.dilation, axis.stride);
  if (!taps.empty()) {
    p.pad =
        (static_cast<std::ptrdiff_t>(taps.front() * axis.dilation) - static_cast<std::ptrdiff_t>(first) - axis.pad) /
        static_cast<std::ptrdiff_t>(axis.stride);
  }
  return p;
}

/// Rows of the image that other phases of its width fill up are as long as the longest.
ConvShape shape_of(const ConvShape& s, const Phase& d, const Phase& h, const Phase& w) {
  ConvShape to;
  to.in_channels = s.out_channels;
  to.out_channels = s.in_channels;
  to.in_d = s.out_d, to.in_h = s.out_h, to.in_w = s.out_w;
  to.out_d = d.count, to.out_h = h.count, to.out_w = ceil_div(s.in_w, s.stride_w);
  to.kernel_d = d.taps, to.kernel_h = h.taps, to.kernel_w = w.taps;
  to.dilation_d = d.dilation, to.dilation_h = h.dilation, to.dilation_w = w.dilation;
  to.pad_front = d.pad, to.pad_top = h.pad, to.pad_left = w.pad;
  return to;
}

/// Calls each(index by residues, phases of the three axes).
template <class Each>
void for_each_phase(const Axes& axes, Each each) {
  for (std::size_t d = 0; d < axes[0].stride; ++d) {
    for (std::size_t h = 0; h < axes[1].stride; ++h) {
      for (std::size_t w = 0; w < axes[2].stride; ++w) {
        const Phase p[3] = {phase_of(axes[0], d), phase_of(axes[1], h), phase_of(axes[2], w)};
        each((p[0].residue * axes[1].stride + p[1].residue) * axes[2].stride + p[2].residue, p[0], p[1], p[2]);
      }
    }
  }
}

/// [groups * M, C, taps of the phase] of w [groups * C, M, kernel points].
Tensor phase_weight(const ConvShape& s, std::size_t groups, const float* w, const Phase& d, const Phase& h,
                    const Phase& v) {
  const Axes axes = axes_of(s);
  const std::vector<std::size_t> ds = taps_of(axes[0], d.residue), hs = taps_of(axes[1], h.residue),
                                 ws = taps_of(axes[2], v.residue);
  std::vector<std::size_t> points;
  for (const std::size_t kd : ds)
    for (const std::size_t kh : hs)
      for (const std::size_t kw : ws) points.push_back((kd * s.kernel_h + kh) * s.kernel_w + kw);
  const std::size_t seen = s.out_channels, made = s.in_channels, all = s.kernel_points();
  Tensor out = Tensor::make(tensor::DType::Float32,
                            Shape{static_cast<std::int64_t>(groups * made), static_cast<std::int64_t>(seen),
                                  static_cast<std::int64_t>(ds.size()), static_cast<std::int64_t>(hs.size()),
                                  static_cast<std::int64_t>(ws.size())},
                            tensor::host_allocator());
  float* to = out.mutable_data<float>();
  for (std::size_t m = 0; m < groups * made; ++m) {
    for (std::size_t c = 0; c < seen; ++c) {
      const float* const from = w + ((m / made * seen + c) * made + m % made) * all;
      for (const std::size_t point : points) *to++ = from[point];
    }
  }
  return out;
}

/// [groups * M * kernel points, C, 1...] of w [groups * C, M, kernel points].
Tensor product_weight(const ConvShape& s, std::size_t groups, const float* w) {
  const std::size_t seen = s.out_channels, made = s.depth();
  Tensor out = Tensor::make(tensor::DType::Float32,
                            Shape{static_cast<std::int64_t>(groups * made), static_cast<std::int64_t>(seen), 1, 1, 1},
                            tensor::host_allocator());
  float* to = out.mutable_data<float>();
  for (std::size_t m = 0; m < groups * made; ++m)
    for (std::size_t c = 0; c < seen; ++c) *to++ = w[(m / made * seen + c) * made + m % made];
  return out;
}

/// [groups, kernel points * M, C] of the same.
Tensor row_weight(const ConvShape& s, std::size_t groups, const float* w) {
  const std::size_t seen = s.out_channels, made = s.in_channels, points = s.kernel_points();
  Tensor out = Tensor::make(tensor::DType::Float32,
                            Shape{static_cast<std::int64_t>(groups), static_cast<std::int64_t>(points * made),
                                  static_cast<std::int64_t>(seen)},
                            tensor::host_allocator());
  float* to = out.mutable_data<float>();
  for (std::size_t group = 0; group < groups; ++group)
    for (std::size_t point = 0; point < points; ++point)
      for (std::size_t m = 0; m < made; ++m)
        for (std::size_t c = 0; c < seen; ++c) *to++ = w[((group * seen + c) * made + m) * points + point];
  return out;
}

ConvShape product_shape(const ConvShape& s) {
  ConvShape to;
  to.in_channels = s.out_channels;
  to.out_channels = s.depth();
  to.in_d = to.out_d = s.out_d, to.in_h = to.out_h = s.out_h, to.in_w = to.out_w = s.out_w;
  return to;
}

double move_time(const ConvSite& site, double floats) {
  return block_conversion_time(site.cpu, site.precision, floats);
}
/// Whether windows of strides lie apart, so that nothing is summed up.
bool is_apart(const Axes& axes) {
  const bool strided = std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.stride > 1; });
  return strided && std::all_of(axes.begin(), axes.end(),
                                [](const Axis& axis) { return (axis.kernel - 1) * axis.dilation < axis.stride; });
}

/// Of products that no cache keeps: they are written and read once more than conversions move what they convert.
double far_product_time(const ConvSite& site, double products) {
  const cost::Row* const row = cost::find(cost::table(site.cpu, site.precision), "convert");
  return row == nullptr ? 0 : cost::nanoseconds({0, 0, 2 * far_floats(products)}, row->rates);
}
/// The method "taps" does the same where products stay near.
double product_time(const ConvSite& site, const ConvShape& s) {
  const cost::Row* const row = cost::find(cost::table(site.cpu, site.precision), "taps");
  if (row == nullptr) return std::numeric_limits<double>::max();
  return cost::nanoseconds(tap_terms(site.groups, s.out_channels, s.depth(), s.positions(), s.out_w), row->rates) +
         far_product_time(site, number(site.groups * s.depth()) * number(s.positions())) +
         (s.stride_w == 1 ? 0 : move_time(site, number(site.groups) * input_floats(s)));
}
double phases_time(ConvSite site, const ConvShape& s) {
  const Axes axes = axes_of(s);
  if (axes[0].stride > kMostPhases || axes[1].stride > kMostPhases || axes[2].stride > kMostPhases ||
      axes[0].stride * axes[1].stride * axes[2].stride > kMostPhases)
    return std::numeric_limits<double>::max();
  double time = 0;
  std::size_t count = 0;
  for_each_phase(axes, [&](std::size_t, const Phase& d, const Phase& h, const Phase& w) {
    ++count;
    if (d.taps * h.taps * w.taps * d.count * h.count * w.count == 0) return;
    site.shape = shape_of(s, d, h, w);
    time += DerivedConv::nanoseconds(site);
  });
  return count == 1 ? time : time + move_time(site, number(site.groups) * input_floats(s));
}

}  // namespace

void sum_products(kernel::KernelContext& ctx, const microkernels::ConvTable& table, const ConvShape& shape,
                  std::size_t channels, const float* products, const float* bias, float* y) {
  const std::size_t image = shape.in_d * shape.in_h * shape.in_w, points = shape.kernel_points(),
                    threads = std::max<std::size_t>(1, ctx.run().max_threads);
  const std::size_t floats = align_up(microkernels::tap_sum_floats(shape), std::size_t{16});
  const tensor::Buffer scratch = ctx.scratch(checked_mul(checked_mul(floats, threads), sizeof(float)));
  ConvShape one = shape;
  one.in_channels = 1;
  constexpr double kNs = 0.2;  // of an addition
  ctx.parallel_for(channels, kNs * number(points * shape.positions() + image),
                   [&](std::size_t begin, std::size_t end, std::size_t slot) {
                     for (std::size_t c = begin; c < end; ++c) {
                       table.sum_taps({.shape = one,
                                       .products = products + c * points * shape.positions(),
                                       .bias = bias == nullptr ? 0.0f : bias[c],
                                       .activation = {},
                                       .output = y + c * image},
                                      reinterpret_cast<float*>(scratch.data()) + slot * floats);
                     }
                   });
}

TransposedConv::TransposedConv(kernel::KernelInfo& info, ConvSite site, const ConvShape& usual)
    : table_(info.kernels().conv), groups_(site.groups) {
  const float* const w = info.constant(1)->data<float>();
  const Axes axes = axes_of(usual);
  std::string form = cat("transposed.g", groups_);
  for (const Axis& axis : axes) form += cat(".", axis.kernel, ".", axis.stride, ".", axis.dilation);
  const double by_phases = is_apart(axes) ? std::numeric_limits<double>::max() : phases_time(site, usual);
  const double by_products = product_time(site, usual);
  if (TapRows::nanoseconds(site, usual) < std::min(by_phases, by_products)) {
    rows_ = std::make_unique<TapRows>(info, site, form + ".rows", row_weight(usual, groups_, w));
  } else if (by_products <= by_phases) {
    site.shape = product_shape(usual);
    products_ = std::make_unique<DerivedConv>(info, site, form, product_weight(usual, groups_, w));
  } else {
    phases_.resize(axes[0].stride * axes[1].stride * axes[2].stride);
    for_each_phase(axes, [&](std::size_t i, const Phase& d, const Phase& h, const Phase& v) {
      if (d.taps * h.taps * v.taps == 0) return;
      site.shape = shape_of(usual, d, h, v);
      phases_[i] =
          std::make_unique<DerivedConv>(info, site, cat(form, ".", i), phase_weight(usual, groups_, w, d, h, v));
    });
  }
  info.release_constant(1);
}

void TransposedConv::run(kernel::KernelContext& ctx, const ConvShape& s, std::int64_t images, const float* x,
                         const float* bias, float* y) const {
  const std::size_t seen = groups_ * s.out_channels * s.positions(),
                    made = groups_ * s.in_channels * s.in_d * s.in_h * s.in_w;
  if (rows_ != nullptr) return rows_->run(ctx, s, static_cast<std::size_t>(images), x, bias, {}, y);
  if (phases_.size() == 1) {
    const Axes axes = axes_of(s);
    const ConvShape whole = shape_of(s, phase_of(axes[0], 0), phase_of(axes[1], 0), phase_of(axes[2], 0));
    return phases_[0]->run(ctx, whole, images, x, bias, y);
  }
  const tensor::Buffer hold =
      products_ == nullptr ? tensor::Buffer()
                           : ctx.scratch(checked_mul(checked_mul(groups_ * s.depth(), s.positions()), sizeof(float)));
  auto* const products = reinterpret_cast<float*>(hold.data());
  for (std::int64_t i = 0; i < images; ++i, x += seen, y += made) {
    ctx.run().check();
    if (products_ == nullptr) {
      run_phases(ctx, s, x, bias, y);
    } else {
      products_->run(ctx, product_shape(s), 1, x, nullptr, products);
      sum_products(ctx, table_, s, groups_ * s.in_channels, products, bias, y);
    }
  }
}

/// One image; phases along the width take turns in its rows.
void TransposedConv::run_phases(kernel::KernelContext& ctx, const ConvShape& s, const float* x, const float* bias,
                                float* y) const {
  const Axes axes = axes_of(s);
  const std::size_t turns = s.stride_w, width = ceil_div(s.in_w, turns), channels = groups_ * s.in_channels;
  const std::size_t rows = ceil_div(s.in_d, s.stride_d) * ceil_div(s.in_h, s.stride_h);
  const tensor::Buffer hold =
      ctx.scratch(checked_mul(checked_mul(checked_mul(channels, rows), width * turns), sizeof(float)));
  auto* const made = reinterpret_cast<float*>(hold.data());
  for_each_phase(axes, [&](std::size_t i, const Phase& d, const Phase& h, const Phase& w) {
    const std::size_t count = d.count * h.count, phase_floats = channels * count * width;
    if (count == 0) return;
    float* const to = made + w.first * phase_floats;
    if (phases_[i] != nullptr) {
      phases_[i]->run(ctx, shape_of(s, d, h, w), 1, x, bias, to);
    } else {
      for (std::size_t c = 0; c < channels; ++c)
        std::fill_n(to + c * count * width, count * width, bias == nullptr ? 0.0f : bias[c]);
    }
    if (w.first + 1 < turns) return;
    ctx.parallel_for(channels * count, 0.2 * number(s.in_w), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) {
        const std::size_t row = r % count, depth = d.first + row / h.count * s.stride_d,
                          height = h.first + row % h.count * s.stride_h;
        table_.interleave(made + r * width, phase_floats, turns, s.in_w,
                          y + ((r / count * s.in_d + depth) * s.in_h + height) * s.in_w);
      }
    });
  });
}

}  // namespace infernode::ops
