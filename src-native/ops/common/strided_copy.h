#pragma once
// Moving elements without looking at them: the loops that Transpose, Slice, Expand, Tile, Concat, Split and others
// share.

#include <cstdint>
#include <string>

#include "kernel/run_context.h"
#include "microkernels/transpose/transpose.h"
#include "tensor/dispatch.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// Bytes from one element to the next; 0 for sub-byte types.
inline std::size_t element_bytes(tensor::DType dtype) {
  return dtype == tensor::DType::String ? sizeof(std::string) : tensor::bit_size(dtype) / 8;
}

/// f(TypeTag<T>) with T a type that moves elements of `dtype`: std::string or an integer of the element's size.
/// Sub-byte types are the caller's to treat (see with_whole_bytes).
template <class F>
void dispatch_elements(tensor::DType dtype, const char* what, F&& f) {
  if (dtype == tensor::DType::String) return f(tensor::TypeTag<std::string>{});
  tensor::dispatch_size(tensor::bit_size(dtype) / 8, what, static_cast<F&&>(f));
}

/// The elements as T, whatever the dtype's own name: for loops dispatched by dispatch_elements.
template <class T>
const T* elements(const tensor::Tensor& t) {
  return static_cast<const T*>(t.raw());
}
template <class T>
T* mutable_elements(const tensor::Tensor& t) {
  return static_cast<T*>(t.mutable_raw());
}

/// One side of a copy: a tensor, the element to start at, and a stride in elements for each dim (0 repeats, negative
/// reverses).
struct CopySide {
  const tensor::Tensor& tensor;
  std::int64_t offset;
  tensor::Shape strides;
};

/// to[offset + index * strides] = from[offset + index * strides] for every index within `dims`; any dtype, strings and
/// sub-byte ones included. Dims are collapsed; runs are copied whole; with `table`, planes that swap two dims go
/// through its blocks. The caller has checked that all indices lie inside both tensors, and that `to` is written once.
void strided_copy(const kernel::RunContext& run, const tensor::Shape& dims, const CopySide& from, const CopySide& to,
                  const microkernels::TransposeTable* table = nullptr);

/// Copies all elements of `from` to `to` (same dtype and count), in parallel.
void copy_all(const kernel::RunContext& run, const tensor::Tensor& from, const tensor::Tensor& to);

/// Sets all bytes of `to`, which holds no strings, in parallel.
void fill_bytes(const kernel::RunContext& run, const tensor::Tensor& to, unsigned char byte = 0);

/// Sub-byte elements as one byte each (codes in the low bits), and back.
tensor::Tensor unpack_sub_byte(const kernel::RunContext& run, const tensor::Tensor& packed);
void pack_sub_byte(const kernel::RunContext& run, const tensor::Tensor& bytes, const tensor::Tensor& packed);

/// Makes a kernel that moves whole elements serve sub-byte types too: calls f(inputs as UInt8 tensors, output as
/// UInt8).
template <class F>
void with_whole_bytes(const kernel::RunContext& run, const tensor::Tensor& in, const tensor::Tensor& out, F&& f) {
  if (!tensor::is_sub_byte(in.dtype())) return f(in, out);
  const tensor::Tensor bytes = tensor::Tensor::make(tensor::DType::UInt8, out.shape(), *run.allocator);
  f(unpack_sub_byte(run, in), bytes);
  pack_sub_byte(run, bytes, out);
}

}  // namespace infernode::ops
