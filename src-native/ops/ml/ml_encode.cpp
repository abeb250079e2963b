#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/label_map.h"
#include "ops/common/strided_copy.h"
#include "ops/ml/ml_scores.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// 0, 1, ... as int64s.
Tensor counting(std::size_t count) {
  const Tensor out = Tensor::make(DType::Int64, Shape{static_cast<std::int64_t>(count)});
  for (std::size_t i = 0; i < count; ++i) out.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(i);
  return out;
}

/// LabelEncoder and CategoryMapper: keys to values of the same place.
class LabelMap : public Kernel {
 public:
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    INFERNODE_CHECK(x.dtype() == keys_.dtype(), ErrorCode::InvalidArgument, "X is of ", tensor::name(x.dtype()),
                    ", the keys are of ", tensor::name(keys_.dtype()));
    map_labels(keys_, x, values_, default_, ctx.output(0, values_.dtype(), x.shape()), ctx.run());
  }

 protected:
  LabelMap(const Tensor& keys, Tensor values, Tensor fallback)
      : keys_(keys), values_(std::move(values)), default_(std::move(fallback)) {
    INFERNODE_CHECK(keys.numel() == values_.numel(), ErrorCode::InvalidModel, "there are ", keys.numel(), " keys and ",
                    values_.numel(), " values");
  }

 private:
  KeyIndex keys_;
  Tensor values_, default_;
};

/// Versions 2 and 4.
class LabelEncoder final : public LabelMap {
 public:
  explicit LabelEncoder(KernelInfo& info) : LabelEncoder(info.attributes(), label_list(info.attributes(), "values")) {}

 private:
  LabelEncoder(const Attributes& attributes, const Tensor& values)
      : LabelMap(label_list(attributes, "keys"), values, label_default(attributes, values.dtype())) {}
};

/// Strings to numbers where X holds strings, back otherwise; `numbers` stand at the places of `strings`.
class TwoWayMap final : public LabelMap {
 public:
  static Tensor numbers(const KernelInfo& info, const Tensor& strings) {
    if (info.node().op_type == "CategoryMapper") return list_tensor(info.attributes().get_ints("cats_int64s"));
    return counting(static_cast<std::size_t>(strings.numel()));
  }
  explicit TwoWayMap(KernelInfo& info)
      : TwoWayMap(info, list_tensor(info.attributes().get_strings(
                            info.node().op_type == "CategoryMapper" ? "cats_strings" : "classes_strings"))) {}

 private:
  TwoWayMap(KernelInfo& info, const Tensor& strings)
      : TwoWayMap(info, strings, numbers(info, strings), info.input_type(0).elem == DType::String) {}
  TwoWayMap(KernelInfo& info, const Tensor& strings, const Tensor& numbers, bool forth)
      : LabelMap(forth ? strings : numbers, forth ? numbers : strings,
                 label_default(info.attributes(), forth ? DType::Int64 : DType::String)) {}
};

class OneHotEncoder final : public Kernel {
 public:
  explicit OneHotEncoder(KernelInfo& info)
      : zeros_(info.attributes().get_int("zeros", 1) != 0), categories_(categories(info.attributes())) {
    const bool strings = info.input_type(0).elem == DType::String;
    keys_ = KeyIndex(strings || !tensor::is_floating(info.input_type(0).elem) ? categories_ : whole(categories_), true);
    INFERNODE_CHECK(strings == (categories_.dtype() == DType::String) || info.input_type(0).elem == DType::Undefined,
                    ErrorCode::InvalidModel, "the categories are of ", tensor::name(categories_.dtype()), ", X is of ",
                    tensor::name(info.input_type(0).elem));
  }

  static Tensor categories(const Attributes& attributes) {
    const auto ints = attributes.get_ints("cats_int64s");
    const auto strings = attributes.get_strings("cats_strings");
    INFERNODE_CHECK(ints.empty() != strings.empty(), ErrorCode::InvalidModel,
                    "exactly one of cats_int64s and cats_strings must be given");
    return ints.empty() ? list_tensor(strings) : list_tensor(ints);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    Shape shape = x.shape();
    const std::int64_t width = categories_.numel();
    shape.push_back(width);
    const Tensor out = ctx.output(0, DType::Float32, shape);
    float* const y = out.mutable_data<float>();
    fill_bytes(ctx.run(), out);
    const auto mark = [&](std::size_t i, std::int64_t at) {
      INFERNODE_CHECK(at >= 0 || zeros_, ErrorCode::InvalidArgument, "OneHotEncoder: element ", i,
                      " of X is none of the categories, and zeros is 0");
      if (at >= 0) y[static_cast<std::int64_t>(i) * width + at] = 1.0f;
    };
    keys_.look_up(
        tensor::is_floating(x.dtype()) ? whole(x, ctx.run()) : x, [&] { ctx.run().check(); }, mark);
  }

 private:
  /// As doubles, fractions cut off.
  static Tensor whole(const Tensor& x, const kernel::RunContext& run = {}) {
    if (x.dtype() == DType::String) return x;
    const Tensor out = Tensor::make(DType::Float64, x.shape());
    const std::span<double> reals = out.mutable_span<double>();
    kernel::Watch watch(run);
    in_pieces(watch, reals.size(), 2.0, [&](std::size_t begin, std::size_t end) {
      read_reals(x, begin, end - begin, reals.data() + begin);
      for (double& real : reals.subspan(begin, end - begin)) real = std::trunc(real);
    });
    return out;
  }

  bool zeros_;
  Tensor categories_;
  KeyIndex keys_;
};

void infer_like_x(InferContext& ctx, DType dtype) {
  ctx.set_output_dtype(0, dtype);
  if (const graph::SymShape* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

void infer_label_encoder(InferContext& ctx) { infer_like_x(ctx, label_list(ctx.attributes(), "values").dtype()); }

void infer_two_way(InferContext& ctx) {
  if (ctx.input_dtype(0) == DType::Undefined) return;
  infer_like_x(ctx, ctx.input_dtype(0) == DType::String ? DType::Int64 : DType::String);
}

void infer_one_hot_encoder(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Float32);
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  graph::SymShape shape = *x;
  shape.emplace_back(OneHotEncoder::categories(ctx.attributes()).numel());
  ctx.set_output_shape(0, std::move(shape));
}

}  // namespace

void register_ml_encode(kernel::OpRegistrar& r) {
  r.op("LabelEncoder", kMlDomain)
      .version(1, "X:T1 -> Y:T2; T1 = string|int64, T2 = string|int64")
      .infer(infer_two_way)
      .kernel<TwoWayMap>();
  r.op("LabelEncoder", kMlDomain)
      .version(2, "X:T1 -> Y:T2; T1 = string|int64|float, T2 = string|int64|float")
      .version(4,
               "X:T1 -> Y:T2; T1 = string|int64|float|int32|int16|double, T2 = string|int64|float|int32|int16|double")
      .infer(infer_label_encoder)
      .kernel<LabelEncoder>();
  r.op("CategoryMapper", kMlDomain)
      .version(1, "X:T1 -> Y:T2; T1 = string|int64, T2 = string|int64")
      .infer(infer_two_way)
      .kernel<TwoWayMap>();
  r.op("OneHotEncoder", kMlDomain)
      .version(1, "X:T -> Y:float; T = string|int64|int32|float|double")
      .infer(infer_one_hot_encoder)
      .kernel<OneHotEncoder>();
}

}  // namespace infernode::ops
