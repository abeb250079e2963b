// RoiAlign and MaxRoiPool: features of rectangular regions, pooled to one size.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernel/charge.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"

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

Dim dim_or_unknown(const SymShape* shape, std::size_t axis) {
  return shape && axis < shape->size() ? (*shape)[axis] : Dim::unknown();
}

void check_batch(std::int64_t index, std::int64_t batches, std::int64_t roi) {
  INFERNODE_CHECK(index >= 0 && index < batches, ErrorCode::InvalidArgument, "region ", roi, " names batch entry ",
                  index, ", which must be within [0, ", batches - 1, "]");
}

// ---- RoiAlign

void infer_roi_align(InferContext& ctx) {
  const SymShape *x = ctx.input_shape(0), *rois = ctx.input_shape(1), *batches = ctx.input_shape(2);
  const Dim count = rois && !rois->empty() ? (*rois)[0] : dim_or_unknown(batches, 0);
  ctx.set_output_shape(0, SymShape{count, dim_or_unknown(x, 1), ctx.attributes().get_int("output_height", 1),
                                   ctx.attributes().get_int("output_width", 1)});
}

/// A sample between four pixels. Weights are zero where it lies outside the image.
template <class C>
struct Sample {
  std::array<std::int64_t, 4> at{};
  std::array<C, 4> weight{};
};

template <class C>
Sample<C> bilinear(C y, C x, std::int64_t height, std::int64_t width) {
  Sample<C> out;
  if (!(y >= -1 && y <= static_cast<C>(height) && x >= -1 && x <= static_cast<C>(width))) return out;
  const auto settle = [](C v, std::int64_t length, std::int64_t& low, std::int64_t& high) {
    v = std::max<C>(v, 0);
    low = static_cast<std::int64_t>(v);
    if (low >= length - 1) {
      low = high = length - 1;
      return C{0};
    }
    high = low + 1;
    return v - static_cast<C>(low);
  };
  std::int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
  const C ly = settle(y, height, y0, y1), lx = settle(x, width, x0, x1);
  out.at = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  out.weight = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx};
  return out;
}

class RoiAlign : public Kernel {
 public:
  explicit RoiAlign(KernelInfo& info) {
    const graph::Attributes& a = info.attributes();
    const std::string mode = a.get_string("mode", "avg");
    INFERNODE_CHECK(mode == "avg" || mode == "max", ErrorCode::InvalidModel, "unknown mode '", mode,
                    "'; known are avg, max");
    average_ = mode == "avg";
    const std::string coordinates =
        a.get_string("coordinate_transformation_mode", info.since_version() < 16 ? "output_half_pixel" : "half_pixel");
    INFERNODE_CHECK(coordinates == "half_pixel" || coordinates == "output_half_pixel", ErrorCode::InvalidModel,
                    "unknown coordinate_transformation_mode '", coordinates, "'");
    half_pixel_ = coordinates == "half_pixel";
    height_ = a.get_int("output_height", 1);
    width_ = a.get_int("output_width", 1);
    sampling_ = a.get_int("sampling_ratio", 0);
    scale_ = a.get_float("spatial_scale", 1.0f);
    INFERNODE_CHECK(height_ > 0 && width_ > 0, ErrorCode::InvalidModel, "output size ", height_, " x ", width_,
                    " is not positive");
    INFERNODE_CHECK(sampling_ >= 0 && sampling_ <= kMostSamples, ErrorCode::InvalidModel, "sampling_ratio ", sampling_,
                    " is outside [0, ", kMostSamples, "]");
  }

  void run(KernelContext& ctx) const override {
    const Tensor &x = ctx.input(0), &rois = ctx.input(1);
    INFERNODE_CHECK(x.rank() == 4, ErrorCode::ShapeMismatch, "the input has rank ", x.rank(),
                    " instead of 4 [N, C, H, W]");
    INFERNODE_CHECK(rois.rank() == 2 && rois.dim(1) == 4, ErrorCode::ShapeMismatch, "rois has shape ",
                    rois.shape().dims(), " instead of [count, 4]");
    const kernel::Numbers<std::int64_t> batches(ctx.run(), ctx.input(2));
    INFERNODE_CHECK(static_cast<std::int64_t>(batches.size()) == rois.dim(0), ErrorCode::ShapeMismatch,
                    "batch_indices has ", batches.size(), " elements for ", rois.dim(0), " regions");
    for (std::size_t i = 0; i < batches.size(); ++i) check_batch(batches[i], x.dim(0), static_cast<std::int64_t>(i));
    const Tensor y = ctx.output(0, Shape{rois.dim(0), x.dim(1), height_, width_});
    if (y.numel() == 0) return;
    INFERNODE_CHECK(x.numel() > 0, ErrorCode::ShapeMismatch, "an input of shape ", x.shape().dims(),
                    " has nothing to sample");
    tensor::dispatch_floats(x.dtype(), "RoiAlign", [&]<class T>(TypeTag<T>) { align<T>(ctx, x, rois, batches, y); });
  }

