#include "passes/pipeline.h"

#include <optional>

#include "graph/captures.h"
#include "kernel/inference.h"
#include "passes/fusions.h"
#include "passes/pass.h"
#include "passes/pattern_passes.h"

namespace infernode::passes {

namespace {

constexpr Pass kCastChains{"CastChainElimination", eliminate_cast_chains};
constexpr Pass kDequantizedProducts{"DQMatMulNBitsFusion", fuse_dequantized_products};
/// Level basic runs these where options.enabled has them.
constexpr Pass kOptIn[] = {kCastChains, kDequantizedProducts};
constexpr Pass kBasic[] = {
    {"EliminateNoops", remove_noops},
    {"ConstantFolding", fold_constants},
    {"ConstantFolding", inline_branches},
    {"ConstantSharing", share_constants},
    {"CommonSubexpressionElimination", merge_common_subexpressions},
    {"JoinChains", join_chains},
    {"ReshapeFusion", fuse_reshapes},
    {"SliceConcatToSpaceToDepthFusion", fuse_slices_to_depth},
    {"QDQPropagationTransformer", propagate_quantization},
    {"TransposeOptimizer", optimize_transposes},
    {"DeadNodeElimination", remove_dead_nodes},
};
constexpr int kMostRounds = 16;

/// The graph itself and every subgraph below it, innermost last.
template <class Visit>
void for_each_graph(graph::Graph& graph, const Visit& visit) {
  visit(graph);
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    if (graph.node(id).removed) continue;
    for (const auto& body : graph::subgraphs(graph.node(id))) for_each_graph(*body, visit);
  }
}

bool run_fusions(graph::Graph& graph, const fusions::FusionSet& set, std::string_view provider,
                 std::vector<std::string>& applied) {
  bool changed = false;
  for_each_graph(graph, [&](graph::Graph& g) { changed = set.apply(g, provider, applied) || changed; });
  return changed;
}

/// Drops what nobody reads any more and infers the types of what is new.
void clean(graph::Graph& graph, const PassOptions& options) {
  for_each_graph(graph, [&](graph::Graph& g) { remove_dead_nodes(g, options); });
  graph.compact();
  graph::adopt_constants(graph);
  kernel::infer_graph(graph, *options.registry, options.logger);
}

/// What is left for the end, when no rewrite looks for Transposes any more.
void finish(graph::Graph& graph, std::string_view provider, const PassOptions& options,
            std::vector<std::string>& applied) {
  constexpr const char* kName = "TransposeOptimizer";
  if (options.disabled.contains(kName)) return;
  bool changed = false;
  for_each_graph(graph, [&](graph::Graph& g) { changed = reshape_transposes(g, provider) || changed; });
  if (!changed) return;
  applied.emplace_back(kName);
  clean(graph, options);
}

/// The fusions of a level that are not disabled.
class FusionsOf {
 public:
  FusionsOf(int level, const PassOptions& options) {
    if (options.fusions != nullptr && options.disabled.empty()) {
      set_ = &options.fusions->of(level);
      return;
    }
    fusions::FusionRegistry registry;
    fusions::register_all(registry);
    set_ = &own_.emplace(registry, level, options.disabled);
  }
  FusionsOf(const FusionsOf&) = delete;
  FusionsOf& operator=(const FusionsOf&) = delete;
  const fusions::FusionSet& operator*() const { return *set_; }

 private:
  std::optional<fusions::FusionSet> own_;
  const fusions::FusionSet* set_ = nullptr;
};

/// Each fold may double what it is given, so that a chain of them would fill any memory; a weight that is dequantised
/// and transposed becomes eight times itself.
FoldingBudget folding_budget(graph::Graph& graph, const PassOptions& options) {
  constexpr std::chrono::milliseconds kTime{500};
  std::size_t constants = 0;
  for_each_graph(graph, [&](const graph::Graph& g) {
    for (const graph::ValueInfo& value : g.values()) constants += value.constant.bytes();
  });
  return {8 * constants + 4 * options.max_folded_bytes, kTime};
}

bool run_pass(graph::Graph& graph, const Pass& pass, const PassOptions& options, std::vector<std::string>& applied) {
  bool changed = false;
  if (options.disabled.contains(pass.name)) return changed;
  for_each_graph(graph, [&](graph::Graph& g) {
    if (!pass.run(g, options)) return;
    applied.emplace_back(pass.name);
    changed = true;
  });
  return changed;
}

bool run_passes(graph::Graph& graph, const PassOptions& options, std::vector<std::string>& applied) {
  bool changed = false;
  for (const Pass& pass : kOptIn) {
    if (options.enabled.contains(pass.name)) changed = run_pass(graph, pass, options, applied) || changed;
  }
  for (const Pass& pass : kBasic) changed = run_pass(graph, pass, options, applied) || changed;
  return changed;
}

}  // namespace

std::vector<std::string> run_basic(graph::Model& model, const PassOptions& options) {
  std::vector<std::string> applied;
  const FusionsOf set(1, options);
  FoldingBudget budget = folding_budget(*model.graph, options);
  PassOptions bounded = options;
  bounded.folding = &budget;
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = run_passes(*model.graph, bounded, applied);
    changed = run_fusions(*model.graph, *set, "", applied) || changed;
    if (!changed) break;
    clean(*model.graph, options);
  }
  if (options.level < Level::Extended) finish(*model.graph, "", options, applied);
  return applied;
}

std::vector<std::string> run_extended(graph::Model& model, std::string_view provider, const PassOptions& options) {
  std::vector<std::string> applied;
  const bool cpu = provider.empty() || provider == "cpu";
  if (cpu && run_pass(*model.graph, kDequantizedProducts, options, applied)) clean(*model.graph, options);
  const int most = options.level >= Level::Layout ? 3 : 2;
  for (int level = 2; level <= most; ++level) {
    const FusionsOf set(level, options);
    for (int round = 0; round < kMostRounds && run_fusions(*model.graph, *set, provider, applied); ++round) {
      clean(*model.graph, options);
    }
  }
  finish(*model.graph, provider, options, applied);
  return applied;
}

}  // namespace infernode::passes
