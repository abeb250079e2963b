#pragma once

#include "kernel/run_context.h"

namespace infernode::runtime {

/// Ends a run that was to be brief where it may not be: its caller begins it anew where it may take its time. Not an
/// Error, since nothing is wrong.
struct NotBrief {};

/// Marks a run that must not hold up its thread, which nobody can cancel: where `RunContext::cancel` is this, the run
/// goes on until its deadline and enters only what was short before.
inline constinit const kernel::CancelToken kBriefRun{};

inline bool is_brief(const kernel::RunContext& run) { return run.cancel == &kBriefRun; }

}  // namespace infernode::runtime
