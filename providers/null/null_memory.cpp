#include "providers/null/null_memory.h"

namespace infernode::provider {

tensor::Buffer NullAllocator::allocate(std::size_t bytes) {
  const tensor::Buffer host = tensor::host_allocator().allocate(bytes);
  return {host.data(), host.size(), std::make_shared<const tensor::Buffer>(host), kNullDevice};
}

tensor::Tensor as_host(const tensor::Tensor& on_device) {
  const tensor::Buffer& buffer = on_device.buffer();
  const std::shared_ptr<const void> nobody(std::shared_ptr<const void>(), buffer.data());
  return {on_device.dtype(), on_device.shape(),
          tensor::Buffer(buffer.data(), buffer.size(), nobody, tensor::Device{}, buffer.writable())};
}

}  // namespace infernode::provider
