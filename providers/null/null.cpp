// The template for authors of providers, and the double that tests partition, copies and IoBinding with: computes on
// host memory that poses as a device's, by the CPU's kernels.

#include <cstring>
#include <functional>
#include <set>

#include "kernel/inference.h"
#include "provider/provider.h"
#include "providers/null/null_memory.h"

namespace infernode::provider {

namespace {

using graph::kNoValue;
using graph::ValueId;
using tensor::Tensor;
using tensor::Value;

/// Does nothing before it must, so that a caller who forgets to wait sees memory as it was.
class NullStream final : public Stream {
 public:
  void put(std::function<void()> work) { queue_.push_back(std::move(work)); }
  void synchronize() override {
    std::vector<std::function<void()>> queue;
    queue.swap(queue_);
    for (const auto& work : queue) work();
  }

 private:
  std::vector<std::function<void()>> queue_;
};

NullStream& of_null(Stream& stream) { return static_cast<NullStream&>(stream); }

/// One claimed subgraph, interpreted node by node. Where the shapes of its results follow from those of its inputs it
/// is put into the stream; otherwise it waits for what the stream has, and runs at once.
class NullKernel final : public kernel::Kernel {
 public:
  NullKernel(std::shared_ptr<const graph::Graph> body, const kernel::Registry& registry)
      : body_(std::move(body)), registry_(registry), order_(body_->topological_order()) {}

  void run(kernel::KernelContext& ctx) const override {
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < body_->inputs().size(); ++i) inputs.emplace_back(as_host(ctx.input(i)));
    std::vector<Tensor> outputs = foreseen(ctx, inputs);
    if (outputs.empty()) {
      ctx.stream().synchronize();
      const std::vector<Value> results = evaluate(inputs, ctx.run());
      for (std::size_t o = 0; o < results.size(); ++o) {
        const Tensor& result = results[o].tensor();
        tensor::copy_elements(result, as_host(ctx.output(o, result.dtype(), result.shape())));
      }
      return;
    }
    kernel::RunContext later = ctx.run();
    later.loops = nullptr;  // of this step
    of_null(ctx.stream()).put([this, later, inputs = std::move(inputs), outputs = std::move(outputs)]() mutable {
      const std::vector<Value> results = evaluate(inputs, later);
      for (std::size_t o = 0; o < results.size(); ++o) tensor::copy_elements(results[o].tensor(), as_host(outputs[o]));
    });
  }

 private:
  /// Memory for the outputs; none where a shape is not known beforehand.
  std::vector<Tensor> foreseen(kernel::KernelContext& ctx, std::span<const Value> inputs) const {
    std::vector<graph::ValueType> types;
    for (const Value& input : inputs)
      types.push_back(graph::ValueType::tensor(input.tensor().dtype(), graph::to_sym(input.tensor().shape())));
    const kernel::InferredGraph inferred = kernel::infer_values(*body_, order_, types, {}, registry_);
    std::vector<tensor::Shape> shapes;
    for (const ValueId id : body_->outputs()) {
      const graph::ValueType& type = inferred.types[static_cast<std::size_t>(id)];
      const auto shape = type.shape ? graph::to_known(*type.shape) : std::nullopt;
      if (!shape || type.elem == tensor::DType::Undefined) return {};
      shapes.push_back(*shape);
    }
    std::vector<Tensor> outputs;
    for (std::size_t o = 0; o < shapes.size(); ++o) {
      const auto id = static_cast<std::size_t>(body_->outputs()[o]);
      outputs.push_back(ctx.output(o, inferred.types[id].elem, shapes[o]));
    }
    return outputs;
  }

  std::vector<Value> evaluate(std::span<const Value> inputs, kernel::RunContext& run) const {
    return kernel::evaluate_graph(*body_, inputs, {}, registry_, run);
  }

  std::shared_ptr<const graph::Graph> body_;
  const kernel::Registry& registry_;
  std::vector<graph::NodeId> order_;
};

class NullProvider final : public Provider {
 public:
  /// `only`: operator types to claim; empty claims all that the CPU has kernels for.
  explicit NullProvider(std::set<std::string, std::less<>> only) : only_(std::move(only)) {}

  std::string_view name() const override { return "null"; }
  tensor::Device device() const override { return kNullDevice; }

  std::vector<Claim> claim(const GraphView& view) override {
    registry_ = &view.registry;
    Claim claim{.nodes = {}, .compile = true};
    for (const graph::NodeId id : view.nodes) {
      if (can_run(view, view.graph.node(id))) claim.nodes.push_back(id);
    }
    return {claim};
  }

  std::unique_ptr<kernel::Kernel> compile(std::shared_ptr<const graph::Graph> subgraph,
                                          microkernels::Float32Precision) override {
    return std::make_unique<NullKernel>(std::move(subgraph), *registry_);
  }

  tensor::Allocator& allocator() override { return allocator_; }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<NullStream>(); }
  void copy(const Tensor& from, const Tensor& to, Stream& stream) override {
    if (from.dtype() != to.dtype() || from.bytes() != to.bytes()) {
      fail(ErrorCode::Internal, cat("null: copy of ", from.to_string(), " to ", to.to_string()));
    }
    if (from.bytes() == 0) return;
    of_null(stream).put(
        [from = from.raw(), to = to.mutable_raw(), bytes = from.bytes()] { std::memmove(to, from, bytes); });
  }

 private:
  bool can_run(const GraphView& view, const graph::Node& node) const {
    if (!only_.empty() && !only_.contains(node.op_type)) return false;
    const kernel::OpSchema* schema = view.registry.find_schema(node.domain, node.op_type, node.opset);
    if (schema == nullptr) return false;
    std::vector<graph::ValueType> inputs, outputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? graph::ValueType{} : view.graph.value(id).type);
    for (const ValueId id : node.outputs)
      outputs.push_back(id == kNoValue ? graph::ValueType{} : view.graph.value(id).type);
    const auto on_device = [](const graph::ValueType& type) {
      return type.kind == graph::ValueType::Kind::Unknown || (type.is_tensor() && type.elem != tensor::DType::String);
    };
    for (const auto& type : inputs) {
      if (!on_device(type)) return false;
    }
    for (const auto& type : outputs) {
      if (!on_device(type)) return false;
    }
    return view.registry.find_kernel("cpu", *schema, inputs, outputs) != nullptr;
  }

  std::set<std::string, std::less<>> only_;
  const kernel::Registry* registry_ = nullptr;
  NullAllocator allocator_;
};

std::shared_ptr<Provider> make_null(const ProviderOptions& options, const Logger&) {
  std::set<std::string, std::less<>> only;
  for (const auto& [key, value] : options) {
    if (key == "unavailable") fail(ErrorCode::ProviderUnavailable, cat("provider 'null' cannot start: ", value));
    if (key != "ops")
      fail(ErrorCode::InvalidArgument,
           cat("provider 'null' has no option '", key, "'; it has 'ops' and 'unavailable'"));
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      if (end > begin) only.insert(value.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return std::make_shared<NullProvider>(std::move(only));
}

}  // namespace

/// Options: `ops`, a comma-separated list of operator types to claim (default: all); `unavailable`, a reason with which
/// it refuses to start.
void register_null(std::vector<ProviderFactory>& factories) { factories.push_back({"null", true, make_null}); }

}  // namespace infernode::provider
