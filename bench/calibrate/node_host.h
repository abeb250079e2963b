#pragma once
// One node outside of any graph: what a kernel's constructor and its runs ask for, on one thread.

#include <memory>
#include <vector>

#include "calibrate/network_clock.h"
#include "kernel/kernel.h"
#include "runtime/memory/frame_allocator.h"

namespace infernode::bench {

class NodeHost final : public kernel::KernelInfo {
 public:
  /// Constant inputs have a value; of the others the type is enough.
  struct Input {
    graph::ValueType type;
    std::shared_ptr<const tensor::Tensor> constant;
  };
  NodeHost(graph::Node node, std::vector<Input> inputs, CpuRung rung, microkernels::Float32Precision precision);

  const graph::Node& node() const override { return node_; }
  std::int64_t since_version() const override { return 1; }
  const graph::ValueType& input_type(std::size_t i) const override;
  const graph::ValueType& output_type(std::size_t) const override { return none_; }
  const tensor::Tensor* constant(std::size_t i) const override;
  void release_constant(std::size_t) override {}
  kernel::WeightPacker& packer() override { return packer_; }
  const microkernels::KernelSet& kernels() const override { return kernels_; }
  std::unique_ptr<kernel::SubgraphRunner> subgraph(std::string_view) override { return nullptr; }

  /// Nanoseconds of run(context), by NetworkClock.
  double time(NetworkClock& clock, FunctionRef<void(kernel::KernelContext&)> run) const;

 private:
  class Packer final : public kernel::WeightPacker {
   public:
    explicit Packer(const NodeHost& host) : host_(host) {}
    tensor::Buffer pack(const graph::Node&, std::size_t input, std::string_view,
                        FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) override {
      return make(*host_.constant(input));
    }

   private:
    const NodeHost& host_;
  };

  graph::Node node_;
  std::vector<Input> inputs_;
  graph::ValueType none_;
  const microkernels::KernelSet& kernels_;
  Packer packer_{*this};
};

}  // namespace infernode::bench
