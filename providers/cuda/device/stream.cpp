#include "providers/cuda/device/stream.h"

#include <cstring>

#include "base/error.h"

namespace infernode::cuda {

Stream::Stream(std::shared_ptr<Device> device) : device_(std::move(device)) {
  device_->use();
  device_->check(device_->api().stream_create(&handle_, driver::kStreamNonBlocking, 0), "cuStreamCreate");
}

Stream::~Stream() { device_->api().stream_destroy(handle_); }

void Stream::synchronize() {
  device_->use();
  const driver::Result result = device_->api().stream_synchronize(handle_);
  held_.clear();
  device_->check(result, "waiting for a run");
}

std::vector<ReadyLaunch> ready(Device& device, std::vector<Launch> launches) {
  std::vector<ReadyLaunch> all;
  all.reserve(launches.size());
  device.use();
  for (Launch& launch : launches) {
    const driver::Function function = device.function(launch);
    all.push_back({std::move(launch), function});
  }
  return all;
}

namespace {

constexpr std::size_t kMostParamBytes = 4096;

void enqueue_one(Device& device, const ReadyLaunch& ready, driver::StreamHandle stream) {
  const Launch& launch = ready.launch;
  driver::LaunchAttribute attributes[2] = {};
  driver::LaunchConfig config{.grid_x = launch.grid.x,
                              .grid_y = launch.grid.y,
                              .grid_z = launch.grid.z,
                              .block_x = launch.block.x,
                              .block_y = launch.block.y,
                              .block_z = launch.block.z,
                              .shared_bytes = launch.shared_bytes,
                              .stream = stream,
                              .attributes = attributes,
                              .attribute_count = 0};
  if (launch.programmatic) {
    driver::LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = driver::kAttributeProgrammaticStreamSerialization;
    attribute.value.programmatic = 1;
  }
  if (launch.cluster.x * launch.cluster.y * launch.cluster.z > 1) {
    driver::LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = driver::kAttributeClusterDimension;
    attribute.value.cluster = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  }
  // Tensor maps among the parameters lie at multiples of 128 bytes.
  alignas(128) std::byte params[kMostParamBytes];
  std::memcpy(params, launch.params.data(), launch.params.size());
  void* arguments[] = {params};
  const driver::Result result = device.api().launch(&config, ready.function, arguments, nullptr);
  if (result != driver::kSuccess) {
    device.check(result, cat("launching ", launch.kernel, " on a grid of ", launch.grid.x, "x", launch.grid.y, "x",
                             launch.grid.z, " blocks of ", launch.block.x * launch.block.y * launch.block.z,
                             " threads with ", launch.shared_bytes, " bytes of shared memory"));
  }
}

}  // namespace

void enqueue(Device& device, std::span<const ReadyLaunch> launches, driver::StreamHandle stream) {
  for (const ReadyLaunch& launch : launches) enqueue_one(device, launch, stream);
}

CapturedGraph::CapturedGraph(std::shared_ptr<Device> device, std::span<const ReadyLaunch> launches)
    : device_(std::move(device)) {
  const driver::Api& api = device_->api();
  Stream stream(device_);
  driver::Graph graph = nullptr;
  device_->check(api.capture_begin(stream.handle(), driver::kCaptureThreadLocal), "cuStreamBeginCapture");
  try {
    enqueue(*device_, launches, stream.handle());
  } catch (const Error&) {
    api.capture_end(stream.handle(), &graph);
    if (graph != nullptr) api.graph_destroy(graph);
    throw;
  }
  device_->check(api.capture_end(stream.handle(), &graph), "cuStreamEndCapture");
  const driver::Result made = api.graph_instantiate(&exec_, graph, 0);
  api.graph_destroy(graph);
  device_->check(made, "cuGraphInstantiate");
  device_->check(api.graph_upload(exec_, stream.handle()), "cuGraphUpload");
  stream.synchronize();
}

CapturedGraph::~CapturedGraph() { device_->api().graph_exec_destroy(exec_); }

void CapturedGraph::launch(driver::StreamHandle stream) const {
  device_->check(device_->api().graph_launch(exec_, stream), "cuGraphLaunch");
}

}  // namespace infernode::cuda
