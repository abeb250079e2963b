#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "double.h"
#include "providers/cuda/driver/types.h"

namespace infernode::cuda_double {

using namespace cuda::driver;

State& state() {
  static State one;
  return one;
}

namespace {

struct Kernel {
  std::string name;
  int shared_limit = 48 * 1024;
};

/// What was put into a stream and waits to be done.
using Work = std::function<void()>;

struct Queue {
  std::vector<Work> work;
  bool capturing = false;
};

struct Driver {
  std::recursive_mutex mutex;
  std::map<DeviceAddress, std::size_t> memory;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::set<Queue*> queues;
};
Driver& driver() {
  static Driver one;
  return one;
}

void complain(std::string text) { state().complaints.push_back(std::move(text)); }

Queue& queue_of(StreamHandle handle) { return *reinterpret_cast<Queue*>(handle); }
bool is_device_memory(DeviceAddress at, std::size_t bytes) {
  auto block = driver().memory.upper_bound(at);
  if (block == driver().memory.begin()) return false;
  --block;
  return at + bytes <= block->first + block->second;
}
void expect_memory(DeviceAddress at, std::size_t bytes, const char* what) {
  if (!is_device_memory(at, bytes)) complain(std::string(what) + " outside of device memory");
}

#define LOCK const std::lock_guard lock(driver().mutex)

Result init(unsigned) { return state().init_result; }
Result driver_version(int* version) { return *version = state().version, kSuccess; }
Result error_name(Result, const char** text) { return *text = "CUDA_ERROR_OF_THE_DOUBLE", kSuccess; }
Result error_string(Result, const char** text) { return *text = "as the test wanted", kSuccess; }
Result device_count(int* count) { return *count = state().devices, kSuccess; }
Result device_get(DeviceId* id, int ordinal) { return *id = ordinal, kSuccess; }
Result device_name(char* name, int bytes, DeviceId) {
  std::strncpy(name, "Double GPU", static_cast<std::size_t>(bytes));
  return kSuccess;
}
Result device_attribute(int* value, int attribute, DeviceId) {
  switch (attribute) {
    case kMultiprocessorCount:
      return *value = 16, kSuccess;
    case kL2CacheSize:
      return *value = 1 << 22, kSuccess;
    case kComputeCapabilityMajor:
      return *value = 7, kSuccess;
    case kComputeCapabilityMinor:
      return *value = 5, kSuccess;
    case kMaxSharedMemoryPerBlockOptin:
      return *value = 64 * 1024, kSuccess;
    default:
      complain("an attribute that nobody should ask for");
      return kInvalidValue;
  }
}
Result device_total_memory(std::size_t* bytes, DeviceId) { return *bytes = std::size_t{1} << 34, kSuccess; }
Result primary_context_retain(Context* context, DeviceId) {
  return *context = reinterpret_cast<Context>(&driver()), kSuccess;
}
Result primary_context_release(DeviceId) { return kSuccess; }
Result set_context(Context) { return kSuccess; }
Result memory_info(std::size_t* free, std::size_t* total) {
  *free = state().most_bytes - state().bytes;
  *total = state().most_bytes;
  return kSuccess;
}
Result memory_allocate(DeviceAddress* at, std::size_t bytes) {
  LOCK;
  if (bytes > state().most_bytes || state().bytes > state().most_bytes - bytes) return kOutOfMemory;
  void* block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  if (block == nullptr) return kOutOfMemory;
  std::memset(block, 0xff, bytes);  // NaN to whoever reads what nobody wrote
  *at = reinterpret_cast<DeviceAddress>(block);
  driver().memory[*at] = bytes;
  state().bytes += bytes;
  return kSuccess;
}
Result memory_free(DeviceAddress at) {
  LOCK;
  const auto block = driver().memory.find(at);
  if (block == driver().memory.end()) return complain("memory freed that is none"), kInvalidValue;
  state().bytes -= block->second;
  driver().memory.erase(block);
  std::free(reinterpret_cast<void*>(at));
  return kSuccess;
}
Result host_allocate(void** at, std::size_t bytes, unsigned) {
  *at = bytes > kMostBytes ? nullptr : std::malloc(bytes);
  return *at == nullptr ? kOutOfMemory : kSuccess;
}
Result host_free(void* at) { return std::free(at), kSuccess; }

Result put(StreamHandle stream, Work work) {
  LOCK;
  if (state().wait_result == 0) queue_of(stream).work.push_back(std::move(work));
  return state().wait_result;
}
Result copy(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
  return put(stream, [=] { std::memcpy(to, from, bytes); });
}
Result copy_to_device(DeviceAddress to, const void* from, std::size_t bytes, StreamHandle stream) {
  expect_memory(to, bytes, "a copy to the device");
  return copy(reinterpret_cast<void*>(to), from, bytes, stream);
}
Result copy_to_host(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) {
  expect_memory(from, bytes, "a copy from the device");
  return copy(to, reinterpret_cast<const void*>(from), bytes, stream);
}
Result copy_on_device(DeviceAddress to, DeviceAddress from, std::size_t bytes, StreamHandle stream) {
  expect_memory(to, bytes, "a copy on the device");
  expect_memory(from, bytes, "a copy on the device");
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, stream);
}
Result fill_bytes(DeviceAddress at, unsigned char byte, std::size_t bytes, StreamHandle stream) {
  expect_memory(at, bytes, "a fill");
  return put(stream, [=] { std::memset(reinterpret_cast<void*>(at), byte, bytes); });
}

Result stream_create(StreamHandle* stream, unsigned, int) {
  LOCK;
  auto* queue = new Queue;  // the handle owns it, as the driver's do
  driver().queues.insert(queue);
  return *stream = reinterpret_cast<StreamHandle>(queue), kSuccess;
}
Result stream_synchronize(StreamHandle stream) {
  LOCK;
  std::vector<Work> work = std::move(queue_of(stream).work);
  queue_of(stream).work.clear();
  for (const Work& one : work) one();
  return state().wait_result;
}
Result stream_destroy(StreamHandle stream) {
  LOCK;
  if (!queue_of(stream).work.empty()) complain("a stream destroyed before its work was done");
  driver().queues.erase(&queue_of(stream));
  delete &queue_of(stream);
  return kSuccess;
}
Result event_create(EventHandle* event, unsigned) { return *event = nullptr, kSuccess; }
Result event_destroy(EventHandle) { return kSuccess; }
Result event_record(EventHandle, StreamHandle) { return kSuccess; }
Result event_synchronize(EventHandle) { return kSuccess; }
Result event_elapsed(float* ms, EventHandle, EventHandle) { return *ms = 0, kSuccess; }

Result module_load(Module* module, const void* image) {
  return *module = reinterpret_cast<Module>(const_cast<void*>(image)), kSuccess;
}
Result module_unload(Module) { return kSuccess; }
Result module_function(Function* function, Module, const char* name) {
  LOCK;
  auto& kernel = driver().kernels[name];
  if (!kernel) kernel = std::make_unique<Kernel>(Kernel{name});
  return *function = reinterpret_cast<Function>(kernel.get()), kSuccess;
}
Result function_set_attribute(Function function, int attribute, int value) {
  if (attribute == kMaxDynamicSharedSizeBytes) {
    if (value > 64 * 1024) return complain("more shared memory than there is"), kInvalidValue;
    reinterpret_cast<Kernel*>(function)->shared_limit = value;
  }
  return kSuccess;
}

void check_launch(const LaunchConfig& c, const Kernel& kernel) {
  const auto wrong = [&](const char* what) { complain(kernel.name + ": " + what); };
  const std::uint64_t threads = std::uint64_t{c.block_x} * c.block_y * c.block_z;
  if (threads == 0 || threads > 1024) wrong("a block of no or too many threads");
  if (c.grid_x == 0 || c.grid_y == 0 || c.grid_z == 0) wrong("an empty grid");
  if (c.grid_x > 0x7fffffffu || c.grid_y > 65535 || c.grid_z > 65535) wrong("a grid that is too large");
  if (static_cast<int>(c.shared_bytes) > kernel.shared_limit) wrong("more shared memory than was asked for");
}

struct alignas(64) Argument {
  unsigned char bytes[4096];
};

Result launch(const LaunchConfig* config, Function function, void** params, void**) {
  LOCK;
  if (const int result = state().next_launch_result; result != 0) return state().next_launch_result = 0, result;
  const Kernel& kernel = *reinterpret_cast<Kernel*>(function);
  check_launch(*config, kernel);
  LaunchRecord record{kernel.name,
                      {config->grid_x, config->grid_y, config->grid_z},
                      {config->block_x, config->block_y, config->block_z},
                      config->shared_bytes};
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    if (config->attributes[i].id == kAttributeProgrammaticStreamSerialization) record.programmatic = true;
  }
  record.replayed = queue_of(config->stream).capturing;
  const HostKernel* host = find_kernel(kernel.name);
  if (host == nullptr && !needs_device(kernel.name))
    complain(kernel.name + ": the host has none of it (test/native/cuda/double/*_kernels.cpp)");
  auto argument = std::make_shared<Argument>();
  if (host != nullptr) std::memcpy(argument->bytes, params[0], host->param_bytes);
  return put(config->stream, [record, host, argument] {
    state().launches.push_back(record);
    if (host != nullptr) host->run(argument->bytes, record.grid, record.block);
  });
}

