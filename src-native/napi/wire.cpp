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
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLargeArray = std::size_t{32} << 10;
/// Node's limit for one buffer, in every version.
constexpr std::size_t kMostUnzeroed = std::size_t{1} << 31;

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

std::shared_ptr<const void> borrowed_owner() {
  static constexpr char kMarker = 0;
  return {std::shared_ptr<const void>(), &kMarker};
}

bool is_borrowed(const Tensor& tensor) { return tensor.buffer().owner() == borrowed_owner().get(); }

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

namespace {

/// Bytes that copies of all borrowed tensors within take in one block.
std::size_t copy_bytes(const Value& value) {
  std::size_t total = 0;
  const auto add = [&total](std::size_t bytes) { total = checked_add(total, bytes); };
  if (value.is_tensor() && is_borrowed(value.tensor())) {
    add(align_up(value.tensor().bytes(), kAlignment));
  } else if (value.is_sequence()) {
    for (const Value& item : value.sequence().items) add(copy_bytes(item));
  } else if (value.is_map()) {
    add(copy_bytes(Value(value.map().keys)));
    for (const Value& item : value.map().values) add(copy_bytes(item));
  }
  return total;
}

/// Places copies of borrowed tensors one behind another in a block; finish() fills them.
class BlockCopier {
 public:
  explicit BlockCopier(Buffer block) : block_(std::move(block)) {}

  Value copy(const Value& value) {
    if (value.is_tensor()) return is_borrowed(value.tensor()) ? Value(copy(value.tensor())) : value;
    if (value.is_sequence()) {
      tensor::Sequence sequence{value.sequence().elem, {}};
      for (const Value& item : value.sequence().items) sequence.items.push_back(copy(item));
      return sequence;
    }
    if (value.is_map()) {
      tensor::Map map{copy(Value(value.map().keys)).tensor(), {}};
      for (const Value& item : value.map().values) map.values.push_back(copy(item));
      return map;
    }
    return value;
  }

  void finish(ThreadPool& pool, std::size_t threads) const {
    constexpr std::size_t kMuch = std::size_t{2} << 20;
    constexpr double kBytesPerNs = 15;
    const auto fill = [this](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) std::memcpy(parts_[i].to, parts_[i].from, parts_[i].bytes);
    };
    if (offset_ < kMuch || threads < 2) return fill(0, parts_.size(), 0);
    const double cost = static_cast<double>(offset_) / kBytesPerNs / static_cast<double>(parts_.size());
    pool.parallel_for(parts_.size(), cost, threads, fill);
  }

 private:
  struct Part {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };
  static constexpr std::size_t kPart = std::size_t{256} << 10;

  Tensor copy(const Tensor& from) {
    const std::size_t bytes = from.bytes();
    const Tensor to(from.dtype(), from.shape(), block_.slice(offset_, bytes));
    auto* const data = static_cast<std::byte*>(to.mutable_raw());
    for (std::size_t at = 0; at < bytes; at += kPart)
      parts_.push_back({data + at, static_cast<const std::byte*>(from.raw()) + at, std::min(kPart, bytes - at)});
    offset_ += align_up(bytes, kAlignment);
    return to;
  }

  Buffer block_;
  std::size_t offset_ = 0;
  std::vector<Part> parts_;
};

}  // namespace

std::size_t borrowed_bytes(std::span<const Value> values) {
  std::size_t total = 0;
  for (const Value& value : values) total = checked_add(total, copy_bytes(value));
  return total;
}

void own(std::span<Value> values, const Buffer& block, ThreadPool& pool, std::size_t threads) {
  BlockCopier copier(block);
  for (Value& value : values) value = copier.copy(value);
  copier.finish(pool, threads);
}

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
