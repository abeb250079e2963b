#include "providers/cuda/device/device.h"

#include "base/error.h"
#include "providers/cuda/device/images.h"

namespace infernode::cuda {

namespace {

constexpr std::uint32_t kSharedWithoutAsking = 48 * 1024;
constexpr std::uint32_t kPortableCluster = 8;

/// Errors after which a context answers every call with the same error.
bool is_sticky(driver::Result result) {
  switch (result) {
    case driver::kIllegalAddress:
    case driver::kLaunchTimeout:
    case driver::kAssert:
    case driver::kHardwareStackError:
    case driver::kIllegalInstruction:
    case driver::kMisalignedAddress:
    case driver::kInvalidAddressSpace:
    case driver::kInvalidPc:
    case driver::kLaunchFailed:
      return true;
    default:
      return false;
  }
}

DeviceInfo describe(const driver::Api& api, int id) {
  DeviceInfo info{.id = id, .name = {}, .driver_version = api.version};
  driver::DeviceId handle = 0;
  char name[256] = "";
  api.device_get(&handle, id);
  api.device_name(name, sizeof(name) - 1, handle);
  api.device_total_memory(&info.memory_bytes, handle);
  api.device_attribute(&info.major, driver::kComputeCapabilityMajor, handle);
  api.device_attribute(&info.minor, driver::kComputeCapabilityMinor, handle);
  info.name = name;
  return info;
}

std::string error_text(const driver::Api& api, driver::Result result) {
  const char *name = nullptr, *text = nullptr;
  api.error_name(result, &name);
  api.error_string(result, &text);
  return cat(name == nullptr ? "an unknown error" : name, " (", result, ")", text == nullptr ? "" : ": ",
             text == nullptr ? "" : text);
}

}  // namespace

std::vector<DeviceInfo> list_devices(const driver::Api& api) {
  std::vector<DeviceInfo> all;
  for (int id = 0; id < api.devices; ++id) all.push_back(describe(api, id));
  return all;
}

std::shared_ptr<Device> Device::open(std::shared_ptr<const driver::Api> api, int id) {
  if (id < 0 || id >= api->devices) {
    fail(ErrorCode::ProviderUnavailable, cat("provider 'cuda' cannot start: there is no device ", id,
                                             "; the driver has ", api->devices, " (device_id counts from 0)."));
  }
  DeviceInfo info = describe(*api, id);
  return std::shared_ptr<Device>(new Device(std::move(api), std::move(info)));
}

Device::Device(std::shared_ptr<const driver::Api> api, DeviceInfo info) : api_(std::move(api)), info_(std::move(info)) {
  constexpr int kOldest = 75;
  read_target();
  if (target_.sm < kOldest) {
    fail(ErrorCode::ProviderUnavailable, cat("provider 'cuda' cannot start: ", info_.name, " has compute capability ",
                                             info_.major, ".", info_.minor, ", and 7.5 is the least."));
  }
  driver::DeviceId handle = 0;
  api_->device_get(&handle, info_.id);
  const driver::Result result = api_->primary_context_retain(&context_, handle);
  if (result != driver::kSuccess) {
    fail(ErrorCode::ProviderUnavailable,
         cat("provider 'cuda' cannot start: no context on ", info_.name, ": ", error_text(*api_, result)));
  }
}

Device::~Device() {
  if (!lost_ && api_->set_context(context_) == driver::kSuccess) {
    for (const driver::Module module : modules_) api_->module_unload(module);
  }
  driver::DeviceId handle = 0;
  api_->device_get(&handle, info_.id);
  api_->primary_context_release(handle);
}

void Device::read_target() {
  driver::DeviceId handle = 0;
  int shared = 0, l2 = 0;
  api_->device_get(&handle, info_.id);
  api_->device_attribute(&target_.sm_count, driver::kMultiprocessorCount, handle);
  api_->device_attribute(&shared, driver::kMaxSharedMemoryPerBlockOptin, handle);
  api_->device_attribute(&l2, driver::kL2CacheSize, handle);
  target_.sm = info_.major * 10 + info_.minor;
  target_.shared_per_block = static_cast<std::size_t>(shared);
  target_.l2_bytes = static_cast<std::size_t>(l2);
  target_.api = api_.get();
}

void Device::use() const {
  if (lost_) {
    fail(ErrorCode::Internal, cat("the context on ", info_.name, " was lost by an earlier error: restart the process"));
  }
  check(api_->set_context(context_), "cuCtxSetCurrent");
}

bool Device::load_next_image() {
  while (images_tried_ < images().size()) {
    const Image& image = images()[images_tried_++];
    driver::Module module = nullptr;
    const driver::Result result = api_->module_load(&module, image.data);
    if (result == driver::kNoBinaryForGpu) continue;  // of another architecture
    check(result, cat("loading the kernels of ", image.name));
    modules_.push_back(module);
    return true;
  }
  return false;
}

Device::Loaded Device::find(const std::string& name) {
  Loaded loaded;
  std::size_t tried = 0;
  do {
    for (; tried < modules_.size() && loaded.function == nullptr; ++tried) {
      const driver::Result result = api_->module_function(&loaded.function, modules_[tried], name.c_str());
      if (result == driver::kNotFound) loaded.function = nullptr;
      if (result != driver::kNotFound) check(result, cat("finding the kernel ", name));
    }
  } while (loaded.function == nullptr && load_next_image());
  if (loaded.function == nullptr) {
    fail(ErrorCode::Internal, cat("this build of infernode has no CUDA kernel '", name, "' for ", info_.name));
  }
  // Kernels of a net with different carve-outs would drain the processors in between.
  api_->function_set_attribute(loaded.function, driver::kPreferredSharedMemoryCarveout, 100);
  return loaded;
}

driver::Function Device::function(const Launch& launch) {
  const std::lock_guard lock(mutex_);
  auto at = functions_.find(launch.kernel);
  if (at == functions_.end()) at = functions_.emplace(launch.kernel, find(launch.kernel)).first;
  Loaded& loaded = at->second;
  if (launch.shared_bytes > std::max(kSharedWithoutAsking, loaded.shared_bytes)) {
    check(api_->function_set_attribute(loaded.function, driver::kMaxDynamicSharedSizeBytes,
                                       static_cast<int>(launch.shared_bytes)),
          cat("shared memory of ", launch.shared_bytes, " bytes for the kernel ", launch.kernel));
    loaded.shared_bytes = launch.shared_bytes;
  }
  if (launch.cluster.x * launch.cluster.y * launch.cluster.z > kPortableCluster && !loaded.large_clusters) {
    check(api_->function_set_attribute(loaded.function, driver::kNonPortableClusterSizeAllowed, 1),
          cat("large clusters for the kernel ", launch.kernel));
    loaded.large_clusters = true;
  }
  return loaded.function;
}

void Device::check(driver::Result result, std::string_view what) const {
  if (result == driver::kSuccess) return;
  if (result == driver::kOutOfMemory) {
    std::size_t free = 0, total = 0;
    api_->memory_info(&free, &total);
    fail(ErrorCode::OutOfMemory,
         cat(info_.name, " is out of memory (", what, "): ", free, " of ", total, " bytes are free"));
  }
  if (is_sticky(result)) {
    lost_ = true;
    fail(ErrorCode::Internal, cat(info_.name, " reported ", error_text(*api_, result), " (", what,
                                  "). Its context is lost: sessions on it fail until the process is restarted."));
  }
  fail(ErrorCode::Internal, cat(info_.name, ": ", what, " failed with ", error_text(*api_, result)));
}

std::shared_ptr<Device> Devices::open(int id) {
  const std::lock_guard lock(mutex_);
  if (auto device = open_[id].lock()) return device;
  auto device = Device::open(driver::open(), id);
  open_[id] = device;
  return device;
}

}  // namespace infernode::cuda
