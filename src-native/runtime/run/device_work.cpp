#include "runtime/run/device_work.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/thread_pool/fault.h"

namespace infernode::runtime {

bool DeviceWork::Device::synchronize() {
  if (!busy) return false;
  struct Empty {
    Device& device;
    ~Empty() {
      device.busy = false;
      device.in_use.clear();
      device.given.clear();
    }
  } empty{*this};
  stream->synchronize();
  return true;
}

void DeviceWork::prepare(std::span<provider::Provider* const> providers) {
  for (provider::Provider* const provider : providers) {
    const auto is_there = [provider](const auto& device) { return device->provider == provider; };
    if (std::ranges::none_of(devices_, is_there)) devices_.push_back(std::make_unique<Device>(*provider, keep_bytes_));
  }
}

DeviceWork::Device& DeviceWork::of(const provider::Provider& provider) {
  const auto found = std::ranges::find_if(devices_, [&](const auto& device) { return device->provider == &provider; });
  if (found == devices_.end()) fail(ErrorCode::Internal, cat("no stream was made for '", provider.name(), "'"));
  return **found;
}

DeviceWork::Device& DeviceWork::of(const kernel::Stream& stream) {
  return **std::ranges::find_if(devices_, [&](const auto& device) { return device->stream.get() == &stream; });
}

bool DeviceWork::wait_for(std::span<const graph::ValueId> values, const kernel::Stream* own) {
  bool waited = false;
  for (const auto& device : devices_) {
    if (device->stream.get() == own || device->given.empty()) continue;
    const auto is_given = [&](graph::ValueId id) {
      return std::ranges::find(device->given, id) != device->given.end();
    };
    if (std::ranges::any_of(values, is_given)) waited = device->synchronize() || waited;
  }
  return waited;
}

void DeviceWork::keep(const kernel::Stream& stream, std::span<const tensor::Value* const> inputs,
                      std::span<const tensor::Value> outputs) noexcept {
  Device& device = of(stream);
  device.busy = true;
  try {
    for (const tensor::Value* input : inputs) {
      if (input != nullptr) device.in_use.push_back(*input);
    }
    device.in_use.insert(device.in_use.end(), outputs.begin(), outputs.end());
  } catch (...) {  // no memory to note it: the work is done before they can go
    abandon();
  }
}

void DeviceWork::give(const kernel::Stream& stream, std::span<const graph::ValueId> values) {
  Device& device = of(stream);
  device.given.insert(device.given.end(), values.begin(), values.end());
}

bool DeviceWork::synchronize() {
  bool waited = false;
  Fault fault;
  for (const auto& device : devices_) {
    try {
      waited = device->synchronize() || waited;
    } catch (...) {
      fault.note();
    }
  }
  if (fault) std::move(fault).rethrow();
  return waited;
}

void DeviceWork::abandon() noexcept {
  try {
    synchronize();
  } catch (...) {  // the run's own error is the one to tell
  }
}

std::size_t DeviceWork::kept_bytes() const {
  std::size_t bytes = 0;
  for (const auto& device : devices_) bytes += device->staging.kept_bytes();
  return bytes;
}

void DeviceWork::trim() {
  for (const auto& device : devices_) device->staging.trim();
}

}  // namespace infernode::runtime
