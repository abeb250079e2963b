#include <map>
#include <tuple>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pass.h"

namespace infernode::passes {

namespace {

/// Larger ones are rarely equal and cost time to compare.
constexpr std::size_t kMostBytes = 256;

}  // namespace

bool share_constants(graph::Graph& graph, const PassOptions& options) {
  using Key = std::tuple<tensor::DType, std::vector<std::int64_t>, std::string>;
  std::map<Key, graph::ValueId> first;
  std::vector<bool> read(graph.values().size());
  const auto consumers = graph::consumers(graph, options);
  for (std::size_t v = 0; v < consumers.size(); ++v) read[v] = !consumers[v].empty();
  graph::GraphPatch patch(graph);
  for (graph::ValueId id = 0; id < static_cast<graph::ValueId>(read.size()); ++id) {
    options.check();
    const graph::ValueInfo& value = graph.value(id);
    if (!read[static_cast<std::size_t>(id)] || !value.is_constant() || !value.constant.is_tensor()) continue;
    const tensor::Tensor& t = value.constant.tensor();
    if (graph.is_output(id) || t.dtype() == tensor::DType::String || t.bytes() > kMostBytes) continue;
    std::string bytes(static_cast<const char*>(t.raw()), t.bytes());
    const auto [at, added] = first.emplace(
        Key{t.dtype(), std::vector<std::int64_t>(t.shape().begin(), t.shape().end()), std::move(bytes)}, id);
    if (!added) patch.replace_uses(id, at->second);
  }
  if (patch.empty()) return false;
  patch.apply();
  return true;
}

}  // namespace infernode::passes