struct Captured {
  std::vector<Work> work;
};
Result capture_begin(StreamHandle stream, int) {
  LOCK;
  if (!queue_of(stream).work.empty()) complain("a capture in a stream that has work");
  return queue_of(stream).capturing = true, kSuccess;
}
Result capture_end(StreamHandle stream, Graph* graph) {
  LOCK;
  Queue& queue = queue_of(stream);
  queue.capturing = false;
  *graph = reinterpret_cast<Graph>(new Captured{std::move(queue.work)});
  queue.work.clear();
  return kSuccess;
}
Result graph_instantiate(GraphExec* exec, Graph graph, unsigned long long) {
  ++state().graphs;
  return *exec = reinterpret_cast<GraphExec>(new Captured(*reinterpret_cast<Captured*>(graph))), kSuccess;
}
Result graph_upload(GraphExec, StreamHandle) { return kSuccess; }
Result graph_launch(GraphExec exec, StreamHandle stream) {
  for (const Work& work : reinterpret_cast<Captured*>(exec)->work) put(stream, work);
  return state().wait_result;
}
Result graph_destroy(Graph graph) { return delete reinterpret_cast<Captured*>(graph), kSuccess; }
Result graph_exec_destroy(GraphExec exec) { return delete reinterpret_cast<Captured*>(exec), kSuccess; }
Result encode_map(TensorMapBytes* map, ...) { return *map = {}, kSuccess; }

