#include "napi/wire.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/system.h"
#include "napi/environment.h"
#include "napi/errors.h"
#include "napi/tensor_wrap.h"

namespace infernode::napi {

using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

namespace {

constexpr std::int64_t kMaxInteger = std::int64_t{1} << 53;
constexpr int kMaxRank = 1024;
constexpr int kMaxDepth = 16;

/// Booleans that JavaScript made other than 0 and 1, which C++ must not see.
bool has_odd_booleans(std::span<const std::byte> bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return std::to_integer<int>(b) > 1; });
}

Tensor normalised_booleans(const Tensor& from) {
  const Tensor to = Tensor::make(DType::Bool, from.shape());
  auto* out = static_cast<std::uint8_t*>(to.mutable_raw());
  for (const std::byte b : from.byte_span()) *out++ = b != std::byte{0};
  return to;
}

std::string read_string(napi_env env, napi_value value) {
  char local[256];
  std::size_t length = 0;
  if (napi_get_value_string_utf8(env, value, local, sizeof local, &length) != napi_ok) {
    fail(ErrorCode::InvalidArgument, "an element of a string tensor is not a string");
  }
  if (length + 4 < sizeof local) return {local, length};  // a longer one may have been cut at a character
  check(env, napi_get_value_string_utf8(env, value, nullptr, 0, &length));
  std::string text(length, '\0');
  check(env, napi_get_value_string_utf8(env, value, text.data(), length + 1, &length));
  return text;
}

Tensor read_strings(napi_env env, const Shape& shape, napi_value array) {
  bool is_array = false;
  std::uint32_t length = 0;
  check(env, napi_is_array(env, array, &is_array));
  if (!is_array) fail(ErrorCode::InvalidArgument, "the data of a string tensor must be an array");
  check(env, napi_get_array_length(env, array, &length));
  if (static_cast<std::int64_t>(length) < shape.numel()) {
    fail(ErrorCode::InvalidArgument, cat("a string tensor needs ", shape.numel(), " strings, got ", length));
  }
  const Tensor tensor = Tensor::make(DType::String, shape);
  std::uint32_t i = 0;
  for (std::string& text : tensor.mutable_span<std::string>()) {
    const Napi::HandleScope scope(env);
    napi_value element = nullptr;
    check(env, napi_get_element(env, array, i++, &element));
    text = read_string(env, element);
  }
  return tensor;
}

}  // namespace

std::span<std::byte> typed_array_bytes(napi_env env, napi_value array) {
  bool is_typed_array = false;
  check(env, napi_is_typedarray(env, array, &is_typed_array));
  if (!is_typed_array) fail(ErrorCode::InvalidArgument, "the data of a tensor must be a typed array");
  napi_typedarray_type type{};
  std::size_t length = 0;
  void* data = nullptr;
  check(env, napi_get_typedarray_info(env, array, &type, &length, &data, nullptr, nullptr));
  std::size_t width = 1;
  switch (type) {
    case napi_int8_array:
    case napi_uint8_array:
    case napi_uint8_clamped_array:
      width = 1;
      break;
    case napi_int16_array:
    case napi_uint16_array:
      width = 2;
      break;
    case napi_int32_array:
    case napi_uint32_array:
    case napi_float32_array:
      width = 4;
      break;
    case napi_float64_array:
    case napi_bigint64_array:
    case napi_biguint64_array:
      width = 8;
      break;
    default:
      fail(ErrorCode::InvalidArgument, "the data of a tensor is a typed array of an unknown kind");
  }
  alignas(8) static constexpr std::byte kNothing[8]{};  // detached and empty arrays have no address
  return data == nullptr ? std::span(const_cast<std::byte*>(kNothing), 0)
                         : std::span(static_cast<std::byte*>(data), length * width);
}

Tensor view_data(napi_env env, DType dtype, const Shape& shape, napi_value data, bool writable) {
  if (dtype == DType::String) {
    if (writable) fail(ErrorCode::InvalidArgument, "string tensors cannot be written into");
    return read_strings(env, shape, data);
  }
  const std::span<std::byte> bytes = typed_array_bytes(env, data);
  const std::size_t needed = tensor::byte_size(dtype, shape.numel());
  if (bytes.size() < needed) {
    fail(ErrorCode::InvalidArgument, cat("not enough space: expected ", needed, ", got ", bytes.size()));
  }
  const Tensor view(dtype, shape, Buffer(bytes.data(), needed, borrowed_owner(), {}, writable));
  return dtype == DType::Bool && !writable && has_odd_booleans(view.byte_span()) ? normalised_booleans(view) : view;
}

