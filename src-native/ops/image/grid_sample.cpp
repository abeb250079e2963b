// GridSample and AffineGrid: an image read at places that a grid of coordinates names.

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <span>
#include <type_traits>
#include <vector>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/image/interpolation.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

// ---- GridSample

enum class Mode : std::uint8_t { Nearest, Linear, Cubic };
enum class Padding : std::uint8_t { Zeros, Border, Reflection };

Mode parse_mode(std::string_view name) {
  if (name == "nearest") return Mode::Nearest;
  if (name == "linear" || name == "bilinear") return Mode::Linear;
  if (name == "cubic" || name == "bicubic") return Mode::Cubic;
  fail(ErrorCode::InvalidModel, cat("unknown mode '", name, "'; known are nearest, linear, cubic"));
}

Padding parse_padding(std::string_view name) {
  if (name == "zeros") return Padding::Zeros;
  if (name == "border") return Padding::Border;
  if (name == "reflection") return Padding::Reflection;
  fail(ErrorCode::InvalidModel, cat("unknown padding_mode '", name, "'; known are zeros, border, reflection"));
}

void infer_grid_sample(InferContext& ctx) {
  const SymShape *x = ctx.input_shape(0), *grid = ctx.input_shape(1);
  if (!x || !grid || x->size() < 3 || grid->size() != x->size()) return;
  SymShape out{(*x)[0], (*x)[1]};
  out.insert(out.end(), grid->begin() + 1, grid->end() - 1);
  ctx.set_output_shape(0, std::move(out));
}

/// One spatial axis of the image.
template <class G>
struct Axis {
  std::int64_t length;
  std::int64_t stride;
  G low, high;  ///< between which reflection folds
  Padding padding;

  G reflect(G v) const {
    const G range = high - low;
    if (range <= 0) return low;
    const G past = v < low ? low - v : v > high ? v - high : G{0};
    if (past == 0) return v;
    const G folds = std::floor(past / range), rest = past - folds * range;
    const bool even = std::fmod(folds, G{2}) == 0;
    return (v < low) == even ? low + rest : high - rest;
  }
  /// The place after padding, inside the range of integers. Where the border is repeated, taps do it one by one, and so
  /// far outside that all of them fall on the border it does not matter how far.
  G settle(G v) const {
    if (padding == Padding::Border) return std::clamp(std::isnan(v) ? G{0} : v, G{-4}, static_cast<G>(length + 3));
    if (!(std::abs(v) < G{1e9})) return padding == Padding::Zeros ? G{-1e9} : G{0};
    return padding == Padding::Reflection ? reflect(v) : v;
  }
  /// Whether element i counts; `i` becomes the element to read in any case.
  bool resolve(std::int64_t& i) const {
    if (i >= 0 && i < length) return true;
    if (padding == Padding::Reflection) i = static_cast<std::int64_t>(reflect(static_cast<G>(i)));
    i = std::clamp<std::int64_t>(i, 0, length - 1);
    return padding != Padding::Zeros;
  }
};

/// Elements and weights along one axis for one place. An element outside weighs zero, and the edge stands for it, which
/// weighs something itself unless the whole place is outside (`any` is false).
template <class G>
struct AxisTaps {
  std::array<std::int64_t, 4> offset;
  std::array<G, 4> weight;
  bool any = false;
};

template <class G>
AxisTaps<G> axis_taps(const Axis<G>& axis, G place, Mode mode) {
  AxisTaps<G> taps{};
  const auto base = static_cast<std::int64_t>(std::floor(place));
  const G ratio = place - static_cast<G>(base);
  std::size_t count = 1;
  std::int64_t first = base;
  if (mode == Mode::Linear) {
    count = 2;
    taps.weight = {1 - ratio, ratio};
  } else if (mode == Mode::Cubic) {
    count = 4;
    first = base - 1;
    const std::array<double, 4> weights = cubic_weights(static_cast<double>(ratio), -0.75);
    for (std::size_t k = 0; k < 4; ++k) taps.weight[k] = static_cast<G>(weights[k]);
  } else {
    taps.weight[0] = 1;
  }
  for (std::size_t k = 0; k < count; ++k) {
    std::int64_t i = first + static_cast<std::int64_t>(k);
    if (axis.resolve(i)) {
      taps.any = true;
    } else {
      taps.weight[k] = 0;
    }
    taps.offset[k] = i * axis.stride;
  }
  return taps;
}

