// The template for authors of providers, and the double that tests partition, copies and IoBinding with: computes on
// host memory that poses as a device's, by the CPU's kernels.

#include <cstring>
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

/// Copies are done when asked for, so there is nothing to wait for.
class NullStream final : public Stream {
 public:
  void synchronize() override {}
};

/// One claimed subgraph, interpreted node by node.
class NullKernel final : public kernel::Kernel {
 public:
  NullKernel(std::shared_ptr<const graph::Graph> body, const kernel::Registry& registry)
      : body_(std::move(body)), registry_(registry), order_(body_->topological_order()) {}

  void run(kernel::KernelContext& ctx) const override {
    std::vector<Value> values(body_->values().size());
    for (std::size_t v = 0; v < values.size(); ++v) values[v] = body_->value(static_cast<ValueId>(v)).constant;
    for (std::size_t i = 0; i < body_->inputs().size(); ++i) at(values, body_->inputs()[i]) = as_host(ctx.input(i));
    for (const graph::NodeId id : order_) {
      ctx.run().check();
      const graph::Node& node = body_->node(id);
      std::vector<const Value*> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(input == kNoValue ? nullptr : &at(values, input));
      std::vector<Value> outputs = kernel::evaluate_node(*body_, node, inputs, registry_, ctx.run());
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        if (node.outputs[o] != kNoValue) at(values, node.outputs[o]) = std::move(outputs[o]);
      }
    }
    for (std::size_t o = 0; o < body_->outputs().size(); ++o) {
      const Tensor& result = at(values, body_->outputs()[o]).tensor();
      const Tensor out = ctx.output(o, result.dtype(), result.shape());
      tensor::copy_elements(result, as_host(out));
    }
  }

 private:
  static Value& at(std::vector<Value>& values, ValueId id) { return values[static_cast<std::size_t>(id)]; }

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

  std::unique_ptr<kernel::Kernel> compile(std::shared_ptr<const graph::Graph> subgraph) override {
    return std::make_unique<NullKernel>(std::move(subgraph), *registry_);
  }

  tensor::Allocator& allocator() override { return allocator_; }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<NullStream>(); }
  void copy(const Tensor& from, const Tensor& to, Stream&) override {
    if (from.dtype() != to.dtype() || from.bytes() != to.bytes()) {
      fail(ErrorCode::Internal, cat("null: copy of ", from.to_string(), " to ", to.to_string()));
    }
    if (from.bytes() > 0) std::memmove(to.mutable_raw(), from.raw(), from.bytes());
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
