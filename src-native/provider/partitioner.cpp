#include "provider/partitioner.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/walks.h"
#include "provider/compiled_subgraph.h"

namespace infernode::provider {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

bool has_subgraphs(const Node& node) { return !graph::subgraphs(node).empty(); }

/// Cuts a claimed set into convex parts: no path leaves a part and comes back. A node's part is the number of times a
/// path to it had to leave the set.
std::vector<std::vector<NodeId>> convex_parts(const Graph& graph, const std::vector<NodeId>& order,
                                              const std::set<NodeId>& claimed) {
  std::map<NodeId, std::size_t> depth;
  std::map<std::size_t, std::vector<NodeId>> parts;
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const bool mine = claimed.contains(id);
    std::size_t own = 0;
    const auto follow = [&](ValueId input) {
      if (input == kNoValue) return;
      const NodeId producer = graph.value(input).producer;
      if (producer == kNoNode) return;
      const auto found = depth.find(producer);
      if (found == depth.end()) return;
      own = std::max(own, found->second + (!mine && claimed.contains(producer) ? 1 : 0));
    };
    for (const ValueId input : node.inputs) follow(input);
    for (const ValueId input : graph::implicit_inputs(node)) follow(input);
    depth[id] = own;
    if (mine) parts[own].push_back(id);
  }
  std::vector<std::vector<NodeId>> out;
  for (auto& [unused, nodes] : parts) out.push_back(std::move(nodes));
  return out;
}

/// Where a node runs: null is the host.
class Devices {
 public:
  explicit Devices(std::span<const std::shared_ptr<Provider>> providers) : providers_(providers) {}
  Provider* of(const Node& node) const {
    for (const auto& provider : providers_) {
      if (node.provider == provider->name()) return provider.get();
    }
    return nullptr;
  }

 private:
  std::span<const std::shared_ptr<Provider>> providers_;
};

/// Inserts the copy steps between devices.
class Copies {
 public:
  Copies(Graph& graph, const Devices& devices) : graph_(graph), devices_(devices) {}

  void insert() {
    const std::vector<NodeId> order = graph_.topological_order();
    for (const NodeId id : order) {
      if (devices_.of(graph_.node(id)) != nullptr) split_outputs(id);
    }
    for (const NodeId id : order) route_inputs(id);
  }

 private:
  /// Each output of a device node becomes a device value, copied to the host under the old name where somebody there
  /// reads it.
  void split_outputs(NodeId id) {
    for (std::size_t o = 0; o < graph_.node(id).outputs.size(); ++o) {
      const ValueId host = graph_.node(id).outputs[o];
      if (host == kNoValue) continue;
      const ValueId device =
          graph_.add_value(graph_.unique_name(graph_.value(host).name + "_device"), graph_.value(host).type);
      graph_.node(id).outputs[o] = device;
      graph_.value(device).producer = id;
      graph_.value(host).producer = kNoNode;
      on_device_[host] = {id, device};
    }
  }

  void route_inputs(NodeId id) {
    Provider* const here = devices_.of(graph_.node(id));
    for (std::size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      const ValueId input = graph_.node(id).inputs[i];
      if (input == kNoValue) continue;
      const auto made = on_device_.find(input);
      if (made != on_device_.end() && here == devices_.of(graph_.node(made->second.producer))) {
        if (here != nullptr) graph_.node(id).inputs[i] = made->second.value;
        continue;
      }
      if (made != on_device_.end()) bring_to_host(input);
      if (here != nullptr) graph_.node(id).inputs[i] = bring_to_device(input, *here);
    }
    for (const ValueId captured : graph::implicit_inputs(graph_.node(id))) {
      if (on_device_.contains(captured)) bring_to_host(captured);
    }
  }

 public:
  void bring_outputs_to_host() {
    for (const ValueId output : graph_.outputs()) {
      if (on_device_.contains(output)) bring_to_host(output);
    }
  }

 private:
  void bring_to_host(ValueId host) {
    if (graph_.value(host).producer != kNoNode) return;
    const Made& made = on_device_.at(host);
    add_copy(kCopyToHost, made.value, host, std::string(devices_.of(graph_.node(made.producer))->name()));
  }

