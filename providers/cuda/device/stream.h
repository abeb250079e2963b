#pragma once

#include <span>

#include "provider/provider.h"
#include "providers/cuda/device/device.h"

namespace infernode::cuda {

/// A queue of the device.
class Stream final : public provider::Stream {
 public:
  explicit Stream(std::shared_ptr<Device> device);
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void synchronize() override;
  driver::StreamHandle handle() const { return handle_; }
  Device& device() const { return *device_; }

 private:
  std::shared_ptr<Device> device_;
  driver::StreamHandle handle_ = nullptr;
};

/// A launch whose kernel was found.
struct ReadyLaunch {
  Launch launch;
  driver::Function function = nullptr;
};

std::vector<ReadyLaunch> ready(Device& device, std::vector<Launch> launches);
/// Puts the launches into the stream; the calling thread has the device's context.
void enqueue(Device& device, std::span<const ReadyLaunch> launches, driver::StreamHandle stream);

/// What was captured of a stream, to be replayed.
class CapturedGraph {
 public:
  /// Captures the launches.
  CapturedGraph(std::shared_ptr<Device> device, std::span<const ReadyLaunch> launches, const Stream& stream);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  void launch(driver::StreamHandle stream) const;

 private:
  std::shared_ptr<Device> device_;
  driver::GraphExec exec_ = nullptr;
};

}  // namespace infernode::cuda
