#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_rung.h"
#include "graph/graph.h"
#include "kernel/registry.h"
#include "kernel/run_context.h"

namespace infernode::passes {

/// The user's graphOptimizationLevel. Each level includes those before it.
enum class Level : std::uint8_t { Disabled = 0, Basic = 1, Extended = 2, Layout = 3, All = 99 };

class Fusions;

/// What folding may still spend on a model.
struct FoldingBudget {
  std::size_t bytes;                           ///< of constants made
  std::chrono::steady_clock::duration time{};  ///< in loops, which may never end
};

/// What the search for transposes to turn may still look at: a bound on time for graphs that no exporter writes.
struct TurningBudget {
  std::size_t nodes = std::size_t{1} << 17;
  std::size_t arcs = std::size_t{1} << 25;  ///< of networks whose cuts are sought
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
  TurningBudget* turning = nullptr;  ///< run_basic has one for a whole model; null: each pass has one
  std::set<std::string, std::less<>> enabled{};  ///< names of passes that run for who asks for them only
  bool keep_dequantizers = false;                ///< DequantizeLinear is not folded
  /// What MatMulNBits that are made say of their input.
  std::int64_t accuracy_level = 4;
  /// Elements that share a scale where weights have no blocks; 0: the largest power of two from 16 to 256 that divides
  /// a column, 16 where none does.
  std::int64_t block_size = 32;
  bool cpu_only = true;  ///< no other provider will claim nodes
  /// The kernels that the CPU's nodes will run with.
  const microkernels::KernelSet* kernels = &microkernels::kernel_set({});
  /// run_basic sets it: weights that run_extended will have operators read as codes are not folded.
  bool keep_codes = false;
  /// Each node that reads what is dequantized has a DequantizeLinear of its own. For a file that others read.
  bool separate_dequantizers = false;
  std::size_t max_dequantized_bytes = std::size_t{1} << 30;  ///< of a DequantizeLinear that is folded at the end
  const kernel::RunContext* load = nullptr;                  ///< what the passes are a part of; null: nothing ends it

  /// Throws Aborted where the load is to end. Cheap: every loop over nodes calls it.
  void check() const {
    if (load != nullptr) load->check();
  }
};

/// Exporters write atan2(y, x) as Atan(y / x) and choices by the signs, which is NaN at (0, 0): the division gives 0
/// there, as atan2 does, and everything else as before. For every level, subgraphs too; types are inferred before, and
/// again where it returns true.
bool guard_arc_tangents(graph::Graph& graph, const kernel::Registry& registry);

/// Level 1: what keeps to ONNX's own operators; runs before providers claim nodes. Repeats its passes until nothing
/// changes (bounded). Subgraphs too. The graph stays valid and inferred; ids are renumbered. Returns names of the
/// passes and fusions that changed something, in order.
std::vector<std::string> run_basic(graph::Model& model, const PassOptions& options);

/// Whether constants that are codes should stay so in a file (keep_dequantizers), as what reads it finds what to run on
/// codes by them, and would take floats for weights that were never quantized.
bool should_keep_codes(const graph::Model& model);

/// Levels 2 and 3 for the nodes of one provider, after partitioning.
std::vector<std::string> run_extended(graph::Model& model, std::string_view provider, const PassOptions& options);

/// Level 3 for the CPU's nodes, last of all: in which order their kernels keep elements. Of the machine, and not for a
/// file: nothing has definitions of what it makes.
std::vector<std::string> run_layout(graph::Model& model, const PassOptions& options);

}  // namespace infernode::passes
