// Resize and its forerunner Upsample.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "kernel/counted.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/mapped_copy.h"
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
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

enum class Mode : std::uint8_t { Nearest, Linear, Cubic };
enum class Aspect : std::uint8_t { Stretch, NotLarger, NotSmaller };

/// Where this version of the operator finds its arguments.
struct Layout {
  bool upsample = false;
  std::int64_t version = 1;
  std::size_t roi = kNoInput, scales = kNoInput, sizes = kNoInput;

  Layout(std::string_view op, std::int64_t since) : upsample(op == "Upsample"), version(since) {
    if (upsample) {
      if (version >= 9) scales = 1;
    } else if (version < 11) {
      scales = 1;
    } else {
      roi = 1;
      scales = 2;
      sizes = 3;
    }
  }
};

/// Scales in attributes: Upsample before version 9. Empty where there are none.
std::vector<float> scales_attribute(const graph::Attributes& attributes, const Layout& layout) {
  if (!layout.upsample || layout.version >= 9) return {};
  if (layout.version >= 7) return attributes.get_floats("scales");
  return {1.0f, 1.0f, attributes.get_float("height_scale"), attributes.get_float("width_scale")};
}

Aspect parse_aspect(std::string_view name) {
  if (name == "stretch") return Aspect::Stretch;
  if (name == "not_larger") return Aspect::NotLarger;
  if (name == "not_smaller") return Aspect::NotSmaller;
  fail(ErrorCode::InvalidModel, cat("unknown keep_aspect_ratio_policy '", name, "'"));
}

/// The axes that scales and sizes speak of.
Ints resized_axes(const graph::Attributes& attributes, std::size_t rank) {
  if (attributes.has("axes")) return normalize_axes(attributes.get_ints("axes"), rank);
  Ints out;
  for (std::size_t i = 0; i < rank; ++i) out.push_back(static_cast<std::int64_t>(i));
  return out;
}

void check_count(std::size_t given, std::size_t axes, const char* what) {
  INFERNODE_CHECK(given == axes, ErrorCode::InvalidArgument, what, " has ", given, " elements for ", axes, " axes");
}

/// Length of an axis of which the part `cropped` is resized.
std::int64_t scaled(std::int64_t dim, float scale, float cropped) {
  INFERNODE_CHECK(scale > 0 && std::isfinite(scale), ErrorCode::InvalidArgument, "scale ", scale, " is not positive");
  INFERNODE_CHECK(cropped >= 0 && std::isfinite(cropped), ErrorCode::InvalidArgument, "roi spans ", cropped,
                  " of an axis that is scaled");
  const float out = std::floor(static_cast<float>(dim) * cropped * scale);
  INFERNODE_CHECK(out < 0x1p62f, ErrorCode::InvalidArgument, "scale ", scale, " makes an axis of ", dim, " too long");
  return static_cast<std::int64_t>(out);
}

/// Sizes and scales of the axes for a wish for sizes.
void fit_sizes(std::vector<ResizedAxis>& all, const Ints& axes, std::span<const std::int64_t> sizes, Aspect aspect) {
  float common = aspect == Aspect::NotLarger ? std::numeric_limits<float>::infinity() : 0.0f;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis& axis = all[static_cast<std::size_t>(axes[i])];
    INFERNODE_CHECK(sizes[i] >= 0, ErrorCode::InvalidArgument, "sizes ", sizes, " has a negative element");
    axis.out = sizes[i];
    axis.scale = axis.in == 0 ? 1.0f : static_cast<float>(sizes[i]) / static_cast<float>(axis.in);
    common = aspect == Aspect::NotLarger ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  if (aspect == Aspect::Stretch) {
    for (std::int64_t a : axes) all[static_cast<std::size_t>(a)].exact = true;
    return;
  }
  for (std::int64_t a : axes) {
    ResizedAxis& axis = all[static_cast<std::size_t>(a)];
    axis.scale = common;
    axis.out = static_cast<std::int64_t>(std::floor(common * static_cast<float>(axis.in) + 0.5f));
  }
}

/// Whether the axes are cropped to the input roi before they are scaled.
bool crops_first(const graph::Attributes& attributes, const Layout& layout) {
  return layout.roi != kNoInput && attributes.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
}