 private:
  static constexpr std::int64_t kMostSamples = 4096;  ///< along one side of a bin; more means a nonsensical region

  template <class C>
  std::int64_t samples(C bin) const {
    if (sampling_ > 0) return sampling_;
    INFERNODE_CHECK(bin <= static_cast<C>(kMostSamples), ErrorCode::InvalidArgument, "a region has ",
                    static_cast<double>(bin), " pixels for each output pixel, more than ", kMostSamples);
    return bin > 0 ? static_cast<std::int64_t>(std::ceil(bin)) : 0;
  }

  template <class T>
  void align(KernelContext& ctx, const Tensor& x, const Tensor& rois, const kernel::Numbers<std::int64_t>& batches,
             const Tensor& y) const {
    using C = tensor::ComputeTypeOf<T>;
    const std::int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
    const double cost = static_cast<double>(channels * height_ * width_) * 20.0;
    ctx.parallel_for(batches.size(), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
      kernel::Watch watch(ctx.run());
      for (std::size_t r = begin; r < end; ++r) {
        const T* roi = rois.data<T>() + r * 4;
        const C scale = static_cast<C>(scale_), shift = half_pixel_ ? C{0.5} : C{0};
        const C x0 = widen(roi[0]) * scale - shift, y0 = widen(roi[1]) * scale - shift;
        C roi_w = widen(roi[2]) * scale - shift - x0, roi_h = widen(roi[3]) * scale - shift - y0;
        if (!half_pixel_) {
          roi_w = std::max<C>(roi_w, 1);
          roi_h = std::max<C>(roi_h, 1);
        }
        const C bin_h = roi_h / static_cast<C>(height_), bin_w = roi_w / static_cast<C>(width_);
        const std::int64_t grid_h = samples(bin_h), grid_w = samples(bin_w);
        const auto grid = static_cast<std::size_t>(grid_h * grid_w);
        const kernel::Charge charge(ctx.run(), grid * sizeof(Sample<C>));
        std::vector<Sample<C>> samples_of_bin;
        samples_of_bin.reserve(grid);
        const T* image = x.data<T>() + batches[r] * channels * height * width;
        T* out = y.mutable_data<T>() + static_cast<std::int64_t>(r) * channels * height_ * width_;
        for (std::int64_t ph = 0; ph < height_; ++ph) {
          for (std::int64_t pw = 0; pw < width_; ++pw) {
            samples_of_bin.clear();
            for (std::int64_t iy = 0; iy < grid_h; ++iy) {
              const C sy =
                  y0 + static_cast<C>(ph) * bin_h + (static_cast<C>(iy) + C{0.5}) * bin_h / static_cast<C>(grid_h);
              for (std::int64_t ix = 0; ix < grid_w; ++ix) {
                const C sx =
                    x0 + static_cast<C>(pw) * bin_w + (static_cast<C>(ix) + C{0.5}) * bin_w / static_cast<C>(grid_w);
                samples_of_bin.push_back(bilinear(sy, sx, height, width));
              }
            }
            watch.did(static_cast<double>(grid_h * grid_w) * 8);
            for (std::int64_t c = 0; c < channels; ++c) {
              watch.did(static_cast<double>(samples_of_bin.size()) * 5);
              out[(c * height_ + ph) * width_ + pw] =
                  convert<T>(pool<T, C>(image + c * height * width, samples_of_bin));
            }
          }
        }
      }
    });
  }

  /// The mean of the samples, or the greatest weighted pixel of any of them.
  template <class T, class C>
  C pool(const T* plane, const std::vector<Sample<C>>& samples) const {
    if (samples.empty()) return 0;
    C sum = 0, greatest = -std::numeric_limits<C>::infinity();
    for (const Sample<C>& s : samples) {
      for (std::size_t k = 0; k < 4; ++k) {
        const C v = s.weight[k] * widen(plane[s.at[k]]);
        sum += v;
        greatest = std::max(greatest, v);
      }
    }
    return average_ ? sum / static_cast<C>(samples.size()) : greatest;
  }

  bool average_ = true, half_pixel_ = true;
  std::int64_t height_ = 1, width_ = 1, sampling_ = 0;
  float scale_ = 1.0f;
};

// ---- MaxRoiPool

std::array<std::int64_t, 2> pooled_shape(const graph::Attributes& attributes) {
  const auto shape = attributes.get_ints("pooled_shape");
  INFERNODE_CHECK(shape.size() == 2 && shape[0] > 0 && shape[1] > 0, ErrorCode::InvalidModel, "pooled_shape ", shape,
                  " must be [height, width]");
  return {shape[0], shape[1]};
}

void infer_max_roi_pool(InferContext& ctx) {
  const auto [h, w] = pooled_shape(ctx.attributes());
  ctx.set_output_shape(0, SymShape{dim_or_unknown(ctx.input_shape(1), 0), dim_or_unknown(ctx.input_shape(0), 1), h, w});
}