/// What weighted sums of elements T by weights G are made in. Bools count as 0 and 1, integers of 32 bits and more
/// would lose digits in float.
template <class T, class G>
struct WeightedSum {
  using type = std::common_type_t<G, tensor::ComputeTypeOf<T>,
                                  std::conditional_t<(sizeof(T) >= 4 && std::is_integral_v<T>), double, G>>;
};
template <class T, class G>
struct WeightedSum<std::complex<T>, G> {
  using type = std::complex<std::common_type_t<G, T>>;
};

template <class F>
void dispatch_weighable(tensor::DType type, F&& f) {
  switch (type) {
    case tensor::DType::Bool:
      return f(TypeTag<bool>{});
    case tensor::DType::Complex64:
      return f(TypeTag<std::complex<float>>{});
    case tensor::DType::Complex128:
      return f(TypeTag<std::complex<double>>{});
    default:
      return tensor::dispatch_numeric(type, "GridSample", static_cast<F&&>(f));
  }
}

/// Places whose taps are held at a time, for all channels.
template <class G>
struct Places {
  static constexpr std::int64_t kMost = 64;
  std::int64_t count = 0;
  std::size_t taps;  ///< of each
  std::vector<std::int64_t> offsets;
  std::vector<G> weights;
  std::array<bool, kMost> inside;  ///< whether any part of a place is

  Places(std::int64_t most, std::size_t taps_of_each)
      : taps(taps_of_each), offsets(static_cast<std::size_t>(most) * taps), weights(offsets.size()) {}
};

/// Fills in one channel: `to` counts the elements of y before its places, `from` those of x before its plane.
template <class G>
using FillChannel = void (*)(const Tensor& x, std::int64_t from, const Places<G>& places, const Tensor& y,
                             std::int64_t to, Mover& mover);

template <class T, class G>
void move_channel(const Tensor& x, std::int64_t from, const Places<G>& places, const Tensor& y, std::int64_t to,
                  Mover& mover) {
  const T* const source = elements<T>(x) + from;
  T* const target = mutable_elements<T>(y) + to;
  const bool* const inside = places.inside.data();
  const std::int64_t* const offsets = places.offsets.data();
  const std::int64_t count = places.count;
  for (std::int64_t p = 0; p < count; ++p) mover.set(target[p], inside[p] ? source[offsets[p]] : T{});
}

/// The weighted sums of one channel; Taps is their number where the compiler may know it.
template <std::size_t Taps, class T, class G>
void sum_places(const T* from, const Places<G>& places, T* to) {
  using Acc = typename WeightedSum<T, G>::type;
  const std::size_t taps = Taps != 0 ? Taps : places.taps;
  const std::int64_t* offsets = places.offsets.data();
  const G* weights = places.weights.data();
  for (std::int64_t p = 0; p < places.count; ++p, offsets += taps, weights += taps) {
    Acc sum{};
    if (places.inside[static_cast<std::size_t>(p)]) {
      for (std::size_t k = 0; k < taps; ++k)
        sum += static_cast<Acc>(weights[k]) * static_cast<Acc>(widen(from[offsets[k]]));
    }
    if constexpr (std::is_same_v<T, bool>) {
      to[p] = sum != 0;
    } else if constexpr (std::is_arithmetic_v<Acc>) {
      to[p] = convert<T>(sum);
    } else {
      to[p] = static_cast<T>(sum);
    }
  }
}

template <class T, class G>
void sum_channel(const Tensor& x, std::int64_t from, const Places<G>& places, const Tensor& y, std::int64_t to,
                 Mover&) {
  const T* const source = elements<T>(x) + from;
  T* const target = mutable_elements<T>(y) + to;
  if (places.taps == 4) return sum_places<4>(source, places, target);
  sum_places<0>(source, places, target);
}