/// The part of each axis that roi spans.
std::vector<float> spans_of(const Tensor& roi, std::size_t axes) {
  const std::vector<float> ends = tensor::to_float_vector(roi);
  check_count(ends.size(), 2 * axes, "roi");
  std::vector<float> spans(axes);
  for (std::size_t i = 0; i < axes; ++i) spans[i] = ends[i + axes] - ends[i];
  return spans;
}

void infer_resize(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return;
  const Layout layout(ctx.node().op_type, ctx.since_version());
  const Ints axes = resized_axes(ctx.attributes(), in->size());
  SymShape out = *in;
  std::vector<float> scales = scales_attribute(ctx.attributes(), layout);
  const Tensor* constant = ctx.has_input(layout.scales) ? ctx.input_constant(layout.scales) : nullptr;
  if (constant) scales = tensor::to_float_vector(*constant);
  if (!scales.empty()) {
    check_count(scales.size(), axes.size(), "scales");
    const bool crops = crops_first(ctx.attributes(), layout);
    const Tensor* roi = crops && ctx.has_input(layout.roi) ? ctx.input_constant(layout.roi) : nullptr;
    const std::vector<float> spans = roi ? spans_of(*roi, axes.size()) : std::vector<float>(axes.size(), 1.0f);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Dim& dim = out[static_cast<std::size_t>(axes[i])];
      if (crops && !roi) {
        dim = Dim::unknown();
      } else if (dim.known()) {
        dim = scaled(dim.value(), scales[i], spans[i]);
      } else if (spans[i] != 1.0f) {
        dim = Dim::unknown();
      } else if (scales[i] != 1.0f) {
        const bool whole = scales[i] >= 1 && scales[i] < 0x1p20f && scales[i] == std::floor(scales[i]);
        dim = whole ? dim * static_cast<std::int64_t>(scales[i]) : Dim::unknown();
      }
    }
    return ctx.set_output_shape(0, std::move(out));
  }
  const auto sizes = ctx.has_input(layout.sizes) ? ctx.input_contents(layout.sizes) : std::nullopt;
  if (sizes) check_count(sizes->size(), axes.size(), "sizes");
  const Aspect aspect = parse_aspect(ctx.attributes().get_string("keep_aspect_ratio_policy", "stretch"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    out[static_cast<std::size_t>(axes[i])] = sizes && aspect == Aspect::Stretch ? (*sizes)[i] : Dim::unknown();
  }
  const auto known = graph::to_known(*in);
  if (sizes && known && aspect != Aspect::Stretch) {
    Ints wish;
    for (const Dim& d : *sizes) {
      if (d.known()) wish.push_back(d.value());
    }
    if (wish.size() == axes.size()) {
      std::vector<ResizedAxis> all(known->rank());
      for (std::size_t i = 0; i < all.size(); ++i) all[i].in = all[i].out = (*known)[i];
      fit_sizes(all, axes, wish.span(), aspect);
      for (std::size_t i = 0; i < all.size(); ++i) out[i] = all[i].out;
    }
  }
  ctx.set_output_shape(0, std::move(out));
}

// ---- one axis at a time

