#include "providers/cuda/plan/kernel_times.h"

#include <algorithm>
#include <cstdio>

namespace infernode::cuda {

namespace {

class Event {
 public:
  explicit Event(Device& device) : device_(device) {
    device_.check(device_.api().event_create(&handle_, driver::kEventDefault), "cuEventCreate");
  }
  ~Event() { device_.api().event_destroy(handle_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  driver::EventHandle handle() const { return handle_; }

 private:
  Device& device_;
  driver::EventHandle handle_ = nullptr;
};

/// Of one replay, the median of some, us.
double replay_us(const std::shared_ptr<Device>& device, std::span<const ReadyLaunch> launches) {
  constexpr int kWarm = 2, kRuns = 9;
  const driver::Api& api = device->api();
  const CapturedGraph graph(device, launches);
  Stream stream(device);
  const Event begin(*device), end(*device);
  std::vector<double> times;
  for (int i = 0; i < kWarm + kRuns; ++i) {
    device->check(api.event_record(begin.handle(), stream.handle()), "cuEventRecord");
    graph.launch(stream.handle());
    device->check(api.event_record(end.handle(), stream.handle()), "cuEventRecord");
    stream.synchronize();
    float ms = 0;
    device->check(api.event_elapsed(&ms, begin.handle(), end.handle()), "cuEventElapsedTime");
    if (i >= kWarm) times.push_back(ms * 1e3);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

std::string line_of(double us, const Launch& l) {
  char text[200];
  std::snprintf(text, sizeof(text), "%8.2f us  %s  grid %ux%ux%u, block %u, cluster %u, %u KB", us, l.kernel.c_str(),
                l.grid.x, l.grid.y, l.grid.z, l.block.x * l.block.y * l.block.z,
                l.cluster.x * l.cluster.y * l.cluster.z, l.shared_bytes / 1024);
  return text;
}

}  // namespace

void log_kernel_times(const std::shared_ptr<Device>& device, std::span<const ReadyLaunch> launches,
                      const Logger& logger) {
  constexpr std::size_t kChain = 20;
  double sum = 0;
  for (const ReadyLaunch& one : launches) {
    const std::vector<ReadyLaunch> chain(kChain, one);
    const double us = replay_us(device, chain) / kChain;
    sum += us;
    logger.log(LogSeverity::Info, "cuda", line_of(us, one.launch));
  }
  char text[120];
  std::snprintf(text, sizeof(text), "%zu launches, %.1f us each in a chain of its own; one replay %.1f us",
                launches.size(), sum, replay_us(device, launches));
  logger.log(LogSeverity::Info, "cuda", text);
}

}  // namespace infernode::cuda
