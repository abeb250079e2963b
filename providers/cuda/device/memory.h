#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "providers/cuda/device/device.h"

namespace infernode::cuda {

enum class MemoryKind : std::uint8_t {
  OnDevice,
  PinnedHost,  ///< of the host, where copies from and to the device are fast
};

struct MemoryOptions {
  MemoryKind kind = MemoryKind::OnDevice;
  std::size_t limit = SIZE_MAX;    ///< bytes that one session may hold (gpu_mem_limit)
  bool next_power_of_two = false;  ///< blocks grow to powers of two (arena_extend_strategy), so that more fit again
};

/// One session's memory on a device, or pinned memory beside it: blocks that are given back are kept for the next
/// request. Whoever gives one back has waited for the work that used it. Thread-safe.
class Memory final : public tensor::Allocator, public std::enable_shared_from_this<Memory> {
 public:
  static std::shared_ptr<Memory> create(std::shared_ptr<Device> device, MemoryOptions options);
  ~Memory() override;

  /// Aligned to 256 bytes. Throws OutOfMemory with the size asked for, the bytes in use and the limit.
  tensor::Buffer allocate(std::size_t bytes) override;
  tensor::Device device() const override {
    return options_.kind == MemoryKind::OnDevice ? device_->device() : tensor::Device{};
  }
  /// Gives blocks that nobody uses back to the driver.
  void shrink();
  std::size_t used() const;  ///< bytes in blocks that somebody uses
  std::size_t held() const;  ///< those and the kept ones

 private:
  struct Block;
  Memory(std::shared_ptr<Device> device, MemoryOptions options) : device_(std::move(device)), options_(options) {}
  std::size_t block_size(std::size_t bytes) const;
  DevicePtr take(std::size_t size);
  driver::Result ask_driver(std::size_t size, DevicePtr& at) const;
  void give_back(DevicePtr at, std::size_t size);
  void shrink_locked();

  std::shared_ptr<Device> device_;
  MemoryOptions options_;
  mutable std::mutex mutex_;
  std::multimap<std::size_t, DevicePtr> free_;
  std::size_t used_ = 0, held_ = 0;
};

/// A tensor's address on the device.
inline DevicePtr address_of(const tensor::Buffer& buffer) { return reinterpret_cast<DevicePtr>(buffer.data()); }

}  // namespace infernode::cuda
