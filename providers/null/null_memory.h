#pragma once

#include "tensor/buffer.h"
#include "tensor/tensor.h"

namespace infernode::provider {

inline constexpr tensor::Device kNullDevice{"null", 0};

/// Host memory that says it is a device's, so that code which forgets a copy is found out.
class NullAllocator final : public tensor::Allocator {
 public:
  tensor::Buffer allocate(std::size_t bytes) override;
  tensor::Device device() const override { return kNullDevice; }
};

/// The same bytes seen as host memory, which is not kept alive: what this "device" computes on.
tensor::Tensor as_host(const tensor::Tensor& on_device);

}  // namespace infernode::provider
