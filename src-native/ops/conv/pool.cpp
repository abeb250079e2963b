#include "microkernels/pool/pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/reals.h"
#include "ops/conv/window.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kAxes = 3;

/// The windows along one axis.
struct AxisPlan {
  std::size_t in = 1, out = 1, dilation = 1;
  struct Window {
    std::size_t first, taps;  ///< first element under the window, and how many
    std::size_t padded;       ///< the same with pads counted, without what lies beyond the end pad
  };
  std::vector<Window> windows{{0, 1, 1}};
};

/// Sizes and windows of one call over up to three spatial axes; missing outer ones have size 1.
struct Problem {
  Shape out;
  std::size_t planes = 0, in_plane = 1, out_plane = 1;
  std::array<AxisPlan, kAxes> axes;
  microkernels::PoolShape shape;
  bool flat = true;     ///< `shape` says it all: at most two spatial axes, and no window of absurd extent
  bool places = false;  ///< it says it all of the first two axes, and the third is one of 16 elements pooled apart
};

AxisPlan::Window clip(std::int64_t start, std::int64_t taps, std::int64_t step, std::int64_t in, std::int64_t limit) {
  const auto below = [&](std::int64_t end) {  // taps before `end`
    return std::clamp<std::int64_t>(end <= start ? 0 : (end - start + step - 1) / step, 0, taps);
  };
  const std::int64_t skipped = below(0), used = below(in) - skipped;
  return {static_cast<std::size_t>(std::max<std::int64_t>(0, start + skipped * step)), static_cast<std::size_t>(used),
          static_cast<std::size_t>(below(limit))};
}

class Pool : public kernel::Kernel {
 protected:
  explicit Pool(KernelInfo& info) : kernels_(info.kernels()), window_(info.attributes()) {}

  Shape output_shape(const Shape& x) const {
    if (x.rank() < 3) fail(ErrorCode::ShapeMismatch, cat("pooling takes X [N,C,...], got ", x.to_string()));
    if (x.rank() - 2 > kAxes) {
      fail(ErrorCode::UnsupportedOperator,
           cat("pooling over ", x.rank() - 2, " spatial axes; up to ", kAxes, " are supported"));
    }
    Window window = window_;
    window.complete(x.rank() - 2, {});
    Shape out{x[0], x[1]};
    for (std::size_t i = 0; i + 2 < x.rank(); ++i) out.push_back(window.axis(i, x[i + 2]).out);
    return out;
  }

  /// Memory for the output exists already, so the sizes are known to be sane.
  Problem plan(const Shape& x, const Shape& out) const {
    Window window = window_;
    const std::size_t count = x.rank() - 2;
    window.complete(count, {});
    Problem p;
    p.out = out;
    p.planes = static_cast<std::size_t>(x.numel(0, 2));
    const std::size_t last = count - 1;
    p.places = count == 3 && x[last + 2] == microkernels::kPlace && window.kernel[last] == 1 &&
               window.strides[last] == 1 && window.axis(last, x[last + 2]).pad_begin == 0 &&
               out[last + 2] == x[last + 2];
    p.flat = count <= 2;
    for (std::size_t i = 0; i < count; ++i) {
      const Window::Axis axis = window.axis(i, x[i + 2]);
      const std::size_t at = kAxes - count + i;
      const std::size_t seen_as = p.places ? at + 1 : at;  // by `shape`
      const std::int64_t k = window.kernel[i], step = window.dilations[i], limit = x[i + 2] + axis.pad_end;
      AxisPlan& plan = p.axes[at];
      plan.in = static_cast<std::size_t>(x[i + 2]);
      plan.out = static_cast<std::size_t>(axis.out);
      plan.dilation = static_cast<std::size_t>(step);
      plan.windows.clear();
      for (std::int64_t o = 0; o < axis.out; ++o)
        plan.windows.push_back(clip(o * window.strides[i] - axis.pad_begin, k, step, x[i + 2], limit));
      constexpr std::int64_t kMostExtent = 1 << 14;
      const bool sane = k <= kMostExtent && step <= kMostExtent && (k - 1) * step < kMostExtent;
      p.flat = p.flat && sane;
      p.places = p.places && sane;
      p.in_plane *= plan.in;
      p.out_plane *= plan.out;
      microkernels::PoolShape& s = p.shape;
      const auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
      if (seen_as == 2) {
        s.in_w = plan.in, s.out_w = plan.out, s.kernel_w = size(k), s.stride_w = size(window.strides[i]);
        s.dilation_w = plan.dilation, s.pad_left = axis.pad_begin, s.pad_right = axis.pad_end;
      } else if (seen_as == 1) {
        s.in_h = plan.in, s.out_h = plan.out, s.kernel_h = size(k), s.stride_h = size(window.strides[i]);
        s.dilation_h = plan.dilation, s.pad_top = axis.pad_begin, s.pad_bottom = axis.pad_end;
      }
    }
    return p;
  }

