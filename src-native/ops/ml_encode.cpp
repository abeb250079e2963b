#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/ml_scores.h"
#include "tensor/dispatch.h"

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
using tensor::TypeTag;

/// Finds keys by value: strings as they are; numbers by bits, all NaN alike and -0 as 0.
class KeyIndex {
 public:
  KeyIndex() = default;
  /// `keep_last`: of equal keys, the last one counts instead of the first.
  explicit KeyIndex(const Tensor& keys, bool keep_last = false) : dtype_(keys.dtype()) {
    const auto count = static_cast<std::uint32_t>(keys.numel());
    const auto put = [&](auto& map, const auto& key, std::uint32_t i) {
      if (!map.emplace(key, i).second && keep_last) map[key] = i;
    };
    if (dtype_ == DType::String) {
      strings_.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) put(strings_, keys.data<std::string>()[i], i);
      return;
    }
    numbers_.reserve(count);
    dispatch_numbers(dtype_, [&]<class T>(TypeTag<T>) {
      for (std::uint32_t i = 0; i < count; ++i) put(numbers_, code(keys.data<T>()[i]), i);
    });
  }

  DType dtype() const { return dtype_; }
  std::size_t size() const { return strings_.size() + numbers_.size(); }

  /// Calls hit(element, index of its key) or, where there is none, hit(element, -1), over all of x.
  template <class F>
  void look_up(const Tensor& x, F hit) const {
    const auto count = static_cast<std::size_t>(x.numel());
    if (x.dtype() == DType::String) {
      for (std::size_t i = 0; i < count; ++i) hit(i, found(strings_, x.data<std::string>()[i]));
      return;
    }
    dispatch_numbers(x.dtype(), [&]<class T>(TypeTag<T>) {
      for (std::size_t i = 0; i < count; ++i) hit(i, found(numbers_, code(x.data<T>()[i])));
    });
  }

  template <class F>
  static void dispatch_numbers(DType type, F&& f) {
    tensor::dispatch<std::int64_t, float, double, std::int32_t, std::int16_t>(type, "LabelEncoder", f);
  }

 private:
  template <class Map, class Key>
  static std::int64_t found(const Map& map, const Key& key) {
    const auto at = map.find(key);
    return at == map.end() ? -1 : static_cast<std::int64_t>(at->second);
  }
  template <class T>
  static std::uint64_t code(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) return UINT64_MAX;
      return std::bit_cast<std::uint64_t>(static_cast<double>(value) + 0.0);
    } else {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    }
  }

  DType dtype_ = DType::Undefined;
  std::unordered_map<std::string, std::uint32_t> strings_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

/// out[i] = values[index of x[i]], or the only element of `fallback`.
void map_labels(const KeyIndex& keys, const Tensor& x, const Tensor& values, const Tensor& fallback,
                const Tensor& out) {
  const auto move = [&]<class T>(TypeTag<T>) {
    const T* from = values.data<T>();
    const T other = fallback.data<T>()[0];
    T* to = out.mutable_data<T>();
    keys.look_up(x, [&](std::size_t i, std::int64_t at) { to[i] = at < 0 ? other : from[at]; });
  };
  if (values.dtype() == DType::String) return move(TypeTag<std::string>{});
  KeyIndex::dispatch_numbers(values.dtype(), move);
}

template <class T>
Tensor list_tensor(const std::vector<T>& list) {
  return Tensor::of<T>(Shape{static_cast<std::int64_t>(list.size())}, std::span<const T>(list));
}

/// The one list among `name`_tensor, `name`_strings, `name`_int64s and `name`_floats. Throws InvalidModel unless
/// exactly one is given.
Tensor label_list(const Attributes& attributes, const std::string& name) {
  std::vector<Tensor> lists;
  if (const Tensor* t = attributes.get_tensor(name + "_tensor")) {
    constexpr tensor::TypeSet kTypes{DType::String, DType::Int64, DType::Float32,
                                     DType::Int32,  DType::Int16, DType::Float64};
    INFERNODE_CHECK(t->rank() <= 1 && kTypes.contains(t->dtype()), ErrorCode::InvalidModel, name, "_tensor is ",
                    t->to_string(), ", which is no list of ", kTypes.to_string());
    lists.push_back(*t);
  }
  if (const auto list = attributes.get_strings(name + "_strings"); !list.empty()) lists.push_back(list_tensor(list));
  if (const auto list = attributes.get_ints(name + "_int64s"); !list.empty()) lists.push_back(list_tensor(list));
  if (const auto list = attributes.get_floats(name + "_floats"); !list.empty()) lists.push_back(list_tensor(list));
  INFERNODE_CHECK(lists.size() == 1, ErrorCode::InvalidModel, "exactly one list of ", name, " must be given, not ",
                  lists.size());
  return lists[0];
}

/// What stands for keys that are not known: a tensor of one element of type `type`.
Tensor label_default(const Attributes& attributes, DType type) {
  if (const Tensor* t = attributes.get_tensor("default_tensor")) {
    INFERNODE_CHECK(t->numel() == 1 && t->dtype() == type, ErrorCode::InvalidModel, "default_tensor is ",
                    t->to_string(), " where one ", tensor::name(type), " is expected");
    return *t;
  }
  const Shape one{1};
  switch (type) {
    case DType::String:
      return Tensor::of<std::string>(one, {attributes.get_string("default_string", "_Unused")});
    case DType::Float32:
      return Tensor::of<float>(one, {attributes.get_float("default_float", -0.0f)});
    case DType::Float64:
      return Tensor::of<double>(one, {static_cast<double>(attributes.get_float("default_float", -0.0f))});
    case DType::Int32:
      return Tensor::of<std::int32_t>(one, {static_cast<std::int32_t>(attributes.get_int("default_int64", -1))});
    case DType::Int16:
      return Tensor::of<std::int16_t>(one, {static_cast<std::int16_t>(attributes.get_int("default_int64", -1))});
    default:
      return Tensor::of<std::int64_t>(one, {attributes.get_int("default_int64", -1)});
  }
}

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
    map_labels(keys_, x, values_, default_, ctx.output(0, values_.dtype(), x.shape()));
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
    std::fill_n(y, out.numel(), 0.0f);
    const auto mark = [&](std::size_t i, std::int64_t at) {
      INFERNODE_CHECK(at >= 0 || zeros_, ErrorCode::InvalidArgument, "OneHotEncoder: element ", i,
                      " of X is none of the categories, and zeros is 0");
      if (at >= 0) y[static_cast<std::int64_t>(i) * width + at] = 1.0f;
    };
    keys_.look_up(tensor::is_floating(x.dtype()) ? whole(x) : x, mark);
  }

 private:
  /// As doubles, fractions cut off.
  static Tensor whole(const Tensor& x) {
    if (x.dtype() == DType::String) return x;
    const Tensor out = Tensor::make(DType::Float64, x.shape());
    const std::span<double> reals = out.mutable_span<double>();
    read_reals(x, 0, reals.size(), reals.data());
    for (double& real : reals) real = std::trunc(real);
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
