#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/stream.h"
#include "providers/cuda/device/device.h"

namespace infernode::cuda {

/// A run's queue on the device.
class Stream final : public kernel::Stream {
 public:
  explicit Stream(std::shared_ptr<Device> device);
  ~Stream() override;

  void synchronize() override;
  /// Keeps something until what is in the queue is done.
  void hold(std::shared_ptr<void> something) { held_.push_back(std::move(something)); }
  driver::StreamHandle handle() const { return handle_; }
  Device& device() const { return *device_; }

 private:
  std::shared_ptr<Device> device_;
  driver::StreamHandle handle_ = nullptr;
  std::vector<std::shared_ptr<void>> held_;
};

/// A launch whose kernel was found.
struct ReadyLaunch {
  Launch launch;
  driver::Function function = nullptr;
};

std::vector<ReadyLaunch> ready(Device& device, std::vector<Launch> launches);
/// Puts the launches into the stream; the calling thread has the device's context.
void enqueue(Device& device, std::span<const ReadyLaunch> launches, driver::StreamHandle stream);

/// Launches that were captured, to be replayed. One replay at a time.
class CapturedGraph {
 public:
  CapturedGraph(std::shared_ptr<Device> device, std::span<const ReadyLaunch> launches);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  void launch(driver::StreamHandle stream) const;

 private:
  std::shared_ptr<Device> device_;
  driver::GraphExec exec_ = nullptr;
};

}  // namespace infernode::cuda
