#include <algorithm>
#include <cmath>

#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/ml/ml_scores.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Tensor;
using tensor::TypeTag;

template <class F>
void dispatch_ml(DType type, const char* op, F&& f) {
  tensor::dispatch<float, double, std::int64_t, std::int32_t>(type, op, static_cast<F&&>(f));
}

/// The last dim's size and how many rows of it there are.
struct Rows {
  std::size_t count, width;
};
Rows rows_of(const Tensor& x, const char* op) {
  INFERNODE_CHECK(x.rank() > 0, ErrorCode::InvalidArgument, op, ": X is a scalar");
  const auto width = static_cast<std::size_t>(x.dim(x.rank() - 1));
  return {width == 0 ? 0 : static_cast<std::size_t>(x.numel()) / width, width};
}

class Scaler final : public Kernel {
 public:
  explicit Scaler(KernelInfo& info)
      : offset_(info.attributes().get_floats("offset")), scale_(info.attributes().get_floats("scale")) {
    INFERNODE_CHECK(!scale_.empty() && scale_.size() == offset_.size(), ErrorCode::InvalidModel, "scale has ",
                    scale_.size(), " elements and offset ", offset_.size());
  }
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const auto [rows, width] = rows_of(x, "Scaler");
    INFERNODE_CHECK(scale_.size() == 1 || scale_.size() == width || rows == 0, ErrorCode::InvalidArgument,
                    "Scaler: X has ", width, " columns, scale ", scale_.size());
    const Tensor out = ctx.output(0, DType::Float32, x.shape());
    const std::size_t step = scale_.size() == 1 ? 0 : 1;
    dispatch_ml(x.dtype(), "Scaler", [&, rows = rows, width = width]<class T>(TypeTag<T>) {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const T* from = x.data<T>();
      float* to = out.mutable_data<float>();
      ctx.parallel_for(rows, 0.5 * static_cast<double>(width), [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(ctx.run());
        for (std::size_t i = begin * width; i < end * width; i += width) {
          each_in_pieces(watch, width, 0.5, [&](std::size_t c) {
            const C offset = static_cast<C>(offset_[c * step]), scale = static_cast<C>(scale_[c * step]);
            to[i + c] = static_cast<float>((static_cast<C>(from[i + c]) - offset) * scale);
          });
        }
      });
    });
  }

 private:
  std::vector<float> offset_, scale_;
};

/// Divides rows by their greatest magnitude, the sum of their magnitudes or their length; rows of zeros stay.
class Normalizer final : public Kernel {
 public:
  explicit Normalizer(KernelInfo& info) {
    const std::string norm = info.attributes().get_string("norm", "MAX");
    constexpr std::string_view kNames[] = {"MAX", "L1", "L2"};
    const auto found = std::find(std::begin(kNames), std::end(kNames), norm);
    INFERNODE_CHECK(found != std::end(kNames), ErrorCode::InvalidModel, "norm '", norm, "' is not MAX, L1 or L2");
    norm_ = static_cast<Norm>(found - std::begin(kNames));
  }
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const auto [rows, width] = rows_of(x, "Normalizer");
    const Tensor out = ctx.output(0, DType::Float32, x.shape());
    dispatch_ml(x.dtype(), "Normalizer", [&, rows = rows, width = width]<class T>(TypeTag<T>) {
      const T* from = x.data<T>();
      float* to = out.mutable_data<float>();
      ctx.parallel_for(rows, static_cast<double>(width), [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(ctx.run());
        for (std::size_t i = begin * width; i < end * width; i += width) {
          double norm = 0;
          each_in_pieces(watch, width, 1.0, [&](std::size_t c) {
            const double v = std::abs(static_cast<double>(from[i + c]));
            norm = norm_ == Norm::Max ? (v > norm || std::isnan(v) ? v : norm) : norm + (norm_ == Norm::L1 ? v : v * v);
          });
          if (norm_ == Norm::L2) norm = std::sqrt(norm);
          if (norm == 0) norm = 1;
          each_in_pieces(watch, width, 1.0, [&](std::size_t c) {
            to[i + c] = static_cast<float>(static_cast<double>(from[i + c]) / norm);
          });
        }
      });
    });
  }

 private:
  enum class Norm : std::uint8_t { Max, L1, L2 } norm_ = Norm::Max;
};