class MaxRoiPool : public Kernel {
 public:
  explicit MaxRoiPool(KernelInfo& info)
      : pooled_(pooled_shape(info.attributes())), scale_(info.attributes().get_float("spatial_scale", 1.0f)) {}

  void run(KernelContext& ctx) const override {
    const Tensor &x = ctx.input(0), &rois = ctx.input(1);
    INFERNODE_CHECK(x.rank() == 4, ErrorCode::ShapeMismatch, "the input has rank ", x.rank(),
                    " instead of 4 [N, C, H, W]");
    INFERNODE_CHECK(rois.rank() == 2 && rois.dim(1) == 5, ErrorCode::ShapeMismatch, "rois has shape ",
                    rois.shape().dims(), " instead of [count, 5]");
    const Tensor y = ctx.output(0, Shape{rois.dim(0), x.dim(1), pooled_[0], pooled_[1]});
    tensor::dispatch_floats(x.dtype(), "MaxRoiPool", [&]<class T>(TypeTag<T>) { pool<T>(ctx, x, rois, y); });
  }

 private:
  /// Where bin i of `bins` begins and ends in an axis of `length`, for a region from `start` of `size` pixels.
  static std::array<std::int64_t, 2> bin(std::int64_t i, std::int64_t bins, double start, double size,
                                         std::int64_t length) {
    const double step = size / static_cast<double>(bins), end = static_cast<double>(length);
    return {static_cast<std::int64_t>(std::clamp(std::floor(static_cast<double>(i) * step) + start, 0.0, end)),
            static_cast<std::int64_t>(std::clamp(std::ceil(static_cast<double>(i + 1) * step) + start, 0.0, end))};
  }

  template <class T>
  void pool(KernelContext& ctx, const Tensor& x, const Tensor& rois, const Tensor& y) const {
    using C = tensor::ComputeTypeOf<T>;
    constexpr std::int64_t kPiece = 1 << 16;  // pixels between two looks
    const std::int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
    T* out = y.mutable_data<T>();
    kernel::Watch watch(ctx.run());
    for (std::int64_t r = 0; r < rois.dim(0); ++r) {
      std::array<double, 5> roi;
      for (std::size_t k = 0; k < 5; ++k) {
        const auto v = static_cast<double>(widen(rois.data<T>()[r * 5 + static_cast<std::int64_t>(k)]));
        INFERNODE_CHECK(std::isfinite(v), ErrorCode::InvalidArgument, "region ", r,
                        " has a coordinate that is not finite");
        roi[k] = k == 0 ? v : std::round(v * static_cast<double>(scale_));
      }
      const auto batch = convert<std::int64_t>(roi[0]);
      check_batch(batch, x.dim(0), r);
      const double roi_w = std::max(roi[3] - roi[1] + 1, 1.0), roi_h = std::max(roi[4] - roi[2] + 1, 1.0);
      const T* plane = x.data<T>() + batch * channels * height * width;
      for (std::int64_t c = 0; c < channels; ++c, plane += height * width) {
        for (std::int64_t ph = 0; ph < pooled_[0]; ++ph) {
          const auto [h0, h1] = bin(ph, pooled_[0], roi[2], roi_h, height);
          for (std::int64_t pw = 0; pw < pooled_[1]; ++pw) {
            const auto [w0, w1] = bin(pw, pooled_[1], roi[1], roi_w, width);
            const bool empty = h1 <= h0 || w1 <= w0;
            C greatest = empty ? C{0} : -std::numeric_limits<C>::infinity();
            for (std::int64_t h = h0; h < h1; ++h) {
              for (std::int64_t w = w0; w < w1; w += kPiece) {
                const std::int64_t end = std::min(w + kPiece, w1);
                for (std::int64_t i = w; i < end; ++i)
                  greatest = maximum(greatest, static_cast<C>(widen(plane[h * width + i])));
                watch.did(static_cast<double>(end - w));
              }
            }
            *out++ = convert<T>(greatest);
            watch.did(5);
          }
        }
      }
    }
  }

  std::array<std::int64_t, 2> pooled_;
  float scale_;
};

}  // namespace

void register_roi(kernel::OpRegistrar& r) {
  r.op("RoiAlign")
      .version(10, "X:T1, rois:T1, batch_indices:int64 -> Y:T1; T1 = floats")
      .version(16, "X:T1, rois:T1, batch_indices:int64 -> Y:T1; T1 = floats")
      .version(22, "X:T1, rois:T1, batch_indices:int64 -> Y:T1; T1 = floats_bf16")
      .infer(infer_roi_align)
      .kernel<RoiAlign>();
  r.op("MaxRoiPool")
      .version(1, "X:T, rois:T -> Y:T; T = floats")
      .version(22, "X:T, rois:T -> Y:T; T = floats_bf16")
      .infer(infer_max_roi_pool)
      .kernel<MaxRoiPool>();
}

}  // namespace infernode::ops
