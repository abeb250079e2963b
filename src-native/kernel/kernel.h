#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernel/run_context.h"
#include "kernel/stream.h"
#include "microkernels/kernel_set.h"
#include "tensor/value.h"

namespace infernode::kernel {

class KernelContext;
class SubgraphRunner;

/// A node's implementation: attributes parsed and weights packed when built. Stateless at run, so concurrent runs share
/// it.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(KernelContext& ctx) const = 0;
};

/// Gives packed weights, shared between sessions: `make` runs only where nobody packed this constant this way before.
class WeightPacker {
 public:
  virtual ~WeightPacker() = default;
  /// `format` names the transformation and packing ("sgemm.avx512.b"), constant = input index of the node being built.
  virtual tensor::Buffer pack(const graph::Node& node, std::size_t input, std::string_view format,
                              FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) = 0;
  /// What `make` says of bytes of its weight that it has read for the last time, so that memory need not hold a large
  /// weight and its packed form whole.
  virtual void done_with(const tensor::Tensor& weight, std::size_t offset, std::size_t bytes) {
    (void)weight, (void)offset, (void)bytes;
  }
  /// What `make` calls between parts of a large weight; throws Aborted where the load is to end.
  virtual void look() {}
};

/// What a kernel's constructor sees of its node. References are valid only during construction, but the constants'
/// tensors may be kept (shared). Constructors of a plan's kernels run on several threads at once.
class KernelInfo {
 public:
  virtual ~KernelInfo() = default;
  virtual const graph::Node& node() const = 0;
  virtual std::int64_t since_version() const = 0;  ///< of the schema in force
  const graph::Attributes& attributes() const { return node().attributes; }
  std::size_t input_count() const { return node().inputs.size(); }
  std::size_t output_count() const { return node().outputs.size(); }
  bool has_input(std::size_t i) const { return i < input_count() && node().inputs[i] != graph::kNoValue; }
  bool has_output(std::size_t i) const { return i < output_count() && node().outputs[i] != graph::kNoValue; }
  virtual const graph::ValueType& input_type(std::size_t i) const = 0;
  virtual const graph::ValueType& output_type(std::size_t o) const = 0;
  /// The input's value where it is a constant that no feed can override; nullptr otherwise.
  virtual const tensor::Tensor* constant(std::size_t i) const = 0;
  /// The kernel has packed input i and will not read it at run: its unpacked pages may go.
  virtual void release_constant(std::size_t i) = 0;
  virtual WeightPacker& packer() = 0;
  /// The loops that kernels call: of this CPU, as exact as the session asks. Constants, which kernels may keep.
  virtual const microkernels::KernelSet& kernels() const = 0;
  /// Which of the methods that its registration lists the kernel is to be made with; empty: it chooses.
  virtual std::string_view method() const { return {}; }
  /// Runs the graph in attribute `name`. Throws InvalidModel where there is none.
  virtual std::unique_ptr<SubgraphRunner> subgraph(std::string_view name) = 0;

 protected:
  KernelInfo() = default;
};

/// Runs one subgraph of a node. Captured values come from the node's own context.
class SubgraphRunner {
 public:
  virtual ~SubgraphRunner() = default;
  virtual std::size_t input_count() const = 0;
  virtual std::size_t output_count() const = 0;
  virtual const graph::ValueType& output_type(std::size_t o) const = 0;
  /// `inputs` are consumed. The returned values own (or share) their memory beyond the call.
  virtual std::vector<tensor::Value> run(KernelContext& ctx, std::vector<tensor::Value> inputs) const = 0;
  /// What `run` would give for inputs of these types, as far as inference and declarations tell: for a body that never
  /// runs.
  virtual std::vector<graph::ValueType> output_types(KernelContext& ctx,
                                                     std::span<const graph::ValueType> inputs) const = 0;
};

/// Where a kernel's outputs come from: the frame's arena, a bound buffer, fresh memory.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// Memory for output `o` of the running node.
  virtual tensor::Tensor allocate_output(std::size_t o, tensor::DType dtype, const tensor::Shape& shape) = 0;
};

/// What a kernel sees while it runs. Inputs are on the kernel's device, plain layout.
class KernelContext {
 public:
  KernelContext(RunContext& run, std::span<const tensor::Value* const> inputs,
                std::span<const tensor::Value* const> implicit_inputs, std::span<tensor::Value> outputs,
                std::span<const tensor::DType> output_dtypes, std::span<const bool> wanted, OutputSink& sink,
                Stream* stream = nullptr)
      : run_(run),
        inputs_(inputs),
        implicit_(implicit_inputs),
        outputs_(outputs),
        output_dtypes_(output_dtypes),
        wanted_(wanted),
        sink_(sink),
        stream_(stream) {}

  RunContext& run() const { return run_; }
  /// The run's queue on the kernel's device, made by the kernel's provider. The kernel puts its work there and returns;
  /// its inputs and outputs live until that work is done. Internal error for the CPU's kernels.
  Stream& stream() const;
  std::size_t input_count() const { return inputs_.size(); }
  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr && !inputs_[i]->empty(); }
  const tensor::Tensor& input(std::size_t i) const { return input_value(i).tensor(); }
  /// nullptr where absent.
  const tensor::Tensor* optional_input(std::size_t i) const { return has_input(i) ? &inputs_[i]->tensor() : nullptr; }
  const tensor::Value& input_value(std::size_t i) const;  ///< Internal error where absent
  std::span<const tensor::Value* const> implicit_inputs() const { return implicit_; }

  std::size_t output_count() const { return outputs_.size(); }
  /// False where nobody reads output `o`: computing it may be skipped.
  bool wants_output(std::size_t o) const { return o < outputs_.size() && wanted_[o]; }
  /// Memory for output `o`, of the inferred dtype or the given one. May share memory with an input only where the
  /// registration allows in_place.
  tensor::Tensor output(std::size_t o, const tensor::Shape& shape) { return output(o, output_dtypes_[o], shape); }
  tensor::Tensor output(std::size_t o, tensor::DType dtype, const tensor::Shape& shape);
  tensor::DType output_dtype(std::size_t o) const { return output_dtypes_[o]; }
  /// Hands over a value made elsewhere: a view of an input, a sequence, an optional.
  void set_output(std::size_t o, tensor::Value value) { outputs_[o] = std::move(value); }
  /// Output o = the elements of input i with other dims, no copy. The registration must say alias(i, o).
  void forward(std::size_t i, std::size_t o, const tensor::Shape& shape) { outputs_[o] = input(i).reshaped(shape); }
  /// Memory for the duration of the call.
  tensor::Buffer scratch(std::size_t bytes) { return run_.allocator->allocate(bytes); }
  void parallel_for(std::size_t count, double cost_ns,
                    FunctionRef<void(std::size_t, std::size_t, std::size_t)> fn) const {
    run_.parallel_for(count, cost_ns, fn);
  }

 private:
  RunContext& run_;
  std::span<const tensor::Value*const> inputs_, implicit_;
  std::span<tensor::Value> outputs_;
  std::span<const tensor::DType> output_dtypes_;
  std::span<const bool> wanted_;
  OutputSink& sink_;
  Stream* stream_;
};

}  // namespace infernode::kernel
