#pragma once
// A driver without a GPU: a test-only libcuda.so.1 whose device memory is host memory and whose streams do what was put
// into them when somebody waits, so that missing waits show. It checks what it is told and keeps a record.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace infernode::cuda_double {

/// The memory of a small GPU: more would be the machine's, which every allocation fills.
constexpr std::size_t kMostBytes = std::size_t{2} << 30;

struct LaunchRecord {
  std::string kernel;
  unsigned grid[3], block[3], shared_bytes;
  bool programmatic = false;
  bool replayed = false;  ///< by a graph
};

/// What tests ask of it and set. All of it is that of the one device.
struct State {
  std::vector<LaunchRecord> launches;   ///< done so far
  std::vector<std::string> complaints;  ///< calls that a real driver would refuse or that would go wrong there
  std::size_t bytes = 0;                ///< allocated now
  std::size_t most_bytes = kMostBytes;  ///< that allocations may reach
  std::size_t graphs = 0;               ///< instantiated so far
  int devices = 1;
  int version = 13000;
  int init_result = 0;
  int next_launch_result = 0;  ///< given once by the next launch
  int wait_result = 0;         ///< given by every later call, as after an illegal address
};
__attribute__((visibility("default"))) State& state();

/// A kernel as the host runs it. `params` is its one argument.
struct HostKernel {
  void (*run)(const void* params, const unsigned grid[3], const unsigned block[3]);
  std::size_t param_bytes;
};
/// Null where the double has none of that name: launches of it are complained of, unless it needs a device.
__attribute__((visibility("default"))) const HostKernel* find_kernel(const std::string& name);
/// Whether a kernel is of the families whose instructions the host lacks: launches of them are recorded and do nothing.
bool needs_device(const std::string& name);

}  // namespace infernode::cuda_double
