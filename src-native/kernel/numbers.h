#pragma once

#include <cstdint>
#include <vector>

#include "kernel/scratch.h"
#include "tensor/tensor.h"

namespace infernode::kernel {

/// A tensor's elements as T (int64, int32 or float), floats truncated to integers. Integers are a copy, which counts
/// against memoryLimit where they are many: they say where a kernel reads or writes, and whoever shares the tensor's
/// memory may change it between a check and its use. Floats are the tensor's own where it has them; it outlives them.
template <class T>
class Numbers {
 public:
  Numbers() = default;  ///< none
  Numbers(const RunContext& run, const tensor::Tensor& t);
  /// An absent tensor has none.
  Numbers(const RunContext& run, const tensor::Tensor* t) {
    if (t != nullptr) *this = Numbers(run, *t);
  }
  Numbers(Numbers&&) noexcept = default;
  Numbers& operator=(Numbers&&) noexcept = default;

  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + count_; }

 private:
  const T* data_ = nullptr;
  std::size_t count_ = 0;
  std::vector<T> few_;
  Scratch<T> many_;
};

extern template class Numbers<std::int64_t>;
extern template class Numbers<std::int32_t>;
extern template class Numbers<float>;

}  // namespace infernode::kernel
