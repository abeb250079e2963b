#include "passes/pipeline.h"

#include <optional>

#include "graph/captures.h"
#include "graph/patch.h"
#include "kernel/inference.h"
#include "passes/fusions.h"
#include "passes/list.h"

namespace infernode::passes {

namespace {

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
                 const PassOptions& options, std::vector<std::string>& applied) {
  bool changed = false;
  for_each_graph(graph, [&](graph::Graph& g) { changed = set.apply(g, provider, applied, options.load) || changed; });
  return changed;
}

/// Drops what nobody reads any more and infers the types of what is new.
void clean(graph::Graph& graph, const PassOptions& options) {
  for_each_graph(graph, [&](graph::Graph& g) { remove_dead_nodes(g, options); });
  graph::GraphPatch::compact(graph, [&] { options.check(); });
  graph::adopt_constants(graph);
  kernel::infer_graph(graph, *options.registry, options.logger, options.load);
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
    fusions::FusionRegistry registry(*options.registry);
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
    options.check();
    if (!pass.run(g, options)) return;
    applied.emplace_back(pass.name);
    changed = true;
  });
  return changed;
}

bool run_passes(graph::Graph& graph, const PassOptions& options, std::vector<std::string>& applied) {
  bool changed = false;
  for (const Pass& pass : kAsked) {
    if (options.enabled.contains(pass.name)) changed = run_pass(graph, pass, options, applied) || changed;
  }
  for (const Pass& pass : kRounds) changed = run_pass(graph, pass, options, applied) || changed;
  return changed;
}

/// Passes and fusions of level 1 until nothing changes.
void run_rounds(graph::Graph& graph, const fusions::FusionSet& set, const PassOptions& options,
                std::vector<std::string>& applied) {
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = run_passes(graph, options, applied);
    changed = run_fusions(graph, set, "", options, applied) || changed;
    if (!changed) break;
    clean(graph, options);
  }
}

/// Rounds weights of quantized graphs, once they are in their final form and while those that are codes still show it.
void round_weights(graph::Graph& graph, const fusions::FusionSet& set, const PassOptions& options,
                   std::vector<std::string>& applied) {
  bool may = false;
  for_each_graph(graph, [&](const graph::Graph& g) { may = may || may_quantize_weights(g, options); });
  if (!may || options.disabled.contains(kWeights.name)) return;
  PassOptions first = options;
  first.keep_dequantizers = true;
  run_rounds(graph, set, first, applied);
  if (run_pass(graph, kWeights, options, applied)) clean(graph, options);
}

/// Weights that stayed codes and that nothing reads as such.
void fold_rest(graph::Graph& graph, const PassOptions& options, std::vector<std::string>& applied) {
  if (!options.keep_dequantizers && run_pass(graph, kDequantizers, options, applied)) clean(graph, options);
}

}  // namespace

std::vector<std::string> run_basic(graph::Model& model, const PassOptions& options) {
  std::vector<std::string> applied;
  const FusionsOf set(1, options);
  FoldingBudget budget = folding_budget(*model.graph, options);
  PassOptions bounded = options;
  bounded.folding = &budget;
  TurningBudget turning;
  bounded.turning = &turning;
  bounded.keep_codes = options.level >= Level::Extended && options.cpu_only && !options.disabled.contains(kUnits.name);
  round_weights(*model.graph, *set, bounded, applied);
  run_rounds(*model.graph, *set, bounded, applied);
  const bool keep = bounded.keep_codes || bounded.keep_dequantizers;
  if (keep && run_pass(*model.graph, kWhereCodes, options, applied)) clean(*model.graph, options);
  if (options.level < Level::Extended) {
    fold_rest(*model.graph, bounded, applied);
    finish(*model.graph, "", options, applied);
  }
  if (options.separate_dequantizers && run_pass(*model.graph, kSeparate, options, applied))
    clean(*model.graph, options);
  return applied;
}

bool should_keep_codes(const graph::Model& model) {
  bool quantizes = false, dequantizes = false;
  for_each_graph(*model.graph, [&](const graph::Graph& g) {
    for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(g.node_count()); ++id) {
      if (g.node(id).removed) continue;
      quantizes = quantizes || is_quantizer(g.node(id));
      dequantizes = dequantizes || is_dequantizer(g.node(id));
    }
  });
  return quantizes && dequantizes;
}

std::vector<std::string> run_extended(graph::Model& model, std::string_view provider, const PassOptions& options) {
  std::vector<std::string> applied;
  const bool cpu = provider.empty() || provider == "cpu";
  if (cpu) {
    for (const Pass& pass : kExtended) {
      if (run_pass(*model.graph, pass, options, applied)) clean(*model.graph, options);
    }
  }
  const int most = options.level >= Level::Layout ? 3 : 2;
  for (int level = 2; level <= most; ++level) {
    const FusionsOf set(level, options);
    for (int round = 0; round < kMostRounds && run_fusions(*model.graph, *set, provider, options, applied); ++round) {
      clean(*model.graph, options);
    }
  }
  if (options.enabled.contains(kCleanup.name) && run_pass(*model.graph, kCleanup, options, applied))
    clean(*model.graph, options);
  if (cpu) {
    FoldingBudget budget = folding_budget(*model.graph, options);
    PassOptions bounded = options;
    bounded.folding = &budget;
    fold_rest(*model.graph, bounded, applied);
  }
  finish(*model.graph, provider, options, applied);
  return applied;
}

std::vector<std::string> run_layout(graph::Model& model, const PassOptions& options) {
  std::vector<std::string> applied;
  for (const Pass& pass : kLayout) {
    if (!run_pass(*model.graph, pass, options, applied) && applied.empty()) return applied;  // nothing is in blocks
  }
  clean(*model.graph, options);
  return applied;
}

}  // namespace infernode::passes
