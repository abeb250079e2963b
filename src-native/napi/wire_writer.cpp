#include <algorithm>
#include <cstring>

#include "base/system.h"
#include "napi/environment.h"
#include "napi/errors.h"
#include "napi/tensor_wrap.h"
#include "napi/wire.h"

namespace infernode::napi {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

namespace {

constexpr std::size_t kLargeArray = std::size_t{32} << 10;
/// Node's limit for one buffer, in every version.
constexpr std::size_t kMostUnzeroed = std::size_t{1} << 31;

}  // namespace

napi_value make_array_buffer(napi_env env, std::size_t bytes, void*& data) {
  napi_value buffer = nullptr;
  if (bytes < kLargeArray) {
    check(env, napi_create_arraybuffer(env, bytes, &data, &buffer));
    return buffer;
  }
  expect_available(bytes);
  const Environment& environment = Environment::of(env);
  const Napi::Number size = Napi::Number::New(env, static_cast<double>(bytes));
  // Node-API ends the process where the system has no memory; JavaScript's functions throw.
  try {
    if (!environment.unzeroed_array.IsEmpty() && bytes <= kMostUnzeroed) {
      const Napi::Value array = environment.unzeroed_array.Call({size});
      check(env, napi_get_typedarray_info(env, array, nullptr, nullptr, &data, &buffer, nullptr));
      std::size_t there = 0;
      check(env, napi_get_arraybuffer_info(env, buffer, &data, &there));
      if (there == bytes) {
        if (bytes >= 2 * kHugePage) prefer_huge_pages(data, bytes);
        return buffer;
      }
    }
    buffer = environment.array_buffer_class.New({size});
    check(env, napi_get_arraybuffer_info(env, buffer, &data, &bytes));
  } catch (const Napi::Error& error) {
    fail(ErrorCode::OutOfMemory, cat("JavaScript gave no ", bytes, " bytes for a result: ", error.Message()));
  }
  return buffer;
}

napi_value copy_out(napi_env env, const Tensor& tensor) {
  if (tensor.dtype() != DType::String) {
    void* data = nullptr;
    const std::size_t bytes = tensor.bytes();
    const napi_value buffer = make_array_buffer(env, bytes, data);
    if (bytes > 0) std::memcpy(data, tensor.raw(), bytes);
    return buffer;
  }
  napi_value array = nullptr;
  check(env, napi_create_array_with_length(env, static_cast<std::size_t>(tensor.numel()), &array));
  std::uint32_t i = 0;
  for (const std::string& text : tensor.span<std::string>()) {
    const Napi::HandleScope scope(env);
    napi_value element = nullptr;
    check(env, napi_create_string_utf8(env, text.data(), text.size(), &element));
    check(env, napi_set_element(env, array, i++, element));
  }
  return array;
}

void WireWriter::tensor(DType dtype, const Shape& shape, napi_value item) {
  for (const std::int64_t dim : shape) {
    if (dim > kLargestInteger)
      fail(ErrorCode::InvalidArgument, cat("an output has the dims ", shape.dims(),
                                           ", of which JavaScript's numbers cannot hold those of 2^53 and more"));
  }
  kind(Kind::Tensor);
  numbers_.push_back(static_cast<double>(dtype));
  numbers_.push_back(static_cast<double>(shape.rank()));
  for (const std::int64_t dim : shape) numbers_.push_back(static_cast<double>(dim));
  items_.push_back(item);
}

void WireWriter::value(const Value& value) {
  if (value.is_tensor()) {
    tensor(value.tensor().dtype(), value.tensor().shape(), copy_out(env_, value.tensor()));
  } else if (value.is_sequence()) {
    kind(Kind::Sequence);
    numbers_.push_back(static_cast<double>(value.sequence().items.size()));
    for (const Value& item : value.sequence().items) this->value(item);
  } else if (value.is_map()) {
    map(value.map());
  } else if (value.is_optional() && value.optional().item) {
    this->value(*value.optional().item);
  } else if (value.is_sparse()) {
    fail(ErrorCode::InvalidArgument, "sparse outputs have no form in JavaScript");
  } else {
    kind(Kind::None);
  }
}

void WireWriter::map(const tensor::Map& map) {
  kind(Kind::Map);
  value(Value(map.keys));
  const auto scalar = [&map](const Value& item) {
    return item.is_tensor() && item.tensor().numel() == 1 && item.tensor().rank() == 0 &&
           item.tensor().dtype() == map.values.front().tensor().dtype();
  };
  if (map.values.empty() || !map.values.front().is_tensor() ||
      !std::all_of(map.values.begin(), map.values.end(), scalar)) {
    numbers_.push_back(static_cast<double>(map.values.size()));
    for (const Value& item : map.values) value(item);
    return;
  }
  numbers_.push_back(-1);
  const Tensor all =
      Tensor::make(map.values.front().tensor().dtype(), Shape{static_cast<std::int64_t>(map.values.size())});
  const std::size_t width = map.values.front().tensor().bytes();
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    const Tensor& one = map.values[i].tensor();
    if (all.dtype() == DType::String) {
      all.mutable_data<std::string>()[i] = *one.data<std::string>();
    } else {
      std::memcpy(static_cast<std::byte*>(all.mutable_raw()) + i * width, one.raw(), width);
    }
  }
  value(Value(all));
}

napi_value WireWriter::finish(napi_value place) const {
  napi_value wire = nullptr, numbers = nullptr, items = nullptr;
  check(env_, napi_create_array_with_length(env_, items_.size(), &items));
  for (std::size_t i = 0; i < items_.size(); ++i) {
    check(env_, napi_set_element(env_, items, static_cast<std::uint32_t>(i), items_[i]));
  }
  const std::size_t bytes = numbers_.size() * sizeof(double);
  if (place != nullptr) {
    const std::span<std::byte> there = typed_array_bytes(env_, place);
    if (there.size() >= bytes) {
      std::memcpy(there.data(), numbers_.data(), bytes);
      return items;
    }
  }
  void* data = nullptr;
  const napi_value buffer = make_array_buffer(env_, bytes, data);
  if (bytes > 0) std::memcpy(data, numbers_.data(), bytes);
  check(env_, napi_create_typedarray(env_, napi_float64_array, numbers_.size(), buffer, 0, &numbers));
  check(env_, napi_create_object(env_, &wire));
  check(env_, napi_set_named_property(env_, wire, "numbers", numbers));
  check(env_, napi_set_named_property(env_, wire, "items", items));
  return wire;
}

}  // namespace infernode::napi
