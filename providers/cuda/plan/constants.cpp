#include "providers/cuda/plan/constants.h"

#include "base/content_hash.h"
#include "base/error.h"

namespace infernode::cuda {

Constants::Constants(std::shared_ptr<Device> device, std::shared_ptr<Memory> memory)
    : device_(std::move(device)), memory_(std::move(memory)), stream_(device_) {}

DevicePtr Constants::upload(const tensor::Tensor& host) {
  return find_or_make(host, "", [&] { return copy_of(host); });
}

DevicePtr Constants::pack(const tensor::Tensor& host, std::string_view format, std::size_t bytes,
                          FunctionRef<std::vector<Launch>(DevicePtr, DevicePtr)> pack) {
  return find_or_make(host, format, [&] {
    const tensor::Buffer raw = copy_of(host);
    tensor::Buffer packed = memory_->allocate(bytes);
    const auto launches = ready(*device_, pack(address_of(raw), address_of(packed)));
    enqueue(*device_, launches, stream_.handle());
    stream_.synchronize();
    return packed;
  });
}

DevicePtr Constants::find_or_make(const tensor::Tensor& host, std::string_view format,
                                  FunctionRef<tensor::Buffer()> make) {
  const std::lock_guard lock(mutex_);
  const std::pair at{static_cast<const void*>(host.raw()), host.bytes()};
  auto content = contents_.find(at);
  if (content == contents_.end()) {
    content = contents_.emplace(at, std::pair{host, content_hash(host.byte_span()).to_string()}).first;
  }
  const std::string key = cat(content->second.second, " ", host.to_string(), " ", format);
  if (const auto own = held_.find(key); own != held_.end()) return address_of(*own->second);
  Device::Constants& shared = device_->constants();
  const std::lock_guard shared_lock(shared.mutex);
  std::shared_ptr<const tensor::Buffer> buffer = shared.by_key[key].lock();
  if (!buffer) {
    buffer = std::make_shared<const tensor::Buffer>(make());
    std::erase_if(shared.by_key, [](const auto& item) { return item.second.expired(); });
    shared.by_key[key] = buffer;
  }
  held_.emplace(key, buffer);
  return address_of(*buffer);
}

tensor::Buffer Constants::copy_of(const tensor::Tensor& host) {
  tensor::Buffer buffer = memory_->allocate(host.bytes());
  device_->use();
  if (host.bytes() > 0) {
    device_->check(device_->api().copy_to_device(address_of(buffer), host.raw(), host.bytes(), stream_.handle()),
                   cat("copying a constant ", host.to_string()));
    stream_.synchronize();
  }
  return buffer;
}

std::size_t Constants::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [key, buffer] : held_) total += buffer->size();
  return total;
}

}  // namespace infernode::cuda