class GridSample : public Kernel {
 public:
  explicit GridSample(KernelInfo& info)
      : mode_(parse_mode(info.attributes().get_string("mode", "linear"))),
        padding_(parse_padding(info.attributes().get_string("padding_mode", "zeros"))),
        align_corners_(info.attributes().get_int("align_corners", 0) != 0) {
    INFERNODE_CHECK(mode_ == Mode::Nearest || info.input_type(0).elem != tensor::DType::String, ErrorCode::InvalidModel,
                    "GridSample of strings takes the mode 'nearest': strings between two places do not exist");
  }

  void run(KernelContext& ctx) const override {
    const Tensor &x = ctx.input(0), &grid = ctx.input(1);
    const std::size_t spatial = x.rank() - 2;
    INFERNODE_CHECK(x.rank() >= 3, ErrorCode::ShapeMismatch, "an input of shape ", x.shape().dims(),
                    " has no spatial axes");
    INFERNODE_CHECK(
        grid.rank() == x.rank() && grid.dim(0) == x.dim(0) && grid.shape().back() == static_cast<std::int64_t>(spatial),
        ErrorCode::ShapeMismatch, "a grid of shape ", grid.shape().dims(), " does not fit an input of shape ",
        x.shape().dims());
    Shape dims{x.dim(0), x.dim(1)};
    for (std::size_t d = 1; d + 1 < grid.rank(); ++d) dims.push_back(grid.dim(d));
    const Tensor y = ctx.output(0, dims);
    if (y.numel() == 0) return;
    INFERNODE_CHECK(x.numel() > 0, ErrorCode::ShapeMismatch, "an input of shape ", x.shape().dims(),
                    " has nothing to sample");
    tensor::dispatch_floats(grid.dtype(), "GridSample's grid", [&]<class C>(TypeTag<C>) {
      sample_any<tensor::ComputeTypeOf<C>>(ctx, x, grid, y, [](const Tensor& from, std::int64_t first, auto to) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = widen(from.data<C>()[first + static_cast<std::int64_t>(i)]);
      });
    });
  }

 private:
  static constexpr std::size_t kTaps = 64 << 8;      ///< as many taps are held, or those of one place
  static constexpr std::size_t kMostTaps = 1 << 20;  ///< of one place

  /// Reads coordinates of the grid from number `first` on: what the loops below are compiled for is G alone.
  template <class G>
  using ReadGrid = void (*)(const Tensor& grid, std::int64_t first, std::span<G> to);

  template <class G>
  void sample_any(KernelContext& ctx, const Tensor& x, const Tensor& grid, const Tensor& y, ReadGrid<G> read) const {
    FillChannel<G> fill = nullptr;
    if (mode_ == Mode::Nearest) {
      dispatch_elements(x.dtype(), "GridSample", [&]<class T>(TypeTag<T>) { fill = move_channel<T, G>; });
    } else {
      dispatch_weighable(x.dtype(), [&]<class T>(TypeTag<T>) { fill = sum_channel<T, G>; });
    }
    sample<G>(ctx, x, grid, y, read, fill);
  }

  template <class G>
  void sample(KernelContext& ctx, const Tensor& x, const Tensor& grid, const Tensor& y, ReadGrid<G> read,
              FillChannel<G> fill) const {
    const std::size_t spatial = x.rank() - 2;
    std::vector<Axis<G>> axes(spatial);
    const Shape strides = x.shape().strides();
    for (std::size_t d = 0; d < spatial; ++d) {
      const std::int64_t length = x.dim(d + 2);
      const G end = static_cast<G>(length - 1);
      axes[d] = {length, strides[d + 2], align_corners_ ? G{0} : G{-0.5}, align_corners_ ? end : end + G{0.5},
                 padding_};
    }
    const std::size_t per_axis = mode_ == Mode::Nearest ? 1 : mode_ == Mode::Linear ? 2 : 4;
    std::size_t taps = 1;
    for (std::size_t d = 0; d < spatial; ++d) {
      taps *= per_axis;
      INFERNODE_CHECK(taps <= kMostTaps, ErrorCode::UnsupportedOperator, "GridSample over ", spatial,
                      " spatial axes would add up more than ", kMostTaps, " elements for each place");
    }
    const auto block = static_cast<std::int64_t>(std::clamp<std::size_t>(kTaps / taps, 1, Places<G>::kMost));
    const std::int64_t channels = x.dim(1), plane = x.shape().numel(2, x.rank()), places = y.shape().numel(2, y.rank());
    const std::int64_t blocks = ceil_div(places, block);
    const double cost = static_cast<double>(block) * (30.0 + static_cast<double>(channels) * static_cast<double>(taps));
    ctx.parallel_for(
        static_cast<std::size_t>(x.dim(0) * blocks), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
          Places<G> held(block, taps);
          std::vector<G> coordinates(static_cast<std::size_t>(block) * spatial);
          Mover mover(ctx.run());
          for (auto b = static_cast<std::int64_t>(begin); b < static_cast<std::int64_t>(end); ++b) {
            const std::int64_t n = b / blocks, first = b % blocks * block;
            held.count = std::min(block, places - first);
            read(grid, (n * places + first) * static_cast<std::int64_t>(spatial),
                 std::span(coordinates).first(static_cast<std::size_t>(held.count) * spatial));
            const G* at = coordinates.data();
            for (std::size_t p = 0; p < static_cast<std::size_t>(held.count); ++p, at += spatial)
              held.inside[p] = place_taps<G>(at, axes, per_axis, &held.offsets[p * taps], &held.weights[p * taps]);
            for (std::int64_t c = 0; c < channels; ++c) {
              mover.did(static_cast<double>(held.count) * (1.0 + 0.5 * static_cast<double>(taps)));
              fill(x, (n * channels + c) * plane, held, y, (n * channels + c) * places + first, mover);
            }
          }
        });
  }

  /// Offsets and weights for one place, and whether any part of it is inside; `at` holds its coordinates, the innermost
  /// axis first.
  template <class G>
  bool place_taps(const G* at, const std::vector<Axis<G>>& axes, std::size_t per_axis, std::int64_t* offsets,
                  G* weights) const {
    const std::size_t spatial = axes.size();
    std::size_t count = 1;
    bool inside = true;
    offsets[0] = 0;
    weights[0] = 1;
    for (std::size_t d = 0; d < spatial; ++d) {
      const Axis<G>& axis = axes[d];
      const G n = at[spatial - 1 - d], length = static_cast<G>(axis.length);
      G place = align_corners_ ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2;
      if (mode_ == Mode::Nearest) place = std::nearbyint(place);
      const AxisTaps<G> taps = axis_taps(axis, axis.settle(place), mode_);
      inside = inside && taps.any;
      for (std::size_t k = count; k-- > 0;) {
        const std::int64_t offset = offsets[k];
        const G weight = weights[k];
        for (std::size_t t = 0; t < per_axis; ++t) {
          offsets[k * per_axis + t] = offset + taps.offset[t];
          weights[k * per_axis + t] = weight * taps.weight[t];
        }
      }
      count *= per_axis;
    }
    return inside;
  }

  Mode mode_;
  Padding padding_;
  bool align_corners_;
};

