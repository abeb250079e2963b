#include "ops/common/label_map.h"

#include "base/checked.h"
#include "ops/common/mover.h"

namespace infernode::ops {

using graph::Attributes;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

void map_labels(const KeyIndex& keys, const Tensor& x, const Tensor& values, const Tensor& fallback, const Tensor& out,
                const kernel::RunContext& run) {
  Mover mover(run);
  const auto move = [&]<class T>(TypeTag<T>) {
    const T* from = values.data<T>();
    const T& other = fallback.data<T>()[0];
    T* to = out.mutable_data<T>();
    keys.look_up(
        x, [&] { run.check(); }, [&](std::size_t i, std::int64_t at) { mover.set(to[i], at < 0 ? other : from[at]); });
  };
  if (values.dtype() == DType::String) return move(TypeTag<std::string>{});
  KeyIndex::dispatch_numbers(values.dtype(), move);
}

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

}  // namespace infernode::ops
