// Folding of control flow: a loop that reads constants only gives constants.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/walks.h"
#include "kernel/inference.h"
#include "passes/pass.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

using Clock = std::chrono::steady_clock;

/// Gives so many bytes in all, freed ones included.
class LimitedAllocator final : public tensor::Allocator {
 public:
  LimitedAllocator(tensor::Allocator& inner, std::size_t room) : inner_(inner), room_(room) {}
  tensor::Buffer allocate(std::size_t bytes) override {
    if (bytes > room_) fail(ErrorCode::OutOfMemory, cat("folding needs ", bytes, " bytes more"));
    room_ -= bytes;
    return inner_.allocate(bytes);
  }
  tensor::Device device() const override { return inner_.device(); }

 private:
  tensor::Allocator& inner_;
  std::size_t room_;
};

/// The node alone in a graph of its own, with what it reads: constants, and what nodes without inputs make (an empty
/// sequence). nullptr where it reads anything else.
std::shared_ptr<Graph> isolate(const Graph& graph, const Node& node, const kernel::Registry& registry,
                               std::size_t& input_bytes) {
  auto alone = std::make_shared<Graph>();
  std::map<ValueId, ValueId> placed;
  const auto place = [&](ValueId id) {
    if (id == kNoValue) return true;
    if (placed.contains(id)) return true;
    const graph::ValueInfo& value = graph.value(id);
    if (!value.is_constant()) {
      if (value.producer == graph::kNoNode || !graph.node(value.producer).inputs.empty()) return false;
      Node maker = graph.node(value.producer);
      if (maker.outputs.size() != 1 || !graph::subgraphs(maker).empty() || !deterministic(maker, registry))
        return false;
      placed[id] = alone->add_value(value.name, value.type);
      maker.outputs = {placed[id]};
      alone->add_node(std::move(maker));
      return true;
    }
    placed[id] = alone->add_constant(value.name, value.constant);
    alone->value(placed[id]).type = value.type;
    input_bytes += value.constant.bytes();
    return true;
  };
  const std::vector<ValueId> captured = graph::implicit_inputs(node);
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), place) ||
      !std::all_of(captured.begin(), captured.end(), place))
    return nullptr;
  Node copy = node;
  for (ValueId& id : copy.inputs) id = id == kNoValue ? id : placed[id];
  for (ValueId& id : copy.outputs) {
    if (id == kNoValue) continue;
    id = alone->add_value(graph.value(id).name, graph.value(id).type);
    alone->add_output(id);
  }
  const auto adapt = [&](const std::shared_ptr<Graph>& body) {
    std::shared_ptr<Graph> mine = body->clone();
    for (graph::Capture& capture : mine->mutable_captures()) capture.outer = placed[capture.outer];
    return mine;
  };
  for (const auto& [name, attribute] : node.attributes) {
    if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute)) copy.attributes.set(name, adapt(*one));
    if (const auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
      std::vector<std::shared_ptr<Graph>> mine;
      for (const auto& body : *list) mine.push_back(adapt(body));
      copy.attributes.set(name, std::move(mine));
    }
  }
  alone->add_node(std::move(copy));
  return alone;
}

}  // namespace

bool deterministic(const Node& node, const kernel::Registry& registry) {
  const kernel::OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
  if (schema == nullptr || !schema->deterministic) return false;
  for (const auto& body : graph::subgraphs(node)) {
    for (const graph::NodeId id : body->topological_order()) {
      if (!deterministic(body->node(id), registry)) return false;
    }
  }
  return true;
}

namespace {

bool holds_texts(const graph::ValueType& type) {
  return type.elem == tensor::DType::String || (type.inner && holds_texts(*type.inner));
}

/// Whether texts are made anywhere in it: each may be as long as all before it together, and no allocator counts them.
bool makes_texts(const Graph& graph) {
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    const Node& node = graph.node(id);
    if (node.removed) continue;
    for (const ValueId output : node.outputs) {
      if (output != kNoValue && holds_texts(graph.value(output).type)) return true;
    }
    const auto bodies = graph::subgraphs(node);
    if (std::any_of(bodies.begin(), bodies.end(), [](const auto& body) { return makes_texts(*body); })) return true;
  }
  return false;
}

}  // namespace

std::vector<tensor::Value> evaluate_bodies(const Graph& graph, const Node& node, const PassOptions& options) {
  if (options.folding == nullptr || options.folding->time.count() <= 0) return {};
  std::size_t input_bytes = 0;
  const std::shared_ptr<Graph> alone = isolate(graph, node, *options.registry, input_bytes);
  if (!alone || makes_texts(*alone)) return {};
  std::vector<tensor::Value> made;
  const Clock::time_point begin = Clock::now();
  bool finished = false;
  try {
    LimitedAllocator allocator(*options.allocator, 16 * options.max_folded_bytes);
    kernel::RunContext run;
    run.allocator = &allocator;
    run.deadline = begin + options.folding->time;
    if (options.load != nullptr) run.cancel = options.load->cancel;
    made = kernel::evaluate_graph(*alone, {}, {}, *options.registry, run);
    finished = true;
  } catch (const Error&) {  // the run will say what is wrong, if it ever comes to this node
  }
  options.check();
  options.folding->time -= Clock::now() - begin;
  if (!finished) return {};
  const std::vector<std::vector<graph::NodeId>> consumers = graph::consumers(graph, options);
  std::vector<tensor::Value> results;
  std::size_t bytes = 0, next = 0;
  for (const ValueId id : node.outputs) {
    tensor::Value value = id == kNoValue ? tensor::Value{} : std::move(made[next++]);
    if (!value.is_tensor()) {
      if (id != kNoValue && !consumers[id].empty()) return {};
      value = {};
    }
    bytes += value.bytes();
    results.push_back(std::move(value));
  }
  if (bytes > options.max_folded_bytes || !may_fold(options, bytes, input_bytes)) return {};
  return results;
}

}  // namespace infernode::passes