// ---- AffineGrid

void infer_affine_grid(InferContext& ctx) {
  const auto size = ctx.input_contents(1);
  if (!size) {
    const SymShape* count = ctx.input_shape(1);
    if (count && count->size() == 1 && ((*count)[0].is(4) || (*count)[0].is(5))) {
      ctx.set_output_shape(0, unknown_shape(static_cast<std::size_t>((*count)[0].value())));
    }
    return;
  }
  if (size->size() != 4 && size->size() != 5) return;
  SymShape out{(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.push_back(static_cast<std::int64_t>(size->size() - 2));
  ctx.set_output_shape(0, std::move(out));
}

class AffineGrid : public Kernel {
 public:
  explicit AffineGrid(KernelInfo& info) : align_corners_(info.attributes().get_int("align_corners", 0) != 0) {}
  void run(KernelContext& ctx) const override {
    const Tensor& theta = ctx.input(0);
    const Ints size = read_ints(ctx.input(1));
    INFERNODE_CHECK(size.size() == 4 || size.size() == 5, ErrorCode::InvalidArgument, "size ", size,
                    " must be [N, C, H, W] or [N, C, D, H, W]");
    const std::size_t spatial = size.size() - 2;
    const auto s = static_cast<std::int64_t>(spatial);
    INFERNODE_CHECK(theta.shape() == (Shape{size[0], s, s + 1}), ErrorCode::ShapeMismatch, "theta has shape ",
                    theta.shape().dims(), "; size ", size, " asks for ", Shape{size[0], s, s + 1}.dims());
    Shape dims{size[0]};
    for (std::size_t d = 0; d < spatial; ++d) {
      INFERNODE_CHECK(size[d + 2] >= 0, ErrorCode::InvalidArgument, "size ", size, " has a negative element");
      dims.push_back(size[d + 2]);
    }
    dims.push_back(s);
    const Tensor grid = ctx.output(0, dims);
    if (grid.numel() == 0) return;
    tensor::dispatch_floats(theta.dtype(), "AffineGrid", [&]<class T>(TypeTag<T>) {
      fill(ctx.run(), theta.data<T>(), dims, spatial, grid.mutable_data<T>());
    });
  }

 private:
  template <class T>
  void fill(const kernel::RunContext& run, const T* theta, const Shape& dims, std::size_t spatial, T* out) const {
    kernel::Watch watch(run);
    const std::int64_t places = dims.numel(1, spatial + 1);
    std::array<double, 4> point;  // innermost axis first, then the 1 of homogeneous coordinates
    point[spatial] = 1;
    for (std::int64_t n = 0; n < dims[0]; ++n, theta += spatial * (spatial + 1)) {
      for (std::int64_t p = 0; p < places; ++p) {
        watch.did(20);
        std::int64_t rest = p;
        for (std::size_t d = 0; d < spatial; ++d) {
          const std::int64_t length = dims[spatial - d];
          point[d] = coordinate(rest % length, length);
          rest /= length;
        }
        for (std::size_t row = 0; row < spatial; ++row) {
          double sum = 0;
          for (std::size_t k = 0; k <= spatial; ++k)
            sum += static_cast<double>(widen(theta[row * (spatial + 1) + k])) * point[k];
          *out++ = convert<T>(sum);
        }
      }
    }
  }

  double coordinate(std::int64_t i, std::int64_t length) const {
    const auto at = static_cast<double>(i), n = static_cast<double>(length);
    if (align_corners_) return length > 1 ? 2 * at / (n - 1) - 1 : 0.0;
    return (2 * at + 1) / n - 1;
  }

  bool align_corners_;
};

}  // namespace

void register_grid_sample(kernel::OpRegistrar& r) {
  r.op("GridSample")
      .version(16, "X:T1, grid:T2 -> Y:T1; T1 = all, T2 = floats")
      .version(20, "X:T1, grid:T2 -> Y:T1; T1 = all, T2 = floats")
      .version(22, "X:T1, grid:T2 -> Y:T1; T1 = all_ir4, T2 = floats_bf16")
      .infer(infer_grid_sample)
      .kernel<GridSample>();
  r.op("GridSample", "com.microsoft")
      .version(1, "X:T1, Grid:T1 -> Y:T2; T1 = float, T2 = float")
      .infer(infer_grid_sample)
      .kernel<GridSample>();
  r.op("AffineGrid")
      .version(20, "theta:T1, size:int64 -> grid:T1; T1 = floats_bf16")
      .infer(infer_affine_grid)
      .kernel<AffineGrid>();
}

}  // namespace infernode::ops