WireReader::WireReader(napi_env env, napi_value numbers, napi_value items) : env_(env), items_(items) {
  const std::span<std::byte> bytes = typed_array_bytes(env, numbers);
  numbers_ = {reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double)};
  bool is_array = false;
  check(env, napi_is_array(env, items, &is_array));
  if (!is_array) fail(ErrorCode::InvalidArgument, "the items of a run must be an array");
}

double WireReader::number() {
  if (next_number_ >= numbers_.size()) fail(ErrorCode::InvalidArgument, "the numbers of a run end early");
  return numbers_[next_number_++];
}

std::int64_t WireReader::integer(std::int64_t low, std::int64_t high) {
  const double value = number();
  if (!(value >= static_cast<double>(low) && value <= static_cast<double>(high)) || value != std::floor(value)) {
    fail(ErrorCode::InvalidArgument,
         cat("a number of a run is ", value, ", not an integer in [", low, ", ", high, "]"));
  }
  return static_cast<std::int64_t>(value);
}

napi_value WireReader::item() {
  napi_value value = nullptr;
  check(env_, napi_get_element(env_, items_, next_item_++, &value));
  return value;
}

Value WireReader::value() {
  switch (kind()) {
    case Kind::None:
      return tensor::Optional{};
    case Kind::Tensor:
      return tensor(nullptr);
    case Kind::Handle:
      return tensor_of(env_, item());
    case Kind::Sequence: {
      if (++depth_ > kMaxDepth) fail(ErrorCode::InvalidArgument, "sequences are nested too deeply");
      tensor::Sequence sequence;
      for (std::int64_t left = integer(0, kMaxInteger); left > 0; --left) sequence.items.push_back(value());
      if (!sequence.items.empty() && sequence.items.front().is_tensor()) {
        sequence.elem = sequence.items.front().tensor().dtype();
      }
      --depth_;
      return sequence;
    }
    case Kind::Map:
      return map();
    case Kind::InPlace:
      break;
  }
  fail(ErrorCode::InvalidArgument, "a value of a run has an unknown kind");
}

Value WireReader::map() {
  tensor::Map map;
  const auto vector = [this] {
    Value elements = value();
    if (!elements.is_tensor() || elements.tensor().rank() != 1) {
      fail(ErrorCode::InvalidArgument, "the keys and values of a map must be tensors of rank 1");
    }
    return elements.tensor();
  };
  map.keys = vector();
  if (integer(-1, -1) == -1) {
    const Tensor all = vector();
    if (all.numel() != map.keys.numel()) fail(ErrorCode::InvalidArgument, "a map has more keys than values");
    for (std::int64_t i = 0; i < all.numel(); ++i) {
      const Tensor one = Tensor::make(all.dtype(), Shape{});
      if (all.dtype() == DType::String) {
        *one.mutable_data<std::string>() = all.data<std::string>()[i];
      } else {
        std::memcpy(one.mutable_raw(),
                    static_cast<const std::byte*>(all.raw()) + static_cast<std::size_t>(i) * one.bytes(), one.bytes());
      }
      map.values.emplace_back(one);
    }
  }
  return map;
}

Tensor WireReader::target(napi_value& array) {
  switch (kind()) {
    case Kind::Tensor:
      return tensor(&array);
    case Kind::Handle:
      return tensor_of(env_, item());
    default:
      fail(ErrorCode::InvalidArgument, "only tensors can be written into");
  }
}

Tensor WireReader::tensor(napi_value* target_array) {
  const auto dtype = tensor::dtype_from_code(integer(1, tensor::kDTypeCount - 1));
  if (!dtype) fail(ErrorCode::InvalidArgument, "a tensor has an unknown element type");
  Shape shape;
  for (std::int64_t left = integer(0, kMaxRank); left > 0; --left) shape.push_back(integer(0, kMaxInteger));
  const napi_value data = item();
  if (target_array != nullptr) *target_array = data;
  return view_data(env_, *dtype, shape, data, target_array != nullptr);
}

}  // namespace infernode::napi
