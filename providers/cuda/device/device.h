#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "providers/cuda/driver/api.h"
#include "providers/cuda/kernels/launch.h"
#include "tensor/buffer.h"

namespace infernode::cuda {

/// What is known of a GPU without a context on it.
struct DeviceInfo {
  int id = 0;
  std::string name;
  std::size_t memory_bytes = 0;
  int major = 0, minor = 0;  ///< compute capability
  int driver_version = 0;    ///< 13000: CUDA 13.0
};

std::vector<DeviceInfo> list_devices(const driver::Api& api);

/// One GPU of this process: its primary context and the kernels loaded into it. Thread-safe. Sessions share it.
class Device {
 public:
  /// Throws ProviderUnavailable where there is no such device, or none that this build's kernels run on.
  static std::shared_ptr<Device> open(std::shared_ptr<const driver::Api> api, int id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const driver::Api& api() const { return *api_; }
  const DeviceInfo& info() const { return info_; }
  const Target& target() const { return target_; }
  tensor::Device device() const { return {"cuda", static_cast<std::int16_t>(info_.id)}; }

  /// Makes the context the calling thread's: before any call that needs one. Throws where the device was lost.
  void use() const;
  /// A kernel by its name in the embedded images, ready for launches with so much shared memory; Internal where there
  /// is none.
  driver::Function function(const Launch& launch);
  /// Throws what a result means: OutOfMemory, or Internal with the driver's words. An error after which the context can
  /// do nothing more marks the device as lost.
  void check(driver::Result result, std::string_view what) const;

  /// Constants on the device, shared by all sessions, by what they were made of and how; expired ones are dropped.
  struct Constants {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<const tensor::Buffer>, std::less<>> by_key;
  };
  Constants& constants() { return constants_; }

 private:
  struct Loaded {
    driver::Function function = nullptr;
    std::uint32_t shared_bytes = 0;  ///< that launches may ask for so far
    bool large_clusters = false;
  };
  Device(std::shared_ptr<const driver::Api> api, DeviceInfo info);
  void read_target();
  Loaded find(const std::string& name);
  bool load_next_image();

  std::shared_ptr<const driver::Api> api_;
  DeviceInfo info_;
  Target target_;
  driver::Context context_ = nullptr;
  mutable std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::vector<driver::Module> modules_;
  std::size_t images_tried_ = 0;
  std::map<std::string, Loaded, std::less<>> functions_;
  Constants constants_;
};

/// The devices that an engine has opened, each once.
class Devices {
 public:
  std::shared_ptr<Device> open(int id);

 private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<Device>> open_;
};

}  // namespace infernode::cuda
