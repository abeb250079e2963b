#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/execution_plan.h"

namespace infernode::runtime {

/// What the size of an output along an axis is, where all joined inputs have the same number of rows along it.
/// Unknown: data decides it, or inference does not follow it.
enum class Extent : std::uint8_t { Rows, Other, Unknown };

/// By output of the plan's graph. `joined`: names of inputs. What the graph declares counts where inference does not
/// know, and only for an axis that it calls by the name that it has in a joined input.
std::vector<Extent> extents(const ExecutionPlan& plan, std::span<const std::string> joined, std::size_t axis);

}  // namespace infernode::runtime