/// [outer, in, inner] -> [outer, out, inner]
template <class From, class Acc>
void resample(const kernel::RunContext& run, const Taps<Acc>& taps, std::int64_t outer, std::int64_t in,
              std::int64_t out, std::int64_t inner, const From* x, Acc* y) {
  const std::size_t count = taps.count;
  constexpr std::int64_t kPiece = 1 << 14;  // of a row
  const std::int64_t pieces = ceil_div(out, kPiece);
  const auto rows = [&](std::size_t begin, std::size_t end, std::size_t) {
    kernel::Watch watch(run);
    if (inner == 1) {
      for (auto p = static_cast<std::int64_t>(begin); p < static_cast<std::int64_t>(end); ++p) {
        const std::int64_t o = p / pieces, first = p % pieces * kPiece, last = std::min(first + kPiece, out);
        const From* row = x + o * in;
        Acc* to = y + o * out;
        const std::int64_t* index = taps.index.data() + static_cast<std::size_t>(first) * count;
        const Acc* weight = taps.weight.data() + static_cast<std::size_t>(first) * count;
        if (count == 2) {
          for (std::int64_t i = first; i < last; ++i, index += 2, weight += 2) {
            to[i] = weight[0] * static_cast<Acc>(row[index[0]]) + weight[1] * static_cast<Acc>(row[index[1]]);
          }
          continue;
        }
        for (std::int64_t i = first; i < last; ++i, index += count, weight += count) {
          const auto term = [&](std::size_t k) { return weight[k] * static_cast<Acc>(row[index[k]]); };
          if (count > kernel::kPiece) {
            to[i] = kernel::sum_in_pieces<Acc>(watch, count, 1.0, term);
            continue;
          }
          Acc sum = 0;
          for (std::size_t k = 0; k < count; ++k) sum += term(k);
          to[i] = sum;
          watch.did(static_cast<double>(count));
        }
      }
      return;
    }
    for (auto r = static_cast<std::int64_t>(begin); r < static_cast<std::int64_t>(end); ++r) {
      const std::int64_t o = r / out, i = r % out;
      Acc* to = y + r * inner;
      const std::int64_t* index = &taps.index[static_cast<std::size_t>(i) * count];
      const Acc* weights = &taps.weight[static_cast<std::size_t>(i) * count];
      if (count == 2) {
        const From *a = x + (o * in + index[0]) * inner, *b = x + (o * in + index[1]) * inner;
        kernel::each_in_pieces(watch, static_cast<std::size_t>(inner), 0.5, [&](std::size_t c) {
          to[c] = weights[0] * static_cast<Acc>(a[c]) + weights[1] * static_cast<Acc>(b[c]);
        });
        continue;
      }
      for (std::size_t k = 0; k < count; ++k) {
        const Acc weight = weights[k];
        const From* from = x + (o * in + index[k]) * inner;
        const auto each = [&](auto&& f) { kernel::each_in_pieces(watch, static_cast<std::size_t>(inner), 0.5, f); };
        if (k == 0) {
          each([&](std::size_t c) { to[c] = weight * static_cast<Acc>(from[c]); });
        } else {
          each([&](std::size_t c) { to[c] += weight * static_cast<Acc>(from[c]); });
        }
      }
    }
  };
  const auto n = static_cast<std::size_t>(inner == 1 ? outer * pieces : outer * out);
  const double cost = static_cast<double>(count) * (inner == 1 ? 1.0 * static_cast<double>(std::min(out, kPiece))
                                                               : 0.2 * static_cast<double>(inner));
  run.parallel_for(n, cost, rows);
}

template <class Acc>
struct Pass {
  std::int64_t outer, in, out, inner;  ///< within one unit
  Taps<Acc> taps;
};

/// How sums become integers: rounded, or cut to whole numbers, and those that fall short of one by no more than `slack`
/// are it.
struct WholeNumbers {
  bool rounded;
  double slack;
  double operator()(double sum) const { return rounded ? std::nearbyint(sum) : sum + std::copysign(slack, sum); }
};

/// By how much a sum of integers may be off for the rounding of places, of which each axis adds its own.
template <class T>
double rounding_of(const std::vector<ResizedAxis>& axes) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double kMost = 1e-6;  // where elements are large, it would change what is right
    double places = 0;
    for (const ResizedAxis& axis : axes) places += static_cast<double>(axis.in);
    return std::min(kMost, places * 0x1p-50 * static_cast<double>(std::numeric_limits<T>::max()));
  } else {
    return 0;
  }
}

/// Runs all passes over one unit. Scratch holds the results between them, twice the largest.
template <class T, class Acc>
void resample_unit(const kernel::RunContext& run, const std::vector<Pass<Acc>>& passes, const T* x, T* y, Acc* scratch,
                   std::int64_t half, [[maybe_unused]] const WholeNumbers& whole) {
  const Acc* from = nullptr;
  for (std::size_t p = 0; p < passes.size(); ++p) {
    const Pass<Acc>& pass = passes[p];
    Acc* to = scratch + (p % 2 == 0 ? 0 : half);
    if constexpr (std::is_same_v<T, Acc>) {
      if (p + 1 == passes.size()) to = y;
    }
    if (p == 0) {
      resample(run, pass.taps, pass.outer, pass.in, pass.out, pass.inner, x, to);
    } else {
      resample(run, pass.taps, pass.outer, pass.in, pass.out, pass.inner, from, to);
    }
    from = to;
  }
  if constexpr (!std::is_same_v<T, Acc>) {
    const Pass<Acc>& last = passes.back();
    const std::int64_t n = last.outer * last.out * last.inner;
    run.parallel_for(static_cast<std::size_t>(n), 1.0, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        if constexpr (std::is_integral_v<T>) {
          y[i] = convert<T>(whole(from[i]));
        } else {
          y[i] = convert<T>(from[i]);
        }
      }
    });
  }
}

