#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/cpu_rung.h"
#include "base/lazy.h"
#include "base/thread_pool.h"
#include "base/thread_pool/task_lanes.h"
#include "kernel/registry.h"
#include "microkernels/kernel_set.h"
#include "provider/provider.h"
#include "runtime/weights/weight_store.h"
#include "session/shared_sessions.h"

namespace infernode::passes {
class Fusions;
}

namespace infernode::session {

/// The process's only state: threads, registries, vendor libraries, shared weights. Made once per process by whoever
/// loads the core (napi/ holds it for all environments) and kept alive by every Session.
class Engine {
 public:
  /// `threads` 0: what affinity, cpuset and cgroup quota allow. `hooks`, where set, make and join every thread of the
  /// engine. Throws InvalidArgument where INFERNODE_CPU asks for what the CPU lacks.
  static std::shared_ptr<Engine> create(std::size_t threads = 0, ThreadHooks hooks = {});
  ~Engine();

  ThreadPool& pool() { return *pool_; }
  /// Where what runs asynchronously waits for its turn: loads, runs and the like, about two for each processor at a
  /// time.
  TaskLanes& lanes() { return *lanes_; }
  /// How many of them at a time; 0: as many as at first.
  void set_concurrent_runs(std::size_t most);
  /// Has a thread make what the first load needs; where there is no processor for it, that load makes it.
  void prepare() noexcept;
  /// Filled at the first use.
  const kernel::Registry& registry() const;
  runtime::WeightStore& weights() { return *weights_; }
  SharedSessions& shared_sessions() { return shared_sessions_; }
  /// Read from their texts at the first use, as the registry is.
  const passes::Fusions& fusions() const;
  CpuRung cpu_rung() const { return rung_; }
  /// The microkernels of this process's CPU whose float32 products are so exact.
  const microkernels::KernelSet& kernels(microkernels::Float32Precision precision) const {
    return microkernels::kernel_set(rung_, precision);
  }
  /// Providers other than the CPU, every name that executionProviders accepts.
  const std::vector<provider::ProviderFactory>& providers() const { return providers_; }
  const provider::ProviderFactory* find_provider(std::string_view name) const;

 private:
  Engine() = default;
  CpuRung rung_{};
  mutable Lazy<kernel::Registry> registry_;
  mutable Lazy<passes::Fusions> fusions_;
  std::vector<provider::ProviderFactory> providers_;
  std::unique_ptr<runtime::WeightStore> weights_;
  SharedSessions shared_sessions_;
  std::unique_ptr<TaskLanes> lanes_;
  std::unique_ptr<ThreadPool> pool_;  ///< ends first: its threads may be making the others
};

}  // namespace infernode::session
