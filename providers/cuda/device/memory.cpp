#include "providers/cuda/device/memory.h"

#include <bit>

#include "base/error.h"

namespace infernode::cuda {

struct Memory::Block {
  std::shared_ptr<Memory> memory;
  DevicePtr at;
  std::size_t size;
  Block(std::shared_ptr<Memory> owner, DevicePtr address, std::size_t bytes)
      : memory(std::move(owner)), at(address), size(bytes) {}
  ~Block() { memory->give_back(at, size); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
};

std::shared_ptr<Memory> Memory::create(std::shared_ptr<Device> device, MemoryOptions options) {
  return std::shared_ptr<Memory>(new Memory(std::move(device), options));
}

Memory::~Memory() { shrink_locked(); }

std::size_t Memory::block_size(std::size_t bytes) const {
  constexpr std::size_t kUnit = 256, kPage = std::size_t{1} << 21;
  if (bytes > (std::size_t{1} << 62)) return bytes;  // the driver refuses it
  if (options_.next_power_of_two && bytes < kPage) return std::max(kUnit, std::bit_ceil(bytes));
  const std::size_t unit = bytes >= kPage ? kPage : kUnit;
  return std::max(kUnit, (bytes + unit - 1) / unit * unit);
}

tensor::Buffer Memory::allocate(std::size_t bytes) {
  const std::size_t size = block_size(bytes);
  const DevicePtr at = take(size);
  auto block = std::make_shared<const Block>(shared_from_this(), at, size);
  return {reinterpret_cast<void*>(at), bytes, std::move(block), device()};
}

DevicePtr Memory::take(std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (const auto kept = free_.find(size); kept != free_.end()) {
    const DevicePtr at = kept->second;
    used_ += size;
    free_.erase(kept);
    return at;
  }
  if (size > options_.limit || held_ > options_.limit - size) shrink_locked();
  if (size > options_.limit || held_ > options_.limit - size) {
    fail(ErrorCode::OutOfMemory, cat(size, " bytes on ", device_->info().name, " exceed gpu_mem_limit: ", held_, " of ",
                                     options_.limit, " bytes are in use"));
  }
  device_->use();
  DevicePtr at = 0;
  driver::Result result = ask_driver(size, at);
  if (result == driver::kOutOfMemory) {
    shrink_locked();
    result = ask_driver(size, at);
  }
  device_->check(result, cat("allocating ", size, " bytes"));
  used_ += size;
  held_ += size;
  return at;
}

driver::Result Memory::ask_driver(std::size_t size, DevicePtr& at) const {
  const driver::Api& api = device_->api();
  if (options_.kind == MemoryKind::OnDevice) return api.memory_allocate(&at, size);
  void* block = nullptr;
  const driver::Result result = api.host_allocate(&block, size, driver::kHostPortable);
  at = reinterpret_cast<DevicePtr>(block);
  return result;
}

void Memory::give_back(DevicePtr at, std::size_t size) {
  const std::lock_guard lock(mutex_);
  used_ -= size;
  free_.emplace(size, at);
}

void Memory::shrink() {
  const std::lock_guard lock(mutex_);
  shrink_locked();
}

void Memory::shrink_locked() {
  if (free_.empty()) return;
  try {
    device_->use();
  } catch (const Error&) {  // with a lost context its memory is gone
    return;
  }
  for (const auto& [size, at] : free_) {
    if (options_.kind == MemoryKind::OnDevice) {
      device_->api().memory_free(at);
    } else {
      device_->api().host_free(reinterpret_cast<void*>(at));
    }
    held_ -= size;
  }
  free_.clear();
}

std::size_t Memory::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::size_t Memory::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace infernode::cuda