/// Axes that shrink, outermost first, then axes that grow, innermost first: so each pass, and above all the one along
/// rows, which does not vectorize, has the fewest elements to compute.
std::vector<std::size_t> pass_order(const std::vector<ResizedAxis>& axes, std::size_t first) {
  std::vector<std::size_t> order;
  for (std::size_t a = first; a < axes.size(); ++a) {
    if (!axes[a].identity() && axes[a].out < axes[a].in) order.push_back(a);
  }
  for (std::size_t a = axes.size(); a-- > first;) {
    if (!axes[a].identity() && axes[a].out >= axes[a].in) order.push_back(a);
  }
  return order;
}

/// Resizes by weighted sums, one axis at a time.
template <class T>
void interpolate(KernelContext& ctx, const Tensor& in, const Tensor& out, const std::vector<ResizedAxis>& axes,
                 TapOptions options, float extrapolation) {
  // Integers are summed in double, so that weights of 1 - r and r of equal elements give that element.
  using Acc = std::conditional_t<std::is_same_v<T, float> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>,
                                 float, double>;
  // Filtered integers are rounded, as the standard's reference does, others are cut, as the peer does.
  const WholeNumbers whole{options.antialias || options.cubic_a, rounding_of<T>(axes)};
  options.exact = std::is_integral_v<T> && !whole.rounded;
  std::size_t first = 0;
  while (first < axes.size() && axes[first].identity()) ++first;
  if (first == axes.size()) return copy_all(ctx.run(), in, out);
  std::vector<Pass<Acc>> passes;
  Shape dims = in.shape();
  std::int64_t half = 0;
  std::vector<kernel::CountedVector<std::int64_t>> outside(axes.size(), kernel::CountedVector<std::int64_t>(ctx.run()));
  kernel::Watch watch(ctx.run());
  for (const std::size_t a : pass_order(axes, first)) {
    Taps<Acc> taps = make_taps<Acc>(ctx.run(), axes[a], options);
    const bool may_leave = axes[a].coordinates == Coordinates::TfCropAndResize;
    for (std::int64_t i = 0; may_leave && i < axes[a].out; ++i) {
      if (axes[a].outside(axes[a].source(i))) outside[a].push_back(i);
      watch.did(5);
    }
    dims[a] = axes[a].out;
    passes.push_back({dims.numel(first, a), axes[a].in, axes[a].out, dims.numel(a + 1, dims.rank()), std::move(taps)});
    half = std::max(half, dims.numel(first, dims.rank()));
  }
  const std::int64_t units = dims.numel(0, first);
  const std::int64_t in_size = in.shape().numel(first, in.rank()), out_size = dims.numel(first, dims.rank());
  const T* x = in.data<T>();
  T* y = out.mutable_data<T>();
  const bool needs_scratch = passes.size() > 1 || !std::is_same_v<T, Acc>;
  const auto scratch_size = static_cast<std::size_t>(needs_scratch ? 2 * half : 0);
  if (units > 1) {
    const double cost = 2.0 * static_cast<double>(half);
    ctx.parallel_for(static_cast<std::size_t>(units), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
      const tensor::Buffer memory = ctx.scratch(checked_mul(scratch_size, sizeof(Acc)));
      auto* const scratch = reinterpret_cast<Acc*>(memory.data());
      for (auto u = static_cast<std::int64_t>(begin); u < static_cast<std::int64_t>(end); ++u) {
        resample_unit<T, Acc>(ctx.run(), passes, x + u * in_size, y + u * out_size, scratch, half, whole);
      }
    });
  } else {
    const tensor::Buffer memory = ctx.scratch(checked_mul(scratch_size, sizeof(Acc)));
    resample_unit<T, Acc>(ctx.run(), passes, x, y, reinterpret_cast<Acc*>(memory.data()), half, whole);
  }
  Mover mover(ctx.run());
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::int64_t inner = dims.numel(a + 1, dims.rank()), outer = dims.numel(0, a);
    for (std::int64_t o = 0; o < outer && !outside[a].empty(); ++o) {
      for (const std::int64_t i : outside[a])
        mover.fill(y + (o * dims[a] + i) * inner, inner, convert<T>(extrapolation));
    }
  }
}

