#include <algorithm>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pattern_passes.h"
#include "passes/quantization/codes.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;

/// Whether the node has codes, of which it may be meant to make codes: behind one of its outputs (`ahead`), or in front
/// of one of its inputs. Products make floats of codes, too.
bool works_on_codes(const Graph& graph, const Consumers& consumers, const kernel::Registry& registry, const Node& node,
                    bool ahead) {
  if (!ahead) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const NodeId maker = id == kNoValue ? kNoNode : graph.value(id).producer;
      return maker != kNoNode && dequantizes(graph.node(maker));
    });
  }
  if (kernel::traits_of(node, registry).product == kernel::Product::Matrix) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    return id != kNoValue && std::ranges::any_of(consumers[static_cast<std::size_t>(id)],
                                                 [&](NodeId reader) { return quantizes(graph.node(reader)); });
  });
}

/// The DequantizeLinears that read what the node makes, where they undo it and nothing else reads it.
std::vector<NodeId> undone_by(const Graph& graph, const Consumers& consumers, const kernel::Registry& registry,
                              const Node& quantize) {
  const ValueId codes = quantize.outputs[0];
  if (codes == kNoValue || quantize.inputs[0] == kNoValue) return {};
  const NodeId before = graph.value(quantize.inputs[0]).producer;
  if (graph.is_output(codes) || !is_code(graph.value(codes).type.elem) ||
      (before != kNoNode && works_on_codes(graph, consumers, registry, graph.node(before), false)))
    return {};
  const DType type = graph.value(quantize.inputs[0]).type.elem;
  const std::vector<NodeId>& readers = consumers[static_cast<std::size_t>(codes)];
  const bool undone = std::ranges::all_of(readers, [&](NodeId id) {
    const Node& reader = graph.node(id);
    return dequantizes(reader) && reader.inputs[0] == codes && reader.outputs[0] != kNoValue &&
           reader.provider == quantize.provider && graph.value(reader.outputs[0]).type.elem == type &&
           undoes(graph, reader, quantize) &&
           std::ranges::none_of(consumers[static_cast<std::size_t>(reader.outputs[0])], [&](NodeId after) {
             return works_on_codes(graph, consumers, registry, graph.node(after), true);
           });
  });
  return undone ? readers : std::vector<NodeId>{};
}

}  // namespace

bool drop_quantization(Graph& graph, const PassOptions& options) {
  const Consumers consumers = graph::consumers(graph, options);
  bool changed = false;
  for (const NodeId id : graph::topological_order(graph, options)) {
    options.check();
    if (!quantizes(graph.node(id))) continue;
    const std::vector<NodeId> undone = undone_by(graph, consumers, *options.registry, graph.node(id));
    if (undone.empty()) continue;
    graph::GraphPatch patch(graph);
    for (const NodeId reader : undone) {
      patch.replace_uses(graph.node(reader).outputs[0], graph.node(id).inputs[0]);
      patch.remove_node(reader);
    }
    patch.remove_node(id);
    patch.apply();
    changed = true;
  }
  return changed;
}

}  // namespace infernode::passes
