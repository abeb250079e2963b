#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace infernode::runtime {

struct Step;

/// What a run that wants only some of the graph's outputs has to do. Immutable; shared by such runs.
struct Demand {
  static constexpr std::size_t kMost = 8;       ///< that a plan keeps
  std::vector<bool> outputs;                    ///< of graph.outputs()
  std::vector<bool> steps;                      ///< that run
  std::vector<std::unique_ptr<bool[]>> wanted;  ///< by step and output: somebody reads it
  std::size_t place = kMost;                    ///< among those that the plan keeps; kMost for the rest
};

/// `outputs`: which of graph.outputs() are wanted. `steps` in the order they run in.
std::shared_ptr<Demand> make_demand(const graph::Graph& graph, std::span<const Step> steps,
                                    const std::vector<bool>& outputs);

}  // namespace infernode::runtime
