#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "kernel/kernel.h"
#include "provider/provider.h"
#include "runtime/weights/weight_store.h"

namespace infernode::runtime {

class Tuner;
class WeightCache;

/// For tests, slow: compares shapes that are substituted with inferred ones, at the first signature of each kind and at
/// others like it. Runs fail where the two contradict, with Complete also where substitution knows less.
enum class ShapeCheck : std::uint8_t { Off, Contradictions, Complete };

/// Sizes of packed weights and constants by where they lie. Kernels are made on several threads.
struct HeldBytes {
  std::mutex mutex;
  std::map<const void*, std::size_t> sizes;

  void add(const void* at, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    sizes[at] = bytes;
  }
};

/// What building a plan needs; outlives the plan.
struct PlanEnvironment {
  const kernel::Registry* registry = nullptr;
  const microkernels::KernelSet* kernels = nullptr;  ///< that the CPU's nodes are made with
  WeightStore* weights = nullptr;
  /// Asked before `weights`, if there is one; the plan does not keep it.
  WeightCache* cache = nullptr;
  Tuner* tuner = nullptr;  ///< measures methods of the CPU's nodes; null: kernels choose. The plan does not keep it
  std::span<const std::shared_ptr<provider::Provider>> providers;
  const Logger* logger = nullptr;
  bool lay_out_memory = true;  ///< one arena laid out by lifetimes where shapes are known
  bool keep_memory = true;     ///< frames keep their memory between runs
  ShapeCheck check_shapes = ShapeCheck::Off;
  bool names_methods = false;  ///< steps name the method that their kernels are expected to take
  /// Asked at each node whether to go on, and for threads to make kernels on; the plan does not keep it.
  const kernel::RunContext* load = nullptr;
  /// Hears how many steps of how many have their kernels, one call at a time; null: nobody does. Not of bodies, and the
  /// plan does not keep it.
  const std::function<void(std::size_t done, std::size_t total)>* built = nullptr;
  HeldBytes* held = nullptr;  ///< of the plan that this one is a body of; not kept
};

}  // namespace infernode::runtime
