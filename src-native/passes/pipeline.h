#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernel/registry.h"

namespace infernode::passes {

/// The user's graphOptimizationLevel. Each level includes those before it.
enum class Level : std::uint8_t { Disabled = 0, Basic = 1, Extended = 2, Layout = 3, All = 99 };

class Fusions;

/// What folding may still spend on a model.
struct FoldingBudget {
  std::size_t bytes;                           ///< of constants made
  std::chrono::steady_clock::duration time{};  ///< in loops, which may never end
};

struct PassOptions {
  Level level = Level::All;
  const kernel::Registry* registry = nullptr;
  const Logger* logger = nullptr;
  tensor::Allocator* allocator = nullptr;
  std::set<std::string, std::less<>>
      disabled;  ///< names of passes and fusions (optimization.disable_specified_optimizers)
  std::size_t max_folded_bytes = std::size_t{64}
                                 << 20;  ///< a folded constant is never larger than this and than its inputs together
  const Fusions* fusions = nullptr;  ///< all of them, parsed beforehand; null: run_basic and run_extended parse them
  FoldingBudget* folding = nullptr;  ///< run_basic has one for a whole model; null: no bound on bytes, no loops
  std::set<std::string, std::less<>> enabled{};  ///< names of passes that run for who asks for them only
  bool keep_dequantizers = false;                ///< DequantizeLinear is not folded
};

/// Level 1: what keeps to ONNX's own operators; runs before providers claim nodes. Repeats its passes until nothing
/// changes (bounded). Subgraphs too. The graph stays valid and inferred; ids are renumbered. Returns names of the
/// passes and fusions that changed something, in order.
std::vector<std::string> run_basic(graph::Model& model, const PassOptions& options);

/// Levels 2 and 3 for the nodes of one provider, after partitioning.
std::vector<std::string> run_extended(graph::Model& model, std::string_view provider, const PassOptions& options);

}  // namespace infernode::passes
