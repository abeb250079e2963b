#pragma once

#include "runtime/run/executor.h"

namespace infernode::runtime {

/// Runs the plan's steps as soon as their inputs are there, up to execution.inter_op_threads at a time. The first fault
/// ends the walk and is rethrown when the steps in progress are done. Memory is allocated step by step: lifetimes in
/// plan order do not hold here.
void walk_parallel(const Execution& execution);

}  // namespace infernode::runtime
