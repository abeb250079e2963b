#include "providers/cuda/driver/api.h"

#include <cstdlib>

#include "base/error.h"
#include "provider/dynamic_library.h"

namespace infernode::cuda::driver {

namespace {

#if defined(_WIN32)
constexpr const char* kLibraries[] = {"nvcuda.dll"};
#else
constexpr const char* kLibraries[] = {"libcuda.so.1"};
#endif

/// Versions of functions are those of this CUDA version's headers.
constexpr int kInterface = 12080;

[[noreturn]] void unavailable(std::string_view why) {
  fail(ErrorCode::ProviderUnavailable, cat("provider 'cuda' cannot start: ", why));
}

std::string version_text(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

/// Whether the user hides all devices: the variable is set and names none.
bool hides_devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && (visible[0] == 0 || visible[0] == '-');
}

[[noreturn]] void fail_init(const Api& api, Result result) {
  if (result == kNoDevice) {
    if (hides_devices()) unavailable("CUDA_VISIBLE_DEVICES hides all devices from this process.");
    unavailable("the driver is here, but it finds no NVIDIA GPU (cuInit: CUDA_ERROR_NO_DEVICE).");
  }
  if (result == kStubLibrary) unavailable("libcuda is the toolkit's stub, not the driver: install NVIDIA's driver.");
  const char *name = "", *text = "";
  api.error_name(result, &name);
  api.error_string(result, &text);
  unavailable(cat("cuInit failed with ", name == nullptr ? "" : name, " (", result, "): ", text == nullptr ? "" : text,
                  result == kSystemDriverMismatch ? ". Restart the machine after the driver's update." : "."));
}

void check_version(Api& api) {
  if (api.driver_version(&api.version) != kSuccess) unavailable("the driver does not tell its version.");
  if (api.version < kOldestDriver) {
    unavailable(cat("the driver is too old: it speaks CUDA ", version_text(api.version), ", and this build needs ",
                    version_text(kOldestDriver), " or later (driver 580). Update NVIDIA's driver."));
  }
}

}  // namespace

std::shared_ptr<const Api> open() {
  std::string why;
  auto api = std::make_shared<Api>();
  api->library = provider::DynamicLibrary::open(kLibraries, why);
  if (!api->library) {
    unavailable(cat("there is no NVIDIA driver. Failed to load shared library: ", why));
  }
  using GetProcAddress = Result(INFERNODE_CUDA_CALL*)(const char*, void**, int, std::uint64_t, int*);
  using GetVersion = Result(INFERNODE_CUDA_CALL*)(int*);
  const auto find = reinterpret_cast<GetProcAddress>(api->library->symbol("cuGetProcAddress_v2"));
  if (find == nullptr) {
    api->driver_version = reinterpret_cast<GetVersion>(api->library->symbol("cuDriverGetVersion"));
    if (api->driver_version != nullptr) check_version(*api);
    unavailable(cat(kLibraries[0], " has no cuGetProcAddress_v2: the driver is too old. Update NVIDIA's driver."));
  }
  std::string missing;
#define INFERNODE_CUDA_FIND(member, name, parameters)                                                          \
  {                                                                                                            \
    void* address = nullptr;                                                                                   \
    int status = 0;                                                                                            \
    if (find(#name, &address, kInterface, 0, &status) != kSuccess || address == nullptr) missing += " " #name; \
    api->member = reinterpret_cast<decltype(api->member)>(address);                                            \
  }
  INFERNODE_CUDA_FUNCTIONS(INFERNODE_CUDA_FIND)
#undef INFERNODE_CUDA_FIND
  if (api->driver_version != nullptr) check_version(*api);
  if (!missing.empty()) unavailable(cat(kLibraries[0], " lacks", missing, ": update NVIDIA's driver."));
  if (const Result result = api->init(0); result != kSuccess) fail_init(*api, result);
  if (api->device_count(&api->devices) != kSuccess || api->devices == 0) fail_init(*api, kNoDevice);
  return api;
}

}  // namespace infernode::cuda::driver