class Binarizer final : public Kernel {
 public:
  explicit Binarizer(KernelInfo& info) : threshold_(info.attributes().get_float("threshold", 0.0f)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor out = ctx.output(0, x.shape());
    dispatch_ml(x.dtype(), "Binarizer", [&]<class T>(TypeTag<T>) {
      const T* from = x.data<T>();
      T* to = out.mutable_data<T>();
      const auto count = static_cast<std::size_t>(x.numel());
      ctx.parallel_for(count, 0.5, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
          to[i] = static_cast<T>(static_cast<double>(from[i]) > static_cast<double>(threshold_) ? 1 : 0);
        }
      });
    });
  }

 private:
  float threshold_;
};

/// Puts a column's value in the place of elements that equal the one to be replaced (NaN equals NaN).
class Imputer final : public Kernel {
 public:
  explicit Imputer(KernelInfo& info)
      : floats_(info.attributes().get_floats("imputed_value_floats")),
        ints_(info.attributes().get_ints("imputed_value_int64s")),
        replaced_float_(info.attributes().get_float("replaced_value_float", 0.0f)),
        replaced_int_(info.attributes().get_int("replaced_value_int64", 0)) {
    INFERNODE_CHECK(floats_.empty() != ints_.empty(), ErrorCode::InvalidModel,
                    "exactly one of imputed_value_floats and imputed_value_int64s must be given");
    const bool floating = tensor::is_floating(info.input_type(0).elem);
    INFERNODE_CHECK(floating == ints_.empty() || info.input_type(0).elem == DType::Undefined, ErrorCode::InvalidModel,
                    "the imputed values are not of the type of X");
  }
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const auto [rows, width] = rows_of(x, "Imputer");
    const std::size_t given = std::max(floats_.size(), ints_.size());
    INFERNODE_CHECK(given == 1 || given == width || rows == 0, ErrorCode::InvalidArgument, "Imputer: X has ", width,
                    " columns, but ", given, " values are given");
    const Tensor out = ctx.output(0, x.shape());
    dispatch_ml(x.dtype(), "Imputer", [&, width = width, rows = rows]<class T>(TypeTag<T>) {
      const bool from_floats = !floats_.empty();
      const T gone = from_floats ? as<T>(replaced_float_) : as<T>(replaced_int_);
      const T* from = x.data<T>();
      T* to = out.mutable_data<T>();
      ctx.parallel_for(rows, static_cast<double>(width), [&](std::size_t begin, std::size_t end, std::size_t) {
        kernel::Watch watch(ctx.run());
        for (std::size_t r = begin; r < end; ++r) {
          each_in_pieces(watch, width, 1.0, [&](std::size_t c) {
            const std::size_t at = r * width + c, v = given == 1 ? 0 : c;
            const T value = from[at];
            const bool replaced = value == gone || (value != value && gone != gone);
            to[at] = !replaced ? value : from_floats ? as<T>(floats_[v]) : as<T>(ints_[v]);
          });
        }
      });
    });
  }

 private:
  /// Floats only meet floating T, ints only integers (checked when built).
  template <class T, class V>
  static T as(V value) {
    if constexpr (std::is_floating_point_v<V> && !std::is_floating_point_v<T>) {
      return 0;
    } else {
      return static_cast<T>(value);
    }
  }

  std::vector<float> floats_;
  std::vector<std::int64_t> ints_;
  float replaced_float_;
  std::int64_t replaced_int_;
};

void infer_float_like_first(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Float32);
  if (const graph::SymShape* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

}  // namespace

void register_ml_scale(kernel::OpRegistrar& r) {
  r.op("Scaler", kMlDomain)
      .version(1, "X:T -> Y:float; T = float|double|int64|int32")
      .infer(infer_float_like_first)
      .kernel<Scaler>();
  r.op("Normalizer", kMlDomain)
      .version(1, "X:T -> Y:float; T = float|double|int64|int32")
      .infer(infer_float_like_first)
      .kernel<Normalizer>();
  r.op("Binarizer", kMlDomain)
      .version(1, "X:T -> Y:T; T = float|double|int64|int32")
      .infer(kernel::infer_same_as_first)
      .kernel<Binarizer>()
      .in_place(0, 0);
  r.op("Imputer", kMlDomain)
      .version(1, "X:T -> Y:T; T = float|double|int64|int32")
      .infer(kernel::infer_same_as_first)
      .kernel<Imputer>()
      .in_place(0, 0);
}

}  // namespace infernode::ops