// ---- kernel

class Resize : public Kernel {
 public:
  explicit Resize(KernelInfo& info)
      : layout_(info.node().op_type, info.since_version()),
        fixed_scales_(scales_attribute(info.attributes(), layout_)) {
    const graph::Attributes& attributes = info.attributes();
    const std::string mode = attributes.get_string("mode", "nearest");
    if (mode == "nearest")
      mode_ = Mode::Nearest;
    else if (mode == "linear" || mode == "bilinear" || mode == "trilinear")
      mode_ = Mode::Linear;
    else if (mode == "cubic")
      mode_ = Mode::Cubic;
    else
      fail(ErrorCode::InvalidModel, cat("unknown mode '", mode, "'; known are nearest, linear, cubic"));
    // Before version 11 places were x / scale, and nearest meant floor, or
    // ceil on axes that shrink.
    early_ = layout_.upsample || layout_.version < 11;
    coordinates_ = early_ ? Coordinates::Asymmetric
                          : parse_coordinates(attributes.get_string("coordinate_transformation_mode", "half_pixel"));
    rounding_ = early_ ? Rounding::Floor : parse_rounding(attributes.get_string("nearest_mode", "round_prefer_floor"));
    options_.antialias = attributes.get_int("antialias", 0) != 0;
    options_.exclude_outside = attributes.get_int("exclude_outside", 0) != 0;
    if (mode_ == Mode::Cubic) options_.cubic_a = attributes.get_float("cubic_coeff_a", -0.75f);
    INFERNODE_CHECK(!options_.antialias || mode_ != Mode::Nearest, ErrorCode::InvalidModel,
                    "antialias goes with linear and cubic modes only");
    extrapolation_ = attributes.get_float("extrapolation_value", 0.0f);
    aspect_ = parse_aspect(attributes.get_string("keep_aspect_ratio_policy", "stretch"));
    has_axes_ = attributes.has("axes");
    axes_ = attributes.get_ints("axes");
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const std::vector<ResizedAxis> axes = resolve(ctx, in.shape());
    Shape dims;
    for (const ResizedAxis& axis : axes) dims.push_back(axis.out);
    const Tensor out = ctx.output(0, dims);
    if (out.numel() == 0) return;
    INFERNODE_CHECK(in.numel() > 0, ErrorCode::InvalidArgument, "an input of shape ", in.shape().dims(),
                    " has nothing to enlarge");
    if (mode_ == Mode::Nearest) return nearest(ctx, in, out, axes);
    tensor::dispatch_numeric(in.dtype(), "interpolation", [&]<class T>(TypeTag<T>) {
      interpolate<T>(ctx, in, out, axes, options_, extrapolation_);
    });
  }

 private:
  std::vector<ResizedAxis> resolve(const KernelContext& ctx, const Shape& in) const {
    Ints axes;
    if (has_axes_) {
      axes = normalize_axes(axes_, in.rank());
    } else {
      for (std::size_t i = 0; i < in.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    }
    std::vector<ResizedAxis> all(in.rank());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].in = all[i].out = in[i];
    std::vector<float> scales = fixed_scales_;
    if (const Tensor* given = ctx.optional_input(layout_.scales); given && given->numel() > 0)
      scales = tensor::to_float_vector(*given);
    for (std::int64_t a : axes) all[static_cast<std::size_t>(a)].coordinates = coordinates_;
    if (coordinates_ == Coordinates::TfCropAndResize) read_roi(ctx, all, axes);
    const Tensor* sizes = ctx.optional_input(layout_.sizes);
    if (!scales.empty()) {
      check_count(scales.size(), axes.size(), "scales");
      for (std::size_t i = 0; i < axes.size(); ++i) {
        ResizedAxis& axis = all[static_cast<std::size_t>(axes[i])];
        axis.scale = scales[i];
        axis.cropped = axis.roi_end - axis.roi_begin;
        axis.out = scaled(axis.in, scales[i], axis.cropped);
      }
    } else {
      INFERNODE_CHECK(sizes && (sizes->numel() > 0 || axes.empty()), ErrorCode::InvalidArgument,
                      "neither scales nor sizes are given");
      const Ints wish = read_ints(*sizes);
      check_count(wish.size(), axes.size(), "sizes");
      fit_sizes(all, axes, wish.span(), aspect_);
    }
    return all;
  }

