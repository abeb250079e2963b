#include "microkernels/pool/pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"
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
  std::size_t most = 1;  ///< taps of a window
  struct Window {
    std::size_t first, taps;  ///< first element under the window, and how many
    std::size_t padded;       ///< the same with pads counted, without what lies beyond the end pad
  };
  std::vector<Window> windows{{0, 1, 1}};  ///< where they are laid out
};

/// Sizes and windows of one call over up to three spatial axes; missing outer ones have size 1.
struct Problem {
  Shape out;
  std::size_t planes = 0, in_plane = 1, out_plane = 1;
  std::array<AxisPlan, kAxes> axes;
  microkernels::PoolShape shape;
  bool flat = true;     ///< `shape` says it all: at most two spatial axes, and no window of absurd size
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
      const std::int64_t k = window.kernel[i], step = window.dilations[i];
      AxisPlan& plan = p.axes[at];
      plan.in = static_cast<std::size_t>(x[i + 2]);
      plan.out = static_cast<std::size_t>(axis.out);
      plan.dilation = static_cast<std::size_t>(step);
      plan.most = static_cast<std::size_t>(std::min(k, x[i + 2]));
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
    constexpr std::size_t kMostTaps = std::size_t{1} << 22;  // that a thread takes without a look
    const bool short_windows = p.shape.kernel_h * p.shape.kernel_w <= kMostTaps;
    p.flat = p.flat && short_windows;
    p.places = p.places && short_windows;
    return p;
  }

  /// For `slide`.
  void lay_windows(const kernel::RunContext& run, const Shape& x, Problem& p) const {
    Window window = window_;
    const std::size_t count = x.rank() - 2;
    window.complete(count, {});
    kernel::Watch watch(run);
    for (std::size_t i = 0; i < count; ++i) {
      const Window::Axis axis = window.axis(i, x[i + 2]);
      std::vector<AxisPlan::Window>& windows = p.axes[kAxes - count + i].windows;
      windows.clear();
      each_in_pieces(watch, static_cast<std::size_t>(axis.out), 20, [&](std::size_t o) {
        windows.push_back(clip(static_cast<std::int64_t>(o) * window.strides[i] - axis.pad_begin, window.kernel[i],
                               window.dilations[i], x[i + 2], x[i + 2] + axis.pad_end));
      });
    }
  }

  /// Elements under all windows of a plane.
  static double taps_of(const Problem& p) {
    double taps = 1;
    for (const AxisPlan& axis : p.axes) taps *= static_cast<double>(axis.most * axis.out);
    return taps;
  }

  /// f(plane, watch) for all planes, in parallel; the watch is for who computes long on one.
  template <class F>
  static void for_planes(KernelContext& ctx, const Problem& p, double cost_per_tap, F f) {
    ctx.parallel_for(p.planes, taps_of(p) * cost_per_tap, [&](std::size_t begin, std::size_t end, std::size_t) {
      kernel::Watch watch(ctx.run());
      for (std::size_t i = begin; i < end; ++i) f(i, watch);
    });
  }

  /// pool(shape, x, y) for bands of rows of all planes, or for parts of rows that are long: `shape` says what is pooled
  /// of the plane that begins at element `x`, its outputs follow one another from element `y` on.
  template <class F>
  static void for_bands(KernelContext& ctx, const Problem& p, double cost_per_tap, F pool) {
    constexpr double kMostNs = kernel::kLookEveryNs / 2;
    constexpr std::size_t kLeastColumns = 4096;
    const microkernels::PoolShape& s = p.shape;
    const double plane_ns = taps_of(p) * cost_per_tap, row_ns = plane_ns / static_cast<double>(s.out_h);
    const auto part = [&](std::size_t count, double ns) {
      return static_cast<std::size_t>(std::clamp(kMostNs / ns, 1.0, static_cast<double>(count)));
    };
    const std::size_t rows = part(s.out_h, row_ns), bands = ceil_div(s.out_h, rows);
    const std::size_t columns =
        rows > 1 ? s.out_w
                 : std::min(s.out_w, std::max(kLeastColumns, part(s.out_w, row_ns / static_cast<double>(s.out_w))));
    const std::size_t parts = bands * ceil_div(s.out_w, columns), place = p.places ? microkernels::kPlace : 1;
    ctx.parallel_for(
        p.planes * parts, plane_ns / static_cast<double>(parts), [&](std::size_t begin, std::size_t end, std::size_t) {
          for (std::size_t i = begin; i < end; ++i) {
            const std::size_t plane = i / parts, h = i % parts % bands * rows, w = i % parts / bands * columns;
            microkernels::PoolShape band = s;
            band.out_h = std::min(rows, s.out_h - h);
            band.out_w = std::min(columns, s.out_w - w);
            band.pad_top -= static_cast<std::ptrdiff_t>(h * s.stride_h);
            band.pad_left -= static_cast<std::ptrdiff_t>(w * s.stride_w);
            pool(band, plane * p.in_plane, plane * p.out_plane + (h * s.out_w + w) * place);
          }
        });
  }

  /// begin() for every output of a plane in order, then take(offset) for each element under it, which takes `ns`, then
  /// done(d, h, w).
  template <class Begin, class Take, class Done>
  static void slide(const Problem& p, kernel::Watch& watch, double ns, Begin begin, Take take, Done done) {
    const auto& [depth, height, width] = p.axes;
    for (const AxisPlan::Window& d : depth.windows) {
      for (const AxisPlan::Window& h : height.windows) {
        for (const AxisPlan::Window& w : width.windows) {
          const std::size_t taps = d.taps * h.taps * w.taps;
          const bool is_long = taps > kernel::kPiece;
          begin();
          for (std::size_t i = 0; i < d.taps; ++i) {
            for (std::size_t j = 0; j < h.taps; ++j) {
              const std::size_t row =
                  ((d.first + i * depth.dilation) * height.in + h.first + j * height.dilation) * width.in + w.first;
              for (std::size_t k = 0; k < w.taps;) {
                const std::size_t first = k, last = std::min(w.taps, k + kernel::kPiece);
                for (; k < last; ++k) take(row + k * width.dilation);
                if (is_long) watch.did(ns * static_cast<double>(last - first));
              }
            }
          }
          done(d, h, w);
          if (!is_long) watch.did(1 + ns * static_cast<double>(taps));
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
    Problem p = plan(x.shape(), shape);
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
        for_bands(ctx, p, 0.05, [&](const microkernels::PoolShape& band, std::size_t at, std::size_t out) {
          max(band, static_cast<const E*>(from) + at, static_cast<E*>(to) + out);
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
          for_bands(ctx, p, 0.2, [&](const microkernels::PoolShape& band, std::size_t from, std::size_t to) {
            table.max(band, in + from, out + to);
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
  void compute(KernelContext& ctx, Problem& p, const T* x, T* y, std::int64_t* places, T least) const {
    lay_windows(ctx.run(), ctx.input(0).shape(), p);
    for_planes(ctx, p, 1, [&](std::size_t plane, kernel::Watch& watch) {
      const T* from = x + plane * p.in_plane;
      std::size_t o = plane * p.out_plane, at = 0;
      T best = least;
      bool found = false;
      slide(
          p, watch, 1,
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
    Problem p = plan(x.shape(), shape);
    dispatch_reals(x.dtype(), "AveragePool", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      if (std::is_same_v<T, float> && p.flat) {
        if constexpr (std::is_same_v<T, float>) {
          const auto& table = kernels_.pool;
          for_bands(ctx, p, 0.2, [&](const microkernels::PoolShape& band, std::size_t from, std::size_t to) {
            table.average(band, include_pad_, in + from, out + to);
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
  void compute(KernelContext& ctx, Problem& p, const T* x, T* y) const {
    lay_windows(ctx.run(), ctx.input(0).shape(), p);
    for_planes(ctx, p, 1, [&](std::size_t plane, kernel::Watch& watch) {
      const T* from = x + plane * p.in_plane;
      T* to = y + plane * p.out_plane;
      T sum = 0;
      slide(
          p, watch, 1, [&] { sum = 0; }, [&](std::size_t offset) { sum += from[offset]; },
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
    Problem p = plan(x.shape(), shape);
    lay_windows(ctx.run(), x.shape(), p);
    dispatch_reals(x.dtype(), "LpPool", [&]<class T>(tensor::TypeTag<T>) {
      const RealInput<T> in(ctx, kernels_, x);
      const RealOutput<T> out(ctx, kernels_, y);
      const auto power = static_cast<T>(p_);
      for_planes(ctx, p, p_ == 2 ? 1 : 20, [&](std::size_t plane, kernel::Watch& watch) {
        const T* from = in + plane * p.in_plane;
        T* to = out + plane * p.out_plane;
        T sum = 0;
        slide(
            p, watch, p_ == 1 || p_ == 2 ? 1 : 20, [&] { sum = 0; },
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