const std::map<std::string, void*>& functions() {
#define FUNCTION(name, function) \
  { #name, reinterpret_cast < void*>(function) }
  static const std::map<std::string, void*> all = {
      FUNCTION(cuInit, init),
      FUNCTION(cuDriverGetVersion, driver_version),
      FUNCTION(cuGetErrorName, error_name),
      FUNCTION(cuGetErrorString, error_string),
      FUNCTION(cuDeviceGetCount, device_count),
      FUNCTION(cuDeviceGet, device_get),
      FUNCTION(cuDeviceGetName, device_name),
      FUNCTION(cuDeviceGetAttribute, device_attribute),
      FUNCTION(cuDeviceTotalMem, device_total_memory),
      FUNCTION(cuDevicePrimaryCtxRetain, primary_context_retain),
      FUNCTION(cuDevicePrimaryCtxRelease, primary_context_release),
      FUNCTION(cuCtxSetCurrent, set_context),
      FUNCTION(cuMemGetInfo, memory_info),
      FUNCTION(cuMemAlloc, memory_allocate),
      FUNCTION(cuMemFree, memory_free),
      FUNCTION(cuMemHostAlloc, host_allocate),
      FUNCTION(cuMemFreeHost, host_free),
      FUNCTION(cuMemcpyHtoDAsync, copy_to_device),
      FUNCTION(cuMemcpyDtoHAsync, copy_to_host),
      FUNCTION(cuMemcpyDtoDAsync, copy_on_device),
      FUNCTION(cuMemsetD8Async, fill_bytes),
      FUNCTION(cuStreamCreateWithPriority, stream_create),
      FUNCTION(cuStreamDestroy, stream_destroy),
      FUNCTION(cuStreamSynchronize, stream_synchronize),
      FUNCTION(cuEventCreate, event_create),
      FUNCTION(cuEventDestroy, event_destroy),
      FUNCTION(cuEventRecord, event_record),
      FUNCTION(cuEventSynchronize, event_synchronize),
      FUNCTION(cuEventElapsedTime, event_elapsed),
      FUNCTION(cuModuleLoadData, module_load),
      FUNCTION(cuModuleUnload, module_unload),
      FUNCTION(cuModuleGetFunction, module_function),
      FUNCTION(cuFuncSetAttribute, function_set_attribute),
      FUNCTION(cuLaunchKernelEx, launch),
      FUNCTION(cuStreamBeginCapture, capture_begin),
      FUNCTION(cuStreamEndCapture, capture_end),
      FUNCTION(cuGraphInstantiateWithFlags, graph_instantiate),
      FUNCTION(cuGraphUpload, graph_upload),
      FUNCTION(cuGraphLaunch, graph_launch),
      FUNCTION(cuGraphDestroy, graph_destroy),
      FUNCTION(cuGraphExecDestroy, graph_exec_destroy),
      FUNCTION(cuTensorMapEncodeTiled, encode_map),
      FUNCTION(cuTensorMapEncodeIm2col, encode_map),
  };
#undef FUNCTION
  return all;
}

}  // namespace

}  // namespace infernode::cuda_double

extern "C" __attribute__((visibility("default"))) int cuGetProcAddress_v2(const char* name, void** address, int,
                                                                          std::uint64_t, int*) {
  const auto& all = infernode::cuda_double::functions();
  const auto found = all.find(name);
  *address = found == all.end() ? nullptr : found->second;
  return found == all.end() ? infernode::cuda::driver::kNotFound : infernode::cuda::driver::kSuccess;
}
