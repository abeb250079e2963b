#pragma once

#include <atomic>
#include <vector>

#include "kernel/kernel.h"
#include "runtime/plan/execution_plan.h"

namespace infernode::runtime {

/// What a kernel's constructor sees while a plan is built.
class NodeKernelInfo final : public kernel::KernelInfo, private kernel::WeightPacker {
 public:
  NodeKernelInfo(const graph::Graph& graph, const graph::Node& node, const kernel::OpSchema& schema,
                 const PlanEnvironment& environment, std::vector<std::atomic<int>>& releases,
                 std::string_view method = {})
      : graph_(graph), node_(node), schema_(schema), environment_(environment), releases_(releases), method_(method) {}

  const graph::Node& node() const override { return node_; }
  std::int64_t since_version() const override { return schema_.since_version; }
  const graph::ValueType& input_type(std::size_t i) const override;
  const graph::ValueType& output_type(std::size_t o) const override;
  const tensor::Tensor* constant(std::size_t i) const override;
  void release_constant(std::size_t i) override;
  kernel::WeightPacker& packer() override { return *this; }
  const microkernels::KernelSet& kernels() const override { return *environment_.kernels; }
  std::string_view method() const override { return method_; }
  std::unique_ptr<kernel::SubgraphRunner> subgraph(std::string_view name) override;

 private:
  tensor::Buffer pack(const graph::Node& node, std::size_t input, std::string_view format,
                      FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) override;
  void done_with(const tensor::Tensor& weight, std::size_t offset, std::size_t bytes) override {
    environment_.weights->release_pages(weight, offset, bytes);
  }
  void look() override {
    if (environment_.load != nullptr) environment_.load->check();
  }

  const graph::Graph& graph_;
  const graph::Node& node_;
  const kernel::OpSchema& schema_;
  const PlanEnvironment& environment_;
  std::vector<std::atomic<int>>& releases_;  ///< by ValueId: how many uses gave the constant up
  std::string_view method_;
};

}  // namespace infernode::runtime
