#include <algorithm>
#include <set>

#include "graph/patch.h"
#include "graph/walks.h"
#include "kernel/inference.h"
#include "passes/pattern_passes.h"
#include "passes/sound_inference.h"
#include "tensor/texts.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// Bytes the outputs will take at most where their types tell, with their texts: each joins no more than one element of
/// each input. SIZE_MAX where types do not tell.
std::size_t output_bytes(const Graph& graph, const Node& node, const std::vector<const tensor::Value*>& inputs) {
  std::size_t total = 0;
  for (const ValueId id : node.outputs) {
    if (id == kNoValue) continue;
    const graph::ValueType& type = graph.value(id).type;
    if (!type.is_tensor() || !type.shape) return SIZE_MAX;
    const auto shape = graph::to_known(*type.shape);
    if (!shape) return SIZE_MAX;
    total += tensor::byte_size(type.elem, shape->numel());
    if (type.elem != tensor::DType::String) continue;
    std::size_t text = 0;
    for (const tensor::Value* input : inputs)
      text += input != nullptr && input->is_tensor() ? tensor::longest_text(input->tensor()) : 0;
    const auto count = static_cast<std::size_t>(shape->numel());
    if (text > 0 && count > SIZE_MAX / 2 / text) return SIZE_MAX;
    total += count * text;
  }
  return total;
}

class Folder {
 public:
  Folder(Graph& graph, const PassOptions& options)
      : graph_(graph), options_(options), order_(graph::topological_order(graph, options)) {}

  bool run() {
    auto inferred = infer_sound(graph_, order_, *options_.registry, options_.logger, options_.load);
    if (!inferred) return false;
    inferred_ = std::move(*inferred);
    if (options_.keep_codes) kept_ = dequantizers_of_units(graph_, options_);
    bool changed = false;
    for (const NodeId id : order_) {
      options_.check();
      changed = fold(id) || changed;
    }
    return changed;
  }

  bool run_dequantizers() {
    bool changed = false;
    for (const NodeId id : order_) {
      options_.check();
      const Node& node = graph_.node(id);
      if (!is_large_dequantizer(node)) continue;
      std::vector<tensor::Value> results = evaluate(node, true);
      if (results.empty()) continue;
      graph::GraphPatch patch(graph_);
      patch.fold(node.outputs[0], std::move(results[0]));
      patch.apply();
      changed = true;
    }
    return changed;
  }

 private:
  bool fold(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.removed || !foldable(id, node)) return false;
    std::vector<tensor::Value> results = known_results(node);
    if (results.empty()) results = held_results(node);
    if (results.empty())
      results = graph::subgraphs(node).empty() ? evaluate(node) : evaluate_bodies(graph_, node, options_);
    if (results.empty()) return false;
    graph::GraphPatch patch(graph_);
    const std::vector<ValueId> outputs = node.outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!results[o].empty()) patch.fold(outputs[o], results[o]);
    }
    patch.apply();
    return true;
  }

  bool is_large_dequantizer(const Node& node) const {
    if (node.removed || !is_dequantizer(node) || !runs_on_cpu(node)) return false;
    if (node.outputs.size() != 1 || graph_.is_output(node.outputs[0])) return false;
    const tensor::Tensor* codes = constant(graph_, node.inputs[0]);
    return codes != nullptr && tensor::bit_size(codes->dtype()) >= 8;
  }

  bool foldable(NodeId id, const Node& node) const {
    if (node.outputs.empty() || !deterministic(node, *options_.registry)) return false;
    if (options_.keep_dequantizers && node.op_type == kDequantize) return false;
    if (kept_.contains(id)) return false;
    return std::none_of(node.outputs.begin(), node.outputs.end(),
                        [&](ValueId id) { return id != kNoValue && graph_.is_output(id); });
  }

  /// The value of a Constant that is a tensor of the model: shared, not copied.
  static std::vector<tensor::Value> held_results(const Node& node) {
    const tensor::Tensor* value = is(node, kConstant) ? node.attributes.get_tensor("value") : nullptr;
    if (value == nullptr || node.outputs.size() != 1) return {};
    return {tensor::Value(*value)};
  }

  /// What inference knows of all outputs, whether or not their inputs are constants.
  std::vector<tensor::Value> known_results(const Node& node) const {
    std::vector<tensor::Value> results;
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) {
        results.emplace_back();
        continue;
      }
      tensor::Tensor known = kernel::known_tensor(inferred_, id);
      if (!known) return {};
      results.emplace_back(std::move(known));
    }
    return results;
  }

  std::vector<tensor::Value> evaluate(const Node& node, bool dequantizer = false) const {
    std::vector<const tensor::Value*> inputs;
    std::size_t input_bytes = 0;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) {
        inputs.push_back(nullptr);
        continue;
      }
      const graph::ValueInfo& value = graph_.value(id);
      if (!value.is_constant() || !value.constant.is_tensor()) return {};
      inputs.push_back(&value.constant);
      input_bytes += value.constant.bytes();
    }
    const std::size_t bytes = output_bytes(graph_, node, inputs);
    if (bytes > (dequantizer ? options_.max_dequantized_bytes : options_.max_folded_bytes) && bytes > input_bytes)
      return {};
    if (!may_fold(options_, bytes, dequantizer ? bytes : input_bytes)) return {};
    try {
      kernel::RunContext run;
      run.allocator = options_.allocator;
      if (options_.load != nullptr) {
        run.cancel = options_.load->cancel;
        run.deadline = options_.load->deadline;
      }
      return kernel::evaluate_node(graph_, node, inputs, *options_.registry, run);
    } catch (const Error&) {
      options_.check();
      return {};  // the run will say what is wrong, if it ever comes to this node
    }
  }

  Graph& graph_;
  const PassOptions& options_;
  std::vector<NodeId> order_;
  std::set<NodeId> kept_;
  kernel::InferredGraph inferred_;
};

}  // namespace

bool may_fold(const PassOptions& options, std::size_t bytes, std::size_t input_bytes) {
  constexpr std::size_t kSmall = std::size_t{1} << 20;
  if (bytes > kSmall && bytes > 2 * input_bytes) return false;  // a large fill is cheaper to make than to keep
  if (options.folding == nullptr) return true;
  if (bytes > options.folding->bytes) return false;
  options.folding->bytes -= bytes;
  return true;
}

bool fold_constants(Graph& graph, const PassOptions& options) { return Folder(graph, options).run(); }
bool fold_dequantizers(Graph& graph, const PassOptions& options) { return Folder(graph, options).run_dequantizers(); }

}  // namespace infernode::passes
