#pragma once
// Kernels that compute in float or double over tensors of any floating type: 16-bit tensors are converted as a whole.

#include <cstdint>
#include <type_traits>

#include "kernel/kernel.h"
#include "tensor/dispatch.h"

namespace infernode::ops {

/// Calls f(TypeTag<T>) with double for float64 and float for the other floating types.
template <class F>
void dispatch_reals(tensor::DType type, const char* what, F&& f) {
  using enum tensor::DType;
  if (type == Float64) return f(tensor::TypeTag<double>{});
  if (type == Float32 || type == Float16 || type == BFloat16) return f(tensor::TypeTag<float>{});
  tensor::fail_dispatch(type, what);
}

/// Converts between floating tensors of the same count (float16, bfloat16, float32, float64), in parallel.
void convert_reals(const kernel::RunContext& run, const microkernels::KernelSet& kernels, tensor::DType from_type,
                   const void* from, tensor::DType to_type, void* to, std::size_t count);

/// A floating tensor's elements as T (float or double): its own memory, or a converted copy.
template <class T>
class RealInput {
 public:
  RealInput() = default;  ///< null
  RealInput(const kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const tensor::Tensor& t) {
    if (t.dtype() == tensor::kDTypeOf<T>) {
      data_ = t.data<T>();
    } else {
      copy_ = tensor::Tensor::make(tensor::kDTypeOf<T>, t.shape(), *ctx.run().allocator);
      convert_reals(ctx.run(), kernels, t.dtype(), t.raw(), copy_.dtype(), copy_.mutable_raw(),
                    static_cast<std::size_t>(t.numel()));
      data_ = copy_.template data<T>();
    }
  }
  /// An absent tensor gives a null pointer.
  RealInput(const kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const tensor::Tensor* t) {
    if (t != nullptr) *this = RealInput(ctx, kernels, *t);
  }
  const T* data() const { return data_; }
  operator const T*() const { return data_; }

 private:
  tensor::Tensor copy_;
  const T* data_ = nullptr;
};

/// Where a result of T goes: the tensor's own memory, or scratch that `store` converts. Null for an empty Tensor.
template <class T>
class RealOutput {
 public:
  RealOutput(const kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const tensor::Tensor& t)
      : run_(ctx.run()), kernels_(kernels), target_(t) {
    if (!t) return;
    if (t.dtype() != tensor::kDTypeOf<T>)
      copy_ = tensor::Tensor::make(tensor::kDTypeOf<T>, t.shape(), *ctx.run().allocator);
    data_ = (copy_ ? copy_ : target_).template mutable_data<T>();
  }
  T* data() const { return data_; }
  operator T*() const { return data_; }
  /// To be called once all is written.
  void store() const {
    if (copy_)
      convert_reals(run_, kernels_, copy_.dtype(), copy_.raw(), target_.dtype(), target_.mutable_raw(),
                    static_cast<std::size_t>(target_.numel()));
  }

 private:
  const kernel::RunContext& run_;
  const microkernels::KernelSet& kernels_;
  tensor::Tensor target_, copy_;
  T* data_ = nullptr;
};

}  // namespace infernode::ops
