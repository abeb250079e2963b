#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace infernode::tensor {

/// A cheap value: dtype, shape and a share in a Buffer. Elements are contiguous, the last axis varying fastest;
/// sub-byte elements are packed low bits first as in ONNX's raw data; strings are std::string objects in the buffer.
class Tensor {
 public:
  Tensor() = default;
  /// Views `buffer`; throws Internal where it is too short.
  Tensor(DType dtype, Shape shape, Buffer buffer);
  /// Fresh, uninitialised (strings: empty) memory of `allocator`.
  static Tensor make(DType dtype, const Shape& shape, Allocator& allocator = host_allocator());
  /// The same of strings, of which there may be very many: calls `look` now and then, which may throw.
  static Tensor make_strings(const Shape& shape, Allocator& allocator, FunctionRef<void()> look);
  /// A host tensor with a copy of the values.
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, std::span<const T>(&value, 1));
  }

  explicit operator bool() const { return dtype_ != DType::Undefined; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t rank() const { return shape_.rank(); }
  std::int64_t dim(std::size_t axis) const { return shape_[axis]; }
  std::int64_t numel() const { return numel_; }
  std::size_t bytes() const;  ///< of the elements, not of the buffer
  Device device() const { return buffer_.device(); }
  const Buffer& buffer() const { return buffer_; }

  const void* raw() const { return buffer_.data(); }
  void* mutable_raw() const { return buffer_.data(); }
  /// Typed access; throws Internal where T is not the dtype (any T of the same size is fine for uint8_t..uint64_t and
  /// Bytes16 via raw()).
  template <class T>
  const T* data() const {
    expect(kDTypeOf<T>);
    return reinterpret_cast<const T*>(buffer_.data());
  }
  template <class T>
  T* mutable_data() const {
    expect(kDTypeOf<T>);
    return reinterpret_cast<T*>(buffer_.data());
  }
  template <class T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<std::size_t>(numel_)};
  }
  template <class T>
  std::span<T> mutable_span() const {
    return {mutable_data<T>(), static_cast<std::size_t>(numel_)};
  }
  std::span<const std::byte> byte_span() const { return {buffer_.data(), bytes()}; }

  /// Same elements, other dims; throws ShapeMismatch where the counts differ.
  Tensor reshaped(const Shape& shape) const;
  /// Same bytes read as another type of the same bit size.
  Tensor reinterpreted(DType dtype) const;
  /// Deep copy into host memory of its own (source must be on the host).
  Tensor clone() const;
  /// "float32[1,3,224,224]"
  std::string to_string() const;

 private:
  void expect(DType type) const {
    if (type != dtype_) fail_type(type);
  }
  [[noreturn]] void fail_type(DType type) const;

  DType dtype_ = DType::Undefined;
  std::int64_t numel_ = 0;
  Shape shape_;
  Buffer buffer_;
};

/// Elements of an integer (any width, bool too) or floating tensor as int64, floats truncated; for axes, shapes, pads
/// and the like.
std::vector<std::int64_t> to_int64_vector(const Tensor& tensor);
std::vector<float> to_float_vector(const Tensor& tensor);
/// The one element of a tensor, converted.
std::int64_t to_int64_scalar(const Tensor& tensor);
float to_float_scalar(const Tensor& tensor);
/// Copies the elements of `from` into `to` (same dtype, same count), strings too.
void copy_elements(const Tensor& from, const Tensor& to);

template <class T>
Tensor Tensor::of(const Shape& shape, std::span<const T> values) {
  Tensor t = make(kDTypeOf<T>, shape);
  if (static_cast<std::size_t>(t.numel()) != values.size()) t.fail_type(kDTypeOf<T>);
  T* out = t.mutable_data<T>();
  for (const T& v : values) *out++ = v;
  return t;
}

}  // namespace infernode::tensor
