#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "runtime/brief/run_history.h"
#include "runtime/plan/demand.h"
#include "tensor/value.h"

namespace infernode::runtime {

/// What follows from the shapes of a plan's inputs. Immutable; shared by the runs of that signature.
struct ShapePlan {
  static constexpr std::size_t kNowhere = SIZE_MAX;
  std::vector<std::size_t> offsets;  ///< by ValueId: place in the arena, kNowhere where allocated when made
  std::vector<std::size_t> sizes;    ///< bytes at that place
  std::size_t arena_bytes = 0;
  std::vector<std::pair<graph::ValueId, tensor::Value>> known;  ///< what depends on shapes only and is read
  std::vector<bool> skip;                                       ///< by step: all its outputs are known
  std::vector<graph::ValueType> outputs;                        ///< of graph.outputs(), as inferred
  bool control_flow = false;   ///< the next run may take far longer, so a brief one is watched
  bool data_decides = false;   ///< a step's output has a size that data decides, and so the step a duration
  std::vector<bool> any_size;  ///< by step: reads or makes what has no size yet, after control flow
  std::unique_ptr<ShortSteps> short_steps;                      ///< of those steps
  mutable RunHistory history;                                   ///< of runs that want all outputs
  mutable std::array<RunHistory, Demand::kMost + 1> histories;  ///< of others, by Demand::place

  RunHistory& history_of(const Demand* demand) const { return demand == nullptr ? history : histories[demand->place]; }
};

}  // namespace infernode::runtime