  /// f(plane, watch) for all planes, in parallel; the watch is for who computes long on one.
  template <class F>
  static void for_planes(KernelContext& ctx, const Problem& p, double cost_per_tap, F f) {
    double taps = 1;
    for (const AxisPlan& a : p.axes) {
      std::size_t most = 0;
      for (const AxisPlan::Window& w : a.windows) most = std::max(most, w.taps);
      taps *= static_cast<double>(most * a.out);
    }
    ctx.parallel_for(p.planes, taps * cost_per_tap, [&](std::size_t begin, std::size_t end, std::size_t) {
      kernel::Watch watch(ctx.run());
      for (std::size_t i = begin; i < end; ++i) f(i, watch);
    });
  }

  /// window(w, d, h, w) for every output of a plane in order, then take(offset) for each element under it, then done().
  template <class Begin, class Take, class Done>
  static void slide(const Problem& p, kernel::Watch& watch, Begin begin, Take take, Done done) {
    const auto& [depth, height, width] = p.axes;
    for (const AxisPlan::Window& d : depth.windows) {
      for (const AxisPlan::Window& h : height.windows) {
        for (const AxisPlan::Window& w : width.windows) {
          begin();
          for (std::size_t i = 0; i < d.taps; ++i) {
            for (std::size_t j = 0; j < h.taps; ++j) {
              const std::size_t row =
                  ((d.first + i * depth.dilation) * height.in + h.first + j * height.dilation) * width.in + w.first;
              for (std::size_t k = 0; k < w.taps; ++k) take(row + k * width.dilation);
            }
          }
          done(d, h, w);
          watch.did(static_cast<double>(d.taps * h.taps * w.taps));
        }
      }
    }
  }

  const microkernels::KernelSet& kernels_;
  Window window_;
};

class MaxPool final : public Pool {
 public:
  explicit MaxPool(KernelInfo& info) : Pool(info), column_major_(info.attributes().get_int("storage_order", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Shape shape = output_shape(x.shape());
    const Tensor y = ctx.output(0, shape);
    const Tensor indices = ctx.wants_output(1) ? ctx.output(1, shape) : Tensor();
    if (y.numel() == 0) return;
    const Problem p = plan(x.shape(), shape);
    std::int64_t* places = indices ? indices.mutable_data<std::int64_t>() : nullptr;
    if (x.dtype() == DType::Int8 || x.dtype() == DType::UInt8) {
      tensor::dispatch<std::int8_t, std::uint8_t>(x.dtype(), "MaxPool", [&]<class T>(tensor::TypeTag<T>) {
        compute(ctx, p, x.data<T>(), y.mutable_data<T>(), places, std::numeric_limits<T>::lowest());
      });
      return;
    }
    if (p.places && places == nullptr && (x.dtype() == DType::Float32 || x.dtype() == DType::BFloat16)) {
      const auto& table = kernels_.pool;
      const auto run = [&]<class E>(void (*max)(const microkernels::PoolShape&, const E*, E*), const void* from,
                                    void* to) {
        for_planes(ctx, p, 0.05, [&](std::size_t i, kernel::Watch&) {
          max(p.shape, static_cast<const E*>(from) + i * p.in_plane, static_cast<E*>(to) + i * p.out_plane);
        });
      };
      if (x.dtype() == DType::Float32) {
        run(table.max_places, x.raw(), y.mutable_raw());
      } else {
        run(table.max_places_bf16, x.raw(), y.mutable_raw());
      }
      return;
    }
    dispatch_reals(x.dtype(), "MaxPool", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      if (std::is_same_v<T, float> && p.flat && places == nullptr) {
        if constexpr (std::is_same_v<T, float>) {
          const auto& table = kernels_.pool;
          for_planes(ctx, p, 0.2, [&](std::size_t i, kernel::Watch&) {
            table.max(p.shape, in + i * p.in_plane, out + i * p.out_plane);
          });
        }
      } else {
        compute(ctx, p, in.data(), out.data(), places, -std::numeric_limits<T>::infinity());
      }
      out.store();
    });
  }

 private:
  /// The first of equal elements wins, and NaN wins over numbers.
  template <class T>
  void compute(KernelContext& ctx, const Problem& p, const T* x, T* y, std::int64_t* places, T least) const {
    for_planes(ctx, p, 1, [&](std::size_t plane, kernel::Watch& watch) {
      const T* from = x + plane * p.in_plane;
      std::size_t o = plane * p.out_plane, at = 0;
      T best = least;
      bool found = false;
      slide(
          p, watch,
          [&] {
            best = least;
            found = false;
            at = 0;
          },
          [&](std::size_t offset) {
            const T v = from[offset];
            if (!found || v > best || (v != v && best == best)) {
              best = v;
              at = offset;
              found = true;
            }
          },
          [&](const auto&, const auto&, const auto&) {
            y[o] = best;
            if (places != nullptr) places[o] = place(p, plane, at);
            ++o;
          });
    });
  }

  /// Index into the whole of X; in column-major order the first spatial axis runs fastest.
  std::int64_t place(const Problem& p, std::size_t plane, std::size_t offset) const {
    if (column_major_) {
      const std::size_t w = offset % p.axes[2].in, h = offset / p.axes[2].in % p.axes[1].in,
                        d = offset / p.axes[2].in / p.axes[1].in;
      offset = d + p.axes[0].in * (h + p.axes[1].in * w);
    }
    return static_cast<std::int64_t>(plane * p.in_plane + offset);
  }