  ValueId bring_to_device(ValueId host, Provider& provider) {
    const std::string name(provider.name());
    const auto [at, fresh] = copied_.emplace(std::pair{host, name}, kNoValue);
    if (fresh) {
      at->second =
          graph_.add_value(graph_.unique_name(cat(graph_.value(host).name, "_on_", name)), graph_.value(host).type);
      add_copy(kCopyToDevice, host, at->second, name);
    }
    return at->second;
  }

  void add_copy(const char* op, ValueId from, ValueId to, std::string provider) {
    Node node;
    node.name = graph_.value(to).name + "_copy";
    node.op_type = op;
    node.domain = "infernode";
    node.opset = 1;
    node.inputs = {from};
    node.outputs = {to};
    node.attributes.set("provider", std::move(provider));
    graph_.add_node(std::move(node));
  }

  struct Made {
    NodeId producer;
    ValueId value;
  };
  Graph& graph_;
  const Devices& devices_;
  std::map<ValueId, Made> on_device_;  // host value -> who makes it, and the value on the device
  std::map<std::pair<ValueId, std::string>, ValueId> copied_;
};

void forbid_fallback(const Graph& graph, std::span<const NodeId> order) {
  ErrorContext context;
  for (const NodeId id : order) {
    if (graph.node(id).provider == "cpu") context.details.push_back(graph::describe(graph, graph.node(id)));
  }
  if (context.details.empty()) return;
  std::string message =
      cat("session.disable_cpu_ep_fallback is set, and ", context.details.size(), " nodes are left to the CPU:");
  for (const std::string& node : context.details) message += "\n  " + node;
  fail(ErrorCode::ProviderUnavailable, std::move(message), std::move(context));
}

}  // namespace

std::vector<Placement> partition(Graph& graph, std::span<const std::shared_ptr<Provider>> providers,
                                 const kernel::Registry& registry, const PartitionOptions& options) {
  const std::vector<NodeId> order = graph::topological_order(graph, [&options] {
    if (options.load != nullptr) options.load->check();
  });
  std::vector<Placement> placements;
  std::vector<std::pair<Provider*, std::set<NodeId>>> to_compile;
  std::set<NodeId> taken;
  for (const auto& provider : providers) {
    std::vector<NodeId> free;
    std::copy_if(order.begin(), order.end(), std::back_inserter(free),
                 [&](NodeId id) { return !taken.contains(id) && !has_subgraphs(graph.node(id)); });
    const std::set<NodeId> offered(free.begin(), free.end());
    for (const Claim& claim : provider->claim({graph, registry, free})) {
      std::set<NodeId> mine;
      for (const NodeId id : claim.nodes) {
        if (offered.contains(id) && taken.insert(id).second) mine.insert(id);
      }
      for (const NodeId id : mine) graph.node(id).provider = std::string(provider->name());
      if (claim.compile) to_compile.emplace_back(provider.get(), std::move(mine));
    }
  }
  for (const NodeId id : order) {
    if (options.load != nullptr) options.load->check();
    Node& node = graph.node(id);
    if (node.provider.empty()) node.provider = "cpu";
    const char* reason = node.provider != "cpu" ? "claimed"
                         : providers.empty()    ? "the only provider"
                         : has_subgraphs(node)  ? "control flow runs on the CPU"
                                                : "claimed by no other provider";
    placements.push_back({node.name, node.op_type, node.provider, reason});
  }
  if (options.forbid_cpu_fallback) forbid_fallback(graph, order);
  for (const auto& [provider, nodes] : to_compile) {
    // Over the graph as it is by now: two parts of different claims must not wait for each other either.
    for (const auto& part : convex_parts(graph, graph.topological_order(), nodes))
      replace_by_compiled(graph, part, std::string(provider->name()));
  }

  if (!providers.empty()) {
    const Devices devices(providers);
    Copies copies(graph, devices);
    copies.insert();
    copies.bring_outputs_to_host();
  }
  return placements;
}

}  // namespace infernode::provider
