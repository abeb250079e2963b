#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "providers/cuda/driver/api.h"
#include "providers/cuda/kernels/launch.h"

// The GPU through its driver alone: memory, kernels from cubin files, graphs and their times. Ends the process where a
// call fails.
namespace infernode::cuda::bench {

class Device {
 public:
  /// Loads every *.cubin of a folder.
  explicit Device(const std::string& cubins);

  const Target& target() const { return target_; }
  bool has(const std::string& kernel) const { return functions_.count(kernel) != 0; }

  /// Memory that stays until the process ends.
  DevicePtr allocate(std::size_t bytes);
  void fill(DevicePtr at, unsigned char byte, std::size_t bytes);
  void upload(DevicePtr to, const void* from, std::size_t bytes);
  void download(void* to, DevicePtr from, std::size_t bytes);

  void launch(const Launch& launch);
  void launch(const std::vector<Launch>& launches);
  void synchronize();

  /// Median time of a replay, us, of a graph of these launches.
  double time(const std::vector<Launch>& launches, int replays = 60);

 private:
  void check(int result, const char* what) const;

  driver::Api api_;
  Target target_;
  driver::StreamHandle stream_ = nullptr;
  std::map<std::string, driver::Function> functions_;
};

/// A launch of a kernel of reference.cu: one thread an element.
template <class P>
Launch elementwise(const char* kernel, const P& params, std::int64_t elements) {
  Launch launch;
  launch.kernel = kernel;
  launch.grid.x = static_cast<std::uint32_t>((elements + 255) / 256);
  launch.block.x = 256;
  launch.params = param_bytes(params);
  return launch;
}

}  // namespace infernode::cuda::bench
