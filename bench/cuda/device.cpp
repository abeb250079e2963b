#include "bench/cuda/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace infernode::cuda::bench {

namespace {

using GetProcAddress = int (*)(const char*, void**, int, std::uint64_t, void*);
using ModuleFunctionCount = int (*)(unsigned*, driver::Module);
using ModuleFunctions = int (*)(driver::Function*, unsigned, driver::Module);
using FunctionName = int (*)(const char**, driver::Function);

[[noreturn]] void die(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

template <class F>
F entry(GetProcAddress find, const char* name) {
  void* f = nullptr;
  int status = 0;
  if (find(name, &f, 12080, 0, &status) != 0 || !f) die(std::string("no ") + name);
  return reinterpret_cast<F>(f);
}

}  // namespace

Device::Device(const std::string& cubins) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) die("no libcuda.so.1");
  const auto find = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
#define INFERNODE_FIND(member, name, parameters) api_.member = entry<decltype(api_.member)>(find, #name);
  INFERNODE_CUDA_FUNCTIONS(INFERNODE_FIND)
#undef INFERNODE_FIND
  check(api_.init(0), "cuInit");
  driver::Context context = nullptr;
  check(api_.primary_context_retain(&context, 0), "context");
  check(api_.set_context(context), "context");
  check(api_.stream_create(&stream_, driver::kStreamNonBlocking, 0), "stream");
  int major = 0, minor = 0, shared = 0, l2 = 0;
  api_.device_attribute(&major, driver::kComputeCapabilityMajor, 0);
  api_.device_attribute(&minor, driver::kComputeCapabilityMinor, 0);
  api_.device_attribute(&target_.sm_count, driver::kMultiprocessorCount, 0);
  api_.device_attribute(&shared, driver::kMaxSharedMemoryPerBlockOptin, 0);
  api_.device_attribute(&l2, driver::kL2CacheSize, 0);
  target_.sm = major * 10 + minor;
  target_.shared_per_block = static_cast<std::size_t>(shared);
  target_.l2_bytes = static_cast<std::size_t>(l2);
  target_.api = &api_;
  const auto count = entry<ModuleFunctionCount>(find, "cuModuleGetFunctionCount");
  const auto enumerate = entry<ModuleFunctions>(find, "cuModuleEnumerateFunctions");
  const auto name_of = entry<FunctionName>(find, "cuFuncGetName");
  for (const auto& file : std::filesystem::directory_iterator(cubins)) {
    if (file.path().extension() != ".cubin") continue;
    std::ifstream in(file.path(), std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(in), {}};
    driver::Module module = nullptr;
    check(api_.module_load(&module, image.data()), file.path().c_str());
    unsigned n = 0;
    check(count(&n, module), "functions");
    std::vector<driver::Function> functions(n);
    check(enumerate(functions.data(), n, module), "functions");
    for (driver::Function f : functions) {
      const char* name = nullptr;
      check(name_of(&name, f), "name");
      functions_[name] = f;
      api_.function_set_attribute(f, driver::kPreferredSharedMemoryCarveout, 100);
    }
  }
}

void Device::check(int result, const char* what) const {
  if (result == 0) return;
  const char* text = "?";
  if (api_.error_name) api_.error_name(result, &text);
  die(std::string(what) + ": " + text);
}

DevicePtr Device::allocate(std::size_t bytes) {
  DevicePtr p = 0;
  check(api_.memory_allocate(&p, bytes + 256), "allocate");
  return p;
}

void Device::fill(DevicePtr at, unsigned char byte, std::size_t bytes) {
  if (bytes) check(api_.fill_bytes(at, byte, bytes, stream_), "fill");
}

void Device::upload(DevicePtr to, const void* from, std::size_t bytes) {
  check(api_.copy_to_device(to, from, bytes, stream_), "upload");
  synchronize();
}

void Device::download(void* to, DevicePtr from, std::size_t bytes) {
  check(api_.copy_to_host(to, from, bytes, stream_), "download");
  synchronize();
}

void Device::launch(const Launch& l) {
  const auto found = functions_.find(l.kernel);
  if (found == functions_.end()) die("no kernel " + l.kernel);
  if (l.shared_bytes > 48 * 1024) {
    check(api_.function_set_attribute(found->second, driver::kMaxDynamicSharedSizeBytes,
                                      static_cast<int>(l.shared_bytes)),
          l.kernel.c_str());
  }
  driver::LaunchAttribute attributes[2] = {};
  unsigned n = 0;
  if (l.cluster.x * l.cluster.y * l.cluster.z > 1) {
    attributes[n].id = driver::kAttributeClusterDimension;
    attributes[n++].value.cluster = {l.cluster.x, l.cluster.y, l.cluster.z};
  }
  if (l.programmatic) {
    attributes[n].id = driver::kAttributeProgrammaticStreamSerialization;
    attributes[n++].value.programmatic = 1;
  }
  const driver::LaunchConfig config{l.grid.x,  l.grid.y,       l.grid.z, l.block.x,  l.block.y,
                                    l.block.z, l.shared_bytes, stream_,  attributes, n};
  // Parameters are aligned as tensor maps want.
  alignas(64) unsigned char params[4096];
  std::copy(l.params.begin(), l.params.end(), reinterpret_cast<std::byte*>(params));
  void* pointers[] = {params};
  check(api_.launch(&config, found->second, pointers, nullptr), l.kernel.c_str());
}

void Device::launch(const std::vector<Launch>& launches) {
  for (const Launch& l : launches) launch(l);
}

void Device::synchronize() { check(api_.stream_synchronize(stream_), "synchronize"); }

double Device::time(const std::vector<Launch>& launches, int replays) {
  driver::Graph graph = nullptr;
  driver::GraphExec exec = nullptr;
  check(api_.capture_begin(stream_, driver::kCaptureThreadLocal), "capture");
  launch(launches);
  check(api_.capture_end(stream_, &graph), "capture");
  check(api_.graph_instantiate(&exec, graph, 0), "instantiate");
  driver::EventHandle begin = nullptr, end = nullptr;
  check(api_.event_create(&begin, 0), "event");
  check(api_.event_create(&end, 0), "event");
  std::vector<float> times;
  for (int i = 0; i < replays + 3; i++) {
    check(api_.event_record(begin, stream_), "event");
    check(api_.graph_launch(exec, stream_), "graph");
    check(api_.event_record(end, stream_), "event");
    check(api_.event_synchronize(end), "replay");
    float ms = 0;
    check(api_.event_elapsed(&ms, begin, end), "event");
    if (i >= 3) times.push_back(ms * 1000);
  }
  api_.event_destroy(begin);
  api_.event_destroy(end);
  api_.graph_exec_destroy(exec);
  api_.graph_destroy(graph);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace infernode::cuda::bench