  bool column_major_;
};

class AveragePool final : public Pool {
 public:
  explicit AveragePool(KernelInfo& info)
      : Pool(info), include_pad_(info.attributes().get_int("count_include_pad", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Shape shape = output_shape(x.shape());
    const Tensor y = ctx.output(0, shape);
    if (y.numel() == 0) return;
    const Problem p = plan(x.shape(), shape);
    dispatch_reals(x.dtype(), "AveragePool", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      if (std::is_same_v<T, float> && p.flat) {
        if constexpr (std::is_same_v<T, float>) {
          const auto& table = kernels_.pool;
          for_planes(ctx, p, 0.2, [&](std::size_t i, kernel::Watch&) {
            table.average(p.shape, include_pad_, in + i * p.in_plane, out + i * p.out_plane);
          });
        }
      } else {
        compute(ctx, p, in.data(), out.data());
      }
      out.store();
    });
  }

 private:
  template <class T>
  void compute(KernelContext& ctx, const Problem& p, const T* x, T* y) const {
    for_planes(ctx, p, 1, [&](std::size_t plane, kernel::Watch& watch) {
      const T* from = x + plane * p.in_plane;
      T* to = y + plane * p.out_plane;
      T sum = 0;
      slide(
          p, watch, [&] { sum = 0; }, [&](std::size_t offset) { sum += from[offset]; },
          [&](const AxisPlan::Window& d, const AxisPlan::Window& h, const AxisPlan::Window& w) {
            const std::size_t count = include_pad_ ? d.padded * h.padded * w.padded : d.taps * h.taps * w.taps;
            *to++ = count == 0 ? T{0} : sum / static_cast<T>(count);
          });
    });
  }

  bool include_pad_;
};

/// The p-norm of what lies under the window.
class LpPool final : public Pool {
 public:
  explicit LpPool(KernelInfo& info) : Pool(info), p_(info.attributes().get_float("p", 2)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Shape shape = output_shape(x.shape());
    const Tensor y = ctx.output(0, shape);
    if (y.numel() == 0) return;
    const Problem p = plan(x.shape(), shape);
    dispatch_reals(x.dtype(), "LpPool", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      const auto power = static_cast<T>(p_);
      for_planes(ctx, p, p_ == 2 ? 1 : 20, [&](std::size_t plane, kernel::Watch& watch) {
        const T* from = in + plane * p.in_plane;
        T* to = out + plane * p.out_plane;
        T sum = 0;
        slide(
            p, watch, [&] { sum = 0; },
            [&](std::size_t offset) {
              const T v = std::abs(from[offset]);
              sum += p_ == 2 ? v * v : p_ == 1 ? v : std::pow(v, power);
            },
            [&](const auto&, const auto&, const auto&) {
              *to++ = p_ == 2 ? std::sqrt(sum) : p_ == 1 ? sum : std::pow(sum, 1 / power);
            });
      });
      out.store();
    });
  }

 private:
  float p_;
};

void infer_pool(InferContext& ctx) {
  if (ctx.has_output(1)) ctx.set_output_dtype(1, DType::Int64);
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  if (x->size() < 3) fail(ErrorCode::ShapeMismatch, cat("pooling takes X [N,C,...], got ", graph::to_string(*x)));
  Window window(ctx.attributes());
  window.complete(x->size() - 2, {});
  graph::SymShape out{(*x)[0], (*x)[1]};
  for (std::size_t i = 0; i + 2 < x->size(); ++i) out.push_back(window.infer_axis(i, (*x)[i + 2]));
  if (ctx.has_output(1)) ctx.set_output_shape(1, out);
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_pool(kernel::OpRegistrar& r) {
  r.op("MaxPool")
      .version(1, "X:T -> Y:T; T = floats")
      .version(8, "X:T -> Y:T, Indices:I?; T = floats, I = int64")
      .version(10, "X:T -> Y:T, Indices:I?; T = floats, I = int64")
      .version(11, "X:T -> Y:T, Indices:I?; T = floats, I = int64")
      .version(12, "X:T -> Y:T, Indices:I?; T = floats|int8|uint8, I = int64")
      .version(22, "X:T -> Y:T, Indices:I?; T = floats_bf16|int8|uint8, I = int64")
      .infer(infer_pool)
      .kernel<MaxPool>()
      .moves(kernel::Moves::Largest)
      .blocks(kernel::Blocks::Any);
  r.op("AveragePool")
      .version(1, "X:T -> Y:T; T = floats")
      .version(7, "X:T -> Y:T; T = floats")
      .version(10, "X:T -> Y:T; T = floats")
      .version(11, "X:T -> Y:T; T = floats")
      .version(19, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(infer_pool)
      .kernel<AveragePool>();
  r.op("LpPool")
      .version(1, "X:T -> Y:T; T = floats")
      .version(2, "X:T -> Y:T; T = floats")
      .version(11, "X:T -> Y:T; T = floats")
      .version(18, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(infer_pool)
      .kernel<LpPool>();
}

}  // namespace infernode::ops
