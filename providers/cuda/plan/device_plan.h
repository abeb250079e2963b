#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/log.h"
#include "providers/cuda/plan/builder.h"

namespace infernode::cuda {

/// What all plans of a compiled graph share.
struct PlanContext {
  std::shared_ptr<Device> device;
  std::shared_ptr<Memory> memory;
  std::shared_ptr<Constants> constants;
  const LoweringTable& lowerings;
  const kernel::Registry& registry;
  std::shared_ptr<const graph::Graph> graph;
  std::vector<graph::NodeId> order;
  bool capture = true;                   ///< runs that repeat replay a captured graph
  std::optional<Logger> kernel_times{};  ///< told of every plan that is captured (kernel_times.h)
};

/// The addresses of a run's inputs and outputs.
struct Addresses {
  std::vector<DevicePtr> inputs, outputs;
  bool operator==(const Addresses&) const = default;
};

/// What follows from the shapes of a graph's inputs: memory and launches. Runs are concurrent, each with an instance
/// of its own. Thread-safe.
class DevicePlan {
 public:
  DevicePlan(const PlanContext& context, std::span<const tensor::Shape> inputs,
             microkernels::Float32Precision precision);

  std::size_t output_count() const { return outputs_.size(); }
  tensor::DType output_dtype(std::size_t o) const { return outputs_[o].dtype; }
  const tensor::Shape& output_shape(std::size_t o) const { return outputs_[o].shape; }
  /// Puts a run into the stream.
  void run(const PlanContext& context, const Addresses& addresses, Stream& stream);

 private:
  /// The plan at fixed addresses: its arena, and from the third run on a captured graph.
  struct Instance {
    Addresses addresses;
    tensor::Buffer memory;  ///< the arena; of a staged instance also the places of inputs and outputs
    std::vector<ReadyLaunch> launches;
    std::size_t runs = 0;
    std::optional<CapturedGraph> graph;
    bool busy = false;
    bool staged = false;  ///< inputs are copied to its places before each run, outputs from there after it
  };
  struct Interface {
    tensor::DType dtype;
    tensor::Shape shape;
    std::size_t bytes = 0;
  };
  std::shared_ptr<Instance> acquire(const PlanContext& context, const Addresses& addresses);
  std::shared_ptr<Instance> find_free(const Addresses& addresses);
  std::shared_ptr<Instance> make(const PlanContext& context, const Addresses* addresses) const;
  void release(Instance& instance);
  PlanSource source(const PlanContext& context) const;

  const microkernels::Float32Precision precision_;
  kernel::InferredGraph inferred_;
  std::vector<Interface> inputs_, outputs_;
  std::vector<Lifetime> lifetimes_;
  ArenaLayout layout_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<std::shared_ptr<Instance>> instances_;
};

}  // namespace infernode::cuda