  void read_roi(const KernelContext& ctx, std::vector<ResizedAxis>& all, const Ints& axes) const {
    const Tensor* given = ctx.optional_input(layout_.roi);
    INFERNODE_CHECK(given, ErrorCode::InvalidArgument, "tf_crop_and_resize needs the input roi");
    const std::vector<float> roi = tensor::to_float_vector(*given);
    check_count(roi.size(), 2 * axes.size(), "roi");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      ResizedAxis& axis = all[static_cast<std::size_t>(axes[i])];
      axis.roi_begin = roi[i];
      axis.roi_end = roi[i + axes.size()];
    }
  }

  void nearest(KernelContext& ctx, const Tensor& in, const Tensor& out, const std::vector<ResizedAxis>& axes) const {
    std::vector<kernel::Scratch<std::int64_t>> held;
    AxisMaps maps;
    for (const ResizedAxis& axis : axes) {
      held.push_back(nearest_map(ctx.run(), axis, early_ && axis.scale < 1.0f ? Rounding::Ceil : rounding_));
      maps.emplace_back(held.back());
    }
    dispatch_elements(in.dtype(), "Resize", [&]<class T>(TypeTag<T>) {
      mapped_copy<T>(ctx.run(), in, out, maps, extrapolation<T>(in.dtype()));
    });
  }

  /// The extrapolation value in the bytes of an element.
  template <class T>
  T extrapolation(DType dtype) const {
    T out{};
    if (extrapolation_ == 0.0f) return out;
    tensor::dispatch_numeric(dtype, "extrapolation_value", [&]<class N>(TypeTag<N>) {
      if constexpr (sizeof(N) == sizeof(T) && std::is_trivially_copyable_v<T>)
        out = std::bit_cast<T>(convert<N>(extrapolation_));
    });
    return out;
  }

  Layout layout_;
  std::vector<float> fixed_scales_;
  Mode mode_ = Mode::Nearest;
  bool early_ = false;
  Coordinates coordinates_ = Coordinates::HalfPixel;
  Rounding rounding_ = Rounding::PreferFloor;
  TapOptions options_;
  float extrapolation_ = 0.0f;
  Aspect aspect_ = Aspect::Stretch;
  bool has_axes_ = false;
  std::vector<std::int64_t> axes_;
};

}  // namespace

void register_resize(kernel::OpRegistrar& r) {
  r.op("Resize")
      .version(10, "X:T, scales:float -> Y:T; T = all")
      .version(11, "X:T1, roi:T2, scales:float, sizes:int64? -> Y:T1; T1 = all, T2 = floats")
      .version(13, "X:T1, roi:T2?, scales:float?, sizes:int64? -> Y:T1; T1 = all_ir4, T2 = floats")
      .version(18, "X:T1, roi:T2?, scales:float?, sizes:int64? -> Y:T1; T1 = all_ir4, T2 = floats")
      .version(19, "X:T1, roi:T2?, scales:float?, sizes:int64? -> Y:T1; T1 = all_ir4, T2 = floats")
      .infer(infer_resize)
      .kernel<Resize>();
  r.op("Upsample")
      .version(1, "X:T -> Y:T; T = floats|int32|int64|bool")
      .version(7, "X:T -> Y:T; T = all")
      .version(9, "X:T, scales:float -> Y:T; T = all")
      .infer(infer_resize)
      .kernel<Resize>()
      .deprecated(10);
}

}  // namespace infernode::ops
