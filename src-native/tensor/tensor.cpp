#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"
#include "tensor/dispatch.h"

namespace infernode::tensor {
namespace {

/// Strings in a block of plain memory; ends their lives before the block is returned.
struct StringBlock {
  Buffer memory;
  size_t count = 0;  // that live
  explicit StringBlock(Buffer m) : memory(std::move(m)) {}
  ~StringBlock() { std::destroy_n(strings(), count); }
  void begin(size_t more) {
    std::uninitialized_default_construct_n(strings() + count, more);
    count += more;
  }
  StringBlock(const StringBlock&) = delete;
  StringBlock& operator=(const StringBlock&) = delete;
  std::string* strings() const { return reinterpret_cast<std::string*>(memory.data()); }
};

template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<To, int64_t> && std::is_floating_point_v<From>) {
    if (!(v == v)) return 0;
    if (v >= static_cast<From>(9.2233720368547758e18)) return std::numeric_limits<int64_t>::max();
    if (v <= static_cast<From>(-9.2233720368547758e18)) return std::numeric_limits<int64_t>::min();
  }
  return static_cast<To>(v);
}

template <class To>
std::vector<To> to_vector(const Tensor& t) {
  const auto n = static_cast<size_t>(t.numel());
  std::vector<To> out(n);
  const auto* packed = static_cast<const uint8_t*>(t.raw());
  switch (t.dtype()) {
    case DType::Int4:
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<To>(get_packed_signed<4>(packed, i));
      return out;
    case DType::UInt4:
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<To>(get_packed<4>(packed, i));
      return out;
    case DType::Int2:
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<To>(get_packed_signed<2>(packed, i));
      return out;
    case DType::UInt2:
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<To>(get_packed<2>(packed, i));
      return out;
    case DType::Float4E2M1:
      for (size_t i = 0; i < n; ++i)
        out[i] = convert<To>(static_cast<float>(Float4E2M1::from_bits(get_packed<4>(packed, i))));
      return out;
    case DType::Float6E2M3:
      for (size_t i = 0; i < n; ++i)
        out[i] = convert<To>(static_cast<float>(Float6E2M3::from_bits(get_packed<6>(packed, i))));
      return out;
    case DType::Float6E3M2:
      for (size_t i = 0; i < n; ++i)
        out[i] = convert<To>(static_cast<float>(Float6E3M2::from_bits(get_packed<6>(packed, i))));
      return out;
    default:
      break;
  }
  dispatch<float, int64_t, int32_t, double, uint8_t, int8_t, uint16_t, int16_t, uint32_t, uint64_t, bool, Float16,
           BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0>(
      t.dtype(), "conversion of a tensor to numbers", [&]<class T>(TypeTag<T>) {
        const T* in = t.data<T>();
        for (size_t i = 0; i < n; ++i) {
          if constexpr (std::is_arithmetic_v<T>)
            out[i] = convert<To>(in[i]);
          else
            out[i] = convert<To>(static_cast<float>(in[i]));
        }
      });
  return out;
}

template <class To>
To to_scalar(const Tensor& t) {
  INFERNODE_CHECK(t.numel() == 1, ErrorCode::InvalidArgument, "expected one element but got ", t.to_string());
  return to_vector<To>(t)[0];
}

}  // namespace

Tensor::Tensor(DType dtype, Shape shape, Buffer buffer)
    : dtype_(dtype), numel_(shape.numel()), shape_(std::move(shape)), buffer_(std::move(buffer)) {
  INFERNODE_CHECK(buffer_.size() >= byte_size(dtype_, numel_), ErrorCode::Internal, "a buffer of ", buffer_.size(),
                  " bytes is too short for ", to_string());
}

Tensor Tensor::make(DType dtype, const Shape& shape, Allocator& allocator) {
  INFERNODE_CHECK(dtype != DType::Undefined, ErrorCode::Internal, "a tensor of undefined element type was asked for");
  if (dtype == DType::String) return make_strings(shape, allocator, [] {});
  return Tensor(dtype, shape, allocator.allocate(byte_size(dtype, shape.numel())));
}

Tensor Tensor::make_strings(const Shape& shape, Allocator& allocator, FunctionRef<void()> look) {
  constexpr size_t kAtOnce = size_t{1} << 16;
  const size_t bytes = byte_size(DType::String, shape.numel());
  Allocator& host = allocator.device().is_host() ? allocator : host_allocator();
  const auto block = std::make_shared<StringBlock>(host.allocate(bytes));
  for (auto left = static_cast<size_t>(shape.numel()); left > 0;) {
    const size_t more = std::min(left, kAtOnce);
    block->begin(more);
    left -= more;
    if (left > 0) look();
  }
  void* data = block->memory.data();
  return Tensor(DType::String, shape, Buffer(data, bytes, block));
}

size_t Tensor::bytes() const { return byte_size(dtype_, numel_); }

Tensor Tensor::reshaped(const Shape& shape) const {
  INFERNODE_CHECK(shape.numel() == numel_, ErrorCode::ShapeMismatch, "cannot view ", to_string(), " as ",
                  shape.to_string(), ": the element counts differ");
  Tensor out = *this;
  out.shape_ = shape;
  return out;
}

Tensor Tensor::reinterpreted(DType dtype) const {
  INFERNODE_CHECK(bit_size(dtype) == bit_size(dtype_) && bit_size(dtype) > 0, ErrorCode::Internal, "cannot read ",
                  to_string(), " as ", name(dtype), ": the element sizes differ");
  Tensor out = *this;
  out.dtype_ = dtype;
  return out;
}

Tensor Tensor::clone() const {
  if (!*this) return {};
  INFERNODE_CHECK(device().is_host(), ErrorCode::Internal, "clone of a tensor on ", device().to_string());
  Tensor out = make(dtype_, shape_);
  copy_elements(*this, out);
  return out;
}

std::string Tensor::to_string() const { return cat(name(dtype_), shape_.dims()); }

void Tensor::fail_type(DType type) const {
  fail(ErrorCode::Internal, cat("elements of ", to_string(), " were accessed as ", name(type)));
}

std::vector<int64_t> to_int64_vector(const Tensor& tensor) { return to_vector<int64_t>(tensor); }
std::vector<float> to_float_vector(const Tensor& tensor) { return to_vector<float>(tensor); }
int64_t to_int64_scalar(const Tensor& tensor) { return to_scalar<int64_t>(tensor); }
float to_float_scalar(const Tensor& tensor) { return to_scalar<float>(tensor); }

void copy_elements(const Tensor& from, const Tensor& to) {
  INFERNODE_CHECK(from.dtype() == to.dtype() && from.numel() == to.numel(), ErrorCode::Internal, "copy of ",
                  from.to_string(), " into ", to.to_string());
  if (from.raw() == to.raw()) return;
  if (from.dtype() == DType::String)
    std::ranges::copy(from.span<std::string>(), to.mutable_data<std::string>());
  else if (from.bytes() > 0)
    std::memcpy(to.mutable_raw(), from.raw(), from.bytes());
}

}  // namespace infernode::tensor
